"""Draws of a partition made ready: checked, thinned, numbered, packed and merged."""

import numbers

import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp

CHUNK = 4096  # rows packed at a time, so that all draws of a chunk stay in the cache


# -- Arguments --------------------------------------------------------------------------------


def check_draws(labels):
    """The draws as a list of integer arrays of one length; the rows of a table are views."""
    parts = labels if isinstance(labels, (list, tuple)) else [labels]
    if any(np.ma.is_masked(part) for part in parts):
        raise ValueError("labels must not be masked: every row has a label in every draw")
    if isinstance(labels, (list, tuple)):
        draws = [np.asarray(draw) for draw in labels]
        shape = tuple(sorted({draw.shape for draw in draws}))
    else:
        table = np.asarray(labels)
        draws, shape = list(table) if table.ndim == 2 else [], table.shape
    if len({draw.shape for draw in draws}) != 1 or draws[0].ndim != 1 or draws[0].size == 0:
        raise ValueError(f"labels must have shape (n_draws, n), n >= 1, got {shape}")
    for draw in draws:
        if draw.dtype.kind not in "iu":
            raise ValueError(f"labels must be integers, got dtype {draw.dtype}")
    return draws


def check_weights(weights, n_draws):
    """Shares of the draws, summing to one."""
    if weights is None:
        return np.full(n_draws, 1.0 / n_draws)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_draws,):
        raise ValueError(f"weights must have shape ({n_draws},), got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise ValueError("weights must be finite and >= 0, with a positive sum")
    return weights / weights.sum()


def check_count(name, value, optional=False):
    """Raise unless the value is a whole number from 1 on, or None where that is allowed."""
    if optional and value is None:
        return
    if not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")


def check_partition(partition, n):
    """One partition, canonical, and its number of blocks."""
    partition = np.asarray(partition)
    if partition.shape != (n,):
        raise ValueError(
            f"partition must have one label per column of labels, shape ({n},), "
            f"got shape {partition.shape}"
        )
    if partition.dtype.kind not in "iu":
        raise ValueError(f"partition must hold integers, got dtype {partition.dtype}")
    return number_blocks(partition)


# -- Fewer draws ------------------------------------------------------------------------------


def thin(draws, share, limit):
    """At most so many evenly spaced draws; draws without weight are dropped first."""
    kept = spread(np.flatnonzero(share > 0.0), limit)
    if len(kept) == len(draws):
        return draws, share
    return [draws[m] for m in kept], share[kept] / share[kept].sum()


def spread(index, limit):
    """At most so many evenly spaced entries of an index."""
    if limit is None or len(index) <= limit:
        return index
    return index[np.linspace(0, len(index) - 1, limit).round().astype(np.intp)]


# -- Blocks numbered by first row -------------------------------------------------------------


def number_blocks(draw):
    """A draw with its blocks numbered by first row, (n,) of int, and their number."""
    return _number(draw)[:2]


def number_draws(draws):
    """All draws with blocks numbered by first row, (n_draws, n), and their numbers (n_draws,)."""
    canonical = np.empty((len(draws), len(draws[0])), dtype=np.intc)
    n_blocks = np.empty(len(draws), dtype=np.intc)
    for m, draw in enumerate(draws):
        canonical[m], n_blocks[m] = number_blocks(draw)
    return canonical, n_blocks


def _number(draw):
    """Blocks numbered by first row: (canonical, n_blocks, low, table).

    table[draw - low] is the canonical draw; it is None where the labels lie too far apart.
    """
    low, high = draw.min(), draw.max()
    wide = int(high) - int(low) > 4 * len(draw) + 64
    if wide:
        value = np.unique(draw, return_inverse=True)[1].astype(np.int64, copy=False)
    else:
        value = _shift(draw, low)
    table = np.full(len(draw) if wide else int(high) - int(low) + 1, -1, dtype=np.intc)
    canonical = np.empty(len(draw), dtype=np.intc)
    n_blocks = _number_by_first_row(value, table, canonical)
    return canonical, n_blocks, low, None if wide else table


def _shift(draw, low):
    """The labels counted from the lowest; in 64 bits, for their range may not fit their type."""
    return np.subtract(draw, low, dtype=np.int64, casting="unsafe")


def _number_by_first_row(const int64_t[::1] value, int[::1] table, int[::1] out):
    """Fill the table, -1 before, with the number of each value; returns how many there are."""
    cdef Py_ssize_t i
    cdef int n_blocks = 0
    with nogil:
        for i in range(value.shape[0]):
            if table[value[i]] < 0:
                table[value[i]] = n_blocks
                n_blocks += 1
            out[i] = table[value[i]]
    return n_blocks


# -- Draws packed row by row ------------------------------------------------------------------


def number_for_packing(draw):
    """(draw, low, table, n_blocks) such that table[draw - low] is canonical; no copy if it can."""
    canonical, n_blocks, low, table = _number(draw)
    if table is None:
        return canonical, 0, np.arange(n_blocks, dtype=np.intc), n_blocks
    return draw, low, table, n_blocks


def pack(numbered):
    """Block of each row in each draw, (n, n_draws), in the smallest type that holds them.

    Takes what `number_for_packing` gave for each draw.
    """
    n = len(numbered[0][0])
    small = small_type(max(n_blocks for *_, n_blocks in numbered))
    tables = [table.astype(small) for _, _, table, _ in numbered]
    rows = np.empty((n, len(numbered)), dtype=small)
    chunk = np.empty((len(numbered), min(n, CHUNK)), dtype=small)
    for start in range(0, n, CHUNK):
        stop = min(start + CHUNK, n)
        for out, table, (draw, low, _, _) in zip(chunk, tables, numbered, strict=True):
            # All indices are in range: "clip" only spares the buffer of "raise".
            table.take(_shift(draw[start:stop], low), out=out[: stop - start], mode="clip")
        rows[start:stop] = chunk[:, : stop - start].T
    return rows


def small_type(n_blocks):
    """The smallest unsigned type for that many blocks, or int."""
    return np.uint8 if n_blocks <= 2**8 else np.uint16 if n_blocks <= 2**16 else np.intc


# -- Rows and draws that are the same ---------------------------------------------------------


def merge_rows(rows):
    """One item for all rows that are the same in every draw.

    Returns the item of each row (n,), numbered by first row, and the first row and the number of
    rows of each item (n_items,).
    """
    n = len(rows)
    data = rows.view(np.uint8).reshape(n, -1)
    item = np.empty(n, dtype=np.intc)
    first = np.empty(n, dtype=np.intc)
    slots = np.full(1 << (2 * n).bit_length(), -1, dtype=np.intc)
    n_items = _merge_equal(data, slots, item, first)
    return item, first[:n_items].copy(), np.bincount(item).astype(np.intc)


def _merge_equal(
    const unsigned char[:, ::1] data,
    int[::1] slots,                     # hash table of items, -1 where free; 2^b > n of them
    int[::1] item, int[::1] first,      # OUT
):
    """Equal rows by a hash table with open addressing; returns the number of items."""
    cdef:
        Py_ssize_t i, j, length = data.shape[1]
        uint64_t hashed, mask = slots.shape[0] - 1
        int n_items = 0
    with nogil:
        for i in range(data.shape[0]):
            hashed = 14695981039346656037u  # FNV-1a
            for j in range(length):
                hashed = (hashed ^ data[i, j]) * 1099511628211u
            hashed ^= hashed >> 32
            while True:
                j = slots[hashed & mask]
                if j < 0:
                    slots[hashed & mask] = n_items
                    first[n_items] = <int> i
                    item[i] = n_items
                    n_items += 1
                    break
                if memcmp(&data[first[j], 0], &data[i, 0], length) == 0:
                    item[i] = <int> j
                    break
                hashed += 1
    return n_items


def merge_draws(draws, share):
    """One weighted draw for each distinct partition; draws is (n_draws, n_items), canonical."""
    index = {}
    of_draw = np.array([index.setdefault(draw.tobytes(), len(index)) for draw in draws])
    first = np.unique(of_draw, return_index=True)[1]
    return np.ascontiguousarray(draws[first]), np.bincount(of_draw, share)
