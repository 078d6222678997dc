"""Splits and merges of clusters that propose the scores of their rows anew as well.

Given its scores a cluster can hardly be cut, for they have been drawn around its mean. Here both
states of the move, two clusters and one, are launched without a look at the present labels and
scores of the rows concerned, as Jain & Neal (2007) do for models that are not conjugate. Labels,
then scores are drawn from the launched clusters' law; means, energies and noise are integrated out
of the densities that are compared.
"""

from libc.math cimport isfinite, log, sqrt

import numpy as np

from skbnp.infinite_factor_clusterer._row_law cimport RowLaw
from skbnp.infinite_factor_clusterer._sides cimport BOTH, Sides
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.infinite_factor_clusterer.moves.energies cimport Energies
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI, lgamma, log1p_exp


cdef enum:
    N_LAUNCH = 4            # scans of a launch

# Whose scores: those of the state, of a launch, of the proposal.
cdef enum:
    PRESENT = 0
    LAUNCHED = 1
    PROPOSED = 2


cdef class Launch:
    """The move. Launched clusters use the three slots after the last one; noise is theirs."""

    def __init__(
        self, State state, RowLaw row_law, Sides sides, Energies energies, bit_generator
    ):
        self._bit_generator = bit_generator
        self.rng = draws.borrow(bit_generator)
        self.state, self.row_law, self.sides, self.energies = state, row_law, sides, energies
        self.launched = self.draft = np.zeros((0, 0))
        self.log_density_of = np.zeros((2, state.n_samples))

    cdef int make_room(self) except -1 with gil:
        """Scratch of the present numbers of factors and clusters."""
        cdef Py_ssize_t k = max(1, self.state.n_factors)
        self.row_law.make_room()
        self.energies.make_room()
        if self.draft.shape[1] != k:
            self.launched, self.draft = np.zeros((2, self.state.n_samples, k))
        return 0

    cdef bint divide_or_unite(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil:
        """Divide the cluster of two rows, or unite their two; whether that was accepted.

        O((n_1 + n_2) (N + K) K). What it integrates out must be drawn anew afterwards.
        """
        cdef Py_ssize_t n, first, second
        cdef double divided, united, log_ratio
        cdef bint is_split
        first, second = self.state.label[i], self.state.label[j]
        is_split = first == second
        self.state.reserve_clusters(self.state.n_clusters + 3)
        self.make_room()
        # The anchors come first.
        self.sides.member[0], self.sides.member[1] = i, j
        n = self.sides.list_members(first, i, j, 2)
        if not is_split:
            n = self.sides.list_members(second, i, j, n)
        # One of the two launches ends in the proposal, the other says how likely it would have
        # ended in the present state.
        self.launch(n, True)
        divided = -self.place(n, not is_split, first)
        divided -= self.score(n, True, PROPOSED if is_split else PRESENT)
        self.sum_sides(n, True, PROPOSED if is_split else PRESENT)
        divided += self.sides.log_marginal_with(0, False) + self.sides.log_marginal_with(1, False)
        divided += lgamma(<double> self.sides.count[0]) + lgamma(<double> self.sides.count[1])
        self.launch(n, False)
        united = -self.score(n, False, PRESENT if is_split else PROPOSED)
        self.sum_sides(n, False, PRESENT if is_split else PROPOSED)
        united += self.sides.log_marginal_with(BOTH, False) + lgamma(<double> n)
        log_ratio = log(self.state.concentration) + divided - united
        if not is_split:
            log_ratio = -log_ratio
        if not isfinite(log_ratio):
            self.state.is_broken = True
            return False
        if not log(draws.uniform(self.rng)) < log_ratio:
            return False
        self.accept(n, is_split, second)
        return True

    cdef void accept(self, Py_ssize_t n, bint is_split, Py_ssize_t second) noexcept nogil:
        """Take over labels and scores of the proposal; ``place`` has left the sides."""
        cdef Py_ssize_t a, t, k, first
        for a in range(n):
            t = self.sides.member[a]
            self.sides.take_scores(t, &self.draft[t, 0])
            for k in range(self.state.n_factors):
                self.state.Y[t, k] = self.draft[t, k]
            for k in range(self.state.n_features):
                self.state.R[t, k] = self.sides.column[self.state.n_factors + k]
            if is_split and self.sides.side[t]:
                self.state.label[t] = self.state.n_clusters
        if is_split:
            self.state.n_clusters += 1
        else:
            first = self.state.label[self.sides.member[0]]
            self.state.join(min(first, second), max(first, second))
        self.state.sort_rows()

    # -- launches -------------------------------------------------------------------------------

    cdef void launch(self, Py_ssize_t n, bint divided) noexcept nogil:
        """Energies of the launched clusters, which depend on the members, X and chance alone.

        The sides of a divided launch start by distance to the anchors, or at random.
        """
        cdef Py_ssize_t a, t, j, _, i = self.sides.member[0], other = self.sides.member[1]
        cdef bint by_distance = divided and draws.uniform(self.rng) < 0.5
        cdef double nearer, x
        for a in range(n if divided else 0):
            t = self.sides.member[a]
            if a < 2:
                self.sides.side[t] = <unsigned char> a
            elif by_distance:
                nearer = 0.0
                for j in range(self.state.n_features):
                    x = self.state.X[t, j]
                    nearer += (x - self.state.X[i, j]) * (x - self.state.X[i, j])
                    nearer -= (x - self.state.X[other, j]) * (x - self.state.X[other, j])
                self.sides.side[t] = nearer > 0.0
            else:
                self.sides.side[t] = draws.uniform(self.rng) < 0.5
        for a in range(3):
            self.start_energies(self.state.n_clusters + a)
        self.score(n, divided, LAUNCHED)
        for _ in range(N_LAUNCH):
            self.draw_slots(n, divided)
            if divided:
                self.place(n, False, -1)
            self.score(n, divided, LAUNCHED)
        self.draw_slots(n, divided)

    cdef void start_energies(self, Py_ssize_t slot) noexcept nogil:
        """A wide cluster about 0."""
        cdef Py_ssize_t j, k
        for k in range(self.state.n_factors):
            self.state.M[slot, k] = 0.0
            self.state.V[slot, k] = (
                self.state.law.score_scale / self.state.law.score_precision
            )
        for j in range(self.state.n_features):
            self.state.S[slot, j], self.state.shift[slot, j] = self.state.rate[j], 0.0

    cdef void draw_slots(self, Py_ssize_t n, bint divided) noexcept nogil:
        """Energies and means of the launched clusters given the launched scores."""
        cdef int side
        self.sum_sides(n, divided, LAUNCHED)
        for side in range(0 if divided else BOTH, BOTH if divided else BOTH + 1):
            self.energies.draw_cluster(self.state.n_clusters + side, side)
            if divided:
                self.log_share[side] = log(<double> self.sides.count[side])

    # -- labels and scores ------------------------------------------------------------------------

    cdef double place(self, Py_ssize_t n, bint forced, Py_ssize_t first) noexcept nogil:
        """Draw the members' sides given the launched energies, scores integrated out.

        With ``forced`` they are those of the present labels, side 0 that of cluster ``first``.
        Returns the log probability of the sides.
        """
        cdef Py_ssize_t a, t, slot
        cdef double log_odds, log_prob = 0.0
        cdef int side
        for side in range(2):
            slot = self.state.n_clusters + side
            self.row_law.gather(slot, self.state.table.n_patterns)
            if not self.state.inflated:
                self.row_law.factorise(slot, 0)
            for a in range(2, n):
                t = self.sides.member[a]
                if self.state.inflated:
                    self.row_law.factorise(slot, t)
                self.row_law.picked[0] = t
                self.row_law.measure(1)
                self.log_density_of[side, t] = self.log_share[side] + self.row_law.log_norm - (
                    0.5 * self.state.row_precision[t] * self.row_law.distance[0]
                )
        for a in range(2, n):
            t = self.sides.member[a]
            log_odds = self.log_density_of[1, t] - self.log_density_of[0, t]
            if forced:
                side = self.state.label[t] != first
            else:
                side = log(draws.uniform(self.rng)) < -log1p_exp(-log_odds)
            self.sides.side[t] = <unsigned char> side
            log_prob -= log1p_exp(-log_odds if side else log_odds)
        return log_prob

    cdef double score(self, Py_ssize_t n, bint divided, int which) noexcept nogil:
        """Draw the members' scores given sides and launched energies, or take the present ones.

        Returns their log density.
        """
        cdef Py_ssize_t a, t, slot
        cdef double log_prob = 0.0
        cdef int side
        if self.state.n_factors == 0:
            return 0.0
        for side in range(0 if divided else BOTH, BOTH if divided else BOTH + 1):
            slot = self.state.n_clusters + side
            self.row_law.gather(slot, self.state.table.n_patterns)
            if not self.state.inflated:
                self.row_law.factorise(slot, 0)
            for a in range(n):
                t = self.sides.member[a]
                if side != BOTH and self.sides.side[t] != side:
                    continue
                if self.state.inflated:
                    self.row_law.factorise(slot, t)
                log_prob += self.score_row(slot, t, which)
        return log_prob

    cdef double score_row(self, Py_ssize_t slot, Py_ssize_t t, int which) noexcept nogil:
        """One row's scores under the present law: equation (F4.4). Returns their log density."""
        cdef Py_ssize_t j, k, K = self.state.n_factors
        cdef double root = sqrt(self.state.row_precision[t]), off, squares = 0.0
        cdef double* y = self.scores_of(t, which)
        cdef double* mean = &self.row_law.half[0, 0]
        for k in range(K):
            mean[k] = self.state.M[slot, k] * self.row_law.inverse[k]
        for j in range(self.state.n_features):
            off = self.state.X[t, j] - self.state.shift[slot, j]
            for k in range(K):
                mean[k] += off * self.row_law.loading[j, k]
        linalg.solve_transposed(&self.row_law.factor[0, 0], K, mean)
        if which != PRESENT:
            for k in range(K):
                off = draws.normal(self.rng)
                squares += off * off
                y[k] = mean[k] + off / root
            linalg.solve(&self.row_law.factor[0, 0], K, y)
        else:
            # U y - U^-T b, of which the mean is 0.
            for k in range(K):
                off = -mean[k]
                for j in range(k, K):
                    off += self.row_law.factor[k, j] * y[j]
                squares += self.state.row_precision[t] * off * off
        return 0.5 * linalg.log_det(&self.row_law.factor[0, 0], K) + K * log(root) - 0.5 * (
            squares + K * LOG_2_PI
        )

    cdef double* scores_of(self, Py_ssize_t t, int which) noexcept nogil:
        if which == PRESENT:
            return &self.state.Y[t, 0]
        return &self.launched[t, 0] if which == LAUNCHED else &self.draft[t, 0]

    cdef void sum_sides(self, Py_ssize_t n, bint divided, int which) noexcept nogil:
        """Sums of each side, or of all members together."""
        cdef Py_ssize_t a, t
        for a in range(3):
            self.sides.clear(<int> a)
        for a in range(n):
            t = self.sides.member[a]
            self.sides.take_scores(t, self.scores_of(t, which))
            self.sides.add_row(self.sides.side[t] if divided else BOTH, 1.0)
