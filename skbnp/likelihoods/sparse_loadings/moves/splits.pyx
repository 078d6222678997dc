"""Splits and merges of factors: mathematics/deep_scale_model, section 5."""

from libc.math cimport ldexp, log, log1p
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.sparse_loadings.cells cimport accepts, log_add
from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport OF_MERGES, OF_SPLITS, LayerMove
from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer
from skbnp.likelihoods.sparse_loadings.score_grid cimport ScoreGrid
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2


cdef class Splits(LayerMove):
    """A fixed number of attempts. O(3 T m n_nodes) for m rows of the factors concerned."""

    def __init__(self, ScaleLayer layer, ScoreGrid grid, Py_ssize_t n_attempts):
        super().__init__(layer)
        self.grid, self.n_attempts = grid, n_attempts
        self.new_scores, self.other_scores = np.zeros((2, max(1, layer.n_samples)))

    cdef int run(self, bitgen_t* rng) except -1 nogil:
        cdef Py_ssize_t _
        self.grid.make_room()
        for _ in range(self.n_attempts):
            if draws.uniform(rng) < 0.5:
                self.try_merge(rng)
            else:
                self.try_split(rng)
        return 0

    cdef int try_merge(self, bitgen_t* rng) except -1 nogil:
        """Join two factors without a row in common; one of them keeps its row above.

        The row above of the other then goes as in a death, and a split draws it as in a birth, so
        that the law of rows cancels. New signs of a column are half of its proposals both ways.
        """
        cdef Py_ssize_t n_pairs = self.count_pairs(), k = 0, j = 0, n, t, i, m1, m, pick
        cdef Py_ssize_t n_splittable
        cdef double sign, log_ratio, s1, s2
        self.proposed[OF_MERGES] += 1
        if n_pairs == 0:
            return 0
        pick = draws.below(rng, n_pairs)
        for i in range(self.layer.n_factors * self.layer.n_factors):
            k, j = i // self.layer.n_factors, i % self.layer.n_factors
            if k < j and self.are_disjoint(k, j):
                if pick == 0:
                    break
                pick -= 1
        if draws.uniform(rng) < 0.5:
            k, j = j, k
        sign = 1.0 if draws.uniform(rng) < 0.5 else -1.0
        s1, s2 = self.layer.column_energy(k), self.layer.column_energy(j)
        m1, m = self.layer.n_links[k], self.layer.n_links[k] + self.layer.n_links[j]
        self.grid.part[:] = 0
        self.grid.gather_rows(k, 0, 0)
        self.grid.gather_rows(j, m1, 0)
        log_ratio = -self.grid.evidence(rng, 0, m1, k, &self.layer.Y[k, 0], False)
        log_ratio -= self.grid.evidence(rng, m1, m, j, &self.layer.Y[j, 0], False)
        for i in range(m1, m):
            self.grid.row_weight[i] *= sign
        log_ratio += self.grid.evidence(rng, 0, m, k, &self.new_scores[0], True)
        n_splittable = self.count_splittable() + 1
        n_splittable -= (m1 > 1) + (m - m1 > 1)
        log_ratio += self.log_merge(m1, m - m1, s1, s2)
        log_ratio += self.log_choices(n_pairs, n_splittable)
        if not accepts(rng, log_ratio):
            return 0
        self.accepted[OF_MERGES] += 1
        for i in range(m):
            n = self.grid.row[i]
            self.layer.W[n, j] = 0.0
            self.layer.W[n, k] = self.grid.row_weight[i]
            for t in range(self.layer.n_samples):
                self.layer.A[n, t] = (
                    self.grid.base[i, t] + self.grid.row_weight[i] * self.new_scores[t]
                )
        self.layer.n_links[k] = m
        for t in range(self.layer.n_samples):
            self.layer.Y[k, t] = self.new_scores[t]
        self.layer.remove_factor(j)
        return 0

    cdef int try_split(self, bitgen_t* rng) except -1 nogil:
        """Give some of a factor's rows to a new one: the inverse of ``try_merge``."""
        cdef Py_ssize_t n_splittable = self.count_splittable(), K = self.layer.n_factors, k = 0, t
        cdef Py_ssize_t i, m, m1, pick, n_pairs
        cdef double log_ratio, weight, s1 = 0.0, s2 = 0.0
        self.proposed[OF_SPLITS] += 1
        if n_splittable == 0:
            return 0
        pick = draws.below(rng, n_splittable)
        for k in range(K):
            if self.layer.n_links[k] > 1:
                if pick == 0:
                    break
                pick -= 1
        self.layer.reserve(self.layer.n_below, K + 1)
        if self.layer.is_live:
            self.layer.above.draw_row(rng)
        self.draw_parts(rng, k)
        m1 = self.grid.gather_rows(k, 0, 0)
        m = self.grid.gather_rows(k, m1, 1)
        log_ratio = -self.grid.evidence(rng, 0, m, k, &self.layer.Y[k, 0], False)
        log_ratio += self.grid.evidence(rng, 0, m1, k, &self.new_scores[0], True)
        log_ratio += self.grid.evidence(rng, m1, m, K, &self.other_scores[0], True)
        for i in range(self.layer.n_below):
            self.layer.W[i, K] = 0.0
        for i in range(m):
            weight = self.grid.row_weight[i]
            if i < m1:
                s1 += weight * weight
            else:
                s2 += weight * weight
                self.layer.W[self.grid.row[i], K] = weight
                self.layer.W[self.grid.row[i], k] = 0.0
        self.layer.n_links[k], self.layer.n_links[K] = m1, m - m1
        self.layer.n_factors = K + 1
        n_pairs = self.count_pairs()
        log_ratio -= self.log_merge(m1, m - m1, s1, s2)
        log_ratio -= self.log_choices(n_pairs, n_splittable)
        if not accepts(rng, log_ratio):
            for i in range(m1, m):
                self.layer.W[self.grid.row[i], k] = self.grid.row_weight[i]
                self.layer.W[self.grid.row[i], K] = 0.0
            self.layer.n_links[k] = m
            self.layer.n_factors = K
            if self.layer.is_live:
                self.layer.above.drop_last_row()
            return 0
        self.accepted[OF_SPLITS] += 1
        for t in range(self.layer.n_samples):
            self.layer.Y[k, t] = self.new_scores[t]
            self.layer.Y[K, t] = self.other_scores[t]
        for i in range(m):
            self.layer.refresh_row(self.grid.row[i])
        return 0

    cdef double log_choices(self, Py_ssize_t n_pairs, Py_ssize_t n_splittable) noexcept nogil:
        """Of a merge: one of so many pairs, against one of so many columns to split."""
        return log(<double> n_pairs) - log(<double> n_splittable)

    cdef double log_merge(
        self, Py_ssize_t m1, Py_ssize_t m2, double s1, double s2
    ) noexcept nogil:
        """Log ratio of priors and partitions of a merge: all but scores and choices of columns."""
        cdef Py_ssize_t m = m1 + m2
        # Half of the partitions are any of 2^(m - 1) - 1, half peel one row off.
        cdef double log_parts = -(m - 1) * LOG_2 - log1p(-ldexp(1.0, <int> (1 - m)))
        if m > 2:
            log_parts -= LOG_2
            if m1 == 1 or m2 == 1:
                log_parts = log_add(log_parts, -log(2.0 * m))
        return (
            self.layer.log_rate(m) - self.layer.log_rate(m1) - self.layer.log_rate(m2)
            + self.layer.log_column(m, s1 + s2)
            - self.layer.log_column(m1, s1) - self.layer.log_column(m2, s2)
            + log_parts
        )

    cdef void draw_parts(self, bitgen_t* rng, Py_ssize_t k) noexcept nogil:
        """Two parts of factor k's rows, neither empty, in ``part``; which keeps it is a coin's."""
        cdef Py_ssize_t n, m = self.layer.n_links[k], i = 0, n_first = 0, peeled = -1
        cdef int first = draws.uniform(rng) < 0.5
        if draws.uniform(rng) < 0.5:
            peeled = draws.below(rng, m)
        while n_first == 0:
            i = 0
            for n in range(self.layer.n_below):
                self.grid.part[n] = 1 - first
                if self.layer.W[n, k] != 0.0:
                    # Of any two parts the last row is in one; not all others may be.
                    if i == peeled if peeled >= 0 else i < m - 1 and draws.uniform(rng) < 0.5:
                        self.grid.part[n] = first
                        n_first += 1
                    i += 1

    cdef bint are_disjoint(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t n
        for n in range(self.layer.n_below):
            if self.layer.W[n, k] != 0.0 and self.layer.W[n, j] != 0.0:
                return False
        return True

    cdef Py_ssize_t count_pairs(self) noexcept nogil:
        """Pairs of factors without a row in common."""
        cdef Py_ssize_t k, j, total = 0
        for k in range(self.layer.n_factors):
            for j in range(k + 1, self.layer.n_factors):
                total += self.are_disjoint(k, j)
        return total

    cdef Py_ssize_t count_splittable(self) noexcept nogil:
        cdef Py_ssize_t k, total = 0
        for k in range(self.layer.n_factors):
            total += self.layer.n_links[k] > 1
        return total
