"""Where chains of the belief network start."""

import numpy as np
from sklearn.decomposition import PCA

from skbnp.cibp_belief_net._model import HYPER, draw_joint, typical_noise_rate
from skbnp.numerics.k_means import k_means

# Standard deviation of a start's activations: squashed, but not cut off.
_SPREAD = 1.5
# Least standard deviation of a unit at the start, as a share of its column's.
_LEAST_NOISE = 0.1


def start_state(visible, prior, rng, init, n_units):
    """A state to start a chain from.

    Parameters
    ----------
    visible : ndarray of shape (n_samples, n_features)
        Pre-activations of the visible units, NaN where missing.
    prior : Prior
    rng : numpy.random.Generator
    init : {"pca", "empty", "prior"}
        Principal components as the units of the first layer, all joined to all columns; no hidden
        unit; or a draw from the prior.
    n_units : int
        Units of the first layer under "pca", at most.
    """
    mean = np.nanmean(visible, axis=0)
    filled = np.where(np.isnan(visible), mean, visible)
    if init == "prior":
        state = draw_joint(prior, len(visible), rng)
        return state | {"visible": filled}
    n_units = min(n_units, prior.max_units, *filled.shape) if init == "pca" else 0
    # Row clusters are the law of the last layer, so that all layers must be there for them.
    n_layers = prior.max_layers if prior.row_clusters else 1
    while n_units > 1 and sum(_widths(n_units, n_layers)) > prior.max_units:
        n_units -= 1
    layers, below = [], filled
    for width in _widths(n_units, n_layers):
        layers.append(_scores(below, width, rng))
        below = layers[-1]
    state = _network([filled, *layers], prior)
    if prior.row_clusters:
        n_clusters = n_start_clusters(len(filled))
        state |= _clusters(layers[-1] if layers else filled[:, :0], filled, n_clusters, rng)
    return state


def n_start_clusters(n_rows):
    """Clusters of k-means at the start: one for every 13 rows of 400, for every 23 of 1,400."""
    return min(n_rows, max(2, round(1.5 * n_rows**0.5)))


def _widths(n_units, n_layers):
    """Units of each layer, half as many as in the layer below."""
    return [max(1, n_units >> layer) for layer in range(n_layers)] if n_units else []


def _scores(filled, n_units, rng):
    """Scores of the leading principal components, of common spread."""
    n_units = min(n_units, *filled.shape)
    pca = PCA(n_units, random_state=int(rng.integers(2**31)))
    scores = pca.fit_transform(filled)
    size = scores.std(axis=0)
    # Components without any spread, where there are fewer than asked for, are noise.
    scores = np.where(size > 1e-8, scores, rng.standard_normal(scores.shape))
    return _SPREAD * scores / np.where(size > 1e-8, size, 1.0)


def _network(layers, prior):
    """The network whose layers have these pre-activations, all adjacent units joined."""
    widths = np.array([layer.shape[1] for layer in layers], dtype=np.intp)
    offset = np.concatenate([[0], np.cumsum(widths)])
    edges, weights, biases, precision = [], [], [], []
    for m, a in enumerate(layers):
        above = np.tanh(layers[m + 1] / 2) if m + 1 < len(layers) else a[:, :0]
        design = np.column_stack([np.ones(len(a)), above])
        # A ridge, for where there are no more rows than units.
        solution = np.linalg.solve(design.T @ design + np.eye(design.shape[1]), design.T @ a)
        variance = (a - design @ solution).var(axis=0)
        least = np.maximum((_LEAST_NOISE * a.std(axis=0)) ** 2, 1.0 / prior.highest_precision)
        biases.append(solution[0])
        precision.append(np.minimum(1.0 / np.maximum(variance, least), prior.highest_precision))
        children, parents = np.indices((widths[m], above.shape[1])).reshape(2, -1)
        edges.append(np.column_stack([parents + offset[m + 1], children + offset[m]]))
        weights.append(solution[1:].T.ravel())
    hyper = {name: np.ones(len(widths)) for name in HYPER}
    for m in range(len(widths)):
        n_above = widths[m + 1] if m + 1 < len(widths) else 0
        low, high = prior.bounds("concentration", m)
        hyper["concentration"][m] = (low + high) / 2
        low, high = prior.bounds("mass", m)
        hyper["mass"][m] = np.clip(n_above, low + 0.1 * (high - low), high - 0.1 * (high - low))
        hyper["noise_rate"][m] = typical_noise_rate(prior, precision[m])
        for of, values in (("weight", weights[m]), ("bias", biases[m])):
            hyper[f"{of}_mean"][m] = np.mean(values) if len(values) else 0.0
            hyper[f"{of}_precision"][m] = 1.0 / (np.var(values) + 0.1 if len(values) else 1.0)
    state = {
        "widths": widths,
        "edges": np.concatenate(edges).astype(np.int32),
        "weights": np.concatenate(weights),
        "biases": np.concatenate(biases),
        "unit_precision": np.concatenate(precision),
        "visible": layers[0],
        "pre_activations": np.hstack([layers[0][:, :0], *layers[1:]]),
        **hyper,
    }
    if prior.row_clusters and len(widths) == prior.max_layers + 1:
        top = slice(offset[-2], None)
        state["biases"][top], state["unit_precision"][top] = 0.0, 1.0
    return state


def _clusters(top, filled, n_clusters, rng):
    """Row clusters by k-means on the data, and the law of the top layer in each."""
    label = k_means(filled, n_clusters, rng)
    count = np.bincount(label)
    total = np.zeros((len(count), top.shape[1]))
    np.add.at(total, label, top)
    mean = total / (count[:, np.newaxis] + 0.2)
    squares = np.zeros_like(total)
    np.add.at(squares, label, (top - mean[label]) ** 2)
    return {
        "row_cluster": label,
        "cluster_mean": mean,
        "cluster_precision": (2.0 + count[:, np.newaxis] / 2) / (1.0 + squares / 2),
        "cluster_rate": np.ones(top.shape[1]),
    }
