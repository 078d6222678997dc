"""What a user would take instead: tuned mixtures of scikit-learn, and bnpy where there is one.

Every method is a function of (X, new, seed, quick) and returns an `Answer`. Its seconds are
processor time and hold all that it does with X, the search for settings included.
"""

import os
import subprocess
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from _densities import log_density, student_predictive
from _report import cpu_seconds
from _tables import split
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

SHAPES = ("full", "tied", "diag", "spherical")
CONCENTRATIONS = (0.01, 1.0, 100.0)


@dataclass(frozen=True)
class Answer:
    """Clusters of the training rows, clusters and log densities of new ones.

    ``component`` are those of the training rows before any were joined, where that is done.
    """

    label: np.ndarray
    label_new: np.ndarray
    log_density: np.ndarray
    seconds: float
    extras: dict = field(default_factory=dict)
    component: np.ndarray | None = None


def standardised(method):
    """The method for standardised rows, its densities brought back to the units of X.

    scikit-learn's mixtures floor variances and start from k-means in the units they get.
    """

    def in_units_of_X(X, new, seed, quick):
        center, scale = X.mean(axis=0), X.std(axis=0)
        answer = method((X - center) / scale, (new - center) / scale, seed, quick)
        return replace(answer, log_density=answer.log_density - np.log(scale).sum())

    return in_units_of_X


# -- BayesianGaussianMixture


def full_covariances(mixture):
    """Posterior means of the covariances, (k, d, d), whatever their shape."""
    value, shape = mixture.covariances_, mixture.covariance_type
    k, d = mixture.means_.shape
    if shape == "full":
        return value
    if shape == "tied":
        return np.broadcast_to(value, (k, d, d))
    return np.eye(d) * (value if shape == "diag" else value[:, None])[:, None, :]


def gaussian_density(mixture, X):
    """Gaussians at the posterior means of their parameters."""
    return log_density(X, mixture.weights_, mixture.means_, full_covariances(mixture))


def student_density(mixture, X):
    """Posterior predictive: Student t."""
    df = np.broadcast_to(mixture.degrees_of_freedom_, len(mixture.weights_))
    rate = full_covariances(mixture) * df[:, None, None]
    arguments = mixture.weights_, mixture.means_, rate, mixture.mean_precision_, df
    return log_density(X, *student_predictive(*arguments))


def fit_variational(X, options, seed, n_init=1):
    """One setting of BayesianGaussianMixture."""
    mixture = BayesianGaussianMixture(**options, n_init=n_init, max_iter=300, random_state=seed)
    return mixture.fit(X)


def tune_variational(X, seed, quick):
    """Fit and density, by the density of a fifth of the rows left out of the search.

    Number and shape of the components first, then the concentration; then five restarts on all
    rows.

    ``score_samples`` is the exponential of a mean logarithm and integrates to less than one, .92 to
    .99 on the real tables with one feature and less with more. The peer gets the better of two
    densities that its posterior does stand for.
    """
    train, _, test, _ = split(X, None, seed)
    best_score, best_options, best_density = -np.inf, None, None

    def try_out(options):
        nonlocal best_score, best_options, best_density
        mixture = fit_variational(train, options, seed)
        for density in (gaussian_density, student_density):
            score = density(mixture, test).mean()
            if score > best_score:
                best_score, best_options, best_density = score, options, density

    for n_components in (10,) if quick else (5, 10, 20, 40):
        for shape in SHAPES:
            try_out({"n_components": min(n_components, len(train)), "covariance_type": shape})
    shaped = best_options
    for concentration in CONCENTRATIONS:
        try_out(shaped | {"weight_concentration_prior": concentration})
    return fit_variational(X, best_options, seed, n_init=5), best_density


@standardised
def variational(X, new, seed, quick):
    """BayesianGaussianMixture, tuned."""
    (mixture, density), seconds = cpu_seconds(tune_variational, X, seed, quick)
    return Answer(mixture.predict(X), mixture.predict(new), density(mixture, new), seconds)


# -- GaussianMixture


def search_by_bic(X, seed, **options):
    """For each shape more components, up to 40, until the criterion has not gained for three."""
    best, best_bic = None, np.inf
    for shape in SHAPES:
        shape_bic, shape_n = np.inf, 0
        for n in range(1, min(len(X), 41)):
            if n - shape_n > 3:
                break
            mixture = GaussianMixture(
                n_components=n,
                covariance_type=shape,
                n_init=3,
                max_iter=300,
                random_state=seed,
                **options,
            )
            bic = mixture.fit(X).bic(X)
            if bic < shape_bic:
                shape_bic, shape_n = bic, n
            if bic < best_bic:
                best, best_bic = mixture, bic
    return best


@standardised
def by_bic(X, new, seed, quick):
    """GaussianMixture, components and shape by the Bayesian information criterion."""
    mixture, seconds = cpu_seconds(search_by_bic, X, seed)
    return Answer(mixture.predict(X), mixture.predict(new), mixture.score_samples(new), seconds)


# -- bnpy


def bnpy_in(python):
    """bnpy, run by another Python, one that has it: see _bnpy.py."""

    @standardised
    def bnpy(X, new, seed, quick):
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("train.npy", "new.npy", "result.npz")]
            np.save(files[0], X)
            np.save(files[1], new)
            subprocess.run(
                [python, Path(__file__).with_name("_bnpy.py"), *files, str(seed)],
                env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                stdout=subprocess.DEVNULL,
                check=True,
            )
            with np.load(files[2]) as result:
                return Answer(
                    result["label"],
                    result["label_new"],
                    result["log_density"],
                    float(result["seconds"]),
                )

    return bnpy
