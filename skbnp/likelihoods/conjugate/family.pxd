from numpy.random cimport bitgen_t


cdef class ConjugateFamily:
    cdef:
        readonly Py_ssize_t n_samples, n_features, n_slots
        readonly bint scaled                # whether the prior has a scale; if not it stays 1
        readonly double scale               # s: the prior covariance is s times its base
        double[:, ::1] X                    # (n_samples, n_features), own copy
        public Py_ssize_t[::1] n_members    # (n_slots,) rows in each block
        Py_ssize_t[::1] missing_start       # (n_samples + 1,) offsets into missing_feature
        Py_ssize_t[::1] missing_feature     # (n_missing,) features missing in each row, row by row
        Py_ssize_t[::1] value_start         # (n_samples + 1,) offsets into missing_mean
        double[::1] missing_mean            # (n_values,) conditional means when last drawn
        double[::1] missing_variance        # (n_values,) and variances
        double[::1] imputed_mean            # (n_values,) mean over sweeps
        double[::1] imputed_square          # (n_values,) number of sweeps times variance

    cdef int reserve(self, Py_ssize_t n_slots) except -1 nogil
    cdef void fetch(self, Py_ssize_t i) noexcept nogil
    cdef bint incomplete(self, Py_ssize_t i) noexcept nogil
    cdef bint augmented(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t observed_first(self, Py_ssize_t i, Py_ssize_t* order) noexcept nogil
    cdef Py_ssize_t alike(self, const Py_ssize_t* row, Py_ssize_t n_rows) noexcept nogil
    cdef void remember_imputation(self, Py_ssize_t i, double n_before) noexcept nogil

    cdef void clear(self, Py_ssize_t k) noexcept nogil
    cdef void copy(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil
    cdef void add(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil
    cdef int remove(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil
    cdef int merge(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t target) noexcept nogil

    cdef double log_predictive(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil
    cdef void log_predictive_all(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil
    cdef double log_predictive_own(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil
    cdef void log_predictive_observed(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil
    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil

    cdef int scale_log_weights(
        self, Py_ssize_t n_blocks, const double* grid, Py_ssize_t n_grid, double* out
    ) noexcept nogil
    cdef int set_scale(self, Py_ssize_t n_slots, double scale) noexcept nogil

    cdef void draw_missing(self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng) noexcept nogil
    cdef void missing_of_member(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil
    cdef int redraw_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n, bitgen_t* rng
    ) noexcept nogil

    cdef int reserve_parameters(self, Py_ssize_t n_blocks) except -1 nogil
    cdef void draw_parameters(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil
    cdef Py_ssize_t work_size(self, Py_ssize_t n_rows, Py_ssize_t n_blocks) noexcept nogil
    cdef void log_likelihoods(
        self, const Py_ssize_t* row, Py_ssize_t n_rows, Py_ssize_t n_blocks, double* out,
        double* work,
    ) noexcept nogil
    cdef void draw_missing_given_parameters(
        self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng, double* work
    ) noexcept nogil
    cdef Py_ssize_t sums_size(self) noexcept nogil
    cdef void sum_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n_rows, double* sums, double* work
    ) noexcept nogil
    cdef int set_from_sums(
        self, Py_ssize_t k, Py_ssize_t n_rows, const double* sums
    ) noexcept nogil
