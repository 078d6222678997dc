from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport LayerMove
from skbnp.likelihoods.sparse_loadings.score_grid cimport ScoreGrid


cdef class Splits(LayerMove):
    cdef:
        ScoreGrid grid
        Py_ssize_t n_attempts
        double[::1] new_scores, other_scores    # (n_samples,)

    cdef int try_merge(self, bitgen_t* rng) except -1 nogil
    cdef int try_split(self, bitgen_t* rng) except -1 nogil
    cdef bint are_disjoint(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil
    cdef Py_ssize_t count_pairs(self) noexcept nogil
    cdef Py_ssize_t count_splittable(self) noexcept nogil
    cdef double log_choices(self, Py_ssize_t n_pairs, Py_ssize_t n_splittable) noexcept nogil
    cdef double log_merge(
        self, Py_ssize_t m1, Py_ssize_t m2, double s1, double s2
    ) noexcept nogil
    cdef void draw_parts(self, bitgen_t* rng, Py_ssize_t k) noexcept nogil
