"""Row-major products of matrices in single precision, for networks of many weights."""

from scipy.linalg.cython_blas cimport sgemm

import numpy as np


cdef void gemm_single(
    bint trans_a, bint trans_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    const float* a, Py_ssize_t stride_a, const float* b, Py_ssize_t stride_b,
    bint add, float* c, Py_ssize_t stride_c,
) noexcept nogil:
    """C (m, n) = op(A) op(B), or C + that where ``add``; rows are so many entries apart.

    op(A) has the shape (m, k) and op(B) (k, n).
    """
    # BLAS is column-major: it computes C^T = op(B)^T op(A)^T, so the operands swap.
    cdef char* op_a = b"T" if trans_a else b"N"
    cdef char* op_b = b"T" if trans_b else b"N"
    cdef int rows = <int> m, columns = <int> n, inner = <int> k
    cdef int lda = <int> max(1, stride_a), ldb = <int> max(1, stride_b)
    cdef int ldc = <int> max(1, stride_c)
    cdef float one = 1.0, beta = 1.0 if add else 0.0
    if m > 0 and n > 0:
        sgemm(op_b, op_a, &columns, &rows, &inner, &one, <float*> b, &ldb, <float*> a, &lda,
              &beta, c, &ldc)


def product(float[:, ::1] a, float[:, ::1] b, bint trans_a=False, bint trans_b=False):
    """op(A) op(B), for the tests."""
    cdef Py_ssize_t m = a.shape[1] if trans_a else a.shape[0]
    cdef Py_ssize_t k = a.shape[0] if trans_a else a.shape[1]
    cdef Py_ssize_t n = b.shape[0] if trans_b else b.shape[1]
    cdef float[:, ::1] c = np.zeros((m, n), dtype=np.float32)
    gemm_single(
        trans_a, trans_b, m, n, k, &a[0, 0], a.shape[1], &b[0, 0], b.shape[1], False, &c[0, 0], n
    )
    return np.asarray(c)
