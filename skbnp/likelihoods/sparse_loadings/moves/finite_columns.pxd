from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport LayerMove


cdef class FiniteColumns(LayerMove):
    cdef:
        Py_ssize_t n_attempts               # for each row
        Py_ssize_t[::1] row_order           # (room_below,)

    cdef Py_ssize_t how_often(self) noexcept nogil
    cdef int add_or_delete(self, bitgen_t* rng) except -1 nogil
    cdef double log_add_ratio(self, Py_ssize_t n_columns, Py_ssize_t n_empty) noexcept nogil
    cdef double log_place(self, Py_ssize_t n_columns, Py_ssize_t n_empty) noexcept nogil
    cdef double log_others(self, double before, double after, Py_ssize_t n_empty) noexcept nogil
    cdef int add_empty(self, bitgen_t* rng) except -1 nogil
    cdef int make_printed_moves(self, bitgen_t* rng) except -1 nogil


cdef double log_printed_add(
    Py_ssize_t n_columns, Py_ssize_t n_active, Py_ssize_t n_rows, double mass
) noexcept nogil
cdef double log_printed_delete(
    Py_ssize_t n_columns, Py_ssize_t n_active, Py_ssize_t n_rows, double mass
) noexcept nogil
