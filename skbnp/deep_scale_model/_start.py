"""Where chains start: a few random factors in much noise."""

import numpy as np

from skbnp.laws import Law
from skbnp.likelihoods.sparse_loadings.layers import prior_mean
from skbnp.numerics.scaling import column_means


def start_state(X, prior, rng, n_factors=2, annealed=False):
    """First state of a chain of the scale model: few factors, much noise.

    Links are tossed with a fair coin, at least one of each factor. The noise is all that varies,
    so that no factor owes its place to a lack of it, unless it is given and not annealed.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        In the prior's units, NaN where missing.
    prior : Prior
    rng : numpy.random.Generator
    n_factors : int, default=2
    annealed : bool, default=False
        Whether the chain brings the noise down to what the prior gives.
    """
    n_samples, n_features = X.shape
    location = np.zeros(n_features)
    if prior.location_variance > 0:
        location = column_means(X)
    variance = column_means((X - location) ** 2)
    variance = np.where(variance > 0, variance, 1.0)
    links = rng.random((n_features, n_factors)) < 0.5
    links[rng.integers(n_features, size=n_factors), np.arange(n_factors)] = True
    weights = rng.normal(size=links.shape) * np.sqrt(variance)[:, np.newaxis]
    is_given = not annealed and not isinstance(prior.noise_variance, Law)
    return {
        "loadings1": np.where(links, weights, 0.0),
        "scores1": rng.normal(size=(n_samples, n_factors)),
        "noise_variance": np.array(prior.noise_variance if is_given else variance, dtype=float),
        "location": location,
        "hyper": np.array([prior_mean(prior.mass), prior_mean(prior.drift)]),
    }
