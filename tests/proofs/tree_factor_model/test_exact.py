"""The sampler against exact answers: no data gives the prior, tiny cases their enumeration.

Null: chain averages equal the exact values; |z| < 4 with autocorrelation-corrected errors.
"""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import psi

from checks.enumeration import canonical_paths, nested_partitions
from checks.joint_distribution import assert_z_scores_small
from checks.monte_carlo import p_value, z_score
from checks.proofs import proof
from checks.tree_factor_model import make_sampler, prior_of
from skbnp.laws import Gamma
from skbnp.processes import crp, ncrp
from skbnp.tree_factor_model import _model

every_update = pytest.mark.parametrize("path_update", ["slice", "collapsed"])


def blank(levels, alpha, n, path_update, seed=0, **prior):
    """A chain on rows without an observed entry, from an exact draw of the prior."""
    p = prior_of(
        "tree", branch_levels=levels, concentration=alpha, branch_scale="loadings", **prior
    )
    state, X = _model.draw_joint(p, n, np.random.default_rng(seed))
    return make_sampler(np.full(X.shape, np.nan), p, state, seed=seed, path_update=path_update)


def label_paths(state, levels):
    """Path of each row as labels below the branching levels alone."""
    leaf = state["branch"]
    nodes = np.column_stack([_model.paths_of(state)[leaf], leaf])
    return nodes[:, list(levels)]


@proof(sweeps=(20_000, 200_000), seed=(0, 1), smoke=("mixture-slice", "mixture-collapsed"))
@every_update
@pytest.mark.parametrize(
    "levels, alpha",
    [((0,), (1.3,)), ((1, 3), (1.3, 0.6)), ((0, 2), (0.8, 2))],
    ids=["mixture", "tree", "early tree"],
)
def test_no_data_gives_every_tree_its_probability(levels, alpha, path_update, size, seed):
    """The 15 partitions of 4 rows, or their 60 nested partitions: equation (T2.1)."""
    sampler = blank(levels, alpha, 4, path_update, seed)
    drawn = []
    for _ in range(size):
        sampler.sweep_only("paths")
        drawn.append(canonical_paths(label_paths(sampler.get_state(), levels).tolist()))
    counts = Counter(drawn)
    trees = list(nested_partitions(4, len(levels)))
    assert set(counts) <= set(trees)
    z = {}
    for tree in trees:
        probability = math.exp(ncrp.log_prob(tree, alpha))
        if probability * size >= 20:
            z[tree] = z_score([float(one == tree) for one in drawn], probability)
    assert len(z) >= 15
    assert_z_scores_small(z)


@proof(seed=0, wrong=True)
def test_a_row_that_counts_itself_is_noticed(seed):
    sampler = blank((0,), (1.3,), 4, "collapsed", seed)
    wrong = make_sampler(
        sampler.state.data(), sampler.state.prior, sampler.get_state(), path_update="collapsed",
        fault="keeps_own_count",
    )  # fmt: skip
    together = np.empty(4000)
    for t in range(len(together)):
        wrong.sweep_only("paths")
        b = wrong.get_state()["branch"]
        together[t] = b[0] == b[1]
    assert abs(z_score(together, 1 / 2.3)) > 6


@proof(sweeps=(12_000, 120_000), seed=(0, 1))
@every_update
def test_no_data_gives_the_prior(path_update, size, seed):
    """Of tree, loadings and precisions, from sweeps on all-missing rows: (T16.1) to (T16.3)."""
    n, alpha = 10, (1.0, 0.7)
    sampler = blank((1, 3), alpha, n, path_update, seed)
    p = sampler.state.prior
    rows = []
    for _ in range(size):
        sampler.sweep()
        s = sampler.get_state()
        b, log_tau = s["branch"], _model.log_precisions(s)
        # One tagged node per level: means over the nodes are tilted by their number.
        path = _model.paths_of(s)[b[0]]
        rows.append(
            {
                "leaves": len(s["leaf_node"]),
                "level 2": (s["level"] == 2).sum(),
                "together": float(b[0] == b[1]),
                "log lambda": np.log(s["noise_precision"]).mean(),
                "log xi": np.log(s["mean_precision"]).mean(),
                "log kappa": np.log(s["noise_scale"][b[0]]),
                "log psi": np.log(s["score_precision"][b[0]]).mean(),
                "tanh M": np.tanh(s["leaf_mean"][b[0]]).mean(),
                **{f"log tau {h + 1}": log_tau[path[h]] for h in range(3)},
                **{
                    f"log d^2 {h + 1}": np.log(s["loadings"][path[h]] ** 2).mean() for h in range(3)
                },
            }
        )
    c1, c2, nu = p.shrinkage_root, p.shrinkage, p.local_shrinkage_df
    log_tau = psi(c1) + np.arange(3) * psi(c2)
    log_d2 = psi(0.5) + np.log(2) - psi(nu / 2) + np.log(nu / 2) - log_tau
    nodes = ncrp.expected_nodes(n, 4, (0.0, 1.0, 0.0, 0.7))
    assert nodes[1] == pytest.approx(crp.expected_blocks(n, 1.0))
    assert nodes[1] == pytest.approx(2.9290, abs=5e-5)
    expected = {
        "leaves": nodes[3],
        "level 2": nodes[1],
        "together": 1 / (2.0 * 1.7),
        "log lambda": psi(3) - np.log(2),
        "log xi": psi(4) - np.log(4),
        "log kappa": psi(3) - np.log(3),
        "log psi": psi(3) - np.log(3),
        "tanh M": 0.0,
        **{f"log tau {h + 1}": log_tau[h] for h in range(3)},
        **{f"log d^2 {h + 1}": log_d2[h] for h in range(3)},
    }
    z = {name: z_score([float(row[name]) for row in rows], expected[name]) for name in expected}
    assert_z_scores_small(z)


def test_log_d2_at_the_defaults():
    """-1.32416 - 0.92278 (l - 1), equation (T16.3)."""
    log_d2 = psi(0.5) + np.log(2) - psi(1.5) + np.log(1.5) - psi(2)
    assert log_d2 == pytest.approx(-1.32416, abs=2e-5)
    assert psi(3) == pytest.approx(0.92278, abs=1e-5)


@proof(sweeps=(8000, 80_000), seed=(1, 2))
@every_update
def test_paths_of_four_rows_with_data(path_update, size, seed):
    """p(b | y) of all 60 trees, with occupied parameters that no move changes.

    All parameters sit at one point for every node and leaf, so that fresh ones do not differ from
    those in use and the posterior over trees is prior times likelihood, which is flat: paths
    must then follow the prior though every density is evaluated.
    """
    levels, alpha = (1, 3), (1.3, 0.6)
    p = prior_of("tree", branch_levels=levels, concentration=alpha, mean_precision=Gamma(4.0, 4.0))
    rng = np.random.default_rng(3)
    state, X = _model.draw_joint(p, 4, rng)
    for name in ("loadings", "leaf_mean"):
        state[name][:] = 0.0
    # Precisions so large that fresh loadings and means are zero to nine digits.
    state["mean_precision"][:] = 1e20
    state["multiplier"][:] = 1e20
    sampler = make_sampler(X, p, state, seed=seed, path_update=path_update)
    drawn = []
    frozen = sampler.get_state()
    for _ in range(size):
        sampler.sweep_only("paths")
        now = sampler.get_state()
        drawn.append(canonical_paths(label_paths(now, levels).tolist()))
        # Fresh nodes take their multipliers from the prior: put them back.
        now["multiplier"][:] = 1e20
        now["loadings"][:] = now["leaf_mean"][:] = 0.0
        sampler.set_state(now)
    assert np.abs(frozen["loadings"]).max() == 0.0
    z = {}
    for tree in nested_partitions(4, 2):
        probability = math.exp(ncrp.log_prob(tree, alpha))
        if probability > 0.005:
            z[tree] = z_score([float(one == tree) for one in drawn], probability)
    assert_z_scores_small(z)


@proof(draws=(3000, 30_000), seed=2)
def test_scores_follow_their_conditional(size, seed):
    """Kolmogorov-Smirnov of whitened scores: x ~ N(G^-1 D Lambda (y - m), G^-1)."""
    p = prior_of("tree", n_features=4, branch_scale="loadings")
    rng = np.random.default_rng(4)
    state, X = _model.draw_joint(p, 3, rng)
    X[0, 1] = X[1, 0] = np.nan
    sampler = make_sampler(X, p, state, seed=seed)
    draws = []
    for _ in range(size):
        sampler.sweep_only("scores")
        draws.append(sampler.get_state()["scores"])
    for i, b in enumerate(state["branch"]):
        D, o = state["loadings"][_model.paths_of(state)[b]], ~np.isnan(X[i])
        w = state["noise_scale"][b] * state["noise_precision"][o]
        G = np.diag(state["score_precision"][b]) + (D[:, o] * w) @ D[:, o].T
        mean = np.linalg.solve(G, (D[:, o] * w) @ (X[i] - state["leaf_mean"][b])[o])
        white = (np.array(draws)[:, i] - mean) @ np.linalg.cholesky(G)
        for level in range(3):
            assert p_value(stats.kstest(white[:, level], stats.norm.cdf)) > 1e-4
        assert abs(z_score(white[:, 0] * white[:, 1], 0.0)) < 4
        assert abs(z_score(white[:, 1] * white[:, 2], 0.0)) < 4


@proof(draws=(4000, 40_000), seed=3)
def test_leaf_means_follow_their_conditional(size, seed):
    """m_b with the scores integrated: N(Q^-1 Gamma sum y, Q^-1), equation (T7.1)."""
    p = prior_of("single", n_features=3, branch_scale="loadings")
    rng = np.random.default_rng(5)
    state, X = _model.draw_joint(p, 7, rng)
    sampler = make_sampler(X, p, state, seed=seed)
    draws = []
    for _ in range(size):
        sampler.sweep_only("leaf_means")
        draws.append(sampler.get_state()["leaf_mean"][0])
    gamma = np.linalg.inv(_model.branch_law(state, 0)[1])
    Q = np.diag(state["mean_precision"]) + 7 * gamma
    mean = np.linalg.solve(Q, gamma @ X.sum(axis=0))
    white = (np.array(draws) - mean) @ np.linalg.cholesky(Q)
    for j in range(3):
        assert p_value(stats.kstest(white[:, j], stats.norm.cdf)) > 1e-4
        assert abs(z_score(white[:, j] * white[:, (j + 1) % 3], 0.0)) < 4
