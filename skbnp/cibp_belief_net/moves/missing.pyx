"""Missing cells."""

from libc.math cimport sqrt

from skbnp.cibp_belief_net._state cimport Network
from skbnp.likelihoods.nonlinear_gaussian._grid cimport squashed_moments
from skbnp.mcmc.cell_moments cimport CellMoments
from skbnp.mcmc.chain cimport DONE
from skbnp.numerics cimport rng as draws


cdef class Missing(CellMoments):
    """Each missing cell from N(Y, 1 / nu), its full conditional: O(parents).

    Cells are in the order of ``net.cell_row``; moments of "sigmoid" columns are of the squashed
    cell.
    """

    NAME = "missing"

    def __init__(self, Network net, bit_generator, bint squashes=False):
        super().__init__(len(net.cell_row), bit_generator)
        self.net, self.squashes = net, squashes

    cpdef int run(self) except -1:
        cdef Network net = self.net
        cdef Py_ssize_t d, t, i, pos, slot
        cdef double mean, spread, first, variance
        with nogil:
            for d in range(net.n_visible):
                spread = 1.0 / sqrt(net.precision[d])
                for t in range(net.cell_start[d], net.cell_start[d + 1]):
                    i, mean = net.cell_row[t], net.bias[d]
                    for pos in range(net.n_hidden):
                        slot = net.member[pos]
                        if net.edge[d, slot]:
                            mean += net.weight[d, slot] * net.post[slot, i]
                    net.visible[d, i] = mean + draws.normal(self.rng) / sqrt(net.precision[d])
                    first, variance = mean, spread * spread
                    if self.squashes:
                        squashed_moments(mean, spread, &first, &variance)
                    self.add_cell(t, first, variance)
            self.n_imputed += 1
        return DONE
