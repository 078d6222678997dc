"""The training rows, for what looks at each of them given a draw."""

from dataclasses import dataclass

import numpy as np

from skbnp.deep_scale_model._model import Prior
from skbnp.deep_scale_model._predictive import log_density
from skbnp.units import Units

# Rows whose density is traced, at most, and 2^9 points for each of the parts of a draw that share
# no factor: both together cost less than a sweep.
_MOST_WATCHED, _LOG_N_POINTS = 100, 9


@dataclass(frozen=True)
class TrainingRows:
    """Standardised rows (n_samples, n_modelled), NaN where missing, with their prior and units."""

    X: np.ndarray
    prior: Prior
    units: Units

    def __call__(self, draw):
        """Log density of each row in the units of X, given the draw."""
        return log_density(draw, self.X, 0)[0] + self.units.log_jacobian_of_visible(self.X)

    def observed_data(self):
        """The rows in their own units."""
        return self.units.from_visible(self.X)


class WatchedRows:
    """Log density of some training rows in the present state of a sampler, for ``log_density``.

    Scores are integrated out by the same quasi-random points at every draw, so that a trace moves
    where the draws do. The points are few, and rows are not annealed: beyond a few factors on the
    same columns the density is too low, and `score_samples` is what to quote.
    """

    def __init__(self, X, units):
        self._X, self._units = X[:: -(-len(X) // _MOST_WATCHED)], units

    @property
    def n_rows(self):
        """How many they are."""
        return len(self._X)

    def __call__(self, sampler):
        """Their log densities, shape (n_rows,)."""
        found, _ = log_density(sampler.draw(), self._X, 0, 0, _LOG_N_POINTS, anneals=False)
        return found + self._units.log_jacobian_of_visible(self._X)
