"""Shares of the blocks in each row, given all other rows, against marginal likelihoods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax
from scipy.stats import multivariate_t

from checks.dirichlet_process_mixture import gaussian_prior
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture._model import Prior, log_marginal
from skbnp.dirichlet_process_mixture._training_rows import TrainingRows
from skbnp.dirichlet_process_mixture.families import CategoricalPrior, PoissonPrior
from skbnp.units import Units

N, D = 24, 3
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def labels():
    """Blocks of 9, 8, 4, 1, 1 and 1: the lone rows are neither first nor last."""
    label = np.repeat([0, 1, 2, 3, 4, 5], [9, 8, 4, 1, 1, 1])
    return label[np.random.default_rng(3).permutation(N)]


def real_rows(missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) + 2.0 * labels()[:, None]
    X[rng.random(X.shape) < missing] = np.nan
    return X


def full_prior(**of_partition):
    base = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 1.5]])
    return gaussian_prior("full", np.array([0.2, 0.0, 1.0]), 0.3, 5.5, base, **of_partition)


def one_variance_each(kind):
    covariance = np.array([2.0, 1.0, 0.5]) if kind == "diag" else np.array(1.5)
    return gaussian_prior(kind, np.array([0.2, 0.0, 1.0]), 0.3, 4.5, covariance)


def log_weight(size, n_others, draw, n_components):
    """Of a block of so many other rows; one without is opened anew."""
    discount = -draw["concentration"] / n_components if n_components else draw["discount"]
    return np.log(size - discount if size else draw["concentration"] + discount * n_others)


def by_marginals(X, prior, draw, log_density=None):
    """r_t(k) from the weight and m(block k with row t) / m(block k without it)."""
    label = np.asarray(draw["label"])
    n_blocks = label.max() + 1
    out = np.empty((len(X), n_blocks))
    for t in range(len(X)):
        others = np.arange(len(X)) != t
        n_others = len(np.unique(label[others]))
        for k in range(n_blocks):
            block = others & (label == k)
            out[t, k] = log_weight(block.sum(), n_others, draw, prior.n_components)
            if log_density is not None:
                out[t, k] += log_density(X[t], np.flatnonzero(block))
                continue
            out[t, k] += log_marginal(X[block | ~others], prior, draw)
            if block.any():
                out[t, k] -= log_marginal(X[block], prior, draw)
    return softmax(out, axis=1)


def draw_of(label, concentration=0.7, discount=0.2, prior_scale=1.0):
    return {
        "label": label,
        "concentration": concentration,
        "discount": discount,
        "prior_scale": prior_scale,
    }


def shares(X, prior, draw):
    d = X.shape[1]
    return TrainingRows(X, prior, Units.unscaled(d)).shares(draw)


@pytest.mark.parametrize("case", ["full", "diag", "spherical", "scaled", "finite"])
def test_complete_rows(case):
    X = real_rows()
    draw = draw_of(labels(), prior_scale=0.25 if case == "scaled" else 1.0)
    prior = full_prior() if case in ("full", "scaled") else one_variance_each("diag")
    if case == "finite":
        prior, draw["discount"] = full_prior(n_components=9), 0.0
    elif case == "spherical":
        prior = one_variance_each("spherical")
    found = shares(X, prior, draw)
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(found, by_marginals(X, prior, draw), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_missing_cells_are_integrated_out(kind):
    X, prior = real_rows(missing=0.3), one_variance_each(kind)
    X[5] = np.nan  # nothing observed: the weights alone
    found = shares(X, prior, draw_of(labels()))
    assert_allclose(found, by_marginals(X, prior, draw_of(labels())), rtol=1e-10, atol=1e-12)


def test_levels_and_counts():
    rng = np.random.default_rng(1)
    levels, counts = rng.integers(3, size=(N, 2)).astype(float), rng.poisson(3.0, size=(N, 2))
    X = np.column_stack([real_rows(missing=0.2), levels, counts.astype(float)])
    X[4, 3] = X[9, 6] = X[9, 4] = np.nan
    prior = Prior(
        (
            *one_variance_each("diag").parts,
            CategoricalPrior(np.array([3, 4]), (np.array([0.3, 0.5, 1.0]), np.full(3, 0.4))),
            PoissonPrior(np.array([5, 6]), np.array([1.0, 2.0]), np.array([0.5, 0.4])),
        )
    )
    found = shares(X, prior, draw_of(labels()))
    assert_allclose(found, by_marginals(X, prior, draw_of(labels())), rtol=1e-10, atol=1e-12)


def test_full_covariance_with_missing_cells():
    """The row's own cells integrated out, those of other rows as the draw imputes them."""
    X, prior = real_rows(missing=0.3), full_prior()
    part = prior.gaussian
    rng = np.random.default_rng(5)
    X[labels() == 3, 1] = X[labels() == 4, :2] = np.nan  # rows alone in their blocks
    filled = np.where(np.isnan(X), rng.normal(size=X.shape), X)
    draw = draw_of(labels()) | {"imputed": filled[np.isnan(X)]}

    def log_density(x, others):
        seen = ~np.isnan(x)
        n, kappa0 = len(others), part.mean_precision
        mean, psi = part.mean, part.covariance.copy()
        if n:
            center = filled[others].mean(axis=0)
            off = center - part.mean
            mean = (kappa0 * part.mean + n * center) / (kappa0 + n)
            psi += (filled[others] - center).T @ (filled[others] - center)
            psi += kappa0 * n / (kappa0 + n) * np.outer(off, off)
        df, kappa = part.degrees_of_freedom + n - D + 1, kappa0 + n
        if not seen.any():
            return 0.0
        shape = psi[np.ix_(seen, seen)] * (kappa + 1) / (kappa * df)
        return multivariate_t.logpdf(x[seen], mean[seen], shape, df)

    found = shares(X, prior, draw)
    expected = by_marginals(X, prior, draw, log_density)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_every_row_alone_and_all_in_one():
    X, prior = real_rows(), full_prior()
    for label in (np.arange(N), np.zeros(N, dtype=int)):
        found = shares(X, prior, draw_of(label))
        assert_allclose(found, by_marginals(X, prior, draw_of(label)), rtol=1e-10, atol=1e-12)


def test_draws_of_a_fit_keep_the_order_of_their_blocks():
    """Rows that were shuffled and a mixed table: column k is block k of the draw's labels."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (20, 2)), rng.normal(9, 1, (20, 2))])
    X[3, 1] = X[30, 0] = np.nan
    order = rng.permutation(40)
    X, side = X[order], order // 20
    mixture = DirichletProcessMixture(n_warmup=20, n_draws=3, random_state=0).fit(X)
    for draw in mixture.posterior_.evenly_spaced(12):
        found, n_blocks = mixture._training_rows.shares(draw), draw["label"].max() + 1
        assert found.shape == (40, n_blocks)
        # A side may be in several blocks, between which its rows are shared; none holds both.
        of_block = np.array([side[draw["label"] == k].mean() for k in range(n_blocks)])
        assert set(of_block) == {0.0, 1.0}
        assert (found * (of_block == side[:, np.newaxis])).sum(axis=1).min() > 0.99
