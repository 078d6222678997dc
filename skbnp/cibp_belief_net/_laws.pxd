from numpy.random cimport bitgen_t


cdef enum:
    # Rows of a network's ``hyper``, in the order of ``_model.HYPER``.
    MASS = 0
    CONCENTRATION = 1
    WEIGHT_MEAN = 2
    WEIGHT_PRECISION = 3
    BIAS_MEAN = 4
    BIAS_PRECISION = 5
    NOISE_RATE = 6


cdef double log_normal(double x, double mean, double precision) noexcept nogil


cdef class Laws:
    cdef:
        readonly object prior
        readonly Py_ssize_t deepest, max_units
        readonly bint skips, has_clusters
        double[:, :, ::1] bounds            # (2, n, 2) mass or concentration, layer, its ends
        double[::1] weight, bias            # (4,) location, kappa, shape, rate
        # A unit's precision: its shape, and a layer's rate, given or by its own shape and rate.
        double noise_shape, noise_rate_shape, noise_rate_rate, given_noise_rate
        bint noise_rate_is_given
        double[::1] cluster                 # (4,) kappa, shape; shape, rate of the rate
        double highest_precision, row_concentration

    cdef double low(self, int which, Py_ssize_t layer) noexcept nogil
    cdef double high(self, int which, Py_ssize_t layer) noexcept nogil
    cdef bint is_sampled(self, int which, Py_ssize_t layer) noexcept nogil
    cdef double log_restaurant(self, int which, Py_ssize_t layer) noexcept nogil
    cdef void draw_restaurant(
        self, bitgen_t* rng, double[:, ::1] hyper, Py_ssize_t layer
    ) noexcept nogil
    cdef void draw_layer(
        self, bitgen_t* rng, double[:, ::1] hyper, Py_ssize_t layer
    ) noexcept nogil
    cdef void draw_weight_law(
        self, bitgen_t* rng, double[:, ::1] hyper, Py_ssize_t layer, double n, double total,
        double squares,
    ) noexcept nogil
    cdef void draw_bias_law(
        self, bitgen_t* rng, double[:, ::1] hyper, Py_ssize_t layer, double n, double total,
        double squares,
    ) noexcept nogil
    cdef double log_normal_gamma(
        self, const double[:, ::1] hyper, int which, Py_ssize_t layer
    ) noexcept nogil
    cdef double draw_noise_rate(self, bitgen_t* rng, double n, double total) noexcept nogil
    cdef double draw_precision(
        self, bitgen_t* rng, double rate, double n, double squares
    ) noexcept nogil
    cdef double log_noise_rate(self, double rate) noexcept nogil
    cdef double log_below_bound(self, double rate) noexcept nogil
    cdef double log_precision(self, double precision, double rate) noexcept nogil
