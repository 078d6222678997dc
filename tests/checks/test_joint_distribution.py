"""The harness itself: it accepts a correct Gibbs sampler and rejects each of two wrong ones."""

import numpy as np
import pytest

from checks.joint_distribution import (
    assert_z_scores_small,
    paired_one_step,
    successive_conditional,
)

SHAPE, RATE = 6.0, 6.0  # of the precision: six degrees of freedom keep second moments finite
N = 5


class GaussianSampler:
    """x_i ~ N(mean, 1 / precision), mean ~ N(0, 1), precision ~ Gamma(SHAPE, RATE)."""

    def __init__(self, rng, fault=None):
        self.rng, self.fault = rng, fault
        self.mean = rng.normal()
        self.precision = rng.gamma(SHAPE, 1.0 / RATE)
        self.simulate_data()

    def simulate_data(self):
        self.x = self.rng.normal(self.mean, self.precision**-0.5, N)

    def sweep(self):
        precision = 1.0 + N * self.precision
        spread = 1.0 / precision if self.fault == "variance as deviation" else precision**-0.5
        self.mean = self.rng.normal(self.precision * self.x.sum() / precision, spread)
        shape = SHAPE + (N if self.fault == "n for n / 2" else N / 2)
        rate = RATE + ((self.x - self.mean) ** 2).sum() / 2
        self.precision = self.rng.gamma(shape, 1.0 / rate)


def statistics(sampler):
    return {
        "mean": sampler.mean,
        "mean squared": sampler.mean**2,
        "precision": sampler.precision,
        "precision squared": sampler.precision**2,
        "mean x data mean": sampler.mean * sampler.x.mean(),
    }


TESTS = {"paired": (paired_one_step, 2000), "successive": (successive_conditional, 4000)}


@pytest.mark.parametrize("name", TESTS)
def test_correct_sampler_passes(name):
    # Five z-scores, limit 4: a false alarm once in 3000 seeds.
    run, n = TESTS[name]
    assert_z_scores_small(run(GaussianSampler, statistics, n))


@pytest.mark.parametrize("fault", ["variance as deviation", "n for n / 2"])
@pytest.mark.parametrize("name", TESTS)
def test_wrong_sampler_fails(name, fault):
    run, n = TESTS[name]
    z = run(lambda rng: GaussianSampler(rng, fault), statistics, n)
    assert max(abs(value) for value in z.values()) > 6
    with pytest.raises(AssertionError, match="z"):
        assert_z_scores_small(z)


def test_the_paired_form_sees_a_spread_that_the_mean_hides():
    z = paired_one_step(lambda rng: GaussianSampler(rng, "variance as deviation"), statistics, 2000)
    assert abs(z["mean"]) < 4 < abs(z["mean squared"])


def test_an_idle_sweep_is_an_error():
    class Idle(GaussianSampler):
        def sweep(self):
            pass

    with pytest.raises(ValueError, match="'mean' did not change"):
        paired_one_step(Idle, statistics, 10)


def test_nan_is_not_small():
    with pytest.raises(AssertionError):
        assert_z_scores_small({"mean": np.nan})
