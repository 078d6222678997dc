"""Updates of the parameters of the Chinese restaurant family against quadrature and grids."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from checks.monte_carlo import p_value, z_score
from checks.mutants import compiled
from checks.proofs import proof
from skbnp.processes import crp


def posterior_moments(sizes, prior, discount=0.0, n_components=None):
    """Mean and variance of the concentration by quadrature over its logarithm."""
    shape, rate = prior
    x = np.linspace(-25.0, 8.0, 6601)
    theta = np.exp(x)
    log_density = (
        shape * x
        - rate * theta
        + np.array([crp.log_prob_sizes(sizes, a, discount, n_components) for a in theta])
    )
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    mean = weight @ theta
    return mean, weight @ (theta - mean) ** 2


def concentration_chain(sizes, prior, n_updates, seed, discount=0.0, n_components=None):
    most = n_components or 0
    return compiled("processes", "faces").restaurant_concentrations(
        np.array(sizes), 1.0, discount, most, prior, seed, n_updates
    )


def worst_z(chain, mean, variance):
    return max(abs(z_score(chain, mean)), abs(z_score((chain - mean) ** 2, variance)))


DP_SIZES = [20, 11, 8, 5, 3, 3]  # 50 items, 6 blocks


@proof(updates=(100_000, 500_000), seed=14)
def test_concentration_of_the_dirichlet_process(size, seed):
    mean, variance = posterior_moments(DP_SIZES, (2.0, 4.0))
    assert mean == pytest.approx(0.93616, abs=5e-6)
    assert variance == pytest.approx(0.13668, abs=5e-6)
    assert worst_z(concentration_chain(DP_SIZES, (2.0, 4.0), size, seed), mean, variance) < 4


@proof(seed=14, wrong=True)
def test_swapped_beta_shapes_are_noticed(seed):
    mean, variance = posterior_moments(DP_SIZES, (2.0, 4.0))
    wrong = compiled("processes").swapped_beta_chain
    chain = wrong(DP_SIZES, 1.0, (2.0, 4.0), seed, 2000)
    assert worst_z(chain, mean, variance) > 20


@proof(updates=(40_000, 200_000), seed=14)
@pytest.mark.parametrize(
    "sizes, expected", [([46, 1, 1, 1, 1], 0.899), ([10, 10, 10, 10, 10], 1.246)]
)
def test_concentration_of_the_finite_member_depends_on_the_sizes(sizes, expected, size, seed):
    mean, variance = posterior_moments(sizes, (2.0, 4.0), n_components=5)
    assert mean == pytest.approx(expected, abs=1e-3)
    chain = concentration_chain(sizes, (2.0, 4.0), size, seed, n_components=5)
    assert worst_z(chain, mean, variance) < 4


@proof(seed=14, wrong=True)
@pytest.mark.parametrize("sizes", [[46, 1, 1, 1, 1], [10, 10, 10, 10, 10]])
def test_the_update_of_another_process_is_noticed(sizes, seed):
    mean, variance = posterior_moments(sizes, (2.0, 4.0), n_components=5)
    wrong = concentration_chain(sizes, (2.0, 4.0), 4000, seed)  # the Dirichlet process'
    assert wrong.mean() == pytest.approx(0.793, abs=0.02)
    assert worst_z(wrong, mean, variance) > 10


@proof(updates=(20_000, 100_000), seed=14)
@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.3, 0.1), (5.0, 0.01)])
@pytest.mark.parametrize(
    "sizes, kwargs",
    [
        ([5, 1, 1], {"discount": 0.3}),
        ([30, 2], {"discount": 0.9}),
        ([7], {"n_components": 4}),
        ([3, 2, 2], {"n_components": 3}),
        ([2, 1], {}),
        ([9], {}),
    ],
)
def test_concentration_of_every_member_against_quadrature(sizes, kwargs, prior, size, seed):
    mean, variance = posterior_moments(sizes, prior, **kwargs)
    chain = concentration_chain(sizes, prior, size, seed, **kwargs)
    assert worst_z(chain, mean, variance) < 4


@proof(updates=(20_000, 100_000), seed=15)
def test_concentration_and_discount_of_pitman_yor_together(size, seed):
    """Alternating updates reach the joint posterior, known from a fine grid."""
    sizes = [20, 11, 8, 5, 3, 1, 1, 1]
    rng = np.random.default_rng(seed)
    chain = np.empty((size, 2))
    concentration, discount = 1.0, 0.3
    for t in range(len(chain)):
        concentration = crp.sample_concentration(
            sizes, concentration, discount, concentration_prior=(2.0, 1.0), random_state=rng
        )
        discount = crp.sample_discount(
            sizes, concentration, discount, discount_prior=(1.5, 3.0), random_state=rng
        )
        chain[t] = concentration, discount
    mean, covariance = pitman_yor_grid(sizes, (2.0, 1.0), (1.5, 3.0))
    assert mean == pytest.approx([1.6514, 0.2068], abs=2e-4)
    assert np.sqrt(np.diag(covariance)) == pytest.approx([0.867, 0.124], abs=6e-4)
    assert covariance[0, 1] == pytest.approx(-0.0398, abs=1e-4)
    centred = chain - mean
    for a, b in ((0, 0), (1, 1), (0, 1)):
        assert abs(z_score(centred[:, a], 0.0)) < 4
        assert abs(z_score(centred[:, a] * centred[:, b], covariance[a, b])) < 4


def pitman_yor_grid(sizes, concentration_prior, discount_prior):
    """Posterior mean and covariance of (concentration, discount), midpoint rule."""
    theta = np.exp(np.linspace(-9.0, 4.0, 261))
    d = (np.arange(200) + 0.5) / 200
    log_density = np.array(
        [[crp.log_prob_sizes(sizes, one, other) for other in d] for one in theta]
    )
    shape, rate = concentration_prior
    a, b = discount_prior
    log_density += (shape * np.log(theta) - rate * theta)[:, np.newaxis]
    log_density += (a - 1) * np.log(d) + (b - 1) * np.log1p(-d)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    points = np.stack(np.broadcast_arrays(theta[:, np.newaxis], d), axis=-1).reshape(-1, 2)
    return weight.ravel() @ points, np.cov(points.T, aweights=weight.ravel(), ddof=0)


@proof(updates=(10_000, 50_000), seed=16)
@pytest.mark.parametrize("concentration", [-0.3, 0.0, 2.0])
@pytest.mark.parametrize("sizes", [[1], [6, 2, 1], [40]])
def test_discount_against_quadrature(sizes, concentration, size, seed):
    a, b = 2.0, 3.0
    low = max(0.0, -concentration)

    def density(d):
        return (
            math.exp(crp.log_prob_sizes(sizes, concentration, d))
            * d ** (a - 1)
            * (1 - d) ** (b - 1)
        )

    total, first, second = (
        integrate.quad(lambda d, power=power: d**power * density(d), low, 1.0, epsabs=0.0)[0]
        for power in range(3)
    )
    rng = np.random.default_rng(seed)
    discount, chain = 0.5, np.empty(size)
    for t in range(len(chain)):
        discount = crp.sample_discount(sizes, concentration, discount, (a, b), rng)
        chain[t] = discount
    assert abs(z_score(chain, first / total)) < 4
    assert abs(z_score(chain**2, second / total)) < 4


@proof(updates=5000, seed=14)
@pytest.mark.parametrize("kwargs", [{}, {"discount": 0.4}, {"n_components": 3}])
def test_a_single_item_says_nothing_about_the_concentration(kwargs, size, seed):
    chain = concentration_chain([1], (2.0, 4.0), size, seed, **kwargs)
    assert p_value(stats.kstest(chain, stats.gamma(2.0, scale=0.25).cdf)) > 1e-4


def test_updates_stay_finite_at_the_ends():
    for kwargs in ({}, {"discount": 0.5}, {"n_components": 4}):
        for prior in ((1e-3, 1e-3), (1e3, 1e-3)):
            for sizes in ([2], [1, 1], [10**6], [10**6, 1]):
                chain = concentration_chain(sizes, prior, 50, 14, **kwargs)
                assert np.isfinite(chain).all()
                assert (chain > 0.0).all()
