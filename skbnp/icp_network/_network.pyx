"""The graph with weights, biases, precisions and the activations of all rows: the whole state."""

from libc.math cimport isnan, log
from libc.string cimport memcpy

import numpy as np

from skbnp.icp_network._graph cimport LATENT, ONE_VARIANCE, Graph
from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.numerics cimport linalg
from skbnp.numerics.special cimport log_gamma_density

from skbnp.icp_network._model import checked_state

cdef double LOG_2_PI = 1.8378770664093454836


cdef class Network(Graph):
    """State of one chain; rows of ``pre`` and ``post`` are nodes.

    Invariant between moves, beside that of ``Graph``: a weight is 0 where there is no edge;
    ``post`` is tanh(``pre`` / 2), for inputs ``pre`` itself.
    """

    def __init__(self, visible, prior, state, bit_generator, labels, int fault):
        """``visible`` is (n_samples, n_observed), NaN where missing; latents may be anything."""
        super().__init__(prior, state, bit_generator, fault)
        self.n_samples = visible.shape[0]
        self.stride = max(1, self.n_samples)
        self.weight_precision = 1.0 / prior.weight_variance
        self.input_weight_precision = 1.0 / prior.variance_from_inputs
        self.bias_precision = 1.0 / prior.bias_variance
        for i in range(2):
            self.noise_law[i] = prior.noise_prior[i]
        is_latent = np.asarray(self.role) == LATENT
        self.n_latents = is_latent.sum()
        self.first_latent = np.argmax(is_latent) if self.n_latents else 0
        if self.n_latents and not is_latent[self.first_latent:][:self.n_latents].all():
            raise ValueError("latents must be next to each other")
        if self.n_latents:
            self.label = np.array(labels, dtype=np.intp)
            n_classes = max(2, self.n_latents)
            if self.label.shape[0] != self.n_samples or not np.isin(
                labels, np.arange(n_classes)
            ).all():
                raise ValueError("labels must be those of the latents, one for each row")
        else:
            self.label = np.zeros(0, dtype=np.intp)
        missing = [np.flatnonzero(np.isnan(column)) for column in np.asarray(visible).T]
        if any(len(rows) and not self.role[i] == 0 for i, rows in enumerate(missing)):
            raise ValueError("visible must not be NaN but in modelled columns")
        self.cell_start = np.cumsum([0, *map(len, missing)], dtype=np.intp)
        self.cell_row = np.concatenate([*missing, []]).astype(np.intp)
        self._put(checked_state(state, prior, self.n_samples))
        seen = ~np.isnan(visible) & ~is_latent
        if not np.array_equal(self._visible()[seen], visible[seen]):
            raise ValueError("visible of the state must be the data where they are observed")

    # -- in and out ---------------------------------------------------------------------------

    def _put(self, state):
        """Take a checked state over."""
        n, d = self.n_samples, self.n_observed
        for name in ("pre", "post", "residual"):
            setattr(self, name, np.zeros((d, self.stride)))
        self.bias, self.precision, self.weight = np.zeros(d), np.ones(d), np.zeros((d, d))
        slots = self._put_graph(state)
        np.asarray(self.bias)[slots] = state["biases"]
        np.asarray(self.precision)[slots] = state["unit_precision"]
        np.asarray(self.pre)[slots, :n] = np.hstack([state["visible"], state["pre_activations"]]).T
        for slot in slots:
            self._squash(slot)
        parents, children = state["edges"].T
        np.asarray(self.weight)[slots[children], slots[parents]] = state["weights"]

    def _state(self, bint with_rows=True):
        """The state as ``_model`` describes it, copies; without what is as long as the data."""
        slots, n, d = self._slots(), self.n_samples, self.n_observed
        children, parents = np.nonzero(np.asarray(self.edge)[np.ix_(slots, slots)])
        state = {
            "order": np.asarray(self.order)[slots],
            "edges": np.stack([parents, children], axis=1).astype(np.int32),
            "weights": np.asarray(self.weight)[slots[children], slots[parents]],
            "biases": np.asarray(self.bias)[slots],
            "unit_precision": np.asarray(self.precision)[slots],
            "hyper": np.array([self.mass, self.concentration, self.popularity]),
        }
        if with_rows:
            state["visible"] = self._visible()
            state["pre_activations"] = np.asarray(self.pre)[slots[d:], :n].T.copy()
        return state

    def _visible(self):
        """Pre-activations of the observed nodes, missing cells filled, (n_samples, n_observed)."""
        return np.asarray(self.pre)[:self.n_observed, :self.n_samples].T.copy()

    def _grow_nodes(self, old, room):
        for name in ("pre", "post", "residual"):
            self._grow(name, (room, self.stride))
        for name in ("bias", "precision"):
            self._grow(name, (room,))
        self._grow("weight", (room, room))
        Graph._grow_nodes(self, old, room)

    # -- parts of moves -----------------------------------------------------------------------

    cdef void _squash(self, Py_ssize_t slot) noexcept nogil:
        """What the children of a node see."""
        if self.has_law(slot):
            squash_all(self.stride, &self.pre[slot, 0], &self.post[slot, 0])
        else:
            memcpy(&self.post[slot, 0], &self.pre[slot, 0], self.stride * sizeof(double))

    cdef bint has_free_precision(self, Py_ssize_t slot) noexcept nogil:
        return slot >= self.n_observed or self.role[slot] == 0

    cdef void _fill_residual(self, Py_ssize_t slot, double* out) noexcept nogil:
        """a less its mean given the parents: O(N parents)."""
        cdef Py_ssize_t i, pos, other
        cdef const double* a = &self.pre[slot, 0]
        for i in range(self.n_samples):
            out[i] = a[i] - self.bias[slot]
        for pos in range(self.n_nodes):
            other = self.ascending[pos]
            if self.edge[slot, other]:
                linalg.axpy(
                    self.n_samples, -self.weight[slot, other], &self.post[other, 0], out
                )

    # -- the density --------------------------------------------------------------------------

    cdef double _log_precision(self, double precision) noexcept nogil:
        """Log prior density of a unit's precision."""
        return log_gamma_density(precision, self.noise_law[0], self.noise_law[1])

    cdef double _log_prior(self) noexcept nogil:
        """Log density of all but the rows."""
        cdef Py_ssize_t pos, at, slot, other
        cdef double total = self._log_graph(), w, precision
        if isnan(self.given[0]):
            total += log_gamma_density(self.mass, self.mass_law[0], self.mass_law[1])
        if isnan(self.given[1]):
            total += log_gamma_density(
                1.0 / self.concentration, self.inverse_law[0], self.inverse_law[1]
            )
            total -= 2.0 * log(self.concentration)
        if isnan(self.given[2]):
            total += log_gamma_density(
                self.popularity, self.popularity_law[0], self.popularity_law[1]
            )
        for pos in range(self.n_nodes):
            slot = self.ascending[pos]
            if not self.has_law(slot):
                continue
            total += 0.5 * (log(self.bias_precision) - LOG_2_PI)
            total -= 0.5 * self.bias_precision * self.bias[slot] * self.bias[slot]
            if self.has_free_precision(slot):
                total += self._log_precision(self.precision[slot])
            for at in range(pos + 1, self.n_nodes):
                other = self.ascending[at]
                if self.edge[slot, other]:
                    w = self.weight[slot, other]
                    precision = self._weight_precision_from(other)
                    total += 0.5 * (log(precision) - LOG_2_PI)
                    total -= 0.5 * precision * w * w
        return total

    cdef double _weight_precision_from(self, Py_ssize_t parent) noexcept nogil:
        """Prior precision of a weight out of this node."""
        if self.has_law(parent) or self.fault == ONE_VARIANCE:
            return self.weight_precision
        return self.input_weight_precision

    cdef double _log_data(self) noexcept nogil:
        """Log density of all rows' activations: O(N E)."""
        cdef Py_ssize_t pos, slot
        cdef double total = 0.0
        cdef double* residual
        for pos in range(self.n_nodes):
            slot = self.ascending[pos]
            if not self.has_law(slot):
                continue
            residual = &self.residual[slot, 0]
            self._fill_residual(slot, residual)
            total += 0.5 * self.n_samples * (log(self.precision[slot]) - LOG_2_PI)
            total -= 0.5 * self.precision[slot] * linalg.dot(self.n_samples, residual, residual)
        return total
