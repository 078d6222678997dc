from numpy.random cimport bitgen_t

from skbnp.likelihoods.conjugate.normal_inverse_gamma cimport NormalInverseGamma
from skbnp.likelihoods.conjugate.normal_inverse_wishart cimport NormalInverseWishart


cdef class LearnedCovariance:
    cdef:
        readonly Py_ssize_t n_rounds        # of the five updates in a sweep
        readonly Py_ssize_t n_accepted      # changes of size in the last sweep
        Py_ssize_t n_units, width           # matrices of a block, and rows of each
        double prior_degrees                # a
        double log_constant                 # what of log p(Lam, delta, kappa0) never changes
        double[::1] degrees_grid            # (n_degrees,) values of delta, ascending
        double[::1] precision_grid          # (n_precisions,) values of kappa0; one: fixed
        double[::1] log_weight              # scratch, (n_precisions,)
        # Scratch, (n_blocks n_units, width) each: see ``look``.
        double[:, ::1] diagonal, coupling
        double[::1] n_cells                 # scratch, (n_blocks n_units,)

    cdef int sweep(self, Py_ssize_t n_blocks, bitgen_t* rng) except -1 nogil
    cdef int draw_covariance(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil
    cdef int look(self, Py_ssize_t n_blocks) except -1 nogil
    cdef int _look(self, Py_ssize_t n_blocks) noexcept nogil
    cdef void draw_degrees(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil
    cdef Py_ssize_t _place_of_degrees(self) noexcept nogil
    cdef Py_ssize_t _propose_place(self, Py_ssize_t here, bitgen_t* rng) noexcept nogil
    cdef double _log_of_degrees(self, Py_ssize_t n_blocks, double degrees) noexcept nogil
    cdef double _log_of_base(
        self, Py_ssize_t n_blocks, double degrees, double log_c
    ) noexcept nogil
    cdef double _log_of_size(self, double log_c) noexcept nogil
    cdef double _log_det_shifted(self, Py_ssize_t u, double shift) noexcept nogil
    cdef int draw_degrees_and_size(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil
    cdef void _look_through(self, Py_ssize_t n_blocks, double factor) noexcept nogil
    cdef int draw_size(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil
    cdef double log_jacobian(self, double log_c) noexcept nogil
    cdef double weight_of_precisions(self) noexcept nogil
    cdef double power_of_mean(self) noexcept nogil
    cdef int draw_mean_precision(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil
    cdef int _weigh_precisions(self, Py_ssize_t n_blocks) noexcept nogil
    cdef int settle(self, Py_ssize_t n_blocks) noexcept nogil
    cdef double log_prior(self) noexcept nogil
    cdef double degrees(self) noexcept nogil
    cdef void _set_degrees(self, double degrees) noexcept nogil
    cdef void _set_mean_precision(self, Py_ssize_t n_blocks, double mean_precision) noexcept nogil
    cdef double _mean_precision(self) noexcept nogil
    cdef bint _is_allowed(self, double factor) noexcept nogil
    cdef int _stretch(self, double factor) noexcept nogil
    cdef double _trace(self) noexcept nogil
    cdef double log_det(self) noexcept nogil


cdef class WishartCovariance(LearnedCovariance):
    cdef:
        NormalInverseWishart family
        double[:, ::1] guess                # (n_features, n_features) R
        double[:, ::1] prior_rate           # (n_features, n_features) a R^-1
        double[:, ::1] total, square        # scratch, (n_features, n_features)
        double[:, ::1] stack                # scratch, (at least n_features, n_features)
        double[::1] vector                  # scratch, (n_features,)
        bint is_derived                     # whether the slots of blocks are up to date

    cdef bint _is_above_floor(self, const double* covariance, double factor) noexcept nogil


cdef class GammaCovariance(LearnedCovariance):
    cdef:
        NormalInverseGamma family
        double[::1] guess                   # (n_units,) R
        double[::1] prior_rate              # (n_units,) a / R
        double[::1] total                   # scratch, (n_units,)
