"""The prior's laws of hyperparameters, as kernels read them: doc/mathematics/cibp_belief_net, 2."""

from libc.math cimport log, sqrt

import numpy as np

from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport log_gamma_density

cdef double LOG_2_PI = 1.8378770664093454836


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
        for which, name in enumerate(names):
            self.is_given[which] = getattr(prior, name) is not None
        self.bounds = np.array([getattr(prior, f"{name}_bounds") for name in names])
        n_given = max(len(getattr(prior, name) or (0,)) for name in names)
        self.given = np.array(
            [[prior.bounds(name, m)[0] for m in range(n_given)] for name in names]
        )
        self.weight, self.bias = np.array(prior.weight_prior), np.array(prior.bias_prior)
        self.noise, self.cluster = np.array(prior.noise_prior), np.array(prior.cluster_prior)
        self.highest_precision = prior.highest_precision
        self.row_concentration = prior.row_concentration

    cdef double low(self, int which, Py_ssize_t layer) noexcept nogil:
        """Least value of the mass or the concentration of a layer."""
        if self.is_given[which]:
            return self.given[which, min(layer, self.given.shape[1] - 1)]
        return self.bounds[which, min(layer, 1), 0]

    cdef double high(self, int which, Py_ssize_t layer) noexcept nogil:
        if self.is_given[which]:
            return self.given[which, min(layer, self.given.shape[1] - 1)]
        return self.bounds[which, min(layer, 1), 1]

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
        hyper[NOISE_RATE, layer] = draws.draw_gamma(rng, self.noise[1], self.noise[2])

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
