"""How often two rows are together in draws of a partition."""

import numpy as np
from scipy.sparse import csr_array

from skbnp.summaries._draws import number_draws
from skbnp.summaries._losses import sort_by_block

MAX_SCRATCH = 2**24  # labels of chosen rows at a time


def check_tables(tables, draws):
    """The shares of the clusters in the blocks of each draw."""
    tables = [np.asarray(table, dtype=np.float64) for table in tables]
    shapes = {table.shape[1:] for table in tables}
    if len(tables) != len(draws) or len(shapes) != 1 or tables[0].ndim != 2:
        raise ValueError(
            f"tables must be {len(draws)} arrays of shape (n_blocks, n_clusters), one for each draw"
        )
    for m, (table, draw) in enumerate(zip(tables, draws)):
        if draw.min() < 0 or draw.max() >= len(table):
            raise ValueError(
                f"labels must be 0 to {len(table) - 1} in draw {m}, whose table has {len(table)} "
                f"blocks, got {draw.min()} to {draw.max()}"
            )
    return tables


def add_draws(draws, share, rows, columns, symmetric, together):
    """Add the share of the draws in which row and column are in one block."""
    wanted = rows if symmetric else np.concatenate([rows, columns])
    size = max(1, MAX_SCRATCH // len(wanted))
    for first in range(0, len(draws), size):
        group = slice(first, first + size)
        numbered, n_blocks = number_draws([draw[wanted] for draw in draws[group]])
        here = numbered[:, : len(rows)]
        there = here if symmetric else numbered[:, len(rows) :]
        _count_together(here, there, n_blocks.max(), share[group], symmetric, together)


def add_draws_of_clusters(draws, tables, share, rows, columns, symmetric, together):
    """Add how surely row and column, each in a block of a draw, are in one cluster."""
    wanted = rows if symmetric else np.concatenate([rows, columns])
    blocks, shared, n_cells = [], [], 0
    for m, (draw, table) in enumerate(zip(draws, tables)):
        present, block = np.unique(draw[wanted], return_inverse=True)
        # Sparse, as blocks have rows of few clusters, and summed in one order whichever rows are
        # asked for.
        table = csr_array(table[present])
        square = share[m] * (table @ table.T).toarray()
        blocks.append(block.astype(np.intc))
        shared.append(square)
        n_cells += len(wanted) + square.size
        if n_cells > MAX_SCRATCH or m + 1 == len(draws):
            here = np.array([block[: len(rows)] for block in blocks])
            there = here if symmetric else np.array([block[len(rows) :] for block in blocks])
            n_blocks = np.array([len(square) for square in shared])
            squares = np.concatenate([square.ravel() for square in shared])
            _add_shared(here, there, n_blocks, squares, symmetric, together)
            blocks, shared, n_cells = [], [], 0


def _add_shared(
    const int[:, ::1] rows, const int[:, ::1] columns,  # (n_draws, n_rows), (n_draws, n_columns)
    const Py_ssize_t[::1] n_blocks,                     # (n_draws,)
    const double[::1] squares,                          # (n_blocks, n_blocks) of all draws
    bint symmetric,
    double[:, ::1] together,                            # IN/OUT
):
    """Add what the blocks of row i and column j share, over the draws, for j < i if symmetric.

    Row by row, so that a line of the result stays in the cache for all draws.
    """
    cdef:
        Py_ssize_t i, j, m, start
    with nogil:
        for i in range(rows.shape[1]):
            start = 0
            for m in range(rows.shape[0]):
                start += rows[m, i] * n_blocks[m]
                for j in range(i if symmetric else columns.shape[1]):
                    together[i, j] += squares[start + columns[m, j]]
                start += (n_blocks[m] - rows[m, i]) * n_blocks[m]


def _count_together(
    const int[:, :] rows, const int[:, :] columns,  # (n_draws, n_rows), (n_draws, n_columns)
    Py_ssize_t n_blocks, const double[::1] share, bint symmetric,
    double[:, ::1] together,                        # IN/OUT
):
    """Add the share of the draws in which row i and column j are together, for j < i if symmetric.

    Row by row, so that a line of the result stays in the cache for all draws.
    """
    cdef:
        Py_ssize_t i, j, m, t, stop
        int[:, ::1] start = np.empty((len(columns), n_blocks + 1), dtype=np.intc)
        int[:, ::1] order = np.empty(np.shape(columns), dtype=np.intc)
    for m in range(len(columns)):
        sorted_rows, starts = sort_by_block(np.ascontiguousarray(columns[m]), n_blocks)
        np.asarray(order)[m], np.asarray(start)[m] = sorted_rows, starts
    with nogil:
        for i in range(rows.shape[1]):
            for m in range(rows.shape[0]):
                stop = start[m, rows[m, i] + 1]
                for t in range(start[m, rows[m, i]], stop):
                    j = order[m, t]
                    if symmetric and j >= i:  # members are in increasing order
                        break
                    together[i, j] += share[m]


def mirror(double[:, ::1] square):
    """Fill the upper triangle from the lower, and the diagonal with ones."""
    cdef Py_ssize_t i, j
    with nogil:
        for i in range(square.shape[0]):
            square[i, i] = 1.0
            for j in range(i):
                square[j, i] = square[i, j]
