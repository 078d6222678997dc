"""Labels, row precisions, cluster means, scores: what is drawn with the scores integrated out.

Given its cluster a row is Gaussian, N(W m + o, (W diag(v u) W' + S) / lambda), and so is what is
observed of it. By Woodbury's identity that takes the Cholesky factor of one K x K matrix.
"""

from libc.math cimport INFINITY, expm1, fmax, log, log1p, sqrt

import numpy as np

from skbnp.infinite_factor_clusterer._state cimport (
    BLIND_MEANS, KNOWN, LABELS, MEANS, MISSING, NO_DETERMINANT, NO_SLICE, OF_FACTORS,
    OF_FEATURES, PRIOR_SCORES, SCORES, TAILS, State,
)
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma
from skbnp.numerics.truncated cimport normal_above

from skbnp.numerics.buffers import longer

cdef double LOG_2_PI = 1.8378770664093454836

cdef enum:
    CHUNK = 256             # rows that are worked on together
    MOST_NEW = 2000         # new clusters of one sweep


cdef class Rows(State):
    """The moves in which rows are independent given the parameters."""

    def __cinit__(self, *args, **kwargs):
        self.law_loading = self.law_gram = self.law_factor = self.half = np.zeros((0, 0))
        self.information = self.whitened = np.zeros((0, 0))
        self.log_weight = self.shape = self.side = self.law_inverse = np.zeros(0)
        self.renamed = np.zeros(0, dtype=np.intp)

    def __init__(self, X, prior, state, bit_generator, limit, int fault):
        super().__init__(X, prior, state, bit_generator, limit, fault)
        n, p = self.n_samples, self.n_features
        self.chunk = np.zeros((CHUNK, p))
        self.distance, self.picked = np.zeros(CHUNK), np.zeros(CHUNK, dtype=np.intp)
        self.law_mean, self.law_precision = np.zeros(p), np.zeros(p)
        self.log_slice, self.best, self.square = np.zeros(n), np.zeros(n), np.zeros(n)
        self.weighted_row = np.zeros(p)

    cdef int _need_rows(self) except -1 with gil:
        """Scratch of the present number of factors and room for clusters."""
        cdef Py_ssize_t k = max(1, self.n_factors), p = self.n_features, room
        if self.law_gram.shape[0] != k:
            self.law_loading, self.whitened = np.zeros((p, k)), np.zeros((k, p))
            self.law_gram, self.law_factor = np.zeros((k, k)), np.zeros((k, k))
            self.half, self.law_inverse = np.zeros((CHUNK, k)), np.zeros(k)
        room = (self.n_factors if self.means != OF_FEATURES else 0)
        room += p if self.means != OF_FACTORS else 0
        # Not by its shape alone: that of no means at all is that of one.
        if self.information.shape[0] == 0 or self.side.shape[0] != room:
            self.information, self.side = np.zeros((max(1, room), max(1, room))), np.zeros(room)
        if self.log_weight.shape[0] <= self.cluster_room:
            room = self.cluster_room + 1
            self.log_weight, self.shape = longer(self.log_weight, (room,)), np.zeros(room)
            self.renamed = np.zeros(room, dtype=np.intp)
        return 0

    cdef int _update_rows(self) except -1 nogil:
        """Labels, tails and means without scores; then fresh scores and cells."""
        self._update_labels()
        self._update_tails()
        self._visit(INFORMATION)
        self._visit(DRAWS)
        self._fill_cells()
        return 0

    # -- the law of rows ----------------------------------------------------------------------

    cdef void _gather(self, Py_ssize_t g, Py_ssize_t p) noexcept nogil:
        """Cluster g's law of the features that pattern p has observed, but for u: O(N K^2)."""
        cdef Py_ssize_t i, j, k, K = self.n_factors
        cdef double mean
        cdef const double* noise = self._noise(g)
        self.n_here = self.feature_start[p + 1] - self.feature_start[p]
        self.here = &self.feature[self.feature_start[p]] if self.n_here else NULL
        self.law_noise = -0.5 * LOG_2_PI * self.n_here
        for i in range(self.n_here):
            j = self.here[i]
            self.law_precision[i] = 1.0 / noise[j]
            self.law_noise -= 0.5 * log(noise[j])
            mean = self.shift[g, j]
            for k in range(K):
                mean += self.W[j, k] * self.M[g, k]
                self.law_loading[i, k] = sqrt(self.law_precision[i]) * self.W[j, k]
            self.law_mean[i] = mean
        if K:
            linalg.gemm(True, False, K, K, self.n_here, 1.0, &self.law_loading[0, 0],
                        &self.law_loading[0, 0], 0.0, &self.law_gram[0, 0])
        for i in range(self.n_here):
            for k in range(K):
                self.law_loading[i, k] *= sqrt(self.law_precision[i])

    cdef int _factorise(self, Py_ssize_t g, Py_ssize_t row) noexcept nogil:
        """The factor of the scores' precision, with the row's inflation if there is any."""
        cdef Py_ssize_t a, b, K = self.n_factors
        cdef double variance
        self.law_norm = self.law_noise
        for a in range(K):
            for b in range(a, K):
                self.law_factor[a, b] = self.law_gram[a, b]
            variance = self.V[g, a] * self._inflation(row, a)
            self.law_inverse[a] = 1.0 / variance
            self.law_factor[a, a] += self.law_inverse[a]
            if self.fault != NO_DETERMINANT:
                self.law_norm -= 0.5 * log(variance)
        if K == 0:
            return 0
        if linalg.cholesky(&self.law_factor[0, 0], K) != 0:
            return 1
        if self.fault != NO_DETERMINANT:
            self.law_norm -= 0.5 * linalg.log_det(&self.law_factor[0, 0], K)
        return 0

    cdef void _measure(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil:
        """Squared distances, row precisions aside, of the picked rows: O(n K (N + K)).

        d'S^-1 d - |U^-T W'S^-1 d|^2 with d = x - W m - o.
        """
        cdef Py_ssize_t i, j, k, K = self.n_factors, m = self.n_here
        cdef double off, total
        cdef const double* x
        for i in range(n):
            x = &self.X[self.picked[i], 0]
            total = 0.0
            for j in range(m):
                off = x[self.here[j]] - self.law_mean[j]
                self.chunk[i, j] = off
                total += off * off * self.law_precision[j]
            self.distance[i] = total
        if K == 0 or m == 0:
            return
        linalg.gemm_strided(False, False, n, K, m, 1.0, &self.chunk[0, 0], self.n_features,
                            &self.law_loading[0, 0], K, 0.0, &self.half[0, 0], K)
        linalg.solve_rows(&self.law_factor[0, 0], K, &self.half[0, 0], n)
        for i in range(n):
            total = 0.0
            for k in range(K):
                total += self.half[i, k] * self.half[i, k]
            self.distance[i] = fmax(self.distance[i] - total, 0.0)

    cdef double _log_density(self, double square) noexcept nogil:
        """Log density of a row at this distance, its precision integrated out."""
        cdef double df = self.tail_df, m = self.n_here
        if not df < 1e300:
            return self.law_norm - 0.5 * square
        return (
            self.law_norm + lgamma(0.5 * (df + m)) - lgamma(0.5 * df) - 0.5 * m * log(0.5 * df)
            - 0.5 * (df + m) * log1p(square / df)
        )

    # -- labels -------------------------------------------------------------------------------

    cdef int _update_labels(self) except -1 nogil:
        """Slice sampler over the posterior Dirichlet weights (Kalli, Griffin & Walker 2011).

        (pi_1..pi_G, rest) ~ Dirichlet(n_1..n_G, concentration); a row may go wherever pi exceeds
        its slice, and ``rest`` is broken into new clusters until none of what is left does.
        O(G N K^2 + T G K (N + K)); the row precisions are integrated out.
        """
        cdef Py_ssize_t g, t, n = self.n_clusters
        cdef double rest, lowest = INFINITY, u, log_left
        self._need_rows()
        for g in range(n):
            self.shape[g] = <double> self._n_members(g)
        self.shape[n] = self.concentration
        draws.log_dirichlet(self._rng, &self.shape[0], n + 1, &self.log_weight[0])
        for t in range(self.n_samples):
            self.log_slice[t] = self.log_weight[self.label[t]] + log(draws.uniform(self._rng))
            lowest = min(lowest, self.log_slice[t])
            self.best[t] = -INFINITY
        rest = self.log_weight[n]
        while rest > lowest and self.fault != NO_SLICE:
            if n - self.n_clusters == MOST_NEW:
                with gil:
                    raise RuntimeError(f"more than {MOST_NEW} new clusters in one sweep")
            self._reserve_clusters(n + 1)
            self._need_rows()
            # A share Beta(1, concentration) of what is left.
            u = draws.uniform(self._rng)
            log_left = log(u) / self.concentration
            self.log_weight[n] = rest + log(fmax(-expm1(log_left), 1e-300))
            rest += log_left
            self._draw_new_cluster(n)
            n += 1
        for g in range(n):
            self._offer(g)
        self._name_clusters(n)
        return 0

    cdef void _draw_new_cluster(self, Py_ssize_t g) noexcept nogil:
        """Parameters of a cluster from the prior."""
        cdef Py_ssize_t j, k
        for k in range(self.n_factors):
            self.V[g, k] = self._inverse_gamma(self.score_shape, self.score_scale)
            self.M[g, k] = 0.0
            if self.means != OF_FEATURES:
                self.M[g, k] = (
                    draws.normal(self._rng) * sqrt(self.V[g, k] / self.score_precision)
                )
        for j in range(self.n_features):
            if not self.shared_noise:
                self.S[g, j] = self._inverse_gamma(self.noise_shape, self.rate[j])
            self.shift[g, j] = 0.0
            if self.means != OF_FACTORS:
                self.shift[g, j] = (
                    draws.normal(self._rng) * sqrt(self._noise(g)[j] / self.offset_precision)
                )

    cdef int _offer(self, Py_ssize_t g) except -1 nogil:
        """Let the rows whose slice admits cluster g compare it with the best one so far."""
        cdef Py_ssize_t p, i, n, t
        cdef bint ready
        for p in range(self.n_patterns):
            n = 0
            ready = False
            for i in range(self.pattern_start[p], self.pattern_start[p + 1]):
                t = self.by_pattern[i]
                if self.log_weight[g] <= self.log_slice[t]:
                    continue
                if not ready:
                    self._gather(g, p)
                    if not self.inflated and self._factorise(g, 0) != 0:
                        self._break(LABELS)
                        return 0
                    ready = True
                self.picked[n] = t
                n += 1
                if self.inflated:
                    if self._factorise(g, t) != 0:
                        self._break(LABELS)
                        return 0
                    self._keep_offers(g, 1)
                    n = 0
                elif n == CHUNK:
                    self._keep_offers(g, n)
                    n = 0
            if n:
                self._keep_offers(g, n)
        return 0

    cdef void _keep_offers(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil:
        """The largest of log density + Gumbel noise is a draw in proportion to the densities."""
        cdef Py_ssize_t i, t
        cdef double value
        self._measure(g, n)
        for i in range(n):
            t = self.picked[i]
            value = self._log_density(self.distance[i]) - log(-log(draws.uniform(self._rng)))
            if value > self.best[t]:
                self.best[t] = value
                self.label[t] = g

    cdef void _name_clusters(self, Py_ssize_t n) noexcept nogil:
        """Drop the empty ones of n clusters, in their order."""
        cdef Py_ssize_t g, t, j, k, to = 0
        for g in range(n):
            self.renamed[g] = -1
        for t in range(self.n_samples):
            self.renamed[self.label[t]] = 0
        for g in range(n):
            if self.renamed[g] < 0:
                continue
            self.renamed[g] = to
            if to != g:
                for k in range(self.n_factors):
                    self.M[to, k], self.V[to, k] = self.M[g, k], self.V[g, k]
                for j in range(self.n_features):
                    self.shift[to, j] = self.shift[g, j]
                    if not self.shared_noise:
                        self.S[to, j] = self.S[g, j]
            to += 1
        for t in range(self.n_samples):
            self.label[t] = self.renamed[self.label[t]]
        self.n_clusters = to
        self._sort_rows()

    # -- what visits the rows of each cluster ---------------------------------------------------

    cdef int _visit(self, int work) except -1 nogil:
        """Do some work for all rows, run by run of those that share cluster and pattern."""
        cdef Py_ssize_t g, i, stop, t, p, before, n
        self._need_rows()
        if work == INFORMATION and self.side.shape[0] == 0:
            return 0
        for g in range(self.n_clusters):
            if work == INFORMATION:
                self.information[:, :] = 0.0
                self.side[:] = 0.0
            i, stop, before = self.cluster_start[g], self.cluster_start[g + 1], -1
            while i < stop:
                p = self.pattern[self.by_cluster[i]]
                if p != before:
                    self._gather(g, p)
                    if not self.inflated and self._factorise(g, 0) != 0:
                        self._break(SCORES)
                        return 0
                    before = p
                n = 0
                while i < stop and n < CHUNK and self.pattern[self.by_cluster[i]] == p:
                    t = self.by_cluster[i]
                    self.picked[n] = t
                    n += 1
                    i += 1
                    if self.inflated:
                        if self._factorise(g, t) != 0:
                            self._break(SCORES)
                            return 0
                        break
                self._do(work, g, n)
            if work == INFORMATION:
                self._draw_means(g)
        return 0

    cdef void _do(self, int work, Py_ssize_t g, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t i
        if work == DISTANCES:
            self._measure(g, n)
            for i in range(n):
                self.square[self.picked[i]] = self.distance[i]
        elif work == INFORMATION:
            self._add_information(n)
        else:
            self._draw_scores(g, n)

    # -- tails --------------------------------------------------------------------------------

    cdef int _update_tails(self) except -1 nogil:
        """nu with the row precisions integrated out, then lambda: equation (F4.2)."""
        cdef Py_ssize_t i, t, p, n_grid = self.tail_grid.shape[0]
        cdef double df, m
        cdef double log_prob[16]
        if not self.student:
            return 0
        self._visit(DISTANCES)
        for i in range(n_grid):
            df, log_prob[i] = self.tail_grid[i], 0.0
            for t in range(self.n_samples):
                p = self.pattern[t]
                m = self.feature_start[p + 1] - self.feature_start[p]
                if not df < 1e300:
                    log_prob[i] -= 0.5 * self.square[t]
                    continue
                log_prob[i] += lgamma(0.5 * (df + m)) - lgamma(0.5 * df) - 0.5 * m * log(0.5 * df)
                log_prob[i] -= 0.5 * (df + m) * log1p(self.square[t] / df)
        if draws.categorical_from_logs(self._rng, log_prob, n_grid, &i) != 0:
            self._break(TAILS)
            return 0
        df = self.tail_df = self.tail_grid[i]
        for t in range(self.n_samples):
            self.row_precision[t] = 1.0
            if df < 1e300:
                p = self.pattern[t]
                m = self.feature_start[p + 1] - self.feature_start[p]
                self.row_precision[t] = fmax(draws.draw_gamma(
                    self._rng, 0.5 * (df + m), 0.5 * (df + self.square[t])
                ), 1e-300)
        return 0

    # -- means --------------------------------------------------------------------------------

    cdef void _add_information(self, Py_ssize_t n) noexcept nogil:
        """What the picked rows, alike in all but x and lambda, say of (m, o): equation (F4.3).

        Per unit of precision [W, I]' Sigma^-1 [W, I]. With P = U'U = W'S^-1 W + D^-1 it has
        W' Sigma^-1 = D^-1 P^-1 W'S^-1, W' Sigma^-1 W = W'S^-1 W P^-1 D^-1 and Sigma^-1 =
        S^-1 - S^-1 W P^-1 W'S^-1.
        """
        cdef Py_ssize_t i, j, a, b, K = self.n_factors, m = self.n_here
        cdef Py_ssize_t n_means = K if self.means != OF_FEATURES else 0
        cdef double weight = 0.0, total
        cdef double* out
        for j in range(m):
            self.weighted_row[j] = 0.0
        for i in range(n):
            weight += self.row_precision[self.picked[i]]
            for j in range(m):
                self.weighted_row[j] += (
                    self.row_precision[self.picked[i]] * self.X[self.picked[i], self.here[j]]
                )
        # whitened = U^-T W'S^-1, so that P^-1 W'S^-1 = U^-1 whitened.
        for a in range(K):
            for j in range(m):
                self.whitened[a, j] = self.law_loading[j, a]
        for j in range(m):
            for a in range(K):
                self.half[0, a] = self.whitened[a, j]
            if K:
                linalg.solve_transposed(&self.law_factor[0, 0], K, &self.half[0, 0])
            for a in range(K):
                self.whitened[a, j] = self.half[0, a]
        # half[0] = U^-T W'S^-1 xbar
        for a in range(K):
            total = 0.0
            for j in range(m):
                total += self.whitened[a, j] * self.weighted_row[j]
            self.half[0, a] = total
        if self.means != OF_FACTORS:
            for i in range(m):
                out = &self.information[n_means + self.here[i], 0]
                total = self.weighted_row[i] * self.law_precision[i]
                for a in range(K):
                    total -= self.whitened[a, i] * self.half[0, a]
                self.side[n_means + self.here[i]] += total
                out[n_means + self.here[i]] += weight * self.law_precision[i]
                for j in range(i, m):
                    total = 0.0
                    for a in range(K):
                        total += self.whitened[a, i] * self.whitened[a, j]
                    out[n_means + self.here[j]] -= weight * total
        if n_means == 0 or K == 0:
            return
        linalg.solve(&self.law_factor[0, 0], K, &self.half[0, 0])
        for a in range(K):
            self.side[a] += self.half[0, a] * self.law_inverse[a]
        # Column b of W'S^-1 W, solved: row a of P^-1 W'S^-1 W.
        for b in range(K):
            for a in range(K):
                self.half[0, a] = self.law_gram[min(a, b), max(a, b)]
            linalg.solve_transposed(&self.law_factor[0, 0], K, &self.half[0, 0])
            linalg.solve(&self.law_factor[0, 0], K, &self.half[0, 0])
            for a in range(b + 1):
                self.information[a, b] += weight * self.half[0, a] * self.law_inverse[a]
        if self.means == OF_FACTORS:
            return
        for j in range(m):
            for a in range(K):
                self.half[0, a] = self.whitened[a, j]
            linalg.solve(&self.law_factor[0, 0], K, &self.half[0, 0])
            for a in range(K):
                self.information[a, n_means + self.here[j]] += (
                    weight * self.half[0, a] * self.law_inverse[a]
                )

    cdef void _draw_means(self, Py_ssize_t g) noexcept nogil:
        """(m, o) of a cluster given what its rows say of them, scores integrated out."""
        cdef Py_ssize_t i, k, K = self.n_factors if self.means != OF_FEATURES else 0
        cdef Py_ssize_t size = self.side.shape[0]
        for k in range(K):
            self.information[k, k] += self.score_precision / self.V[g, k]
            if self.fault == BLIND_MEANS:
                self.side[k] = 0.0
        for i in range(K, size):
            self.information[i, i] += self.offset_precision / self._noise(g)[i - K]
        if linalg.cholesky(&self.information[0, 0], size) != 0:
            self._break(MEANS)
            return
        linalg.solve_transposed(&self.information[0, 0], size, &self.side[0])
        for i in range(size):
            self.side[i] += draws.normal(self._rng)
        linalg.solve(&self.information[0, 0], size, &self.side[0])
        for k in range(K):
            self.M[g, k] = self.side[k]
        for i in range(K, size):
            self.shift[g, i - K] = self.side[i]

    # -- scores and open cells ------------------------------------------------------------------

    cdef void _draw_scores(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil:
        """y ~ N(P^-1 (W'S^-1 (x - o) + m / (v u)), P^-1 / lambda) for picked rows: (F4.4)."""
        cdef Py_ssize_t i, j, k, t, K = self.n_factors
        cdef double scale
        if K == 0:
            return
        for i in range(n):
            t = self.picked[i]
            for j in range(self.n_here):
                self.chunk[i, j] = self.X[t, self.here[j]] - self.shift[g, self.here[j]]
        linalg.gemm_strided(
            False, False, n, K, self.n_here, 0.0 if self.fault == PRIOR_SCORES else 1.0,
            &self.chunk[0, 0], self.n_features, &self.law_loading[0, 0], K, 0.0,
            &self.half[0, 0], K,
        )
        for i in range(n):
            for k in range(K):
                self.half[i, k] += self.M[g, k] * self.law_inverse[k]
        linalg.solve_rows(&self.law_factor[0, 0], K, &self.half[0, 0], n)
        for i in range(n):
            scale = 1.0 / sqrt(self.row_precision[self.picked[i]])
            for k in range(K):
                self.half[i, k] += scale * draws.normal(self._rng)
        linalg.solve_rows_back(&self.law_factor[0, 0], K, &self.half[0, 0], n)
        for i in range(n):
            for k in range(K):
                self.Y[self.picked[i], k] = self.half[i, k]

    cdef void _fill_cells(self) noexcept nogil:
        """Missing cells, and censored ones below their limit, given the scores."""
        cdef Py_ssize_t t, g, j, k
        cdef double mean, sd
        if not self.has_open_cells:
            return
        for t in range(self.n_samples):
            g = self.label[t]
            for j in range(self.n_features):
                if self.cell[t, j] == KNOWN:
                    continue
                mean = self.shift[g, j]
                for k in range(self.n_factors):
                    mean += self.W[j, k] * self.Y[t, k]
                sd = sqrt(self._noise(g)[j] / self.row_precision[t])
                if self.cell[t, j] == MISSING:
                    self.X[t, j] = mean + sd * draws.normal(self._rng)
                else:
                    self.X[t, j] = mean - sd * normal_above(self._rng, (mean - self.limit[j]) / sd)
