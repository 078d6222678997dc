"""Profiles of clusters: means and shares beside those of all other rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbnp.summaries.profiles import profiles

LABELS = np.array([0, 0, 0, 1, 1, -1])


def test_means_by_hand():
    x = np.array([1.0, 2.0, np.nan, 5.0, 7.0, 9.0])
    found = profiles(x[:, np.newaxis], LABELS)
    assert_array_equal(found.column, [0])
    assert_array_equal(found.level, [-1])
    assert_allclose(found.inside, [[1.5], [6.0]])
    assert_allclose(found.outside, [[7.0], [4.0]])  # rows of no cluster are others too
    spread = np.nanstd(x)
    assert_allclose(found.spread, [spread])
    assert_allclose(found.difference, [[-5.5 / spread], [2.0 / spread]])
    assert_allclose(found.error, [[np.sqrt(1 / 2 + 1 / 3)], [np.sqrt(1 / 2 + 1 / 3)]])
    assert_allclose(found.spread_ratio[0, 0], 0.5 / np.std([5.0, 7.0, 9.0]))
    assert_array_equal(found.n_seen, [[2], [2]])


def test_levels_are_shares():
    codes = np.array([0.0, 0.0, 1.0, 1.0, np.nan, 2.0])
    found = profiles(codes[:, np.newaxis], LABELS, [3])
    assert_array_equal(found.level, [0, 1, 2])
    assert_allclose(found.inside, [[2 / 3, 1 / 3, 0.0], [0.0, 1.0, 0.0]])
    assert_allclose(found.outside, [[0.0, 0.5, 0.5], [0.5, 0.25, 0.25]])  # of two, of four cells
    assert_allclose(found.spread, np.sqrt([0.4 * 0.6, 0.4 * 0.6, 0.2 * 0.8]))
    assert np.isnan(found.spread_ratio).all()
    # A column of 0 and 1 says the same as the share of its level 1.
    binary = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])[:, np.newaxis]
    as_number, as_levels = profiles(binary, LABELS), profiles(binary, LABELS, [2])
    assert_allclose(as_number.difference[:, 0], as_levels.difference[:, 1])


def test_differences_have_no_units():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(50, 3)), rng.integers(3, size=50)
    scaled = profiles(X * [1e-200, 1.0, 1e200] + [0.0, 1e3, 0.0], labels)
    assert_allclose(scaled.difference, profiles(X, labels).difference, rtol=1e-9)


def test_differences_of_a_random_cluster_have_the_error_that_is_said():
    rng = np.random.default_rng(0)
    X, labels = rng.gamma(1.0, size=(200, 400)), np.repeat([0, 1], [20, 180])
    found = profiles(X, labels)
    z = found.difference[0] / found.error[0]
    assert abs(np.mean(z**2) - 1.0) < 4 * np.std(z**2) / np.sqrt(len(z))


def test_what_says_nothing():
    X = np.column_stack([np.full(6, 3.0), [np.nan, np.nan, np.nan, 1.0, 2.0, 3.0]])
    found = profiles(X, LABELS)
    assert_array_equal(found.difference[:, 0], 0.0)
    assert np.isnan(found.inside[0, 1]) and np.isnan(found.difference[0, 1])
    assert profiles(X, np.full(6, -1)).inside.shape == (0, 2)


def test_bad_input():
    with pytest.raises(ValueError, match="X must have shape"):
        profiles(np.zeros((4, 2)), np.zeros(3, dtype=int))
    with pytest.raises(ValueError, match="n_levels must have 2 entries, got 1"):
        profiles(np.zeros((4, 2)), np.zeros(4, dtype=int), [None])
