"""Factors: loadings under the Indian buffet process, births and deaths of factors, their scales."""

from libc.math cimport exp, fmax, isfinite, log, sqrt

import numpy as np

from skbnp.infinite_factor_clusterer._rows cimport Rows
from skbnp.infinite_factor_clusterer._state cimport (
    BIRTH_COUNT, BIRTHS, FLAT_UPPER, LOADINGS, NO_STRETCH, OF_FACTORS, OF_FEATURES, OWN_LINK,
    STALE_NOISE, UNWEIGHTED, log_inverse_gamma,
)
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log1p_exp

cdef enum:
    CHUNK = 256             # rows whose products are summed together

# Step of the scale of a factor, in its log.
cdef double STRETCH = 0.15


cdef class Factors(Rows):
    """The moves of columns of W, given labels and scores."""

    def __cinit__(self, *args, **kwargs):
        self.gram = self.weighted = np.zeros((0, 0))
        self.cluster_gram = self.cluster_side = np.zeros((0, 0, 0))
        self.feature_side = self.new_variance = self.new_noise = np.zeros(0)
        self.order = np.zeros(0, dtype=np.intp)

    def __init__(self, X, prior, state, bit_generator, limit, int fault):
        super().__init__(X, prior, state, bit_generator, limit, fault)
        self.residual = np.zeros(self.n_samples)

    cdef int _need_sums(self) except -1 with gil:
        """Room for the sums over the rows of each cluster."""
        cdef Py_ssize_t k = max(1, self.n_factors), n = 1 if self.shared_noise else self.n_clusters
        if self.gram.shape[0] != k:
            self.gram, self.feature_side = np.zeros((k, k)), np.zeros(k)
            self.weighted, self.order = np.zeros((2 * CHUNK, k)), np.zeros(k, dtype=np.intp)
        if self.cluster_gram.shape[0] < n or self.cluster_gram.shape[1] != k:
            self.cluster_gram = np.zeros((n + 4, k, k))
            self.cluster_side = np.zeros((n + 4, k, self.n_features))
        if self.new_variance.shape[0] < self.n_clusters:
            self.new_variance, self.new_noise = np.zeros((2, self.cluster_room))
        return 0

    # -- loadings -------------------------------------------------------------------------------

    cdef int _sum_products(self) except -1 nogil:
        """Sums of lambda y y' and lambda y (x - o)' by cluster: O(T K (K + N)), BLAS 3."""
        cdef Py_ssize_t g, i, n, j, k, t, stop, to, K = self.n_factors
        cdef double* own = &self.weighted[0, 0]
        cdef double* plain = &self.weighted[CHUNK, 0]
        self.cluster_gram[:, :, :] = 0.0
        self.cluster_side[:, :, :] = 0.0
        for g in range(self.n_clusters):
            to = 0 if self.shared_noise else g
            i, stop = self.cluster_start[g], self.cluster_start[g + 1]
            while i < stop:
                n = 0
                while i < stop and n < CHUNK:
                    t = self.by_cluster[i]
                    for k in range(K):
                        plain[n * K + k] = self.Y[t, k]
                        own[n * K + k] = self.row_precision[t] * self.Y[t, k]
                    for j in range(self.n_features):
                        self.chunk[n, j] = self.X[t, j] - self.shift[g, j]
                    n += 1
                    i += 1
                linalg.gemm(True, False, K, K, n, 1.0, own, plain, 1.0,
                            &self.cluster_gram[to, 0, 0])
                linalg.gemm(True, False, K, self.n_features, n, 1.0, own, &self.chunk[0, 0], 1.0,
                            &self.cluster_side[to, 0, 0])
        return 0

    cdef int _update_loadings(self) except -1 nogil:
        """Links and loadings one by one, then the slab variances: equation (F4.7).

        O(T K (K + N)) for the sums, then O(N G K^2), whatever T.
        """
        cdef Py_ssize_t j, k, n
        cdef double squares
        if self.n_factors == 0:
            return 0
        self._need_sums()
        self._sum_products()
        for j in range(self.n_features):
            self._draw_feature(j)
        for k in range(self.n_factors):
            n, squares = self.n_links[k], 0.0
            for j in range(self.n_features):
                squares += self.W[j, k] * self.W[j, k]
            self.slab[k] = self._inverse_gamma(
                self.slab_shape + 0.5 * n, self.slab_scale + 0.5 * squares
            )
            if not isfinite(squares):
                self._break(LOADINGS)
        return 0

    cdef void _draw_feature(self, Py_ssize_t j) noexcept nogil:
        """All loadings of a feature, each given the others, in random order."""
        cdef Py_ssize_t i, g, k, other, others, K = self.n_factors
        cdef Py_ssize_t n = 1 if self.shared_noise else self.n_clusters
        cdef double precision, side, log_odds, weight
        cdef double* row = &self.gram[0, 0]
        cdef const double* part
        for i in range(K * K):
            row[i] = 0.0
        for k in range(K):
            self.feature_side[k] = 0.0
        for g in range(n):
            weight = 1.0 if self.fault == UNWEIGHTED else 1.0 / self._noise(g)[j]
            part = &self.cluster_gram[g, 0, 0]
            for i in range(K * K):
                row[i] += weight * part[i]
            for k in range(K):
                self.feature_side[k] += weight * self.cluster_side[g, k, j]
        # The order must not depend on when a factor was born.
        for k in range(K):
            self.order[k] = k
        draws.shuffle(self._rng, &self.order[0], K)
        for i in range(K):
            k = self.order[i]
            others = self.n_links[k] - (self.W[j, k] != 0.0 and self.fault != OWN_LINK)
            if others == 0 and self.W[j, k] == 0.0:
                continue
            side = self.feature_side[k]
            for other in range(K):
                if other != k:
                    side -= self.gram[k, other] * self.W[j, other]
            precision = self.gram[k, k] + 1.0 / self.slab[k]
            if self.n_links[k] > 1 or self.W[j, k] == 0.0:
                log_odds = log(<double> others) - log(<double> (self.n_features - others))
                log_odds += 0.5 * side * side / precision - 0.5 * log(precision * self.slab[k])
                self.n_links[k] -= self.W[j, k] != 0.0
                self.W[j, k] = 0.0
                if log(draws.uniform(self._rng)) >= -log1p_exp(-log_odds):
                    continue
                self.n_links[k] += 1
            self.W[j, k] = side / precision + draws.normal(self._rng) / sqrt(precision)

    # -- births and deaths ----------------------------------------------------------------------

    cdef int _update_singletons(self, Py_ssize_t n_attempts) except -1 nogil:
        """Factors of one feature come and go, so many attempts for each feature: mathematics, section 6.

        Scores and means are integrated out. Without ``shared_noise`` the feature's noise goes
        along: a new factor and what is left of the noise share out the cluster's variance.
        O(T) an attempt.
        """
        cdef Py_ssize_t j, _
        for j in range(self.n_features):
            for _ in range(n_attempts):
                self._need_sums()
                if draws.uniform(self._rng) < 0.5:
                    self._give_birth(j)
                else:
                    self._let_die(j)
        return 0

    cdef Py_ssize_t _n_singletons(self, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t k, n = 0
        for k in range(self.n_factors):
            n += self.n_links[k] == 1 and self.W[j, k] != 0.0
        return n

    cdef int _give_birth(self, Py_ssize_t j) except -1 nogil:
        """Propose a factor of feature j alone: loading from the prior, energies by the data."""
        cdef Py_ssize_t g, t, k = self.n_factors, i
        cdef double slab, w, log_ratio
        self.n_births_tried += 1
        self._reserve_factors(k + 1)
        slab = self._inverse_gamma(self.slab_shape, self.slab_scale)
        w = sqrt(slab) * draws.normal(self._rng)
        self._draw_upper_row()
        for t in range(self.n_samples):
            self.residual[t] = self.R[t, j] - self.shift[self.label[t], j]
        self._propose_energies(j, w)
        log_ratio = log(self.mass / self.n_features) + self._log_gain(j, w, k)
        log_ratio -= log(self._n_singletons(j) + (1.0 if self.fault != BIRTH_COUNT else 2.0))
        # A loading of exactly 0 would be no link.
        if not (w != 0.0 and log(draws.uniform(self._rng)) < log_ratio):
            self._drop_upper_row()
            return 0
        self.n_births += 1
        for i in range(self.n_features):
            self.W[i, k] = 0.0
        self.W[j, k], self.slab[k], self.n_links[k] = w, slab, 1
        for g in range(self.n_clusters):
            self.V[g, k] = self.new_variance[g]
            if not self.shared_noise:
                self.S[g, j] = self.new_noise[g]
        self.n_factors += 1
        self.inflated = self.has_upper and self.upper.n_factors > 0
        self._draw_singleton(j, k)
        return 0

    cdef int _let_die(self, Py_ssize_t j) except -1 nogil:
        """Propose that one of the factors of feature j alone goes."""
        cdef Py_ssize_t n = self._n_singletons(j), left, g, t, k = -1
        cdef double w, log_ratio
        self.n_deaths_tried += 1
        if n == 0:
            return 0
        left = draws.below(self._rng, n)
        while left >= 0:
            k += 1
            left -= self.n_links[k] == 1 and self.W[j, k] != 0.0
        w = self.W[j, k]
        for t in range(self.n_samples):
            g = self.label[t]
            self.residual[t] = self.R[t, j] - self.shift[g, j] + w * self.Y[t, k]
        for g in range(self.n_clusters):
            self.new_variance[g], self.new_noise[g] = self.V[g, k], self._noise(g)[j]
        log_ratio = -log(self.mass / self.n_features) - self._log_gain(j, w, k)
        log_ratio += log(<double> n + (self.fault == BIRTH_COUNT))
        if not log(draws.uniform(self._rng)) < log_ratio:
            return 0
        self.n_deaths += 1
        for t in range(self.n_samples):
            self.R[t, j] = self.residual[t] + self.shift[self.label[t], j]
        if not self.shared_noise:
            self._draw_noise_without(j)
        self._remove_upper_row(k)
        self._remove_factor(k)
        return 0

    cdef double _noise_scale(self, Py_ssize_t g, Py_ssize_t j, double* shape) noexcept nogil:
        """IG(shape, scale) of a cluster's noise given residuals without the factor."""
        cdef Py_ssize_t i, t
        cdef double squares = 0.0
        for i in range(self.cluster_start[g], self.cluster_start[g + 1]):
            t = self.by_cluster[i]
            squares += self.row_precision[t] * self.residual[t] * self.residual[t]
        shape[0] = self.noise_shape + 0.5 * self._n_members(g)
        if self.means != OF_FACTORS:
            # The offset, which stays, is scaled by the noise.
            shape[0] += 0.5
            squares += self.offset_precision * self.shift[g, j] * self.shift[g, j]
        return self.rate[j] + 0.5 * squares

    cdef void _draw_noise_without(self, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t g
        cdef double shape, scale
        for g in range(self.n_clusters):
            scale = self._noise_scale(g, j, &shape)
            self.S[g, j] = self._inverse_gamma(shape, scale)

    cdef double _within_scale(self, Py_ssize_t g, Py_ssize_t j) noexcept nogil:
        """Scale of the proposal of w^2 v + s: residuals about the mean of the cluster."""
        cdef Py_ssize_t i, t
        cdef double weight, total = 0.0, side = 0.0, squares = 0.0
        for i in range(self.cluster_start[g], self.cluster_start[g + 1]):
            t = self.by_cluster[i]
            weight = self.row_precision[t]
            total += weight
            side += weight * self.residual[t]
            squares += weight * self.residual[t] * self.residual[t]
        if self.means != OF_FEATURES:
            squares = fmax(squares - side * side / total, 0.0)
        return self.rate[j] + 0.5 * squares

    cdef void _propose_energies(self, Py_ssize_t j, double w) noexcept nogil:
        """v* and s* of each cluster: w^2 v* = f tau, s* = (1 - f) tau; or v* from the prior.

        tau ~ IG of the residuals within the cluster, f ~ U(0, 1).
        """
        cdef Py_ssize_t g
        cdef double share, whole
        for g in range(self.n_clusters):
            if self.shared_noise:
                self.new_variance[g] = self._inverse_gamma(self.score_shape, self.score_scale)
                self.new_noise[g] = self._noise(g)[j]
                continue
            share = draws.uniform(self._rng)
            whole = self._inverse_gamma(
                self.noise_shape + 0.5 * self._n_members(g), self._within_scale(g, j)
            )
            self.new_variance[g] = fmax(share * whole / fmax(w * w, 1e-300), 1e-300)
            self.new_noise[g] = fmax((1.0 - share) * whole, 1e-300)

    cdef double _log_gain(self, Py_ssize_t j, double w, Py_ssize_t slot) noexcept nogil:
        """Log ratio of the residuals with the factor to those without, proposals included.

        With it a residual is N(w m, (w^2 v u + s*) / lambda) and m is integrated out; without it
        the noise is integrated out, or the same if it is shared.
        """
        cdef Py_ssize_t g, i, t, n
        cdef double gain = 0.0, v, s, whole, variance, weight, r, between
        cdef double precision, side, squares, log_det, plain, shape, scale, off
        for g in range(self.n_clusters):
            v, s, n = self.new_variance[g], self.new_noise[g], self._n_members(g)
            whole = w * w * v + s
            precision = side = squares = plain = 0.0
            log_det = n * log(whole)
            variance = whole
            if self.has_upper:
                log_det = 0.0
            for i in range(self.cluster_start[g], self.cluster_start[g + 1]):
                t = self.by_cluster[i]
                weight, r = self.row_precision[t], self.residual[t]
                if self.has_upper:
                    variance = w * w * v * self.U[t, slot] + s
                    log_det += log(variance)
                plain += weight * r * r
                weight /= variance
                precision += weight
                side += weight * r
                squares += weight * r * r
            gain -= 0.5 * (log_det + squares)
            if self.means != OF_FEATURES:
                between = w * w * v / self.score_precision
                gain -= 0.5 * log(1.0 + between * precision)
                gain += 0.5 * between * side * side / (1.0 + between * precision)
            if self.shared_noise:
                gain += 0.5 * (n * log(s) + plain / s)
                continue
            gain += log_inverse_gamma(v, self.score_shape, self.score_scale)
            gain += log_inverse_gamma(s, self.noise_shape, self.rate[j])
            if self.means != OF_FACTORS:
                off = self.shift[g, j]
                gain -= 0.5 * (log(s) + self.offset_precision * off * off / s)
            scale = self._noise_scale(g, j, &shape)
            gain -= self.noise_shape * log(self.rate[j]) - lgamma(self.noise_shape)
            gain -= lgamma(shape) - shape * log(scale)
            gain -= log_inverse_gamma(
                whole, self.noise_shape + 0.5 * n, self._within_scale(g, j)
            )
            if self.fault != STALE_NOISE:
                gain -= log(w * w / whole)
        return gain

    cdef void _draw_singleton(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil:
        """Mean and scores of a new factor given the residuals of its feature."""
        cdef Py_ssize_t g, i, t
        cdef double w = self.W[j, k], v, s, precision, side, weight, own
        for g in range(self.n_clusters):
            v, s = self.V[g, k], self._noise(g)[j]
            self.M[g, k] = 0.0
            if self.means != OF_FEATURES:
                precision, side = self.score_precision / v, 0.0
                for i in range(self.cluster_start[g], self.cluster_start[g + 1]):
                    t = self.by_cluster[i]
                    own = v * (self.U[t, k] if self.has_upper else 1.0)
                    weight = self.row_precision[t] / (w * w * own + s)
                    precision += weight * w * w
                    side += weight * w * self.residual[t]
                self.M[g, k] = side / precision + draws.normal(self._rng) / sqrt(precision)
            for i in range(self.cluster_start[g], self.cluster_start[g + 1]):
                t = self.by_cluster[i]
                own = 1.0 / (v * (self.U[t, k] if self.has_upper else 1.0))
                precision = own + w * w / s
                side = own * self.M[g, k] + w * self.residual[t] / s
                self.Y[t, k] = side / precision + (
                    draws.normal(self._rng) / sqrt(precision * self.row_precision[t])
                )
                self.R[t, j] -= w * self.Y[t, k]
                if not isfinite(self.Y[t, k]):
                    self._break(BIRTHS)

    cdef void _remove_factor(self, Py_ssize_t k) noexcept nogil:
        """The last factor takes the slot of factor k."""
        cdef Py_ssize_t g, j, t, last = self.n_factors - 1
        for t in range(self.n_samples):
            self.Y[t, k], self.U[t, k] = self.Y[t, last], self.U[t, last]
        for j in range(self.n_features):
            self.W[j, k] = self.W[j, last]
            self.W[j, last] = 0.0
        for g in range(self.n_clusters):
            self.M[g, k], self.V[g, k] = self.M[g, last], self.V[g, last]
        self.slab[k], self.n_links[k] = self.slab[last], self.n_links[last]
        self.n_factors = last

    # -- the layer above ------------------------------------------------------------------------

    cdef int _draw_upper_row(self) except -1 nogil:
        """The links of a new factor to the layer above, and with them its inflation."""
        cdef Py_ssize_t t, k = self.n_factors
        cdef double a
        if not self.has_upper:
            return 0
        self.upper.draw_row(self._rng)
        for t in range(self.n_samples):
            a = self.upper.A[k, t]
            self.U[t, k] = 1.0 if self.fault == FLAT_UPPER else 1.0 + a * a
        return 0

    cdef void _drop_upper_row(self) noexcept nogil:
        """Take the last of these back."""
        if self.has_upper:
            self.upper.drop_last_row()

    cdef void _remove_upper_row(self, Py_ssize_t k) noexcept nogil:
        """Factor k goes, and the factors above that it alone has."""
        if self.has_upper:
            self.upper.remove_row(k)
            self.inflated = self.upper.n_factors > 0

    # -- scales -----------------------------------------------------------------------------------

    cdef void _rescale(self) noexcept nogil:
        """(w, y, m, v, sigma^2) -> (g w, y / g, m / g, v / g^2, g^2 sigma^2), log g ~ N(0, .15^2).

        All normal densities cancel against the Jacobian: equation (F4.8). O(T + N + G) a factor.
        """
        cdef Py_ssize_t k, c, j, t
        cdef double step, scale, log_ratio, inverse
        for k in range(self.n_factors):
            step = STRETCH * draws.normal(self._rng)
            scale = exp(step)
            inverse = 0.0
            for c in range(self.n_clusters):
                inverse += 1.0 / self.V[c, k]
            log_ratio = -2.0 * self.slab_shape * step
            log_ratio -= self.slab_scale / self.slab[k] * (1.0 / (scale * scale) - 1.0)
            if self.fault != NO_STRETCH:
                log_ratio += 2.0 * self.score_shape * self.n_clusters * step
            log_ratio -= self.score_scale * (scale * scale - 1.0) * inverse
            self.n_rescales_tried += 1
            if not log(draws.uniform(self._rng)) < log_ratio:
                continue
            self.n_rescales += 1
            self.slab[k] *= scale * scale
            for j in range(self.n_features):
                self.W[j, k] *= scale
            for c in range(self.n_clusters):
                self.M[c, k] /= scale
                self.V[c, k] /= scale * scale
            for t in range(self.n_samples):
                self.Y[t, k] /= scale
