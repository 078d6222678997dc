"""Edges with the child's bias and weights integrated out, then drawn; reversals of edges."""

from libc.math cimport INFINITY, exp, log
from libc.string cimport memcpy

import numpy as np

from skbnp.icp_network._graph cimport OBSERVED_STAY, OWN_EDGE, SINGLETONS_STAY
from skbnp.icp_network._network cimport BROKEN_EDGES, Network
from skbnp.likelihoods.nonlinear_gaussian._regression cimport RowRegression
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws


cdef class Edges(Network):
    """A node regressed on all nodes above it, or on its parents.

    The products Phi'Phi and Phi'a of all nodes with all are made once for all children, as no
    activation changes meanwhile: O(N K^2) in matrix products. A child with p nodes above it, s of
    them parents, takes O(s p^2) to start, O(1) for each toggle and O(p^2) for each that changes.
    """

    def __init__(self, visible, prior, state, bit_generator, labels, int fault):
        self.row = RowRegression()
        self.regressor = self.gram = self.side = np.zeros((0, 0))
        self.drawn = np.zeros(0)
        self.candidate = self.candidate_order = np.zeros(0, dtype=np.intp)
        super().__init__(visible, prior, state, bit_generator, labels, fault)

    def _grow_nodes(self, old, room):
        self.regressor = np.zeros((room + 1, self.stride))
        self.gram, self.side = np.zeros((room + 1, room + 1)), np.zeros((room + 1, room + 1))
        self.drawn = np.zeros(room + 1)
        self.candidate = np.zeros(room + 1, dtype=np.intp)
        self.candidate_order = np.zeros(room + 1, dtype=np.intp)
        self.row.reserve(room + 1)
        Network._grow_nodes(self, old, room)

    # -- every child given the nodes above it -------------------------------------------------

    cdef int _update_edges(self) except -1 nogil:
        """Edges into every node, its bias, weights and precision, in an order drawn anew."""
        cdef Py_ssize_t i, at, first, child, n = 0
        self._multiply()
        self._count_all_below()
        for at in range(self.n_nodes):
            if self.has_law(self.ascending[at]):
                self.visit[n] = self.ascending[at]
                n += 1
        self._shuffle_visits(n)
        for i in range(n):
            child = self.visit[i]
            at = self._rank(child)
            first = at + 1
            while first < self.n_nodes and self.order[self.ascending[first]] <= self.order[child]:
                first += 1
            if self._start_child(at, first) != 0:
                self._broken = BROKEN_EDGES
                return 0
            self._toggle_all(child)
            if self._draw_weights(child) == 0:
                self._draw_precision(child)
        return 0

    cdef void _multiply(self) noexcept nogil:
        """Products of what all nodes give, the constant 1 last, with that and with all a."""
        cdef Py_ssize_t at, slot, n = self.n_nodes, stride = self.stride
        cdef Py_ssize_t width = self.gram.shape[1]
        for at in range(n):
            slot = self.ascending[at]
            memcpy(&self.regressor[at, 0], &self.post[slot, 0], stride * sizeof(double))
            memcpy(&self.residual[at, 0], &self.pre[slot, 0], stride * sizeof(double))
        self._put_ones(n)
        linalg.gemm_strided(
            False, True, n + 1, n + 1, self.n_samples, 1.0, &self.regressor[0, 0], stride,
            &self.regressor[0, 0], stride, 0.0, &self.gram[0, 0], width,
        )
        linalg.gemm_strided(
            False, True, n, n + 1, self.n_samples, 1.0, &self.residual[0, 0], stride,
            &self.regressor[0, 0], stride, 0.0, &self.side[0, 0], width,
        )

    cdef void _put_ones(self, Py_ssize_t at) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n_samples):
            self.regressor[at, i] = 1.0

    cdef int _start_child(self, Py_ssize_t at, Py_ssize_t first) noexcept nogil:
        """Begin with the node at one place; candidates are those from ``first`` on, then 1."""
        cdef Py_ssize_t j, child = self.ascending[at], size = self.n_nodes - first + 1
        for j in range(size - 1):
            self.candidate[j] = self.ascending[first + j]
            self._offer(child, j, self.side[at, first + j])
        self._offer_bias(size - 1, self.side[at, self.n_nodes])
        return self._start_row(child, size, &self.gram[first, first])

    cdef void _offer(self, Py_ssize_t child, Py_ssize_t j, double side) noexcept nogil:
        """A candidate parent of the child at work."""
        self.row.active[j] = self.edge[child, self.candidate[j]]
        self.row.prior_mean[j] = 0.0
        self.row.prior_precision[j] = self._weight_precision_from(self.candidate[j])
        self.row.side[j] = side

    cdef void _offer_bias(self, Py_ssize_t j, double side) noexcept nogil:
        self.row.active[j] = 1
        self.row.prior_mean[j], self.row.prior_precision[j] = 0.0, self.bias_precision
        self.row.side[j] = side

    cdef int _start_row(
        self, Py_ssize_t child, Py_ssize_t size, const double* gram
    ) noexcept nogil:
        cdef const double* a = &self.pre[child, 0]
        return self.row.start(
            size, gram, self.gram.shape[1], self.n_samples,
            linalg.dot(self.n_samples, a, a), self.precision[child],
        )

    cdef void _toggle_all(self, Py_ssize_t child) noexcept nogil:
        """Every edge into a child, in an order drawn anew."""
        cdef Py_ssize_t i, j, parent, n = self.row.size - 1
        cdef double odds
        for j in range(n):
            self.candidate_order[j] = j
        draws.shuffle(self._rng, &self.candidate_order[0], n)
        for i in range(n):
            j = self.candidate_order[i]
            parent = self.candidate[j]
            if self.fault == SINGLETONS_STAY or self.fault == OBSERVED_STAY:
                if self.n_children[parent] == 1 and (
                    self.is_hidden(parent) == (self.fault == SINGLETONS_STAY)
                ):
                    continue
            odds = self._log_taken_odds(
                parent, self.n_children[parent] - (
                    0 if self.fault == OWN_EDGE and self.n_children[parent] > 1
                    else self.edge[child, parent]
                ),
            )
            if odds == -INFINITY:
                continue
            self.n_toggled += 1
            odds += self.row.gain(j)
            if (draws.uniform(self._rng) * (1.0 + exp(-odds)) < 1.0) != self.edge[child, parent]:
                self.n_flipped += 1
                self.row.flip(j)
                if self.row.active[j]:
                    self._link(child, parent)
                else:
                    self._unlink(child, parent)

    cdef int _draw_weights(self, Py_ssize_t child) noexcept nogil:
        """Bias and weights of the child at work."""
        cdef Py_ssize_t j, n = self.row.size - 1
        if self.row.draw(self._rng, &self.drawn[0]) != 0:
            self._broken = BROKEN_EDGES
            return 1
        self.bias[child] = self.drawn[n]
        for j in range(n):
            self.weight[child, self.candidate[j]] = self.drawn[j]
        return 0

    cdef void _draw_precision(self, Py_ssize_t child) noexcept nogil:
        """Precision of the child at work, whose bias and weights have just been drawn."""
        cdef double squares
        if self.has_free_precision(child):
            squares = self.row.squared_residual(&self.drawn[0])
            self.precision[child] = draws.draw_gamma(
                self._rng, self.noise_law[0] + 0.5 * self.n_samples,
                self.noise_law[1] + 0.5 * squares,
            )

    # -- neighbours in order change places ----------------------------------------------------

    cdef int _swap(self) except -1 nogil:
        """Exchange the orders of two neighbours and reverse the edge between them (section 5.4).

        Where there is one, both nodes' biases and weights are integrated out and drawn anew:
        O(N p^2) for p parents.
        """
        cdef Py_ssize_t j, lower, upper
        cdef double ratio
        cdef bint joined
        if self.n_nodes < 2:
            return 0
        j = draws.below(self._rng, self.n_nodes - 1)
        lower, upper = self.ascending[j], self.ascending[j + 1]
        if not self.is_free_order(lower) or not self.is_free_order(upper):
            return 0
        if self.order[lower] == self.order[upper]:
            return 0
        self.n_swaps_tried += 1
        joined = self.edge[lower, upper]
        if joined and self.is_hidden(upper) and self.n_children[upper] == 1:
            return 0
        ratio = -self._log_graph()
        if joined:
            if self._start_pair(lower, upper) != 0:
                return 0
            ratio -= self.row.gain(0)
            if self._start_pair(upper, lower) != 0:
                return 0
            ratio += self.row.gain(0)
        self._exchange(j, joined)
        ratio += self._log_graph()
        if log(draws.uniform(self._rng)) >= ratio:
            self._exchange(j, joined)
            return 0
        self.n_swaps += 1
        if joined:
            self.weight[lower, upper] = 0.0
            # Not the precisions: the ratio depends on them, so that what is only drawn after an
            # acceptance would not leave their law as it is.
            self._start_pair(upper, lower)
            self._draw_weights(upper)
            self._start_pair(lower, upper)
            self._draw_weights(lower)
        return 0

    cdef void _exchange(self, Py_ssize_t j, bint joined) noexcept nogil:
        """Let the nodes at j and j + 1 change places, and an edge between them its direction."""
        cdef Py_ssize_t lower = self.ascending[j], upper = self.ascending[j + 1]
        self.order[lower], self.order[upper] = self.order[upper], self.order[lower]
        self.ascending[j], self.ascending[j + 1] = upper, lower
        if joined:
            self._unlink(lower, upper)
            self._link(upper, lower)

    cdef int _start_pair(self, Py_ssize_t child, Py_ssize_t other) noexcept nogil:
        """Begin with a child; candidates are the other node, its parents but that, then 1."""
        cdef Py_ssize_t i, slot, size = 1, stride = self.stride
        self.candidate[0] = other
        for i in range(self.n_nodes):
            slot = self.ascending[i]
            if slot != other and self.edge[child, slot]:
                self.candidate[size] = slot
                size += 1
        for i in range(size):
            memcpy(
                &self.regressor[i, 0], &self.post[self.candidate[i], 0], stride * sizeof(double)
            )
        self._put_ones(size)
        size += 1
        linalg.gemm_strided(
            False, True, size, size, self.n_samples, 1.0, &self.regressor[0, 0], stride,
            &self.regressor[0, 0], stride, 0.0, &self.gram[0, 0], self.gram.shape[1],
        )
        for i in range(size - 1):
            self._offer(
                child, i,
                linalg.dot(self.n_samples, &self.pre[child, 0], &self.regressor[i, 0]),
            )
        self._offer_bias(
            size - 1, linalg.dot(self.n_samples, &self.pre[child, 0], &self.regressor[size - 1, 0])
        )
        return self._start_row(child, size, &self.gram[0, 0])
