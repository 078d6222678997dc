"""Mass, concentration and popularity of the process given the graph.

mathematics/icp_network, section 5.6.
"""

from libc.math cimport exp, isnan, log

import numpy as np

from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport rng as draws, slice_sampling
from skbnp.numerics.slice_sampling cimport Slice
from skbnp.numerics.special cimport lgamma

cdef enum:
    MOST_WIDTHS = 100   # of the brackets of slices
    # Bounds of the logarithms: beyond these nothing is left of a double's precision.
    LOWEST = -200
    HIGHEST = 200


cdef class Hyperparameters(Move):
    """The mass exactly (equation (I5.12)), the others by slices of their logarithms: O(K) a point.

    Those that are given stay.
    """

    NAME = "hyper"

    def __init__(self, Network net, bit_generator):
        super().__init__(bit_generator)
        self.net, self.graph = net, net.graph
        self.n_below = np.zeros(0, dtype=np.intp)

    cdef int _reserve(self) except -1 nogil:
        if self.n_below.shape[0] < self.graph.n_slots:
            with gil:
                self.n_below = np.zeros(self.graph.n_slots, dtype=np.intp)
        return 0

    cpdef int run(self) except -1:
        with nogil:
            self._reserve()
            self.graph.count_all_below(&self.n_below[0])
            if isnan(self.net.given[0]):
                self._draw_mass()
            if isnan(self.net.given[1]):
                self.graph.law.concentration = exp(
                    self._slice(log(self.graph.law.concentration), True)
                )
            if isnan(self.net.given[2]):
                self.graph.law.popularity = exp(
                    self._slice(log(self.graph.law.popularity), False)
                )
            self.graph.law.fill()
        return DONE

    cdef void _draw_mass(self) noexcept nogil:
        self.graph.law.mass = draws.draw_gamma(
            self.rng, self.net.process_law[0][0] + self.graph.n_hidden,
            self.net.process_law[0][1] + self._exposure_of_mass(),
        )

    cdef double _exposure_of_mass(self) noexcept nogil:
        """What the expected number of hidden nodes grows by with the mass."""
        cdef double alpha = self.graph.law.concentration
        return self.graph.exposure(alpha) * alpha

    cdef double _slice(self, double x, bint of_concentration) noexcept nogil:
        """One step of slice sampling, of width 1."""
        cdef Slice step
        # Both tails fall exponentially: the bound on the steps is never met.
        slice_sampling.begin(
            &step, self.rng, x, self._log_density(x, of_concentration), LOWEST, HIGHEST, 1.0,
            MOST_WIDTHS,
        )
        while slice_sampling.asks(&step, self.rng):
            slice_sampling.tell(&step, self._log_density(step.at, of_concentration))
        return step.at

    cdef double _log_density(self, double x, bint of_concentration) noexcept nogil:
        """Log density of a logarithm given all else, up to a constant."""
        return self._log_concentration(x) if of_concentration else self._log_popularity(x)

    cdef double _log_concentration(self, double log_alpha) noexcept nogil:
        cdef double alpha = exp(log_alpha), phi = self.graph.law.popularity, total
        cdef Py_ssize_t i, slot, m, n
        total = self.graph.n_hidden * log_alpha - alpha * self.graph.law.mass * (
            self.graph.exposure(alpha)
        )
        for i in range(self.graph.n_nodes):
            slot = self.graph.ascending[i]
            m, n = self.graph.n_children[slot], self.n_below[slot]
            if self.graph.is_hidden(slot):
                total += lgamma(alpha + n - m) - lgamma(alpha + n)
            else:
                total += lgamma(alpha + n - m) - lgamma(alpha)
                total += lgamma(alpha + phi) - lgamma(alpha + phi + n)
        # 1 / alpha is gamma; d(1 / alpha) = -(1 / alpha) d log alpha.
        total += self.net.log_inverse(alpha)
        return total - log_alpha

    cdef double _log_popularity(self, double log_phi) noexcept nogil:
        cdef double alpha = self.graph.law.concentration, phi = exp(log_phi), total = log_phi
        cdef Py_ssize_t slot
        for slot in range(self.graph.n_observed):
            total += lgamma(phi + self.graph.n_children[slot]) - lgamma(phi)
            total += lgamma(alpha + phi) - lgamma(alpha + phi + self.n_below[slot])
        return total + self.net.log_popularity(phi)
