"""The mixture over cells of rows: enumeration, then joint-distribution tests of its sweep.

Null, errors and false alarms as in test_exact and test_geweke: |z| < 4 on each of some ten
figures. Tables are cut into cells of four rows; some rows are at hand and some are not.
"""

from itertools import product

import numpy as np
import pytest

from checks.dirichlet_process_mixture import (
    case_data,
    case_prior,
    enumerate_posterior,
    exact_posterior,
    gaussian_prior,
    learned_prior,
    partition_z_scores,
    vector_cases,
)
from checks.joint_distribution import Moves, assert_z_scores_small, paired_one_step
from checks.mixture_priors import LAWS, finite_prior, mixed_prior
from checks.mixture_records import (
    Coins,
    Pilots,
    make_record_sampler,
    record_sampler_at,
    sampler_kind,
)
from checks.proofs import proof
from skbnp.dirichlet_process_mixture import _model
from skbnp.laws import Beta, Gamma

CASES = vector_cases()
N, D = 24, 2

# Rows at hand, proposals, and what is done for a step of the chain.
SAMPLERS = {
    "pass and rows at hand": ({"n_subset": 2, "n_split_merge": 0}, ("sweep",)),
    "with proposals": ({"n_subset": 3, "n_split_merge": 2}, ("gibbs", "proposals", "all_rows")),
    "pass and proposals": ({"n_subset": 4, "n_split_merge": 2}, ("proposals", "all_rows")),
}


def steps_of(names):
    """A function that makes these moves of a sampler."""

    def step(sampler):
        for name in names:
            if name == "sweep":
                sampler.sweep()
            else:
                sampler.sweep_only(name)

    return step


def applies(name, sampler):
    """Imputed cells are part of the state: some exact posteriors are of the default sweep."""
    return name in CASES and not ("Kmax" in name and sampler == "pass and proposals")


@proof(
    sweeps=(2000, 16_000),
    seed=7,
    smoke=("gauss-full DP-with proposals", "gauss-diag DP missing-pass and rows at hand"),
)
@pytest.mark.parametrize(
    "name, sampler", [(name, s) for name, s in product(CASES, SAMPLERS) if applies(name, s)]
)
def test_sampler_reaches_the_exact_posterior(name, sampler, size, seed):
    case, (options, moves) = CASES[name], SAMPLERS[sampler]
    label = np.zeros(len(case["X"]), int)
    chain = make_record_sampler(case_data(case), case_prior(case), label, seed, **options)
    z = partition_z_scores(chain, steps_of(moves), exact_posterior(case), size)
    assert max(abs(value) for value in z.values()) < 4, z


@proof(sweeps=(2000, 16_000), seed=8)
@pytest.mark.parametrize("kind", [Pilots, Coins])
@pytest.mark.parametrize("name", ["gauss-full DP", "gauss-diag DP", "poisson PY", "categorical DP"])
def test_proposals_alone(name, kind, size, seed):
    """All rows are at hand: nothing but splits and merges of one kind."""
    case = CASES[name]
    kind = sampler_kind(split_merge=kind, all_at_hand=True)
    label = np.zeros(len(case["X"]), int)
    chain = make_record_sampler(
        case_data(case), case_prior(case), label, seed, kind=kind, n_subset=6, n_split_merge=2
    )
    z = partition_z_scores(chain, steps_of(["proposals"]), exact_posterior(case), size)
    assert max(abs(value) for value in z.values()) < 4, z


@proof(sweeps=(2000, 16_000), seed=9)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("table", ["gauss-full DP", "poisson PY"])
def test_finite_mixtures(table, law, size, seed):
    X, prior = case_data(CASES[table]), finite_prior(table, law)
    chain = make_record_sampler(X, prior, np.zeros(len(X), int), seed, n_subset=3, n_split_merge=2)
    step = steps_of(["gibbs", "proposals", "all_rows"])
    z = partition_z_scores(chain, step, enumerate_posterior(X, prior), size)
    assert max(abs(value) for value in z.values()) < 4, z


@proof(seed=7, wrong=True)
@pytest.mark.parametrize(
    "fault, name, n_subset",
    [
        ("subset_sees_labels", "gauss-diag DP", 2),
        ("stale_record", "gauss-full PY", 2),
    ],
)
def test_a_wrong_pass_is_noticed(fault, name, n_subset, seed):
    case = CASES[name]
    chain = make_record_sampler(
        case_data(case),
        case_prior(case),
        np.zeros(len(case["X"]), int),
        seed,
        kind=sampler_kind(fault),
        n_subset=n_subset,
        n_split_merge=0,
    )
    z = partition_z_scores(chain, steps_of(["sweep"]), exact_posterior(case), 30_000)
    assert max(abs(value) for value in z.values()) > 6, z


@proof(seed=7, wrong=True)
@pytest.mark.parametrize("fault", ["no_pilot_q", "launch_sees_division"])
def test_a_wrong_proposal_is_noticed(fault, seed):
    case = CASES["gauss-full DP"]
    kind = sampler_kind(fault, all_at_hand=True)
    chain = make_record_sampler(
        case_data(case),
        case_prior(case),
        np.zeros(6, int),
        seed,
        kind=kind,
        n_subset=6,
        n_split_merge=2,
    )
    z = partition_z_scores(chain, steps_of(["proposals"]), exact_posterior(case), 12_000)
    assert max(abs(value) for value in z.values()) > 6, z


# -- joint distribution -------------------------------------------------------------------------


def fixed_prior(kind="full", **changes):
    """Hyperparameters of the partition and the prior scale sampled; light tails."""
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


def default_prior(kind):
    """What `fit` uses: covariances learned, a Dirichlet process."""
    guess = {"full": np.array([[1.0, 0.3], [0.3, 1.0]]), "diag": np.ones(2), "spherical": 1.0}
    return learned_prior(
        kind, np.zeros(2), np.array(guess[kind]), concentration=Gamma(1.0, 1.0), discount=0.0
    )


def statistics(sampler):
    X, scalars, label = sampler.completed_data(), sampler.scalars(), sampler.labels
    out = {
        "clusters": scalars["n_clusters"],
        "clusters^2": scalars["n_clusters"] ** 2,
        "largest cluster": scalars["largest_cluster"],
        "concentration": scalars["concentration"],
        "clusters x concentration": scalars["n_clusters"] * scalars["concentration"],
        "first two rows together": float(label[0] == label[1]),
        "rows of two cells together": float(label[2] == label[9]),
        "log joint": sampler.log_joint(),
    }
    if 0 < scalars["discount"]:
        out["discount"] = scalars["discount"]
    if "prior_scale" in scalars:
        out["log scale"] = np.log2(scalars["prior_scale"])
        out["log scale x log mean square"] = out["log scale"] * np.log(np.nanmean(X**2))
    else:
        out["log degrees"] = np.log(scalars["degrees_of_freedom"])
        out["log mean precision"] = np.log(scalars["mean_precision"])
        out["log det"] = scalars["log_det_covariance"]
    return out


def joint_draw(prior, holes=0.0, n=N, move=None, **options):
    """``make_joint_draw`` for the harness; the mask of missing cells is always the same."""
    missing = np.random.default_rng(5).random((n, prior.n_features)) < holes

    def make(rng):
        state, X = _model.draw_joint(prior, n, rng)
        sampler = record_sampler_at(
            prior, state, X, missing, seed=int(rng.integers(2**62)), **options
        )
        return Moves(sampler, [move]) if move else sampler

    return make


HALF = {"n_subset": N // 2, "n_split_merge": 2}
CONFIGURATIONS = {
    "full": (fixed_prior("full"), HALF),
    "full, holes": (fixed_prior("full"), HALF | {"holes": 0.25}),
    "diag, holes": (fixed_prior("diag"), HALF | {"holes": 0.25}),
    "spherical, holes": (fixed_prior("spherical"), HALF | {"holes": 0.25}),
    "finite": (fixed_prior(discount=0.0, n_components=3), HALF),
    "few at hand": (fixed_prior("full"), {"n_subset": 3, "n_split_merge": 2}),
    "all at hand": (fixed_prior("full"), {"n_subset": N, "n_split_merge": 2, "holes": 0.25}),
    "no split-merge": (fixed_prior("diag"), {"n_subset": 8, "n_split_merge": 0}),
    "restricted gibbs": (fixed_prior("full"), HALF | {"split_merge": "restricted_gibbs"}),
    "default full": (default_prior("full"), HALF),
    "default full, holes": (default_prior("full"), HALF | {"holes": 0.25}),
    "default diag, holes": (default_prior("diag"), HALF | {"holes": 0.25}),
    "many clusters": (
        fixed_prior(concentration=Gamma(40.0, 2.0), discount=0.0),
        {"n": 40, "n_subset": 20, "n_split_merge": 6},
    ),
    "mixed": (
        mixed_prior("full", concentration=Gamma(2.0, 2.0), prior_scale=_model.SCALE_GRID),
        HALF | {"holes": 0.2},
    ),
}


@proof(pairs=(120, 20_000, 8000), seed=1, smoke=("default full, holes",))
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_sweep_paired(name, size, seed):
    prior, options = CONFIGURATIONS[name]
    assert_z_scores_small(paired_one_step(joint_draw(prior, **options), statistics, size, seed))


@proof(pairs=(120, 8000), seed=2)
@pytest.mark.parametrize("move", ["gibbs", "all_rows"])
@pytest.mark.parametrize("name", ["full, holes", "default diag, holes"])
def test_each_move_alone_paired(name, move, size, seed):
    prior, options = CONFIGURATIONS[name]
    options = options | {"n_subset": options.get("n", N)}
    fixed = ["concentration", "discount", "log scale", "log degrees", "log mean", "log det"]
    if move == "gibbs":
        options["kind"] = sampler_kind(all_at_hand=True)
    else:
        fixed += ["clusters"]  # every block keeps its anchor

    def of_partition(sampler):
        found = statistics(sampler)
        return {key: found[key] for key in found if not key.startswith(tuple(fixed))}

    found = paired_one_step(joint_draw(prior, move=move, **options), of_partition, size, seed)
    assert_z_scores_small(found)


@proof(seed=3, wrong=True)
def test_an_order_that_sees_the_state_is_noticed(seed):
    prior, options = CONFIGURATIONS["full"]
    options = options | {"n_subset": N, "kind": sampler_kind("order_sees_state")}

    def sizes(sampler):
        size = np.bincount(sampler.labels)
        return {
            "largest": float(size.max()),
            "first": float(size[0]),
            "squares": float(size @ size),
        }

    z = paired_one_step(joint_draw(prior, move="all_rows", **options), sizes, 10_000, seed)
    assert max(abs(value) for value in z.values()) > 6, z
