"""Splits and merges of clusters that propose the scores of their rows anew as well.

Given its scores a cluster can hardly be cut, for they have been drawn around its mean. Here both
states of the move, two clusters and one, are launched without a look at the present labels and
scores of the rows concerned, as Jain & Neal (2007) do for models that are not conjugate. Labels,
then scores are drawn from the launched clusters' law; means, energies and noise are integrated out
of the densities that are compared.
"""

from libc.math cimport isfinite, log, sqrt

import numpy as np

from skbnp.infinite_factor_clusterer._state cimport FREE_SCORES, SPLITS
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log1p_exp

cdef double LOG_2_PI = 1.8378770664093454836

cdef enum:
    N_LAUNCH = 4            # scans of a launch
    BOTH = 2                # the two sides together

# Whose scores: those of the state, of a launch, of the proposal.
cdef enum:
    PRESENT = 0
    LAUNCHED = 1
    PROPOSED = 2


cdef class Divisions(Clusters):
    """The move. Launched clusters use the three slots after the last one; noise is theirs."""

    def __cinit__(self, *args, **kwargs):
        self.launched = self.draft = np.zeros((0, 0))

    def __init__(self, X, prior, state, bit_generator, limit, int fault):
        super().__init__(X, prior, state, bit_generator, limit, fault)
        self.log_density_of = np.zeros((2, self.n_samples))

    cdef int _need_drafts(self) except -1 with gil:
        self._need_rows()
        self._need_division()
        if self.draft.shape[1] != max(1, self.n_factors):
            self.launched, self.draft = np.zeros((2, self.n_samples, max(1, self.n_factors)))
        return 0

    cdef int _divide_or_unite(self) except -1 nogil:
        """Two rows at random: divide their cluster, or unite their two clusters.

        O((n_1 + n_2) (N + K) K). What it integrates out must be drawn anew afterwards.
        """
        cdef Py_ssize_t i = draws.below(self._rng, self.n_samples), j = self._partner(i)
        cdef Py_ssize_t n, first, second
        cdef double divided, united, log_ratio
        cdef bint is_split
        first, second = self.label[i], self.label[j]
        is_split = first == second
        self._reserve_clusters(self.n_clusters + 3)
        self._need_drafts()
        # The anchors come first.
        self.member[0], self.member[1] = i, j
        n = self._list_members(first, i, j, 2)
        if not is_split:
            n = self._list_members(second, i, j, n)
        # One of the two launches ends in the proposal, the other says how likely it would have
        # ended in the present state.
        self._launch(n, True)
        divided = -self._place(n, not is_split, first)
        divided -= self._score(n, True, PROPOSED if is_split else PRESENT)
        self._sum_sides(n, True, PROPOSED if is_split else PRESENT)
        divided += self._log_marginal_with(0, False) + self._log_marginal_with(1, False)
        divided += lgamma(<double> self.count[0]) + lgamma(<double> self.count[1])
        self._launch(n, False)
        united = -self._score(n, False, PRESENT if is_split else PROPOSED)
        self._sum_sides(n, False, PRESENT if is_split else PROPOSED)
        united += self._log_marginal_with(BOTH, False) + lgamma(<double> n)
        log_ratio = log(self.concentration) + divided - united
        if is_split:
            self.n_divisions_tried += 1
        else:
            self.n_unions_tried += 1
            log_ratio = -log_ratio
        if not isfinite(log_ratio):
            self._break(SPLITS)
        elif log(draws.uniform(self._rng)) < log_ratio:
            self._accept_division(n, is_split, second)
        return 0

    cdef void _accept_division(self, Py_ssize_t n, bint is_split, Py_ssize_t second) noexcept nogil:
        """Take over labels and scores of the proposal; ``_place`` has left the sides."""
        cdef Py_ssize_t a, t, k, first
        for a in range(n):
            t = self.member[a]
            self._take_scores(t, &self.draft[t, 0])
            for k in range(self.n_factors):
                self.Y[t, k] = self.draft[t, k]
            for k in range(self.n_features):
                self.R[t, k] = self.column[self.n_factors + k]
            if is_split and self.side[t]:
                self.label[t] = self.n_clusters
        if is_split:
            self.n_divisions += 1
            self.n_clusters += 1
        else:
            self.n_unions += 1
            first = self.label[self.member[0]]
            self._join(min(first, second), max(first, second))
        self._sort_rows()

    # -- launches -------------------------------------------------------------------------------

    cdef void _launch(self, Py_ssize_t n, bint divided) noexcept nogil:
        """Energies of the launched clusters, which depend on the members, X and chance alone.

        The sides of a divided launch start by distance to the anchors, or at random.
        """
        cdef Py_ssize_t a, t, j, _, i = self.member[0], other = self.member[1]
        cdef bint by_distance = divided and draws.uniform(self._rng) < 0.5
        cdef double nearer, x
        for a in range(n if divided else 0):
            t = self.member[a]
            if a < 2:
                self.side[t] = <unsigned char> a
            elif by_distance:
                nearer = 0.0
                for j in range(self.n_features):
                    x = self.X[t, j]
                    nearer += (x - self.X[i, j]) * (x - self.X[i, j])
                    nearer -= (x - self.X[other, j]) * (x - self.X[other, j])
                self.side[t] = nearer > 0.0
            else:
                self.side[t] = draws.uniform(self._rng) < 0.5
        for a in range(3):
            self._start_energies(self.n_clusters + a)
        self._score(n, divided, LAUNCHED)
        for _ in range(N_LAUNCH):
            self._draw_slots(n, divided)
            if divided:
                self._place(n, False, -1)
            self._score(n, divided, LAUNCHED)
        self._draw_slots(n, divided)

    cdef void _start_energies(self, Py_ssize_t slot) noexcept nogil:
        """A wide cluster about 0."""
        cdef Py_ssize_t j, k
        for k in range(self.n_factors):
            self.M[slot, k], self.V[slot, k] = 0.0, self.score_scale / self.score_precision
        for j in range(self.n_features):
            self.S[slot, j], self.shift[slot, j] = self.rate[j], 0.0

    cdef void _draw_slots(self, Py_ssize_t n, bint divided) noexcept nogil:
        """Energies and means of the launched clusters given the launched scores."""
        cdef int side
        self._sum_sides(n, divided, LAUNCHED)
        for side in range(0 if divided else BOTH, BOTH if divided else BOTH + 1):
            self._draw_energies(self.n_clusters + side, side)
            if divided:
                self.log_share[side] = log(<double> self.count[side])

    # -- labels and scores ------------------------------------------------------------------------

    cdef double _place(self, Py_ssize_t n, bint forced, Py_ssize_t first) noexcept nogil:
        """Draw the members' sides given the launched energies, scores integrated out.

        With ``forced`` they are those of the present labels, side 0 that of cluster ``first``.
        Returns the log probability of the sides.
        """
        cdef Py_ssize_t a, t, slot
        cdef double log_odds, log_prob = 0.0
        cdef int side
        for side in range(2):
            slot = self.n_clusters + side
            self._gather(slot, self.n_patterns)
            if not self.inflated:
                self._factorise(slot, 0)
            for a in range(2, n):
                t = self.member[a]
                if self.inflated:
                    self._factorise(slot, t)
                self.picked[0] = t
                self._measure(slot, 1)
                self.log_density_of[side, t] = self.log_share[side] + self.law_norm - (
                    0.5 * self.row_precision[t] * self.distance[0]
                )
        for a in range(2, n):
            t = self.member[a]
            log_odds = self.log_density_of[1, t] - self.log_density_of[0, t]
            if forced:
                side = self.label[t] != first
            else:
                side = log(draws.uniform(self._rng)) < -log1p_exp(-log_odds)
            self.side[t] = <unsigned char> side
            log_prob -= log1p_exp(-log_odds if side else log_odds)
        return log_prob

    cdef double _score(self, Py_ssize_t n, bint divided, int which) noexcept nogil:
        """Draw the members' scores given sides and launched energies, or take the present ones.

        Returns their log density.
        """
        cdef Py_ssize_t a, t, slot
        cdef double log_prob = 0.0
        cdef int side
        if self.n_factors == 0:
            return 0.0
        for side in range(0 if divided else BOTH, BOTH if divided else BOTH + 1):
            slot = self.n_clusters + side
            self._gather(slot, self.n_patterns)
            if not self.inflated:
                self._factorise(slot, 0)
            for a in range(n):
                t = self.member[a]
                if side != BOTH and self.side[t] != side:
                    continue
                if self.inflated:
                    self._factorise(slot, t)
                log_prob += self._score_row(slot, t, which)
        return 0.0 if self.fault == FREE_SCORES else log_prob

    cdef double _score_row(self, Py_ssize_t slot, Py_ssize_t t, int which) noexcept nogil:
        """One row's scores under the present law: equation (F4.4). Returns their log density."""
        cdef Py_ssize_t j, k, K = self.n_factors
        cdef double root = sqrt(self.row_precision[t]), off, squares = 0.0
        cdef double* y = self._scores_of(t, which)
        cdef double* mean = &self.half[0, 0]
        for k in range(K):
            mean[k] = self.M[slot, k] * self.law_inverse[k]
        for j in range(self.n_features):
            off = self.X[t, j] - self.shift[slot, j]
            for k in range(K):
                mean[k] += off * self.law_loading[j, k]
        linalg.solve_transposed(&self.law_factor[0, 0], K, mean)
        if which != PRESENT:
            for k in range(K):
                off = draws.normal(self._rng)
                squares += off * off
                y[k] = mean[k] + off / root
            linalg.solve(&self.law_factor[0, 0], K, y)
        else:
            # U y - U^-T b, of which the mean is 0.
            for k in range(K):
                off = -mean[k]
                for j in range(k, K):
                    off += self.law_factor[k, j] * y[j]
                squares += self.row_precision[t] * off * off
        return 0.5 * linalg.log_det(&self.law_factor[0, 0], K) + K * log(root) - 0.5 * (
            squares + K * LOG_2_PI
        )

    # -- sums -------------------------------------------------------------------------------------

    cdef double* _scores_of(self, Py_ssize_t t, int which) noexcept nogil:
        if which == PRESENT:
            return &self.Y[t, 0]
        return &self.launched[t, 0] if which == LAUNCHED else &self.draft[t, 0]

    cdef void _take_scores(self, Py_ssize_t t, const double* y) noexcept nogil:
        """The row that ``_add_row`` speaks of, with these scores."""
        cdef Py_ssize_t j, k, K = self.n_factors
        cdef double weight = self.row_precision[t], rest
        for k in range(K):
            self.column[k] = y[k]
            self.column_factor[k] = weight / self._inflation(t, k)
        for j in range(self.n_features):
            rest = self.X[t, j]
            for k in range(K):
                rest -= self.W[j, k] * y[k]
            self.column[K + j] = rest
            self.column_factor[K + j] = weight

    cdef void _sum_sides(self, Py_ssize_t n, bint divided, int which) noexcept nogil:
        """Sums of each side, or of all members together."""
        cdef Py_ssize_t a, t
        for a in range(3):
            self._clear_side(<int> a)
        for a in range(n):
            t = self.member[a]
            self._take_scores(t, self._scores_of(t, which))
            self._add_row(self.side[t] if divided else BOTH, 1.0)
