from skbnp.icp_network._graph cimport Graph


cdef enum:
    # Moves that may fail, as in ``Sampler.broken_move``; others refuse what is not finite.
    NO_MOVE = 0
    BROKEN_EDGES = 1
    BROKEN_ACTIVATIONS = 2
    BROKEN_ORDERS = 3


cdef class Network(Graph):
    cdef:
        readonly Py_ssize_t n_samples
        Py_ssize_t stride                   # of rows: n_samples, at least 1
        int _broken                         # the first move without a finite result
        # The data: missing cells of node d are cell_row[cell_start[d]:cell_start[d + 1]].
        Py_ssize_t[::1] cell_start, cell_row
        Py_ssize_t[::1] label               # (n_samples,) of latents, empty without
        Py_ssize_t n_latents, first_latent
        public double[:, ::1] pre, post     # (n_slots, stride) a and what children see of it
        public double[::1] bias, precision  # (n_slots,)
        public double[:, ::1] weight        # (n_slots, n_slots) child x parent
        double weight_precision, input_weight_precision, bias_precision
        double[2] noise_law
        public double[:, ::1] residual      # (n_slots, stride) scratch: a less its mean

    cdef void _squash(self, Py_ssize_t slot) noexcept nogil
    cdef bint has_free_precision(self, Py_ssize_t slot) noexcept nogil
    cdef void _fill_residual(self, Py_ssize_t slot, double* out) noexcept nogil
    cdef double _weight_precision_from(self, Py_ssize_t parent) noexcept nogil
    cdef double _log_precision(self, double precision) noexcept nogil
    cdef double _log_prior(self) noexcept nogil
    cdef double _log_data(self) noexcept nogil
