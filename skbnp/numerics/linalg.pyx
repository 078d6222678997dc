"""Row-major names over SciPy's BLAS and LAPACK, and Cholesky rank-one changes.

A factor is the **upper** triangle U, row-major, of A = U^T U. Its rows are contiguous to the
right of the diagonal, so forward substitution with U^T and the rank-one changes run along
memory. What lies below the diagonal is never read.
"""

from libc.math cimport INFINITY, fmax, log, sqrt
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dgemv, dsyr, dsyrk, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dsytrd

import numpy as np


cdef enum:
    SMALL = 32  # matrices up to here are factored without LAPACK


cdef double dot(Py_ssize_t n, const double* x, const double* y) noexcept nogil:
    """x . y"""
    cdef blas_int size = <blas_int> n, one = 1
    return ddot(&size, <double*> x, &one, <double*> y, &one)


cdef void axpy(Py_ssize_t n, double a, const double* x, double* y) noexcept nogil:
    """y += a x"""
    cdef blas_int size = <blas_int> n, one = 1
    daxpy(&size, &a, <double*> x, &one, y, &one)


cdef void gemm(
    bint trans_a, bint trans_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    double alpha, const double* a, const double* b, double beta, double* c,
) noexcept nogil:
    """C (m, n) = alpha op(A) op(B) + beta C, with op(A) of shape (m, k) and op(B) (k, n)."""
    gemm_strided(
        trans_a, trans_b, m, n, k, alpha, a, m if trans_a else k, b, k if trans_b else n, beta, c, n
    )


cdef void gemm_strided(
    bint trans_a, bint trans_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    double alpha, const double* a, Py_ssize_t stride_a, const double* b, Py_ssize_t stride_b,
    double beta, double* c, Py_ssize_t stride_c,
) noexcept nogil:
    """The same for matrices whose rows are so many entries apart."""
    # BLAS is column-major: it computes C^T = op(B)^T op(A)^T, so the operands swap.
    cdef char* op_a = b"T" if trans_a else b"N"
    cdef char* op_b = b"T" if trans_b else b"N"
    cdef blas_int rows = <blas_int> m, columns = <blas_int> n, inner = <blas_int> k
    cdef blas_int lda = <blas_int> max(1, stride_a), ldb = <blas_int> max(1, stride_b)
    cdef blas_int ldc = <blas_int> max(1, stride_c)
    dgemm(op_b, op_a, &columns, &rows, &inner, &alpha, <double*> b, &ldb, <double*> a, &lda,
          &beta, c, &ldc)


cdef void gemv(
    bint trans, Py_ssize_t m, Py_ssize_t n, double alpha, const double* a, const double* x,
    double beta, double* y,
) noexcept nogil:
    """y = alpha op(A) x + beta y for A (m, n); y has n entries if transposed, else m."""
    cdef blas_int rows = <blas_int> m, columns = <blas_int> n, one = 1
    cdef blas_int lda = <blas_int> max(1, n)
    dgemv(b"N" if trans else b"T", &columns, &rows, &alpha, <double*> a, &lda, <double*> x, &one,
          &beta, y, &one)


cdef void gram(
    Py_ssize_t m, Py_ssize_t n, const double* a, double* c, Py_ssize_t stride
) noexcept nogil:
    """Upper triangle of C (m, m), rows ``stride`` apart, = A A^T for A (m, n)."""
    cdef blas_int rows = <blas_int> m, inner = <blas_int> n, lda = <blas_int> max(1, n)
    cdef blas_int ldc = <blas_int> max(1, stride)
    cdef double one = 1.0, zero = 0.0
    dsyrk(b"L", b"T", &rows, &inner, &one, <double*> a, &lda, &zero, c, &ldc)


cdef void symmetric_rank_one(
    Py_ssize_t n, double alpha, const double* x, double* a
) noexcept nogil:
    """Upper triangle of A (n, n) += alpha x x^T"""
    cdef blas_int size = <blas_int> n, one = 1
    dsyr(b"L", &size, &alpha, <double*> x, &one, a, &size)


cdef int cholesky(double* a, Py_ssize_t n) noexcept nogil:
    """Replace the upper triangle of a by U with A = U^T U. Non-zero: not positive definite."""
    cdef blas_int size = <blas_int> n, info = 0
    cdef Py_ssize_t b
    if n <= SMALL:
        return _small_cholesky(a, n)
    dpotrf(b"L", &size, a, &size, &info)
    if info != 0:
        return info
    # OpenBLAS calls NaN a success. Any NaN or infinity ends up in a pivot.
    for b in range(n):
        if not 0.0 < a[b * n + b] < INFINITY:
            return <int> b + 1
    return 0


cdef int _small_cholesky(double* a, Py_ssize_t n) noexcept nogil:
    """The same without LAPACK, whose locked work space makes chains in threads wait in turn."""
    cdef Py_ssize_t b, c, r
    cdef double root, left
    cdef double* row = a
    cdef double* below
    for b in range(n):
        if not 0.0 < row[b] < INFINITY:
            return <int> b + 1
        root = sqrt(row[b])
        row[b] = root
        for c in range(b + 1, n):
            row[c] /= root
        below = row + n
        for r in range(b + 1, n):
            left = row[r]
            for c in range(r, n):
                below[c] -= left * row[c]
            below += n
        row += n
    return 0


cdef double log_det(const double* factor, Py_ssize_t n) noexcept nogil:
    """log |U^T U|"""
    cdef double total = 0.0
    cdef Py_ssize_t a
    for a in range(n):
        total += log(factor[a * n + a])
    return 2.0 * total


cdef double solve_transposed(const double* factor, Py_ssize_t n, double* x) noexcept nogil:
    """x <- U^-T x by forward substitution; returns the new x . x."""
    cdef Py_ssize_t a, b
    cdef double y, squares = 0.0
    cdef const double* row = factor
    for b in range(n):
        y = x[b] / row[b]
        x[b] = y
        squares += y * y
        for a in range(b + 1, n):
            x[a] -= row[a] * y
        row += n
    return squares


cdef void solve(const double* factor, Py_ssize_t n, double* x) noexcept nogil:
    """x <- U^-1 x by back substitution."""
    cdef Py_ssize_t a, b
    cdef double total
    for b in range(n - 1, -1, -1):
        total = x[b]
        for a in range(b + 1, n):
            total -= factor[b * n + a] * x[a]
        x[b] = total / factor[b * n + b]


cdef void solve_rows(const double* factor, Py_ssize_t n, double* rows, Py_ssize_t m) noexcept nogil:
    """Replace each of m rows x by U^-T x: one triangular solve for all (BLAS 3)."""
    cdef blas_int size = <blas_int> n, count = <blas_int> m
    cdef double one = 1.0
    # Column-major the factor reads as L = U^T and the rows as the columns of the right side.
    dtrsm(b"L", b"L", b"N", b"N", &size, &count, &one, <double*> factor, &size, rows, &size)


cdef void solve_rows_back(
    const double* factor, Py_ssize_t n, double* rows, Py_ssize_t m
) noexcept nogil:
    """Replace each of m rows x by U^-1 x."""
    cdef blas_int size = <blas_int> n, count = <blas_int> m
    cdef double one = 1.0
    dtrsm(b"L", b"L", b"T", b"N", &size, &count, &one, <double*> factor, &size, rows, &size)


cdef void solve_columns(
    const double* factor, Py_ssize_t n, double* a, Py_ssize_t m, bint back
) noexcept nogil:
    """Replace A (n, m) by U^-T A, or by U^-1 A."""
    cdef blas_int size = <blas_int> n, count = <blas_int> m, stride = <blas_int> max(1, m)
    cdef double one = 1.0
    dtrsm(b"R", b"L", b"N" if back else b"T", b"N", &count, &size, &one, <double*> factor, &size,
          a, &stride)


cdef void add_gram(
    Py_ssize_t m, Py_ssize_t n, double alpha, const double* a, double* c
) noexcept nogil:
    """Upper triangle of C (n, n) += alpha A^T A for A (m, n)."""
    cdef blas_int size = <blas_int> n, inner = <blas_int> m, stride = <blas_int> max(1, n)
    cdef double one = 1.0
    dsyrk(b"L", b"N", &size, &inner, &alpha, <double*> a, &stride, &one, c, &stride)


cdef void rank_one_update(double* factor, Py_ssize_t n, double* v) noexcept nogil:
    """U^T U <- U^T U + v v^T by Givens rotations; v is destroyed. Cost n^2.

    c and s are a true cosine and sine: the shorter form with 1/c, which reuses the new row to
    rotate v, loses digits in proportion to v[b] / row[b], as when a far row joins a tight cluster.
    """
    cdef Py_ssize_t a, b
    cdef double old, new, c, s
    cdef double* row = factor
    for b in range(n):
        new = sqrt(row[b] * row[b] + v[b] * v[b])
        c = row[b] / new
        s = v[b] / new
        row[b] = new
        for a in range(b + 1, n):
            old = row[a]
            row[a] = c * old + s * v[a]
            v[a] = c * v[a] - s * old
        row += n


cdef int rank_one_downdate(double* factor, Py_ssize_t n, double* v) noexcept nogil:
    """U^T U <- U^T U - v v^T by hyperbolic rotations; v is destroyed. Cost n^2.

    Returns 1, leaving the factor spoiled, when a squared pivot falls below 1e-12 of its old
    value: the digits of the result are then gone and the caller rebuilds from the rows.
    """
    cdef Py_ssize_t a, b
    cdef double old, square, new, c, s
    cdef double* row = factor
    for b in range(n):
        old = row[b]
        square = (old - v[b]) * (old + v[b])
        if not square > 1e-12 * old * old:
            return 1
        new = sqrt(square)
        c = new / old
        s = v[b] / old
        row[b] = new
        for a in range(b + 1, n):
            row[a] = (row[a] - s * v[a]) / c
            v[a] = c * v[a] - s * row[a]
        row += n
    return 0


cdef int tridiagonalise(
    double* a, Py_ssize_t n, double* diagonal, double* coupling, double* work, Py_ssize_t n_work
) noexcept nogil:
    """Q^T A Q tridiagonal for a symmetric A, which is destroyed, with Q orthogonal.

    Its diagonal (n,) and the squares of what is beside it, (n,) with 0 in front. work holds
    n_work >= 2 n doubles. Non-zero: LAPACK refused its arguments. Cost 4 n^3 / 3.
    """
    cdef blas_int size = <blas_int> n, room = <blas_int> (n_work - n), info = 0
    cdef Py_ssize_t b
    dsytrd(b"L", &size, a, &size, diagonal, coupling + 1, work, work + n, &room, &info)
    coupling[0] = 0.0
    for b in range(1, n):
        coupling[b] *= coupling[b]
    return info


cdef double log_det_shifted(
    Py_ssize_t n, double shift, const double* diagonal, const double* coupling
) noexcept nogil:
    """log |shift I + M| of a tridiagonal M >= 0 as ``tridiagonalise`` gives it, in O(n).

    By its pivots, none of which is below the shift but for rounding.
    """
    cdef Py_ssize_t b
    cdef double pivot = 1.0, product = 1.0, total = 0.0
    for b in range(n):
        pivot = fmax(shift + diagonal[b] - coupling[b] / pivot, shift)
        product *= pivot
        if not 1e-100 < product < 1e100:  # before it leaves the range: a log for many pivots
            total += log(product)
            product = 1.0
    return total + log(product)


# -- Python faces -----------------------------------------------------------------------------


def cholesky_upper(const double[:, ::1] matrix):
    """U (upper) with matrix = U^T U; raises numpy.linalg.LinAlgError if not positive definite."""
    cdef double[:, ::1] out = np.array(matrix)
    cdef Py_ssize_t n = out.shape[0]
    if out.shape[1] != n:
        raise ValueError(f"matrix must be square, got shape {(n, out.shape[1])}")
    if n > 0 and cholesky(&out[0, 0], n) != 0:
        raise np.linalg.LinAlgError("matrix must be positive definite")
    return np.triu(out)


def solved(const double[:, ::1] factor, const double[::1] x):
    """U^-1 x."""
    cdef double[::1] out = np.array(x)
    solve(&factor[0, 0], factor.shape[0], &out[0])
    return np.asarray(out)


def tridiagonal(const double[:, ::1] matrix):
    """Diagonal of Q^T A Q, tridiagonal, and the squares of what is beside it after a 0."""
    cdef double[:, ::1] scratch = np.array(matrix)
    cdef Py_ssize_t n = scratch.shape[0]
    cdef double[:, ::1] out = np.empty((2, n))
    cdef double[::1] work = np.empty(2 * n)
    if tridiagonalise(&scratch[0, 0], n, &out[0, 0], &out[1, 0], &work[0], 2 * n) != 0:
        raise np.linalg.LinAlgError("LAPACK refused the matrix")
    return tuple(np.asarray(out))
