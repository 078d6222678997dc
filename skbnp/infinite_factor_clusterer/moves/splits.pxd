from numpy.random cimport bitgen_t

from skbnp.infinite_factor_clusterer._sides cimport Sides
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.infinite_factor_clusterer.moves._launch cimport Launch
from skbnp.mcmc.chain cimport Move


cdef class Splits(Move):
    cdef:
        State state
        Sides sides
        Launch launch
        Py_ssize_t n_attempts

    cdef int update(self) except -1 nogil
    cdef int divide_or_unite(self) except -1 nogil
    cdef void split_or_merge(self) noexcept nogil
    cdef double log_partition(self) noexcept nogil
    cdef double scan(self, Py_ssize_t n, bint forced, Py_ssize_t first) noexcept nogil
