"""The laws of rows in the leaves of a state, scores integrated out.

mathematics/tree_factor_model, section 3.
"""

from libc.math cimport NAN, fmax

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.tree_factor_model._rows cimport CHUNK, MOST_DENSE_FEATURES


cdef class Covariances(Work):
    """Upper triangle of Omega of leaf k: D' diag(1 / psi) D + (kappa Lambda)^-1."""

    def __init__(self, State state):
        self.state = state
        self.omega = np.zeros((0, 0, 0))

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef Py_ssize_t h, p, n_features = self.state.n_features
        cdef const double* d
        self.omega[k] = 0.0
        for p in range(n_features):
            self.omega[k, p, p] = 1.0 / (self.state.noise_scale[k] * self.state.noise_precision[p])
        for h in range(self.state.depth):
            d = &self.state.loadings[self.state.node_path[self.state.leaf_node[k], h], 0]
            for p in range(n_features):
                linalg.axpy(n_features - p, d[p] / self.state.score_precision[k, h], d + p,
                            &self.omega[k, p, p])
        return 0


cdef class Densities(Work):
    """Log density of the rows of piece k."""

    cdef:
        LeafLaws laws
        double[::1] total                       # (n_pieces,)

    def __init__(self, LeafLaws laws):
        self.laws = laws
        self.total = np.empty(laws.state.n_pieces)

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef Py_ssize_t t = self.laws.state.piece_start[k], n, j
        cdef double total = 0.0
        while t < self.laws.state.piece_start[k + 1]:
            n = self.laws.whiten_run(scratch.law, k, t, False)
            if n < 0:
                total = NAN
                break
            for j in range(n):
                total += self.laws.log_density(scratch.law, scratch.law.square[j])
            t += n
        self.total[k] = total
        return 0


cdef class LeafLaws:
    """Sets laws of rows up for the leaves of a state, fresh ones included."""

    def __init__(self, State state, Pool pool):
        self.state, self.pool = state, pool
        self._covariances = Covariances(state)
        few = np.any(np.asarray(state.rows.n_observed) < state.max_depth)
        self._has_few = few and state.n_features <= MOST_DENSE_FEATURES

    cdef int prepare(
        self, Law law, Py_ssize_t b, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil:
        """Set up the law of a leaf's rows with pattern g. Non-zero: it is degenerate."""
        return law.prepare(
            g, n_rows, self.state.depth, &self.state.loadings[0, 0],
            &self.state.node_path[self.state.leaf_node[b], 0], &self.state.leaf_mean[b, 0],
            &self.state.score_precision[b, 0], self.state.noise_scale[b],
            &self.state.noise_precision[0], self.state.tail_df[b],
        )

    cdef int prepare_density(
        self, Law law, Py_ssize_t b, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil:
        """The same for densities alone, after ``compute_covariances``: by the smaller matrix."""
        if (
            self._has_few and b < self.state.n_leaves
            and self.state.rows.n_observed[g] < self.state.depth
            and law.prepare_dense(
                g, &self._covariances.omega[b, 0, 0], &self.state.leaf_mean[b, 0],
                self.state.tail_df[b],
            ) == 0
        ):
            return 0
        return self.prepare(law, b, g, n_rows)

    cdef int fill_densities(self, Law law, Py_ssize_t b, double* out) noexcept nogil:
        """Log density of every row in leaf b, scores integrated out. Non-zero: it is degenerate."""
        cdef Py_ssize_t g, n_rows
        for g in range(self.state.rows.n_patterns):
            n_rows = self.state.rows.pattern_start[g + 1] - self.state.rows.pattern_start[g]
            if self.prepare(law, b, g, n_rows) != 0:
                return 1
            self.fill_pattern(law, g, out)
        return 0

    cdef void fill_pattern(self, Law law, Py_ssize_t g, double* out) noexcept nogil:
        """Log density of the rows with pattern g under a law that is set up."""
        cdef Py_ssize_t t, n = 0, k
        for t in range(self.state.rows.pattern_start[g], self.state.rows.pattern_start[g + 1]):
            law.chosen[n] = self.state.rows.by_pattern[t]
            n += 1
            if n == CHUNK or t + 1 == self.state.rows.pattern_start[g + 1]:
                law.whiten(n)
                for k in range(n):
                    out[law.chosen[k]] = self.log_density(law, law.square[k])
                n = 0

    cdef int compute_covariances(self) except -1:
        """Omega of all occupied leaves, where rows have fewer entries than there are levels."""
        cdef Py_ssize_t n_leaves = self.state.n_leaves, p = self.state.n_features
        if not self._has_few:
            return 0
        if self._covariances.omega.shape[0] < n_leaves:
            self._covariances.omega = np.empty((2 * n_leaves, p, p))
        return self.pool.run(self._covariances, n_leaves)

    cdef Py_ssize_t whiten_run(
        self, Law law, Py_ssize_t r, Py_ssize_t t, bint for_scores
    ) noexcept nogil:
        """Whiten the rows of piece r from ``order[t]`` on that share its pattern, in their leaf.

        Returns how many they are, -1 where their law is degenerate.
        """
        cdef Py_ssize_t n = 0, i = self.state.order[t], stop = self.state.piece_start[r + 1]
        cdef Py_ssize_t g = self.state.rows.pattern[i], n_rows
        cdef const Py_ssize_t* pattern_start = &self.state.rows.pattern_start[0]
        if t == self.state.piece_start[r] or law.pattern != g:
            n_rows = min(stop - t, pattern_start[g + 1] - pattern_start[g])
            if (self.prepare(law, self.state.piece_leaf[r], g, n_rows) if for_scores
                    else self.prepare_density(law, self.state.piece_leaf[r], g, n_rows)) != 0:
                return -1
        while n < CHUNK and t + n < stop and self.state.rows.pattern[self.state.order[t + n]] == g:
            law.chosen[n] = self.state.order[t + n]
            n += 1
        law.whiten(n)
        return n

    cdef double log_density(self, Law law, double square) noexcept nogil:
        """Of a row at this squared distance: (T3.4) or (T3.5)."""
        return law.log_density(square)

    cdef double draw_row_precision(
        self, bitgen_t* rng, Py_ssize_t b, Py_ssize_t i, double square
    ) noexcept nogil:
        """u_i ~ Gamma((df + P_i) / 2, (df + q_i) / 2), P_i its observed entries: (T6.2)."""
        cdef double df = self.state.tail_df[b]
        cdef double shape = 0.5 * (df + self.state.rows.n_observed[self.state.rows.pattern[i]])
        return fmax(draws.draw_gamma(rng, shape, 0.5 * (df + square)), 1e-300)

    cdef double log_data(self) except? -1.0:
        """sum_i log p(y_i | b_i) over the observed entries, scores integrated; NaN if it fails."""
        cdef Densities densities = Densities(self)
        self.compute_covariances()
        self.pool.run(densities, self.state.n_pieces)
        return np.sum(np.asarray(densities.total))
