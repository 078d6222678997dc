"""Concentrations of the branching levels, the tree given.

mathematics/tree_factor_model, section 11.
"""

import numpy as np

from skbnp.mcmc.chain cimport DONE, Move
from skbnp.processes cimport ncrp
from skbnp.tree_factor_model._state cimport State


cdef class Concentrations(Move):
    """alpha of each branching level given the tree, (T11.1): processes.ncrp. O(K + B) a level."""

    NAME = "concentration"

    cdef:
        State state
        # Of the nodes of one level: rows, children; and where each node of the tree is there.
        Py_ssize_t[::1] n_rows, n_children, place    # (n_nodes + 1,), of ``place`` n + 1

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state, self.place = state, np.zeros(0, dtype=np.intp)

    cpdef int run(self) except -1:
        cdef State state = self.state
        cdef Py_ssize_t k, h, n_nodes
        if not state.hyper.sample_concentration:
            return DONE
        if self.place.shape[0] < state.n_nodes + 1:
            self.n_rows, self.n_children, self.place = np.zeros((3, 2 * state.n_nodes + 1), np.intp)
        with nogil:
            for k in range(state.hyper.branch_level.shape[0]):
                h = state.hyper.branch_level[k]
                n_nodes = self._count_level(h)
                state.concentration[h] = ncrp.draw_concentration(
                    self.rng, state.concentration[h], &self.n_rows[0], &self.n_children[0], n_nodes,
                    state.hyper.concentration_shape, state.hyper.concentration_rate[k],
                )
        return DONE

    cdef Py_ssize_t _count_level(self, Py_ssize_t h) noexcept nogil:
        """List rows and children of the nodes of a level; returns how many they are."""
        cdef Py_ssize_t n, n_above = 0
        for n in range(-1, self.state.n_nodes):
            if (0 if n < 0 else self.state.level[n]) == h:
                self.place[n + 1] = n_above
                self.n_rows[n_above] = self.state.n_samples if n < 0 else self.state.node_count[n]
                self.n_children[n_above] = 0
                n_above += 1
        if h < self.state.depth:
            for n in range(self.state.n_nodes):
                if self.state.level[n] == h + 1:
                    self.n_children[self.place[self.state.parent[n] + 1]] += 1
        else:
            for n in range(self.state.n_leaves):
                self.n_children[self.place[self.state.leaf_node[n] + 1]] += 1
        return n_above
