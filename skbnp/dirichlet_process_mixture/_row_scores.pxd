from skbnp.dirichlet_process_mixture._state cimport State


cdef class RowScores:
    cdef:
        State state
        double[::1] value                       # (n_slots,)

    cdef int reserve(self) except -1 nogil
    cdef int draw(self, double u, Py_ssize_t* chosen) noexcept nogil
    cdef bint of_member(self, Py_ssize_t i) except -1 nogil
    cdef int of_guest(self, Py_ssize_t i) except -1 nogil
    cdef double log_density_given_others(self, Py_ssize_t i) except? -1 nogil
    cdef int given_others(self, Py_ssize_t i, Py_ssize_t* block, double* out) except -1 nogil
