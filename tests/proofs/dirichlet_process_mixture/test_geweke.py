"""Joint-distribution tests of the sweep that ``fit`` runs, then of each move alone.

Null: a sweep leaves p(hyperparameters, partition, imputed cells, X) alone. About ten statistics
per configuration, |z| < 4 on each: false alarm 6e-5 each. Every named wrong formula must be seen.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from checks.dirichlet_process_mixture import gaussian_prior, make_sampler, sampler_at
from checks.joint_distribution import (
    Moves,
    assert_z_scores_small,
    paired_one_step,
    successive_conditional,
)
from checks.monte_carlo import z_score
from checks.proofs import proof, record
from skbnp.dirichlet_process_mixture import _model
from skbnp.laws import Beta, Gamma
from skbnp.processes import crp

N, D = 12, 2


def prior_of(kind="full", **changes):
    """Hyperparameters sampled; light tails (nu0 = D + 6), so that moments of X have errors."""
    covariance = {
        "full": np.array([[1.0, 0.4], [0.4, 0.8]]),
        "diag": np.array([1.0, 0.6]),
        "spherical": np.array(0.8),
    }
    defaults = {
        "concentration": Gamma(2.0, 2.0),
        "discount": Beta(2.0, 4.0),
        "prior_scale": _model.SCALE_GRID,
    }
    return gaussian_prior(
        kind, np.array([0.3, -0.2]), 0.5, D + 6.0, covariance[kind], **(defaults | changes)
    )


def statistics(sampler):
    X, scalars = sampler.completed_data(), sampler.scalars()
    squares = np.nanmean(X**2)
    out = {
        "clusters": scalars["n_clusters"],
        "clusters^2": scalars["n_clusters"] ** 2,
        "largest cluster": scalars["largest_cluster"],
        "concentration": scalars["concentration"],
        "concentration^2": scalars["concentration"] ** 2,
        "clusters x concentration": scalars["n_clusters"] * scalars["concentration"],
        "log scale": np.log2(scalars["prior_scale"]),
        "log scale x log mean square": np.log2(scalars["prior_scale"]) * np.log(squares),
        "first two rows together": float(sampler.labels[0] == sampler.labels[1]),
        "log joint": sampler.log_joint(),
    }
    if scalars["discount"] > 0:
        out["discount"] = scalars["discount"]
        out["discount x clusters"] = scalars["discount"] * scalars["n_clusters"]
    return out


def data_statistics(sampler):
    """The same and functions of X, for tests in which X changes."""
    X = sampler.completed_data()
    return statistics(sampler) | {
        "mean of X": float(np.nanmean(X)),
        "mean of tanh X1 tanh X2": float(np.nanmean(np.tanh(X[:, 0]) * np.tanh(X[:, 1]))),
        "log mean square": float(np.log(np.nanmean(X**2))),
    }


def joint_draw(prior, holes=0.0, n=N, move=None, **options):
    """``make_joint_draw`` for the harness; the mask of missing cells is always the same."""
    missing = np.random.default_rng(5).random((n, D)) < holes

    def make(rng):
        state, X = _model.draw_joint(prior, n, rng)
        sampler = sampler_at(prior, state, X, missing, seed=int(rng.integers(2**62)), **options)
        return Moves(sampler, [move]) if move else sampler

    return make


CONFIGURATIONS = {
    "full": ({"kind": "full"}, {}),
    "diag": ({"kind": "diag"}, {}),
    "spherical": ({"kind": "spherical"}, {}),
    "full, holes": ({"kind": "full"}, {"holes": 0.25}),
    "diag, holes": ({"kind": "diag"}, {"holes": 0.25}),
    "spherical, holes": ({"kind": "spherical"}, {"holes": 0.25}),
    "dirichlet process": ({"discount": 0.0}, {}),
    "finite": ({"discount": 0.0, "n_components": 3}, {}),
    "finite, one": ({"discount": 0.0, "n_components": 1}, {}),
    "no split-merge": ({}, {"n_split_merge": 0}),
    "restricted gibbs": ({}, {"split_merge": "restricted_gibbs"}),
    "parallel": ({}, {"algorithm": "parallel", "n_subset": 3}),
    "parallel, holes": ({}, {"algorithm": "parallel", "n_subset": 3, "holes": 0.25}),
    "parallel, diag, holes": (
        {"kind": "diag"},
        {"algorithm": "parallel", "n_subset": 3, "holes": 0.25},
    ),
    "parallel, finite": (
        {"discount": 0.0, "n_components": 3},
        {"algorithm": "parallel", "n_subset": 3},
    ),
    "plain gibbs": ({"discount": 0.0, "n_components": 3}, {"algorithm": "gibbs"}),
    "plain gibbs, holes": (
        {"discount": 0.0, "n_components": 4},
        {"algorithm": "gibbs", "holes": 0.25, "n_split_merge": 0},
    ),
}


def many_clusters(**options):
    """K well above 8, so that "auto" asks for more than its least number of proposals."""
    prior = prior_of(concentration=Gamma(40.0, 2.0), discount=0.0)
    pilot = joint_draw(prior, n=40)(np.random.default_rng(1))
    pilot = make_sampler(
        pilot.completed_data(), prior, pilot.labels, n_split_merge="auto", concentration=20.0
    )
    pilot.adapt(0)
    n_proposals = pilot.move("split_merge").n_proposals
    assert pilot.n_clusters > 8 and n_proposals > 4
    return joint_draw(prior, n=40, n_split_merge=n_proposals, **options)


def changing(z_of, name):
    """Statistics that the configuration holds fixed tell nothing and are left out."""
    fixed = {"finite, one": ("clusters", "largest cluster", "first two", "clusters x")}
    return lambda sampler: {
        key: value
        for key, value in z_of(sampler).items()
        if not (name == "finite, one" and key.startswith(fixed[name]) and "conc" not in key)
    }


@proof(pairs=(1000, 40_000, 10_000), seed=(1, 6), smoke=("full", "diag", "parallel", "plain gibbs"))
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_default_sweep_paired(name, size, seed):
    prior, options = CONFIGURATIONS[name]
    z = paired_one_step(
        joint_draw(prior_of(**prior), **options), changing(statistics, name), size, seed=seed
    )
    assert_z_scores_small(z)


@proof(pairs=(3000, 50_000), seed=(2, 8))
@pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])
def test_default_sweep_paired_many_clusters(algorithm, size, seed):
    make = many_clusters(algorithm=algorithm, n_subset=5)
    assert_z_scores_small(paired_one_step(make, statistics, size, seed=seed))


MOVES = {
    "gibbs": ("clusters", "clusters^2", "largest", "first", "log joint"),
    "all_rows": ("largest", "first", "log joint"),
    "split_merge": ("clusters", "clusters^2", "largest", "first", "log joint"),
    "concentration": ("concentration", "concentration^2", "clusters x conc", "log joint"),
    "discount": ("discount", "discount x", "log joint"),
    "prior_scale": ("log scale", "log scale x", "log joint"),
}


@proof(pairs=(4000, 10_000), seed=3)
@pytest.mark.parametrize("move, kind", list(product(MOVES, ["full", "diag", "spherical"])))
def test_each_move_alone_paired(move, kind, size, seed):
    def touched(sampler):
        return {k: v for k, v in statistics(sampler).items() if k.startswith(MOVES[move])}

    options = {"algorithm": "parallel"} if move == "all_rows" else {}
    make = joint_draw(prior_of(kind), move=move, **options)
    assert_z_scores_small(paired_one_step(make, touched, size, seed=seed))


IMPUTED = {"holes": 0.5, "n_subset": 3}
every_algorithm = pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])


def imputed(sampler):
    X = sampler.completed_data()
    return {
        "mean of tanh": np.tanh(X).mean(),
        "mean of tanh^2": (np.tanh(X) ** 2).mean(),
        "log mean square": np.log((X**2).mean()),
        "mean of tanh X1 tanh X2": (np.tanh(X[:, 0]) * np.tanh(X[:, 1])).mean(),
    }


def heavy_tails():
    """Rows that sit alone, whose tails are heavy: what a row shows of its scale matters most."""
    heavy = replace(prior_of(), concentration=20.0)
    return replace(heavy, parts=(replace(heavy.gaussian, degrees_of_freedom=D + 2.0),))


@proof(pairs=(6000, 40_000), seed=4)
@every_algorithm
@pytest.mark.parametrize("prior", [prior_of(), heavy_tails()], ids=["light", "heavy"])
def test_imputation_paired(prior, algorithm, size, seed):
    """Imputed cells keep their law: the state holds them, so X changes within a sweep."""
    make = joint_draw(prior, **IMPUTED, algorithm=algorithm)
    assert_z_scores_small(paired_one_step(make, imputed, size, seed=seed))


@proof(seed=4, wrong=True)
def test_narrow_imputation_is_noticed(seed):
    wrong = joint_draw(heavy_tails(), **IMPUTED, fault="narrow_imputation")
    z = paired_one_step(wrong, imputed, 6000, seed=seed)
    assert max(map(abs, z.values())) > 6, z


@proof(draws=(8000, 40_000), seed=(5, 7))
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_default_sweep_successive(name, size, seed):
    prior, options = CONFIGURATIONS[name]
    make = joint_draw(prior_of(**prior), **options)
    z = successive_conditional(make, changing(data_statistics, name), size, thin=2, seed=seed)
    assert_z_scores_small(z)


@proof(pairs=(6000, 40_000), seed=10)
def test_wide_rows_paired(size, seed):
    """Above 64 features the weights of an incomplete row come from the completed one."""
    narrow = joint_draw(prior_of(), holes=0.25)

    def wide(rng):
        sampler = narrow(rng)
        sampler.family.wide = 0
        return sampler

    assert_z_scores_small(paired_one_step(wide, statistics, size, seed=seed))


@proof(seed=9, wrong=True)
@pytest.mark.parametrize(
    "fault, prior, n",
    [
        ("missing_normaliser", {}, 500),
        ("swapped_beta", {"discount": 0.0}, 3000),
        ("dp_concentration", {"discount": 0.0, "n_components": 3}, 6000),
        ("split_state_count", {"discount": 0.6, "concentration": 0.1}, 6000),
        ("unscaled_prior", {}, 3000),
    ],
)
def test_a_wrong_formula_is_noticed(fault, prior, n, seed):
    make = joint_draw(prior_of(**prior), fault=fault)

    def changed(sampler):
        out = statistics(sampler)
        if "concentration" in prior:
            out = {k: v for k, v in out.items() if "concentration" not in k}
        return {k: v for k, v in out.items() if k != "discount" or prior.get("discount") is None}

    z = paired_one_step(make, changed, n, seed=seed)
    assert max(map(abs, z.values())) > 6, z


# -- no data: the partition follows its prior -------------------------------------------------


def blank(kind, n, seed, n_split_merge=4, fault="none", **prior):
    """A sampler with every cell missing, started from an exact draw of the partition."""
    p = gaussian_prior(
        kind, np.zeros(1), 0.5, 4.0, np.eye(1) if kind == "full" else np.ones(1), **prior
    )
    label = crp.sample(n, prior["concentration"], prior["discount"], random_state=0)
    X = np.full((n, 1), np.nan)
    return make_sampler(X, p, label, seed=seed, n_split_merge=n_split_merge, fault=fault)


@proof(sweeps=(30_000, 150_000), seed=3)
@pytest.mark.parametrize("kind", ["full", "diag"])
@pytest.mark.parametrize("concentration, discount", [(1.0, 0.0), (3.0, 0.25), (-0.1, 0.5)])
def test_no_data_gives_the_prior(kind, concentration, discount, size, seed):
    """E[K] and Var[K] of processes 1.3, from a chain on all-missing rows."""
    n = 30
    law = {"concentration": concentration, "discount": discount, "prior_scale": 1.0}
    sampler = blank(kind, n, seed, **law)
    k = np.empty(size)
    for t in range(len(k)):
        sampler.sweep()
        k[t] = sampler.n_clusters
    mean = crp.expected_blocks(n, concentration, discount)
    variance = crp.var_blocks(n, concentration, discount)
    assert abs(z_score(k, mean)) < 4
    assert abs(z_score((k - mean) ** 2, variance)) < 4


def drift_of_clusters(fault, n_pairs, seed):
    """z of the mean change of K over one sweep from exact prior draws, n = 50, concentration 15."""
    n, change = 50, np.empty(n_pairs)
    p = gaussian_prior(
        "diag",
        np.zeros(1),
        0.5,
        4.0,
        np.ones(1),
        concentration=15.0,
        discount=0.0,
        prior_scale=1.0,
    )
    X = np.full((n, 1), np.nan)
    rng = np.random.default_rng(seed)
    for t in range(n_pairs):
        label = crp.sample(n, 15.0, random_state=rng)
        sampler = make_sampler(
            X, p, label, seed=int(rng.integers(2**62)), n_split_merge=10, fault=fault
        )
        before = sampler.n_clusters
        sampler.sweep_only("split_merge")
        change[t] = sampler.n_clusters - before
    return record(change.mean() / change.std(ddof=1) * np.sqrt(n_pairs))


@proof(pairs=(8000, 40_000), seed=11)
def test_a_given_number_of_proposals_leaves_the_clusters_alone(size, seed):
    assert abs(drift_of_clusters("none", size, seed)) < 4


@proof(seed=11, wrong=True)
def test_proposals_that_follow_the_state_are_noticed(seed):
    """As many proposals as the present number of clusters biases the chain."""
    assert abs(drift_of_clusters("adaptive_split_merge", 30_000, seed)) > 5
