"""The mixture with a law of the number of components: enumeration and joint distribution.

Null, errors and false alarms as in test_exact and test_geweke: |z| < 4 on each of some ten
figures. The coefficients V_n(t) themselves are proved in tests/processes/test_mfm.py.
"""

from itertools import product

import numpy as np
import pytest

from checks.dirichlet_process_mixture import (
    case_data,
    enumerate_posterior,
    gaussian_prior,
    make_sampler,
    partition_z_scores,
    sampler_at,
)
from checks.joint_distribution import (
    Moves,
    assert_z_scores_small,
    paired_one_step,
    successive_conditional,
)
from checks.mixture_priors import CASES, LAWS, finite_prior
from checks.monte_carlo import z_score
from checks.proofs import proof
from skbnp.dirichlet_process_mixture import _model
from skbnp.laws import ShiftedBetaNegativeBinomial
from skbnp.processes import mfm

SAMPLERS = {
    "collapsed": {},
    "gibbs one by one, alone": {"n_split_merge": 0},
    "split-merge alone": {"move": "split_merge"},
    "restricted gibbs alone": {"split_merge": "restricted_gibbs", "move": "split_merge"},
    "parallel": {"algorithm": "parallel", "n_subset": 2},
    "parallel without split-merge": {"algorithm": "parallel", "n_subset": 1, "n_split_merge": 0},
}

TABLES = ["gauss-full DP", "gauss-diag DP missing", "poisson PY"]

FAULTS = ["coefficient_of_one_more_block", "coefficient_of_one_more_row"]


def chain_z_scores(table, law, n_sweeps, seed, move=None, **options):
    X, prior = case_data(CASES[table]), finite_prior(table, law)
    sampler = make_sampler(X, prior, np.zeros(len(X), int), seed=seed, **options)
    sweep = (lambda s: s.sweep()) if move is None else (lambda s: s.sweep_only(move))
    return partition_z_scores(sampler, sweep, enumerate_posterior(X, prior), n_sweeps)


@proof(sweeps=(10_000, 40_000), seed=7)
@pytest.mark.parametrize(
    "table, law, sampler",
    list(product(TABLES, LAWS, SAMPLERS)),
)
def test_sampler_reaches_the_exact_posterior(table, law, sampler, size, seed):
    z = chain_z_scores(table, law, size, seed, **SAMPLERS[sampler])
    assert max(abs(value) for value in z.values()) < 4, z


@proof(seed=7, wrong=True)
@pytest.mark.parametrize(
    "fault, sampler",
    list(product(FAULTS, ["collapsed", "split-merge alone"])),
)
def test_a_wrong_coefficient_is_noticed(fault, sampler, seed):
    z = chain_z_scores("gauss-full DP", "wide", 40_000, seed, fault=fault, **SAMPLERS[sampler])
    assert max(abs(value) for value in z.values()) > 6, z


# -- joint distribution -----------------------------------------------------------------------

N = 12

ALONE = {"n_subset": 3, "algorithm": "parallel"}


def joint_draw(kind="full", law="wide", holes=0.0, move=None, **options):
    covariance = np.array([[1.0, 0.4], [0.4, 0.8]]) if kind == "full" else np.array([1.0, 0.6])
    components_law, gamma = LAWS[law]
    prior = gaussian_prior(
        kind, np.array([0.3, -0.2]), 0.5, 8.0, covariance,
        n_components=components_law, concentration=gamma,
    )  # fmt: skip
    missing = np.random.default_rng(5).random((N, 2)) < holes

    def make(rng):
        state, X = _model.draw_joint(prior, N, rng)
        sampler = sampler_at(prior, state, X, missing, seed=int(rng.integers(2**62)), **options)
        return Moves(sampler, [move]) if move else sampler

    return make


def statistics(sampler):
    k, labels = float(sampler.n_clusters), sampler.labels
    sizes = np.bincount(labels)
    return {
        "clusters": k,
        "clusters^2": k**2,
        "one cluster": float(k == 1),
        "largest cluster": float(sizes.max()),
        "rows alone": float((sizes == 1).sum()),
        "first two rows together": float(labels[0] == labels[1]),
        "log joint": sampler.log_joint(),
    }


def of_all(sampler):
    """And the prior scale, which a whole sweep draws too."""
    return statistics(sampler) | {"log scale": np.log2(sampler.scalars()["prior_scale"])}


def of_data(sampler):
    X = sampler.completed_data()
    return of_all(sampler) | {"log mean square": float(np.log(np.nanmean(X**2)))}


CONFIGURATIONS = {
    "full": {},
    "full, holes": {"holes": 0.25},
    "diag, holes": {"kind": "diag", "holes": 0.25},
    "default law": {"law": "default"},
    "restricted gibbs": {"split_merge": "restricted_gibbs"},
    "parallel": ALONE,
    "parallel, diag, holes": {"kind": "diag", "holes": 0.25, **ALONE},
}


@proof(pairs=(2000, 40_000, 10_000), seed=(1, 4), smoke="default law")
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_sweep_paired(name, size, seed):
    make = joint_draw(**CONFIGURATIONS[name])
    assert_z_scores_small(paired_one_step(make, of_all, size, seed=seed))


@proof(pairs=(4000, 10_000), seed=2)
@pytest.mark.parametrize("move", ["gibbs", "split_merge", "all_rows"])
def test_each_move_alone_paired(move, size, seed):
    options = {"algorithm": "parallel"} if move == "all_rows" else {}
    # The pass over all rows opens and closes no block.
    kept = {"all_rows": ("clusters", "clusters^2", "one cluster")}.get(move, ())

    def changing(sampler):
        return {name: x for name, x in statistics(sampler).items() if name not in kept}

    make = joint_draw(move=move, **options)
    assert_z_scores_small(paired_one_step(make, changing, size, seed=seed))


@proof(draws=(6000, 30_000), seed=3)
@pytest.mark.parametrize("name", ["full", "parallel"])
def test_sweep_successive(name, size, seed):
    make = joint_draw(**CONFIGURATIONS[name])
    assert_z_scores_small(successive_conditional(make, of_data, size, thin=2, seed=seed))


@proof(seed=5, wrong=True)
@pytest.mark.parametrize("fault, n", zip(FAULTS, [2000, 16_000], strict=True))
def test_a_wrong_coefficient_is_noticed_by_the_joint_distribution(fault, n, seed):
    z = paired_one_step(joint_draw(fault=fault), of_all, n, seed=seed)
    assert max(map(abs, z.values())) > 6, z


@proof(sweeps=(15_000, 75_000), seed=3)
@pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])
def test_no_data_gives_the_prior(algorithm, size, seed):
    """The number of blocks of rows of which nothing is known, against its moments."""
    n, gamma, law = 30, 0.5, ShiftedBetaNegativeBinomial(2.0, 3.0, 3.0)
    prior = gaussian_prior(
        "diag", np.zeros(1), 0.5, 4.0, np.ones(1),
        n_components=law, concentration=gamma, prior_scale=1.0,
    )  # fmt: skip
    sampler = make_sampler(
        np.full((n, 1), np.nan),
        prior,
        np.zeros(n, int),
        seed=seed,
        algorithm=algorithm,
        n_subset=10,
    )
    k = np.empty(size)
    for t in range(len(k)):
        sampler.sweep()
        k[t] = sampler.n_clusters
    mean, variance = (f(n, gamma, law) for f in (mfm.expected_blocks, mfm.var_blocks))
    assert abs(z_score(k, mean)) < 4
    assert abs(z_score((k - mean) ** 2, variance)) < 4
