"""Columns of rows are drawn with the probabilities that are given."""

import numpy as np
import pytest
from scipy import stats

from skbnp.numerics.columns_at_random import draw_columns


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_shares_are_the_probabilities(make):
    p, n = np.array([0.5, 0.0, 0.2, 0.3]), 20_000
    with np.errstate(divide="ignore"):
        log_p = np.tile(np.log(p) - 700.0, (n, 1))
    counts = np.bincount(draw_columns(log_p, make(0)), minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[p > 0], n * p[p > 0]).pvalue > 1e-3


def test_each_row_has_its_own():
    sure = np.full((5, 3), -np.inf)
    sure[np.arange(5), [2, 0, 1, 1, 2]] = 0.0
    assert draw_columns(sure, np.random.default_rng(0)).tolist() == [2, 0, 1, 1, 2]
