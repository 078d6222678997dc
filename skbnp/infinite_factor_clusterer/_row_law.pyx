"""The law of rows of one cluster and pattern of missing cells, scores integrated out.

Given its cluster a row is Gaussian, N(W m + o, (W diag(v u) W' + S) / lambda), and so is what is
observed of it. By Woodbury's identity that takes the Cholesky factor of one K x K matrix (F3.1).
"""

from libc.math cimport NAN, fmax, log, log1p, sqrt

import numpy as np

from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.numerics cimport linalg
from skbnp.numerics.special cimport LOG_2_PI, lgamma


cdef class RowLaw:
    """The law, and the rows that are measured by it together: scratch of many moves."""

    def __init__(self, State state):
        self.state = state
        p = state.n_features
        self.loading = self.gram = self.factor = self.half = np.zeros((0, 0))
        self.inverse = np.zeros(0)
        self.chunk = np.zeros((CHUNK, p))
        self.distance, self.picked = np.zeros(CHUNK), np.zeros(CHUNK, dtype=np.intp)
        self.mean, self.precision = np.zeros(p), np.zeros(p)

    cdef int make_room(self) except -1 with gil:
        """Scratch of the present number of factors."""
        cdef Py_ssize_t k = max(1, self.state.n_factors)
        if self.gram.shape[0] != k:
            self.loading = np.zeros((self.state.n_features, k))
            self.gram, self.factor = np.zeros((2, k, k))
            self.half, self.inverse = np.zeros((CHUNK, k)), np.zeros(k)
        return 0

    cdef void gather(self, Py_ssize_t g, Py_ssize_t p) noexcept nogil:
        """Cluster g's law of the features that pattern p has observed, but for u: O(N K^2)."""
        cdef Py_ssize_t i, j, k, K = self.state.n_factors
        cdef double mean
        cdef const double* noise = self.state.noise(g)
        self.n_here = self.state.table.feature_start[p + 1] - self.state.table.feature_start[p]
        self.here = NULL
        if self.n_here:
            self.here = &self.state.table.feature[self.state.table.feature_start[p]]
        self.log_noise = -0.5 * LOG_2_PI * self.n_here
        for i in range(self.n_here):
            j = self.here[i]
            self.precision[i] = 1.0 / noise[j]
            self.log_noise -= 0.5 * log(noise[j])
            mean = self.state.shift[g, j]
            for k in range(K):
                mean += self.state.W[j, k] * self.state.M[g, k]
                self.loading[i, k] = sqrt(self.precision[i]) * self.state.W[j, k]
            self.mean[i] = mean
        if K:
            linalg.gemm(True, False, K, K, self.n_here, 1.0, &self.loading[0, 0],
                        &self.loading[0, 0], 0.0, &self.gram[0, 0])
        for i in range(self.n_here):
            for k in range(K):
                self.loading[i, k] *= sqrt(self.precision[i])

    cdef int factorise(self, Py_ssize_t g, Py_ssize_t row) noexcept nogil:
        """The factor of the scores' precision, with the row's inflation if there is any."""
        cdef Py_ssize_t a, b, K = self.state.n_factors
        cdef double variance
        self.log_norm = self.log_noise
        for a in range(K):
            for b in range(a, K):
                self.factor[a, b] = self.gram[a, b]
            variance = self.state.V[g, a] * self.state.inflation(row, a)
            self.inverse[a] = 1.0 / variance
            self.factor[a, a] += self.inverse[a]
            self.log_norm -= 0.5 * log(variance)
        if K == 0:
            return 0
        if linalg.cholesky(&self.factor[0, 0], K) != 0:
            return 1
        self.log_norm -= 0.5 * linalg.log_det(&self.factor[0, 0], K)
        return 0

    cdef void measure(self, Py_ssize_t n) noexcept nogil:
        """Squared distances, row precisions aside, of the picked rows: O(n K (N + K)).

        d'S^-1 d - |U^-T W'S^-1 d|^2 with d = x - W m - o.
        """
        cdef Py_ssize_t i, j, k, K = self.state.n_factors, m = self.n_here
        cdef double off, total
        cdef const double* x
        for i in range(n):
            x = &self.state.X[self.picked[i], 0]
            total = 0.0
            for j in range(m):
                off = x[self.here[j]] - self.mean[j]
                self.chunk[i, j] = off
                total += off * off * self.precision[j]
            self.distance[i] = total
        if K == 0 or m == 0:
            return
        linalg.gemm_strided(False, False, n, K, m, 1.0, &self.chunk[0, 0], self.state.n_features,
                            &self.loading[0, 0], K, 0.0, &self.half[0, 0], K)
        linalg.solve_rows(&self.factor[0, 0], K, &self.half[0, 0], n)
        for i in range(n):
            total = 0.0
            for k in range(K):
                total += self.half[i, k] * self.half[i, k]
            self.distance[i] = fmax(self.distance[i] - total, 0.0)

    cdef double log_density(self, double square) noexcept nogil:
        """Log density of a row at this distance, its precision integrated out."""
        cdef double df = self.state.tail_df, m = self.n_here
        if not df < 1e300:
            return self.log_norm - 0.5 * square
        return (
            self.log_norm + lgamma(0.5 * (df + m)) - lgamma(0.5 * df) - 0.5 * m * log(0.5 * df)
            - 0.5 * (df + m) * log1p(square / df)
        )

    def log_densities(self, const Py_ssize_t[::1] rows):
        """Log density of some rows in each cluster, (n_rows, n_clusters), NaN where it has none.

        Of the cells that are not missing, filled ones below a limit as they are, without layers
        above. Rows that lack the same cells should stand together: O(G (N K^2 + K^3)) for each
        such run, and O(G K (N + K)) for a row.
        """
        cdef Py_ssize_t g, i, n, p, start = 0, n_rows = rows.shape[0]
        cdef bint failed
        cdef double[:, ::1] out = np.zeros((n_rows, self.state.n_clusters))
        self.make_room()
        with nogil:
            while start < n_rows:
                p, n = self.state.table.pattern[rows[start]], 0
                while start + n < n_rows and n < CHUNK:
                    if self.state.table.pattern[rows[start + n]] != p:
                        break
                    self.picked[n] = rows[start + n]
                    n += 1
                for g in range(self.state.n_clusters):
                    self.gather(g, p)
                    failed = self.factorise(g, 0) != 0
                    self.measure(n)
                    for i in range(n):
                        out[start + i, g] = NAN if failed else self.log_density(self.distance[i])
                start += n
        return np.asarray(out)

    # -- the rows of a cluster, run by run ----------------------------------------------------

    cdef void start_cluster(self, Py_ssize_t g) noexcept nogil:
        """Begin with the rows of a cluster."""
        self.cluster, self.pattern = g, -1
        self.place, self.stop = self.state.cluster_start[g], self.state.cluster_start[g + 1]

    cdef Py_ssize_t next_run(self) noexcept nogil:
        """Pick the next rows that share a pattern, with their law: how many, 0 at the end.

        -1 where their law has no Cholesky factor.
        """
        cdef Py_ssize_t p, t, n = 0
        if self.place == self.stop:
            return 0
        p = self.state.table.pattern[self.state.by_cluster[self.place]]
        if p != self.pattern:
            self.gather(self.cluster, p)
            if not self.state.inflated and self.factorise(self.cluster, 0) != 0:
                self.state.is_broken = True
                return -1
            self.pattern = p
        while self.place < self.stop and n < CHUNK:
            t = self.state.by_cluster[self.place]
            if self.state.table.pattern[t] != p:
                break
            self.picked[n] = t
            n += 1
            self.place += 1
            if self.state.inflated:
                if self.factorise(self.cluster, t) != 0:
                    self.state.is_broken = True
                    return -1
                break
        return n
