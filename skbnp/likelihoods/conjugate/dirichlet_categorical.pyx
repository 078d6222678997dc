"""Blocks of categorical columns under Dirichlet priors; missing cells are integrated out.

p_j ~ Dirichlet(g_j1, ..., g_jC), x_j | p_j ~ Categorical(p_j), each column alone. With n_jl members
at level l and n_j observed cells, the predictive probability is (g_jl + n_jl) / (g_j + n_j), where
g_j = sum_l g_jl. A Bernoulli column with p ~ Beta(a, b) is one of two levels with g = (b, a).
"""

from libc.math cimport exp, log
from libc.string cimport memcpy, memset
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport log_rising


cdef double SMALL = 1e-150      # products of probabilities are logged when they pass this


cdef inline void accumulate(const double* x, Py_ssize_t n, double* out) noexcept nogil:
    """out += x"""
    cdef Py_ssize_t k
    for k in range(n):
        out[k] += x[k]


cdef class DirichletCategorical(ConjugateFamily):
    """Slots of categorical blocks; counts are exact.

    Adding and removing a row costs two logarithms a column, its predictive probability under K
    blocks K d additions.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Level codes 0..C_j - 1 of column j, NaN where missing.
    pseudo_counts : sequence of n_features arrays of shape (C_j,)
        Positive parameters g_j of the Dirichlet priors. Their lengths say how many levels there
        are, seen or not.
    """

    SLOTS = ("n_members", "level_count", "observed_count")
    _for_prediction = ("n_members", "level_count")
    _counts_of_cells = "observed_count"

    def __init__(self, X, pseudo_counts):
        super().__init__(X)
        weights = [np.array(g, dtype=np.float64).reshape(-1) for g in pseudo_counts]
        _check_pseudo_counts(weights, self.n_features)
        sizes = np.array([len(g) for g in weights], dtype=np.intp)
        self.level_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self.n_levels = self.level_start[self.n_features]
        self.pseudo_count = np.concatenate([*weights, [g.sum() for g in weights]])
        self._find_levels()
        n_values = np.zeros(self.n_samples + 1, dtype=np.intp)  # C_j for each missing cell
        n_values[1:] = np.where(np.isnan(self.X), sizes, 0).sum(axis=1)
        self._start_means(np.cumsum(n_values))
        self.n_members = np.zeros(0, dtype=np.intp)
        self.level_count = np.zeros((0, self.n_levels))
        self.observed_count = np.zeros((0, self.n_features))
        self.log_prob = np.zeros((self.n_levels + self.n_features, 0))
        self.vector = np.zeros(sizes.max())
        self.vector_too = np.zeros(sizes.max())

    def _find_levels(self):
        """Make ``level`` that of X, whose codes must be levels."""
        codes = np.asarray(self.X)
        sizes = np.diff(self.level_start)
        wrong = ~(np.isnan(codes) | ((codes >= 0) & (codes < sizes) & (codes == np.floor(codes))))
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise ValueError(
                f"X must hold level codes 0..{sizes[j] - 1} or NaN in column {j}, "
                f"got {codes[i, j]} in row {i}"
            )
        first = np.asarray(self.level_start)[:self.n_features]
        missing = self.n_levels + np.arange(self.n_features)
        self.level = np.where(np.isnan(codes), missing, first + codes).astype(np.intc)

    def _grow(self, n_slots):
        cdef Py_ssize_t k
        n_old = self.n_slots
        self.log_count = np.zeros((self.n_levels + self.n_features, n_slots))
        self.log_total = np.zeros(n_slots)
        super()._grow(n_slots)
        for k in range(n_old):
            self._settle(k)

    def set_state(self, state, Py_ssize_t n_slots):
        cdef Py_ssize_t k
        super().set_state(state, n_slots)
        for k in range(n_slots):
            self._settle(k)

    # -- statistics ---------------------------------------------------------------------------

    cdef void _settle(self, Py_ssize_t k) noexcept nogil:
        """Bring all logs of slot k up to date."""
        cdef Py_ssize_t c, j
        for c in range(self.n_levels):
            self.log_count[c, k] = log(self.pseudo_count[c] + self.level_count[k, c])
        for j in range(self.n_features):
            c = self.n_levels + j
            self.log_count[c, k] = log(self.pseudo_count[c] + self.observed_count[k, j])
        self._settle_total(k)

    cdef void _settle_total(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t c
        self.log_total[k] = 0.0
        for c in range(self.n_levels, self.n_levels + self.n_features):
            self.log_total[k] += self.log_count[c, k]

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        self.n_members[k] = 0
        memset(&self.level_count[k, 0], 0, self.n_levels * sizeof(double))
        memset(&self.observed_count[k, 0], 0, self.n_features * sizeof(double))
        self._settle(k)

    cdef void copy(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
        cdef Py_ssize_t c
        self.n_members[target] = self.n_members[source]
        memcpy(&self.level_count[target, 0], &self.level_count[source, 0],
               self.n_levels * sizeof(double))
        memcpy(&self.observed_count[target, 0], &self.observed_count[source, 0],
               self.n_features * sizeof(double))
        for c in range(self.n_levels + self.n_features):
            self.log_count[c, target] = self.log_count[c, source]
        self.log_total[target] = self.log_total[source]

    cdef void _count(self, Py_ssize_t k, Py_ssize_t i, double change) noexcept nogil:
        """Add ``change`` to the counts of row i's observed cells."""
        cdef Py_ssize_t j, c
        cdef double total, last_total = 1.0, log_last = 0.0
        for j in range(self.n_features):
            c = self.level[i, j]
            if c >= self.n_levels:
                continue
            self.level_count[k, c] += change
            self.observed_count[k, j] += change
            self.log_count[c, k] = log(self.pseudo_count[c] + self.level_count[k, c])
            total = self.pseudo_count[self.n_levels + j] + self.observed_count[k, j]
            if total != last_total:  # often all columns have the same
                last_total, log_last = total, log(total)
            self.log_count[self.n_levels + j, k] = log_last
        self._settle_total(k)

    cdef void add(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        self._count(k, i, 1.0)
        self.n_members[k] += 1

    cdef int remove(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        self._count(k, i, -1.0)
        self.n_members[k] -= 1
        return 0

    cdef int merge(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t target) noexcept nogil:
        cdef Py_ssize_t c, j
        for c in range(self.n_levels):
            self.level_count[target, c] = self.level_count[a, c] + self.level_count[b, c]
        for j in range(self.n_features):
            self.observed_count[target, j] = self.observed_count[a, j] + self.observed_count[b, j]
        self.n_members[target] = self.n_members[a] + self.n_members[b]
        self._settle(target)
        return 0

    # -- probabilities ------------------------------------------------------------------------

    cdef double log_predictive(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t j
        cdef double total = -self.log_total[k]
        for j in range(self.n_features):
            total += self.log_count[self.level[i, j], k]
        return total

    cdef void log_predictive_all(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        """O(n d), additions alone."""
        cdef Py_ssize_t j, k
        for k in range(n):
            out[k] = -self.log_total[k]
        for j in range(self.n_features):
            accumulate(&self.log_count[self.level[i, j], 0], n, out)

    cdef void log_predictive_observed(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        self.log_predictive_all(n, i, out)

    cdef double log_predictive_own(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """From the counts less one, which are exact."""
        cdef Py_ssize_t j, c
        cdef double p, product = 1.0, total = 0.0
        for j in range(self.n_features):
            c = self.level[i, j]
            if c >= self.n_levels:
                continue
            p = self.pseudo_count[c] + (self.level_count[k, c] - 1.0)
            p /= self.pseudo_count[self.n_levels + j] + (self.observed_count[k, j] - 1.0)
            if p < SMALL:
                total += log(p)
                continue
            product *= p
            if product < SMALL:
                total += log(product)
                product = 1.0
        return total + log(product)

    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil:
        """sum_j [sum_l log [g_jl]_(n_jl)] - log [g_j]_(n_j), rising factorials: O(levels)."""
        cdef Py_ssize_t c, j
        cdef double total = 0.0
        for c in range(self.n_levels):
            if self.level_count[k, c] > 0.0:
                total += log_rising(self.pseudo_count[c], self.level_count[k, c])
        for j in range(self.n_features):
            total -= log_rising(self.pseudo_count[self.n_levels + j], self.observed_count[k, j])
        return total

    # -- missing cells ------------------------------------------------------------------------

    cdef void draw_missing(self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng) noexcept nogil:
        """Nothing to draw: missing cells are integrated out. Their levels' probabilities."""
        cdef Py_ssize_t t, j, c, v = self.value_start[i]
        for t in range(self.missing_start[i], self.missing_start[i + 1]):
            j = self.missing_feature[t]
            for c in range(self.level_start[j], self.level_start[j + 1]):
                self.missing_mean[v] = (
                    (self.pseudo_count[c] + self.level_count[k, c])
                    / (self.pseudo_count[self.n_levels + j] + self.observed_count[k, j])
                )
                self.missing_variance[v] = self.missing_mean[v] * (1.0 - self.missing_mean[v])
                v += 1

    # -- simulation ---------------------------------------------------------------------------

    cdef void _draw_column(self, Py_ssize_t k, Py_ssize_t j, bitgen_t* rng) noexcept nogil:
        """Draw log p_j from its posterior in slot k into ``vector``."""
        cdef Py_ssize_t first = self.level_start[j], n = self.level_start[j + 1] - first, c
        for c in range(n):
            self.vector_too[c] = self.pseudo_count[first + c] + self.level_count[k, first + c]
        draws.log_dirichlet(rng, &self.vector_too[0], n, &self.vector[0])

    cdef int redraw_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n, bitgen_t* rng
    ) noexcept nogil:
        cdef Py_ssize_t j, t, i, code, n_levels
        for j in range(self.n_features):
            n_levels = self.level_start[j + 1] - self.level_start[j]
            self._draw_column(k, j, rng)
            for t in range(n):
                i = row[t]
                if self.level[i, j] >= self.n_levels:
                    continue
                memcpy(&self.vector_too[0], &self.vector[0], n_levels * sizeof(double))
                if draws.categorical_from_logs(rng, &self.vector_too[0], n_levels, &code) != 0:
                    return 1
                self.X[i, j] = <double> code
                self.level[i, j] = <int> (self.level_start[j] + code)
        return 0

    # -- all rows at once, given parameters ---------------------------------------------------

    cdef int reserve_parameters(self, Py_ssize_t n_blocks) except -1 nogil:
        if n_blocks > self.log_prob.shape[1]:
            with gil:
                room = max(n_blocks, 2 * self.log_prob.shape[1])
                self.log_prob = np.zeros((self.n_levels + self.n_features, room))
        return 0

    cdef void draw_parameters(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil:
        """p_j | members ~ Dirichlet(g_j + n_j)"""
        cdef Py_ssize_t j, c, first
        for j in range(self.n_features):
            first = self.level_start[j]
            self._draw_column(k, j, rng)
            for c in range(first, self.level_start[j + 1]):
                self.log_prob[c, k] = self.vector[c - first]

    cdef void log_likelihoods(
        self, const Py_ssize_t* row, Py_ssize_t n_rows, Py_ssize_t n_blocks, double* out,
        double* work,
    ) noexcept nogil:
        """A missing cell adds the 0 that stands below the parameters."""
        cdef Py_ssize_t t, j
        for t in range(n_rows):
            for j in range(self.n_features):
                accumulate(
                    &self.log_prob[self.level[row[t], j], 0], n_blocks, out + t * n_blocks
                )

    cdef void draw_missing_given_parameters(
        self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng, double* work
    ) noexcept nogil:
        cdef Py_ssize_t t, j, c, v = self.value_start[i]
        for t in range(self.missing_start[i], self.missing_start[i + 1]):
            j = self.missing_feature[t]
            for c in range(self.level_start[j], self.level_start[j + 1]):
                self.missing_mean[v] = exp(self.log_prob[c, k])
                self.missing_variance[v] = self.missing_mean[v] * (1.0 - self.missing_mean[v])
                v += 1

    cdef Py_ssize_t sums_size(self) noexcept nogil:
        return self.n_levels

    cdef void sum_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n_rows, double* sums, double* work
    ) noexcept nogil:
        """The counts of the levels."""
        cdef Py_ssize_t t, j, c
        for t in range(n_rows):
            for j in range(self.n_features):
                c = self.level[row[t], j]
                if c < self.n_levels:
                    sums[c] += 1.0

    cdef int set_from_sums(
        self, Py_ssize_t k, Py_ssize_t n_rows, const double* sums
    ) noexcept nogil:
        cdef Py_ssize_t j, c
        self.n_members[k] = n_rows
        for j in range(self.n_features):
            self.observed_count[k, j] = 0.0
            for c in range(self.level_start[j], self.level_start[j + 1]):
                self.level_count[k, c] = sums[c]
                self.observed_count[k, j] += sums[c]
        self._settle(k)
        return 0


def _check_pseudo_counts(weights, n_features):
    if len(weights) != n_features:
        raise ValueError(
            f"pseudo_counts must have one array for each of {n_features} columns, "
            f"got {len(weights)}"
        )
    for j, g in enumerate(weights):
        if len(g) == 0 or not np.all((g > 0) & np.isfinite(g)):
            raise ValueError(f"pseudo_counts must be positive and finite, got {g} in column {j}")
