from numpy.random cimport bitgen_t


cdef enum:
    # Rows of ``hyper``, in the order of ``_model.HYPER``.
    MASS = 0
    CONCENTRATION = 1
    WEIGHT_MEAN = 2
    WEIGHT_PRECISION = 3
    BIAS_MEAN = 4
    BIAS_PRECISION = 5
    NOISE_RATE = 6


cdef enum:
    # Moves that may fail, in the order of ``_sampler.MOVES``.
    NO_MOVE = 0
    BROKEN_ACTIVATIONS = 1
    BROKEN_ROWS = 2
    BROKEN_CLUSTERS = 3


cdef enum:
    # Named wrong formulas, as in ``_sampler.FAULTS``.
    PRINTED_RATIO = 1
    INVERTED_RATE = 2
    SQUARED_COUNT = 3
    NO_SURVIVOR_RULE = 4
    OWN_COUNT = 5
    NO_TRUNCATION = 6
    STALE_LAWS = 7
    NO_URN = 8
    NO_PIVOT = 9


cdef double log_normal(double x, double mean, double precision) noexcept nogil


cdef class Network:
    cdef:
        object _bit_generator               # owner of *_rng, must outlive it
        bitgen_t* _rng
        readonly object prior
        readonly Py_ssize_t n_samples, n_visible, n_hidden, n_layers
        Py_ssize_t stride                   # of activations: n_samples, at least 1
        Py_ssize_t deepest, max_units
        bint skips, has_clusters
        int fault                           # of FAULTS in ``_sampler``
        int _broken                         # the first move without a finite result
        # The data: missing cells of a visible unit d are cell_row[cell_start[d]:cell_start[d + 1]].
        double[:, ::1] visible              # (n_visible, stride)
        Py_ssize_t[::1] cell_start, cell_row
        # Hidden units live in slots; what belongs to unit number v is at v for a visible one, at
        # n_visible + slot for a hidden one.
        public double[:, ::1] pre, post     # (n_slots, stride) a and u = tanh(a / 2)
        public double[::1] bias, precision  # (n_visible + n_slots,)
        public double[:, ::1] weight        # (n_visible + n_slots, n_slots) child x parent
        public unsigned char[:, ::1] edge   # the same
        public Py_ssize_t[::1] slot_layer   # (n_slots,) 0: free
        public Py_ssize_t[::1] n_children, n_near  # (n_slots,) all, and those one layer below
        public Py_ssize_t[::1] member, layer_start  # slots layer by layer; (n_layer_slots + 2,)
        public Py_ssize_t[::1] free_slot    # a stack of those that are free
        Py_ssize_t n_free
        public double[:, ::1] hyper         # (7, n_layer_slots) MASS to NOISE_RATE of each layer
        # The prior.
        double[:, :, ::1] bounds  # (2, 2, 2) mass or concentration, layer 0 or above, ends
        double[:, ::1] given                # (2, n_given) values where they are given
        bint is_given[2]
        double[::1] weight_law, bias_law, noise_law, cluster_law
        double highest_precision, row_concentration
        # Row clusters: their law of the activations of each slot of layer ``deepest``.
        Py_ssize_t[::1] label               # (n_samples,)
        Py_ssize_t[::1] cluster_count       # (n_samples + 1,)
        Py_ssize_t n_clusters
        public double[:, ::1] cluster_mean, cluster_precision  # (n_slots, n_cluster_slots)
        public double[::1] cluster_rate     # (n_slots,)
        double[::1] row_scratch             # (stride,)

    cdef Py_ssize_t width(self, Py_ssize_t layer) noexcept nogil
    cdef Py_ssize_t unit(self, Py_ssize_t layer, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t offered(self, Py_ssize_t layer) noexcept nogil
    cdef double* activity(self, Py_ssize_t unit) noexcept nogil
    cdef bint follows_clusters(self, Py_ssize_t layer) noexcept nogil
    cdef int _reserve_units(self, Py_ssize_t n_new) except -1 nogil
    cdef int _reserve_layers(self, Py_ssize_t n_layers) except -1 nogil
    cdef int _reserve_clusters(self, Py_ssize_t n_clusters) except -1 nogil
    cdef Py_ssize_t _insert(self, Py_ssize_t layer) noexcept nogil
    cdef void _remove(self, Py_ssize_t slot) noexcept nogil
    cdef void _link(self, Py_ssize_t child, Py_ssize_t slot) noexcept nogil
    cdef void _unlink(self, Py_ssize_t child, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t _layer_of(self, Py_ssize_t unit) noexcept nogil
    cdef void _squash(self, Py_ssize_t slot) noexcept nogil
    cdef void _add_inputs(self, Py_ssize_t unit, double* mean) noexcept nogil
    cdef double _low(self, int which, Py_ssize_t layer) noexcept nogil
    cdef double _high(self, int which, Py_ssize_t layer) noexcept nogil
    cdef void _draw_hyper(self, Py_ssize_t layer) noexcept nogil
    cdef void _draw_normal_gamma(
        self, int which, Py_ssize_t layer, const double* law, double n, double total,
        double squares,
    ) noexcept nogil
    cdef double _log_normal_gamma(
        self, int which, Py_ssize_t layer, const double* law
    ) noexcept nogil
    cdef double _log_structure(self) noexcept nogil
    cdef double _log_prior(self) noexcept nogil
    cdef double _log_data(self) noexcept nogil
