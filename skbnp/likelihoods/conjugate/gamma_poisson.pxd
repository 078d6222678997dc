from numpy.random cimport bitgen_t

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily


cdef class GammaPoisson(ConjugateFamily):
    cdef:
        double[::1] shape, rate             # (n_features,) a, b of the prior
        double[::1] log_factorial           # (n_samples,) sum of log x! over the observed cells
        double grain                        # all entries of log_factorial are multiples of it
        double[::1] column_sum              # (n_features,) of X
        double[::1] digits_per_event        # (n_features,) bound of log10 [r]_x / x in any block
        double[::1] digits_at_least         # (n_features,) bound of -log10 [r]_x
        public double[:, ::1] total         # (n_slots, n_features) S, sums of the observed cells
        public double[:, ::1] cells         # (n_slots, n_features) n, observed cells
        public double[::1] factorials       # (n_slots,) sums of log_factorial
        # What follows is a function of the sums. Slots stand side by side, so that one pass over
        # a row's cells serves all blocks.
        double[:, ::1] posterior_shape      # (n_features, n_slots) a + S
        double[:, ::1] log_none             # (n_features, n_slots) log p(0) = -(a+S) log1p(1/(b+n))
        double[:, ::1] log_event            # (n_features, n_slots) log(b + n + 1)
        double[::1] log_all_none            # (n_slots,) sum of log_none over the columns
        double[::1] product                 # scratch, (n_slots,)
        double[:, ::1] mean, log_mean       # parameters, (n_features, room)
        double[::1] mean_total              # (room,) sum of mean over the columns

    cdef void _settle(self, Py_ssize_t k) noexcept nogil
    cdef void _settle_column(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil
    cdef void _settle_none(self, Py_ssize_t k) noexcept nogil
    cdef void _count(self, Py_ssize_t k, Py_ssize_t i, double change) noexcept nogil
    cdef void _log_predictives(
        self, Py_ssize_t first, Py_ssize_t n, Py_ssize_t i, double* out
    ) noexcept nogil
    cdef void _bound_digits(self, Py_ssize_t j) noexcept nogil
    cdef double _log_factorial(self, Py_ssize_t i) noexcept nogil
    cdef double _draw_log_mean(self, Py_ssize_t k, Py_ssize_t j, bitgen_t* rng) noexcept nogil
