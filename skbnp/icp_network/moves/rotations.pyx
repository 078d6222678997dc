"""Noises of two hidden units without parents turned, their children's weights integrated out."""

from libc.math cimport cos, log, sin, sqrt

import numpy as np

from skbnp.icp_network._child_regression cimport ChildRegression
from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport rng as draws

# Standard deviation of the angle.
cdef double ANGLE = 0.1


cdef class Rotations(Move):
    """The law of the noises and volumes stay; the children's biases and weights are drawn anew.

    O(N p^2) for every child of p parents (mathematics/icp_network, section 6).
    """

    NAME = "rotations"
    COUNTS = ("rotations",)

    def __init__(
        self, Network net, ChildRegression regression, Py_ssize_t n_attempts, bit_generator
    ):
        super().__init__(bit_generator)
        self.net, self.graph, self.regression = net, net.graph, regression
        self.n_attempts = n_attempts
        self.orphan, self.before = np.zeros(0, dtype=np.intp), np.zeros((2, net.stride))

    cdef int _reserve(self) except -1 nogil:
        self.regression.reserve()
        if self.orphan.shape[0] < self.graph.n_slots:
            with gil:
                self.orphan = np.zeros(self.graph.n_slots, dtype=np.intp)
        return 0

    cpdef int run(self) except -1:
        cdef Py_ssize_t _
        with nogil:
            self._reserve()
            for _ in range(self.n_attempts):
                self._attempt()
        return DONE

    cdef Py_ssize_t _list_orphans(self) noexcept nogil:
        """Fill ``orphan`` with the hidden nodes that have no parents; their number."""
        cdef Py_ssize_t i, slot, n = 0
        for i in range(self.graph.n_nodes):
            slot = self.graph.ascending[i]
            if self.graph.is_hidden(slot) and self.graph.n_parents[slot] == 0:
                self.orphan[n] = slot
                n += 1
        return n

    cdef void _attempt(self) noexcept nogil:
        cdef Py_ssize_t i, one, other, n = self._list_orphans()
        cdef double ratio
        if n < 2:
            return
        self.proposed[0] += 1
        i = draws.below(self.rng, n)
        one, self.orphan[i] = self.orphan[i], self.orphan[n - 1]
        other = self.orphan[draws.below(self.rng, n - 1)]
        ratio = -self.regression.log_evidence_of_children(one, other)
        self.net.keep_rows(one, &self.before[0, 0])
        self.net.keep_rows(other, &self.before[1, 0])
        self._turn(one, other, ANGLE * draws.normal(self.rng))
        ratio += self.regression.log_evidence_of_children(one, other)
        if log(draws.uniform(self.rng)) < ratio:
            self.accepted[0] += 1
            self.regression.redraw_children(one, other, self.rng)
            return
        self.net.restore_rows(one, &self.before[0, 0])
        self.net.restore_rows(other, &self.before[1, 0])

    cdef void _turn(self, Py_ssize_t one, Py_ssize_t other, double angle) noexcept nogil:
        """Rotate the standardised noises of two nodes in all rows."""
        cdef double c = cos(angle), s = sin(angle), x, y
        cdef double root = sqrt(self.net.precision[one])
        cdef double other_root = sqrt(self.net.precision[other])
        cdef Py_ssize_t i
        for i in range(self.net.n_samples):
            x = root * (self.net.pre[one, i] - self.net.bias[one])
            y = other_root * (self.net.pre[other, i] - self.net.bias[other])
            self.net.pre[one, i] = self.net.bias[one] + (c * x - s * y) / root
            self.net.pre[other, i] = self.net.bias[other] + (s * x + c * y) / other_root
        self.net.squash(one)
        self.net.squash(other)
