"""What a chain of the tree factor model holds: tree, parameters, scores, and their prior density.

The moves are in ``_sampler``.
"""

from libc.math cimport INFINITY, exp, fmax, fmin, log, sqrt

import numpy as np

from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log_gamma_density
from skbnp.processes cimport multiplicative_gamma as shrinkage

from skbnp.numerics.buffers import longer
from skbnp.tree_factor_model._model import BRANCH_SCALES, DF_GRID, NOISES, TAILS, checked_state


cdef enum:
    PIECE = 1024            # rows of a leaf worked on together; fixed, as results depend on it


cdef class State:
    """State of one chain.

    Invariant between moves: nodes 0..n_nodes-1 and leaves 0..n_leaves-1 hold rows, a parent comes
    before its children, ``node_path[n]`` lists the nodes from level 1 down to n, ``node_count``
    and ``leaf_count`` count the rows of ``branch``, ``order[leaf_start[b]:leaf_start[b + 1]]`` are
    the rows of leaf b, sorted by pattern, and ``log_tau`` is the sum of log ``multiplier`` down
    the path. Within a path move further slots hold fresh nodes and leaves.
    """

    def __init__(self, X, prior, state, bit_generator):
        for name, known in (("branch_scale", BRANCH_SCALES), ("noise", NOISES), ("tail", TAILS)):
            if getattr(prior, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(prior, name)!r}")
        self._bit_generator = bit_generator
        self._rng = draws.borrow(bit_generator)
        self.prior = prior
        self.max_depth = prior.max_depth
        self._read_prior(prior)
        self.rows = Rows(X)
        self.n_samples, self.n_features = X.shape
        self._allocate()
        self._put(checked_state(state, prior, self.n_samples))

    def _read_prior(self, prior):
        self._sample_concentration = prior.concentration is None
        self._has_noise_scale = prior.has_noise_scale
        self._has_score_precision = prior.has_score_precision
        self._whole = prior.branch_scale == "whole"
        self._isotropic = prior.noise == "isotropic"
        self._sample_noise_rate = prior.noise_rate_prior is not None
        self._root_shape, self._shape = prior.shrinkage_root, prior.shrinkage
        self._df = prior.local_shrinkage_df
        self._noise_shape, self._noise_rate = prior.noise_prior
        if self._sample_noise_rate:
            self._noise_rate_shape, self._noise_rate_rate = prior.noise_rate_prior
        self._mean_shape, self._mean_rate = prior.mean_precision_prior
        self._score_shape = prior.score_precision_prior
        self._scale_shape = prior.noise_scale_prior
        self._concentration_shape = prior.concentration_prior[0]
        self.branch_level = np.array(prior.branch_levels, dtype=np.intp)
        self.concentration_rate = np.array(prior.concentration_rates, dtype=np.float64)
        self._has_tail, self._one_tail = prior.tail == "t", prior.tail_df == "shared"
        self.df_grid, self.df_log_mass = (np.array(a) for a in DF_GRID)

    def _allocate(self):
        n, p, depth = self.n_samples, self.n_features, self.max_depth
        self.xi, self.noise = np.empty(p), np.empty(p)
        self.alpha = np.zeros(depth + 1)
        self.branch = np.zeros(n, dtype=np.intp)
        self.score = np.zeros((n, depth))
        self.row_precision = np.ones(n)
        self.order = np.empty(n, dtype=np.intp)
        self.parent = self.level = self.node_count = np.zeros(0, dtype=np.intp)
        self.leaf_node = self.leaf_count = self.leaf_start = np.zeros(0, dtype=np.intp)
        self.piece_start = self.piece_leaf = np.zeros(0, dtype=np.intp)
        self.node_path = np.zeros((0, depth), dtype=np.intp)
        self.multiplier = self.log_tau = self.kappa = self.tail_df = np.zeros(0)
        self.loading = self.local = self.leaf_mean = np.zeros((0, p))
        self.psi = np.zeros((0, depth))
        self._reserve(depth, 1)

    def _state(self):
        """The state as ``_model`` describes it, copies."""
        nodes, leaves, levels = (slice(n) for n in (self.n_nodes, self.n_leaves, self.depth))
        return {
            "parent": np.asarray(self.parent)[nodes].copy(),
            "level": np.asarray(self.level)[nodes].copy(),
            "loadings": np.asarray(self.loading)[nodes].copy(),
            "local_precision": np.asarray(self.local)[nodes].copy(),
            "multiplier": np.asarray(self.multiplier)[nodes].copy(),
            "leaf_node": np.asarray(self.leaf_node)[leaves].copy(),
            "leaf_mean": np.asarray(self.leaf_mean)[leaves].copy(),
            "score_precision": np.asarray(self.psi)[leaves, levels].copy(),
            "noise_scale": np.asarray(self.kappa)[leaves].copy(),
            "tail_df": np.asarray(self.tail_df)[leaves].copy(),
            "mean_precision": np.array(self.xi),
            "noise_precision": np.array(self.noise),
            "noise_rate": self.noise_rate,
            "concentration": np.asarray(self.alpha)[:self.depth + 1].copy(),
            "branch": np.array(self.branch),
            "scores": np.asarray(self.score)[:, levels].copy(),
            "row_precision": np.array(self.row_precision),
        }

    def _put(self, state):
        """Take a checked state over."""
        self.depth = len(state["concentration"]) - 1
        self.n_nodes, self.n_leaves = len(state["parent"]), len(state["leaf_node"])
        self._reserve(self.n_nodes, self.n_leaves)
        nodes, leaves, levels = (slice(n) for n in (self.n_nodes, self.n_leaves, self.depth))
        np.asarray(self.parent)[nodes] = state["parent"]
        np.asarray(self.level)[nodes] = state["level"]
        np.asarray(self.loading)[nodes] = state["loadings"]
        np.asarray(self.local)[nodes] = state["local_precision"]
        np.asarray(self.multiplier)[nodes] = state["multiplier"]
        np.asarray(self.leaf_node)[leaves] = state["leaf_node"]
        np.asarray(self.leaf_mean)[leaves] = state["leaf_mean"]
        np.asarray(self.kappa)[leaves] = state["noise_scale"]
        np.asarray(self.tail_df)[leaves] = state["tail_df"]
        np.asarray(self.psi)[leaves, levels] = state["score_precision"]
        np.asarray(self.xi)[:] = state["mean_precision"]
        np.asarray(self.noise)[:] = state["noise_precision"]
        np.asarray(self.branch)[:] = state["branch"]
        self.noise_rate = state["noise_rate"]
        np.asarray(self.alpha)[:] = 0.0
        np.asarray(self.alpha)[:self.depth + 1] = state["concentration"]
        np.asarray(self.score)[:, levels] = state["scores"]
        np.asarray(self.row_precision)[:] = state["row_precision"]
        for node in range(self.n_nodes):
            self._link(node)
        self._n_node_slots, self._n_leaf_slots = self.n_nodes, self.n_leaves
        self._compress()

    # -- bookkeeping --------------------------------------------------------------------------

    cdef Py_ssize_t _new_node(self, Py_ssize_t above) except -1 nogil:
        """A slot for a child of a node, without parameters."""
        cdef Py_ssize_t n = self._n_node_slots
        self._reserve(n + 1, self._n_leaf_slots)
        self._n_node_slots += 1
        self.parent[n] = above
        self.level[n] = 1 if above < 0 else self.level[above] + 1
        self.node_count[n] = 0
        self.multiplier[n] = 1.0
        self._link(n)
        return n

    cdef Py_ssize_t _new_leaf(self, Py_ssize_t above) except -1 nogil:
        cdef Py_ssize_t b = self._n_leaf_slots
        self._reserve(self._n_node_slots, b + 1)
        self._n_leaf_slots += 1
        self.leaf_node[b] = above
        self.leaf_count[b] = 0
        return b

    cdef void _link(self, Py_ssize_t n) noexcept nogil:
        """The path and log tau of a node, from those of its parent."""
        cdef Py_ssize_t h, above = self.parent[n]
        for h in range(self.level[n] - 1):
            self.node_path[n, h] = self.node_path[above, h]
        self.node_path[n, self.level[n] - 1] = n
        self.log_tau[n] = log(self.multiplier[n])
        if above >= 0:
            self.log_tau[n] += self.log_tau[above]

    cdef void _draw_node(self, Py_ssize_t n) noexcept nogil:
        """Parameters of a fresh node from the prior."""
        cdef Py_ssize_t p
        self.multiplier[n] = draws.draw_gamma(
            self._rng, self._root_shape if self.parent[n] < 0 else self._shape, 1.0
        )
        self._link(n)
        for p in range(self.n_features):
            self.local[n, p] = draws.draw_gamma(self._rng, 0.5 * self._df, 0.5 * self._df)
            self.loading[n, p] = draws.normal(self._rng) / sqrt(self.local[n, p] * self._tau(n))

    cdef void _draw_leaf(self, Py_ssize_t b) noexcept nogil:
        """Parameters of a fresh leaf from the prior."""
        cdef Py_ssize_t p, h
        for p in range(self.n_features):
            self.leaf_mean[b, p] = draws.normal(self._rng) / sqrt(self.xi[p])
        self.kappa[b] = 1.0
        if self._has_noise_scale:
            self.kappa[b] = draws.draw_gamma(self._rng, self._scale_shape, self._scale_shape)
        for h in range(self.depth):
            self.psi[b, h] = self._prior_score_precision(b)
        self.tail_df[b] = self._prior_tail()

    cdef double _prior_score_precision(self, Py_ssize_t b) noexcept nogil:
        if self._has_score_precision:
            return draws.draw_gamma(self._rng, self._score_shape, self._score_shape)
        return self.kappa[b] if self._whole else 1.0

    cdef double _prior_tail(self) noexcept nogil:
        """Degrees of freedom of a fresh leaf."""
        cdef double left
        cdef Py_ssize_t k
        if not self._has_tail:
            return INFINITY
        if self._one_tail:
            return self.tail_df[0]
        left = draws.uniform(self._rng)
        for k in range(self.df_grid.shape[0] - 1):
            left -= exp(self.df_log_mass[k])
            if left < 0.0:
                return self.df_grid[k]
        return self.df_grid[self.df_grid.shape[0] - 1]

    cdef int _compress(self) except -1 nogil:
        """Drop nodes and leaves without rows, and restore the invariant."""
        cdef Py_ssize_t n, b, h, i, n_kept = 0
        for b in range(self._n_leaf_slots):
            self.leaf_count[b] = 0
        for i in range(self.n_samples):
            self.leaf_count[self.branch[i]] += 1
        for n in range(self._n_node_slots):
            self.node_count[n] = 0
        for b in range(self._n_leaf_slots):
            for h in range(self.depth if self.leaf_count[b] > 0 else 0):
                self.node_count[self.node_path[self.leaf_node[b], h]] += self.leaf_count[b]
        for n in range(self._n_node_slots):
            if self.node_count[n] == 0:
                continue
            self.new_node[n] = n_kept
            self.parent[n_kept] = -1 if self.parent[n] < 0 else self.new_node[self.parent[n]]
            if n != n_kept:
                self.level[n_kept] = self.level[n]
                self.node_count[n_kept] = self.node_count[n]
                self.multiplier[n_kept] = self.multiplier[n]
                self.loading[n_kept, :] = self.loading[n, :]
                self.local[n_kept, :] = self.local[n, :]
            self._link(n_kept)
            n_kept += 1
        self.n_nodes = self._n_node_slots = n_kept
        n_kept = 0
        for b in range(self._n_leaf_slots):
            if self.leaf_count[b] == 0:
                continue
            self.new_leaf[b] = n_kept
            self.leaf_node[n_kept] = self.new_node[self.leaf_node[b]]
            if b != n_kept:
                self.leaf_count[n_kept] = self.leaf_count[b]
                self.kappa[n_kept] = self.kappa[b]
                self.tail_df[n_kept] = self.tail_df[b]
                self.leaf_mean[n_kept, :] = self.leaf_mean[b, :]
                self.psi[n_kept, :] = self.psi[b, :]
            n_kept += 1
        self.n_leaves = self._n_leaf_slots = n_kept
        for i in range(self.n_samples):
            self.branch[i] = self.new_leaf[self.branch[i]]
        self._sort_rows()
        return 0

    cdef void _sort_rows(self) noexcept nogil:
        """Rows by leaf, within a leaf by pattern: a counting sort; then cut into pieces."""
        cdef Py_ssize_t b, t, i
        self.leaf_start[0] = 0
        for b in range(self.n_leaves):
            self.leaf_start[b + 1] = self.leaf_start[b] + self.leaf_count[b]
            self.new_leaf[b] = self.leaf_start[b]
        for t in range(self.n_samples):
            i = self.rows.by_pattern[t]
            b = self.branch[i]
            self.order[self.new_leaf[b]] = i
            self.new_leaf[b] += 1
        self.n_pieces = 0
        for b in range(self.n_leaves):
            t = self.leaf_start[b]
            while t < self.leaf_start[b + 1]:
                self.piece_leaf[self.n_pieces] = b
                self.piece_start[self.n_pieces] = t
                self.n_pieces += 1
                t += PIECE
        self.piece_start[self.n_pieces] = self.n_samples

    cdef int _reserve(self, Py_ssize_t n_nodes, Py_ssize_t n_leaves) except -1 nogil:
        """Room for so many nodes and leaves; twice as many as there were if that is too few."""
        if n_nodes > self.parent.shape[0]:
            with gil:
                self._resize_nodes(max(n_nodes, 2 * self.parent.shape[0]))
        if n_leaves > self.leaf_node.shape[0]:
            with gil:
                self._resize_leaves(max(n_leaves, 2 * self.leaf_node.shape[0]))
        return 0

    def _resize_nodes(self, n):
        """Make room for n nodes; what is there stays."""
        p, depth = self.n_features, self.max_depth
        self.parent = longer(self.parent, (n,))
        self.level = longer(self.level, (n,))
        self.node_count = longer(self.node_count, (n,))
        self.node_path = longer(self.node_path, (n, depth))
        self.loading = longer(self.loading, (n, p))
        self.local = longer(self.local, (n, p))
        self.multiplier = longer(self.multiplier, (n,))
        self.log_tau = longer(self.log_tau, (n,))
        self.new_node = np.zeros(n + 1, dtype=np.intp)

    def _resize_leaves(self, n):
        """Make room for n leaves; what is there stays."""
        p, depth = self.n_features, self.max_depth
        self.leaf_node = longer(self.leaf_node, (n,))
        self.leaf_count = longer(self.leaf_count, (n,))
        self.leaf_mean = longer(self.leaf_mean, (n, p))
        self.psi = longer(self.psi, (n, depth))
        self.kappa = longer(self.kappa, (n,))
        self.tail_df = longer(self.tail_df, (n,))
        self.leaf_start = longer(self.leaf_start, (n + 1,))
        self.new_leaf = np.zeros(n, dtype=np.intp)
        # A leaf has one piece that is not full, at most.
        n_pieces = self.n_samples // PIECE + n
        self.piece_start = longer(self.piece_start, (n_pieces + 1,))
        self.piece_leaf = longer(self.piece_leaf, (n_pieces,))

    cdef double _tau(self, Py_ssize_t n) noexcept nogil:
        return exp(fmax(fmin(self.log_tau[n], 300.0), -300.0))

    cdef double _log_prior(self) noexcept nogil:
        """The terms of ``_model.log_joint`` without those of scores and data."""
        cdef double total = 0.0, tau, half_log_tau
        cdef double half_log_2pi = 0.9189385332046727
        cdef Py_ssize_t n, b, p, h, k
        total += self._log_paths()
        for n in range(self.n_nodes):
            total += shrinkage.log_density(
                self.multiplier[n], self._root_shape if self.parent[n] < 0 else self._shape
            )
            tau = self._tau(n)
            half_log_tau = 0.5 * self.log_tau[n]
            for p in range(self.n_features):
                total += (
                    log_gamma_density(self.local[n, p], 0.5 * self._df, 0.5 * self._df)
                    + 0.5 * log(self.local[n, p]) + half_log_tau - half_log_2pi
                    - 0.5 * self.local[n, p] * tau * self.loading[n, p] * self.loading[n, p]
                )
        for p in range(self.n_features):
            total += log_gamma_density(self.xi[p], self._mean_shape, self._mean_rate)
            if p == 0 or not self._isotropic:
                total += log_gamma_density(self.noise[p], self._noise_shape, self.noise_rate)
            for b in range(self.n_leaves):
                total += (0.5 * log(self.xi[p]) - half_log_2pi
                          - 0.5 * self.xi[p] * self.leaf_mean[b, p] * self.leaf_mean[b, p])
        if self._sample_noise_rate:
            total += log_gamma_density(
                self.noise_rate, self._noise_rate_shape, self._noise_rate_rate
            )
        for b in range(self.n_leaves):
            if self._has_noise_scale:
                total += log_gamma_density(self.kappa[b], self._scale_shape, self._scale_shape)
            if self._has_score_precision:
                for h in range(self.depth):
                    total += log_gamma_density(
                        self.psi[b, h], self._score_shape, self._score_shape
                    )
        if self._has_tail:
            for b in range(1 if self._one_tail else self.n_leaves):
                for k in range(self.df_grid.shape[0]):
                    if self.df_grid[k] == self.tail_df[b]:
                        total += self.df_log_mass[k]
        if self._sample_concentration:
            for k in range(self.branch_level.shape[0]):
                total += log_gamma_density(
                    self.alpha[self.branch_level[k]], self._concentration_shape,
                    self.concentration_rate[k],
                )
        return total

    cdef double _log_paths(self) noexcept nogil:
        """Log probability of the tree: the sum over nodes of log EPPF of their children."""
        cdef double total = 0.0, alpha
        cdef Py_ssize_t n, b
        for n in range(-1, self.n_nodes):
            alpha = self.alpha[0 if n < 0 else self.level[n]]
            if alpha > 0.0:
                total += lgamma(alpha) - lgamma(
                    alpha + (self.n_samples if n < 0 else self.node_count[n])
                )
        for n in range(self.n_nodes):
            alpha = self.alpha[self.level[n] - 1]
            if alpha > 0.0:
                total += log(alpha) + lgamma(self.node_count[n])
        alpha = self.alpha[self.depth]
        for b in range(self.n_leaves):
            if alpha > 0.0:
                total += log(alpha) + lgamma(self.leaf_count[b])
        return total
