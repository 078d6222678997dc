"""Every layer's hyperparameters given its units, edges and weights."""

from libc.math cimport log

import numpy as np

from skbnp.cibp_belief_net._laws cimport CONCENTRATION, MASS, NOISE_RATE
from skbnp.cibp_belief_net._state cimport Network
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport rng as draws
from skbnp.processes cimport ibp


cdef struct Summary:
    # Of weights or biases: their number, sum and sum of squared distances from their mean.
    double n
    double total
    double squares
    double mean


cdef inline void count_in(Summary* summary, double x) noexcept nogil:
    """Welford's running mean: values may be large and close together."""
    summary.n += 1.0
    summary.squares += (x - summary.mean) * (x - summary.mean) * (summary.n - 1.0) / summary.n
    summary.mean += (x - summary.mean) / summary.n
    summary.total += x


cdef class Hyperparameters(Move):
    """Masses and concentrations, laws of weights and biases, rates: (B5.13) to (B5.15).

    Cost: O(K p) for K units with p candidate parents.
    """

    NAME = "hyper"

    def __init__(self, Network net, bit_generator):
        super().__init__(bit_generator)
        self.net = net
        self.n_takers = np.zeros(0, dtype=np.intp)

    cpdef int run(self) except -1:
        cdef Py_ssize_t layer
        if self.n_takers.shape[0] < self.net.n_slots():
            self.n_takers = np.zeros(self.net.n_slots(), dtype=np.intp)
        with nogil:
            for layer in range(self.net.n_layers):
                self._update_restaurant(layer)
                self._update_weight_law(layer)
                self._update_bias_law(layer)
                self._update_noise_rate(layer)
        return DONE

    cdef void _update_restaurant(self, Py_ssize_t layer) noexcept nogil:
        """Mass and concentration; a closed restaurant draws both from the prior."""
        cdef Py_ssize_t k, n_dishes = self.net.width(layer + 1)
        if layer >= self.net.laws.deepest:
            self.net.laws.draw_restaurant(self.rng, self.net.hyper, layer)
            return
        for k in range(n_dishes):
            self.n_takers[k] = self.net.n_children[self.net.slot(layer + 1, k)]
        if self.net.laws.is_sampled(MASS, layer):
            self.net.hyper[MASS, layer] = ibp.draw_mass(
                self.rng, self.net.hyper[MASS, layer], n_dishes, self.net.width(layer),
                self.net.hyper[CONCENTRATION, layer], self.net.laws.low(MASS, layer),
                self.net.laws.high(MASS, layer),
            )
        if self.net.laws.is_sampled(CONCENTRATION, layer):
            self.net.hyper[CONCENTRATION, layer] = ibp.draw_concentration(
                self.rng, self.net.hyper[CONCENTRATION, layer], self.net.hyper[MASS, layer],
                &self.n_takers[0], n_dishes, self.net.width(layer), self.net.offered(layer),
                self.net.laws.low(CONCENTRATION, layer), self.net.laws.high(CONCENTRATION, layer),
            )

    cdef void _update_weight_law(self, Py_ssize_t layer) noexcept nogil:
        cdef Py_ssize_t c, pos, unit
        cdef Summary of = Summary(0.0, 0.0, 0.0, 0.0)
        for c in range(self.net.width(layer)):
            unit = self.net.unit(layer, c)
            for pos in range(self.net.n_hidden):
                if self.net.edge[unit, self.net.member[pos]]:
                    count_in(&of, self.net.weight[unit, self.net.member[pos]])
        self.net.laws.draw_weight_law(self.rng, self.net.hyper, layer, of.n, of.total, of.squares)

    cdef void _update_bias_law(self, Py_ssize_t layer) noexcept nogil:
        cdef Py_ssize_t c
        cdef Summary of = Summary(0.0, 0.0, 0.0, 0.0)
        if not self.net.follows_clusters(layer):
            for c in range(self.net.width(layer)):
                count_in(&of, self.net.bias[self.net.unit(layer, c)])
        self.net.laws.draw_bias_law(self.rng, self.net.hyper, layer, of.n, of.total, of.squares)

    cdef void _update_noise_rate(self, Py_ssize_t layer) noexcept nogil:
        """Conjugate but for the bound on the precisions, hence an independence proposal."""
        cdef Py_ssize_t c, n = 0 if self.net.follows_clusters(layer) else self.net.width(layer)
        cdef double total = 0.0, new, old = self.net.hyper[NOISE_RATE, layer]
        for c in range(n):
            total += self.net.precision[self.net.unit(layer, c)]
        new = self.net.laws.draw_noise_rate(self.rng, n, total)
        if log(draws.uniform(self.rng)) < n * self._log_bound(old, new):
            self.net.hyper[NOISE_RATE, layer] = new

    cdef double _log_bound(self, double old, double new) noexcept nogil:
        """Log ratio that the bound on a unit's precision adds: equation (B5.14)."""
        return self.net.laws.log_below_bound(old) - self.net.laws.log_below_bound(new)
