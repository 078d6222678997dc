from numpy.random cimport bitgen_t


cdef double draw_on_grid(
    bitgen_t* rng, double mean, double spread, double t, double s, double* a
) noexcept nogil
cdef double weigh_on_grid(double a, double mean, double spread, double t, double s) noexcept nogil
cdef long long update_on_grid(
    bitgen_t* rng, Py_ssize_t n, double* a, double* u, const double* mean, double spread,
    const double* t, double s,
) noexcept nogil
cdef void squashed_moments(
    double mean, double spread, double* first, double* variance
) noexcept nogil
