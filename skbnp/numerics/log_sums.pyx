"""Sums of exponentials over blocks and draws, in units of the largest so far."""

from libc.math cimport INFINITY, exp, isfinite

import numpy as np

from skbnp.numerics.vector_math cimport exp_all, log_all


cdef enum:
    CHUNK = 2048  # exponentials at a time: they stay in the cache


def log_totals(const double[:, ::1] log_p):
    """log sum of e^log_p over columns, (n_rows,); -inf where all are, inf where one is."""
    cdef Py_ssize_t n = log_p.shape[0], n_blocks = log_p.shape[1], i, k, chunk, start, stop
    cdef Py_ssize_t size = _rows_at_a_time(n_blocks)
    cdef double[:, ::1] w = np.empty((size, max(n_blocks, 1)))
    cdef double[::1] highest = np.empty(n), total = np.zeros(n)
    with nogil:
        for chunk in range((n + size - 1) // size):
            start = chunk * size
            stop = min(start + size, n)
            for i in range(start, stop):
                highest[i] = _largest(&log_p[i, 0] if n_blocks else NULL, n_blocks, -INFINITY)
                for k in range(n_blocks):
                    w[i - start, k] = log_p[i, k] - highest[i]
            exp_all((stop - start) * n_blocks, &w[0, 0])
            for i in range(start, stop):
                for k in range(n_blocks):
                    total[i] += w[i - start, k]
        if n:
            log_all(n, &total[0])
        for i in range(n):
            if isfinite(highest[i]):
                highest[i] += total[i]
    return np.asarray(highest)


cdef Py_ssize_t _rows_at_a_time(Py_ssize_t n_blocks) noexcept nogil:
    return max(1, CHUNK // max(n_blocks, 1))


cdef double _largest(const double* x, Py_ssize_t n, double least) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n):
        least = max(least, x[k])
    return least


def add_shares(
    const double[:, ::1] log_p, const double[:, ::1] table, double[::1] level, double[:, ::1] sums
):
    """sums[i] += e^-level[i] sum_k exp(log_p[i, k]) table[k], the levels raised where needed.

    ``table`` is (n_blocks, n_columns), ``log_p`` (n_rows, at least n_blocks), of which the first
    blocks count; ``sums`` (n_rows, n_columns). Levels start at -inf and sums at 0: after any
    number of calls e^level sums is the total, and no exponential has overflowed.
    """
    cdef Py_ssize_t n = log_p.shape[0], n_blocks = table.shape[0], i, k, chunk, start, stop
    cdef Py_ssize_t size = _rows_at_a_time(n_blocks)
    cdef double[:, ::1] w = np.empty((size, max(n_blocks, 1)))
    if log_p.shape[1] < n_blocks or sums.shape[1] != table.shape[1]:
        raise ValueError("log_p, table and sums must be of the same blocks and columns")
    if not n == level.shape[0] == sums.shape[0]:
        raise ValueError("log_p, level and sums must be of the same rows")
    if n_blocks == 0:
        return
    with nogil:
        for chunk in range((n + size - 1) // size):
            start = chunk * size
            stop = min(start + size, n)
            for i in range(start, stop):
                _raise_level(_largest(&log_p[i, 0], n_blocks, level[i]), &level[i], sums[i])
                for k in range(n_blocks):
                    # Of nothing, no share: not that of -inf less -inf.
                    w[i - start, k] = log_p[i, k] - max(level[i], -LARGE)
            exp_all((stop - start) * n_blocks, &w[0, 0])
            for i in range(start, stop):
                _add_rows(&w[i - start, 0], table, sums[i])


cdef double LARGE = 1.7976931348623157e308


cdef void _raise_level(double highest, double* level, double[::1] sums) noexcept nogil:
    cdef Py_ssize_t c
    cdef double shrink
    if highest > level[0]:
        shrink = exp(level[0] - highest) if level[0] > -INFINITY else 0.0
        for c in range(sums.shape[0]):
            sums[c] *= shrink
        level[0] = highest


cdef void _add_rows(const double* w, const double[:, ::1] table, double[::1] sums) noexcept nogil:
    """sums += w table"""
    cdef Py_ssize_t k, c
    for k in range(table.shape[0]):
        for c in range(table.shape[1]):
            sums[c] += w[k] * table[k, c]
