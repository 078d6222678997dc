"""The graph with weights, biases, precisions and the activations of all rows: the whole state."""

from libc.math cimport exp, isnan, log, sqrt
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

from dataclasses import astuple

import numpy as np

from skbnp.icp_network._graph cimport Graph
from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.likelihoods.nonlinear_gaussian._feedforward cimport HIDDEN, INPUT, OBSERVED, Feedforward
from skbnp.mcmc.chain cimport State
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI, log_gamma_density

from skbnp.icp_network._graph import Graph as GraphState, grown
from skbnp.icp_network._model import checked_state
from skbnp.numerics.states import checked_count

ROLES = ("gaussian", "input", "latent")


cdef class Network(State):
    """State of one chain; rows of ``pre`` and ``post`` are nodes.

    Invariant between moves, beside that of ``graph``: a weight is 0 where there is no edge;
    ``post`` is tanh(``pre`` / 2), for inputs ``pre`` itself.
    """

    GRAPH = GraphState

    def __init__(
        self, visible, prior, state, labels=None, *, Py_ssize_t n_settle=0,
        double log_jacobian=0.0,
    ):
        """``visible`` is (n_samples, n_observed), NaN where missing; latents may be anything.

        ``labels`` are those that latents decide; ``log_jacobian`` is added to the log joint.
        """
        self.prior, self.graph = prior, self.GRAPH(prior)
        self.n_samples, self.n_observed = len(visible), prior.n_observed
        # Vectors of all slots begin at multiples of 32 bytes: some BLAS round by where one begins.
        self.stride = 4 * max(1, (self.n_samples + 3) // 4)
        self.n_settle, self._log_jacobian = n_settle, log_jacobian
        self.residual = np.zeros(self.stride)
        self._take_prior(prior)
        is_latent = np.asarray(self.role) == LATENT
        self._take_labels(labels, is_latent)
        self._take_cells(visible)
        self.put(checked_state(state, prior, self.n_samples))
        seen = ~np.isnan(visible) & ~is_latent
        if not np.array_equal(self.visible()[seen], visible[seen]):
            raise ValueError("visible of the state must be the data where they are observed")

    def _take_prior(self, prior):
        self.role = np.array([ROLES.index(role) for role in prior.roles], dtype=np.uint8)
        self.weight_precision = 1.0 / prior.weight_variance
        self.input_weight_precision = 1.0 / prior.variance_from_inputs
        self.bias_precision = 1.0 / prior.bias_variance
        for i, (value, law) in enumerate(zip(prior.given, prior.of_process, strict=True)):
            self.given[i] = np.nan if value is None else value
            if value is None:
                self.process_law[i] = astuple(law)
        self.noise_law = astuple(prior.noise_precision)

    def _take_labels(self, labels, is_latent):
        self.n_latents = is_latent.sum()
        self.first_latent = np.argmax(is_latent) if self.n_latents else 0
        if not self.n_latents:
            self.label = np.zeros(0, dtype=np.intp)
            return
        if not is_latent[self.first_latent:][:self.n_latents].all():
            raise ValueError("latents must be next to each other")
        self.label = np.array(labels, dtype=np.intp)
        classes = np.arange(max(2, self.n_latents))
        if self.label.shape[0] != self.n_samples or not np.isin(labels, classes).all():
            raise ValueError("labels must be those of the latents, one for each row")

    def _take_cells(self, visible):
        missing = [np.flatnonzero(np.isnan(column)) for column in np.asarray(visible).T]
        if any(len(rows) and not self.role[i] == 0 for i, rows in enumerate(missing)):
            raise ValueError("visible must not be NaN but in modelled columns")
        self.cell_start = np.cumsum([0, *map(len, missing)], dtype=np.intp)
        self.cell_row = np.concatenate([*missing, []]).astype(np.intp)

    # -- in and out ---------------------------------------------------------------------------

    def get_state(self):
        """The state as ``_model`` describes it, copies, and what is left of the settling."""
        return {**self.as_state(), "n_settle": self.n_settle}

    def set_state(self, state):
        """Take what ``get_state`` returned; a ValueError, and no change, if it cannot be that."""
        n_settle = checked_count(state, "n_settle")
        checked = checked_state(state, self.prior, self.n_samples)
        self.put(checked)
        self.n_settle = n_settle

    def put(self, state):
        """Take a checked state over."""
        n, d = self.n_samples, self.n_observed
        self.pre, self.post = np.zeros((2, d, self.stride))
        self.bias, self.precision, self.weight = np.zeros(d), np.ones(d), np.zeros((d, d))
        slots = self.graph.put(state["order"], state["edges"], state["hyper"])
        self._follow_graph()
        np.asarray(self.bias)[slots] = state["biases"]
        np.asarray(self.precision)[slots] = state["unit_precision"]
        np.asarray(self.pre)[slots, :n] = np.hstack([state["visible"], state["pre_activations"]]).T
        for slot in slots:
            self.squash(slot)
        parents, children = state["edges"].T
        np.asarray(self.weight)[slots[children], slots[parents]] = state["weights"]

    def as_state(self, bint with_rows=True):
        """The state as ``_model`` describes it, copies; without what is as long as the data."""
        slots, n, d = self.graph.slots(), self.n_samples, self.n_observed
        law = self.graph.law
        children, parents = np.nonzero(np.asarray(self.graph.edge)[np.ix_(slots, slots)])
        state = {
            "order": np.asarray(self.graph.order)[slots],
            "edges": np.stack([parents, children], axis=1).astype(np.int32),
            "weights": np.asarray(self.weight)[slots[children], slots[parents]],
            "biases": np.asarray(self.bias)[slots],
            "unit_precision": np.asarray(self.precision)[slots],
            "hyper": np.array([law.mass, law.concentration, law.popularity]),
        }
        if with_rows:
            state["visible"] = self.visible()
            state["pre_activations"] = np.asarray(self.pre)[slots[d:], :n].T.copy()
        return state

    def pre_activations(self, rows):
        """Those of all nodes in some rows, (n_rows, K), in the order of ``as_state``."""
        return np.asarray(self.pre)[self.graph.slots()][:, rows].T

    def visible(self):
        """Pre-activations of the observed nodes, missing cells filled, (n_samples, n_observed)."""
        return np.asarray(self.pre)[:self.n_observed, :self.n_samples].T.copy()

    def data(self):
        """The data with NaN where missing, a copy."""
        X = self.visible()
        column = np.repeat(np.arange(self.n_observed), np.diff(self.cell_start))
        X[np.asarray(self.cell_row), column] = np.nan
        return X

    def scalars(self):
        """Quantities traced beside the log joint."""
        cdef Graph graph = self.graph
        cdef Py_ssize_t[::1] scratch = np.empty(graph.n_slots, dtype=np.intp)
        modelled = np.asarray(self.role) == GAUSSIAN
        precision = np.asarray(self.precision)[:self.n_observed][modelled]
        return {
            "n_hidden": float(graph.n_hidden),
            "n_edges": float(graph.n_edges),
            "depth": float(graph.depth(&scratch[0])),
            "mass": graph.law.mass,
            "concentration": graph.law.concentration,
            "observed_popularity": graph.law.popularity,
            **({"log_observed_precision": float(np.mean(np.log(precision)))}
               if modelled.any() else {}),
        }

    def adapt(self):
        """After a warm-up sweep: births begin when the chain has settled."""
        self.n_settle = max(0, self.n_settle - 1)

    def check_invariant(self):
        """Raise an AssertionError where the invariant does not hold."""
        self.graph.check_invariant()
        slots, edge = self.graph.slots(), np.asarray(self.graph.edge)
        assert (np.asarray(self.weight)[edge == 0] == 0.0).all()
        for slot in slots:
            pre, post = np.asarray(self.pre)[slot], np.asarray(self.post)[slot]
            expected = np.tanh(pre / 2.0) if self.has_law(slot) else pre
            assert np.allclose(post, expected, rtol=0.0, atol=1e-14)

    # -- room ---------------------------------------------------------------------------------

    cdef int reserve(self, Py_ssize_t n_new) except -1 nogil:
        """Room for so many hidden nodes more, in the graph too."""
        if self.graph.n_free < n_new:
            with gil:
                self.graph.reserve(n_new)
                self._follow_graph()
        return 0

    def _follow_graph(self):
        """Room for as many slots as the graph has."""
        room = self.graph.n_slots
        self.pre = grown(self.pre, (room, self.stride))
        self.post = grown(self.post, (room, self.stride))
        self.bias, self.precision = grown(self.bias, (room,)), grown(self.precision, (room,))
        self.weight = grown(self.weight, (room, room))

    # -- parts of moves -----------------------------------------------------------------------

    cdef void forget(self, Py_ssize_t slot) noexcept nogil:
        """Take a hidden node, its edges and their weights away."""
        cdef Py_ssize_t i, other
        for i in range(self.graph.n_nodes):
            other = self.graph.ascending[i]
            self.weight[slot, other] = self.weight[other, slot] = 0.0
        self.graph.remove(slot)

    cdef void squash(self, Py_ssize_t slot) noexcept nogil:
        """What the children of a node see."""
        if self.has_law(slot):
            squash_all(self.stride, &self.pre[slot, 0], &self.post[slot, 0])
        else:
            memcpy(&self.post[slot, 0], &self.pre[slot, 0], self.stride * sizeof(double))

    cdef void keep_rows(self, Py_ssize_t slot, double* out) noexcept nogil:
        """Remember a node's activations, (stride,)."""
        memcpy(out, &self.pre[slot, 0], self.stride * sizeof(double))

    cdef void restore_rows(self, Py_ssize_t slot, const double* kept) noexcept nogil:
        """Give a node back what ``keep_rows`` has."""
        memcpy(&self.pre[slot, 0], kept, self.stride * sizeof(double))
        self.squash(slot)

    cdef bint has_law(self, Py_ssize_t slot) noexcept nogil:
        """Whether a node has a bias and may have parents: all but inputs."""
        return slot >= self.n_observed or self.role[slot] != INPUT_NODE

    cdef bint has_free_precision(self, Py_ssize_t slot) noexcept nogil:
        return slot >= self.n_observed or self.role[slot] == GAUSSIAN

    cdef void fill_residual(self, Py_ssize_t slot, double* out) noexcept nogil:
        """a less its mean given the parents: O(N parents)."""
        cdef Py_ssize_t i, pos, other
        cdef const double* a = &self.pre[slot, 0]
        for i in range(self.n_samples):
            out[i] = a[i] - self.bias[slot]
        for pos in range(self.graph.n_nodes):
            other = self.graph.ascending[pos]
            if self.graph.edge[slot, other]:
                linalg.axpy(
                    self.n_samples, -self.weight[slot, other], &self.post[other, 0], out
                )

    cdef int write_into(self, Feedforward forward) except -1 nogil:
        """The network as a ``Feedforward``, nodes from the highest order down."""
        cdef Py_ssize_t p, at, slot, other, n = 0, size = self.graph.n_nodes
        forward.reserve(size, self.graph.n_edges)
        forward.n_nodes = size
        for p in range(size):
            slot = self.graph.ascending[size - 1 - p]
            forward.kind[p] = OBSERVED
            if self.graph.is_hidden(slot):
                forward.kind[p] = HIDDEN
            elif not self.has_law(slot):
                forward.kind[p] = INPUT
            forward.bias[p] = self.bias[slot]
            forward.spread[p] = 1.0 / sqrt(self.precision[slot])
            forward.parent_start[p] = n
            for at in range(p):
                other = self.graph.ascending[size - 1 - at]
                if self.graph.edge[slot, other]:
                    forward.parent[n] = at
                    forward.weight[n] = self.weight[slot, other]
                    n += 1
        forward.parent_start[size] = n
        return 0

    # -- priors -------------------------------------------------------------------------------

    cdef double weight_precision_from(self, Py_ssize_t parent) noexcept nogil:
        """Prior precision of a weight out of this node."""
        if self.has_law(parent):
            return self.weight_precision
        return self.input_weight_precision

    cdef double draw_weight_from(self, Py_ssize_t parent, bitgen_t* rng) noexcept nogil:
        """A weight out of a node from its prior."""
        return draws.normal(rng) / sqrt(self.weight_precision_from(parent))

    cdef double draw_bias(self, bitgen_t* rng) noexcept nogil:
        return draws.normal(rng) / sqrt(self.bias_precision)

    cdef double draw_precision(self, bitgen_t* rng) noexcept nogil:
        return draws.draw_gamma(rng, self.noise_law[0], self.noise_law[1])

    cdef double log_precision(self, double precision) noexcept nogil:
        """Log prior density of a unit's precision."""
        return log_gamma_density(precision, self.noise_law[0], self.noise_law[1])

    cdef double log_of_log_precision(self, double r) noexcept nogil:
        """Log prior density of the logarithm of a unit's precision, up to a constant."""
        return self.noise_law[0] * r - self.noise_law[1] * exp(r)

    cdef double slope_of_log_precision(self, double r) noexcept nogil:
        """Derivative of ``log_of_log_precision``."""
        return self.noise_law[0] - self.noise_law[1] * exp(r)

    cdef double draw_precision_given(self, double squares, bitgen_t* rng) noexcept nogil:
        """A unit's precision given the sum of the squares of its residuals, over all rows."""
        return draws.draw_gamma(
            rng, self.noise_law[0] + 0.5 * self.n_samples, self.noise_law[1] + 0.5 * squares
        )

    cdef double log_mass(self, double mass) noexcept nogil:
        return log_gamma_density(mass, self.process_law[0][0], self.process_law[0][1])

    cdef double log_inverse(self, double concentration) noexcept nogil:
        """Log prior density of 1 / concentration, which is gamma."""
        return log_gamma_density(
            1.0 / concentration, self.process_law[1][0], self.process_law[1][1]
        )

    cdef double log_popularity(self, double popularity) noexcept nogil:
        return log_gamma_density(popularity, self.process_law[2][0], self.process_law[2][1])

    # -- the density --------------------------------------------------------------------------

    cpdef double log_joint(self):
        """log p(X, state), hidden nodes as a set, in the units that the Jacobian gives."""
        with nogil:
            return self.log_prior() + self.log_data() + self._log_jacobian

    cdef double log_prior(self) noexcept nogil:
        """Log density of all but the rows."""
        cdef Py_ssize_t pos, at, slot, other
        cdef double total = self.graph.log_density(), w, precision
        if isnan(self.given[0]):
            total += self.log_mass(self.graph.law.mass)
        if isnan(self.given[1]):
            total += self.log_inverse(self.graph.law.concentration)
            total -= 2.0 * log(self.graph.law.concentration)
        if isnan(self.given[2]):
            total += self.log_popularity(self.graph.law.popularity)
        for pos in range(self.graph.n_nodes):
            slot = self.graph.ascending[pos]
            if not self.has_law(slot):
                continue
            total += 0.5 * (log(self.bias_precision) - LOG_2_PI)
            total -= 0.5 * self.bias_precision * self.bias[slot] * self.bias[slot]
            if self.has_free_precision(slot):
                total += self.log_precision(self.precision[slot])
            for at in range(pos + 1, self.graph.n_nodes):
                other = self.graph.ascending[at]
                if self.graph.edge[slot, other]:
                    w = self.weight[slot, other]
                    precision = self.weight_precision_from(other)
                    total += 0.5 * (log(precision) - LOG_2_PI)
                    total -= 0.5 * precision * w * w
        return total

    cdef double log_data(self) noexcept nogil:
        """Log density of all rows' activations: O(N E)."""
        cdef Py_ssize_t pos, slot
        cdef double total = 0.0
        cdef double* residual = &self.residual[0]
        for pos in range(self.graph.n_nodes):
            slot = self.graph.ascending[pos]
            if not self.has_law(slot):
                continue
            self.fill_residual(slot, residual)
            total += 0.5 * self.n_samples * (log(self.precision[slot]) - LOG_2_PI)
            total -= 0.5 * self.precision[slot] * linalg.dot(self.n_samples, residual, residual)
        return total

    cdef void simulate_rows(self, bitgen_t* rng) noexcept nogil:
        """Draw all rows anew given the network, but for inputs: hidden activations too."""
        cdef Py_ssize_t p, i, slot
        cdef double* a
        for p in range(self.graph.n_nodes - 1, -1, -1):
            slot = self.graph.ascending[p]
            if not self.has_law(slot):
                continue
            a = &self.pre[slot, 0]
            for i in range(self.n_samples):
                a[i] = 0.0
            self.fill_residual(slot, &self.residual[0])
            for i in range(self.n_samples):
                a[i] = draws.normal(rng) / sqrt(self.precision[slot]) - self.residual[i]
            self.squash(slot)

    def relabel(self):
        """Labels that the present latents decide."""
        latents = np.asarray(self.pre)[self.first_latent:][:self.n_latents, :self.n_samples]
        if self.n_latents == 1:
            self.label = (latents[0] > 0.0).astype(np.intp)
        elif self.n_latents:
            self.label = latents.argmax(axis=0).astype(np.intp)
