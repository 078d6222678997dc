"""The clusterer's prior, its joint density in plain NumPy, and draws from both.

``log_joint`` is slow and readable on purpose: it is what the compiled sampler is tested against.
A state is a dict; layers above the first occur in it only where they have a factor.

    label           (n_samples,)      z, clusters 0, 1, ...
    loadings1       (n_features, K)   W, zero where a feature has no link to a factor
    slab_variance   (K,)              sigma^2 of a factor's loadings
    scores1         (n_samples, K)    y
    score_mean      (G, K)            m
    score_variance  (G, K)            v
    noise_variance  (G, n_features)   s; one row if it is shared
    noise_rate      (n_features,)     h
    offset          (G, n_features)   o
    row_precision   (n_samples,)      lambda
    hyper           (4,)              concentration, mass, offset precision, degrees of freedom
    filled          (n_samples, n_features)   X, missing and censored cells drawn
    loadings2, scores2, ...           (factors below, factors), (n_samples, factors)
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, log_ndtr

from skbnp.infinite_factor_clusterer._old_files import with_laws
from skbnp.laws import Gamma, InverseGamma, Law
from skbnp.likelihoods.sparse_loadings.layers import (
    LoadingsPrior,
    checked_layers,
    draw_inverse_gamma,
    draw_links,
    draw_upper,
    drawn,
    inflation,
    log_inverse_gamma,
    log_links,
    log_normal,
    log_upper,
)
from skbnp.numerics.law_above import log_density_above, sample_above
from skbnp.numerics.states import checked_floats, checked_indices, entry
from skbnp.processes import crp

# nu of t tails, uniform on these
TAIL_GRID = np.array([2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, np.inf])

# The law of the scale of a feature's noise variances, which `_law` evaluates and draws from.
NOISE_RATE_LAW = Gamma

# That scale is at least this: with equal rows or columns the posterior would
# be improper without a bound. The prior has 5e-6 of its mass below.
SMALLEST_RATE = 1e-6


@dataclass(frozen=True)
class Prior(LoadingsPrior):
    """Hyperparameters of the mixture in standardised units: a number is given, a law is sampled.

    z ~ CRP(concentration); x ~ N(W y + o_z, s_z / lambda); y_k ~ N(m_zk, v_zk u_k / lambda) with
    u = 1 without further layers; m ~ N(0, v / mean_precision_prior); v has the law
    ``score_variance``, s the law ``noise_variance``, whose scale, the noise rate, has a law of its
    own for each feature.
    """

    concentration: float | Gamma = Gamma(1.0, 1.0)
    score_variance: InverseGamma = InverseGamma(2.0, 1.0)
    mean_precision_prior: float = 0.2
    noise: str = "cluster"
    noise_variance: InverseGamma = InverseGamma(2.0, Gamma(1.0, 5.0))
    means: str = "factor"
    offset_precision: Gamma = Gamma(1.0, 5.0)
    tails: str = "gaussian"

    @classmethod
    def from_data(cls, data):
        """From what files hold; those of version 0.1 have pairs of numbers for laws."""
        return cls(**with_laws(data))

    @property
    def tail_grid(self):
        """Degrees of freedom that rows may have."""
        return TAIL_GRID if self.tails == "t" else np.array([np.inf])


# -- the joint density --------------------------------------------------------------------------


def log_joint(state, X, prior, limit=None, terms=False):
    """log p(X, state), normalised, the filled cells integrated out.

    Parameters
    ----------
    state : dict
        As at the top of this file.
    X : ndarray of shape (n_samples, n_features)
        In the prior's units, NaN where missing, -inf where below the detection limit.
    prior : Prior
    limit : ndarray of shape (n_features,), default=None
        Detection limits.
    terms : bool, default=False
        Return a dict of the terms instead of their sum.
    """
    z = np.asarray(state["label"])
    m, v, y = state["score_mean"], state["score_variance"], state["scores1"]
    w, h = state["loadings1"], state["noise_rate"]
    s, weight = state["noise_variance"], state["row_precision"][:, np.newaxis]
    concentration, mass, offset_precision, df = state["hyper"]
    n, n_clusters = len(X), len(m)
    of_row = np.zeros_like(z) if prior.noise == "shared" else z
    mean = y @ w.T + state["offset"][z]
    variance = s[of_row] / weight
    with np.errstate(invalid="ignore"):
        cells = log_normal(X, mean, variance)
        if limit is not None:
            below = log_ndtr((limit - mean) / np.sqrt(variance))
            cells = np.where(np.isneginf(X), below, cells)
    sizes = np.bincount(z, minlength=n_clusters)
    links = w != 0
    parts = {
        "data": np.sum(cells[~np.isnan(X)]),
        "scores": np.sum(log_normal(y, m[z], v[z] * inflation(state) / weight)),
        "score_mean": 0.0,
        "score_variance": np.sum(prior.score_variance.log_density(v)),
        "noise_variance": np.sum(log_inverse_gamma(s, prior.noise_variance.shape, h)),
        "noise_rate": np.sum(log_density_above(h, prior.noise_variance.scale, SMALLEST_RATE)),
        "partition": n_clusters * np.log(concentration)
        + np.sum(gammaln(sizes))
        + gammaln(concentration)
        - gammaln(concentration + n),
        "links": log_links(w, mass),
        "loadings": np.sum(
            log_normal(w, 0.0, np.broadcast_to(state["slab_variance"], w.shape))[links]
        ),
        "slab_variance": np.sum(prior.loading_variance.log_density(state["slab_variance"])),
        "upper": log_upper(state, prior),
        "row_precision": 0.0,
        "offset": 0.0,
        "hyper": 0.0,
    }
    if np.isfinite(df):
        parts["row_precision"] = np.sum(Gamma(df / 2, df / 2).log_density(state["row_precision"]))
    if prior.means != "feature":
        parts["score_mean"] = np.sum(log_normal(m, 0.0, v / prior.mean_precision_prior))
    if prior.means != "factor":
        of_cluster = np.broadcast_to(s, state["offset"].shape)
        parts["offset"] = np.sum(log_normal(state["offset"], 0.0, of_cluster / offset_precision))
        parts["hyper"] += prior.offset_precision.log_density(offset_precision)
    if isinstance(prior.concentration, Law):
        parts["hyper"] += prior.concentration.log_density(concentration)
    if isinstance(prior.mass, Law):
        parts["hyper"] += prior.mass.log_density(mass)
    if prior.tails == "t":
        parts["hyper"] -= np.log(len(TAIL_GRID))
    return parts if terms else sum(parts.values())


def draw_hyper(prior, rng):
    """hyper of a state from the prior."""
    return np.array(
        [
            drawn(prior.concentration, rng),
            drawn(prior.mass, rng),
            1.0 if prior.means == "factor" else drawn(prior.offset_precision, rng),
            rng.choice(prior.tail_grid),
        ]
    )


def draw_joint(prior, n_samples, n_features, rng):
    """One draw from the prior: (state, X), X complete and the same as the state's filled."""
    hyper = draw_hyper(prior, rng)
    concentration, mass, offset_precision, df = hyper
    label = crp.sample(n_samples, concentration, random_state=rng)
    n_clusters = label.max() + 1
    loadings, slab_variance = draw_links(n_features, mass, prior, rng)
    n_factors = loadings.shape[1]
    v = draw_inverse_gamma(prior.score_variance, rng, (n_clusters, n_factors))
    if prior.means == "feature":
        m = np.zeros_like(v)
    else:
        m = rng.normal(size=v.shape) * np.sqrt(v / prior.mean_precision_prior)
    h = sample_above(prior.noise_variance.scale, SMALLEST_RATE, n_features, rng)
    n_noises = 1 if prior.noise == "shared" else n_clusters
    s = h / rng.gamma(prior.noise_variance.shape, size=(n_noises, n_features))
    offset = np.zeros((n_clusters, n_features))
    if prior.means != "factor":
        offset = rng.normal(size=offset.shape) * np.sqrt(s / offset_precision)
    row_precision = np.ones(n_samples)
    if np.isfinite(df):
        row_precision = rng.gamma(df / 2, 2 / df, size=n_samples)
    state = {
        "label": label.astype(np.intp),
        "loadings1": loadings,
        "slab_variance": slab_variance,
        "scores1": np.zeros((n_samples, n_factors)),
        "score_mean": m,
        "score_variance": v,
        "noise_variance": s,
        "noise_rate": h,
        "offset": offset,
        "row_precision": row_precision,
        "hyper": hyper,
        **draw_upper(prior, n_samples, n_factors, rng),
    }
    spread = np.sqrt(v[label] * inflation(state) / row_precision[:, np.newaxis])
    state["scores1"] = m[label] + spread * rng.normal(size=spread.shape)
    of_row = np.zeros_like(label) if prior.noise == "shared" else label
    spread = np.sqrt(s[of_row] / row_precision[:, np.newaxis])
    mean = state["scores1"] @ loadings.T + offset[label]
    X = mean + spread * rng.normal(size=mean.shape)
    state["filled"] = X.copy()
    return state, X


# -- states from outside ------------------------------------------------------------------------


def checked_hyper(state, prior):
    """hyper of the state; ValueError if the prior does not allow it."""
    hyper = np.array(entry(state, "hyper"), dtype=np.float64)
    if hyper.shape != (4,) or not (hyper > 0).all() or not np.isfinite(hyper[:3]).all():
        raise ValueError("hyper of the state must be four numbers > 0, the first three finite")
    if hyper[3] not in prior.tail_grid:
        raise ValueError(f"hyper of the state must have degrees of freedom in {prior.tail_grid}")
    return hyper


def checked_parameters(state, prior, n_features):
    """What draws and states share, as arrays that kernels may read unseen."""
    mean = checked_floats(state, "score_mean", (-1, -1))
    n_clusters, n_factors = mean.shape
    n_noises = 1 if prior.noise == "shared" else n_clusters
    loadings = checked_floats(state, "loadings1", (n_features, n_factors))
    if n_clusters == 0 or not loadings.any(axis=0).all():
        raise ValueError("state has no cluster, or a factor without a link")
    shape = (n_clusters, n_factors)
    return {
        "loadings1": loadings,
        "score_mean": mean,
        "score_variance": checked_floats(state, "score_variance", shape, positive=True),
        "noise_variance": checked_floats(
            state, "noise_variance", (n_noises, n_features), positive=True
        ),
        "offset": checked_floats(state, "offset", (n_clusters, n_features)),
        "hyper": checked_hyper(state, prior),
    }


def checked_state(state, prior, n_samples, n_features):
    """A state that the kernel may read unseen; ValueError if it does not fit."""
    out = checked_parameters(state, prior, n_features)
    n_clusters, n_factors = out["score_mean"].shape
    out["label"] = checked_indices(state, "label", (n_samples,), 0, n_clusters)
    if len(np.unique(out["label"])) != n_clusters:
        raise ValueError("label of the state must use every cluster")
    out["slab_variance"] = checked_floats(state, "slab_variance", (n_factors,), positive=True)
    out["scores1"] = checked_floats(state, "scores1", (n_samples, n_factors))
    out["noise_rate"] = checked_floats(state, "noise_rate", (n_features,), positive=True)
    out["row_precision"] = checked_floats(state, "row_precision", (n_samples,), positive=True)
    out["filled"] = checked_floats(state, "filled", (n_samples, n_features))
    return out | checked_layers(state, prior, n_samples, n_factors)
