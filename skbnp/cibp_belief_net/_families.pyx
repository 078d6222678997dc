"""Units that come and go: a newborn with all that its birth brings along, and the reverse.

A newborn of layer l is one customer more of restaurant l. It takes dishes that are there and
orders new ones, which are the next customers one restaurant up, and so on until nothing new is
ordered. By the exchangeability of customers this is the prior of what is added given what is
there, so all of it cancels in an acceptance ratio. What dies with a unit is, layer by layer, every
unit that would be left without a child: doc/mathematics/cibp_belief_net, section 5.4.
"""

from libc.math cimport sqrt, tanh

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.processes.cibp cimport log_dish

from skbnp.cibp_belief_net._network cimport (
    BIAS_MEAN, BIAS_PRECISION, CONCENTRATION, MASS, NO_SURVIVOR_RULE, NOISE_RATE, WEIGHT_MEAN,
    WEIGHT_PRECISION,
)


cdef class Families(Clusters):
    """Adds births and deaths, without the decision on them."""

    def __init__(self, visible, prior, state, bit_generator):
        self.change = self.victim = self.layer_change = np.zeros(0, dtype=np.intp)
        self.gone = np.zeros(0, dtype=np.uint8)
        for name in ("born_layer", "born_takers", "born_slot", "born_edge_start", "born_parent"):
            setattr(self, name, np.zeros(0, dtype=np.intp))
        for name in ("born_bias", "born_precision", "born_rate", "born_weight"):
            setattr(self, name, np.zeros(0))
        super().__init__(visible, prior, state, bit_generator)
        self.born_pre = self.born_post = np.zeros((0, self.stride))
        self.born_cluster_mean = self.born_cluster_precision = np.zeros((0, 0))
        self.born_mean = np.zeros(self.stride)
        self._need_born(4)
        self._need_born_edges(16)

    def _grown(self):
        # New ones, all zero as they are between moves: a state put in may need fewer than before.
        room = self.pre.shape[0]
        self.change, self.victim = np.zeros(room, dtype=np.intp), np.zeros(room, dtype=np.intp)
        self.gone = np.zeros(room, dtype=np.uint8)

    def _layers_grown(self):
        self.layer_change = np.zeros(self.hyper.shape[1] + 2, dtype=np.intp)

    cdef int _need_born(self, Py_ssize_t n) except -1 nogil:
        cdef Py_ssize_t n_clusters = max(
            self.cluster_mean.shape[1], self.born_cluster_mean.shape[1]
        )
        if self.born_layer.shape[0] >= n and self.born_cluster_mean.shape[1] >= n_clusters:
            return 0
        with gil:
            room = max(2 * n, self.born_layer.shape[0])
            for name in ("born_layer", "born_takers", "born_slot", "born_bias", "born_precision",
                         "born_rate"):
                self._grow(name, (room,))
            self._grow("born_edge_start", (room + 1,))
            for name in ("born_pre", "born_post"):
                self._grow(name, (room, self.stride))
            for name in ("born_cluster_mean", "born_cluster_precision"):
                self._grow(name, (room, n_clusters))
        return 0

    cdef int _need_born_edges(self, Py_ssize_t n) except -1 nogil:
        if self.born_parent.shape[0] < n:
            with gil:
                for name in ("born_parent", "born_weight"):
                    self._grow(name, (2 * n,))
        return 0

    # -- births -------------------------------------------------------------------------------

    cdef int _draw_family(self, Py_ssize_t layer) except -1 nogil:
        """A newborn of a layer from the prior given all that is there.

        ``change`` and ``layer_change`` then say what it brings. Non-zero, and nothing to forget,
        if it would exceed ``max_units``.
        """
        if self._draw_family_edges(layer) != 0:
            self.n_guard_rejections += 1
            self._forget_changes()
            return 1
        self._draw_family_values()
        return 0

    cdef int _draw_family_edges(self, Py_ssize_t layer) except -1 nogil:
        cdef Py_ssize_t i = 0, j, level, k, slot, first = 0, next_first, end, n_new
        cdef Py_ssize_t n_known = self.n_layers, n_edges = 0
        cdef double seats, beta
        self.n_born = 0
        if self.n_hidden + 1 > self.max_units:
            return 1
        self._need_born(1)
        self.born_layer[0], self.born_takers[0], self.n_born = layer, 1, 1
        next_first = 1                      # where the units of the layer above begin
        while i < self.n_born:
            level = self.born_layer[i]
            if i == next_first:
                first, next_first = i, self.n_born
            if level >= n_known:
                self._reserve_layers(level + 2)
                self._draw_hyper(level)
                n_known = level + 1
            self.born_edge_start[i] = n_edges
            if level < self.deepest:
                beta = self.hyper[CONCENTRATION, level]
                seats = self.width(level) + (i - first) + beta
                for k in range(self.width(level + 1)):
                    slot = self.member[self.layer_start[level + 1] + k]
                    if draws.uniform(self._rng) * seats < self.n_near[slot] + self.change[slot]:
                        self._need_born_edges(n_edges + 1)
                        self.born_parent[n_edges] = slot
                        self.change[slot] += 1
                        n_edges += 1
                end = self.n_born
                for j in range(next_first, end):
                    if draws.uniform(self._rng) * seats < self.born_takers[j]:
                        self._need_born_edges(n_edges + 1)
                        self.born_parent[n_edges] = -1 - j
                        self.born_takers[j] += 1
                        n_edges += 1
                n_new = <Py_ssize_t> draws.poisson(
                    self._rng, self.hyper[MASS, level] * beta / seats
                )
                if self.n_hidden + end + n_new > self.max_units:
                    return 1
                self._need_born(end + n_new)
                self._need_born_edges(n_edges + n_new)
                for j in range(end, end + n_new):
                    self.born_layer[j], self.born_takers[j] = level + 1, 1
                    self.born_parent[n_edges] = -1 - j
                    n_edges += 1
                self.n_born += n_new
            i += 1
        self.born_edge_start[self.n_born] = n_edges
        for i in range(self.n_born):
            self.layer_change[self.born_layer[i]] += 1
        return 0

    cdef void _draw_family_values(self) noexcept nogil:
        """Parameters and activations from the prior, from the top down."""
        cdef Py_ssize_t i, e, j, level, p
        cdef double nu, sd, w
        cdef double* mean = &self.born_mean[0]
        cdef const double* u
        for i in range(self.n_born - 1, -1, -1):
            level = self.born_layer[i]
            if self.follows_clusters(level):
                self._draw_born_cluster_laws(i)
            else:
                nu = draws.truncated_gamma(
                    self._rng, self.noise_law[0], self.hyper[NOISE_RATE, level],
                    self.highest_precision,
                )
                self.born_precision[i], sd = nu, 1.0 / sqrt(nu)
                self.born_bias[i] = self.hyper[BIAS_MEAN, level] + draws.normal(self._rng) / sqrt(
                    self.hyper[BIAS_PRECISION, level]
                )
                for j in range(self.n_samples):
                    mean[j] = self.born_bias[i]
                for e in range(self.born_edge_start[i], self.born_edge_start[i + 1]):
                    w = self.hyper[WEIGHT_MEAN, level] + draws.normal(self._rng) / sqrt(
                        self.hyper[WEIGHT_PRECISION, level]
                    )
                    p = self.born_parent[e]
                    u = &self.post[p, 0] if p >= 0 else &self.born_post[-1 - p, 0]
                    self.born_weight[e] = w
                    linalg.axpy(self.n_samples, w, u, mean)
                for j in range(self.n_samples):
                    self.born_pre[i, j] = mean[j] + sd * draws.normal(self._rng)
            for j in range(self.n_samples):
                self.born_post[i, j] = tanh(0.5 * self.born_pre[i, j])

    cdef void _draw_born_cluster_laws(self, Py_ssize_t i) noexcept nogil:
        """The law of a unit of the top layer in every row cluster, and its activations."""
        cdef Py_ssize_t c, j
        cdef double nu
        self.born_rate[i] = draws.draw_gamma(
            self._rng, self.cluster_law[2], self.cluster_law[3]
        )
        self.born_bias[i], self.born_precision[i] = 0.0, 1.0
        for c in range(self.n_clusters):
            nu = draws.draw_gamma(self._rng, self.cluster_law[1], self.born_rate[i])
            self.born_cluster_precision[i, c] = nu
            self.born_cluster_mean[i, c] = draws.normal(self._rng) / sqrt(
                self.cluster_law[0] * nu
            )
        for j in range(self.n_samples):
            c = self.label[j]
            self.born_mean[j] = self.born_cluster_mean[i, c]
            self.born_pre[i, j] = self.born_mean[j] + draws.normal(self._rng) / sqrt(
                self.born_cluster_precision[i, c]
            )

    cdef Py_ssize_t _admit_family(self) except -1 nogil:
        """Make the family a part of the network; the newborn's slot, still without a child."""
        cdef Py_ssize_t i, j, e, c, p, slot, unit
        self._forget_changes()
        self._reserve_units(self.n_born)
        for i in range(self.n_born):
            slot = self._insert(self.born_layer[i])
            unit = self.n_visible + slot
            self.born_slot[i] = slot
            self.bias[unit], self.precision[unit] = self.born_bias[i], self.born_precision[i]
            for j in range(self.n_samples):
                self.pre[slot, j], self.post[slot, j] = self.born_pre[i, j], self.born_post[i, j]
            if self.follows_clusters(self.born_layer[i]):
                self.cluster_rate[slot] = self.born_rate[i]
                for c in range(self.n_clusters):
                    self.cluster_mean[slot, c] = self.born_cluster_mean[i, c]
                    self.cluster_precision[slot, c] = self.born_cluster_precision[i, c]
        for i in range(self.n_born):
            unit = self.n_visible + self.born_slot[i]
            for e in range(self.born_edge_start[i], self.born_edge_start[i + 1]):
                p = self.born_parent[e]
                slot = p if p >= 0 else self.born_slot[-1 - p]
                self._link(unit, slot)
                self.weight[unit, slot] = self.born_weight[e]
        return self.born_slot[0]

    # -- deaths -------------------------------------------------------------------------------

    cdef bint _find_victims(self, Py_ssize_t slot) noexcept nogil:
        """List in ``victim`` all that dies with a unit; whether a birth could bring all of it.

        With skip connections it could not if one of them has such an edge, or if a unit would
        keep children but none just below it. Children that ``change`` brings count.
        """
        cdef Py_ssize_t layer = self.slot_layer[slot], k, v, h, begin = 0, end, n
        cdef bint possible = not (self.skips and self._has_far_edge(slot))
        self.victim[0], self.n_victims = slot, 1
        while begin < self.n_victims and layer + 1 < self.n_layers:
            end = self.n_victims
            for k in range(self.width(layer + 1)):
                h, n = self.member[self.layer_start[layer + 1] + k], 0
                for v in range(begin, end):
                    n += self.edge[self.n_visible + self.victim[v], h]
                if n > 0 and n == self.n_near[h] + self.change[h]:
                    self.victim[self.n_victims] = h
                    self.n_victims += 1
                    possible = possible and not (self.skips and self._has_far_edge(h))
            begin, layer = end, layer + 1
        return possible

    cdef bint _has_far_edge(self, Py_ssize_t slot) noexcept nogil:
        """Whether a unit has a child or a parent that is not in the layer beside its own."""
        cdef Py_ssize_t pos
        if self.n_children[slot] != self.n_near[slot]:
            return True
        if self.slot_layer[slot] + 2 < self.n_layers:
            for pos in range(self.layer_start[self.slot_layer[slot] + 2], self.n_hidden):
                if self.edge[self.n_visible + slot, self.member[pos]]:
                    return True
        return False

    cdef Py_ssize_t _count_singletons(
        self, Py_ssize_t child, Py_ssize_t layer, Py_ssize_t* out
    ) noexcept nogil:
        """Units of a layer that have this child alone and may die; listed in out unless NULL."""
        cdef Py_ssize_t k, slot, n = 0
        for k in range(self.width(layer)):
            slot = self.member[self.layer_start[layer] + k]
            if not self.edge[child, slot] or self.n_children[slot] > 1:
                continue
            if self.skips and not self._find_victims(slot) and self.fault != NO_SURVIVOR_RULE:
                continue
            if out != NULL:
                out[n] = slot
            n += 1
        return n

    cdef void _mark_victims(self) noexcept nogil:
        """Write down in ``change`` and ``layer_change`` what the victims' death takes away."""
        cdef Py_ssize_t v, pos, slot
        for v in range(self.n_victims):
            slot = self.victim[v]
            self.gone[slot] = 1
            self.layer_change[self.slot_layer[slot]] -= 1
            for pos in range(self.n_hidden):
                self.change[self.member[pos]] -= self.edge[self.n_visible + slot, self.member[pos]]

    cdef void _remove_victims(self) noexcept nogil:
        """Let the victims die, those above first so that no layer below vanishes before."""
        cdef Py_ssize_t v
        for v in range(self.n_victims - 1, -1, -1):
            self._remove(self.victim[v])

    cdef void _forget_changes(self) noexcept nogil:
        cdef Py_ssize_t pos
        for pos in range(self.n_hidden):
            self.change[self.member[pos]] = 0
            self.gone[self.member[pos]] = 0
        for pos in range(self.layer_change.shape[0]):
            self.layer_change[pos] = 0

    # -- skip connections ---------------------------------------------------------------------

    cdef double _log_skip_factor(self, bint changed) noexcept nogil:
        """log of the extended process's probability over that of the cascading one (B4.2).

        Of the network as it is, or as ``change``, ``layer_change`` and ``gone`` would leave it,
        family included.
        """
        cdef Py_ssize_t layer, k, slot, i, near, far = self.n_visible, extra = 0
        cdef double total = 0.0, beta
        near = far
        for layer in range(1, self.layer_change.shape[0]):
            beta = self.hyper[CONCENTRATION, layer - 1]
            for k in range(self.width(layer)):
                slot = self.member[self.layer_start[layer] + k]
                if changed:
                    extra = self.change[slot]
                    if self.gone[slot]:
                        continue
                total += log_dish(self.n_children[slot] + extra, far, beta)
                total -= log_dish(self.n_near[slot] + extra, near, beta)
            if changed:
                for i in range(self.n_born):
                    if self.born_layer[i] == layer:
                        total += log_dish(self.born_takers[i], far, beta)
                        total -= log_dish(self.born_takers[i], near, beta)
            near = self.width(layer) + (self.layer_change[layer] if changed else 0)
            if near == 0:
                break
            far += near
        return total

    cdef double _log_skip_change(self) noexcept nogil:
        """Log ratio of that factor after the changes to that before."""
        return self._log_skip_factor(True) - self._log_skip_factor(False)
