"""The training rows, for what looks at each of them given all others."""

from dataclasses import dataclass, replace

import numpy as np

from skbnp.numerics.log_sums import log_totals
from skbnp.tree_factor_model._predictive import (
    log_branch_weights,
    log_densities,
    log_leave_one_out,
)
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
        return log_leave_one_out(Rows(self.X), draw) + self.units.log_jacobian_of_visible(self.X)

    def observed_data(self):
        """The rows in their own units."""
        return self.units.from_visible(self.X)


class WatchedRows:
    """Log density of some training rows in the present state of a sampler, for ``log_density``.

    Scores, missing cells and the row's branch are integrated out; the density is in the units of
    X. It is that of `score_samples` with this draw alone and ``new_branch="drop"``: branches that
    are drawn from the prior would make a trace of noise.
    """

    def __init__(self, X, units):
        self._X = X
        self._log_jacobian = units.log_jacobian_of_visible(X)
        self._rows = None

    @property
    def n_rows(self):
        """How many they are."""
        return len(self._X)

    def __call__(self, sampler):
        """Their log densities, shape (n_rows,)."""
        if self._rows is None:
            self._rows = Rows(self._X)
        draw = sampler.draw()
        density = log_totals(log_densities(self._rows, draw) + log_branch_weights(draw))
        # Of nothing the density is 1, whatever the weights' sum rounds to.
        return np.where(self._rows.n_entries > 0, density, 0.0) + self._log_jacobian

    def __getstate__(self):
        return {**self.__dict__, "_rows": None}  # compiled, made where it is needed
