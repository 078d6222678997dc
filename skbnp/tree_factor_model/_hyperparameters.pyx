"""The numbers of a prior, as kernels read them."""

from libc.math cimport exp

import numpy as np

from skbnp.numerics cimport rng as draws

from skbnp.tree_factor_model._model import BRANCH_SCALES, DF_GRID, NOISES, TAILS


cdef class Hyperparameters:
    """A ``_model.Prior`` in numbers."""

    def __init__(self, prior):
        for name, known in (("branch_scale", BRANCH_SCALES), ("noise", NOISES), ("tail", TAILS)):
            if getattr(prior, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(prior, name)!r}")
        self.sample_concentration = prior.concentration is None
        self.sample_noise_rate = prior.noise_rate_prior is not None
        self.has_noise_scale = prior.has_noise_scale
        self.has_score_precision = prior.has_score_precision
        self.whole = prior.branch_scale == "whole"
        self.isotropic = prior.noise == "isotropic"
        self.has_tail, self.one_tail = prior.tail == "t", prior.tail_df == "shared"
        self.root_shape, self.shape = prior.shrinkage_root, prior.shrinkage
        self.local_df = prior.local_shrinkage_df
        self.noise_shape = prior.noise_prior[0]
        if self.sample_noise_rate:
            self.noise_rate_shape, self.noise_rate_rate = prior.noise_rate_prior
        self.mean_shape, self.mean_rate = prior.mean_precision_prior
        self.score_shape = prior.score_precision_prior
        self.scale_shape = prior.noise_scale_prior
        self.concentration_shape = prior.concentration_prior[0]
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
