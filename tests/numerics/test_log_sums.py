"""Sums of exponentials against plain NumPy, far out and of nothing."""

import numpy as np
import pytest
from scipy.special import logsumexp

from skbnp.numerics.log_sums import add_shares, log_totals


def test_totals_are_those_of_scipy():
    log_p = 1e3 * np.random.default_rng(0).normal(size=(50, 7))
    log_p[3, 2] = -np.inf
    np.testing.assert_allclose(log_totals(log_p), logsumexp(log_p, axis=1), rtol=1e-14)


def test_totals_of_nothing_and_of_infinity():
    log_p = np.array([[-np.inf, -np.inf], [0.0, np.inf], [-np.inf, -800.0]])
    np.testing.assert_array_equal(log_totals(log_p), [-np.inf, np.inf, -800.0])


def test_shares_of_many_draws_add_up():
    rng = np.random.default_rng(1)
    level, sums, plain = np.full(20, -np.inf), np.zeros((20, 3)), np.zeros((20, 3))
    for _ in range(10):
        log_p, table = rng.normal(size=(20, 5)) - 3, rng.uniform(size=(4, 3))
        add_shares(log_p, table, level, sums)
        plain += np.exp(log_p[:, :4]) @ table
    np.testing.assert_allclose(np.exp(level)[:, np.newaxis] * sums, plain, rtol=1e-12)


def test_far_out_no_share_is_lost():
    level, sums = np.full(2, -np.inf), np.zeros((2, 2))
    for shift in (-1e6, 0.0, -1e6):
        log_p = np.array([[shift - 1e5, shift - 1e5 - 1.0], [-np.inf, -np.inf]])
        add_shares(log_p, np.eye(2), level, sums)
    np.testing.assert_allclose(sums[0] / sums[0].sum(), [1 / (1 + np.exp(-1)), 1 / (1 + np.e)])
    assert level[0] == -1e5 and level[1] == -np.inf and (sums[1] == 0).all()


def test_shapes_that_do_not_fit_are_refused():
    level, sums = np.zeros(2), np.zeros((2, 3))
    with pytest.raises(ValueError, match="same blocks and columns"):
        add_shares(np.zeros((2, 1)), np.zeros((2, 3)), level, sums)
    with pytest.raises(ValueError, match="same rows"):
        add_shares(np.zeros((3, 2)), np.zeros((2, 3)), level, sums)
