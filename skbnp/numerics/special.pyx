"""Special functions for log densities, without the GIL."""

from libc.math cimport INFINITY, exp, log, log1p
from scipy.special.cython_special cimport gammainc, gammaln


cdef double lgamma(double x) noexcept nogil:
    """log |Gamma(x)|. SciPy's: libm's writes the global ``signgam`` and so is not thread-safe."""
    return gammaln(x)


cdef double log_gamma_cdf(double shape, double rate, double x) noexcept nogil:
    """log P(g < x) for g ~ Gamma(shape, rate)."""
    cdef double share = gammainc(shape, rate * x)
    if share > 1e-280:
        return log(share)
    # The first term of the series at 0, where the share itself underflows.
    return shape * log(rate * x) - rate * x - gammaln(shape + 1.0)


cdef double log_gamma_density(double x, double shape, double rate) noexcept nogil:
    """Log density of Gamma(shape, rate) at x."""
    return shape * log(rate) - lgamma(shape) + (shape - 1.0) * log(x) - rate * x


cdef double log_sum_exp(const double* x, Py_ssize_t n) noexcept nogil:
    """log sum exp(x[k]); -inf for an empty sum, NaN and +inf are handed on."""
    cdef double highest = -INFINITY, total = 0.0
    cdef Py_ssize_t k
    for k in range(n):
        if x[k] != x[k]:
            return x[k]
        highest = max(highest, x[k])
    if highest == -INFINITY or highest == INFINITY:
        return highest
    for k in range(n):
        total += exp(x[k] - highest)
    return highest + log(total)


cdef double log1p_exp(double x) noexcept nogil:
    """log(1 + e^x) without overflow (Maechler 2012, "Accurately computing log(1 - exp(-|a|))")."""
    if x > 33.3:
        return x
    if x > 18.0:
        return x + exp(-x)
    return log1p(exp(x))


cdef double log_rising(double x, double n) noexcept nogil:
    """log Gamma(x + n) / Gamma(x) for x > 0 and whole n >= 0, to full precision for any x.

    The difference of two lgamma would lose the digits that a large x takes up, so there the
    difference of their Stirling series is taken instead, term by term.
    """
    cdef double product = 1.0
    cdef Py_ssize_t i
    if n < 16.0 and x < 1e15:
        for i in range(<Py_ssize_t> n):
            product *= x + i
        return log(product)
    if x < 100.0:
        return gammaln(x + n) - gammaln(x)
    return (
        (x - 0.5) * log1p(n / x) + n * (log(x + n) - 1.0)
        + stirling_remainder(x + n) - stirling_remainder(x)
    )


cdef inline double stirling_remainder(double x) noexcept nogil:
    """lgamma(x) - [(x - 1/2) log x - x + log(2 pi)/2], to 1e-17 for x >= 100."""
    cdef double square = 1.0 / (x * x)
    return (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0)) / x


cdef double log_multigamma(double x, Py_ssize_t d) noexcept nogil:
    """log Gamma_d(x), the multivariate gamma function, without its power of pi.

    Two at a time: Gamma(y) Gamma(y - 1/2) = 2^(2 - 2 y) sqrt(pi) Gamma(2 y - 1).
    """
    cdef Py_ssize_t _
    cdef double total = 0.0, y = x
    for _ in range(d // 2):
        total += gammaln(2.0 * y - 1.0) + (2.0 - 2.0 * y) * LOG_2 + 0.5 * LOG_PI
        y -= 1.0
    return total + gammaln(y) if d % 2 == 1 else total


cdef double log_multigamma_ratio(double x, double step, Py_ssize_t d) noexcept nogil:
    """log Gamma_d(x + step) / Gamma_d(x): term by term, so that a large x does not drown it."""
    cdef Py_ssize_t _
    cdef double total = 0.0, y = x
    for _ in range(d // 2):
        total += gammaln(2.0 * (y + step) - 1.0) - gammaln(2.0 * y - 1.0) - 2.0 * step * LOG_2
        y -= 1.0
    return total + gammaln(y + step) - gammaln(y) if d % 2 == 1 else total
