"""The cascading Indian buffet process against enumeration, quadrature and published figures."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln

from checks.monte_carlo import z_score
from skbnp.processes import cibp


def dishes_per_mass(n, concentration):
    return np.sum(concentration / (concentration + np.arange(n)))


# -- updates of mass and concentration --------------------------------------------------------


def moments(log_density, low, high):
    """Mean and variance of a density on (low, high), by quadrature."""
    top = max(log_density(x) for x in np.linspace(low, high, 2001)[1:-1])

    def integral(f):
        def weighted(x):
            return f(x) * np.exp(log_density(x) - top)

        return quad(weighted, low, high, epsabs=0, epsrel=1e-9, limit=500)[0]

    norm = integral(lambda x: 1.0)
    mean = integral(lambda x: x) / norm
    return mean, integral(lambda x: (x - mean) ** 2) / norm


def assert_moments(chain, mean, variance):
    """False-alarm rate 1.3e-4."""
    assert abs(z_score(chain, mean)) < 4
    assert abs(z_score((chain - mean) ** 2, variance)) < 4


@pytest.mark.parametrize(
    "n_dishes, n_customers, concentration, bounds",
    [
        (3, 5, 1.3, (0.0, 20.0)),
        (0, 4, 0.5, (0.0, 2.0)),
        (40, 64, 2.0, (0.5, 3.0)),
        (0, 0, 1.0, (0.0, 2.0)),
    ],
)
def test_mass_against_quadrature(n_dishes, n_customers, concentration, bounds):
    chain = cibp._mass_chain(n_dishes, n_customers, concentration, bounds, 0, 40_000)
    rate = dishes_per_mass(n_customers, concentration)
    assert bounds[0] < chain.min() <= chain.max() < bounds[1]
    assert_moments(chain, *moments(lambda x: n_dishes * np.log(x) - rate * x, *bounds))


@pytest.mark.parametrize(
    "n_takers, n_customers, n_offered, mass, bounds",
    [
        ([1, 4, 2], 5, 5, 0.8, (0.0, 20.0)),
        ([2, 6, 1], 3, 9, 0.8, (0.0, 2.0)),
        ([5, 5], 5, 5, 1.0, (0.0, 2.0)),
        ([1] * 30, 64, 64, 2.0, (0.5, 20.0)),
        ([], 4, 4, 1.5, (0.0, 3.0)),
    ],
)
def test_concentration_against_quadrature(n_takers, n_customers, n_offered, mass, bounds):
    n_takers = np.array(n_takers, dtype=np.intp)
    chain = cibp._concentration_chain(n_takers, n_customers, n_offered, mass, bounds, 0, 40_000)

    def log_density(c):
        dishes = betaln(n_takers, n_offered - n_takers + c).sum()
        return n_takers.size * np.log(c) - mass * dishes_per_mass(n_customers, c) + dishes

    assert bounds[0] < chain.min() <= chain.max() < bounds[1]
    assert_moments(chain, *moments(log_density, *bounds))
