"""One chain of the deep scale model: its moves in their order.

x_tn ~ N(location_n + drift A_tn, A_tn^2 + s_n^2), A = W Y, scores N(0, 1 + A^2 of the layer above);
loadings follow Indian buffet processes. Pan & Han, repaired:
`doc/mathematics/deep_scale_model` has the equations that kernels cite, as in (D1.1).
"""

from libc.math cimport isnan, sqrt
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.deep_scale_model._state cimport State
from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer
from skbnp.mcmc.chain cimport Chain
from skbnp.numerics cimport rng as draws

from skbnp.deep_scale_model._state import State as ScaleState
from skbnp.deep_scale_model.moves.layers import Layers
from skbnp.deep_scale_model.moves.scalars import Location, Mass, Noise
from skbnp.likelihoods.sparse_loadings.layer_schedule import LayerSchedule


cdef class Sampler(Chain):
    """One chain; ``sweep`` is its transition.

    Its cost is that of ``LayerSchedule.update``, the scalars add O(N T).
    """

    # What a chain is made of.
    STATE, SCHEDULE = ScaleState, LayerSchedule

    def __init__(
        self, X, prior, start, bit_generator, *, n_births=2, n_split_merge=10, n_nodes=None,
        **options,
    ):
        """A chain on ``X`` (n_samples, n_features), NaN where missing.

        It starts from ``start``, a dict as ``_model`` describes it for ``prior``. A sweep has
        ``n_births`` attempts of each feature and ``n_split_merge`` of each layer; ``n_nodes`` of
        proposals of scores are 61, or 121 beyond 2,000 samples. ``options`` are those of the state.
        """
        state = self.STATE(X, prior, start, **options)
        if n_nodes is None:
            n_nodes = 61 if state.n_samples <= 2000 else 121
        schedule = self.SCHEDULE(
            state.layer, n_births=n_births, n_split_merge=n_split_merge, n_nodes=n_nodes
        )
        moves = [
            Layers(state, schedule, bit_generator),
            Noise(state, bit_generator),
            Location(state, bit_generator),
            Mass(state, bit_generator),
        ]
        super().__init__(state, moves, bit_generator)

    def scalars(self):
        """Quantities traced beside the log joint."""
        cdef State state = self.state
        layers = state.layer.layers()
        n_links = np.count_nonzero(state.loadings(), axis=0)
        return {
            "n_factors": float(np.sum(n_links > 0)),
            "n_shared_factors": float(np.sum(n_links > 1)),
            "n_layers": float(len(layers)),
            "mass": state.layer.mass,
            "log_noise_variance": float(np.mean(np.log(state.layer.floor[:state.n_features]))),
            **({"n_columns": float(state.layer.n_factors)} if state.prior.is_finite else {}),
            **({"drift": state.layer.drift} if state.samples_drift else {}),
        }

    def draw(self):
        """Snapshot for prediction: the state, scores in single precision, and labels of levels."""
        state = self.state.snapshot()
        labels = self._level_labels(state)
        for name in state:
            if name.startswith("scores"):
                state[name] = state[name].astype(np.float32)
        return {**state, "level_labels": labels}

    def data(self):
        """The data with NaN where missing, a copy."""
        cdef State state = self.state
        return np.asarray(state.layer.below)[:state.n_features, :state.n_samples].T.copy()

    def simulate_data(self):
        """Draw the observed cells anew given the state (Geweke 2004)."""
        cdef Py_ssize_t n, t
        cdef State state = self.state
        cdef ScaleLayer layer = state.layer
        cdef bitgen_t* rng = draws.borrow(self.bit_generator)
        cdef double a
        with self.bit_generator.lock:
            for n in range(state.n_features):
                for t in range(state.n_samples):
                    if not isnan(layer.below[n, t]):
                        a = layer.A[n, t]
                        layer.below[n, t] = layer.location[n] + layer.drift * a + sqrt(
                            a * a + layer.floor[n]
                        ) * draws.normal(rng)

    def _level_labels(self, found):
        """The factor with the largest share of each sample's energy, -1 the floor (D12.1)."""
        cdef State state = self.state
        layers = [(found["loadings1"], found["scores1"])] + state.layer.layers()[1:]
        labels = np.full((len(layers), state.n_samples), -1, dtype=np.int16)
        tau, floor = np.asarray(state.spread), found["noise_variance"]
        factor = 1.0 + state.layer.drift**2
        for number, (loadings, scores) in enumerate(layers):
            if number > 0:
                tau = np.mean(1.0 + (scores @ loadings.T) ** 2, axis=0)
                floor, factor = np.ones_like(tau), 1.0
            energy = factor * scores**2 * np.sum(loadings**2 / tau[:, np.newaxis], axis=0)
            background = np.full((state.n_samples, 1), np.sum(floor / tau))
            labels[number] = np.hstack([background, energy]).argmax(axis=1) - 1
        return labels
