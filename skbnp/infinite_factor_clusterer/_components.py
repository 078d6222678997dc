"""The components of a draw of the mixture: its clusters, and clusters that no row has yet."""

import zlib
from dataclasses import dataclass, field

import numpy as np

from skbnp.likelihoods.sparse_loadings.layers import n_layers

# Draws from the prior that stand for a cluster that no training row has.
N_NEW = 10
# Draws of the upper scores, where there are layers above.
N_UPPER = 32
_LEAST_GAMMA = 1e-290


@dataclass(frozen=True)
class Components:
    """The components of a draw, those of its clusters first, that of a new cluster last.

    ``cluster`` (C,) says whose they are, ``log_share`` (C,) the logarithm of their shares in it;
    ``spread`` (C, K) are standard deviations of the scores, which the layers above multiply by
    ``factor`` (J, K), draws of equal weight. ``together`` are the components of all draws of a
    prediction, of which this is that of the given ``number``.
    """

    log_weight: np.ndarray
    cluster: np.ndarray
    log_share: np.ndarray
    loadings: np.ndarray
    score_mean: np.ndarray
    spread: np.ndarray
    factor: np.ndarray
    noise: np.ndarray
    offset: np.ndarray
    df: float | np.ndarray
    together: object = field(default=None, repr=False)
    number: int = 0

    @property
    def n_clusters(self):
        """Clusters of the draw, the new one left out."""
        return len(self.log_weight) - 1


def components(draw, prior):
    """The components of a draw; random numbers that they take come from the draw itself."""
    rng = _generator(draw)
    w, m, v = draw["loadings1"], draw["score_mean"], draw["score_variance"]
    n_clusters = len(m)
    s = np.broadcast_to(draw["noise_variance"], draw["offset"].shape)
    new_m, new_v, new_s, new_o = new_clusters(draw, prior, N_NEW, rng)
    n_members = draw["n_members"].astype(np.float64)
    concentration, *_, df = draw["hyper"]
    return Components(
        log_weight=np.log(np.append(n_members, concentration) / (n_members.sum() + concentration)),
        cluster=np.append(np.arange(n_clusters), np.full(N_NEW, n_clusters)),
        log_share=np.append(np.zeros(n_clusters), np.full(N_NEW, -np.log(N_NEW))),
        loadings=w,
        score_mean=np.concatenate([m, new_m]),
        spread=np.sqrt(np.concatenate([v, new_v])),
        factor=np.sqrt(upper_variances(draw, N_UPPER, rng)),
        noise=np.concatenate([s, new_s]),
        offset=np.concatenate([draw["offset"], new_o]),
        df=float(df),
    )


def _generator(draw):
    """A generator that is the same whenever the draw is."""
    return np.random.default_rng(zlib.crc32(np.ascontiguousarray(draw["noise_variance"]).tobytes()))


def new_clusters(draw, prior, n, rng):
    """Means, variances, noise and offsets of clusters from the prior, given what all share."""
    n_factors, n_features = draw["score_mean"].shape[1], draw["offset"].shape[1]
    v = prior.score_variance.scale / _gamma(rng, prior.score_variance.shape, (n, n_factors))
    m = np.zeros_like(v)
    if prior.means != "feature":
        m = rng.normal(size=v.shape) * np.sqrt(v / prior.mean_precision_prior)
    s = draw["noise_variance"]
    if prior.noise == "shared":
        s = np.repeat(s, n, axis=0)
    else:
        s = draw["noise_rate"] / _gamma(rng, prior.noise_variance.shape, (n, n_features))
    offset = np.zeros_like(s)
    if prior.means != "factor":
        offset = rng.normal(size=s.shape) * np.sqrt(s / draw["hyper"][2])
    return m, v, s, offset


def _gamma(rng, shape, size):
    """Draws that are never 0, as those of a small shape would be below the range of floats."""
    return np.maximum(rng.gamma(shape, size=size), _LEAST_GAMMA)


def upper_variances(draw, n, rng):
    """u = 1 + A_2^2 of some draws of the upper scores, (n, K); a single row of ones without."""
    variance = np.ones((1, draw["score_mean"].shape[1]))
    for number in range(n_layers(draw), 1, -1):
        w = draw[f"loadings{number}"]
        top = f"loadings{number + 1}" not in draw
        scores = rng.normal(size=(n, w.shape[1])) * (1.0 if top else np.sqrt(variance))
        variance = 1 + (scores @ w.T) ** 2
    return variance
