"""The training rows, for what looks at each of them given a draw."""

from dataclasses import dataclass

import numpy as np

from skbnp.cibp_belief_net._predictive import (
    FEW_FEATURES,
    FEWEST,
    densities_around_modes,
    densities_by_fantasies,
    densities_by_laplace,
    fantasies_of,
    log_densities,
)
from skbnp.cibp_belief_net._predictive_laws import components_under
from skbnp.likelihoods.nonlinear_gaussian._fantasies import Noise
from skbnp.units import Units

# Fantasies that rows are compared with at every draw.
_N_FANTASIES = 500
# Rows in many columns, points around the mode of each, and by Laplace's approximation fantasies of
# all layers but the first.
_FEW_ROWS, _N_POINTS, _N_COMPONENTS = 50, 50, 16


@dataclass(frozen=True)
class TrainingRows:
    """Rows (n_samples, n_features) in their own units, and how their density is computed."""

    X: np.ndarray
    units: Units
    options: dict

    def __call__(self, draw):
        """Log density of each row given the draw, in the units of X; rows are independent then."""
        A = self.units.to_visible(self.X)
        found = log_densities(draw, A, 0, fantasies=fantasies_of(draw, 0), **self.options)
        return found + self.units.log_jacobian(self.X)

    def observed_data(self):
        """The rows in their own units."""
        return self.X


class WatchedRows:
    """Log density of some training rows in the present state of a sampler, for ``log_density``.

    Hidden units are integrated out; the density is in the units of X. In up to eight columns by
    fantasies, which are unbiased for the density. Where few of these count, as with little noise,
    they are far too low, by hundreds of nats: there, and beyond eight columns in any case, it is by
    points around the modes next to where the chain has the hidden units. With row clusters it is by
    Laplace's approximation, in up to eight columns if this is larger. All use the same random
    numbers at every draw.
    """

    def __init__(self, X, rows, units, prior, seed):
        self._seed, self._prior = seed, prior
        self._fantasies = self._noise = None
        if prior.n_features <= FEW_FEATURES:
            self._fantasies = Noise(seed, _N_FANTASIES)
        elif len(rows) > _FEW_ROWS:
            rows = rows[np.linspace(0, len(rows), _FEW_ROWS, endpoint=False).astype(np.intp)]
        if not prior.skip_connections:
            self._noise = Noise(seed, _N_COMPONENTS)
        self._rows = rows
        self._A = units.to_visible(X[rows])
        self._log_jacobian = units.log_jacobian(X[rows])

    @staticmethod
    def can_watch(prior):
        """Whether there is a way: beyond eight columns, only without skip connections."""
        return prior.n_features <= FEW_FEATURES or not prior.skip_connections

    @property
    def n_rows(self):
        """How many they are."""
        return len(self._A)

    def __call__(self, sampler):
        """Their log densities, shape (n_rows,)."""
        draw = sampler.draw()
        components = components_under(self._prior, draw, self._seed, 0)
        found, few = np.full(self.n_rows, -np.inf), np.ones(self.n_rows, dtype=bool)
        if self._fantasies is not None:
            found, n_effective = densities_by_fantasies(draw, self._A, self._fantasies, components)
            few = n_effective < FEWEST
        if few.any() and components is None:
            near = sampler.state.pre_activations(self._rows[few])
            found[few], _ = densities_around_modes(draw, self._A[few], 0, 0, _N_POINTS, near)
        elif few.any() and self._noise is not None:
            other = densities_by_laplace(draw, self._A[few], self._noise, components)
            found[few] = np.maximum(found[few], other)
        return found + self._log_jacobian
