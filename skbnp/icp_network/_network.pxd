from numpy.random cimport bitgen_t

from skbnp.icp_network._graph cimport Graph
from skbnp.likelihoods.nonlinear_gaussian._feedforward cimport Feedforward
from skbnp.mcmc.chain cimport State


cdef enum Role:
    # Of observed nodes, in the order of ``_network.ROLES``.
    GAUSSIAN = 0
    INPUT_NODE = 1
    LATENT = 2


cdef class Network(State):
    cdef:
        readonly Graph graph
        readonly object prior
        readonly Py_ssize_t n_samples, n_observed
        readonly Py_ssize_t stride          # of rows: n_samples, at least 1
        public Py_ssize_t n_settle          # sweeps of warm-up that are left without births
        double _log_jacobian
        unsigned char[::1] role             # (n_observed,)
        # The data: missing cells of node d are cell_row[cell_start[d]:cell_start[d + 1]].
        readonly Py_ssize_t[::1] cell_start, cell_row
        readonly Py_ssize_t[::1] label      # (n_samples,) of latents, empty without
        readonly Py_ssize_t n_latents, first_latent
        readonly double[:, ::1] pre, post   # (n_slots, stride) a and what children see of it
        readonly double[::1] bias, precision    # (n_slots,)
        readonly double[:, ::1] weight      # (n_slots, n_slots) child x parent
        double weight_precision, input_weight_precision, bias_precision
        double[2] noise_law
        double[3] given                     # hyperparameters, NaN where sampled
        double[3][2] process_law            # the numbers of their laws, where sampled
        double[::1] residual                # (stride,) scratch

    cdef int reserve(self, Py_ssize_t n_new) except -1 nogil
    cdef void forget(self, Py_ssize_t slot) noexcept nogil
    cdef void squash(self, Py_ssize_t slot) noexcept nogil
    cdef void keep_rows(self, Py_ssize_t slot, double* out) noexcept nogil
    cdef void restore_rows(self, Py_ssize_t slot, const double* kept) noexcept nogil
    cdef bint has_law(self, Py_ssize_t slot) noexcept nogil
    cdef bint has_free_precision(self, Py_ssize_t slot) noexcept nogil
    cdef void fill_residual(self, Py_ssize_t slot, double* out) noexcept nogil
    cdef int write_into(self, Feedforward forward) except -1 nogil
    cdef double weight_precision_from(self, Py_ssize_t parent) noexcept nogil
    cdef double draw_weight_from(self, Py_ssize_t parent, bitgen_t* rng) noexcept nogil
    cdef double draw_bias(self, bitgen_t* rng) noexcept nogil
    cdef double draw_precision(self, bitgen_t* rng) noexcept nogil
    cdef double log_precision(self, double precision) noexcept nogil
    cdef double log_of_log_precision(self, double r) noexcept nogil
    cdef double slope_of_log_precision(self, double r) noexcept nogil
    cdef double draw_precision_given(self, double squares, bitgen_t* rng) noexcept nogil
    cdef double log_mass(self, double mass) noexcept nogil
    cdef double log_inverse(self, double concentration) noexcept nogil
    cdef double log_popularity(self, double popularity) noexcept nogil
    cdef double log_prior(self) noexcept nogil
    cdef double log_data(self) noexcept nogil
    cdef void simulate_rows(self, bitgen_t* rng) noexcept nogil
