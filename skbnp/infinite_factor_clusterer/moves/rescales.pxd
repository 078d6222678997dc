from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Rescales(Move):
    cdef State state

    cdef void update(self) noexcept nogil
    cdef double log_energies(self, double step) noexcept nogil
