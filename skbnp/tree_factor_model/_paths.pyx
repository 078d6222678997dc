"""Paths of the tree factor model: each row's branch given parameters and, of its scores, nothing.

By slices, all rows at once, or collapsed, row by row with the weights integrated out: mathematics,
section 5.
"""

from libc.math cimport INFINITY, NAN, expm1, fmax, fmin, log, sqrt
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.tree_factor_model._rows cimport CHUNK, MOST_DENSE_FEATURES, Law

from skbnp.numerics.buffers import longer


cdef enum:
    BLOCK = 2048            # rows that choose their paths together
    DEAD = -3               # owner of a leaf that nobody may choose any more
    # What a slice may reach for, far beyond any use: a concentration gone astray would not end.
    MAX_STICKS = 1_000_000
    MAX_FRESH_NODES = 100_000

# Beyond this lead no Gumbel noise of a double reaches: -log(-log(1 - 2^-54)) = 37.4.
cdef double HOPELESS = 40.0

PATH_UPDATES = ("slice", "collapsed")
# What a fresh path brings along in the collapsed update.
BIRTHS = ("integrated", "prior")


cdef class Scratch:
    """What one thread needs to work on an item."""

    def __init__(self, State state):
        self.law = Law(state.rows, state.max_depth)
        self.system = System(state)


cdef class Paths(State):
    """A chain with the moves of its paths, and what does work item by item."""

    def __cinit__(self, *args, **kwargs):
        # Arrays that grow keep what they hold, from the start.
        self.node_log_mass = self.node_gamma = self.node_rest = self.node_total = np.zeros(0)
        self.leaf_log_mass = self.tail_weight = np.zeros(0)
        self.auxiliary = self.owner = np.zeros(0, dtype=np.intp)
        self.tail_score = np.zeros((0, 0))
        self.covariance = np.zeros((0, 0, 0))
        self._scratch = []

    def __init__(self, X, prior, state, bit_generator, path_update, birth, for_rows, int fault):
        if path_update not in PATH_UPDATES:
            raise ValueError(f"path_update must be one of {PATH_UPDATES}, got {path_update!r}")
        if birth not in BIRTHS:
            raise ValueError(f"birth must be one of {BIRTHS}, got {birth!r}")
        self.path_update = path_update
        self._by_slices = path_update == "slice"
        self._integrated = birth == "integrated"
        self._for_rows = for_rows or in_order
        self._fault = fault
        super().__init__(X, prior, state, bit_generator)
        n, p = self.n_samples, self.n_features
        self._law = Law(self.rows, self.max_depth)
        self.tail_precision, self.zeros = np.empty(p), np.zeros(p)
        self.tail_psi = np.empty(self.max_depth)
        self.log_slice, self.best = np.empty(n), np.empty(n)
        self.block_least = np.empty(self._n_blocks())
        self.choice = np.empty(n, dtype=np.intp)
        self.log_density = np.zeros((0, n))
        few = np.any(np.asarray(self.rows.n_observed) < self.max_depth)
        self._has_few = few and p <= MOST_DENSE_FEATURES

    def _resize_nodes(self, n):
        State._resize_nodes(self, n)
        self.node_log_mass = longer(self.node_log_mass, (n + 1,))
        self.node_gamma = longer(self.node_gamma, (n + 1,))
        self.node_rest = longer(self.node_rest, (n + 1,))
        self.node_total = longer(self.node_total, (n + 1,))
        self.auxiliary = longer(self.auxiliary, (n + 1,))
        self.needed = np.zeros(n, dtype=np.uint8)
        self.n_children = np.zeros(n + 1, dtype=np.intp)

    def _resize_leaves(self, n):
        State._resize_leaves(self, n)
        self.leaf_log_mass = longer(self.leaf_log_mass, (n,))
        self.tail_weight = longer(self.tail_weight, (n,))
        self.tail_score = longer(self.tail_score, (n, self.max_depth))
        self.owner = longer(self.owner, (n,))
        self.log_weight = np.empty(n)

    # -- work in items ------------------------------------------------------------------------

    cdef int _run(self, Work work, Py_ssize_t n_items) except -1:
        self._work = work
        self._for_rows(self._work_on, n_items, 1)
        return 0

    def _work_on(self, Py_ssize_t start, Py_ssize_t stop):
        """Items start..stop-1 of the work at hand; called by several threads."""
        cdef Scratch scratch
        cdef Py_ssize_t k
        try:
            scratch = self._scratch.pop()
        except IndexError:
            scratch = Scratch(self)
        with nogil:
            for k in range(start, stop):
                self._work_on_item(scratch, k)
        self._scratch.append(scratch)

    cdef int _work_on_item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        if self._work == COVARIANCES:
            self._compute_covariance(k)
        elif self._work == SLICES:
            self._draw_slices(k)
        elif self._work == OFFERS:
            self._offer_leaves(scratch.law, k)
        return 0

    cdef Py_ssize_t _n_blocks(self) noexcept nogil:
        return (self.n_samples + BLOCK - 1) // BLOCK

    cdef int _break(self, Move move) noexcept nogil:
        """A move had no finite result: remember it; the log joint is NaN from now on."""
        if self._broken == NO_MOVE:
            self._broken = move
        return 0

    # -- paths --------------------------------------------------------------------------------

    cdef int _update_paths(self) except -1:
        """Draw b_i given parameters and, of scores and row precisions, nothing."""
        if self.branch_level.shape[0] == 0 or self.n_samples < 2:
            return 0
        if self._by_slices:
            self._slice_paths()
        else:
            with nogil:
                self._collapsed_paths()
        self._n_proposed += self.n_samples
        return self._compress()

    cdef int _slice_paths(self) except -1:
        """Weights given the paths, a slice under each row's weight, paths given the slices.

        Weights of the children of a node are Dirichlet(N_1, ..., N_C, alpha); the last share is
        broken into sticks as long as a slice reaches them, with parameters from the prior.
        """
        cdef Py_ssize_t i, k
        self._key = draws.bits(self._rng)
        self._weigh_children()
        self._run(SLICES, self._n_blocks())
        with nogil:
            self.least_log_slice = INFINITY
            for k in range(self._n_blocks()):
                self.least_log_slice = fmin(self.least_log_slice, self.block_least[k])
            if self._fault != NO_NEW_PATHS:
                self._grow_fresh_paths()
        self._compute_covariances()
        self._run(OFFERS, self._n_blocks())
        with nogil:
            for i in range(self.n_samples):
                if self.choice[i] < 0:
                    return self._break(PATHS)
                self._n_moved += self.choice[i] != self.branch[i]
            self.branch[:] = self.choice
        return 0

    cdef void _draw_slices(self, Py_ssize_t k) noexcept nogil:
        """A slice under the weight of each row of block k."""
        cdef double uniforms[2]
        cdef double least = INFINITY
        cdef Py_ssize_t i
        for i in range(k * BLOCK, min((k + 1) * BLOCK, self.n_samples)):
            draws.philox_uniforms(self._key, 0, i, uniforms)
            self.log_slice[i] = self.leaf_log_mass[self.branch[i]] + log(uniforms[0])
            least = fmin(least, self.log_slice[i])
        self.block_least[k] = least

    cdef void _weigh_children(self) noexcept nogil:
        """Draw the weights of all children given their counts: logs of the masses they carry."""
        cdef Py_ssize_t n, b, above
        cdef double alpha
        for n in range(-1, self.n_nodes):
            alpha = self.alpha[0 if n < 0 else self.level[n]]
            self.node_rest[n + 1] = draws.gamma(self._rng, alpha) if alpha > 0.0 else 0.0
            self.node_total[n + 1] = self.node_rest[n + 1]
        for n in range(self.n_nodes):
            self.node_gamma[n + 1] = 1.0
            if self.alpha[self.level[n] - 1] > 0.0:
                self.node_gamma[n + 1] = draws.gamma(self._rng, self.node_count[n])
            self.node_total[self.parent[n] + 1] += self.node_gamma[n + 1]
        for b in range(self.n_leaves):
            self.leaf_log_mass[b] = 1.0
            if self.alpha[self.depth] > 0.0:
                self.leaf_log_mass[b] = draws.gamma(self._rng, self.leaf_count[b])
            self.node_total[self.leaf_node[b] + 1] += self.leaf_log_mass[b]
        self.node_log_mass[0] = 0.0
        for n in range(self.n_nodes):
            above = self.parent[n] + 1
            self.node_log_mass[n + 1] = self.node_log_mass[above] + log(
                self.node_gamma[n + 1] / self.node_total[above]
            )
        for b in range(self.n_leaves):
            above = self.leaf_node[b] + 1
            self.leaf_log_mass[b] = self.node_log_mass[above] + log(
                self.leaf_log_mass[b] / self.node_total[above]
            )

    cdef int _grow_fresh_paths(self) except -1 nogil:
        """The unoccupied part of the tree as far as a slice reaches into it.

        Masses first, then parameters from the prior where a leaf needs them.
        """
        cdef Py_ssize_t n, b, h, n_nodes = self.n_nodes, n_leaves = self.n_leaves
        self.n_sticks = 0
        for n in range(-1, n_nodes):
            h = 0 if n < 0 else self.level[n]
            if self.alpha[h] > 0.0:
                self._break_sticks(n, h, self.node_log_mass[n + 1] + log(
                    self.node_rest[n + 1] / self.node_total[n + 1]
                ))
        for n in range(n_nodes, self._n_node_slots):
            self.needed[n] = 0
        for b in range(n_leaves, self._n_leaf_slots):
            for h in range(self.depth):
                self.needed[self.node_path[self.leaf_node[b], h]] = 1
        for n in range(n_nodes, self._n_node_slots):
            if self.needed[n]:
                self._draw_node(n)
        for b in range(n_leaves, self._n_leaf_slots):
            self._draw_leaf(b)
        return 0

    cdef int _break_sticks(
        self, Py_ssize_t node, Py_ssize_t level, double log_mass
    ) except -1 nogil:
        """Fresh children of a node share a mass by sticks v ~ Beta(1, alpha)."""
        cdef double log_left, log_child
        while log_mass > self.least_log_slice:
            self.n_sticks += 1
            if self.n_sticks > MAX_STICKS or self._n_node_slots > self.n_nodes + MAX_FRESH_NODES:
                return self._break(PATHS)
            log_left = log(draws.uniform(self._rng)) / self.alpha[level]
            log_child = log_mass + log(-expm1(log_left))
            log_mass += log_left
            if log_child > self.least_log_slice:
                self._grow(node, level, log_child)
        return 0

    cdef int _grow(self, Py_ssize_t node, Py_ssize_t level, double log_mass) except -1 nogil:
        """A fresh child of a node, and its own children."""
        if level == self.depth:
            node = self._new_leaf(node)
            self.leaf_log_mass[node] = log_mass
            return 0
        node = self._new_node(node)
        if self.alpha[level + 1] > 0.0:
            return self._break_sticks(node, level + 1, log_mass)
        return self._grow(node, level + 1, log_mass)

    cdef int _offer_leaves(self, Law law, Py_ssize_t k) noexcept nogil:
        """Let the rows of block k, by pattern, consider the leaves with masses above slices."""
        cdef Py_ssize_t b, g, t, i, n, end
        cdef Py_ssize_t start = k * BLOCK, stop = min(start + BLOCK, self.n_samples)
        for t in range(start, stop):
            i = self.rows.by_pattern[t]
            self.best[i] = -INFINITY
            self.choice[i] = -1
        for b in range(self._n_leaf_slots):
            t = start
            while t < stop:
                g = self.rows.pattern[self.rows.by_pattern[t]]
                end = min(stop, self.rows.pattern_start[g + 1])
                n = 0
                for i in range(t, end):
                    n += self._is_offered(b, self.rows.by_pattern[i])
                if n > 0 and self._prepare_density(law, b, g, n) != 0:
                    return self._break(PATHS)
                n = 0
                while t < end:
                    i = self.rows.by_pattern[t]
                    t += 1
                    if self._is_offered(b, i):
                        law.chosen[n] = i
                        n += 1
                    if n == CHUNK or (n > 0 and t == end):
                        law.whiten(n)
                        self._offer(law, b, n)
                        n = 0
        return 0

    cdef bint _is_offered(self, Py_ssize_t b, Py_ssize_t i) noexcept nogil:
        # A row's own leaf always is, whatever the logarithms round to.
        return self.log_slice[i] < self.leaf_log_mass[b] or self.branch[i] == b

    cdef void _offer(self, Law law, Py_ssize_t b, Py_ssize_t n) noexcept nogil:
        """Keep the leaf with the largest log density plus Gumbel noise: a categorical draw.

        The noise depends on row and leaf alone, whichever order they are visited in.
        """
        cdef double uniforms[2]
        cdef double value
        cdef Py_ssize_t t, i
        for t in range(n):
            i = law.chosen[t]
            value = self._log_density_of(law, law.square[t])
            if value + HOPELESS < self.best[i]:
                continue
            draws.philox_uniforms(self._key, 1 + b, i, uniforms)
            value -= log(-log(uniforms[0]))
            if value > self.best[i]:
                self.best[i] = value
                self.choice[i] = b

    cdef int _collapsed_paths(self) except -1 nogil:
        """Rows one by one, weights integrated out: Neal (2000), algorithm 8, at every node.

        Each occupied node that may branch has an auxiliary, a fresh path down to a leaf with
        parameters from the prior. A row alone on the tail of its path turns that tail into the
        auxiliary of the node where it departs. An auxiliary stays until it is taken: given all
        else its law is the prior's, whether drawn again for each row or not.

        birth="prior": an auxiliary has loadings and a mean. "integrated": it has scores instead,
        loadings and mean are integrated out and drawn once a row has taken it, given that row.
        A row alone lends its tail the scores that it would have there.
        """
        cdef Py_ssize_t n, b, t, i
        self._need_columns()
        for b in range(self.n_leaves):
            self.owner[b] = REGULAR
            if self._fill_column(b) != 0:
                return self._break(PATHS)
        for n in range(-1, self.n_nodes):
            self.auxiliary[n + 1] = -1
        for n in range(-1, self.n_nodes):
            if self._new_auxiliary(n) != 0:
                return self._break(PATHS)
        for i in range(self.n_samples):
            self.choice[i] = i
        draws.shuffle(self._rng, &self.choice[0], self.n_samples)
        for t in range(self.n_samples):
            if self._redraw_path(self.choice[t]) != 0:
                return self._break(PATHS)
        return 0

    cdef int _redraw_path(self, Py_ssize_t i) except -1 nogil:
        """Draw b_i given all other paths. Non-zero: no leaf had a finite weight."""
        cdef Py_ssize_t own = self.branch[i], b, departs = -1, h, node
        cdef bint alone
        self._count_row(own, -1)
        alone = self.leaf_count[own] == 0
        if alone:
            for h in range(self.depth):
                node = self.node_path[self.leaf_node[own], h]
                if self.node_count[node] == 0:
                    break
                departs = node
        for b in range(self._n_leaf_slots):
            self.log_weight[b] = -INFINITY
            if alone and b == own:
                self.log_weight[b] = self._log_path_weight(b, departs)
                if self._integrated:
                    self.log_density[b, i] = self._log_density_of_tail(b, departs, i)
            elif self.owner[b] == REGULAR:
                self.log_weight[b] = self._log_path_weight(b, REGULAR)
            elif self.owner[b] != DEAD and not (alone and self._is_hidden(self.owner[b], departs)):
                self.log_weight[b] = self._log_path_weight(b, self.owner[b])
            if self.log_weight[b] > -INFINITY:
                self.log_weight[b] += self.log_density[b, i]
                if self._fault == KEEPS_OWN_COUNT and b == own and not alone:
                    self.log_weight[b] += log((self.leaf_count[b] + 1.0) / self.leaf_count[b])
        if draws.categorical_from_logs(
            self._rng, &self.log_weight[0], self._n_leaf_slots, &b
        ) != 0:
            self._count_row(own, 1)
            return 1
        if alone and b != own:
            self._make_auxiliary(own, departs)
            if self._integrated and self._fill_column(own) != 0:
                return 1
        self._count_row(b, 1)
        self.branch[i] = b
        self._n_moved += b != own
        if self.owner[b] == REGULAR:
            return 0
        # Loadings before the auxiliaries below them, which share them. A row that has stayed
        # alone keeps its own: they are a draw given the scores that were drawn given them.
        if self._integrated and self._draw_tail(b, self.owner[b], i) != 0:
            return 1
        if self._replace_auxiliary(b) != 0:
            return 1
        return self._fill_column(b) if self._integrated else 0

    cdef bint _is_hidden(self, Py_ssize_t node, Py_ssize_t departs) noexcept nogil:
        """Whether an auxiliary is out of the choice while a row is alone on its tail.

        The tail stands in for that of the node where it departs; its own nodes are empty.
        """
        return node == departs or (node >= 0 and self.node_count[node] == 0)

    cdef double _log_path_weight(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil:
        """Log nCRP predictive of a leaf, a new path below ``departs`` unless that is REGULAR."""
        cdef Py_ssize_t k, h, above, last = self.depth + 1
        cdef double total = 0.0, n_above, n_child
        if departs != REGULAR:
            last = 0 if departs < 0 else self.level[departs]
        for k in range(self.branch_level.shape[0]):
            h = self.branch_level[k]
            if h > last:
                break
            above = -1 if h == 0 else self.node_path[self.leaf_node[b], h - 1]
            n_above = self.n_samples - 1 if above < 0 else self.node_count[above]
            if h == last:
                return total + log(self.alpha[h] / (n_above + self.alpha[h]))
            if h == self.depth:
                n_child = self.leaf_count[b]
            else:
                n_child = self.node_count[self.node_path[self.leaf_node[b], h]]
            total += log(n_child / (n_above + self.alpha[h]))
        return total

    cdef void _count_row(self, Py_ssize_t b, Py_ssize_t change) noexcept nogil:
        cdef Py_ssize_t h
        self.leaf_count[b] += change
        for h in range(self.depth):
            self.node_count[self.node_path[self.leaf_node[b], h]] += change

    cdef void _make_auxiliary(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil:
        """Turn a leaf that has lost its only row into the auxiliary of the node it departs from."""
        cdef Py_ssize_t h, node
        for h in range(self.depth):
            node = self.node_path[self.leaf_node[b], h]
            if self.node_count[node] == 0 and self.auxiliary[node + 1] >= 0:
                self.owner[self.auxiliary[node + 1]] = DEAD
                self.auxiliary[node + 1] = -1
        self.owner[self.auxiliary[departs + 1]] = DEAD
        self.auxiliary[departs + 1] = b
        self.owner[b] = departs

    cdef int _replace_auxiliary(self, Py_ssize_t b) except -1 nogil:
        """An auxiliary has been taken: new ones for its node and for those of its tail."""
        cdef Py_ssize_t h, departs = self.owner[b]
        cdef int failed = 0
        self.owner[b] = REGULAR
        failed |= self._new_auxiliary(departs)
        for h in range(0 if departs < 0 else self.level[departs], self.depth):
            failed |= self._new_auxiliary(self.node_path[self.leaf_node[b], h])
        return failed

    cdef int _new_auxiliary(self, Py_ssize_t node) except -1 nogil:
        """A fresh path below a node, if that may branch. Non-zero: densities failed."""
        cdef Py_ssize_t level = 0 if node < 0 else self.level[node], below = node, b, h, _
        if not self.alpha[level] > 0.0:
            return 0
        for _ in range(level, self.depth):
            below = self._new_node(below)
            self._draw_node(below)
            self.auxiliary[below + 1] = -1
        b = self._new_leaf(below)
        self._draw_leaf(b)
        self.tail_weight[b] = 1.0
        if self._has_tail:
            self.tail_weight[b] = draws.draw_gamma(
                self._rng, 0.5 * self.tail_df[b], 0.5 * self.tail_df[b]
            )
        for h in range(level, self.depth):
            self.tail_score[b, h] = draws.normal(self._rng) / sqrt(
                self.psi[b, h] * self.tail_weight[b]
            )
        self.owner[b] = node
        self.auxiliary[node + 1] = b
        self._need_columns()
        return self._fill_column(b)

    cdef int _need_columns(self) except -1 nogil:
        """Room for the log densities of all leaf slots."""
        if self.log_density.shape[0] < self.leaf_node.shape[0]:
            with gil:
                old = np.asarray(self.log_density)
                room = np.empty((self.leaf_node.shape[0], self.n_samples))
                room[:len(old)] = old
                self.log_density = room
        return 0

    cdef int _fill_column(self, Py_ssize_t b) noexcept nogil:
        """Log density of every row in leaf b."""
        cdef Py_ssize_t g, t, n, k, n_rows
        cdef bint is_tail = self._integrated and self.owner[b] != REGULAR
        if is_tail:
            self._sum_tail(b, self.owner[b])
        for g in range(self.rows.n_patterns):
            n_rows = self.rows.pattern_start[g + 1] - self.rows.pattern_start[g]
            if (self._prepare_tail(b, self.owner[b], g, n_rows) if is_tail
                    else self._prepare(self._law, b, g, n_rows)) != 0:
                return 1
            n = 0
            for t in range(self.rows.pattern_start[g], self.rows.pattern_start[g + 1]):
                self._law.chosen[n] = self.rows.by_pattern[t]
                n += 1
                if n == CHUNK or t + 1 == self.rows.pattern_start[g + 1]:
                    self._law.whiten(n)
                    for k in range(n):
                        self.log_density[b, self._law.chosen[k]] = self._log_density_of(
                            self._law, self._law.square[k]
                        )
                    n = 0
        return 0

    # -- paths born for a row -----------------------------------------------------------------

    cdef void _sum_tail(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil:
        """Precision of y_p under a tail with loadings and mean integrated out, scores and u given.

        Its variance is 1 / (u kappa lambda_p) + 1 / xi_p + sum_j x_j^2 / (phi_jp tau_j).
        """
        cdef Py_ssize_t p, h, node, level = 0 if departs < 0 else self.level[departs]
        for p in range(self.n_features):
            self.tail_precision[p] = (
                1.0 / (self.tail_weight[b] * self.kappa[b] * self.noise[p]) + 1.0 / self.xi[p]
            )
        for h in range(level, self.depth):
            node = self.node_path[self.leaf_node[b], h]
            for p in range(self.n_features):
                self.tail_precision[p] += self.tail_score[b, h] * self.tail_score[b, h] / (
                    self.local[node, p] * self._tau(node)
                )
        for p in range(self.n_features):
            self.tail_precision[p] = 1.0 / self.tail_precision[p]

    cdef int _prepare_tail(
        self, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil:
        """Set up the law of rows under a tail, after ``_sum_tail``: shared loadings, no mean."""
        cdef Py_ssize_t h, level = 0 if departs < 0 else self.level[departs]
        for h in range(level):
            self.tail_psi[h] = self.psi[b, h] * self.tail_weight[b]
        return self._law.prepare(
            g, n_rows, level, &self.loading[0, 0], &self.node_path[self.leaf_node[b], 0],
            &self.zeros[0], &self.tail_psi[0], 1.0, &self.tail_precision[0], INFINITY,
        )

    cdef double _log_density_of_tail(
        self, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t i
    ) noexcept nogil:
        """Log density of a row that is alone on its tail, given fresh scores there.

        They, and u, come from p(u_i, x_i | b_i, y_i, loadings); NaN where that fails.
        """
        cdef Py_ssize_t h, g = self.rows.pattern[i]
        self._law.chosen[0] = i
        if self._prepare(self._law, b, g, 1) != 0:
            return NAN
        self._law.whiten(1)
        self.tail_weight[b] = 1.0
        if self._has_tail:
            self.tail_weight[b] = self._row_precision_given(self._rng, b, i, self._law.square[0])
        for h in range(self.depth):
            self._law.omega[h] += draws.normal(self._rng) / sqrt(self.tail_weight[b])
        self._law.solve(1)
        for h in range(self.depth):
            self.tail_score[b, h] = self._law.omega[h]
        self._sum_tail(b, departs)
        if self._prepare_tail(b, departs, g, 1) != 0:
            return NAN
        self._law.whiten(1)
        return self._law.log_density(self._law.square[0])

    cdef int _draw_tail(self, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t i) noexcept nogil:
        """Shared scores of row i, then loadings and mean of its tail given those of the tail.

        A draw from the prior, corrected by what it misses of the row: y_p is their sum with noise.
        """
        cdef Py_ssize_t h, p, node, g = self.rows.pattern[i]
        cdef Py_ssize_t level = 0 if departs < 0 else self.level[departs]
        cdef double precision, off, inverse, weight = self.tail_weight[b] * self.kappa[b]
        self._law.chosen[0] = i
        self._sum_tail(b, departs)
        if self._prepare_tail(b, departs, g, 1) != 0:
            return 1
        self._law.whiten(1)
        for h in range(level):
            self._law.omega[h] += draws.normal(self._rng)
        self._law.solve(1)
        for p in range(self.n_features):
            self.leaf_mean[b, p] = draws.normal(self._rng) / sqrt(self.xi[p])
            off = self.rows.X[i, p] - self.leaf_mean[b, p]
            off -= draws.normal(self._rng) / sqrt(weight * self.noise[p])
            for h in range(self.depth):
                node = self.node_path[self.leaf_node[b], h]
                if h < level:
                    off -= self._law.omega[h] * self.loading[node, p]
                    continue
                precision = self.local[node, p] * self._tau(node)
                self.loading[node, p] = draws.normal(self._rng) / sqrt(precision)
                off -= self.tail_score[b, h] * self.loading[node, p]
            if not self.rows.is_observed[g, p] or self._fault == BLIND_BIRTH:
                continue
            off *= self.tail_precision[p]
            self.leaf_mean[b, p] += off / self.xi[p]
            for h in range(level, self.depth):
                node = self.node_path[self.leaf_node[b], h]
                inverse = 1.0 / (self.local[node, p] * self._tau(node))
                self.loading[node, p] += off * self.tail_score[b, h] * inverse
        return 0

    # -- densities ----------------------------------------------------------------------------

    cdef int _prepare(
        self, Law law, Py_ssize_t b, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil:
        """Set up the law of a leaf's rows with pattern g. Non-zero: it is degenerate."""
        return law.prepare(
            g, n_rows, self.depth, &self.loading[0, 0], &self.node_path[self.leaf_node[b], 0],
            &self.leaf_mean[b, 0], &self.psi[b, 0], self.kappa[b], &self.noise[0],
            self.tail_df[b],
        )

    cdef int _prepare_density(
        self, Law law, Py_ssize_t b, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil:
        """The same for densities alone, after ``_compute_covariances``: by the smaller matrix."""
        if (
            self._has_few and b < self.n_leaves and self.rows.n_observed[g] < self.depth
            and law.prepare_dense(
                g, &self.covariance[b, 0, 0], &self.leaf_mean[b, 0], self.tail_df[b]
            ) == 0
        ):
            return 0
        return self._prepare(law, b, g, n_rows)

    cdef int _compute_covariances(self) except -1:
        """Omega of all occupied leaves, where rows have fewer entries than there are levels."""
        if not self._has_few:
            return 0
        if self.covariance.shape[0] < self.n_leaves:
            self.covariance = np.empty((2 * self.n_leaves, self.n_features, self.n_features))
        return self._run(COVARIANCES, self.n_leaves)

    cdef void _compute_covariance(self, Py_ssize_t b) noexcept nogil:
        """Upper triangle of D' diag(1 / psi) D + (kappa Lambda)^-1."""
        cdef Py_ssize_t h, p, n_features = self.n_features
        cdef const double* d
        self.covariance[b] = 0.0
        for p in range(n_features):
            self.covariance[b, p, p] = 1.0 / (self.kappa[b] * self.noise[p])
        for h in range(self.depth):
            d = &self.loading[self.node_path[self.leaf_node[b], h], 0]
            for p in range(n_features):
                linalg.axpy(n_features - p, d[p] / self.psi[b, h], d + p,
                            &self.covariance[b, p, p])

    cdef double _log_density_of(self, Law law, double square) noexcept nogil:
        cdef double log_density = law.log_density(square)
        if self._fault == NO_DETERMINANT:
            log_density += 0.5 * law.log_det
        return log_density

    cdef double _row_precision_given(
        self, bitgen_t* rng, Py_ssize_t b, Py_ssize_t i, double square
    ) noexcept nogil:
        """u_i ~ Gamma((df + P_i) / 2, (df + q_i) / 2), P_i its observed entries."""
        cdef double shape = 0.5 * self.tail_df[b]
        if self._fault != SHORT_TAIL:
            shape += 0.5 * self.rows.n_observed[self.rows.pattern[i]]
        return fmax(draws.draw_gamma(rng, shape, 0.5 * (self.tail_df[b] + square)), 1e-300)


def in_order(function, n_items, size):
    """Call function(start, stop) for each block of the items, one after the other."""
    for start in range(0, n_items, size):
        function(start, min(start + size, n_items))
