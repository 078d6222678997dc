"""The numbers of a prior as kernels read them, and the laws of hyperparameters that they give."""

from libc.math cimport NAN, isnan
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport log_gamma_density
from skbnp.numerics.truncated cimport gamma_above

from skbnp.infinite_factor_clusterer._model import SMALLEST_RATE
from skbnp.laws import Law as PublicLaw
from skbnp.numerics.law_above import share_above

cdef double SMALLEST = SMALLEST_RATE


cdef class Law:
    """What `_model.Prior` says."""

    def __init__(self, prior):
        slab, score, noise = prior.loading_variance, prior.score_variance, prior.noise_variance
        self.means = ("factor", "both", "feature").index(prior.means)
        self.shared_noise = prior.noise == "shared"
        self.student = prior.tails == "t"
        self.tail_grid = np.array(prior.tail_grid)
        self.given_concentration = read_gamma(prior.concentration, self.concentration_law)
        self.given_mass = read_gamma(prior.mass, self.mass_law)
        read_gamma(prior.offset_precision, self.offset_law)
        read_gamma(noise.scale, self.rate_law)
        self.log_rate_share = np.log(share_above(noise.scale, SMALLEST_RATE))
        self.slab_shape, self.slab_scale = slab.shape, slab.scale
        self.score_shape, self.score_scale = score.shape, score.scale
        self.score_precision, self.noise_shape = prior.mean_precision_prior, noise.shape

    # -- the scale of a feature's noise: Gamma above its least value --------------------------

    cdef double log_rate(self, double rate) noexcept nogil:
        """Log density of a noise rate, but for `log_rate_share` of its least value."""
        return log_gamma_density(rate, self.rate_law[0], self.rate_law[1])

    cdef double draw_rate(self, bitgen_t* rng, Py_ssize_t n, double inverse) noexcept nogil:
        """h | n noise variances, the sum of whose inverses is ``inverse``: (F4.6)."""
        return gamma_above(
            rng, self.rate_law[0] + n * self.noise_shape, self.rate_law[1] + inverse, SMALLEST
        )

    # -- hyperparameters; log densities are 0 where a number is given -------------------------

    cdef double log_concentration(self, double concentration) noexcept nogil:
        if not isnan(self.given_concentration):
            return 0.0
        return log_gamma_density(
            concentration, self.concentration_law[0], self.concentration_law[1]
        )

    cdef double log_mass(self, double mass) noexcept nogil:
        if not isnan(self.given_mass):
            return 0.0
        return log_gamma_density(mass, self.mass_law[0], self.mass_law[1])

    cdef double draw_mass(
        self, bitgen_t* rng, Py_ssize_t n_factors, double harmonic
    ) noexcept nogil:
        """The mass | the number of factors: Gamma(a + K, b + H_N)."""
        return draws.draw_gamma(rng, self.mass_law[0] + n_factors, self.mass_law[1] + harmonic)

    cdef double log_offset_precision(self, double precision) noexcept nogil:
        return log_gamma_density(precision, self.offset_law[0], self.offset_law[1])

    cdef double draw_offset_precision(
        self, bitgen_t* rng, Py_ssize_t n, double squares
    ) noexcept nogil:
        """The precision of n offsets | the sum of their squares over noise variances."""
        return draws.draw_gamma(
            rng, self.offset_law[0] + 0.5 * n, self.offset_law[1] + 0.5 * squares
        )


cdef double read_gamma(value, double* law):
    """The given value, NaN where it has a law, whose shape and rate are read then."""
    if not isinstance(value, PublicLaw):
        return value
    law[0], law[1] = value.shape, value.rate
    return NAN
