"""Hidden units stretched and shifted, their children's biases and weights integrated out."""

from libc.math cimport exp, log

import numpy as np

from skbnp.icp_network._child_regression cimport ChildRegression
from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport rng as draws

# Standard deviation of the logarithm of the scale and of the shift.
cdef double STRETCH = 0.1


cdef class Affine(Move):
    """a' = c a + t of a unit, with its bias, weights and precision; then its children's: (I6.3).

    The rows' own density and its Jacobian cancel; 1 / c and -t / c undo the move. O(N p^2) for
    every child of p parents.
    """

    NAME = "affine"
    COUNTS = ("affine",)

    def __init__(
        self, Network net, ChildRegression regression, Py_ssize_t n_attempts, bit_generator
    ):
        super().__init__(bit_generator)
        self.net, self.graph, self.regression = net, net.graph, regression
        self.n_attempts = n_attempts
        self.hidden, self.before = np.zeros(0, dtype=np.intp), np.zeros(net.stride)

    cdef int _reserve(self) except -1 nogil:
        self.regression.reserve()
        if self.hidden.shape[0] < self.graph.n_slots:
            with gil:
                self.hidden = np.zeros(self.graph.n_slots, dtype=np.intp)
        return 0

    cpdef int run(self) except -1:
        cdef Py_ssize_t _
        if self.graph.n_hidden == 0:
            return DONE
        with nogil:
            self._reserve()
            for _ in range(self.n_attempts):
                self._attempt()
        return DONE

    cdef void _attempt(self) noexcept nogil:
        cdef Py_ssize_t i, slot
        cdef double c, t, ratio, bias, precision
        self.proposed[0] += 1
        self.graph.list_hidden(&self.hidden[0])
        slot = self.hidden[draws.below(self.rng, self.graph.n_hidden)]
        bias, precision = self.net.bias[slot], self.net.precision[slot]
        ratio = STRETCH * draws.normal(self.rng)
        c, t = exp(ratio), STRETCH * draws.normal(self.rng)
        ratio *= self.graph.n_parents[slot] - 2.0
        ratio += self._log_inverse_shift(c, t)
        ratio -= self.regression.log_evidence_of_children(slot, slot)
        self.net.keep_rows(slot, &self.before[0])
        for i in range(self.net.n_samples):
            self.net.pre[slot, i] = c * self.net.pre[slot, i] + t
        self.net.squash(slot)
        self.net.bias[slot], self.net.precision[slot] = c * bias + t, precision / (c * c)
        ratio += self.regression.log_evidence_of_children(slot, slot)
        ratio -= 0.5 * self.net.bias_precision * (
            self.net.bias[slot] * self.net.bias[slot] - bias * bias
        )
        ratio += self.net.log_precision(self.net.precision[slot])
        ratio -= self.net.log_precision(precision)
        ratio += self._log_weights_ratio(slot, c)
        if log(draws.uniform(self.rng)) < ratio:
            self.accepted[0] += 1
            for i in range(self.graph.n_nodes):
                self.net.weight[slot, self.graph.ascending[i]] *= c
            self.regression.redraw_children(slot, slot, self.rng)
            return
        self.net.bias[slot], self.net.precision[slot] = bias, precision
        self.net.restore_rows(slot, &self.before[0])

    cdef double _log_inverse_shift(self, double c, double t) noexcept nogil:
        """log density of the shift -t / c that undoes the move over that of t."""
        return -0.5 * (t / STRETCH) * (t / STRETCH) * (1.0 / (c * c) - 1.0)

    cdef double _log_weights_ratio(self, Py_ssize_t slot, double c) noexcept nogil:
        """log prior of the node's weights times c over that of the weights."""
        cdef Py_ssize_t i, other
        cdef double w, total = 0.0
        for i in range(self.graph.n_nodes):
            other = self.graph.ascending[i]
            w = self.net.weight[slot, other]
            total -= 0.5 * self.net.weight_precision_from(other) * (c * c - 1.0) * w * w
        return total
