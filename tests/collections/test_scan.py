"""What one pass over all rows finds, against NumPy on the whole table."""

import numpy as np
import pytest

from skbnp.collections.scan import combined, summary_of, summary_of_cell
from skbnp.collections.tree import CELL
from skbnp.units import standard_units


def table(n_samples=2 * CELL + 77, scale=1.0):
    rng = np.random.default_rng(3)
    X = rng.normal(2.0, [0.1, 1.0, 30.0], (n_samples, 3)) * scale
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e250])
@pytest.mark.parametrize("common", [False, True])
def test_units_are_those_of_the_whole_table(scale, common):
    """For magnitudes too whose squares no float holds."""
    X = table(scale=scale)
    found = summary_of(X).standard_units(np.arange(3), common)
    known = standard_units(X, "common" if common else "each", keep_constant=True)
    np.testing.assert_allclose(found.center, known.center, rtol=1e-12)
    np.testing.assert_allclose(found.scale, known.scale, rtol=1e-12)
    np.testing.assert_array_equal(found.constant, known.constant)


def test_a_mean_far_from_zero_does_not_cost_the_variance():
    X = np.random.default_rng(0).normal(1e9, 1e-3, (3 * CELL, 1))
    found = summary_of(X).standard_units(np.arange(1))
    np.testing.assert_allclose(found.scale, np.std(X - X[0]), rtol=1e-6)


def test_only_real_columns_are_standardised():
    found = summary_of(table()).standard_units(np.array([1]))
    assert found.center[0] == found.center[2] == 0.0
    assert found.scale[0] == found.scale[2] == 1.0 != found.scale[1]


def test_constant_and_empty_columns_and_rows():
    X = table()
    X[:, 0] = 0.1  # its mean is off by rounding
    X[5] = X[CELL + 9] = np.nan
    found = summary_of(X)
    assert found.constant().tolist() == [0]
    assert found.n_empty >= 2 and {5, CELL + 9} <= set(found.empty.tolist())
    units = found.standard_units(np.arange(3))
    assert units.center[0] == 0.1 and units.scale[0] == 1.0
    X[:, 2] = np.nan
    assert np.flatnonzero(summary_of(X).count == 0).tolist() == [2]


def test_a_column_that_begins_with_empty_cells():
    X = table()
    X[:CELL, 1] = np.nan
    found = summary_of(X).standard_units(np.arange(3))
    np.testing.assert_allclose(found.scale, np.nanstd(X, axis=0), rtol=1e-12)


def test_ends_and_numbers_of_cells():
    X = table()
    found = summary_of(X)
    np.testing.assert_array_equal(found.low, np.nanmin(X, axis=0))
    np.testing.assert_array_equal(found.high, np.nanmax(X, axis=0))
    np.testing.assert_array_equal(found.count, (~np.isnan(X)).sum(axis=0))
    assert found.n_samples == len(X)


def test_one_row_of_each_cell():
    a, b = (summary_of_cell(X, (0, 1)) for X in (np.array([[1.0]]), np.array([[4.0]])))
    found = combined(a, b)
    assert found.mean == 2.5 and np.ldexp(found.square, 2 * found.exponent) == 4.5


def test_overflow_is_refused_by_name():
    X = np.array([[1.7e308]] * 9 + [[-1.7e308]])
    with pytest.raises(ValueError, match="X must have a mean and a spread.* in one"):
        summary_of(X).standard_units(np.arange(1), named=lambda columns: "one")
