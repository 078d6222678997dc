"""Densities of cells whose amplitude drives mean and variance, and small draws."""

from libc.math cimport log, log1p, sqrt
from numpy.random cimport bitgen_t

from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport PI, lgamma, log1p_exp


cdef double log_density(
    Py_ssize_t n, const double* x, const double* base, const double* y, double w, double drift,
    double floor,
) noexcept nogil:
    """sum log N(x; drift a, a^2 + floor) + n log(2 pi) / 2, a = base + w y."""
    cdef NormalCells cells = no_cells()
    cdef double a
    cdef Py_ssize_t t
    for t in range(n):
        a = base[t] + w * y[t]
        add_cell(&cells, x[t] - drift * a, a * a + floor)
    return log_density_of(&cells)


cdef double log_t(double x, double df, double scale2) noexcept nogil:
    """log density of Student's t of squared scale ``scale2``."""
    return (
        lgamma(0.5 * (df + 1.0)) - lgamma(0.5 * df) - 0.5 * log(df * PI * scale2)
        - 0.5 * (df + 1.0) * log1p(x * x / (df * scale2))
    )


cdef double draw_t(bitgen_t* rng, double df, double scale2) noexcept nogil:
    return draws.normal(rng) * sqrt(0.5 * df * scale2 / draws.draw_gamma(rng, 0.5 * df, 1.0))


cdef double log_add(double a, double b) noexcept nogil:
    """log(e^a + e^b)."""
    return a + log1p_exp(b - a) if a >= b else b + log1p_exp(a - b)


cdef bint accepts(bitgen_t* rng, double log_ratio) noexcept nogil:
    """Metropolis: never for a ratio that is no number."""
    return log(draws.uniform(rng)) < log_ratio


cdef void put_in_order(bitgen_t* rng, Py_ssize_t* item, Py_ssize_t n) noexcept nogil:
    """A random order: that of storage tells which factor was born last."""
    cdef Py_ssize_t i
    for i in range(n):
        item[i] = i
    draws.shuffle(rng, item, n)
