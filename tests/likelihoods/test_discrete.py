"""Categorical and Poisson blocks: published figures, quadrature, extremes, bad input."""

import json
from decimal import Decimal, getcontext
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad

from checks.families import (
    DirichletCategorical,
    GammaPoisson,
    log_m_categorical,
    log_m_poisson,
    setting,
)

VECTORS = Path(__file__).parents[1] / "dirichlet_process_mixture" / "vectors.json"
CASES = {
    case["family"]: case
    for case in json.loads(VECTORS.read_text())
    if case["family"] in ("bernoulli", "categorical", "poisson")
}


def family_of(case):
    X, hyper = np.array(case["X"], dtype=float), case["hyper"]
    if case["family"] == "poisson":
        return GammaPoisson(X, hyper["shape"], hyper["rate"])
    if case["family"] == "categorical":
        return DirichletCategorical(X, hyper["conc"])
    return DirichletCategorical(X, np.column_stack([hyper["b"], hyper["a"]]))


@pytest.mark.parametrize("name", CASES)
def test_marginals_of_the_vectors(name):
    case = CASES[name]
    family, n = family_of(case), len(case["X"])
    family.build(0, range(n))
    assert_allclose(family.marginal(0), case["log_marginal_one_block"], atol=1e-8)
    family.build(1, [])
    singletons = [family.predictive(1, i) for i in range(n)]
    assert_allclose(singletons, case["log_marginal_singletons"], atol=1e-8)


def test_bernoulli_is_two_levels():
    """p ~ Beta(a, b): pseudo counts (b, a)."""
    a, b, x = 0.7, 2.5, np.array([1.0, 0.0, 1.0, 1.0])
    family = DirichletCategorical(x[:, None], [[b, a]])
    family.build(0, range(4))
    exact = quad(lambda p: stats.beta(a, b).pdf(p) * p**3 * (1 - p), 0, 1)[0]
    assert_allclose(family.marginal(0), np.log(exact), atol=1e-9)


@pytest.mark.parametrize("x", [[0], [3, 0, 5, 1], [40, 61]])
def test_poisson_by_quadrature(x):
    a, b = 1.7, 0.4
    family = GammaPoisson(np.array(x, dtype=float)[:, None], [a], [b])
    family.build(0, range(len(x)))

    def joint(mean):
        return stats.gamma(a, scale=1 / b).pdf(mean) * np.prod(stats.poisson(mean).pmf(x))

    peak = (a + sum(x)) / (b + len(x))
    exact = quad(joint, 0, 10 * peak + 20, points=[peak], epsabs=0, epsrel=1e-11, limit=400)[0]
    assert_allclose(family.marginal(0), np.log(exact), atol=1e-9)


def test_poisson_predictive_is_negative_binomial():
    """Few and many events, from one to a hundred columns: products are logged in time."""
    rng = np.random.default_rng(0)
    x = np.array([0, 1, 2, 3, 4, 5, 6, 7, 15, 16, 31, 32, 33, 100, 5000, 10**6])
    for d in (1, 3, 100):
        X = rng.choice(x, size=(30, d)).astype(float)
        X[:10] = rng.poisson(3.0, size=(10, d))
        shape, rate = rng.uniform(1e-3, 3, d), rng.uniform(1e-3, 3, d)
        family = GammaPoisson(X, shape, rate)
        blocks = [range(20), range(10), [], [21]]
        for k, rows in enumerate(blocks):
            family.build(k, rows)
        for i in (25, 26, 27):
            expected = []
            for rows in blocks:
                r, q = shape + X[list(rows)].sum(axis=0), rate + len(rows)
                expected.append(stats.nbinom(r, q / (q + 1)).logpmf(X[i]).sum())
            assert_allclose(family.predictives(4, i), expected, rtol=1e-9)


@pytest.mark.parametrize("shape", [1e-100, 1e-12, 1e12])
def test_poisson_far_from_usual(shape):
    """Products of the smallest and the largest shapes neither under- nor overflow."""
    d = 40
    X = np.random.default_rng(1).poisson(2.0, size=(4, d)).astype(float)
    family = GammaPoisson(X, np.full(d, shape), np.ones(d))
    family.build(0, [])
    family.build(1, [1, 2])
    getcontext().prec = 60
    expected = []
    for rows in ([], [1, 2]):
        total = Decimal(0)
        for j in range(d):
            x, q = int(X[0, j]), Decimal(1 + len(rows))
            r = Decimal(shape) + int(X[rows, j].sum())
            for m in range(x):
                total += ((r + m) / (m + 1)).ln()
            total += r * (q / (q + 1)).ln() - x * (q + 1).ln()
        expected.append(float(total))
    assert_allclose(family.predictives(2, 0), expected, rtol=1e-13)
    assert_allclose([family.predictive(k, 0) for k in range(2)], expected, rtol=1e-13)


def test_large_counts():
    """Totals up to 2^53 are exact; what cancels in a density leaves the digits it must."""
    X = np.array([[2.0**52], [2.0**51], [1.0], [2.0**50 + 1]])
    family = GammaPoisson(X, [1.0], [1.0])
    family.build(0, [0, 1, 2])
    for i in (3, 3, 3):
        family.add_row(0, i)
        family.remove_row(0, i)
    assert family.blocks(1)["total"][0, 0] == 2.0**52 + 2.0**51 + 1.0
    assert_allclose(family.marginal(0), log_m_poisson(X[:3], [1.0], [1.0]), rtol=1e-9)
    assert np.isfinite(family.predictives(1, 3)).all()
    with pytest.raises(ValueError, match="sum to at most 2"):
        GammaPoisson(np.full((3, 1), 2.0**52), [1.0], [1.0])


def test_many_rows():
    """A hundred thousand rows in a block: the predictive keeps its digits."""
    n = 100_000
    rng = np.random.default_rng(2)
    codes, counts = rng.integers(3, size=(n, 2)).astype(float), rng.poisson(4.0, size=(n, 2))
    g = [np.array([0.2, 0.3, 0.5]), np.array([1.0, 1.0, 1.0, 1.0])]
    categorical = DirichletCategorical(codes, g)
    poisson = GammaPoisson(counts, [1.0, 2.0], [0.5, 0.1])
    for family in (categorical, poisson):
        family.build(0, range(1, n))
    p = [
        (g[j][int(codes[0, j])] + np.sum(codes[1:, j] == codes[0, j])) / (g[j].sum() + n - 1)
        for j in range(2)
    ]
    assert_allclose(categorical.predictive(0, 0), np.log(p).sum(), rtol=1e-14)
    assert_allclose(categorical.marginal(0), log_m_categorical(codes[1:], g), rtol=1e-12)
    mean = (np.array([1.0, 2.0]) + counts[1:].sum(axis=0)) / (np.array([0.5, 0.1]) + n - 1)
    # So narrow a posterior is nearly the Poisson distribution at its mean.
    assert_allclose(
        poisson.predictive(0, 0), stats.poisson(mean).logpmf(counts[0]).sum(), rtol=1e-4
    )
    before = poisson.marginal(0)
    own = poisson.own_predictive(0, 5)
    poisson.remove_row(0, 5)
    assert_allclose(poisson.predictive(0, 5), own, rtol=1e-13)
    poisson.add_row(0, 5)
    assert poisson.marginal(0) == before


def test_levels():
    """Columns of one level say nothing; levels that no row has keep their prior weight."""
    X = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, np.nan], [0.0, 2.0]])
    family = DirichletCategorical(X, [[0.3], [1e-3, 1.0, 0.5, 2.0]])
    family.build(0, [0, 1])
    family.build(1, [2])
    assert_allclose(family.marginal(1), 0.0, atol=1e-15)
    assert_allclose(family.predictive(0, 3), np.log(0.5 / 5.501), rtol=1e-14)
    assert_allclose(family.predictives(2, 2), 0.0, atol=1e-15)
    assert_allclose(
        family.impute(0, 2, np.random.default_rng(0).bit_generator),
        np.array([1e-3, 3.0, 0.5, 2.0]) / 5.501,
    )
    assert family.blocks(2)["level_count"].tolist() == [[2, 0, 2, 0, 0], [1, 0, 0, 0, 0]]


def test_many_levels_of_small_weight():
    """Products of a thousand small probabilities do not underflow."""
    d = 1000
    X = np.random.default_rng(3).integers(50, size=(6, d)).astype(float)
    g = [np.full(50, 1e-6)] * d
    family = DirichletCategorical(X, g)
    family.build(0, range(5))
    expected = log_m_categorical(X[:5], g) - log_m_categorical(X[1:5], g)
    assert_allclose(family.own_predictive(0, 0), expected, rtol=1e-10)
    assert expected < -5000


def test_no_prior_scale():
    for kind in ("categorical", "poisson", "counts"):
        family = setting(kind, 2).family
        assert not family.scaled
        assert not family.rescale(0, 0.5)
        assert family.scale == 1.0


@pytest.mark.parametrize("code", [3.0, -1.0, 0.5, np.inf])
def test_codes_that_are_no_levels(code):
    X = np.array([[0.0, 1.0], [1.0, code]])
    with pytest.raises(ValueError, match=r"codes 0..2 or NaN in column 1, got .* in row 1"):
        DirichletCategorical(X, [[1.0, 1.0], [1.0, 1.0, 1.0]])


@pytest.mark.parametrize("count", [-1.0, 0.5, np.inf])
def test_cells_that_are_no_counts(count):
    with pytest.raises(ValueError, match=r"counts 0, 1, 2, .* in row 0, column 1"):
        GammaPoisson(np.array([[0.0, count]]), [1.0, 1.0], [1.0, 1.0])


@pytest.mark.parametrize(
    "pseudo_counts", [[[1.0]], [[1.0], []], [[1.0], [0.0, 1.0]], [[1.0], [np.nan]]]
)
def test_bad_pseudo_counts(pseudo_counts):
    with pytest.raises(ValueError, match="pseudo_counts must"):
        DirichletCategorical(np.zeros((2, 2)), pseudo_counts)


@pytest.mark.parametrize("values", [[1.0], [1.0, 0.0], [1.0, np.nan], [1.0, np.inf]])
def test_bad_shape_and_rate(values):
    with pytest.raises(ValueError, match="shape must"):
        GammaPoisson(np.zeros((2, 2)), values, [1.0, 1.0])
    with pytest.raises(ValueError, match="rate must"):
        GammaPoisson(np.zeros((2, 2)), [1.0, 1.0], values)
