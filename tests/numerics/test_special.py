"""Special functions against SciPy."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from scipy.special import gammaincc, gammaln, logsumexp, multigammaln
from scipy.stats import gamma

from checks.mutants import compiled

special = compiled("numerics", "faces")


@pytest.mark.parametrize(
    "x",
    [
        [0.0],
        [-1.0, 2.0, 0.5],
        [-np.inf, 0.0, -np.inf],
        [1e308, 1e308],
        [-1e308, 700.0, 701.0],
        [-745.0] * 5,
        [np.inf, 0.0],
    ],
)
def test_log_sum_exp(x):
    x = np.array(x)
    assert special.evaluate_log_sum_exp(x) == pytest.approx(logsumexp(x), rel=1e-14)


def test_log_sum_exp_at_its_ends():
    assert special.evaluate_log_sum_exp(np.empty(0)) == -np.inf
    assert special.evaluate_log_sum_exp(np.full(3, -np.inf)) == -np.inf
    assert math.isnan(special.evaluate_log_sum_exp(np.array([0.0, np.nan, 1.0])))
    assert math.isnan(special.evaluate_log_sum_exp(np.array([np.inf, np.nan])))


def test_log1p_exp():
    x = np.concatenate([np.linspace(-800.0, 800.0, 4001), [17.999, 18.0, 18.001, 33.3, 33.301]])
    np.testing.assert_allclose(special.evaluate_log1p_exp(x), np.logaddexp(0.0, x), rtol=1e-14)
    ends = special.evaluate_log1p_exp(np.array([-np.inf, np.inf, np.nan]))
    np.testing.assert_array_equal(ends, [0.0, np.inf, np.nan])


@pytest.mark.parametrize(("shape", "rate"), [(1.0, 1.0), (0.3, 20.0), (50.0, 1e-3)])
def test_log_gamma_density(shape, rate):
    for x in (1e-8, 0.4, 3.0, 1e5):
        expected = gamma.logpdf(x, shape, scale=1 / rate)
        got = special.evaluate_log_gamma_density(x, shape, rate)
        assert got == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_log_multigamma(n):
    log_power_of_pi = 0.25 * n * (n - 1) * np.log(np.pi)
    for excess in (1e-3, 0.5, 3.0, 1e4):
        x = 0.5 * (n - 1) + excess
        expected = multigammaln(x, n)
        assert special.evaluate_log_multigamma(x, n) + log_power_of_pi == pytest.approx(
            expected, rel=1e-12, abs=1e-12
        )
        assert special.evaluate_log_multigamma_ratio(x, 2.5, n) == pytest.approx(
            multigammaln(x + 2.5, n) - expected, rel=1e-10
        )
    assert special.evaluate_log_multigamma(1.0, 0) == 0.0


@pytest.mark.parametrize("x", [1e-300, 1e-8, 0.3, 1.0, 7.5, 99.999, 100.0, 1e4, 1e9, 1e14, 1e17])
@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 400])
def test_log_rising_against_the_product(x, n):
    getcontext().prec = 60
    product = Decimal(1)
    for i in range(n):
        product *= Decimal(x) + i
    assert special.evaluate_log_rising(x, n) == pytest.approx(
        float(product.ln()), rel=3e-14, abs=1e-14
    )


@pytest.mark.parametrize("x", [1e-3, 2.5, 50.0])
def test_log_rising_at_a_million(x):
    assert special.evaluate_log_rising(x, 1e6) == pytest.approx(
        gammaln(x + 1e6) - gammaln(x), rel=1e-14
    )


@pytest.mark.parametrize("shape", [1e-6, 0.3, 1.0, 2.5, 40.0, 1e4])
@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e6])
def test_log_gamma_cdf(shape, rate):
    law = gamma(shape, scale=1 / rate)
    for x in np.array([0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 10.0]) * shape / rate:
        expected = law.logcdf(x)
        if expected == -np.inf:  # SciPy's share has underflowed
            continue
        assert special.evaluate_log_gamma_cdf(shape, rate, x) == pytest.approx(
            expected, rel=1e-9, abs=1e-13
        )


@pytest.mark.parametrize("shape", [5.0, 60.0, 1000.0])
@pytest.mark.parametrize("x", [1e-10, 1e-40, 1e-200])
def test_log_gamma_cdf_where_it_underflows(shape, x):
    """x^shape / Gamma(shape + 1), times a factor that is 1 to every digit."""
    expected = shape * math.log(x) - gammaln(shape + 1)
    assert special.evaluate_log_gamma_cdf(shape, 1.0, x) == pytest.approx(expected, rel=1e-9)
    assert special.evaluate_log_gamma_cdf(shape, x, 1.0) == pytest.approx(expected, rel=1e-9)


def test_log_gamma_cdf_near_one():
    assert special.evaluate_log_gamma_cdf(2.0, 1.0, 40.0) == pytest.approx(
        -gammaincc(2.0, 40.0), abs=1e-16
    )
    assert special.evaluate_log_gamma_cdf(2.0, 1.0, 1e300) == 0.0
