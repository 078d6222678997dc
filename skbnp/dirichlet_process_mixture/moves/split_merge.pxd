from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.dirichlet_process_mixture.moves._division cimport Division
from skbnp.mcmc.chain cimport Move


cdef class SplitMerge(Move):
    cdef:
        State state
        Division division
        bint _follows                           # the number of blocks, in warm-up
        public Py_ssize_t n_proposals           # of a sweep

    cdef Py_ssize_t how_often(self) noexcept nogil
    cdef int split_or_merge(self) except -1 nogil
    cdef int propose_split(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil
    cdef int propose_merge(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil
    cdef Py_ssize_t list_others(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef void unite_by_rows(self, Py_ssize_t k, Py_ssize_t other, Py_ssize_t both) noexcept nogil
    cdef double log_new_block(self, Py_ssize_t n_merged) noexcept nogil
    cdef double log_gain(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t both) noexcept nogil
    cdef double log_rising(self, Py_ssize_t n) noexcept nogil
