"""The training rows, for what looks at each of them given a draw."""

from dataclasses import dataclass

import numpy as np

from skbnp.infinite_factor_clusterer._components import components
from skbnp.infinite_factor_clusterer._model import Prior
from skbnp.infinite_factor_clusterer._predictive import as_rows, log_densities
from skbnp.numerics.log_sums import log_totals
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
        label = draw["label"].astype(np.intp)
        log_p = log_densities(as_rows(self.X, self.limit), components(draw, self.prior))
        weight = np.tile(np.append(draw["n_members"], draw["hyper"][0]), (len(label), 1))
        weight[np.arange(len(label)), label] -= 1.0
        log_weight = np.log(weight, where=weight > 0, out=np.full(weight.shape, -np.inf))
        total = len(label) - 1 + draw["hyper"][0]
        log_jacobian = self.units.log_jacobian_of_visible(self.X)
        return log_totals(log_p + log_weight) - np.log(total) + log_jacobian

    def observed_data(self):
        """The rows in their own units, -inf below the detection limit."""
        return self.units.from_visible(self.X)


class WatchedRows:
    """Log density of some training rows in the present state of a sampler, for ``log_density``.

    Scores, missing and censored cells are integrated out, and a row may be of any of the clusters
    that there are, in proportion to their members. Unlike in `score_samples` a new cluster is
    left out: training rows are in clusters, and its law is known by draws from the prior alone.
    """

    def __init__(self, X, rows, prior, limit, log_jacobian):
        """``rows`` are those of standardised X to look at, ``log_jacobian`` (n_rows,) theirs."""
        self._prior, self._log_jacobian = prior, log_jacobian
        # Where the sampler has drawn what is to be integrated out, layers above or cells below the
        # limit, the density is that of predictions.
        drawn = np.isneginf(X[rows]).any(axis=1) | (prior.max_layers > 1)
        self._drawn, plain = np.flatnonzero(drawn), np.flatnonzero(~drawn)
        self._rows = as_rows(X[rows[drawn]], limit)
        # Rows that lack the same cells stand together.
        kinds = np.packbits(np.isnan(X[rows[plain]]), axis=1)
        _, kind = np.unique(kinds, axis=0, return_inverse=True)
        self._plain = plain[np.argsort(kind.ravel(), kind="stable")]
        self._plain_rows = rows[self._plain].astype(np.intp)

    @property
    def n_rows(self):
        """How many they are."""
        return len(self._log_jacobian)

    def __call__(self, sampler):
        """Their log densities, shape (n_rows,)."""
        draw = sampler.draw()
        log_p = np.empty((self.n_rows, len(draw["n_members"])))
        log_p[self._plain] = sampler.log_densities(self._plain_rows)
        if self._drawn.size:
            parts = components(draw, self._prior)
            log_p[self._drawn] = log_densities(self._rows, parts, new=False)[:, :-1]
        log_p += np.log(draw["n_members"] / len(draw["label"]))
        return log_totals(log_p) + self._log_jacobian
