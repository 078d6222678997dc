"""Weights of one architecture, drawn by stochastic-gradient Hamiltonian Monte Carlo."""

import numpy as np

from skbnp.icp_network.convolution._network import Network
from skbnp.icp_network.convolution._training import Training
from skbnp.mcmc.chain import Chain, Move, State

_DONE = 0
# Log likelihood of the labels over that by class frequencies, below which weights are lost. Draws
# of the posterior of few images may well be less likely than by frequencies.
_LEAST_FIT = 3.0
# Images up to which steps have their full length. The posterior narrows with the root of their
# number.
_FEW_IMAGES = 500
# Images that show whether a network sees anything.
_N_LOOKED_AT = 100
# Times that the step is halved before a network stays at its point weights.
MOST_HALVINGS = 2


class Weights(State):
    """Weights over their prior deviations, ``z``, with momentum; ``point`` is where they began.

    ``fit`` is the log likelihood of all labels.
    """

    def __init__(self, data, prior, draw, bit_generator):
        """``draw`` is a network of a search, ``data`` are `LabelledImages`."""
        self.data, self.graph = data, {name: np.array(draw[name]) for name in ("order", "edges")}
        self.layout = prior.layout(draw["order"], draw["edges"])
        self.n_weights = self.layout.n_weights
        self.z = np.asarray(draw["weights"], dtype=np.float64) / self.layout.deviations
        self.z = self.z.astype(np.float32).astype(np.float64)
        self.momentum, self.point = np.zeros(self.n_weights), self.z.copy()
        self.fit, self.is_trained, self.n_halvings = 0.0, 0, 0
        rows = np.arange(len(data.labels))
        self.rows = rows.astype(np.intp)
        self.training = Training(self.layout, data.images, data.labels, rows, self.z, bit_generator)
        share = np.bincount(data.labels, minlength=prior.n_classes) / max(1, len(rows))
        of_frequencies = len(rows) * np.sum(share * np.log(np.where(share > 0, share, 1.0)))
        self.fit_of_frequencies = float(of_frequencies)
        self.step_scale = float(min(1.0, np.sqrt(_FEW_IMAGES / max(1, len(rows)))))

    def log_joint(self):
        """Of weights and labels."""
        deviation = self.layout.deviations
        of_weights = -0.5 * (self.z @ self.z) - np.sum(0.5 * np.log(2 * np.pi) + np.log(deviation))
        return float(of_weights + self.fit)

    def read_back(self):
        """Take over what the training has come to."""
        self.z = np.asarray(self.training.z, dtype=np.float64)
        self.momentum = np.asarray(self.training.momentum, dtype=np.float64)
        self.fit = self.training.log_likelihood(self.rows)

    def is_lost(self):
        """Whether the steps were too long.

        Then the labels have become far too unlikely, or all nodes are dead: the network says the
        same of all images.
        """
        if not (np.isfinite(self.z).all() and np.isfinite(self.fit)):
            return True
        if self.fit >= self.fit_of_frequencies:
            return False
        return self.fit < _LEAST_FIT * self.fit_of_frequencies or self._is_blind()

    def _is_blind(self):
        images = np.ascontiguousarray(self.data.images[:_N_LOOKED_AT])
        logits = Network(self.layout).logits(
            images, (self.z * self.layout.deviations).astype(np.float32)
        )
        return bool(self.layout.n_live_edges and len(images) > 1 and (logits == logits[0]).all())


class Wander(Move):
    """Steps of stochastic-gradient HMC on the tempered posterior; the first time, of Adam before.

    Where they leave what is likely, or nodes die, the weights go back to where they began
    and the step is halved; after that has happened twice they stay there.
    """

    NAME = "wander"
    COUNTS = ("steps",)

    def __init__(self, state, settings, bit_generator):
        super().__init__(bit_generator)
        self._state, self._settings = state, settings

    def run(self):
        state, settings = self._state, self._settings
        training = state.training
        if not state.is_trained:
            training.put(state.z, state.momentum)
            training.climb(
                settings["n_point_steps"], settings["batch_size"], settings["point_rate"]
            )
            state.read_back()
            if not (np.isfinite(state.z).all() and np.isfinite(state.fit)):
                # The search's own weights, which are.
                training.put(state.point, np.zeros(state.n_weights))
                state.read_back()
            state.point, state.is_trained = state.z.copy(), 1
        self.proposed[0] += 1
        if state.n_halvings > MOST_HALVINGS:
            return _DONE
        training.put(state.z, state.momentum)
        training.wander(
            settings["steps_per_draw"],
            settings["batch_size"],
            settings["step_length"] * state.step_scale * 0.5**state.n_halvings,
            settings["friction"],
            settings["temperature"],
        )
        state.read_back()
        if state.is_lost():
            state.n_halvings += 1
            training.put(state.point, np.zeros(state.n_weights))
            state.read_back()
        else:
            self.accepted[0] += 1
        return _DONE


class WeightChain(Chain):
    """Draws of the weights of one architecture."""

    def __init__(self, state, settings, bit_generator):
        super().__init__(state, [Wander(state, settings, bit_generator)], bit_generator)

    def scalars(self):
        """Quantities traced beside the log joint."""
        return {"log_labels": float(self.state.fit), "n_halvings": int(self.state.n_halvings)}

    def draw(self):
        """Snapshot: the network, as `_model` has it."""
        state = self.state
        weights = (state.z * state.layout.deviations).astype(np.float32)
        return {
            "order": state.graph["order"].copy(),
            "edges": state.graph["edges"].astype(np.int32),
            "weights": weights,
        }

    def run(self, n_dropped, n_draws):
        """Draws and traces, a draw after each sweep but for the first ones."""
        draws, traces = [], {"log_joint": []}
        for t in range(n_dropped + n_draws):
            self.sweep()
            if t >= n_dropped:
                draws.append(self.draw())
                for name, value in {"log_joint": self.log_joint(), **self.scalars()}.items():
                    traces.setdefault(name, []).append(value)
        return draws, traces


def make_weights(seed, draw, prior, data, settings):
    """The chain of the weights of one network."""
    bit_generator = np.random.default_rng(seed).bit_generator
    return WeightChain(Weights(data, prior, draw, bit_generator), settings, bit_generator)
