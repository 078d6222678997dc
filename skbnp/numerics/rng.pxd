from libc.stdint cimport uint32_t, uint64_t
from numpy.random cimport bitgen_t


cdef struct RowStream:
    bitgen_t rng            # its state is this struct
    uint32_t counter[4]
    uint32_t key[2]
    uint32_t word[8]
    int n_left              # words not yet used


cdef bitgen_t* borrow(object bit_generator) except NULL
cdef double uniform(bitgen_t* rng) noexcept nogil
cdef Py_ssize_t below(bitgen_t* rng, Py_ssize_t n) noexcept nogil
cdef uint64_t bits(bitgen_t* rng) noexcept nogil
cdef double normal(bitgen_t* rng) noexcept nogil
cdef double gamma(bitgen_t* rng, double shape) noexcept nogil
cdef double poisson(bitgen_t* rng, double rate) noexcept nogil
cdef double log_gamma(bitgen_t* rng, double shape) noexcept nogil
cdef double draw_gamma(bitgen_t* rng, double shape, double rate) noexcept nogil
cdef double truncated_gamma(
    bitgen_t* rng, double shape, double rate, double high
) noexcept nogil
cdef double log_beta(bitgen_t* rng, double a, double b) noexcept nogil
cdef void log_dirichlet(
    bitgen_t* rng, const double* shape, Py_ssize_t n, double* out
) noexcept nogil
cdef int categorical_from_logs(
    bitgen_t* rng, double* log_weight, Py_ssize_t n, Py_ssize_t* chosen
) noexcept nogil
cdef int categorical_at(
    double u, double* log_weight, Py_ssize_t n, Py_ssize_t* chosen
) noexcept nogil
cdef void shuffle(bitgen_t* rng, Py_ssize_t* item, Py_ssize_t n) noexcept nogil
cdef void wishart_factor(bitgen_t* rng, double df, Py_ssize_t n, double* out) noexcept nogil
cdef void philox4x32(const uint32_t* counter, const uint32_t* key, uint32_t* out) noexcept nogil
cdef void philox_uniforms(
    uint64_t seed, uint64_t sweep, uint64_t row, double* out
) noexcept nogil
cdef void start_row_stream(
    RowStream* stream, uint64_t seed, uint32_t sweep, uint64_t row
) noexcept nogil
