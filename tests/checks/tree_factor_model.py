"""What the tests of the tree factor model have in common."""

import numpy as np
from scipy.special import psi

from checks.joint_distribution import Moves
from checks.mutants import compiled, with_moves
from skbnp.laws import Gamma
from skbnp.tree_factor_model import _model
from skbnp.tree_factor_model._model import Prior
from skbnp.tree_factor_model._sampler import Sampler

STRUCTURES = {"single": (), "mixture": (0,), "tree": (1, 3)}
# Noise precisions whose rate is sampled.
FREE_RATE = Gamma(3.0, Gamma(4.0, 2.0))
# The law of this rate has a quarter of its mass below the least value, where it is cut off.
SMALL_RATE = Gamma(3.0, Gamma(0.2, 1.0))


def prior_of(structure="tree", **changes):
    """The setting of mathematics, section 16: light tails, so that few draws have small errors."""
    defaults = dict(
        n_features=2,
        max_depth=3,
        branch_levels=STRUCTURES[structure],
        concentration=Gamma(3.0, 3.0),
        shrinkage_root=3.0,
        shrinkage=4.0,
        local_shrinkage_df=5.0,
        noise_precision=Gamma(3.0, 2.0),
        mean_precision=Gamma(4.0, 4.0),
        score_precision_shape=3.0,
        noise_scale_shape=3.0,
        branch_scale="none",
    )
    return Prior(**(defaults | changes))


# Wrong formulas: the part of the sampler that has them, and the class in tests/mutants.
FAULTS = {
    "children_only": ("precisions", "ChildrenOnly"),
    "descendants_only": ("precisions", "DescendantsOnly"),
    "children_shape": ("precisions", "ChildrenShape"),
    "unbounded_rate": ("precisions", "UnboundedRate"),
    "no_determinant": ("LAWS", "NoDeterminant"),
    "short_tail": ("LAWS", "ShortTail"),
    "no_new_paths": ("slice", "NoNewPaths"),
    "keeps_own_count": ("collapsed", "KeepsOwnCount"),
    "blind_birth": ("collapsed", "BlindBirth"),
    "flat_scores": ("scores", "FlatScores"),
    "unweighted_rows": ("loadings", "UnweightedRows"),
    "fills_in": ("loadings", "FillsIn"),
    "mean_given_scores": ("leaf_means", "MeanGivenScores"),
}


def mutant(fault):
    """The sampler with a wrong formula, or as it is for "none"."""
    if fault == "none":
        return Sampler
    part, name = FAULTS[fault]
    wrong = getattr(compiled("tree_factor_model"), name)
    if part == "LAWS":
        return type("SamplerMutant", (Sampler,), {"LAWS": wrong})
    return with_moves(Sampler, **{part: wrong})


def make_sampler(X, prior, state, seed=0, fault="none", **options):
    bit_generator = np.random.default_rng(seed).bit_generator
    options = {"adapt_depth": False} | options
    return mutant(fault)(X, prior, state, bit_generator, **options)


def joint_draw(prior, n=5, holes=0.0, move=None, **options):
    """``make_joint_draw`` for the harness; the mask of missing entries is always the same."""
    missing = np.random.default_rng(5).random((n, prior.n_features)) < holes

    def make(rng):
        state, X = _model.draw_joint(prior, n, rng)
        X[missing] = np.nan
        sampler = make_sampler(X, prior, state, seed=int(rng.integers(2**62)), **options)
        return Moves(sampler, [move]) if move else sampler

    return make


def statistics(sampler):
    """Bounded functions and logarithms: moments are heavy tailed."""
    s, X, prior = sampler.get_state(), sampler.state.data(), sampler.state.prior
    paths, b, level = _model.paths_of(s), s["branch"], s["level"]
    D, x, log_tau = s["loadings"], s["scores"], _model.log_precisions(s)
    shape = np.where(s["parent"] < 0, prior.shrinkage_root, prior.shrinkage)
    log_zeta = np.log(s["multiplier"])
    weighted = np.log(s["local_precision"] * D**2) + (log_tau - log_zeta)[:, np.newaxis]
    cross = (log_zeta - psi(shape)) * weighted.mean(axis=1)
    y = np.where(np.isnan(X), 0.0, X)
    size = np.tanh((y**2).mean(axis=1))
    out = {
        "leaves": float(len(s["leaf_node"])),
        "nodes": float(len(level)),
        "1 and 2 together": float(b[0] == b[1]),
        "largest leaf": float(np.bincount(b).max()),
        "log lambda": np.log(s["noise_precision"]).mean(),
        "log lambda^2": (np.log(s["noise_precision"]) ** 2).mean(),
        "log xi": np.log(s["mean_precision"]).mean(),
        "log phi": np.log(s["local_precision"]).mean(),
        "tanh M": np.tanh(s["leaf_mean"]).mean(),
        "tanh M^2": np.tanh(s["leaf_mean"] ** 2).mean(),
        "tanh x^2": np.tanh(x**2).mean(),
        "tanh x D y": np.tanh(x * np.einsum("ilp,ip->il", D[paths[b]], y)).mean(),
        "log lambda x size": np.log(s["noise_precision"]).mean() * size.mean(),
        "leaves x size": len(s["leaf_node"]) * size.mean(),
        "together x y y": float(b[0] == b[1]) * np.tanh(y[0] @ y[1]),
        "log joint": sampler.log_joint(),
    }
    for level_now in range(1, len(s["concentration"])):
        at = level == level_now
        out[f"log zeta {level_now}"] = log_zeta[at].mean()
        out[f"cross-moment {level_now}"] = cross[at].mean()
        out[f"tanh D^2 {level_now}"] = np.tanh(D[at] ** 2).mean()
        out[f"tanh D^2 x size {level_now}"] = out[f"tanh D^2 {level_now}"] * size.mean()
    for k in prior.branch_levels:
        out[f"log alpha {k}"] = np.log(s["concentration"][k])
        out[f"log alpha x leaves {k}"] = np.log(s["concentration"][k]) * len(s["leaf_node"])
    if prior.has_noise_scale:
        kappa = np.log(s["noise_scale"])
        out["log kappa"] = kappa.mean()
        out["log kappa^2"] = (kappa**2).mean()
        out["log kappa x size"] = (kappa[b] * size).mean()
        out["row kappa"] = kappa[b].mean()
    if prior.has_score_precision:
        log_psi = np.log(s["score_precision"])
        out["log psi"] = log_psi.mean()
        out["log psi^2"] = (log_psi**2).mean()
        out["log psi x size"] = (log_psi[b, 0] * size).mean()
    if prior.tails == "t":
        u, log_df = np.log(s["row_precision"]), np.log(s["tail_df"])
        out["log u"] = np.tanh(u).mean()
        out["log u x size"] = (np.tanh(u) * size).mean()
        out["log df"] = log_df.mean()
        out["log df^2"] = (log_df**2).mean()
        out["log df x size"] = (log_df[b] * size).mean()
    if prior.has_free_noise_rate:
        out["log b0"] = np.log(s["noise_rate"])
    return out


def data_statistics(sampler):
    """The same and functions of X, for tests in which X changes."""
    X = sampler.state.data()
    return statistics(sampler) | {
        "tanh y": float(np.nanmean(np.tanh(X))),
        "tanh y^2": float(np.nanmean(np.tanh(X**2))),
        "tanh y1 y2 within": float(np.nanmean(np.tanh(X[:, 0] * X[:, 1]))),
        "tanh y1 y2 between": float(np.nanmean(np.tanh(X[0] * X[1]))),
    }


# What a structure holds fixed, or a move does not touch, is left out of its statistics.
PATH_STATISTICS = ("leaves", "nodes", "1 and 2", "largest", "together", "log alpha")


def changing(function, structure):
    """The statistics that the structure lets change."""

    def changed(sampler):
        return {
            name: value
            for name, value in function(sampler).items()
            if not (structure == "single" and name.startswith(PATH_STATISTICS))
        }

    return changed
