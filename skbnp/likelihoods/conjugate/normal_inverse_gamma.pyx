"""Gaussian blocks with diagonal or spherical covariance; missing cells are integrated out.

Diagonal: sigma2_j ~ IG(a0, b0_j), mu_j | sigma2_j ~ N(m0_j, sigma2_j / kappa0), each feature alone.
Spherical: one sigma2 ~ IG(a0, b0) for all features. A missing cell enters no statistic, so
every feature of a block has its own count (Murphy 2007, section 3; the counts by feature are ours).

A slot keeps counts, means and squares of its cells beside the posterior's m and b, so that another
prior costs O(d) a slot. With ``learned`` covariances a0 = (delta + 2) / 2 and b0 = delta lam / 2,
so that E[sigma2] = lam, and ``scale`` is delta, ``base`` lam / 2: see ``learned_covariance``.
"""

from libc.math cimport INFINITY, NAN, log, log1p, sqrt
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.conjugate.by_count cimport ByCount
from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.likelihoods.conjugate.gaussians cimport DiagonalGaussians
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI, lgamma

from skbnp.likelihoods.conjugate.family import check_array_of_state, check_positive_number


cdef double CANCELLED = 1e-8     # rate without / rate with under which a difference is not used
cdef double SPOILED = 1e-6       # the same under which a removal is not used
cdef double LARGE = 1e150        # products of (1 + z) are logged when they pass this


cdef class NormalInverseGamma(ConjugateFamily):
    """Slots of diagonal or spherical Gaussian blocks. All moves of one row cost O(d)."""

    SLOTS = ("n_members", "count", "row_mean", "squares", "mean", "rate", "log_rate")
    _for_prediction = ("n_members", "count", "mean", "rate")
    _counts_of_rows = ("n_members", "count")
    _counts_of_cells = "count"

    def __init__(
        self, X, mean, double mean_precision, double shape, rate, double scale, shared,
        bint learned=False,
    ):
        super().__init__(X)
        d = self.n_features
        self.shared = shared
        self.n_rates = 1 if shared else d
        self.complete = self.missing_feature.shape[0] == 0
        self.prior_mean = np.array(mean, dtype=np.float64)
        self.mean_precision = mean_precision
        self.shape = shape
        self.base = np.array(rate, dtype=np.float64).reshape(self.n_rates)
        self.scaled = True
        self.scale = scale
        self.learned = learned
        self.log_t_constant = ByCount(self.n_samples)
        self.log_m_constant = ByCount(self.n_samples)
        self.n_members = np.zeros(0, dtype=np.intp)
        self.count = np.zeros((0, d))
        self.row_mean = np.zeros((0, d))
        self.squares = np.zeros((0, d))
        self.mean = np.zeros((0, d))
        self.rate = np.zeros((0, self.n_rates))
        self.log_rate = np.zeros((0, self.n_rates))
        self.vector = np.zeros(d)
        self.parameters = DiagonalGaussians(d)

    def get_state(self, Py_ssize_t n_slots):
        state = super().get_state(n_slots)
        if self.learned:
            state["covariance"] = 2.0 * np.asarray(self.base)
            state["mean_precision"] = self.mean_precision
        return state

    def _check_state(self, state, n_slots):
        super()._check_state(state, n_slots)
        if self.learned:
            check_array_of_state("covariance", state["covariance"], np.asarray(self.base))
            check_positive_number("mean_precision", state["mean_precision"])
            if not np.all((state["covariance"] > 0) & (state["covariance"] < np.inf)):
                raise ValueError("covariance of a state must be positive")

    def _set_prior(self, state):
        super()._set_prior(state)
        if self.learned:
            self.base = 0.5 * state["covariance"]
            self.mean_precision = state["mean_precision"]
            self.shape = 0.5 * (self.scale + 2.0)
        self.forget_constants()

    # -- statistics ---------------------------------------------------------------------------

    cdef void _settle(self, Py_ssize_t k) noexcept nogil:
        """Bring what depends on the rates of slot k up to date."""
        cdef Py_ssize_t j
        for j in range(self.n_rates):
            self.log_rate[k, j] = log(self.rate[k, j])

    cdef double cells(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil:
        """Observed cells of slot k that rate j is shared by."""
        cdef Py_ssize_t c
        cdef double total = 0.0
        if not self.shared:
            return self.count[k, j]
        for c in range(self.n_features):
            total += self.count[k, c]
        return total

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t j
        self.n_members[k] = 0
        for j in range(self.n_features):
            self.count[k, j] = self.row_mean[k, j] = self.squares[k, j] = 0.0
            self.mean[k, j] = self.prior_mean[j]
        for j in range(self.n_rates):
            self.rate[k, j] = self.scale * self.base[j]
        self._settle(k)

    cdef void copy(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
        cdef size_t row = self.n_features * sizeof(double)
        cdef size_t rates = self.n_rates * sizeof(double)
        self.n_members[target] = self.n_members[source]
        memcpy(&self.count[target, 0], &self.count[source, 0], row)
        memcpy(&self.row_mean[target, 0], &self.row_mean[source, 0], row)
        memcpy(&self.squares[target, 0], &self.squares[source, 0], row)
        memcpy(&self.mean[target, 0], &self.mean[source, 0], row)
        memcpy(&self.rate[target, 0], &self.rate[source, 0], rates)
        memcpy(&self.log_rate[target, 0], &self.log_rate[source, 0], rates)

    cdef void add(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """b_j += kappa / (kappa + 1) r^2 / 2, m_j += r / (kappa + 1), r = x_j - m_j."""
        cdef Py_ssize_t j
        cdef double kappa, r, n
        for j in range(self.n_features):
            r = self.X[i, j] - self.row_mean[k, j]
            if r != r:
                continue
            n = self.count[k, j]
            self.row_mean[k, j] += r / (n + 1.0)
            self.squares[k, j] += n / (n + 1.0) * r * r
            kappa = self.mean_precision + n
            r = self.X[i, j] - self.mean[k, j]
            self.mean[k, j] += r / (kappa + 1.0)
            self.rate[k, 0 if self.shared else j] += 0.5 * kappa / (kappa + 1.0) * r * r
            self.count[k, j] += 1.0
        self.n_members[k] += 1
        self._settle(k)

    cdef int remove(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """b_j -= kappa / (kappa - 1) r^2 / 2, m_j -= r / (kappa - 1), r = x_j - m_j."""
        cdef Py_ssize_t j, jr
        cdef double kappa, r, old, n
        cdef bint spoiled = False
        if self.n_members[k] == 1:
            self.clear(k)
            return 0
        for j in range(self.n_features):
            r = self.X[i, j] - self.row_mean[k, j]
            if r != r:
                continue
            jr = 0 if self.shared else j
            n = self.count[k, j]
            if n == 1.0:
                self.row_mean[k, j] = self.squares[k, j] = 0.0
            else:
                self.row_mean[k, j] -= r / (n - 1.0)
                self.squares[k, j] = max(self.squares[k, j] - n / (n - 1.0) * r * r, 0.0)
            kappa = self.mean_precision + n
            r = self.X[i, j] - self.mean[k, j]
            old = self.rate[k, jr]
            self.mean[k, j] -= r / (kappa - 1.0)
            self.rate[k, jr] -= 0.5 * kappa / (kappa - 1.0) * r * r
            self.count[k, j] -= 1.0
            spoiled |= not self.rate[k, jr] > SPOILED * old
        self.n_members[k] -= 1
        self._settle(k)
        return spoiled

    cdef int merge(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t target) noexcept nogil:
        """Means and squares of the cells of the two blocks together; nothing cancels."""
        cdef Py_ssize_t j
        cdef double n, share, apart
        for j in range(self.n_features):
            n = self.count[a, j] + self.count[b, j]
            share = self.count[b, j] / n if n > 0.0 else 0.0
            apart = self.row_mean[b, j] - self.row_mean[a, j]
            self.count[target, j] = n
            self.row_mean[target, j] = self.row_mean[a, j] + share * apart
            self.squares[target, j] = (
                self.squares[a, j] + self.squares[b, j] + share * self.count[a, j] * apart * apart
            )
        self.n_members[target] = self.n_members[a] + self.n_members[b]
        self._derive(target)
        return 0

    cdef void forget_constants(self) noexcept nogil:
        """Forget what depends on the numbers of the prior alone. Slots: ``derive`` them."""
        self.log_t_constant.forget()
        self.log_m_constant.forget()

    cdef void derive(self, Py_ssize_t n_slots) noexcept nogil:
        """Bring the slots up to date with the numbers of the prior; from n_slots on: empty."""
        cdef Py_ssize_t k
        for k in range(self.n_slots):
            if self.n_members[k] == 0 or k >= n_slots:
                self.clear(k)
            else:
                self._derive(k)

    cdef void _derive(self, Py_ssize_t k) noexcept nogil:
        """m and b of slot k from the number, mean and squares of its cells."""
        cdef Py_ssize_t j
        cdef double n
        for j in range(self.n_rates):
            self.rate[k, j] = self.scale * self.base[j]
        for j in range(self.n_features):
            n = self.count[k, j]
            self.mean[k, j] = self.prior_mean[j] + n / (self.mean_precision + n) * (
                self.row_mean[k, j] - self.prior_mean[j]
            )
            self.rate[k, 0 if self.shared else j] += 0.5 * self.gain(k, j, self.mean_precision)
        self._settle(k)

    cdef double total_gain(self, Py_ssize_t k, Py_ssize_t j, double mean_precision) noexcept nogil:
        """What the cells that share rate j of slot k add to 2 b."""
        cdef Py_ssize_t c
        cdef double total = 0.0
        if not self.shared:
            return self.gain(k, j, mean_precision)
        for c in range(self.n_features):
            total += self.gain(k, c, mean_precision)
        return total

    cdef double gain(self, Py_ssize_t k, Py_ssize_t j, double mean_precision) noexcept nogil:
        """What the cells of feature j in slot k add to 2 b."""
        cdef double n = self.count[k, j], off = self.row_mean[k, j] - self.prior_mean[j]
        if n == 0.0:
            return 0.0
        return self.squares[k, j] + mean_precision * n / (mean_precision + n) * off * off

    # -- densities ----------------------------------------------------------------------------

    cdef double log_predictive(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        if self.shared:
            return self._log_t_shared(k, &self.X[i, 0])
        if self.complete:
            return self._log_t_complete(k, &self.X[i, 0])
        return self._log_t_diagonal(k, &self.X[i, 0])

    cdef void log_predictive_all(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        """O(n d)"""
        cdef Py_ssize_t k
        for k in range(n):
            out[k] = self.log_predictive(k, i)

    cdef void log_predictive_observed(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        self.log_predictive_all(n, i, out)

    cdef inline double _t_constant(self, Py_ssize_t n) noexcept nogil:
        """The part of log t that n fixes; worked out when first asked for."""
        cdef double kappa = self.mean_precision + n
        cdef double half = 0.5 * self.n_features if self.shared else 0.5  # of one variance's cells
        cdef double a = self.shape + half * n, known = self.log_t_constant.get(n)
        if known == known:
            return known
        return self.log_t_constant.put(
            n, lgamma(a + half) - lgamma(a) + half * (log(kappa / (kappa + 1.0)) - LOG_2_PI)
        )

    cdef inline double _m_constant(self, Py_ssize_t n) noexcept nogil:
        """The same for log m, per feature."""
        cdef double kappa = self.mean_precision + n, known = self.log_m_constant.get(n)
        if known == known:
            return known
        known = 0.5 * log(self.mean_precision / kappa) - 0.5 * n * LOG_2_PI
        if not self.shared:
            known += lgamma(self.shape + 0.5 * n) - lgamma(self.shape)
        return self.log_m_constant.put(n, known)

    cdef double _log_t_complete(self, Py_ssize_t k, const double* x) noexcept nogil:
        """Diagonal, nothing missing: all features share n, so one logarithm of a product."""
        cdef Py_ssize_t j, d = self.n_features, n = self.n_members[k]
        cdef double kappa = self.mean_precision + n, half_f = 0.5 * kappa / (kappa + 1.0)
        cdef double r, z, product = 1.0, total = 0.0, log_rates = 0.0
        for j in range(d):
            r = x[j] - self.mean[k, j]
            z = half_f * r * r / self.rate[k, j]
            log_rates += self.log_rate[k, j]
            if z > LARGE:
                total += log1p(z)
            else:
                product *= 1.0 + z
                if product > LARGE:
                    total += log(product)
                    product = 1.0
        total += log(product)
        return (d * self._t_constant(n) - 0.5 * log_rates
                - (self.shape + 0.5 * n + 0.5) * total)

    cdef double _log_t_diagonal(self, Py_ssize_t k, const double* x) noexcept nogil:
        """Diagonal, over the observed features of the row."""
        cdef Py_ssize_t j
        cdef double n, kappa, r, total = 0.0
        for j in range(self.n_features):
            r = x[j] - self.mean[k, j]
            if r != r:
                continue
            n = self.count[k, j]
            kappa = self.mean_precision + n
            total += self._t_constant(<Py_ssize_t> n) - 0.5 * self.log_rate[k, j]
            total -= (self.shape + 0.5 * n + 0.5) * log1p(
                0.5 * kappa / (kappa + 1.0) * r * r / self.rate[k, j]
            )
        return total

    cdef double _log_t_shared(self, Py_ssize_t k, const double* x) noexcept nogil:
        """Spherical, over the observed features of the row."""
        cdef Py_ssize_t j, d = self.n_features
        cdef double n, kappa, r, cells = 0.0, seen = 0.0, squares = 0.0, log_f = 0.0, a
        if self.complete:
            n = <double> self.n_members[k]
            kappa = self.mean_precision + n
            for j in range(d):
                r = x[j] - self.mean[k, j]
                squares += r * r
            squares *= 0.5 * kappa / (kappa + 1.0)
            return (self._t_constant(self.n_members[k]) - 0.5 * d * self.log_rate[k, 0]
                    - (self.shape + 0.5 * d * (n + 1.0)) * log1p(squares / self.rate[k, 0]))
        for j in range(d):
            n = self.count[k, j]
            seen += n
            r = x[j] - self.mean[k, j]
            if r != r:
                continue
            kappa = self.mean_precision + n
            cells += 1.0
            log_f += 0.5 * log(kappa / (kappa + 1.0))
            squares += 0.5 * kappa / (kappa + 1.0) * r * r
        a = self.shape + 0.5 * seen
        return (lgamma(a + 0.5 * cells) - lgamma(a) + log_f - 0.5 * cells * LOG_2_PI
                - 0.5 * cells * self.log_rate[k, 0]
                - (a + 0.5 * cells) * log1p(squares / self.rate[k, 0]))

    cdef double log_predictive_own(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """log m(with) - log m(without), the rates without the row by subtraction."""
        if self.shared:
            return self._own_shared(k, &self.X[i, 0])
        return self._own_diagonal(k, &self.X[i, 0])

    cdef double _own_diagonal(self, Py_ssize_t k, const double* x) noexcept nogil:
        cdef Py_ssize_t j
        cdef double n, kappa, r, left, total = 0.0
        for j in range(self.n_features):
            r = x[j] - self.mean[k, j]
            if r != r:
                continue
            n = self.count[k, j] - 1.0
            kappa = self.mean_precision + n + 1.0
            left = 1.0 - 0.5 * kappa / (kappa - 1.0) * r * r / self.rate[k, j]
            if not left > CANCELLED:
                return NAN
            total += self._t_constant(<Py_ssize_t> n) - 0.5 * self.log_rate[k, j]
            total += (self.shape + 0.5 * n) * log(left)
        return total

    cdef double _own_shared(self, Py_ssize_t k, const double* x) noexcept nogil:
        cdef Py_ssize_t j
        cdef double n, kappa, r, left, cells = 0.0, seen = 0.0, squares = 0.0, log_f = 0.0, a
        for j in range(self.n_features):
            n = self.count[k, j]
            seen += n
            r = x[j] - self.mean[k, j]
            if r != r:
                continue
            kappa = self.mean_precision + n
            cells += 1.0
            log_f += 0.5 * log((kappa - 1.0) / kappa)
            squares += 0.5 * kappa / (kappa - 1.0) * r * r
        left = 1.0 - squares / self.rate[k, 0]
        if not left > CANCELLED:
            return NAN
        a = self.shape + 0.5 * (seen - cells)
        return (lgamma(a + 0.5 * cells) - lgamma(a) + log_f - 0.5 * cells * LOG_2_PI
                - 0.5 * cells * self.log_rate[k, 0] + a * log(left))

    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0, seen = 0.0, n
        for j in range(self.n_features):
            n = self.count[k, j]
            seen += n
            total += self._m_constant(<Py_ssize_t> n)
            if not self.shared:
                total += self.shape * log(self.scale * self.base[j])
                total -= (self.shape + 0.5 * n) * self.log_rate[k, j]
        if self.shared:
            total += lgamma(self.shape + 0.5 * seen) - lgamma(self.shape)
            total += self.shape * log(self.scale * self.base[0])
            total -= (self.shape + 0.5 * seen) * self.log_rate[k, 0]
        return total

    # -- missing cells ------------------------------------------------------------------------

    cdef void draw_missing(self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng) noexcept nogil:
        """Nothing to draw: missing cells are integrated out."""
        self._see_missing(k, i, False)

    cdef void missing_of_member(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        self._see_missing(k, i, True)

    cdef void _see_missing(self, Py_ssize_t k, Py_ssize_t i, bint is_member) noexcept nogil:
        """t around the slot's means; a shared rate learns from the row's observed cells."""
        cdef Py_ssize_t t, j
        cdef double kappa, r, more_shape = 0.0, more_rate = 0.0, shape, rate
        if self.shared and not is_member:
            for j in range(self.n_features):
                r = self.X[i, j] - self.mean[k, j]
                if r == r:
                    kappa = self.mean_precision + self.count[k, j]
                    more_shape += 0.5
                    more_rate += 0.5 * kappa / (kappa + 1.0) * r * r
        for t in range(self.missing_start[i], self.missing_start[i + 1]):
            j = self.missing_feature[t]
            kappa = self.mean_precision + self.count[k, j]
            shape = self.shape + 0.5 * self.cells(k, j) + more_shape
            rate = self.rate[k, 0 if self.shared else j] + more_rate
            self.missing_mean[t] = self.mean[k, j]
            self.missing_variance[t] = (
                (kappa + 1.0) / kappa * rate / (shape - 1.0) if shape > 1.0 else INFINITY
            )

    # -- prior scale --------------------------------------------------------------------------

    cdef int scale_log_weights(
        self, Py_ssize_t n_blocks, const double* grid, Py_ssize_t n_grid, double* out
    ) noexcept nogil:
        """sum over blocks and rates of a0 log b0(s) - (a0 + n / 2) log b(s): O(K d)."""
        cdef Py_ssize_t k, j, g
        cdef double n, left
        for g in range(n_grid):
            out[g] += self.shape * n_blocks * self.n_rates * log(grid[g])
        for k in range(n_blocks):
            for j in range(self.n_rates):
                n = self.cells(k, j)
                left = 0.5 * self.total_gain(k, j, self.mean_precision)
                for g in range(n_grid):
                    out[g] -= (self.shape + 0.5 * n) * log(grid[g] * self.base[j] + left)
        return 0

    cdef int set_scale(self, Py_ssize_t n_slots, double scale) noexcept nogil:
        self.scale = scale
        self.derive(n_slots)
        return 0

    # -- simulation ---------------------------------------------------------------------------

    cdef int redraw_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n, bitgen_t* rng
    ) noexcept nogil:
        cdef Py_ssize_t j, i
        cdef double variance = 0.0, location
        for j in range(self.n_features):
            if j == 0 or not self.shared:
                variance = self.rate[k, j] / draws.gamma(
                    rng, self.shape + 0.5 * self.cells(k, j)
                )
            location = self.mean[k, j] + draws.normal(rng) * sqrt(
                variance / (self.mean_precision + self.count[k, j])
            )
            for i in range(n):
                if self.X[row[i], j] == self.X[row[i], j]:
                    self.X[row[i], j] = location + sqrt(variance) * draws.normal(rng)
        return 0

    # -- all rows at once, given parameters ---------------------------------------------------

    cdef int reserve_parameters(self, Py_ssize_t n_blocks) except -1 nogil:
        return self.parameters.reserve(n_blocks)

    cdef void draw_parameters(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil:
        """log sigma2 = log b - log Gamma(a), mu = m + sigma z / sqrt(kappa): O(d)."""
        cdef Py_ssize_t j
        cdef double log_variance = 0.0
        for j in range(self.n_features):
            if j == 0 or not self.shared:
                log_variance = self.log_rate[k, j] - draws.log_gamma(
                    rng, self.shape + 0.5 * self.cells(k, j)
                )
            self.parameters.put(
                k, j, self.mean[k, j], log_variance,
                draws.normal(rng) / sqrt(self.mean_precision + self.count[k, j]),
            )

    cdef Py_ssize_t work_size(self, Py_ssize_t n_rows, Py_ssize_t n_blocks) noexcept nogil:
        return self.parameters.work_size()

    cdef void log_likelihoods(
        self, const Py_ssize_t* row, Py_ssize_t n_rows, Py_ssize_t n_blocks, double* out,
        double* work,
    ) noexcept nogil:
        self.parameters.log_likelihoods(self, row, n_rows, n_blocks, out, work)

    cdef void draw_missing_given_parameters(
        self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng, double* work
    ) noexcept nogil:
        """Nothing to draw: missing cells have mean mu and variance sigma2."""
        self.parameters.see_missing(self, k, i)

    cdef Py_ssize_t sums_size(self) noexcept nogil:
        return 3 * self.n_features

    cdef void sum_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n_rows, double* sums, double* work
    ) noexcept nogil:
        """Per feature: observed cells, sum and squares about the slot's mean."""
        cdef Py_ssize_t d = self.n_features, t, j
        cdef double r, seen
        for t in range(n_rows):
            for j in range(d):
                r = self.X[row[t], j] - self.mean[k, j]
                seen = r == r
                r = r if r == r else 0.0
                sums[j] += seen
                sums[d + j] += r
                sums[2 * d + j] += r * r

    cdef int set_from_sums(
        self, Py_ssize_t k, Py_ssize_t n_rows, const double* sums
    ) noexcept nogil:
        """Fails where the rows lie so far from the slot's old mean that digits were lost."""
        cdef Py_ssize_t d = self.n_features, j
        cdef double n, moved, rate
        for j in range(d):
            n = sums[j]
            moved = sums[d + j] / n if n > 0.0 else 0.0
            self.count[k, j] = n
            self.row_mean[k, j] = self.mean[k, j] + moved if n > 0.0 else 0.0
            self.squares[k, j] = max(sums[2 * d + j] - n * moved * moved, 0.0)
        self.n_members[k] = n_rows
        self._derive(k)
        for j in range(d):
            rate = self.rate[k, 0 if self.shared else j]
            if 0.5 * SPOILED * sums[d + j] * sums[d + j] > sums[j] * rate:
                return 1
        return 0
