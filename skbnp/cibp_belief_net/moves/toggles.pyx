"""Each edge into a unit, from its conditional."""

from libc.math cimport exp
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.cibp_belief_net.moves.counts cimport EDGES, Counts
from skbnp.mcmc.chain cimport BROKEN, DONE
from skbnp.numerics cimport rng as draws


cdef class Toggles:
    """Every free edge into a unit, weights integrated out: equation (B5.5).

    Cost for s parents among p candidates: O(s p^2) in rank-one updates (BLAS 2).
    """

    def __init__(self):
        self.order = np.zeros(0, dtype=np.intp)

    cdef int run(
        self, LayerRegression layer, bitgen_t* rng, Py_ssize_t c, Counts* counts
    ) except -1 nogil:
        """Edges into the c-th unit of the layer, whose regression was started."""
        cdef Py_ssize_t j, t, slot, unit = layer.net.unit(layer.index, c)
        cdef double log_odds
        cdef int on, want
        if self.order.shape[0] < layer.n_candidates:
            with gil:
                self.order = np.zeros(2 * layer.n_candidates, dtype=np.intp)
        for j in range(1, layer.n_candidates):
            self.order[j] = j
        if layer.n_candidates > 2:
            draws.shuffle(rng, &self.order[1], layer.n_candidates - 1)
        for t in range(1, layer.n_candidates):
            j = self.order[t]
            slot = layer.candidate[j]
            if not layer.is_free(unit, j):
                continue
            on = layer.net.edge[unit, slot]
            log_odds = layer.row.gain(j) + layer.log_urn(unit, j)
            want = draws.uniform(rng) < 1.0 / (1.0 + exp(-log_odds))
            counts.proposed[EDGES] += 1
            if want == on:
                continue
            counts.accepted[EDGES] += 1
            if layer.row.flip(j) != 0:
                return BROKEN
            if want:
                layer.net.link(unit, slot)
            else:
                layer.net.unlink(unit, slot)
        return DONE
