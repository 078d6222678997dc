"""Proposals of scores of a factor, row by row on a grid: section 6."""

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
        cdef NormalCells cells
        cdef double total = 0.0, sd, x, b, w, a, area, density, prior, z, far
        cdef double low, high, offset, floor, target, f = 0.0, drift = self.layer.drift
        cdef double step = 2.0 * GRID_END / (self.n_nodes - 1)
        cdef double* node = &self.node[0]
        cdef double* height = &self.height[0]
        cdef double* quadratic = &self.quadratic[0]
        cdef double* product = &self.product[0]
        cdef Py_ssize_t t, i, n, g = 0, G = self.n_nodes
        for t in range(self.layer.n_samples):
            sd = sqrt(self.layer.score_variance(k, t))
            for g in range(G):
                quadratic[g], product[g] = node[g] * node[g], 1.0
            low = high = 1.0
            for i in range(start, end):
                n = self.row[i]
                x = self.layer.below[n, t] - self.layer.location[n]
                if isnan(x):
                    continue
                b, w, floor = self.base[i, t], self.row_weight[i] * sd, self.layer.floor[n]
                far = fabs(b) + GRID_END * fabs(w)
                low *= floor
                high *= far * far + floor
                if low < 1e-100 or high > 1e100:
                    for g in range(G):
                        quadratic[g] += log(product[g])
                        product[g] = 1.0
                    low, high = floor, far * far + floor
                add_cells(G, node, b, w, x, drift, floor, quadratic, product)
            area = put_heights(G, quadratic, product, height)
            if draw:
                if draws.uniform(rng) < GRID_PRIOR:
                    y[t] = sd * draws.normal(rng)
                else:
                    target = draws.uniform(rng) * area
                    for g in range(G - 1):
                        f = 0.5 * (height[g] + height[g + 1])
                        if target <= f or g == G - 2:
                            break
                        target -= f
                    # The inverse of the distribution function within a cell.
                    low, high = height[g], height[g + 1]
                    f = sqrt(low * low + min(target / f, 1.0) * (high * high - low * low))
                    offset = (f - low) / (high - low) if high != low else target / f
                    if not 0.0 <= offset <= 1.0:
                        offset = 0.5
                    y[t] = sd * (node[g] + step * offset)
            z = y[t] / sd
            prior = exp(-0.5 * (z * z + LOG_2_PI))
            density = 0.0
            if fabs(z) < GRID_END:
                g = min(<Py_ssize_t> ((z + GRID_END) / step), G - 2)
                offset = (z - node[g]) / step
                density = height[g] + offset * (height[g + 1] - height[g])
                density /= area * step
            total -= self.log_proposal(z, (1.0 - GRID_PRIOR) * density + GRID_PRIOR * prior)
            cells = no_cells()
            for i in range(start, end):
                n = self.row[i]
                x = self.layer.below[n, t] - self.layer.location[n]
                if isnan(x):
                    continue
                a = self.base[i, t] + self.row_weight[i] * y[t]
                add_cell(&cells, x - drift * a, a * a + self.layer.floor[n])
            total += log_density_of(&cells)
        return total

    cdef double log_proposal(self, double z, double density) noexcept nogil:
        """log q(y) - log p(y), up to the scale of y, at z standard deviations."""
        return 0.5 * (z * z + LOG_2_PI) + log(density)
