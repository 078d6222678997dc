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
        double[:, :, ::1] bounds            # (2, 2, 2) mass or concentration, layer 0 or not, ends
        double[:, ::1] given                # (2, n_given) values where they are given
        bint is_given[2]
        double[::1] weight, bias            # (4,) mean, kappa, shape, rate
        double[::1] noise                   # (3,) shape of the precisions; shape, rate of the rate
        double[::1] cluster                 # (4,) kappa, shape; shape, rate of the rate
        double highest_precision, row_concentration

    cdef double low(self, int which, Py_ssize_t layer) noexcept nogil
    cdef double high(self, int which, Py_ssize_t layer) noexcept nogil
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
