"""Leaf means, scores integrated out: mathematics/tree_factor_model, section 7."""

from libc.math cimport isfinite, sqrt

from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws


cdef class LeafMeans(Move):
    """m_b given its rows, their scores integrated out: (T7.1).

    Leaves with incomplete rows wait for the draw together with the loadings; which leaves those
    are does not change here. Cost: O(P L^2) a leaf, and a pass over its rows.
    """

    NAME = "leaf_means"
    DRAW = LeafMean

    def __init__(self, State state, LeafLaws laws, Pool pool, bit_generator):
        super().__init__(bit_generator)
        self.state, self.pool = state, pool
        self.draw = self.DRAW(state, laws)

    cpdef int run(self) except -1:
        self.draw.key = draws.bits(self.rng)
        return self.pool.run(self.draw, self.state.n_leaves)


cdef class LeafMean(Work):
    """N(Q^-1 Gamma sum u y, Q^-1) of leaf k, Q = diag(xi) + W Gamma, W = sum u, Gamma = Omega^-1.

    Gamma = kappa Lambda - SS'. Perturb the right-hand side by a draw of variance Q, (T7.2), then
    solve by Woodbury on diag(xi + W kappa lambda), (T7.3).
    """

    def __init__(self, State state, LeafLaws laws):
        self.state, self.laws = state, laws

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef Py_ssize_t n_features = self.state.n_features, depth = self.state.depth, p, h, t, i
        cdef double total = 0.0, weight = 0.0, eps
        cdef double* s = &scratch.law.axes[0]           # (P, L)
        cdef double* v = &scratch.law.residual[0]       # (P,)
        cdef double* inverse = v + n_features   # (P,)
        cdef double* by_level = &scratch.law.other[0]   # (L,)
        cdef const Py_ssize_t* path = &self.state.node_path[self.state.leaf_node[k], 0]
        cdef draws.RowStream stream
        i = self.state.order[self.state.leaf_start[k + 1] - 1]
        if self.state.rows.n_observed[self.state.rows.pattern[i]] < n_features:
            return 0
        if self.laws.prepare(scratch.law, k, self.state.rows.n_patterns, depth + 1) != 0:
            return self.fail()
        draws.start_row_stream(&stream, self.key, 0, k)
        # v = sum u y + sqrt(W) z, z ~ N(0, Omega)
        for t in range(self.state.leaf_start[k], self.state.leaf_start[k + 1]):
            weight += self.state.row_precision[self.state.order[t]]
        for p in range(n_features):
            v[p] = sqrt(weight) * draws.normal(&stream.rng) / scratch.law.root[p]
        for t in range(self.state.leaf_start[k], self.state.leaf_start[k + 1]):
            i = self.state.order[t]
            linalg.axpy(n_features, self.state.row_precision[i], &self.state.rows.X[i, 0], v)
        for h in range(depth):
            eps = sqrt(weight / self.state.score_precision[k, h]) * draws.normal(&stream.rng)
            linalg.axpy(n_features, eps,
                        &self.state.loadings[path[h], 0], v)
        for p in range(n_features):
            for h in range(depth):
                s[p * depth + h] *= scratch.law.root[p]
        # v <- Gamma v + sqrt(xi) eps
        linalg.gemm(False, False, 1, depth, n_features, 1.0, v, s, 0.0, by_level)
        for p in range(n_features):
            v[p] *= scratch.law.root[p] * scratch.law.root[p]
            v[p] -= self.through_scores(depth, &s[p * depth], by_level)
            v[p] += sqrt(self.state.mean_precision[p]) * draws.normal(&stream.rng)
        # v <- Q^-1 v, with S' A^-1/2 in ``scaled``
        for p in range(n_features):
            inverse[p] = 1.0 / (
                self.state.mean_precision[p] + weight * scratch.law.root[p] * scratch.law.root[p]
            )
            v[p] *= inverse[p]
            for h in range(depth):
                scratch.law.scaled[h * n_features + p] = s[p * depth + h] * sqrt(inverse[p])
        linalg.gemm(False, True, depth, depth, n_features, -1.0, &scratch.law.scaled[0],
                    &scratch.law.scaled[0], 0.0, &scratch.law.factor[0])
        for h in range(depth):
            scratch.law.factor[h * depth + h] += 1.0 / weight
        if linalg.cholesky(&scratch.law.factor[0], depth) != 0:
            return self.fail()
        linalg.gemm(False, False, 1, depth, n_features, 1.0, v, s, 0.0, by_level)
        linalg.solve_rows(&scratch.law.factor[0], depth, by_level, 1)
        linalg.solve_rows_back(&scratch.law.factor[0], depth, by_level, 1)
        for p in range(n_features):
            v[p] += inverse[p] * linalg.dot(depth, &s[p * depth], by_level)
            total += v[p]
        if not isfinite(total):
            return self.fail()
        for p in range(n_features):
            self.state.leaf_mean[k, p] = v[p]
        return 0

    cdef double through_scores(
        self, Py_ssize_t depth, const double* row, const double* by_level
    ) noexcept nogil:
        """A row of SS' v: what Gamma lacks of kappa Lambda, as the scores are integrated out."""
        return linalg.dot(depth, row, by_level)
