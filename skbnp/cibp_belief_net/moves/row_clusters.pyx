"""Row clusters: a Dirichlet process mixture in place of the prior of the top layer's activations.

a_nk | z_n = c ~ N(m_ck, 1 / nu_ck), nu_ck ~ Gamma(shape, s_k), m_ck ~ N(0, 1 / (kappa nu_ck)),
s_k ~ Gamma, z ~ CRP: doc/mathematics/cibp_belief_net, section 6.
"""

from libc.math cimport log, sqrt
from libc.string cimport memcpy

import numpy as np

from skbnp.cibp_belief_net._state cimport Network
from skbnp.mcmc.chain cimport BROKEN, DONE, Move
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI, lgamma

from skbnp.cibp_belief_net._arrays import grown

# Share of the sweeps that draw labels: they are the dearest part, and a half does.
cdef double LABEL_RATE = 0.5


cdef class RowClusters(Move):
    """Labels with the clusters' laws integrated out (B6.2), then the laws, then their rates (B6.3).

    In this order: the laws must be drawn before anything uses them. Cost: O(N C K) for C clusters
    and K units of the top layer, in every second sweep on average.
    """

    NAME = "clusters"
    COUNTS = ("row_labels",)

    def __init__(self, Network net, bit_generator):
        super().__init__(bit_generator)
        self.net = net
        self.top = np.zeros((0, 0))

    cpdef int run(self) except -1:
        cdef int status = DONE
        self.width = self.net.width(self.net.laws.deepest)
        with nogil:
            self._reserve(self.net.n_clusters + 1)
            self._gather()
            if draws.uniform(self.rng) < LABEL_RATE:
                status = self._draw_labels()
            self._draw_laws()
        return status

    cdef int _reserve(self, Py_ssize_t n_clusters) except -1 nogil:
        """Room for so many clusters; what the sums hold is lost if the width has changed."""
        self.net.reserve_clusters(n_clusters)
        if self.top.shape[1] == self.width and self.top.shape[0] and (
            self.total.shape[0] >= n_clusters
        ):
            return 0
        with gil:
            if self.top.shape[0] == 0 or self.top.shape[1] != self.width:
                self.top = np.zeros((self.net.stride, self.width))
                self.total = self.square = self.centre = self.spread = np.zeros((0, self.width))
                self.level = self.log_weight = np.zeros(0)
            shape = (2 * n_clusters, self.width)
            self.total, self.square = grown(self.total, shape), grown(self.square, shape)
            self.centre, self.spread = grown(self.centre, shape), grown(self.spread, shape)
            self.level = grown(self.level, (2 * n_clusters,))
            self.log_weight = grown(self.log_weight, (2 * n_clusters + 1,))
        return 0

    cdef Py_ssize_t _slot(self, Py_ssize_t k) noexcept nogil:
        """Of the top layer's k-th unit."""
        return self.net.slot(self.net.laws.deepest, k)

    cdef void _gather(self) noexcept nogil:
        """The top layer's activations row by row, and their sums by cluster."""
        cdef Py_ssize_t i, k, c, slot
        for k in range(self.width):
            slot = self._slot(k)
            for i in range(self.net.n_samples):
                self.top[i, k] = self.net.pre[slot, i]
        for c in range(self.net.n_clusters):
            self._clear(c)
        for i in range(self.net.n_samples):
            self._add(i, self.net.label[i], 1.0)
        for c in range(self.net.n_clusters):
            self._refresh(c)

    cdef void _clear(self, Py_ssize_t c) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.width):
            self.total[c, k] = self.square[c, k] = 0.0

    cdef void _add(self, Py_ssize_t i, Py_ssize_t c, double sign) noexcept nogil:
        """Add row i to the sums of a cluster, or take it out."""
        cdef Py_ssize_t k
        cdef double a
        for k in range(self.width):
            a = self.top[i, k]
            self.total[c, k] += sign * a
            self.square[c, k] += sign * a * a

    cdef void _refresh(self, Py_ssize_t c) noexcept nogil:
        """Predictive laws of a cluster: Student t with 2 shape degrees of freedom (B6.2)."""
        cdef Py_ssize_t k
        cdef double n = self.net.cluster_count[c], kappa = self.net.laws.cluster[0] + n
        cdef double shape = self.net.laws.cluster[1] + 0.5 * n, rate, total
        cdef double log_rates = 0.0
        for k in range(self.width):
            total = self.total[c, k]
            rate = self.square[c, k] - total * total / kappa
            rate = self.net.cluster_rate[self._slot(k)] + 0.5 * max(rate, 0.0)
            self.centre[c, k] = total / kappa
            self.spread[c, k] = kappa / (2.0 * rate * (kappa + 1.0))
            log_rates += log(rate)
        self.level[c] = self.width * (
            lgamma(shape + 0.5) - lgamma(shape) + 0.5 * (log(kappa / (kappa + 1.0)) - LOG_2_PI)
        ) - 0.5 * log_rates

    cdef double _log_predictive(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil:
        """Log density of row i under the rows that cluster c has now."""
        cdef Py_ssize_t k, start, end, width = self.width
        cdef double product, logs = 0.0, away, shape
        for start in range(0, width, 8):
            # One logarithm for eight factors, each of which is below 1e30 or so.
            product, end = 1.0, min(start + 8, width)
            for k in range(start, end):
                away = self.top[i, k] - self.centre[c, k]
                product *= 1.0 + self.spread[c, k] * away * away
            logs += log(product)
        shape = self.net.laws.cluster[1] + 0.5 * self.net.cluster_count[c]
        return self.level[c] - (shape + 0.5) * logs

    cdef void _renumber(self, Py_ssize_t source, Py_ssize_t to) noexcept nogil:
        """Give a cluster another number."""
        cdef Py_ssize_t i, size = self.top.shape[1] * sizeof(double)
        for i in range(self.net.n_samples):
            if self.net.label[i] == source:
                self.net.label[i] = to
        self.net.cluster_count[to] = self.net.cluster_count[source]
        self.level[to] = self.level[source]
        if size == 0:
            return
        memcpy(&self.total[to, 0], &self.total[source, 0], size)
        memcpy(&self.square[to, 0], &self.square[source, 0], size)
        memcpy(&self.centre[to, 0], &self.centre[source, 0], size)
        memcpy(&self.spread[to, 0], &self.spread[source, 0], size)

    cdef int _draw_labels(self) except -1 nogil:
        """z_n from p(z_n | z_-n, a), laws integrated out."""
        cdef Py_ssize_t i, c, old
        cdef int status = DONE
        for i in range(self.net.n_samples):
            old = self.net.label[i]
            self.net.cluster_count[old] -= 1
            self._add(i, old, -1.0)
            if self.net.cluster_count[old] == 0:
                self.net.label[i] = -1
                self.net.n_clusters -= 1
                if old != self.net.n_clusters:
                    self._renumber(self.net.n_clusters, old)
                old = -1
            else:
                self._refresh(old)
            self._reserve(self.net.n_clusters + 1)
            # Slot n_clusters stands for a cluster without rows.
            c = self.net.n_clusters
            self.net.cluster_count[c] = 0
            self._clear(c)
            self._refresh(c)
            for c in range(self.net.n_clusters + 1):
                self.log_weight[c] = log(
                    self.net.laws.row_concentration if c == self.net.n_clusters
                    else <double> self.net.cluster_count[c]
                ) + self._log_predictive(i, c)
            if draws.categorical_from_logs(
                self.rng, &self.log_weight[0], self.net.n_clusters + 1, &c
            ) != 0:
                c = self.net.n_clusters
                status = BROKEN
            self.net.n_clusters += c == self.net.n_clusters
            self.net.label[i] = c
            self.net.cluster_count[c] += 1
            self._add(i, c, 1.0)
            self._refresh(c)
            self.proposed[0] += 1
            self.accepted[0] += c != old
        self.net.reserve_clusters(self.net.n_clusters + 1)
        return status

    cdef void _draw_laws(self) noexcept nogil:
        """m, nu from their normal-gamma laws, then the rates s."""
        cdef Py_ssize_t k, c, slot
        cdef double n, kappa, rate, nu, total
        for k in range(self.width):
            slot, total = self._slot(k), 0.0
            for c in range(self.net.n_clusters):
                n = self.net.cluster_count[c]
                kappa = self.net.laws.cluster[0] + n
                rate = self.square[c, k] - self.total[c, k] * self.total[c, k] / kappa
                nu = draws.draw_gamma(
                    self.rng, self.net.laws.cluster[1] + 0.5 * n,
                    self.net.cluster_rate[slot] + 0.5 * max(rate, 0.0),
                )
                self.net.cluster_precision[slot, c] = nu
                self.net.cluster_mean[slot, c] = (
                    self.total[c, k] / kappa + draws.normal(self.rng) / sqrt(kappa * nu)
                )
                total += nu
            self.net.cluster_rate[slot] = draws.draw_gamma(
                self.rng, self.net.laws.cluster[2] + self.net.n_clusters * self.net.laws.cluster[1],
                self.net.laws.cluster[3] + total,
            )
