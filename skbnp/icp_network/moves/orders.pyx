"""Orders of the nodes given the graph, which the likelihood does not look at.

mathematics/icp_network, section 5.5.
"""

from libc.math cimport INFINITY, exp, expm1, log, log1p

import numpy as np

from skbnp.icp_network._graph cimport Graph
from skbnp.mcmc.chain cimport BROKEN, DONE, Move
from skbnp.numerics cimport rng as draws


cdef double log_expm1(double x) noexcept nogil:
    """log(e^x - 1) for x > 0, also where e^x is beyond floats."""
    return log(expm1(x)) if x < 30.0 else x + log1p(-exp(-x))


cdef double draw_exponent(double u, double x) noexcept nogil:
    """log(1 + u (e^x - 1)): of the density e^t on (0, x), what a uniform u gives."""
    return log1p(u * expm1(x)) if x < 30.0 else x + log(u + (1.0 - u) * exp(-x))


cdef class ExactOrders(Move):
    """theta_k | Z, all other orders, for every node whose order is free: equation (I5.11), O(K^2).

    Between two neighbouring orders, r nodes below, log p has the slope alpha gamma / (alpha + r);
    passing node j raises the number below this node by one and lowers that below j by one.
    """

    NAME = "orders"

    def __init__(self, Graph graph, bit_generator):
        super().__init__(bit_generator)
        self.graph = graph
        self.visit, self.log_piece = np.zeros(0, dtype=np.intp), np.zeros(0)

    cdef int _reserve(self) except -1 nogil:
        if self.visit.shape[0] < self.graph.n_slots:
            with gil:
                self.visit = np.zeros(self.graph.n_slots, dtype=np.intp)
                self.log_piece = np.zeros(self.graph.n_slots + 1)
        return 0

    cpdef int run(self) except -1:
        """In an order drawn anew; BROKEN, and the rest stays, where no piece is finite."""
        cdef Py_ssize_t i, n
        with nogil:
            self._reserve()
            n = self.graph.list_free_orders(&self.visit[0])
            draws.shuffle(self.rng, &self.visit[0], n)
            for i in range(n):
                if self._draw(self.visit[i]) != 0:
                    return BROKEN
        return DONE

    cdef int _draw(self, Py_ssize_t slot) noexcept nogil:
        """The order of one node; non-zero, and it stays, if its law has no finite weight."""
        cdef double low = self.graph.highest_child(slot), high = self.graph.lowest_parent(slot)
        cdef double left = low, right = high, slope, length
        cdef Py_ssize_t first, n_pieces, piece, i
        self.graph.take_out(slot)
        first = 0
        # A childless node may lie below others at 0; there is nothing lower than they are.
        while first < self.graph.n_nodes - 1 and (
            self.graph.order[self.graph.ascending[first]] <= low
        ):
            first += 1
        n_pieces = self._weigh_pieces(slot, low, high, first)
        if draws.categorical_from_logs(self.rng, &self.log_piece[0], n_pieces, &piece) != 0:
            self.graph.put_back(slot)
            return 1
        i = first + piece
        if piece > 0:
            left = self.graph.order[self.graph.ascending[i - 1]]
        if piece < n_pieces - 1:
            right = self.graph.order[self.graph.ascending[i]]
        slope = self.graph.law.concentration * self.graph.law.mass / (
            self.graph.law.concentration + i
        )
        length = draw_exponent(draws.uniform(self.rng), slope * (right - left)) / slope
        # Rounding may reach the ends, which belong to others.
        if left < left + length < right:
            self.graph.order[slot] = left + length
        self.graph.put_back(slot)
        return 0

    cdef Py_ssize_t _weigh_pieces(
        self, Py_ssize_t slot, double low, double high, Py_ssize_t first
    ) noexcept nogil:
        """Log masses of the pieces from low to high of a node that is taken out; their number.

        ``first`` others are below the lowest piece.
        """
        cdef double level = 0.0, left = low, right, slope, length
        cdef double rate = self.graph.law.concentration * self.graph.law.mass
        cdef Py_ssize_t i = first, n_pieces = 0
        while True:
            right = high
            if i < self.graph.n_nodes - 1 and self.graph.order[self.graph.ascending[i]] < high:
                right = self.graph.order[self.graph.ascending[i]]
            slope = rate / (self.graph.law.concentration + i)
            length = right - left
            self.log_piece[n_pieces] = -INFINITY
            if length > 0.0:
                self.log_piece[n_pieces] = level + log_expm1(slope * length) - log(slope)
            n_pieces += 1
            if right >= high:
                return n_pieces
            level = self._pass(slot, i, level + slope * length)
            left = right
            i += 1

    cdef double _pass(self, Py_ssize_t slot, Py_ssize_t i, double level) noexcept nogil:
        """log p where a node that is taken out, at this level, has passed the one at place i.

        That had this one and i others, some tied with it, below.
        """
        cdef Py_ssize_t other = self.graph.ascending[i], below = i
        while below > 0 and (
            self.graph.order[self.graph.ascending[below - 1]] >= self.graph.order[other]
        ):
            below -= 1
        level += self.graph.log_node(other, below) - self.graph.log_node(other, below + 1)
        level += self.graph.log_node(slot, i + 1) - self.graph.log_node(slot, i)
        return level


cdef class ProposedOrders(Move):
    """The paper's move, its equation (16): uniform between highest child and lowest parent."""

    NAME = "proposed_orders"
    COUNTS = ("orders",)

    def __init__(self, Graph graph, bit_generator):
        super().__init__(bit_generator)
        self.graph = graph
        self.visit = np.zeros(0, dtype=np.intp)

    cdef int _reserve(self) except -1 nogil:
        if self.visit.shape[0] < self.graph.n_slots:
            with gil:
                self.visit = np.zeros(self.graph.n_slots, dtype=np.intp)
        return 0

    cpdef int run(self) except -1:
        cdef Py_ssize_t i, n
        with nogil:
            self._reserve()
            n = self.graph.list_free_orders(&self.visit[0])
            draws.shuffle(self.rng, &self.visit[0], n)
            for i in range(n):
                self._propose(self.visit[i])
        return DONE

    cdef void _propose(self, Py_ssize_t slot) noexcept nogil:
        cdef double low = self.graph.highest_child(slot), high = self.graph.lowest_parent(slot)
        cdef double old = self.graph.order[slot], before = self.graph.log_density()
        self.proposed[0] += 1
        self.graph.take_out(slot)
        self.graph.order[slot] = low + draws.uniform(self.rng) * (high - low)
        self.graph.put_back(slot)
        if log(draws.uniform(self.rng)) < self.graph.log_density() - before:
            self.accepted[0] += 1
            return
        self.graph.take_out(slot)
        self.graph.order[slot] = old
        self.graph.put_back(slot)
