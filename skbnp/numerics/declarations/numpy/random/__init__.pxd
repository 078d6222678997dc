# What the kernels use of NumPy's random streams, as its header has it.
from libc.stdint cimport uint32_t, uint64_t


cdef extern from "numpy/random/bitgen.h":
    ctypedef struct bitgen_t:
        void* state
        uint64_t (*next_uint64)(void* state) noexcept nogil
        uint32_t (*next_uint32)(void* state) noexcept nogil
        double (*next_double)(void* state) noexcept nogil
        uint64_t (*next_raw)(void* state) noexcept nogil
