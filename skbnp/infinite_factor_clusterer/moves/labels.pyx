"""Clusters of all rows, scores and row precisions integrated out."""

from libc.math cimport INFINITY, expm1, fmax, log, sqrt

import numpy as np

from skbnp.infinite_factor_clusterer._law cimport OF_FACTORS, OF_FEATURES
from skbnp.infinite_factor_clusterer._row_law cimport CHUNK, RowLaw
from skbnp.infinite_factor_clusterer._state cimport State, draw_inverse_gamma
from skbnp.mcmc.chain cimport Move
from skbnp.numerics cimport rng as draws

from skbnp.numerics.buffers import longer

cdef enum:
    MOST_NEW = 2000         # new clusters of one sweep


cdef class Labels(Move):
    """z | all but scores and row precisions, which must be drawn anew afterwards."""

    NAME = "labels"
    COUNTS = ("labels",)

    def __init__(self, State state, RowLaw row_law, bit_generator):
        super().__init__(bit_generator)
        self.state, self.row_law = state, row_law
        self.log_weight = self.shape = np.zeros(0)
        self.renamed = np.zeros(0, dtype=np.intp)
        self.log_slice, self.best = np.zeros((2, state.n_samples))
        self.before = np.zeros(state.n_samples, dtype=np.intp)

    cpdef int run(self) except -1:
        with nogil:
            self.update()
        self.state.has_residuals = False
        return self.state.outcome()

    cdef int make_room(self) except -1 with gil:
        """Room for clusters."""
        cdef Py_ssize_t room
        self.row_law.make_room()
        if self.log_weight.shape[0] <= self.state.cluster_room:
            room = self.state.cluster_room + 1
            self.log_weight, self.shape = longer(self.log_weight, (room,)), np.zeros(room)
            self.renamed = np.zeros(room, dtype=np.intp)
        return 0

    cdef int update(self) except -1 nogil:
        """Slice sampler over the posterior Dirichlet weights (Kalli, Griffin & Walker 2011).

        (pi_1..pi_G, rest) ~ Dirichlet(n_1..n_G, concentration); a row may go wherever pi exceeds
        its slice, and ``rest`` is broken into new clusters until none of what is left does.
        O(G N K^2 + T G K (N + K)); the row precisions are integrated out.
        """
        cdef Py_ssize_t g, t, n = self.state.n_clusters
        cdef double rest, lowest = INFINITY, u, log_left
        self.make_room()
        for g in range(n):
            self.shape[g] = <double> self.state.n_members(g)
        self.shape[n] = self.state.concentration
        draws.log_dirichlet(self.rng, &self.shape[0], n + 1, &self.log_weight[0])
        for t in range(self.state.n_samples):
            self.log_slice[t] = self.log_weight[self.state.label[t]] + log(draws.uniform(self.rng))
            lowest = min(lowest, self.log_slice[t])
            self.best[t] = -INFINITY
            self.before[t] = self.state.label[t]
        rest = self.log_weight[n]
        while self.opens(rest, lowest):
            if n - self.state.n_clusters == MOST_NEW:
                with gil:
                    raise RuntimeError(f"more than {MOST_NEW} new clusters in one sweep")
            self.state.reserve_clusters(n + 1)
            self.make_room()
            # A share Beta(1, concentration) of what is left.
            u = draws.uniform(self.rng)
            log_left = log(u) / self.state.concentration
            self.log_weight[n] = rest + log(fmax(-expm1(log_left), 1e-300))
            rest += log_left
            self.draw_new_cluster(n)
            n += 1
        for g in range(n):
            self.offer(g)
        self.proposed[0] += self.state.n_samples
        for t in range(self.state.n_samples):
            self.accepted[0] += self.state.label[t] != self.before[t]
        self.name_clusters(n)
        return 0

    cdef bint opens(self, double rest, double lowest) noexcept nogil:
        """Whether a new cluster may be above a slice, by what is left of the weight."""
        return rest > lowest

    cdef void draw_new_cluster(self, Py_ssize_t g) noexcept nogil:
        """Parameters of a cluster from the prior."""
        cdef Py_ssize_t j, k
        for k in range(self.state.n_factors):
            self.state.V[g, k] = draw_inverse_gamma(
                self.rng, self.state.law.score_shape, self.state.law.score_scale
            )
            self.state.M[g, k] = 0.0
            if self.state.law.means != OF_FEATURES:
                self.state.M[g, k] = (
                    draws.normal(self.rng)
                    * sqrt(self.state.V[g, k] / self.state.law.score_precision)
                )
        for j in range(self.state.n_features):
            if not self.state.law.shared_noise:
                self.state.S[g, j] = draw_inverse_gamma(
                    self.rng, self.state.law.noise_shape, self.state.rate[j]
                )
            self.state.shift[g, j] = 0.0
            if self.state.law.means != OF_FACTORS:
                self.state.shift[g, j] = (
                    draws.normal(self.rng)
                    * sqrt(self.state.noise(g)[j] / self.state.offset_precision)
                )

    cdef int offer(self, Py_ssize_t g) except -1 nogil:
        """Let the rows whose slice admits cluster g compare it with the best one so far."""
        cdef Py_ssize_t p, i, n, t
        cdef bint ready
        for p in range(self.state.table.n_patterns):
            n = 0
            ready = False
            for i in range(
                self.state.table.pattern_start[p], self.state.table.pattern_start[p + 1]
            ):
                t = self.state.table.by_pattern[i]
                if self.log_weight[g] <= self.log_slice[t]:
                    continue
                if not ready:
                    self.row_law.gather(g, p)
                    if not self.state.inflated and self.row_law.factorise(g, 0) != 0:
                        self.state.is_broken = True
                        return 0
                    ready = True
                self.row_law.picked[n] = t
                n += 1
                if self.state.inflated:
                    if self.row_law.factorise(g, t) != 0:
                        self.state.is_broken = True
                        return 0
                    self.keep_offers(g, 1)
                    n = 0
                elif n == CHUNK:
                    self.keep_offers(g, n)
                    n = 0
            if n:
                self.keep_offers(g, n)
        return 0

    cdef void keep_offers(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil:
        """The largest of log density + Gumbel noise is a draw in proportion to the densities."""
        cdef Py_ssize_t i, t
        cdef double value
        self.row_law.measure(n)
        for i in range(n):
            t = self.row_law.picked[i]
            value = self.row_law.log_density(self.row_law.distance[i])
            value -= log(-log(draws.uniform(self.rng)))
            if value > self.best[t]:
                self.best[t] = value
                self.state.label[t] = g

    cdef void name_clusters(self, Py_ssize_t n) noexcept nogil:
        """Drop the empty ones of n clusters, in their order."""
        cdef Py_ssize_t g, t, j, k, to = 0
        for g in range(n):
            self.renamed[g] = -1
        for t in range(self.state.n_samples):
            self.renamed[self.state.label[t]] = 0
        for g in range(n):
            if self.renamed[g] < 0:
                continue
            self.renamed[g] = to
            if to != g:
                for k in range(self.state.n_factors):
                    self.state.M[to, k] = self.state.M[g, k]
                    self.state.V[to, k] = self.state.V[g, k]
                for j in range(self.state.n_features):
                    self.state.shift[to, j] = self.state.shift[g, j]
                    if not self.state.law.shared_noise:
                        self.state.S[to, j] = self.state.S[g, j]
            to += 1
        for t in range(self.state.n_samples):
            self.state.label[t] = self.renamed[self.state.label[t]]
        self.state.n_clusters = to
        self.state.sort_rows()
