"""Where chains start: k-means and rotated principal components."""

from itertools import combinations

import numpy as np

from skbnp.laws import InverseGamma
from skbnp.likelihoods.sparse_loadings.layers import prior_mean
from skbnp.numerics.k_means import k_means
from skbnp.numerics.scaling import column_means

MOST_FACTORS = 10
# Rows for each column, at least, where BIC has a say in the number of factors.
ROWS_PER_COLUMN = 2
# Loadings smaller than this, or than this share of their factor's largest, are no link at the
# start.
LEAST_LOADING = 0.25
# Standard deviation of clusters' centres along a direction that gets a factor for their sake.
LEAST_BETWEEN = 0.1
# Noise variance and its rate before anything is known.
NOISE, NOISE_RATE = 0.5, 0.3
# How often clusters are found anew with missing cells at the means of the clusters before.
N_FILLS = 3


def start_state(X, prior, rng, n_clusters, limit=None):
    """First state of a chain of the mixture.

    Clusters are those of k-means, fewer than asked for where there are fewer different rows.
    Factors are principal components, those of variance > 1, or as many as BIC would take, and what
    else tells the clusters apart, rotated by varimax: where clusters have offsets alone for their
    means (``means="feature"``), components of what is left within clusters. Given them scores,
    means and variances are drawn. Links that are not needed go within a few sweeps, while a chain
    with too few factors may wait for a birth for as long as it runs.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        In the prior's units, NaN where missing, -inf where below the detection limit.
    prior : Prior
    rng : numpy.random.Generator
    n_clusters : int
    limit : ndarray of shape (n_features,), default=None
        Detection limits.
    """
    if limit is not None:
        X = np.where(np.isneginf(X), limit, X)
    label, filled = clustered(X, n_clusters, rng)
    sizes = np.bincount(label)
    offset = np.zeros((len(sizes), X.shape[1]))
    if prior.means == "feature":
        offset = cluster_sums(filled, label) / sizes[:, np.newaxis]
    w = sparse_loadings(filled - offset[label], label)

    # y given x with m = 0, v = 1 and s = NOISE
    half = np.linalg.cholesky(w.T @ w / NOISE + np.eye(w.shape[1]))
    noise = rng.normal(size=(len(X), w.shape[1]))
    scores = np.linalg.solve(
        half.T, np.linalg.solve(half, w.T / NOISE @ (filled - offset[label]).T)
    )
    scores = (scores + np.linalg.solve(half.T, noise.T)).T

    offset_precision = 1.0 if prior.means == "factor" else prior_mean(prior.offset_precision)
    score_mean, score_variance = drawn_clusters(
        scores,
        label,
        prior.score_variance,
        np.inf if prior.means == "feature" else prior.mean_precision_prior,
        rng,
    )
    offset, noise_variance = drawn_clusters(
        filled - scores @ w.T,
        label,
        InverseGamma(prior.noise_variance.shape, NOISE_RATE),
        np.inf if prior.means == "factor" else offset_precision,
        rng,
        shared=prior.noise == "shared",
    )
    slab = prior.loading_variance
    shape = slab.shape + np.count_nonzero(w, axis=0) / 2
    return {
        "label": label,
        "loadings1": w,
        "slab_variance": (slab.scale + np.sum(w**2, axis=0) / 2) / rng.gamma(shape),
        "scores1": scores,
        "score_mean": score_mean,
        "score_variance": score_variance,
        "noise_variance": noise_variance,
        "noise_rate": np.full(X.shape[1], NOISE_RATE),
        "offset": offset,
        "row_precision": np.ones(len(X)),
        "hyper": np.array(
            [
                prior_mean(prior.concentration),
                prior_mean(prior.mass),
                offset_precision,
                np.inf,
            ]
        ),
        "filled": filled,
    }


def cluster_sums(X, label):
    """Sums of the rows of each cluster, (n_clusters, n_features)."""
    total = np.zeros((label.max() + 1, X.shape[1]))
    np.add.at(total, label, X)
    return total


def clustered(X, n_clusters, rng):
    """Labels 0, 1, ... by k-means, and X with missing cells at the means of their clusters."""
    missing = np.isnan(X)
    mean = column_means(X)
    filled = np.where(missing, mean, X)
    for _ in range(N_FILLS if missing.any() else 1):
        label = k_means(filled, n_clusters, rng)
        seen = cluster_sums((~missing).astype(float), label)
        total = cluster_sums(np.where(missing, 0.0, X), label)
        center = np.where(seen > 0, total / np.maximum(seen, 1), mean)
        filled = np.where(missing, center[label], X)
    return label, filled


def sparse_loadings(X, label):
    """Loadings (n_features, K) of principal components, rotated, small ones 0.

    The first ones of all rows, then those of the clusters' centres along which these vary more
    than the rows around them: clusters that no factor tells apart would be joined at once, and
    neither a birth nor a split alone gains anything then.
    """
    off = X - X.mean(axis=0)
    _, size, axes = np.linalg.svd(off / np.sqrt(len(X)), full_matrices=False)
    axes = axes[: min(max(np.count_nonzero(size > 1.0 + 1e-9), n_by_bic(off)), MOST_FACTORS)]
    left = off - off @ axes.T @ axes
    sizes = np.bincount(label)
    center = cluster_sums(left, label) / sizes[:, np.newaxis]
    within = left - center[label]
    more = leading_axes(center * np.sqrt(sizes / len(X))[:, np.newaxis], LEAST_BETWEEN)
    more = more[np.mean((within @ more.T) ** 2, axis=0) < np.mean((left @ more.T) ** 2, axis=0) / 2]
    axes = np.vstack([axes, more])[:MOST_FACTORS]
    loadings = varimax(axes.T * np.sqrt(np.mean((off @ axes.T) ** 2, axis=0)))
    largest = np.max(np.abs(loadings), axis=0, initial=0.0)
    loadings[np.abs(loadings) < LEAST_LOADING * np.minimum(largest, 1.0)] = 0.0
    return np.ascontiguousarray(loadings[:, loadings.any(axis=0)])


def n_by_bic(X):
    """Number of factors, up to `MOST_FACTORS`, of least BIC; 0 where rows are few.

    A column's noise is taken for what all others leave of it, and the likelihood of factors with
    noise in these proportions is at its largest in closed form (K. G. Joreskog 1969, Psychometrika
    34, 51-75; M. E. Tipping and C. M. Bishop 1999, Journal of the Royal Statistical Society B 61,
    611-622). Where a factor has but two or three columns there may be several more than by factor
    analysis, which a start can afford.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Complete, of mean 0.
    """
    n, d = X.shape
    if n < ROWS_PER_COLUMN * d or not X.any():
        return 0
    covariance = X.T @ X / n
    covariance += 1e-6 * np.trace(covariance) / d * np.eye(d)
    root = np.sqrt(np.diag(np.linalg.inv(covariance)))
    variance = np.linalg.eigvalsh(covariance * np.outer(root, root))[::-1]
    best, lowest = 0, np.inf
    for k in range(min(MOST_FACTORS, d - 1) + 1):
        deviance = np.log(variance[:k]).sum() + (d - k) * np.log(variance[k:].mean())
        bic = n * deviance + (k * d - k * (k - 1) / 2) * np.log(n)
        if bic < lowest:
            best, lowest = k, bic
    return best


def leading_axes(X, least):
    """Principal axes (n_axes, n_features) of rows, those longer than ``least``."""
    _, size, axes = np.linalg.svd(X, full_matrices=False)
    return axes[size > least]


def varimax(loadings, n_rounds=50):
    """Loadings rotated so that the variances of their squares are largest (Kaiser 1958).

    Each pair of columns is turned by its best angle, round after round.
    """
    turned = loadings.T.copy()
    for _ in range(n_rounds):
        largest = 0.0
        for i, j in combinations(range(len(turned)), 2):
            u, v = turned[i] ** 2 - turned[j] ** 2, 2 * turned[i] * turned[j]
            sine = 2 * (np.mean(u * v) - np.mean(u) * np.mean(v))
            cosine = np.mean(u**2 - v**2) - np.mean(u) ** 2 + np.mean(v) ** 2
            angle = np.arctan2(sine, cosine) / 4
            turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
            turned[[i, j]] = turn @ turned[[i, j]]
            largest = max(largest, abs(angle))
        if largest < 1e-6:
            break
    return turned.T


def drawn_clusters(X, label, law, precision, rng, shared=False):
    """Means and variances of each cluster's columns, given rows: the conjugate draw (F4.5).

    Means are N(0, variance / precision), zeros if that is infinite; variances have
    an inverse gamma law, a single row of them if ``shared``.
    """
    n = np.bincount(label)[:, np.newaxis].astype(float)
    total = cluster_sums(X, label)
    center = total / (precision + n)
    # S2 - S1^2 / (precision + n), without its cancellation
    squares = cluster_sums((X - center[label]) ** 2, label)
    if np.isfinite(precision):
        squares += precision * center**2
    counts = n
    if shared:
        counts, squares = n.sum(keepdims=True), squares.sum(axis=0, keepdims=True)
    variance = (law.scale + squares / 2) / rng.gamma(law.shape + counts / 2, size=squares.shape)
    mean = center + rng.normal(size=total.shape) * np.sqrt(variance / (precision + n))
    return mean, variance
