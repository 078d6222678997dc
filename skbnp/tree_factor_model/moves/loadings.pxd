from libc.stdint cimport uint64_t

from skbnp.mcmc.chain cimport Move
from skbnp.tree_factor_model._products cimport Products
from skbnp.tree_factor_model._rows cimport Law
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._system cimport System
from skbnp.tree_factor_model._threads cimport Pool, Scratch, Work


cdef class Features(Work):
    cdef:
        State state
        Products products
        uint64_t key                            # of the random numbers
        # Z'WZ and Z'W y over all rows.
        double[:, ::1] node_gram, node_side     # (n_nodes, max_depth), (n_nodes, n_features)
        double[:, ::1] leaf_gram, leaf_side     # (n_leaves, max_depth + 1), (.., n_features)

    cdef int reserve(self) except -1
    cdef void add_products(self) noexcept nogil
    cdef double weight(self, Py_ssize_t b) noexcept nogil
    cdef void _clear_grams(self, double* node_gram, double* leaf_gram) noexcept nogil
    cdef void _add_gram(
        self, Py_ssize_t b, const double* gram, double* node_gram, double* leaf_gram
    ) noexcept nogil
    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil
    cdef int eliminate(self, System system) noexcept nogil
    cdef int begin(self, Scratch scratch, Py_ssize_t p) except -1 nogil
    cdef void _sum_grams_of(self, Law law, System system, Py_ssize_t p) noexcept nogil


cdef class Loadings(Move):
    cdef:
        State state
        Pool pool
        Products products
        Features features

    cdef void _draw_score_precisions(self) noexcept nogil
