"""Paths row by row, weights of the branches integrated out.

mathematics/tree_factor_model, section 5.
"""

from libc.math cimport INFINITY, NAN, log, sqrt

import numpy as np

from skbnp.mcmc.chain cimport BROKEN, DONE
from skbnp.numerics cimport rng as draws

from skbnp.numerics.buffers import longer


cdef enum:
    # Owner of a leaf, the node below which it departs if it is an auxiliary; else one of these.
    REGULAR = -2            # it holds rows
    DEAD = -3               # nobody may choose it any more


cdef class CollapsedPaths(Move):
    """Rows one by one, weights integrated out: Neal (2000), algorithm 8, at every node.

    Each occupied node that may branch has an auxiliary, a fresh path down to a leaf with
    parameters from the prior. A row alone on the tail of its path turns that tail into the
    auxiliary of the node where it departs. An auxiliary stays until it is taken: given all
    else its law is the prior's, whether drawn again for each row or not.

    birth="prior": an auxiliary has loadings and a mean. "integrated": it has scores instead,
    loadings and mean are integrated out and drawn once a row has taken it, given that row.
    A row alone lends its tail the scores that it would have there.

    Cost: the densities of all rows in all leaves, O(N B L (P + L)), and for each auxiliary that
    is taken those of all rows in the next.
    """

    NAME = "paths"
    COUNTS = ("paths",)                         # rows whose leaf changed, rows drawn
    BIRTH = Birth

    def __init__(self, State state, LeafLaws laws, birth, bit_generator):
        super().__init__(bit_generator)
        self.state, self.laws = state, laws
        self.law = Law(state.rows, state.max_depth)
        self.birth = self.BIRTH(state, laws, self.law)
        self._integrated = birth == "integrated"
        self.order = np.empty(state.n_samples, dtype=np.intp)
        self.log_density = np.zeros((0, state.n_samples))
        self.owner = self.auxiliary = np.zeros(0, dtype=np.intp)

    cpdef int run(self) except -1:
        cdef int status
        if self.state.hyper.branch_level.shape[0] == 0 or self.state.n_samples < 2:
            return DONE
        with nogil:
            status = self._all_rows()
            self.proposed[0] += self.state.n_samples
            self.state.compress()
        return status

    cdef int _all_rows(self) except -1 nogil:
        cdef Py_ssize_t n, b, t, i
        self._reserve()
        for b in range(self.state.n_leaves):
            self.owner[b] = REGULAR
            if self._fill_column(b) != 0:
                return BROKEN
        for n in range(-1, self.state.n_nodes):
            self.auxiliary[n + 1] = -1
        for n in range(-1, self.state.n_nodes):
            if self._new_auxiliary(n) != 0:
                return BROKEN
        for i in range(self.state.n_samples):
            self.order[i] = i
        draws.shuffle(self.rng, &self.order[0], self.state.n_samples)
        for t in range(self.state.n_samples):
            if self._redraw_path(self.order[t]) != 0:
                return BROKEN
        return DONE

    cdef int _redraw_path(self, Py_ssize_t i) except -1 nogil:
        """Draw b_i given all other paths: (T5.1). Non-zero: no leaf had a finite weight."""
        cdef Py_ssize_t own = self.state.branch[i], b, departs = -1, h, node
        cdef bint alone
        self.state.count_row(own, -1)
        alone = self.state.leaf_count[own] == 0
        if alone:
            for h in range(self.state.depth):
                node = self.state.node_path[self.state.leaf_node[own], h]
                if self.state.node_count[node] == 0:
                    break
                departs = node
        for b in range(self.state.n_leaf_slots):
            self.log_weight[b] = -INFINITY
            if alone and b == own:
                self.log_weight[b] = self._log_path_weight(b, departs)
                if self._integrated:
                    self.log_density[b, i] = self.birth.log_density_alone(self.rng, b, departs, i)
            elif self.owner[b] == REGULAR:
                self.log_weight[b] = self.log_weight_in_use(b, own)
            elif self.owner[b] != DEAD and not (alone and self._is_hidden(self.owner[b], departs)):
                self.log_weight[b] = self._log_path_weight(b, self.owner[b])
            if self.log_weight[b] > -INFINITY:
                self.log_weight[b] += self.log_density[b, i]
        if draws.categorical_from_logs(
            self.rng, &self.log_weight[0], self.state.n_leaf_slots, &b
        ) != 0:
            self.state.count_row(own, 1)
            return 1
        if alone and b != own:
            self._make_auxiliary(own, departs)
            if self._integrated and self._fill_column(own) != 0:
                return 1
        self.state.count_row(b, 1)
        self.state.branch[i] = b
        self.accepted[0] += b != own
        if self.owner[b] == REGULAR:
            return 0
        # Loadings before the auxiliaries below them, which share them. A row that has stayed
        # alone keeps its own: they are a draw given the scores that were drawn given them.
        if self._integrated and self.birth.draw(self.rng, b, self.owner[b], i) != 0:
            return 1
        if self._replace_auxiliary(b) != 0:
            return 1
        return self._fill_column(b) if self._integrated else 0

    cdef double log_weight_in_use(self, Py_ssize_t b, Py_ssize_t own) noexcept nogil:
        """Of a leaf with other rows than this, whose ``own`` leaf was one of them."""
        return self._log_path_weight(b, REGULAR)

    cdef bint _is_hidden(self, Py_ssize_t node, Py_ssize_t departs) noexcept nogil:
        """Whether an auxiliary is out of the choice while a row is alone on its tail.

        The tail stands in for that of the node where it departs; its own nodes are empty.
        """
        return node == departs or (node >= 0 and self.state.node_count[node] == 0)

    cdef double _log_path_weight(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil:
        """Log nCRP predictive of a leaf, a new path below ``departs`` unless that is REGULAR."""
        cdef Py_ssize_t k, h, above, last = self.state.depth + 1
        cdef double total = 0.0, n_above, n_child, alpha
        if departs != REGULAR:
            last = 0 if departs < 0 else self.state.level[departs]
        for k in range(self.state.hyper.branch_level.shape[0]):
            h = self.state.hyper.branch_level[k]
            if h > last:
                break
            alpha = self.state.concentration[h]
            above = -1 if h == 0 else self.state.node_path[self.state.leaf_node[b], h - 1]
            n_above = self.state.n_samples - 1 if above < 0 else self.state.node_count[above]
            if h == last:
                return total + log(alpha / (n_above + alpha))
            if h == self.state.depth:
                n_child = self.state.leaf_count[b]
            else:
                n_child = self.state.node_count[self.state.node_path[self.state.leaf_node[b], h]]
            total += log(n_child / (n_above + alpha))
        return total

    # -- auxiliaries --------------------------------------------------------------------------

    cdef void _make_auxiliary(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil:
        """Turn a leaf that has lost its only row into the auxiliary of the node it departs from."""
        cdef Py_ssize_t h, node
        for h in range(self.state.depth):
            node = self.state.node_path[self.state.leaf_node[b], h]
            if self.state.node_count[node] == 0 and self.auxiliary[node + 1] >= 0:
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
        for h in range(0 if departs < 0 else self.state.level[departs], self.state.depth):
            failed |= self._new_auxiliary(self.state.node_path[self.state.leaf_node[b], h])
        return failed

    cdef int _new_auxiliary(self, Py_ssize_t node) except -1 nogil:
        """A fresh path below a node, if that may branch. Non-zero: densities failed."""
        cdef Py_ssize_t level = 0 if node < 0 else self.state.level[node], below = node, b, _
        if not self.state.concentration[level] > 0.0:
            return 0
        for _ in range(level, self.state.depth):
            below = self.state.add_node(below)
            self.state.draw_node(self.rng, below)
            self._reserve()
            self.auxiliary[below + 1] = -1
        b = self.state.add_leaf(below)
        self.state.draw_leaf(self.rng, b)
        self._reserve()
        self.birth.draw_scores(self.rng, b, level)
        self.owner[b] = node
        self.auxiliary[node + 1] = b
        return self._fill_column(b)

    # -- densities ----------------------------------------------------------------------------

    cdef int _fill_column(self, Py_ssize_t b) noexcept nogil:
        """Log density of every row in leaf b."""
        cdef Py_ssize_t g, n_rows
        if not self._integrated or self.owner[b] == REGULAR:
            return self.laws.fill_densities(self.law, b, &self.log_density[b, 0])
        self.birth.sum_variances(b, self.owner[b])
        for g in range(self.state.rows.n_patterns):
            n_rows = self.state.rows.pattern_start[g + 1] - self.state.rows.pattern_start[g]
            if self.birth.prepare(b, self.owner[b], g, n_rows) != 0:
                return 1
            self.laws.fill_pattern(self.law, g, &self.log_density[b, 0])
        return 0

    cdef int _reserve(self) except -1 nogil:
        """Room for all slots of the state; what is there stays."""
        if (self.auxiliary.shape[0] < self.state.parent.shape[0] + 1
                or self.owner.shape[0] < self.state.leaf_node.shape[0]):
            with gil:
                self._resize(self.state.parent.shape[0], self.state.leaf_node.shape[0])
        return 0

    def _resize(self, n_nodes, n_leaves):
        self.auxiliary = longer(self.auxiliary, (n_nodes + 1,))
        self.owner = longer(self.owner, (n_leaves,))
        self.log_weight = np.empty(n_leaves)
        room = np.empty((n_leaves, self.state.n_samples))
        room[:self.log_density.shape[0]] = self.log_density
        self.log_density = room
        self.birth.resize(n_leaves)


cdef class Birth:
    """New paths that have scores on their tail, but no loadings and no mean yet: (T5.4), (T5.5)."""

    def __init__(self, State state, LeafLaws laws, Law law):
        self.state, self.laws, self.law = state, laws, law
        self.score, self.row_precision = np.zeros((0, state.max_depth)), np.zeros(0)
        self.precision, self.no_mean = np.empty(state.n_features), np.zeros(state.n_features)
        self.shared_precision = np.empty(state.max_depth)

    def resize(self, n_leaves):
        """Room for so many leaves; what is there stays."""
        self.row_precision = longer(self.row_precision, (n_leaves,))
        self.score = longer(self.score, (n_leaves, self.state.max_depth))

    cdef Py_ssize_t _first_level(self, Py_ssize_t departs) noexcept nogil:
        """Levels that a tail shares with others, those above it."""
        return 0 if departs < 0 else self.state.level[departs]

    cdef void draw_scores(self, bitgen_t* rng, Py_ssize_t b, Py_ssize_t level) noexcept nogil:
        """u and the scores below a level, from the prior."""
        cdef Py_ssize_t h
        self.row_precision[b] = 1.0
        if self.state.hyper.has_tail:
            self.row_precision[b] = draws.draw_gamma(
                rng, 0.5 * self.state.tail_df[b], 0.5 * self.state.tail_df[b]
            )
        for h in range(level, self.state.depth):
            self.score[b, h] = draws.normal(rng) / sqrt(
                self.state.score_precision[b, h] * self.row_precision[b]
            )

    cdef void sum_variances(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil:
        """1 / v_p of (T5.4): precision of y_p given scores and u, its loadings integrated out."""
        cdef Py_ssize_t p, h, node
        cdef double weight = self.row_precision[b] * self.state.noise_scale[b]
        for p in range(self.state.n_features):
            self.precision[p] = (
                1.0 / (weight * self.state.noise_precision[p]) + 1.0 / self.state.mean_precision[p]
            )
        for h in range(self._first_level(departs), self.state.depth):
            node = self.state.node_path[self.state.leaf_node[b], h]
            for p in range(self.state.n_features):
                self.precision[p] += self.score[b, h] * self.score[b, h] / (
                    self.state.local_precision[node, p] * self.state.tau(node)
                )
        for p in range(self.state.n_features):
            self.precision[p] = 1.0 / self.precision[p]

    cdef int prepare(
        self, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil:
        """Set up the law of rows under a tail, after ``sum_variances``: shared loadings alone."""
        cdef Py_ssize_t h, level = self._first_level(departs)
        for h in range(level):
            self.shared_precision[h] = self.state.score_precision[b, h] * self.row_precision[b]
        return self.law.prepare(
            g, n_rows, level, &self.state.loadings[0, 0],
            &self.state.node_path[self.state.leaf_node[b], 0],
            &self.no_mean[0], &self.shared_precision[0], 1.0, &self.precision[0], INFINITY,
        )

    cdef double log_density_alone(
        self, bitgen_t* rng, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t i
    ) noexcept nogil:
        """Log density of a row that is alone on its tail, given fresh scores there.

        They, and u, come from p(u_i, x_i | b_i, y_i, loadings); NaN where that fails.
        """
        cdef Py_ssize_t h, g = self.state.rows.pattern[i]
        self.law.chosen[0] = i
        if self.laws.prepare(self.law, b, g, 1) != 0:
            return NAN
        self.law.whiten(1)
        self.row_precision[b] = 1.0
        if self.state.hyper.has_tail:
            self.row_precision[b] = self.laws.draw_row_precision(rng, b, i, self.law.square[0])
        for h in range(self.state.depth):
            self.law.omega[h] += draws.normal(rng) / sqrt(self.row_precision[b])
        self.law.solve(1)
        for h in range(self.state.depth):
            self.score[b, h] = self.law.omega[h]
        self.sum_variances(b, departs)
        if self.prepare(b, departs, g, 1) != 0:
            return NAN
        self.law.whiten(1)
        return self.law.log_density(self.law.square[0])

    cdef int draw(
        self, bitgen_t* rng, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t i
    ) noexcept nogil:
        """Shared scores of row i, then loadings and mean of its tail given those of the tail.

        A draw from the prior, corrected by what it misses of the row: (T5.5).
        """
        cdef Py_ssize_t h, p, node, g = self.state.rows.pattern[i]
        cdef Py_ssize_t level = self._first_level(departs)
        cdef double weight = self.row_precision[b] * self.state.noise_scale[b]
        cdef double precision, off, inverse
        self.law.chosen[0] = i
        self.sum_variances(b, departs)
        if self.prepare(b, departs, g, 1) != 0:
            return 1
        self.law.whiten(1)
        for h in range(level):
            self.law.omega[h] += draws.normal(rng)
        self.law.solve(1)
        for p in range(self.state.n_features):
            self.state.leaf_mean[b, p] = draws.normal(rng) / sqrt(self.state.mean_precision[p])
            off = self.state.rows.X[i, p] - self.state.leaf_mean[b, p]
            off -= draws.normal(rng) / sqrt(weight * self.state.noise_precision[p])
            for h in range(self.state.depth):
                node = self.state.node_path[self.state.leaf_node[b], h]
                if h < level:
                    off -= self.law.omega[h] * self.state.loadings[node, p]
                    continue
                precision = self.state.local_precision[node, p] * self.state.tau(node)
                self.state.loadings[node, p] = draws.normal(rng) / sqrt(precision)
                off -= self.score[b, h] * self.state.loadings[node, p]
            if not self.sees(g, p):
                continue
            off *= self.precision[p]
            self.state.leaf_mean[b, p] += off / self.state.mean_precision[p]
            for h in range(level, self.state.depth):
                node = self.state.node_path[self.state.leaf_node[b], h]
                inverse = 1.0 / (self.state.local_precision[node, p] * self.state.tau(node))
                self.state.loadings[node, p] += off * self.score[b, h] * inverse
        return 0

    cdef bint sees(self, Py_ssize_t g, Py_ssize_t p) noexcept nogil:
        """Whether a row with pattern g says something of the loadings of feature p."""
        return self.state.rows.is_observed[g, p]
