from skbnp.tree_factor_model._rows cimport Law
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._threads cimport Pool, Scratch, Work


cdef class Products(Work):
    cdef:
        State state
        Pool pool
        Py_ssize_t _version                     # of the state whose products they are
        double[:, ::1] gram                     # (n_pieces, (max_depth + 1)^2)
        double[:, ::1] side                     # (n_pieces, (max_depth + 1) n_features)

    cdef int need(self) except -1
    cdef int begin(self) except -1
    cdef void finish(self) noexcept nogil
    cdef void clear(self, Py_ssize_t r) noexcept nogil
    cdef void add_chunk(self, Law law, Py_ssize_t r, Py_ssize_t n) noexcept nogil
    cdef void copy_row(self, Py_ssize_t i, double* row, double* weighted) noexcept nogil
