"""A node regressed on nodes above it, its bias and weights integrated out: equation (I5.2)."""

from libc.string cimport memcpy
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.icp_network._network cimport Network
from skbnp.likelihoods.nonlinear_gaussian._regression cimport RowRegression
from skbnp.numerics cimport linalg


cdef class ChildRegression:
    """Evidence of the parents of one child, the candidates in ``row``; several moves share it.

    ``start_among`` takes all nodes from a place on as candidates, after ``multiply`` has made the
    products of all nodes with all, once for all children: O(N K^2) in matrix products, then
    O(s p^2) for a child with p candidates, s of them parents. ``start_parents`` takes its parents
    and one node more: O(N p^2). Nothing is kept from one start to the next but these products.
    """

    def __init__(self, Network net):
        self.net, self.graph = net, net.graph
        self.row = RowRegression()
        self.drawn = np.zeros(0)

    cdef int reserve(self) except -1 nogil:
        """Room for all nodes that the graph has room for; nothing is kept."""
        cdef Py_ssize_t room = self.graph.n_slots
        if self.drawn.shape[0] > room:
            return 0
        with gil:
            self.regressor = np.zeros((room + 1, self.net.stride))
            self.response = np.zeros((room, self.net.stride))
            self.gram, self.side = np.zeros((2, room + 1, room + 1))
            self.drawn = np.zeros(room + 1)
            self.candidate = np.zeros(room + 1, dtype=np.intp)
            self.row.reserve(room + 1)
        return 0

    # -- a child and its candidates -----------------------------------------------------------

    cdef void multiply(self) noexcept nogil:
        """Products of what all nodes give, the constant 1 last, with that and with all a."""
        cdef Py_ssize_t at, slot, n = self.graph.n_nodes, stride = self.net.stride
        cdef Py_ssize_t width = self.gram.shape[1]
        for at in range(n):
            slot = self.graph.ascending[at]
            memcpy(&self.regressor[at, 0], &self.net.post[slot, 0], stride * sizeof(double))
            memcpy(&self.response[at, 0], &self.net.pre[slot, 0], stride * sizeof(double))
        self._put_ones(n)
        linalg.gemm_strided(
            False, True, n + 1, n + 1, self.net.n_samples, 1.0, &self.regressor[0, 0], stride,
            &self.regressor[0, 0], stride, 0.0, &self.gram[0, 0], width,
        )
        linalg.gemm_strided(
            False, True, n, n + 1, self.net.n_samples, 1.0, &self.response[0, 0], stride,
            &self.regressor[0, 0], stride, 0.0, &self.side[0, 0], width,
        )

    cdef int start_among(self, Py_ssize_t at, Py_ssize_t first) noexcept nogil:
        """Begin with the node at one place; candidates are those from ``first`` on, then 1.

        Non-zero if its matrix is not positive definite. ``multiply`` is up to date.
        """
        cdef Py_ssize_t j, child = self.graph.ascending[at], size = self.graph.n_nodes - first + 1
        for j in range(size - 1):
            self.candidate[j] = self.graph.ascending[first + j]
            self._offer(child, j, self.side[at, first + j])
        self._offer_bias(size - 1, self.side[at, self.graph.n_nodes])
        return self._start(child, size, &self.gram[first, first])

    cdef int start_parents(self, Py_ssize_t child, Py_ssize_t other) noexcept nogil:
        """Begin with a child; candidates are the other node, its parents but that, then 1."""
        cdef Py_ssize_t i, slot, size = 1, stride = self.net.stride, n = self.net.n_samples
        cdef const double* a = &self.net.pre[child, 0]
        self.candidate[0] = other
        for i in range(self.graph.n_nodes):
            slot = self.graph.ascending[i]
            if slot != other and self.graph.edge[child, slot]:
                self.candidate[size] = slot
                size += 1
        for i in range(size):
            memcpy(
                &self.regressor[i, 0], &self.net.post[self.candidate[i], 0],
                stride * sizeof(double),
            )
        self._put_ones(size)
        size += 1
        linalg.gemm_strided(
            False, True, size, size, n, 1.0, &self.regressor[0, 0], stride,
            &self.regressor[0, 0], stride, 0.0, &self.gram[0, 0], self.gram.shape[1],
        )
        for i in range(size - 1):
            self._offer(child, i, linalg.dot(n, a, &self.regressor[i, 0]))
        self._offer_bias(size - 1, linalg.dot(n, a, &self.regressor[size - 1, 0]))
        return self._start(child, size, &self.gram[0, 0])

    cdef void _offer(self, Py_ssize_t child, Py_ssize_t j, double side) noexcept nogil:
        """A candidate parent, active if it is one."""
        self.row.active[j] = self.graph.edge[child, self.candidate[j]]
        self.row.prior_mean[j] = 0.0
        self.row.prior_precision[j] = self.net.weight_precision_from(self.candidate[j])
        self.row.side[j] = side

    cdef void _offer_bias(self, Py_ssize_t j, double side) noexcept nogil:
        self.row.active[j] = 1
        self.row.prior_mean[j], self.row.prior_precision[j] = 0.0, self.net.bias_precision
        self.row.side[j] = side

    cdef int _start(self, Py_ssize_t child, Py_ssize_t size, const double* gram) noexcept nogil:
        cdef const double* a = &self.net.pre[child, 0]
        return self.row.start(
            size, gram, self.gram.shape[1], self.net.n_samples,
            linalg.dot(self.net.n_samples, a, a), self.net.precision[child],
        )

    cdef void _put_ones(self, Py_ssize_t at) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.net.n_samples):
            self.regressor[at, i] = 1.0

    # -- its bias and weights -----------------------------------------------------------------

    cdef int draw_weights(self, Py_ssize_t child, bitgen_t* rng) noexcept nogil:
        """Bias and weights of the child that was started with; non-zero if that fails."""
        cdef Py_ssize_t j, n = self.row.size - 1
        if self.row.draw(rng, &self.drawn[0]) != 0:
            return 1
        self.net.bias[child] = self.drawn[n]
        for j in range(n):
            self.net.weight[child, self.candidate[j]] = self.drawn[j]
        return 0

    cdef double squared_residual(self) noexcept nogil:
        """Of the child whose bias and weights have just been drawn."""
        return self.row.squared_residual(&self.drawn[0])

    # -- the children of one node or two ------------------------------------------------------

    cdef double log_evidence_of_children(self, Py_ssize_t one, Py_ssize_t other) noexcept nogil:
        """Of the children of either, given their parents and precisions."""
        cdef Py_ssize_t i, child
        cdef double total = 0.0
        for i in range(self.graph.n_nodes):
            child = self.graph.ascending[i]
            if self.graph.edge[child, one] or self.graph.edge[child, other]:
                self.start_parents(child, one if self.graph.edge[child, one] else other)
                total += self.row.log_evidence()
        return total

    cdef void redraw_children(
        self, Py_ssize_t one, Py_ssize_t other, bitgen_t* rng
    ) noexcept nogil:
        """Biases and weights of the same."""
        cdef Py_ssize_t i, child
        for i in range(self.graph.n_nodes):
            child = self.graph.ascending[i]
            if self.graph.edge[child, one] or self.graph.edge[child, other]:
                self.start_parents(child, one if self.graph.edge[child, one] else other)
                self.draw_weights(child, rng)
