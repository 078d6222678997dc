from numpy.random cimport bitgen_t


cdef double log_density(double x, double shape) noexcept nogil
cdef void draw_local(
    bitgen_t* rng, Py_ssize_t n, const double* loading, double precision, double df, double* local
) noexcept nogil
cdef void draw_multipliers(
    bitgen_t* rng, Py_ssize_t n_nodes, const Py_ssize_t* parent, const double* weighted_square,
    Py_ssize_t n_features, double root_shape, double shape, double* multiplier,
    double* log_precision, double* scratch,
) noexcept nogil
