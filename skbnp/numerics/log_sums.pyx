"""Sums of exponentials over blocks and draws, in units of the largest so far."""

from libc.math cimport INFINITY, exp, isfinite, log

import numpy as np


def log_totals(const double[:, ::1] log_p):
    """log sum of e^log_p over columns, (n_rows,); -inf where all are, inf where one is."""
    cdef double[::1] out = np.empty(log_p.shape[0])
    cdef double highest, total
    cdef Py_ssize_t i, k
    with nogil:
        for i in range(log_p.shape[0]):
            highest = -INFINITY
            for k in range(log_p.shape[1]):
                highest = max(highest, log_p[i, k])
            total = 0.0
            if isfinite(highest):
                for k in range(log_p.shape[1]):
                    total += exp(log_p[i, k] - highest)
            out[i] = highest + log(total) if isfinite(highest) else highest
    return np.asarray(out)


def add_shares(
    const double[:, ::1] log_p, const double[:, ::1] table, double[::1] level, double[:, ::1] sums
):
    """sums[i] += e^-level[i] sum_k exp(log_p[i, k]) table[k], the levels raised where needed.

    ``table`` is (n_blocks, n_columns), ``log_p`` (n_rows, at least n_blocks), of which the first
    blocks count; ``sums`` (n_rows, n_columns). Levels start at -inf and sums at 0: after any
    number of calls e^level sums is the total, and no exponential has overflowed.
    """
    cdef Py_ssize_t i, k, c, n_blocks = table.shape[0]
    cdef double highest, shrink, w
    if log_p.shape[1] < n_blocks or sums.shape[1] != table.shape[1]:
        raise ValueError("log_p, table and sums must be of the same blocks and columns")
    if not log_p.shape[0] == level.shape[0] == sums.shape[0]:
        raise ValueError("log_p, level and sums must be of the same rows")
    with nogil:
        for i in range(log_p.shape[0]):
            highest = level[i]
            for k in range(n_blocks):
                highest = max(highest, log_p[i, k])
            if highest == -INFINITY:
                continue
            if highest > level[i]:
                shrink = exp(level[i] - highest) if level[i] > -INFINITY else 0.0
                for c in range(sums.shape[1]):
                    sums[i, c] *= shrink
                level[i] = highest
            for k in range(n_blocks):
                w = exp(log_p[i, k] - highest)
                for c in range(sums.shape[1]):
                    sums[i, c] += w * table[k, c]
