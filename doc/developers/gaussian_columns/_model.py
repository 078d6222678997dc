"""The prior, the joint density in plain NumPy, and draws from it: what the chain is tested against.

mu_j ~ N(0, v), lambda_j ~ Gamma(a, b), x_ij ~ N(mu_j, 1 / lambda_j); NaN is missing at random.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln


@dataclass(frozen=True)
class Prior:
    """Variance of the means; shape and rate of the precisions."""

    mean_variance: float
    shape: float
    rate: float


def log_joint(state, X, prior):
    """log p(mean, precision, X), normalised."""
    mean, precision = state["mean"], state["precision"]
    seen = ~np.isnan(X)
    squares = np.where(seen, X - mean, 0.0) ** 2
    log_likelihood = 0.5 * np.where(seen, np.log(precision / (2 * np.pi)), 0.0)
    total = np.sum(log_likelihood - 0.5 * precision * squares)
    total -= 0.5 * np.sum(np.log(2 * np.pi * prior.mean_variance) + mean**2 / prior.mean_variance)
    a, b = prior.shape, prior.rate
    total += np.sum(a * np.log(b) - gammaln(a) + (a - 1) * np.log(precision) - b * precision)
    return total


def draw_joint(prior, n_samples, n_features, rng):
    """One draw of state and complete rows: (state, X)."""
    state = {
        "mean": rng.normal(0.0, np.sqrt(prior.mean_variance), n_features),
        "precision": rng.gamma(prior.shape, 1.0 / prior.rate, n_features),
    }
    noise = rng.standard_normal((n_samples, n_features)) / np.sqrt(state["precision"])
    return state, state["mean"] + noise


def log_densities(X, draw):
    """Log density of each row's observed cells under a draw, (n_rows,)."""
    off = X - draw["mean"]
    cells = 0.5 * np.log(draw["precision"] / (2 * np.pi)) - 0.5 * draw["precision"] * off**2
    return np.nansum(cells, axis=1)
