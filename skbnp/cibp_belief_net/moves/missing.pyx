"""Missing cells."""

from libc.math cimport sqrt

from skbnp.cibp_belief_net._state cimport Network
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport rng as draws


cdef class Missing(Move):
    """Each missing cell from N(Y, 1 / nu), its full conditional: O(parents)."""

    NAME = "missing"

    def __init__(self, Network net, bit_generator):
        super().__init__(bit_generator)
        self.net = net

    cpdef int run(self) except -1:
        cdef Network net = self.net
        cdef Py_ssize_t d, t, i, pos, slot
        cdef double mean
        with nogil:
            for d in range(net.n_visible):
                for t in range(net.cell_start[d], net.cell_start[d + 1]):
                    i, mean = net.cell_row[t], net.bias[d]
                    for pos in range(net.n_hidden):
                        slot = net.member[pos]
                        if net.edge[d, slot]:
                            mean += net.weight[d, slot] * net.post[slot, i]
                    net.visible[d, i] = mean + draws.normal(self.rng) / sqrt(net.precision[d])
        return DONE
