"""The conjugate families on random rows, each with its marginal likelihood in plain NumPy."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from checks.dirichlet_process_mixture import gaussian_prior
from checks.mutants import compiled
from skbnp.dirichlet_process_mixture import _model
from skbnp.likelihoods.conjugate import (
    dirichlet_categorical,
    gamma_poisson,
    normal_inverse_gamma,
    normal_inverse_wishart,
    product,
)

Face = compiled("conjugate", "faces").Face

GAUSSIAN = ["full", "diag", "spherical"]
DISCRETE = ["categorical", "poisson"]
# Columns of two or three kinds side by side; of "mixed" the Gaussian ones are imputed.
PRODUCTS = ["mixed", "counts"]
PARTS = {"mixed": ["full", "categorical", "poisson"], "counts": ["poisson", "categorical"]}
KINDS = GAUSSIAN + DISCRETE + PRODUCTS
N = 40


def with_face(kind):
    """Families of this kind, with a face that calls their C methods."""
    return lambda *args: Face(kind(*args))


DirichletCategorical = with_face(dirichlet_categorical.DirichletCategorical)
GammaPoisson = with_face(gamma_poisson.GammaPoisson)
NormalInverseGamma = with_face(normal_inverse_gamma.NormalInverseGamma)
NormalInverseWishart = with_face(normal_inverse_wishart.NormalInverseWishart)


def ProductFamily(parts, columns):
    """Of families with or without a face."""
    return Face(product.ProductFamily([getattr(part, "family", part) for part in parts], columns))


@dataclass
class Setting:
    """A family and what the tests hold against it."""

    family: Face
    X: np.ndarray  # its completed data
    log_m: Callable  # log_m(rows of X, scale): log marginal likelihood of one block
    make: Callable  # make(): the same family again, without blocks

    @property
    def new(self):
        return self.make()


def setting(kind, d, holes=0.0, *, scale=0.6, seed=0, n=N, largest_mean=500.0):
    """A family with d features, for a product d of each part.

    The means of Poisson cells reach from 0.4 to ``largest_mean``.
    """
    if kind in PARTS:
        parts = [
            setting(part, d, holes, scale=scale, seed=seed + p, n=n, largest_mean=largest_mean)
            for p, part in enumerate(PARTS[kind])
        ]
        return _product(parts, d, seed)
    rng = np.random.default_rng(seed)
    if kind == "categorical":
        make, log_m = _categorical(d, holes, rng, n)
    elif kind == "poisson":
        make, log_m = _poisson(d, holes, largest_mean, rng, n)
    else:
        make, log_m = _gaussian(kind, d, holes, scale, rng, n)
    family = make()
    return Setting(family, family.completed(), log_m, make)


def _with_holes(X, holes, rng):
    X = X.astype(float)
    X[rng.random(X.shape) < holes] = np.nan
    return X


def _gaussian(kind, d, holes, scale, rng, n):
    X = _with_holes(rng.normal(size=(n, d)) * rng.uniform(0.5, 3, size=d), holes, rng)
    root = rng.normal(size=(d, d))
    covariance = {
        "full": root @ root.T + np.eye(d),
        "diag": rng.uniform(0.5, 2, size=d),
        "spherical": np.array(1.3),
    }[kind]
    mean = rng.normal(size=d)
    prior = gaussian_prior(kind, mean, 0.3, d + 1.5, covariance)

    def make():
        if kind == "full":
            return NormalInverseWishart(X, mean, 0.3, d + 1.5, covariance, scale)
        shared = kind == "spherical"
        return NormalInverseGamma(X, mean, 0.3, (d + 1.5) / 2, covariance / 2, scale, shared)

    return make, lambda rows, scale: _model.log_marginal(rows, prior, {"prior_scale": scale})


def _categorical(d, holes, rng, n):
    """Columns of 1 to 6 levels, the last of which no row has unless it is the only one."""
    pseudo_counts = [rng.uniform(0.1, 2, size=1 + j % 6) for j in range(1, d + 1)]
    X = np.column_stack([rng.integers(max(len(g) - 1, 1), size=n) for g in pseudo_counts])
    X = _with_holes(X, holes, rng)
    return (
        lambda: DirichletCategorical(X, pseudo_counts),
        lambda rows, scale: log_m_categorical(rows, pseudo_counts),
    )


def _poisson(d, holes, largest_mean, rng, n):
    mean = 0.4 * (largest_mean / 0.4) ** rng.random((n, d))
    X = _with_holes(rng.poisson(mean), holes, rng)
    shape, rate = rng.uniform(0.2, 3, size=d), rng.uniform(0.05, 2, size=d)
    return (
        lambda: GammaPoisson(X, shape, rate),
        lambda rows, scale: log_m_poisson(rows, shape, rate),
    )


def _product(parts, d, seed):
    order = np.random.default_rng(seed).permutation(d * len(parts))
    columns = np.sort(np.split(order, len(parts)), axis=1)

    def make():
        return ProductFamily([part.make() for part in parts], columns)

    def log_m(rows, scale):
        return sum(
            part.log_m(rows[:, column], scale) for part, column in zip(parts, columns, strict=True)
        )

    family = make()
    return Setting(family, family.completed(), log_m, make)


def log_m_categorical(X, pseudo_counts):
    """sum_j lgamma(g_j) - lgamma(g_j + n_j) + sum_l lgamma(g_jl + n_jl) - lgamma(g_jl)."""
    total = 0.0
    for x, g in zip(X.T, pseudo_counts, strict=True):
        g = np.asarray(g, dtype=float)
        count = np.array([np.sum(x == level) for level in range(len(g))])
        total += gammaln(g.sum()) - gammaln(g.sum() + count.sum())
        total += np.sum(gammaln(g + count) - gammaln(g))
    return total


def log_m_poisson(X, shape, rate):
    """sum_j lgamma(a + S) - lgamma(a) + a log b - (a + S) log(b + n) - sum_cells lgamma(x + 1)."""
    seen = ~np.isnan(X)
    n, s = seen.sum(axis=0), np.where(seen, X, 0.0).sum(axis=0)
    shape, rate = np.asarray(shape), np.asarray(rate)
    terms = gammaln(shape + s) - gammaln(shape) + shape * np.log(rate)
    terms -= (shape + s) * np.log(rate + n)
    return terms.sum() - gammaln(X[seen] + 1).sum()
