from numpy.random cimport bitgen_t

from skbnp.likelihoods.conjugate cimport ConjugateFamily


cdef class NormalInverseWishart(ConjugateFamily):
    cdef:
        readonly bint learned               # whether the numbers of the prior are part of the state
        readonly double mean_precision, df  # kappa0, nu0
        public Py_ssize_t wide              # more features: weights from the completed row
        double[::1] prior_mean              # (n_features,) m0
        readonly double[:, ::1] base        # (n_features, n_features): Psi0 = scale * base
        double[:, ::1] base_factor          # U with base = U^T U
        double base_log_det
        double[:, ::1] row_mean             # (n_slots, n_features) xbar
        double[:, :, ::1] scatter           # (n_slots, n_features, n_features) S, upper triangle
        double[:, ::1] mean                 # (n_slots, n_features) m_n, prior included
        double[:, :, ::1] factor            # (n_slots, n_features, n_features) U, Psi_n = U^T U
        double[::1] log_det                 # (n_slots,) log |Psi_n|
        # Copies of the slots, four side by side, so that one pass of forward substitution
        # serves four blocks; the diagonal holds reciprocals. Stale where stale[k].
        double[:, :, ::1] lane_mean         # (n_slots / 4, n_features, 4)
        double[:, :, :, ::1] lane_factor    # (n_slots / 4, n_features, n_features, 4)
        unsigned char[::1] stale            # (n_slots,)
        bint any_stale
        # Parameters of slots: (x - mu)^T Sigma^-1 (x - mu) = |(x - m0, 1) whitening|^2.
        double[:, :, ::1] whitening         # (n_parameters, n_features + 1, n_features)
        readonly double[:, ::1] location    # (n_parameters, n_features) mu
        readonly double[:, :, ::1] covariance  # (n_parameters, n_features, n_features) Sigma
        double[::1] log_peak                # (n_parameters,) log density at mu
        # What n fixes of log t and log m, NaN where it is not known: (n_samples + 1,).
        double[::1] log_t_constant, log_m_constant
        double[::1] vector                  # scratch, (4 n_features,)
        double[:, ::1] square, square_too   # scratch, (n_features, n_features)
        double[::1] work                    # scratch, (max(4, n_features) n_features,)
        Py_ssize_t[::1] order               # scratch, (n_features,) observed features, then missing

    cdef double _log_t(self, Py_ssize_t k, double distance) noexcept nogil
    cdef void _refresh_lanes(self, Py_ssize_t n) noexcept nogil
    cdef double _t_constant(self, Py_ssize_t n) noexcept nogil
    cdef double _m_constant(self, Py_ssize_t n) noexcept nogil
    cdef int factor_base(self) noexcept nogil
    cdef int derive(self, Py_ssize_t n_slots) noexcept nogil
    cdef void clear_from(self, Py_ssize_t n_slots) noexcept nogil
    cdef int _derive(self, Py_ssize_t k) noexcept nogil
    cdef void finish(self, Py_ssize_t k) noexcept nogil
    cdef int factor_within(self, Py_ssize_t k, double* out) noexcept nogil
    cdef void add_offset(self, Py_ssize_t k, double* factor) noexcept nogil
    cdef int tridiagonal(self, Py_ssize_t k, double* diagonal, double* coupling) noexcept nogil
    cdef void _touch(self, Py_ssize_t k) noexcept nogil
    cdef Py_ssize_t _observed_first(self, Py_ssize_t i, Py_ssize_t* order) noexcept nogil
    cdef double _permuted_factor(
        self, Py_ssize_t k, Py_ssize_t i, Py_ssize_t n_observed, Py_ssize_t n
    ) noexcept nogil
    cdef double spread_given_observed(self, double kappa, double squares) noexcept nogil
    cdef void _draw_conditional(
        self, Py_ssize_t i, const Py_ssize_t* order, Py_ssize_t n_observed, const double* factor,
        double* vector, const double* mean, double spread, double variance, bitgen_t* rng,
    ) noexcept nogil
    cdef void _log_likelihoods_alike(
        self, const Py_ssize_t* row, Py_ssize_t n_rows, Py_ssize_t n_blocks, double* out,
        double* work,
    ) noexcept nogil
    cdef double _whiten(
        self, Py_ssize_t k, const Py_ssize_t* feature, Py_ssize_t n, double* out,
        Py_ssize_t stride, double* work,
    ) noexcept nogil
    cdef Py_ssize_t _columns(self, Py_ssize_t n_blocks) noexcept nogil


cdef double log_multigamma(double x, Py_ssize_t d) noexcept nogil
cdef double log_gamma_ratio(double x, double step, Py_ssize_t d) noexcept nogil
