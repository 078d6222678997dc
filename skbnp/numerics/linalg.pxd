ctypedef int blas_int

cdef double dot(Py_ssize_t n, const double* x, const double* y) noexcept nogil
cdef void axpy(Py_ssize_t n, double a, const double* x, double* y) noexcept nogil
cdef void gemm(
    bint trans_a, bint trans_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    double alpha, const double* a, const double* b, double beta, double* c,
) noexcept nogil
cdef void gemm_strided(
    bint trans_a, bint trans_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    double alpha, const double* a, Py_ssize_t stride_a, const double* b, Py_ssize_t stride_b,
    double beta, double* c, Py_ssize_t stride_c,
) noexcept nogil
cdef void gemv(
    bint trans, Py_ssize_t m, Py_ssize_t n, double alpha, const double* a, const double* x,
    double beta, double* y,
) noexcept nogil
cdef void gram(
    Py_ssize_t m, Py_ssize_t n, const double* a, double* c, Py_ssize_t stride
) noexcept nogil
cdef void symmetric_rank_one(
    Py_ssize_t n, double alpha, const double* x, double* a
) noexcept nogil
cdef int cholesky(double* a, Py_ssize_t n) noexcept nogil
cdef double log_det(const double* factor, Py_ssize_t n) noexcept nogil
cdef double solve_transposed(const double* factor, Py_ssize_t n, double* x) noexcept nogil
cdef void solve(const double* factor, Py_ssize_t n, double* x) noexcept nogil
cdef void solve_rows(const double* factor, Py_ssize_t n, double* rows, Py_ssize_t m) noexcept nogil
cdef void solve_rows_back(
    const double* factor, Py_ssize_t n, double* rows, Py_ssize_t m
) noexcept nogil
cdef void solve_columns(
    const double* factor, Py_ssize_t n, double* a, Py_ssize_t m, bint back
) noexcept nogil
cdef void add_gram(
    Py_ssize_t m, Py_ssize_t n, double alpha, const double* a, double* c
) noexcept nogil
cdef void rank_one_update(double* factor, Py_ssize_t n, double* v) noexcept nogil
cdef int rank_one_downdate(double* factor, Py_ssize_t n, double* v) noexcept nogil
cdef int tridiagonalise(
    double* a, Py_ssize_t n, double* diagonal, double* coupling, double* work, Py_ssize_t n_work
) noexcept nogil
cdef double log_det_shifted(
    Py_ssize_t n, double shift, const double* diagonal, const double* coupling
) noexcept nogil
