"""Clusters of columns that all grow together, and how many factors chains start from.

Generated tables of four to eight measurements of a body: size has most of the variance, and two to
four clusters differ in shape. Principal components of variance above 1, of which there is one, are
what chains started from; now they start from as many factors as factor analysis would have by BIC
if these are more. All defaults, one seed a table. Beside them the Gaussian mixture of scikit-learn
of lowest BIC.
"""

import warnings

import numpy as np
from _peers import search_by_bic
from _report import cpu_seconds
from sklearn.metrics import adjusted_rand_score

from skbnp import InfiniteFactorClusterer
from skbnp.infinite_factor_clusterer import _start

N_TABLES, N_TABLES_QUICK = 16, 8
FIGURES = ("ARI", "clusters", "gap of log_density", "CPU s")


def bodies(seed):
    """Standardised rows, and their clusters."""
    rng = np.random.default_rng(4000 + seed)
    n, d, n_clusters = (int(rng.integers(*ends)) for ends in ((120, 401), (4, 9), (2, 5)))
    label = rng.integers(n_clusters, size=n)
    shape = 0.6 * rng.normal(size=(n_clusters, 2))[label] + 0.15 * rng.normal(size=(n, 2))
    X = 3.0 * rng.normal(size=(n, 1)) * rng.uniform(0.8, 1.2, size=d)
    X = X + shape @ rng.normal(size=(2, d)) + 0.15 * rng.normal(size=(n, d))
    return (X - X.mean(axis=0)) / X.std(axis=0), label


def figures(X, label, seed, by_bic):
    """Of one fit."""
    n_by_bic = _start.n_by_bic
    _start.n_by_bic = n_by_bic if by_bic else lambda X: 0
    try:
        model = InfiniteFactorClusterer(random_state=seed, n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, seconds = cpu_seconds(model.fit, X)
    finally:
        _start.n_by_bic = n_by_bic
    means = model.posterior_.traces["log_density"].mean(axis=1)
    ari = adjusted_rand_score(label, model.labels_)
    return dict(zip(FIGURES, (ari, model.n_clusters_, np.ptp(means), seconds), strict=True))


def starts(data, quick):
    """One row a table, and their means."""
    rows = []
    for seed in range(N_TABLES_QUICK if quick else N_TABLES):
        X, label = bodies(seed)
        found = {
            "by BIC": figures(X, label, seed, True),
            "variance > 1": figures(X, label, seed, False),
        }
        rows.append(
            {"table": f"{X.shape[0]} x {X.shape[1]}, {label.max() + 1} clusters"}
            | {f"{name}, {how}": one[name] for name in FIGURES for how, one in found.items()}
            | {"ARI, mixture by BIC": adjusted_rand_score(label, search_by_bic(X, seed).predict(X))}
        )
    mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0] if key != "table"}
    return {"Where chains start": [*rows, {"table": "mean"} | mean]}
