"""One chain of the deep scale model: loadings, scores, noise, location, drift, mass.

x_tn ~ N(location_n + drift A_tn, A_tn^2 + s_n^2), A = W Y, scores N(0, 1 + A^2 of the layer above);
loadings follow Indian buffet processes. Pan & Han, repaired:
`doc/mathematics/deep_scale_model` has the equations that kernels cite, as in (D1.1).
"""

from libc.math cimport exp, isnan, log, sqrt
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.sparse_loadings.scale_layer cimport SINGLETON, ScaleLayer, harmonic
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma

from skbnp.deep_scale_model._model import BIRTH_MOVES, checked_state
from skbnp.numerics.states import checked_count, checked_floats, put_bit_generator

# Moves in the order of a sweep; those up to "scales" are of every layer.
MOVES = ("links", "births", "split_merges", "scores", "scales", "noise", "location", "mass")

# Named wrong formulas, for the tests alone: each must make a test fail.
FAULTS = {
    "none": 0,
    "own_link": 1,          # odds that count the link itself
    "blind_scores": 2,      # proposed scores without their density
    "no_count": 3,          # births that do not count a row's own factors
    "no_pairs": 4,          # splits and merges that do not count what they choose from
    "no_jacobian": 5,       # scales as if loadings and scores were of one number
    "printed_position": 6,  # section 13.5: where an empty column comes and goes
    "same_rate": 7,         # section 13.5: alpha / K of the other columns as it was
    "repeated": 8,          # section 13.6: as many attempts as there are columns
    "stale_rows": 9,        # (D9.1): links of a new row as if it were not counted
    "one_pass": 10,         # section 13.7: scores that do not look at the layer above
}

# Counters that a state carries along, of all layers together.
COUNTS = (
    *("n_links_changed", "n_links_tried", "n_born", "n_births_tried", "n_died", "n_deaths_tried"),
    *("n_split", "n_splits_tried", "n_merged", "n_merges_tried", "n_rescaled", "n_rescales_tried"),
)

cdef double LOG_2_PI = 1.8378770664093453
# Brackets of a slice step out so often at most, in steps of 1 of a logarithm.
cdef int MOST_STEPS_OUT = 50


cdef class Sampler:
    """One chain; ``sweep`` is its transition.

    Its cost is that of ``ScaleLayer.update``, the scalars add O(N T).
    """

    cdef:
        object _bit_generator               # owner of *_rng, must outlive it
        bitgen_t* _rng
        readonly object prior
        readonly ScaleLayer layer           # the first; others are above it
        readonly Py_ssize_t n_samples, n_features, max_layers
        readonly Py_ssize_t n_anneal, n_greedy
        # How far the warm-up has come: annealing sweeps, the layer at work and its sweeps.
        readonly Py_ssize_t n_annealed, greedy_layer, n_greedy_sweeps
        double[::1] first_noise             # where annealing starts
        double[::1] spread                  # (n_features,) variance of the data
        double mass_shape, mass_rate, noise_shape, noise_scale, location_variance
        double _log_jacobian
        bint samples_mass, samples_noise, samples_drift

    def __init__(
        self, X, prior, state, bit_generator, *, n_births=2, n_split_merges=10, n_nodes=None,
        n_anneal=0, schedule="joint", n_greedy=0, double log_jacobian=0.0, int fault=0,
    ):
        """A chain on ``X`` (n_samples, n_features), NaN where missing.

        It starts from ``state``, a dict as ``_model`` describes it for ``prior``. A sweep has
        ``n_births`` attempts of each feature and ``n_split_merges`` of each layer; ``n_nodes`` of
        proposals of scores are 61, or 121 beyond 2,000 samples. The noise goes from the state's to
        its value, or is released, during ``n_anneal`` sweeps of the warm-up, which must be longer.
        The "greedy" schedule gives each layer ``n_greedy`` sweeps of the warm-up, those below it
        as they are, and ends at the first empty one. ``log_jacobian`` is added to the log joint.
        """
        cdef Py_ssize_t number
        self._bit_generator = bit_generator
        self._rng = draws.borrow(bit_generator)
        self.prior = prior
        self.n_samples, self.n_features = X.shape
        self.max_layers = prior.max_layers
        self.n_anneal = n_anneal
        self.n_greedy = n_greedy if schedule == "greedy" else 0
        self.greedy_layer = 0 if self.n_greedy else self.max_layers
        self.mass_shape, self.mass_rate = prior.mass_prior
        self.noise_shape, self.noise_scale = prior.noise_shape, prior.noise_scale
        self.location_variance = prior.location_variance
        self.samples_mass, self.samples_drift = prior.mass is None, prior.drift is None
        self.samples_noise = prior.noise is None
        self._log_jacobian = log_jacobian
        if n_nodes is None:
            n_nodes = 61 if self.n_samples <= 2000 else 121
        above = None
        for number in range(self.max_layers, 0, -1):
            above = ScaleLayer(
                self.n_samples, prior.mass_upper, prior.slab_shape, prior.slab_scale, above,
                n_births=n_births, n_split_merges=n_split_merges, n_nodes=n_nodes,
                birth_move=BIRTH_MOVES.index(prior.birth_move) if number == 1 else SINGLETON,
                fault=fault,
            )
        self.layer = above
        checked = checked_state(state, prior, self.n_samples, self.n_features)
        if self.n_greedy and "loadings2" in checked:
            raise ValueError("state must have one layer where the schedule is greedy")
        self.first_noise = np.array(checked["noise_variance"])
        self._put(checked)
        np.asarray(self.layer.below)[:self.n_features, :self.n_samples] = X.T
        count = np.maximum(np.sum(~np.isnan(X), axis=0), 1)
        squares = np.nansum((X - np.nansum(X, axis=0) / count) ** 2, axis=0) / count
        self.spread = np.where(squares > 0.0, squares, 1.0)
        self._anneal()

    def _put(self, state):
        """Take over a checked state; data stay as they are."""
        layers, number = [], 1
        while f"loadings{number}" in state:
            layers.append((state[f"loadings{number}"], state[f"scores{number}"]))
            number += 1
        layer = self.layer
        for number in range(self.max_layers - 1):
            layer.take_part(number < self.greedy_layer or self.greedy_layer >= self.max_layers)
            layer = layer.above
        self.layer.reset(self.n_features, layers)
        self.layer.mass, self.layer.drift = state["hyper"]
        np.asarray(self.layer.floor)[:self.n_features] = state["noise_variance"]
        np.asarray(self.layer.location)[:self.n_features] = state["location"]

    # -- the sampler contract ---------------------------------------------------------------------

    def sweep(self):
        """One transition: layers up and down, then noise, location, drift and mass."""
        with self._bit_generator.lock, nogil:
            if self.greedy_layer < self.max_layers:
                self.layer.update_layer(self._rng, self.greedy_layer)
            else:
                self.layer.update(self._rng)
            if self.greedy_layer == 0 or self.greedy_layer >= self.max_layers:
                self._update_noise()
                self._update_location()
                self._update_mass()

    def sweep_only(self, str move):
        """One move alone, for the tests: a name of ``MOVES``."""
        if move not in MOVES:
            raise ValueError(f"move must be one of {MOVES}, got {move!r}")
        with self._bit_generator.lock:
            if move == "noise":
                self._update_noise()
            elif move == "location":
                self._update_location()
            elif move == "mass":
                self._update_mass()
            else:
                self.layer.update_part(self._rng, MOVES.index(move) + 1)

    def adapt(self, step):
        """After a warm-up sweep: the next temperature of the noise, the next layer if greedy."""
        if self.n_annealed < self.n_anneal:
            self.n_annealed += 1
            self._anneal()
        if self.greedy_layer < self.max_layers:
            self._climb()

    def log_joint(self):
        """log p(X, state), columns in any order, in the units that the Jacobian gives."""
        with self._bit_generator.lock:
            return (
                self.layer.log_prior() + self.layer.log_data() + self._log_parameters()
                + self._log_jacobian
            )

    def scalars(self):
        """Quantities traced beside the log joint."""
        layers = self.layer.layers()
        n_links = np.count_nonzero(self._loadings(), axis=0)
        return {
            "n_factors": float(np.sum(n_links > 0)),
            "n_shared_factors": float(np.sum(n_links > 1)),
            "n_layers": float(len(layers)),
            "mass": self.layer.mass,
            "log_noise_variance": float(np.mean(np.log(self.layer.floor[:self.n_features]))),
            **({"n_columns": float(self.layer.n_factors)} if self.prior.is_finite else {}),
            **({"drift": self.layer.drift} if self.samples_drift else {}),
        }

    def draw(self):
        """Snapshot for prediction: the state, scores in single precision, and labels of levels."""
        state = self._state()
        labels = self._level_labels(state)
        for name in state:
            if name.startswith("scores"):
                state[name] = state[name].astype(np.float32)
        return {**state, "level_labels": labels}

    def get_state(self):
        """Everything that the next sweep depends on, bit for bit, as plain data."""
        return {
            **self._state(),
            **self._counts(),
            "n_annealed": self.n_annealed,
            "greedy_layer": self.greedy_layer,
            "n_greedy_sweeps": self.n_greedy_sweeps,
            "first_noise": np.array(self.first_noise),
            "bit_generator": self._bit_generator.state,
        }

    def set_state(self, state):
        """Restore what ``get_state`` returned.

        Raises ValueError, and leaves the chain as it was, for a state that does not fit.
        """
        counts = {name: checked_count(state, name) for name in COUNTS}
        n_annealed = checked_count(state, "n_annealed")
        greedy_layer = checked_count(state, "greedy_layer")
        n_greedy_sweeps = checked_count(state, "n_greedy_sweeps")
        shape = (self.n_features,)
        first_noise = checked_floats(state, "first_noise", shape, positive=True)
        checked = checked_state(state, self.prior, self.n_samples, self.n_features)
        if n_annealed > self.n_anneal or greedy_layer > self.max_layers or (
            greedy_layer < self.max_layers
            and (self.n_greedy == 0 or f"loadings{greedy_layer + 2}" in checked)
        ):
            raise ValueError("state must have come as far in the warm-up as this chain may")
        put_bit_generator(self._bit_generator, state)
        self.n_annealed, self.first_noise = n_annealed, first_noise
        self.greedy_layer, self.n_greedy_sweeps = greedy_layer, n_greedy_sweeps
        self._put(checked)
        layer = self.layer
        while layer is not None:
            for name in COUNTS:
                setattr(layer, name, counts.pop(name, 0))
            layer = layer.above

    def acceptance(self):
        """Move name -> (accepted, proposed) so far."""
        count = self._counts()
        return {
            "links": (count["n_links_changed"], count["n_links_tried"]),
            "births": (count["n_born"], count["n_births_tried"]),
            "deaths": (count["n_died"], count["n_deaths_tried"]),
            "splits": (count["n_split"], count["n_splits_tried"]),
            "merges": (count["n_merged"], count["n_merges_tried"]),
            "scales": (count["n_rescaled"], count["n_rescales_tried"]),
        }

    def data(self):
        """The data with NaN where missing, a copy."""
        return np.asarray(self.layer.below)[:self.n_features, :self.n_samples].T.copy()

    def simulate_data(self):
        """Draw the observed cells anew given the state (Geweke 2004)."""
        cdef Py_ssize_t n, t
        cdef ScaleLayer layer = self.layer
        cdef double a
        with self._bit_generator.lock:
            for n in range(self.n_features):
                for t in range(self.n_samples):
                    if not isnan(layer.below[n, t]):
                        a = layer.A[n, t]
                        layer.below[n, t] = layer.location[n] + layer.drift * a + sqrt(
                            a * a + layer.floor[n]
                        ) * draws.normal(self._rng)

    # -- moves of scalars (section 8) -------------------------------------------------------------

    cdef void _update_noise(self) noexcept nogil:
        """Every feature's noise by a slice of its logarithm; held while it is annealed."""
        cdef Py_ssize_t n
        if not self.samples_noise or self.n_annealed < self.n_anneal:
            return
        for n in range(self.n_features):
            self.layer.floor[n] = exp(self._slice(n, log(self.layer.floor[n])))

    cdef void _update_mass(self) noexcept nogil:
        """Gamma given the number of factors; a slice of its logarithm for finite columns."""
        if not self.samples_mass:
            return
        if self.layer.birth_move == SINGLETON:
            self.layer.mass = draws.draw_gamma(
                self._rng, self.mass_shape + self.layer.n_factors,
                self.mass_rate + harmonic(self.n_features),
            )
        else:
            self.layer.mass = exp(self._slice(-1, log(self.layer.mass)))

    cdef double _log_target(self, Py_ssize_t n, double x) noexcept nogil:
        """Density of the logarithm x of feature n's noise, of the mass of finite columns for -1."""
        cdef double total, mass = exp(x)
        cdef Py_ssize_t k, K = self.layer.n_factors
        if n >= 0:
            total = self.layer.row_log_data(n, exp(x))
            return total - self.noise_shape * x - self.noise_scale * exp(-x)
        total = (self.mass_shape + K) * x
        total -= (self.mass_rate + harmonic(self.n_features)) * mass
        for k in range(K):
            total += self.layer.log_finite_column(self.layer.n_links[k], mass / K)
        return total

    cdef double _slice(self, Py_ssize_t n, double x) noexcept nogil:
        """A univariate slice step for ``_log_target``, stepping out (Neal 2003)."""
        cdef double level = self._log_target(n, x) + log(draws.uniform(self._rng)), y
        cdef double low = x - draws.uniform(self._rng), high = low + 1.0
        cdef int n_low = <int> draws.below(self._rng, MOST_STEPS_OUT), n_high
        n_high = MOST_STEPS_OUT - 1 - n_low
        while n_low > 0 and self._log_target(n, low) > level:
            low -= 1.0
            n_low -= 1
        while n_high > 0 and self._log_target(n, high) > level:
            high += 1.0
            n_high -= 1
        while high - low > 1e-12:
            y = low + draws.uniform(self._rng) * (high - low)
            if self._log_target(n, y) > level:
                return y
            if y < x:
                low = y
            else:
                high = y
        return x

    cdef void _update_location(self) noexcept nogil:
        """Locations, then the drift: regressions with the weights 1 / (A^2 + s^2)."""
        cdef Py_ssize_t n, t
        cdef double precision, total, a, weight
        if self.location_variance > 0.0:
            for n in range(self.n_features):
                precision, total = 1.0 / self.location_variance, 0.0
                for t in range(self.n_samples):
                    if not isnan(self.layer.below[n, t]):
                        a = self.layer.A[n, t]
                        weight = 1.0 / (a * a + self.layer.floor[n])
                        precision += weight
                        total += weight * (self.layer.below[n, t] - self.layer.drift * a)
                total /= precision
                self.layer.location[n] = total + draws.normal(self._rng) / sqrt(precision)
        if not self.samples_drift:
            return
        precision, total = 1.0, 0.0
        for n in range(self.n_features):
            for t in range(self.n_samples):
                if not isnan(self.layer.below[n, t]):
                    a = self.layer.A[n, t]
                    weight = a / (a * a + self.layer.floor[n])
                    precision += weight * a
                    total += weight * (self.layer.below[n, t] - self.layer.location[n])
        self.layer.drift = total / precision + draws.normal(self._rng) / sqrt(precision)

    cdef double _log_parameters(self) noexcept nogil:
        """log p of noise, location, drift and mass, where they are sampled."""
        cdef double total = 0.0, x
        cdef Py_ssize_t n
        for n in range(self.n_features):
            if self.samples_noise:
                x = self.layer.floor[n]
                total += self.noise_shape * log(self.noise_scale) - lgamma(self.noise_shape)
                total -= (self.noise_shape + 1.0) * log(x) + self.noise_scale / x
            if self.location_variance > 0.0:
                x = self.layer.location[n]
                total -= 0.5 * (
                    LOG_2_PI + log(self.location_variance) + x * x / self.location_variance
                )
        if self.samples_mass:
            total += self.mass_shape * log(self.mass_rate) - lgamma(self.mass_shape)
            x = self.layer.mass
            total += (self.mass_shape - 1.0) * log(x) - self.mass_rate * x
        if self.samples_drift:
            total -= 0.5 * (LOG_2_PI + self.layer.drift * self.layer.drift)
        return total

    # -- warm-up ----------------------------------------------------------------------------------

    def _anneal(self):
        """Noise at this point of the annealing: its logarithm goes linearly (D11.1)."""
        cdef double share = 1.0
        if not self.samples_noise:
            last = np.asarray(self.prior.noise)
        elif self.n_anneal:
            last = np.full(self.n_features, self.noise_scale / self.noise_shape)
        else:
            return
        if self.n_anneal:
            share = <double> self.n_annealed / self.n_anneal
        log_noise = (1.0 - share) * np.log(self.first_noise) + share * np.log(last)
        floor = last if share == 1.0 else np.exp(log_noise)
        np.asarray(self.layer.floor)[:self.n_features] = floor

    def _climb(self):
        """Count a sweep of the greedy schedule, and go up when its layer has had its share."""
        cdef ScaleLayer layer = self.layer
        self.n_greedy_sweeps += 1
        if self.n_greedy_sweeps < self.n_greedy:
            return
        self.n_greedy_sweeps = 0
        number = self.greedy_layer
        for _ in range(number):
            layer = layer.above
        self.greedy_layer = number + 1 if layer.n_factors else self.max_layers
        self._put(self._state())

    # -- snapshots --------------------------------------------------------------------------------

    def _loadings(self):
        return np.asarray(self.layer.W)[:self.n_features, :self.layer.n_factors]

    def _state(self):
        state = {
            "loadings1": self._loadings().copy(),
            "scores1": np.array(
                np.asarray(self.layer.Y)[:self.layer.n_factors, :self.n_samples].T, order="C"
            ),
            "noise_variance": np.array(self.layer.floor[:self.n_features]),
            "location": np.array(self.layer.location[:self.n_features]),
            "hyper": np.array([self.layer.mass, self.layer.drift]),
        }
        for number, (loadings, scores) in enumerate(self.layer.layers()[1:], 2):
            state[f"loadings{number}"], state[f"scores{number}"] = loadings, scores
        return state

    def _counts(self):
        total, layer = dict.fromkeys(COUNTS, 0), self.layer
        while layer is not None:
            for name in COUNTS:
                total[name] += getattr(layer, name)
            layer = layer.above
        return total

    def _level_labels(self, state):
        """The factor with the largest share of each sample's energy, -1 the floor (D12.1)."""
        layers = [(state["loadings1"], state["scores1"])] + self.layer.layers()[1:]
        labels = np.full((len(layers), self.n_samples), -1, dtype=np.int16)
        tau, floor = np.asarray(self.spread), state["noise_variance"]
        factor = 1.0 + self.layer.drift**2
        for number, (loadings, scores) in enumerate(layers):
            if number > 0:
                tau = np.mean(1.0 + (scores @ loadings.T) ** 2, axis=0)
                floor, factor = np.ones_like(tau), 1.0
            energy = factor * scores**2 * np.sum(loadings**2 / tau[:, np.newaxis], axis=0)
            background = np.full((self.n_samples, 1), np.sum(floor / tau))
            labels[number] = np.hstack([background, energy]).argmax(axis=1) - 1
        return labels
