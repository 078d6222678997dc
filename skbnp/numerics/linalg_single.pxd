cdef void gemm_single(
    bint trans_a, bint trans_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    const float* a, Py_ssize_t stride_a, const float* b, Py_ssize_t stride_b,
    bint add, float* c, Py_ssize_t stride_c,
) noexcept nogil
