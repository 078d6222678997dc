"""Births and deaths of factors with one link: mathematics/deep_scale_model, section 4."""

from libc.math cimport isnan, log
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.sparse_loadings.cells cimport accepts, draw_t, log_add, log_t, put_in_order
from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport OF_BIRTHS, OF_DEATHS, LayerMove
from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer
from skbnp.likelihoods.sparse_loadings.score_grid cimport ScoreGrid
from skbnp.numerics cimport rng as draws


cdef class Births(LayerMove):
    """A fixed number of attempts for each row: never a number that the factors decide.

    O(T n_nodes) an attempt.
    """

    def __init__(self, ScaleLayer layer, ScoreGrid grid, Py_ssize_t n_attempts):
        super().__init__(layer)
        self.grid, self.n_attempts = grid, n_attempts
        self.row_order = np.zeros(0, dtype=np.intp)

    cdef int run(self, bitgen_t* rng) except -1 nogil:
        cdef Py_ssize_t i, N = self.layer.n_below
        self.grid.make_room()
        if self.row_order.shape[0] < N:
            with gil:
                self.row_order = np.zeros(self.layer.room_below, dtype=np.intp)
        put_in_order(rng, &self.row_order[0], N)
        for i in range(self.n_attempts * N):
            if draws.uniform(rng) < 0.5:
                self.try_birth(rng, self.row_order[i % N])
            else:
                self.try_death(rng, self.row_order[i % N])
        return 0

    cdef int try_birth(self, bitgen_t* rng, Py_ssize_t n) except -1 nogil:
        cdef Py_ssize_t K = self.layer.n_factors, t, i
        cdef double w, scale2, evidence
        self.layer.reserve(self.layer.n_below, K + 1)
        if self.layer.is_live:
            self.layer.above.draw_row(rng)
        self.grid.row[0] = n
        for t in range(self.layer.n_samples):
            self.grid.base[0, t] = self.layer.A[n, t]
        scale2 = self.scale_of(n)
        if draws.uniform(rng) < 0.5:
            scale2 = self.layer.slab_scale / self.layer.slab_shape
        w = draw_t(rng, 2.0 * self.layer.slab_shape, scale2)
        self.grid.row_weight[0] = w
        evidence = self.grid.evidence(rng, 0, 1, K, &self.layer.Y[K, 0], True)
        self.proposed[OF_BIRTHS] += 1
        if not accepts(rng, self.log_birth(n, self.count_singletons(n), w, evidence)):
            if self.layer.is_live:
                self.layer.above.drop_last_row()
            return 0
        self.accepted[OF_BIRTHS] += 1
        for i in range(self.layer.n_below):
            self.layer.W[i, K] = 0.0
        self.layer.W[n, K], self.layer.n_links[K] = w, 1
        self.layer.n_factors = K + 1
        for t in range(self.layer.n_samples):
            self.layer.A[n, t] += w * self.layer.Y[K, t]
        return 0

    cdef int try_death(self, bitgen_t* rng, Py_ssize_t n) except -1 nogil:
        cdef Py_ssize_t n_singletons = self.count_singletons(n), k = 0, t, pick
        cdef double w, evidence
        self.proposed[OF_DEATHS] += 1
        if n_singletons == 0:
            return 0
        pick = draws.below(rng, n_singletons)
        for k in range(self.layer.n_factors):
            if self.layer.n_links[k] == 1 and self.layer.W[n, k] != 0.0:
                if pick == 0:
                    break
                pick -= 1
        w = self.layer.W[n, k]
        self.grid.row[0], self.grid.row_weight[0] = n, w
        for t in range(self.layer.n_samples):
            self.grid.base[0, t] = self.layer.A[n, t] - w * self.layer.Y[k, t]
        evidence = self.grid.evidence(rng, 0, 1, k, &self.layer.Y[k, 0], False)
        if not accepts(rng, -self.log_birth(n, n_singletons - 1, w, evidence)):
            return 0
        self.accepted[OF_DEATHS] += 1
        for t in range(self.layer.n_samples):
            self.layer.A[n, t] = self.grid.base[0, t]
        self.layer.remove_factor(k)
        return 0

    cdef Py_ssize_t count_singletons(self, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t k, total = 0
        for k in range(self.layer.n_factors):
            total += self.layer.n_links[k] == 1 and self.layer.W[n, k] != 0.0
        return total

    cdef double scale_of(self, Py_ssize_t n) noexcept nogil:
        """Squared scale of a proposed loading: what row n varies by beside ``base[0]``."""
        cdef double total = 0.0, e
        cdef Py_ssize_t t, n_cells = 0
        for t in range(self.layer.n_samples):
            if not isnan(self.layer.below[n, t]):
                e = self.layer.below[n, t] - self.layer.location[n]
                e -= self.layer.drift * self.grid.base[0, t]
                total += e * e
                n_cells += 1
        if total == 0.0:
            return self.layer.slab_scale / self.layer.slab_shape
        return total / (n_cells * (1.0 + self.layer.drift * self.layer.drift))

    cdef double log_count(self, Py_ssize_t n_singletons) noexcept nogil:
        """The choice of a death among the factors that a row has alone, after a birth."""
        return log(n_singletons + 1.0)

    cdef double log_birth(
        self, Py_ssize_t n, Py_ssize_t n_singletons, double w, double evidence
    ) noexcept nogil:
        """Log ratio of a birth to row n's ``n_singletons``; the row without it in ``base[0]``.

        log(mass / N) - log(singletons + 1) + evidence + log p(w) / q(w).
        """
        cdef double df = 2.0 * self.layer.slab_shape
        cdef double prior = log_t(w, df, self.layer.slab_scale / self.layer.slab_shape)
        cdef double proposed = log_t(w, df, self.scale_of(n))
        cdef double none = 0.0
        cdef Py_ssize_t t, n_cells = 0
        for t in range(self.layer.n_samples):
            if not isnan(self.layer.below[n, t]):
                self.layer.cell_x[n_cells] = self.layer.below[n, t] - self.layer.location[n]
                self.layer.cell_base[n_cells] = self.grid.base[0, t]
                n_cells += 1
        none = self.layer.log_cells(n_cells, n, 0.0)
        return (
            log(self.layer.mass / self.layer.n_below) - self.log_count(n_singletons)
            + evidence - none + prior - (log_add(prior, proposed) - log(2.0))
        )
