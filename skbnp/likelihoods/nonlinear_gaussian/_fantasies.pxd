cdef class Fantasies:
    cdef:
        readonly double[:, ::1] mean        # (n_features, n_fantasies)
        readonly double[::1] precision      # (n_features,)

    cdef double weigh(self, const double* x, double* score, double* n_effective) noexcept nogil
    cdef void average(
        self, const double* x, const double* weight, double* mean, double* variance
    ) noexcept nogil


cdef double weights_from_logs(Py_ssize_t n, double* score, double* n_effective) noexcept nogil
cdef void weighted_moments(
    Py_ssize_t n, const double* weight, const double* y, double* mean, double* variance
) noexcept nogil
