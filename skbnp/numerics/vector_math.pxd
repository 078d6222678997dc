cdef enum:
    TILE = 64  # rows that squared_distances takes at a time, at most
    LANES = 4  # blocks that lane_distances takes at a time

cdef void prefetch(const void* address) noexcept nogil
cdef void exp_all(Py_ssize_t n, double* x) noexcept nogil
cdef void log_all(Py_ssize_t n, double* x) noexcept nogil
cdef void log1p_all(Py_ssize_t n, double* x) noexcept nogil
cdef void running_exp(Py_ssize_t n, double* x) noexcept nogil
cdef void log_t_all(
    Py_ssize_t n, const double* distance, const double* constant, const double* power,
    const double* share, double* out,
) noexcept nogil
cdef void squared_distances(
    Py_ssize_t n, Py_ssize_t d, const double* x, Py_ssize_t stride, const Py_ssize_t* feature,
    const double* mean, const double* factor, double* work, double* out,
) noexcept nogil
cdef void lane_distances(
    Py_ssize_t n, Py_ssize_t d, const double* x, const double* mean, const double* factor,
    double* work, double* out,
) noexcept nogil
