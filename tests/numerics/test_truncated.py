"""Draws above a bound by Kolmogorov-Smirnov; null: the law, false alarm 1e-4 each."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import gamma, kstest, norm

from checks.mutants import compiled
from skbnp.laws import Gamma
from skbnp.numerics.law_above import log_density_above, sample_above, share_above

faces = compiled("numerics", "faces")


@pytest.mark.parametrize("bound", [-2.0, 0.0, 0.6, 8.0])
def test_normal_above(bound):
    x = faces.sample_normal_above(np.random.Philox(1), bound, 4000)
    assert x.min() > bound
    assert kstest(norm.sf(x) / norm.sf(bound), "uniform").pvalue > 1e-4


@pytest.mark.parametrize(
    "law",
    [(3.0, 2.0, 0.1), (3.0, 2.0, 4.0), (1.0, 5.0, 2.0)],
)
def test_gamma_above(law):
    shape, rate, low = law
    x = faces.sample_gamma_above(np.random.Philox(2), shape, rate, low, 4000)
    assert x.min() > low
    tail = gamma(shape, scale=1 / rate).sf
    assert kstest(tail(x) / tail(low), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("law", [Gamma(3.0, 2.0), Gamma(0.3, 2.0)])
def test_the_same_in_plain_numpy(law):
    low = 0.4
    x = sample_above(law, low, 4000, np.random.default_rng(3))
    tail = gamma(law.shape, scale=1 / law.rate).sf
    assert x.min() >= low
    assert kstest(tail(x) / tail(low), "uniform").pvalue > 1e-4
    assert_allclose(share_above(law, low), tail(low))
    total, _ = quad(lambda at: np.exp(log_density_above(at, law, low)), low, np.inf)
    assert_allclose(total, 1.0, rtol=1e-7)
