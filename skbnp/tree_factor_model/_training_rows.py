"""The training rows, for what looks at each of them given all others."""

from dataclasses import dataclass

import numpy as np

from skbnp.tree_factor_model._predictive import log_leave_one_out
from skbnp.tree_factor_model._rows import Rows
from skbnp.units import Units


@dataclass(frozen=True)
class TrainingRows:
    """Standardised rows (n_samples, n_features) and their units."""

    X: np.ndarray
    units: Units

    def __call__(self, draw):
        """Log density of each row given all others and the draw without it, in the units of X."""
        return log_leave_one_out(Rows(self.X), draw) + self.units.log_jacobian(self.X)

    def observed_data(self):
        """The rows in their own units."""
        return self.units.from_visible(self.X)
