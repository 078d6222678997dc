"""Two rows change places between their blocks, by Metropolis."""

from libc.math cimport log

from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport rng as draws


cdef class Swap(Move):
    """Two rows at random; in two blocks: propose to exchange them.

    Sizes stay, so that the partition's law cancels: accepted with probability min(1, m(A') m(B') /
    (m(A) m(B))). The pair is drawn without a look at the state and swapping back is the same
    proposal. Slots n_clusters + 1 and + 2 of the family hold what is proposed. O(N + d^2) each.
    """

    NAME = "swap"
    COUNTS = ("swap",)

    cdef:
        State state
        Py_ssize_t n_proposals

    def __init__(self, State state, n_proposals, bit_generator):
        super().__init__(bit_generator)
        self.state, self.n_proposals = state, n_proposals

    @classmethod
    def of(cls, State state, sweep, bit_generator):
        """Six pairs, in every sweep."""
        return cls(state, 6, bit_generator)

    cpdef int run(self) except -1:
        cdef Py_ssize_t _
        with nogil:
            for _ in range(self.n_proposals):
                self.propose()
        return DONE

    cdef int propose(self) except -1 nogil:
        cdef Py_ssize_t i, j, k, other, a = self.state.n_clusters + 1, b = a + 1
        cdef double log_ratio
        if self.state.n_samples < 2:
            return 0
        i = draws.below(self.rng, self.state.n_samples)
        j = draws.below(self.rng, self.state.n_samples - 1)
        j += j >= i
        k = self.state.label[i]
        other = self.state.label[j]
        if k == other:
            return 0
        self.state.reserve()
        self.proposed[0] += 1
        self.build(a, k, i, j)
        self.build(b, other, j, i)
        log_ratio = self.log_ratio(a, b, k, other)
        if log(draws.uniform(self.rng)) < log_ratio:
            self.accepted[0] += 1
            self.state.family.copy(a, k)
            self.state.family.copy(b, other)
            self.state.label[i] = other
            self.state.label[j] = k
        self.state.family.clear(a)
        self.state.family.clear(b)
        return 0

    cdef void build(
        self, Py_ssize_t slot, Py_ssize_t k, Py_ssize_t gone, Py_ssize_t new
    ) noexcept nogil:
        """Make a slot block k with one row in place of another."""
        cdef Py_ssize_t t
        self.state.family.copy(k, slot)
        self.state.family.add(slot, new)
        if self.state.family.remove(slot, gone) == 0:
            return
        self.state.family.clear(slot)
        self.state.family.add(slot, new)
        for t in range(self.state.n_samples):
            if self.state.label[t] == k and t != gone:
                self.state.family.add(slot, t)

    cdef double log_ratio(
        self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t k, Py_ssize_t other
    ) noexcept nogil:
        return (self.state.family.log_marginal(a) + self.state.family.log_marginal(b)
                - self.state.family.log_marginal(k) - self.state.family.log_marginal(other))


cdef class OneSided(Swap):
    """A wrong formula: only one of the two blocks counts."""

    cdef double log_ratio(
        self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t k, Py_ssize_t other
    ) noexcept nogil:
        return self.state.family.log_marginal(a) - self.state.family.log_marginal(k)
