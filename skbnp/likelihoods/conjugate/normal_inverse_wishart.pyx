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

from skbnp.likelihoods.conjugate.by_count cimport ByCount
from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.likelihoods.conjugate.gaussians cimport (
    FullGaussians,
    draw_conditional,
    permuted_factor,
    solve_leading,
)
from skbnp.likelihoods.conjugate.lanes cimport Lanes
from skbnp.numerics cimport linalg, rng as draws
from skbnp.numerics.special cimport LOG_PI, lgamma, log_multigamma_ratio

from skbnp.likelihoods.conjugate.family import check_array_of_state, check_positive_number
from skbnp.numerics.linalg import cholesky_upper


cdef enum:
    WIDE = 64  # in more features an incomplete row is weighed as completed: exact, mixing slower
    CHUNK = 128  # rows of one matrix product, which stays in the cache

cdef double CANCELLED = 1e-8     # |Psi without| / |Psi with| under which a difference is not used
cdef double SPOILED = 1e-6       # the same under which a removal is not used


cdef class NormalInverseWishart(ConjugateFamily):
    """Slots of full-covariance Gaussian blocks. Adding and removing a row costs O(d^2)."""

    SLOTS = ("n_members", "row_mean", "scatter", "mean", "factor", "log_det")
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
        self.log_t_constant = ByCount(self.n_samples)
        self.log_m_constant = ByCount(self.n_samples)
        self.n_members = np.zeros(0, dtype=np.intp)
        self.row_mean = np.zeros((0, d))
        self.scatter = np.zeros((0, d, d))
        self.mean = np.zeros((0, d))
        self.factor = np.zeros((0, d, d))
        self.log_det = np.zeros(0)
        self.vector = np.zeros(2 * d)
        self.square = np.zeros((d, d))
        self.work = np.zeros(max(4, d) * d)
        self.order = np.zeros(d, dtype=np.intp)
        self.lanes = Lanes(d)
        self.parameters = FullGaussians(self.prior_mean)
        self.bartlett = np.zeros((d, d))
        self._start_imputation()
        if self.factor_base() != 0:
            raise np.linalg.LinAlgError("covariance must be positive definite")

    def _start_imputation(self):
        """Start every missing cell at the prior mean; the first sweep draws it."""
        data = np.asarray(self.X)
        np.copyto(data, np.asarray(self.prior_mean), where=np.isnan(data))

    def _grow(self, n_slots):
        super()._grow(self.lanes.grow(n_slots))

    def set_state(self, state, Py_ssize_t n_slots):
        super().set_state(state, n_slots)
        self.lanes.touch_all()

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

    cdef bint augmented(self, Py_ssize_t i) noexcept nogil:
        return self.missing_start[i + 1] > self.missing_start[i]

    # -- statistics ---------------------------------------------------------------------------

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
        self.lanes.touch(k)

    cdef void copy(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
        cdef Py_ssize_t d = self.n_features
        self.n_members[target] = self.n_members[source]
        memcpy(&self.row_mean[target, 0], &self.row_mean[source, 0], d * sizeof(double))
        memcpy(&self.scatter[target, 0, 0], &self.scatter[source, 0, 0], d * d * sizeof(double))
        memcpy(&self.mean[target, 0], &self.mean[source, 0], d * sizeof(double))
        memcpy(&self.factor[target, 0, 0], &self.factor[source, 0, 0], d * d * sizeof(double))
        self.log_det[target] = self.log_det[source]
        self.lanes.touch(target)

    cdef void add(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """m += r / (kappa + 1), Psi += kappa / (kappa + 1) r r^T, r = x - m; xbar and S by n."""
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
        self.log_det[k] = _log_det(&self.factor[k, 0, 0], d)
        self.lanes.touch(k)

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
        self.log_det[k] = _log_det(&self.factor[k, 0, 0], d)
        self.lanes.touch(k)
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
        """Factor the base; slots are as they were. Non-zero: it is not positive definite."""
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
        self.log_t_constant.forget()
        self.log_m_constant.forget()
        return failed

    cdef int derive(self, Py_ssize_t n_slots) noexcept nogil:
        """Bring the slots up to date with the prior. Non-zero: build one anew from its rows."""
        cdef Py_ssize_t k
        self.clear_from(n_slots)
        for k in range(n_slots):
            if self.n_members[k] == 0:
                self.clear(k)
            elif self._derive(k) != 0:
                return 1
        return 0

    cdef void clear_from(self, Py_ssize_t n_slots) noexcept nogil:
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
        self.log_det[k] = _log_det(&self.factor[k, 0, 0], d)
        self.lanes.touch(k)

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
        cdef double known = self.log_t_constant.get(n)
        cdef Py_ssize_t d = self.n_features
        if known == known:
            return known
        return self.log_t_constant.put(
            n, lgamma(0.5 * (nu + 1.0)) - lgamma(0.5 * (nu + 1.0 - d))
            + 0.5 * d * (log(kappa / (kappa + 1.0)) - LOG_PI)
        )

    cdef inline double _m_constant(self, Py_ssize_t n) noexcept nogil:
        """The same for log m: log Gamma_d((nu0 + n) / 2) / Gamma_d(nu0 / 2) and more."""
        cdef double known = self.log_m_constant.get(n)
        cdef Py_ssize_t d = self.n_features
        if known == known:
            return known
        return self.log_m_constant.put(
            n, log_multigamma_ratio(0.5 * self.df, 0.5 * n, d) - 0.5 * d * n * LOG_PI
            + 0.5 * d * log(self.mean_precision / (self.mean_precision + n))
        )

    cdef double log_predictive(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t d = self.n_features, a
        for a in range(d):
            self.vector[a] = self.X[i, a] - self.mean[k, a]
        return self._log_t(
            k, linalg.solve_transposed(&self.factor[k, 0, 0], d, &self.vector[0])
        )

    cdef void log_predictive_all(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        """O(n d^2 / 2)"""
        if self.lanes.n_fresh < n:
            self.refresh_lanes(n)
        self.lanes.log_t(n, i, &self.X[i, 0], out)

    cdef void refresh_lanes(self, Py_ssize_t n) noexcept nogil:
        """Bring the lanes of slots 0..n-1 up to date."""
        cdef Py_ssize_t k
        for k in range(self.lanes.n_fresh, n):
            if self.lanes.stale[k]:
                self.lanes.law[0, k] = self._t_constant(self.n_members[k]) - 0.5 * self.log_det[k]
                self.lanes.law[1, k] = 0.5 * (self.df + self.n_members[k] + 1.0)
                self.lanes.law[2, k] = self.mean_precision + self.n_members[k]
                self.lanes.law[2, k] /= self.lanes.law[2, k] + 1.0
        self.lanes.refresh(n, &self.mean[0, 0], &self.factor[0, 0, 0])

    cdef double log_predictive_own(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """By the determinant lemma: |Psi without| = |Psi with| (1 - c r^T Psi^-1 r)."""
        cdef Py_ssize_t d = self.n_features, a, n = self.n_members[k] - 1
        cdef double kappa = self.mean_precision + n + 1.0, distance, left, log_left
        if self.lanes.knows(k, i):
            distance = self.lanes.distance[k]
        else:
            for a in range(d):
                self.vector[a] = self.X[i, a] - self.mean[k, a]
            distance = linalg.solve_transposed(&self.factor[k, 0, 0], d, &self.vector[0])
        left = 1.0 - kappa / (kappa - 1.0) * distance
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

    cdef double _permuted_factor(
        self, Py_ssize_t k, Py_ssize_t i, Py_ssize_t n_observed, Py_ssize_t n
    ) noexcept nogil:
        """``square``: factor of Psi, first n of ``order``; |U_oo^-T (x_o - m_o)|^2: O(n^3)."""
        cdef Py_ssize_t d = self.n_features, a, j
        cdef double* out = &self.square[0, 0]
        if permuted_factor(&self.factor[k, 0, 0], d, &self.order[0], n, out) != 0:
            return NAN
        for a in range(n_observed):
            j = self.order[a]
            self.vector[a] = self.X[i, j] - self.mean[k, j]
        return solve_leading(out, n, n_observed, &self.vector[0])

    cdef void log_predictive_observed(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        """t_df(m_o, Psi_oo (kappa_n + 1) / (kappa_n df)), df = nu_n - d + 1: the same df."""
        cdef Py_ssize_t d = self.n_features, k, n_observed, members
        cdef double kappa, f, df, distance, log_det
        if d > self.wide:
            self.log_predictive_all(n, i, out)
            return
        n_observed = self.observed_first(i, &self.order[0])
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
        With Psi = U^T U, permuted, that is U_om^T U_oo^-T (x_o - m_o), and Schur is U_mm^T U_mm.
        """
        cdef Py_ssize_t d = self.n_features
        cdef Py_ssize_t n_observed = self.observed_first(i, &self.order[0])
        cdef double kappa = self.mean_precision + self.n_members[k]
        cdef double df = self.df + self.n_members[k] - d + 1.0, spread, variance
        cdef double squares = self._permuted_factor(k, i, n_observed, d)
        # scale = (df + q) / (df + |o|) (kappa + 1) / (kappa df) Schur, q = df f squares; a t draw
        # is that times df' / chi2(df'), and df' cancels.
        spread = self.spread_given_observed(kappa, squares)
        variance = spread / (df + n_observed - 2.0) if df + n_observed > 2.0 else INFINITY
        spread = sqrt(spread / (2.0 * draws.gamma(rng, 0.5 * (df + n_observed))))
        draw_conditional(
            self, i, &self.order[0], n_observed, &self.square[0, 0], &self.vector[0],
            &self.mean[k, 0], spread, variance, rng,
        )

    cdef double spread_given_observed(self, double kappa, double squares) noexcept nogil:
        """By what a row's observed features widen the t law of those that are missing."""
        return (kappa + 1.0) / kappa + squares

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

    cdef int redraw_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n, bitgen_t* rng
    ) noexcept nogil:
        """Sigma = U^T A^-T A^-1 U with Bartlett's A, so U^T A^-T z is N(0, Sigma)."""
        cdef Py_ssize_t d = self.n_features, a, b, i
        cdef double kappa = self.mean_precision + self.n_members[k], step
        cdef double* root = &self.square[0, 0]
        cdef double* bartlett = &self.bartlett[0, 0]
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
        return self.parameters.reserve(n_blocks)

    cdef void draw_parameters(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil:
        cdef Py_ssize_t n = self.n_members[k]
        self.parameters.draw(
            k, self.mean_precision + n, self.df + n, self.log_det[k], &self.mean[k, 0],
            &self.factor[k, 0, 0], rng,
        )

    cdef Py_ssize_t work_size(self, Py_ssize_t n_rows, Py_ssize_t n_blocks) noexcept nogil:
        return self.parameters.work_size(n_blocks)

    cdef void log_likelihoods(
        self, const Py_ssize_t* row, Py_ssize_t n_rows, Py_ssize_t n_blocks, double* out,
        double* work,
    ) noexcept nogil:
        cdef bint whole = self.n_features > self.wide
        self.parameters.log_likelihoods(self, whole, row, n_rows, n_blocks, out, work)

    cdef void draw_missing_given_parameters(
        self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng, double* work
    ) noexcept nogil:
        self.parameters.draw_missing(self, k, i, rng, work)

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


cdef inline double _log_det(const double* factor, Py_ssize_t d) noexcept nogil:
    """``linalg.log_det`` by the logarithm of a product: a row that moves asks for two."""
    cdef double product = 1.0, total = 0.0
    cdef Py_ssize_t a
    for a in range(d):
        product *= factor[a * d + a]
        if not 1e-100 < product < 1e100:  # before it leaves the range
            total += log(product)
            product = 1.0
    return 2.0 * (total + log(product))


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
