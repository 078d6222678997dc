from libc.math cimport log
from numpy.random cimport bitgen_t


cdef struct NormalCells:
    # One logarithm for many variances: of their product, before it leaves the range of doubles.
    double squares, log_variances, product


cdef inline NormalCells no_cells() noexcept nogil:
    cdef NormalCells cells
    cells.squares, cells.log_variances, cells.product = 0.0, 0.0, 1.0
    return cells


cdef inline void add_cell(NormalCells* cells, double error, double variance) noexcept nogil:
    """A cell off its mean by ``error``."""
    cells.squares += error * error / variance
    cells.product *= variance
    if cells.product < 1e-150 or cells.product > 1e150:
        cells.log_variances += log(cells.product)
        cells.product = 1.0


cdef inline double log_density_of(const NormalCells* cells) noexcept nogil:
    """Log density of the cells + n log(2 pi) / 2."""
    return -0.5 * (cells.squares + cells.log_variances + log(cells.product))


cdef double log_density(
    Py_ssize_t n, const double* x, const double* base, const double* y, double w, double drift,
    double floor,
) noexcept nogil
cdef double log_t(double x, double df, double scale2) noexcept nogil
cdef double draw_t(bitgen_t* rng, double df, double scale2) noexcept nogil
cdef double log_add(double a, double b) noexcept nogil
cdef bint accepts(bitgen_t* rng, double log_ratio) noexcept nogil
cdef void put_in_order(bitgen_t* rng, Py_ssize_t* item, Py_ssize_t n) noexcept nogil
