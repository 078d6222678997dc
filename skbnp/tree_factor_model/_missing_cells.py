"""Draws of the missing cells of rows under one draw of the chains.

Given the branch b of a row its cells are jointly normal, y ~ N(m, Omega / u). With a row
r ~ N(0, Omega / u) drawn from that law without its mean, missing cells given the observed ones are
drawn by (Y. Hoffman and E. Ribak 1991, Astrophysical Journal 380, L5-L8; Matheron's rule)

    y_mis = r_mis + E[y_mis | y_obs - r_obs, b],

so that the conditional means are all that is needed. Under a t law
u | y_obs ~ Gamma((df + P_obs) / 2, (df + q) / 2), q the squared distance of y_obs from m_obs in the
scale matrix of the observed cells.
"""

import numpy as np

from skbnp.numerics.columns_at_random import draw_columns
from skbnp.tree_factor_model._predictive import (
    branch_paths,
    conditional_moments,
    log_branch_weights,
    log_densities,
    noise_precisions,
)
from skbnp.tree_factor_model._rows import Rows

# What a draw has for each branch.
_OF_BRANCHES = ("leaf_node", "leaf_mean", "score_precision", "noise_scale", "tail_df")


def draw_cells(X, draw, rng):
    """Rows with their missing cells drawn, each row on its own and its cells jointly.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        In the units of the draw, NaN where missing.
    draw : dict
    rng : RandomState

    Returns
    -------
    X_filled : ndarray of shape (n_rows, n_features)
    """
    log_p = log_densities(Rows(X), draw) + log_branch_weights(draw)
    branch = draw_columns(log_p, rng)
    out = X.copy()
    for b in np.unique(branch):
        rows = np.flatnonzero(branch == b)
        out[rows] = _draw_cells_of(X[rows], _alone(draw, b), rng)
    return out


def _alone(draw, b):
    """The draw as if it had one branch only."""
    one = draw | {name: draw[name][b : b + 1] for name in _OF_BRANCHES}
    if draw["noise_precision"].ndim == 2:  # one with new branches
        one["noise_precision"] = draw["noise_precision"][b : b + 1]
    return one | {"log_weight": np.zeros(1)}


def _draw_cells_of(X, draw, rng):
    """The same where the draw has one branch."""
    psi, loadings = draw["score_precision"][0], draw["loadings"][branch_paths(draw)[0]]
    deviation = rng.standard_normal((len(X), len(psi))) / np.sqrt(psi) @ loadings
    deviation += rng.standard_normal(X.shape) / np.sqrt(noise_precisions(draw)[0])
    df = draw["tail_df"][0]
    if np.isfinite(df):
        n_seen = np.sum(~np.isnan(X), axis=1)
        rate = (df + _square_distances(X, draw, n_seen)) / 2
        u = np.maximum(rng.standard_gamma((df + n_seen) / 2) / rate, 1e-300)
        deviation /= np.sqrt(u)[:, np.newaxis]
    mean, _ = conditional_moments(Rows(X - deviation), draw)
    return np.where(np.isnan(X), mean + deviation, X)


def _square_distances(X, draw, n_seen):
    """q of every row under a t law of one branch, from its density there and at the mean."""
    df = draw["tail_df"][0]
    at_mean = np.where(np.isnan(X), np.nan, draw["leaf_mean"][0])
    highest, found = (log_densities(Rows(rows), draw)[:, 0] for rows in (at_mean, X))
    return df * np.expm1(np.maximum(2 * (highest - found) / (df + n_seen), 0.0))
