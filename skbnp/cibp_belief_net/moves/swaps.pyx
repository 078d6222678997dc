"""One parent of a unit traded for another: for parents that are alike."""

from libc.math cimport log
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.cibp_belief_net.moves.counts cimport SWAPS, Counts
from skbnp.mcmc.chain cimport BROKEN, DONE
from skbnp.numerics cimport rng as draws


cdef class Swaps:
    """A random parent for a random candidate that is none: equation (B5.6).

    Which edges are free does not depend on their own state, so the proposal is symmetric.
    """

    def __init__(self):
        self.order = np.zeros(0, dtype=np.intp)

    cdef int run(
        self, LayerRegression layer, bitgen_t* rng, Py_ssize_t c, Counts* counts
    ) except -1 nogil:
        """One try for the c-th unit of the layer, whose regression was started."""
        cdef Py_ssize_t j, unit = layer.net.unit(layer.index, c), n_on = 0, n_off = 0, old, new
        cdef double log_ratio
        if self.order.shape[0] < layer.n_candidates:
            with gil:
                self.order = np.zeros(2 * layer.n_candidates, dtype=np.intp)
        for j in range(1, layer.n_candidates):
            if layer.is_free(unit, j):
                if layer.row.active[j]:
                    self.order[n_on] = j
                    n_on += 1
                else:
                    n_off += 1
                    self.order[layer.n_candidates - n_off] = j
        if n_on == 0 or n_off == 0:
            return DONE
        old = self.order[draws.below(rng, n_on)]
        new = self.order[layer.n_candidates - 1 - draws.below(rng, n_off)]
        log_ratio = self._log_urn_ratio(layer, unit, old, new) - layer.row.gain(old)
        counts.proposed[SWAPS] += 1
        if layer.row.flip(old) != 0:
            return BROKEN
        log_ratio += layer.row.gain(new)
        if log(draws.uniform(rng)) < log_ratio:
            counts.accepted[SWAPS] += 1
            layer.net.unlink(unit, layer.candidate[old])
            layer.net.link(unit, layer.candidate[new])
            old = new
        return BROKEN if layer.row.flip(old) != 0 else DONE

    cdef double _log_urn_ratio(
        self, LayerRegression layer, Py_ssize_t unit, Py_ssize_t old, Py_ssize_t new
    ) noexcept nogil:
        """Prior odds of the new edge over those of the old one."""
        return layer.log_urn(unit, new) - layer.log_urn(unit, old)
