"""Draws from the parts of normal and gamma laws above a bound."""

from libc.math cimport log, sqrt

from skbnp.numerics.rng cimport draw_gamma, normal, uniform


cdef double normal_above(bitgen_t* rng, double bound) noexcept nogil:
    """A standard normal number above a bound: far out by Robert (1995)'s exponential proposal."""
    cdef double x, rate
    if bound < 0.4:
        while True:
            x = normal(rng)
            if x > bound:
                return x
    rate = 0.5 * (bound + sqrt(bound * bound + 4.0))
    while True:
        x = bound - log(uniform(rng)) / rate
        if log(uniform(rng)) < -0.5 * (x - rate) * (x - rate):
            return x


cdef double gamma_above(bitgen_t* rng, double shape, double rate, double low) noexcept nogil:
    """A draw from Gamma(shape, rate) above ``low``, for shape >= 1.

    Beyond the mean an exponential law with the slope that the density has at the bound lies above
    it (Dagpunar 1978).
    """
    cdef double start = rate * low, slope, x
    if start <= shape:
        while True:
            x = draw_gamma(rng, shape, rate)
            if x > low:
                return x
    slope = 1.0 - (shape - 1.0) / start
    while True:
        x = -log(uniform(rng)) / slope
        if log(uniform(rng)) < (shape - 1.0) * log(1.0 + x / start) - (1.0 - slope) * x:
            return (start + x) / rate
