from numpy.random cimport bitgen_t

from skbnp.tree_factor_model._state cimport State

cdef class System:
    cdef:
        State tree                     # and its parameters
        double[:, ::1] node_row                 # (n_nodes, max_depth)
        double[:, ::1] leaf_row                 # (n_leaves, max_depth + 1)
        double[::1] node_rhs, leaf_rhs
        double[:, ::1] node_gram, leaf_gram     # products of one feature's own rows
        double[::1] gram                        # (max_depth + 1, max_depth + 1)

    cdef int begin(
        self, Py_ssize_t p, const double* node_gram, const double* leaf_gram,
        const double[:, ::1] node_side, const double[:, ::1] leaf_side,
    ) except -1 nogil
    cdef int eliminate(self) noexcept nogil
    cdef void substitute(self, Py_ssize_t p, bitgen_t* rng) noexcept nogil
    cdef int reserve(self) except -1 nogil
    cdef int _eliminate_row(
        self, const double* row, Py_ssize_t n_above, double rhs, Py_ssize_t above
    ) noexcept nogil
