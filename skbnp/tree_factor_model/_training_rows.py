"""The training rows, for what looks at each of them given all others."""

from dataclasses import dataclass, replace

import numpy as np

from skbnp.tree_factor_model._predictive import log_leave_one_out
from skbnp.tree_factor_model._rows import Rows
from skbnp.units import Units


@dataclass(frozen=True)
class TrainingRows:
    """Standardised rows (n_samples, n_features) and their units."""

    X: np.ndarray
    units: Units

    @classmethod
    def from_data(cls, data):
        """The rows that a file holds; version 0.1 has a center and a scale in place of units."""
        if "units" not in data:
            units = Units.unscaled(len(data["center"]))
            units = replace(units, center=data["center"], scale=data["scale"])
            data = {"X": data["X"], "units": units}
        return cls(**data)

    def __call__(self, draw):
        """Log density of each row given all others and the draw without it, in the units of X."""
        return log_leave_one_out(Rows(self.X), draw) + self.units.log_jacobian(self.X)

    def observed_data(self):
        """The rows in their own units."""
        return self.units.from_visible(self.X)
