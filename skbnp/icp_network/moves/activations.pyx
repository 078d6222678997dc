"""Activations of one node in all rows at a time: mathematics/icp_network, section 6."""

from libc.math cimport isfinite, sqrt

import numpy as np

from skbnp.icp_network._network cimport Network
from skbnp.likelihoods.nonlinear_gaussian._activations cimport Activations as UnitUpdate
from skbnp.likelihoods.nonlinear_gaussian._exponential cimport quick_squash
from skbnp.likelihoods.nonlinear_gaussian._grid cimport update_on_grid
from skbnp.mcmc.chain cimport BROKEN, DONE, Move
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws


cdef class Activations(Move):
    """a_.i of hidden nodes and missing cells given all else: equation (I5.8).

    O(N E) for residuals and O(N CELLS) per node. All residuals are kept up to date in a pass.
    """

    NAME = "activations"
    COUNTS = ("activations",)

    def __init__(self, Network net, activation_update, bit_generator):
        """``activation_update`` is "grid", or a method of `UnitUpdate`."""
        super().__init__(bit_generator)
        self.net, self.graph = net, net.graph
        self._on_grid = activation_update == "grid"
        self.update = UnitUpdate("slice" if self._on_grid else activation_update, 1)
        self.visit = np.zeros(0, dtype=np.intp)
        self.own, self.output, self.mean, self.linear = np.zeros((4, net.stride))

    cdef int _reserve(self) except -1 nogil:
        if self.visit.shape[0] < self.graph.n_slots:
            with gil:
                self.visit = np.zeros(self.graph.n_slots, dtype=np.intp)
                self.residual = np.zeros((self.graph.n_slots, self.net.stride))
        return 0

    cpdef int run(self) except -1:
        """Nodes in an order drawn anew; BROKEN where activations are not finite."""
        cdef Py_ssize_t i, slot, n
        cdef bint finite = True
        if self.net.n_samples == 0:
            return DONE
        with nogil:
            self._reserve()
            for i in range(self.graph.n_nodes):
                slot = self.graph.ascending[i]
                if self.net.has_law(slot):
                    self.net.fill_residual(slot, &self.residual[slot, 0])
            n = self._list_nodes()
            draws.shuffle(self.rng, &self.visit[0], n)
            for i in range(n):
                finite &= self._update_node(self.visit[i])
        return DONE if finite else BROKEN

    cdef Py_ssize_t _list_nodes(self) noexcept nogil:
        """Fill ``visit`` with hidden nodes and those that lack cells; their number."""
        cdef Py_ssize_t i, n = self.graph.list_hidden(&self.visit[0])
        for i in range(self.net.n_observed):
            if self.net.cell_start[i] < self.net.cell_start[i + 1]:
                self.visit[n] = i
                n += 1
        return n

    cdef bint _update_node(self, Py_ssize_t slot) noexcept nogil:
        """One node in all its rows given all others; whether they are finite."""
        cdef Unit unit
        unit.slot, unit.n, unit.row = slot, self.net.n_samples, NULL
        if not self.graph.is_hidden(slot):
            unit.row = &self.net.cell_row[self.net.cell_start[slot]]
            unit.n = self.net.cell_start[slot + 1] - self.net.cell_start[slot]
        self._sum_children(&unit)
        self._load(&unit)
        self._move(&unit)
        self._pass_on(&unit)
        return self._store(&unit)

    cdef void _sum_children(self, Unit* unit) noexcept nogil:
        """S, and T of all rows but for the node's own part."""
        cdef Py_ssize_t i, at, child, n = self.net.n_samples
        cdef double w, scale
        for i in range(n):
            self.linear[i] = 0.0
        unit.quadratic = 0.0
        for at in range(self.graph.n_nodes):
            child = self.graph.ascending[at]
            if self.graph.edge[child, unit.slot]:
                w = self.net.weight[child, unit.slot]
                scale = self.net.precision[child] * w
                linalg.axpy(n, scale, &self.residual[child, 0], &self.linear[0])
                unit.quadratic += scale * w

    cdef void _load(self, const Unit* unit) noexcept nogil:
        """The rows at work, one after the other; T with the node's own part."""
        cdef Py_ssize_t i, row
        cdef const double* pre = &self.net.pre[unit.slot, 0]
        cdef const double* post = &self.net.post[unit.slot, 0]
        cdef const double* residual = &self.residual[unit.slot, 0]
        cdef double* own = &self.own[0]
        cdef double* output = &self.output[0]
        cdef double* mean = &self.mean[0]
        cdef double* linear = &self.linear[0]
        for i in range(unit.n):
            row = row_of(unit, i)
            own[i], output[i] = pre[row], post[row]
            mean[i] = own[i] - residual[row]
            # Rows are ascending, so that nothing is read after it has been written.
            linear[i] = linear[row] + unit.quadratic * output[i]

    cdef void _move(self, const Unit* unit) noexcept nogil:
        """New a and u of the rows at work."""
        cdef Py_ssize_t i, n = unit.n
        cdef double rho = self.net.precision[unit.slot], spread = 1.0 / sqrt(rho)
        cdef double* own = &self.own[0]
        cdef double* output = &self.output[0]
        self.proposed[0] += n
        if unit.quadratic == 0.0:
            for i in range(n):
                own[i] = self.mean[i] + spread * draws.normal(self.rng)
                output[i] = quick_squash(own[i])
            self.accepted[0] += n
        elif self._on_grid:
            self.accepted[0] += self._update_on_grid(unit, spread)
        else:
            self.update.update(
                self.rng, n, 1, own, &self.mean[0], &rho, 0, &self.linear[0], &unit.quadratic
            )
            for i in range(n):
                output[i] = quick_squash(own[i])

    cdef long long _update_on_grid(self, const Unit* unit, double spread) noexcept nogil:
        """Metropolis steps from the grid; the number accepted."""
        return update_on_grid(
            self.rng, unit.n, &self.own[0], &self.output[0], &self.mean[0], spread,
            &self.linear[0], unit.quadratic,
        )

    cdef void _pass_on(self, const Unit* unit) noexcept nogil:
        """The children's residuals."""
        cdef Py_ssize_t at, i, row, child
        cdef double w
        cdef const double* post = &self.net.post[unit.slot, 0]
        cdef const double* output = &self.output[0]
        cdef double* residual
        for at in range(self.graph.n_nodes):
            child = self.graph.ascending[at]
            if not self.graph.edge[child, unit.slot]:
                continue
            w, residual = self.net.weight[child, unit.slot], &self.residual[child, 0]
            for i in range(unit.n):
                row = row_of(unit, i)
                residual[row] -= w * (output[i] - post[row])

    cdef bint _store(self, const Unit* unit) noexcept nogil:
        """The node's own values and residuals; whether they are finite."""
        cdef Py_ssize_t i, row
        cdef double total = 0.0
        cdef double* pre = &self.net.pre[unit.slot, 0]
        cdef double* post = &self.net.post[unit.slot, 0]
        cdef double* residual = &self.residual[unit.slot, 0]
        for i in range(unit.n):
            row = row_of(unit, i)
            pre[row], post[row] = self.own[i], self.output[i]
            residual[row] = self.own[i] - self.mean[i]
            total += self.own[i]
        return isfinite(total)
