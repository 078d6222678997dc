from cython cimport final


@final
cdef class GraphLaw:
    cdef:
        public double mass, concentration, popularity
        # Of whole numbers n: lgamma(n), lgamma(alpha + n), psi_n of equation (I1.2).
        double[::1] log_count, log_rest, psi    # (capacity,)
        # lgamma(phi + n), lgamma(alpha + phi + n)
        double[::1] log_taken, log_both         # (capacity,)
        double log_observed                     # -log B(phi, alpha)

    cdef int reserve(self, Py_ssize_t n_nodes) except -1
    cdef void fill(self) noexcept nogil

    cdef inline double log_children(self, bint hidden, Py_ssize_t m, Py_ssize_t n) noexcept nogil:
        """Log factor of one set of m children among n nodes below: equation (I2.3).

        Without what is the same for all hidden or for all observed nodes.
        """
        if hidden:
            return self.log_count[m] + self.log_rest[n - m] - self.log_rest[n]
        return self.log_taken[m] + self.log_rest[n - m] - self.log_both[n]

    cdef double log_chosen(self, Py_ssize_t m, Py_ssize_t n) noexcept nogil
    cdef double log_taken_odds(self, bint hidden, Py_ssize_t m, Py_ssize_t n) noexcept nogil
    cdef double taking(self, bint hidden, Py_ssize_t m, Py_ssize_t n) noexcept nogil
