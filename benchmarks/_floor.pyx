"""The operations that a Gibbs pass cannot do without, in plain loops: what a sweep is held against.

Compiled by dirichlet_process_mixture.py when it runs.
"""

from libc.math cimport exp, log1p

import numpy as np

from skbnp.numerics cimport linalg


def forward_substitutions(
    const double[:, ::1] X, const double[:, ::1] mean, const double[:, :, ::1] factor
):
    """U_k^-T (x_i - m_k) of every row for every block, one after the other; their squared sum."""
    cdef Py_ssize_t d = X.shape[1], i, k, a
    cdef double[::1] residual = np.empty(d)
    cdef double* r = &residual[0]
    cdef double total = 0.0
    with nogil:
        for i in range(X.shape[0]):
            for k in range(mean.shape[0]):
                for a in range(d):
                    r[a] = X[i, a] - mean[k, a]
                total += linalg.solve_transposed(&factor[k, 0, 0], d, r)
    return total


def logarithms_and_exponentials(const double[::1] x):
    """log1p and exp of every number; their sum."""
    cdef Py_ssize_t t
    cdef double total = 0.0
    with nogil:
        for t in range(x.shape[0]):
            total += log1p(x[t]) + exp(-x[t])
    return total


def rank_one_updates(const double[:, ::1] X, double[:, :, ::1] factor, Py_ssize_t repeats):
    """Add every row to some block's factor, that many times; the factors change."""
    cdef Py_ssize_t d = X.shape[1], n_blocks = factor.shape[0], i, a, _
    cdef double[::1] row = np.empty(d)
    with nogil:
        for _ in range(repeats):
            for i in range(X.shape[0]):
                for a in range(d):
                    row[a] = X[i, a]
                linalg.rank_one_update(&factor[i % n_blocks, 0, 0], d, &row[0])
