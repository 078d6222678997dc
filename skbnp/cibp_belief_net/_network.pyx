"""What a chain of the belief network holds: units, edges, activations, and their joint density.

The moves are in ``_clusters``, ``_rows`` and ``_sampler``.
"""

from libc.math cimport isfinite, log, sqrt, tanh

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log_gamma_cdf, log_gamma_density
from skbnp.processes.cibp cimport dishes_per_mass, log_dish

from skbnp.cibp_belief_net._model import HYPER, checked_state

cdef double LOG_2_PI = 1.8378770664093454836


cdef double log_normal(double x, double mean, double precision) noexcept nogil:
    """Log density of N(mean, 1 / precision)."""
    return 0.5 * (log(precision) - LOG_2_PI - precision * (x - mean) * (x - mean))


cdef class Network:
    """State of one chain.

    Invariant between moves: ``member[layer_start[l]:layer_start[l + 1]]`` are the slots of layer
    l, layers 1..n_layers - 1 have units and those above none; ``n_children`` and ``n_near`` count
    the columns of ``edge``; a weight is 0 where there is no edge; rows and columns of free slots
    are 0; ``post`` is tanh(``pre`` / 2); clusters 0..n_clusters - 1 hold rows.
    """

    def __init__(self, visible, prior, state, bit_generator):
        """``visible`` is (n_samples, n_features), NaN where missing."""
        self._bit_generator = bit_generator
        self._rng = draws.borrow(bit_generator)
        self.prior = prior
        self.n_samples, self.n_visible = visible.shape
        self.stride = max(1, self.n_samples)
        self.deepest, self.max_units = prior.deepest, prior.max_units
        self.skips, self.has_clusters = prior.skip_connections, prior.row_clusters
        self._read_prior(prior)
        missing = [np.flatnonzero(np.isnan(column)) for column in np.asarray(visible).T]
        self.cell_start = np.cumsum([0, *map(len, missing)], dtype=np.intp)
        self.cell_row = np.concatenate([*missing, []]).astype(np.intp)
        self._put(checked_state(state, prior, self.n_samples))
        seen = ~np.isnan(visible)
        if not np.array_equal(np.asarray(self.visible)[:, :self.n_samples].T[seen], visible[seen]):
            raise ValueError("visible of the state must be the data where they are observed")

    def _read_prior(self, prior):
        names = ("mass", "concentration")
        for which, name in enumerate(names):
            self.is_given[which] = getattr(prior, name) is not None
        self.bounds = np.array([getattr(prior, f"{name}_bounds") for name in names])
        n_given = max(len(getattr(prior, name) or (0,)) for name in names)
        self.given = np.array(
            [[prior.bounds(name, m)[0] for m in range(n_given)] for name in names]
        )
        self.weight_law, self.bias_law = np.array(prior.weight_prior), np.array(prior.bias_prior)
        self.noise_law = np.array(prior.noise_prior)
        self.cluster_law = np.array(prior.cluster_prior)
        self.highest_precision = prior.highest_precision
        self.row_concentration = prior.row_concentration

    # -- in and out ---------------------------------------------------------------------------

    def _put(self, state):
        """Take a checked state over."""
        widths = state["widths"]
        n, d, n_hidden = self.n_samples, self.n_visible, int(widths[1:].sum())
        self.visible, self.row_scratch = np.zeros((d, self.stride)), np.zeros(self.stride)
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
        if self.has_clusters:
            self.label = state["row_cluster"].copy()
            self.n_clusters = len(state["cluster_mean"])
            count = np.bincount(state["row_cluster"], minlength=n + 1)
            self.cluster_count = count.astype(np.intp)
        self._reserve_units(n_hidden + 1)
        self._reserve_layers(len(widths) + 1)
        self._reserve_clusters(self.n_clusters + 1)
        self.n_layers = 1
        for layer, width in enumerate(widths):
            np.asarray(self.hyper)[:, layer] = [state[name][layer] for name in HYPER]
            for _ in range(width if layer else 0):
                self._insert(layer)
        slots = self._slots()
        units = self._units()
        np.asarray(self.bias)[units] = state["biases"]
        np.asarray(self.precision)[units] = state["unit_precision"]
        np.asarray(self.pre)[slots, :n] = state["pre_activations"].T
        for slot in slots:
            self._squash(slot)
        parents, children = state["edges"].T
        for parent, child in zip(units[parents] - d, units[children], strict=True):
            self._link(child, parent)
        np.asarray(self.weight)[units[children], units[parents] - d] = state["weights"]
        if self.has_clusters and self.n_layers == self.deepest + 1:
            top = self._slots()[self.layer_start[self.deepest]:]
            held = slice(self.n_clusters)
            np.asarray(self.cluster_mean)[top, held] = state["cluster_mean"].T
            np.asarray(self.cluster_precision)[top, held] = state["cluster_precision"].T
            np.asarray(self.cluster_rate)[top] = state["cluster_rate"]

    def _slots(self):
        """Slots in the order of the hidden units' numbers."""
        return np.array(self.member[:self.n_hidden])

    def _units(self):
        """Where each unit of the state, visible ones first, has its bias here."""
        return np.concatenate([np.arange(self.n_visible), self.n_visible + self._slots()])

    def _state(self, bint with_rows=True):
        """The state as ``_model`` describes it, copies; without what is as long as the data."""
        slots, units, n = self._slots(), self._units(), self.n_samples
        starts = np.asarray(self.layer_start)[1:self.n_layers + 1]
        number = np.zeros(self.pre.shape[0], dtype=np.int32)
        number[slots] = np.arange(self.n_visible, self.n_visible + self.n_hidden)
        edge = np.asarray(self.edge)[units]
        children, at = np.nonzero(edge)
        parents = number[at]
        order = np.lexsort((parents, children))
        top = slots[slots.size:]
        if self.n_layers == self.deepest + 1:
            top = slots[self.layer_start[self.deepest]:]
        state = {
            "widths": np.concatenate([[self.n_visible], np.diff(starts)]).astype(np.intp),
            "edges": np.stack([parents, children], axis=1).astype(np.int32)[order],
            "weights": np.asarray(self.weight)[units[children], at][order],
            "biases": np.asarray(self.bias)[units],
            "unit_precision": np.asarray(self.precision)[units],
        }
        for name, values in zip(HYPER, np.asarray(self.hyper), strict=True):
            state[name] = values[:self.n_layers].copy()
        if self.has_clusters:
            held = slice(self.n_clusters)
            state["row_cluster"] = np.array(self.label)
            state["cluster_mean"] = np.asarray(self.cluster_mean)[top, held].T.copy()
            state["cluster_precision"] = np.asarray(self.cluster_precision)[top, held].T.copy()
            state["cluster_rate"] = np.asarray(self.cluster_rate)[top]
        if with_rows:
            state["visible"] = np.asarray(self.visible)[:, :n].T.copy()
            state["pre_activations"] = np.asarray(self.pre)[slots, :n].T.copy()
        return state

    # -- where things are ---------------------------------------------------------------------

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

    cdef Py_ssize_t _layer_of(self, Py_ssize_t unit) noexcept nogil:
        return 0 if unit < self.n_visible else self.slot_layer[unit - self.n_visible]

    cdef Py_ssize_t offered(self, Py_ssize_t layer) noexcept nogil:
        """Number of units that those of the layer above are offered to."""
        if not self.skips:
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
        return self.has_clusters and layer == self.deepest

    # -- room ---------------------------------------------------------------------------------

    cdef int _reserve_units(self, Py_ssize_t n_new) except -1 nogil:
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
            self._grown()
        return 0

    cdef int _reserve_layers(self, Py_ssize_t n_layers) except -1 nogil:
        if self.hyper.shape[1] >= n_layers:
            return 0
        with gil:
            room = max(8, 2 * n_layers)
            self._grow("hyper", (len(HYPER), room))
            self._grow("layer_start", (room + 2,))
            np.asarray(self.layer_start)[self.n_layers + 1:] = self.n_hidden
            self._layers_grown()
        return 0

    cdef int _reserve_clusters(self, Py_ssize_t n_clusters) except -1 nogil:
        if self.cluster_mean.shape[1] >= n_clusters:
            return 0
        with gil:
            for name in ("cluster_mean", "cluster_precision"):
                self._grow(name, (self.pre.shape[0], 2 * n_clusters))
        return 0

    def _grow(self, str name, shape):
        """Replace an array by a larger one that begins with it."""
        old = np.asarray(getattr(self, name))
        new = np.zeros(shape, dtype=old.dtype)
        new[tuple(slice(n) for n in old.shape)] = old
        setattr(self, name, new)

    def _grown(self):
        """For subclasses: the number of slots has changed."""

    def _layers_grown(self):
        """For subclasses: the number of layers that there is room for has changed."""

    # -- bookkeeping --------------------------------------------------------------------------

    cdef Py_ssize_t _insert(self, Py_ssize_t layer) noexcept nogil:
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

    cdef void _remove(self, Py_ssize_t slot) noexcept nogil:
        """Take a unit away with all its edges; a last layer that it leaves empty goes too."""
        cdef Py_ssize_t layer = self.slot_layer[slot], at = self.layer_start[layer], pos
        cdef Py_ssize_t unit = self.n_visible + slot
        for pos in range(self.n_hidden):
            self._unlink(unit, self.member[pos])
        for pos in range(self.n_visible):
            self._unlink(pos, slot)
        for pos in range(self.n_hidden):
            self._unlink(self.n_visible + self.member[pos], slot)
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

    cdef void _link(self, Py_ssize_t child, Py_ssize_t slot) noexcept nogil:
        """An edge from a slot to a child, if there is none."""
        if self.edge[child, slot]:
            return
        self.edge[child, slot] = 1
        self.n_children[slot] += 1
        self.n_near[slot] += self.slot_layer[slot] == self._layer_of(child) + 1

    cdef void _unlink(self, Py_ssize_t child, Py_ssize_t slot) noexcept nogil:
        """Take the edge from a slot to a child away, if there is one."""
        if not self.edge[child, slot]:
            return
        self.edge[child, slot] = 0
        self.weight[child, slot] = 0.0
        self.n_children[slot] -= 1
        self.n_near[slot] -= self.slot_layer[slot] == self._layer_of(child) + 1

    cdef void _squash(self, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t i
        cdef const double* a = &self.pre[slot, 0]
        cdef double* u = &self.post[slot, 0]
        for i in range(self.n_samples):
            u[i] = tanh(0.5 * a[i])

    cdef void _add_inputs(self, Py_ssize_t unit, double* mean) noexcept nogil:
        """mean (n_samples,) += the weighted activations of the unit's parents."""
        cdef Py_ssize_t pos, slot
        for pos in range(self.n_hidden):
            slot = self.member[pos]
            if self.edge[unit, slot]:
                linalg.axpy(
                    self.n_samples, self.weight[unit, slot], &self.post[slot, 0], mean
                )

    # -- the prior ----------------------------------------------------------------------------

    cdef double _low(self, int which, Py_ssize_t layer) noexcept nogil:
        """Least value of the mass or the concentration of a layer."""
        if self.is_given[which]:
            return self.given[which, min(layer, self.given.shape[1] - 1)]
        return self.bounds[which, min(layer, 1), 0]

    cdef double _high(self, int which, Py_ssize_t layer) noexcept nogil:
        if self.is_given[which]:
            return self.given[which, min(layer, self.given.shape[1] - 1)]
        return self.bounds[which, min(layer, 1), 1]

    cdef void _draw_hyper(self, Py_ssize_t layer) noexcept nogil:
        """Hyperparameters of a layer from their priors."""
        cdef int which
        cdef double low
        for which in range(MASS, CONCENTRATION + 1):
            low = self._low(which, layer)
            self.hyper[which, layer] = low + draws.uniform(self._rng) * (
                self._high(which, layer) - low
            )
        self._draw_normal_gamma(WEIGHT_MEAN, layer, &self.weight_law[0], 0.0, 0.0, 0.0)
        self._draw_normal_gamma(BIAS_MEAN, layer, &self.bias_law[0], 0.0, 0.0, 0.0)
        self.hyper[NOISE_RATE, layer] = draws.draw_gamma(
            self._rng, self.noise_law[1], self.noise_law[2]
        )

    cdef void _draw_normal_gamma(
        self, int which, Py_ssize_t layer, const double* law, double n, double total,
        double squares,
    ) noexcept nogil:
        """Mean and precision of a layer's weights or biases given n of them.

        ``total`` is their sum and ``squares`` the sum of squared distances from their mean.
        """
        cdef double centre = law[0], kappa = law[1], mean = total / n if n > 0.0 else centre
        cdef double rate = law[3] + 0.5 * squares
        rate += 0.5 * kappa * n / (kappa + n) * (mean - centre) * (mean - centre)
        cdef double rho = draws.draw_gamma(self._rng, law[2] + 0.5 * n, rate)
        self.hyper[which + 1, layer] = rho
        self.hyper[which, layer] = (kappa * centre + total) / (kappa + n) + draws.normal(
            self._rng
        ) / sqrt((kappa + n) * rho)

    # -- densities ----------------------------------------------------------------------------

    cdef double _log_structure(self) noexcept nogil:
        """Log probability of the edges, hidden units as a set."""
        cdef Py_ssize_t layer, pos, slot
        cdef double total = 0.0, mass, beta
        for layer in range(min(self.n_layers, self.deepest)):
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
        cdef Py_ssize_t layer, i, unit, pos, c
        cdef int which
        cdef double total = self._log_structure(), b, nu, span
        for layer in range(self.n_layers):
            for which in range(MASS, CONCENTRATION + 1):
                span = self._high(which, layer) - self._low(which, layer)
                if not self.is_given[which]:
                    total -= log(span)
            total += self._log_normal_gamma(WEIGHT_MEAN, layer, &self.weight_law[0])
            total += self._log_normal_gamma(BIAS_MEAN, layer, &self.bias_law[0])
            b = self.hyper[NOISE_RATE, layer]
            total += log_gamma_density(b, self.noise_law[1], self.noise_law[2])
            if self.follows_clusters(layer):
                continue
            if isfinite(self.highest_precision):
                total -= self.width(layer) * log_gamma_cdf(
                    self.noise_law[0], b, self.highest_precision
                )
            for i in range(self.width(layer)):
                unit = self.unit(layer, i)
                total += log_gamma_density(self.precision[unit], self.noise_law[0], b)
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
        if self.has_clusters:
            total += self.n_clusters * log(self.row_concentration)
            total += lgamma(self.row_concentration)
            total -= lgamma(self.row_concentration + self.n_samples)
            for c in range(self.n_clusters):
                total += lgamma(<double> self.cluster_count[c])
            for i in range(self.width(self.deepest)):
                pos = self.unit(self.deepest, i) - self.n_visible
                b = self.cluster_rate[pos]
                total += log_gamma_density(b, self.cluster_law[2], self.cluster_law[3])
                for c in range(self.n_clusters):
                    nu = self.cluster_precision[pos, c]
                    total += log_gamma_density(nu, self.cluster_law[1], b)
                    total += log_normal(self.cluster_mean[pos, c], 0.0, self.cluster_law[0] * nu)
        return total

    cdef double _log_normal_gamma(
        self, int which, Py_ssize_t layer, const double* law
    ) noexcept nogil:
        cdef double rho = self.hyper[which + 1, layer]
        return log_gamma_density(rho, law[2], law[3]) + log_normal(
            self.hyper[which, layer], law[0], law[1] * rho
        )

    cdef double _log_data(self) noexcept nogil:
        """Log density of all pre-activations given everything else: O(E N)."""
        cdef Py_ssize_t layer, i, j, unit, slot
        cdef double total = 0.0, squares, nu
        cdef double* mean = &self.row_scratch[0]
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
                self._add_inputs(unit, mean)
                squares, nu = 0.0, self.precision[unit]
                for j in range(self.n_samples):
                    squares += (a[j] - mean[j]) * (a[j] - mean[j])
                total += 0.5 * (self.n_samples * (log(nu) - LOG_2_PI) - nu * squares)
        return total
