from skbnp.likelihoods.conjugate.by_count cimport ByCount
from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.likelihoods.conjugate.gaussians cimport DiagonalGaussians


cdef class NormalInverseGamma(ConjugateFamily):
    cdef:
        bint shared                         # one variance for all features (spherical)
        public bint complete                # no row of any block has a missing cell
        Py_ssize_t n_rates                  # 1 if shared else n_features
        readonly bint learned               # whether the numbers of the prior are part of the state
        readonly double mean_precision, shape  # kappa0, a0
        double[::1] prior_mean              # (n_features,) m0
        readonly double[::1] base                    # (n_rates,): b0 = scale * base
        public double[:, ::1] count         # (n_slots, n_features) observed cells
        public double[:, ::1] row_mean      # (n_slots, n_features) mean of the observed cells
        public double[:, ::1] squares       # (n_slots, n_features) sum of squares about it
        public double[:, ::1] mean          # (n_slots, n_features) posterior mean, prior included
        public double[:, ::1] rate          # (n_slots, n_rates) b of the posterior
        public double[:, ::1] log_rate      # (n_slots, n_rates)
        readonly DiagonalGaussians parameters  # of the slots, when they are drawn
        # What the number of cells fixes of log t and, per feature, of log m.
        ByCount log_t_constant, log_m_constant
        double[::1] vector                  # scratch, (n_features,)

    cdef void _settle(self, Py_ssize_t k) noexcept nogil
    cdef double _log_t_complete(self, Py_ssize_t k, const double* x) noexcept nogil
    cdef double _log_t_diagonal(self, Py_ssize_t k, const double* x) noexcept nogil
    cdef double _log_t_shared(self, Py_ssize_t k, const double* x) noexcept nogil
    cdef double _own_diagonal(self, Py_ssize_t k, const double* x) noexcept nogil
    cdef double _own_shared(self, Py_ssize_t k, const double* x) noexcept nogil
    cdef double _t_constant(self, Py_ssize_t n) noexcept nogil
    cdef double _m_constant(self, Py_ssize_t n) noexcept nogil
    cdef void forget_constants(self) noexcept nogil
    cdef void derive(self, Py_ssize_t n_slots) noexcept nogil
    cdef void _derive(self, Py_ssize_t k) noexcept nogil
    cdef double cells(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil
    cdef double gain(self, Py_ssize_t k, Py_ssize_t j, double mean_precision) noexcept nogil
    cdef double total_gain(self, Py_ssize_t k, Py_ssize_t j, double mean_precision) noexcept nogil
    cdef void _see_missing(self, Py_ssize_t k, Py_ssize_t i, bint is_member) noexcept nogil
