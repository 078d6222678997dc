"""The training rows, for what looks at each of them given a draw."""

from dataclasses import dataclass

import numpy as np

from skbnp.icp_network._model import Prior
from skbnp.icp_network._outputs import Outputs
from skbnp.icp_network._predictive import log_densities, predicted
from skbnp.likelihoods.nonlinear_gaussian._leaf_network import FEW_FEATURES

# Fantasies that the trace `log_density` rests on: of columns, and of targets given inputs.
_N_OF_COLUMNS, _N_OF_TARGETS = 500, 20
# Rows and points of the importance sampling in more columns than fantasies tell of.
_FEW_ROWS, _N_IMPORTANCE = 20, 100


@dataclass(frozen=True)
class TrainingRows:
    """A table (n_samples, n_columns) in its own units and as observed nodes of ``prior``.

    ``log_jacobian`` (n_samples,) leads from densities of the latter to the former. ``labels``
    (n_samples,) are classes; without, there are none of them. ``options`` are those of
    ``log_densities``, for labels the number of fantasies.
    """

    table: np.ndarray
    visible: np.ndarray
    log_jacobian: np.ndarray
    labels: np.ndarray
    prior: Prior
    options: dict

    def __call__(self, draw):
        """Log density of each row, or its target's, given the draw: rows are independent then."""
        if len(self.labels):
            probability, _ = predicted(draw, self.prior, self.visible, 0, **self.options)
            return np.log(probability[np.arange(len(self.labels)), self.labels])
        log_density, _ = log_densities(draw, self.prior, self.visible, 0, **self.options)
        return log_density + self.log_jacobian

    def observed_data(self):
        """The rows in their own units."""
        return self.table


class WatchedRows:
    """Log density of some training rows in the present state of a sampler, for ``log_density``.

    Of targets given inputs, or of columns by fantasies, where no column may have a child; these
    are made of the same normal numbers at every draw, so that their error hardly moves the trace.
    The few for targets are smoothed.
    In many columns, or where columns may be parents, by importance sampling, of fewer rows, around
    the modes next to where the chain has the hidden nodes.
    """

    def __init__(self, training, rows):
        self._prior = prior = training.prior
        self._of_targets = "input" in prior.roles or "latent" in prior.roles
        self._by_fantasies = self._of_targets or (
            prior.columns_are_leaves and prior.n_observed <= FEW_FEATURES
        )
        if not self._by_fantasies:
            rows = rows[:: -(-len(rows) // _FEW_ROWS)]
        self._rows = rows
        self._visible = training.visible[rows]
        self._labels = training.labels[rows] if len(training.labels) else None
        self._log_jacobian = training.log_jacobian[rows]
        self._noise = np.empty((0, 0))

    @property
    def n_rows(self):
        """How many they are."""
        return len(self._visible)

    def __call__(self, sampler):
        """Their log densities, shape (n_rows,)."""
        draw = sampler.draw()
        if self._by_fantasies:
            outputs = Outputs(draw, self._prior, self._noise_of(len(draw["order"])))
            found = outputs.log_densities(self._visible, self._labels, self._of_targets)
            return found + self._log_jacobian
        found, _ = log_densities(
            draw,
            self._prior,
            self._visible,
            0,
            0,
            "importance",
            n_fantasies=1,
            n_importance=_N_IMPORTANCE,
            near=sampler.state.pre_activations(self._rows),
        )
        return found + self._log_jacobian

    def _noise_of(self, n_nodes):
        """The same standard normals for as many nodes, however many there are."""
        if len(self._noise) < n_nodes:
            # Numbers are drawn node by node: more nodes leave those of the first ones.
            shape = (2 * n_nodes, _N_OF_TARGETS if self._of_targets else _N_OF_COLUMNS)
            self._noise = np.random.default_rng(0).standard_normal(shape)
        return self._noise[:n_nodes]

    def __getstate__(self):
        return {**self.__dict__, "_noise": np.empty((0, 0))}
