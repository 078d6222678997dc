from numpy.random cimport bitgen_t


cdef double new_weight(Py_ssize_t n_blocks, double concentration, double discount) noexcept nogil
cdef double log_new_weight(
    Py_ssize_t n_blocks, double concentration, double discount
) noexcept nogil
cdef double log_eppf(
    const Py_ssize_t* size, Py_ssize_t n_blocks, double concentration, double discount
) noexcept nogil
cdef void block_moments(
    Py_ssize_t n, double concentration, double discount, double* mean, double* variance
) noexcept nogil
cdef double block_mean(Py_ssize_t n, double concentration, double discount) noexcept nogil
cdef void block_pmf(
    Py_ssize_t n, double concentration, double discount, double* pmf
) noexcept nogil
cdef Py_ssize_t seat(
    bitgen_t* rng, Py_ssize_t n, double concentration, double discount,
    Py_ssize_t* label, Py_ssize_t* size,
) noexcept nogil
cdef double draw_concentration(
    bitgen_t* rng, double current, const Py_ssize_t* size, Py_ssize_t n_blocks,
    double discount, Py_ssize_t n_components, double shape, double rate,
) noexcept nogil
cdef double draw_discount(
    bitgen_t* rng, double current, const Py_ssize_t* size, Py_ssize_t n_blocks,
    double concentration, double a, double b,
) noexcept nogil


cdef class PartitionLaw:
    cdef:
        readonly double concentration, discount
        readonly Py_ssize_t n_components

    cdef void set_concentration(self, double concentration) noexcept nogil
    cdef void set_discount(self, double discount) noexcept nogil
    cdef double log_new_weight(self, Py_ssize_t n_blocks) noexcept nogil
    cdef double log_total_weight(self, Py_ssize_t n_items, Py_ssize_t n_blocks) noexcept nogil
    cdef double weight_of_rest(self, Py_ssize_t n_blocks) noexcept nogil
    cdef double log_prob(self, const Py_ssize_t* size, Py_ssize_t n_blocks) noexcept nogil
    cdef int reserve(self, Py_ssize_t n_blocks) except -1 nogil
