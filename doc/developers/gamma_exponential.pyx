"""Blocks of waiting times under gamma priors on their rates; missing cells are integrated out.

rate_j ~ Gamma(a_j, b_j), x_j | rate_j ~ Exponential(rate_j), each column alone. With n observed
cells of sum S the rate is Gamma(a + n, b + S), and a further cell has the density
(a + n) (b + S)^(a + n) / (b + S + x)^(a + n + 1).
"""

from libc.math cimport INFINITY, log
from libc.string cimport memcpy, memset
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma

cdef double SPOILED = 1e-6      # a sum that falls below this part of itself has lost its digits


cdef class GammaExponential(ConjugateFamily):
    """Slots of exponential blocks. All moves of one row cost O(d)."""

    SLOTS = ("n_members", "waited", "seen")
    _for_prediction = ("n_members", "waited", "seen")
    _counts_of_cells = "seen"

    cdef:
        double[::1] shape, rate             # (n_features,) a, b of the prior
        public double[:, ::1] waited        # (n_slots, n_features) S, sums of the observed cells
        public double[:, ::1] seen          # (n_slots, n_features) n, how many these are
        double[:, ::1] drawn                # parameters, (n_parameters, n_features) rates

    def __init__(self, X, shape, rate):
        super().__init__(X)
        if not np.all(np.isnan(self.X) | (np.asarray(self.X) > 0.0)):
            raise ValueError("X must hold times > 0, NaN where missing")
        self.shape = np.array(shape, dtype=np.float64)
        self.rate = np.array(rate, dtype=np.float64)
        self.n_members = np.zeros(0, dtype=np.intp)
        self.waited, self.seen, self.drawn = np.zeros((3, 0, self.n_features))

    # -- statistics ---------------------------------------------------------------------------

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        self.n_members[k] = 0
        memset(&self.waited[k, 0], 0, self.n_features * sizeof(double))
        memset(&self.seen[k, 0], 0, self.n_features * sizeof(double))

    cdef void copy(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
        cdef Py_ssize_t size = self.n_features * sizeof(double)
        self.n_members[target] = self.n_members[source]
        memcpy(&self.waited[target, 0], &self.waited[source, 0], size)
        memcpy(&self.seen[target, 0], &self.seen[source, 0], size)

    cdef void add(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t j
        self.n_members[k] += 1
        for j in range(self.n_features):
            if self.X[i, j] == self.X[i, j]:
                self.waited[k, j] += self.X[i, j]
                self.seen[k, j] += 1.0

    cdef int remove(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t j
        cdef int spoiled = 0
        cdef double before
        self.n_members[k] -= 1
        for j in range(self.n_features):
            if self.X[i, j] == self.X[i, j]:
                before = self.waited[k, j]
                self.waited[k, j] -= self.X[i, j]
                self.seen[k, j] -= 1.0
                if not self.waited[k, j] > SPOILED * before:
                    spoiled = 1
        return spoiled

    cdef int merge(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t target) noexcept nogil:
        cdef Py_ssize_t j
        self.n_members[target] = self.n_members[a] + self.n_members[b]
        for j in range(self.n_features):
            self.waited[target, j] = self.waited[a, j] + self.waited[b, j]
            self.seen[target, j] = self.seen[a, j] + self.seen[b, j]
        return 0

    # -- densities ----------------------------------------------------------------------------

    cdef double log_next(self, Py_ssize_t j, double x, double n, double s) noexcept nogil:
        """log p(x | n cells of column j with sum s)"""
        cdef double a = self.shape[j] + n, b = self.rate[j] + s
        return log(a) + a * log(b) - (a + 1.0) * log(b + x)

    cdef double log_predictive(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0
        for j in range(self.n_features):
            if self.X[i, j] == self.X[i, j]:
                total += self.log_next(j, self.X[i, j], self.seen[k, j], self.waited[k, j])
        return total

    cdef void log_predictive_all(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(n):
            out[k] = self.log_predictive(k, i)

    cdef void log_predictive_observed(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        self.log_predictive_all(n, i, out)

    cdef double log_predictive_own(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """Where the prior is large beside what is left, cancelled digits do not matter."""
        cdef Py_ssize_t j
        cdef double x, total = 0.0
        for j in range(self.n_features):
            x = self.X[i, j]
            if x == x:
                total += self.log_next(
                    j, x, self.seen[k, j] - 1.0, max(self.waited[k, j] - x, 0.0)
                )
        return total

    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t j
        cdef double a, b, n, s, total = 0.0
        for j in range(self.n_features):
            a, b, n, s = self.shape[j], self.rate[j], self.seen[k, j], self.waited[k, j]
            total += lgamma(a + n) - lgamma(a) + a * log(b) - (a + n) * log(b + s)
        return total

    # -- missing cells, simulation ------------------------------------------------------------

    cdef void draw_missing(self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng) noexcept nogil:
        """Nothing to draw: missing cells are integrated out. Their means and variances."""
        cdef Py_ssize_t t, j
        cdef double a, b
        for t in range(self.missing_start[i], self.missing_start[i + 1]):
            j = self.missing_feature[t]
            a, b = self.shape[j] + self.seen[k, j], self.rate[j] + self.waited[k, j]
            self.missing_mean[t] = b / (a - 1.0) if a > 1.0 else INFINITY
            self.missing_variance[t] = (
                self.missing_mean[t] * self.missing_mean[t] * a / (a - 2.0) if a > 2.0 else INFINITY
            )

    cdef int redraw_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n, bitgen_t* rng
    ) noexcept nogil:
        cdef Py_ssize_t j, t
        cdef double rate
        for j in range(self.n_features):
            rate = self.draw_rate(k, j, rng)
            for t in range(n):
                if self.X[row[t], j] == self.X[row[t], j]:
                    self.X[row[t], j] = draws.draw_gamma(rng, 1.0, rate)
        return 0

    cdef double draw_rate(self, Py_ssize_t k, Py_ssize_t j, bitgen_t* rng) noexcept nogil:
        return draws.draw_gamma(
            rng, self.shape[j] + self.seen[k, j], self.rate[j] + self.waited[k, j]
        )

    # -- all rows at once, given parameters ---------------------------------------------------

    cdef int reserve_parameters(self, Py_ssize_t n_blocks) except -1 nogil:
        if n_blocks > self.drawn.shape[0]:
            with gil:
                self.drawn = np.zeros((2 * n_blocks, self.n_features))
        return 0

    cdef void draw_parameters(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.n_features):
            self.drawn[k, j] = self.draw_rate(k, j, rng)

    cdef void log_likelihoods(
        self, const Py_ssize_t* row, Py_ssize_t n_rows, Py_ssize_t n_blocks, double* out,
        double* work,
    ) noexcept nogil:
        cdef Py_ssize_t t, k, j
        cdef double x
        for t in range(n_rows):
            for k in range(n_blocks):
                for j in range(self.n_features):
                    x = self.X[row[t], j]
                    if x == x:
                        out[t * n_blocks + k] += log(self.drawn[k, j]) - self.drawn[k, j] * x

    cdef void draw_missing_given_parameters(
        self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng, double* work
    ) noexcept nogil:
        cdef Py_ssize_t t
        cdef double rate
        for t in range(self.missing_start[i], self.missing_start[i + 1]):
            rate = self.drawn[k, self.missing_feature[t]]
            self.missing_mean[t] = 1.0 / rate
            self.missing_variance[t] = 1.0 / (rate * rate)

    cdef Py_ssize_t sums_size(self) noexcept nogil:
        return 2 * self.n_features

    cdef void sum_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n_rows, double* sums, double* work
    ) noexcept nogil:
        cdef Py_ssize_t t, j, d = self.n_features
        for t in range(n_rows):
            for j in range(d):
                if self.X[row[t], j] == self.X[row[t], j]:
                    sums[j] += self.X[row[t], j]
                    sums[d + j] += 1.0

    cdef int set_from_sums(
        self, Py_ssize_t k, Py_ssize_t n_rows, const double* sums
    ) noexcept nogil:
        self.n_members[k] = n_rows
        memcpy(&self.waited[k, 0], sums, self.n_features * sizeof(double))
        memcpy(&self.seen[k, 0], sums + self.n_features, self.n_features * sizeof(double))
        return 0
