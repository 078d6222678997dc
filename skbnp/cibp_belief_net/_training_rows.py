"""The training rows, for what looks at each of them given a draw."""

from dataclasses import dataclass

import numpy as np

from skbnp.cibp_belief_net._predictive import log_densities
from skbnp.units import Units


@dataclass(frozen=True)
class TrainingRows:
    """Rows (n_samples, n_features) in their own units, and how their density is computed."""

    X: np.ndarray
    units: Units
    options: dict

    def __call__(self, draw):
        """Log density of each row given the draw, in the units of X; rows are independent then."""
        A = self.units.to_visible(self.X)
        return log_densities(draw, A, 0, **self.options) + self.units.log_jacobian(self.X)

    def observed_data(self):
        """The rows in their own units."""
        return self.X
