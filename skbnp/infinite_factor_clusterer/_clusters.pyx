"""Clusters given scores and residuals: their means and energies, splits and merges."""

from libc.math cimport INFINITY, fmax, isfinite, log, sqrt

import numpy as np

from skbnp.infinite_factor_clusterer._factors cimport Factors
from skbnp.infinite_factor_clusterer._state cimport (
    ENERGIES, FREE_DIVISION, NO_PARTITION, OF_FACTORS, OF_FEATURES, SPLITS,
)
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log1p_exp
from skbnp.numerics.truncated cimport gamma_above

cdef enum:
    N_SCANS = 3             # of a division before the one that counts
    N_CANDIDATES = 20       # for a row's partner
    BOTH = 2                # the two sides together
    FEW = 8                 # factors between two looks at the size of a product


cdef class Clusters(Factors):
    """The moves that see y and R = X - Y W' and integrate m, v, s, o out, or draw them."""

    def __cinit__(self, *args, **kwargs):
        self.column_weight = self.column_sum = self.column_square = np.zeros((0, 0))
        self.column = self.column_factor = self.half_width = np.zeros(0)

    def __init__(self, X, prior, state, bit_generator, limit, int fault):
        super().__init__(X, prior, state, bit_generator, limit, fault)
        self.member = np.zeros(self.n_samples, dtype=np.intp)
        self.side = np.zeros(self.n_samples, dtype=np.uint8)

    cdef int _need_division(self) except -1 with gil:
        cdef Py_ssize_t k = self.n_factors, p = self.n_features, n = k + p
        if self.n_columns != n:
            self.n_columns = n
            self.column_weight, self.column_sum, self.column_square = np.zeros((3, 3, n))
            self.column, self.column_factor = np.zeros(n), np.ones(n)
        if self.half_width.shape[0] < self.cluster_room:
            self.half_width = np.zeros(self.cluster_room)
        return 0

    # -- sums of a side -------------------------------------------------------------------------

    cdef void _clear_side(self, int side) noexcept nogil:
        self.count[side] = 0
        self.column_weight[side, :] = 0.0
        self.column_sum[side, :] = 0.0
        self.column_square[side, :] = 0.0

    cdef void _take_row(self, Py_ssize_t t) noexcept nogil:
        """The row that the next calls speak of."""
        cdef Py_ssize_t i, K = self.n_factors
        cdef double weight = self.row_precision[t]
        for i in range(K):
            self.column[i] = self.Y[t, i]
            self.column_factor[i] = weight / self._inflation(t, i)
        for i in range(self.n_features):
            self.column[K + i] = self.R[t, i]
            self.column_factor[K + i] = weight

    cdef void _add_row(self, int side, double sign) noexcept nogil:
        """Add the row to the sums of a side, or take it away."""
        cdef Py_ssize_t i
        cdef double x, weight
        self.count[side] += <Py_ssize_t> sign
        for i in range(self.n_columns):
            x, weight = self.column[i], sign * self.column_factor[i]
            self.column_weight[side, i] += weight
            self.column_sum[side, i] += weight * x
            self.column_square[side, i] += weight * x * x

    cdef double _log_marginal_with(self, int side, bint with_row) noexcept nogil:
        """log density of a side's scores and residuals, its parameters integrated out.

        M of equation (F5.1), without what depends on the number of rows of both sides alone. O(N + K).
        """
        cdef Py_ssize_t i, n = self.count[side] + with_row, K = self.n_factors
        cdef double own = 1.0 if with_row else 0.0, weight, total, squares, scale, shape
        cdef double product = 1.0, widths = 1.0, log_scales = 0.0, log_widths = 0.0, out = 0.0
        if n == 0:
            return 0.0
        shape = self.score_shape + 0.5 * n
        for i in range(K):
            weight = own * self.column_factor[i]
            squares = self.column_square[side, i] + weight * self.column[i] * self.column[i]
            if self.means != OF_FEATURES:
                total = self.column_sum[side, i] + weight * self.column[i]
                weight += self.column_weight[side, i] + self.score_precision
                squares = fmax(squares - total * total / weight, 0.0)
                widths *= weight / self.score_precision
            product *= self.score_scale + 0.5 * squares
            if i % FEW == FEW - 1:
                log_scales += log(product)
                log_widths += log(widths)
                product = widths = 1.0
        out -= shape * (log_scales + log(product))
        out += K * (
            lgamma(shape) - lgamma(self.score_shape) + self.score_shape * log(self.score_scale)
        )
        if self.shared_noise and self.means == OF_FACTORS:
            # The residuals have the same law in every cluster.
            return out - 0.5 * (log_widths + log(widths))
        product, log_scales = 1.0, 0.0
        shape = self.noise_shape + 0.5 * n
        for i in range(K, self.n_columns):
            weight = own * self.column_factor[i]
            squares = self.column_square[side, i] + weight * self.column[i] * self.column[i]
            if self.means != OF_FACTORS:
                total = self.column_sum[side, i] + weight * self.column[i]
                weight += self.column_weight[side, i] + self.offset_precision
                squares = fmax(squares - total * total / weight, 0.0)
                widths *= weight / self.offset_precision
            if self.shared_noise:
                out -= 0.5 * squares / self.S[0, i - K]
            else:
                scale = self.rate[i - K]
                product *= 1.0 + 0.5 * squares / scale
            if i % FEW == FEW - 1:
                log_scales += log(product)
                log_widths += log(widths)
                product = widths = 1.0
        if not self.shared_noise:
            out -= shape * (log_scales + log(product)) + 0.5 * n * self.log_rates
            out += self.n_features * (lgamma(shape) - lgamma(self.noise_shape))
        return out - 0.5 * (log_widths + log(widths))

    # -- splits and merges ------------------------------------------------------------------------

    cdef int _update_partition(self, Py_ssize_t n_attempts) except -1 nogil:
        """So many splits or merges, given Y, W and R: Jain & Neal (2004), (F5.2).

        O((n_1 + n_2) (K + N)) an attempt. What they integrate out must be drawn anew afterwards.
        """
        cdef Py_ssize_t _, j
        if self.n_samples < 2:
            return 0
        self._need_division()
        self.log_rates = 0.0
        for j in range(self.n_features):
            self.log_rates += log(self.rate[j])
        for _ in range(n_attempts):
            if self.shared_noise or draws.uniform(self._rng) < 0.5:
                self._reserve_clusters(self.n_clusters + 1)
                self._split_or_merge()
            else:
                self._divide_or_unite()
        return 0

    cdef int _divide_or_unite(self) except -1 nogil:
        """A split or merge that proposes the scores of its rows as well."""
        return 0

    cdef void _split_or_merge(self) noexcept nogil:
        """Two rows at random: divide their cluster, or put their two clusters together."""
        cdef Py_ssize_t i = draws.below(self._rng, self.n_samples), j = self._partner(i)
        cdef Py_ssize_t n, a, g, t, first, second, _
        cdef double log_ratio, log_forward
        cdef bint is_split
        first, second = self.label[i], self.label[j]
        is_split = first == second
        for g in range(3):
            self._clear_side(<int> g)
        n = self._list_members(first, i, j, 0)
        if not is_split:
            n = self._list_members(second, i, j, n)
        # The launch: the two anchors, and everybody else at random.
        self._take_row(i)
        self._add_row(0, 1.0)
        self._add_row(BOTH, 1.0)
        self._take_row(j)
        self._add_row(1, 1.0)
        self._add_row(BOTH, 1.0)
        for a in range(n):
            t = self.member[a]
            self.side[t] = draws.uniform(self._rng) < 0.5
            self._take_row(t)
            self._add_row(self.side[t], 1.0)
            self._add_row(BOTH, 1.0)
        for g in range(3):
            self.log_marginal[g] = self._log_marginal_with(<int> g, False)
        for _ in range(N_SCANS):
            self._scan(n, False, first)
        log_forward = self._scan(n, not is_split, first)
        log_ratio = log(self.concentration) + self.log_marginal[0] + self.log_marginal[1]
        log_ratio -= self.log_marginal[BOTH]
        if self.fault != FREE_DIVISION:
            log_ratio -= log_forward
        if self.fault != NO_PARTITION:
            log_ratio += lgamma(<double> self.count[0]) + lgamma(<double> self.count[1])
            log_ratio -= lgamma(<double> self.count[BOTH])
        if not isfinite(log_ratio):
            self._break(SPLITS)
            return
        if is_split:
            self.n_splits_tried += 1
            if not log(draws.uniform(self._rng)) < log_ratio:
                return
            self.n_splits += 1
            self.label[j] = self.n_clusters
            for a in range(n):
                if self.side[self.member[a]]:
                    self.label[self.member[a]] = self.n_clusters
            self.n_clusters += 1
        else:
            self.n_merges_tried += 1
            if not log(draws.uniform(self._rng)) < -log_ratio:
                return
            self.n_merges += 1
            self._join(min(first, second), max(first, second))
        self._sort_rows()

    cdef Py_ssize_t _partner(self, Py_ssize_t i) noexcept nogil:
        """Another row: any, or the nearest of a few, which are often of clusters side by side.

        No choice depends on the partition.
        """
        cdef Py_ssize_t j, _, t, best = -1
        cdef double distance, nearest = INFINITY, off
        for _ in range(1 if draws.uniform(self._rng) < 0.5 else N_CANDIDATES):
            t = draws.below(self._rng, self.n_samples - 1)
            t += t >= i
            distance = 0.0
            for j in range(self.n_features):
                off = self.X[t, j] - self.X[i, j]
                distance += off * off
            # Any row is a partner where no distance is a number.
            if best < 0 or distance < nearest:
                best, nearest = t, distance
        return best

    cdef Py_ssize_t _list_members(
        self, Py_ssize_t g, Py_ssize_t i, Py_ssize_t j, Py_ssize_t n
    ) noexcept nogil:
        """Add the rows of a cluster but i and j to the n members listed so far."""
        cdef Py_ssize_t a, t
        for a in range(self.cluster_start[g], self.cluster_start[g + 1]):
            t = self.by_cluster[a]
            if t != i and t != j:
                self.member[n] = t
                n += 1
        return n

    cdef void _join(self, Py_ssize_t low, Py_ssize_t high) noexcept nogil:
        """Rows of ``high`` go to ``low``; the last cluster takes the slot that comes free."""
        cdef Py_ssize_t t, last = self.n_clusters - 1
        for t in range(self.n_samples):
            if self.label[t] == high:
                self.label[t] = low
            elif self.label[t] == last:
                self.label[t] = high
        self.n_clusters = last

    cdef double _scan(self, Py_ssize_t n, bint forced, Py_ssize_t first) noexcept nogil:
        """Gibbs over the members' sides, or with ``forced`` back to how they are divided now.

        Returns the log probability of what has been drawn. ``first`` is the cluster of side 0.
        """
        cdef Py_ssize_t a, t
        cdef int s, old
        cdef double log_prob = 0.0, log_odds, plain
        cdef double with_row[2]
        for a in range(n):
            t = self.member[a]
            self._take_row(t)
            old = self.side[t]
            self._add_row(old, -1.0)
            plain = self._log_marginal_with(old, False)
            with_row[old] = self.log_marginal[old]
            with_row[1 - old] = self._log_marginal_with(1 - old, True)
            self.log_marginal[old] = plain
            log_odds = log(<double> self.count[1]) - log(<double> self.count[0])
            log_odds += with_row[1] - self.log_marginal[1] - with_row[0] + self.log_marginal[0]
            if forced:
                s = self.label[t] != first
            else:
                s = log(draws.uniform(self._rng)) < -log1p_exp(-log_odds)
            log_prob -= log1p_exp(-log_odds if s else log_odds)
            self.side[t] = s
            self._add_row(s, 1.0)
            self.log_marginal[s] = with_row[s]
        return log_prob

    # -- means, energies, noise -----------------------------------------------------------------

    cdef int _update_energies(self) except -1 nogil:
        """v, m, s, o of every cluster given scores and residuals, then h: equations (F4.5) and (F4.6).

        O(T (N + K)).
        """
        cdef Py_ssize_t g, a
        self._need_division()
        self._clear_side(1)
        for g in range(self.n_clusters):
            self._clear_side(0)
            for a in range(self.cluster_start[g], self.cluster_start[g + 1]):
                self._take_row(self.by_cluster[a])
                self._add_row(0, 1.0)
            self._draw_energies(g, 0)
        self._draw_noises()
        return 0

    cdef void _draw_energies(self, Py_ssize_t g, int side) noexcept nogil:
        """Means and energies of the factors in a cluster, given the sums of a side.

        Its noise too, unless that is shared: then side 1 gathers what all clusters say of it.
        """
        cdef Py_ssize_t i, j, K = self.n_factors
        cdef double n = self.count[side], total, weight, squares
        for i in range(K):
            total, squares = self.column_sum[side, i], self.column_square[side, i]
            weight = self.score_precision + self.column_weight[side, i]
            if self.means != OF_FEATURES:
                squares = fmax(squares - total * total / weight, 0.0)
            self.V[g, i] = self._inverse_gamma(
                self.score_shape + 0.5 * n, self.score_scale + 0.5 * squares
            )
            self.M[g, i] = 0.0
            if self.means != OF_FEATURES:
                self.M[g, i] = total / weight + (
                    draws.normal(self._rng) * sqrt(self.V[g, i] / weight)
                )
            if not (isfinite(self.V[g, i]) and isfinite(self.M[g, i])):
                self._break(ENERGIES)
        for j in range(self.n_features):
            i = K + j
            total, squares = self.column_sum[side, i], self.column_square[side, i]
            weight = self.offset_precision + self.column_weight[side, i]
            if self.means != OF_FACTORS:
                squares = fmax(squares - total * total / weight, 0.0)
            if self.shared_noise:
                # The offset waits for the noise: its mean is kept where it will be.
                self.column_square[1, i] += squares
                self.shift[g, j] = total / weight if self.means != OF_FACTORS else 0.0
                self.half_width[g] = 1.0 / sqrt(weight)
                continue
            self.S[g, j] = self._inverse_gamma(
                self.noise_shape + 0.5 * n, self.rate[j] + 0.5 * squares
            )
            if self.means != OF_FACTORS:
                self.shift[g, j] = total / weight + (
                    draws.normal(self._rng) * sqrt(self.S[g, j] / weight)
                )

    cdef void _draw_noises(self) noexcept nogil:
        """Shared noise and the offsets that waited for it; h; the precision of offsets."""
        cdef Py_ssize_t g, j, n = 1 if self.shared_noise else self.n_clusters
        cdef double inverse, squares = 0.0
        for j in range(self.n_features):
            if self.shared_noise:
                self.S[0, j] = self._inverse_gamma(
                    self.noise_shape + 0.5 * self.n_samples,
                    self.rate[j] + 0.5 * self.column_square[1, self.n_factors + j],
                )
                for g in range(self.n_clusters if self.means != OF_FACTORS else 0):
                    self.shift[g, j] += (
                        self.half_width[g] * sqrt(self.S[0, j]) * draws.normal(self._rng)
                    )
            inverse = 0.0
            for g in range(n):
                inverse += 1.0 / self.S[g, j]
            self.rate[j] = gamma_above(
                self._rng, self.rate_law[0] + n * self.noise_shape, self.rate_law[1] + inverse,
                self.smallest_rate,
            )
            for g in range(self.n_clusters):
                squares += self.shift[g, j] * self.shift[g, j] / self._noise(g)[j]
        if self.means != OF_FACTORS:
            self.offset_precision = draws.draw_gamma(
                self._rng, self.offset_law[0] + 0.5 * self.n_clusters * self.n_features,
                self.offset_law[1] + 0.5 * squares,
            )
