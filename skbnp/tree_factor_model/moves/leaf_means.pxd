from libc.stdint cimport uint64_t

from skbnp.mcmc.chain cimport Move
from skbnp.tree_factor_model._leaf_laws cimport LeafLaws
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._threads cimport Pool, Scratch, Work


cdef class LeafMean(Work):
    cdef:
        State state
        LeafLaws laws
        uint64_t key                            # of the random numbers

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil
    cdef double through_scores(
        self, Py_ssize_t depth, const double* row, const double* by_level
    ) noexcept nogil


cdef class LeafMeans(Move):
    cdef:
        State state
        Pool pool
        LeafMean draw
