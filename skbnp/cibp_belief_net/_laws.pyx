"""The prior's laws of hyperparameters, as kernels read them: doc/mathematics/cibp_belief_net, 2."""

from libc.math cimport isfinite, log, sqrt

from dataclasses import astuple

import numpy as np

from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI, log_gamma_cdf, log_gamma_density

from skbnp.laws import Law


cdef double log_normal(double x, double mean, double precision) noexcept nogil:
    """Log density of N(mean, 1 / precision)."""
    return 0.5 * (log(precision) - LOG_2_PI - precision * (x - mean) * (x - mean))


cdef class Laws:
    """A ``_model.Prior`` in arrays.

    ``hyper`` is (7, n_layer_slots), MASS to NOISE_RATE of each layer.
    """

    def __init__(self, prior):
        self.prior = prior
        self.deepest, self.max_units = prior.deepest, prior.max_units
        self.skips, self.has_clusters = prior.skip_connections, prior.row_clusters
        names = ("mass", "concentration")
        n = max(len(getattr(prior, name)) for name in names)
        self.bounds = np.array(
            [[prior.bounds(name, layer) for layer in range(n)] for name in names], dtype=np.float64
        )
        self.weight = np.array(astuple(prior.weight_prior))
        self.bias = np.array(astuple(prior.bias_prior))
        noise = prior.noise_precision
        self.noise_shape = noise.shape
        self.noise_rate_is_given = not isinstance(noise.rate, Law)
        if self.noise_rate_is_given:
            self.given_noise_rate = noise.rate
        else:
            self.noise_rate_shape, self.noise_rate_rate = astuple(noise.rate)
        self.cluster = np.array(prior.cluster_prior)
        self.highest_precision = prior.highest_precision
        self.row_concentration = prior.row_concentration

    cdef double low(self, int which, Py_ssize_t layer) noexcept nogil:
        """Least value of the mass or the concentration of a layer."""
        return self.bounds[which, min(layer, self.bounds.shape[1] - 1), 0]

    cdef double high(self, int which, Py_ssize_t layer) noexcept nogil:
        return self.bounds[which, min(layer, self.bounds.shape[1] - 1), 1]

    cdef bint is_sampled(self, int which, Py_ssize_t layer) noexcept nogil:
        """Whether a layer's mass or concentration has a law, and no given value."""
        return self.low(which, layer) < self.high(which, layer)

    cdef double log_restaurant(self, int which, Py_ssize_t layer) noexcept nogil:
        """Log density of a layer's mass or concentration: 0 for one that is given."""
        if not self.is_sampled(which, layer):
            return 0.0
        return -log(self.high(which, layer) - self.low(which, layer))

    cdef void draw_restaurant(
        self, bitgen_t* rng, double[:, ::1] hyper, Py_ssize_t layer
    ) noexcept nogil:
        """Mass and concentration of a layer from their prior."""
        cdef int which
        cdef double low
        for which in range(MASS, CONCENTRATION + 1):
            low = self.low(which, layer)
            hyper[which, layer] = low + draws.uniform(rng) * (self.high(which, layer) - low)

    cdef void draw_layer(
        self, bitgen_t* rng, double[:, ::1] hyper, Py_ssize_t layer
    ) noexcept nogil:
        """All hyperparameters of a layer from their priors."""
        self.draw_restaurant(rng, hyper, layer)
        self.draw_weight_law(rng, hyper, layer, 0.0, 0.0, 0.0)
        self.draw_bias_law(rng, hyper, layer, 0.0, 0.0, 0.0)
        hyper[NOISE_RATE, layer] = self.draw_noise_rate(rng, 0.0, 0.0)

    cdef void draw_weight_law(
        self, bitgen_t* rng, double[:, ::1] hyper, Py_ssize_t layer, double n, double total,
        double squares,
    ) noexcept nogil:
        """Mean and precision of a layer's weights given n of them: equation (B5.13).

        ``total`` is their sum and ``squares`` the sum of squared distances from their mean.
        """
        _draw_normal_gamma(
            rng, &self.weight[0], n, total, squares, &hyper[WEIGHT_MEAN, layer],
            &hyper[WEIGHT_PRECISION, layer],
        )

    cdef void draw_bias_law(
        self, bitgen_t* rng, double[:, ::1] hyper, Py_ssize_t layer, double n, double total,
        double squares,
    ) noexcept nogil:
        """The same of its biases."""
        _draw_normal_gamma(
            rng, &self.bias[0], n, total, squares, &hyper[BIAS_MEAN, layer],
            &hyper[BIAS_PRECISION, layer],
        )

    cdef double log_normal_gamma(
        self, const double[:, ::1] hyper, int which, Py_ssize_t layer
    ) noexcept nogil:
        """Log density of a layer's mean and precision of weights or of biases."""
        cdef const double* law = &self.weight[0] if which == WEIGHT_MEAN else &self.bias[0]
        cdef double rho = hyper[which + 1, layer]
        return log_gamma_density(rho, law[2], law[3]) + log_normal(
            hyper[which, layer], law[0], law[1] * rho
        )

    # -- precisions of units ------------------------------------------------------------------

    cdef double draw_noise_rate(self, bitgen_t* rng, double n, double total) noexcept nogil:
        """A layer's rate given n precisions of this total, as if they had no bound."""
        if self.noise_rate_is_given:
            return self.given_noise_rate
        return draws.draw_gamma(
            rng, self.noise_rate_shape + n * self.noise_shape, self.noise_rate_rate + total
        )

    cdef double draw_precision(
        self, bitgen_t* rng, double rate, double n, double squares
    ) noexcept nogil:
        """A unit's precision given n residuals with these squares, and its layer's rate."""
        return draws.truncated_gamma(
            rng, self.noise_shape + 0.5 * n, rate + 0.5 * squares, self.highest_precision
        )

    cdef double log_noise_rate(self, double rate) noexcept nogil:
        """Log density of a layer's rate: 0 for one that is given."""
        if self.noise_rate_is_given:
            return 0.0
        return log_gamma_density(rate, self.noise_rate_shape, self.noise_rate_rate)

    cdef double log_below_bound(self, double rate) noexcept nogil:
        """Log probability that a unit's precision keeps to its bound."""
        if not isfinite(self.highest_precision):
            return 0.0
        return log_gamma_cdf(self.noise_shape, rate, self.highest_precision)

    cdef double log_precision(self, double precision, double rate) noexcept nogil:
        """Log density of a unit's precision, as if it had no bound."""
        return log_gamma_density(precision, self.noise_shape, rate)


cdef void _draw_normal_gamma(
    bitgen_t* rng, const double* law, double n, double total, double squares, double* mu,
    double* rho,
) noexcept nogil:
    """Equation (B5.13); a draw from the prior where n is 0."""
    cdef double centre = law[0], kappa = law[1], mean = total / n if n > 0.0 else centre
    cdef double rate = law[3] + 0.5 * squares
    rate += 0.5 * kappa * n / (kappa + n) * (mean - centre) * (mean - centre)
    rho[0] = draws.draw_gamma(rng, law[2] + 0.5 * n, rate)
    mu[0] = (kappa * centre + total) / (kappa + n) + draws.normal(rng) / sqrt(
        (kappa + n) * rho[0]
    )
