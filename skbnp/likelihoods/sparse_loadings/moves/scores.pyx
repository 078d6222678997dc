"""Scores of a layer: section 7."""

from libc.math cimport cos, isnan, log, sin, sqrt
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.sparse_loadings.cells cimport (
    NormalCells, accepts, add_cell, log_density_of, no_cells, put_in_order,
)
from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport LayerMove
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport PI


cdef class Scores(LayerMove):
    """Every sample's scores by slices and flips. O(T (links + 6 N))."""

    def __init__(self, layer):
        super().__init__(layer)
        self.row, self.row_score = np.zeros(0, dtype=np.intp), np.zeros(0)

    cdef int make_room(self) except -1 nogil:
        """Room for all links of all factors."""
        cdef Py_ssize_t rows = self.layer.room_below, columns = self.layer.room
        if self.row.shape[0] < rows or self.row_score.shape[0] < columns:
            with gil:
                self.column_order = np.zeros(columns, dtype=np.intp)
                self.link_start = np.zeros(columns + 1, dtype=np.intp)
                self.link_row = np.zeros(rows * columns, dtype=np.intp)
                self.link_weight = np.zeros(rows * columns)
                self.row = np.zeros(rows, dtype=np.intp)
                self.row_x, self.row_a, self.row_step = np.zeros((3, rows))
                self.row_score, self.row_draw = np.zeros((2, columns))
        return 0

    cdef int run(self, bitgen_t* rng) except -1 nogil:
        """Every sample's scores: an elliptical slice step for all, flips and slices for each."""
        cdef Py_ssize_t k, n, t, i = 0
        if self.layer.n_factors == 0:
            return 0
        self.make_room()
        for k in range(self.layer.n_factors):
            self.link_start[k] = i
            for n in range(self.layer.n_below):
                if self.layer.W[n, k] != 0.0:
                    self.link_row[i], self.link_weight[i] = n, self.layer.W[n, k]
                    i += 1
        self.link_start[self.layer.n_factors] = i
        put_in_order(rng, &self.column_order[0], self.layer.n_factors)
        for t in range(self.layer.n_samples):
            self.update_sample(rng, t)
        return 0

    cdef void update_sample(self, bitgen_t* rng, Py_ssize_t t) noexcept nogil:
        cdef Py_ssize_t n, k, i, j, n_rows = 0
        cdef double threshold, theta, low, high, c, s, y, old, variance, width
        for n in range(self.layer.n_below):
            self.row_x[n] = self.layer.below[n, t] - self.layer.location[n]
            self.row_a[n], self.row_step[n] = self.layer.A[n, t], 0.0
        # Elliptical slice sampling (Murray, Adams & MacKay 2010).
        for k in range(self.layer.n_factors):
            variance = self.prior_variance(k, t)
            self.row_score[k] = self.layer.Y[k, t]
            self.row_draw[k] = draws.normal(rng) * sqrt(variance)
            for i in range(self.link_start[k], self.link_start[k + 1]):
                self.row_step[self.link_row[i]] += self.link_weight[i] * self.row_draw[k]
        for n in range(self.layer.n_below):
            # Rows without links do not see the scores.
            if self.row_step[n] != 0.0 and not isnan(self.row_x[n]):
                self.row[n_rows] = n
                n_rows += 1
        threshold = self.log_sample(n_rows, 1.0, 0.0) + log(draws.uniform(rng))
        theta = draws.uniform(rng) * 2.0 * PI
        low, high = theta - 2.0 * PI, theta
        while True:
            c, s = cos(theta), sin(theta)
            if self.log_sample(n_rows, c, s) > threshold or high - low < 1e-12:
                break
            if theta < 0.0:
                low = theta
            else:
                high = theta
            theta = low + draws.uniform(rng) * (high - low)
        for k in range(self.layer.n_factors):
            self.row_score[k] = c * self.row_score[k] + s * self.row_draw[k]
        for n in range(self.layer.n_below):
            self.row_a[n] = c * self.row_a[n] + s * self.row_step[n]
        for j in range(self.layer.n_factors):
            k = self.column_order[j]
            variance = self.prior_variance(k, t)
            old = self.row_score[k]
            threshold = self.log_score(k, 0.0)
            if accepts(rng, self.log_score(k, -2.0 * old) - threshold):
                self.move_score(k, -2.0 * old)
                old = -old
            # A slice of fixed width at a random place, without stepping out.
            threshold = self.log_score(k, 0.0) - 0.5 * old * old / variance
            threshold += log(draws.uniform(rng))
            width = 8.0 * sqrt(variance)
            low = old - draws.uniform(rng) * width
            high = low + width
            while high - low > 1e-12 * width:
                y = low + draws.uniform(rng) * (high - low)
                if self.log_score(k, y - old) - 0.5 * y * y / variance > threshold:
                    self.move_score(k, y - old)
                    break
                if y < old:
                    low = y
                else:
                    high = y
        for k in range(self.layer.n_factors):
            self.layer.Y[k, t] = self.row_score[k]
        for n in range(self.layer.n_below):
            self.layer.A[n, t] = self.row_a[n]

    cdef double prior_variance(self, Py_ssize_t k, Py_ssize_t t) noexcept nogil:
        """Of a score, by the layer above."""
        return self.layer.score_variance(k, t)

    cdef double log_sample(self, Py_ssize_t n_rows, double c, double s) noexcept nogil:
        """Density of one sample's listed cells at amplitudes c a + s step."""
        cdef NormalCells cells = no_cells()
        cdef double a
        cdef Py_ssize_t i, n
        for i in range(n_rows):
            n = self.row[i]
            a = c * self.row_a[n] + s * self.row_step[n]
            add_cell(&cells, self.row_x[n] - self.layer.drift * a, a * a + self.layer.floor[n])
        return log_density_of(&cells)

    cdef double log_score(self, Py_ssize_t k, double change) noexcept nogil:
        """Density of one sample's cells that factor k has links to, its score changed."""
        cdef NormalCells cells = no_cells()
        cdef double a
        cdef Py_ssize_t i, n
        for i in range(self.link_start[k], self.link_start[k + 1]):
            n = self.link_row[i]
            if isnan(self.row_x[n]):
                continue
            a = self.row_a[n] + self.link_weight[i] * change
            add_cell(&cells, self.row_x[n] - self.layer.drift * a, a * a + self.layer.floor[n])
        return log_density_of(&cells)

    cdef void move_score(self, Py_ssize_t k, double change) noexcept nogil:
        cdef Py_ssize_t i
        self.row_score[k] += change
        for i in range(self.link_start[k], self.link_start[k + 1]):
            self.row_a[self.link_row[i]] += self.link_weight[i] * change
