"""How sure averages over networks may be: judged by images that their weights have not seen."""

import numpy as np

from skbnp.icp_network._calibration import best_power
from skbnp.icp_network.convolution._ensemble import make_weights
from skbnp.icp_network.convolution._images import LabelledImages, folds_of, log_probabilities

# Folds, each of which some of the weights are drawn without.
N_FOLDS = 4


class Folds:
    """Training images in folds, and networks whose weights are drawn without one of them.

    Weights of network t are drawn without fold t modulo the number of folds, and start from the
    prior: those of the search have seen three quarters of the images. Architectures are those of
    the search, which was told all labels.
    """

    def __init__(self, data, prior, networks, rng):
        """``networks`` are draws of a search; ``data`` are `LabelledImages`, all to learn from."""
        self._data, self._prior, self._networks = data, prior, networks
        self.n_folds = min(N_FOLDS, len(data.labels))
        self._fold = folds_of(data.labels, self.n_folds, rng)

    @property
    def n_chains(self):
        """Chains of weights that are needed: one of each network, and of each fold."""
        return max(len(self._networks), self.n_folds)

    def left_out(self, t, seed, settings, n_dropped, n_draws):
        """Rows of the fold of chain t and the means of their probabilities over its draws."""
        fold = t % self.n_folds
        rows, others = np.flatnonzero(self._fold == fold), np.flatnonzero(self._fold != fold)
        of_weights, of_chain = seed.spawn(2)
        network = self._networks[t % len(self._networks)]
        layout = self._prior.layout(network["order"], network["edges"])
        z = np.random.default_rng(of_weights).standard_normal(layout.n_weights)
        start = network | {"weights": (z * layout.deviations).astype(np.float32)}
        data = LabelledImages(
            self._data.images[others], self._data.labels[others], np.arange(len(others)), rows[:0]
        )
        draws, _ = make_weights(of_chain, start, self._prior, data, settings).run(
            n_dropped, n_draws
        )
        images = np.ascontiguousarray(self._data.images[rows])
        total = sum(np.exp(log_probabilities(draw, self._prior, images)) for draw in draws)
        return rows, total / len(draws)

    def power(self, found):
        """The power that serves the labels best, given what each of the chains has left out."""
        total = np.zeros((len(self._fold), self._prior.n_classes))
        for rows, probability in found:
            total[rows] += probability
        return best_power(total / total.sum(axis=1, keepdims=True), self._data.labels)
