"""What a chain of the tree factor model is at: tree, parameters, scores, and their prior density.

The moves that change it are in ``moves``.
"""

from libc.math cimport INFINITY, exp, fmax, fmin, log, sqrt

import numpy as np

from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI, lgamma, log_gamma_density
from skbnp.processes cimport multiplicative_gamma as shrinkage

from skbnp.numerics.buffers import longer
from skbnp.tree_factor_model._saved import FIELDS as STATE_FIELDS, checked_state


cdef enum:
    PIECE = 1024            # rows of a leaf worked on together; fixed, as results depend on it


cdef class State(ChainState):
    """State of one chain.

    Invariant between moves: nodes 0..n_nodes-1 and leaves 0..n_leaves-1 hold rows, a parent comes
    before its children, ``node_path[n]`` lists the nodes from level 1 down to n, ``node_count``
    and ``leaf_count`` count the rows of ``branch``, ``order[leaf_start[b]:leaf_start[b + 1]]`` are
    the rows of leaf b, sorted by pattern, and ``log_tau`` is the sum of log ``multiplier`` down
    the path. Within a path move further slots hold fresh nodes and leaves.
    """

    FIELDS = STATE_FIELDS

    def __init__(self, X, prior, state):
        """Rows X (n_samples, n_features), NaN where missing, in the units of ``prior``.

        ``state`` is a dict as ``_saved`` describes it.
        """
        self.prior, self.hyper, self.rows = prior, Hyperparameters(prior), Rows(X)
        self.n_samples, self.n_features = X.shape
        self.max_depth = prior.max_depth
        n, p, depth = self.n_samples, self.n_features, self.max_depth
        self.mean_precision, self.noise_precision = np.empty(p), np.empty(p)
        self.concentration = np.zeros(depth + 1)
        self.branch, self.order = np.zeros(n, dtype=np.intp), np.empty(n, dtype=np.intp)
        self.scores, self.row_precision = np.zeros((n, depth)), np.ones(n)
        self.parent = self.level = self.node_count = np.zeros(0, dtype=np.intp)
        self.leaf_node = self.leaf_count = self.leaf_start = np.zeros(0, dtype=np.intp)
        self.piece_start = self.piece_leaf = np.zeros(0, dtype=np.intp)
        self.node_path = np.zeros((0, depth), dtype=np.intp)
        self.multiplier = self.log_tau = self.noise_scale = self.tail_df = np.zeros(0)
        self.loadings = self.local_precision = self.leaf_mean = np.zeros((0, p))
        self.score_precision = np.zeros((0, depth))
        self.reserve(depth, 1)
        self.set_state(state)

    # -- as a dict ----------------------------------------------------------------------------

    def _in_use(self):
        """Name of each array -> what of it is in use."""
        length = {
            "n_samples": self.n_samples, "n_features": self.n_features, "n_nodes": self.n_nodes,
            "n_leaves": self.n_leaves, "depth": self.depth, "n_levels": self.depth + 1,
        }
        return {
            field.name: np.asarray(getattr(self, field.name))[
                tuple(slice(length[word]) for word in field.shape)
            ]
            for field in self.FIELDS if field.shape
        }

    def get_state(self):
        """The state as a dict of copies."""
        copies = {name: values.copy() for name, values in self._in_use().items()}
        return {**copies, "noise_rate": self.noise_rate}

    def set_state(self, state):
        """Take what ``get_state`` returned; a ValueError, and no change, if it cannot be that."""
        state = checked_state(state, self.prior, self.n_samples)
        self.depth = len(state["concentration"]) - 1
        self.n_nodes, self.n_leaves = len(state["parent"]), len(state["leaf_node"])
        self.reserve(self.n_nodes, self.n_leaves)
        self.concentration[:] = 0.0
        for name, values in self._in_use().items():
            values[...] = state[name]
        self.noise_rate = state["noise_rate"]
        for n in range(self.n_nodes):
            self.link(n)
        self.n_node_slots, self.n_leaf_slots = self.n_nodes, self.n_leaves
        self.compress()

    def data(self):
        """The rows with NaN where missing, a copy."""
        return np.where(self._is_seen(), self.rows.X, np.nan)

    def set_data(self, X):
        """Take other values of the observed entries."""
        self.rows.X = np.where(self._is_seen(), X, 0.0)
        self.version += 1

    def _is_seen(self):
        return np.asarray(self.rows.is_observed)[np.asarray(self.rows.pattern)]

    def expected_data(self):
        """Mean and standard deviation of every entry given the state, scores included."""
        state = self.get_state()
        branch, depth = state["branch"], self.depth
        paths = np.asarray(self.node_path)[state["leaf_node"]][:, :depth]
        mean = state["leaf_mean"][branch] + np.einsum(
            "il,ilp->ip", state["scores"], state["loadings"][paths[branch]]
        )
        weight = state["noise_scale"][branch] * state["row_precision"]
        return mean, 1 / np.sqrt(weight[:, np.newaxis] * state["noise_precision"])

    # -- the tree, step by step ---------------------------------------------------------------

    cdef Py_ssize_t add_node(self, Py_ssize_t above) except -1 nogil:
        """A slot for a child of a node, without parameters."""
        cdef Py_ssize_t n = self.n_node_slots
        self.reserve(n + 1, self.n_leaf_slots)
        self.n_node_slots += 1
        self.parent[n] = above
        self.level[n] = 1 if above < 0 else self.level[above] + 1
        self.node_count[n] = 0
        self.multiplier[n] = 1.0
        self.link(n)
        return n

    cdef Py_ssize_t add_leaf(self, Py_ssize_t above) except -1 nogil:
        cdef Py_ssize_t b = self.n_leaf_slots
        self.reserve(self.n_node_slots, b + 1)
        self.n_leaf_slots += 1
        self.leaf_node[b] = above
        self.leaf_count[b] = 0
        return b

    cdef void link(self, Py_ssize_t n) noexcept nogil:
        """The path and log tau of a node, from those of its parent."""
        cdef Py_ssize_t h, above = self.parent[n]
        for h in range(self.level[n] - 1):
            self.node_path[n, h] = self.node_path[above, h]
        self.node_path[n, self.level[n] - 1] = n
        self.log_tau[n] = log(self.multiplier[n])
        if above >= 0:
            self.log_tau[n] += self.log_tau[above]

    cdef void count_row(self, Py_ssize_t b, Py_ssize_t change) noexcept nogil:
        """Add to the counts of a leaf and of the nodes on its path."""
        cdef Py_ssize_t h
        self.leaf_count[b] += change
        for h in range(self.depth):
            self.node_count[self.node_path[self.leaf_node[b], h]] += change

    cdef int compress(self) except -1 nogil:
        """Drop nodes and leaves without rows, and restore the invariant."""
        cdef Py_ssize_t n, b, h, i, n_kept = 0
        for b in range(self.n_leaf_slots):
            self.leaf_count[b] = 0
        for i in range(self.n_samples):
            self.leaf_count[self.branch[i]] += 1
        for n in range(self.n_node_slots):
            self.node_count[n] = 0
        for b in range(self.n_leaf_slots):
            for h in range(self.depth if self.leaf_count[b] > 0 else 0):
                self.node_count[self.node_path[self.leaf_node[b], h]] += self.leaf_count[b]
        for n in range(self.n_node_slots):
            if self.node_count[n] == 0:
                continue
            self.new_node[n] = n_kept
            self.parent[n_kept] = -1 if self.parent[n] < 0 else self.new_node[self.parent[n]]
            if n != n_kept:
                self.level[n_kept] = self.level[n]
                self.node_count[n_kept] = self.node_count[n]
                self.multiplier[n_kept] = self.multiplier[n]
                self.loadings[n_kept, :] = self.loadings[n, :]
                self.local_precision[n_kept, :] = self.local_precision[n, :]
            self.link(n_kept)
            n_kept += 1
        self.n_nodes = self.n_node_slots = n_kept
        n_kept = 0
        for b in range(self.n_leaf_slots):
            if self.leaf_count[b] == 0:
                continue
            self.new_leaf[b] = n_kept
            self.leaf_node[n_kept] = self.new_node[self.leaf_node[b]]
            if b != n_kept:
                self.leaf_count[n_kept] = self.leaf_count[b]
                self.noise_scale[n_kept] = self.noise_scale[b]
                self.tail_df[n_kept] = self.tail_df[b]
                self.leaf_mean[n_kept, :] = self.leaf_mean[b, :]
                self.score_precision[n_kept, :] = self.score_precision[b, :]
            n_kept += 1
        self.n_leaves = self.n_leaf_slots = n_kept
        for i in range(self.n_samples):
            self.branch[i] = self.new_leaf[self.branch[i]]
        self.sort_rows()
        return 0

    cdef void sort_rows(self) noexcept nogil:
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
        self.version += 1

    cdef int add_level(self, bitgen_t* rng) except -1 nogil:
        """One more axis for every branch, with loadings and scores from the prior."""
        cdef Py_ssize_t b, i, node
        for b in range(self.n_leaves):
            node = self.add_node(self.leaf_node[b])
            self.draw_node(rng, node)
            self.leaf_node[b] = node
            self.score_precision[b, self.depth] = self.draw_score_precision(rng, b)
        for i in range(self.n_samples):
            self.scores[i, self.depth] = draws.normal(rng) / sqrt(
                self.score_precision[self.branch[i], self.depth] * self.row_precision[i]
            )
        self.depth += 1
        return self.compress()

    cdef int cut_last_level(self) except -1 nogil:
        """Take the last axis of every branch away."""
        cdef Py_ssize_t b
        for b in range(self.n_leaves):
            self.leaf_node[b] = self.parent[self.leaf_node[b]]
        self.depth -= 1
        return self.compress()

    # -- parameters from the prior ------------------------------------------------------------

    cdef void draw_node(self, bitgen_t* rng, Py_ssize_t n) noexcept nogil:
        """Parameters of a fresh node: (T1.4)."""
        cdef Py_ssize_t p
        cdef double half_df = 0.5 * self.hyper.local_df
        self.multiplier[n] = draws.draw_gamma(
            rng, self.hyper.root_shape if self.parent[n] < 0 else self.hyper.shape, 1.0
        )
        self.link(n)
        for p in range(self.n_features):
            self.local_precision[n, p] = draws.draw_gamma(rng, half_df, half_df)
            self.loadings[n, p] = draws.normal(rng) / sqrt(
                self.local_precision[n, p] * self.tau(n)
            )

    cdef void draw_leaf(self, bitgen_t* rng, Py_ssize_t b) noexcept nogil:
        """Parameters of a fresh leaf: (T1.5) to (T1.7)."""
        cdef Py_ssize_t p, h
        for p in range(self.n_features):
            self.leaf_mean[b, p] = draws.normal(rng) / sqrt(self.mean_precision[p])
        self.noise_scale[b] = 1.0
        if self.hyper.has_noise_scale:
            self.noise_scale[b] = draws.draw_gamma(
                rng, self.hyper.scale_shape, self.hyper.scale_shape
            )
        for h in range(self.depth):
            self.score_precision[b, h] = self.draw_score_precision(rng, b)
        self.tail_df[b] = INFINITY
        if self.hyper.has_tail:
            self.tail_df[b] = (
                self.tail_df[0] if self.hyper.one_tail else self.hyper.draw_tail_df(rng)
            )

    cdef double draw_score_precision(self, bitgen_t* rng, Py_ssize_t b) noexcept nogil:
        if self.hyper.has_score_precision:
            return draws.draw_gamma(rng, self.hyper.score_shape, self.hyper.score_shape)
        return self.noise_scale[b] if self.hyper.whole else 1.0

    # -- densities ----------------------------------------------------------------------------

    cdef double tau(self, Py_ssize_t n) noexcept nogil:
        return exp(fmax(fmin(self.log_tau[n], 300.0), -300.0))

    cpdef double log_joint(self):
        """log p(X, state), the scores and u a part of the state."""
        return self.log_prior() + self.log_data_given_scores()

    cdef double log_prior(self) noexcept nogil:
        """The terms of ``_model.log_joint`` without those of scores and data."""
        cdef double total = 0.0, tau, half_log_tau, half_df = 0.5 * self.hyper.local_df
        cdef Py_ssize_t n, b, p, h, k
        total += self.log_paths()
        for n in range(self.n_nodes):
            total += shrinkage.log_density(
                self.multiplier[n],
                self.hyper.root_shape if self.parent[n] < 0 else self.hyper.shape,
            )
            tau = self.tau(n)
            half_log_tau = 0.5 * self.log_tau[n]
            for p in range(self.n_features):
                total += (
                    log_gamma_density(self.local_precision[n, p], half_df, half_df)
                    + 0.5 * log(self.local_precision[n, p]) + half_log_tau - 0.5 * LOG_2_PI
                    - 0.5 * self.local_precision[n, p] * tau
                    * self.loadings[n, p] * self.loadings[n, p]
                )
        for p in range(self.n_features):
            total += log_gamma_density(
                self.mean_precision[p], self.hyper.mean_shape, self.hyper.mean_rate
            )
            if p == 0 or not self.hyper.isotropic:
                total += log_gamma_density(
                    self.noise_precision[p], self.hyper.noise_shape, self.noise_rate
                )
            for b in range(self.n_leaves):
                total += (
                    0.5 * log(self.mean_precision[p]) - 0.5 * LOG_2_PI
                    - 0.5 * self.mean_precision[p] * self.leaf_mean[b, p] * self.leaf_mean[b, p]
                )
        if self.hyper.sample_noise_rate:
            total += self.hyper.log_noise_rate_density(self.noise_rate)
        for b in range(self.n_leaves):
            if self.hyper.has_noise_scale:
                total += log_gamma_density(
                    self.noise_scale[b], self.hyper.scale_shape, self.hyper.scale_shape
                )
            if self.hyper.has_score_precision:
                for h in range(self.depth):
                    total += log_gamma_density(
                        self.score_precision[b, h], self.hyper.score_shape, self.hyper.score_shape
                    )
        if self.hyper.has_tail:
            for b in range(1 if self.hyper.one_tail else self.n_leaves):
                for k in range(self.hyper.df_grid.shape[0]):
                    if self.hyper.df_grid[k] == self.tail_df[b]:
                        total += self.hyper.df_log_mass[k]
        if self.hyper.sample_concentration:
            for k in range(self.hyper.branch_level.shape[0]):
                total += log_gamma_density(
                    self.concentration[self.hyper.branch_level[k]], self.hyper.concentration_shape,
                    self.hyper.concentration_rate[k],
                )
        return total

    cdef double log_paths(self) noexcept nogil:
        """Log probability of the tree: (T2.1)."""
        cdef double total = 0.0, alpha
        cdef Py_ssize_t n, b
        for n in range(-1, self.n_nodes):
            alpha = self.concentration[0 if n < 0 else self.level[n]]
            if alpha > 0.0:
                total += lgamma(alpha) - lgamma(
                    alpha + (self.n_samples if n < 0 else self.node_count[n])
                )
        for n in range(self.n_nodes):
            alpha = self.concentration[self.level[n] - 1]
            if alpha > 0.0:
                total += log(alpha) + lgamma(self.node_count[n])
        alpha = self.concentration[self.depth]
        for b in range(self.n_leaves):
            if alpha > 0.0:
                total += log(alpha) + lgamma(self.leaf_count[b])
        return total

    cdef double log_data_given_scores(self) noexcept nogil:
        """sum_i log p(u_i) + log p(x_i | b_i, u_i) + log p(y_i | b_i, u_i, x_i), observed y."""
        cdef double total = 0.0, u, precision, off
        cdef Py_ssize_t i, b, p, h
        for i in range(self.n_samples):
            b, u = self.branch[i], self.row_precision[i]
            if self.hyper.has_tail:
                total += log_gamma_density(u, 0.5 * self.tail_df[b], 0.5 * self.tail_df[b])
            for h in range(self.depth):
                precision = self.score_precision[b, h] * u
                total += (0.5 * log(precision) - 0.5 * LOG_2_PI
                          - 0.5 * precision * self.scores[i, h] * self.scores[i, h])
            for p in range(self.n_features):
                if not self.rows.is_observed[self.rows.pattern[i], p]:
                    continue
                precision = u * self.noise_scale[b] * self.noise_precision[p]
                off = self.rows.X[i, p] - self.leaf_mean[b, p]
                for h in range(self.depth):
                    off -= self.scores[i, h] * self.loadings[
                        self.node_path[self.leaf_node[b], h], p
                    ]
                total += 0.5 * log(precision) - 0.5 * LOG_2_PI - 0.5 * precision * off * off
        return total

    # -- room ---------------------------------------------------------------------------------

    cdef int reserve(self, Py_ssize_t n_nodes, Py_ssize_t n_leaves) except -1 nogil:
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
        self.loadings = longer(self.loadings, (n, p))
        self.local_precision = longer(self.local_precision, (n, p))
        self.multiplier = longer(self.multiplier, (n,))
        self.log_tau = longer(self.log_tau, (n,))
        self.new_node = np.zeros(n + 1, dtype=np.intp)

    def _resize_leaves(self, n):
        """Make room for n leaves; what is there stays."""
        p, depth = self.n_features, self.max_depth
        self.leaf_node = longer(self.leaf_node, (n,))
        self.leaf_count = longer(self.leaf_count, (n,))
        self.leaf_mean = longer(self.leaf_mean, (n, p))
        self.score_precision = longer(self.score_precision, (n, depth))
        self.noise_scale = longer(self.noise_scale, (n,))
        self.tail_df = longer(self.tail_df, (n,))
        self.leaf_start = longer(self.leaf_start, (n + 1,))
        self.new_leaf = np.zeros(n, dtype=np.intp)
        # A leaf has one piece that is not full, at most.
        n_pieces = self.n_samples // PIECE + n
        self.piece_start = longer(self.piece_start, (n_pieces + 1,))
        self.piece_leaf = longer(self.piece_leaf, (n_pieces,))
