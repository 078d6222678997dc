"""Edges into every node with its bias and weights integrated out, then all of these drawn."""

from libc.math cimport INFINITY, exp

import numpy as np

from skbnp.icp_network._child_regression cimport ChildRegression
from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport BROKEN, DONE, Move
from skbnp.numerics cimport rng as draws


cdef class Edges(Move):
    """Z_.i | a, rho_i, then W_.i and b_i, then rho_i, for every node i: equations (I5.1), (I5.2).

    O(N K^2) in matrix products for all children, then O(1) for each toggle and O(p^2) for each
    that changes. An edge is no candidate where its parent is hidden and has no other child.
    """

    NAME = "edges"
    COUNTS = ("edges",)  # toggled, and candidates

    def __init__(self, Network net, ChildRegression regression, bit_generator):
        super().__init__(bit_generator)
        self.net, self.graph, self.regression = net, net.graph, regression
        self.visit = np.zeros(0, dtype=np.intp)

    cdef int _reserve(self) except -1 nogil:
        self.regression.reserve()
        if self.visit.shape[0] < self.graph.n_slots:
            with gil:
                self.visit, self.turn, self.n_below = np.zeros(
                    (3, self.graph.n_slots), dtype=np.intp
                )
        return 0

    cpdef int run(self) except -1:
        """Every node once, in an order drawn anew; BROKEN where its matrix is not definite."""
        cdef Py_ssize_t i, n
        with nogil:
            self._reserve()
            self.regression.multiply()
            self.graph.count_all_below(&self.n_below[0])
            n = self._list_children()
            draws.shuffle(self.rng, &self.visit[0], n)
            for i in range(n):
                if self._update_child(self.visit[i]) != 0:
                    return BROKEN
        return DONE

    cdef Py_ssize_t _list_children(self) noexcept nogil:
        """Fill ``visit`` with the nodes that may have parents; their number."""
        cdef Py_ssize_t at, n = 0
        for at in range(self.graph.n_nodes):
            if self.net.has_law(self.graph.ascending[at]):
                self.visit[n] = self.graph.ascending[at]
                n += 1
        return n

    cdef int _update_child(self, Py_ssize_t child) noexcept nogil:
        """Edges into a child, its bias and weights, its precision."""
        cdef Py_ssize_t j, i, n, first = self.graph.count_up_to(self.graph.order[child])
        if self.regression.start_among(self.graph.rank(child), first) != 0:
            return 1
        n = self.graph.n_nodes - first
        for j in range(n):
            self.turn[j] = j
        draws.shuffle(self.rng, &self.turn[0], n)
        for i in range(n):
            self._toggle(child, self.turn[i])
        if self.regression.draw_weights(child, self.rng) != 0:
            return 1
        self._draw_precision(child)
        return 0

    cdef void _toggle(self, Py_ssize_t child, Py_ssize_t j) noexcept nogil:
        """The edge from candidate j: a Gibbs step."""
        cdef Py_ssize_t parent = self.regression.candidate[j]
        cdef double odds = self._log_prior_odds(child, parent)
        if odds == -INFINITY:
            return
        self.proposed[0] += 1
        odds += self.regression.row.gain(j)
        if (
            draws.uniform(self.rng) * (1.0 + exp(-odds)) < 1.0
        ) != self.graph.edge[child, parent]:
            self.accepted[0] += 1
            self.regression.row.flip(j)
            if self.regression.row.active[j]:
                self.graph.link(child, parent)
            else:
                self.graph.unlink(child, parent)

    cdef double _log_prior_odds(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil:
        """Equation (I5.1); -inf if the parent needs the child."""
        cdef Py_ssize_t n_others = self.graph.n_children[parent] - self.graph.edge[child, parent]
        return self.graph.law.log_taken_odds(
            self.graph.is_hidden(parent), n_others, self.n_below[parent]
        )

    cdef void _draw_precision(self, Py_ssize_t child) noexcept nogil:
        """Precision of the child whose bias and weights have just been drawn."""
        if self.net.has_free_precision(child):
            self.net.precision[child] = self.net.draw_precision_given(
                self.regression.squared_residual(), self.rng
            )
