cdef void mix_row(
    const double* share, Py_ssize_t n, const double* one, const double* two, Py_ssize_t n_out,
    double* mean, double* variance,
) noexcept nogil
cdef double weigh(double* score, Py_ssize_t n, double* n_effective) noexcept nogil
