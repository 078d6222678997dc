"""Precisions of noise, means and loadings, all else given.

mathematics/tree_factor_model, section 10.
"""

from libc.string cimport memcpy

import numpy as np

from skbnp.mcmc.chain cimport DONE
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.processes cimport multiplicative_gamma as shrinkage
from skbnp.tree_factor_model._rows cimport CHUNK


cdef class Precisions(Move):
    """kappa, lambda and its rate, xi, phi, zeta: gammas, each given all others.

    Cost: the residuals, O(N L P). Hazard: a constant column, where only the prior bounds lambda.
    """

    NAME = "precisions"

    def __init__(self, State state, Pool pool, bit_generator):
        super().__init__(bit_generator)
        self.state, self.hyper, self.pool = state, state.hyper, pool
        self.squares = Squares(state)
        self.rss, self.weighted_square = np.zeros((0, 0)), np.zeros(0)

    cpdef int run(self) except -1:
        self._reserve()
        self.pool.run(self.squares, self.state.n_pieces)
        with nogil:
            self._add_squares()
            if self.hyper.has_noise_scale and not self.hyper.whole:
                self._draw_noise_scales()
            self._draw_noise()
            self._draw_mean_precisions()
            self._draw_shrinkage()
        return DONE

    def _reserve(self):
        """Room for the tree as it is."""
        self.squares.reserve()
        if self.rss.shape[0] < self.state.n_leaves:
            self.rss = np.empty((2 * self.state.n_leaves, self.state.n_features))
        if self.weighted_square.shape[0] < self.state.n_nodes:
            n = 2 * self.state.n_nodes
            self.weighted_square, self.of_nodes = np.empty(n), np.empty(3 * n)

    cdef void _add_squares(self) noexcept nogil:
        """rss_bp, the squares of the pieces by leaf."""
        cdef Py_ssize_t r
        self.rss[:self.state.n_leaves] = 0.0
        for r in range(self.state.n_pieces):
            linalg.axpy(self.state.n_features, 1.0, &self.squares.piece[r, 0],
                        &self.rss[self.state.piece_leaf[r], 0])

    cdef void _draw_noise_scales(self) noexcept nogil:
        """kappa_b ~ Gamma(a + n_entries / 2, a + sum_p lambda_p rss_bp / 2): (T10.1)."""
        cdef Py_ssize_t b, t, i, n_entries
        cdef double total
        for b in range(self.state.n_leaves):
            n_entries = 0
            for t in range(self.state.leaf_start[b], self.state.leaf_start[b + 1]):
                i = self.state.order[t]
                n_entries += self.state.rows.n_observed[self.state.rows.pattern[i]]
            total = linalg.dot(
                self.state.n_features, &self.state.noise_precision[0], &self.rss[b, 0]
            )
            self.state.noise_scale[b] = draws.draw_gamma(
                self.rng, self.hyper.scale_shape + 0.5 * n_entries,
                self.hyper.scale_shape + 0.5 * total,
            )

    cdef void _draw_noise(self) noexcept nogil:
        """lambda_p ~ Gamma(a0 + N_p / 2, b0 + sum_b kappa_b rss_bp / 2), or one; b0: (T10.2)."""
        cdef Py_ssize_t b, p
        cdef double shape = self.hyper.noise_shape, rate = self.state.noise_rate
        cdef double total, sum_noise = 0.0
        for p in range(self.state.n_features):
            total = 0.0
            for b in range(self.state.n_leaves):
                total += self.state.noise_scale[b] * self.rss[b, p]
            shape += 0.5 * self.state.rows.n_seen[p]
            rate += 0.5 * total
            if not self.hyper.isotropic:
                self.state.noise_precision[p] = draws.draw_gamma(self.rng, shape, rate)
                sum_noise += self.state.noise_precision[p]
                shape, rate = self.hyper.noise_shape, self.state.noise_rate
        if self.hyper.isotropic:
            self.state.noise_precision[0] = draws.draw_gamma(self.rng, shape, rate)
            sum_noise = self.state.noise_precision[0]
            for p in range(1, self.state.n_features):
                self.state.noise_precision[p] = self.state.noise_precision[0]
        if self.hyper.sample_noise_rate:
            self.state.noise_rate = self.hyper.draw_noise_rate(
                self.rng, 1 if self.hyper.isotropic else self.state.n_features, sum_noise,
            )

    cdef void _draw_mean_precisions(self) noexcept nogil:
        """xi_p ~ Gamma(g0 + B / 2, h0 + sum_b m_bp^2 / 2): (T10.3)."""
        cdef Py_ssize_t b, p
        cdef double total
        for p in range(self.state.n_features):
            total = 0.0
            for b in range(self.state.n_leaves):
                total += self.state.leaf_mean[b, p] * self.state.leaf_mean[b, p]
            self.state.mean_precision[p] = draws.draw_gamma(
                self.rng, self.hyper.mean_shape + 0.5 * self.state.n_leaves,
                self.hyper.mean_rate + 0.5 * total,
            )

    cdef void _draw_shrinkage(self) noexcept nogil:
        """phi and zeta of all nodes, (T10.4) and (T10.5): processes.multiplicative_gamma."""
        cdef Py_ssize_t n, p
        cdef double total
        cdef const double* d
        for n in range(self.state.n_nodes):
            d = &self.state.loadings[n, 0]
            shrinkage.draw_local(
                self.rng, self.state.n_features, d, self.state.tau(n), self.hyper.local_df,
                &self.state.local_precision[n, 0],
            )
            total = 0.0
            for p in range(self.state.n_features):
                total += self.state.local_precision[n, p] * d[p] * d[p]
            self.weighted_square[n] = total
        self.draw_multipliers()

    cdef void draw_multipliers(self) noexcept nogil:
        """zeta of all nodes, from the roots down."""
        shrinkage.draw_multipliers(
            self.rng, self.state.n_nodes, &self.state.parent[0], &self.weighted_square[0],
            self.state.n_features, self.hyper.root_shape, self.hyper.shape,
            &self.state.multiplier[0], &self.state.log_tau[0], &self.of_nodes[0],
        )


cdef class Squares(Work):
    """sum u_i (y_ip - m_bp - x_i'd_p)^2 over the observed entries of piece k."""

    def __init__(self, State state):
        self.state, self.piece = state, np.zeros((0, 0))

    cdef int reserve(self) except -1:
        """Room for all pieces."""
        if self.piece.shape[0] < self.state.n_pieces:
            self.piece = np.empty((2 * self.state.n_pieces, self.state.n_features))
        return 0

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef Py_ssize_t t, n, j, h, p, i, b = self.state.piece_leaf[k]
        cdef Py_ssize_t depth = self.state.depth, n_features = self.state.n_features
        cdef double* total = &self.piece[k, 0]
        for p in range(n_features):
            total[p] = 0.0
        for h in range(depth):
            memcpy(&scratch.law.scaled[h * n_features],
                   &self.state.loadings[self.state.node_path[self.state.leaf_node[b], h], 0],
                   n_features * sizeof(double))
        scratch.law.depth = depth
        t = self.state.piece_start[k]
        while t < self.state.piece_start[k + 1]:
            n = min(<Py_ssize_t> CHUNK, self.state.piece_start[k + 1] - t)
            for j in range(n):
                i = self.state.order[t + j]
                scratch.law.chosen[j] = i
                memcpy(&scratch.law.omega[j * depth], &self.state.scores[i, 0],
                       depth * sizeof(double))
            scratch.law.add_residuals(
                n, &self.state.leaf_mean[b, 0], &self.state.row_precision[0], total
            )
            t += n
        return 0
