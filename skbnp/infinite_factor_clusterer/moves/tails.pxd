from skbnp.infinite_factor_clusterer._row_law cimport RowLaw
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Tails(Move):
    cdef:
        State state
        RowLaw row_law
        double[::1] square                  # (n_samples,) squared distance in the own cluster

    cdef bint measure(self) except -1 nogil
    cdef int update(self) except -1 nogil
