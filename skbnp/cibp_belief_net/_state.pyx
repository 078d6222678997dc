"""What a chain of the belief network is at: units, edges, activations, and their joint density.

It can be built, checked and weighed without any move; those are in ``moves``.
"""

from libc.math cimport log, sqrt, tanh
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.cibp_belief_net._laws cimport (
    BIAS_MEAN, BIAS_PRECISION, CONCENTRATION, MASS, NOISE_RATE, WEIGHT_MEAN, WEIGHT_PRECISION,
    Laws, log_normal,
)
from skbnp.mcmc.chain cimport State
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI, lgamma, log_gamma_density
from skbnp.processes.ibp cimport dishes_per_mass, log_dish

from skbnp.cibp_belief_net._arrays import grown
from skbnp.cibp_belief_net._model import HYPER, checked_state


cdef class Network(State):
    """Units, edges, weights, activations, hyperparameters and row clusters of one chain.

    Invariant between moves: ``member[layer_start[l]:layer_start[l + 1]]`` are the slots of layer
    l, layers 1..n_layers - 1 have units and those above none; ``n_children`` and ``n_near`` count
    the columns of ``edge``; a weight is 0 where there is no edge; rows and columns of free slots
    are 0; ``post`` is tanh(``pre`` / 2); clusters 0..n_clusters - 1 hold rows.
    """

    def __init__(self, visible, prior, state, double log_jacobian=0.0):
        """A network in ``state``, a dict as ``_model`` describes it for ``prior``.

        ``visible`` is (n_samples, n_features), NaN where missing.
        """
        self.laws = Laws(prior)
        self.n_samples, self.n_visible = visible.shape
        self.stride = max(1, self.n_samples)
        self.log_jacobian = log_jacobian
        missing = [np.flatnonzero(np.isnan(column)) for column in np.asarray(visible).T]
        self.cell_start = np.cumsum([0, *map(len, missing)], dtype=np.intp)
        self.cell_row = np.concatenate([*missing, []]).astype(np.intp)
        self.set_state(state)
        seen = ~np.isnan(visible)
        if not np.array_equal(self.visible_activations()[seen], visible[seen]):
            raise ValueError("visible of the state must be the data where they are observed")

    # -- in and out ---------------------------------------------------------------------------

    def set_state(self, state):
        """Take a state over; a ValueError, and no change, if it does not fit."""
        state = checked_state(state, self.laws.prior, self.n_samples)
        widths = state["widths"]
        n, d, n_hidden = self.n_samples, self.n_visible, int(widths[1:].sum())
        self.visible, self.mean = np.zeros((d, self.stride)), np.zeros(self.stride)
        np.asarray(self.visible)[:, :n] = state["visible"].T
        self.n_hidden = self.n_layers = self.n_free = 0
        self.pre = self.post = np.zeros((0, self.stride))
        self.bias = self.precision = np.zeros(d)
        self.weight, self.edge = np.zeros((d, 0)), np.zeros((d, 0), dtype=np.uint8)
        self.slot_layer = self.n_children = self.n_near = np.zeros(0, dtype=np.intp)
        self.member = self.free_slot = np.zeros(0, dtype=np.intp)
        self.layer_start = np.zeros(2, dtype=np.intp)
        self.hyper = np.zeros((len(HYPER), 0))
        self.n_clusters = 0
        self.cluster_mean = self.cluster_precision = np.zeros((0, 0))
        self.cluster_rate = np.zeros(0)
        self.label = np.zeros(n, dtype=np.intp)
        self.cluster_count = np.zeros(n + 1, dtype=np.intp)
        if self.laws.has_clusters:
            self.label = state["row_cluster"].copy()
            self.n_clusters = len(state["cluster_mean"])
            count = np.bincount(state["row_cluster"], minlength=n + 1)
            self.cluster_count = count.astype(np.intp)
        self.reserve_units(n_hidden + 1)
        self.reserve_layers(len(widths) + 1)
        self.reserve_clusters(self.n_clusters + 1)
        self.n_layers = 1
        for layer, width in enumerate(widths):
            np.asarray(self.hyper)[:, layer] = [state[name][layer] for name in HYPER]
            for _ in range(width if layer else 0):
                self.insert(layer)
        slots, units = self.hidden_slots(), self.unit_places()
        np.asarray(self.bias)[units] = state["biases"]
        np.asarray(self.precision)[units] = state["unit_precision"]
        np.asarray(self.pre)[slots, :n] = state["pre_activations"].T
        for slot in slots:
            self.squash(slot)
        parents, children = state["edges"].T
        for parent, child in zip(units[parents] - d, units[children], strict=True):
            self.link(child, parent)
        np.asarray(self.weight)[units[children], units[parents] - d] = state["weights"]
        if self.laws.has_clusters and self.n_layers == self.laws.deepest + 1:
            top = slots[self.layer_start[self.laws.deepest]:]
            held = slice(self.n_clusters)
            np.asarray(self.cluster_mean)[top, held] = state["cluster_mean"].T
            np.asarray(self.cluster_precision)[top, held] = state["cluster_precision"].T
            np.asarray(self.cluster_rate)[top] = state["cluster_rate"]

    def hidden_slots(self):
        """Slots in the order of the hidden units' numbers."""
        return np.array(self.member[:self.n_hidden])

    def unit_places(self):
        """Where each unit of the state, visible ones first, has its bias here."""
        return np.concatenate([np.arange(self.n_visible), self.n_visible + self.hidden_slots()])

    def get_state(self):
        """The state as ``_model`` describes it, copies."""
        n = self.n_samples
        return self.parameters() | {
            "visible": self.visible_activations(),
            "pre_activations": np.asarray(self.pre)[self.hidden_slots(), :n].T.copy(),
        }

    def parameters(self):
        """The same without the rows' activations."""
        slots, units = self.hidden_slots(), self.unit_places()
        starts = np.asarray(self.layer_start)[1:self.n_layers + 1]
        number = np.zeros(self.pre.shape[0], dtype=np.int32)
        number[slots] = np.arange(self.n_visible, self.n_visible + self.n_hidden)
        edge = np.asarray(self.edge)[units]
        children, at = np.nonzero(edge)
        parents = number[at]
        order = np.lexsort((parents, children))
        top = slots[slots.size:]
        if self.n_layers == self.laws.deepest + 1:
            top = slots[self.layer_start[self.laws.deepest]:]
        state = {
            "widths": np.concatenate([[self.n_visible], np.diff(starts)]).astype(np.intp),
            "edges": np.stack([parents, children], axis=1).astype(np.int32)[order],
            "weights": np.asarray(self.weight)[units[children], at][order],
            "biases": np.asarray(self.bias)[units],
            "unit_precision": np.asarray(self.precision)[units],
        }
        for name, values in zip(HYPER, np.asarray(self.hyper), strict=True):
            state[name] = values[:self.n_layers].copy()
        if self.laws.has_clusters:
            held = slice(self.n_clusters)
            state["row_cluster"] = np.array(self.label)
            state["cluster_mean"] = np.asarray(self.cluster_mean)[top, held].T.copy()
            state["cluster_precision"] = np.asarray(self.cluster_precision)[top, held].T.copy()
            state["cluster_rate"] = np.asarray(self.cluster_rate)[top]
        return state

    def pre_activations(self, rows):
        """Those of all units in some rows, missing cells filled, (n_rows, n_units)."""
        visible, hidden = np.asarray(self.visible), np.asarray(self.pre)[self.hidden_slots()]
        return np.vstack([visible[:, rows], hidden[:, rows]]).T

    def visible_activations(self):
        """Pre-activations of the visible units, missing cells filled, (n_samples, n_features)."""
        return np.asarray(self.visible)[:, :self.n_samples].T.copy()

    def data(self):
        """The data with NaN where missing, a copy."""
        X = self.visible_activations()
        feature = np.repeat(np.arange(self.n_visible), np.diff(self.cell_start))
        X[np.asarray(self.cell_row), feature] = np.nan
        return X

    # -- where things are ---------------------------------------------------------------------

    cdef Py_ssize_t n_slots(self) noexcept nogil:
        """Number of hidden units that there is room for; it grows with ``reserve_units``."""
        return self.pre.shape[0]

    cdef Py_ssize_t width(self, Py_ssize_t layer) noexcept nogil:
        """Number of units of a layer, 0 above the last."""
        if layer == 0:
            return self.n_visible
        if layer >= self.n_layers:
            return 0
        return self.layer_start[layer + 1] - self.layer_start[layer]

    cdef Py_ssize_t unit(self, Py_ssize_t layer, Py_ssize_t i) noexcept nogil:
        """The i-th unit of a layer."""
        return i if layer == 0 else self.n_visible + self.member[self.layer_start[layer] + i]

    cdef Py_ssize_t slot(self, Py_ssize_t layer, Py_ssize_t i) noexcept nogil:
        """The slot of the i-th unit of a hidden layer."""
        return self.member[self.layer_start[layer] + i]

    cdef Py_ssize_t layer_of(self, Py_ssize_t unit) noexcept nogil:
        return 0 if unit < self.n_visible else self.slot_layer[unit - self.n_visible]

    cdef Py_ssize_t first_above(self, Py_ssize_t layer) noexcept nogil:
        """Where in ``member`` the candidate parents of a layer's units begin."""
        return self.layer_start[min(layer + 1, self.n_layers)]

    cdef Py_ssize_t end_above(self, Py_ssize_t layer) noexcept nogil:
        """Where they end: with the next layer, or not at all with skip connections."""
        return self.n_hidden if self.laws.skips else self.layer_start[min(layer + 2, self.n_layers)]

    cdef Py_ssize_t offered(self, Py_ssize_t layer) noexcept nogil:
        """Number of units that those of the layer above are offered to."""
        if not self.laws.skips:
            return self.width(layer)
        return self.n_visible + (
            0 if layer == 0 else self.layer_start[min(layer + 1, self.n_layers)]
        )

    cdef double* activity(self, Py_ssize_t unit) noexcept nogil:
        """Pre-activations of a unit."""
        if unit < self.n_visible:
            return &self.visible[unit, 0]
        return &self.pre[unit - self.n_visible, 0]

    cdef bint follows_clusters(self, Py_ssize_t layer) noexcept nogil:
        """Whether the units of a layer take their law from the row clusters."""
        return self.laws.has_clusters and layer == self.laws.deepest

    # -- room ---------------------------------------------------------------------------------

    cdef int reserve_units(self, Py_ssize_t n_new) except -1 nogil:
        """Room for so many hidden units more."""
        if self.n_free >= n_new:
            return 0
        with gil:
            old = self.pre.shape[0]
            room = max(8, 2 * old, old + n_new)
            d = self.n_visible
            for name in ("pre", "post"):
                self._grow(name, (room, self.stride))
            for name in ("bias", "precision"):
                self._grow(name, (d + room,))
            for name in ("weight", "edge"):
                self._grow(name, (d + room, room))
            for name in ("slot_layer", "n_children", "n_near", "member", "cluster_rate"):
                self._grow(name, (room,))
            for name in ("cluster_mean", "cluster_precision"):
                self._grow(name, (room, self.cluster_mean.shape[1]))
            self._grow("free_slot", (room,))
            for slot in range(room - 1, old - 1, -1):
                self.free_slot[self.n_free] = slot
                self.n_free += 1
        return 0

    cdef int reserve_layers(self, Py_ssize_t n_layers) except -1 nogil:
        if self.hyper.shape[1] >= n_layers:
            return 0
        with gil:
            room = max(8, 2 * n_layers)
            self._grow("hyper", (len(HYPER), room))
            self._grow("layer_start", (room + 2,))
            np.asarray(self.layer_start)[self.n_layers + 1:] = self.n_hidden
        return 0

    cdef int reserve_clusters(self, Py_ssize_t n_clusters) except -1 nogil:
        if self.cluster_mean.shape[1] >= n_clusters:
            return 0
        with gil:
            for name in ("cluster_mean", "cluster_precision"):
                self._grow(name, (self.pre.shape[0], 2 * n_clusters))
        return 0

    def _grow(self, str name, shape):
        setattr(self, name, grown(getattr(self, name), shape))

    # -- bookkeeping --------------------------------------------------------------------------

    cdef Py_ssize_t insert(self, Py_ssize_t layer) noexcept nogil:
        """A new unit of a layer, at most one above the last; its slot. Room is there."""
        cdef Py_ssize_t slot, at, pos
        self.n_free -= 1
        slot = self.free_slot[self.n_free]
        if layer == self.n_layers:
            self.layer_start[layer] = self.layer_start[layer + 1] = self.n_hidden
            self.n_layers += 1
        at = self.layer_start[layer + 1]
        for pos in range(self.n_hidden, at, -1):
            self.member[pos] = self.member[pos - 1]
        self.member[at] = slot
        for pos in range(layer + 1, self.n_layers + 1):
            self.layer_start[pos] += 1
        self.n_hidden += 1
        self.slot_layer[slot] = layer
        return slot

    cdef void remove(self, Py_ssize_t slot) noexcept nogil:
        """Take a unit away with all its edges; a last layer that it leaves empty goes too."""
        cdef Py_ssize_t layer = self.slot_layer[slot], at = self.layer_start[layer], pos
        cdef Py_ssize_t unit = self.n_visible + slot
        for pos in range(self.n_hidden):
            self.unlink(unit, self.member[pos])
        for pos in range(self.n_visible):
            self.unlink(pos, slot)
        for pos in range(self.n_hidden):
            self.unlink(self.n_visible + self.member[pos], slot)
        while self.member[at] != slot:
            at += 1
        for pos in range(at, self.n_hidden - 1):
            self.member[pos] = self.member[pos + 1]
        for pos in range(layer + 1, self.n_layers + 1):
            self.layer_start[pos] -= 1
        self.n_hidden -= 1
        self.slot_layer[slot] = 0
        self.free_slot[self.n_free] = slot
        self.n_free += 1
        while self.n_layers > 1 and self.width(self.n_layers - 1) == 0:
            self.n_layers -= 1

    cdef void link(self, Py_ssize_t child, Py_ssize_t slot) noexcept nogil:
        """An edge from a slot to a child, if there is none."""
        if self.edge[child, slot]:
            return
        self.edge[child, slot] = 1
        self.n_children[slot] += 1
        self.n_near[slot] += self.slot_layer[slot] == self.layer_of(child) + 1

    cdef void unlink(self, Py_ssize_t child, Py_ssize_t slot) noexcept nogil:
        """Take the edge from a slot to a child away, if there is one."""
        if not self.edge[child, slot]:
            return
        self.edge[child, slot] = 0
        self.weight[child, slot] = 0.0
        self.n_children[slot] -= 1
        self.n_near[slot] -= self.slot_layer[slot] == self.layer_of(child) + 1

    cdef void squash(self, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t i
        cdef const double* a = &self.pre[slot, 0]
        cdef double* u = &self.post[slot, 0]
        for i in range(self.n_samples):
            u[i] = tanh(0.5 * a[i])

    cdef void add_inputs(self, Py_ssize_t unit, double* mean) noexcept nogil:
        """mean (n_samples,) += the weighted activations of the unit's parents."""
        cdef Py_ssize_t pos, slot
        for pos in range(self.n_hidden):
            slot = self.member[pos]
            if self.edge[unit, slot]:
                linalg.axpy(
                    self.n_samples, self.weight[unit, slot], &self.post[slot, 0], mean
                )

    cdef void draw_visible(self, bitgen_t* rng) noexcept nogil:
        """All visible units anew given the rest of the state, cells that were observed included."""
        cdef Py_ssize_t d, i
        cdef double* mean = &self.mean[0]
        for d in range(self.n_visible):
            for i in range(self.n_samples):
                mean[i] = self.bias[d] + draws.normal(rng) / sqrt(self.precision[d])
            self.add_inputs(d, mean)
            memcpy(&self.visible[d, 0], mean, self.n_samples * sizeof(double))

    # -- densities ----------------------------------------------------------------------------

    cpdef double log_joint(self):
        """log p(X, state), hidden units as a set, in the units that the Jacobian gives."""
        return self._log_prior() + self._log_data() + self.log_jacobian

    cdef double _log_structure(self) noexcept nogil:
        """Log probability of the edges, hidden units as a set: equation (B4.1)."""
        cdef Py_ssize_t layer, pos, slot
        cdef double total = 0.0, mass, beta
        for layer in range(min(self.n_layers, self.laws.deepest)):
            mass, beta = self.hyper[MASS, layer], self.hyper[CONCENTRATION, layer]
            total -= mass * dishes_per_mass(self.width(layer), beta)
            for pos in range(self.width(layer + 1)):
                slot = self.member[self.layer_start[layer + 1] + pos]
                total += log(mass * beta) + log_dish(
                    self.n_children[slot], self.offered(layer), beta
                )
        return total

    cdef double _log_prior(self) noexcept nogil:
        """Log density of structure, weights and all other parameters."""
        cdef Py_ssize_t layer, i, unit, pos
        cdef int which
        cdef double total = self._log_structure(), b
        for layer in range(self.n_layers):
            for which in range(MASS, CONCENTRATION + 1):
                total += self.laws.log_restaurant(which, layer)
            total += self.laws.log_normal_gamma(self.hyper, WEIGHT_MEAN, layer)
            total += self.laws.log_normal_gamma(self.hyper, BIAS_MEAN, layer)
            b = self.hyper[NOISE_RATE, layer]
            total += self.laws.log_noise_rate(b)
            if self.follows_clusters(layer):
                continue
            total -= self.width(layer) * self.laws.log_below_bound(b)
            for i in range(self.width(layer)):
                unit = self.unit(layer, i)
                total += self.laws.log_precision(self.precision[unit], b)
                total += log_normal(
                    self.bias[unit], self.hyper[BIAS_MEAN, layer],
                    self.hyper[BIAS_PRECISION, layer],
                )
                for pos in range(self.n_hidden):
                    if self.edge[unit, self.member[pos]]:
                        total += log_normal(
                            self.weight[unit, self.member[pos]], self.hyper[WEIGHT_MEAN, layer],
                            self.hyper[WEIGHT_PRECISION, layer],
                        )
        return self._log_clusters(total) if self.laws.has_clusters else total

    cdef double _log_clusters(self, double total) noexcept nogil:
        """``total`` + log density of the row clusters and their laws."""
        cdef Py_ssize_t i, c, slot
        cdef double nu, s
        total += self.n_clusters * log(self.laws.row_concentration)
        total += lgamma(self.laws.row_concentration)
        total -= lgamma(self.laws.row_concentration + self.n_samples)
        for c in range(self.n_clusters):
            total += lgamma(<double> self.cluster_count[c])
        for i in range(self.width(self.laws.deepest)):
            slot = self.unit(self.laws.deepest, i) - self.n_visible
            s = self.cluster_rate[slot]
            total += log_gamma_density(s, self.laws.cluster[2], self.laws.cluster[3])
            for c in range(self.n_clusters):
                nu = self.cluster_precision[slot, c]
                total += log_gamma_density(nu, self.laws.cluster[1], s)
                total += log_normal(self.cluster_mean[slot, c], 0.0, self.laws.cluster[0] * nu)
        return total

    cdef double _log_data(self) noexcept nogil:
        """Log density of all pre-activations given everything else: O(E N)."""
        cdef Py_ssize_t layer, i, j, unit, slot
        cdef double total = 0.0, squares, nu
        cdef double* mean = &self.mean[0]
        cdef const double* a
        for layer in range(self.n_layers):
            for i in range(self.width(layer)):
                unit = self.unit(layer, i)
                a = self.activity(unit)
                if self.follows_clusters(layer):
                    slot = unit - self.n_visible
                    for j in range(self.n_samples):
                        total += log_normal(
                            a[j], self.cluster_mean[slot, self.label[j]],
                            self.cluster_precision[slot, self.label[j]],
                        )
                    continue
                for j in range(self.n_samples):
                    mean[j] = self.bias[unit]
                self.add_inputs(unit, mean)
                squares, nu = 0.0, self.precision[unit]
                for j in range(self.n_samples):
                    squares += (a[j] - mean[j]) * (a[j] - mean[j])
                total += 0.5 * (self.n_samples * (log(nu) - LOG_2_PI) - nu * squares)
        return total
