cdef void add_squares(
    Py_ssize_t n, Py_ssize_t d, double sign, const double* x, double* out
) noexcept nogil
cdef void scaled_residuals(
    Py_ssize_t n, Py_ssize_t d, const double* x, const Py_ssize_t* row, const double* mean,
    const double* scale, double* e, double* out,
) noexcept nogil
cdef void add_column_squares(
    Py_ssize_t n, Py_ssize_t h, const double* z, Py_ssize_t stride, const double* shift,
    double* out,
) noexcept nogil
