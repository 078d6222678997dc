"""The whole state of the deep scale model, its warm-up, and its density."""

from libc.math cimport exp, log

import numpy as np

from skbnp.likelihoods.sparse_loadings.scale_layer cimport SINGLETON, ScaleLayer
from skbnp.mcmc cimport chain
from skbnp.numerics.special cimport LOG_2_PI, lgamma

from skbnp.deep_scale_model._model import BIRTH_MOVES, checked_state
from skbnp.laws import Law
from skbnp.likelihoods.sparse_loadings.scale_layer import ScaleLayer as Layer
from skbnp.numerics.states import checked_count, checked_floats


cdef class State(chain.State):
    """Layers, noise, location, drift and mass, and how far the warm-up has come."""

    # What layers are made of.
    LAYER = Layer

    def __init__(
        self, X, prior, start, *, n_anneal=0, schedule="joint", n_greedy=0,
        double log_jacobian=0.0,
    ):
        """``X`` is (n_samples, n_features), NaN where missing; ``start`` a dict as in ``_model``.

        The noise goes from the start's to its value, or is released, during ``n_anneal`` sweeps of
        the warm-up, which must be longer. The "greedy" schedule gives each layer ``n_greedy``
        sweeps of the warm-up, those below it as they are, and ends at the first empty one.
        ``log_jacobian`` is added to the log joint.
        """
        cdef Py_ssize_t number
        self.prior = prior
        self.n_samples, self.n_features = X.shape
        self.max_layers = prior.max_layers
        self.n_anneal = n_anneal
        self.n_greedy = n_greedy if schedule == "greedy" else 0
        self.greedy_layer = 0 if self.n_greedy else self.max_layers
        self.location_variance = prior.location_variance
        self._read_laws()
        self.log_jacobian = log_jacobian
        above, slab = None, prior.loading_variance
        for number in range(self.max_layers, 0, -1):
            above = self.LAYER(
                self.n_samples, prior.mass_upper, slab.shape, slab.scale, above,
                birth_move=BIRTH_MOVES.index(prior.birth_move) if number == 1 else SINGLETON,
            )
        self.layer = above
        checked = checked_state(start, prior, self.n_samples, self.n_features)
        if self.n_greedy and "loadings2" in checked:
            raise ValueError("state must have one layer where the schedule is greedy")
        self.first_noise = np.array(checked["noise_variance"])
        self._put(checked)
        np.asarray(self.layer.below)[:self.n_features, :self.n_samples] = X.T
        count = np.maximum(np.sum(~np.isnan(X), axis=0), 1)
        squares = np.nansum((X - np.nansum(X, axis=0) / count) ** 2, axis=0) / count
        self.spread = np.where(squares > 0.0, squares, 1.0)
        self._anneal()

    def _read_laws(self):
        """The numbers of the laws of what is sampled."""
        mass, noise, drift = self.prior.mass, self.prior.noise_variance, self.prior.drift
        self.samples_mass, self.samples_noise, self.samples_drift = (
            isinstance(value, Law) for value in (mass, noise, drift)
        )
        if self.samples_mass:
            self.mass_shape, self.mass_rate = mass.shape, mass.rate
        if self.samples_noise:
            self.noise_shape, self.noise_scale = noise.shape, noise.scale
        if self.samples_drift:
            self.drift_mean, self.drift_variance = drift.location, drift.variance

    # -- in and out -------------------------------------------------------------------------------

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

    def get_state(self):
        """Everything in it that the next sweep depends on, as plain data."""
        return {
            **self.snapshot(),
            "n_annealed": self.n_annealed,
            "greedy_layer": self.greedy_layer,
            "n_greedy_sweeps": self.n_greedy_sweeps,
            "first_noise": np.array(self.first_noise),
        }

    def set_state(self, state):
        """Take what ``get_state`` returned; a ValueError, and no change, if it cannot be that."""
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
        self.n_annealed, self.first_noise = n_annealed, first_noise
        self.greedy_layer, self.n_greedy_sweeps = greedy_layer, n_greedy_sweeps
        self._put(checked)

    def loadings(self):
        """Of the first layer, not a copy."""
        return np.asarray(self.layer.W)[:self.n_features, :self.layer.n_factors]

    def snapshot(self):
        """The state as ``_model`` describes it, copies."""
        state = {
            "loadings1": self.loadings().copy(),
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

    # -- warm-up ----------------------------------------------------------------------------------

    cdef bint is_first_at_work(self) noexcept nogil:
        """Whether what the first layer alone has may move: not while a layer above is at work."""
        return self.greedy_layer == 0 or self.greedy_layer >= self.max_layers

    def adapt(self):
        """After a warm-up sweep: the next temperature of the noise, the next layer if greedy."""
        if self.n_annealed < self.n_anneal:
            self.n_annealed += 1
            self._anneal()
        if self.greedy_layer < self.max_layers:
            self._climb()

    def _anneal(self):
        """Noise at this point of the annealing: its logarithm goes linearly (D11.1)."""
        cdef double share = 1.0
        if not self.samples_noise:
            last = np.asarray(self.prior.noise_variance)
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
        self._put(self.snapshot())

    # -- the density ------------------------------------------------------------------------------

    cpdef double log_joint(self):
        """log p(X, state), columns in any order."""
        return (
            self.layer.log_prior() + self.layer.log_data() + self.log_parameters()
            + self.log_jacobian
        )

    cdef double log_parameters(self) noexcept nogil:
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
            x = self.layer.drift - self.drift_mean
            total -= 0.5 * (LOG_2_PI + log(self.drift_variance) + x * x / self.drift_variance)
        return total

    cdef double with_noise(self, double total, double x) noexcept nogil:
        """A log density, and that of the logarithm x of a noise variance but for a constant."""
        return total - self.noise_shape * x - self.noise_scale * exp(-x)
