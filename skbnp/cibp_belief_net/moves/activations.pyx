"""Activations of the hidden layers, each given all else."""

from libc.string cimport memcpy

import numpy as np

from skbnp.cibp_belief_net._state cimport Network
from skbnp.likelihoods.nonlinear_gaussian._activations cimport Activations
from skbnp.mcmc.chain cimport BROKEN, DONE, Move
from skbnp.numerics cimport linalg

from skbnp.mcmc.fields import Field


cdef class LayerActivations(Move):
    """Layers 1, 2, ...: equation (B5.1), by the methods of ``Activations``.

    Cost for a layer of K units with p parents, N rows: O(N K (p + children)) in matrix products,
    O(N K^2) for each pass.
    """

    NAME = "activations"
    FIELDS = (Field("step", float, above=0.0, below=1e3),)

    def __init__(self, Network net, bit_generator, method="auto", n_passes=2, n_tries=5):
        super().__init__(bit_generator)
        self.net, self.activations = net, Activations(method, n_passes, n_tries)
        self.pre = self.mean = self.linear = self.precision = self.quadratic = np.zeros(0)
        self.offset = self.block = self.scaled = self.weights = self.cross = np.zeros(0)
        self.parents = self.children = self.others = np.zeros((0, net.stride))

    @property
    def step(self):
        """Step of Hamiltonian Monte Carlo."""
        return self.activations.step

    @step.setter
    def step(self, value):
        self.activations.step = value

    def adapt_step(self, sweep):
        """After a warm-up sweep: tune the step, ever more slowly."""
        self.activations.adapt((sweep + 1.0) ** -0.5)

    cpdef int run(self) except -1:
        cdef Py_ssize_t layer = 1
        cdef int status = DONE
        with nogil:
            while layer < self.net.n_layers and status == DONE:
                status = self._update_layer(layer)
                layer += 1
        return status

    cdef int gather(self, Py_ssize_t layer) except -1 nogil:
        """Work out ``linear`` and ``quadratic`` of a layer alone, for other moves."""
        self.width = self.net.width(layer)
        self._reserve(self.net.follows_clusters(layer))
        return self._gather_likelihood(layer)

    cdef int _update_layer(self, Py_ssize_t layer) except -1 nogil:
        cdef Py_ssize_t width = self.net.width(layer), k, i, slot, n = self.net.n_samples
        cdef bint by_row = self.net.follows_clusters(layer)
        self.width = width
        self._reserve(by_row)
        for k in range(width):
            slot = self.net.slot(layer, k)
            for i in range(n):
                self.pre[i * width + k] = self.net.pre[slot, i]
        self._gather_prior(layer)
        self._gather_likelihood(layer)
        self.activations.update(
            self.rng, n, width, &self.pre[0], &self.mean[0], &self.precision[0],
            width if by_row else 0, &self.linear[0], &self.quadratic[0],
        )
        for k in range(width):
            slot = self.net.slot(layer, k)
            for i in range(n):
                if not self.pre[i * width + k] == self.pre[i * width + k]:
                    return BROKEN
                self.net.pre[slot, i] = self.pre[i * width + k]
            self.net.squash(slot)
        return DONE

    cdef int _gather_prior(self, Py_ssize_t layer) except -1 nogil:
        """Means and precisions of a layer's activations given the layers above."""
        cdef Py_ssize_t i, k, pos, slot, width = self.width, n = self.net.n_samples
        cdef Py_ssize_t begin = self.net.first_above(layer), n_above
        if self.net.follows_clusters(layer):
            return self._gather_cluster_laws(layer)
        for k in range(width):
            self.precision[k] = self.net.precision[self.net.unit(layer, k)]
            for i in range(n):
                self.mean[i * width + k] = self.net.bias[self.net.unit(layer, k)]
        n_above = self.net.end_above(layer) - begin
        if n_above == 0:
            return 0
        if self.parents.shape[0] < n_above:
            with gil:
                self.parents = np.zeros((2 * n_above, self.net.stride))
        for pos in range(n_above):
            slot = self.net.member[begin + pos]
            memcpy(
                &self.parents[pos, 0], &self.net.post[slot, 0], self.net.stride * sizeof(double)
            )
            for k in range(width):
                self.block[k * n_above + pos] = self.net.weight[self.net.unit(layer, k), slot]
        linalg.gemm_strided(
            True, True, n, width, n_above, 1.0, &self.parents[0, 0], self.net.stride,
            &self.block[0], n_above, 1.0, &self.mean[0], width,
        )
        return 0

    cdef int _gather_cluster_laws(self, Py_ssize_t layer) noexcept nogil:
        """The same for a layer whose activations follow the row clusters."""
        cdef Py_ssize_t i, k, slot, width = self.width
        for k in range(width):
            slot = self.net.slot(layer, k)
            for i in range(self.net.n_samples):
                self.mean[i * width + k] = self.net.cluster_mean[slot, self.net.label[i]]
                self.precision[i * width + k] = self.net.cluster_precision[
                    slot, self.net.label[i]
                ]
        return 0

    cdef int _gather_likelihood(self, Py_ssize_t layer) except -1 nogil:
        """What the layers below say: ``linear`` T and ``quadratic`` S of a layer's activations."""
        cdef Py_ssize_t i, k, below, width = self.width, n = self.net.n_samples
        for i in range(n * width):
            self.linear[i] = 0.0
        for i in range(width * width):
            self.quadratic[i] = 0.0
        for k in range(width):
            self.offset[k] = 0.0
        for below in range(0 if self.net.laws.skips else layer - 1, layer):
            self._add_children(layer, below)
        for i in range(n):
            for k in range(width):
                self.linear[i * width + k] -= self.offset[k]
        return 0

    cdef int _add_children(self, Py_ssize_t layer, Py_ssize_t below) except -1 nogil:
        """Add what the units of one lower layer say: T = E diag(nu) W', S = W diag(nu) W'."""
        cdef Py_ssize_t c, k, unit, slot, width = self.width, n_below = self.net.width(below)
        cdef double nu
        cdef const double* response = &self.net.visible[0, 0]
        if below > 0:
            if self.children.shape[0] < n_below:
                with gil:
                    self.children = np.zeros((2 * n_below, self.net.stride))
            response = &self.children[0, 0]
        for c in range(n_below):
            unit = self.net.unit(below, c)
            nu = self.net.precision[unit]
            if below > 0:
                memcpy(
                    &self.children[c, 0], self.net.activity(unit),
                    self.net.stride * sizeof(double),
                )
            for k in range(width):
                slot = self.net.slot(layer, k)
                self.block[c * width + k] = self.net.weight[unit, slot]
                self.scaled[c * width + k] = nu * self.net.weight[unit, slot]
                self.offset[k] += self.net.bias[unit] * nu * self.net.weight[unit, slot]
        linalg.gemm(
            True, False, width, width, n_below, 1.0, &self.block[0], &self.scaled[0], 1.0,
            &self.quadratic[0],
        )
        linalg.gemm_strided(
            True, False, self.net.n_samples, width, n_below, 1.0, response, self.net.stride,
            &self.scaled[0], width, 1.0, &self.linear[0], width,
        )
        if self.net.laws.skips:
            self._take_other_parents(layer, below)
        return 0

    cdef int _take_other_parents(self, Py_ssize_t layer, Py_ssize_t below) except -1 nogil:
        """Take from T what the children's parents in other layers explain of them."""
        cdef Py_ssize_t c, pos, slot, n_below = self.net.width(below), n_others = 0
        for pos in range(self.net.n_hidden):
            slot = self.net.member[pos]
            if self.net.slot_layer[slot] == layer or self.net.slot_layer[slot] <= below:
                continue
            memcpy(
                &self.others[n_others, 0], &self.net.post[slot, 0],
                self.net.stride * sizeof(double),
            )
            for c in range(n_below):
                self.weights[n_others * n_below + c] = self.net.weight[
                    self.net.unit(below, c), slot
                ]
            n_others += 1
        if n_others == 0:
            return 0
        linalg.gemm(
            False, False, n_others, self.width, n_below, 1.0, &self.weights[0], &self.scaled[0],
            0.0, &self.cross[0],
        )
        linalg.gemm_strided(
            True, False, self.net.n_samples, self.width, n_others, -1.0, &self.others[0, 0],
            self.net.stride, &self.cross[0], self.width, 1.0, &self.linear[0], self.width,
        )
        return 0

    cdef int _reserve(self, bint by_row) except -1 nogil:
        """Room for a layer of ``width`` units; with a precision of every row's own if asked."""
        cdef Py_ssize_t width = self.width, size = max(1, self.net.n_samples * width)
        cdef Py_ssize_t n_precisions = size if by_row else width, n_hidden = self.net.n_hidden
        cdef Py_ssize_t most = max(self.net.n_visible, n_hidden)
        cdef Py_ssize_t n_others = n_hidden if self.net.laws.skips else 0
        if (
            self._reserved >= width
            and self.pre.shape[0] >= size and self.block.shape[0] >= most * width
            and self.precision.shape[0] >= n_precisions
            and self.weights.shape[0] >= most * n_others and self.others.shape[0] >= n_others
        ):
            return 0
        with gil:
            self._reserved = max(width, self._reserved)
            self.activations.reserve(self._reserved)
            size = max(size, self.pre.shape[0])
            self.pre, self.mean, self.linear = (np.zeros(size) for _ in range(3))
            self.precision = np.zeros(max(n_precisions, self.precision.shape[0]))
            self.quadratic, self.offset = np.zeros(self._reserved**2), np.zeros(self._reserved)
            self.block, self.scaled = (np.zeros(2 * most * self._reserved) for _ in range(2))
            if n_others > 0:
                self.weights, self.cross = (np.zeros(2 * most * n_others) for _ in range(2))
                self.others = np.zeros((2 * n_others, self.net.stride))
        return 0
