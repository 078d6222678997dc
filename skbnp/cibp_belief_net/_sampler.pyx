"""One chain of the belief network: activations, edges, units, weights, hyperparameters.

Layer m's units have a_nk ~ N(b_k + sum_j W_jk tanh(a_nj / 2), 1 / nu_k) over their parents j of
layer m + 1 (any higher layer with skip connections); edges, widths and depth follow a cascading
Indian buffet process. Adams, Wallach & Ghahramani (2010), corrected where
doc/mathematics/cibp_belief_net says so; equation numbers are those of that page.
"""

from libc.math cimport NAN, log, sqrt
from libc.string cimport memcpy

import numpy as np

from skbnp.cibp_belief_net._network cimport (
    BIAS_MEAN, BROKEN_ACTIVATIONS, CONCENTRATION, MASS, NO_MOVE,
    NO_TRUNCATION, NOISE_RATE, WEIGHT_MEAN, WEIGHT_PRECISION,
)
from skbnp.cibp_belief_net._rows cimport Rows
from skbnp.likelihoods.nonlinear_gaussian._activations cimport Activations
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport log_gamma_cdf
from skbnp.processes cimport cibp

from skbnp.cibp_belief_net._model import checked_state
from skbnp.numerics.states import checked_count, entry, put_bit_generator

# Moves, in the order of a sweep; NO_MOVE while all is well.
MOVES = ("", "activations", "rows", "clusters", "missing", "hyper")

# Named wrong formulas, for the tests alone: each must make a test fail.
FAULTS = {
    "none": 0,
    "printed_ratio": 1,             # births as published: (B5.7) with the rate inverted, the count squared
    "inverted_rate": 2,
    "squared_count": 3,
    "no_survivor_rule": 4,          # deaths that leave a unit without a child below it
    "own_count": 5,                 # toggles that count the edge itself
    "no_truncation": 6,             # the precisions' rate as if they had no bound
    "stale_laws": 7,                # row clusters' laws kept after their labels have changed
    "no_urn": 8,                    # swaps that do not look at how popular the parents are
    "no_pivot": 9,                  # blocks as if the pivot were always the same child
}

# What chains keep of each row for starts of prediction, at most so many rows.
MOST_ROWS_KEPT = 1000
# Counters that a state carries along.
COUNTS = (
    *("n_flipped", "n_toggled", "n_births", "n_births_tried", "n_deaths", "n_deaths_tried"),
    *("n_blocks", "n_blocks_tried", "n_swaps", "n_swaps_tried"),
    *("n_relabelled", "n_labels_drawn", "n_guard_rejections"),
)


cdef class Sampler(Rows):
    """One chain; ``sweep`` is its transition.

    Cost of a sweep for each layer of K children and p parents, N rows: O(N K p) and O(N p^2) in
    matrix products, O(N p^2) for each pass over activations, and what ``Rows`` says of edges and
    births; O(N C K) for C row clusters.
    """

    cdef:
        Activations activations
        Py_ssize_t _reserved                # width that ``activations`` has room for
        double _log_jacobian
        # Of the layer at work: (n_samples * width,), row by row.
        public double[::1] layer_pre, layer_mean, layer_linear
        public double[::1] layer_precision  # (width,), with row clusters (n_samples * width,)
        public double[::1] layer_quadratic  # (width * width,)
        # Weights of its children, (n_children * width,), and times their precisions.
        public double[::1] block, scaled
        public double[::1] others, cross    # of skip connections: other parents' weights
        public double[::1] offset           # (width,)

    def __init__(
        self, visible, prior, state, bit_generator, *, activation_update="auto",
        n_activation_passes=2, n_tries=5, prior_births=True, block_births=True,
        double birth_rate=0.25, double block_rate=0.1, double swap_rate=0.5,
        double log_jacobian=0.0, int fault=0,
    ):
        """A chain on ``visible`` (n_samples, n_features), NaN where missing.

        It starts from ``state``, a dict as ``_model`` describes it for ``prior``. ``log_jacobian``
        is added to the log joint.
        """
        super().__init__(
            visible, prior, state, bit_generator, prior_births, block_births, birth_rate,
            block_rate, swap_rate, fault,
        )
        self._log_jacobian = log_jacobian
        self.activations = Activations(activation_update, n_activation_passes, n_tries)
        for name in ("layer_pre", "layer_mean", "layer_linear", "layer_precision",
                     "layer_quadratic", "block", "scaled", "others", "cross", "offset"):
            setattr(self, name, np.zeros(0))

    # -- the sampler contract -----------------------------------------------------------------

    def sweep(self):
        """One transition: activations from the lowest layer up, the edges into each layer, rest."""
        with self._bit_generator.lock, nogil:
            self._update_activations()
            self._update_all_rows()
            self._update_clusters_if_any()
            self._update_missing()
            self._update_hyper()

    def sweep_only(self, str move):
        """One move alone, for the tests: a name of ``MOVES``."""
        with self._bit_generator.lock:
            if move == "activations":
                self._update_activations()
            elif move == "rows":
                self._update_all_rows()
            elif move == "clusters":
                self._update_clusters_if_any()
            elif move == "missing":
                self._update_missing()
            elif move == "hyper":
                self._update_hyper()
            else:
                raise ValueError(f"move must be one of {MOVES[1:]}, got {move!r}")

    def adapt(self, step):
        """After a warm-up sweep: tune the step of Hamiltonian Monte Carlo, ever more slowly."""
        self.activations.adapt((step + 1.0) ** -0.5)

    def log_joint(self):
        """log p(X, state), hidden units as a set, in the units that the Jacobian gives.

        NaN after a move has failed.
        """
        if self._broken != NO_MOVE:
            return NAN
        with self._bit_generator.lock:
            return self._log_prior() + self._log_data() + self._log_jacobian

    @property
    def broken_move(self):
        """Name of the move that first had no finite result, "" if none."""
        return MOVES[self._broken]

    def scalars(self):
        """Quantities traced beside the log joint."""
        d, units = self.n_visible, self._units()
        n_edges = np.asarray(self.n_children)[self._slots()].sum()
        return {
            "n_layers": float(self.n_layers - 1),
            "n_units": float(self.n_hidden),
            "n_edges": float(n_edges),
            "width1": float(self.width(1)),
            "visible_edges": float(np.asarray(self.edge)[:d].sum()),
            "log_visible_precision": float(np.mean(np.log(np.asarray(self.precision)[:d]))),
            "log_weight_precision": float(np.log(self.hyper[WEIGHT_PRECISION, 0])),
            "mass0": self.hyper[MASS, 0],
            "concentration0": self.hyper[CONCENTRATION, 0],
            **({"n_clusters": float(self.n_clusters)} if self.has_clusters else {}),
        } if units.size else {}

    def draw(self):
        """Snapshot for prediction: the network, and the activations of some rows to start from."""
        state = self._state(False)
        rows = np.linspace(0, self.n_samples, min(self.n_samples, MOST_ROWS_KEPT), False)
        state["activations"] = np.ascontiguousarray(
            np.asarray(self.pre)[self._slots()[:, np.newaxis], rows.astype(np.intp)].T
        )
        if self.has_clusters:
            state["cluster_count"] = np.array(self.cluster_count[:self.n_clusters])
            state["row_cluster"] = state["row_cluster"].astype(np.int32)
        return state

    def get_state(self):
        """Everything that the next sweep depends on, bit for bit, as plain data."""
        return {
            **self._state(),
            **{name: getattr(self, name) for name in COUNTS},
            "step": self.activations.step,
            "bit_generator": self._bit_generator.state,
        }

    def set_state(self, state):
        """Restore what ``get_state`` returned.

        Raises ValueError, and leaves the chain as it was, for a state that does not fit.
        """
        counts = {name: checked_count(state, name) for name in COUNTS}
        step = entry(state, "step")
        if not isinstance(step, float) or not 0.0 < step < 1e3:
            raise ValueError(f"step of the state must be a number > 0, got {step!r}")
        checked = checked_state(state, self.prior, self.n_samples)
        put_bit_generator(self._bit_generator, state)
        self._put(checked)
        self.activations.step = step
        for name, value in counts.items():
            setattr(self, name, value)
        self._broken = NO_MOVE

    def acceptance(self):
        """Move name -> (accepted, proposed) so far."""
        return {
            "edges": (self.n_flipped, self.n_toggled),
            "swaps": (self.n_swaps, self.n_swaps_tried),
            "births": (self.n_births, self.n_births_tried),
            "deaths": (self.n_deaths, self.n_deaths_tried),
            "blocks": (self.n_blocks, self.n_blocks_tried),
            **({"row_labels": (self.n_relabelled, self.n_labels_drawn)}
               if self.has_clusters else {}),
        }

    def data(self):
        """The data with NaN where missing, a copy."""
        X = np.asarray(self.visible)[:, :self.n_samples].T.copy()
        feature = np.repeat(np.arange(self.n_visible), np.diff(self.cell_start))
        X[np.asarray(self.cell_row), feature] = np.nan
        return X

    def visible_activations(self):
        """Pre-activations of the visible units, missing cells filled, (n_samples, n_features)."""
        return np.asarray(self.visible)[:, :self.n_samples].T.copy()

    def simulate_data(self):
        """Draw the pre-activations of the visible units anew given the state (Geweke 2004)."""
        cdef Py_ssize_t d, i
        cdef double* mean = &self.row_scratch[0]
        with self._bit_generator.lock:
            for d in range(self.n_visible):
                for i in range(self.n_samples):
                    mean[i] = self.bias[d] + draws.normal(self._rng) / sqrt(self.precision[d])
                self._add_inputs(d, mean)
                memcpy(&self.visible[d, 0], mean, self.n_samples * sizeof(double))

    # -- moves --------------------------------------------------------------------------------

    cdef int _update_all_rows(self) except -1 nogil:
        """The edges into layer 0, 1, ...: what each layer's moves change lies above it."""
        cdef Py_ssize_t layer = 0
        while layer < self.n_layers and self._broken == NO_MOVE:
            if not self.follows_clusters(layer):
                self._update_layer(layer)
            layer += 1
        return 0

    cdef int _update_clusters_if_any(self) except -1 nogil:
        if self.has_clusters:
            self._update_clusters()
        return 0

    cdef int _update_missing(self) except -1 nogil:
        """Missing cells from N(Y, 1 / nu): O(parents) for each."""
        cdef Py_ssize_t d, t, i, pos, slot
        cdef double mean
        for d in range(self.n_visible):
            for t in range(self.cell_start[d], self.cell_start[d + 1]):
                i, mean = self.cell_row[t], self.bias[d]
                for pos in range(self.n_hidden):
                    slot = self.member[pos]
                    if self.edge[d, slot]:
                        mean += self.weight[d, slot] * self.post[slot, i]
                self.visible[d, i] = mean + draws.normal(self._rng) / sqrt(self.precision[d])
        return 0

    cdef int _update_activations(self) except -1 nogil:
        cdef Py_ssize_t layer
        for layer in range(1, self.n_layers):
            self._update_layer_activations(layer)
        return 0

    cdef int _update_layer_activations(self, Py_ssize_t layer) except -1 nogil:
        """One layer's activations given all else; see ``Activations`` for their density."""
        cdef Py_ssize_t width = self.width(layer), k, i, slot, n = self.n_samples
        cdef bint by_row = self.follows_clusters(layer)
        self._need_layer_room(width, by_row)
        for k in range(width):
            slot = self.unit(layer, k) - self.n_visible
            for i in range(n):
                self.layer_pre[i * width + k] = self.pre[slot, i]
        self._gather_prior(layer, width)
        self._gather_likelihood(layer, width)
        self.activations.update(
            self._rng, n, width, &self.layer_pre[0], &self.layer_mean[0],
            &self.layer_precision[0], width if by_row else 0, &self.layer_linear[0],
            &self.layer_quadratic[0],
        )
        for k in range(width):
            slot = self.unit(layer, k) - self.n_visible
            for i in range(n):
                if not self.layer_pre[i * width + k] == self.layer_pre[i * width + k]:
                    self._broken = BROKEN_ACTIVATIONS
                    return 0
                self.pre[slot, i] = self.layer_pre[i * width + k]
            self._squash(slot)
        return 0

    cdef int _need_layer_room(self, Py_ssize_t width, bint by_row) except -1 nogil:
        cdef Py_ssize_t size = max(1, self.n_samples * width), most = self.n_visible
        cdef Py_ssize_t n_precisions = size if by_row else width
        most = max(most, self.n_hidden)
        if (
            self._reserved >= width
            and self.layer_pre.shape[0] >= size and self.block.shape[0] >= most * width
            and self.layer_precision.shape[0] >= n_precisions
            and self.others.shape[0] >= (most * self.n_hidden if self.skips else 0)
        ):
            return 0
        with gil:
            for name in ("layer_pre", "layer_mean", "layer_linear"):
                self._grow_in(name, (size,))
            self._grow_in("layer_precision", (max(n_precisions, self.layer_precision.shape[0]),))
            self._grow_in("layer_quadratic", (width * width,))
            self._grow_in("offset", (width,))
            for name in ("block", "scaled"):
                self._grow_in(name, (2 * most * width,))
            if self.skips:
                self._grow_in("others", (2 * most * self.n_hidden,))
                self._grow_in("cross", (2 * most * self.n_hidden,))
            self._reserved = max(width, self._reserved)
            self.activations.reserve(self._reserved)
        return 0

    cdef int _gather_prior(self, Py_ssize_t layer, Py_ssize_t width) except -1 nogil:
        """Means and precisions of a layer's activations given the layers above."""
        cdef Py_ssize_t i, k, pos, slot, n = self.n_samples, begin, end, n_above
        cdef double* mean = &self.layer_mean[0]
        if self.follows_clusters(layer):
            for k in range(width):
                slot = self.unit(layer, k) - self.n_visible
                for i in range(n):
                    mean[i * width + k] = self.cluster_mean[slot, self.label[i]]
                    self.layer_precision[i * width + k] = self.cluster_precision[
                        slot, self.label[i]
                    ]
            return 0
        for k in range(width):
            self.layer_precision[k] = self.precision[self.unit(layer, k)]
            for i in range(n):
                mean[i * width + k] = self.bias[self.unit(layer, k)]
        begin = self.layer_start[min(layer + 1, self.n_layers)]
        end = self.n_hidden if self.skips else self.layer_start[min(layer + 2, self.n_layers)]
        n_above = end - begin
        if n_above == 0:
            return 0
        self._need_candidates(n_above)
        for pos in range(n_above):
            slot = self.member[begin + pos]
            memcpy(&self.regressor[pos, 0], &self.post[slot, 0], self.stride * sizeof(double))
            for k in range(width):
                self.block[k * n_above + pos] = self.weight[self.unit(layer, k), slot]
        linalg.gemm_strided(
            True, True, n, width, n_above, 1.0, &self.regressor[0, 0], self.stride,
            &self.block[0], n_above, 1.0, mean, width,
        )
        return 0

    cdef int _gather_likelihood(self, Py_ssize_t layer, Py_ssize_t width) except -1 nogil:
        """What the layers below say: ``linear`` T and ``quadratic`` S of a layer's activations."""
        cdef Py_ssize_t i, k, n = self.n_samples, below
        for i in range(n * width):
            self.layer_linear[i] = 0.0
        for i in range(width * width):
            self.layer_quadratic[i] = 0.0
        for k in range(width):
            self.offset[k] = 0.0
        for below in range(0 if self.skips else layer - 1, layer):
            self._add_children(layer, width, below)
        for i in range(n):
            for k in range(width):
                self.layer_linear[i * width + k] -= self.offset[k]
        return 0

    cdef int _add_children(
        self, Py_ssize_t layer, Py_ssize_t width, Py_ssize_t below
    ) except -1 nogil:
        """Add what the units of one lower layer say: T = E diag(nu) W', S = W diag(nu) W'."""
        cdef Py_ssize_t c, k, unit, slot, n = self.n_samples, n_below = self.width(below)
        cdef double nu
        self.layer = below
        self._need_children(n_below)
        for c in range(n_below):
            unit = self.unit(below, c)
            nu = self.precision[unit]
            if below > 0:
                memcpy(
                    &self.response[c, 0], self.activity(unit), self.stride * sizeof(double)
                )
            for k in range(width):
                slot = self.member[self.layer_start[layer] + k]
                self.block[c * width + k] = self.weight[unit, slot]
                self.scaled[c * width + k] = nu * self.weight[unit, slot]
                self.offset[k] += self.bias[unit] * nu * self.weight[unit, slot]
        linalg.gemm(
            True, False, width, width, n_below, 1.0, &self.block[0], &self.scaled[0], 1.0,
            &self.layer_quadratic[0],
        )
        linalg.gemm_strided(
            True, False, n, width, n_below, 1.0, self._response(0), self.stride,
            &self.scaled[0], width, 1.0, &self.layer_linear[0], width,
        )
        if self.skips:
            self._take_other_parents(layer, width, below)
        return 0

    cdef int _take_other_parents(
        self, Py_ssize_t layer, Py_ssize_t width, Py_ssize_t below
    ) except -1 nogil:
        """Take from T what the children's parents in other layers explain of them."""
        cdef Py_ssize_t c, pos, slot, unit, n_below = self.width(below), n_others = 0
        self._need_candidates(self.n_hidden)
        for pos in range(self.n_hidden):
            slot = self.member[pos]
            if self.slot_layer[slot] == layer or self.slot_layer[slot] <= below:
                continue
            memcpy(
                &self.regressor[n_others, 0], &self.post[slot, 0], self.stride * sizeof(double)
            )
            for c in range(n_below):
                unit = self.unit(below, c)
                self.others[n_others * n_below + c] = self.weight[unit, slot]
            n_others += 1
        if n_others == 0:
            return 0
        linalg.gemm(
            False, False, n_others, width, n_below, 1.0, &self.others[0], &self.scaled[0], 0.0,
            &self.cross[0],
        )
        linalg.gemm_strided(
            True, False, self.n_samples, width, n_others, -1.0, &self.regressor[0, 0],
            self.stride, &self.cross[0], width, 1.0, &self.layer_linear[0], width,
        )
        return 0

    # -- hyperparameters ----------------------------------------------------------------------

    cdef int _update_hyper(self) except -1 nogil:
        """Every layer's hyperparameters given its units, edges and weights: (B5.13) to (B5.15)."""
        cdef Py_ssize_t layer
        for layer in range(self.n_layers):
            self._update_restaurant(layer)
            self._update_weight_law(layer)
            self._update_bias_law(layer)
            self._update_noise_rate(layer)
        return 0

    cdef void _update_restaurant(self, Py_ssize_t layer) noexcept nogil:
        """Mass and concentration; a closed restaurant draws both from the prior."""
        cdef Py_ssize_t k, n_dishes = self.width(layer + 1), slot
        cdef int which
        cdef double low, high
        if layer >= self.deepest:
            for which in range(MASS, CONCENTRATION + 1):
                low, high = self._low(which, layer), self._high(which, layer)
                self.hyper[which, layer] = low + draws.uniform(self._rng) * (high - low)
            return
        for k in range(n_dishes):
            slot = self.member[self.layer_start[layer + 1] + k]
            self.singleton[k] = self.n_children[slot]
        if not self.is_given[MASS]:
            self.hyper[MASS, layer] = cibp.draw_mass(
                self._rng, self.hyper[MASS, layer], n_dishes, self.width(layer),
                self.hyper[CONCENTRATION, layer], self._low(MASS, layer),
                self._high(MASS, layer),
            )
        if not self.is_given[CONCENTRATION]:
            self.hyper[CONCENTRATION, layer] = cibp.draw_concentration(
                self._rng, self.hyper[CONCENTRATION, layer], self.hyper[MASS, layer],
                &self.singleton[0], n_dishes, self.width(layer), self.offered(layer),
                self._low(CONCENTRATION, layer), self._high(CONCENTRATION, layer),
            )

    cdef void _update_weight_law(self, Py_ssize_t layer) noexcept nogil:
        cdef Py_ssize_t c, pos, unit
        cdef double n = 0.0, total = 0.0, squares = 0.0, mean = 0.0, w
        for c in range(self.width(layer)):
            unit = self.unit(layer, c)
            for pos in range(self.n_hidden):
                if self.edge[unit, self.member[pos]]:
                    w = self.weight[unit, self.member[pos]]
                    n += 1.0
                    # Welford's running mean: weights may be large and close together.
                    squares += (w - mean) * (w - mean) * (n - 1.0) / n
                    mean += (w - mean) / n
                    total += w
        self._draw_normal_gamma(WEIGHT_MEAN, layer, &self.weight_law[0], n, total, squares)

    cdef void _update_bias_law(self, Py_ssize_t layer) noexcept nogil:
        cdef Py_ssize_t c
        cdef double n = 0.0, total = 0.0, squares = 0.0, mean = 0.0, b
        if not self.follows_clusters(layer):
            for c in range(self.width(layer)):
                b = self.bias[self.unit(layer, c)]
                n += 1.0
                squares += (b - mean) * (b - mean) * (n - 1.0) / n
                mean += (b - mean) / n
                total += b
        self._draw_normal_gamma(BIAS_MEAN, layer, &self.bias_law[0], n, total, squares)

    cdef void _update_noise_rate(self, Py_ssize_t layer) noexcept nogil:
        """b_nu: conjugate but for the bound on the precisions, hence an independence proposal."""
        cdef Py_ssize_t c, n = 0 if self.follows_clusters(layer) else self.width(layer)
        cdef double total = 0.0, new, old = self.hyper[NOISE_RATE, layer]
        for c in range(n):
            total += self.precision[self.unit(layer, c)]
        new = draws.draw_gamma(
            self._rng, self.noise_law[1] + n * self.noise_law[0], self.noise_law[2] + total
        )
        if self.fault == NO_TRUNCATION or log(draws.uniform(self._rng)) < n * (
            log_gamma_cdf(self.noise_law[0], old, self.highest_precision)
            - log_gamma_cdf(self.noise_law[0], new, self.highest_precision)
        ):
            self.hyper[NOISE_RATE, layer] = new
