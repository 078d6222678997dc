"""Gaussian blocks with full covariance under a normal-inverse-Wishart prior.

Sigma ~ IW(nu0, Psi0), mu | Sigma ~ N(m0, Sigma / kappa0), x | mu, Sigma ~ N(mu, Sigma). With n
rows, mean xbar and scatter S: kappa_n = kappa0 + n, nu_n = nu0 + n,
m_n = (kappa0 m0 + n xbar) / kappa_n,
Psi_n = Psi0 + S + (kappa0 n / kappa_n) (xbar - m0)(xbar - m0)^T (Murphy 2007, section 9).

A slot keeps n, xbar and S beside m_n and the factor of Psi_n, so that another prior costs one
Cholesky factorisation a slot. With ``learned`` covariances Psi0 = delta Lam and
nu0 = delta + d + 1, and ``scale`` is delta, ``base`` Lam: see ``learned_covariance``.
"""

from libc.math cimport INFINITY, NAN, log, log1p, sqrt
from libc.string cimport memcpy, memset
from numpy.random cimport bitgen_t

import numpy as np
from skbnp.likelihoods.conjugate cimport ConjugateFamily
from skbnp.numerics cimport linalg, rng as draws
from skbnp.numerics.special cimport lgamma

from skbnp.likelihoods.conjugate import check_array_of_state, check_positive_number
from skbnp.numerics.linalg import cholesky_upper


cdef enum:
    LANES = 4  # blocks per pass of forward substitution
    # Above this many features the exact weights of an incomplete row, O(d^3) for each block,
    # give way to weights from the completed row, O(d^2): still exact Gibbs, mixing slower.
    WIDE = 64
    # Rows, and whitened features of all blocks, of one matrix product: it stays in the L2 cache.
    CHUNK = 128
    COLUMNS = 256

cdef double CANCELLED = 1e-8     # |Psi without| / |Psi with| under which a difference is not used
cdef double SPOILED = 1e-6       # the same under which a removal is not used
cdef double HALF_LOG_2_PI = 0.9189385332046728
cdef double LOG_PI = 1.1447298858494002
cdef double LOG_2 = 0.6931471805599453


cdef class NormalInverseWishart(ConjugateFamily):
    """Slots of full-covariance Gaussian blocks. Adding and removing a row costs O(d^2)."""

    _for_prediction = ("n_members", "mean", "factor")

    def __init__(
        self, X, mean, double mean_precision, double df, covariance, double scale,
        bint learned=False,
    ):
        super().__init__(X)
        d = self.n_features
        self.prior_mean = np.array(mean, dtype=np.float64)
        self.learned = learned
        self.base = np.array(covariance, dtype=np.float64, order="C")
        self.base_factor = np.zeros((d, d))
        self.wide = WIDE
        self.scaled = True
        self.scale = scale
        self.df = df
        self.mean_precision = mean_precision
        self.log_t_constant = np.zeros(self.n_samples + 1)
        self.log_m_constant = np.zeros(self.n_samples + 1)
        self.n_members = np.zeros(0, dtype=np.intp)
        self.row_mean = np.zeros((0, d))
        self.scatter = np.zeros((0, d, d))
        self.mean = np.zeros((0, d))
        self.factor = np.zeros((0, d, d))
        self.log_det = np.zeros(0)
        self.vector = np.zeros(LANES * d)
        self.square = np.zeros((d, d))
        self.square_too = np.zeros((d, d))
        self.work = np.zeros(max(4, d) * d)
        self.order = np.zeros(d, dtype=np.intp)
        self._reserve_parameters(0)
        self._start_imputation()
        if self.factor_base() != 0:
            raise np.linalg.LinAlgError("covariance must be positive definite")

    def _start_imputation(self):
        """Start every missing cell at the prior mean; the first sweep draws it."""
        data = np.asarray(self.X)
        np.copyto(data, np.asarray(self.prior_mean), where=np.isnan(data))

    def _grow(self, n_slots):
        n_slots += -n_slots % LANES
        d = self.n_features
        self.lane_mean = np.zeros((n_slots // LANES, d, LANES))
        self.lane_factor = np.zeros((n_slots // LANES, d, d, LANES))
        self.stale = np.ones(n_slots, dtype=np.uint8)
        self.any_stale = True
        super()._grow(n_slots)

    def set_state(self, state, Py_ssize_t n_slots):
        super().set_state(state, n_slots)
        np.asarray(self.stale)[:] = 1
        self.any_stale = True

    def get_state(self, Py_ssize_t n_slots):
        state = super().get_state(n_slots)
        if self.learned:
            state["covariance"] = np.array(self.base)
            state["mean_precision"] = self.mean_precision
        return state

    def _check_state(self, state, n_slots):
        super()._check_state(state, n_slots)
        if self.learned:
            check_array_of_state("covariance", state["covariance"], np.asarray(self.base))
            check_positive_number("mean_precision", state["mean_precision"])
            cholesky_upper(state["covariance"])

    def _set_prior(self, state):
        super()._set_prior(state)
        if self.learned:
            self.base = state["covariance"].copy()
            self.mean_precision = state["mean_precision"]
            self.df = self.scale + self.n_features + 1.0
        self.factor_base()

    def imputed(self):
        return np.asarray(self.X)[self._missing_rows(), np.asarray(self.missing_feature)]

    def set_imputed(self, values):
        np.asarray(self.X)[self._missing_rows(), np.asarray(self.missing_feature)] = values

    def _missing_rows(self):
        return np.repeat(np.arange(self.n_samples), np.diff(self.missing_start))

    def blocks(self, Py_ssize_t n_slots):
        """As in the base; what the factors leave below the diagonal is cleared."""
        arrays = super().blocks(n_slots)
        arrays["factor"] = np.triu(arrays["factor"])
        return arrays

    def _slot_arrays(self):
        return {
            "n_members": np.asarray(self.n_members),
            "row_mean": np.asarray(self.row_mean),
            "scatter": np.asarray(self.scatter),
            "mean": np.asarray(self.mean),
            "factor": np.asarray(self.factor),
            "log_det": np.asarray(self.log_det),
        }

    def _set_slot_array(self, name, array):
        if name == "n_members":
            self.n_members = array
        elif name == "row_mean":
            self.row_mean = array
        elif name == "scatter":
            self.scatter = array
        elif name == "mean":
            self.mean = array
        elif name == "factor":
            self.factor = array
        else:
            self.log_det = array

    cdef bint augmented(self, Py_ssize_t i) noexcept nogil:
        return self.missing_start[i + 1] > self.missing_start[i]

    # -- statistics ---------------------------------------------------------------------------

    cdef void _touch(self, Py_ssize_t k) noexcept nogil:
        """Slot k changed: its lane is out of date."""
        self.stale[k] = 1
        self.any_stale = True

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t d = self.n_features, a
        cdef double root = sqrt(self.scale)
        cdef double* factor = &self.factor[k, 0, 0]
        self.n_members[k] = 0
        memset(&self.row_mean[k, 0], 0, d * sizeof(double))
        memset(&self.scatter[k, 0, 0], 0, d * d * sizeof(double))
        memcpy(&self.mean[k, 0], &self.prior_mean[0], d * sizeof(double))
        for a in range(d * d):
            factor[a] = root * (&self.base_factor[0, 0])[a]
        self.log_det[k] = d * log(self.scale) + self.base_log_det
        self._touch(k)

    cdef void copy(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
        cdef Py_ssize_t d = self.n_features
        self.n_members[target] = self.n_members[source]
        memcpy(&self.row_mean[target, 0], &self.row_mean[source, 0], d * sizeof(double))
        memcpy(&self.scatter[target, 0, 0], &self.scatter[source, 0, 0], d * d * sizeof(double))
        memcpy(&self.mean[target, 0], &self.mean[source, 0], d * sizeof(double))
        memcpy(&self.factor[target, 0, 0], &self.factor[source, 0, 0], d * d * sizeof(double))
        self.log_det[target] = self.log_det[source]
        self._touch(target)

    cdef void add(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """m += r / (kappa + 1), Psi += kappa / (kappa + 1) r r^T with r = x - m_old.

        xbar and S in the same way, with n in the place of kappa.
        """
        cdef Py_ssize_t d = self.n_features, a
        cdef double n = <double> self.n_members[k], kappa = self.mean_precision + n
        cdef double root = sqrt(kappa / (kappa + 1.0)), r
        for a in range(d):
            r = self.X[i, a] - self.row_mean[k, a]
            self.row_mean[k, a] += r / (n + 1.0)
            self.work[a] = r
            r = self.X[i, a] - self.mean[k, a]
            self.mean[k, a] += r / (kappa + 1.0)
            self.vector[a] = root * r
        _add_outer(&self.scatter[k, 0, 0], d, n / (n + 1.0), &self.work[0])
        linalg.rank_one_update(&self.factor[k, 0, 0], d, &self.vector[0])
        self.n_members[k] += 1
        self.log_det[k] = linalg.log_det(&self.factor[k, 0, 0], d)
        self._touch(k)

    cdef int remove(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """m -= r / (kappa - 1), Psi -= kappa / (kappa - 1) r r^T with r = x - m_with."""
        cdef Py_ssize_t d = self.n_features, a
        cdef double n = <double> self.n_members[k], kappa = self.mean_precision + n
        cdef double root = sqrt(kappa / (kappa - 1.0)), r, with_row = self.log_det[k]
        if self.n_members[k] == 1:
            self.clear(k)
            return 0
        for a in range(d):
            r = self.X[i, a] - self.row_mean[k, a]
            self.row_mean[k, a] -= r / (n - 1.0)
            self.work[a] = r
            r = self.X[i, a] - self.mean[k, a]
            self.mean[k, a] -= r / (kappa - 1.0)
            self.vector[a] = root * r
        _add_outer(&self.scatter[k, 0, 0], d, -n / (n - 1.0), &self.work[0])
        if linalg.rank_one_downdate(&self.factor[k, 0, 0], d, &self.vector[0]) != 0:
            return 1
        self.n_members[k] -= 1
        self.log_det[k] = linalg.log_det(&self.factor[k, 0, 0], d)
        self._touch(k)
        return self.log_det[k] - with_row < log(SPOILED)

    cdef int merge(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t target) noexcept nogil:
        """xbar and S of the two blocks together; nothing cancels."""
        cdef Py_ssize_t d = self.n_features, p
        cdef Py_ssize_t n = self.n_members[a] + self.n_members[b]
        cdef double share = self.n_members[b] / (<double> n) if n > 0 else 0.0
        cdef double* scatter = &self.scatter[target, 0, 0]
        cdef double* apart = &self.work[0]
        for p in range(d):
            apart[p] = self.row_mean[b, p] - self.row_mean[a, p]
            self.row_mean[target, p] = self.row_mean[a, p] + share * apart[p]
        for p in range(d * d):
            scatter[p] = (&self.scatter[a, 0, 0])[p] + (&self.scatter[b, 0, 0])[p]
        _add_outer(scatter, d, share * self.n_members[a], apart)
        self.n_members[target] = n
        return self._derive(target)

    cdef int factor_base(self) noexcept nogil:
        """Factor the base, and forget what else depends on the numbers of the prior alone.

        Slots are as they were: ``derive`` them. Non-zero: the base is not positive definite.
        """
        cdef Py_ssize_t d = self.n_features, a, b
        cdef double* factor = &self.base_factor[0, 0] if d > 0 else NULL
        cdef int failed
        if d == 0:
            return 0
        memcpy(factor, &self.base[0, 0], d * d * sizeof(double))
        failed = linalg.cholesky(factor, d)
        for a in range(1, d):
            for b in range(a):
                factor[a * d + b] = 0.0
        self.base_log_det = linalg.log_det(factor, d)
        for a in range(self.n_samples + 1):
            self.log_t_constant[a] = self.log_m_constant[a] = NAN
        return failed

    cdef int derive(self, Py_ssize_t n_slots) noexcept nogil:
        """Bring the slots up to date with the numbers of the prior; from n_slots on they are empty.

        Non-zero: a slot must be built anew from its rows.
        """
        cdef Py_ssize_t k
        self.clear_from(n_slots)
        for k in range(n_slots):
            if self.n_members[k] == 0:
                self.clear(k)
            elif self._derive(k) != 0:
                return 1
        return 0

    cdef void clear_from(self, Py_ssize_t n_slots) noexcept nogil:
        """Clear all slots from n_slots on."""
        cdef Py_ssize_t k
        for k in range(n_slots, self.n_slots):
            self.clear(k)

    cdef int _derive(self, Py_ssize_t k) noexcept nogil:
        """m_n and the factor of Psi_n of slot k from the number, mean and scatter of its rows."""
        if self.factor_within(k, &self.factor[k, 0, 0]) != 0:
            return 1
        self.finish(k)
        return 0

    cdef void finish(self, Py_ssize_t k) noexcept nogil:
        """The same where ``factor`` holds that of Psi0 + S."""
        cdef Py_ssize_t d = self.n_features, a
        cdef double n = <double> self.n_members[k], kappa = self.mean_precision + n
        for a in range(d):
            self.mean[k, a] = (
                self.prior_mean[a] + n / kappa * (self.row_mean[k, a] - self.prior_mean[a])
            )
        self.add_offset(k, &self.factor[k, 0, 0])
        self.log_det[k] = linalg.log_det(&self.factor[k, 0, 0], d)
        self._touch(k)

    cdef int factor_within(self, Py_ssize_t k, double* out) noexcept nogil:
        """U with U^T U = Psi0 + S, in the upper triangle. Non-zero: not positive definite."""
        cdef Py_ssize_t d = self.n_features, a
        for a in range(d * d):
            out[a] = self.scale * (&self.base[0, 0])[a] + (&self.scatter[k, 0, 0])[a]
        return linalg.cholesky(out, d)

    cdef void add_offset(self, Py_ssize_t k, double* factor) noexcept nogil:
        """Add (kappa0 n / kappa) (xbar - m0)(xbar - m0)^T to what is factored: nothing cancels."""
        cdef Py_ssize_t d = self.n_features, a
        cdef double n = <double> self.n_members[k]
        cdef double root = sqrt(self.mean_precision * n / (self.mean_precision + n))
        for a in range(d):
            self.vector[a] = root * (self.row_mean[k, a] - self.prior_mean[a])
        linalg.rank_one_update(factor, d, &self.vector[0])

    cdef int tridiagonal(
        self, Py_ssize_t k, double* diagonal, double* coupling
    ) noexcept nogil:
        """base^-1/2 T base^-1/2, T = Psi_n - Psi0, in a basis where it is tridiagonal: O(d^3).

        |s base + T| is then |base| times a determinant of O(d), for any s: see
        ``linalg.log_det_shifted``. Non-zero: LAPACK refused its arguments.
        """
        cdef Py_ssize_t d = self.n_features, a, b
        cdef double n = <double> self.n_members[k]
        cdef double weight = self.mean_precision * n / (self.mean_precision + n), left
        cdef double* whitened = &self.square[0, 0]
        for a in range(d):
            self.vector[a] = self.row_mean[k, a] - self.prior_mean[a]
        for a in range(d):
            left = weight * self.vector[a]
            for b in range(a, d):
                whitened[a * d + b] = whitened[b * d + a] = (
                    self.scatter[k, a, b] + left * self.vector[b]
                )
        linalg.solve_rows(&self.base_factor[0, 0], d, whitened, d)
        linalg.solve_columns(&self.base_factor[0, 0], d, whitened, d, False)
        return linalg.tridiagonalise(
            whitened, d, diagonal, coupling, &self.work[0], self.work.shape[0]
        )

    # -- densities ----------------------------------------------------------------------------

    cdef double _log_t(self, Py_ssize_t k, double distance) noexcept nogil:
        """log t of a row at squared distance (x - m)^T Psi^-1 (x - m) from slot k."""
        cdef Py_ssize_t n = self.n_members[k]
        cdef double kappa = self.mean_precision + n
        return (self._t_constant(n) - 0.5 * self.log_det[k]
                - 0.5 * (self.df + n + 1.0) * log1p(kappa / (kappa + 1.0) * distance))

    cdef inline double _t_constant(self, Py_ssize_t n) noexcept nogil:
        """The part of log t that n fixes; worked out when first asked for."""
        cdef double kappa = self.mean_precision + n, nu = self.df + n
        cdef Py_ssize_t d = self.n_features
        if self.log_t_constant[n] != self.log_t_constant[n]:
            self.log_t_constant[n] = (
                lgamma(0.5 * (nu + 1.0)) - lgamma(0.5 * (nu + 1.0 - d))
                + 0.5 * d * (log(kappa / (kappa + 1.0)) - LOG_PI)
            )
        return self.log_t_constant[n]

    cdef inline double _m_constant(self, Py_ssize_t n) noexcept nogil:
        """The same for log m: log Gamma_d((nu0 + n) / 2) / Gamma_d(nu0 / 2) and more."""
        cdef Py_ssize_t d = self.n_features
        if self.log_m_constant[n] != self.log_m_constant[n]:
            self.log_m_constant[n] = (
                log_gamma_ratio(0.5 * self.df, 0.5 * n, d) - 0.5 * d * n * LOG_PI
                + 0.5 * d * log(self.mean_precision / (self.mean_precision + n))
            )
        return self.log_m_constant[n]

    cdef double log_predictive(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t d = self.n_features, a
        for a in range(d):
            self.vector[a] = self.X[i, a] - self.mean[k, a]
        return self._log_t(
            k, linalg.solve_transposed(&self.factor[k, 0, 0], d, &self.vector[0])
        )

    cdef void log_predictive_all(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        """Forward substitution for four blocks at a time: O(n d^2 / 2)."""
        cdef Py_ssize_t d = self.n_features, chunk, a, b, lane
        cdef double y0, y1, y2, y3, z0, z1, z2, z3, q0, q1, q2, q3, r0, r1, r2, r3, x
        cdef const double* mean
        cdef const double* factor
        cdef const double* f
        cdef const double* g
        cdef double* r = &self.vector[0]
        if self.any_stale:
            self._refresh_lanes(n)
        for chunk in range((n + LANES - 1) // LANES):
            mean = &self.lane_mean[chunk, 0, 0]
            factor = &self.lane_factor[chunk, 0, 0, 0]
            for a in range(d):
                x = self.X[i, a]
                for lane in range(LANES):
                    r[LANES * a + lane] = x - mean[LANES * a + lane]
            q0 = q1 = q2 = q3 = 0.0
            # Two features at a time: the residuals of all later ones are read and written once.
            for b in range(0, d - 1, 2):
                f = factor + LANES * (d * b + b)
                g = f + LANES * (d + 1)
                y0 = r[LANES * b] * f[0]
                y1 = r[LANES * b + 1] * f[1]
                y2 = r[LANES * b + 2] * f[2]
                y3 = r[LANES * b + 3] * f[3]
                f += LANES
                z0 = (r[LANES * b + 4] - f[0] * y0) * g[0]
                z1 = (r[LANES * b + 5] - f[1] * y1) * g[1]
                z2 = (r[LANES * b + 6] - f[2] * y2) * g[2]
                z3 = (r[LANES * b + 7] - f[3] * y3) * g[3]
                q0 = q0 + y0 * y0 + z0 * z0
                q1 = q1 + y1 * y1 + z1 * z1
                q2 = q2 + y2 * y2 + z2 * z2
                q3 = q3 + y3 * y3 + z3 * z3
                for a in range(b + 2, d):
                    f += LANES
                    g += LANES
                    # All loads before the stores, so that the compiler may pair the lanes.
                    r0 = r[LANES * a] - f[0] * y0 - g[0] * z0
                    r1 = r[LANES * a + 1] - f[1] * y1 - g[1] * z1
                    r2 = r[LANES * a + 2] - f[2] * y2 - g[2] * z2
                    r3 = r[LANES * a + 3] - f[3] * y3 - g[3] * z3
                    r[LANES * a] = r0
                    r[LANES * a + 1] = r1
                    r[LANES * a + 2] = r2
                    r[LANES * a + 3] = r3
            if d % 2 == 1:
                f = factor + LANES * (d * d - 1)
                y0 = r[LANES * (d - 1)] * f[0]
                y1 = r[LANES * (d - 1) + 1] * f[1]
                y2 = r[LANES * (d - 1) + 2] * f[2]
                y3 = r[LANES * (d - 1) + 3] * f[3]
                q0 += y0 * y0
                q1 += y1 * y1
                q2 += y2 * y2
                q3 += y3 * y3
            lane = LANES * chunk
            out[lane] = self._log_t(lane, q0)
            if lane + 1 < n:
                out[lane + 1] = self._log_t(lane + 1, q1)
            if lane + 2 < n:
                out[lane + 2] = self._log_t(lane + 2, q2)
            if lane + 3 < n:
                out[lane + 3] = self._log_t(lane + 3, q3)

    cdef void _refresh_lanes(self, Py_ssize_t n) noexcept nogil:
        """Bring the lanes of slots 0..n-1 up to date."""
        cdef Py_ssize_t d = self.n_features, k, a, b, chunk, lane
        for k in range(n):
            if not self.stale[k]:
                continue
            chunk = k // LANES
            lane = k - LANES * chunk
            for b in range(d):
                self.lane_mean[chunk, b, lane] = self.mean[k, b]
                self.lane_factor[chunk, b, b, lane] = 1.0 / self.factor[k, b, b]
                for a in range(b + 1, d):
                    self.lane_factor[chunk, b, a, lane] = self.factor[k, b, a]
            self.stale[k] = 0
        self.any_stale = False
        for k in range(n, self.n_slots):
            if self.stale[k]:
                self.any_stale = True
                break

    cdef double log_predictive_own(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """By the determinant lemma: |Psi without| = |Psi with| (1 - c r^T Psi^-1 r)."""
        cdef Py_ssize_t d = self.n_features, a, n = self.n_members[k] - 1
        cdef double kappa = self.mean_precision + n + 1.0, left, log_left
        for a in range(d):
            self.vector[a] = self.X[i, a] - self.mean[k, a]
        left = 1.0 - kappa / (kappa - 1.0) * linalg.solve_transposed(
            &self.factor[k, 0, 0], d, &self.vector[0]
        )
        if not left > CANCELLED:
            return NAN
        log_left = log(left)
        # 1 + f q of the block without the row is |Psi with| / |Psi without|.
        return (self._t_constant(n) - 0.5 * (self.log_det[k] + log_left)
                + 0.5 * (self.df + n + 1.0) * log_left)

    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t n = self.n_members[k]
        cdef double prior_log_det = self.n_features * log(self.scale) + self.base_log_det
        if n == 0:
            return 0.0
        return (self._m_constant(n) + 0.5 * self.df * prior_log_det
                - 0.5 * (self.df + n) * self.log_det[k])

    # -- missing cells ------------------------------------------------------------------------

    cdef Py_ssize_t _observed_first(self, Py_ssize_t i, Py_ssize_t* order) noexcept nogil:
        """Put the features into ``order``, those observed in row i first; returns their number."""
        cdef Py_ssize_t j, n_observed = 0
        cdef Py_ssize_t t = self.missing_start[i], end = self.missing_start[i + 1]
        cdef Py_ssize_t n_missing = end - t
        for j in range(self.n_features):
            if t < end and self.missing_feature[t] == j:
                order[self.n_features - (end - t)] = j
                t += 1
            else:
                order[n_observed] = j
                n_observed += 1
        return self.n_features - n_missing

    cdef double _permuted_factor(
        self, Py_ssize_t k, Py_ssize_t i, Py_ssize_t n_observed, Py_ssize_t n
    ) noexcept nogil:
        """Factor the first n features in ``order`` of slot k's Psi into ``square``.

        ``vector`` becomes U_oo^-T (x_o - m_o); returns its squared length. Cost O(n^3).
        """
        cdef Py_ssize_t d = self.n_features, a, b, t, ja, jb
        cdef double total
        cdef double* out = &self.square[0, 0]
        cdef const double* factor = &self.factor[k, 0, 0]
        for a in range(n):
            ja = self.order[a]
            for b in range(a, n):
                jb = self.order[b]
                total = 0.0
                for t in range(min(ja, jb) + 1):
                    total += factor[t * d + ja] * factor[t * d + jb]
                out[a * n + b] = total
        if n > 0 and linalg.cholesky(out, n) != 0:
            return NAN
        for a in range(n_observed):
            ja = self.order[a]
            self.vector[a] = self.X[i, ja] - self.mean[k, ja]
        return _solve_leading(out, n, n_observed, &self.vector[0])

    cdef void log_predictive_observed(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        """t_df(m_o, Psi_oo (kappa_n + 1) / (kappa_n df)), df = nu_n - d + 1: the same df."""
        cdef Py_ssize_t d = self.n_features, k, n_observed, members
        cdef double kappa, f, df, distance, log_det
        if d > self.wide:
            self.log_predictive_all(n, i, out)
            return
        n_observed = self._observed_first(i, &self.order[0])
        for k in range(n):
            members = self.n_members[k]
            kappa = self.mean_precision + members
            f = kappa / (kappa + 1.0)
            df = self.df + members - d + 1.0
            distance = self._permuted_factor(k, i, n_observed, n_observed)
            log_det = linalg.log_det(&self.square[0, 0], n_observed)
            out[k] = (lgamma(0.5 * (df + n_observed)) - lgamma(0.5 * df)
                      + 0.5 * n_observed * (log(f) - LOG_PI) - 0.5 * log_det
                      - 0.5 * (df + n_observed) * log1p(f * distance))

    cdef void draw_missing(self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng) noexcept nogil:
        """Conditional t: location m_m + S_mo S_oo^-1 (x_o - m_o), df' = df + |o|.

        With the features permuted, Psi = U^T U gives S_mo S_oo^-1 (x_o - m_o) = U_om^T y,
        y = U_oo^-T (x_o - m_o), and the Schur complement U_mm^T U_mm.
        """
        cdef Py_ssize_t d = self.n_features
        cdef Py_ssize_t n_observed = self._observed_first(i, &self.order[0])
        cdef double kappa = self.mean_precision + self.n_members[k]
        cdef double df = self.df + self.n_members[k] - d + 1.0, spread, variance
        cdef double squares = self._permuted_factor(k, i, n_observed, d)
        # scale = (df + q) / (df + |o|) (kappa + 1) / (kappa df) Schur, q = df f squares; a t draw
        # is that times df' / chi2(df'), and df' cancels.
        spread = self.spread_given_observed(kappa, squares)
        variance = spread / (df + n_observed - 2.0) if df + n_observed > 2.0 else INFINITY
        spread = sqrt(spread / (2.0 * draws.gamma(rng, 0.5 * (df + n_observed))))
        self._draw_conditional(
            i, &self.order[0], n_observed, &self.square[0, 0], &self.vector[0], &self.mean[k, 0],
            spread, variance, rng,
        )

    cdef double spread_given_observed(self, double kappa, double squares) noexcept nogil:
        """By what a row's observed features widen the t law of those that are missing."""
        return (kappa + 1.0) / kappa + squares

    cdef void _draw_conditional(
        self, Py_ssize_t i, const Py_ssize_t* order, Py_ssize_t n_observed, const double* factor,
        double* vector, const double* mean, double spread, double variance, bitgen_t* rng,
    ) noexcept nogil:
        """x_m = mean_m + U_om^T y + spread U_mm^T z: features last in ``order`` given the first.

        U is the factor of the matrix in this order, y the whitened observed features with which
        ``vector`` begins; the covariance is ``variance`` times U_mm^T U_mm.
        """
        cdef Py_ssize_t d = self.n_features, t = self.missing_start[i], a, b, j
        cdef double* z = vector + n_observed
        cdef double step, u, squares
        for a in range(d - n_observed):
            z[a] = draws.normal(rng)
        for a in range(d - n_observed):
            j = order[n_observed + a]
            self.missing_mean[t + a] = mean[j]
            for b in range(n_observed):
                self.missing_mean[t + a] += factor[b * d + n_observed + a] * vector[b]
            step = squares = 0.0
            for b in range(a + 1):
                u = factor[(n_observed + b) * d + n_observed + a]
                step += u * z[b]
                squares += u * u
            self.missing_variance[t + a] = variance * squares
            self.X[i, j] = self.missing_mean[t + a] + spread * step

    # -- prior scale --------------------------------------------------------------------------

    cdef int scale_log_weights(
        self, Py_ssize_t n_blocks, const double* grid, Py_ssize_t n_grid, double* out
    ) noexcept nogil:
        """(nu0 d K / 2) log s - sum_k (nu_k / 2) log |s base + T_k|: O(K d^3)."""
        cdef Py_ssize_t d = self.n_features, k, g
        cdef double* diagonal = &self.vector[0]
        cdef double* coupling = diagonal + d
        for g in range(n_grid):
            out[g] += 0.5 * self.df * d * n_blocks * log(grid[g])
        for k in range(n_blocks):
            if self.tridiagonal(k, diagonal, coupling) != 0:
                return 1
            for g in range(n_grid):
                out[g] -= 0.5 * (self.df + self.n_members[k]) * linalg.log_det_shifted(
                    d, grid[g], diagonal, coupling
                )
        return 0

    cdef int set_scale(self, Py_ssize_t n_slots, double scale) noexcept nogil:
        self.scale = scale
        return self.derive(n_slots)

    # -- simulation ---------------------------------------------------------------------------

    cdef int redraw_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n, bitgen_t* rng
    ) noexcept nogil:
        """Sigma = U^T A^-T A^-1 U with Bartlett's A, so U^T A^-T z is N(0, Sigma)."""
        cdef Py_ssize_t d = self.n_features, a, b, i
        cdef double kappa = self.mean_precision + self.n_members[k], step
        cdef double* root = &self.square[0, 0]
        cdef double* bartlett = &self.square_too[0, 0]
        cdef double* z = &self.vector[0]
        cdef double* location = &self.work[0]
        draws.wishart_factor(rng, self.df + self.n_members[k], d, bartlett)
        for a in range(d):  # root <- A^T, an upper factor as linalg.solve expects
            for b in range(d):
                root[a * d + b] = bartlett[b * d + a]
        for i in range(-1, n):  # the mean first
            for a in range(d):
                z[a] = draws.normal(rng)
            linalg.solve(root, d, z)
            for a in range(d):
                step = 0.0
                for b in range(a + 1):
                    step += self.factor[k, b, a] * z[b]
                if i < 0:
                    location[a] = self.mean[k, a] + step / sqrt(kappa)
                else:
                    self.X[row[i], a] = location[a] + step
        return 0

    # -- all rows at once, given parameters ---------------------------------------------------

    cdef int reserve_parameters(self, Py_ssize_t n_blocks) except -1 nogil:
        if n_blocks > self.location.shape[0]:
            with gil:
                self._reserve_parameters(2 * n_blocks)
        return 0

    def _reserve_parameters(self, n_blocks):
        d = self.n_features
        self.whitening = np.zeros((n_blocks, d + 1, d))
        self.location = np.zeros((n_blocks, d))
        self.covariance = np.zeros((n_blocks, d, d))
        self.log_peak = np.zeros(n_blocks)

    cdef void draw_parameters(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil:
        """Sigma^-1 = W W^T, W = U^-1 A with Bartlett's A, and mu = m + Sigma^1/2 z / sqrt(kappa).

        Whitened, mu - m is z / sqrt(kappa): so x - mu is whitened without the digits that a mean
        far out in a tight block would cost. O(d^3).
        """
        cdef Py_ssize_t d = self.n_features, a, b, c
        cdef double left, kappa = self.mean_precision + self.n_members[k]
        cdef double* bartlett = &self.square[0, 0]
        cdef double* half = &self.square_too[0, 0]
        cdef double* z = &self.vector[0]
        cdef double* whitening = &self.whitening[k, 0, 0]
        cdef const double* factor = &self.factor[k, 0, 0]
        draws.wishart_factor(rng, self.df + self.n_members[k], d, bartlett)
        self.log_peak[k] = -d * HALF_LOG_2_PI - 0.5 * self.log_det[k]
        for b in range(d):
            self.log_peak[k] += log(bartlett[b * d + b])
            z[b] = draws.normal(rng) / sqrt(kappa)
        memcpy(whitening, bartlett, d * d * sizeof(double))
        for b in range(d - 1, -1, -1):  # W = U^-1 A, row by row from below
            for a in range(b + 1, d):
                left = factor[b * d + a]
                for c in range(d):
                    whitening[b * d + c] -= left * whitening[a * d + c]
            for c in range(d):
                whitening[b * d + c] /= factor[b * d + b]
        for b in range(d):              # A^-1 U, of which Sigma is the square
            for c in range(d):
                half[b * d + c] = factor[b * d + c] if c >= b else 0.0
            for a in range(b):
                left = bartlett[b * d + a]
                for c in range(d):
                    half[b * d + c] -= left * half[a * d + c]
            for c in range(d):
                half[b * d + c] /= bartlett[b * d + b]
        linalg.gemm(True, False, d, d, d, 1.0, half, half, 0.0, &self.covariance[k, 0, 0])
        for c in range(d):
            self.location[k, c] = self.mean[k, c]
            whitening[d * d + c] = -z[c]
        for b in range(d):
            left = self.mean[k, b] - self.prior_mean[b]
            for c in range(d):
                self.location[k, c] += half[b * d + c] * z[b]
                whitening[d * d + c] -= left * whitening[b * d + c]

    cdef Py_ssize_t _columns(self, Py_ssize_t n_blocks) noexcept nogil:
        """Columns of the widest matrix product for so many blocks."""
        return max(self.n_features, min(<Py_ssize_t> COLUMNS, n_blocks * self.n_features))

    cdef Py_ssize_t work_size(self, Py_ssize_t n_rows, Py_ssize_t n_blocks) noexcept nogil:
        cdef Py_ssize_t d = self.n_features, columns = self._columns(n_blocks)
        return CHUNK * (d + 1 + columns) + columns * (d + 2) + d * (d + 2)

    cdef void log_likelihoods(
        self, const Py_ssize_t* row, Py_ssize_t n_rows, Py_ssize_t n_blocks, double* out,
        double* work,
    ) noexcept nogil:
        """Rows that lack the same cells go together: O(d^3) for each such run and block."""
        cdef Py_ssize_t n
        while n_rows > 0:
            n = n_rows if self.n_features > self.wide else self.alike(row, n_rows)
            self._log_likelihoods_alike(row, n, n_blocks, out, work)
            row += n
            out += n * n_blocks
            n_rows -= n

    cdef void _log_likelihoods_alike(
        self, const Py_ssize_t* row, Py_ssize_t n_rows, Py_ssize_t n_blocks, double* out,
        double* work,
    ) noexcept nogil:
        """Whiten the observed features of rows for all blocks by one product; sum the squares."""
        cdef Py_ssize_t d = self.n_features, n = d, columns = self._columns(n_blocks), a, j, k, t
        cdef Py_ssize_t first = 0, chunk, start, n_now, n_together
        cdef Py_ssize_t* feature = <Py_ssize_t*> work
        cdef double* scratch = work + d
        cdef double* log_peak = scratch + d * (d + 1)
        cdef double* whitening = log_peak + columns
        cdef double* rows = whitening + columns * (d + 1)
        cdef double* white = rows + CHUNK * (d + 1)
        if d > self.wide:
            for a in range(d):
                feature[a] = a
        else:
            n = self._observed_first(row[0], feature)
            if n == 0:
                return
        while first < n_blocks:
            n_now = min(n_blocks - first, max(<Py_ssize_t> 1, COLUMNS // n))
            for k in range(n_now):
                log_peak[k] = self._whiten(
                    first + k, feature, n, whitening + k * n, n_now * n, scratch
                )
            for chunk in range((n_rows + CHUNK - 1) // CHUNK):
                start = chunk * CHUNK
                n_together = min(<Py_ssize_t> CHUNK, n_rows - start)
                for t in range(n_together):
                    for a in range(n):
                        j = feature[a]
                        rows[t * (n + 1) + a] = self.X[row[start + t], j] - self.prior_mean[j]
                    rows[t * (n + 1) + n] = 1.0
                linalg.gemm(
                    False, False, n_together, n_now * n, n + 1, 1.0, rows, whitening, 0.0, white
                )
                for t in range(n_together):
                    for k in range(n_now):
                        out[(start + t) * n_blocks + first + k] += (
                            log_peak[k] - 0.5 * _squares(white + (t * n_now + k) * n, n)
                        )
            first += n_now

    cdef double _whiten(
        self, Py_ssize_t k, const Py_ssize_t* feature, Py_ssize_t n, double* out,
        Py_ssize_t stride, double* work,
    ) noexcept nogil:
        """The (n + 1) x n matrix that whitens (x_o - m0_o, 1) of n features; returns log_peak.

        For some of the features V^-1 with Sigma_oo = V^T V, which takes O(n^3). NaN if Sigma_oo
        is not positive definite.
        """
        cdef Py_ssize_t d = self.n_features, a, b
        cdef double* factor = work
        cdef double* line = work + n * n
        cdef double left
        if n == d:
            for a in range(d + 1):
                memcpy(out + a * stride, &self.whitening[k, a, 0], d * sizeof(double))
            return self.log_peak[k]
        for a in range(n):
            for b in range(a, n):
                factor[a * n + b] = self.covariance[k, feature[a], feature[b]]
        if linalg.cholesky(factor, n) != 0:
            return NAN
        memset(out + n * stride, 0, n * sizeof(double))
        for a in range(n):  # row a of V^-1 is V^-T e_a
            memset(line, 0, n * sizeof(double))
            line[a] = 1.0
            linalg.solve_transposed(factor, n, line)
            memcpy(out + a * stride, line, n * sizeof(double))
            left = self.location[k, feature[a]] - self.prior_mean[feature[a]]
            for b in range(a, n):
                out[n * stride + b] -= left * line[b]
        return -n * HALF_LOG_2_PI - 0.5 * linalg.log_det(factor, n)

    cdef void draw_missing_given_parameters(
        self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng, double* work
    ) noexcept nogil:
        """N(mu_m + Sigma_mo Sigma_oo^-1 (x_o - mu_o), Schur complement): O(d^3)."""
        cdef Py_ssize_t d = self.n_features, a, b
        cdef Py_ssize_t* order = <Py_ssize_t*> work
        cdef double* vector = work + d
        cdef double* factor = vector + d
        cdef Py_ssize_t n_observed = self._observed_first(i, order)
        for a in range(d):
            for b in range(a, d):
                factor[a * d + b] = self.covariance[k, order[a], order[b]]
        if linalg.cholesky(factor, d) != 0:
            factor[d * d - 1] = NAN  # the log joint will tell
        for a in range(n_observed):
            vector[a] = self.X[i, order[a]] - self.location[k, order[a]]
        _solve_leading(factor, d, n_observed, vector)
        self._draw_conditional(
            i, order, n_observed, factor, vector, &self.location[k, 0], 1.0, 1.0, rng
        )

    cdef Py_ssize_t sums_size(self) noexcept nogil:
        return (self.n_features + 1) * (self.n_features + 1)

    cdef void sum_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n_rows, double* sums, double* work
    ) noexcept nogil:
        """(x - m, 1)^T (x - m, 1) over the rows: their scatter about m, their sum, their number."""
        cdef Py_ssize_t d = self.n_features, chunk, start, n, t, a
        cdef double* line
        for chunk in range((n_rows + CHUNK - 1) // CHUNK):
            start = chunk * CHUNK
            n = min(<Py_ssize_t> CHUNK, n_rows - start)
            for t in range(n):
                line = work + t * (d + 1)
                for a in range(d):
                    line[a] = self.X[row[start + t], a] - self.mean[k, a]
                line[d] = 1.0
            linalg.gemm(True, False, d + 1, d + 1, n, 1.0, work, work, 1.0, sums)

    cdef int set_from_sums(
        self, Py_ssize_t k, Py_ssize_t n_rows, const double* sums
    ) noexcept nogil:
        """Psi0 + scatter is factored, then the prior mean's part added without cancellation.

        Fails where the rows lie so far from the slot's old mean that digits of it were lost.
        """
        cdef Py_ssize_t d = self.n_features, a, b
        cdef double n = <double> n_rows, lost = 0.0
        cdef const double* total = sums + d * (d + 1)
        cdef double* moved = &self.work[0]      # mean of the rows from the slot's old mean
        cdef double* line = &self.vector[0]
        for a in range(d):
            moved[a] = total[a] / n
            self.row_mean[k, a] = self.mean[k, a] + moved[a]
        for a in range(d):
            for b in range(a, d):
                self.scatter[k, a, b] = sums[a * (d + 1) + b] - n * moved[a] * moved[b]
        self.n_members[k] = n_rows
        if self.factor_within(k, &self.factor[k, 0, 0]) != 0:
            return 1
        for a in range(d):  # n moved moved^T is rounded feature by feature
            memset(line, 0, d * sizeof(double))
            line[a] = 1.0
            lost += n * moved[a] * moved[a] * linalg.solve_transposed(
                &self.factor[k, 0, 0], d, line
            )
        self.finish(k)
        return lost > 1.0 / SPOILED


cdef double log_multigamma(double x, Py_ssize_t d) noexcept nogil:
    """log Gamma_d(x), the multivariate gamma function, without its power of pi.

    Two at a time: Gamma(y) Gamma(y - 1/2) = 2^(2 - 2 y) sqrt(pi) Gamma(2 y - 1).
    """
    cdef Py_ssize_t _
    cdef double total = 0.0, y = x
    for _ in range(d // 2):
        total += lgamma(2.0 * y - 1.0) + (2.0 - 2.0 * y) * LOG_2 + 0.5 * LOG_PI
        y -= 1.0
    return total + lgamma(y) if d % 2 == 1 else total


cdef double log_gamma_ratio(double x, double step, Py_ssize_t d) noexcept nogil:
    """log Gamma_d(x + step) / Gamma_d(x): term by term, so that a large x does not drown it."""
    cdef Py_ssize_t _
    cdef double total = 0.0, y = x
    for _ in range(d // 2):
        total += lgamma(2.0 * (y + step) - 1.0) - lgamma(2.0 * y - 1.0) - 2.0 * step * LOG_2
        y -= 1.0
    return total + lgamma(y + step) - lgamma(y) if d % 2 == 1 else total


cdef inline void _add_outer(
    double* out, Py_ssize_t d, double weight, const double* x
) noexcept nogil:
    """Upper triangle of out += weight x x^T"""
    cdef Py_ssize_t a, b
    cdef double left
    for a in range(d):
        left = weight * x[a]
        for b in range(a, d):
            out[a * d + b] += left * x[b]


cdef inline double _squares(const double* y, Py_ssize_t n) noexcept nogil:
    """y . y, in two sums that need not wait for one another."""
    cdef Py_ssize_t a
    cdef double even = 0.0, odd = 0.0
    for a in range(0, n - 1, 2):
        even += y[a] * y[a]
        odd += y[a + 1] * y[a + 1]
    if n % 2 == 1:
        even += y[n - 1] * y[n - 1]
    return even + odd


cdef double _solve_leading(
    const double* factor, Py_ssize_t d, Py_ssize_t n, double* x
) noexcept nogil:
    """x <- U_oo^-T x, U_oo the leading n x n block of a d x d factor; returns the new x . x."""
    cdef Py_ssize_t a, b
    cdef double squares = 0.0
    for b in range(n):
        x[b] /= factor[b * d + b]
        squares += x[b] * x[b]
        for a in range(b + 1, n):
            x[a] -= factor[b * d + a] * x[b]
    return squares
