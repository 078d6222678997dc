from numpy.random cimport bitgen_t

from skbnp.tree_factor_model._rows cimport Law
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._threads cimport Pool, Scratch, Work


cdef class Covariances(Work):
    cdef:
        State state
        double[:, :, ::1] omega                 # (n_leaves, n_features, n_features)


cdef class LeafLaws:
    cdef:
        State state
        Pool pool
        bint _has_few                           # rows with fewer entries than levels
        Covariances _covariances                # for them

    cdef int prepare(
        self, Law law, Py_ssize_t b, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil
    cdef int prepare_density(
        self, Law law, Py_ssize_t b, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil
    cdef int fill_densities(self, Law law, Py_ssize_t b, double* out) noexcept nogil
    cdef void fill_pattern(self, Law law, Py_ssize_t g, double* out) noexcept nogil
    cdef int compute_covariances(self) except -1
    cdef Py_ssize_t whiten_run(
        self, Law law, Py_ssize_t r, Py_ssize_t t, bint for_scores
    ) noexcept nogil
    cdef double log_density(self, Law law, double square) noexcept nogil
    cdef double draw_row_precision(
        self, bitgen_t* rng, Py_ssize_t b, Py_ssize_t i, double square
    ) noexcept nogil
    cdef double log_data(self) except? -1.0
