"""Scores of a layer: mathematics/deep_scale_model, section 7."""

from libc.math cimport cos, isnan, log, sin, sqrt
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.sparse_loadings.cells cimport (
    NormalCells, accepts, add_cell, log_density_of, no_cells, put_in_order,
)
from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport LayerMove
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport PI

cdef double BRACKET = 8.0           # of univariate slices, in standard deviations
cdef double NARROWEST = 1e-12       # bracket of a slice: it is empty but for rounding


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
                self.row_score, self.row_variance, self.row_draw = np.zeros((3, columns))
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
        """A step for all scores of a sample together, then two for each."""
        cdef Py_ssize_t j, k
        self._load(t)
        self._elliptical_slice(rng)
        for j in range(self.layer.n_factors):
            k = self.column_order[j]
            self._flip(k, rng)
            self._slice(k, rng)
        self._store(t)

    cdef void _load(self, Py_ssize_t t) noexcept nogil:
        """Take a sample."""
        cdef Py_ssize_t n, k
        for n in range(self.layer.n_below):
            self.row_x[n] = self.layer.below[n, t] - self.layer.location[n]
            self.row_a[n] = self.layer.A[n, t]
        for k in range(self.layer.n_factors):
            self.row_score[k] = self.layer.Y[k, t]
            self.row_variance[k] = self.prior_variance(k, t)

    cdef void _store(self, Py_ssize_t t) noexcept nogil:
        """Put a sample back into the layer."""
        cdef Py_ssize_t n, k
        for k in range(self.layer.n_factors):
            self.layer.Y[k, t] = self.row_score[k]
        for n in range(self.layer.n_below):
            self.layer.A[n, t] = self.row_a[n]

    cdef void _elliptical_slice(self, bitgen_t* rng) noexcept nogil:
        """All scores of a sample at once (Murray, Adams & MacKay 2010)."""
        cdef Py_ssize_t n_rows
        cdef double least, angle, low, high, u, v
        self._draw_step(rng)
        n_rows = self._list_rows()
        least = self.log_sample(n_rows, 1.0, 0.0) + log(draws.uniform(rng))
        angle = draws.uniform(rng) * 2.0 * PI
        low, high = angle - 2.0 * PI, angle
        while True:
            u, v = cos(angle), sin(angle)
            if self.log_sample(n_rows, u, v) > least or high - low < NARROWEST:
                break
            if angle < 0.0:
                low = angle
            else:
                high = angle
            angle = low + draws.uniform(rng) * (high - low)
        self._turn(u, v)

    cdef void _draw_step(self, bitgen_t* rng) noexcept nogil:
        """Scores from their prior, and their amplitudes: the other axis of the ellipse."""
        cdef Py_ssize_t n, k, i
        for n in range(self.layer.n_below):
            self.row_step[n] = 0.0
        for k in range(self.layer.n_factors):
            self.row_draw[k] = draws.normal(rng) * sqrt(self.row_variance[k])
            for i in range(self.link_start[k], self.link_start[k + 1]):
                self.row_step[self.link_row[i]] += self.link_weight[i] * self.row_draw[k]

    cdef Py_ssize_t _list_rows(self) noexcept nogil:
        """Rows with a cell that sees the scores, which those without links do not; how many."""
        cdef Py_ssize_t n, n_rows = 0
        for n in range(self.layer.n_below):
            if self.row_step[n] != 0.0 and not isnan(self.row_x[n]):
                self.row[n_rows] = n
                n_rows += 1
        return n_rows

    cdef void _turn(self, double u, double v) noexcept nogil:
        """Go to a point of the ellipse."""
        cdef Py_ssize_t n, k
        for k in range(self.layer.n_factors):
            self.row_score[k] = u * self.row_score[k] + v * self.row_draw[k]
        for n in range(self.layer.n_below):
            self.row_a[n] = u * self.row_a[n] + v * self.row_step[n]

    cdef void _flip(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil:
        """The other sign, of which the prior thinks the same."""
        cdef double change = -2.0 * self.row_score[k], before = self.log_score(k, 0.0)
        if accepts(rng, self.log_score(k, change) - before):
            self.move_score(k, change)

    cdef void _slice(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil:
        """One score, from a bracket of fixed width at a random place, without stepping out."""
        cdef double old = self.row_score[k], variance = self.row_variance[k], y, low, high
        cdef double width = BRACKET * sqrt(variance)
        cdef double least = self.log_score(k, 0.0) - 0.5 * old * old / variance
        least += log(draws.uniform(rng))
        low = old - draws.uniform(rng) * width
        high = low + width
        while high - low > NARROWEST * width:
            y = low + draws.uniform(rng) * (high - low)
            if self.log_score(k, y - old) - 0.5 * y * y / variance > least:
                self.move_score(k, y - old)
                return
            if y < old:
                low = y
            else:
                high = y

    cdef double prior_variance(self, Py_ssize_t k, Py_ssize_t t) noexcept nogil:
        """Of a score, by the layer above."""
        return self.layer.score_variance(k, t)

    cdef double log_sample(self, Py_ssize_t n_rows, double u, double v) noexcept nogil:
        """Density of one sample's listed cells at amplitudes u a + v step."""
        cdef NormalCells cells = no_cells()
        cdef double a
        cdef Py_ssize_t i, n
        for i in range(n_rows):
            n = self.row[i]
            a = u * self.row_a[n] + v * self.row_step[n]
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
