"""Clusters and held-out densities of InfiniteFactorClusterer beside what a user would pick instead.

Five seeds of each of the six sets of `_infinite_factor_clusterer_sets`, the same rows for all
methods. k-means and two Gaussian mixtures are told the true number of clusters; the mixture by the
Bayesian information criterion, HDBSCAN and the two of ours are not. HDBSCAN's noise counts as one
cluster; it has no density and says nothing of new rows, nor has k-means a density. Gaussian
mixtures add .001 to variances of standardised columns: with scikit-learn's .000001 their densities
of new radio readings are no competition.
"""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
from _infinite_factor_clusterer_sets import RADIO, SYNTHETIC, load
from _peers import Answer, search_by_bic
from _report import cpu_seconds, mean_and_error
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from skbnp import DirichletProcessMixture, InfiniteFactorClusterer

OURS, BIC = "InfiniteFactorClusterer", "GaussianMixture by BIC"
# Mean adjusted Rand index that is asked of us.
LEAST_AGREEMENT = {
    "disjoint bursts": 0.95,
    "overlapping bursts": 0.83,
    "location": 0.97,
    "wifi_localization": 0.85,
}
REGULAR = {"reg_covar": 1e-3}
SHORT = {"n_chains": 2, "n_warmup": 60, "n_draws": 60}


def no_density(X):
    """Of a method that has none."""
    return np.full(len(X), np.nan)


def k_means(X, new, n_clusters, seed, quick):
    """Told the number of clusters."""
    found, seconds = cpu_seconds(KMeans(n_clusters, n_init=10, random_state=seed).fit, X)
    return Answer(found.labels_, found.predict(new), no_density(new), seconds)


def gaussians(shape):
    """A Gaussian mixture told the number of clusters."""

    def method(X, new, n_clusters, seed, quick):
        mixture = GaussianMixture(
            n_clusters, covariance_type=shape, n_init=5, random_state=seed, **REGULAR
        )
        found, seconds = cpu_seconds(mixture.fit, X)
        return Answer(found.predict(X), found.predict(new), found.score_samples(new), seconds)

    return method


def by_bic(X, new, n_clusters, seed, quick):
    """Components and their shape by the Bayesian information criterion."""
    found, seconds = cpu_seconds(partial(search_by_bic, **REGULAR), X, seed)
    return Answer(found.predict(X), found.predict(new), found.score_samples(new), seconds)


def hdbscan(X, new, n_clusters, seed, quick):
    """Clusters of at least 15 rows."""
    found, seconds = cpu_seconds(HDBSCAN(min_cluster_size=15, copy=True).fit, X)
    return Answer(found.labels_, np.empty(0), no_density(new), seconds)


def ours(Estimator):
    """Defaults of an estimator of ours; short chains if quick."""

    def method(X, new, n_clusters, seed, quick):
        estimator = Estimator(random_state=seed, **(SHORT if quick else {}))
        # How far chains agree is a column of its own.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found, seconds = cpu_seconds(estimator.fit, X)
        answer = Answer(found.labels_, found.predict(new), found.score_samples(new), seconds)
        return replace(answer, extras={"R-hat": found.posterior_.rhat()["n_clusters"]})

    return method


METHODS = {
    "k-means, true K": k_means,
    "GaussianMixture full, true K": gaussians("full"),
    "GaussianMixture diag, true K": gaussians("diag"),
    BIC: by_bic,
    "HDBSCAN": hdbscan,
    "DirichletProcessMixture": ours(DirichletProcessMixture),
    OURS: ours(InfiniteFactorClusterer),
}


def figures(answer, label, label_new):
    """One run in numbers."""
    known = len(answer.label_new) > 0
    return {
        "ARI": adjusted_rand_score(label, answer.label),
        "clusters": len(np.unique(answer.label)),
        "ARI held out": adjusted_rand_score(label_new, answer.label_new) if known else np.nan,
        "log density": float(answer.log_density.mean()),
        "CPU s": answer.seconds,
        **answer.extras,
    }


def with_error(values, digits):
    """Mean and standard error as text, "" where there is nothing."""
    mean, error = mean_and_error(values)
    return "" if np.isnan(mean) else f"{mean:.{digits}f} ± {error:.{digits}f}"


def measured(name, data, seeds, methods, quick):
    """Runs of each method on one set: {method: list of figures}."""
    runs = {method: [] for method in methods}
    for seed in seeds:
        X, label, new, label_new = load(name, data, seed)
        for method in methods:
            answer = METHODS[method](X, new, len(np.unique(label)), seed, quick)
            runs[method].append(figures(answer, label, label_new))
            print(f"  {name} {seed} {method}: {runs[method][-1]}", flush=True)
    return runs


def row_of(name, method, runs):
    """One line of the table."""
    values = {key: [run[key] for run in runs] for key in runs[0]}
    return {
        "set": name,
        "method": method,
        "ARI": with_error(values["ARI"], 3),
        "clusters": ", ".join(str(n) for n in values["clusters"]),
        "ARI held out": with_error(values["ARI held out"], 3),
        "log density": with_error(values["log density"], 3),
        "R-hat of clusters": float(np.mean(values["R-hat"])) if "R-hat" in values else "",
        "CPU s": float(np.mean(values["CPU s"])),
    }


def verdict(name, runs):
    """What was asked on one set and what came out."""
    agreement, least = mean_and_error([run["ARI"] for run in runs[OURS]])[0], LEAST_AGREEMENT
    gains = [
        mine["log density"] - peer["log density"]
        for mine, peer in zip(runs[OURS], runs[BIC], strict=True)
    ]
    gain, error = mean_and_error(gains)
    return {
        "set": name,
        "ARI": float(agreement),
        "ARI asked": least.get(name, ""),
        "ARI met": {True: "yes", False: "no"}[agreement >= least.get(name, -1.0)],
        "log density less that of the mixture by BIC": with_error(gains, 3),
        "at least that, less one standard error": {True: "yes", False: "no"}[bool(gain >= -error)],
    }


def clusters(data, quick, methods=tuple(METHODS)):
    """Tables of clusters and densities; radio sets only where their files are."""
    names = [*SYNTHETIC, *(RADIO if data.exists() else ())]
    rows, verdicts, all_runs = [], [], []
    for name in names[:1] + names[3:4] if quick else names:
        runs = measured(name, data, range(2 if quick else 5), methods, quick)
        rows += [row_of(name, method, found) for method, found in runs.items()]
        all_runs += [{"set": name, "method": m, **run} for m in runs for run in runs[m]]
        if OURS in runs and BIC in runs:
            verdicts.append(verdict(name, runs))
    return {
        "clusters: six sets, standardised": rows,
        "clusters: what was asked": verdicts,
        "figures": all_runs,
    }
