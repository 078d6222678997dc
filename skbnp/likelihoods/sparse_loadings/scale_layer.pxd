from numpy.random cimport bitgen_t


cdef enum:
    # Named wrong formulas, as in ``deep_scale_model._sampler.FAULTS``.
    OWN_LINK = 1
    BLIND_SCORES = 2
    NO_COUNT = 3
    NO_PAIRS = 4
    NO_JACOBIAN = 5
    PRINTED_POSITION = 6
    SAME_RATE = 7
    REPEATED = 8
    STALE_ROWS = 9
    ONE_PASS = 10


cdef enum:
    # Kinds of moves, as in ``deep_scale_model._sampler.MOVES``.
    LINKS = 1
    BIRTHS = 2
    SPLIT_MERGES = 3
    SCORES = 4
    SCALES = 5


cdef enum:
    # Laws of the links, as in ``deep_scale_model._model.BIRTH_MOVES``.
    SINGLETON = 0
    FINITE = 1
    PAN_HAN = 2


cdef double harmonic(Py_ssize_t n) noexcept nogil
cdef double log_density(
    Py_ssize_t n, const double* x, const double* base, const double* y, double w, double drift,
    double floor,
) noexcept nogil


cdef class ScaleLayer:
    cdef:
        readonly Py_ssize_t n_samples, n_below, n_factors
        readonly ScaleLayer above           # None at the last layer there may be
        bint is_live                        # whether the layer above takes part
        Py_ssize_t room_below, room
        public double mass
        double slab_shape, slab_scale, drift
        int birth_move, fault
        bint owns_below                     # not where it is the scores of the layer below
        readonly Py_ssize_t n_births, n_split_merges, n_nodes
        double[:, ::1] below                # (room_below, n_samples), NaN where missing
        double[:, ::1] A                    # (room_below, n_samples) W Y
        double[::1] floor, location         # (room_below,)
        double[:, ::1] W                    # (room_below, room)
        double[:, ::1] Y                    # (room, n_samples)
        Py_ssize_t[::1] n_links             # (room,)
        public Py_ssize_t n_links_changed, n_links_tried, n_born, n_births_tried
        public Py_ssize_t n_died, n_deaths_tried, n_split, n_splits_tried, n_merged, n_merges_tried
        public Py_ssize_t n_rescaled, n_rescales_tried
        # Scratch.
        double[:, ::1] base                 # (room_below, n_samples) A without some columns
        double[::1] cell_x, cell_base, cell_y   # (n_samples,) observed cells of one row
        double[::1] new_scores, other_scores    # (n_samples,)
        double[::1] node, height, quadratic, product    # (n_nodes,)
        double[::1] row_weight              # (room_below,) loadings of gathered rows
        Py_ssize_t[::1] row, part           # (room_below,)
        Py_ssize_t[::1] row_order, column_order     # (room_below,), (room,)
        Py_ssize_t[::1] link_start, link_row        # (room + 1,), (room_below * room,)
        double[::1] link_weight             # (room_below * room,)
        double[::1] row_x, row_a, row_step  # (room_below,) one sample
        double[::1] row_score, row_draw     # (room,)

    # Rows of ``below``.
    cdef int draw_row(self, bitgen_t* rng) except -1 nogil
    cdef void drop_last_row(self) noexcept nogil
    cdef void remove_row(self, Py_ssize_t n) noexcept nogil
    # The transition.
    cdef int update(self, bitgen_t* rng) except -1 nogil
    cdef void update_links(self, bitgen_t* rng) noexcept nogil
    cdef int update_births(self, bitgen_t* rng) except -1 nogil
    cdef int update_split_merges(self, bitgen_t* rng) except -1 nogil
    cdef void update_scores(self, bitgen_t* rng) noexcept nogil
    cdef void update_scales(self, bitgen_t* rng) noexcept nogil
    cdef void refresh(self) noexcept nogil
    # Densities.
    cdef double log_prior(self) noexcept nogil
    cdef double log_data(self) noexcept nogil
    cdef double row_log_data(self, Py_ssize_t n, double floor) noexcept nogil
    # Parts.
    cdef int reserve(self, Py_ssize_t n_below, Py_ssize_t n_factors) except -1 nogil
    cdef int _reserve_with_gil(self, Py_ssize_t n_below, Py_ssize_t n_factors) except -1
    cdef int update_layer(self, bitgen_t* rng, Py_ssize_t number) except -1 nogil
    cdef int update_part(self, bitgen_t* rng, int part) except -1 nogil
    cdef int own_moves(self, bitgen_t* rng) except -1 nogil
    cdef double score_variance(self, Py_ssize_t k, Py_ssize_t t) noexcept nogil
    cdef double column_energy(self, Py_ssize_t k) noexcept nogil
    cdef double log_column(self, double n_links, double energy) noexcept nogil
    cdef double log_rate(self, double n_links) noexcept nogil
    cdef Py_ssize_t gather(self, Py_ssize_t n, Py_ssize_t k) noexcept nogil
    cdef void _update_link(self, bitgen_t* rng, Py_ssize_t n, Py_ssize_t k) noexcept nogil
    cdef double grid_evidence(
        self, bitgen_t* rng, Py_ssize_t start, Py_ssize_t end, Py_ssize_t k, double* y, bint draw
    ) noexcept nogil
    cdef int _birth(self, bitgen_t* rng, Py_ssize_t n) except -1 nogil
    cdef int _death(self, bitgen_t* rng, Py_ssize_t n) except -1 nogil
    cdef double _birth_scale(self, Py_ssize_t n) noexcept nogil
    cdef double _log_birth(
        self, Py_ssize_t n, Py_ssize_t n_singletons, double w, double evidence
    ) noexcept nogil
    cdef Py_ssize_t _count_singletons(self, Py_ssize_t n) noexcept nogil
    cdef int _merge(self, bitgen_t* rng) except -1 nogil
    cdef int _split(self, bitgen_t* rng) except -1 nogil
    cdef bint _disjoint(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil
    cdef Py_ssize_t _count_pairs(self) noexcept nogil
    cdef Py_ssize_t _count_splittable(self) noexcept nogil
    cdef double _log_merge(
        self, Py_ssize_t m1, Py_ssize_t m2, double s1, double s2
    ) noexcept nogil
    cdef Py_ssize_t _gather_rows(self, Py_ssize_t k, Py_ssize_t start, int part) noexcept nogil
    cdef void _draw_parts(self, bitgen_t* rng, Py_ssize_t k) noexcept nogil
    cdef Py_ssize_t _count_empty(self) noexcept nogil
    cdef double _log_add(self, Py_ssize_t n_columns, Py_ssize_t n_empty) noexcept nogil
    cdef double log_finite_column(self, Py_ssize_t n_links, double a) noexcept nogil
    cdef double log_cells(self, Py_ssize_t n_cells, Py_ssize_t n, double w) noexcept nogil
    cdef double _log_sample(self, Py_ssize_t n_rows, double c, double s) noexcept nogil
    cdef double _log_score(self, Py_ssize_t k, double change) noexcept nogil
    cdef void _move_score(self, Py_ssize_t k, double change) noexcept nogil
    cdef int _add_or_delete(self, bitgen_t* rng) except -1 nogil
    cdef int _printed_moves(self, bitgen_t* rng) except -1 nogil
    cdef int _add_empty(self, bitgen_t* rng) except -1 nogil
    cdef void remove_factor(self, Py_ssize_t k) noexcept nogil
    cdef void _update_sample(self, bitgen_t* rng, Py_ssize_t t) noexcept nogil
    cdef void _refresh_row(self, Py_ssize_t n) noexcept nogil
