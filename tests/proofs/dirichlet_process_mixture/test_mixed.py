"""Tables of several kinds of columns: exact posteriors, joint-distribution tests, the prior.

Null, errors and false alarms as in test_exact and test_geweke.
"""

from itertools import product

import numpy as np
import pytest

from checks.dirichlet_process_mixture import (
    enumerate_posterior,
    make_sampler,
    partition_z_scores,
    sampler_at,
)
from checks.joint_distribution import assert_z_scores_small, paired_one_step
from checks.mixture_priors import COVARIANCE, mixed_prior
from checks.monte_carlo import z_score
from checks.proofs import proof
from skbnp.dirichlet_process_mixture import _model
from skbnp.laws import Gamma
from skbnp.processes import crp

ROWS = np.array(
    [
        [-1.2, 0, -0.9, 0, 1, 0],
        [-0.8, 0, np.nan, 0, 0, 1],
        [1.1, 2, 0.7, 1, 4, np.nan],
        [1.4, np.nan, 0.2, 1, 6, 2],
        [np.nan, 1, 0.4, np.nan, 2, 3],
    ]
)


@proof(sweeps=(40_000, 200_000), seed=11)
@pytest.mark.parametrize("moves", ["sweep", "gibbs", "split_merge"])
@pytest.mark.parametrize(
    "kind, of_partition",
    [
        ("diag", {"concentration": 1.0}),
        ("spherical", {"concentration": 0.5, "discount": 0.4}),
        ("full", {"concentration": 1.5, "n_components": 3}),
    ],
)
def test_sampler_reaches_the_exact_posterior(kind, of_partition, moves, size, seed):
    """|z| < 4 on about seven probabilities each; full covariance with complete real columns."""
    X = ROWS.copy()
    if kind == "full":
        X[:, [0, 2]] = np.nan_to_num(X[:, [0, 2]])
    prior = mixed_prior(kind, prior_scale=1.0, **of_partition)
    sampler = make_sampler(X, prior, np.zeros(len(X), int), seed=seed)
    step = sampler.sweep if moves == "sweep" else lambda: sampler.sweep_only(moves)
    z = partition_z_scores(sampler, lambda _: step(), enumerate_posterior(X, prior), size)
    assert max(abs(value) for value in z.values()) < 4, z


@proof(sweeps=(40_000, 200_000), seed=12)
@pytest.mark.parametrize("kind", ["diag", "full"])
@pytest.mark.parametrize("algorithm", ["parallel", "gibbs"])
def test_all_rows_at_once_reach_the_exact_posterior(kind, algorithm, size, seed):
    """One row alone per sweep, no split-merge: the pass over all rows does the work."""
    X = ROWS.copy()
    if kind == "full":
        X[:, [0, 2]] = np.nan_to_num(X[:, [0, 2]])
    prior = mixed_prior(kind, prior_scale=1.0, concentration=1.5, n_components=3)
    options = {"algorithm": algorithm, "n_subset": 1, "n_split_merge": 0}
    sampler = make_sampler(X, prior, np.zeros(len(X), int), seed=seed, **options)
    z = partition_z_scores(sampler, lambda s: s.sweep(), enumerate_posterior(X, prior), size)
    assert max(abs(value) for value in z.values()) < 4, z


@proof(seed=11, wrong=True)
def test_a_wrong_formula_is_noticed(seed):
    prior = mixed_prior("diag", prior_scale=1.0, concentration=1.0)
    sampler = make_sampler(ROWS, prior, np.zeros(5, int), seed=seed, fault="missing_normaliser")
    exact = enumerate_posterior(ROWS, prior)
    z = partition_z_scores(sampler, lambda s: s.sweep(), exact, 40_000)
    assert max(abs(value) for value in z.values()) > 6, z


def statistics(sampler):
    scalars, X = sampler.scalars(), sampler.completed_data()
    names = ("n_clusters", "largest_cluster", "concentration")
    return {
        **{name: scalars[name] for name in names},
        "clusters^2": scalars["n_clusters"] ** 2,
        "log scale": np.log2(scalars["prior_scale"]),
        "log scale x log mean square": np.log2(scalars["prior_scale"])
        * np.log(np.nanmean(X[:, [0, 2]] ** 2)),
        "first two rows together": float(sampler.labels[0] == sampler.labels[1]),
        "log joint": sampler.log_joint(),
    }


@proof(pairs=(4000, 10_000), seed=3)
@pytest.mark.parametrize(
    "holes, kind, algorithm",
    list(product([0.0, 0.25], COVARIANCE, ["collapsed", "parallel"])),
)
def test_paired_one_step(kind, holes, algorithm, size, seed):
    """A sweep leaves the joint law of a mixed table alone: |z| < 4 on 8 statistics."""
    options = {"algorithm": algorithm, "n_subset": 2}
    prior = mixed_prior(kind, concentration=Gamma(2.0, 2.0))
    missing = np.random.default_rng(5).random((12, 6)) < holes

    def joint_draw(rng):
        state, X = _model.draw_joint(prior, 12, rng)
        return sampler_at(prior, state, X, missing, int(rng.integers(2**62)), **options)

    assert_z_scores_small(paired_one_step(joint_draw, statistics, size, seed=seed))


@proof(sweeps=(20_000, 100_000), seed=0)
def test_prior_recovery_without_data(size, seed):
    """A table of holes: the number of clusters follows its prior."""
    prior = mixed_prior("diag", concentration=1.3)
    sampler = make_sampler(np.full((15, 6), np.nan), prior, np.zeros(15, int), seed=seed)
    trace = np.empty(size)
    for t in range(len(trace)):
        sampler.sweep()
        trace[t] = sampler.n_clusters
    assert abs(z_score(trace, crp.expected_blocks(15, 1.3))) < 4
