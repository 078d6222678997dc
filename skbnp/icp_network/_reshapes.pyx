"""Moves of whole units, their children's biases and weights integrated out (equation (I6.3))."""

from libc.math cimport cos, exp, log, sin, sqrt
from libc.string cimport memcpy

import numpy as np

from skbnp.icp_network._graph cimport NO_STRETCH
from skbnp.icp_network._trajectories cimport Trajectories
from skbnp.numerics cimport rng as draws

# Standard deviations of the logarithm of the scale and of the shift; of the angle.
cdef double STRETCH = 0.1
cdef double ANGLE = 0.1


cdef class Reshapes(Trajectories):
    """Each attempt takes O(N p^2) for every child of p parents."""

    def __init__(
        self, visible, prior, state, bit_generator, labels, activation_update,
        Py_ssize_t n_leapfrog, int fault,
    ):
        self.before = np.zeros((2, max(1, len(visible))))
        super().__init__(
            visible, prior, state, bit_generator, labels, activation_update, n_leapfrog, fault
        )

    cdef int _stretch(self) except -1 nogil:
        """a' = c a + t of a hidden unit, with its bias, weights and precision; then its children.

        The rows' own density and its Jacobian cancel; 1 / c and -t / c undo the move.
        """
        cdef Py_ssize_t i, slot, other
        cdef double c, t, w, ratio, bias, precision
        if self.n_hidden == 0:
            return 0
        self.n_affine_tried += 1
        self._list_hidden()
        slot = self.visit[draws.below(self._rng, self.n_hidden)]
        bias, precision = self.bias[slot], self.precision[slot]
        ratio = STRETCH * draws.normal(self._rng)
        c, t = exp(ratio), STRETCH * draws.normal(self._rng)
        ratio *= self.n_parents[slot] - 2.0
        if self.fault != NO_STRETCH:
            ratio -= 0.5 * (t / STRETCH) * (t / STRETCH) * (1.0 / (c * c) - 1.0)
        ratio -= self._log_children_evidence(slot, slot)
        self._keep(0, slot)
        for i in range(self.n_samples):
            self.pre[slot, i] = c * self.pre[slot, i] + t
        self._squash(slot)
        self.bias[slot], self.precision[slot] = c * bias + t, precision / (c * c)
        ratio += self._log_children_evidence(slot, slot)
        ratio -= 0.5 * self.bias_precision * (self.bias[slot] * self.bias[slot] - bias * bias)
        ratio += self._log_precision(self.precision[slot]) - self._log_precision(precision)
        for i in range(self.n_nodes):
            other = self.ascending[i]
            w = self.weight[slot, other]
            ratio -= 0.5 * self._weight_precision_from(other) * (c * c - 1.0) * w * w
        if log(draws.uniform(self._rng)) < ratio:
            self.n_affine += 1
            for i in range(self.n_nodes):
                self.weight[slot, self.ascending[i]] *= c
            self._draw_children(slot, slot)
            return 0
        self.bias[slot], self.precision[slot] = bias, precision
        self._restore(0, slot)
        return 0

    cdef int _rotate(self) except -1 nogil:
        """Turn the noises of two hidden units without parents; then their children."""
        cdef Py_ssize_t i, n = 0, one, other
        cdef double angle, c, s, ratio, x, y, root, other_root
        for i in range(self.n_nodes):
            one = self.ascending[i]
            if self.is_hidden(one) and self.n_parents[one] == 0:
                self.visit[n] = one
                n += 1
        if n < 2:
            return 0
        self.n_rotations_tried += 1
        i = draws.below(self._rng, n)
        one, self.visit[i] = self.visit[i], self.visit[n - 1]
        other = self.visit[draws.below(self._rng, n - 1)]
        angle = ANGLE * draws.normal(self._rng)
        c, s = cos(angle), sin(angle)
        root, other_root = sqrt(self.precision[one]), sqrt(self.precision[other])
        ratio = -self._log_children_evidence(one, other)
        self._keep(0, one)
        self._keep(1, other)
        for i in range(self.n_samples):
            x = root * (self.pre[one, i] - self.bias[one])
            y = other_root * (self.pre[other, i] - self.bias[other])
            self.pre[one, i] = self.bias[one] + (c * x - s * y) / root
            self.pre[other, i] = self.bias[other] + (s * x + c * y) / other_root
        self._squash(one)
        self._squash(other)
        ratio += self._log_children_evidence(one, other)
        if log(draws.uniform(self._rng)) < ratio:
            self.n_rotations += 1
            self._draw_children(one, other)
            return 0
        self._restore(0, one)
        self._restore(1, other)
        return 0

    cdef double _log_children_evidence(self, Py_ssize_t one, Py_ssize_t other) noexcept nogil:
        """Of the children of either, given their parents and precisions."""
        cdef Py_ssize_t i, child
        cdef double total = 0.0
        for i in range(self.n_nodes):
            child = self.ascending[i]
            if self.edge[child, one] or self.edge[child, other]:
                self._start_pair(child, one if self.edge[child, one] else other)
                total += self.row.log_evidence()
        return total

    cdef void _draw_children(self, Py_ssize_t one, Py_ssize_t other) noexcept nogil:
        """Biases and weights of the same."""
        cdef Py_ssize_t i, child
        for i in range(self.n_nodes):
            child = self.ascending[i]
            if self.edge[child, one] or self.edge[child, other]:
                self._start_pair(child, one if self.edge[child, one] else other)
                self._draw_weights(child)

    cdef void _keep(self, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        memcpy(&self.before[i, 0], &self.pre[slot, 0], self.stride * sizeof(double))

    cdef void _restore(self, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        memcpy(&self.pre[slot, 0], &self.before[i, 0], self.stride * sizeof(double))
        self._squash(slot)
