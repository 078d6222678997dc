"""All rows at once: likelihoods given drawn parameters, sums of rows, redrawn rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.families import (
    DISCRETE,
    GAUSSIAN,
    DirichletCategorical,
    GammaPoisson,
    N,
    NormalInverseGamma,
    setting,
)
from checks.monte_carlo import z_score

EXACT = [*DISCRETE, "counts"]
KINDS = [*EXACT, "full", "diag", "spherical", "mixed"]
BLOCKS = [np.arange(8, 20), np.array([], dtype=int), np.arange(20, 22)]


def built(kind, d, holes=0.0, times=1, **options):
    """A family with `BLOCKS`, several times over."""
    case = setting(kind, d, holes, **options)
    for k, rows in enumerate(times * BLOCKS):
        case.family.build(k, rows)
    return case


@pytest.mark.parametrize("holes", [0.0, 0.4])
@pytest.mark.parametrize("kind", KINDS)
def test_likelihoods_average_to_the_predictive(kind, holes):
    """E f(x | parameters) = p(x | block): independent draws, |z| < 4 for each row and block."""
    times = 20  # draws of parameters for each look at the rows
    family = built(kind, 2, holes, times, largest_mean=4.0).family
    bit_generator = np.random.default_rng(1).bit_generator
    rows = np.arange(5)
    expected = np.array([family.predictives(3, i, observed=True) for i in rows])
    draws = np.empty((20_000 // times, times, 5, 3))
    for t in range(len(draws)):
        for k in range(3 * times):
            family.draw_parameters_of(k, bit_generator)
        found = family.likelihoods(rows, 3 * times).reshape(5, times, 3)
        draws[t] = np.exp(found.swapaxes(0, 1) - expected)
    draws = draws.reshape(20_000, 5, 3)
    for i in rows:
        for k in range(3):
            if np.ptp(draws[:, i, k]) < 1e-9:  # a row without a cell, a column of one level
                assert_allclose(draws[:, i, k], 1.0, rtol=1e-9)
            else:
                assert abs(z_score(draws[:, i, k], 1.0)) < 4


@pytest.mark.parametrize("kind", KINDS)
def test_likelihoods_add_to_what_is_there(kind):
    """Any selection of rows, any number of blocks, the same figures."""
    family = built(kind, 3, 0.3).family
    bit_generator = np.random.default_rng(1).bit_generator
    for k in range(3):
        family.draw_parameters_of(k, bit_generator)
    every = family.likelihoods(np.arange(N), 3)
    assert np.isfinite(every).all()
    rows = np.array([7, 3, 3, 30])
    assert_array_equal(family.likelihoods(rows, 3), every[rows])
    assert_array_equal(family.likelihoods(rows, 2), every[rows, :2])


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("chunk", [1, 7, 64])
@pytest.mark.parametrize("kind", EXACT)
def test_sums_of_rows_make_the_block(kind, chunk, holes):
    """The counts exactly, whatever the slot held before and however the rows are cut."""
    family = built(kind, 7, holes).family
    rows = np.random.default_rng(2).permutation(N)[:25]
    family.build(1, rows)
    assert not family.rebuild_from_sums(0, rows, chunk)
    for name, value in family.blocks(2).items():
        assert_array_equal(value[0], value[1], err_msg=name)
    assert family.marginal(0) == family.marginal(1)
    for i in range(5):
        assert family.predictive(0, i) == family.predictive(1, i)
    assert not family.rebuild_from_sums(0, [], chunk)
    assert family.marginal(0) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_means_of_missing_cells(kind):
    """Given parameters on average those given the rows: |z| < 4 for each."""
    family = built(kind, 3, 0.4).family
    bit_generator = np.random.default_rng(3).bit_generator
    for k in range(3):
        for i in range(3):
            expected = family.impute(k, i, bit_generator)
            draws = np.empty((4000, len(expected)))
            for t in range(len(draws)):
                family.draw_parameters_of(k, bit_generator)
                draws[t] = family.impute(k, i, bit_generator, given_parameters=True)
            for draw, mean in zip(draws.T, expected, strict=True):
                if np.ptp(draw) < 1e-12:  # a column of one level
                    assert_allclose(draw, mean)
                else:
                    assert abs(z_score(draw, mean)) < 4


def test_means_of_missing_cells_by_hand():
    X = np.array([[0, 1], [2, np.nan], [2, 1], [np.nan, np.nan]])
    family = DirichletCategorical(X, [[0.5, 1.0, 2.0], [1.0, 3.0]])
    family.build(0, range(3))
    means = family.impute(0, 3, np.random.default_rng(0).bit_generator)
    assert_allclose(means, [1.5 / 6.5, 1 / 6.5, 4 / 6.5, 1 / 6, 5 / 6])
    family = GammaPoisson(X, [0.5, 2.0], [0.1, 1.0])
    family.build(0, range(3))
    means = family.impute(0, 3, np.random.default_rng(0).bit_generator)
    assert_allclose(means, [4.5 / 3.1, 4 / 3])


def exact_moments(kind, case, block, i):
    """Mean and variance of row i's only missing cell given the rows of a block, by summation."""
    (j,) = case.family.missing_features(i)
    values = np.arange(400.0) if kind == "poisson" else np.linspace(-40, 40, 4001)
    if kind == "categorical":
        values = np.arange(len(case.family.impute(0, i, np.random.PCG64(0))))
    log_p = []
    for value in values:
        row = case.X[i].copy()
        row[j] = value
        log_p.append(case.log_m(np.vstack([case.X[block], row]), 0.6))
    p = np.exp(np.array(log_p) - np.max(log_p))
    p /= p.sum()
    if kind == "categorical":
        return p, p * (1 - p)
    mean = p @ values
    return np.array([mean]), np.array([p @ (values - mean) ** 2])


@pytest.mark.parametrize("kind", [*GAUSSIAN, *DISCRETE])
def test_moments_of_a_missing_cell(kind):
    """Given rows those of the predictive law; given parameters the same by total variance."""
    case = setting(kind, 2, 0.4, largest_mean=20.0)
    family, block = case.family, np.arange(5, N)
    family.build(0, block)
    rows = [i for i in range(5) if len(family.missing_features(i)) == 1]
    assert rows
    for i in rows:
        expected = exact_moments(kind, case, block, i)
        mean = family.impute(0, i, np.random.PCG64(0))
        assert_allclose([mean, family.missing_variances(i)], expected, rtol=1e-6)
        if kind != "full":  # whose incomplete rows are never in a block when they are looked at
            family.add_row(0, i)
            assert_allclose(family.moments_of_member(0, i), expected, rtol=1e-6)
            family.build(0, block)
        bits, said = np.random.PCG64(1), []
        for _ in range(3000):
            family.draw_parameters_of(0, bits)
            weight = np.exp(family.likelihoods([i], 1)[0, 0])
            given = family.impute(0, i, bits, given_parameters=True)
            said.append((weight, given, family.missing_variances(i)))
        weight, means, variances = map(np.array, zip(*said, strict=True))
        mean = np.average(means, axis=0, weights=weight)
        variance = np.average(variances + (means - mean) ** 2, axis=0, weights=weight)
        assert_allclose(variance, expected[1], rtol=0.1)


def test_moments_over_sweeps():
    """Those of a mixture of what was remembered, without a difference of squares."""
    X = np.array([[1e9, np.nan], [1e9 + 1, 1.0], [1e9 + 3, 2.0], [np.nan, 5.0]])
    family = NormalInverseGamma(X, [1e9, 0.0], 0.1, 3.0, [1.0, 1.0], 1.0, False)
    said = []
    for t, block in enumerate([[1], [1, 2], [2, 3]]):
        family.build(0, block)
        for i in (0, 3):
            family.impute(0, i, np.random.PCG64(0))
            family.remember(i, t)
        moments = [family.missing_means, family.missing_variances]
        said.append([np.concatenate([of(0), of(3)]) for of in moments])
    mean, variance = np.moveaxis(np.array(said), 1, 0)
    state = family.get_state(1)
    assert_allclose(state["imputed_mean"], mean.mean(axis=0), rtol=1e-15)
    assert_allclose(
        state["imputed_square"] / 3, variance.mean(axis=0) + mean.var(axis=0), rtol=1e-6
    )
    family.forget_imputations()
    assert not family.get_state(1)["imputed_square"].any()


def redraws(family, k, rows, n_draws=8000):
    """Rows redrawn n_draws times given the same statistics, (n_draws, n_rows, n_features)."""
    bit_generator = np.random.default_rng(5).bit_generator
    draws = np.empty((n_draws, len(rows), family.n_features))
    for t in range(n_draws):
        family.redraw(k, rows, bit_generator)
        draws[t] = family.completed()[rows]
    return draws


def test_redrawn_categorical_rows():
    """Probabilities of levels, and of the same level twice: rows share parameters."""
    rng = np.random.default_rng(6)
    X = rng.integers(3, size=(12, 2)).astype(float)
    X[0, 1] = np.nan
    g = np.array([0.4, 1.0, 0.7])
    family = DirichletCategorical(X, [g, g])
    family.build(0, range(12))
    draws = redraws(family, 0, [0, 1])
    assert np.isnan(draws[:, 0, 1]).all()
    a = g + np.bincount(X[:, 0].astype(int), minlength=3)
    b = g + np.bincount(X[1:, 1].astype(int), minlength=3)
    total = a.sum()
    for level in range(3):
        is_level = draws == level
        assert abs(z_score(is_level[:, 0, 0], a[level] / total)) < 4
        assert abs(z_score(is_level[:, 1, 0], a[level] / total)) < 4
        assert abs(z_score(is_level[:, 1, 1], b[level] / b.sum())) < 4
        both = a[level] * (a[level] + 1) / (total * (total + 1))
        assert abs(z_score(is_level[:, 0, 0] & is_level[:, 1, 0], both)) < 4


def test_redrawn_poisson_rows():
    """Means, variances, and the covariance of two rows, which share parameters."""
    rng = np.random.default_rng(7)
    X = rng.poisson([2.0, 30.0], size=(6, 2)).astype(float)
    X[0, 1] = np.nan
    family = GammaPoisson(X, [0.4, 3.0], [0.3, 0.1])
    family.build(0, range(6))
    draws = redraws(family, 0, [0, 1])
    assert np.isnan(draws[:, 0, 1]).all()
    r, q = 0.4 + X[:, 0].sum(), 6.3
    for i in range(2):
        assert abs(z_score(draws[:, i, 0], r / q)) < 4
        assert abs(z_score((draws[:, i, 0] - r / q) ** 2, r / q * (1 + 1 / q))) < 4
    covariance = (draws[:, 0, 0] - r / q) * (draws[:, 1, 0] - r / q)
    assert abs(z_score(covariance, r / q**2)) < 4
    assert abs(z_score(draws[:, 1, 1], (3.0 + np.nansum(X[:, 1])) / 5.1)) < 4


@pytest.mark.parametrize("kind", KINDS)
def test_redrawn_rows_are_data(kind):
    """What is kept beside the cells follows them: the family of the new table says the same."""
    case = built(kind, 3, 0.3)
    case.family.redraw(0, np.arange(30), np.random.default_rng(8).bit_generator)
    X = case.family.completed()
    assert np.any((X != case.X) & ~np.isnan(X))
    assert_array_equal(np.isnan(X), np.isnan(case.X))
    case.family.build(0, range(5, 20))
    expected = [case.log_m(X[[*range(5, 20), i]], 0.6) - case.log_m(X[5:20], 0.6) for i in range(5)]
    assert_allclose([case.family.predictive(0, i) for i in range(5)], expected, atol=1e-10)
    assert_allclose(case.family.marginal(0), case.log_m(X[5:20], 0.6), atol=1e-10)


def test_means_that_underflow():
    """Tiny shapes: the parameters are kept in logs."""
    X = np.zeros((3, 2))
    family = GammaPoisson(X, [1e-4, 1.0], [1.0, 1.0])
    family.build(0, [])
    bit_generator = np.random.default_rng(9).bit_generator
    seen = GammaPoisson(np.array([[2.0, 0.0]]), [1e-4, 1.0], [1.0, 1.0])
    seen.build(0, [])
    log_f = np.empty(500)
    for t in range(len(log_f)):
        seen.draw_parameters_of(0, bit_generator)
        log_f[t] = seen.likelihoods([0], 1)[0, 0]
    assert np.isfinite(log_f).all() and log_f.min() < -1000
    family.draw_parameters_of(0, bit_generator)
    assert np.isfinite(family.likelihoods([0, 1, 2], 1)).all()
