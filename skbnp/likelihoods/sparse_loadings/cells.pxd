from numpy.random cimport bitgen_t


cdef double log_density(
    Py_ssize_t n, const double* x, const double* base, const double* y, double w, double drift,
    double floor,
) noexcept nogil
cdef double log_t(double x, double df, double scale2) noexcept nogil
cdef double draw_t(bitgen_t* rng, double df, double scale2) noexcept nogil
cdef double log_add(double a, double b) noexcept nogil
cdef bint accepts(bitgen_t* rng, double log_ratio) noexcept nogil
cdef void put_in_order(bitgen_t* rng, Py_ssize_t* item, Py_ssize_t n) noexcept nogil
