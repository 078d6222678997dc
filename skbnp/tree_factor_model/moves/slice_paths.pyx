"""Paths of all rows at once, by slices: mathematics/tree_factor_model, section 5."""

from libc.math cimport INFINITY, expm1, fmin, log

import numpy as np

from skbnp.mcmc.chain cimport BROKEN, DONE
from skbnp.numerics cimport rng as draws
from skbnp.numerics.vector_math cimport log_all
from skbnp.tree_factor_model._rows cimport CHUNK

from skbnp.numerics.buffers import longer


cdef enum:
    BLOCK = 2048            # rows that choose their paths together
    # What a slice may reach for, far beyond any use: a concentration gone astray would not end.
    MAX_STICKS = 1_000_000
    MAX_FRESH_NODES = 100_000

# Beyond this lead no Gumbel noise of a double reaches: -log(-log(1 - 2^-54)) = 37.4.
cdef double HOPELESS = 40.0


cdef class SlicePaths(Move):
    """Weights given the paths, a slice under each row's weight, paths given the slices.

    Each is a draw from its conditional, (T5.2) to (T5.3); with weights and slices forgotten, paths
    are drawn given parameters and, of scores and row precisions, nothing.
    Cost: the densities of rows in leaves with masses above their slices, O(N B L (P + L)) at most.
    Hazard: a row that no leaf suits, as the largest of its densities is not finite.
    """

    NAME = "paths"
    COUNTS = ("paths",)                         # rows whose leaf changed, rows drawn

    def __init__(self, State state, LeafLaws laws, Pool pool, bit_generator):
        super().__init__(bit_generator)
        self.state, self.laws, self.pool = state, laws, pool
        self.masses = Masses(state)
        self.slices = Slices(state, self.masses)
        self.offers = Offers(state, laws, self.masses, self.slices)

    cpdef int run(self) except -1:
        cdef Py_ssize_t n_blocks = (self.state.n_samples + BLOCK - 1) // BLOCK
        cdef int status = DONE
        if self.state.hyper.branch_level.shape[0] == 0 or self.state.n_samples < 2:
            return DONE
        self.slices.key = self.offers.key = draws.bits(self.rng)
        with nogil:
            self.masses.weigh_children(self.rng)
        self.pool.run(self.slices, n_blocks)
        with nogil:
            status |= self.grow_fresh_paths(self.slices.least(n_blocks))
        self.laws.compute_covariances()
        status |= self.pool.run(self.offers, n_blocks)
        with nogil:
            status |= self._take(self.offers.choice)
            self.state.compress()
        return status

    cdef int grow_fresh_paths(self, double least) except -1 nogil:
        """Offer new paths as well, as far as the least slice reaches."""
        return self.masses.grow_fresh_paths(self.rng, least)

    cdef int _take(self, Py_ssize_t[::1] choice) noexcept nogil:
        cdef Py_ssize_t i
        self.proposed[0] += self.state.n_samples
        for i in range(self.state.n_samples):
            if choice[i] < 0:
                return BROKEN
            self.accepted[0] += choice[i] != self.state.branch[i]
        self.state.branch[:] = choice
        return DONE


cdef class Masses:
    """What all leaves, fresh ones included, weigh in logarithms."""

    def __init__(self, State state):
        self.state = state
        self.leaf_log_mass = self.node_log_mass = self.node_gamma = np.zeros(0)
        self.node_rest = self.node_total = np.zeros(0)
        self.needed = np.zeros(0, dtype=np.uint8)

    cdef int _reserve(self) except -1 nogil:
        """Room for all slots of the state; what leaves weigh stays."""
        if (self.needed.shape[0] < self.state.parent.shape[0]
                or self.leaf_log_mass.shape[0] < self.state.leaf_node.shape[0]):
            with gil:
                self._resize(self.state.parent.shape[0], self.state.leaf_node.shape[0])
        return 0

    def _resize(self, n_nodes, n_leaves):
        self.leaf_log_mass = longer(self.leaf_log_mass, (n_leaves,))
        self.node_log_mass = longer(self.node_log_mass, (n_nodes + 1,))
        self.node_gamma = longer(self.node_gamma, (n_nodes + 1,))
        self.node_rest = longer(self.node_rest, (n_nodes + 1,))
        self.node_total = longer(self.node_total, (n_nodes + 1,))
        self.needed = longer(self.needed, (n_nodes,))

    cdef int weigh_children(self, bitgen_t* rng) except -1 nogil:
        """Draw the weights of all children given their counts: (T5.2)."""
        cdef Py_ssize_t n, b, above
        cdef double alpha
        self._reserve()
        for n in range(-1, self.state.n_nodes):
            alpha = self.state.concentration[0 if n < 0 else self.state.level[n]]
            self.node_rest[n + 1] = draws.gamma(rng, alpha) if alpha > 0.0 else 0.0
            self.node_total[n + 1] = self.node_rest[n + 1]
        for n in range(self.state.n_nodes):
            self.node_gamma[n + 1] = 1.0
            if self.state.concentration[self.state.level[n] - 1] > 0.0:
                self.node_gamma[n + 1] = draws.gamma(rng, self.state.node_count[n])
            self.node_total[self.state.parent[n] + 1] += self.node_gamma[n + 1]
        for b in range(self.state.n_leaves):
            self.leaf_log_mass[b] = 1.0
            if self.state.concentration[self.state.depth] > 0.0:
                self.leaf_log_mass[b] = draws.gamma(rng, self.state.leaf_count[b])
            self.node_total[self.state.leaf_node[b] + 1] += self.leaf_log_mass[b]
        self.node_log_mass[0] = 0.0
        for n in range(self.state.n_nodes):
            above = self.state.parent[n] + 1
            self.node_log_mass[n + 1] = self.node_log_mass[above] + log(
                self.node_gamma[n + 1] / self.node_total[above]
            )
        for b in range(self.state.n_leaves):
            above = self.state.leaf_node[b] + 1
            self.leaf_log_mass[b] = self.node_log_mass[above] + log(
                self.leaf_log_mass[b] / self.node_total[above]
            )
        return 0

    cdef int grow_fresh_paths(self, bitgen_t* rng, double least) except -1 nogil:
        """The unoccupied part of the tree as far as a slice reaches into it.

        Masses first, then parameters from the prior where a leaf needs them.
        """
        cdef Py_ssize_t n, b, h, n_nodes = self.state.n_nodes, n_leaves = self.state.n_leaves
        cdef int status = DONE
        self.least, self.n_sticks = least, 0
        for n in range(-1, n_nodes):
            h = 0 if n < 0 else self.state.level[n]
            if self.state.concentration[h] > 0.0:
                status |= self._break_sticks(rng, n, h, self.node_log_mass[n + 1] + log(
                    self.node_rest[n + 1] / self.node_total[n + 1]
                ))
        self._reserve()
        for n in range(n_nodes, self.state.n_node_slots):
            self.needed[n] = 0
        for b in range(n_leaves, self.state.n_leaf_slots):
            for h in range(self.state.depth):
                self.needed[self.state.node_path[self.state.leaf_node[b], h]] = 1
        for n in range(n_nodes, self.state.n_node_slots):
            if self.needed[n]:
                self.state.draw_node(rng, n)
        for b in range(n_leaves, self.state.n_leaf_slots):
            self.state.draw_leaf(rng, b)
        return status

    cdef int _break_sticks(
        self, bitgen_t* rng, Py_ssize_t node, Py_ssize_t level, double log_mass
    ) except -1 nogil:
        """Fresh children of a node share a mass by sticks v ~ Beta(1, alpha)."""
        cdef double log_left, log_child
        cdef int status = DONE
        while log_mass > self.least and status == DONE:
            self.n_sticks += 1
            if (self.n_sticks > MAX_STICKS
                    or self.state.n_node_slots > self.state.n_nodes + MAX_FRESH_NODES):
                return BROKEN
            log_left = log(draws.uniform(rng)) / self.state.concentration[level]
            log_child = log_mass + log(-expm1(log_left))
            log_mass += log_left
            if log_child > self.least:
                status = self._grow(rng, node, level, log_child)
        return status

    cdef int _grow(
        self, bitgen_t* rng, Py_ssize_t node, Py_ssize_t level, double log_mass
    ) except -1 nogil:
        """A fresh child of a node, and its own children."""
        if level == self.state.depth:
            node = self.state.add_leaf(node)
            self._reserve()
            self.leaf_log_mass[node] = log_mass
            return DONE
        node = self.state.add_node(node)
        if self.state.concentration[level + 1] > 0.0:
            return self._break_sticks(rng, node, level + 1, log_mass)
        return self._grow(rng, node, level + 1, log_mass)


cdef class Slices(Work):
    """A slice under the weight of each row of block k."""

    def __init__(self, State state, Masses masses):
        self.state, self.masses = state, masses
        self.log_slice = np.empty(state.n_samples)
        self.block_least = np.empty(state.n_samples // BLOCK + 1)

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef double uniforms[2]
        cdef double least = INFINITY
        cdef Py_ssize_t i
        for i in range(k * BLOCK, min((k + 1) * BLOCK, self.state.n_samples)):
            draws.philox_uniforms(self.key, 0, i, uniforms)
            self.log_slice[i] = self.masses.leaf_log_mass[self.state.branch[i]] + log(uniforms[0])
            least = fmin(least, self.log_slice[i])
        self.block_least[k] = least
        return 0

    cdef double least(self, Py_ssize_t n_blocks) noexcept nogil:
        cdef double least = INFINITY
        cdef Py_ssize_t k
        for k in range(n_blocks):
            least = fmin(least, self.block_least[k])
        return least


cdef class Offers(Work):
    """The rows of block k, by pattern, choose among the leaves with masses above slices: (T5.3)."""

    def __init__(self, State state, LeafLaws laws, Masses masses, Slices slices):
        self.state, self.laws, self.masses, self.slices = state, laws, masses, slices
        self.best = np.empty(state.n_samples)
        self.choice = np.empty(state.n_samples, dtype=np.intp)

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef const Py_ssize_t* row = &self.state.rows.by_pattern[0]
        cdef Py_ssize_t b, g, t, i, n, end
        cdef Py_ssize_t start = k * BLOCK, stop = min(start + BLOCK, self.state.n_samples)
        for t in range(start, stop):
            self.best[row[t]] = -INFINITY
            self.choice[row[t]] = -1
        for b in range(self.state.n_leaf_slots):
            t = start
            while t < stop:
                g = self.state.rows.pattern[row[t]]
                end = min(stop, self.state.rows.pattern_start[g + 1])
                n = 0
                for i in range(t, end):
                    n += self._is_offered(b, row[i])
                if n > 0 and self.laws.prepare_density(scratch.law, b, g, n) != 0:
                    return self.fail()
                n = 0
                while t < end:
                    i = row[t]
                    t += 1
                    if self._is_offered(b, i):
                        scratch.law.chosen[n] = i
                        n += 1
                    if n == CHUNK or (n > 0 and t == end):
                        scratch.law.whiten(n)
                        self._offer(scratch.law, b, n)
                        n = 0
        return 0

    cdef bint _is_offered(self, Py_ssize_t b, Py_ssize_t i) noexcept nogil:
        # A row's own leaf always is, whatever the logarithms round to.
        return (self.slices.log_slice[i] < self.masses.leaf_log_mass[b]
                or self.state.branch[i] == b)

    cdef void _offer(self, Law law, Py_ssize_t b, Py_ssize_t n) noexcept nogil:
        """Keep the leaf with the largest log density plus Gumbel noise: a categorical draw.

        The noise depends on row and leaf alone, whichever order they are visited in.
        """
        cdef double uniforms[2]
        cdef double* value = &law.square[0]
        cdef double* noise = &law.other[0]
        cdef Py_ssize_t t, i, m = 0
        for t in range(n):
            i = law.chosen[t]
            value[m] = self.laws.log_density(law, value[t])
            if value[m] + HOPELESS < self.best[i]:
                continue
            draws.philox_uniforms(self.key, 1 + b, i, uniforms)
            law.chosen[m], noise[m] = i, uniforms[0]
            m += 1
        log_all(m, noise)
        for t in range(m):
            noise[t] = -noise[t]
        log_all(m, noise)
        for t in range(m):
            i = law.chosen[t]
            if value[t] - noise[t] > self.best[i]:
                self.best[i] = value[t] - noise[t]
                self.choice[i] = b
