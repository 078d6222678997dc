"""The numbers of a prior, as kernels read them."""

from libc.math cimport exp

from dataclasses import astuple

import numpy as np

from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport log_gamma_density
from skbnp.numerics.truncated cimport gamma_above

from skbnp.numerics.law_above import share_above
from skbnp.tree_factor_model._model import (
    BRANCH_SCALES, DF_GRID, LEAST_NOISE_RATE, NOISES, TAILS,
)

cdef double LEAST = LEAST_NOISE_RATE


cdef class Hyperparameters:
    """A ``_model.Prior`` in numbers."""

    def __init__(self, prior):
        for name, known in (("branch_scale", BRANCH_SCALES), ("noise", NOISES), ("tails", TAILS)):
            if getattr(prior, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(prior, name)!r}")
        self.sample_concentration = prior.has_free_concentration
        self.sample_noise_rate = prior.has_free_noise_rate
        self.has_noise_scale = prior.has_noise_scale
        self.has_score_precision = prior.has_score_precision
        self.whole = prior.branch_scale == "whole"
        self.isotropic = prior.noise == "isotropic"
        self.has_tail, self.one_tail = prior.tails == "t", prior.tail_df == "shared"
        self.root_shape, self.shape = prior.shrinkage_root, prior.shrinkage
        self.local_df = prior.local_shrinkage_df
        self.noise_shape = prior.noise_precision.shape
        if self.sample_noise_rate:
            law = prior.noise_precision.rate
            self.noise_rate_law = np.array(astuple(law))
            self.log_rate_share = np.log(share_above(law, LEAST_NOISE_RATE))
        self.mean_shape = prior.mean_precision.shape
        self.mean_rate = prior.mean_precision.rate
        self.score_shape = prior.score_precision_shape
        self.scale_shape = prior.noise_scale_shape
        if self.sample_concentration:
            self.concentration_shape = prior.concentration.shape
            self.concentration_rate = np.array(prior.concentration_rates, dtype=np.float64)
        self.branch_level = np.array(prior.branch_levels, dtype=np.intp)
        self.df_grid, self.df_log_mass = (np.array(a) for a in DF_GRID)

    cdef double draw_tail_df(self, bitgen_t* rng) noexcept nogil:
        """Degrees of freedom from their grid."""
        cdef double left = draws.uniform(rng)
        cdef Py_ssize_t k
        for k in range(self.df_grid.shape[0] - 1):
            left -= exp(self.df_log_mass[k])
            if left < 0.0:
                return self.df_grid[k]
        return self.df_grid[self.df_grid.shape[0] - 1]

    cdef double log_noise_rate_density(self, double rate) noexcept nogil:
        """Log density of b0 under its law, where it is sampled: (T1.5)."""
        return (
            log_gamma_density(rate, self.noise_rate_law[0], self.noise_rate_law[1])
            - self.log_rate_share
        )

    cdef double draw_noise_rate(
        self, bitgen_t* rng, Py_ssize_t n, double total
    ) noexcept nogil:
        """b0 given n noise precisions that add up to ``total``: (T10.2)."""
        return gamma_above(
            rng, self.noise_rate_law[0] + self.noise_shape * n, self.noise_rate_law[1] + total,
            LEAST
        )
