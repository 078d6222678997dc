from numpy.random cimport bitgen_t


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
        double log_rate_share               # log P(a rate above its least value)
        double[::1] tail_grid

    cdef double log_rate(self, double rate) noexcept nogil
    cdef double draw_rate(self, bitgen_t* rng, Py_ssize_t n, double inverse) noexcept nogil
    cdef double log_concentration(self, double concentration) noexcept nogil
    cdef double log_mass(self, double mass) noexcept nogil
    cdef double draw_mass(self, bitgen_t* rng, Py_ssize_t n_factors, double harmonic) noexcept nogil
    cdef double log_offset_precision(self, double precision) noexcept nogil
    cdef double draw_offset_precision(
        self, bitgen_t* rng, Py_ssize_t n, double squares
    ) noexcept nogil
