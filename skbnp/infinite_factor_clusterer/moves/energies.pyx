"""Means, variances of factors and noise of every cluster, given scores."""

from libc.math cimport fmax, isfinite, sqrt

import numpy as np

from skbnp.infinite_factor_clusterer._law cimport OF_FACTORS, OF_FEATURES
from skbnp.infinite_factor_clusterer._sides cimport Sides
from skbnp.infinite_factor_clusterer._state cimport State, draw_inverse_gamma
from skbnp.mcmc.chain cimport Move
from skbnp.numerics cimport rng as draws


cdef class Energies(Move):
    """v, m, s, o | scores, labels; h, the precision of offsets | these."""

    NAME = "energies"

    def __init__(self, State state, Sides sides, bit_generator):
        super().__init__(bit_generator)
        self.state, self.sides = state, sides
        self.half_width = np.zeros(0)

    cpdef int run(self) except -1:
        with nogil:
            self.state.need_residuals()
            self.update()
        return self.state.outcome()

    cdef int make_room(self) except -1 with gil:
        """Room for the present numbers of factors and clusters."""
        self.sides.make_room()
        if self.half_width.shape[0] < self.state.cluster_room:
            self.half_width = np.zeros(self.state.cluster_room)
        return 0

    cdef int update(self) except -1 nogil:
        """v, m, s, o of every cluster given scores and residuals, then h: (F4.5) and (F4.6).

        O(T (N + K)).
        """
        cdef Py_ssize_t g, a
        self.make_room()
        self.sides.clear(1)
        for g in range(self.state.n_clusters):
            self.sides.clear(0)
            for a in range(self.state.cluster_start[g], self.state.cluster_start[g + 1]):
                self.sides.take_row(self.state.by_cluster[a])
                self.sides.add_row(0, 1.0)
            self.draw_cluster(g, 0)
        self.draw_noises()
        return 0

    cdef void draw_cluster(self, Py_ssize_t g, int side) noexcept nogil:
        """Means and energies of the factors in a cluster, given the sums of a side.

        Its noise too, unless that is shared: then side 1 gathers what all clusters say of it.
        """
        cdef Py_ssize_t i, j, K = self.state.n_factors
        cdef double n = self.sides.count[side], total, weight, squares
        for i in range(K):
            total, squares = self.sides.sum[side, i], self.sides.square[side, i]
            weight = self.state.law.score_precision + self.sides.weight[side, i]
            if self.state.law.means != OF_FEATURES:
                squares = fmax(squares - total * total / weight, 0.0)
            self.state.V[g, i] = draw_inverse_gamma(
                self.rng, self.state.law.score_shape + 0.5 * n,
                self.state.law.score_scale + 0.5 * squares
            )
            self.state.M[g, i] = 0.0
            if self.state.law.means != OF_FEATURES:
                self.state.M[g, i] = total / weight + (
                    draws.normal(self.rng) * sqrt(self.state.V[g, i] / weight)
                )
            if not (isfinite(self.state.V[g, i]) and isfinite(self.state.M[g, i])):
                self.state.is_broken = True
        for j in range(self.state.n_features):
            i = K + j
            total, squares = self.sides.sum[side, i], self.sides.square[side, i]
            weight = self.state.offset_precision + self.sides.weight[side, i]
            if self.state.law.means != OF_FACTORS:
                squares = fmax(squares - total * total / weight, 0.0)
            if self.state.law.shared_noise:
                # The offset waits for the noise: its mean is kept where it will be.
                self.sides.square[1, i] += squares
                self.state.shift[g, j] = 0.0
                if self.state.law.means != OF_FACTORS:
                    self.state.shift[g, j] = total / weight
                self.half_width[g] = 1.0 / sqrt(weight)
                continue
            self.state.S[g, j] = draw_inverse_gamma(
                self.rng, self.state.law.noise_shape + 0.5 * n, self.state.rate[j] + 0.5 * squares
            )
            if self.state.law.means != OF_FACTORS:
                self.state.shift[g, j] = total / weight + (
                    draws.normal(self.rng) * sqrt(self.state.S[g, j] / weight)
                )

    cdef void draw_noises(self) noexcept nogil:
        """Shared noise and the offsets that waited for it; h; the precision of offsets."""
        cdef Py_ssize_t g, j, n = 1 if self.state.law.shared_noise else self.state.n_clusters
        cdef double inverse, squares = 0.0
        for j in range(self.state.n_features):
            if self.state.law.shared_noise:
                self.state.S[0, j] = draw_inverse_gamma(
                    self.rng, self.state.law.noise_shape + 0.5 * self.state.n_samples,
                    self.state.rate[j] + 0.5 * self.sides.square[1, self.state.n_factors + j],
                )
                for g in range(self.state.n_clusters if self.state.law.means != OF_FACTORS else 0):
                    self.state.shift[g, j] += (
                        self.half_width[g] * sqrt(self.state.S[0, j]) * draws.normal(self.rng)
                    )
            inverse = 0.0
            for g in range(n):
                inverse += 1.0 / self.state.S[g, j]
            self.state.rate[j] = self.state.law.draw_rate(self.rng, n, inverse)
            for g in range(self.state.n_clusters):
                squares += self.state.shift[g, j] * self.state.shift[g, j] / self.state.noise(g)[j]
        if self.state.law.means != OF_FACTORS:
            self.state.offset_precision = self.state.law.draw_offset_precision(
                self.rng, self.state.n_clusters * self.state.n_features, squares
            )
