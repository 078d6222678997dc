"""The tree factor model's prior, its joint density in plain NumPy, and where chains start.

``log_joint`` is slow and readable on purpose: it is what the compiled sampler is tested against.

A state is a dict of arrays. The tree has K nodes, parents before children, and B leaves below its
last level L; the path of a leaf is the L nodes from level 1 down to ``leaf_node``.

=================  ============  =======================================================
parent             (K,)          parent of each node, -1 at level 1
level              (K,)          1..L
loadings           (K, P)        d
local_precision    (K, P)        phi
multiplier         (K,)          zeta; the precision tau is its product down the path
leaf_node          (B,)          node at level L above each leaf
leaf_mean          (B, P)        m
score_precision    (B, L)        psi
noise_scale        (B,)          kappa
tail_df            (B,)          df, infinite without tails
mean_precision     (P,)          xi
noise_precision    (P,)          lambda
noise_rate         ()            b0, the rate of lambda's prior
concentration      (L + 1,)      alpha of levels 0..L, 0 where there is one child
branch             (N,)          leaf of each row
scores             (N, L)        x
row_precision      (N,)          u, 1 without tails
=================  ============  =======================================================
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gammaln, logsumexp
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from skbnp.numerics.scaling import column_scaling
from skbnp.processes import multiplicative_gamma, ncrp
from skbnp.tree_factor_model._predictive import branch_probabilities
from skbnp.tree_factor_model._rows import Rows

BRANCH_SCALES = ("none", "noise", "whole", "loadings")
NOISES = ("diagonal", "isotropic")
TAILS = ("gaussian", "t")
TAIL_DFS = ("branch", "shared")
# At or below it loadings grow down the path.
LEAST_SHRINKAGE = multiplicative_gamma.SHRINKAGE_THRESHOLD
# Principal scores that k-means looks at.
N_SCORES = 20
# Rows from which chains start, at most: more do not make a better tree, but cost time and room.
MOST_START_ROWS = 20_000


def df_grid():
    """Degrees of freedom that tails may have, and the logs of their prior masses: 1 / df."""
    df = np.concatenate(
        [np.arange(0.5, 6, 0.25), np.arange(6, 20), np.arange(20, 100, 10), [200, 400, 1000]]
    )
    return df, -np.log(df) - logsumexp(-np.log(df))


DF_GRID = df_grid()


@dataclass(frozen=True)
class Prior:
    """Hyperparameters of the tree factor model.

    ``branch_levels`` are the levels below which the tree may branch: () is one path, (0,) a
    mixture of unconnected chains. ``concentration`` fixes their strengths, None samples them:
    that of the k-th branching level has prior mean shape / rate times decay^(k - 1).

    ``tail`` "t" gives every row a precision of its own, and every branch, or all if ``tail_df`` is
    "shared", degrees of freedom.

    ``branch_scale`` says which precisions are the branches' own: "none", the "noise"'s, those of
    the "whole" covariance, or those of the scores and the noise ("loadings").
    """

    n_features: int
    max_depth: int
    branch_levels: tuple[int, ...] = ()
    concentration: tuple[float, ...] | None = None
    concentration_prior: tuple[float, float] = (2.0, 2.0)
    concentration_decay: float = 0.5
    shrinkage_root: float = 2.0
    shrinkage: float = 3.0
    local_shrinkage_df: float = 3.0
    noise: str = "diagonal"
    noise_prior: tuple[float, float] = (1.0, 0.3)
    noise_rate_prior: tuple[float, float] | None = None
    mean_precision_prior: tuple[float, float] = (1.0, 1.0)
    branch_scale: str = "loadings"
    tail: str = "gaussian"
    tail_df: str = "branch"
    score_precision_prior: float = 1.0
    noise_scale_prior: float = 1.0

    @property
    def concentration_rates(self):
        """Rate of the prior of the concentration at each branching level."""
        return self.concentration_prior[1] / self.concentration_decay ** np.arange(
            len(self.branch_levels)
        )

    @property
    def has_noise_scale(self):
        """Whether kappa is free."""
        return self.branch_scale != "none"

    @property
    def has_score_precision(self):
        """Whether psi is free: under "whole" it is kappa."""
        return self.branch_scale == "loadings"


def log_gamma_density(x, shape, rate):
    """Log densities of Gamma(shape, rate)."""
    return shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(x) - rate * x


def paths_of(state):
    """Nodes on the path of each leaf, shape (B, L)."""
    depth = len(state["concentration"]) - 1
    path = np.empty((len(state["leaf_node"]), depth), dtype=np.intp)
    node = np.asarray(state["leaf_node"])
    for level in range(depth - 1, -1, -1):
        path[:, level] = node
        node = state["parent"][node]
    return path


def log_precisions(state):
    """log tau of each node."""
    log_tau = np.log(state["multiplier"])
    for node, above in enumerate(state["parent"]):
        if above >= 0:
            log_tau[node] += log_tau[above]
    return log_tau


def branch_law(state, leaf):
    """Mean (P,) and covariance (P, P) of a row of a leaf, scores integrated: m and Omega.

    With tails, where and how wide it is: its covariance given u = 1.
    """
    D = state["loadings"][paths_of(state)[leaf]]
    noise = 1 / (state["noise_scale"][leaf] * state["noise_precision"])
    return state["leaf_mean"][leaf], (D.T / state["score_precision"][leaf]) @ D + np.diag(noise)


def log_normal(x, mean, covariance):
    """Log density of one Gaussian vector; 0 for an empty one."""
    if len(x) == 0:
        return 0.0
    half = np.linalg.cholesky(covariance)
    z = np.linalg.solve(half, x - mean)
    return -0.5 * len(x) * np.log(2 * np.pi) - np.log(np.diag(half)).sum() - 0.5 * z @ z


def log_student(x, mean, scale, df):
    """Log density of one vector under the multivariate t law; a normal one for infinite df."""
    if len(x) == 0 or np.isinf(df):
        return log_normal(x, mean, scale)
    half = np.linalg.cholesky(scale)
    z, n = np.linalg.solve(half, x - mean), len(x)
    return (
        gammaln((df + n) / 2)
        - gammaln(df / 2)
        - n / 2 * np.log(np.pi * df)
        - np.log(np.diag(half)).sum()
        - (df + n) / 2 * np.log1p(z @ z / df)
    )


def log_joint(state, X, prior, terms=False, scores="integrated"):
    """log p(X, state), normalised.

    Parameters
    ----------
    state : dict
        As this module's docstring has it.
    X : ndarray of shape (N, P)
        Data in the prior's units, NaN where missing: those entries are integrated out.
    prior : Prior
    terms : bool, default=False
        Return a dict of the terms instead of their sum.
    scores : {"integrated", "explicit"}
        Whether the scores, and the rows' precisions, are integrated out or a part of the state.
    """
    paths, branch = paths_of(state), np.asarray(state["branch"])
    n_features, concentration = prior.n_features, np.asarray(state["concentration"])
    log_tau = log_precisions(state)[:, np.newaxis]
    nu, is_root = prior.local_shrinkage_df, np.asarray(state["parent"]) < 0
    phi, d = state["local_precision"], state["loadings"]
    a0, b0 = prior.noise_prior[0], state["noise_rate"]
    noise, xi, m = state["noise_precision"], state["mean_precision"], state["leaf_mean"]
    shapes = np.where(is_root, prior.shrinkage_root, prior.shrinkage)
    parts = {
        "paths": log_paths(state),
        "multiplier": log_gamma_density(state["multiplier"], shapes, 1.0).sum(),
        "local_precision": log_gamma_density(phi, nu / 2, nu / 2).sum(),
        "loadings": 0.5
        * np.sum(np.log(phi) + log_tau - np.log(2 * np.pi) - phi * np.exp(log_tau) * d**2),
        "mean_precision": log_gamma_density(xi, *prior.mean_precision_prior).sum(),
        "leaf_mean": 0.5 * np.sum(np.log(xi) - np.log(2 * np.pi) - xi * m**2),
        "noise_precision": log_gamma_density(
            noise if prior.noise == "diagonal" else noise[0], a0, b0
        ).sum(),
    }
    if prior.noise_rate_prior is not None:
        parts["noise_rate"] = log_gamma_density(b0, *prior.noise_rate_prior)
    if prior.has_score_precision:
        a = prior.score_precision_prior
        parts["score_precision"] = log_gamma_density(state["score_precision"], a, a).sum()
    if prior.has_noise_scale:
        a = prior.noise_scale_prior
        parts["noise_scale"] = log_gamma_density(state["noise_scale"], a, a).sum()
    if prior.tail == "t":
        of_all = state["tail_df"][:1] if prior.tail_df == "shared" else state["tail_df"]
        parts["tail_df"] = sum(DF_GRID[1][DF_GRID[0] == df].item() for df in of_all)
    if prior.concentration is None:
        parts["concentration"] = log_gamma_density(
            concentration[list(prior.branch_levels)],
            prior.concentration_prior[0],
            prior.concentration_rates,
        ).sum()
    if scores == "integrated":
        laws = [(*branch_law(state, leaf), state["tail_df"][leaf]) for leaf in range(len(paths))]
        parts["data"] = 0.0
        for x, (mean, scale, df) in zip(X, (laws[b] for b in branch), strict=True):
            seen = ~np.isnan(x)
            parts["data"] += log_student(x[seen], mean[seen], scale[np.ix_(seen, seen)], df)
    else:
        u, df = state["row_precision"][:, np.newaxis], state["tail_df"][branch]
        if prior.tail == "t":
            parts["row_precision"] = log_gamma_density(u[:, 0], df / 2, df / 2).sum()
        x, psi = state["scores"], u * state["score_precision"][branch]
        parts["scores"] = 0.5 * np.sum(np.log(psi) - np.log(2 * np.pi) - psi * x**2)
        residual = X - m[branch] - np.einsum("il,ilp->ip", x, d[paths[branch]])
        w = u * state["noise_scale"][branch][:, np.newaxis] * noise
        parts["data"] = 0.5 * np.nansum(
            np.where(np.isnan(X), np.nan, np.log(w) - np.log(2 * np.pi) - w * residual**2)
        )
    assert d.shape[1] == n_features
    return parts if terms else sum(parts.values())


def log_paths(state):
    """Log probability of the labelled partition down the tree."""
    parent, level = np.asarray(state["parent"]), np.asarray(state["level"])
    concentration = np.asarray(state["concentration"])
    leaf_count = np.bincount(state["branch"], minlength=len(state["leaf_node"]))
    count = np.zeros(len(parent))
    np.add.at(count, state["leaf_node"], leaf_count)
    for node in range(len(parent) - 1, -1, -1):
        if parent[node] >= 0:
            count[parent[node]] += count[node]
    # The virtual root, the nodes, the leaves.
    above = np.concatenate([[-1], parent + 1, np.asarray(state["leaf_node"]) + 1])
    levels = np.concatenate([[0], level, np.full(len(leaf_count), len(concentration))])
    counts = np.concatenate([[leaf_count.sum()], count, leaf_count])
    total = 0.0
    for v in np.flatnonzero(levels < len(concentration)):
        alpha, children = concentration[levels[v]], counts[above == v]
        if alpha > 0:
            total += len(children) * np.log(alpha) + gammaln(children).sum()
            total += gammaln(alpha) - gammaln(alpha + counts[v])
        elif len(children) > 1:
            return -np.inf
    return total


def draw_joint(prior, n_samples, rng):
    """One draw of the state and complete rows from the prior: (state, X).

    rng is a numpy.random.Generator; X is in the prior's units.
    """
    depth, n_features = prior.max_depth, prior.n_features
    levels = list(prior.branch_levels)
    concentration = np.zeros(depth + 1)
    concentration[levels] = (
        rng.gamma(prior.concentration_prior[0], 1 / prior.concentration_rates)
        if prior.concentration is None
        else prior.concentration
    )
    paths = ncrp.sample(n_samples, depth + 1, concentration, random_state=rng)
    node, parent, level, _ = ncrp.node_table(paths)
    inner = (level >= 1) & (level <= depth)
    n_nodes, n_leaves = inner.sum(), np.sum(level > depth)
    state = {
        "parent": parent[inner] - 1,
        "level": level[inner],
        "leaf_node": parent[level > depth] - 1,
        "branch": node[:, depth] - n_nodes - 1,
        "concentration": concentration,
    }
    nu = prior.local_shrinkage_df
    state["multiplier"], tau = multiplicative_gamma.sample(
        n_nodes, prior.shrinkage_root, prior.shrinkage, parent=state["parent"], random_state=rng
    )
    phi = rng.gamma(nu / 2, 2 / nu, size=(n_nodes, n_features))
    state["local_precision"] = phi
    state["loadings"] = rng.standard_normal(phi.shape) / np.sqrt(phi * tau[:, np.newaxis])
    state["noise_rate"] = prior.noise_prior[1]
    if prior.noise_rate_prior is not None:
        state["noise_rate"] = rng.gamma(prior.noise_rate_prior[0], 1 / prior.noise_rate_prior[1])
    size = n_features if prior.noise == "diagonal" else 1
    noise = rng.gamma(prior.noise_prior[0], 1 / state["noise_rate"], size=size)
    state["noise_precision"] = np.array(np.broadcast_to(noise, n_features))
    g0, h0 = prior.mean_precision_prior
    state["mean_precision"] = rng.gamma(g0, 1 / h0, size=n_features)
    state["leaf_mean"] = rng.standard_normal((n_leaves, n_features)) / np.sqrt(
        state["mean_precision"]
    )
    state["noise_scale"] = np.ones(n_leaves)
    if prior.has_noise_scale:
        a = prior.noise_scale_prior
        state["noise_scale"] = rng.gamma(a, 1 / a, size=n_leaves)
    state["score_precision"] = np.ones((n_leaves, depth))
    if prior.has_score_precision:
        a = prior.score_precision_prior
        state["score_precision"] = rng.gamma(a, 1 / a, size=(n_leaves, depth))
    elif prior.branch_scale == "whole":
        state["score_precision"] *= state["noise_scale"][:, np.newaxis]
    branch = state["branch"]
    state["tail_df"], u = np.full(n_leaves, np.inf), np.ones((n_samples, 1))
    if prior.tail == "t":
        size = 1 if prior.tail_df == "shared" else n_leaves
        state["tail_df"][:] = rng.choice(DF_GRID[0], size=size, p=np.exp(DF_GRID[1]))
        df = state["tail_df"][branch]
        u[:, 0] = np.maximum(rng.gamma(df / 2, 2 / df), 1e-300)
    state["row_precision"] = u[:, 0]
    x = rng.standard_normal((n_samples, depth)) / np.sqrt(u * state["score_precision"][branch])
    state["scores"] = x
    w = u * state["noise_scale"][branch][:, np.newaxis] * state["noise_precision"]
    noise = 1 / np.sqrt(w)
    mean = state["leaf_mean"][branch]
    mean = mean + np.einsum("il,ilp->ip", x, state["loadings"][paths_of(state)[branch]])
    return state, mean + noise * rng.standard_normal(mean.shape)


# -- where chains start -----------------------------------------------------------------------


def units(X, scale):
    """Center and scale of each column: one standard deviation for all if ``scale`` is "global"."""
    return column_scaling(X, common=scale == "global")


def start_state(X, prior, rng, n_children, start="klines"):
    """First state of a chain (spec 8).

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
    if not levels:
        start = "klines"
    if start in GROUPINGS:
        path = GROUPINGS[start](filled, n_children, rng)
        residual = filled - group_means(filled, path[:, -1])[path[:, -1]]

        def split(h, rows):
            return [rows[part] for part in groups_of(path[rows, levels.index(h)])]

    else:
        residual = filled - shift

        def split(h, rows):
            return k_lines(residual, rows, n_children[levels.index(h)], rng)

    if start == "em":
        # Branches share shapes; how much energy each has is for their score precisions to say.
        size = np.sqrt(np.mean(residual**2, axis=1, keepdims=True))
        residual /= np.where(size > 0, size, 1.0)
    tree = grown_tree(residual, levels, depth, split, shared=0.7 if start == "em" else 1.0)
    n_nodes, n_leaves = len(tree["parent"]), len(tree["leaf_node"])
    rates = prior.concentration_rates
    concentration = np.zeros(depth + 1)
    concentration[levels] = (
        prior.concentration_prior[0] / rates if prior.concentration is None else prior.concentration
    )
    xi = prior.mean_precision_prior[0] / prior.mean_precision_prior[1]
    grouped = start in GROUPINGS
    return {
        **tree,
        "local_precision": np.ones((n_nodes, prior.n_features)),
        "multiplier": np.full(n_nodes, 1.1 if grouped else 1.2),
        "leaf_mean": (
            group_means(filled, tree["branch"]) if grouped else np.tile(shift, (n_leaves, 1))
        ),
        "score_precision": np.ones((n_leaves, depth)),
        "noise_scale": np.ones(n_leaves),
        "tail_df": np.full(n_leaves, 3.0 if prior.tail == "t" else np.inf),
        "row_precision": np.ones(len(X)),
        "mean_precision": np.full(prior.n_features, xi),
        "noise_precision": np.full(prior.n_features, 10.0 if grouped else 5.0),
        "noise_rate": prior.noise_prior[1],
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


def grown_tree(residual, levels, depth, split, shared):
    """Nodes with their loadings, leaves and the branch of each row, from the root down.

    ``split(h, rows)`` parts the rows of a node at a branching level h. Loadings are taken out of
    ``residual``, in place; those above a branching level are multiplied by ``shared``.
    """
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
                axes = principal_axes(residual[rows], length)
                residual[rows] -= (residual[rows] @ unit(axes).T) @ unit(axes)
                axes = list(axes * (shared if any(b > h for b in levels) else 1.0))
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
    label = cluster_labels(scores, n_clusters, rng)
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


def cluster_labels(scores, n_clusters, rng):
    """Labels 0, 1, ... of k-means."""
    means = KMeans(n_clusters, n_init=10, random_state=rng.integers(2**31))
    # Threads add up centres in any order, and the same seed is to give the same labels.
    with threadpool_limits(1, user_api="openmp"):
        label = means.fit_predict(scores)
    return np.unique(label, return_inverse=True)[1]


def principal_scores(X, n_scores):
    """Scores along the leading principal directions."""
    off = X - X.mean(axis=0)
    return off @ unit(principal_axes(off, n_scores)).T


def mixture_labels(X, n_components, rng, n_rounds=25):
    """Labels 0, 1, ... of a Gaussian mixture fitted by EM from k-lines, covariances shrunk."""
    n = len(X)
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


# -- states from outside ----------------------------------------------------------------------


def entry(state, name):
    try:
        return state[name]
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"state has no {name}") from error


def checked_count(state, name):
    value = entry(state, name)
    if not isinstance(value, (int, np.integer)) or not 0 <= value < 2**62:
        raise ValueError(f"{name} of the state must be an integer >= 0, got {value!r}")
    return value


def _array(state, name, shape, kinds, dtype):
    """An array of the state, -1 in ``shape`` stands for any length."""
    value = np.asarray(entry(state, name))
    if value.dtype.kind not in kinds:
        raise ValueError(f"{name} of the state must not have dtype {value.dtype}")
    if value.ndim != len(shape) or any(
        want not in (-1, got) for want, got in zip(shape, value.shape, strict=True)
    ):
        raise ValueError(f"{name} of the state must have shape {shape}, got {value.shape}")
    return value.astype(dtype)


def _floats(state, name, shape, positive=False):
    value = _array(state, name, shape, "f", np.float64)
    if not np.isfinite(value).all() or (positive and not (value > 0.0).all()):
        raise ValueError(f"{name} of the state must be finite" + " and > 0" * positive)
    return value


def _indices(state, name, shape, least, below):
    value = _array(state, name, shape, "iu", np.intp)
    if not ((value >= least) & (value < below)).all():
        raise ValueError(f"{name} of the state is out of range")
    return value


def check_prior(prior, n_features):
    """Raise a ValueError unless the sizes in a prior from outside fit the data."""
    sizes = [prior.n_features, prior.max_depth, *prior.branch_levels]
    if not isinstance(prior.branch_levels, tuple) or any(type(n) is not int for n in sizes):
        raise ValueError("n_features, max_depth and branch_levels of the prior must be integers")
    levels = list(prior.branch_levels)
    if prior.n_features != n_features or not 1 <= prior.max_depth <= 10_000:
        raise ValueError(f"the prior must be one of {n_features} features")
    if levels != sorted(set(levels)) or any(not 0 <= h <= prior.max_depth for h in levels):
        raise ValueError("branch_levels of the prior must be ascending, up to max_depth")
    if prior.noise not in NOISES or prior.branch_scale not in BRANCH_SCALES:
        raise ValueError("the prior has an unknown noise or branch_scale")
    if prior.tail not in TAILS or prior.tail_df not in TAIL_DFS:
        raise ValueError("the prior has an unknown tail or tail_df")


def checked_state(state, prior, n_samples, draw=False):
    """The state with its arrays converted; raises ValueError for one that does not fit.

    A ``draw`` has only what prediction needs, and the number of rows of every leaf.
    """
    n_features, levels = prior.n_features, list(prior.branch_levels)
    out = {"concentration": _floats(state, "concentration", (-1,))}
    depth = out["concentration"].size - 1
    if not max([1, *levels]) <= depth <= prior.max_depth:
        raise ValueError(f"concentration of the state must not have {depth + 1} levels")
    branches = np.isin(np.arange(depth + 1), levels)
    if not ((out["concentration"] > 0.0) == branches).all() or (out["concentration"] < 0.0).any():
        raise ValueError("concentration of the state must be > 0 at the branching levels alone")

    parent = _array(state, "parent", (-1,), "iu", np.intp)
    n_nodes = parent.size
    out["parent"] = _indices(state, "parent", (n_nodes,), -1, np.arange(n_nodes))
    out["level"] = _indices(state, "level", (n_nodes,), 1, depth + 1)
    above = np.where(parent < 0, 0, out["level"][parent] if n_nodes else 0)
    if not (out["level"] == above + 1).all():
        raise ValueError("level of the state must be one more than its parent's")
    out["leaf_node"] = _indices(state, "leaf_node", (-1,), 0, n_nodes)
    n_leaves = out["leaf_node"].size
    if not (out["level"][out["leaf_node"]] == depth).all():
        raise ValueError("leaf_node of the state must be at the last level")
    out["branch"] = _indices(state, "branch", (n_samples,), 0, n_leaves)
    if not (np.bincount(out["branch"], minlength=n_leaves) > 0).all():
        raise ValueError("branch of the state must name every leaf")
    n_children = np.bincount(parent + 1, minlength=n_nodes + 1)
    n_children += np.bincount(out["leaf_node"] + 1, minlength=n_nodes + 1)
    level = np.append(0, out["level"])
    if (n_children == 0).any() or (n_children[~branches[level]] > 1).any():
        raise ValueError("parent of the state must make a tree that branches where it may")

    real = {"loadings": (n_nodes, n_features), "leaf_mean": (n_leaves, n_features)}
    positive = {
        "multiplier": (n_nodes,),
        "score_precision": (n_leaves, depth),
        "noise_scale": (n_leaves,),
        "noise_precision": (n_features,),
    }
    if draw:
        leaf_count = _array(state, "leaf_count", (n_leaves,), "iu", np.intp)
        if not np.array_equal(leaf_count, np.bincount(out["branch"])):
            raise ValueError("leaf_count of the state must count the rows of every leaf")
    else:
        real["scores"] = (n_samples, depth)
        positive |= {"local_precision": (n_nodes, n_features), "mean_precision": (n_features,)}
        positive["row_precision"] = (n_samples,)
        out["noise_rate"] = float(_floats(state, "noise_rate", (), positive=True))
    out |= {name: _floats(state, name, shape) for name, shape in real.items()}
    out |= {name: _floats(state, name, shape, positive=True) for name, shape in positive.items()}
    if prior.noise == "isotropic" and np.ptp(out["noise_precision"]) > 0.0:
        raise ValueError("noise_precision of the state must be the same for all features")
    out["tail_df"] = _array(state, "tail_df", (n_leaves,), "f", np.float64)
    known = DF_GRID[0] if prior.tail == "t" else [np.inf]
    if not np.isin(out["tail_df"], known).all() or (
        prior.tail_df == "shared" and len(set(out["tail_df"])) > 1
    ):
        raise ValueError("tail_df of the state must be of the prior's grid")
    if prior.tail == "gaussian" and not draw and (out["row_precision"] != 1.0).any():
        raise ValueError("row_precision of the state must be 1 where tail='gaussian'")
    kappa, psi = out["noise_scale"], out["score_precision"]
    wanted = kappa[:, np.newaxis] if prior.branch_scale == "whole" else 1.0
    if (not prior.has_noise_scale and (kappa != 1.0).any()) or (
        not prior.has_score_precision and (psi != wanted).any()
    ):
        raise ValueError(f"the state has scales that branch_scale={prior.branch_scale!r} fixes")
    return out
