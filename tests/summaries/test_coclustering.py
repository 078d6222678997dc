"""How often rows are clustered together, of all rows and of chosen ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.partitions import noisy_draws
from skbnp.summaries import partitions
from skbnp.summaries.partitions import coclustering


def test_coclustering_is_its_definition():
    rng = np.random.default_rng(0)
    labels = noisy_draws(0, n=30)
    weights = rng.random(len(labels))
    same = labels[:, :, None] == labels[:, None, :]
    assert_allclose(coclustering(labels), same.mean(axis=0))
    assert_allclose(coclustering(labels, weights=weights), np.average(same, 0, weights))
    rows = rng.permutation(30)[:7]
    assert_allclose(coclustering(labels, rows), same.mean(axis=0)[np.ix_(rows, rows)])


def test_coclustering_of_chosen_rows_with_chosen_columns():
    rng = np.random.default_rng(1)
    labels, weights = noisy_draws(0, n=30), rng.random(40)
    same = np.average(labels[:, :, None] == labels[:, None, :], 0, weights)
    rows, columns = rng.permutation(30)[:4], rng.permutation(30)[:9]
    mask = labels[0] == 1
    for r, c in [(rows, columns), ([-1, 3, 3], [5]), (rows, mask), (mask, columns)]:
        expected = same[r][:, c]
        assert_allclose(coclustering(labels, r, c, weights=weights), expected)
        assert_allclose(coclustering(list(labels), r, c, weights=weights), expected)
    assert_allclose(coclustering(labels, rows, "all", weights=weights), same[rows])
    assert_allclose(coclustering(labels, columns="all", weights=weights), same)
    assert_allclose(coclustering(labels, mask, weights=weights), same[mask][:, mask])


def test_coclustering_in_groups_of_draws(monkeypatch):
    labels = noisy_draws(0, n=30)
    here = coclustering(labels), coclustering(labels, [1, 2], "all")
    monkeypatch.setattr(partitions, "MAX_COCLUSTERING_SCRATCH", 100)
    there = coclustering(labels), coclustering(labels, [1, 2], "all")
    for before, after in zip(here, there, strict=True):
        assert_array_equal(before, after)


def test_coclustering_never_exceeds_one():
    labels = np.zeros((7, 3), dtype=int)
    weights = np.random.default_rng(0).random(7)
    for columns in (None, "all"):
        table = coclustering(labels, columns=columns, weights=weights)
        assert table.max() <= 1.0
        assert_allclose(table, 1.0)


def test_coclustering_refuses_large_matrices():
    labels = np.zeros((2, 20_001), dtype=np.int32)
    with pytest.raises(ValueError, match=r"stops at 400,000,000 cells, got 20,001 rows x 20,001"):
        coclustering(labels)
    assert_array_equal(coclustering(labels, rows=[0, 20_000]), np.ones((2, 2)))
    labels = np.zeros((2, 300_000), dtype=np.uint8)
    labels[0, 1] = 1
    table = coclustering(labels, rows=[0, 1], columns="all")
    assert_array_equal(table[:, :3], [[1, 0.5, 1], [0.5, 1, 0.5]])
    assert table.shape == (2, 300_000) and table[0, 2:].min() == 1.0


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([0, 3], "rows must be between -3 and 2, got 0 to 3"),
        ([-4], "rows must be between -3 and 2"),
        ([], "rows must be positions of rows or a mask"),
        ([0.0], "rows must be positions of rows or a mask"),
        ([[0]], "rows must be positions of rows or a mask"),
        ([True, False], r"or a mask of shape \(3,\)"),
        ("every", "rows must be positions"),
    ],
)
def test_bad_rows_are_named(index, message):
    with pytest.raises(ValueError, match=message):
        coclustering([[0, 0, 1]], index)
    with pytest.raises(ValueError, match=message.replace("rows", "columns", 1)):
        coclustering([[0, 0, 1]], [0], index)
