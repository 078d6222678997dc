# Precisions below this are neither left nor entered by moves that keep a child's moments.
cdef double LEAST_PRECISION

cdef bint match_precision(
    bint birth, double given, double* without, double* with_it
) noexcept nogil
cdef double compare_rows(
    Py_ssize_t n, const double* r, double shift, double w, double without, double with_it,
    double* linear,
) noexcept nogil
