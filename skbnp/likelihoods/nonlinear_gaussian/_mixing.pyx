"""Weights of samples, and what samples say together by them."""

from libc.math cimport INFINITY, exp, log

from skbnp.numerics cimport special

import numpy as np


def mixed(share, const double[:, ::1] one, two, Py_ssize_t n_out):
    """Mean and variance (n_rows, n_out) over samples that all rows share: means one, variances two.

    ``share`` (n_rows, n_samples) sums to one in each row. O(n_rows n_samples n_out).
    """
    mean_ = share @ np.asarray(one)[:, :n_out]
    variance_ = share @ np.asarray(two)[:, :n_out]
    cdef const double[:, ::1] w = share, mean = mean_
    cdef double[:, ::1] variance = variance_
    cdef Py_ssize_t i, j, s
    with nogil:
        for i in range(w.shape[0]):
            for s in range(w.shape[1]):
                if w[i, s] == 0.0:
                    continue
                for j in range(n_out):
                    variance[i, j] += w[i, s] * (one[s, j] - mean[i, j]) * (one[s, j] - mean[i, j])
    return mean_, variance_


cdef void mix_row(
    const double* share, Py_ssize_t n, const double* one, const double* two, Py_ssize_t n_out,
    double* mean, double* variance,
) noexcept nogil:
    """The same for a row with samples (n, n_out) of its own; out starts at 0."""
    cdef Py_ssize_t s, j
    cdef double off
    for s in range(n):
        for j in range(n_out):
            mean[j] += share[s] * one[s * n_out + j]
    for s in range(n):
        for j in range(n_out):
            off = one[s * n_out + j] - mean[j]
            variance[j] += share[s] * (two[s * n_out + j] + off * off)


def weighed(score):
    """log mean exp of scores (n_rows, n_samples), effective number of samples and their shares."""
    highest = score.max(axis=1, keepdims=True)
    # No sample is anywhere near: the density is 0 to floats, and all are as good.
    nowhere = ~np.isfinite(highest[:, 0])
    share = np.exp(score - np.where(nowhere[:, np.newaxis], 0.0, highest))
    share[nowhere] = 1.0
    total = share.sum(axis=1, keepdims=True)
    evidence = (highest + np.log(total / score.shape[1]))[:, 0]
    share /= total
    n_effective = np.where(nowhere, 1.0, 1.0 / np.sum(share**2, axis=1))
    return evidence, n_effective, share


cdef double weigh(double* score, Py_ssize_t n, double* n_effective) noexcept nogil:
    """The same for one row; turns its scores into shares."""
    cdef Py_ssize_t s
    cdef double total = special.log_sum_exp(score, n), squares = 0.0
    for s in range(n):
        score[s] = exp(score[s] - total) if total > -INFINITY else 1.0 / n
        squares += score[s] * score[s]
    n_effective[0] = 1.0 / squares if total > -INFINITY else 1.0
    return total - log(<double> n)
