"""What sections say of the table and of its missing cells."""

from dataclasses import replace

import numpy as np
import pytest

from checks.report_sections import said, training
from skbnp.reports import cells, table


def test_cells_relative_to_their_columns():
    X = np.array([[0.0, 1.0], [2.0, np.nan], [4.0, 3.0], [np.nan, np.nan]])
    std = np.where(np.isnan(X), [[0.1, 0.99]], 0.0)
    found = cells.section(training(X), np.where(np.isnan(X), 2.0, X), std)
    assert [one["missing"] for one in found.table] == [2, 1]
    assert found.table[0]["relative to column"] == pytest.approx(0.99)
    assert "Well known from the other columns: column 0." in said(found)
    assert "Hardly better than the mean of the column: column 1." in said(found)
    assert cells.section(training(X[:1]), None, None) is None
    # Beside a long tail nothing is much: the middle half is what counts.
    long = np.append(np.random.default_rng(0).normal(size=40), [200.0, np.nan])[:, np.newaxis]
    found = cells.section(training(long), np.nan_to_num(long), np.where(np.isnan(long), 0.8, 0.0))
    middle = np.subtract(*np.quantile(long[:-1], [0.75, 0.25])) / 1.349
    assert found.table[0]["relative to column"] == pytest.approx(0.8 / middle)
    assert "Well known" not in said(found)
    unfilled = cells.section(training(X), None, None)
    assert "call impute(X)" in said(unfilled) and unfilled.table[0] == {
        "column": "column 1", "missing": 2,
    }  # fmt: skip


def test_names_that_are_filled_no_surer_than_by_the_usual_one():
    """Of two thirds m: a probability of .68 says little more, .72 does; of yes or no the same."""
    m, f, yes = 0.0, 1.0, 1.0
    X = np.column_stack(
        [np.tile([m, m, f], 20), np.tile([m, m, f], 20), np.tile([yes, yes, 0], 20)]
    )
    X[:6, :] = np.nan
    levels = [np.array(["m", "f"]), np.array(["m", "f"]), None]
    table = training(X, levels=levels, families=["categorical", "categorical", "bernoulli"])
    p = np.array([0.68, 0.72, 0.67])
    std = np.where(np.isnan(X), np.sqrt(p * (1 - p)), 0.0)
    filled = np.where(np.isnan(X), [m, m, 0.67], X)
    assert "most frequent value: column 0 and column 2." in said(cells.section(table, filled, std))
    sure = cells.section(table, filled, np.where(np.isnan(X), 0.3, 0.0))
    assert "most frequent value" not in said(sure)


def test_skewed_measurements_may_hold_zeros_and_be_inputs():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(2 * rng.normal(size=90)), rng.normal(size=90)])
    found = table.section(training(X))
    assert "Skewed, with a long tail of large values: column 0. The model" in said(found)
    (step,) = found.steps
    assert step.startswith("Take the logarithm of column 0 before") and "a tail, if" in step
    X[:9, 0] = 0.0
    found = table.section(replace(training(X), is_described=False))
    assert said(found).endswith("large values: column 0.")
    (step,) = found.steps
    assert "column 0, of 1 + x where x may be 0, before you fit again" in step
    assert step.endswith("more even.")
    X[0, 0] = -1.0
    assert table.section(training(X)).steps == ()


def test_data_of_a_table():
    X = np.array([[1.0, 0.0], [np.nan, 1.0]])
    one = training(X, families=["poisson", "bernoulli"], constant=[1], advice=["X is odd"])
    found = table.section(one)
    assert "Taken for counts: column 0." in said(found) and "yes or no (0 or 1): column 1" in said(
        found
    )
    assert "follows from them: column 1" in said(found) and "X is odd." in said(found)
    assert found.table[0] == {
        "column": "column 0", "taken for": "counts", "missing": 1, "share missing": 0.5,
    }  # fmt: skip
