from numpy.random cimport bitgen_t


cdef enum:
    # Roles of nodes, in the order of ``_graph.ROLES``.
    GAUSSIAN = 0
    INPUT_NODE = 1
    LATENT = 2


cdef enum:
    # Named wrong formulas, as in ``_sampler.FAULTS``.
    PRINTED_CONSTANT = 1
    PRINTED_RATIO = 2
    WRONG_UP = 3
    SINGLETONS_STAY = 4
    OBSERVED_STAY = 5
    WRONG_GAP = 6
    OWN_EDGE = 7
    NO_DESCENT = 8
    NO_JACOBIAN = 9
    NO_GRID = 10
    NO_LOG_SCALE = 11
    PLAIN_MASS = 12
    NO_STRETCH = 13
    KEPT_RIVALS = 14
    ONE_VARIANCE = 15


cdef class Graph:
    cdef:
        object _bit_generator               # owner of *_rng, must outlive it
        bitgen_t* _rng
        readonly object prior
        readonly Py_ssize_t n_observed, n_hidden, n_nodes, n_edges
        Py_ssize_t max_hidden
        int fault                           # of FAULTS in ``_sampler``
        # Nodes live in slots, the observed ones in the first.
        public double[::1] order            # (n_slots,)
        public unsigned char[:, ::1] edge   # (n_slots, n_slots) child x parent
        public Py_ssize_t[::1] n_children, n_parents    # (n_slots,)
        public unsigned char[::1] role      # (n_observed,)
        public unsigned char[::1] is_fixed  # (n_observed,) whether the order is given
        public Py_ssize_t[::1] ascending    # (n_slots,) slots of the n_nodes in ascending order
        public Py_ssize_t[::1] free_slot    # (n_slots,) a stack of those that are free
        Py_ssize_t n_free
        public Py_ssize_t[::1] visit        # (n_slots,) scratch: nodes in the order of visits
        public Py_ssize_t[::1] n_below      # (n_slots,) scratch: nodes of strictly lower order
        public double[::1] log_segment      # (n_slots + 1,) scratch of order draws
        # Hyperparameters, and tables of what depends on them for whole numbers n.
        double mass, concentration, popularity
        double[3] given                     # NaN where sampled
        double[2] mass_law, inverse_law, popularity_law
        # lgamma(n), lgamma(alpha + n), digamma(alpha + n) - digamma(alpha)
        public double[::1] log_count, log_rest, psi
        # lgamma(phi + n), lgamma(alpha + phi + n)
        public double[::1] log_taken, log_both
        double log_observed                 # lgamma(alpha + phi) - lgamma(phi) - lgamma(alpha)
        public long n_orders, n_orders_tried, n_guard_rejections

    cdef int _reserve_nodes(self, Py_ssize_t n_new) except -1 nogil
    cdef void _fill_tables(self) noexcept nogil
    cdef Py_ssize_t _insert(self, double order) noexcept nogil
    cdef void _remove(self, Py_ssize_t slot) noexcept nogil
    cdef void _place(self, Py_ssize_t slot, Py_ssize_t n) noexcept nogil
    cdef Py_ssize_t _rank(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t _count_below(self, double order) noexcept nogil
    cdef void _count_all_below(self) noexcept nogil
    cdef void _link(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil
    cdef void _unlink(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil
    cdef void _list_hidden(self) noexcept nogil
    cdef void _shuffle_visits(self, Py_ssize_t n) noexcept nogil
    cdef bint is_hidden(self, Py_ssize_t slot) noexcept nogil
    cdef bint has_law(self, Py_ssize_t slot) noexcept nogil
    cdef bint is_free_order(self, Py_ssize_t slot) noexcept nogil
    cdef double _log_graph(self) noexcept nogil
    cdef double _log_node(self, Py_ssize_t slot, Py_ssize_t n_below) noexcept nogil
    cdef double _log_taken_odds(self, Py_ssize_t parent, Py_ssize_t n_others) noexcept nogil
    cdef double _exposure(self, double alpha) noexcept nogil
    cdef int _draw_order(self, Py_ssize_t slot) noexcept nogil
    cdef void _propose_order(self, Py_ssize_t slot) noexcept nogil
    cdef double _lowest_order(self, Py_ssize_t slot) noexcept nogil
    cdef double _highest_order(self, Py_ssize_t slot) noexcept nogil
    cdef int _update_orders(self, bint exact) except -1 nogil
    cdef int _update_hyper(self) except -1 nogil
    cdef double _log_scale(self, double x, bint of_concentration) noexcept nogil
    cdef double _slice(self, double x, bint of_concentration) noexcept nogil
    cdef double _log_concentration(self, double log_alpha) noexcept nogil
    cdef double _log_popularity(self, double log_phi) noexcept nogil
