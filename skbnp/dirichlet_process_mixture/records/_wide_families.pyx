"""Families of some rows whose slots hold blocks of many more.

The families of a table look up what the number of rows fixes of their densities in tables as long
as the table. Here blocks have rows elsewhere too, any number of them, so these are hashed by it.
"""

from libc.math cimport NAN, log, log1p

from skbnp.likelihoods.conjugate.normal_inverse_gamma cimport NormalInverseGamma
from skbnp.likelihoods.conjugate.normal_inverse_wishart cimport NormalInverseWishart
from skbnp.numerics cimport linalg
from skbnp.numerics.special cimport lgamma, log_multigamma_ratio


cdef double LOG_PI = 1.1447298858494002
cdef double LOG_2_PI = 1.8378770664093453
cdef double CANCELLED = 1e-8    # |Psi without| / |Psi with| under which a difference is not used


cdef inline Py_ssize_t _place(
    Constants* known, Py_ssize_t n, double mean_precision, double shape
) noexcept nogil:
    """Where the numbers for n rows are, or go; all are forgotten under another prior."""
    cdef Py_ssize_t place
    if known.mean_precision != mean_precision or known.shape != shape:
        known.mean_precision, known.shape = mean_precision, shape
        for place in range(N_PLACES):
            known.t_rows[place] = known.m_rows[place] = -1
    return n & (N_PLACES - 1)


cdef class WideNormalInverseWishart(NormalInverseWishart):
    """Full covariance."""

    cdef double t_constant(self, Py_ssize_t n) noexcept nogil:
        """The part of log t that n fixes."""
        cdef Py_ssize_t d = self.n_features
        cdef Py_ssize_t place = _place(&self.known, n, self.mean_precision, self.df)
        cdef double kappa = self.mean_precision + n, nu = self.df + n
        if self.known.t_rows[place] != n:
            self.known.t_rows[place] = n
            self.known.t[place] = (
                lgamma(0.5 * (nu + 1.0)) - lgamma(0.5 * (nu + 1.0 - d))
                + 0.5 * d * (log(kappa / (kappa + 1.0)) - LOG_PI)
            )
        return self.known.t[place]

    cdef double m_constant(self, Py_ssize_t n) noexcept nogil:
        """The part of log m that n fixes."""
        cdef Py_ssize_t d = self.n_features
        cdef Py_ssize_t place = _place(&self.known, n, self.mean_precision, self.df)
        if self.known.m_rows[place] != n:
            self.known.m_rows[place] = n
            self.known.m[place] = (
                log_multigamma_ratio(0.5 * self.df, 0.5 * n, d) - 0.5 * d * n * LOG_PI
                + 0.5 * d * log(self.mean_precision / (self.mean_precision + n))
            )
        return self.known.m[place]

    cdef double _log_t(self, Py_ssize_t k, double distance) noexcept nogil:
        cdef Py_ssize_t n = self.n_members[k]
        cdef double kappa = self.mean_precision + n
        return (self.t_constant(n) - 0.5 * self.log_det[k]
                - 0.5 * (self.df + n + 1.0) * log1p(kappa / (kappa + 1.0) * distance))

    cdef void log_predictive_all(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        cdef Py_ssize_t k
        self.lanes.refresh(n, &self.mean[0, 0], &self.factor[0, 0, 0])
        self.lanes.measure(n, i, &self.X[i, 0])
        for k in range(n):
            out[k] = self._log_t(k, self.lanes.distance[k])

    cdef double log_predictive_own(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """By the determinant lemma, as in the base."""
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
        return (self.t_constant(n) - 0.5 * (self.log_det[k] + log_left)
                + 0.5 * (self.df + n + 1.0) * log_left)

    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t n = self.n_members[k]
        cdef double prior_log_det = self.n_features * log(self.scale) + self.base_log_det
        if n == 0:
            return 0.0
        return (self.m_constant(n) + 0.5 * self.df * prior_log_det
                - 0.5 * (self.df + n) * self.log_det[k])


cdef class WideNormalInverseGamma(NormalInverseGamma):
    """Diagonal and spherical covariance."""

    cdef double t_constant(self, Py_ssize_t n) noexcept nogil:
        """The part of log t of one feature that n fixes, where it has a variance of its own."""
        cdef Py_ssize_t place = _place(&self.known, n, self.mean_precision, self.shape)
        cdef double kappa = self.mean_precision + n, a = self.shape + 0.5 * n
        if self.known.t_rows[place] != n:
            self.known.t_rows[place] = n
            self.known.t[place] = (
                lgamma(a + 0.5) - lgamma(a) + 0.5 * (log(kappa / (kappa + 1.0)) - LOG_2_PI)
            )
        return self.known.t[place]

    cdef double m_constant(self, Py_ssize_t n) noexcept nogil:
        """The part of log m of one feature that n fixes."""
        cdef Py_ssize_t place = _place(&self.known, n, self.mean_precision, self.shape)
        cdef double value
        if self.known.m_rows[place] != n:
            value = 0.5 * log(self.mean_precision / (self.mean_precision + n))
            value -= 0.5 * n * LOG_2_PI
            if not self.shared:
                value += lgamma(self.shape + 0.5 * n) - lgamma(self.shape)
            self.known.m_rows[place] = n
            self.known.m[place] = value
        return self.known.m[place]

    cdef double log_predictive(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        if self.shared:
            return self._log_t_of_one(k, &self.X[i, 0])
        return self._log_t_of_each(k, &self.X[i, 0])

    cdef double _log_t_of_each(self, Py_ssize_t k, const double* x) noexcept nogil:
        """Diagonal, over the observed features of the row."""
        cdef Py_ssize_t j
        cdef double n, kappa, r, total = 0.0
        for j in range(self.n_features):
            r = x[j] - self.mean[k, j]
            if r != r:
                continue
            n = self.count[k, j]
            kappa = self.mean_precision + n
            total += self.t_constant(<Py_ssize_t> n) - 0.5 * self.log_rate[k, j]
            total -= (self.shape + 0.5 * n + 0.5) * log1p(
                0.5 * kappa / (kappa + 1.0) * r * r / self.rate[k, j]
            )
        return total

    cdef double _log_t_of_one(self, Py_ssize_t k, const double* x) noexcept nogil:
        """Spherical, over the observed features of the row."""
        cdef Py_ssize_t j
        cdef double n, kappa, r, cells = 0.0, seen = 0.0, squares = 0.0, log_f = 0.0, a
        for j in range(self.n_features):
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
        """The rates without the row by subtraction, as in the base."""
        cdef Py_ssize_t j
        cdef double n, kappa, r, left, total = 0.0
        if self.shared:
            return self._own_shared(k, &self.X[i, 0])
        for j in range(self.n_features):
            r = self.X[i, j] - self.mean[k, j]
            if r != r:
                continue
            n = self.count[k, j] - 1.0
            kappa = self.mean_precision + n + 1.0
            left = 1.0 - 0.5 * kappa / (kappa - 1.0) * r * r / self.rate[k, j]
            if not left > CANCELLED:
                return NAN
            total += self.t_constant(<Py_ssize_t> n) - 0.5 * self.log_rate[k, j]
            total += (self.shape + 0.5 * n) * log(left)
        return total

    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0, seen = 0.0, n
        for j in range(self.n_features):
            n = self.count[k, j]
            seen += n
            total += self.m_constant(<Py_ssize_t> n)
            if not self.shared:
                total += self.shape * log(self.scale * self.base[j])
                total -= (self.shape + 0.5 * n) * self.log_rate[k, j]
        if self.shared:
            total += lgamma(self.shape + 0.5 * seen) - lgamma(self.shape)
            total += self.shape * log(self.scale * self.base[0])
            total -= (self.shape + 0.5 * seen) * self.log_rate[k, 0]
        return total
