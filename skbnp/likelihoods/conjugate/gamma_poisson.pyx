"""Blocks of counts under gamma priors on their Poisson means; missing cells are integrated out.

mean_j ~ Gamma(shape a_j, rate b_j), x_j | mean_j ~ Poisson(mean_j), each column alone. With n
observed cells of sum S, the mean is Gamma(a + S, b + n) and the predictive probability negative
binomial: p(x) = [r]_x / x! (1 + 1 / q)^-r (1 + q)^-x with r = a + S, q = b + n and
[r]_x = r (r + 1) ... (r + x - 1).
"""

from libc.math cimport exp, log, log10, log1p, rint
from libc.string cimport memcpy, memset
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log_rising


cdef enum:
    FEW = 32                    # rising factorials of at most so many factors are multiplied out

cdef double DIGITS = 300.0      # a product is logged before its |log10| may pass this

LARGEST_SUM = 2.0**53           # sums of counts are exact up to here
PRIOR_BOUNDS = (1e-100, 1e100)


cdef inline void add_multiple(double a, const double* x, Py_ssize_t n, double* out) noexcept nogil:
    """out += a x; for the few blocks of a mixture quicker than a call of BLAS."""
    cdef Py_ssize_t k
    for k in range(n):
        out[k] += a * x[k]


cdef inline void multiply_rising(
    const double* r, Py_ssize_t x, Py_ssize_t n, double* product
) noexcept nogil:
    """product *= [r]_x, up to four factors at a time."""
    cdef Py_ssize_t k
    cdef double m = 0.0
    while x >= 4:
        for k in range(n):
            product[k] *= ((r[k] + m) * (r[k] + (m + 1.0))) * (
                (r[k] + (m + 2.0)) * (r[k] + (m + 3.0))
            )
        m += 4.0
        x -= 4
    if x >= 2:
        for k in range(n):
            product[k] *= (r[k] + m) * (r[k] + (m + 1.0))
        m += 2.0
        x -= 2
    if x == 1:
        for k in range(n):
            product[k] *= r[k] + m


cdef inline void add_log_rising(
    const double* r, double x, Py_ssize_t n, double* out
) noexcept nogil:
    """out += log [r]_x"""
    cdef Py_ssize_t k
    for k in range(n):
        out[k] += log_rising(r[k], x)


cdef inline void take_log(double* product, Py_ssize_t n, double* out) noexcept nogil:
    """out += log(product), product <- 1"""
    cdef Py_ssize_t k
    for k in range(n):
        out[k] += log(product[k])
        product[k] = 1.0


cdef class GammaPoisson(ConjugateFamily):
    """Slots of Poisson blocks; sums are exact in float64 up to 2^53.

    Adding and removing a row costs two logarithms a column. The predictive probability of a row
    under K blocks costs K logarithms and a multiplication for each event counted; a cell of 0
    costs nothing, one above 32 two logarithms or more. Terms as large as x log x cancel in it:
    counts of 1e6 leave nine digits behind the point.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Counts 0, 1, 2, ..., NaN where missing; the sum of a column at most 2^53.
    shape, rate : array-like of shape (n_features,)
        The gamma prior of each column's mean, between 1e-100 and 1e100.
    """

    SLOTS = ("n_members", "total", "cells", "factorials")
    _for_prediction = ("n_members", "total", "cells")
    _counts_of_cells = "cells"

    def __init__(self, X, shape, rate):
        super().__init__(X)
        d = self.n_features
        _check_counts(np.asarray(self.X))
        self.shape = _checked("shape", shape, d)
        self.rate = _checked("rate", rate, d)
        self._find_factorials()
        self._find_digits()
        self.n_members = np.zeros(0, dtype=np.intp)
        self.total = np.zeros((0, d))
        self.cells = np.zeros((0, d))
        self.factorials = np.zeros(0)
        self.mean = np.zeros((d, 0))
        self.log_mean = np.zeros((d, 0))
        self.mean_total = np.zeros(0)

    def _find_factorials(self):
        """Make ``log_factorial`` that of X, and the grain when first called.

        Rounded to multiples of a power of two, the rounding of their sum over all rows, so that
        every sum of them is exact and a row that comes and goes leaves no trace.
        """
        cdef Py_ssize_t i
        self.log_factorial = np.zeros(self.n_samples)
        for i in range(self.n_samples):
            self.log_factorial[i] = self._log_factorial(i)
        if self.grain == 0.0:
            # Three of the 53 digits spare, for redrawn counts may be larger.
            self.grain = 2.0 ** (np.ceil(np.log2(np.sum(self.log_factorial) + 1.0)) - 50.0)
            self._find_factorials()

    def _find_digits(self):
        """Make ``column_sum`` that of X and the bounds that follow from it."""
        cdef Py_ssize_t j
        self.column_sum = np.nansum(self.X, axis=0)
        self.digits_at_least = np.maximum(-np.log10(self.shape), 0.0)
        self.digits_per_event = np.zeros(self.n_features)
        for j in range(self.n_features):
            self._bound_digits(j)

    cdef void _bound_digits(self, Py_ssize_t j) noexcept nogil:
        """A factor of [r]_x is below a + column sum + FEW, and all but the first are above 1."""
        self.digits_per_event[j] = max(log10(self.shape[j] + self.column_sum[j] + FEW), 0.0)

    cdef double _log_factorial(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t j
        cdef double x, total = 0.0
        for j in range(self.n_features):
            x = self.X[i, j]
            if x > 1.0:
                total += lgamma(x + 1.0)
        return total if self.grain == 0.0 else self.grain * rint(total / self.grain)

    def _grow(self, n_slots):
        cdef Py_ssize_t k
        n_old = self.n_slots
        self.posterior_shape = np.zeros((self.n_features, n_slots))
        self.log_none = np.zeros((self.n_features, n_slots))
        self.log_event = np.zeros((self.n_features, n_slots))
        self.log_all_none = np.zeros(n_slots)
        self.product = np.zeros(n_slots)
        super()._grow(n_slots)
        for k in range(n_old):
            self._settle(k)

    def set_state(self, state, Py_ssize_t n_slots):
        cdef Py_ssize_t k
        super().set_state(state, n_slots)
        for k in range(n_slots):
            self._settle(k)

    # -- statistics ---------------------------------------------------------------------------

    cdef void _settle(self, Py_ssize_t k) noexcept nogil:
        """Bring what depends on the sums of slot k up to date."""
        cdef Py_ssize_t j
        for j in range(self.n_features):
            self._settle_column(k, j)
        self._settle_none(k)

    cdef void _settle_column(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil:
        cdef double r = self.shape[j] + self.total[k, j], q = self.rate[j] + self.cells[k, j]
        self.posterior_shape[j, k] = r
        self.log_none[j, k] = -r * log1p(1.0 / q)
        self.log_event[j, k] = log(1.0 + q)

    cdef void _settle_none(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t j
        self.log_all_none[k] = 0.0
        for j in range(self.n_features):
            self.log_all_none[k] += self.log_none[j, k]

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        self.n_members[k] = 0
        memset(&self.total[k, 0], 0, self.n_features * sizeof(double))
        memset(&self.cells[k, 0], 0, self.n_features * sizeof(double))
        self.factorials[k] = 0.0
        self._settle(k)

    cdef void copy(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
        cdef Py_ssize_t j, d = self.n_features
        self.n_members[target] = self.n_members[source]
        memcpy(&self.total[target, 0], &self.total[source, 0], d * sizeof(double))
        memcpy(&self.cells[target, 0], &self.cells[source, 0], d * sizeof(double))
        self.factorials[target] = self.factorials[source]
        for j in range(d):
            self.posterior_shape[j, target] = self.posterior_shape[j, source]
            self.log_none[j, target] = self.log_none[j, source]
            self.log_event[j, target] = self.log_event[j, source]
        self.log_all_none[target] = self.log_all_none[source]

    cdef void _count(self, Py_ssize_t k, Py_ssize_t i, double change) noexcept nogil:
        """Add ``change`` times row i to the sums."""
        cdef Py_ssize_t j
        cdef double x
        for j in range(self.n_features):
            x = self.X[i, j]
            if x != x:
                continue
            self.total[k, j] += change * x
            self.cells[k, j] += change
            self._settle_column(k, j)
        self.factorials[k] += change * self.log_factorial[i]
        self._settle_none(k)

    cdef void add(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        self._count(k, i, 1.0)
        self.n_members[k] += 1

    cdef int remove(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        self._count(k, i, -1.0)
        self.n_members[k] -= 1
        return 0

    cdef int merge(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t target) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.n_features):
            self.total[target, j] = self.total[a, j] + self.total[b, j]
            self.cells[target, j] = self.cells[a, j] + self.cells[b, j]
        self.factorials[target] = self.factorials[a] + self.factorials[b]
        self.n_members[target] = self.n_members[a] + self.n_members[b]
        self._settle(target)
        return 0

    # -- probabilities ------------------------------------------------------------------------

    cdef double log_predictive(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        cdef double out
        self._log_predictives(k, 1, i, &out)
        return out

    cdef void log_predictive_all(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        self._log_predictives(0, n, i, out)

    cdef void _log_predictives(
        self, Py_ssize_t first, Py_ssize_t n, Py_ssize_t i, double* out
    ) noexcept nogil:
        """Slots from ``first`` on. All columns start with p(0), the events counted come on top.

        The factors of [r]_x wait in ``product``, so that one logarithm a block is enough.
        """
        cdef Py_ssize_t j, k
        cdef double x, step, digits = 0.0
        cdef const double* none = &self.log_all_none[first]
        cdef double* product = &self.product[0]
        for k in range(n):
            out[k] = none[k] - self.log_factorial[i]
            product[k] = 1.0
        for j in range(self.n_features):
            x = self.X[i, j]
            if x != x:
                add_multiple(-1.0, &self.log_none[j, first], n, out)
            if not x > 0.0:
                continue
            add_multiple(-x, &self.log_event[j, first], n, out)
            step = max(x * self.digits_per_event[j], self.digits_at_least[j])
            if x > FEW or step > DIGITS:
                add_log_rising(&self.posterior_shape[j, first], x, n, out)
                continue
            digits += step
            if digits > DIGITS:
                take_log(product, n, out)
                digits = step
            multiply_rising(&self.posterior_shape[j, first], <Py_ssize_t> x, n, product)
        take_log(product, n, out)

    cdef void log_predictive_observed(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        self.log_predictive_all(n, i, out)

    cdef double log_predictive_own(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """From the sums without the row, which are exact."""
        cdef Py_ssize_t j
        cdef double x, r, q, total = -self.log_factorial[i]
        for j in range(self.n_features):
            x = self.X[i, j]
            if x != x:
                continue
            r = self.shape[j] + (self.total[k, j] - x)
            q = self.rate[j] + (self.cells[k, j] - 1.0)
            total -= r * log1p(1.0 / q)
            if x > 0.0:
                total += log_rising(r, x) - x * log(1.0 + q)
        return total

    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil:
        """sum_j log [a]_S + a log b - (a + S) log(b + n), less the log factorials."""
        cdef Py_ssize_t j
        cdef double s, n, total = -self.factorials[k]
        for j in range(self.n_features):
            s, n = self.total[k, j], self.cells[k, j]
            total += log_rising(self.shape[j], s) - s * log(self.rate[j] + n)
            total -= self.shape[j] * log1p(n / self.rate[j])
        return total

    # -- missing cells ------------------------------------------------------------------------

    cdef void draw_missing(self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng) noexcept nogil:
        """Nothing to draw: missing cells are integrated out. They are negative binomial."""
        cdef Py_ssize_t t, j
        cdef double rate
        for t in range(self.missing_start[i], self.missing_start[i + 1]):
            j = self.missing_feature[t]
            rate = self.rate[j] + self.cells[k, j]
            self.missing_mean[t] = self.posterior_shape[j, k] / rate
            self.missing_variance[t] = self.missing_mean[t] * (1.0 + 1.0 / rate)

    # -- simulation ---------------------------------------------------------------------------

    cdef double _draw_log_mean(self, Py_ssize_t k, Py_ssize_t j, bitgen_t* rng) noexcept nogil:
        """log of a Gamma(a + S, b + n) draw, in logs because small shapes underflow."""
        return (draws.log_gamma(rng, self.posterior_shape[j, k])
                - log(self.rate[j] + self.cells[k, j]))

    cdef int redraw_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n, bitgen_t* rng
    ) noexcept nogil:
        cdef Py_ssize_t j, t
        cdef double mean, old
        for j in range(self.n_features):
            mean = exp(self._draw_log_mean(k, j, rng))
            for t in range(n):
                old = self.X[row[t], j]
                if old == old:
                    self.X[row[t], j] = draws.poisson(rng, mean)
                    self.column_sum[j] += self.X[row[t], j] - old
            self._bound_digits(j)
        for t in range(n):
            self.log_factorial[row[t]] = self._log_factorial(row[t])
        return 0

    # -- all rows at once, given parameters ---------------------------------------------------

    cdef int reserve_parameters(self, Py_ssize_t n_blocks) except -1 nogil:
        if n_blocks > self.mean_total.shape[0]:
            with gil:
                room = max(n_blocks, 2 * self.mean_total.shape[0])
                self.mean = np.zeros((self.n_features, room))
                self.log_mean = np.zeros((self.n_features, room))
                self.mean_total = np.zeros(room)
        return 0

    cdef void draw_parameters(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil:
        """mean_j | members ~ Gamma(a + S, b + n)"""
        cdef Py_ssize_t j
        self.mean_total[k] = 0.0
        for j in range(self.n_features):
            self.log_mean[j, k] = self._draw_log_mean(k, j, rng)
            self.mean[j, k] = exp(self.log_mean[j, k])
            self.mean_total[k] += self.mean[j, k]

    cdef void log_likelihoods(
        self, const Py_ssize_t* row, Py_ssize_t n_rows, Py_ssize_t n_blocks, double* out,
        double* work,
    ) noexcept nogil:
        """sum_j x log(mean_j) - mean_j - log x!; all columns start as zeros."""
        cdef Py_ssize_t t, j, k
        cdef double x
        cdef double* here = out
        for t in range(n_rows):
            for k in range(n_blocks):
                here[k] -= self.mean_total[k] + self.log_factorial[row[t]]
            for j in range(self.n_features):
                x = self.X[row[t], j]
                if x > 0.0:
                    add_multiple(x, &self.log_mean[j, 0], n_blocks, here)
                elif x != x:
                    add_multiple(1.0, &self.mean[j, 0], n_blocks, here)
            here += n_blocks

    cdef void draw_missing_given_parameters(
        self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng, double* work
    ) noexcept nogil:
        cdef Py_ssize_t t
        for t in range(self.missing_start[i], self.missing_start[i + 1]):
            self.missing_mean[t] = self.missing_variance[t] = self.mean[self.missing_feature[t], k]

    cdef Py_ssize_t sums_size(self) noexcept nogil:
        return 2 * self.n_features + 1

    cdef void sum_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n_rows, double* sums, double* work
    ) noexcept nogil:
        """Sums and numbers of the observed cells, then the log factorials."""
        cdef Py_ssize_t t, j, d = self.n_features
        cdef double x
        for t in range(n_rows):
            for j in range(d):
                x = self.X[row[t], j]
                if x == x:
                    sums[j] += x
                    sums[d + j] += 1.0
            sums[2 * d] += self.log_factorial[row[t]]

    cdef int set_from_sums(
        self, Py_ssize_t k, Py_ssize_t n_rows, const double* sums
    ) noexcept nogil:
        cdef Py_ssize_t d = self.n_features
        self.n_members[k] = n_rows
        memcpy(&self.total[k, 0], sums, d * sizeof(double))
        memcpy(&self.cells[k, 0], sums + d, d * sizeof(double))
        self.factorials[k] = sums[2 * d]
        self._settle(k)
        return 0


def _check_counts(X):
    wrong = ~(np.isnan(X) | ((X >= 0) & (X == np.floor(X))))
    if wrong.any() or np.isinf(X).any():
        i, j = np.argwhere(wrong | np.isinf(X))[0]
        raise ValueError(
            f"X must hold counts 0, 1, 2, ... or NaN, got {X[i, j]} in row {i}, column {j}"
        )
    sums = np.nansum(X, axis=0)
    if np.any(sums > LARGEST_SUM):
        j = np.argmax(sums)
        raise ValueError(f"counts must sum to at most 2^53, got {sums[j]:g} in column {j} of X")


def _checked(name, values, n_features):
    """A parameter of the prior as an array (n_features,)."""
    values = np.array(values, dtype=np.float64)
    if values.shape != (n_features,):
        raise ValueError(f"{name} must have shape ({n_features},), got {values.shape}")
    low, high = PRIOR_BOUNDS
    if not np.all((values >= low) & (values <= high)):
        raise ValueError(f"{name} must lie between {low:g} and {high:g}, got {values}")
    return values
