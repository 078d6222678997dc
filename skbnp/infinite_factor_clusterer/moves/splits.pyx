"""Splits and merges of clusters: given scores, or with new ones for their rows."""

from libc.math cimport INFINITY, isfinite, log
from numpy.random cimport bitgen_t

from skbnp.infinite_factor_clusterer._sides cimport BOTH, Sides
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.infinite_factor_clusterer.moves._launch cimport Launch
from skbnp.mcmc.chain cimport Move
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log1p_exp

cdef enum:
    N_SCANS = 3             # of a division before the one that counts
    N_CANDIDATES = 20       # for a row's partner

cdef enum:
    # Places of the counts, as in ``Splits.COUNTS``.
    OF_SPLITS = 0
    OF_MERGES = 1
    OF_DIVISIONS = 2
    OF_UNIONS = 3


cdef class Splits(Move):
    """z | y, or z and y; m, v, s, o integrated out, which must be drawn anew afterwards."""

    NAME = "splits"
    COUNTS = ("splits", "merges", "divisions", "unions")

    def __init__(self, State state, Sides sides, Launch launch, n_attempts, bit_generator):
        super().__init__(bit_generator)
        self.state, self.sides, self.launch = state, sides, launch
        self.n_attempts = n_attempts

    cpdef int run(self) except -1:
        with nogil:
            self.state.need_residuals()
            self.update()
        return self.state.outcome()

    cdef int update(self) except -1 nogil:
        """A fixed number of attempts: Jain & Neal (2004), (F5.2), or with new scores, (F5.3).

        O((n_1 + n_2) (K + N)) an attempt, or O((n_1 + n_2) (N + K) K).
        """
        cdef Py_ssize_t _
        if self.state.n_samples < 2:
            return 0
        self.sides.make_room()
        self.sides.sum_rates()
        for _ in range(self.n_attempts):
            if self.state.law.shared_noise or draws.uniform(self.rng) < 0.5:
                self.state.reserve_clusters(self.state.n_clusters + 1)
                self.split_or_merge()
            else:
                self.divide_or_unite()
        return 0

    cdef void split_or_merge(self) noexcept nogil:
        """Two rows at random: divide their cluster, or put their two clusters together."""
        cdef Py_ssize_t i = draws.below(self.rng, self.state.n_samples)
        cdef Py_ssize_t j = partner(self.state, self.rng, i)
        cdef Py_ssize_t n, a, g, t, first, second, _
        cdef double log_ratio, log_forward
        cdef bint is_split
        first, second = self.state.label[i], self.state.label[j]
        is_split = first == second
        for g in range(3):
            self.sides.clear(<int> g)
        n = self.sides.list_members(first, i, j, 0)
        if not is_split:
            n = self.sides.list_members(second, i, j, n)
        # The launch: the two anchors, and everybody else at random.
        self.sides.take_row(i)
        self.sides.add_row(0, 1.0)
        self.sides.add_row(BOTH, 1.0)
        self.sides.take_row(j)
        self.sides.add_row(1, 1.0)
        self.sides.add_row(BOTH, 1.0)
        for a in range(n):
            t = self.sides.member[a]
            self.sides.side[t] = draws.uniform(self.rng) < 0.5
            self.sides.take_row(t)
            self.sides.add_row(self.sides.side[t], 1.0)
            self.sides.add_row(BOTH, 1.0)
        for g in range(3):
            self.sides.log_marginal[g] = self.sides.log_marginal_with(<int> g, False)
        for _ in range(N_SCANS):
            self.scan(n, False, first)
        log_forward = self.scan(n, not is_split, first)
        log_ratio = (
            log(self.state.concentration) + self.sides.log_marginal[0] + self.sides.log_marginal[1]
        )
        log_ratio -= self.sides.log_marginal[BOTH]
        log_ratio -= log_forward
        log_ratio += self.log_partition()
        if not isfinite(log_ratio):
            self.state.is_broken = True
            return
        if is_split:
            self.proposed[OF_SPLITS] += 1
            if not log(draws.uniform(self.rng)) < log_ratio:
                return
            self.accepted[OF_SPLITS] += 1
            self.state.label[j] = self.state.n_clusters
            for a in range(n):
                if self.sides.side[self.sides.member[a]]:
                    self.state.label[self.sides.member[a]] = self.state.n_clusters
            self.state.n_clusters += 1
        else:
            self.proposed[OF_MERGES] += 1
            if not log(draws.uniform(self.rng)) < -log_ratio:
                return
            self.accepted[OF_MERGES] += 1
            self.state.join(min(first, second), max(first, second))
        self.state.sort_rows()

    cdef double log_partition(self) noexcept nogil:
        """What the sizes of the sides give in the Chinese restaurant process."""
        cdef double first = lgamma(<double> self.sides.count[0])
        cdef double second = lgamma(<double> self.sides.count[1])
        return first + second - lgamma(<double> self.sides.count[BOTH])

    cdef double scan(self, Py_ssize_t n, bint forced, Py_ssize_t first) noexcept nogil:
        """Gibbs over the members' sides, or with ``forced`` back to how they are divided now.

        Returns the log probability of what has been drawn. ``first`` is the cluster of side 0.
        """
        cdef Py_ssize_t a, t
        cdef int s, old
        cdef double log_prob = 0.0, log_odds, plain
        cdef double with_row[2]
        for a in range(n):
            t = self.sides.member[a]
            self.sides.take_row(t)
            old = self.sides.side[t]
            self.sides.add_row(old, -1.0)
            plain = self.sides.log_marginal_with(old, False)
            with_row[old] = self.sides.log_marginal[old]
            with_row[1 - old] = self.sides.log_marginal_with(1 - old, True)
            self.sides.log_marginal[old] = plain
            log_odds = log(<double> self.sides.count[1]) - log(<double> self.sides.count[0])
            log_odds += (
                with_row[1] - self.sides.log_marginal[1]
                - with_row[0] + self.sides.log_marginal[0]
            )
            if forced:
                s = self.state.label[t] != first
            else:
                s = log(draws.uniform(self.rng)) < -log1p_exp(-log_odds)
            log_prob -= log1p_exp(-log_odds if s else log_odds)
            self.sides.side[t] = s
            self.sides.add_row(s, 1.0)
            self.sides.log_marginal[s] = with_row[s]
        return log_prob

    cdef int divide_or_unite(self) except -1 nogil:
        """Two rows at random: divide their cluster, or unite their two clusters, scores too."""
        cdef Py_ssize_t i = draws.below(self.rng, self.state.n_samples)
        cdef Py_ssize_t j = partner(self.state, self.rng, i)
        cdef bint together = self.state.label[i] == self.state.label[j]
        cdef int place = OF_DIVISIONS if together else OF_UNIONS
        self.proposed[place] += 1
        self.accepted[place] += self.launch.divide_or_unite(i, j)
        return 0


cdef Py_ssize_t partner(State state, bitgen_t* rng, Py_ssize_t i) noexcept nogil:
    """Another row: any, or the nearest of a few, which are often of clusters side by side.

    No choice depends on the partition.
    """
    cdef Py_ssize_t j, _, t, best = -1
    cdef double distance, nearest = INFINITY, off
    for _ in range(1 if draws.uniform(rng) < 0.5 else N_CANDIDATES):
        t = draws.below(rng, state.n_samples - 1)
        t += t >= i
        distance = 0.0
        for j in range(state.n_features):
            off = state.X[t, j] - state.X[i, j]
            distance += off * off
        # Any row is a partner where no distance is a number.
        if best < 0 or distance < nearest:
            best, nearest = t, distance
    return best
