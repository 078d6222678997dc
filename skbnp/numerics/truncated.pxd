from numpy.random cimport bitgen_t

cdef double normal_above(bitgen_t* rng, double bound) noexcept nogil
cdef double gamma_above(bitgen_t* rng, double shape, double rate, double low) noexcept nogil
