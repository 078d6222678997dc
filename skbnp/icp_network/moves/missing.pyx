"""Missing cells: what a sweep says of them. They are drawn with the other activations."""

from libc.math cimport sqrt

from skbnp.icp_network._network cimport Network
from skbnp.likelihoods.nonlinear_gaussian._grid cimport squashed_moments
from skbnp.mcmc.cell_moments cimport CellMoments
from skbnp.mcmc.chain cimport DONE

import numpy as np


cdef class Missing(CellMoments):
    """Moments of each missing cell given all else, or its value where its column has children.

    Nothing is drawn and nothing moves. Cells are in the order of ``net.cell_row``; moments of
    "sigmoid" columns are of the squashed cell. O(parents).
    """

    NAME = "missing"

    def __init__(self, Network net, bit_generator, bint squashes=False):
        super().__init__(len(net.cell_row), bit_generator)
        self.net, self.squashes = net, squashes
        self.residual = np.zeros(net.stride)

    cpdef int run(self) except -1:
        cdef Network net = self.net
        cdef Py_ssize_t d, t, i
        cdef double mean, spread, first, variance
        if not self.n_cells:
            return DONE
        with nogil:
            for d in range(net.n_observed):
                if net.cell_start[d] == net.cell_start[d + 1]:
                    continue
                spread = 1.0 / sqrt(net.precision[d])
                if self._is_parent(d):
                    spread, self.residual[:] = 0.0, 0.0
                else:
                    net.fill_residual(d, &self.residual[0])
                for t in range(net.cell_start[d], net.cell_start[d + 1]):
                    i = net.cell_row[t]
                    mean = net.pre[d, i] - self.residual[i]
                    first, variance = mean, spread * spread
                    if self.squashes:
                        squashed_moments(mean, spread, &first, &variance)
                    self.add_cell(t, first, variance)
            self.n_imputed += 1
        return DONE

    cdef bint _is_parent(self, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t at
        for at in range(self.net.graph.n_nodes):
            if self.net.graph.edge[self.net.graph.ascending[at], slot]:
                return True
        return False
