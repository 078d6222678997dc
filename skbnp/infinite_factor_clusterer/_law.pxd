cdef enum:
    # Which means clusters have.
    OF_FACTORS = 0
    OF_BOTH = 1
    OF_FEATURES = 2


cdef class Law:
    cdef:
        int means                           # OF_FACTORS, OF_BOTH, OF_FEATURES
        bint shared_noise, student
        double given_concentration, given_mass      # NaN where sampled
        double concentration_law[2]         # shape, rate of gamma priors
        double mass_law[2]
        double rate_law[2]
        double offset_law[2]
        double slab_shape, slab_scale, score_shape, score_scale, score_precision, noise_shape
        double smallest_rate, log_rate_share
        double[::1] tail_grid
