from numpy.random cimport bitgen_t

from skbnp.tree_factor_model._rows cimport Law, Rows

cdef class State:
    cdef:
        object _bit_generator                   # owner of *_rng, must outlive it
        bitgen_t* _rng
        readonly object prior
        readonly Py_ssize_t n_samples, n_features, max_depth, depth, n_nodes, n_leaves
        Py_ssize_t _n_node_slots, _n_leaf_slots     # in use, fresh ones included
        bint _sample_concentration, _has_noise_scale, _has_score_precision, _whole, _isotropic
        bint _sample_noise_rate, _has_tail, _one_tail
        double _root_shape, _shape, _df, _noise_shape, _noise_rate
        double _noise_rate_shape, _noise_rate_rate
        double _mean_shape, _mean_rate, _score_shape, _scale_shape
        double _concentration_shape
        double[::1] df_grid, df_log_mass        # of the prior of the tails

        Rows rows

        # Tree, (n_node_slots, ...) and (n_leaf_slots, ...).
        Py_ssize_t[::1] parent, level, node_count
        Py_ssize_t[:, ::1] node_path            # (n_node_slots, max_depth)
        double[:, ::1] loading, local           # (n_node_slots, n_features)
        double[::1] multiplier, log_tau
        Py_ssize_t[::1] leaf_node, leaf_count
        double[:, ::1] leaf_mean                # (n_leaf_slots, n_features)
        double[:, ::1] psi                      # (n_leaf_slots, max_depth)
        double[::1] kappa, tail_df
        Py_ssize_t[::1] new_node, new_leaf      # scratch: (n_node_slots + 1,), (n_leaf_slots,)

        # The rest of the state.
        double[::1] xi, noise                   # (n_features,)
        double[::1] alpha                       # (max_depth + 1,)
        Py_ssize_t[::1] branch_level            # (n_branch_levels,)
        double[::1] concentration_rate          # (n_branch_levels,)
        double noise_rate
        Py_ssize_t[::1] branch                  # (n_samples,)
        double[:, ::1] score                    # (n_samples, max_depth)
        double[::1] row_precision               # (n_samples,)
        Py_ssize_t[::1] order, leaf_start
        # Rows of ``order`` that are worked on together, all of one leaf.
        readonly Py_ssize_t n_pieces
        Py_ssize_t[::1] piece_start             # (n_pieces + 1,) into order
        Py_ssize_t[::1] piece_leaf              # (n_pieces,)

    cdef Py_ssize_t _new_node(self, Py_ssize_t above) except -1 nogil
    cdef Py_ssize_t _new_leaf(self, Py_ssize_t above) except -1 nogil
    cdef void _link(self, Py_ssize_t n) noexcept nogil
    cdef void _draw_node(self, Py_ssize_t n) noexcept nogil
    cdef void _draw_leaf(self, Py_ssize_t b) noexcept nogil
    cdef double _prior_score_precision(self, Py_ssize_t b) noexcept nogil
    cdef double _prior_tail(self) noexcept nogil
    cdef double _tau(self, Py_ssize_t n) noexcept nogil
    cdef int _compress(self) except -1 nogil
    cdef void _sort_rows(self) noexcept nogil
    cdef int _reserve(self, Py_ssize_t n_nodes, Py_ssize_t n_leaves) except -1 nogil
    cdef double _log_prior(self) noexcept nogil
    cdef double _log_paths(self) noexcept nogil
