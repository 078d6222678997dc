from libc.stdint cimport uint64_t
from numpy.random cimport bitgen_t

from skbnp.tree_factor_model._rows cimport Law
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._system cimport System

# In the order of a sweep; NO_MOVE while all is well.
cdef enum Move:
    NO_MOVE
    PATHS
    TAILS
    LEAF_MEANS
    SCORES
    LOADINGS
    PRECISIONS
    CONCENTRATION

# What is done item by item, by several threads: items are blocks or pieces of rows, leaves,
# features.
cdef enum Work:
    COVARIANCES         # leaves
    SLICES              # blocks
    OFFERS              # blocks
    DISTANCES           # pieces
    TAIL_LIKELIHOODS    # pieces
    ROW_PRECISIONS      # pieces
    MEANS               # leaves
    SCORES_OF           # pieces
    PRODUCTS            # pieces
    FEATURES            # features
    SQUARES             # pieces
    DENSITIES           # pieces

# What ``_sampler.FAULTS`` names.
cdef enum Fault:
    NONE
    CHILDREN_ONLY
    DESCENDANTS_ONLY
    CHILDREN_SHAPE
    NO_DETERMINANT
    KEEPS_OWN_COUNT
    NO_NEW_PATHS
    FLAT_SCORES
    UNWEIGHTED_ROWS
    MEAN_GIVEN_SCORES
    FILLS_IN
    BLIND_BIRTH
    SHORT_TAIL

cdef enum:
    REGULAR = -2            # owner of a leaf that holds rows, in the collapsed pass

cdef class Scratch:
    cdef:
        Law law
        System system

cdef class Paths(State):
    cdef:
        readonly str path_update
        bint _by_slices, _integrated
        int _fault
        Move _broken
        Py_ssize_t _n_moved, _n_proposed        # rows whose leaf changed, rows drawn
        object _for_rows
        list _scratch                           # not in use
        Work _work
        uint64_t _key                           # of the random numbers of the work

        double[::1] node_log_mass, node_gamma, node_rest, node_total    # (n_node_slots + 1,), n + 1
        double[::1] leaf_log_mass               # (n_leaf_slots,)
        double[::1] log_slice, best             # (n_samples,)
        double[::1] block_least                 # (n_blocks,)
        double least_log_slice
        Py_ssize_t n_sticks                     # broken in this move
        Py_ssize_t[::1] choice                  # (n_samples,)
        unsigned char[::1] needed               # (n_node_slots,)
        Py_ssize_t[::1] n_children              # (n_node_slots + 1,)
        double[:, ::1] log_density              # (n_leaf_slots, n_samples), collapsed pass alone
        double[::1] log_weight                  # (n_leaf_slots,)
        double[:, ::1] tail_score               # (n_leaf_slots, max_depth), of auxiliaries
        double[::1] tail_weight                 # (n_leaf_slots,) u of auxiliaries
        double[::1] tail_precision, zeros       # (n_features,)
        double[::1] tail_psi                    # (max_depth,)
        Py_ssize_t[::1] owner, auxiliary        # (n_leaf_slots,), (n_node_slots + 1,)
        Law _law
        bint _has_few                           # rows with fewer entries than levels
        double[:, :, ::1] covariance            # (n_leaves, n_features, n_features) Omega, for them

    cdef int _run(self, Work work, Py_ssize_t n_items) except -1
    cdef int _work_on_item(self, Scratch scratch, Py_ssize_t k) except -1 nogil
    cdef Py_ssize_t _n_blocks(self) noexcept nogil
    cdef int _break(self, Move move) noexcept nogil
    cdef int _update_paths(self) except -1
    cdef int _slice_paths(self) except -1
    cdef void _draw_slices(self, Py_ssize_t k) noexcept nogil
    cdef void _weigh_children(self) noexcept nogil
    cdef int _grow_fresh_paths(self) except -1 nogil
    cdef int _break_sticks(
        self, Py_ssize_t node, Py_ssize_t level, double log_mass
    ) except -1 nogil
    cdef int _grow(self, Py_ssize_t node, Py_ssize_t level, double log_mass) except -1 nogil
    cdef int _offer_leaves(self, Law law, Py_ssize_t k) noexcept nogil
    cdef bint _is_offered(self, Py_ssize_t b, Py_ssize_t i) noexcept nogil
    cdef void _offer(self, Law law, Py_ssize_t b, Py_ssize_t n) noexcept nogil
    cdef int _collapsed_paths(self) except -1 nogil
    cdef int _redraw_path(self, Py_ssize_t i) except -1 nogil
    cdef bint _is_hidden(self, Py_ssize_t node, Py_ssize_t departs) noexcept nogil
    cdef double _log_path_weight(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil
    cdef void _count_row(self, Py_ssize_t b, Py_ssize_t change) noexcept nogil
    cdef void _make_auxiliary(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil
    cdef int _replace_auxiliary(self, Py_ssize_t b) except -1 nogil
    cdef int _new_auxiliary(self, Py_ssize_t node) except -1 nogil
    cdef int _need_columns(self) except -1 nogil
    cdef int _fill_column(self, Py_ssize_t b) noexcept nogil
    cdef void _sum_tail(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil
    cdef int _prepare_tail(
        self, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil
    cdef double _log_density_of_tail(
        self, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t i
    ) noexcept nogil
    cdef int _draw_tail(self, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t i) noexcept nogil
    cdef int _prepare(
        self, Law law, Py_ssize_t b, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil
    cdef int _prepare_density(
        self, Law law, Py_ssize_t b, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil
    cdef int _compute_covariances(self) except -1
    cdef void _compute_covariance(self, Py_ssize_t b) noexcept nogil
    cdef double _log_density_of(self, Law law, double square) noexcept nogil
    cdef double _row_precision_given(
        self, bitgen_t* rng, Py_ssize_t b, Py_ssize_t i, double square
    ) noexcept nogil
