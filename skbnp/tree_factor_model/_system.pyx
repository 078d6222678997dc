"""The linear system of one feature: loadings of all nodes and means of all leaves.

theta_p ~ N(A_p^-1 lambda_p Z'W y_p, A_p^-1), A_p = diag(prior) + lambda_p Z'WZ: equation (T9.2),
with Z the scores at the path nodes and an indicator of the leaf, and W the rows' noise scales. An
unknown is coupled to its ancestors alone. Leaf means first, then nodes from the deepest up,
elimination keeps it so: the factor has no fill-in, and costs O(K L^2) instead of (K + B)^3 / 3.
"""

from libc.math cimport INFINITY, sqrt

import numpy as np

from skbnp.numerics cimport rng as draws


cdef class System:
    """One feature's system: for each unknown the couplings to its ancestors, its pivot last."""

    def __init__(self, State tree):
        self.tree = tree
        self.node_row = np.empty((0, tree.max_depth))
        self.leaf_row = np.empty((0, tree.max_depth + 1))
        self.gram = np.empty((tree.max_depth + 1) ** 2)

    cdef int reserve(self) except -1 nogil:
        """Room for the tree as it is."""
        if (self.node_row.shape[0] < self.tree.n_nodes
                or self.leaf_row.shape[0] < self.tree.n_leaves):
            with gil:
                n, b = 2 * self.tree.n_nodes, 2 * self.tree.n_leaves
                depth = self.tree.max_depth
                self.node_row, self.leaf_row = np.empty((n, depth)), np.empty((b, depth + 1))
                self.node_gram, self.leaf_gram = np.empty((n, depth)), np.empty((b, depth + 1))
                self.node_rhs, self.leaf_rhs = np.empty(n), np.empty(b)
        return 0

    cdef int begin(
        self, Py_ssize_t p, const double* node_gram, const double* leaf_gram,
        const double[:, ::1] node_side, const double[:, ::1] leaf_side,
    ) except -1 nogil:
        """A_p and its right-hand side, from Z'WZ and Z'W y."""
        cdef Py_ssize_t n, b, h, width = self.tree.max_depth
        cdef double precision = self.tree.noise_precision[p]
        self.reserve()
        for n in range(self.tree.n_nodes):
            for h in range(self.tree.level[n]):
                self.node_row[n, h] = precision * node_gram[n * width + h]
            self.node_row[n, self.tree.level[n] - 1] += (
                self.tree.local_precision[n, p] * self.tree.tau(n)
            )
            self.node_rhs[n] = precision * node_side[n, p]
        for b in range(self.tree.n_leaves):
            for h in range(self.tree.depth + 1):
                self.leaf_row[b, h] = precision * leaf_gram[b * (width + 1) + h]
            self.leaf_row[b, self.tree.depth] += self.tree.mean_precision[p]
            self.leaf_rhs[b] = precision * leaf_side[b, p]
        return 0

    cdef int eliminate(self) noexcept nogil:
        """Non-zero: not positive definite."""
        cdef Py_ssize_t b, n
        for b in range(self.tree.n_leaves):
            if self._eliminate_row(
                &self.leaf_row[b, 0], self.tree.depth, self.leaf_rhs[b], self.tree.leaf_node[b]
            ) != 0:
                return 1
        for n in range(self.tree.n_nodes - 1, -1, -1):
            if self._eliminate_row(
                &self.node_row[n, 0], self.tree.level[n] - 1, self.node_rhs[n], self.tree.parent[n]
            ) != 0:
                return 1
        return 0

    cdef int _eliminate_row(
        self, const double* row, Py_ssize_t n_above, double rhs, Py_ssize_t above
    ) noexcept nogil:
        """Take one unknown out: its couplings are row[:n_above], its pivot is row[n_above]."""
        cdef Py_ssize_t j, k, node
        cdef double share
        cdef double* target
        if not 0.0 < row[n_above] < INFINITY:
            return 1
        for j in range(n_above):
            share = row[j] / row[n_above]
            node = self.tree.node_path[above, j]
            target = &self.node_row[node, 0]
            for k in range(j + 1):
                target[k] -= share * row[k]
            self.node_rhs[node] -= share * rhs
        return 0

    cdef void substitute(self, Py_ssize_t p, bitgen_t* rng) noexcept nogil:
        """Draw from the roots down: each unknown is normal given its ancestors."""
        cdef Py_ssize_t n, b, h, last
        cdef double total
        for n in range(self.tree.n_nodes):
            last = self.tree.level[n] - 1
            total = self.node_rhs[n]
            for h in range(last):
                total -= self.node_row[n, h] * self.tree.loadings[self.tree.node_path[n, h], p]
            self.tree.loadings[n, p] = normal_given(rng, total, self.node_row[n, last])
        for b in range(self.tree.n_leaves):
            total = self.leaf_rhs[b]
            for h in range(self.tree.depth):
                total -= self.leaf_row[b, h] * self.tree.loadings[
                    self.tree.node_path[self.tree.leaf_node[b], h], p
                ]
            self.tree.leaf_mean[b, p] = normal_given(rng, total, self.leaf_row[b, self.tree.depth])


cdef double normal_given(bitgen_t* rng, double rhs, double precision) noexcept nogil:
    return rhs / precision + draws.normal(rng) / sqrt(precision)
