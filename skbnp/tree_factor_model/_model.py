"""The tree factor model's prior, and its joint density in plain NumPy.

The mathematics is in doc/mathematics/tree_factor_model; (T2.1) is its equation T2.1.

``log_joint`` is slow and readable on purpose: it is what the compiled sampler is tested against.

What a state consists of is in ``_saved``.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from skbnp.laws import Gamma, Law
from skbnp.numerics.law_above import log_density_above, sample_above, share_above
from skbnp.processes import multiplicative_gamma, ncrp
from skbnp.tree_factor_model._old_files import renamed

BRANCH_SCALES = ("none", "noise", "whole", "loadings")
NOISES = ("diagonal", "isotropic")
TAILS = ("gaussian", "t")
TAIL_DFS = ("branch", "shared")
# At or below it loadings grow down the path.
LEAST_SHRINKAGE = multiplicative_gamma.SHRINKAGE_THRESHOLD
# What the rate of the noise precisions' law may be beside a number; its law is cut off below the
# least value. Without a bound the posterior would be improper where columns follow from others.
NOISE_RATE_LAW = Gamma
LEAST_NOISE_RATE = 1e-3
# What its law must have above it.
_LEAST_SHARE = 0.1


def df_grid():
    """Degrees of freedom that tails may have, and the logs of their prior masses: 1 / df."""
    df = np.concatenate(
        [np.arange(0.5, 6, 0.25), np.arange(6, 20), np.arange(20, 100, 10), [200, 400, 1000]]
    )
    return df, -np.log(df) - logsumexp(-np.log(df))


DF_GRID = df_grid()


@dataclass(frozen=True)
class Prior:
    """Hyperparameters of the tree factor model: what is a law is sampled.

    ``branch_levels`` are the levels below which the tree may branch: () is one path, (0,) a
    mixture of unconnected chains. ``concentration`` has a number for each of them, or is the law
    at the first; that of the k-th has mean shape / rate times decay^(k - 1).

    ``tails`` "t" gives every row a precision of its own, and every branch, or all if ``tail_df`` is
    "shared", degrees of freedom.

    ``branch_scale`` says which precisions are the branches' own: "none", the "noise"'s, those of
    the "whole" covariance, or those of the scores and the noise ("loadings").
    """

    n_features: int
    max_depth: int
    branch_levels: tuple[int, ...] = ()
    concentration: Gamma | tuple[float, ...] = Gamma(2.0, 2.0)
    concentration_decay: float = 0.5
    shrinkage_root: float = 2.0
    shrinkage: float = 3.0
    local_shrinkage_df: float = 3.0
    noise: str = "diagonal"
    noise_precision: Gamma = Gamma(1.0, Gamma(1.0, 1.0))
    mean_precision: Gamma = Gamma(1.0, 1.0)
    branch_scale: str = "loadings"
    tails: str = "gaussian"
    tail_df: str = "branch"
    score_precision_shape: float = 1.0
    noise_scale_shape: float = 1.0

    def __post_init__(self):
        _check_law("mean_precision", self.mean_precision)
        if self.has_free_concentration:
            _check_law("concentration", self.concentration)
        if isinstance(self.noise_precision, Gamma) and self.has_free_noise_rate:
            rate = self.noise_precision.rate
            _check_law("rate of noise_precision", rate, NOISE_RATE_LAW)
            if not rate.shape + self.noise_precision.shape >= 1.0:
                raise ValueError(
                    "the shapes of noise_precision and of the law of its rate must add up to at "
                    f"least 1, got {self.noise_precision!r}"
                )
            if not share_above(rate, LEAST_NOISE_RATE) >= _LEAST_SHARE:
                raise ValueError(
                    f"the rate of noise_precision must be above {LEAST_NOISE_RATE:g} with a "
                    f"probability of at least {_LEAST_SHARE:g}, got {rate!r}"
                )
        else:
            _check_law("noise_precision", self.noise_precision)

    @classmethod
    def from_data(cls, data):
        """The prior that a file holds, in the names of now or of version 0.1."""
        return cls(**renamed(data))

    @property
    def has_free_concentration(self):
        """Whether alpha is sampled."""
        return isinstance(self.concentration, Law)

    @property
    def concentration_rates(self):
        """Rate of the law of alpha at each branching level, where it is sampled."""
        return self.concentration.rate / self.concentration_decay ** np.arange(
            len(self.branch_levels)
        )

    @property
    def has_free_noise_rate(self):
        """Whether b0, the rate of the noise precisions' law, is sampled."""
        return isinstance(self.noise_precision.rate, Law)

    @property
    def has_noise_scale(self):
        """Whether kappa is free."""
        return self.branch_scale != "none"

    @property
    def has_score_precision(self):
        """Whether psi is free: under "whole" it is kappa."""
        return self.branch_scale == "loadings"


def _check_law(name, law, kind=Gamma):
    """Raise a ValueError unless this is a law of that kind, its parameters numbers."""
    if not isinstance(law, kind) or any(isinstance(x, Law) for x in vars(law).values()):
        raise ValueError(f"{name} must be {kind.__name__} of two numbers, got {law!r}")


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
        As ``_saved`` describes it.
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
    a0, b0 = prior.noise_precision.shape, state["noise_rate"]
    g0, h0 = prior.mean_precision.shape, prior.mean_precision.rate
    noise, xi, m = state["noise_precision"], state["mean_precision"], state["leaf_mean"]
    shapes = np.where(is_root, prior.shrinkage_root, prior.shrinkage)
    parts = {
        "paths": log_paths(state),
        "multiplier": log_gamma_density(state["multiplier"], shapes, 1.0).sum(),
        "local_precision": log_gamma_density(phi, nu / 2, nu / 2).sum(),
        "loadings": 0.5
        * np.sum(np.log(phi) + log_tau - np.log(2 * np.pi) - phi * np.exp(log_tau) * d**2),
        "mean_precision": log_gamma_density(xi, g0, h0).sum(),
        "leaf_mean": 0.5 * np.sum(np.log(xi) - np.log(2 * np.pi) - xi * m**2),
        "noise_precision": log_gamma_density(
            noise if prior.noise == "diagonal" else noise[0], a0, b0
        ).sum(),
    }
    if prior.has_free_noise_rate:
        law = prior.noise_precision.rate
        parts["noise_rate"] = log_density_above(b0, law, LEAST_NOISE_RATE)
    if prior.has_score_precision:
        a = prior.score_precision_shape
        parts["score_precision"] = log_gamma_density(state["score_precision"], a, a).sum()
    if prior.has_noise_scale:
        a = prior.noise_scale_shape
        parts["noise_scale"] = log_gamma_density(state["noise_scale"], a, a).sum()
    if prior.tails == "t":
        of_all = state["tail_df"][:1] if prior.tail_df == "shared" else state["tail_df"]
        parts["tail_df"] = sum(DF_GRID[1][DF_GRID[0] == df].item() for df in of_all)
    if prior.has_free_concentration:
        parts["concentration"] = log_gamma_density(
            concentration[list(prior.branch_levels)],
            prior.concentration.shape,
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
        if prior.tails == "t":
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
        rng.gamma(prior.concentration.shape, 1 / prior.concentration_rates)
        if prior.has_free_concentration
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
    state["noise_rate"] = prior.noise_precision.rate
    if prior.has_free_noise_rate:
        law = prior.noise_precision.rate
        state["noise_rate"] = sample_above(law, LEAST_NOISE_RATE, 1, rng).item()
    size = n_features if prior.noise == "diagonal" else 1
    noise = rng.gamma(prior.noise_precision.shape, 1 / state["noise_rate"], size=size)
    state["noise_precision"] = np.array(np.broadcast_to(noise, n_features))
    xi = prior.mean_precision
    state["mean_precision"] = rng.gamma(xi.shape, 1 / xi.rate, size=n_features)
    state["leaf_mean"] = rng.standard_normal((n_leaves, n_features)) / np.sqrt(
        state["mean_precision"]
    )
    state["noise_scale"] = np.ones(n_leaves)
    if prior.has_noise_scale:
        a = prior.noise_scale_shape
        state["noise_scale"] = rng.gamma(a, 1 / a, size=n_leaves)
    state["score_precision"] = np.ones((n_leaves, depth))
    if prior.has_score_precision:
        a = prior.score_precision_shape
        state["score_precision"] = rng.gamma(a, 1 / a, size=(n_leaves, depth))
    elif prior.branch_scale == "whole":
        state["score_precision"] *= state["noise_scale"][:, np.newaxis]
    branch = state["branch"]
    state["tail_df"], u = np.full(n_leaves, np.inf), np.ones((n_samples, 1))
    if prior.tails == "t":
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
