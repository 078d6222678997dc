"""Degrees of freedom of the rows' tails, and the rows' precisions."""

from libc.math cimport fmax, log, log1p

import numpy as np

from skbnp.infinite_factor_clusterer._row_law cimport RowLaw
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma


cdef class Tails(Move):
    """nu, then lambda | all but scores, which must be drawn anew afterwards."""

    NAME = "tails"

    def __init__(self, State state, RowLaw row_law, bit_generator):
        super().__init__(bit_generator)
        self.state, self.row_law = state, row_law
        self.square = np.zeros(state.n_samples)

    cpdef int run(self) except -1:
        with nogil:
            self.update()
        return self.state.outcome()

    cdef bint measure(self) except -1 nogil:
        """Squared distances of all rows in their own clusters; whether there are any."""
        cdef Py_ssize_t g, i, n
        self.row_law.make_room()
        for g in range(self.state.n_clusters):
            self.row_law.start_cluster(g)
            while True:
                n = self.row_law.next_run()
                if n < 0:
                    return False
                if n == 0:
                    break
                self.row_law.measure(n)
                for i in range(n):
                    self.square[self.row_law.picked[i]] = self.row_law.distance[i]
        return True

    cdef int update(self) except -1 nogil:
        """nu with the row precisions integrated out, then lambda: equation (F4.2)."""
        cdef Py_ssize_t i, t, p, n_grid = self.state.law.tail_grid.shape[0]
        cdef double df, m
        cdef double log_prob[16]
        if not self.measure():
            return 0
        for i in range(n_grid):
            df, log_prob[i] = self.state.law.tail_grid[i], 0.0
            for t in range(self.state.n_samples):
                p = self.state.table.pattern[t]
                m = self.state.table.feature_start[p + 1] - self.state.table.feature_start[p]
                if not df < 1e300:
                    log_prob[i] -= 0.5 * self.square[t]
                    continue
                log_prob[i] += lgamma(0.5 * (df + m)) - lgamma(0.5 * df) - 0.5 * m * log(0.5 * df)
                log_prob[i] -= 0.5 * (df + m) * log1p(self.square[t] / df)
        if draws.categorical_from_logs(self.rng, log_prob, n_grid, &i) != 0:
            self.state.is_broken = True
            return 0
        df = self.state.tail_df = self.state.law.tail_grid[i]
        for t in range(self.state.n_samples):
            self.state.row_precision[t] = 1.0
            if df < 1e300:
                p = self.state.table.pattern[t]
                m = self.state.table.feature_start[p + 1] - self.state.table.feature_start[p]
                self.state.row_precision[t] = fmax(draws.draw_gamma(
                    self.rng, 0.5 * (df + m), 0.5 * (df + self.square[t])
                ), 1e-300)
        return 0
