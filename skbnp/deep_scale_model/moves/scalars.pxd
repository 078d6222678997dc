from skbnp.deep_scale_model._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class SlicedMove(Move):
    cdef State state

    cdef double log_target(self, Py_ssize_t n, double x) noexcept nogil
    cdef double slice(self, Py_ssize_t n, double x) noexcept nogil
    cdef void update(self) noexcept nogil


cdef class Noise(SlicedMove):
    pass


cdef class Mass(SlicedMove):
    pass


cdef class Location(Move):
    cdef State state

    cdef void update(self) noexcept nogil
