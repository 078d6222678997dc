"""Small fits of the estimators with sparse factors, and all that they answer."""

import numpy as np
from numpy.testing import assert_array_equal

from checks import edges


def short(kind, **changes):
    """An estimator of this class with short chains."""
    options = dict(n_chains=2, n_warmup=15, n_draws=10, predict_draws=6, random_state=0)
    return kind(**(options | changes))


def table():
    """Two far clusters with correlated columns and holes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(80, 4))
    X[40:] += [6.0, -6.0, 6.0, 0.0]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def answers(model, X):
    """What a fitted estimator says of rows, by name."""
    found = {
        **model.posterior_.traces,
        "labels_": model.labels_,
        "feature_labels_": model.feature_labels_,
        "energy_correlation_": model.energy_correlation_,
        "predict": model.predict(X),
        "predict_proba": model.predict_proba(X),
        "transform": model.transform(X),
        "score_samples": model.score_samples(X),
        "impute": np.stack(model.impute(X, return_std=True)),
        "sample": model.sample(5, random_state=0),
        "observed": model.posterior_.observed_data(),
        "log_likelihood": model.posterior_.log_likelihood(max_draws=4),
    }
    if hasattr(model, "component_labels_"):
        found["component_labels_"] = model.component_labels_
        found["novelty_proba"] = model.novelty_proba(X)
        found |= model.cluster_energies_
    return found


def assert_same_answers(one, other):
    """Equal to the last bit."""
    assert one.keys() == other.keys()
    for name in one:
        assert_array_equal(one[name], other[name], err_msg=name)


def assert_sound(model, X):
    """Every answer is a number and says what it must, about rows and their labels."""
    for new in edges.assert_sound(model, X, may_be_infinite=True):
        assert np.abs(model.predict_proba(new).sum(axis=1) - 1).max() < 1e-9
    assert model.labels_.shape == (len(X),)
    assert np.isfinite(model.energy_correlation_).all()
