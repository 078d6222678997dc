"""The whole state of the mixture of factors, how it is stored, and its density."""

from libc.math cimport fmax, log, sqrt
from numpy.random cimport bitgen_t
from scipy.special.cython_special cimport log_ndtr

import numpy as np

from skbnp.infinite_factor_clusterer._law cimport OF_FACTORS, OF_FEATURES, Law
from skbnp.infinite_factor_clusterer._table cimport CENSORED, MISSING, Table
from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer
from skbnp.mcmc cimport chain
from skbnp.mcmc.chain cimport BROKEN, DONE
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI, lgamma, log_gamma_density
from skbnp.processes.ibp cimport dishes_per_mass

from skbnp.infinite_factor_clusterer._model import checked_state
from skbnp.likelihoods.sparse_loadings.layers import upper_layers


cdef double log_inverse_gamma(double x, double shape, double scale) noexcept nogil:
    """log IG(x; shape, scale)"""
    return shape * log(scale) - lgamma(shape) - (shape + 1.0) * log(x) - scale / x


cdef double draw_inverse_gamma(bitgen_t* rng, double shape, double scale) noexcept nogil:
    """A draw from IG(shape, scale), within the floats."""
    return fmax(scale / fmax(draws.gamma(rng, shape), 1e-300), 1e-300)


NO_PAD = (0, 0)


def _padded(array, rows, columns, filler):
    """The array with rows and columns added before and after it."""
    return np.pad(array, (rows, columns), constant_values=filler)


cdef class State(chain.State):
    """State of one chain. Invariant between moves: clusters 0..n_clusters-1 are non-empty, every
    factor has a link, ``n_links`` counts them, ``by_cluster`` lists the rows of each cluster."""

    def __init__(self, X, prior, state, limit=None, *, double log_jacobian=0.0):
        """X is (n_samples, n_features), NaN where missing, -inf where below ``limit``.

        ``state`` is a dict as ``_model`` describes it for ``prior``; ``log_jacobian`` is added to
        the log joint.
        """
        cdef Py_ssize_t _
        self.prior, self.law, self.table = prior, Law(prior), Table(X, limit)
        self.log_jacobian = log_jacobian
        self.n_samples, self.n_features = X.shape
        self.has_upper, slab = prior.max_layers > 1, prior.loading_variance
        for _ in range(prior.max_layers - 1):
            self.upper = ScaleLayer(
                self.n_samples, prior.mass_upper, slab.shape, slab.scale, self.upper
            )
        self._put(self._checked(state, X))

    # -- in and out ---------------------------------------------------------------------------

    def get_state(self):
        """The state as ``_model`` describes it, copies."""
        return self.snapshot()

    def set_state(self, state):
        """Take what ``get_state`` returned; a ValueError, and no change, if it cannot be that."""
        self._put(self._checked(state, self.data()))

    def _checked(self, state, X):
        checked = checked_state(state, self.prior, self.n_samples, self.n_features)
        known = np.isfinite(X)
        if not np.array_equal(checked["filled"][known], X[known]):
            raise ValueError("filled of the state must be the data where they are known")
        return checked

    def data(self):
        """The data, NaN where missing and -inf where censored, a copy."""
        X = np.array(self.X)
        if self.table.has_open_cells:
            cell = np.asarray(self.table.cell)
            X[cell == MISSING], X[cell == CENSORED] = np.nan, -np.inf
        return X

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
        self.R = np.zeros((n, p))
        self.by_cluster = np.zeros(n, dtype=np.intp)
        self.has_residuals = False
        self.refresh_inflation()
        self.sort_rows()

    def snapshot(self, bint with_rows=True):
        """The state as ``_model`` describes it, copies; without what is as long as the data."""
        k, g = self.n_factors, self.n_clusters
        state = {
            "loadings1": np.array(self.W[:, :k]),
            "score_mean": np.array(self.M[:g, :k]),
            "score_variance": np.array(self.V[:g, :k]),
            "noise_variance": np.array(self.S[:1 if self.law.shared_noise else g]),
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
        for number, (loadings, scores) in enumerate(self.upper_layers(), start=2):
            state[f"loadings{number}"] = loadings
            if with_rows:
                state[f"scores{number}"] = scores
        return state

    def upper_layers(self):
        """(loadings, scores) of the layers above the first."""
        return self.upper.layers() if self.has_upper else []

    cdef int reserve_factors(self, Py_ssize_t n) except -1 with gil:
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

    cdef int reserve_clusters(self, Py_ssize_t n) except -1 with gil:
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

    cdef int outcome(self) noexcept nogil:
        """BROKEN if something had no finite result since the last call."""
        cdef bint was_broken = self.is_broken
        self.is_broken = False
        return BROKEN if was_broken else DONE

    cdef double* noise(self, Py_ssize_t g) noexcept nogil:
        """Noise variances of a cluster."""
        return &self.S[0 if self.law.shared_noise else g, 0]

    cdef Py_ssize_t n_members(self, Py_ssize_t g) noexcept nogil:
        return self.cluster_start[g + 1] - self.cluster_start[g]

    cdef void refresh_inflation(self) noexcept nogil:
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

    cdef double inflation(self, Py_ssize_t t, Py_ssize_t k) noexcept nogil:
        """u of a row's score: 1 without factors above."""
        return self.U[t, k] if self.inflated else 1.0

    cdef void sort_rows(self) noexcept nogil:
        """List the rows by cluster, in each by pattern: O(T)."""
        cdef Py_ssize_t i, g, t
        for g in range(self.n_clusters + 1):
            self.cluster_start[g] = 0
        for t in range(self.n_samples):
            self.cluster_start[self.label[t] + 1] += 1
        for g in range(self.n_clusters):
            self.cluster_start[g + 1] += self.cluster_start[g]
        for i in range(self.n_samples):
            t = self.table.by_pattern[i]
            g = self.label[t]
            self.by_cluster[self.cluster_start[g]] = t
            self.cluster_start[g] += 1
        for g in range(self.n_clusters, 0, -1):
            self.cluster_start[g] = self.cluster_start[g - 1]
        self.cluster_start[0] = 0

    cdef void join(self, Py_ssize_t low, Py_ssize_t high) noexcept nogil:
        """Rows of ``high`` go to ``low``; the last cluster takes the slot that comes free."""
        cdef Py_ssize_t t, last = self.n_clusters - 1
        for t in range(self.n_samples):
            if self.label[t] == high:
                self.label[t] = low
            elif self.label[t] == last:
                self.label[t] = high
        self.n_clusters = last

    cdef void remove_factor(self, Py_ssize_t k) noexcept nogil:
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

    cdef void need_residuals(self) noexcept nogil:
        """R of the present state."""
        if not self.has_residuals:
            self.refresh_residuals()

    cdef void refresh_residuals(self) noexcept nogil:
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
        self.has_residuals = True

    # -- the density --------------------------------------------------------------------------

    cpdef double log_joint(self):
        """log p(X, state), filled cells integrated out."""
        return self.log_prior() + self.log_data() + self.log_jacobian

    cdef double log_prior(self) noexcept nogil:
        """Log density of all parameters, the partition, the links and the layers above."""
        cdef Py_ssize_t g, j, k, n_noises = 1 if self.law.shared_noise else self.n_clusters
        cdef double total = 0.0, w, variance
        # The partition: each cluster weighs (n - 1)!, equation (F2.1).
        total += self.n_clusters * log(self.concentration) + lgamma(self.concentration)
        total -= lgamma(self.concentration + self.n_samples)
        for g in range(self.n_clusters):
            total += lgamma(<double> self.n_members(g))
        # The links of the buffet and their loadings.
        total += self.n_factors * log(self.mass) - lgamma(self.n_factors + 1.0)
        total -= self.mass * dishes_per_mass(self.n_features, 1.0)
        for k in range(self.n_factors):
            total += lgamma(self.n_features - self.n_links[k] + 1.0)
            total += lgamma(<double> self.n_links[k]) - lgamma(self.n_features + 1.0)
            total += log_inverse_gamma(self.slab[k], self.law.slab_shape, self.law.slab_scale)
            for j in range(self.n_features):
                w = self.W[j, k]
                if w != 0.0:
                    total -= 0.5 * (LOG_2_PI + log(self.slab[k]) + w * w / self.slab[k])
        # Clusters.
        for g in range(self.n_clusters):
            for k in range(self.n_factors):
                total += log_inverse_gamma(self.V[g, k], self.law.score_shape, self.law.score_scale)
                if self.law.means != OF_FEATURES:
                    variance = self.V[g, k] / self.law.score_precision
                    total -= 0.5 * (
                        LOG_2_PI + log(variance) + self.M[g, k] * self.M[g, k] / variance
                    )
            if self.law.means != OF_FACTORS:
                for j in range(self.n_features):
                    variance = self.noise(g)[j] / self.offset_precision
                    total -= 0.5 * (
                        LOG_2_PI + log(variance) + self.shift[g, j] * self.shift[g, j] / variance
                    )
        for j in range(self.n_features):
            total += self.law.log_rate(self.rate[j])
            total -= self.law.log_rate_share
            for g in range(n_noises):
                total += log_inverse_gamma(self.S[g, j], self.law.noise_shape, self.rate[j])
        # Hyperparameters.
        total += self.law.log_concentration(self.concentration)
        total += self.law.log_mass(self.mass)
        if self.law.means != OF_FACTORS:
            total += self.law.log_offset_precision(self.offset_precision)
        if self.law.student:
            total -= log(<double> self.law.tail_grid.shape[0])
        if self.has_upper:
            total += self.upper.log_prior()
        return total

    cdef double log_data(self) noexcept nogil:
        """Log density of rows, scores and row precisions: O(T (N K + N + K))."""
        cdef Py_ssize_t t, g, j, k
        cdef double total = 0.0, weight, off, variance
        cdef double tail_law[2]
        tail_law[0] = tail_law[1] = 0.5 * self.tail_df
        self.refresh_residuals()
        for t in range(self.n_samples):
            g, weight = self.label[t], self.row_precision[t]
            for j in range(self.n_features):
                off, variance = self.R[t, j] - self.shift[g, j], self.noise(g)[j] / weight
                if self.table.has_open_cells and self.table.cell[t, j] == MISSING:
                    continue
                if self.table.has_open_cells and self.table.cell[t, j] == CENSORED:
                    # The mean is what the filled cell lies ``off`` from.
                    off = self.table.limit[j] - (self.X[t, j] - off)
                    total += log_ndtr(off / sqrt(variance))
                    continue
                total -= 0.5 * (LOG_2_PI + log(variance) + off * off / variance)
            for k in range(self.n_factors):
                off = self.Y[t, k] - self.M[g, k]
                variance = self.V[g, k] * self.inflation(t, k) / weight
                total -= 0.5 * (LOG_2_PI + log(variance) + off * off / variance)
            if self.tail_df < 1e300:
                total += log_gamma_density(weight, tail_law[0], tail_law[1])
        return total
