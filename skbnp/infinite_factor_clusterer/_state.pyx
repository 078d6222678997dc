"""The whole state of the mixture of factors, how it is stored, and its density."""

from libc.math cimport NAN, fmax, isnan, log, sqrt
from scipy.special.cython_special cimport log_ndtr

import numpy as np
from scipy.special import gammaincc

from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log_gamma_density

from skbnp.infinite_factor_clusterer._model import SMALLEST_RATE, checked_state
from skbnp.likelihoods.sparse_loadings.layers import upper_layers

cdef double LOG_2_PI = 1.8378770664093454836


cdef double log_inverse_gamma(double x, double shape, double scale) noexcept nogil:
    """log IG(x; shape, scale)"""
    return shape * log(scale) - lgamma(shape) - (shape + 1.0) * log(x) - scale / x


NO_PAD = (0, 0)


def _padded(array, rows, columns, filler):
    """The array with rows and columns added before and after it."""
    return np.pad(array, (rows, columns), constant_values=filler)


cdef class State:
    """State of one chain. Invariant between moves: clusters 0..n_clusters-1 are non-empty, every
    factor has a link, ``n_links`` counts them, ``by_cluster`` lists the rows of each cluster."""

    def __cinit__(self, *args, **kwargs):
        self.cell = np.zeros((0, 0), dtype=np.uint8)
        self.Y = self.U = self.W = self.M = self.V = self.S = self.shift = np.zeros((0, 0))
        self.slab = np.zeros(0)
        self.n_links = np.zeros(0, dtype=np.intp)

    def __init__(self, X, prior, state, bit_generator, limit, int fault):
        """X is (n_samples, n_features), NaN where missing, -inf where below ``limit``."""
        cdef Py_ssize_t i, _
        self._bit_generator, self._rng = bit_generator, draws.borrow(bit_generator)
        self.prior, self.fault = prior, fault
        self.n_samples, self.n_features = X.shape
        self.means = ("factor", "both", "feature").index(prior.means)
        self.shared_noise = prior.noise == "shared"
        self.student = prior.tails == "student"
        self.tail_grid = np.array(prior.tail_grid)
        self.given_concentration = NAN if prior.concentration is None else prior.concentration
        self.given_mass = NAN if prior.mass is None else prior.mass
        for i in range(2):
            self.concentration_law[i] = prior.concentration_prior[i]
            self.mass_law[i] = prior.mass_prior[i]
            self.rate_law[i] = prior.noise_rate_prior[i]
            self.offset_law[i] = prior.offset_precision_prior[i]
        self.smallest_rate = SMALLEST_RATE
        shape, rate = prior.noise_rate_prior
        self._log_rate_share = np.log(gammaincc(shape, rate * SMALLEST_RATE))
        self.slab_shape, self.slab_scale = prior.slab_shape, prior.slab_scale
        self.score_shape, self.score_scale = prior.score_shape, prior.score_scale
        self.score_precision, self.noise_shape = prior.score_precision, prior.noise_shape
        self.has_upper = prior.max_layers > 1
        for _ in range(prior.max_layers - 1):
            self.upper = ScaleLayer(
                self.n_samples, prior.mass_upper, prior.slab_shape, prior.slab_scale, self.upper
            )
        self._take_cells(X, limit)
        self._put(checked_state(state, prior, self.n_samples, self.n_features))
        known = np.isfinite(X)
        if not np.array_equal(np.asarray(self.X)[known], X[known]):
            raise ValueError("filled of the state must be the data where they are known")

    # -- in and out ---------------------------------------------------------------------------

    def _take_cells(self, X, limit):
        """Which cells are open, and the patterns of missing ones."""
        n, p = self.n_samples, self.n_features
        missing, below = np.isnan(X), np.isneginf(X)
        if below.any() and limit is None:
            raise ValueError("limit must be given where X is -inf")
        self.limit = np.zeros(p) if limit is None else np.array(limit, dtype=np.float64)
        self.has_open_cells = missing.any() or below.any()
        if self.has_open_cells:
            cell = np.where(missing, MISSING, np.where(below, CENSORED, KNOWN))
            self.cell = cell.astype(np.uint8)
        # Rows without a missing cell come first.
        kinds, pattern = np.unique(np.packbits(missing, axis=1), axis=0, return_inverse=True)
        pattern = pattern.ravel()
        self.n_patterns = len(kinds)
        self.pattern = pattern.astype(np.intp)
        self.by_pattern = np.argsort(pattern, kind="stable").astype(np.intp)
        self.pattern_start = np.searchsorted(
            pattern[self.by_pattern], np.arange(self.n_patterns + 1)
        ).astype(np.intp)
        observed = [
            np.flatnonzero(~missing[self.by_pattern[self.pattern_start[g]]])
            for g in range(self.n_patterns)
        ]
        # For moves that take filled cells as they are.
        observed.append(np.arange(p))
        self.feature_start = np.cumsum([0, *map(len, observed)], dtype=np.intp)
        self.feature = np.concatenate([*observed, []]).astype(np.intp)
        self.R = np.zeros((n, p))
        self.by_cluster = np.zeros(n, dtype=np.intp)

    def _put(self, state):
        """Take a checked state over."""
        self.n_clusters, self.n_factors = state["score_mean"].shape
        k, g = self.n_factors, self.n_clusters
        self.factor_room, self.cluster_room = k + 4, g + 8
        room, n, p = self.factor_room, self.n_samples, self.n_features
        self.X = state["filled"].copy()
        self.label = state["label"].copy()
        self.row_precision = state["row_precision"].copy()
        self.rate = state["noise_rate"].copy()
        self.Y, self.U = np.zeros((n, room)), np.ones((n, room))
        self.W, self.slab = np.zeros((p, room)), np.ones(room)
        self.n_links = np.zeros(room, dtype=np.intp)
        self.M, self.V = np.zeros((self.cluster_room, room)), np.ones((self.cluster_room, room))
        self.S, self.shift = np.ones((self.cluster_room, p)), np.zeros((self.cluster_room, p))
        self.cluster_start = np.zeros(self.cluster_room + 1, dtype=np.intp)
        np.asarray(self.Y)[:, :k] = state["scores1"]
        np.asarray(self.W)[:, :k] = state["loadings1"]
        np.asarray(self.slab)[:k] = state["slab_variance"]
        np.asarray(self.n_links)[:k] = np.count_nonzero(state["loadings1"], axis=0)
        np.asarray(self.M)[:g, :k], np.asarray(self.V)[:g, :k] = (
            state["score_mean"], state["score_variance"]
        )
        np.asarray(self.S)[:len(state["noise_variance"])] = state["noise_variance"]
        np.asarray(self.shift)[:g] = state["offset"]
        self.concentration, self.mass, self.offset_precision, self.tail_df = state["hyper"]
        if self.has_upper:
            self.upper.reset(k, upper_layers(state))
        self._refresh_inflation()
        self._sort_rows()

    def _state(self, bint with_rows=True):
        """The state as ``_model`` describes it, copies; without what is as long as the data."""
        k, g = self.n_factors, self.n_clusters
        state = {
            "loadings1": np.array(self.W[:, :k]),
            "score_mean": np.array(self.M[:g, :k]),
            "score_variance": np.array(self.V[:g, :k]),
            "noise_variance": np.array(self.S[:1 if self.shared_noise else g]),
            "offset": np.array(self.shift[:g]),
            "hyper": np.array(
                [self.concentration, self.mass, self.offset_precision, self.tail_df]
            ),
        }
        state["noise_rate"] = np.array(self.rate)
        if with_rows:
            state["label"] = np.array(self.label)
            state["slab_variance"] = np.array(self.slab[:k])
            state["scores1"] = np.array(self.Y[:, :k])
            state["row_precision"] = np.array(self.row_precision)
            state["filled"] = np.array(self.X)
        for number, (loadings, scores) in enumerate(self._upper_layers(), start=2):
            state[f"loadings{number}"] = loadings
            if with_rows:
                state[f"scores{number}"] = scores
        return state

    def _upper_layers(self):
        """(loadings, scores) of the layers above the first."""
        return self.upper.layers() if self.has_upper else []

    cdef int _reserve_factors(self, Py_ssize_t n) except -1 with gil:
        """Room for n factors."""
        if n <= self.factor_room:
            return 0
        room = max(n, 2 * self.factor_room)
        wider = (0, room - self.factor_room)
        self.Y, self.U = _padded(self.Y, NO_PAD, wider, 0.0), _padded(self.U, NO_PAD, wider, 1.0)
        self.M, self.V = _padded(self.M, NO_PAD, wider, 0.0), _padded(self.V, NO_PAD, wider, 1.0)
        self.W = _padded(self.W, NO_PAD, wider, 0.0)
        self.slab, self.n_links = np.pad(self.slab, wider), np.pad(self.n_links, wider)
        self.factor_room = room
        return 0

    cdef int _reserve_clusters(self, Py_ssize_t n) except -1 with gil:
        """Room for n clusters."""
        if n <= self.cluster_room:
            return 0
        room = max(n, 2 * self.cluster_room)
        longer = (0, room - self.cluster_room)
        self.M, self.V = _padded(self.M, longer, NO_PAD, 0.0), _padded(self.V, longer, NO_PAD, 1.0)
        self.S = _padded(self.S, longer, NO_PAD, 1.0)
        self.shift = _padded(self.shift, longer, NO_PAD, 0.0)
        self.cluster_start = np.pad(self.cluster_start, longer)
        self.cluster_room = room
        return 0

    # -- bookkeeping --------------------------------------------------------------------------

    cdef double* _noise(self, Py_ssize_t g) noexcept nogil:
        """Noise variances of a cluster."""
        return &self.S[0 if self.shared_noise else g, 0]

    cdef Py_ssize_t _n_members(self, Py_ssize_t g) noexcept nogil:
        return self.cluster_start[g + 1] - self.cluster_start[g]

    cdef void _refresh_inflation(self) noexcept nogil:
        """u = 1 + A^2 of the layer above."""
        cdef Py_ssize_t t, k
        cdef double a
        self.inflated = self.has_upper and self.upper.n_factors > 0
        if not self.has_upper:
            return
        for k in range(self.n_factors):
            for t in range(self.n_samples):
                a = self.upper.A[k, t]
                self.U[t, k] = 1.0 + a * a

    cdef double _inflation(self, Py_ssize_t t, Py_ssize_t k) noexcept nogil:
        """u of a row's score: 1 without factors above."""
        return self.U[t, k] if self.inflated else 1.0

    cdef void _break(self, int move) noexcept nogil:
        """Remember the first move that had no finite result."""
        if self._broken == NO_MOVE:
            self._broken = move

    cdef double _inverse_gamma(self, double shape, double scale) noexcept nogil:
        """A draw from IG(shape, scale), within the floats."""
        return fmax(scale / fmax(draws.gamma(self._rng, shape), 1e-300), 1e-300)

    cdef void _sort_rows(self) noexcept nogil:
        """List the rows by cluster, in each by pattern: O(T)."""
        cdef Py_ssize_t i, g, t
        for g in range(self.n_clusters + 1):
            self.cluster_start[g] = 0
        for t in range(self.n_samples):
            self.cluster_start[self.label[t] + 1] += 1
        for g in range(self.n_clusters):
            self.cluster_start[g + 1] += self.cluster_start[g]
        for i in range(self.n_samples):
            t = self.by_pattern[i]
            g = self.label[t]
            self.by_cluster[self.cluster_start[g]] = t
            self.cluster_start[g] += 1
        for g in range(self.n_clusters, 0, -1):
            self.cluster_start[g] = self.cluster_start[g - 1]
        self.cluster_start[0] = 0

    cdef void _refresh_residuals(self) noexcept nogil:
        """R = X - Y W': O(T K N) in one matrix product."""
        cdef Py_ssize_t n = self.n_samples * self.n_features, i
        cdef const double* x = &self.X[0, 0]
        cdef double* r = &self.R[0, 0]
        for i in range(n):
            r[i] = x[i]
        if self.n_factors:
            linalg.gemm_strided(
                False, True, self.n_samples, self.n_features, self.n_factors, -1.0,
                &self.Y[0, 0], self.factor_room, &self.W[0, 0], self.factor_room, 1.0,
                r, self.n_features,
            )

    # -- the density --------------------------------------------------------------------------

    cdef double _log_prior(self) noexcept nogil:
        """Log density of all parameters, the partition, the links and the layers above."""
        cdef Py_ssize_t g, j, k, n_noises = 1 if self.shared_noise else self.n_clusters
        cdef double total = 0.0, harmonic = 0.0, w, variance
        # The partition: each cluster weighs (n - 1)!, equation (F2.1).
        total += self.n_clusters * log(self.concentration) + lgamma(self.concentration)
        total -= lgamma(self.concentration + self.n_samples)
        for g in range(self.n_clusters):
            total += lgamma(<double> self._n_members(g))
        # The links of the buffet and their loadings.
        for j in range(self.n_features):
            harmonic += 1.0 / (j + 1)
        total += self.n_factors * log(self.mass) - lgamma(self.n_factors + 1.0)
        total -= self.mass * harmonic
        for k in range(self.n_factors):
            total += lgamma(self.n_features - self.n_links[k] + 1.0)
            total += lgamma(<double> self.n_links[k]) - lgamma(self.n_features + 1.0)
            total += log_inverse_gamma(self.slab[k], self.slab_shape, self.slab_scale)
            for j in range(self.n_features):
                w = self.W[j, k]
                if w != 0.0:
                    total -= 0.5 * (LOG_2_PI + log(self.slab[k]) + w * w / self.slab[k])
        # Clusters.
        for g in range(self.n_clusters):
            for k in range(self.n_factors):
                total += log_inverse_gamma(self.V[g, k], self.score_shape, self.score_scale)
                if self.means != OF_FEATURES:
                    variance = self.V[g, k] / self.score_precision
                    total -= 0.5 * (
                        LOG_2_PI + log(variance) + self.M[g, k] * self.M[g, k] / variance
                    )
            if self.means != OF_FACTORS:
                for j in range(self.n_features):
                    variance = self._noise(g)[j] / self.offset_precision
                    total -= 0.5 * (
                        LOG_2_PI + log(variance) + self.shift[g, j] * self.shift[g, j] / variance
                    )
        for j in range(self.n_features):
            total += log_gamma_density(self.rate[j], self.rate_law[0], self.rate_law[1])
            total -= self._log_rate_share
            for g in range(n_noises):
                total += log_inverse_gamma(self.S[g, j], self.noise_shape, self.rate[j])
        # Hyperparameters.
        if isnan(self.given_concentration):
            total += log_gamma_density(
                self.concentration, self.concentration_law[0], self.concentration_law[1]
            )
        if isnan(self.given_mass):
            total += log_gamma_density(self.mass, self.mass_law[0], self.mass_law[1])
        if self.means != OF_FACTORS:
            total += log_gamma_density(
                self.offset_precision, self.offset_law[0], self.offset_law[1]
            )
        if self.student:
            total -= log(<double> self.tail_grid.shape[0])
        if self.has_upper:
            total += self.upper.log_prior()
        return total

    cdef double _log_data(self) noexcept nogil:
        """Log density of rows, scores and row precisions: O(T (N K + N + K))."""
        cdef Py_ssize_t t, g, j, k
        cdef double total = 0.0, weight, off, variance
        cdef double tail_law[2]
        tail_law[0] = tail_law[1] = 0.5 * self.tail_df
        self._refresh_residuals()
        for t in range(self.n_samples):
            g, weight = self.label[t], self.row_precision[t]
            for j in range(self.n_features):
                off, variance = self.R[t, j] - self.shift[g, j], self._noise(g)[j] / weight
                if self.has_open_cells and self.cell[t, j] == MISSING:
                    continue
                if self.has_open_cells and self.cell[t, j] == CENSORED:
                    # The mean is what the filled cell lies ``off`` from.
                    off = self.limit[j] - (self.X[t, j] - off)
                    total += log_ndtr(off / sqrt(variance))
                    continue
                total -= 0.5 * (LOG_2_PI + log(variance) + off * off / variance)
            for k in range(self.n_factors):
                off = self.Y[t, k] - self.M[g, k]
                variance = self.V[g, k] * self._inflation(t, k) / weight
                total -= 0.5 * (LOG_2_PI + log(variance) + off * off / variance)
            if self.tail_df < 1e300:
                total += log_gamma_density(weight, tail_law[0], tail_law[1])
        return total
