"""All that a fitted mixture says, for itself and for the one that another process loads."""

import pickle
import sys
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from skbnp import DirichletProcessMixture


def answers(mixture, X):
    """What an estimator says, by name."""
    X_filled, std = mixture.impute(X, return_std=True)
    loo = mixture.posterior_.loo()
    found = {
        "predict": mixture.predict(X),
        "predict_proba": mixture.predict_proba(X),
        "novelty_proba": mixture.novelty_proba(X),
        "score_samples": mixture.score_samples(X),
        "transform": mixture.transform(X),
        "impute": X_filled,
        "std": std,
        "sample": mixture.sample(20, random_state=1)[0],
        "sample labels": mixture.sample(20, random_state=1)[1],
        "sample_missing": mixture.sample_missing(n_tables=2, random_state=1)[1],
        "sample_prior": mixture.sample_prior(20, random_state=1)[0],
        "labels_": mixture.labels_,
        "coclustering": mixture.coclustering(),
        "ball": mixture.credible_ball().radius,
        "loo": np.r_[loo.elpd, loo.se, loo.elpd_i, loo.pareto_k],
        "log_likelihood": mixture.posterior_.log_likelihood(),
        "observed_data": mixture.posterior_.observed_data(),
        "names": mixture.get_feature_names_out(),
        "X_imputed_": mixture.X_imputed_,
        "X_imputed_std_": mixture.X_imputed_std_,
        "families_": mixture.families_,
        "parameters": repr({**mixture.get_params(), "random_state": None}),
        "next number": check_random_state(clone(mixture).random_state or 0).random_sample(),
        "repr": repr(mixture.posterior_),
        "as frame": mixture.set_output(transform="pandas").transform(X),
    }
    found |= mixture.posterior_.traces
    for name in ("labels_", "n_clusters_", "seed_", "n_features_in_", "algorithm_", "n_draws_"):
        found[name] = getattr(mixture, name)
    return found


def main():
    """Load each of the named mixtures and leave its answers beside the file."""
    warnings.simplefilter("ignore")
    for place in sys.argv[1:]:
        with open(f"{place}.X", "rb") as file:
            X = pickle.load(file)
        found = answers(DirichletProcessMixture.load(f"{place}.skbnp"), X)
        with open(f"{place}.answers", "wb") as file:
            pickle.dump(found, file)
