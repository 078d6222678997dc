"""The deep scale model's prior, its joint density in plain NumPy, and draws from both.

Pan & Han, "Non-parametric Bayesian learning with deep learning structure and its applications in
wireless networks", repaired as `doc/mathematics/deep_scale_model` says. With A_l = Y_l W_l' and
floors s^2 and 1,

    x_tn ~ N(location_n + drift A_1[t,n], A_1[t,n]^2 + s_n^2)      y_l[t,k] ~ N(0, A_l+1[t,k]^2 + 1)

``log_joint`` is slow and readable on purpose: it is what the compiled sampler is tested against.
A state is a dict; layers above the first occur in it only where they have a factor.

    loadings1       (n_features, K)   W, zero where a feature has no link to a factor
    scores1         (n_samples, K)    y
    loadings2, scores2, ...           (factors below, factors), (n_samples, factors)
    noise_variance  (n_features,)     s^2
    location        (n_features,)     mu
    hyper           (2,)              mass, drift
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from skbnp.laws import InverseGamma, Law, Normal
from skbnp.likelihoods.sparse_loadings.layers import (
    LoadingsPrior,
    checked_layers,
    draw_inverse_gamma,
    draw_links,
    draw_upper,
    drawn,
    inflation,
    log_links,
    log_normal,
    log_slab,
    log_upper,
)
from skbnp.numerics.states import checked_floats

# The law of sampled noise variances, which the state evaluates.
NOISE_LAW = InverseGamma

BIRTH_MOVES = ("singleton", "finite", "pan-han")


@dataclass(frozen=True)
class Prior(LoadingsPrior):
    """Hyperparameters of the scale model in standardised units: a number is given, a law sampled.

    Given noise variances are an array (n_features,), each > 0: without a floor a feature that has
    lost its links has no density (mathematics/deep_scale_model, section 13.3). Locations are
    sampled under N(0, location_variance) if that is not 0.

    Under "finite" and "pan-han" layer one has Poisson(mass H_n_features) columns, empty ones among
    them, whose links are beta-Bernoulli(mass / columns); layers above are Indian buffets always, as
    only these give the law of one more row.
    """

    noise_variance: np.ndarray | InverseGamma = InverseGamma(2.0, 0.1)
    drift: float | Normal = 0.0
    location_variance: float = 0.0
    birth_move: str = "singleton"

    @property
    def is_finite(self):
        """Whether columns of layer one are counted with the empty ones."""
        return self.birth_move != "singleton"


def log_finite_links(loadings, mass):
    """log p(Z, K) of Poisson(mass H) columns of beta(mass / K, 1)-Bernoulli links (D10.1)."""
    n_rows, n_columns = loadings.shape
    rate = mass * np.sum(1 / np.arange(1, n_rows + 1))
    total = n_columns * np.log(rate) - rate - gammaln(n_columns + 1)
    if n_columns == 0:
        return total
    m, a = np.count_nonzero(loadings, axis=0), mass / n_columns
    per_column = np.log(a) + gammaln(m + a) + gammaln(n_rows - m + 1) - gammaln(n_rows + 1 + a)
    return total + np.sum(per_column)


def log_joint(state, X, prior, terms=False):
    """log p(X, state), normalised, missing cells and slab variances integrated out.

    mathematics/deep_scale_model, section 2. Columns stand in a uniformly random order. Where
    ``max_layers`` forces the stop, no layer above has to be empty and there is no term for it.

    Parameters
    ----------
    state : dict
        As at the top of this file.
    X : ndarray of shape (n_samples, n_features)
        In the prior's units, NaN where missing.
    prior : Prior
    terms : bool, default=False
        Return a dict of the terms instead of their sum.
    """
    w, y, s2 = state["loadings1"], state["scores1"], state["noise_variance"]
    mass, drift = state["hyper"]
    amplitude = y @ w.T
    cells = log_normal(X, state["location"] + drift * amplitude, amplitude**2 + s2)
    log_first = log_finite_links if prior.is_finite else log_links
    parts = {
        "data": np.sum(cells[~np.isnan(X)]),
        "scores": np.sum(log_normal(y, 0.0, inflation(state))),
        "links": log_first(w, mass),
        "loadings": log_slab(w, prior.loading_variance),
        "upper": log_upper(state, prior),
        "noise_variance": 0.0,
        "location": 0.0,
        "hyper": 0.0,
    }
    if isinstance(prior.noise_variance, Law):
        parts["noise_variance"] = np.sum(prior.noise_variance.log_density(s2))
    if prior.location_variance > 0:
        parts["location"] = np.sum(log_normal(state["location"], 0.0, prior.location_variance))
    for law, value in ((prior.mass, mass), (prior.drift, drift)):
        if isinstance(law, Law):
            parts["hyper"] += law.log_density(value)
    return parts if terms else sum(parts.values())


def draw_data(state, rng):
    """X (n_samples, n_features) given the state."""
    amplitude = state["scores1"] @ state["loadings1"].T
    spread = np.sqrt(amplitude**2 + state["noise_variance"])
    mean = state["location"] + state["hyper"][1] * amplitude
    return mean + spread * rng.normal(size=mean.shape)


def draw_joint(prior, n_samples, n_features, rng):
    """One draw from the prior: (state, X), X complete."""
    mass = drawn(prior.mass, rng)
    if prior.is_finite:
        loadings = _draw_finite(n_features, mass, prior, rng)
    else:
        loadings, _ = draw_links(n_features, mass, prior, rng)
    n_factors = loadings.shape[1]
    noise = prior.noise_variance
    if isinstance(noise, Law):
        noise = draw_inverse_gamma(noise, rng, n_features)
    state = {
        "loadings1": loadings,
        "scores1": np.zeros((n_samples, n_factors)),
        "noise_variance": np.array(noise, dtype=np.float64),
        "location": rng.normal(size=n_features) * np.sqrt(prior.location_variance),
        "hyper": np.array([mass, drawn(prior.drift, rng)]),
        **draw_upper(prior, n_samples, n_factors, rng),
    }
    spread = np.sqrt(inflation(state))
    state["scores1"] = spread * rng.normal(size=spread.shape)
    return state, draw_data(state, rng)


def _draw_finite(n_rows, mass, prior, rng):
    n_columns = rng.poisson(mass * np.sum(1 / np.arange(1, n_rows + 1)))
    if n_columns == 0:
        return np.zeros((n_rows, 0))
    links = rng.random((n_rows, n_columns)) < rng.beta(mass / n_columns, 1, size=n_columns)
    variance = draw_inverse_gamma(prior.loading_variance, rng, n_columns)
    return np.where(links, rng.normal(size=links.shape) * np.sqrt(variance), 0.0)


def checked_state(state, prior, n_samples, n_features):
    """A state that the kernel may read unseen; ValueError if it does not fit."""
    loadings = checked_floats(state, "loadings1", (n_features, -1))
    n_factors = loadings.shape[1]
    if not prior.is_finite and not loadings.any(axis=0).all():
        raise ValueError("loadings1 of the state has an empty factor")
    hyper = checked_floats(state, "hyper", (2,))
    given = not isinstance(prior.mass, Law)
    if not hyper[0] > 0 or (given and hyper[0] != prior.mass):
        raise ValueError("hyper of the state must have the prior's mass, or one > 0 if sampled")
    if not isinstance(prior.drift, Law) and hyper[1] != prior.drift:
        raise ValueError("hyper of the state must have the prior's drift")
    location = checked_floats(state, "location", (n_features,))
    if prior.location_variance == 0 and location.any():
        raise ValueError("location of the state must be 0 where it is not sampled")
    return {
        "loadings1": loadings,
        "scores1": checked_floats(state, "scores1", (n_samples, n_factors)),
        "noise_variance": checked_floats(state, "noise_variance", (n_features,), positive=True),
        "location": location,
        "hyper": hyper,
        **checked_layers(state, prior, n_samples, n_factors),
    }
