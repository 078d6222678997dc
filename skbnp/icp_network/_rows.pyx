"""Activations: one node of all rows at a time, all hidden noises of a row at once, latents."""

from libc.math cimport INFINITY, isfinite, sqrt
from libc.stdlib cimport free, malloc
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.icp_network._births cimport Births
from skbnp.icp_network._feedforward cimport BLOCK, HIDDEN, INPUT, OBSERVED, Feedforward
from skbnp.icp_network._graph cimport NO_GRID
from skbnp.icp_network._network cimport BROKEN_ACTIVATIONS
from skbnp.likelihoods.nonlinear_gaussian._activations cimport Activations
from skbnp.likelihoods.nonlinear_gaussian._exponential cimport quick_squash
from skbnp.likelihoods.nonlinear_gaussian._grid cimport update_on_grid
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.truncated cimport normal_above


cdef class Rows(Births):
    """Updates of what every row has of its own.

    A pass over the activations takes O(N E) for residuals and O(N CELLS) per node, a slice of the
    noises O(N (E + K)) for each point that it tries.
    """

    def __cinit__(self):
        self.forward_pre = self.forward_post = NULL

    def __dealloc__(self):
        free(self.forward_pre)
        free(self.forward_post)

    def __init__(
        self, visible, prior, state, bit_generator, labels, activation_update, int fault
    ):
        self._on_grid = activation_update == "grid"
        self.activations = Activations("slice" if self._on_grid else activation_update, 1)
        self.forward = Feedforward()
        self.position = np.zeros(0, dtype=np.intp)
        self.own, self.own_output = (np.zeros(max(1, len(visible))) for _ in range(2))
        super().__init__(visible, prior, state, bit_generator, labels, fault)

    def _grow_nodes(self, old, room):
        self.position = np.zeros(room, dtype=np.intp)
        free(self.forward_pre)
        free(self.forward_post)
        self.forward_pre = <double**> malloc(room * sizeof(double*))
        self.forward_post = <double**> malloc(room * sizeof(double*))
        if self.forward_pre == NULL or self.forward_post == NULL:
            raise MemoryError
        Births._grow_nodes(self, old, room)

    # -- all noises of a row ------------------------------------------------------------------

    cdef int _compile(self) except -1 nogil:
        """Write the graph into ``forward``, nodes from the highest order down."""
        cdef Py_ssize_t p, at, slot, other, n = 0, size = self.n_nodes
        self.forward.reserve(size, self.n_edges)
        self.forward.n_nodes = size
        for p in range(size):
            slot = self.ascending[size - 1 - p]
            self.position[slot] = p
            self.forward.kind[p] = OBSERVED
            if self.is_hidden(slot):
                self.forward.kind[p] = HIDDEN
            elif not self.has_law(slot):
                self.forward.kind[p] = INPUT
            self.forward.bias[p] = self.bias[slot]
            self.forward.spread[p] = 1.0 / sqrt(self.precision[slot])
            self.forward.parent_start[p] = n
            for at in range(p):
                other = self.ascending[size - 1 - at]
                if self.edge[slot, other]:
                    self.forward.parent[n] = at
                    self.forward.weight[n] = self.weight[slot, other]
                    n += 1
        self.forward.parent_start[size] = n
        return 0

    cdef int _update_noises(self) except -1 nogil:
        """A slice of all hidden noises of every row; descendants follow."""
        cdef bitgen_t* rngs[BLOCK]
        cdef Py_ssize_t i, p, slot, n
        if self.n_hidden == 0 or self.n_samples == 0:
            return 0
        self._compile()
        for i in range(BLOCK):
            rngs[i] = self._rng
        i = 0
        while i < self.n_samples:
            n = min(<Py_ssize_t> BLOCK, self.n_samples - i)
            for p in range(self.n_nodes):
                slot = self.ascending[self.n_nodes - 1 - p]
                self.forward_pre[p] = &self.pre[slot, i]
                self.forward_post[p] = &self.post[slot, i]
            self.forward.slice_noises(rngs, n, self.forward_pre, self.forward_post, 1.0)
            i += n
        return 0

    # -- one node at a time -------------------------------------------------------------------

    cdef int _update_activations(self) except -1 nogil:
        """Hidden nodes in an order drawn anew, then missing cells."""
        cdef Py_ssize_t i, at, slot, n
        if self.n_samples == 0:
            return 0
        for at in range(self.n_nodes):
            slot = self.ascending[at]
            if self.has_law(slot):
                self._fill_residual(slot, &self.residual[slot, 0])
        self._list_hidden()
        n = self.n_hidden
        for i in range(self.n_observed):
            if self.cell_start[i] < self.cell_start[i + 1]:
                self.visit[n] = i
                n += 1
        self._shuffle_visits(n)
        for i in range(n):
            self._update_node(self.visit[i])
        return 0

    cdef void _update_node(self, Py_ssize_t slot) noexcept nogil:
        """One node's activations in all rows, or those that lack it, given all others'.

        ``residual`` is what a exceeds its mean by, of all nodes, and stays so.
        """
        cdef Py_ssize_t i, row, at, child, n = self.n_samples, first = 0
        cdef double rho = self.precision[slot], w, scale, quadratic = 0.0, change
        cdef bint in_cells = not self.is_hidden(slot)
        cdef double* own = &self.own[0]
        cdef double* output = &self.own_output[0]
        cdef double* mean = &self.mean[0]
        cdef double* linear = &self.linear[0]
        for i in range(n):
            linear[i] = 0.0
        for at in range(self.n_nodes):
            child = self.ascending[at]
            if self.edge[child, slot]:
                w = self.weight[child, slot]
                scale = self.precision[child] * w
                linalg.axpy(n, scale, &self.residual[child, 0], linear)
                quadratic += scale * w
        if in_cells:
            first = self.cell_start[slot]
            n = self.cell_start[slot + 1] - first
        for i in range(n):
            row = self.cell_row[first + i] if in_cells else i
            own[i], output[i] = self.pre[slot, row], self.post[slot, row]
            mean[i] = own[i] - self.residual[slot, row]
            # Rows are ascending, so that nothing is read after it has been written.
            linear[i] = linear[row] + quadratic * output[i]
        self._move(n, own, output, mean, linear, rho, quadratic)
        for at in range(self.n_nodes):
            child = self.ascending[at]
            if not self.edge[child, slot]:
                continue
            w = self.weight[child, slot]
            for i in range(n):
                row = self.cell_row[first + i] if in_cells else i
                self.residual[child, row] -= w * (output[i] - self.post[slot, row])
        change = 0.0
        for i in range(n):
            row = self.cell_row[first + i] if in_cells else i
            self.pre[slot, row], self.post[slot, row] = own[i], output[i]
            self.residual[slot, row] = own[i] - mean[i]
            change += own[i]
        if not isfinite(change):
            self._broken = BROKEN_ACTIVATIONS

    cdef void _move(
        self, Py_ssize_t n, double* own, double* output, const double* mean,
        const double* linear, double rho, double quadratic,
    ) noexcept nogil:
        """New a and u of n rows of a node with mean and precision, T and S (``Activations``)."""
        cdef Py_ssize_t i
        cdef double spread = 1.0 / sqrt(rho)
        self.n_tried += n
        if quadratic == 0.0:
            for i in range(n):
                own[i] = mean[i] + spread * draws.normal(self._rng)
                output[i] = quick_squash(own[i])
            self.n_moved += n
        elif self._on_grid:
            self.n_moved += update_on_grid(
                self._rng, n, own, output, mean, spread, linear, quadratic,
                self.fault == NO_GRID,
            )
        else:
            self.quadratic[0] = quadratic
            self.activations.update(
                self._rng, n, 1, own, mean, &rho, 0, linear, &self.quadratic[0]
            )
            for i in range(n):
                output[i] = quick_squash(own[i])

    # -- latents ------------------------------------------------------------------------------

    cdef int _update_latents(self) except -1 nogil:
        """Latents given their means and the labels: normals that keep the label's the largest.

        One latent alone is above 0 for label 1 and below for label 0. Albert & Chib (1993).
        """
        cdef Py_ssize_t i, c, slot
        cdef double bound, mean
        if self.n_latents == 0:
            return 0
        self._fill_latent_residuals()
        for i in range(self.n_samples):
            if self.n_latents > 1:
                # The label's own first, given all others, then each of those given it.
                bound = -INFINITY
                for c in range(self.n_latents):
                    if c != self.label[i]:
                        bound = max(bound, self.pre[self.first_latent + c, i])
                slot = self.first_latent + self.label[i]
                mean = self.pre[slot, i] - self.residual[slot, i]
                self.pre[slot, i] = mean + normal_above(self._rng, bound - mean)
            self._draw_rivals(i)
        self._squash_latents()
        return 0

    cdef void _fill_latent_residuals(self) noexcept nogil:
        cdef Py_ssize_t slot
        for slot in range(self.first_latent, self.first_latent + self.n_latents):
            self._fill_residual(slot, &self.residual[slot, 0])

    cdef void _squash_latents(self) noexcept nogil:
        cdef Py_ssize_t slot
        for slot in range(self.first_latent, self.first_latent + self.n_latents):
            self._squash(slot)

    cdef void _draw_rivals(self, Py_ssize_t i) noexcept nogil:
        """A row's latents of other classes given that of its own; one alone given the label.

        Needs their means, as what ``pre`` exceeds ``residual`` by.
        """
        cdef Py_ssize_t c, slot = self.first_latent, label = self.label[i]
        cdef double bound, mean
        if self.n_latents == 1:
            mean = self.pre[slot, i] - self.residual[slot, i]
            if label == 1:
                self.pre[slot, i] = mean + normal_above(self._rng, -mean)
            else:
                self.pre[slot, i] = mean - normal_above(self._rng, mean)
            return
        bound = self.pre[slot + label, i]
        for c in range(self.n_latents):
            if c != label:
                slot = self.first_latent + c
                mean = self.pre[slot, i] - self.residual[slot, i]
                self.pre[slot, i] = mean - normal_above(self._rng, mean - bound)
