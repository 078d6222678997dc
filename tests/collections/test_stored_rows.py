"""Rows of any collection give the same answers to the last bit, and say what is wrong."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from checks.collections_rows import (
    broken,
    memory_map,
    prepared,
    sums_of_both,
    sums_of_cell,
    table,
)
from skbnp.collections.here import Here
from skbnp.collections.kinds import is_collection
from skbnp.collections.reading import Reading
from skbnp.collections.scan import combined, summary_of_cell
from skbnp.collections.service import StoredRows
from skbnp.collections.sources import grid_chunks, opened
from skbnp.collections.tree import CELL, leaves, total

X = table()


def expected(X, argument=2.0):
    cells = range(0, len(X), CELL)
    values = [
        sums_of_cell(
            X[start : start + CELL].astype(float), (start, min(start + CELL, len(X))), argument
        )
        for start in cells
    ]
    return total(leaves(values, 0), sums_of_both)


def ask(rows, argument=2.0):
    return rows.run(sums_of_cell, argument, sums_of_both)


def as_zarr(directory, chunks=(20_000, 2)):
    zarr = pytest.importorskip("zarr")
    found = zarr.create_array(directory / "rows.zarr", shape=X.shape, chunks=chunks, dtype=X.dtype)
    found[:] = X
    return found


def as_hdf5(directory):
    h5py = pytest.importorskip("h5py")
    return h5py.File(directory / "rows.h5", "w").create_dataset("X", data=X, chunks=(3000, 3))


WAYS = {
    "memory map": lambda directory: memory_map(X, directory),
    "zarr": as_zarr,
    "hdf5": as_hdf5,
    "on the grid": lambda _: da.from_array(X, chunks=(2 * CELL, 3)),
    "other edges": lambda _: da.from_array(X, chunks=(7000, 2)),
    "one block": lambda _: da.from_array(X, chunks=X.shape),
    "unknown lengths": lambda _: da.from_array(X, chunks=(9000, 3))[np.arange(len(X)) >= 0],
    "frame": lambda _: dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=3),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_threads", [1, 3])
def test_answers_are_the_same_to_the_last_bit(way, n_threads, tmp_path):
    stored = WAYS[way](tmp_path)
    assert is_collection(stored)
    reading = Reading(pd.DataFrame.to_numpy) if way == "frame" else Reading()
    rows = prepared(stored, n_threads, reading)
    assert (rows.n_samples, rows.n_features) == X.shape
    sums, cells = ask(rows)
    assert sums.tobytes() == expected(X)[0].tobytes()
    assert cells == expected(X)[1]
    chosen = np.sort(np.random.default_rng(1).choice(len(X), 500, replace=False))
    np.testing.assert_array_equal(np.asarray(rows.take(chosen)), X[chosen])


def test_tables_in_memory_are_no_collections():
    for one in (X, X.tolist()[:2], pd.DataFrame(X), scipy.sparse.csr_matrix(X[:5]), None):
        assert not is_collection(one)


@pytest.mark.parametrize("seed", range(5))
def test_edges_of_blocks_are_multiples_of_cells(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 3 * CELL, size=20)
    cut = grid_chunks(lengths, 5 * CELL)
    edges = np.cumsum(cut)
    assert edges[-1] == lengths.sum()
    assert (edges[:-1] % CELL == 0).all() and min(cut) > 0
    # Joined as far as allowed: no two neighbours would fit.
    assert all(a + b > 5 * CELL for a, b in zip(cut, cut[1:], strict=False))


@pytest.mark.parametrize("last", [5, CELL, CELL + 5, 2 * CELL - 5])
def test_blocks_on_the_grid_are_left_as_they_are(last):
    # The last block too, wherever it ends: otherwise Dask would cut it.
    lengths = (2 * CELL, 2 * CELL, last)
    assert grid_chunks(lengths, 0) == lengths


@pytest.mark.parametrize("n_blocks, n_tasks", [(32, 32), (40, 4), (64, 4)])
def test_only_many_blocks_are_joined(n_blocks, n_tasks):
    stored = da.zeros((n_blocks * CELL, 1), chunks=(CELL, 1))
    source = opened(stored, Here(1))
    assert len(source.blocks) == n_tasks and source.lengths == (CELL,) * n_blocks


@pytest.mark.parametrize("lengths", [(0, 3, 0, 1, 1, 0), (1,) * 7, (5, 0)])
def test_blocks_of_few_rows_or_none(lengths):
    blocks = [da.from_array(X[:n], chunks=(max(n, 1), 3)) for n in lengths]
    known = da.concatenate(blocks)
    unknown = da.concatenate([block[block[:, 0] > -np.inf] for block in blocks])
    whole = np.concatenate([X[:n] for n in lengths])
    for stored, seen in ((known, whole), (unknown, whole[whole[:, 0] > -np.inf])):
        rows = prepared(stored)
        assert ask(rows)[0].tobytes() == expected(seen)[0].tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "int64", "uint16", "?"])
def test_numbers_of_any_dtype(dtype):
    stored = np.abs(np.nan_to_num(X[:100])).astype(dtype)
    rows = prepared(da.from_array(stored, chunks=(30, 3)))
    assert ask(rows)[0].tobytes() == expected(stored)[0].tobytes()


def test_rows_are_handed_out_in_the_units_of_the_model():
    rows = prepared(da.from_array(X, chunks=(9000, 3)))
    found = rows.run(summary_of_cell, None, combined)
    rows.use_units(found.standard_units(np.arange(3)))
    after = rows.run(summary_of_cell, None, combined)
    np.testing.assert_allclose(after.mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(np.sqrt(after.square / after.count) * 2.0**after.exponent, 1.0)


# -- what is wrong


def blocks_of(*blocks):
    return da.concatenate([da.from_array(block, chunks=block.shape) for block in blocks])


@pytest.mark.parametrize(
    ("stored", "error", "words"),
    [
        (da.ones(5, chunks=5), ValueError, "2 dimensions, got 1"),
        (da.ones((0, 2)), ValueError, "at least one row"),
        (da.ones((2, 0)), ValueError, "at least one feature"),
        (da.from_array(np.full((4, 2), "a"), chunks=2), TypeError, "dtype <U1"),
        (da.from_array(np.full((4, 2), None), chunks=2), TypeError, "dtype object"),
        (da.ones((4, 2), dtype=complex), TypeError, "dtype complex128"),
    ],
)
def test_tables_that_are_refused_at_once(stored, error, words):
    with pytest.raises(error, match=f"X must .*{words}"):
        StoredRows(stored)


def test_sparse_blocks_are_refused():
    known = da.ones((6, 2), chunks=(3, 2)).map_blocks(
        scipy.sparse.csr_matrix, meta=scipy.sparse.csr_matrix((0, 2))
    )
    with pytest.raises(TypeError, match="X must have dense blocks, NumPy arrays, got csr_matrix"):
        StoredRows(known)
    unknown = da.ones((6, 2), chunks=(3, 2)).map_blocks(
        scipy.sparse.csr_array, meta=np.empty((0, 2))
    )
    with pytest.raises((TypeError, ValueError, RuntimeError), match="X"):
        ask(prepared(unknown))


def test_an_error_of_a_block_names_it_once():
    def fail(block, block_info=None):
        if block_info[None]["chunk-location"][0] == 1:
            raise OSError("the disk is gone")
        return block

    stored = da.ones((3 * CELL, 2), chunks=(CELL, 2)).map_blocks(fail, dtype=float)
    with pytest.raises(RuntimeError, match=r"block 1 of X \(rows 16384 to 32767\)") as caught:
        ask(prepared(stored))
    assert str(caught.value).count("the disk is gone") == 1


def test_a_bad_cell_is_named_with_block_rows_and_column():
    def encode(frame):
        return frame.to_numpy(dtype=float)

    frame = pd.DataFrame({"a": ["1", "2", "three", "4"], "b": ["0"] * 4})
    stored = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match=r"three.*block 1 of X \(rows 2 to 3\)"):
        ask(prepared(stored, reading=Reading(encode)))


def test_infinite_values_are_named_by_column_and_row():
    wrong = X.copy()
    wrong[20_001, 1] = np.inf
    rows = prepared(da.from_array(wrong, chunks=(CELL, 3)))
    with pytest.raises(ValueError, match="block 1 .*infinity, got some in column 1, row 200"):
        rows.run(summary_of_cell, None, combined)


@pytest.mark.parametrize("row", [0, CELL - 1, 39_999])
def test_rows_that_change_between_two_passes_are_noticed(row, tmp_path):
    stored = np.memmap(tmp_path / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
    stored[:] = X
    rows = prepared(stored)
    ask(rows)
    ask(rows)
    stored[row, 2] += 1.0
    with pytest.raises(RuntimeError, match="X must stay as it is while it is sampled"):
        ask(rows)


def test_blocks_whose_length_changes_are_noticed():
    lengths = iter([5, 5, 5, 4, 4, 4])

    def block():
        return np.ones((next(lengths), 2))

    stored = da.from_delayed(dask.delayed(block, pure=False)(), (5, 2), dtype=float)
    rows = prepared(stored)
    ask(rows)
    with pytest.raises(RuntimeError, match="has 4 rows now"):
        for _ in range(4):
            ask(rows)


def test_categories_must_be_known():
    frame = dd.from_pandas(pd.DataFrame({"a": list("abca")}), npartitions=2)
    with pytest.raises(TypeError, match=r"known categories in column 'a'.*categorize"):
        StoredRows(frame.astype({"a": "category"}))


def test_an_error_of_a_question_is_raised():
    with pytest.raises(ValueError, match="this question has no answer"):
        prepared(da.from_array(X, chunks=(CELL, 3))).run(broken, None, sums_of_both)
