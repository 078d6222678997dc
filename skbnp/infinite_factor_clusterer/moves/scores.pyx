"""Scores of all rows, then cells that are missing or below the detection limit."""

from libc.math cimport sqrt

from skbnp.infinite_factor_clusterer._row_law cimport RowLaw
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.infinite_factor_clusterer._table cimport KNOWN, MISSING
from skbnp.mcmc.chain cimport Move
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.truncated cimport normal_above


cdef class Scores(Move):
    """y | all but open cells, then these | all else. O(T (N K + K^2))."""

    NAME = "scores"

    def __init__(self, State state, RowLaw row_law, bit_generator):
        super().__init__(bit_generator)
        self.state, self.row_law = state, row_law

    cpdef int run(self) except -1:
        with nogil:
            self.update()
            self.fill_cells()
        self.state.has_residuals = False
        return self.state.outcome()

    cdef int update(self) except -1 nogil:
        """Rows of every cluster, run by run."""
        cdef Py_ssize_t g, n
        self.row_law.make_room()
        for g in range(self.state.n_clusters):
            self.row_law.start_cluster(g)
            while True:
                n = self.row_law.next_run()
                if n < 0:
                    return 0
                if n == 0:
                    break
                self.draw_rows(g, n)
        return 0

    cdef void draw_rows(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil:
        """y ~ N(P^-1 (W'S^-1 (x - o) + m / (v u)), P^-1 / lambda) for picked rows: (F4.4)."""
        cdef Py_ssize_t i, j, k, t, K = self.state.n_factors
        cdef double scale
        if K == 0:
            return
        for i in range(n):
            t = self.row_law.picked[i]
            for j in range(self.row_law.n_here):
                self.row_law.chunk[i, j] = (
                    self.state.X[t, self.row_law.here[j]]
                    - self.state.shift[g, self.row_law.here[j]]
                )
        linalg.gemm_strided(
            False, False, n, K, self.row_law.n_here, 1.0,
            &self.row_law.chunk[0, 0], self.state.n_features, &self.row_law.loading[0, 0], K, 0.0,
            &self.row_law.half[0, 0], K,
        )
        for i in range(n):
            for k in range(K):
                self.row_law.half[i, k] += self.state.M[g, k] * self.row_law.inverse[k]
        linalg.solve_rows(&self.row_law.factor[0, 0], K, &self.row_law.half[0, 0], n)
        for i in range(n):
            scale = 1.0 / sqrt(self.state.row_precision[self.row_law.picked[i]])
            for k in range(K):
                self.row_law.half[i, k] += scale * draws.normal(self.rng)
        linalg.solve_rows_back(&self.row_law.factor[0, 0], K, &self.row_law.half[0, 0], n)
        for i in range(n):
            for k in range(K):
                self.state.Y[self.row_law.picked[i], k] = self.row_law.half[i, k]

    cdef void fill_cells(self) noexcept nogil:
        """Missing cells, and censored ones below their limit, given the scores."""
        cdef Py_ssize_t t, g, j, k
        cdef double mean, sd
        if not self.state.table.has_open_cells:
            return
        for t in range(self.state.n_samples):
            g = self.state.label[t]
            for j in range(self.state.n_features):
                if self.state.table.cell[t, j] == KNOWN:
                    continue
                mean = self.state.shift[g, j]
                for k in range(self.state.n_factors):
                    mean += self.state.W[j, k] * self.state.Y[t, k]
                sd = sqrt(self.state.noise(g)[j] / self.state.row_precision[t])
                if self.state.table.cell[t, j] == MISSING:
                    self.state.X[t, j] = mean + sd * draws.normal(self.rng)
                else:
                    self.state.X[t, j] = mean - sd * normal_above(
                        self.rng, (mean - self.state.table.limit[j]) / sd
                    )
