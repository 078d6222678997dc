"""Where chains of the tree factor model start: rows in groups, and what varies within them."""

from math import prod

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from skbnp.numerics.k_means import k_means
from skbnp.tree_factor_model._model import LEAST_NOISE_RATE
from skbnp.tree_factor_model._predictive import branch_probabilities
from skbnp.tree_factor_model._rows import Rows

# Principal scores that k-means looks at.
N_SCORES = 20
# Rows from which chains start, at most: more do not make a better tree, but cost time and room.
MOST_START_ROWS = 20_000


def start_state(X, prior, rng, n_children, start="klines"):
    """First state of a chain.

    A segment of levels without branching takes the leading principal directions of its rows,
    times the standard deviations along them, and they are taken out of the rows. Below each
    branching level rows fall into at most so many groups as ``n_children`` has for it: "klines"
    splits what is left of them by k-lines; "em" fits a Gaussian mixture first and groups its
    components by their shapes; "kmeans" finds clusters by k-means and groups them by their centres.
    The latter two start from the means of their clusters and the directions within them. One group
    everywhere: a single branch.

    X has columns of about zero mean and unit variance, in the prior's units; a missing entry
    stands at its column's mean. Of very many rows a random part makes the tree, and the others go
    where they are most probable.
    """
    if len(X) > MOST_START_ROWS:
        chosen = np.sort(rng.choice(len(X), MOST_START_ROWS, replace=False))
        return with_all_rows(start_state(X[chosen], prior, rng, n_children, start), X, chosen)
    depth, levels = prior.max_depth, list(prior.branch_levels)
    shift = np.nanmean(np.where(np.isnan(X).all(axis=0), 0.0, X), axis=0)
    filled = np.where(np.isnan(X), shift, X)
    if start in GROUPINGS and levels:
        tree = tree_of_groups(filled, GROUPINGS[start](filled, n_children, rng), prior, start)
        leaf_mean, multiplier, noise_precision = group_means(filled, tree["branch"]), 1.1, 10.0
    else:
        tree = tree_of_lines(filled - shift, prior, n_children, rng)
        leaf_mean, multiplier, noise_precision = shift, 1.2, 5.0
    n_nodes, n_leaves = len(tree["parent"]), len(tree["leaf_node"])
    concentration = np.zeros(depth + 1)
    concentration[levels] = (
        prior.concentration.shape / prior.concentration_rates
        if prior.has_free_concentration
        else prior.concentration
    )
    xi = prior.mean_precision.shape / prior.mean_precision.rate
    b0 = prior.noise_precision.rate
    return {
        **tree,
        "local_precision": np.ones((n_nodes, prior.n_features)),
        "multiplier": np.full(n_nodes, multiplier),
        "leaf_mean": np.array(np.broadcast_to(leaf_mean, (n_leaves, prior.n_features))),
        "score_precision": np.ones((n_leaves, depth)),
        "noise_scale": np.ones(n_leaves),
        "tail_df": np.full(n_leaves, 3.0 if prior.tails == "t" else np.inf),
        "row_precision": np.ones(len(X)),
        "mean_precision": np.full(prior.n_features, xi),
        "noise_precision": np.full(prior.n_features, noise_precision),
        "noise_rate": max(b0.mean(), LEAST_NOISE_RATE) if prior.has_free_noise_rate else b0,
        "concentration": concentration,
        "scores": np.zeros((len(X), depth)),
    }


def with_all_rows(state, X, chosen):
    """The state of the chosen rows, with all rows of X in their most probable branches."""
    draw = state | {"leaf_count": np.bincount(state["branch"])}
    branch = np.empty(len(X), dtype=np.intp)
    for start in range(0, len(X), 1024):
        rows = slice(start, start + 1024)
        branch[rows] = np.argmax(branch_probabilities(Rows(X[rows]), draw), axis=1)
    branch[chosen] = state["branch"]  # so that no branch loses its last row
    return state | {
        "branch": branch,
        "row_precision": np.ones(len(X)),
        "scores": np.zeros((len(X), state["scores"].shape[1])),
    }


def tree_of_lines(residual, prior, n_children, rng):
    """The tree that k-lines makes from the root down."""
    levels = list(prior.branch_levels)

    def split(h, rows):
        return k_lines(residual, rows, n_children[levels.index(h)], rng)

    return grown_tree(residual, prior, split)


def tree_of_groups(X, path, prior, start):
    """The tree of rows with a group for each branching level, its loadings from within them."""
    levels = list(prior.branch_levels)
    residual = X - group_means(X, path[:, -1])[path[:, -1]]
    shared = 1.0
    if start == "em":
        # Branches share shapes; how much energy each has is for their score precisions to say.
        size = np.sqrt(np.mean(residual**2, axis=1, keepdims=True))
        residual /= np.where(size > 0, size, 1.0)
        shared = 0.7
    elif levels[-1] < prior.max_depth:
        # A direction of all that is taken out of the clusters comes back very slowly, to the cost
        # of each. What they share grows from nothing.
        shared = 0.0

    def split(h, rows):
        return [rows[part] for part in groups_of(path[rows, levels.index(h)])]

    return grown_tree(residual, prior, split, shared)


def grown_tree(residual, prior, split, shared=1.0):
    """Nodes with their loadings, leaves and the branch of each row, from the root down.

    ``split(h, rows)`` parts the rows of a node at a branching level h. Loadings are taken out of
    ``residual``, in place; those above a branching level are multiplied by ``shared``, and if that
    is 0 they take nothing.
    """
    depth, levels = prior.max_depth, prior.branch_levels
    parent, level, loadings = [], [], []
    groups = [(-1, np.arange(len(residual)))]
    segment = {}  # node -> what is left of the directions of its segment
    for h in range(depth + 1):
        if h in levels:
            groups = [(node, part) for node, rows in groups for part in split(h, rows)]
        if h == depth:
            break
        below = []
        for node, rows in groups:
            if node < 0 or h in levels:  # a segment begins: its directions all at once
                length = min((b for b in levels if b > h), default=depth) - h
                size = shared if any(b > h for b in levels) else 1.0
                axes = size * principal_axes(residual[rows], length)
                residual[rows] -= (residual[rows] @ unit(axes).T) @ unit(axes)
            else:
                axes = segment[node]
            loadings.append(axes[0])
            parent.append(node)
            level.append(h + 1)
            segment[len(parent) - 1] = axes[1:]
            below.append((len(parent) - 1, rows))
        groups = below
    branch = np.empty(len(residual), dtype=np.intp)
    for leaf, (_, rows) in enumerate(groups):
        branch[rows] = leaf
    return {
        "parent": np.array(parent, dtype=np.intp),
        "level": np.array(level, dtype=np.intp),
        "loadings": np.array(loadings),
        "leaf_node": np.array([node for node, _ in groups], dtype=np.intp),
        "branch": branch,
    }


def groups_of(label):
    """Positions of each label, in the order of the labels."""
    return [np.flatnonzero(label == k) for k in np.unique(label)]


def group_means(X, label):
    """Mean of the rows of each label 0, 1, ..."""
    return np.array([X[rows].mean(axis=0) for rows in groups_of(label)])


def grouped_components(X, n_children, rng):
    """Group of each row at every branching level, shape (n_samples, n_levels).

    The last level's groups are the components of a Gaussian mixture; at most as many of them as
    ``n_children`` has for a level make one of the level above, next ones first by the
    Bhattacharyya distance of their covariances divided by their traces.
    """

    def distances(groups):
        shapes = [shrunk_covariance(X[rows], np.ones(len(rows)), X) for rows in groups]
        return shape_distances(np.array([shape / np.trace(shape) for shape in shapes]))

    label = mixture_labels(X, prod(n_children), rng)
    return grouped_upwards(label, n_children, distances)


def grouped_clusters(X, n_children, rng):
    """The same for the clusters of k-means, next ones first by the distance of their centres."""
    scores = principal_scores(X, N_SCORES)

    def distances(groups):
        centers = np.array([scores[rows].mean(axis=0) for rows in groups])
        return cdist(centers, centers)

    n_clusters = min(prod(n_children), len(np.unique(X, axis=0)))
    label = k_means(scores, n_clusters, rng)
    return grouped_upwards(label, n_children, distances)


GROUPINGS = {"em": grouped_components, "kmeans": grouped_clusters}


def grouped_upwards(label, n_children, distances):
    """Labels of the last level and, from them up, of groups of at most ``n_children`` groups."""
    path = np.empty((len(label), len(n_children)), dtype=np.intp)
    path[:, -1] = label
    for h in range(len(n_children) - 1, 0, -1):
        groups = groups_of(path[:, h])
        path[:, h - 1] = nearest_groups(distances(groups), n_children[h])[path[:, h]]
    return path


def nearest_groups(distance, size):
    """Group of each item: the first one left and its nearest, at most so many."""
    group = np.full(len(distance), -1)
    for first in range(len(distance)):
        if group[first] < 0:
            left = np.flatnonzero(group < 0)
            nearest = np.argsort(distance[first, left], kind="stable")[:size]
            group[left[nearest]] = group.max() + 1
    return group


def shape_distances(shapes):
    """Bhattacharyya distances of zero-mean Gaussians, twice, from covariances (k, P, P)."""
    half = 0.5 * np.linalg.slogdet(shapes)[1]
    middle = np.array([np.linalg.slogdet((shape + shapes) / 2)[1] for shape in shapes])
    return middle - half - half[:, np.newaxis]


def principal_scores(X, n_scores):
    """Scores along the leading principal directions."""
    off = X - X.mean(axis=0)
    return off @ unit(principal_axes(off, n_scores)).T


def mixture_labels(X, n_components, rng, n_rounds=25):
    """Labels 0, 1, ... of a Gaussian mixture fitted by EM from k-lines, covariances shrunk."""
    n = len(X)
    # Two rows for each: components with one row or less are dropped, and then one at least stays.
    n_components = min(n_components, max(1, n // 2))
    share = np.zeros((n, n_components))
    for k, rows in enumerate(k_lines(X - X.mean(axis=0), np.arange(n), n_components, rng)):
        share[rows, k] = 1.0
    for _ in range(n_rounds):
        share = share[:, share.sum(axis=0) > 1.0]
        log_density = np.empty_like(share)
        for k, weight in enumerate(share.T):
            mean = weight @ X / weight.sum()
            half = np.linalg.cholesky(shrunk_covariance(X, weight, X))
            z = np.linalg.solve(half, (X - mean).T)
            log_density[:, k] = np.log(weight.sum()) - np.log(np.diag(half)).sum()
            log_density[:, k] -= 0.5 * np.sum(z**2, axis=0)
        share = np.exp(log_density - logsumexp(log_density, axis=1, keepdims=True))
    return np.unique(np.argmax(share, axis=1), return_inverse=True)[1]


def shrunk_covariance(X, weight, all_rows, n_prior=10.0):
    """Weighted covariance, shrunk towards that of all rows as if that were worth ten rows."""
    pooled = np.cov(all_rows.T, bias=True).reshape(X.shape[1], -1)
    pooled[np.diag_indices_from(pooled)] += 1e-6 * np.trace(pooled) / len(pooled) + 1e-12
    off = X - weight @ X / weight.sum()
    return ((off.T * weight) @ off + n_prior * pooled) / (weight.sum() + n_prior)


def unit(axes):
    """The rows divided by their lengths; rows of zeros stay."""
    length = np.linalg.norm(axes, axis=1, keepdims=True)
    return axes / np.where(length > 0, length, 1.0)


def principal_axes(rows, n_axes):
    """Leading principal directions times standard deviations, zeros where there are no more."""
    if len(rows) > rows.shape[1]:
        variance, v = np.linalg.eigh(rows.T @ rows / len(rows))
        sd, v = np.sqrt(np.maximum(variance[::-1], 0.0)), v.T[::-1]
    else:
        _, s, v = np.linalg.svd(rows, full_matrices=False)
        sd = s / np.sqrt(len(rows))
    out = np.zeros((n_axes, rows.shape[1]))
    n = min(n_axes, len(sd))
    out[:n] = v[:n] * sd[:n, np.newaxis]
    return out


def k_lines(residual, rows, n_lines, rng, n_rounds=15):
    """Split rows into at most n_lines groups, each around a line through the origin.

    Zero-mean groups that differ by their covariance are what k-means cannot see. A row goes to the
    line with its largest squared projection; a line is the leading direction of its rows.
    """
    chosen = residual[rows]
    n_lines = min(n_lines, len(rows))
    if n_lines < 2:
        return [rows]
    lines = unit(chosen[rng.choice(len(rows), n_lines, replace=False)])
    for _ in range(n_rounds):
        label = np.argmax((chosen @ lines.T) ** 2, axis=1)
        for k in np.unique(label):
            lines[k] = unit(principal_axes(chosen[label == k], 1))[0]
    return [rows[label == k] for k in np.unique(label)]
