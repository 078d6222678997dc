"""Means of clusters, scores integrated out."""

import numpy as np

from skbnp.infinite_factor_clusterer._law cimport OF_FACTORS, OF_FEATURES
from skbnp.infinite_factor_clusterer._row_law cimport RowLaw
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws


cdef class Means(Move):
    """m and o of every cluster | all but scores, which must be drawn anew afterwards.

    O(T (N K + K^2)) and O(G (n_means^3 + N K^2)).
    """

    NAME = "means"

    def __init__(self, State state, RowLaw row_law, bit_generator):
        super().__init__(bit_generator)
        self.state, self.row_law = state, row_law
        self.information = self.whitened = np.zeros((0, 0))
        self.side = np.zeros(0)
        self.weighted_row = np.zeros(state.n_features)

    cpdef int run(self) except -1:
        with nogil:
            self.update()
        return self.state.outcome()

    cdef int make_room(self) except -1 with gil:
        """Scratch of the present number of factors."""
        cdef Py_ssize_t k = max(1, self.state.n_factors), p = self.state.n_features, room
        self.row_law.make_room()
        if self.whitened.shape[0] != k:
            self.whitened = np.zeros((k, p))
        room = self.state.n_factors if self.state.law.means != OF_FEATURES else 0
        room += p if self.state.law.means != OF_FACTORS else 0
        # Not by its shape alone: that of no means at all is that of one.
        if self.information.shape[0] == 0 or self.side.shape[0] != room:
            self.information, self.side = np.zeros((max(1, room), max(1, room))), np.zeros(room)
        return 0

    cdef int update(self) except -1 nogil:
        """Every cluster: what its rows say, then a draw."""
        cdef Py_ssize_t g, n
        self.make_room()
        if self.side.shape[0] == 0:
            return 0
        for g in range(self.state.n_clusters):
            self.information[:, :] = 0.0
            self.side[:] = 0.0
            self.row_law.start_cluster(g)
            while True:
                n = self.row_law.next_run()
                if n < 0:
                    return 0
                if n == 0:
                    break
                self.add_rows(n)
            self.draw_cluster(g)
        return 0

    cdef void add_rows(self, Py_ssize_t n) noexcept nogil:
        """What the picked rows, alike in all but x and lambda, say of (m, o): equation (F4.3).

        Per unit of precision [W, I]' Sigma^-1 [W, I]. With P = U'U = W'S^-1 W + D^-1 it has
        W' Sigma^-1 = D^-1 P^-1 W'S^-1, W' Sigma^-1 W = W'S^-1 W P^-1 D^-1 and Sigma^-1 =
        S^-1 - S^-1 W P^-1 W'S^-1.
        """
        cdef Py_ssize_t i, j, a, b, K = self.state.n_factors, m = self.row_law.n_here
        cdef Py_ssize_t n_means = K if self.state.law.means != OF_FEATURES else 0
        cdef double weight = 0.0, total
        cdef double* out
        for j in range(m):
            self.weighted_row[j] = 0.0
        for i in range(n):
            weight += self.state.row_precision[self.row_law.picked[i]]
            for j in range(m):
                self.weighted_row[j] += (
                    self.state.row_precision[self.row_law.picked[i]]
                    * self.state.X[self.row_law.picked[i], self.row_law.here[j]]
                )
        # whitened = U^-T W'S^-1, so that P^-1 W'S^-1 = U^-1 whitened.
        for a in range(K):
            for j in range(m):
                self.whitened[a, j] = self.row_law.loading[j, a]
        for j in range(m):
            for a in range(K):
                self.row_law.half[0, a] = self.whitened[a, j]
            if K:
                linalg.solve_transposed(&self.row_law.factor[0, 0], K, &self.row_law.half[0, 0])
            for a in range(K):
                self.whitened[a, j] = self.row_law.half[0, a]
        # half[0] = U^-T W'S^-1 xbar
        for a in range(K):
            total = 0.0
            for j in range(m):
                total += self.whitened[a, j] * self.weighted_row[j]
            self.row_law.half[0, a] = total
        if self.state.law.means != OF_FACTORS:
            for i in range(m):
                out = &self.information[n_means + self.row_law.here[i], 0]
                total = self.weighted_row[i] * self.row_law.precision[i]
                for a in range(K):
                    total -= self.whitened[a, i] * self.row_law.half[0, a]
                self.side[n_means + self.row_law.here[i]] += total
                out[n_means + self.row_law.here[i]] += weight * self.row_law.precision[i]
                for j in range(i, m):
                    total = 0.0
                    for a in range(K):
                        total += self.whitened[a, i] * self.whitened[a, j]
                    out[n_means + self.row_law.here[j]] -= weight * total
        if n_means == 0 or K == 0:
            return
        linalg.solve(&self.row_law.factor[0, 0], K, &self.row_law.half[0, 0])
        for a in range(K):
            self.side[a] += self.row_law.half[0, a] * self.row_law.inverse[a]
        # Column b of W'S^-1 W, solved: row a of P^-1 W'S^-1 W.
        for b in range(K):
            for a in range(K):
                self.row_law.half[0, a] = self.row_law.gram[min(a, b), max(a, b)]
            linalg.solve_transposed(&self.row_law.factor[0, 0], K, &self.row_law.half[0, 0])
            linalg.solve(&self.row_law.factor[0, 0], K, &self.row_law.half[0, 0])
            for a in range(b + 1):
                self.information[a, b] += weight * self.row_law.half[0, a] * self.row_law.inverse[a]
        if self.state.law.means == OF_FACTORS:
            return
        for j in range(m):
            for a in range(K):
                self.row_law.half[0, a] = self.whitened[a, j]
            linalg.solve(&self.row_law.factor[0, 0], K, &self.row_law.half[0, 0])
            for a in range(K):
                self.information[a, n_means + self.row_law.here[j]] += (
                    weight * self.row_law.half[0, a] * self.row_law.inverse[a]
                )

    cdef void draw_cluster(self, Py_ssize_t g) noexcept nogil:
        """(m, o) of a cluster given what its rows say of them, scores integrated out."""
        cdef Py_ssize_t i, k, K = self.state.n_factors if self.state.law.means != OF_FEATURES else 0
        cdef Py_ssize_t size = self.side.shape[0]
        for k in range(K):
            self.information[k, k] += self.state.law.score_precision / self.state.V[g, k]
        for i in range(K, size):
            self.information[i, i] += self.state.offset_precision / self.state.noise(g)[i - K]
        if linalg.cholesky(&self.information[0, 0], size) != 0:
            self.state.is_broken = True
            return
        linalg.solve_transposed(&self.information[0, 0], size, &self.side[0])
        for i in range(size):
            self.side[i] += draws.normal(self.rng)
        linalg.solve(&self.information[0, 0], size, &self.side[0])
        for k in range(K):
            self.state.M[g, k] = self.side[k]
        for i in range(K, size):
            self.state.shift[g, i - K] = self.side[i]
