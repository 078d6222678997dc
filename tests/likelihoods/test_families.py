"""The kernels' statistics and densities against ratios of marginal likelihoods in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbnp.dirichlet_process_mixture import _model
from skbnp.likelihoods.normal_inverse_gamma import NormalInverseGamma
from skbnp.likelihoods.normal_inverse_wishart import NormalInverseWishart

KINDS = ["full", "diag", "spherical"]
N = 40


def setting(kind, d, holes=0.0, scale=0.6, seed=0):
    """A family on random rows, the rows, and the prior of ``_model``."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d)) * rng.uniform(0.5, 3, size=d)
    X[rng.random(X.shape) < holes] = np.nan
    root = rng.normal(size=(d, d))
    covariance = {
        "full": root @ root.T + np.eye(d),
        "diag": rng.uniform(0.5, 2, size=d),
        "spherical": np.array(1.3),
    }[kind]
    prior = _model.Prior(kind, rng.normal(size=d), 0.3, d + 1.5, covariance)
    if kind == "full":
        family = NormalInverseWishart(X, prior.mean, 0.3, d + 1.5, covariance, scale)
    else:
        family = NormalInverseGamma(
            X, prior.mean, 0.3, (d + 1.5) / 2, covariance / 2, scale, kind == "spherical"
        )
    return family, family.completed(), prior


def log_m(X, prior, scale=0.6):
    return _model.log_marginal(X, prior, scale)


def random_blocks(n_blocks, rng):
    """Disjoint blocks of the rows but the first five, among them an empty one."""
    label = rng.integers(n_blocks, size=N)
    label[:5] = -1
    blocks = [np.flatnonzero(label == k) for k in range(n_blocks)]
    blocks[rng.integers(n_blocks)] = np.array([], dtype=int)
    return blocks


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("d", [1, 2, 8])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_blocks", [1, 2, 4, 5, 9])
def test_predictive_is_a_ratio_of_marginals(kind, d, holes, n_blocks):
    """To 1e-10; all ways in which a kernel asks, empty blocks included."""
    family, X, prior = setting(kind, d, holes)
    blocks = random_blocks(n_blocks, np.random.default_rng(n_blocks))
    for k, rows in enumerate(blocks):
        family.build(k, rows)
        assert_allclose(family.marginal(k), log_m(X[rows], prior), atol=1e-10, rtol=1e-12)
    for i in range(5):
        ratio = [log_m(X[[*b, i]], prior) - log_m(X[b], prior) for b in blocks]
        assert_allclose(family.predictives(n_blocks, i), ratio, atol=1e-10)
        assert_allclose([family.predictive(k, i) for k in range(n_blocks)], ratio, atol=1e-10)
    for k, rows in enumerate(blocks):
        for i in rows:
            rest = rows[rows != i]
            expected = log_m(X[rows], prior) - log_m(X[rest], prior)
            assert_allclose(family.own_predictive(k, i), expected, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_that_change_are_seen(kind):
    """Copies kept side by side for speed follow every change of their blocks."""
    family, X, prior = setting(kind, 3)
    blocks = random_blocks(6, np.random.default_rng(1))
    for k, rows in enumerate(blocks):
        family.build(k, rows)
    for t in range(5):
        k = t % 6
        family.predictives(6, 0)
        family.add_row(k, 1)
        blocks[k] = np.append(blocks[k], 1)
        expected = [log_m(X[[*b, 0]], prior) - log_m(X[b], prior) for b in blocks]
        assert_allclose(family.predictives(6, 0), expected, atol=1e-10)
        assert not family.rescale(6, 0.6 / 2 ** (t + 1))
        scale = 0.6 / 2 ** (t + 1)
        expected = [log_m(X[[*b, 0]], prior, scale) - log_m(X[b], prior, scale) for b in blocks]
        assert_allclose(family.predictives(6, 0), expected, atol=1e-9)
        assert not family.rescale(6, 0.6)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_add_then_remove_restores(kind, holes):
    family, _, _ = setting(kind, 4, holes)
    family.build(0, range(10, 20))
    before = family.blocks(1)
    for i in range(10):
        family.add_row(0, i)
    for i in np.random.default_rng(2).permutation(10):
        assert not family.remove_row(0, i)
    for name, value in family.blocks(1).items():
        upper = np.triu if name == "factor" else np.asarray
        assert_allclose(upper(value[0]), upper(before[name][0]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_rows_does_not_matter(kind):
    family, _, _ = setting(kind, 4, 0.2)
    values = []
    for order in np.random.default_rng(3).permuted([range(30)] * 5, axis=1):
        family.build(0, order)
        values.append(family.marginal(0))
    assert_allclose(values, values[0], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_removal_that_loses_its_digits_says_so(kind):
    """A row 1e9 away leaves a tight block: the kernel must build it from its rows."""
    X = np.concatenate([np.random.default_rng(4).normal(size=(6, 2)) * 1e-3, [[1e9, 1e9]]])
    mean, covariance = np.zeros(2), {"full": np.eye(2), "diag": np.ones(2), "spherical": 1.0}[kind]
    if kind == "full":
        family = NormalInverseWishart(X, mean, 0.3, 4.0, covariance, 1e-6)
    else:
        shared = kind == "spherical"
        family = NormalInverseGamma(X, mean, 0.3, 2.0, covariance, 1e-6, shared)
    family.build(0, range(7))
    assert np.isnan(family.own_predictive(0, 6))
    assert family.remove_row(0, 6)


@pytest.mark.parametrize("d", [2, 5])
def test_observed_cells_of_a_full_block(d):
    """t with the same degrees of freedom: integrate a completed row over its missing cell."""
    family, X, prior = setting("full", d, 0.3, seed=5)
    missing = np.isnan(setting("diag", d, 0.3, seed=5)[1])  # the same rows, holes kept
    family.build(0, range(5, 20))
    family.build(1, [])
    i = next(i for i in range(5) if missing[i].sum() == 1)
    j = np.flatnonzero(missing[i])[0]
    y = np.sinh(np.linspace(-12, 12, 20_001))
    for k, rows in enumerate([np.arange(5, 20), np.array([], dtype=int)]):
        log_p = np.empty(len(y))
        for t, value in enumerate(y):
            row = X[i].copy()
            row[j] = value
            log_p[t] = log_m(np.vstack([X[rows], row]), prior) - log_m(X[rows], prior)
        total = np.log(np.trapezoid(np.exp(log_p), y))
        assert_allclose(family.predictives(2, i, observed=True)[k], total, atol=1e-4)
