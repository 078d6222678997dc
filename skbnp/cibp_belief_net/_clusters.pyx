"""Row clusters: a Dirichlet process mixture in place of the prior of the top layer's activations.

a_nk | z_n = c ~ N(m_ck, 1 / nu_ck), nu_ck ~ Gamma(shape, s_k), m_ck ~ N(0, 1 / (kappa nu_ck)),
s_k ~ Gamma, z ~ CRP. Neal (2000), algorithm 3, for z with m and nu integrated out.
"""

from libc.math cimport log, sqrt
from libc.string cimport memcpy

import numpy as np

from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma

from skbnp.cibp_belief_net._network cimport BROKEN_CLUSTERS, STALE_LAWS

cdef double LOG_2_PI = 1.8378770664093454836
# Share of the sweeps that draw labels: they are the dearest part, and a half does.
cdef double LABEL_RATE = 0.5


cdef class Clusters(Network):
    """Adds the moves of the row clusters.

    Cost: O(N C K) for C clusters and K units of the top layer, in every second sweep on average.
    """

    def __init__(self, visible, prior, state, bit_generator):
        super().__init__(visible, prior, state, bit_generator)
        self.top = np.zeros((0, 0))

    cdef int _update_clusters(self) except -1 nogil:
        """Labels, then the clusters' laws, then their rates: in this order.

        Labels are drawn with the laws integrated out, which therefore must be drawn before use.
        """
        cdef Py_ssize_t width = self.width(self.deepest)
        self._need_cluster_room(self.n_clusters + 1, width)
        self._gather_top(width)
        if draws.uniform(self._rng) < LABEL_RATE:
            self._draw_labels(width)
        if self.fault != STALE_LAWS:
            self._draw_cluster_laws(width)
        return 0

    cdef int _need_cluster_room(self, Py_ssize_t n_clusters, Py_ssize_t width) except -1 nogil:
        """Room for so many clusters and units; what the sums hold is lost if the width changes."""
        self._reserve_clusters(n_clusters)
        if self.top.shape[1] == width and self.top.shape[0] and (
            self.total.shape[0] >= n_clusters
        ):
            return 0
        with gil:
            if self.top.shape[0] == 0 or self.top.shape[1] != width:
                self.top = np.zeros((self.stride, width))
                self.total = self.square = self.centre = self.spread = np.zeros((0, width))
                self.level = self.log_weight = np.zeros(0)
            for name in ("total", "square", "centre", "spread"):
                self._grow(name, (2 * n_clusters, width))
            self._grow("level", (2 * n_clusters,))
            self._grow("log_weight", (2 * n_clusters + 1,))
        return 0

    cdef void _gather_top(self, Py_ssize_t width) noexcept nogil:
        """The top layer's activations row by row, and their sums by cluster."""
        cdef Py_ssize_t i, k, c, slot
        for k in range(width):
            slot = self.member[self.layer_start[self.deepest] + k]
            for i in range(self.n_samples):
                self.top[i, k] = self.pre[slot, i]
        for c in range(self.n_clusters):
            for k in range(width):
                self.total[c, k] = self.square[c, k] = 0.0
        for i in range(self.n_samples):
            self._add(i, self.label[i], 1.0, width)
        for c in range(self.n_clusters):
            self._refresh(c, width)

    cdef void _add(self, Py_ssize_t i, Py_ssize_t c, double sign, Py_ssize_t width) noexcept nogil:
        """Add row i to the sums of a cluster, or take it out."""
        cdef Py_ssize_t k
        cdef double a
        for k in range(width):
            a = self.top[i, k]
            self.total[c, k] += sign * a
            self.square[c, k] += sign * a * a

    cdef void _refresh(self, Py_ssize_t c, Py_ssize_t width) noexcept nogil:
        """Predictive laws of a cluster: Student t with 2 shape degrees of freedom (B6.2)."""
        cdef Py_ssize_t k
        cdef double n = self.cluster_count[c], kappa = self.cluster_law[0] + n
        cdef double shape = self.cluster_law[1] + 0.5 * n, rate, total
        cdef double log_rates = 0.0
        for k in range(width):
            total = self.total[c, k]
            rate = self.square[c, k] - total * total / kappa
            rate = self.cluster_rate[self.member[self.layer_start[self.deepest] + k]] + 0.5 * max(
                rate, 0.0
            )
            self.centre[c, k] = total / kappa
            self.spread[c, k] = kappa / (2.0 * rate * (kappa + 1.0))
            log_rates += log(rate)
        self.level[c] = width * (
            lgamma(shape + 0.5) - lgamma(shape) + 0.5 * (log(kappa / (kappa + 1.0)) - LOG_2_PI)
        ) - 0.5 * log_rates

    cdef double _log_predictive(
        self, Py_ssize_t i, Py_ssize_t c, Py_ssize_t width
    ) noexcept nogil:
        """Log density of row i under the rows that cluster c has now."""
        cdef Py_ssize_t k, start, end
        cdef double product, logs = 0.0, away
        for start in range(0, width, 8):
            # One logarithm for eight factors, each of which is below 1e30 or so.
            product, end = 1.0, min(start + 8, width)
            for k in range(start, end):
                away = self.top[i, k] - self.centre[c, k]
                product *= 1.0 + self.spread[c, k] * away * away
            logs += log(product)
        return self.level[c] - (self.cluster_law[1] + 0.5 * self.cluster_count[c] + 0.5) * logs

    cdef void _move_cluster(self, Py_ssize_t source, Py_ssize_t to) noexcept nogil:
        """Give a cluster another number."""
        cdef Py_ssize_t i, size = self.top.shape[1] * sizeof(double)
        for i in range(self.n_samples):
            if self.label[i] == source:
                self.label[i] = to
        self.cluster_count[to] = self.cluster_count[source]
        self.level[to] = self.level[source]
        if size == 0:
            return
        memcpy(&self.total[to, 0], &self.total[source, 0], size)
        memcpy(&self.square[to, 0], &self.square[source, 0], size)
        memcpy(&self.centre[to, 0], &self.centre[source, 0], size)
        memcpy(&self.spread[to, 0], &self.spread[source, 0], size)

    cdef int _draw_labels(self, Py_ssize_t width) except -1 nogil:
        """z_n from p(z_n | z_-n, a), laws integrated out."""
        cdef Py_ssize_t i, c, k, old
        for i in range(self.n_samples):
            old = self.label[i]
            self.cluster_count[old] -= 1
            self._add(i, old, -1.0, width)
            if self.cluster_count[old] == 0:
                self.label[i] = -1
                self.n_clusters -= 1
                if old != self.n_clusters:
                    self._move_cluster(self.n_clusters, old)
                old = -1
            else:
                self._refresh(old, width)
            self._need_cluster_room(self.n_clusters + 1, width)
            # Slot n_clusters stands for a cluster without rows.
            c = self.n_clusters
            self.cluster_count[c] = 0
            for k in range(width):
                self.total[c, k] = self.square[c, k] = 0.0
            self._refresh(c, width)
            for c in range(self.n_clusters + 1):
                self.log_weight[c] = log(
                    self.row_concentration if c == self.n_clusters
                    else <double> self.cluster_count[c]
                ) + self._log_predictive(i, c, width)
            if draws.categorical_from_logs(
                self._rng, &self.log_weight[0], self.n_clusters + 1, &c
            ) != 0:
                c = self.n_clusters
                self._broken = BROKEN_CLUSTERS
            self.n_clusters += c == self.n_clusters
            self.label[i] = c
            self.cluster_count[c] += 1
            self._add(i, c, 1.0, width)
            self._refresh(c, width)
            self.n_labels_drawn += 1
            self.n_relabelled += c != old
        self._reserve_clusters(self.n_clusters + 1)
        return 0

    cdef void _draw_cluster_laws(self, Py_ssize_t width) noexcept nogil:
        """m, nu from their normal-gamma laws, then the rates s."""
        cdef Py_ssize_t k, c, slot
        cdef double n, kappa, rate, nu, total
        for k in range(width):
            slot, total = self.member[self.layer_start[self.deepest] + k], 0.0
            for c in range(self.n_clusters):
                n = self.cluster_count[c]
                kappa = self.cluster_law[0] + n
                rate = self.square[c, k] - self.total[c, k] * self.total[c, k] / kappa
                nu = draws.draw_gamma(
                    self._rng, self.cluster_law[1] + 0.5 * n,
                    self.cluster_rate[slot] + 0.5 * max(rate, 0.0),
                )
                self.cluster_precision[slot, c] = nu
                self.cluster_mean[slot, c] = (
                    self.total[c, k] / kappa + draws.normal(self._rng) / sqrt(kappa * nu)
                )
                total += nu
            self.cluster_rate[slot] = draws.draw_gamma(
                self._rng, self.cluster_law[2] + self.n_clusters * self.cluster_law[1],
                self.cluster_law[3] + total,
            )
