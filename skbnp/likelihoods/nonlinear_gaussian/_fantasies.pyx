"""Rows compared with fantasies: rows that a network has made up, hidden units and all.

Given its hidden units the observed entries of a row are independent and normal, so the mean of
that density over fantasies of the hidden units is an unbiased estimate of the density of the row.
Fantasies are made from standard normal numbers. When these are the same for every network, the
estimate is a smooth function of the network, and the differences between networks are hardly noisy.
"""

from libc.math cimport INFINITY, log

from skbnp.likelihoods.nonlinear_gaussian._exponential cimport quick_exp
from skbnp.numerics.special cimport LOG_2_PI

import numpy as np


cdef enum:
    LANES = 8

cdef extern from *:
    """
    static SKBNP_CLONES void skbnp_take_squares(
        Py_ssize_t n, double x, const double* mean, double scale, double* score)
    {
        Py_ssize_t i;
        for (i = 0; i < n; i++) score[i] -= scale * (x - mean[i]) * (x - mean[i]);
    }

    /* Maxima and sums in eight lanes: the same bits with and without vector instructions. */
    static SKBNP_CLONES void skbnp_maxima(Py_ssize_t n_blocks, const double* score, double* lane) {
        Py_ssize_t i, k;
        for (i = 0; i < n_blocks; i++)
            for (k = 0; k < 8; k++)
                lane[k] = score[8 * i + k] > lane[k] ? score[8 * i + k] : lane[k];
    }

    static SKBNP_CLONES void skbnp_weights(
        Py_ssize_t n_blocks, double shift, double* score, double* lane, double* square)
    {
        Py_ssize_t i, k;
        for (i = 0; i < n_blocks; i++)
            for (k = 0; k < 8; k++) {
                double w = skbnp_quick_exp(score[8 * i + k] - shift);
                score[8 * i + k] = w;
                lane[k] += w;
                square[k] += w * w;
            }
    }

    static SKBNP_CLONES void skbnp_weighted_sums(
        Py_ssize_t n_blocks, const double* weight, const double* y, double* lane, double* first)
    {
        Py_ssize_t i, k;
        for (i = 0; i < n_blocks; i++)
            for (k = 0; k < 8; k++) {
                lane[k] += weight[8 * i + k];
                first[k] += weight[8 * i + k] * y[8 * i + k];
            }
    }

    static SKBNP_CLONES void skbnp_weighted_squares(
        Py_ssize_t n_blocks, const double* weight, const double* y, double mean, double* lane)
    {
        Py_ssize_t i, k;
        for (i = 0; i < n_blocks; i++)
            for (k = 0; k < 8; k++) {
                double off = y[8 * i + k] - mean;
                lane[k] += weight[8 * i + k] * off * off;
            }
    }
    """
    void take_squares "skbnp_take_squares"(
        Py_ssize_t n, double x, const double* mean, double scale, double* score
    ) noexcept nogil
    void maxima "skbnp_maxima"(
        Py_ssize_t n_blocks, const double* score, double* lane
    ) noexcept nogil
    void weights "skbnp_weights"(
        Py_ssize_t n_blocks, double shift, double* score, double* lane, double* square
    ) noexcept nogil
    void weighted_sums "skbnp_weighted_sums"(
        Py_ssize_t n_blocks, const double* weight, const double* y, double* lane, double* first
    ) noexcept nogil
    void weighted_squares "skbnp_weighted_squares"(
        Py_ssize_t n_blocks, const double* weight, const double* y, double mean, double* lane
    ) noexcept nogil


class Noise:
    """Standard normal numbers for fantasies, the same ones whatever a network looks like.

    Parameters
    ----------
    seed : int
    n_fantasies : int
    """

    def __init__(self, seed, n_fantasies):
        self._seed, self.n_fantasies = seed, n_fantasies
        self._tables = {}

    def of(self, place, n_units):
        """Numbers (n_units, n_fantasies) of the first units at some place of the network.

        They do not depend on how many units there are, here or at other places.

        Parameters
        ----------
        place : int
            At least 0, such as the number of a layer.
        n_units : int
        """
        table = self._tables.get(place)
        if table is None or len(table) < n_units:
            # A longer table begins with the same numbers.
            generator = np.random.default_rng([self._seed, place])
            table = generator.standard_normal((2 * n_units, self.n_fantasies))
            self._tables[place] = table
        return table[:n_units]

    def __getstate__(self):
        return {**self.__dict__, "_tables": {}}


cdef class Fantasies:
    """Means of the entries in each fantasy, and densities of rows as mixtures over them.

    Parameters
    ----------
    mean : array of shape (n_features, n_fantasies)
    precision : array of shape (n_features,)
        Of an entry about its mean, in all fantasies.
    """

    def __init__(self, mean, precision):
        self.mean = np.array(mean, dtype=np.float64, order="C")
        self.precision = np.array(precision, dtype=np.float64)

    def log_densities(self, A):
        """Of the observed entries of each row the log density and how many fantasies it rests on.

        Parameters
        ----------
        A : array of shape (n_rows, n_features)
            NaN where an entry is missing.

        Returns
        -------
        log_density : ndarray of shape (n_rows,)
        n_effective : ndarray of shape (n_rows,)
            (sum of weights)^2 / sum of their squares.
        """
        cdef const double[:, ::1] x = np.ascontiguousarray(A, dtype=np.float64)
        cdef double[::1] score = np.empty(self.mean.shape[1])
        cdef double[:, ::1] out = np.empty((2, x.shape[0]))
        cdef Py_ssize_t i
        with nogil:
            for i in range(x.shape[0]):
                out[0, i] = self.weigh(&x[i, 0], &score[0], &out[1, i])
        return np.asarray(out[0]), np.asarray(out[1])

    def moments(self, A):
        """Mean and variance of the missing entries of each row, and how many fantasies it rests on.

        Parameters
        ----------
        A : array of shape (n_rows, n_features)
            NaN where an entry is missing.

        Returns
        -------
        mean : ndarray of shape (n_rows, n_features)
            0 where an entry is observed.
        variance : ndarray of shape (n_rows, n_features)
            The same.
        n_effective : ndarray of shape (n_rows,)
        """
        cdef const double[:, ::1] x = np.ascontiguousarray(A, dtype=np.float64)
        cdef Py_ssize_t n = self.mean.shape[1], i
        cdef double[::1] score = np.empty(n), n_effective = np.empty(x.shape[0])
        cdef double[:, ::1] mean = np.zeros((x.shape[0], x.shape[1]))
        cdef double[:, ::1] variance = np.zeros((x.shape[0], x.shape[1]))
        with nogil:
            for i in range(x.shape[0]):
                self.weigh(&x[i, 0], &score[0], &n_effective[i])
                self.average(&x[i, 0], &score[0], &mean[i, 0], &variance[i, 0])
        return np.asarray(mean), np.asarray(variance), np.asarray(n_effective)

    cdef double weigh(self, const double* x, double* score, double* n_effective) noexcept nogil:
        """Log density of a row, and the weights of its fantasies relative to the largest."""
        cdef Py_ssize_t d, f, n = self.mean.shape[1]
        cdef double constant = 0.0
        for f in range(n):
            score[f] = 0.0
        for d in range(self.mean.shape[0]):
            if x[d] == x[d]:
                constant += 0.5 * (log(self.precision[d]) - LOG_2_PI)
                take_squares(n, x[d], &self.mean[d, 0], 0.5 * self.precision[d], score)
        return constant + weights_from_logs(n, score, n_effective)

    cdef void average(
        self, const double* x, const double* weight, double* mean, double* variance
    ) noexcept nogil:
        """Mean and variance of the missing entries of a row under weights of its fantasies."""
        cdef Py_ssize_t d
        for d in range(self.mean.shape[0]):
            if x[d] != x[d]:
                weighted_moments(
                    self.mean.shape[1], weight, &self.mean[d, 0], &mean[d], &variance[d]
                )
                variance[d] += 1.0 / self.precision[d]


cdef double weights_from_logs(Py_ssize_t n, double* score, double* n_effective) noexcept nogil:
    """log of the mean of e^score; turns scores into weights relative to the largest."""
    cdef Py_ssize_t f, k, n_blocks = n // LANES
    cdef double highest = -INFINITY, total = 0.0, squares = 0.0
    cdef double[LANES] lane
    cdef double[LANES] square
    for k in range(LANES):
        lane[k], square[k] = -INFINITY, 0.0
    maxima(n_blocks, score, lane)
    for k in range(LANES):
        highest = max(highest, lane[k])
        lane[k] = 0.0
    for f in range(n_blocks * LANES, n):
        highest = max(highest, score[f])
    if highest == -INFINITY:
        # Nothing is anywhere near: the density is 0 to floats, and all are as good.
        for f in range(n):
            score[f] = 1.0
        n_effective[0] = 1.0
        return -INFINITY
    weights(n_blocks, highest, score, lane, square)
    for k in range(LANES):
        total += lane[k]
        squares += square[k]
    for f in range(n_blocks * LANES, n):
        score[f] = quick_exp(score[f] - highest)
        total += score[f]
        squares += score[f] * score[f]
    n_effective[0] = total * total / squares
    return highest + log(total / n)


cdef void weighted_moments(
    Py_ssize_t n, const double* weight, const double* y, double* mean, double* variance
) noexcept nogil:
    """Mean and variance of y under weights, which need not sum to one."""
    cdef double[3][LANES] lane
    cdef double[3] total
    cdef Py_ssize_t f, k, i, n_blocks = n // LANES
    for i in range(3):
        total[i] = 0.0
        for k in range(LANES):
            lane[i][k] = 0.0
    weighted_sums(n_blocks, weight, y, lane[0], lane[1])
    for i in range(2):
        for k in range(LANES):
            total[i] += lane[i][k]
    for f in range(n_blocks * LANES, n):
        total[0] += weight[f]
        total[1] += weight[f] * y[f]
    mean[0] = total[1] / total[0]
    weighted_squares(n_blocks, weight, y, mean[0], lane[2])
    for k in range(LANES):
        total[2] += lane[2][k]
    for f in range(n_blocks * LANES, n):
        total[2] += weight[f] * (y[f] - mean[0]) * (y[f] - mean[0])
    variance[0] = total[2] / total[0]
