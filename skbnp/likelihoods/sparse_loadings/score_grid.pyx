"""Proposals of a factor's scores on a grid: mathematics/deep_scale_model, section 6."""

from libc.math cimport INFINITY, exp, fabs, isnan, log, sqrt
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.sparse_loadings.cells cimport (
    NormalCells, add_cell, log_density_of, no_cells,
)
from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI

# Nodes of a proposal of scores span so many standard deviations; so much of it is the prior.
cdef double GRID_END = 5.0
cdef double GRID_PRIOR = 0.02


cdef void add_cells(
    Py_ssize_t n_nodes, const double* node, double base, double w, double x, double drift,
    double floor, double* quadratic, double* product,
) noexcept nogil:
    """What a cell adds to -2 log of its density at every node; variances are multiplied."""
    cdef double a, e, variance
    cdef Py_ssize_t g
    for g in range(n_nodes):
        a = base + w * node[g]
        e = x - drift * a
        variance = a * a + floor
        quadratic[g] += e * e / variance
        product[g] *= variance


cdef void take_logs(Py_ssize_t n_nodes, double* quadratic, double* product) noexcept nogil:
    """Put the products of variances into the sums before they leave the range of doubles."""
    cdef Py_ssize_t g
    for g in range(n_nodes):
        quadratic[g] += log(product[g])
        product[g] = 1.0


cdef double put_heights(
    Py_ssize_t n_nodes, const double* quadratic, const double* product, double* height,
) noexcept nogil:
    """Densities at the nodes, up to a factor, and the area below them in steps of a node.

    Products within [1e-100, 1e100] cannot raise what is e^-500 of the least quadratic form.
    """
    cdef double least = INFINITY, area = 0.0
    cdef Py_ssize_t g
    for g in range(n_nodes):
        least = min(least, quadratic[g])
    for g in range(n_nodes):
        height[g] = 0.0
        if quadratic[g] - least < 1000.0:
            height[g] = exp(-0.5 * (quadratic[g] - least)) / sqrt(product[g])
        area += height[g]
    return area - 0.5 * (height[0] + height[n_nodes - 1])


cdef inline double place_between(double low, double high, double share) noexcept nogil:
    """Where, from 0 to 1, the area below a line from ``low`` to ``high`` has this share (D6.2)."""
    cdef double root = sqrt(low * low + min(share, 1.0) * (high * high - low * low))
    cdef double place = (root - low) / (high - low) if high != low else share
    return place if 0.0 <= place <= 1.0 else 0.5


cdef inline double draw_score(
    bitgen_t* rng, Py_ssize_t n_nodes, const double* node, const double* height, double area,
) noexcept nogil:
    """A draw from the densities at the nodes, mixed with the prior, in standard deviations."""
    cdef double target, part = 0.0
    cdef Py_ssize_t g = 0
    if draws.uniform(rng) < GRID_PRIOR:
        return draws.normal(rng)
    target = draws.uniform(rng) * area
    for g in range(n_nodes - 1):
        part = 0.5 * (height[g] + height[g + 1])
        if target <= part or g == n_nodes - 2:
            break
        target -= part
    return node[g] + step_of(n_nodes) * place_between(height[g], height[g + 1], target / part)


cdef inline double density_at(
    double z, Py_ssize_t n_nodes, const double* node, const double* height, double area,
) noexcept nogil:
    """The density of that draw at z standard deviations."""
    cdef double step = step_of(n_nodes), offset, density = 0.0
    cdef Py_ssize_t g
    if fabs(z) < GRID_END:
        g = min(<Py_ssize_t> ((z + GRID_END) / step), n_nodes - 2)
        offset = (z - node[g]) / step
        density = height[g] + offset * (height[g + 1] - height[g])
        density /= area * step
    return (1.0 - GRID_PRIOR) * density + GRID_PRIOR * exp(-0.5 * (z * z + LOG_2_PI))


cdef inline double step_of(Py_ssize_t n_nodes) noexcept nogil:
    """From a node to the next."""
    return 2.0 * GRID_END / (n_nodes - 1)


cdef class ScoreGrid:
    """Rows that a factor has, gathered side by side, and the densities of its scores."""

    def __init__(self, ScaleLayer layer, Py_ssize_t n_nodes):
        self.layer, self.n_nodes = layer, n_nodes
        self.node = np.linspace(-GRID_END, GRID_END, n_nodes)
        self.height, self.quadratic, self.product = (np.zeros(n_nodes) for _ in range(3))
        self.base, self.row_weight = np.zeros((0, max(1, layer.n_samples))), np.zeros(0)
        self.row, self.part = np.zeros((2, 0), dtype=np.intp)

    cdef int make_room(self) except -1 nogil:
        """Room for all rows."""
        cdef Py_ssize_t rows = self.layer.room_below
        if self.row.shape[0] < rows:
            with gil:
                self.base = np.zeros((rows, max(1, self.layer.n_samples)))
                self.row_weight = np.zeros(rows)
                self.row, self.part = np.zeros((2, rows), dtype=np.intp)
        return 0

    cdef Py_ssize_t gather_rows(self, Py_ssize_t k, Py_ssize_t start, int part) noexcept nogil:
        """Factor k's rows of a part, their loadings and A without it, from ``start``; the end."""
        cdef Py_ssize_t n, t, i = start
        for n in range(self.layer.n_below):
            if self.layer.W[n, k] != 0.0 and self.part[n] == part:
                self.row[i], self.row_weight[i] = n, self.layer.W[n, k]
                for t in range(self.layer.n_samples):
                    self.base[i, t] = self.layer.A[n, t] - self.layer.W[n, k] * self.layer.Y[k, t]
                i += 1
        return i

    cdef double evidence(
        self, bitgen_t* rng, Py_ssize_t start, Py_ssize_t end, Py_ssize_t k, double* y, bint draw
    ) noexcept nogil:
        """log p(y) + log p(rows | y) - log q(y) of scores of a factor of gathered rows.

        The rows are those at places ``start`` to ``end``, the variance of y is factor k's. q is,
        for each sample, a density linear between nodes, proportional there to p(y) p(rows | y),
        mixed with p(y); y is drawn from it, or given. Constants of the rows' densities are left
        out.
        """
        cdef double total = 0.0, sd, area, z
        cdef const double* node = &self.node[0]
        cdef const double* height = &self.height[0]
        cdef Py_ssize_t t, G = self.n_nodes
        for t in range(self.layer.n_samples):
            sd = sqrt(self.layer.score_variance(k, t))
            area = fill_grid(self, start, end, t, sd)
            if draw:
                y[t] = sd * draw_score(rng, G, node, height, area)
            z = y[t] / sd
            total -= self.log_proposal(z, density_at(z, G, node, height, area))
            total += log_rows(self, start, end, t, y[t])
        return total

    cdef double log_proposal(self, double z, double density) noexcept nogil:
        """log q(y) - log p(y), up to the scale of y, at z standard deviations."""
        return 0.5 * (z * z + LOG_2_PI) + log(density)


# No methods: so the compiler can put them into the loop over samples.


cdef double fill_grid(
    ScoreGrid grid, Py_ssize_t start, Py_ssize_t end, Py_ssize_t t, double sd
) noexcept nogil:
    """Heights of p(y) p(rows | y) of sample t, y in units of ``sd``; the area below them."""
    cdef double x, base, w, far, floor, low = 1.0, high = 1.0, drift = grid.layer.drift
    cdef const double* node = &grid.node[0]
    cdef double* quadratic = &grid.quadratic[0]
    cdef double* product = &grid.product[0]
    cdef Py_ssize_t i, n, g, G = grid.n_nodes
    for g in range(G):
        quadratic[g], product[g] = node[g] * node[g], 1.0
    for i in range(start, end):
        n = grid.row[i]
        x = grid.layer.below[n, t] - grid.layer.location[n]
        if isnan(x):
            continue
        base, w, floor = grid.base[i, t], grid.row_weight[i] * sd, grid.layer.floor[n]
        # Bounds of the products of variances at all nodes.
        far = fabs(base) + GRID_END * fabs(w)
        low *= floor
        high *= far * far + floor
        if low < 1e-100 or high > 1e100:
            take_logs(G, quadratic, product)
            low, high = floor, far * far + floor
        add_cells(G, node, base, w, x, drift, floor, quadratic, product)
    return put_heights(G, quadratic, product, &grid.height[0])


cdef double log_rows(
    ScoreGrid grid, Py_ssize_t start, Py_ssize_t end, Py_ssize_t t, double y
) noexcept nogil:
    """log p(rows | y) of one sample."""
    cdef NormalCells cells = no_cells()
    cdef double x, a
    cdef Py_ssize_t i, n
    for i in range(start, end):
        n = grid.row[i]
        x = grid.layer.below[n, t] - grid.layer.location[n]
        if isnan(x):
            continue
        a = grid.base[i, t] + grid.row_weight[i] * y
        add_cell(&cells, x - grid.layer.drift * a, a * a + grid.layer.floor[n])
    return log_density_of(&cells)
