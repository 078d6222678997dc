"""Joint-distribution tests of the sweep that ``fit`` runs, then of each move alone.

Null: a sweep leaves p(state, X) alone. Twenty to forty statistics per configuration, |z| < 4 on
each: false alarm 6e-5 each. Every named wrong formula must be seen.
"""

import numpy as np
import pytest

from checks.joint_distribution import (
    assert_z_scores_small,
    paired_one_step,
    successive_conditional,
)
from checks.monte_carlo import z_score
from checks.proofs import proof
from checks.tree_factor_model import (
    FREE_RATE,
    SMALL_RATE,
    STRUCTURES,
    changing,
    data_statistics,
    joint_draw,
    prior_of,
    statistics,
)

CONFIGURATIONS = {
    "single": ("single", {}, {}),
    "mixture": ("mixture", {}, {}),
    "tree": ("tree", {}, {}),
    "mixture, collapsed": ("mixture", {}, {"path_update": "collapsed"}),
    "tree, collapsed": ("tree", {}, {"path_update": "collapsed"}),
    "tree, births from the prior": (
        "tree",
        {"branch_scale": "loadings"},
        {"path_update": "collapsed", "birth": "prior"},
    ),
    "tree, holes": ("tree", {}, {"holes": 0.3}),
    "tree, collapsed, holes": ("tree", {}, {"holes": 0.3, "path_update": "collapsed"}),
    "single, holes": ("single", {}, {"holes": 0.3}),
    "tree, isotropic": ("tree", {"noise": "isotropic"}, {}),
    "tree, isotropic, holes, rate": (
        "tree",
        {"noise": "isotropic", "noise_precision": FREE_RATE},
        {"holes": 0.3},
    ),
    "tree, rate": ("tree", {"noise_precision": FREE_RATE}, {}),
    "tree, small rate": ("tree", {"noise_precision": SMALL_RATE}, {}),
    "single, isotropic, small rate": (
        "single",
        {"noise": "isotropic", "noise_precision": SMALL_RATE},
        {},
    ),
    "tree, loadings": ("tree", {"branch_scale": "loadings"}, {}),
    "tree, noise": ("tree", {"branch_scale": "noise"}, {}),
    "tree, whole": ("tree", {"branch_scale": "whole"}, {}),
    "mixture, loadings, collapsed": (
        "mixture",
        {"branch_scale": "loadings"},
        {"path_update": "collapsed"},
    ),
    "tree, loadings, holes": ("tree", {"branch_scale": "loadings"}, {"holes": 0.3}),
    "tree, whole, holes, collapsed": (
        "tree",
        {"branch_scale": "whole"},
        {"holes": 0.3, "path_update": "collapsed"},
    ),
    "early branching": ("tree", {"branch_levels": (1, 2)}, {}),
    "three branching levels": (
        "tree",
        {"branch_levels": (0, 1, 3)},
        {"path_update": "collapsed"},
    ),
    "single, tails": ("single", {"tails": "t"}, {}),
    "tree, loadings, tails": ("tree", {"tails": "t", "branch_scale": "loadings"}, {}),
    "tree, whole, one tail, holes": (
        "tree",
        {"tails": "t", "tail_df": "shared", "branch_scale": "whole"},
        {"holes": 0.3},
    ),
    "tree, loadings, tails, collapsed": (
        "tree",
        {"tails": "t", "branch_scale": "loadings"},
        {"path_update": "collapsed"},
    ),
    "mixture, noise, tails, collapsed, holes": (
        "mixture",
        {"tails": "t", "branch_scale": "noise"},
        {"path_update": "collapsed", "holes": 0.3},
    ),
    "mixture, one tail, births from the prior": (
        "mixture",
        {"tails": "t", "tail_df": "shared"},
        {"path_update": "collapsed", "birth": "prior"},
    ),
    "more features than levels": ("tree", {"n_features": 5, "max_depth": 3}, {"n": 8}),
}

# The structures that users choose from, and tails.
SMOKE = ("single", "mixture", "tree, loadings", "tree, loadings, tails")


def configured(name, **more):
    structure, prior, options = CONFIGURATIONS[name]
    return joint_draw(prior_of(structure, **prior), **(options | more)), structure


@proof(pairs=(500, 40_000, 10_000), seed=(1, 2), smoke=SMOKE)
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_sweep_paired(name, size, seed):
    make, structure = configured(name)
    z = paired_one_step(make, changing(statistics, structure), size, seed=seed)
    assert_z_scores_small(z)


@proof(draws=(1500, 30_000), seed=(3, 4))
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_sweep_successive(name, size, seed):
    make, structure = configured(name)
    z = successive_conditional(make, changing(data_statistics, structure), size, thin=2, seed=seed)
    assert_z_scores_small(z)


TOUCHED = {
    "paths": ("leaves", "nodes", "1 and 2", "largest", "together", "tanh x", "log joint"),
    "tails": ("log df", "log u", "tanh x", "log joint"),
    "leaf_means": ("tanh M", "tanh x", "log joint"),
    "scores": ("tanh x",),
    "loadings": ("tanh D", "tanh M", "tanh x D y", "log psi", "log joint"),
    "precisions": (
        "log lambda",
        "log b0",
        "log xi",
        "log phi",
        "log zeta",
        "cross",
        "log kappa",
        "log joint",
    ),
    "concentration": ("log alpha", "log joint"),
}


@proof(pairs=(1500, 10_000), seed=(5, 7))
@pytest.mark.parametrize(
    "move, options",
    [
        *((move, {}) for move in TOUCHED),
        ("paths", {"path_update": "collapsed"}),
        ("paths", {"path_update": "collapsed", "birth": "prior"}),
    ],
)
def test_each_move_alone_paired(move, options, size, seed):
    def touched(sampler):
        return {k: v for k, v in statistics(sampler).items() if k.startswith(TOUCHED[move])}

    tails = "t" if move in ("paths", "tails") else "gaussian"
    make = joint_draw(prior_of("tree", branch_scale="loadings", tails=tails), move=move, **options)
    assert_z_scores_small(paired_one_step(make, touched, size, seed=seed))


# What shows each wrong formula, and in how many pairs.
SHOWN = {
    "children_only": (prior_of("single"), {}, 2500, ("cross",)),
    "descendants_only": (prior_of("tree"), {}, 2500, ("cross",)),
    "children_shape": (prior_of("tree"), {}, 500, ("cross",)),
    "no_determinant": (
        prior_of("mixture", branch_scale="noise", noise_scale_shape=1.0),
        {"n": 8},
        2000,
        ("row kappa", "log kappa"),
    ),
    "no_new_paths": (prior_of("tree"), {}, 1000, ("leaves",)),
    "blind_birth": (
        prior_of("mixture", concentration=(3.0,)),
        {"path_update": "collapsed", "move": "paths"},
        1500,
        ("tanh x D y", "log joint"),
    ),
    "flat_scores": (prior_of("tree"), {}, 1500, ("tanh x",)),
    "unweighted_rows": (
        prior_of("mixture", branch_scale="noise", noise_scale_shape=0.5),
        {"n": 8},
        3000,
        ("tanh x D y", "log joint", "row kappa"),
    ),
    "mean_given_scores": (prior_of("single"), {"n": 8}, 1500, ("tanh M", "tanh x", "log joint")),
    "short_tail": (prior_of("tree", tails="t"), {"n": 8}, 1500, ("log u", "log df", "tanh x")),
    "fills_in": (prior_of("tree"), {"n": 8}, 1500, ("tanh D", "tanh M", "log joint")),
}


@proof(seed=6, wrong=True)
@pytest.mark.parametrize("fault", SHOWN)
def test_a_wrong_formula_is_noticed(fault, seed):
    prior, options, n, names = SHOWN[fault]
    make = joint_draw(prior, fault=fault, **options)

    def shown(sampler):
        return {k: v for k, v in statistics(sampler).items() if k.startswith(names)}

    z = paired_one_step(make, shown, n, seed=seed)
    assert max(map(abs, z.values())) > 6, z


@proof(draws=(4000, 40_000), seed=8)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_cross_moment_has_its_closed_form(structure, size, seed):
    """-psi'(c) at every level, here of exact joint draws: equation (T16.4)."""
    make, values = joint_draw(prior_of(structure)), []
    for child in np.random.SeedSequence(seed).spawn(size):
        values.append(statistics(make(np.random.default_rng(child))))
    for level, expected in ((1, -0.394934), (2, -0.283823), (3, -0.283823)):
        assert abs(z_score([v[f"cross-moment {level}"] for v in values], expected)) < 4
