"""How often rows are clustered together, of all rows and of chosen ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.partitions import noisy_draws
from skbnp.summaries import _coclustering
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


@pytest.mark.parametrize("scratch", [1, 100, _coclustering.MAX_SCRATCH])
def test_pairs_of_clusters_by_the_shares_of_blocks(monkeypatch, scratch):
    """The mean over draws of sum_k T(b, k) T(c, k), and one for a row with itself."""
    monkeypatch.setattr(_coclustering, "MAX_SCRATCH", scratch)
    rng = np.random.default_rng(2)
    labels, weights = noisy_draws(0, n=30), rng.random(40)
    tables = [rng.dirichlet(np.ones(3), size=draw.max() + 1 + rng.integers(3)) for draw in labels]
    of_row = np.array([table[draw] for table, draw in zip(tables, labels, strict=True)])
    same = np.average(of_row @ of_row.transpose(0, 2, 1), 0, weights)
    np.fill_diagonal(same, 1.0)
    found = coclustering(labels, weights=weights, tables=tables)
    assert_allclose(found, same, rtol=1e-12)
    assert_array_equal(found, found.T)
    for r, c in [([4, 9], [7, -1, 9, 4]), ([3, 3], [3]), (labels[0] == 1, np.arange(30))]:
        part = coclustering(labels, r, c, weights=weights, tables=tables)
        assert_array_equal(part, found[r][:, c])
    assert_array_equal(coclustering(labels, [5, 2, 5], weights=weights, tables=tables),
                       found[np.ix_([5, 2, 5], [5, 2, 5])])  # fmt: skip


def test_blocks_that_are_clusters_are_shares_of_one():
    labels = noisy_draws(0, n=30)
    assert_allclose(
        coclustering(labels, tables=[np.eye(draw.max() + 1, 30) for draw in labels]),
        coclustering(labels),
        rtol=1e-12,
    )


def test_tables_that_are_not_those_of_the_draws_are_refused():
    labels = [[0, 0, 1], [0, 1, 2]]
    for tables in ([np.eye(2)], [np.eye(2), np.eye(3)], [np.ones(3), np.ones(3)]):
        with pytest.raises(ValueError, match="tables must be 2 arrays of shape"):
            coclustering(labels, tables=tables)
    with pytest.raises(ValueError, match="0 to 1 in draw 1, whose table has 2 blocks, got 0 to 2"):
        coclustering(labels, tables=[np.eye(2), np.eye(2)])


def test_coclustering_in_groups_of_draws(monkeypatch):
    labels = noisy_draws(0, n=30)
    here = coclustering(labels), coclustering(labels, [1, 2], "all")
    monkeypatch.setattr(_coclustering, "MAX_SCRATCH", 100)
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
