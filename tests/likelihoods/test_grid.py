"""Proposals on a grid of a unit's own noise against quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from checks.joint_distribution import assert_z_scores_small
from checks.monte_carlo import z_score
from checks.mutants import compiled

FACE = compiled("nonlinear_gaussian", "faces")
# Mean, spread, and the likelihood exp(t u - s u^2 / 2) of u = tanh(a / 2).
LAWS = [(0.3, 1.5, 1.0, 2.0), (-1.0, 0.4, -3.0, 0.5), (0.0, 3.0, 20.0, 40.0)]


def weighed(mean, spread, t, s):
    """Points, and what each weighs in the law of a: the normal times the likelihood."""
    a = np.linspace(mean - 9 * spread, mean + 9 * spread, 20_001)
    u = np.tanh(a / 2)
    weight = stats.norm.pdf(a, mean, spread) * np.exp(t * u - 0.5 * s * u**2) * (a[1] - a[0])
    return a, weight


@pytest.mark.parametrize("law", LAWS)
def test_weights_make_up_for_the_grid(law):
    """Means of weights and of weighed functions, 20,000 proposals, |z| < 4."""
    a, log_weight, again = FACE.drawn_on_grid(np.random.PCG64(0), *law, 20_000)
    assert_allclose(again, log_weight, rtol=1e-9, atol=1e-9)
    points, exact = weighed(*law)
    weight = np.exp(log_weight)
    assert_z_scores_small(
        {
            "weight": z_score(weight, exact.sum()),
            "u": z_score(weight * np.tanh(a / 2), np.tanh(points / 2) @ exact),
            "beyond the mean": z_score(weight * (a > law[0]), exact[points > law[0]].sum()),
        }
    )


@pytest.mark.parametrize("law", LAWS)
def test_updates_leave_the_law_as_it_is(law):
    """20,000 exact draws are still such after three updates, |z| < 4."""
    mean, spread, t, s = law
    rng = np.random.default_rng(1)
    points, exact = weighed(*law)
    exact /= exact.sum()
    start = rng.choice(points, 20_000, p=exact)
    means, linear = np.full(20_000, mean), np.full(20_000, t)
    end, n_accepted = FACE.updated_on_grid(rng.bit_generator, start, means, spread, linear, s, 3)
    assert 0 < n_accepted <= 60_000 and np.mean(end != start) > 0.5
    u, exact_u = np.tanh(end / 2), np.tanh(points / 2)
    assert_z_scores_small(
        {
            "u": z_score(u, exact_u @ exact),
            "u^2": z_score(u**2, exact_u**2 @ exact),
            "tanh a": z_score(np.tanh(end - mean), np.tanh(points - mean) @ exact),
        }
    )
