from numpy.random cimport bitgen_t

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily


cdef int permuted_factor(
    const double* factor, Py_ssize_t d, const Py_ssize_t* feature, Py_ssize_t n, double* out
) noexcept nogil
cdef double solve_leading(
    const double* factor, Py_ssize_t d, Py_ssize_t n, double* x
) noexcept nogil
cdef void draw_conditional(
    ConjugateFamily family, Py_ssize_t i, const Py_ssize_t* order, Py_ssize_t n_observed,
    const double* factor, double* vector, const double* mean, double spread, double variance,
    bitgen_t* rng,
) noexcept nogil


cdef class FullGaussians:
    cdef:
        Py_ssize_t n_features
        double[::1] prior_mean              # (n_features,)
        # (x - mu)^T Sigma^-1 (x - mu) = |(x - m0, 1) whitening|^2.
        double[:, :, ::1] whitening         # (n_blocks, n_features + 1, n_features)
        readonly double[:, ::1] location    # (n_blocks, n_features) mu
        readonly double[:, :, ::1] covariance  # (n_blocks, n_features, n_features) Sigma
        double[::1] log_peak                # (n_blocks,) log density at mu
        double[:, ::1] square, square_too   # scratch, (n_features, n_features)
        double[::1] vector                  # scratch, (n_features,)

    cdef int reserve(self, Py_ssize_t n_blocks) except -1 nogil
    cdef void draw(
        self, Py_ssize_t k, double kappa, double df, double log_det, const double* mean,
        const double* factor, bitgen_t* rng,
    ) noexcept nogil
    cdef Py_ssize_t work_size(self, Py_ssize_t n_blocks) noexcept nogil
    cdef void log_likelihoods(
        self, ConjugateFamily family, bint whole, const Py_ssize_t* row, Py_ssize_t n_rows,
        Py_ssize_t n_blocks, double* out, double* work,
    ) noexcept nogil
    cdef void draw_missing(
        self, ConjugateFamily family, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng, double* work
    ) noexcept nogil
    cdef void _log_likelihoods_alike(
        self, ConjugateFamily family, bint whole, const Py_ssize_t* row, Py_ssize_t n_rows,
        Py_ssize_t n_blocks, double* out, double* work,
    ) noexcept nogil
    cdef double _whiten(
        self, Py_ssize_t k, const Py_ssize_t* feature, Py_ssize_t n, double* out,
        Py_ssize_t stride, double* work,
    ) noexcept nogil
    cdef Py_ssize_t _columns(self, Py_ssize_t n_blocks) noexcept nogil


cdef class DiagonalGaussians:
    cdef:
        Py_ssize_t n_features
        # (x - mu) / sigma = (x - m) precision_root - shift.
        readonly double[:, ::1] center      # (n_blocks, n_features) m
        readonly double[:, ::1] precision_root  # (n_blocks, n_features) 1 / sigma
        readonly double[:, ::1] shift       # (n_blocks, n_features)
        double[:, ::1] log_peak             # (n_blocks, n_features) log density at mu

    cdef int reserve(self, Py_ssize_t n_blocks) except -1 nogil
    cdef void put(
        self, Py_ssize_t k, Py_ssize_t j, double center, double log_variance, double shift
    ) noexcept nogil
    cdef Py_ssize_t work_size(self) noexcept nogil
    cdef void log_likelihoods(
        self, ConjugateFamily family, const Py_ssize_t* row, Py_ssize_t n_rows,
        Py_ssize_t n_blocks, double* out, double* work,
    ) noexcept nogil
    cdef void see_missing(self, ConjugateFamily family, Py_ssize_t k, Py_ssize_t i) noexcept nogil
    cdef void _log_likelihoods_alike(
        self, ConjugateFamily family, const Py_ssize_t* row, Py_ssize_t n_rows,
        Py_ssize_t n_blocks, double* out, double* work,
    ) noexcept nogil
