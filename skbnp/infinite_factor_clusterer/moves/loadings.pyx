"""Links and loadings under the Indian buffet process, and the variances of slabs."""

from libc.math cimport isfinite, log, sqrt

import numpy as np

from skbnp.infinite_factor_clusterer._row_law cimport CHUNK
from skbnp.infinite_factor_clusterer._state cimport State, draw_inverse_gamma
from skbnp.mcmc.chain cimport Move
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport log1p_exp


cdef class Loadings(Move):
    """z and w one by one | scores, labels; then sigma^2 | w."""

    NAME = "loadings"

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state = state
        self.gram = self.weighted = np.zeros((0, 0))
        self.cluster_gram = self.cluster_side = np.zeros((0, 0, 0))
        self.feature_side = np.zeros(0)
        self.order = np.zeros(0, dtype=np.intp)
        self.chunk = np.zeros((CHUNK, state.n_features))

    cpdef int run(self) except -1:
        with nogil:
            self.update()
        self.state.has_residuals = False
        return self.state.outcome()

    cdef int make_room(self) except -1 with gil:
        """Room for the sums over the rows of each cluster."""
        cdef Py_ssize_t k = max(1, self.state.n_factors)
        cdef Py_ssize_t n = 1 if self.state.law.shared_noise else self.state.n_clusters
        if self.gram.shape[0] != k:
            self.gram, self.feature_side = np.zeros((k, k)), np.zeros(k)
            self.weighted, self.order = np.zeros((2 * CHUNK, k)), np.zeros(k, dtype=np.intp)
        if self.cluster_gram.shape[0] < n or self.cluster_gram.shape[1] != k:
            self.cluster_gram = np.zeros((n + 4, k, k))
            self.cluster_side = np.zeros((n + 4, k, self.state.n_features))
        return 0

    cdef int update(self) except -1 nogil:
        """Links and loadings one by one, then the slab variances: equation (F4.7).

        O(T K (K + N)) for the sums, then O(N G K^2), whatever T.
        """
        cdef Py_ssize_t j, k, n
        cdef double squares
        if self.state.n_factors == 0:
            return 0
        self.make_room()
        self.sum_products()
        for j in range(self.state.n_features):
            self.draw_feature(j)
        for k in range(self.state.n_factors):
            n, squares = self.state.n_links[k], 0.0
            for j in range(self.state.n_features):
                squares += self.state.W[j, k] * self.state.W[j, k]
            self.state.slab[k] = draw_inverse_gamma(
                self.rng, self.state.law.slab_shape + 0.5 * n,
                self.state.law.slab_scale + 0.5 * squares
            )
            if not isfinite(squares):
                self.state.is_broken = True
        return 0

    cdef int sum_products(self) except -1 nogil:
        """Sums of lambda y y' and lambda y (x - o)' by cluster: O(T K (K + N)), BLAS 3."""
        cdef Py_ssize_t g, i, n, j, k, t, stop, to, K = self.state.n_factors
        cdef double* own = &self.weighted[0, 0]
        cdef double* plain = &self.weighted[CHUNK, 0]
        self.cluster_gram[:, :, :] = 0.0
        self.cluster_side[:, :, :] = 0.0
        for g in range(self.state.n_clusters):
            to = 0 if self.state.law.shared_noise else g
            i, stop = self.state.cluster_start[g], self.state.cluster_start[g + 1]
            while i < stop:
                n = 0
                while i < stop and n < CHUNK:
                    t = self.state.by_cluster[i]
                    for k in range(K):
                        plain[n * K + k] = self.state.Y[t, k]
                        own[n * K + k] = self.state.row_precision[t] * self.state.Y[t, k]
                    for j in range(self.state.n_features):
                        self.chunk[n, j] = self.state.X[t, j] - self.state.shift[g, j]
                    n += 1
                    i += 1
                linalg.gemm(True, False, K, K, n, 1.0, own, plain, 1.0,
                            &self.cluster_gram[to, 0, 0])
                linalg.gemm(
                    True, False, K, self.state.n_features, n, 1.0, own, &self.chunk[0, 0], 1.0,
                    &self.cluster_side[to, 0, 0],
                )
        return 0

    cdef void draw_feature(self, Py_ssize_t j) noexcept nogil:
        """All loadings of a feature, each given the others, in random order."""
        cdef Py_ssize_t i, g, k, other, others, K = self.state.n_factors
        cdef Py_ssize_t n = 1 if self.state.law.shared_noise else self.state.n_clusters
        cdef double precision, side, log_odds, weight
        cdef double* row = &self.gram[0, 0]
        cdef const double* part
        for i in range(K * K):
            row[i] = 0.0
        for k in range(K):
            self.feature_side[k] = 0.0
        for g in range(n):
            weight = self.weight_of(g, j)
            part = &self.cluster_gram[g, 0, 0]
            for i in range(K * K):
                row[i] += weight * part[i]
            for k in range(K):
                self.feature_side[k] += weight * self.cluster_side[g, k, j]
        # The order must not depend on when a factor was born.
        for k in range(K):
            self.order[k] = k
        draws.shuffle(self.rng, &self.order[0], K)
        for i in range(K):
            k = self.order[i]
            others = self.other_links(j, k)
            if others == 0 and self.state.W[j, k] == 0.0:
                continue
            side = self.feature_side[k]
            for other in range(K):
                if other != k:
                    side -= self.gram[k, other] * self.state.W[j, other]
            precision = self.gram[k, k] + 1.0 / self.state.slab[k]
            if self.state.n_links[k] > 1 or self.state.W[j, k] == 0.0:
                log_odds = log(<double> others) - log(<double> (self.state.n_features - others))
                log_odds += (
                    0.5 * side * side / precision - 0.5 * log(precision * self.state.slab[k])
                )
                self.state.n_links[k] -= self.state.W[j, k] != 0.0
                self.state.W[j, k] = 0.0
                if log(draws.uniform(self.rng)) >= -log1p_exp(-log_odds):
                    continue
                self.state.n_links[k] += 1
            self.state.W[j, k] = side / precision + draws.normal(self.rng) / sqrt(precision)

    cdef double weight_of(self, Py_ssize_t g, Py_ssize_t j) noexcept nogil:
        """Precision of a feature's cells in a cluster."""
        return 1.0 / self.state.noise(g)[j]

    cdef Py_ssize_t other_links(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil:
        """Links of a factor without that to a feature."""
        return self.state.n_links[k] - (self.state.W[j, k] != 0.0)
