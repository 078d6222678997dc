from numpy.random cimport bitgen_t

from skbnp.deep_scale_model._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Target:
    cdef State state

    cdef double log_density(self, Py_ssize_t n, double x) noexcept nogil
    cdef double slice(self, bitgen_t* rng, Py_ssize_t n, double x) noexcept nogil


cdef class NoiseTarget(Target):
    pass


cdef class MassTarget(Target):
    pass


cdef class Noise(Move):
    cdef:
        State state
        Target target

    cdef void update(self) noexcept nogil


cdef class Location(Move):
    cdef State state

    cdef void update(self) noexcept nogil


cdef class Mass(Move):
    cdef:
        State state
        Target target

    cdef void update(self) noexcept nogil
