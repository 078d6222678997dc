"""Keys of rows and patterns of missing entries."""

import numpy as np
from numpy.testing import assert_array_equal

from skbnp.numerics.rows import patterns, row_keys

NAN = np.nan


def test_keys_are_those_of_values():
    A = np.array([[0.0, NAN, 1.0], [-0.0, -NAN, 1.0], [NAN, 0.0, 1.0], [0.0, NAN, 1.0 + 1e-15]])
    keys = row_keys(A)
    assert keys[0] == keys[1] and len(set(keys)) == 3
    grid = np.stack(np.meshgrid(*[np.arange(60.0)] * 3), axis=-1).reshape(-1, 3)
    keys = row_keys(grid)
    assert len(np.unique(keys)) == len(grid)
    # Each bit is set in half of them: 216,000 fair coins, four standard errors.
    share = np.mean((keys[:, np.newaxis] >> np.arange(64, dtype=np.uint64)) & np.uint64(1), axis=0)
    assert np.abs(share - 0.5).max() < 4 * 0.5 / np.sqrt(len(grid))


def test_patterns_are_of_rows_that_lack_the_same():
    A = np.random.default_rng(0).normal(size=(200, 11))
    A[np.random.default_rng(1).random(A.shape) < 0.08] = NAN
    groups = patterns(A)
    assert_array_equal(np.sort(np.concatenate(groups)), np.arange(200))
    missing = np.isnan(A)
    for rows in groups:
        assert (missing[rows] == missing[rows[0]]).all()
    assert len(groups) == len(np.unique(missing, axis=0))
    assert patterns(A[:0]) == []
    assert_array_equal(patterns(np.ones((4, 2)))[0], np.arange(4))
