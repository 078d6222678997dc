"""How births choose order, children and parents, and how deaths choose nodes: equation (I5.4)."""

from libc.math cimport INFINITY, log
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network.moves._proposal cimport INTERVAL, ORPHAN, SINGLETON, WHOLE, Proposal
from skbnp.numerics cimport rng as draws


cdef class Choice:
    """Draws what a birth of a kind adds to the graph, and says how probable births and deaths are.

    Everything here looks at the graph without the node, but what concerns deaths: O(K^2) at most.
    """

    def __init__(self, Graph graph):
        self.graph = graph
        self.listed = np.zeros(0, dtype=np.intp)

    cdef int reserve(self) except -1 nogil:
        if self.listed.shape[0] < self.graph.n_slots:
            with gil:
                self.listed = np.zeros(self.graph.n_slots, dtype=np.intp)
        return 0

    # -- births -------------------------------------------------------------------------------

    cdef double draw(self, Proposal* p, bitgen_t* rng) noexcept nogil:
        """Order, children and parents of a birth of ``p.kind``; -log of their density.

        -inf if there is no room for it.
        """
        cdef double total
        p.n_parents = 0
        if p.kind == SINGLETON or p.kind == INTERVAL:
            return self._draw_child(p, rng)
        p.order = draws.uniform(rng)
        total = self._draw_children(p, rng)
        if p.kind == WHOLE and total > -INFINITY:
            total += self._draw_parents(p, rng)
        return total

    cdef double log_density(self, Proposal* p) noexcept nogil:
        """-log density of having chosen what ``p`` has."""
        cdef Py_ssize_t n = self.graph.count_below(p.order)
        if p.kind == ORPHAN:
            return -self.graph.law.log_chosen(p.n_children, n)
        if p.kind == WHOLE:
            return self._log_parents(p) - self.graph.law.log_chosen(p.n_children, n)
        if p.kind == SINGLETON:
            return log(self.graph.n_nodes * (1.0 - self.graph.order[p.child[0]]))
        return self._log_interval(p)

    cdef double _draw_child(self, Proposal* p, bitgen_t* rng) noexcept nogil:
        """A singleton's child and order."""
        cdef Py_ssize_t first, n_above
        cdef Py_ssize_t child = self.graph.ascending[draws.below(rng, self.graph.n_nodes)]
        cdef double low = self.graph.order[child], high = 1.0
        p.child[0], p.n_children = child, 1
        if p.kind == INTERVAL:
            first = self.graph.count_up_to(low)
            n_above = self.graph.n_nodes - first
            first += draws.below(rng, n_above + 1)
            low = self.graph.order[self.graph.ascending[first - 1]]
            if first < self.graph.n_nodes:
                high = self.graph.order[self.graph.ascending[first]]
        if high <= low:
            return -INFINITY
        p.order = low + draws.uniform(rng) * (high - low)
        if not low < p.order < high:
            return -INFINITY
        return self.log_density(p)

    cdef double _log_interval(self, Proposal* p) noexcept nogil:
        """-log density of the child, the interval above it and the order in that."""
        cdef Py_ssize_t n_above = (
            self.graph.n_nodes - self.graph.count_up_to(self.graph.order[p.child[0]])
        )
        cdef Py_ssize_t n = self.graph.count_below(p.order)
        cdef double gap = 1.0
        if n < self.graph.n_nodes:
            gap = self.graph.order[self.graph.ascending[n]]
        gap -= self.graph.order[self.graph.ascending[n - 1]]
        return log(self.graph.n_nodes * (n_above + 1.0) * gap)

    cdef double _draw_children(self, Proposal* p, bitgen_t* rng) noexcept nogil:
        """Any children, by the process' law of a node of this order: equation (I2.2)."""
        cdef Py_ssize_t i, j, n = self.graph.count_below(p.order)
        if n == 0:
            return -INFINITY
        p.n_children = self._draw_number(n, rng)
        for i in range(n):
            self.listed[i] = self.graph.ascending[i]
        for i in range(p.n_children):
            j = i + draws.below(rng, n - i)
            p.child[i], self.listed[j] = self.listed[j], self.listed[i]
        return -self.graph.law.log_chosen(p.n_children, n)

    cdef Py_ssize_t _draw_number(self, Py_ssize_t n, bitgen_t* rng) noexcept nogil:
        """How many of n nodes below are children, 1 at least."""
        cdef Py_ssize_t m = 1
        cdef double alpha = self.graph.law.concentration
        cdef double left = draws.uniform(rng) * self.graph.law.psi[n]
        cdef double share = n / (alpha + n - 1.0)
        while m < n and left >= share:
            left -= share
            share *= (n - m) * <double> m / ((m + 1.0) * (alpha + n - m - 1.0))
            m += 1
        return m

    cdef double _draw_parents(self, Proposal* p, bitgen_t* rng) noexcept nogil:
        """Parents by the predictive law of equation (I5.5); -log of their probability."""
        cdef Py_ssize_t i, k, below = 0, start = self.graph.count_below(p.order)
        cdef double share, total = 0.0
        cdef bint joins
        for i in range(start, self.graph.n_nodes):
            k = self.graph.ascending[i]
            if i == start or self.graph.order[k] > self.graph.order[self.graph.ascending[i - 1]]:
                below = i
            share = self.graph.law.taking(
                self.graph.is_hidden(k), self.graph.n_children[k], below
            )
            joins = draws.uniform(rng) < share
            if joins:
                p.parent[p.n_parents] = k
                p.n_parents += 1
            total -= log(share if joins else 1.0 - share)
        return total

    cdef double _log_parents(self, Proposal* p) noexcept nogil:
        """-log probability of the parents that ``p`` has."""
        cdef Py_ssize_t i, k, n = 0, below = 0, start = self.graph.count_below(p.order)
        cdef double share, total = 0.0
        cdef bint joins
        for i in range(start, self.graph.n_nodes):
            k = self.graph.ascending[i]
            if i == start or self.graph.order[k] > self.graph.order[self.graph.ascending[i - 1]]:
                below = i
            share = self.graph.law.taking(
                self.graph.is_hidden(k), self.graph.n_children[k], below
            )
            joins = n < p.n_parents and p.parent[n] == k
            n += joins
            total -= log(share if joins else 1.0 - share)
        return total

    # -- deaths -------------------------------------------------------------------------------

    cdef Py_ssize_t choose_death(
        self, int kind, Py_ssize_t* n_eligible, bitgen_t* rng
    ) noexcept nogil:
        """A node that a birth of this kind may have made, and among how many; -1 without any."""
        cdef Py_ssize_t child = 0
        if kind == SINGLETON or kind == INTERVAL:
            child = self.graph.ascending[draws.below(rng, self.graph.n_nodes)]
        n_eligible[0] = self.count_eligible(kind, child)
        if n_eligible[0] == 0:
            return -1
        return self.listed[draws.below(rng, n_eligible[0])]

    cdef double log_death(self, Proposal* p, Py_ssize_t n_eligible) noexcept nogil:
        """Log probability that a death chooses the node, in the graph with it."""
        if p.kind == ORPHAN or p.kind == WHOLE:
            return -log(n_eligible)
        return -log(n_eligible * <double> self.graph.n_nodes)

    cdef Py_ssize_t count_eligible(self, int kind, Py_ssize_t child) noexcept nogil:
        """Number of nodes that a death may choose, which it lists; for singletons of a child."""
        cdef Py_ssize_t i, slot, n = 0
        cdef bint of_child = kind == SINGLETON or kind == INTERVAL
        for i in range(self.graph.n_nodes):
            slot = self.graph.ascending[i]
            if of_child and not self.graph.edge[child, slot]:
                continue
            if self._is_eligible(kind, slot):
                self.listed[n] = slot
                n += 1
        return n

    cdef bint _is_eligible(self, int kind, Py_ssize_t slot) noexcept nogil:
        """Whether a birth of this kind may have made the node."""
        if not self.graph.is_hidden(slot):
            return False
        if kind == WHOLE:
            return self._may_lose_parents(slot)
        if kind == ORPHAN:
            return self.graph.n_parents[slot] == 0
        return self.graph.n_parents[slot] == 0 and self.graph.n_children[slot] == 1

    cdef bint _may_lose_parents(self, Py_ssize_t slot) noexcept nogil:
        """Whether each hidden parent has another child."""
        cdef Py_ssize_t i, other
        for i in range(self.graph.n_nodes - 1, -1, -1):
            other = self.graph.ascending[i]
            if other == slot:
                return True
            if self.graph.edge[slot, other] and self.graph.is_hidden(other):
                if self.graph.n_children[other] == 1:
                    return False
        return True
