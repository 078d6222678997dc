from numpy.random cimport bitgen_t

from skbnp.likelihoods.conjugate.by_count cimport ByCount
from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.likelihoods.conjugate.gaussians cimport FullGaussians
from skbnp.likelihoods.conjugate.lanes cimport Lanes


cdef class NormalInverseWishart(ConjugateFamily):
    cdef:
        readonly bint learned               # whether the numbers of the prior are part of the state
        readonly double mean_precision, df  # kappa0, nu0
        public Py_ssize_t wide              # more features: weights from the completed row
        double[::1] prior_mean              # (n_features,) m0
        readonly double[:, ::1] base        # (n_features, n_features): Psi0 = scale * base
        double[:, ::1] base_factor          # U with base = U^T U
        double base_log_det
        public double[:, ::1] row_mean      # (n_slots, n_features) xbar
        public double[:, :, ::1] scatter    # (n_slots, n_features, n_features) S, upper triangle
        public double[:, ::1] mean          # (n_slots, n_features) m_n, prior included
        public double[:, :, ::1] factor     # (n_slots, n_features, n_features) U, Psi_n = U^T U
        public double[::1] log_det          # (n_slots,) log |Psi_n|
        Lanes lanes                         # copies of the slots, for ``log_predictive_all``
        readonly FullGaussians parameters   # of the slots, when they are drawn
        ByCount log_t_constant, log_m_constant  # what the number of rows fixes of log t and log m
        double[::1] vector                  # scratch, (2 n_features,)
        double[:, ::1] square, bartlett     # scratch, (n_features, n_features)
        double[::1] work                    # scratch, (max(4, n_features) n_features,)
        Py_ssize_t[::1] order               # scratch, (n_features,) observed features, then missing

    cdef double _log_t(self, Py_ssize_t k, double distance) noexcept nogil
    cdef void refresh_lanes(self, Py_ssize_t n) noexcept nogil
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
    cdef double _permuted_factor(
        self, Py_ssize_t k, Py_ssize_t i, Py_ssize_t n_observed, Py_ssize_t n
    ) noexcept nogil
    cdef double spread_given_observed(self, double kappa, double squares) noexcept nogil
