"""All rows at once, given parameters: densities, imputations and statistics from sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from checks.families import NormalInverseGamma, NormalInverseWishart
from checks.monte_carlo import z_score

KINDS = ["full", "diag", "spherical"]
N = 60


def family_of(kind, X, mean=None, df=None, covariance=None, scale=0.6):
    d = X.shape[1]
    mean = np.linspace(-1, 1, d) if mean is None else mean
    df = d + 4.0 if df is None else df
    if kind == "full":
        covariance = np.eye(d) + 0.3 if covariance is None else covariance
        return NormalInverseWishart(X, mean, 0.3, df, covariance, scale)
    shared = kind == "spherical"
    rate = 0.7 if shared else np.linspace(0.5, 1, d)
    return NormalInverseGamma(X, mean, 0.3, df / 2, rate, scale, shared)


def rows_with_holes(d, holes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d)) * rng.uniform(0.5, 3, size=d) + rng.normal(size=d)
    X[rng.random(X.shape) < holes] = np.nan
    return X


def filled(kind, X, n_blocks, seed=0, **prior):
    """A family with blocks of the rows, the last of them empty, and parameters of each."""
    family = family_of(kind, X, **prior)
    label = np.random.default_rng(seed).integers(max(n_blocks - 1, 1), size=len(X))
    bits = np.random.default_rng(seed).bit_generator
    for k in range(n_blocks):
        family.build(k, np.flatnonzero(label == k))
    for k in range(n_blocks):
        family.draw_parameters_of(k, bits)
    return family, label


def parameters(family, kind, k):
    if kind == "full":
        return np.array(family.parameters.location)[k], np.array(family.parameters.covariance)[k]
    drawn = family.parameters
    root = np.array(drawn.precision_root)[k]
    return np.array(drawn.center)[k] + np.array(drawn.shift)[k] / root, np.diag(root**-2)


@pytest.mark.parametrize("holes", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("d, n_blocks", [(1, 1), (3, 4), (8, 20), (40, 5)])
@pytest.mark.parametrize("kind", KINDS)
def test_densities(kind, d, n_blocks, holes):
    """Normal densities of the observed cells, rows sorted by what they lack or not."""
    X = rows_with_holes(d, holes)
    family, _ = filled(kind, X, n_blocks)
    expected = np.zeros((N, n_blocks))
    for k in range(n_blocks):
        mean, covariance = parameters(family, kind, k)
        for i, x in enumerate(X):
            seen = ~np.isnan(x)
            if seen.any():
                part = covariance[np.ix_(seen, seen)]
                expected[i, k] = multivariate_normal.logpdf(x[seen], mean[seen], part)
    for rows in (np.arange(N), family.row_order(), np.array([7])):
        assert_allclose(family.likelihoods(rows, n_blocks), expected[rows], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_in_any_pieces(kind):
    """The same, whatever rows come along: the kernel cuts rows into blocks."""
    X = np.tile(rows_with_holes(5, 0.1), (20, 1))
    family, _ = filled(kind, X, 6)
    whole = family.likelihoods(np.arange(len(X)), 6)
    parts = [family.likelihoods(np.arange(i, i + 100), 6) for i in range(0, len(X), 100)]
    assert_allclose(whole, np.concatenate(parts), rtol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_tight_clusters_far_out(kind):
    """A thousand and a million times tighter than their distance from the prior mean."""
    rng = np.random.default_rng(1)
    for far in (1e3, 1e6):
        X = far * np.array([1.0, -2.0, 3.0]) + rng.normal(size=(5000, 3))
        family = family_of(kind, X, mean=np.zeros(3), scale=1e-3)
        family.build(0, range(5000))
        family.draw_parameters_of(0, np.random.default_rng(2).bit_generator)
        mean, covariance = parameters(family, kind, 0)
        expected = multivariate_normal.logpdf(X[:100], mean, covariance)
        assert_allclose(family.likelihoods(np.arange(100), 1)[:, 0], expected, rtol=1e-8)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_parameters_come_from_the_posterior(kind, holes):
    """The mean of f(x | parameters) over draws is the predictive density: |z| < 4.

    For rows near the middle: further out rare draws make up the mean, and its error says nothing.
    """
    X = rows_with_holes(2, holes)
    X[:8] = [-1, 1] + 0.3 * (X[:8] - np.nanmean(X[:8], axis=0))
    family = family_of(kind, X)
    # Of four rows and of none by turns: many draws of parameters for each look at the rows.
    n_blocks = 50
    for k in range(n_blocks):
        family.build(k, range(10, 14) if k % 2 == 0 else [])
    bits = np.random.default_rng(3).bit_generator
    rows = np.arange(8)
    draws = np.empty((2 * 20_000 // n_blocks, 8, n_blocks))
    for t in range(len(draws)):
        for k in range(n_blocks):
            family.draw_parameters_of(k, bits)
        draws[t] = np.exp(family.likelihoods(rows, n_blocks))
    draws = draws.reshape(len(draws), 8, -1, 2).swapaxes(1, 2).reshape(-1, 8, 2)
    for i in rows:
        for k, log_p in enumerate(family.predictives(2, i, observed=True)):
            if not np.isnan(X[i]).all():
                assert abs(z_score(draws[:, i, k], np.exp(log_p))) < 4


def test_heavy_tails_give_no_nan():
    X = rows_with_holes(3, 0.0)
    for kind in KINDS:
        family = family_of(kind, X, df=1e-3 if kind != "full" else 2.001)
        family.build(0, [])
        bits = np.random.default_rng(4).bit_generator
        for _ in range(200):
            family.draw_parameters_of(0, bits)
            assert not np.isnan(family.likelihoods(np.arange(N), 1)).any()


def test_imputation_given_parameters():
    """Mean and covariance of the missing cells given the observed ones, |z| < 4."""
    X = rows_with_holes(4, 0.0)
    X[0, [1, 3]] = np.nan
    X[1] = np.nan
    family, _ = filled("full", X, 2)
    mean, covariance = parameters(family, "full", 0)
    bits = np.random.default_rng(5).bit_generator
    for i in (0, 1):
        m, o = np.isnan(X[i]), ~np.isnan(X[i])
        slope = covariance[np.ix_(m, o)] @ np.linalg.inv(covariance[np.ix_(o, o)])
        expected = mean[m] + slope @ (X[i, o] - mean[o])
        spread = covariance[np.ix_(m, m)] - slope @ covariance[np.ix_(o, m)]
        draws = np.empty((4000, m.sum()))
        for t in range(len(draws)):
            assert_allclose(family.impute(0, i, bits, given_parameters=True), expected, rtol=1e-9)
            draws[t] = family.completed()[i, m]
        white = np.linalg.solve(np.linalg.cholesky(spread), (draws - expected).T)
        second = white[:, None] * white - np.eye(m.sum())[:, :, None]
        assert all(abs(z_score(x, 0.0)) < 4 for x in [*white, *second.reshape(-1, len(draws))])
    # What is integrated out has the component's mean.
    for kind in ("diag", "spherical"):
        family, _ = filled(kind, X, 2)
        got = family.impute(1, 0, bits, given_parameters=True)
        assert_allclose(got, parameters(family, kind, 1)[0][[1, 3]])


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_statistics_from_sums(kind, holes):
    """As from the rows one by one, however the rows are cut."""
    family, label = filled(kind, rows_with_holes(4, holes), 4)
    for rows in (np.flatnonzero(label == 1), np.arange(1), np.arange(N)):
        family.build(2, rows)
        expected, marginal = family.blocks(3), family.marginal(2)
        for chunk in (1, 7, N):
            family.build(2, np.flatnonzero(label == 0))
            assert not family.rebuild_from_sums(2, rows, chunk)
            assert_allclose(family.marginal(2), marginal, rtol=1e-12)
            for name, value in family.blocks(3).items():
                upper = np.triu if name == "factor" else np.asarray
                assert_allclose(upper(value[2]), upper(expected[name][2]), rtol=1e-10, atol=1e-12)
            # The densities of the slot followed.
            predictive = family.predictives(3, 0)[2]
            family.build(2, rows)
            assert_allclose(family.predictives(3, 0)[2], predictive, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_squares_about_a_far_mean_are_refused(kind):
    X = rows_with_holes(3, 0.0)
    X[30:] += 1e5
    family = family_of(kind, X, mean=np.full(3, 1e5))
    family.build(0, range(30))
    assert family.rebuild_from_sums(0, range(30, N), 8)
    assert not family.rebuild_from_sums(0, range(30, N), 8)  # about the mean that it has now
