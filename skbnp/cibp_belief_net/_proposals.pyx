"""What a birth brings and what a death takes, before it is decided on.

A newborn of layer l is one more customer of restaurant l. It takes dishes that are there and
orders new ones, which are the next customers one restaurant up, and so on until nothing new is
ordered. By the exchangeability of customers this is the prior of what is added given what is
there, so all of it cancels in an acceptance ratio. What goes with a unit is, layer by layer, every
unit that would be left without a child: doc/mathematics/cibp_belief_net, section 5.4.
"""

from libc.math cimport sqrt, tanh
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.cibp_belief_net._laws cimport (
    BIAS_MEAN, BIAS_PRECISION, CONCENTRATION, MASS, NOISE_RATE, WEIGHT_MEAN, WEIGHT_PRECISION,
)
from skbnp.cibp_belief_net._state cimport Network
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.processes.ibp cimport log_dish

from skbnp.cibp_belief_net._arrays import grown


cdef class StructureChange:
    """Numbers that a birth or a death would change: of children, of units of layers, who goes.

    Between moves all of it is zero.
    """

    def __init__(self, Network net):
        self.net = net
        self.children = self.units = np.zeros(0, dtype=np.intp)
        self.gone = np.zeros(0, dtype=np.uint8)

    cdef int reserve(self) except -1 nogil:
        """Room for the slots and layers that the network has now; before anything is marked."""
        if self.children.shape[0] == self.net.n_slots() and (
            self.units.shape[0] == self.net.hyper.shape[1] + 2
        ):
            return 0
        with gil:
            self.children = np.zeros(self.net.n_slots(), dtype=np.intp)
            self.gone = np.zeros(self.net.n_slots(), dtype=np.uint8)
            self.units = np.zeros(self.net.hyper.shape[1] + 2, dtype=np.intp)
        return 0

    cdef void clear(self) noexcept nogil:
        cdef Py_ssize_t pos
        for pos in range(self.net.n_hidden):
            self.children[self.net.member[pos]] = 0
            self.gone[self.net.member[pos]] = 0
        for pos in range(self.units.shape[0]):
            self.units[pos] = 0

    cdef double log_skip_ratio(
        self, Py_ssize_t n_new, const Py_ssize_t* layer, const Py_ssize_t* n_takers
    ) noexcept nogil:
        """Log ratio of the skip connections' factor after the change to that before.

        New units have the given layers and numbers of children; they have no skip connections.
        """
        return self._log_skip_factor(True, n_new, layer, n_takers) - self._log_skip_factor(
            False, n_new, layer, n_takers
        )

    cdef double _log_skip_factor(
        self, bint changed, Py_ssize_t n_new, const Py_ssize_t* layer, const Py_ssize_t* n_takers
    ) noexcept nogil:
        """log of the extended process's probability over that of the cascading one (B4.2).

        Of the network as it is, or as the change would leave it.
        """
        cdef Py_ssize_t m, k, slot, i, near, far = self.net.n_visible, extra = 0
        cdef double total = 0.0, beta
        near = far
        for m in range(1, self.units.shape[0]):
            beta = self.net.hyper[CONCENTRATION, m - 1]
            for k in range(self.net.width(m)):
                slot = self.net.slot(m, k)
                if changed:
                    extra = self.children[slot]
                    if self.gone[slot]:
                        continue
                total += log_dish(self.net.n_children[slot] + extra, far, beta)
                total -= log_dish(self.net.n_near[slot] + extra, near, beta)
            if changed:
                for i in range(n_new):
                    if layer[i] == m:
                        total += log_dish(n_takers[i], far, beta)
                        total -= log_dish(n_takers[i], near, beta)
            near = self.net.width(m) + (self.units[m] if changed else 0)
            if near == 0:
                break
            far += near
        return total


cdef class BirthProposal:
    """A unit that may be born, with all that its birth would bring along, drawn from the prior.

    ``draw`` it, then either ``admit`` or ``withdraw``.
    """

    def __init__(self, Network net, StructureChange change):
        self.net, self.change = net, change
        for_units, for_edges = 8, 32
        self.layer, self.n_takers, self.slot = (
            np.zeros(for_units, dtype=np.intp) for _ in range(3)
        )
        self.edge_start = np.zeros(for_units + 1, dtype=np.intp)
        self.bias, self.precision, self.cluster_rate = (np.zeros(for_units) for _ in range(3))
        self.pre, self.post = (np.zeros((for_units, net.stride)) for _ in range(2))
        self.cluster_mean = np.zeros((for_units, net.cluster_mean.shape[1]))
        self.cluster_precision = np.zeros((for_units, net.cluster_mean.shape[1]))
        self.mean = np.zeros(net.stride)
        self.parent, self.weight = np.zeros(for_edges, dtype=np.intp), np.zeros(for_edges)

    cdef int draw(self, bitgen_t* rng, Py_ssize_t layer) except -1 nogil:
        """A newborn of a layer from the prior given all that is there: equation (B5.8).

        ``change`` then says what it brings. Non-zero, and nothing to withdraw, if it would exceed
        ``max_units``.
        """
        return self._draw(rng, layer, False)

    cdef int draw_alone(self, bitgen_t* rng, Py_ssize_t layer) except -1 nogil:
        """The same for a newborn that has no parents."""
        return self._draw(rng, layer, True)

    cdef int _draw(self, bitgen_t* rng, Py_ssize_t layer, bint alone) except -1 nogil:
        self.change.reserve()
        if self._draw_edges(rng, layer, alone) != 0:
            self.n_beyond += 1
            self.change.clear()
            return 1
        self._draw_values(rng)
        return 0

    cdef int _draw_edges(self, bitgen_t* rng, Py_ssize_t layer, bint alone) except -1 nogil:
        cdef Py_ssize_t i = 0, level, first = 0, next_first = 1, n_edges = 0
        cdef Py_ssize_t n_known = self.net.n_layers
        self.n_units = 0
        if self.net.n_hidden + 1 > self.net.laws.max_units:
            return 1
        self._need_units(1)
        self.layer[0], self.n_takers[0], self.n_units = layer, 1, 1
        while i < self.n_units:
            level = self.layer[i]
            if i == next_first:             # the units of the next layer begin here
                first, next_first = i, self.n_units
            if level >= n_known:
                self.net.reserve_layers(level + 2)
                self.net.laws.draw_layer(rng, self.net.hyper, level)
                n_known = level + 1
            self.edge_start[i] = n_edges
            if level < self.net.laws.deepest and not alone:
                if self._choose_parents(rng, i, i - first, next_first, &n_edges) != 0:
                    return 1
            i += 1
        self.edge_start[self.n_units] = n_edges
        # Layers may have been added.
        if self.change.units.shape[0] != self.net.hyper.shape[1] + 2:
            with gil:
                self.change.units = np.zeros(self.net.hyper.shape[1] + 2, dtype=np.intp)
        for i in range(self.n_units):
            self.change.units[self.layer[i]] += 1
        return 0

    cdef int _choose_parents(
        self, bitgen_t* rng, Py_ssize_t i, Py_ssize_t n_before, Py_ssize_t first_above,
        Py_ssize_t* n_edges,
    ) except -1 nogil:
        """Dishes of unit i, which comes after ``n_before`` new ones of its layer.

        New units from ``first_above`` on are in the layer above. Non-zero beyond ``max_units``.
        """
        cdef Py_ssize_t level = self.layer[i], k, j, slot, n_new, end = self.n_units
        cdef Py_ssize_t at = n_edges[0]
        cdef double beta = self.net.hyper[CONCENTRATION, level]
        cdef double seats = self.net.width(level) + n_before + beta
        for k in range(self.net.width(level + 1)):
            slot = self.net.slot(level + 1, k)
            if draws.uniform(rng) * seats < self.net.n_near[slot] + self.change.children[slot]:
                self._need_edges(at + 1)
                self.parent[at] = slot
                self.change.children[slot] += 1
                at += 1
        for j in range(first_above, end):
            if draws.uniform(rng) * seats < self.n_takers[j]:
                self._need_edges(at + 1)
                self.parent[at] = -1 - j
                self.n_takers[j] += 1
                at += 1
        n_new = <Py_ssize_t> draws.poisson(rng, self.net.hyper[MASS, level] * beta / seats)
        if self.net.n_hidden + end + n_new > self.net.laws.max_units:
            return 1
        self._need_units(end + n_new)
        self._need_edges(at + n_new)
        for j in range(end, end + n_new):
            self.layer[j], self.n_takers[j] = level + 1, 1
            self.parent[at] = -1 - j
            at += 1
        self.n_units += n_new
        n_edges[0] = at
        return 0

    cdef void _draw_values(self, bitgen_t* rng) noexcept nogil:
        """Parameters and activations from the prior, from the top down."""
        cdef Py_ssize_t i, j
        for i in range(self.n_units - 1, -1, -1):
            if self.net.follows_clusters(self.layer[i]):
                self._draw_cluster_laws(rng, i)
            else:
                self._draw_activations(rng, i)
            for j in range(self.net.n_samples):
                self.post[i, j] = tanh(0.5 * self.pre[i, j])

    cdef void _draw_activations(self, bitgen_t* rng, Py_ssize_t i) noexcept nogil:
        """Precision, bias, weights and activations of a unit that has its own law."""
        cdef Py_ssize_t e, j, level = self.layer[i], p
        cdef double nu, sd, w
        cdef double* mean = &self.mean[0]
        cdef const double* u
        nu = self.net.laws.draw_precision(rng, self.net.hyper[NOISE_RATE, level], 0.0, 0.0)
        self.precision[i], sd = nu, 1.0 / sqrt(nu)
        self.bias[i] = self.net.hyper[BIAS_MEAN, level] + draws.normal(rng) / sqrt(
            self.net.hyper[BIAS_PRECISION, level]
        )
        for j in range(self.net.n_samples):
            mean[j] = self.bias[i]
        for e in range(self.edge_start[i], self.edge_start[i + 1]):
            w = self.net.hyper[WEIGHT_MEAN, level] + draws.normal(rng) / sqrt(
                self.net.hyper[WEIGHT_PRECISION, level]
            )
            p = self.parent[e]
            u = &self.net.post[p, 0] if p >= 0 else &self.post[-1 - p, 0]
            self.weight[e] = w
            linalg.axpy(self.net.n_samples, w, u, mean)
        for j in range(self.net.n_samples):
            self.pre[i, j] = mean[j] + sd * draws.normal(rng)

    cdef void _draw_cluster_laws(self, bitgen_t* rng, Py_ssize_t i) noexcept nogil:
        """The law of a unit of the top layer in every row cluster, and its activations."""
        cdef Py_ssize_t c, j
        cdef double nu
        self.cluster_rate[i] = draws.draw_gamma(
            rng, self.net.laws.cluster[2], self.net.laws.cluster[3]
        )
        self.bias[i], self.precision[i] = 0.0, 1.0
        for c in range(self.net.n_clusters):
            nu = draws.draw_gamma(rng, self.net.laws.cluster[1], self.cluster_rate[i])
            self.cluster_precision[i, c] = nu
            self.cluster_mean[i, c] = draws.normal(rng) / sqrt(self.net.laws.cluster[0] * nu)
        for j in range(self.net.n_samples):
            c = self.net.label[j]
            self.mean[j] = self.cluster_mean[i, c]
            self.pre[i, j] = self.mean[j] + draws.normal(rng) / sqrt(self.cluster_precision[i, c])

    cdef double log_skip_ratio(self) noexcept nogil:
        """What the birth adds to a log acceptance ratio where there are skip connections."""
        return self.change.log_skip_ratio(self.n_units, &self.layer[0], &self.n_takers[0])

    cdef Py_ssize_t admit(self) except -1 nogil:
        """Make it a part of the network; the newborn's slot, still without a child."""
        cdef Py_ssize_t i, j, e, c, p, slot, unit
        self.change.clear()
        self.net.reserve_units(self.n_units)
        for i in range(self.n_units):
            slot = self.net.insert(self.layer[i])
            unit = self.net.n_visible + slot
            self.slot[i] = slot
            self.net.bias[unit], self.net.precision[unit] = self.bias[i], self.precision[i]
            for j in range(self.net.n_samples):
                self.net.pre[slot, j], self.net.post[slot, j] = self.pre[i, j], self.post[i, j]
            if self.net.follows_clusters(self.layer[i]):
                self.net.cluster_rate[slot] = self.cluster_rate[i]
                for c in range(self.net.n_clusters):
                    self.net.cluster_mean[slot, c] = self.cluster_mean[i, c]
                    self.net.cluster_precision[slot, c] = self.cluster_precision[i, c]
        for i in range(self.n_units):
            unit = self.net.n_visible + self.slot[i]
            for e in range(self.edge_start[i], self.edge_start[i + 1]):
                p = self.parent[e]
                slot = p if p >= 0 else self.slot[-1 - p]
                self.net.link(unit, slot)
                self.net.weight[unit, slot] = self.weight[e]
        return self.slot[0]

    cdef void withdraw(self) noexcept nogil:
        self.change.clear()

    # -- room

    cdef int _need_units(self, Py_ssize_t n) except -1 nogil:
        cdef Py_ssize_t room, n_clusters = max(
            self.net.cluster_mean.shape[1], self.cluster_mean.shape[1]
        )
        if self.layer.shape[0] >= n and self.cluster_mean.shape[1] >= n_clusters:
            return 0
        with gil:
            room = max(2 * n, self.layer.shape[0])
            self.layer = grown(self.layer, (room,))
            self.n_takers = grown(self.n_takers, (room,))
            self.slot = grown(self.slot, (room,))
            self.edge_start = grown(self.edge_start, (room + 1,))
            self.bias = grown(self.bias, (room,))
            self.precision = grown(self.precision, (room,))
            self.cluster_rate = grown(self.cluster_rate, (room,))
            self.pre = grown(self.pre, (room, self.net.stride))
            self.post = grown(self.post, (room, self.net.stride))
            self.cluster_mean = grown(self.cluster_mean, (room, n_clusters))
            self.cluster_precision = grown(self.cluster_precision, (room, n_clusters))
        return 0

    cdef int _need_edges(self, Py_ssize_t n) except -1 nogil:
        if self.parent.shape[0] < n:
            with gil:
                self.parent = grown(self.parent, (2 * n,))
                self.weight = grown(self.weight, (2 * n,))
        return 0


cdef class DeathProposal:
    """A unit that may die, and all that would go with it: ``find`` it, then perhaps ``carry_out``.

    Children that ``change`` brings count, so that deaths can be counted as a birth would leave
    them.
    """

    def __init__(self, Network net, StructureChange change):
        self.net, self.change = net, change
        self.slot = np.zeros(0, dtype=np.intp)

    cdef int reserve(self) except -1 nogil:
        """Room for all units that there are now."""
        self.change.reserve()
        if self.slot.shape[0] < self.net.n_slots():
            with gil:
                self.slot = np.zeros(self.net.n_slots(), dtype=np.intp)
        return 0

    cdef bint find(self, Py_ssize_t slot) noexcept nogil:
        """List all that goes with a unit; whether a birth could bring all of it.

        With skip connections it could not if one of them has such an edge, or if a unit would
        keep children but none just below it.
        """
        cdef Py_ssize_t layer = self.net.slot_layer[slot], k, v, h, begin = 0, end, n
        cdef bint possible = not (self.net.laws.skips and self._has_far_edge(slot))
        self.slot[0], self.n_units = slot, 1
        while begin < self.n_units and layer + 1 < self.net.n_layers:
            end = self.n_units
            for k in range(self.net.width(layer + 1)):
                h, n = self.net.slot(layer + 1, k), 0
                for v in range(begin, end):
                    n += self.net.edge[self.net.n_visible + self.slot[v], h]
                if n > 0 and n == self.net.n_near[h] + self.change.children[h]:
                    self.slot[self.n_units] = h
                    self.n_units += 1
                    possible = possible and not (self.net.laws.skips and self._has_far_edge(h))
            begin, layer = end, layer + 1
        return possible

    cdef bint _may_die(self, Py_ssize_t slot) noexcept nogil:
        """Whether a birth could bring back all that would go with a unit."""
        return not self.net.laws.skips or self.find(slot)

    cdef bint _has_far_edge(self, Py_ssize_t slot) noexcept nogil:
        """Whether a unit has a child or a parent that is not in the layer beside its own."""
        cdef Py_ssize_t pos, begin
        if self.net.n_children[slot] != self.net.n_near[slot]:
            return True
        if self.net.slot_layer[slot] + 2 < self.net.n_layers:
            begin = self.net.layer_start[self.net.slot_layer[slot] + 2]
            for pos in range(begin, self.net.n_hidden):
                if self.net.edge[self.net.n_visible + slot, self.net.member[pos]]:
                    return True
        return False

    cdef Py_ssize_t list_singletons(
        self, Py_ssize_t child, Py_ssize_t layer, Py_ssize_t* out
    ) noexcept nogil:
        """Number of units of a layer that have this child alone and may die.

        They are listed in ``out`` unless it is NULL; what ``find`` found is lost.
        """
        cdef Py_ssize_t k, slot, n = 0
        for k in range(self.net.width(layer)):
            slot = self.net.slot(layer, k)
            if not self.net.edge[child, slot] or self.net.n_children[slot] > 1:
                continue
            if not self._may_die(slot):
                continue
            if out != NULL:
                out[n] = slot
            n += 1
        return n

    cdef double log_skip_ratio(self) noexcept nogil:
        """What the death adds to a log acceptance ratio where there are skip connections."""
        cdef Py_ssize_t v, pos, slot
        cdef double log_ratio
        for v in range(self.n_units):
            slot = self.slot[v]
            self.change.gone[slot] = 1
            self.change.units[self.net.slot_layer[slot]] -= 1
            for pos in range(self.net.n_hidden):
                self.change.children[self.net.member[pos]] -= self.net.edge[
                    self.net.n_visible + slot, self.net.member[pos]
                ]
        log_ratio = self.change.log_skip_ratio(0, NULL, NULL)
        self.change.clear()
        return log_ratio

    cdef void carry_out(self) noexcept nogil:
        """Take the units away, those above first so that no layer below vanishes before."""
        cdef Py_ssize_t v
        for v in range(self.n_units - 1, -1, -1):
            self.net.remove(self.slot[v])
