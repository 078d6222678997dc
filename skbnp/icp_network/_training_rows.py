"""The training rows, for what looks at each of them given a draw."""

from dataclasses import dataclass

import numpy as np

from skbnp.icp_network._model import Prior
from skbnp.icp_network._predictive import log_densities, predicted


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
