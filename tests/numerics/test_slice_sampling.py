"""Steps of slice sampling by Kolmogorov-Smirnov; null: the law, false alarm 1e-4 each."""

import math

import numpy as np
import pytest
from scipy.stats import gamma, kstest, norm, truncnorm

from checks.mutants import compiled

faces = compiled("numerics", "faces")

# One draw in so many is kept: they are as good as independent.
EVERY = 20


def draws(log_density, x, *, seed=1, low=-math.inf, high=math.inf, width=1.0, n_steps=32):
    found, _ = faces.slice_chain(
        log_density, x, np.random.Philox(seed), low=low, high=high, width=width, n_steps=n_steps,
        size=2000 * EVERY,
    )  # fmt: skip
    return found[::EVERY]


@pytest.mark.parametrize(("width", "n_steps"), [(1.0, 32), (0.3, 100), (0.5, 2), (3.0, 1)])
def test_stepping_out(width, n_steps):
    def log_density(x):
        return math.log(0.3 * math.exp(-0.5 * (x + 1) ** 2) + 0.7 * math.exp(-0.5 * (x - 1) ** 2))

    def cdf(x):
        return 0.3 * norm.cdf(x + 1) + 0.7 * norm.cdf(x - 1)

    x = draws(log_density, 0.0, width=width, n_steps=n_steps)
    assert kstest(x, cdf).pvalue > 1e-4


@pytest.mark.parametrize("width", [0.5, math.inf])
def test_bounds(width):
    x = draws(lambda x: -0.5 * x * x, 0.5, low=-0.5, high=1.5, width=width)
    assert -0.5 < x.min() and x.max() < 1.5
    assert kstest(x, truncnorm(-0.5, 1.5).cdf).pvalue > 1e-4


def test_all_of_an_interval():
    x = draws(lambda x: 2.0 * math.log(x) - 4.0 * x, 1.0, low=0.0, high=20.0, width=math.inf)
    assert kstest(x, gamma(3.0, scale=0.25).cdf).pvalue > 1e-4


def test_a_point_that_nothing_else_is_as_high_as_stays():
    def log_density(x):
        return 0.0 if x == 0.25 else -math.inf

    found, asked = faces.slice_chain(
        log_density, 0.25, np.random.Philox(1), low=0.0, high=1.0, width=math.inf, n_steps=0, size=5
    )
    assert (found == 0.25).all() and (asked > 40).all() and (asked <= 200).all()


def test_steps_out_are_bounded():
    """Of a flat density, of which any bracket is left at once."""
    found, asked = faces.slice_chain(
        lambda x: 0.0, 0.0, np.random.Philox(1), low=-math.inf, high=math.inf, width=1.0, n_steps=8,
        size=1000,
    )  # fmt: skip
    assert (asked == 8).all()
    step = np.abs(np.diff(found))
    assert 3.0 < step.max() <= 8.0
