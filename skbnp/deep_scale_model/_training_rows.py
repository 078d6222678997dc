"""The training rows, for what looks at each of them given a draw."""

from dataclasses import dataclass

import numpy as np

from skbnp.deep_scale_model._model import Prior
from skbnp.deep_scale_model._predictive import log_density
from skbnp.units import Units


@dataclass(frozen=True)
class TrainingRows:
    """Standardised rows (n_samples, n_modelled), NaN where missing, with their prior and units."""

    X: np.ndarray
    prior: Prior
    units: Units

    def __call__(self, draw):
        """Log density of each row in the units of X, given the draw."""
        jacobian = np.where(np.isfinite(self.X), np.log(self.units.scale), 0.0).sum(axis=1)
        return log_density(draw, self.X, 0)[0] - jacobian

    def observed_data(self):
        """The rows in their own units."""
        return self.units.from_visible(self.X)
