"""The units of one layer as linear regressions on their candidate parents.

With the activations given, bias and weights are integrated out while edges change:
doc/mathematics/cibp_belief_net, section 5.2.
"""

from libc.math cimport log, sqrt
from libc.string cimport memcpy

import numpy as np

from skbnp.cibp_belief_net._laws cimport (
    BIAS_MEAN, BIAS_PRECISION, CONCENTRATION, WEIGHT_MEAN, WEIGHT_PRECISION,
)
from skbnp.cibp_belief_net._state cimport Network
from skbnp.likelihoods.nonlinear_gaussian._regression cimport RowRegression
from skbnp.numerics cimport linalg

from skbnp.cibp_belief_net._arrays import grown


cdef class LayerRegression:
    """Products of a layer's children and candidates, and the regression of one child at a time.

    ``gather`` a layer, then ``start`` a child; ``row`` answers what edges of that child are worth.
    The moves of a layer share it: each leaves the candidates as the network has them.

    Cost of a layer of K children with p candidates: N p (p + K) in two products (BLAS 3).
    """

    def __init__(self, Network net):
        self.net, self.row = net, RowRegression()
        self.candidate = self.place = np.zeros(0, dtype=np.intp)
        self.regressor = self.copied = np.zeros((0, net.stride))
        self.gram = self.side = np.zeros((0, 0))
        self.product = self.response_square = self.new_side = np.zeros(0)

    # -- a layer ------------------------------------------------------------------------------

    cdef int gather(self, Py_ssize_t layer) except -1 nogil:
        """Lay out candidates and children of a layer and compute their products."""
        cdef Py_ssize_t pos, c, i, slot, n = self.net.width(layer)
        cdef Py_ssize_t begin = self.net.first_above(layer), end = self.net.end_above(layer)
        self.index, self.n_candidates = layer, 0
        self._need_places()
        for pos in range(self.place.shape[0]):
            self.place[pos] = -1
        self._need_candidates(1 + end - begin)
        self._need_children(n)
        self.candidate[0], self.n_candidates = -1, 1
        for i in range(self.net.n_samples):
            self.regressor[0, i] = 1.0
        for pos in range(begin, end):
            slot = self.net.member[pos]
            self.candidate[self.n_candidates], self.place[slot] = slot, self.n_candidates
            memcpy(
                &self.regressor[self.n_candidates, 0], &self.net.post[slot, 0],
                self.net.stride * sizeof(double),
            )
            self.n_candidates += 1
        if layer > 0:
            for c in range(n):
                slot = self.net.slot(layer, c)
                memcpy(&self.copied[c, 0], &self.net.pre[slot, 0], self.net.stride * sizeof(double))
        for c in range(n):
            self.response_square[c] = linalg.dot(
                self.net.n_samples, self.response(c), self.response(c)
            )
        # The columns of stride are zeros, so that they may be summed over.
        linalg.gram(
            self.n_candidates, self.net.stride, &self.regressor[0, 0], &self.gram[0, 0],
            self.gram.shape[1],
        )
        linalg.gemm_strided(
            False, True, n, self.n_candidates, self.net.n_samples, 1.0, self.response(0),
            self.net.stride, &self.regressor[0, 0], self.net.stride, 0.0, &self.side[0, 0],
            self.side.shape[1],
        )
        return 0

    cdef const double* response(self, Py_ssize_t c) noexcept nogil:
        """Pre-activations of the layer's c-th unit; all of a layer lie one after another."""
        return &self.net.visible[c, 0] if self.index == 0 else &self.copied[c, 0]

    # -- one child ----------------------------------------------------------------------------

    cdef int start(self, Py_ssize_t c) noexcept nogil:
        """Set the regression of the layer's c-th unit up, with the parents that it has.

        Non-zero: its matrix is not positive definite.
        """
        cdef Py_ssize_t j, m = self.index, unit = self.net.unit(m, c)
        self.row.active[0] = 1
        self.row.prior_mean[0] = self.net.hyper[BIAS_MEAN, m]
        self.row.prior_precision[0] = self.net.hyper[BIAS_PRECISION, m]
        self.row.side[0] = self.side[c, 0]
        for j in range(1, self.n_candidates):
            self.row.active[j] = self.candidate[j] >= 0 and self.net.edge[unit, self.candidate[j]]
            self.row.prior_mean[j] = self.net.hyper[WEIGHT_MEAN, m]
            self.row.prior_precision[j] = self.net.hyper[WEIGHT_PRECISION, m]
            self.row.side[j] = self.side[c, j]
        return self.row.start(
            self.n_candidates, &self.gram[0, 0], self.gram.shape[1], self.net.n_samples,
            self.response_square[c], self.net.precision[unit],
        )

    cdef bint is_free(self, Py_ssize_t unit, Py_ssize_t j) noexcept nogil:
        """Whether the edge from candidate j may be there or not, its own state aside.

        An edge without which its parent would have no child left in the layer below is for
        births and deaths.
        """
        cdef Py_ssize_t slot = self.candidate[j], others
        if slot < 0:
            return False
        others = self.net.n_near[slot]
        if self.net.slot_layer[slot] == self.index + 1:
            others -= self.net.edge[unit, slot]
        return others > 0

    cdef double n_others(self, Py_ssize_t unit, Py_ssize_t slot) noexcept nogil:
        """Number of children of a slot without the unit."""
        return self.net.n_children[slot] - self.net.edge[unit, slot]

    cdef double log_urn(self, Py_ssize_t unit, Py_ssize_t j) noexcept nogil:
        """Prior log odds of the edge from candidate j to a unit: equation (B3.5)."""
        cdef Py_ssize_t slot = self.candidate[j], level = self.net.slot_layer[slot]
        cdef double others = self.n_others(unit, slot)
        return log(others) - log(
            self.net.offered(level - 1) - 1.0 + self.net.hyper[CONCENTRATION, level - 1] - others
        )

    cdef void put_residual(self, Py_ssize_t c, double* e) noexcept nogil:
        """e (stride,): the c-th unit's standardised residual at its posterior mean weights."""
        cdef Py_ssize_t j, i, n = self.row.size + 1
        cdef double size
        memcpy(e, self.response(c), self.net.stride * sizeof(double))
        for j in range(self.n_candidates):
            if self.row.active[j]:
                linalg.axpy(
                    self.net.n_samples, -self.row.swept[j * n + self.row.size],
                    &self.regressor[j, 0], e,
                )
        size = sqrt(linalg.dot(self.net.n_samples, e, e) / max(1, self.net.n_samples))
        for i in range(self.net.n_samples):
            e[i] = e[i] / size if size > 0.0 else 0.0

    # -- new parents --------------------------------------------------------------------------

    cdef double gain_of_new(self, Py_ssize_t c, const double* u) noexcept nogil:
        """Gain of one more parent, of activations u, for the unit that was started: (B5.4)."""
        cdef Py_ssize_t j
        for j in range(self.n_candidates):
            if self.row.active[j]:
                self.product[j] = linalg.dot(self.net.n_samples, &self.regressor[j, 0], u)
        return self.row.gain_of_new(
            &self.product[0], linalg.dot(self.net.n_samples, u, u),
            linalg.dot(self.net.n_samples, u, self.response(c)),
            self.net.hyper[WEIGHT_MEAN, self.index], self.net.hyper[WEIGHT_PRECISION, self.index],
        )

    cdef int gains_of_new(self, const double* u, double* gain) noexcept nogil:
        """The same for every unit of the layer, each started in turn; non-zero if one fails."""
        cdef Py_ssize_t c, n = self.net.width(self.index)
        cdef double own = linalg.dot(self.net.n_samples, u, u)
        linalg.gemv(
            False, self.n_candidates, self.net.stride, 1.0, &self.regressor[0, 0], u, 0.0,
            &self.product[0],
        )
        linalg.gemv(False, n, self.net.stride, 1.0, self.response(0), u, 0.0, &self.new_side[0])
        for c in range(n):
            if self.start(c) != 0:
                return 1
            gain[c] = self.row.gain_of_new(
                &self.product[0], own, self.new_side[c], self.net.hyper[WEIGHT_MEAN, self.index],
                self.net.hyper[WEIGHT_PRECISION, self.index],
            )
        return 0

    cdef int add(self, Py_ssize_t slot) except -1 nogil:
        """Offer a newborn to all units of the layer that are still to be visited."""
        cdef Py_ssize_t at = self.n_candidates, j, n = self.net.width(self.index)
        cdef Py_ssize_t stride = self.net.stride
        cdef double* u
        self._need_places()
        self._need_candidates(at + 1)
        self.candidate[at], self.place[slot] = slot, at
        self.n_candidates += 1
        memcpy(&self.regressor[at, 0], &self.net.post[slot, 0], stride * sizeof(double))
        u = &self.regressor[at, 0]
        linalg.gemv(
            False, at + 1, stride, 1.0, &self.regressor[0, 0], u, 0.0, &self.product[0]
        )
        for j in range(at + 1):
            self.gram[j, at] = self.product[j]
        linalg.gemv(False, n, stride, 1.0, self.response(0), u, 0.0, &self.new_side[0])
        for j in range(n):
            self.side[j, at] = self.new_side[j]
        return 0

    cdef void drop(self, Py_ssize_t slot) noexcept nogil:
        """A unit that dies is no candidate any more; its place stays, empty."""
        cdef Py_ssize_t at = self.place[slot]
        if at >= 0:
            self.candidate[at] = self.place[slot] = -1

    # -- room ---------------------------------------------------------------------------------

    cdef int _need_candidates(self, Py_ssize_t n) except -1 nogil:
        cdef Py_ssize_t room
        if self.gram.shape[0] >= n:
            return 0
        with gil:
            room = n + n // 2 + 8
            self.row.reserve(room)
            self.candidate = grown(self.candidate, (room,))
            self.regressor = grown(self.regressor, (room, self.net.stride))
            self.gram = grown(self.gram, (room, room))
            self.side = grown(self.side, (self.side.shape[0], room))
            self.product = grown(self.product, (room,))
        return 0

    cdef int _need_children(self, Py_ssize_t n) except -1 nogil:
        cdef Py_ssize_t room = max(n, self.side.shape[0])
        if self.side.shape[0] < n or self.side.shape[1] < self.gram.shape[1]:
            with gil:
                self.side = grown(self.side, (room, self.gram.shape[1]))
                self.response_square = grown(self.response_square, (room,))
                self.new_side = grown(self.new_side, (room,))
        if self.index > 0 and self.copied.shape[0] < n:
            with gil:
                self.copied = grown(self.copied, (n, self.net.stride))
        return 0

    cdef int _need_places(self) except -1 nogil:
        """As many places as the network has slots; they grow when units are born."""
        cdef Py_ssize_t j
        if self.place.shape[0] == self.net.n_slots():
            return 0
        with gil:
            self.place = np.full(self.net.n_slots(), -1, dtype=np.intp)
            for j in range(self.n_candidates):
                if self.candidate[j] >= 0:
                    self.place[self.candidate[j]] = j
        return 0
