from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport LayerMove
from skbnp.likelihoods.sparse_loadings.score_grid cimport ScoreGrid


cdef class Births(LayerMove):
    cdef:
        ScoreGrid grid
        Py_ssize_t n_attempts               # for each row
        Py_ssize_t[::1] row_order           # (room_below,)

    cdef int try_birth(self, bitgen_t* rng, Py_ssize_t n) except -1 nogil
    cdef int try_death(self, bitgen_t* rng, Py_ssize_t n) except -1 nogil
    cdef Py_ssize_t count_singletons(self, Py_ssize_t n) noexcept nogil
    cdef double scale_of(self, Py_ssize_t n) noexcept nogil
    cdef double log_count(self, Py_ssize_t n_singletons) noexcept nogil
    cdef double log_birth(
        self, Py_ssize_t n, Py_ssize_t n_singletons, double w, double evidence
    ) noexcept nogil
