"""Missing cells."""

from libc.math cimport sqrt

from skbnp.cibp_belief_net._state cimport Network
from skbnp.likelihoods.nonlinear_gaussian._grid cimport squashed_moments
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport rng as draws
from skbnp.numerics._moments cimport merge_part

import numpy as np

from skbnp.mcmc.fields import Field


cdef class Missing(Move):
    """Each missing cell from N(Y, 1 / nu), its full conditional: O(parents).

    The moments of that law, for "sigmoid" columns of the squashed cell, are averaged over the
    sweeps after the warm-up; no later sweep depends on them.
    """

    NAME = "missing"
    FIELDS = (
        Field("n_imputed", int, at_least=0),
        Field("imputed_mean", float, ("n_cells",)),
        Field("imputed_square", float, ("n_cells",), at_least=0),
    )

    def __init__(self, Network net, bit_generator, bint squashes=False):
        super().__init__(bit_generator)
        self.net, self.squashes = net, squashes
        self.n_cells = len(net.cell_row)
        self.forget()

    def forget(self):
        self.n_imputed = 0
        self.imputed_mean, self.imputed_square = np.zeros(self.n_cells), np.zeros(self.n_cells)

    def adapt(self):
        """What warm-up sweeps say of the cells counts for nothing."""
        self.forget()

    def set_state(self, state):
        """Take what ``get_state`` returned; a state of version 0.1 has no moments yet."""
        if "n_imputed" not in state:
            none = np.zeros(self.n_cells)
            state = state | {"n_imputed": 0, "imputed_mean": none, "imputed_square": none}
        super().set_state(state)

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
                    merge_part(
                        <double> self.n_imputed, 1.0, first, variance, &self.imputed_mean[t],
                        &self.imputed_square[t],
                    )
            self.n_imputed += 1
        return DONE
