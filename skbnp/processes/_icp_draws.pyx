"""Draws from the Indian chefs process, by order or one observed node after the other."""

from libc.math cimport log

from skbnp.numerics.rng cimport borrow, poisson, uniform

import numpy as np


cdef class GrowingGraph:
    """A network as its nodes come: position p has order[p], name[p] (-1: hidden) and the parents
    k with Z[p, k] = 1."""

    def __cinit__(self, Py_ssize_t n_observed, Py_ssize_t most_hidden):
        cdef Py_ssize_t room = 2 * n_observed + 8
        self.order = np.empty(room)
        self.name = np.empty(room, dtype=np.intp)
        self.Z = np.zeros((room, room), dtype=np.uint8)
        self.most_hidden = most_hidden

    cdef Py_ssize_t add(self, double order, Py_ssize_t name) except -1:
        """The position of a new node, without edges."""
        cdef Py_ssize_t p = self.n_nodes
        if p == self.order.shape[0]:
            self.order = np.pad(self.order, (0, p))
            self.name = np.pad(self.name, (0, p))
            self.Z = np.pad(self.Z, (0, p))
        self.order[p] = order
        self.name[p] = name
        self.n_nodes += 1
        self.n_hidden += name < 0
        return p

    cdef bint is_full(self) noexcept nogil:
        """Whether there are more hidden nodes than there may be."""
        return self.n_hidden > self.most_hidden

    def arrays(self):
        """(order, Z) with the observed nodes first and the hidden ones ascending."""
        order, name = np.asarray(self.order)[: self.n_nodes], np.asarray(self.name)[: self.n_nodes]
        first = np.lexsort((order, np.where(name < 0, self.n_nodes, name)))
        return order[first], np.asarray(self.Z)[np.ix_(first, first)]


cdef class DrawByOrder:
    """The nodes by their orders, a pure birth process: doc/mathematics/icp_network, section 2."""

    def __init__(self, mass, alpha, phi, most_hidden, bit_generator):
        self._bit_generator, self.rng = bit_generator, borrow(bit_generator)
        self.mass, self.alpha, self.phi, self.most_hidden = mass, alpha, phi, most_hidden

    def draw(self, const double[::1] observed_order):
        """A network of these observed nodes; None if there are too many hidden ones."""
        cdef Py_ssize_t[::1] arrival = np.argsort(observed_order)
        cdef Py_ssize_t n_observed = observed_order.shape[0], n_below, i = 0, k
        cdef double x = 0.0, end
        self.network = GrowingGraph(n_observed, self.most_hidden)
        self.per_mass, self.n_counted = 0.0, 0
        while True:
            end = observed_order[arrival[i]] if i < n_observed else 1.0
            n_below = self._climb(x, end)
            if self.network.is_full():
                return None
            if i == n_observed:
                return self.network
            x = end
            # Equal orders: all against those strictly below.
            while i < n_observed and observed_order[arrival[i]] == end:
                k = self.network.add(end, arrival[i])
                self._draw_children(k, 0, n_below, 0, self.phi)
                i += 1

    cdef Py_ssize_t _climb(self, double x, double end) except -1:
        """Add the hidden nodes from one order to another; the number of nodes below the latter."""
        cdef Py_ssize_t k
        while self.network.n_nodes > 0:
            while self.n_counted < self.network.n_nodes:
                self.per_mass += 1.0 / (self.alpha + self.n_counted)
                self.n_counted += 1
            x -= log(uniform(self.rng)) / (self.alpha * self.mass * self.per_mass)
            if x >= end:
                break
            k = self.network.add(x, -1)
            if self.network.is_full():
                break
            self._draw_children_of_hidden(k)
        return self.network.n_nodes

    cdef void _draw_children_of_hidden(self, Py_ssize_t parent) noexcept nogil:
        """One at least, among all before it."""
        # The first child, in whatever sequence, is at position j with probability proportional to
        # 1 / (alpha + j).
        cdef double u = uniform(self.rng) * self.per_mass - 1.0 / self.alpha
        cdef Py_ssize_t j = 0
        while u >= 0.0 and j < parent - 1:
            j += 1
            u -= 1.0 / (self.alpha + j)
        self.network.Z[j, parent] = 1
        self._draw_children(parent, j + 1, parent, 1, 0.0)

    cdef void _draw_children(
        self, Py_ssize_t parent, Py_ssize_t first, Py_ssize_t n_below, Py_ssize_t n_children,
        double shape,
    ) noexcept nogil:
        """Children of a node among positions first..n_below-1, all below it, when it has n_children
        of the earlier ones: Polya's urn. ``shape`` is 0 for hidden nodes, phi for observed ones."""
        cdef Py_ssize_t j
        for j in range(first, n_below):
            if uniform(self.rng) * (shape + self.alpha + j) < shape + n_children:
                self.network.Z[j, parent] = 1
                n_children += 1


cdef class DrawNodeByNode:
    """One observed node after the other, each with the hidden nodes that come by it: (I2.5).

    Positions up to that at work had their turn, the later ones wait.
    """

    def __init__(self, mass, alpha, phi, most_hidden, bit_generator):
        self._bit_generator, self.rng = bit_generator, borrow(bit_generator)
        self.mass, self.alpha, self.phi, self.most_hidden = mass, alpha, phi, most_hidden

    def draw(self, const double[::1] observed_order):
        """A network of these observed nodes; None if there are too many hidden ones."""
        cdef Py_ssize_t star, i = 0, n_counted
        self.network = GrowingGraph(observed_order.shape[0], self.most_hidden)
        for star in range(observed_order.shape[0]):
            self.network.add(observed_order[star], star)
            self._offer(i)
            while i < self.network.n_nodes:
                n_counted = self._count(i)
                self._choose_parents(i, n_counted)
                self._add_parents(i, n_counted)
                if self.network.is_full():
                    return None
                i += 1
        return self.network

    cdef void _offer(self, Py_ssize_t i) noexcept nogil:
        """A new observed node as a parent of those below, the paper's equation (10)."""
        cdef Py_ssize_t j, m = 0, d = 0
        for j in range(i):
            if self.network.order[j] < self.network.order[i]:
                if self._is_taken(m, d):
                    self.network.Z[j, i] = 1
                    m += 1
                d += 1

    cdef bint _is_taken(self, Py_ssize_t m, Py_ssize_t d) noexcept nogil:
        """By one more when it was by m of d: its edges share one popularity."""
        return uniform(self.rng) * (self.phi + self.alpha + d) < self.phi + m

    cdef void _choose_parents(self, Py_ssize_t i, Py_ssize_t n_counted) noexcept nogil:
        """Parents of a node among all above that there are, its equation (11)."""
        cdef Py_ssize_t j, k, m, d
        cdef double own = self.network.order[i], shape
        for k in range(self.network.n_nodes):
            if self.network.order[k] > own:
                m, d = 0, -1
                for j in range(n_counted):
                    m += self.network.Z[j, k]
                    d += self.network.order[j] < self.network.order[k]
                shape = self.phi if self.network.name[k] >= 0 else 0.0
                if uniform(self.rng) * (shape + self.alpha + d) < shape + m:
                    self.network.Z[i, k] = 1

    cdef int _add_parents(self, Py_ssize_t i, Py_ssize_t n_counted) except -1:
        """New parents of a node, its equation (12), up to one too many."""
        cdef Py_ssize_t j, k
        cdef double own = self.network.order[i], low, high, rate
        lows = np.append(np.sort(np.asarray(self.network.order)[:n_counted]), 1.0)
        for j in range(n_counted):
            low, high = lows[j], lows[j + 1]
            if low >= own and high > low:
                rate = self.alpha * self.mass * (high - low) / self._weight_of_none(j)
                for _ in range(<Py_ssize_t> poisson(self.rng, rate)):
                    k = self.network.add(low + uniform(self.rng) * (high - low), -1)
                    if self.network.is_full():
                        return 0
                    self.network.Z[i, k] = 1
        return 0

    cdef Py_ssize_t _count(self, Py_ssize_t i) noexcept nogil:
        """How many nodes had their turn, with that at work."""
        return i + 1

    cdef double _weight_of_none(self, Py_ssize_t n_others) noexcept nogil:
        """The divisor of the rate: alpha + n - 1, n of those below, the node at work among them."""
        return self.alpha + n_others
