"""Weights, bias and precision of a unit."""

from numpy.random cimport bitgen_t

import numpy as np

from skbnp.cibp_belief_net._laws cimport NOISE_RATE
from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.mcmc.chain cimport BROKEN, DONE


cdef class Weights:
    """Bias and weights from their joint conditional, then the precision given them: (B5.12).

    Cost for s parents: O(s^3).
    """

    def __init__(self):
        self.drawn = np.zeros(0)

    cdef int run(self, LayerRegression layer, bitgen_t* rng, Py_ssize_t c) except -1 nogil:
        """Those of the c-th unit of the layer, whose regression was started."""
        cdef Py_ssize_t j, unit = layer.net.unit(layer.index, c)
        if self.drawn.shape[0] < layer.n_candidates:
            with gil:
                self.drawn = np.zeros(2 * layer.n_candidates)
        if layer.row.draw(rng, &self.drawn[0]) != 0:
            return BROKEN
        layer.net.bias[unit] = self.drawn[0]
        for j in range(1, layer.n_candidates):
            if layer.candidate[j] >= 0:
                layer.net.weight[unit, layer.candidate[j]] = self.drawn[j]
        layer.net.precision[unit] = layer.net.laws.draw_precision(
            rng, layer.net.hyper[NOISE_RATE, layer.index], layer.net.n_samples,
            layer.row.squared_residual(&self.drawn[0]),
        )
        return DONE
