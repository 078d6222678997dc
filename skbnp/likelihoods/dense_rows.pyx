"""Rows under normal and t laws given by means and scale matrices: densities, missing cells.

Rows that lack the same cells share one factorisation for each law: O(d^3) for a law and pattern,
O(d^2) for a law and row, in vector code over the rows. For tables of some tens of columns; where
matrices have a structure that wide tables need, models have ways of their own.
"""

from libc.math cimport INFINITY, isfinite, log

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics._moments cimport merge_part
from skbnp.numerics.special cimport LOG_2_PI, LOG_PI, lgamma
from skbnp.numerics.vector_math cimport TILE, log1p_all, squared_distances


cdef class DenseRows:
    """Rows sorted by their pattern of missing cells, column by column.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_features)
        What stands in missing cells is not looked at.
    seen : ndarray of shape (n_patterns, n_features), bool
    pattern : ndarray of shape (n_rows,), int
        Which of the patterns each row has.
    """

    cdef:
        double[:, ::1] column               # (n_features, n_rows), rows sorted by pattern
        Py_ssize_t[::1] order               # (n_rows,) which row stands where
        Py_ssize_t[::1] start               # (n_patterns + 1,) first row of each pattern
        Py_ssize_t[:, ::1] feature          # (n_patterns, n_features) observed ones first
        Py_ssize_t[::1] n_observed          # (n_patterns,)

    def __init__(self, x, seen, pattern):
        order = np.argsort(pattern, kind="stable")
        counts = np.bincount(pattern, minlength=len(seen))
        self.order = order.astype(np.intp)
        self.column = np.ascontiguousarray(np.asarray(x, dtype=np.float64)[order].T)
        self.start = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        self.feature = np.argsort(~seen, axis=1, kind="stable").astype(np.intp)
        self.n_observed = seen.sum(axis=1).astype(np.intp)

    def log_densities(
        self, const double[:, ::1] mean, const double[:, :, ::1] scale, const double[::1] df,
    ):
        """Log density of the observed cells of each row under each law, (n_laws, n_rows).

        ``df`` is inf where a law is normal, with ``scale`` as its covariance. A matrix that is not
        positive definite raises ``LinAlgError``.
        """
        cdef Py_ssize_t d = self.column.shape[0], n_rows = self.column.shape[1], p, c, i, o, n
        cdef Py_ssize_t first, stop
        cdef double constant
        cdef bint failed = False
        cdef double[:, ::1] out = np.empty((mean.shape[0], n_rows))
        cdef double[::1] work = np.empty(max(d, 1) * TILE), value = np.empty(TILE)
        cdef double[:, ::1] factor = np.empty((d, d))
        with nogil:
            for p in range(self.start.shape[0] - 1):
                stop = self.start[p + 1]
                o = self.n_observed[p]
                for c in range(mean.shape[0]):
                    if _factor(&scale[c, 0, 0], d, &self.feature[p, 0], o, &factor[0, 0]) != 0:
                        failed = True
                        continue
                    constant = _log_peak(df[c], o) - 0.5 * linalg.log_det(&factor[0, 0], o)
                    first = self.start[p]
                    while first < stop:
                        n = min(<Py_ssize_t> TILE, stop - first)
                        squared_distances(
                            n, o, &self.column[0, first], n_rows, &self.feature[p, 0], &mean[c, 0],
                            &factor[0, 0], &work[0], &value[0],
                        )
                        _tail(n, df[c], o, &value[0])
                        for i in range(n):
                            out[c, self.order[first + i]] = constant + value[i]
                        first += n
        _check(failed)
        return np.asarray(out)

    def add_moments(
        self, const double[:, ::1] mean, const double[:, :, ::1] scale, const double[::1] df,
        const double[:, ::1] weight, double[:, ::1] first_moment, double[:, ::1] square,
    ):
        """Means and variances of missing cells given the observed ones join those before.

        Laws count by ``weight`` (n_laws, n_rows), which add up to one for each row. The moments,
        (n_rows, n_features), are those of `_moments`: both begin at 0, and the second ends as the
        variance, inf where a t law has none. Observed cells are left alone.
        """
        cdef Py_ssize_t d = self.column.shape[0], n_rows = self.column.shape[1]
        cdef Py_ssize_t p, c, i, o, n, a, b, first, stop, row
        cdef double q, schur
        cdef bint failed = False
        cdef double[::1] total = np.zeros(n_rows)
        cdef double[::1] work = np.empty(max(d, 1) * TILE), value = np.empty(TILE)
        cdef double[::1] center = np.empty(TILE)
        cdef double[:, ::1] factor = np.empty((d, d)), leading = np.empty((d, d))
        with nogil:
            for p in range(self.start.shape[0] - 1):
                stop = self.start[p + 1]
                o = self.n_observed[p]
                if o == d:
                    continue
                for c in range(mean.shape[0]):
                    if _factor(&scale[c, 0, 0], d, &self.feature[p, 0], d, &factor[0, 0]) != 0:
                        failed = True
                        continue
                    for a in range(o):
                        for b in range(o):
                            (&leading[0, 0])[a * o + b] = factor[a, b]
                    first = self.start[p]
                    while first < stop:
                        n = min(<Py_ssize_t> TILE, stop - first)
                        # It leaves U_oo^-T (x_o - m_o) in ``work``, feature by feature.
                        squared_distances(
                            n, o, &self.column[0, first], n_rows, &self.feature[p, 0], &mean[c, 0],
                            &leading[0, 0], &work[0], &value[0],
                        )
                        for a in range(o, d):
                            schur = 0.0
                            for b in range(o, a + 1):
                                schur += factor[b, a] * factor[b, a]
                            for i in range(n):
                                center[i] = mean[c, self.feature[p, a]]
                            for b in range(o):
                                for i in range(n):
                                    center[i] += factor[b, a] * work[b * TILE + i]
                            for i in range(n):
                                row = self.order[first + i]
                                if weight[c, row] == 0.0:
                                    continue
                                q = value[i]
                                merge_part(
                                    total[first + i], weight[c, row], center[i],
                                    _inflation(df[c], o, q) * schur,
                                    &first_moment[row, self.feature[p, a]],
                                    &square[row, self.feature[p, a]],
                                )
                        for i in range(n):
                            total[first + i] += weight[c, self.order[first + i]]
                        first += n
        _check(failed)


def _check(failed):
    if failed:
        raise np.linalg.LinAlgError("scale must be positive definite")


cdef int _factor(
    const double* scale, Py_ssize_t d, const Py_ssize_t* feature, Py_ssize_t n, double* out
) noexcept nogil:
    """Factor (n, n) of the first n permuted features, zeros below. Non-zero: there is none."""
    cdef Py_ssize_t a, b
    for a in range(n):
        for b in range(n):
            out[a * n + b] = scale[feature[a] * d + feature[b]] if b >= a else 0.0
    return linalg.cholesky(out, n) if n > 0 else 0


cdef double _log_peak(double df, Py_ssize_t o) noexcept nogil:
    """What a law of unit scale has for its logarithm at the mean."""
    if not isfinite(df):
        return -0.5 * o * LOG_2_PI
    return lgamma(0.5 * (df + o)) - lgamma(0.5 * df) - 0.5 * o * (log(df) + LOG_PI)


cdef void _tail(Py_ssize_t n, double df, Py_ssize_t o, double* square) noexcept nogil:
    """How far below the peak the logarithm is at these squared distances, which it replaces."""
    cdef Py_ssize_t i
    if not isfinite(df):
        for i in range(n):
            square[i] *= -0.5
        return
    for i in range(n):
        square[i] /= df
    log1p_all(n, square)
    for i in range(n):
        square[i] *= -0.5 * (df + o)


cdef double _inflation(double df, Py_ssize_t o, double square) noexcept nogil:
    """By what the observed cells widen the law of the others: its variance is that times Schur."""
    if not isfinite(df):
        return 1.0
    return (df + square) / (df + o - 2.0) if df + o > 2.0 else INFINITY
