"""Nodes with orders and edges from higher to lower ones: the graph of one chain.

Its law is equation (I2.3) (Dallaire et al., equation 9, corrected): hidden nodes are a set. What
changes the graph looks at ``log_density`` before and after.
"""

from libc.math cimport log

import numpy as np

from skbnp.processes.icp cimport GraphLaw


cdef class Graph:
    """Graph and orders, under the law with the present hyperparameters.

    Invariant between moves: ``ascending[:n_nodes]`` are the slots in use by ascending order;
    ``n_children`` and ``n_parents`` count ``edge``, which is 0 for free slots; every hidden node
    has a child; the tables of ``law`` are those of its hyperparameters.

    Slots carry the age of a node, which the graph depends on: no move may visit nodes by their
    slots (doc/mathematics/icp_network, section 4).
    """

    def __init__(self, prior):
        """Without hidden nodes and edges, until ``put``."""
        self.n_observed, self.max_units = prior.n_observed, prior.max_units
        self.is_fixed = np.array([order is not None for order in prior.orders], dtype=np.uint8)
        self.law = GraphLaw(1.0, 1.0, 1.0)

    def put(self, order, edges, hyper):
        """Take all over from a checked state; the slots of its nodes."""
        cdef Py_ssize_t d = self.n_observed, n_hidden = len(order) - d
        self.law.mass, self.law.concentration, self.law.popularity = hyper
        self.n_hidden = self.n_edges = self.n_free = 0
        self.n_nodes = self.n_slots = d
        self.order = order[:d].copy()
        self.edge = np.zeros((d, d), dtype=np.uint8)
        self.n_children, self.n_parents, self.free_slot = (
            np.zeros(d, dtype=np.intp) for _ in range(3)
        )
        self.ascending = np.argsort(order[:d], kind="stable").astype(np.intp)
        self.reserve(n_hidden + 1)
        self.law.fill()
        slots = np.arange(len(order))
        for node in range(d, len(order)):
            slots[node] = self.insert(order[node])
        for parent, child in edges:
            self.link(slots[child], slots[parent])
        return slots

    def slots(self):
        """Slots of the nodes in the order of a state's numbers."""
        ascending = np.asarray(self.ascending)[:self.n_nodes]
        return np.concatenate(
            [np.arange(self.n_observed), ascending[ascending >= self.n_observed]]
        )

    def check_invariant(self):
        """Raise an AssertionError where the invariant does not hold."""
        slots, edge, order = self.slots(), np.asarray(self.edge), np.asarray(self.order)
        in_use = np.zeros(self.n_slots, dtype=bool)
        in_use[slots] = True
        children, parents = np.nonzero(edge)
        assert self.n_nodes == self.n_observed + self.n_hidden == len(np.unique(slots))
        assert (np.diff(order[np.asarray(self.ascending)[:self.n_nodes]]) >= 0.0).all()
        free = np.asarray(self.free_slot)[:self.n_free]
        assert sorted(free) == np.flatnonzero(~in_use).tolist()
        assert self.n_edges == len(children) and (order[parents] > order[children]).all()
        assert in_use[children].all() and in_use[parents].all()
        assert (np.asarray(self.n_children)[slots] == edge.sum(axis=0)[slots]).all()
        assert (np.asarray(self.n_parents)[slots] == edge.sum(axis=1)[slots]).all()
        assert (edge.sum(axis=0)[slots[self.n_observed:]] > 0).all()

    # -- room ---------------------------------------------------------------------------------

    cdef int reserve(self, Py_ssize_t n_new) except -1:
        """Room for so many hidden nodes more."""
        cdef Py_ssize_t old = self.n_slots, room, slot
        if self.n_free >= n_new:
            return 0
        room = max(old + 8, 2 * old - self.n_observed, old + n_new)
        self.order, self.ascending = grown(self.order, (room,)), grown(self.ascending, (room,))
        self.n_children = grown(self.n_children, (room,))
        self.n_parents = grown(self.n_parents, (room,))
        self.free_slot = grown(self.free_slot, (room,))
        self.edge = grown(self.edge, (room, room))
        self.law.reserve(room)
        for slot in range(room - 1, old - 1, -1):
            self.free_slot[self.n_free] = slot
            self.n_free += 1
        self.n_slots = room
        return 0

    # -- bookkeeping --------------------------------------------------------------------------

    cdef bint is_hidden(self, Py_ssize_t slot) noexcept nogil:
        return slot >= self.n_observed

    cdef bint is_free_order(self, Py_ssize_t slot) noexcept nogil:
        return slot >= self.n_observed or not self.is_fixed[slot]

    cdef Py_ssize_t insert(self, double order) noexcept nogil:
        """A new hidden node without edges; its slot. Room is there."""
        cdef Py_ssize_t slot
        self.n_free -= 1
        slot = self.free_slot[self.n_free]
        self.order[slot] = order
        self.place(slot, self.n_nodes)
        self.n_nodes += 1
        self.n_hidden += 1
        return slot

    cdef void remove(self, Py_ssize_t slot) noexcept nogil:
        """Take a hidden node away with all its edges; ``insert`` would take the same slot."""
        cdef Py_ssize_t i, other, at = self.rank(slot)
        for i in range(self.n_nodes):
            other = self.ascending[i]
            self.unlink(other, slot)
            self.unlink(slot, other)
        for i in range(at, self.n_nodes - 1):
            self.ascending[i] = self.ascending[i + 1]
        self.n_nodes -= 1
        self.n_hidden -= 1
        self.free_slot[self.n_free] = slot
        self.n_free += 1

    cdef void take_out(self, Py_ssize_t slot) noexcept nogil:
        """Leave a node out of the first n_nodes - 1 of ``ascending``, until ``put_back``."""
        cdef Py_ssize_t i
        for i in range(self.rank(slot), self.n_nodes - 1):
            self.ascending[i] = self.ascending[i + 1]

    cdef void put_back(self, Py_ssize_t slot) noexcept nogil:
        """Sort a node that was taken out in again, by its present order."""
        self.place(slot, self.n_nodes - 1)

    cdef void place(self, Py_ssize_t slot, Py_ssize_t n) noexcept nogil:
        """Sort a slot in among the first n that are in ascending order."""
        cdef Py_ssize_t at = n
        while at > 0 and self.order[self.ascending[at - 1]] > self.order[slot]:
            self.ascending[at] = self.ascending[at - 1]
            at -= 1
        self.ascending[at] = slot

    cdef void link(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil:
        """An edge, if there is none."""
        if not self.edge[child, parent]:
            self.edge[child, parent] = 1
            self.n_children[parent] += 1
            self.n_parents[child] += 1
            self.n_edges += 1

    cdef void unlink(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil:
        """Take an edge away, if there is one."""
        if self.edge[child, parent]:
            self.edge[child, parent] = 0
            self.n_children[parent] -= 1
            self.n_parents[child] -= 1
            self.n_edges -= 1

    cdef Py_ssize_t rank(self, Py_ssize_t slot) noexcept nogil:
        """Where a slot stands in ``ascending``."""
        cdef Py_ssize_t at = 0
        while self.ascending[at] != slot:
            at += 1
        return at

    cdef Py_ssize_t count_below(self, double order) noexcept nogil:
        """Number of nodes of strictly lower order: the first so many of ``ascending``."""
        cdef Py_ssize_t n = 0
        while n < self.n_nodes and self.order[self.ascending[n]] < order:
            n += 1
        return n

    cdef Py_ssize_t count_up_to(self, double order) noexcept nogil:
        """Number of nodes of this order or a lower one."""
        cdef Py_ssize_t n = 0
        while n < self.n_nodes and self.order[self.ascending[n]] <= order:
            n += 1
        return n

    cdef void count_all_below(self, Py_ssize_t* out) noexcept nogil:
        """Number of nodes of strictly lower order for each node, by slot."""
        cdef Py_ssize_t i, slot, n = 0
        for i in range(self.n_nodes):
            slot = self.ascending[i]
            if i == 0 or self.order[slot] > self.order[self.ascending[i - 1]]:
                n = i
            out[slot] = n

    cdef Py_ssize_t list_hidden(self, Py_ssize_t* out) noexcept nogil:
        """The hidden nodes by ascending order; their number."""
        cdef Py_ssize_t i, n = 0
        for i in range(self.n_nodes):
            if self.is_hidden(self.ascending[i]):
                out[n] = self.ascending[i]
                n += 1
        return n

    cdef Py_ssize_t list_free_orders(self, Py_ssize_t* out) noexcept nogil:
        """The nodes whose orders are not given; their number."""
        cdef Py_ssize_t i, n = self.list_hidden(out)
        for i in range(self.n_observed):
            if not self.is_fixed[i]:
                out[n] = i
                n += 1
        return n

    cdef double highest_child(self, Py_ssize_t slot) noexcept nogil:
        """Its order, 0 without any."""
        cdef Py_ssize_t i = self.rank(slot)
        while i > 0:
            i -= 1
            if self.edge[self.ascending[i], slot]:
                return self.order[self.ascending[i]]
        return 0.0

    cdef double lowest_parent(self, Py_ssize_t slot) noexcept nogil:
        """Its order, 1 without any."""
        cdef Py_ssize_t i
        for i in range(self.rank(slot) + 1, self.n_nodes):
            if self.edge[slot, self.ascending[i]]:
                return self.order[self.ascending[i]]
        return 1.0

    cdef Py_ssize_t depth(self, Py_ssize_t* scratch) noexcept nogil:
        """Edges of the longest path."""
        cdef Py_ssize_t i, j, slot, other, longest = 0
        for i in range(self.n_nodes):
            slot = self.ascending[i]
            scratch[slot] = 0
            for j in range(i):
                other = self.ascending[j]
                if self.edge[other, slot]:
                    scratch[slot] = max(scratch[slot], scratch[other] + 1)
            longest = max(longest, scratch[slot])
        return longest

    # -- the density --------------------------------------------------------------------------

    cdef double log_node(self, Py_ssize_t slot, Py_ssize_t n_below) noexcept nogil:
        """Log factor of a node's children, of the n_below that they might be."""
        return self.law.log_children(self.is_hidden(slot), self.n_children[slot], n_below)

    cdef double log_density(self) noexcept nogil:
        """Log density of edges and orders, hidden nodes as a set: equation (I2.3), O(K)."""
        cdef Py_ssize_t i, slot, n = 0
        cdef double total = 0.0, exposure = 0.0, order, upper, before = -1.0
        cdef double rate = self.law.concentration * self.law.mass
        order = self.order[self.ascending[0]]
        for i in range(self.n_nodes):
            slot = self.ascending[i]
            upper = 1.0 if i + 1 == self.n_nodes else self.order[self.ascending[i + 1]]
            if order > before:
                n = i
            exposure += (upper - order) * self.law.psi[i + 1]
            total += self.law.log_children(self.is_hidden(slot), self.n_children[slot], n)
            before, order = order, upper
        return (
            total + self.n_hidden * log(rate) + self.n_observed * self.law.log_observed
            - rate * exposure
        )

    cdef double exposure(self, double alpha) noexcept nogil:
        """T of equation (I2.4) at any concentration: O(K)."""
        cdef Py_ssize_t i
        cdef double total = 0.0, psi = 0.0, upper
        for i in range(self.n_nodes):
            psi += 1.0 / (alpha + i)
            upper = 1.0 if i + 1 == self.n_nodes else self.order[self.ascending[i + 1]]
            total += (upper - self.order[self.ascending[i]]) * psi
        return total


def grown(array, shape):
    """A larger array that begins with this one."""
    old = np.asarray(array)
    new = np.zeros(shape, dtype=old.dtype)
    new[tuple(slice(n) for n in old.shape)] = old
    return new
