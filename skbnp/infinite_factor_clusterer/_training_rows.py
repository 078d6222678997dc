"""The training rows, for what looks at each of them given a draw."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from skbnp.infinite_factor_clusterer._model import Prior
from skbnp.infinite_factor_clusterer._predictive import as_rows, components, log_densities
from skbnp.units import Units


@dataclass(frozen=True)
class TrainingRows:
    """Standardised rows (n_samples, n_modelled) with their prior, units and detection limits.

    NaN marks missing cells, -inf those below the limit.
    """

    X: np.ndarray
    prior: Prior
    units: Units
    limit: np.ndarray | None

    def __call__(self, draw):
        """Log density of each row in the units of X.

        Given the draw and all other rows' clusters: a row counts neither in its own cluster's
        weight nor has one that it alone has opened.
        """
        jacobian = np.where(np.isfinite(self.X), np.log(self.units.scale), 0.0).sum(axis=1)
        label = draw["label"].astype(np.intp)
        log_p = log_densities(as_rows(self.X, self.limit), components(draw, self.prior))
        weight = np.tile(np.append(draw["n_members"], draw["hyper"][0]), (len(label), 1))
        weight[np.arange(len(label)), label] -= 1.0
        log_weight = np.log(weight, where=weight > 0, out=np.full(weight.shape, -np.inf))
        total = len(label) - 1 + draw["hyper"][0]
        return logsumexp(log_p + log_weight, axis=1) - np.log(total) - jacobian

    def observed_data(self):
        """The rows in their own units, -inf below the detection limit."""
        return self.units.from_visible(self.X)
