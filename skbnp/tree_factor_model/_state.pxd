from numpy.random cimport bitgen_t

from skbnp.mcmc.chain cimport State as ChainState
from skbnp.tree_factor_model._hyperparameters cimport Hyperparameters
from skbnp.tree_factor_model._rows cimport Rows


cdef class State(ChainState):
    cdef:
        readonly object prior
        readonly Hyperparameters hyper
        readonly Rows rows
        readonly Py_ssize_t n_samples, n_features, max_depth, depth, n_nodes, n_leaves
        Py_ssize_t n_node_slots, n_leaf_slots   # in use, fresh ones included
        Py_ssize_t version                      # of rows, paths and scores: grows as they change

        # The tree and its parameters, (n_node_slots, ...) and (n_leaf_slots, ...).
        readonly Py_ssize_t[::1] parent, level
        readonly double[:, ::1] loadings, local_precision   # (n_node_slots, n_features)
        readonly double[::1] multiplier
        readonly Py_ssize_t[::1] leaf_node
        readonly double[:, ::1] leaf_mean                   # (n_leaf_slots, n_features)
        readonly double[:, ::1] score_precision             # (n_leaf_slots, max_depth)
        readonly double[::1] noise_scale, tail_df

        # The rest of the state.
        readonly double[::1] mean_precision, noise_precision    # (n_features,)
        readonly double noise_rate
        readonly double[::1] concentration                  # (max_depth + 1,)
        readonly Py_ssize_t[::1] branch                     # (n_samples,)
        readonly double[:, ::1] scores                      # (n_samples, max_depth)
        readonly double[::1] row_precision                  # (n_samples,)

        # What follows from these.
        Py_ssize_t[:, ::1] node_path            # (n_node_slots, max_depth)
        double[::1] log_tau                     # (n_node_slots,)
        Py_ssize_t[::1] node_count, leaf_count
        Py_ssize_t[::1] order, leaf_start       # (n_samples,), (n_leaf_slots + 1,)
        # Rows of ``order`` that are worked on together, all of one leaf.
        readonly Py_ssize_t n_pieces
        Py_ssize_t[::1] piece_start             # (n_pieces + 1,) into order
        Py_ssize_t[::1] piece_leaf              # (n_pieces,)
        Py_ssize_t[::1] new_node, new_leaf      # scratch: (n_node_slots + 1,), (n_leaf_slots,)

    # The tree, step by step.
    cdef Py_ssize_t add_node(self, Py_ssize_t above) except -1 nogil
    cdef Py_ssize_t add_leaf(self, Py_ssize_t above) except -1 nogil
    cdef void count_row(self, Py_ssize_t b, Py_ssize_t change) noexcept nogil
    cdef int compress(self) except -1 nogil
    cdef int add_level(self, bitgen_t* rng) except -1 nogil
    cdef int cut_last_level(self) except -1 nogil
    # Parameters from the prior.
    cdef void draw_node(self, bitgen_t* rng, Py_ssize_t n) noexcept nogil
    cdef void draw_leaf(self, bitgen_t* rng, Py_ssize_t b) noexcept nogil
    cdef double draw_score_precision(self, bitgen_t* rng, Py_ssize_t b) noexcept nogil

    cdef double tau(self, Py_ssize_t n) noexcept nogil
    cdef double log_prior(self) noexcept nogil
    cdef double log_paths(self) noexcept nogil
    cdef double log_data_given_scores(self) noexcept nogil
    cdef void link(self, Py_ssize_t n) noexcept nogil
    cdef void sort_rows(self) noexcept nogil
    cdef int reserve(self, Py_ssize_t n_nodes, Py_ssize_t n_leaves) except -1 nogil
