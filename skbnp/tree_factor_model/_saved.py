"""What a state consists of, and checks of states and draws that come from files.

A state is a dict of arrays. The tree has K nodes (``n_nodes``), parents before children, and B
leaves (``n_leaves``) below its last level L (``depth``); the path of a leaf is the L nodes from
level 1 down to ``leaf_node``.

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

import numpy as np

from skbnp.mcmc.fields import Field
from skbnp.numerics.states import check_positive, checked_array, entry
from skbnp.tree_factor_model._model import BRANCH_SCALES, DF_GRID, NOISES, TAIL_DFS, TAILS


class OneOf(Field):
    """Numbers of a set, infinity among them; the set is an entry of ``values`` by their name."""

    def _check_range(self, value, owner, values):
        if not np.isin(value, values[f"known {self.name}"]).all():
            raise ValueError(f"{self.name} of the state must be of the prior's grid")


FIELDS = (
    Field("concentration", float, ("n_levels",), at_least=0.0),
    Field("parent", int, ("n_nodes",), at_least=-1, below="n_nodes"),
    Field("level", int, ("n_nodes",), at_least=1, below="n_levels"),
    Field("leaf_node", int, ("n_leaves",), at_least=0, below="n_nodes"),
    Field("branch", int, ("n_samples",), at_least=0, below="n_leaves"),
    Field("loadings", float, ("n_nodes", "n_features")),
    Field("local_precision", float, ("n_nodes", "n_features"), above=0.0),
    Field("multiplier", float, ("n_nodes",), above=0.0),
    Field("leaf_mean", float, ("n_leaves", "n_features")),
    Field("score_precision", float, ("n_leaves", "depth"), above=0.0),
    Field("noise_scale", float, ("n_leaves",), above=0.0),
    OneOf("tail_df", float, ("n_leaves",)),
    Field("mean_precision", float, ("n_features",), above=0.0),
    Field("noise_precision", float, ("n_features",), above=0.0),
    Field("noise_rate", float, above=0.0),
    Field("scores", float, ("n_samples", "depth")),
    Field("row_precision", float, ("n_samples",), above=0.0),
)
# What prediction does not need.
NOT_IN_DRAWS = ("local_precision", "noise_rate", "scores", "row_precision")


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
    if prior.tails not in TAILS or prior.tail_df not in TAIL_DFS:
        raise ValueError("the prior has an unknown tails or tail_df")
    check_positive(
        prior,
        *("concentration_decay", "shrinkage_root", "shrinkage", "local_shrinkage_df"),
        *("score_precision_shape", "noise_scale_shape"),
    )
    if not prior.has_free_concentration:
        check_positive(prior, "concentration")
        if len(prior.concentration) != len(levels):
            raise ValueError("the prior must have a concentration for each of branch_levels")


def checked_state(state, prior, n_samples):
    """The state with its arrays converted; a ValueError for one that does not fit."""
    out = _checked(state, prior, n_samples, FIELDS)
    if prior.tails == "gaussian" and (out["row_precision"] != 1.0).any():
        raise ValueError("row_precision of the state must be 1 where tails='gaussian'")
    return out


def checked_draw(draw, prior, n_samples):
    """The same for a draw, which has what prediction needs, and how many rows a leaf has."""
    fields = [field for field in FIELDS if field.name not in NOT_IN_DRAWS]
    out = _checked(draw, prior, n_samples, fields)
    leaf_count = checked_array(draw, "leaf_count", out["leaf_node"].shape, "iu", np.intp)
    if not np.array_equal(leaf_count, np.bincount(out["branch"])):
        raise ValueError("leaf_count of the state must count the rows of every leaf")
    return out


def _checked(state, prior, n_samples, fields):
    """Name -> converted value of each field."""
    n_levels = np.size(entry(state, "concentration"))
    if not max([2, *(h + 1 for h in prior.branch_levels)]) <= n_levels <= prior.max_depth + 1:
        raise ValueError(f"concentration of the state must not have {n_levels} levels")
    values = {
        "n_samples": n_samples,
        "n_features": prior.n_features,
        "n_nodes": np.size(entry(state, "parent")),
        "n_leaves": np.size(entry(state, "leaf_node")),
        "n_levels": n_levels,
        "depth": n_levels - 1,
        "known tail_df": DF_GRID[0] if prior.tails == "t" else [np.inf],
    }
    for field in fields:
        values[field.name] = field.checked(None, state, values)
    _check_tree(values, prior)
    _check_scales(values, prior)
    return {field.name: values[field.name] for field in fields}


def _check_tree(state, prior):
    """That nodes, leaves and rows make a tree that the prior allows."""
    n_nodes, n_leaves = state["n_nodes"], state["n_leaves"]
    parent, level, leaf_node = state["parent"], state["level"], state["leaf_node"]
    branches = np.isin(np.arange(state["n_levels"]), prior.branch_levels)
    if not ((state["concentration"] > 0.0) == branches).all():
        raise ValueError("concentration of the state must be > 0 at the branching levels alone")
    if not (parent < np.arange(n_nodes)).all():
        raise ValueError("parent of the state must come before its children")
    above = np.where(parent < 0, 0, level[parent] if n_nodes else 0)
    if not (level == above + 1).all():
        raise ValueError("level of the state must be one more than its parent's")
    if not (level[leaf_node] == state["depth"]).all():
        raise ValueError("leaf_node of the state must be at the last level")
    if not (np.bincount(state["branch"], minlength=n_leaves) > 0).all():
        raise ValueError("branch of the state must name every leaf")
    n_children = np.bincount(parent + 1, minlength=n_nodes + 1)
    n_children += np.bincount(leaf_node + 1, minlength=n_nodes + 1)
    may_branch = branches[np.append(0, level)]
    if (n_children == 0).any() or (n_children[~may_branch] > 1).any():
        raise ValueError("parent of the state must make a tree that branches where it may")


def _check_scales(state, prior):
    """That what the prior holds fixed, or the same, is so."""
    if prior.noise == "isotropic" and np.ptp(state["noise_precision"]) > 0.0:
        raise ValueError("noise_precision of the state must be the same for all features")
    if prior.tail_df == "shared" and len(set(state["tail_df"])) > 1:
        raise ValueError("tail_df of the state must be of the prior's grid, one for all")
    kappa, psi = state["noise_scale"], state["score_precision"]
    wanted = kappa[:, np.newaxis] if prior.branch_scale == "whole" else 1.0
    if (not prior.has_noise_scale and (kappa != 1.0).any()) or (
        not prior.has_score_precision and (psi != wanted).any()
    ):
        raise ValueError(f"the state has scales that branch_scale={prior.branch_scale!r} fixes")
