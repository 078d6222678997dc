"""What a row would find beyond the branches of a draw: new ones, some of them drawn.

A new branch leaves the tree below a node that may branch. Given its scales, shrinkage and scores on
the nodes of its own, their loadings and its mean integrate out: y ~ N(0, sum over shared nodes of
d d' / (psi u) + diag(1 / (kappa u lambda) + 1 / xi + sum_j x_j^2 / (phi_j tau_j))), equation
(T5.4).
"""

import numpy as np

from skbnp.tree_factor_model._model import DF_GRID, log_precisions
from skbnp.tree_factor_model._predictive import branch_paths


def with_new_branches(draw, prior, n_each, rng):
    """The draw with ``n_each`` new branches below every node that may branch.

    Parameters
    ----------
    draw : dict
        As the sampler's ``draw`` makes it.
    prior : Prior
    n_each : int
    rng : RandomState or Generator

    Returns
    -------
    draw : dict
        For prediction alone: branches have a noise precision (n_branches, n_features) each, and
        ``log_weight`` (n_branches,) holds the logs of what the branches, old and new, take of the
        predictive law.
    """
    path, count = branch_paths(draw), draw["leaf_count"]
    n_branches, depth = path.shape
    n_nodes, n_features = draw["loadings"].shape
    log_tau = log_precisions(draw)
    # Nodes with their rows, the root of all first.
    rows = np.zeros(n_nodes + 1)
    rows[0] = count.sum()
    np.add.at(rows, path + 1, count[:, np.newaxis])
    alpha = draw["concentration"]

    def log_reached(nodes):
        """Log probability that the path of a new row takes all of these nodes."""
        above, total = 0, 0.0
        for level, node in enumerate(nodes):
            if alpha[level] > 0:
                total += np.log(rows[node + 1]) - np.log(rows[above] + alpha[level])
            above = node + 1
        return total

    log_weight = np.array([log_reached(one) for one in path])
    if alpha[depth] > 0:
        log_weight += np.log(count) - np.log(rows[path[:, -1] + 1] + alpha[depth])
    new = []
    for level in np.flatnonzero(alpha):
        for departs in [()] if level == 0 else np.unique(path[:, :level], axis=0):
            n_above = rows[departs[-1] + 1] if level else rows[0]
            log_mass = log_reached(departs) + np.log(alpha[level] / (n_above + alpha[level]))
            start = log_tau[departs[-1]] if level else 0.0
            for _ in range(n_each):
                tail = _tail(draw, prior, start, level, rng)
                new.append((departs, log_mass - np.log(n_each), *tail))

    # Below the shared nodes a new branch has a chain of nodes without loadings.
    chains = [n_nodes + k * depth for k in range(len(new))]
    parent = list(draw["parent"])
    for first, (departs, *_) in zip(chains, new, strict=True):
        length = depth - len(departs)
        chain = [departs[-1] if len(departs) else -1, *range(first, first + length - 1)]
        parent += chain[:length] + [-1] * (depth - length)
    psi = np.array([np.append(one[2], np.ones(depth - len(one[2]))) for one in new])
    noise = draw["noise_scale"][:, np.newaxis] * draw["noise_precision"]
    return {
        **draw,
        "parent": np.array(parent),
        "loadings": np.vstack([draw["loadings"], np.zeros((len(new) * depth, n_features))]),
        "leaf_node": np.append(
            draw["leaf_node"],
            [
                first + depth - len(one[0]) - 1 if len(one[0]) < depth else one[0][-1]
                for first, one in zip(chains, new, strict=True)
            ],
        ).astype(np.intp),
        "leaf_mean": np.vstack([draw["leaf_mean"], np.zeros((len(new), n_features))]),
        "score_precision": np.vstack([draw["score_precision"], psi.reshape(-1, depth)]),
        "noise_scale": np.ones(n_branches + len(new)),
        "noise_precision": np.vstack([noise, *(one[3] for one in new)]),
        "tail_df": np.append(draw["tail_df"], np.full(len(new), np.inf)),
        "log_weight": np.append(log_weight, [one[1] for one in new]),
    }


def _tail(draw, prior, log_tau, level, rng):
    """Score precisions of the shared levels and noise precisions of one new branch."""
    depth, n_features = len(draw["concentration"]) - 1, len(draw["noise_precision"])
    kappa, psi, u = 1.0, np.ones(depth), 1.0
    if prior.has_noise_scale:
        kappa = rng.gamma(prior.noise_scale_shape, 1 / prior.noise_scale_shape)
    if prior.has_score_precision:
        a = prior.score_precision_shape
        psi = rng.gamma(a, 1 / a, size=depth)
    elif prior.branch_scale == "whole":
        psi *= kappa
    if prior.tails == "t":
        shared = draw["tail_df"][0]
        df = shared if prior.tail_df == "shared" else rng.choice(DF_GRID[0], p=np.exp(DF_GRID[1]))
        u = max(rng.gamma(df / 2, 2 / df), 1e-300)
    variance = 1 / (kappa * u * draw["noise_precision"]) + 1 / draw["mean_precision"]
    nu = prior.local_shrinkage_df
    for h in range(level, depth):
        shape = prior.shrinkage_root if h == 0 else prior.shrinkage
        log_tau = log_tau + np.log(rng.gamma(shape))
        x = rng.standard_normal() / np.sqrt(psi[h] * u)
        variance += x**2 / (rng.gamma(nu / 2, 2 / nu, size=n_features) * np.exp(log_tau))
    return psi[:level] * u, 1 / variance
