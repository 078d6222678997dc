"""Neighbours in the order change places, and an edge between them its direction."""

from libc.math cimport log

from skbnp.icp_network._child_regression cimport ChildRegression
from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport BROKEN, DONE, Move
from skbnp.numerics cimport rng as draws

cdef enum:
    N_ATTEMPTS = 3      # in a sweep


cdef class Swaps(Move):
    """Exchange the orders of two neighbours, reverse the edge between them.

    mathematics/icp_network, section 5.4.
    Where there is one, both nodes' biases and weights are integrated out and drawn anew: O(N p^2)
    for p parents. The proposal is its own inverse.
    """

    NAME = "swaps"
    COUNTS = ("swaps",)

    def __init__(self, Network net, ChildRegression regression, bit_generator):
        super().__init__(bit_generator)
        self.net, self.graph, self.regression = net, net.graph, regression

    cpdef int run(self) except -1:
        cdef Py_ssize_t _
        self._broken = False
        with nogil:
            self.regression.reserve()
            for _ in range(N_ATTEMPTS):
                self._attempt()
        return BROKEN if self._broken else DONE

    cdef void _attempt(self) noexcept nogil:
        cdef Pair pair
        cdef double ratio
        if not self._choose(&pair):
            return
        ratio = -self.graph.log_density()
        if pair.joined and self._add_evidence(&pair, &ratio) != 0:
            return
        self._exchange(pair.at, pair.joined)
        ratio += self.graph.log_density()
        if log(draws.uniform(self.rng)) >= ratio:
            self._exchange(pair.at, pair.joined)
            return
        self.accepted[0] += 1
        if pair.joined:
            self._redraw(&pair)

    cdef bint _choose(self, Pair* pair) noexcept nogil:
        """Two neighbours; whether they may change places."""
        if self.graph.n_nodes < 2:
            return False
        pair.at = draws.below(self.rng, self.graph.n_nodes - 1)
        pair.lower, pair.upper = self.graph.ascending[pair.at], self.graph.ascending[pair.at + 1]
        if not self.graph.is_free_order(pair.lower) or not self.graph.is_free_order(pair.upper):
            return False
        if self.graph.order[pair.lower] == self.graph.order[pair.upper]:
            return False
        self.proposed[0] += 1
        pair.joined = self.graph.edge[pair.lower, pair.upper]
        # Nor may a hidden node lose its last child.
        return not (
            pair.joined and self.graph.is_hidden(pair.upper)
            and self.graph.n_children[pair.upper] == 1
        )

    cdef int _add_evidence(self, const Pair* pair, double* ratio) noexcept nogil:
        """Add what the reversed edge explains over what it does now; non-zero if that fails."""
        if self.regression.start_parents(pair.lower, pair.upper) != 0:
            return 1
        ratio[0] -= self.regression.row.gain(0)
        if self.regression.start_parents(pair.upper, pair.lower) != 0:
            return 1
        ratio[0] += self.regression.row.gain(0)
        return 0

    cdef void _exchange(self, Py_ssize_t at, bint joined) noexcept nogil:
        """Let the nodes at two places change them, and an edge between them its direction."""
        cdef Py_ssize_t lower = self.graph.ascending[at], upper = self.graph.ascending[at + 1]
        self.graph.order[lower], self.graph.order[upper] = (
            self.graph.order[upper], self.graph.order[lower]
        )
        self.graph.ascending[at], self.graph.ascending[at + 1] = upper, lower
        if joined:
            self.graph.unlink(lower, upper)
            self.graph.link(upper, lower)

    cdef void _redraw(self, const Pair* pair) noexcept nogil:
        """Biases and weights of both, whose edge has been reversed.

        Not the precisions: the ratio depends on them, so that what is only drawn after an
        acceptance would not leave their law as it is.
        """
        self.net.weight[pair.lower, pair.upper] = 0.0
        self.regression.start_parents(pair.upper, pair.lower)
        self._broken |= self.regression.draw_weights(pair.upper, self.rng) != 0
        self.regression.start_parents(pair.lower, pair.upper)
        self._broken |= self.regression.draw_weights(pair.lower, self.rng) != 0
