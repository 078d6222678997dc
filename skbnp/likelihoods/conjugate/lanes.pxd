cdef class Lanes:
    cdef:
        Py_ssize_t n_features, n_slots
        # One pass of forward substitution serves four blocks; the diagonal holds reciprocals.
        double[:, :, ::1] mean              # (n_slots / 4, n_features, 4)
        double[:, :, :, ::1] factor         # (n_slots / 4, n_features, n_features, 4)
        unsigned char[::1] stale            # (n_slots,)
        Py_ssize_t n_fresh                  # slots, from the first on, none of which is stale
        double[:, ::1] law                  # (3, n_slots) constant, power and share of ``log_t``
        double[::1] residual                # scratch, (8 n_features,)
        double[::1] value                   # scratch, (n_slots,)
        double[::1] distance                # (n_slots,) of the row asked for last
        Py_ssize_t row, n_known             # that row, and of how many slots

    cdef void touch(self, Py_ssize_t k) noexcept nogil
    cdef void refresh(
        self, Py_ssize_t n, const double* mean, const double* factor
    ) noexcept nogil
    cdef void renew(self, Py_ssize_t k, const double* mean, const double* factor) noexcept nogil
    cdef void measure(self, Py_ssize_t n, Py_ssize_t i, const double* x) noexcept nogil
    cdef void log_t(
        self, Py_ssize_t n, Py_ssize_t i, const double* x, double* out
    ) noexcept nogil
    cdef bint knows(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil
