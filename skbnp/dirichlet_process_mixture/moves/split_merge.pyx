"""Two blocks from one, or one from two, by Metropolis and Hastings."""

from libc.math cimport isfinite, log

from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.dirichlet_process_mixture.moves._division cimport Division
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma

from skbnp.mcmc.fields import Field


cdef enum:
    SPLITS
    MERGES
    LEAST = 4               # proposals a sweep when "auto" follows few blocks


cdef class SplitMerge(Move):
    """Two rows at random; in one block: propose to split it, in two: to merge them.

    Jain and Neal (2004), equation (M4.3). Slots n_clusters + 1 to + 3 of the family hold what is
    proposed. Cost of a proposal: O(N + S d^2) for S rows in the blocks. The number of proposals
    must not look at the present number of blocks; it follows it in warm-up alone.
    """

    NAME = "split_merge"
    COUNTS = ("split", "merge")
    FIELDS = (Field("n_proposals", int, at_least=0),)
    DIVISION = Division

    def __init__(self, State state, n_proposals, division, bit_generator):
        super().__init__(bit_generator)
        self.state = state
        self._follows = n_proposals == "auto"
        self.n_proposals = LEAST if self._follows else n_proposals
        self.division = self.DIVISION(
            state.family, state.label, division == "restricted_gibbs"
        )

    @classmethod
    def of(cls, State state, sweep, bit_generator):
        """In every sweep."""
        return cls(state, sweep.n_split_merge, sweep.split_merge, bit_generator)

    def adapt(self):
        """Half as many proposals as there are blocks. Frozen after warm-up."""
        if self._follows:
            self.n_proposals = max(LEAST, (self.state.n_clusters + 1) // 2)

    cpdef int run(self) except -1:
        cdef Py_ssize_t _
        self.division.discount = self.state.law.discount
        with nogil:
            for _ in range(self.how_often()):
                self.split_or_merge()
        return DONE

    cdef Py_ssize_t how_often(self) noexcept nogil:
        return self.n_proposals

    cdef int split_or_merge(self) except -1 nogil:
        cdef Py_ssize_t i, j
        if self.state.n_samples < 2:
            return 0
        i = draws.below(self.rng, self.state.n_samples)
        j = draws.below(self.rng, self.state.n_samples - 1)
        j += j >= i
        self.state.reserve()
        if self.state.label[i] == self.state.label[j]:
            return self.propose_split(i, j)
        return self.propose_merge(i, j)

    cdef int propose_split(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil:
        cdef Py_ssize_t k = self.state.label[i], new = self.state.n_clusters, a = new + 1, b = a + 1
        cdef Py_ssize_t n, t
        cdef double log_ratio = self.log_new_block(new)
        self.proposed[SPLITS] += 1
        if not isfinite(log_ratio):
            return 0  # all components are in use: no split
        n = self.list_others(i, j)
        log_ratio -= self.division.draw(self.rng, i, j, n, a, b, False, 0.0)
        log_ratio += self.log_gain(a, b, k)
        if log(draws.uniform(self.rng)) < log_ratio:
            self.accepted[SPLITS] += 1
            self.state.family.copy(a, k)
            self.state.family.copy(b, new)
            self.state.label[j] = new
            for t in range(n):
                if self.division.second[t]:
                    self.state.label[self.division.member[t]] = new
            self.state.weigh(k)
            self.state.weigh(new)
            self.state.n_clusters += 1
        self.state.family.clear(a)
        self.state.family.clear(b)
        return self.state.reserve()

    cdef int propose_merge(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil:
        """Accept if log u < -log r, where log r = log_ratio - log q is at least log_ratio.

        So most merges, those of blocks far apart, are refused before q is worked out.
        """
        cdef Py_ssize_t a = self.state.n_clusters + 1, b = a + 1, both = a + 2, n, t
        cdef Py_ssize_t k = self.state.label[i], gone = self.state.label[j]
        cdef double log_ratio, log_u = log(draws.uniform(self.rng))
        self.proposed[MERGES] += 1
        if self.state.family.merge(k, gone, both) != 0:
            self.unite_by_rows(k, gone, both)
        log_ratio = self.log_new_block(self.state.n_clusters - 1) + self.log_gain(k, gone, both)
        if log_u < -log_ratio:
            n = self.list_others(i, j)
            if log_u + log_ratio < self.division.draw(
                self.rng, i, j, n, a, b, True, log_u + log_ratio
            ):
                self.accepted[MERGES] += 1
                self.state.label[j] = k
                for t in range(n):
                    self.state.label[self.division.member[t]] = k
                self.state.rebuild_block(k)  # from its rows: no rounding of the two is inherited
                self.state.weigh(k)
                self.state.drop_block(gone, -1)
            self.state.family.clear(a)
            self.state.family.clear(b)
        self.state.family.clear(both)
        return 0

    cdef Py_ssize_t list_others(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """List the other rows of the blocks of rows i and j; returns how many."""
        cdef Py_ssize_t n = 0, t, k
        for t in range(self.state.n_samples):
            k = self.state.label[t]
            if (k == self.state.label[i] or k == self.state.label[j]) and t != i and t != j:
                self.division.member[n] = t
                n += 1
        return n

    cdef void unite_by_rows(self, Py_ssize_t k, Py_ssize_t other, Py_ssize_t both) noexcept nogil:
        """Make slot both the block of the rows of two blocks."""
        cdef Py_ssize_t i
        self.state.family.clear(both)
        for i in range(self.state.n_samples):
            if self.state.label[i] == k or self.state.label[i] == other:
                self.state.family.add(both, i)

    cdef double log_new_block(self, Py_ssize_t n_merged) noexcept nogil:
        """log weight of a new block beside K, the number of blocks of the merged state."""
        return self.state.law.log_new_weight(n_merged)

    cdef double log_gain(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t both) noexcept nogil:
        """log of p(split) / p(merged) without the term of ``log_new_block``."""
        cdef double gain = (
            self.state.family.log_marginal(a) + self.state.family.log_marginal(b)
            - self.state.family.log_marginal(both)
        )
        return (gain + self.log_rising(self.state.family.n_members[a])
                + self.log_rising(self.state.family.n_members[b])
                - self.log_rising(self.state.family.n_members[both]))

    cdef double log_rising(self, Py_ssize_t n) noexcept nogil:
        """log Gamma(n - discount) / Gamma(1 - discount)"""
        return lgamma(n - self.state.law.discount) - lgamma(1.0 - self.state.law.discount)
