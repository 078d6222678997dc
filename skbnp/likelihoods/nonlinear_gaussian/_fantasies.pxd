cdef class Fantasies:
    cdef:
        readonly double[:, ::1] mean        # (n_features, n_fantasies)
        readonly double[::1] precision      # (n_features,)

    cdef double weigh(self, const double* x, double* score, double* n_effective) noexcept nogil
