"""Loadings of all nodes and means of all leaves, given the scores.

mathematics/tree_factor_model, section 9.
"""


import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.tree_factor_model._rows cimport CHUNK


cdef class Loadings(Move):
    """psi given the scores, (T9.1), then (D_.p, M_.p) jointly, feature by feature, (T9.2).

    Cost: O(P K L^2), and O(N_p L^2) for every feature with holes. Hazard: a pivot that rounding
    has made negative.
    """

    NAME = "loadings"
    FEATURES = Features

    def __init__(self, State state, Pool pool, Products products, bit_generator):
        super().__init__(bit_generator)
        self.state, self.pool, self.products = state, pool, products
        self.features = self.FEATURES(state, products)

    cpdef int run(self) except -1:
        self.products.need()
        self.features.reserve()
        with nogil:
            self.features.add_products()
            self._draw_score_precisions()
        self.features.key = draws.bits(self.rng)
        return self.pool.run(self.features, self.state.n_features)

    cdef void _draw_score_precisions(self) noexcept nogil:
        """psi_bl ~ Gamma(a + N_b / 2, a + sum u x_il^2 / 2): (T9.1)."""
        cdef Py_ssize_t b, h, k, r = 0, last, width = self.state.depth + 1
        cdef double total
        if not self.state.hyper.has_score_precision:
            return
        for b in range(self.state.n_leaves):
            last = r
            while last < self.state.n_pieces and self.state.piece_leaf[last] == b:
                last += 1
            for h in range(self.state.depth):
                total = 0.0
                for k in range(r, last):
                    total += self.products.gram[k, h * width + h]
                self.state.score_precision[b, h] = draws.draw_gamma(
                    self.rng, self.state.hyper.score_shape + 0.5 * self.state.leaf_count[b],
                    self.state.hyper.score_shape + 0.5 * total,
                )
            r = last


cdef class Features(Work):
    """Loadings and leaf means of feature k."""

    def __init__(self, State state, Products products):
        self.state, self.products = state, products
        self.node_gram = self.node_side = self.leaf_gram = self.leaf_side = np.zeros((0, 0))

    cdef int reserve(self) except -1:
        """Room for the tree as it is."""
        cdef State state = self.state
        if self.node_gram.shape[0] < state.n_nodes:
            n = 2 * state.n_nodes
            self.node_gram = np.empty((n, state.max_depth))
            self.node_side = np.empty((n, state.n_features))
        if self.leaf_gram.shape[0] < state.n_leaves:
            n = 2 * state.n_leaves
            self.leaf_gram = np.empty((n, state.max_depth + 1))
            self.leaf_side = np.empty((n, state.n_features))
        return 0

    cdef void add_products(self) noexcept nogil:
        """Z'WZ and Z'W y of all rows, from the products of the pieces."""
        cdef Py_ssize_t r, b, h, depth = self.state.depth, n_features = self.state.n_features
        cdef double w
        cdef const double* side
        self.node_side[:self.state.n_nodes] = 0.0
        self.leaf_side[:self.state.n_leaves] = 0.0
        self._clear_grams(&self.node_gram[0, 0], &self.leaf_gram[0, 0])
        for r in range(self.state.n_pieces):
            b = self.state.piece_leaf[r]
            w = self.weight(b)
            side = &self.products.side[r, 0]
            for h in range(depth):
                linalg.axpy(n_features, w, side + h * n_features,
                            &self.node_side[self.state.node_path[self.state.leaf_node[b], h], 0])
            linalg.axpy(n_features, w, side + depth * n_features, &self.leaf_side[b, 0])
            self._add_gram(b, &self.products.gram[r, 0], &self.node_gram[0, 0],
                           &self.leaf_gram[0, 0])

    cdef double weight(self, Py_ssize_t b) noexcept nogil:
        """Of the rows of a leaf, their own u apart."""
        return self.state.noise_scale[b]

    cdef void _clear_grams(self, double* node_gram, double* leaf_gram) noexcept nogil:
        cdef Py_ssize_t n
        for n in range(self.state.n_nodes * self.state.max_depth):
            node_gram[n] = 0.0
        for n in range(self.state.n_leaves * (self.state.max_depth + 1)):
            leaf_gram[n] = 0.0

    cdef void _add_gram(
        self, Py_ssize_t b, const double* gram, double* node_gram, double* leaf_gram
    ) noexcept nogil:
        """Add kappa_b sum u z z' of rows of leaf b where the tree holds it.

        Row n of ``node_gram`` has the products with the nodes of n's path, row b of ``leaf_gram``
        the sums over the leaf of its path's scores and, last, of the weights.
        """
        cdef Py_ssize_t h, k, depth = self.state.depth, width = self.state.max_depth
        cdef double w = self.weight(b)
        cdef double* row
        for h in range(depth):
            row = &node_gram[self.state.node_path[self.state.leaf_node[b], h] * width]
            for k in range(h + 1):
                row[k] += w * gram[h * (depth + 1) + k]
        row = &leaf_gram[b * (width + 1)]
        for k in range(depth + 1):
            row[k] += w * gram[depth * (depth + 1) + k]

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef draws.RowStream stream
        self.begin(scratch, k)
        if self.eliminate(scratch.system) != 0:
            return self.fail()
        draws.start_row_stream(&stream, self.key, 0, k)
        scratch.system.substitute(k, &stream.rng)
        return 0

    cdef int eliminate(self, System system) noexcept nogil:
        return system.eliminate()

    cdef int begin(self, Scratch scratch, Py_ssize_t p) except -1 nogil:
        """Set up the system of a feature, from the rows in which it is observed."""
        if self.state.rows.n_seen[p] == self.state.n_samples:
            return scratch.system.begin(
                p, &self.node_gram[0, 0], &self.leaf_gram[0, 0], self.node_side, self.leaf_side
            )
        scratch.system.reserve()
        self._sum_grams_of(scratch.law, scratch.system, p)
        return scratch.system.begin(
            p, &scratch.system.node_gram[0, 0], &scratch.system.leaf_gram[0, 0],
            self.node_side, self.leaf_side,
        )

    cdef void _sum_grams_of(self, Law law, System system, Py_ssize_t p) noexcept nogil:
        """Z'WZ over the rows in which feature p is observed: O(N_p L^2)."""
        cdef Py_ssize_t b, t, i, h, n, width = self.state.depth + 1
        self._clear_grams(&system.node_gram[0, 0], &system.leaf_gram[0, 0])
        for b in range(self.state.n_leaves):
            for h in range(width * width):
                system.gram[h] = 0.0
            n = 0
            for t in range(self.state.leaf_start[b], self.state.leaf_start[b + 1]):
                i = self.state.order[t]
                if self.state.rows.is_observed[self.state.rows.pattern[i], p]:
                    self.products.copy_row(i, &law.omega[n * width], &law.other[n * width])
                    n += 1
                if n == CHUNK or (n > 0 and t + 1 == self.state.leaf_start[b + 1]):
                    linalg.gemm(True, False, width, width, n, 1.0,
                                &law.other[0] if self.state.hyper.has_tail else &law.omega[0],
                                &law.omega[0], 1.0, &system.gram[0])
                    n = 0
            self._add_gram(b, &system.gram[0], &system.node_gram[0, 0], &system.leaf_gram[0, 0])
