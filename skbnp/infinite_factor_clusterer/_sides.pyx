"""Sums over the rows of a cluster that may be divided, and the density that they give."""

from libc.math cimport fmax, log

import numpy as np

from skbnp.infinite_factor_clusterer._law cimport OF_FACTORS, OF_FEATURES
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.numerics.special cimport lgamma

cdef enum:
    FEW = 8                 # factors between two looks at the size of a product


cdef class Sides:
    """Sums of scores and residuals of side 0, of side 1 and of both together."""

    def __init__(self, State state):
        self.state = state
        self.weight = self.sum = self.square = np.zeros((0, 0))
        self.column = self.factor = np.zeros(0)
        self.member = np.zeros(state.n_samples, dtype=np.intp)
        self.side = np.zeros(state.n_samples, dtype=np.uint8)

    cdef int make_room(self) except -1 with gil:
        """Scratch of the present number of factors."""
        cdef Py_ssize_t n = self.state.n_factors + self.state.n_features
        if self.n_columns != n:
            self.n_columns = n
            self.weight, self.sum, self.square = np.zeros((3, 3, n))
            self.column, self.factor = np.zeros(n), np.ones(n)
        return 0

    cdef void sum_rates(self) noexcept nogil:
        """What `log_marginal_with` needs of the noise's rates."""
        cdef Py_ssize_t j
        self.log_rates = 0.0
        for j in range(self.state.n_features):
            self.log_rates += log(self.state.rate[j])

    cdef void clear(self, int side) noexcept nogil:
        self.count[side] = 0
        self.weight[side, :] = 0.0
        self.sum[side, :] = 0.0
        self.square[side, :] = 0.0

    cdef void take_row(self, Py_ssize_t t) noexcept nogil:
        """The row that the next calls speak of."""
        cdef Py_ssize_t i, K = self.state.n_factors
        cdef double weight = self.state.row_precision[t]
        for i in range(K):
            self.column[i] = self.state.Y[t, i]
            self.factor[i] = weight / self.state.inflation(t, i)
        for i in range(self.state.n_features):
            self.column[K + i] = self.state.R[t, i]
            self.factor[K + i] = weight

    cdef void take_scores(self, Py_ssize_t t, const double* y) noexcept nogil:
        """The same row with these scores."""
        cdef Py_ssize_t j, k, K = self.state.n_factors
        cdef double weight = self.state.row_precision[t], rest
        for k in range(K):
            self.column[k] = y[k]
            self.factor[k] = weight / self.state.inflation(t, k)
        for j in range(self.state.n_features):
            rest = self.state.X[t, j]
            for k in range(K):
                rest -= self.state.W[j, k] * y[k]
            self.column[K + j] = rest
            self.factor[K + j] = weight

    cdef void add_row(self, int side, double sign) noexcept nogil:
        """Add the row to the sums of a side, or take it away."""
        cdef Py_ssize_t i
        cdef double x, weight
        self.count[side] += <Py_ssize_t> sign
        for i in range(self.n_columns):
            x, weight = self.column[i], sign * self.factor[i]
            self.weight[side, i] += weight
            self.sum[side, i] += weight * x
            self.square[side, i] += weight * x * x

    cdef double log_marginal_with(self, int side, bint with_row) noexcept nogil:
        """log density of a side's scores and residuals, its parameters integrated out.

        M of equation (F5.1), without what depends on the number of rows of both sides alone.
        O(N + K).
        """
        cdef Py_ssize_t i, n = self.count[side] + with_row, K = self.state.n_factors
        cdef double own = 1.0 if with_row else 0.0, weight, total, squares, scale, shape
        cdef double product = 1.0, widths = 1.0, log_scales = 0.0, log_widths = 0.0, out = 0.0
        if n == 0:
            return 0.0
        shape = self.state.law.score_shape + 0.5 * n
        for i in range(K):
            weight = own * self.factor[i]
            squares = self.square[side, i] + weight * self.column[i] * self.column[i]
            if self.state.law.means != OF_FEATURES:
                total = self.sum[side, i] + weight * self.column[i]
                weight += self.weight[side, i] + self.state.law.score_precision
                squares = fmax(squares - total * total / weight, 0.0)
                widths *= weight / self.state.law.score_precision
            product *= self.state.law.score_scale + 0.5 * squares
            if i % FEW == FEW - 1:
                log_scales += log(product)
                log_widths += log(widths)
                product = widths = 1.0
        out -= shape * (log_scales + log(product))
        out += K * (
            lgamma(shape) - lgamma(self.state.law.score_shape)
            + self.state.law.score_shape * log(self.state.law.score_scale)
        )
        if self.state.law.shared_noise and self.state.law.means == OF_FACTORS:
            # The residuals have the same law in every cluster.
            return out - 0.5 * (log_widths + log(widths))
        product, log_scales = 1.0, 0.0
        shape = self.state.law.noise_shape + 0.5 * n
        for i in range(K, self.n_columns):
            weight = own * self.factor[i]
            squares = self.square[side, i] + weight * self.column[i] * self.column[i]
            if self.state.law.means != OF_FACTORS:
                total = self.sum[side, i] + weight * self.column[i]
                weight += self.weight[side, i] + self.state.offset_precision
                squares = fmax(squares - total * total / weight, 0.0)
                widths *= weight / self.state.offset_precision
            if self.state.law.shared_noise:
                out -= 0.5 * squares / self.state.S[0, i - K]
            else:
                scale = self.state.rate[i - K]
                product *= 1.0 + 0.5 * squares / scale
            if i % FEW == FEW - 1:
                log_scales += log(product)
                log_widths += log(widths)
                product = widths = 1.0
        if not self.state.law.shared_noise:
            out -= shape * (log_scales + log(product)) + 0.5 * n * self.log_rates
            out += self.state.n_features * (lgamma(shape) - lgamma(self.state.law.noise_shape))
        return out - 0.5 * (log_widths + log(widths))

    cdef Py_ssize_t list_members(
        self, Py_ssize_t g, Py_ssize_t i, Py_ssize_t j, Py_ssize_t n
    ) noexcept nogil:
        """Add the rows of a cluster but i and j to the n members listed so far."""
        cdef Py_ssize_t a, t
        for a in range(self.state.cluster_start[g], self.state.cluster_start[g + 1]):
            t = self.state.by_cluster[a]
            if t != i and t != j:
                self.member[n] = t
                n += 1
        return n
