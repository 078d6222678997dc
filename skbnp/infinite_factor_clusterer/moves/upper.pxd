from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Upper(Move):
    cdef State state

    cdef int update(self) except -1 nogil
