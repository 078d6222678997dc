from numpy.random cimport bitgen_t


cdef class Hyperparameters:
    cdef:
        readonly bint sample_concentration, sample_noise_rate
        readonly bint has_noise_scale, has_score_precision, whole, isotropic, has_tail, one_tail
        # Shapes and rates of the gamma priors.
        double root_shape, shape, local_df
        double noise_shape
        double mean_shape, mean_rate, score_shape, scale_shape
        double concentration_shape
        double[::1] noise_rate_law              # the numbers of the law of b0
        double log_rate_share                   # of what this law has above the least rate
        double[::1] concentration_rate          # (n_branch_levels,)
        Py_ssize_t[::1] branch_level            # (n_branch_levels,)
        double[::1] df_grid, df_log_mass        # (n_df,) of the tails

    cdef double draw_tail_df(self, bitgen_t* rng) noexcept nogil
    cdef double log_noise_rate_density(self, double rate) noexcept nogil
    cdef double draw_noise_rate(self, bitgen_t* rng, Py_ssize_t n, double total) noexcept nogil
