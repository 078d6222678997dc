"""Births and deaths of factors that one feature alone is linked to."""

from libc.math cimport fmax, isfinite, log, sqrt

import numpy as np

from skbnp.infinite_factor_clusterer._law cimport OF_FACTORS, OF_FEATURES
from skbnp.infinite_factor_clusterer._state cimport (
    State, draw_inverse_gamma, log_inverse_gamma,
)
from skbnp.mcmc.chain cimport Move
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma


cdef class Births(Move):
    """Factors of one link come and go; their scores and means are integrated out (F6.4)."""

    NAME = "births"
    COUNTS = ("births", "deaths")

    def __init__(self, State state, n_attempts, bit_generator):
        super().__init__(bit_generator)
        self.state, self.n_attempts = state, n_attempts
        self.residual = np.zeros(state.n_samples)
        self.new_variance = self.new_noise = np.zeros(0)

    cpdef int run(self) except -1:
        with nogil:
            self.state.need_residuals()
            self.update()
        return self.state.outcome()

    cdef int make_room(self) except -1 with gil:
        """Room for the energies of clusters."""
        if self.new_variance.shape[0] < self.state.n_clusters:
            self.new_variance, self.new_noise = np.zeros((2, self.state.cluster_room))
        return 0

    cdef int update(self) except -1 nogil:
        """Factors of one feature come and go, so many attempts for each feature.

        mathematics/infinite_factor_clusterer, section 6.
        Scores and means are integrated out. Without ``shared_noise`` the feature's noise goes
        along: a new factor and what is left of the noise share out the cluster's variance.
        O(T) an attempt.
        """
        cdef Py_ssize_t j, _
        for j in range(self.state.n_features):
            for _ in range(self.n_attempts):
                self.make_room()
                if draws.uniform(self.rng) < 0.5:
                    self.try_birth(j)
                else:
                    self.try_death(j)
        return 0

    cdef Py_ssize_t n_singletons(self, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t k, n = 0
        for k in range(self.state.n_factors):
            n += self.state.n_links[k] == 1 and self.state.W[j, k] != 0.0
        return n

    cdef int try_birth(self, Py_ssize_t j) except -1 nogil:
        """Propose a factor of feature j alone: loading from the prior, energies by the data."""
        cdef Py_ssize_t g, t, k = self.state.n_factors, i
        cdef double slab, w, log_ratio
        self.proposed[0] += 1
        self.state.reserve_factors(k + 1)
        slab = draw_inverse_gamma(self.rng, self.state.law.slab_shape, self.state.law.slab_scale)
        w = sqrt(slab) * draws.normal(self.rng)
        self.draw_upper_row()
        for t in range(self.state.n_samples):
            self.residual[t] = self.state.R[t, j] - self.state.shift[self.state.label[t], j]
        self.propose_energies(j, w)
        log_ratio = log(self.state.mass / self.state.n_features) + self.log_gain(j, w, k)
        log_ratio -= self.log_count(self.n_singletons(j) + 1)
        # A loading of exactly 0 would be no link.
        if not (w != 0.0 and log(draws.uniform(self.rng)) < log_ratio):
            self.drop_upper_row()
            return 0
        self.accepted[0] += 1
        for i in range(self.state.n_features):
            self.state.W[i, k] = 0.0
        self.state.W[j, k], self.state.slab[k], self.state.n_links[k] = w, slab, 1
        for g in range(self.state.n_clusters):
            self.state.V[g, k] = self.new_variance[g]
            if not self.state.law.shared_noise:
                self.state.S[g, j] = self.new_noise[g]
        self.state.n_factors += 1
        self.state.inflated = self.state.has_upper and self.state.upper.n_factors > 0
        self.draw_singleton(j, k)
        return 0

    cdef int try_death(self, Py_ssize_t j) except -1 nogil:
        """Propose that one of the factors of feature j alone goes."""
        cdef Py_ssize_t n = self.n_singletons(j), left, g, t, k = -1
        cdef double w, log_ratio
        self.proposed[1] += 1
        if n == 0:
            return 0
        left = draws.below(self.rng, n)
        while left >= 0:
            k += 1
            left -= self.state.n_links[k] == 1 and self.state.W[j, k] != 0.0
        w = self.state.W[j, k]
        for t in range(self.state.n_samples):
            g = self.state.label[t]
            self.residual[t] = self.state.R[t, j] - self.state.shift[g, j] + w * self.state.Y[t, k]
        for g in range(self.state.n_clusters):
            self.new_variance[g], self.new_noise[g] = self.state.V[g, k], self.state.noise(g)[j]
        log_ratio = -log(self.state.mass / self.state.n_features) - self.log_gain(j, w, k)
        log_ratio += self.log_count(n)
        if not log(draws.uniform(self.rng)) < log_ratio:
            return 0
        self.accepted[1] += 1
        for t in range(self.state.n_samples):
            self.state.R[t, j] = self.residual[t] + self.state.shift[self.state.label[t], j]
        if not self.state.law.shared_noise:
            self.draw_noise_without(j)
        self.remove_upper_row(k)
        self.state.remove_factor(k)
        return 0

    cdef double noise_scale(self, Py_ssize_t g, Py_ssize_t j, double* shape) noexcept nogil:
        """IG(shape, scale) of a cluster's noise given residuals without the factor."""
        cdef Py_ssize_t i, t
        cdef double squares = 0.0
        for i in range(self.state.cluster_start[g], self.state.cluster_start[g + 1]):
            t = self.state.by_cluster[i]
            squares += self.state.row_precision[t] * self.residual[t] * self.residual[t]
        shape[0] = self.state.law.noise_shape + 0.5 * self.state.n_members(g)
        if self.state.law.means != OF_FACTORS:
            # The offset, which stays, is scaled by the noise.
            shape[0] += 0.5
            squares += self.state.offset_precision * self.state.shift[g, j] * self.state.shift[g, j]
        return self.state.rate[j] + 0.5 * squares

    cdef void draw_noise_without(self, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t g
        cdef double shape, scale
        for g in range(self.state.n_clusters):
            scale = self.noise_scale(g, j, &shape)
            self.state.S[g, j] = draw_inverse_gamma(self.rng, shape, scale)

    cdef double within_scale(self, Py_ssize_t g, Py_ssize_t j) noexcept nogil:
        """Scale of the proposal of w^2 v + s: residuals about the mean of the cluster."""
        cdef Py_ssize_t i, t
        cdef double weight, total = 0.0, side = 0.0, squares = 0.0
        for i in range(self.state.cluster_start[g], self.state.cluster_start[g + 1]):
            t = self.state.by_cluster[i]
            weight = self.state.row_precision[t]
            total += weight
            side += weight * self.residual[t]
            squares += weight * self.residual[t] * self.residual[t]
        if self.state.law.means != OF_FEATURES:
            squares = fmax(squares - side * side / total, 0.0)
        return self.state.rate[j] + 0.5 * squares

    cdef void propose_energies(self, Py_ssize_t j, double w) noexcept nogil:
        """v* and s* of each cluster: w^2 v* = f tau, s* = (1 - f) tau; or v* from the prior.

        tau ~ IG of the residuals within the cluster, f ~ U(0, 1).
        """
        cdef Py_ssize_t g
        cdef double share, whole
        for g in range(self.state.n_clusters):
            if self.state.law.shared_noise:
                self.new_variance[g] = draw_inverse_gamma(
                    self.rng, self.state.law.score_shape, self.state.law.score_scale
                )
                self.new_noise[g] = self.state.noise(g)[j]
                continue
            share = draws.uniform(self.rng)
            whole = draw_inverse_gamma(
                self.rng, self.state.law.noise_shape + 0.5 * self.state.n_members(g),
                self.within_scale(g, j),
            )
            self.new_variance[g] = fmax(share * whole / fmax(w * w, 1e-300), 1e-300)
            self.new_noise[g] = fmax((1.0 - share) * whole, 1e-300)

    cdef double log_gain(self, Py_ssize_t j, double w, Py_ssize_t slot) noexcept nogil:
        """Log ratio of the residuals with the factor to those without, proposals included.

        With it a residual is N(w m, (w^2 v u + s*) / lambda) and m is integrated out; without it
        the noise is integrated out, or the same if it is shared.
        """
        cdef Py_ssize_t g, i, t, n
        cdef double gain = 0.0, v, s, whole, variance, weight, r, between
        cdef double precision, side, squares, log_det, plain, shape, scale, off
        for g in range(self.state.n_clusters):
            v, s, n = self.new_variance[g], self.new_noise[g], self.state.n_members(g)
            whole = w * w * v + s
            precision = side = squares = plain = 0.0
            log_det = n * log(whole)
            variance = whole
            if self.state.has_upper:
                log_det = 0.0
            for i in range(self.state.cluster_start[g], self.state.cluster_start[g + 1]):
                t = self.state.by_cluster[i]
                weight, r = self.state.row_precision[t], self.residual[t]
                if self.state.has_upper:
                    variance = w * w * v * self.state.U[t, slot] + s
                    log_det += log(variance)
                plain += weight * r * r
                weight /= variance
                precision += weight
                side += weight * r
                squares += weight * r * r
            gain -= 0.5 * (log_det + squares)
            if self.state.law.means != OF_FEATURES:
                between = w * w * v / self.state.law.score_precision
                gain -= 0.5 * log(1.0 + between * precision)
                gain += 0.5 * between * side * side / (1.0 + between * precision)
            if self.state.law.shared_noise:
                gain += 0.5 * (n * log(s) + plain / s)
                continue
            gain += log_inverse_gamma(v, self.state.law.score_shape, self.state.law.score_scale)
            gain += log_inverse_gamma(s, self.state.law.noise_shape, self.state.rate[j])
            if self.state.law.means != OF_FACTORS:
                off = self.state.shift[g, j]
                gain -= 0.5 * (log(s) + self.state.offset_precision * off * off / s)
            scale = self.noise_scale(g, j, &shape)
            gain -= (
                self.state.law.noise_shape * log(self.state.rate[j])
                - lgamma(self.state.law.noise_shape)
            )
            gain -= lgamma(shape) - shape * log(scale)
            gain -= log_inverse_gamma(
                whole, self.state.law.noise_shape + 0.5 * n, self.within_scale(g, j)
            )
            gain -= self.log_jacobian(w, whole)
        return gain

    cdef double log_count(self, Py_ssize_t n) noexcept nogil:
        """Of factors that a feature has alone: the death's choice is one of so many."""
        return log(<double> n)

    cdef double log_jacobian(self, double w, double whole) noexcept nogil:
        """Of (v*, s*) to the share and the whole of a cluster's variance (F6.2)."""
        return log(w * w / whole)

    cdef void draw_singleton(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil:
        """Mean and scores of a new factor given the residuals of its feature."""
        cdef Py_ssize_t g, i, t
        cdef double w = self.state.W[j, k], v, s, precision, side, weight, own
        for g in range(self.state.n_clusters):
            v, s = self.state.V[g, k], self.state.noise(g)[j]
            self.state.M[g, k] = 0.0
            if self.state.law.means != OF_FEATURES:
                precision, side = self.state.law.score_precision / v, 0.0
                for i in range(self.state.cluster_start[g], self.state.cluster_start[g + 1]):
                    t = self.state.by_cluster[i]
                    own = v * (self.state.U[t, k] if self.state.has_upper else 1.0)
                    weight = self.state.row_precision[t] / (w * w * own + s)
                    precision += weight * w * w
                    side += weight * w * self.residual[t]
                self.state.M[g, k] = side / precision + draws.normal(self.rng) / sqrt(precision)
            for i in range(self.state.cluster_start[g], self.state.cluster_start[g + 1]):
                t = self.state.by_cluster[i]
                own = 1.0 / (v * (self.state.U[t, k] if self.state.has_upper else 1.0))
                precision = own + w * w / s
                side = own * self.state.M[g, k] + w * self.residual[t] / s
                self.state.Y[t, k] = side / precision + (
                    draws.normal(self.rng) / sqrt(precision * self.state.row_precision[t])
                )
                self.state.R[t, j] -= w * self.state.Y[t, k]
                if not isfinite(self.state.Y[t, k]):
                    self.state.is_broken = True

    # -- the layer above ------------------------------------------------------------------------

    cdef int draw_upper_row(self) except -1 nogil:
        """The links of a new factor to the layer above, and with them its inflation."""
        cdef Py_ssize_t t, k = self.state.n_factors
        cdef double a
        if not self.state.has_upper:
            return 0
        self.state.upper.draw_row(self.rng)
        for t in range(self.state.n_samples):
            a = self.state.upper.A[k, t]
            self.state.U[t, k] = 1.0 + a * a
        return 0

    cdef void drop_upper_row(self) noexcept nogil:
        """Take the last of these back."""
        if self.state.has_upper:
            self.state.upper.drop_last_row()

    cdef void remove_upper_row(self, Py_ssize_t k) noexcept nogil:
        """Factor k goes, and the factors above that it alone has."""
        if self.state.has_upper:
            self.state.upper.remove_row(k)
            self.state.inflated = self.state.upper.n_factors > 0
