"""The kernel's bookkeeping against the plain NumPy joint density, and its states."""

import json
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from checks.mutants import compiled
from checks.slow import slow_where
from checks.tree_factor_model import FREE_RATE, SMALL_RATE, STRUCTURES, make_sampler, prior_of
from skbnp.mcmc.rows import for_row_blocks
from skbnp.tree_factor_model import _model
from skbnp.tree_factor_model._leaf_laws import LeafLaws
from skbnp.tree_factor_model._products import Products
from skbnp.tree_factor_model._start import start_state
from skbnp.tree_factor_model._state import State
from skbnp.tree_factor_model._threads import Pool
from skbnp.tree_factor_model.moves.loadings import Loadings

every_structure = pytest.mark.parametrize("structure", STRUCTURES)
every_scale = pytest.mark.parametrize("branch_scale", _model.BRANCH_SCALES)
# A normal law, tails by branch, tails of all branches alike.
TAILS = ({}, {"tails": "t"}, {"tails": "t", "tail_df": "shared"})
every_tail = pytest.mark.parametrize("tail", TAILS)
every_update = pytest.mark.parametrize("path_update", ["slice", "collapsed"])


def face():
    """What C methods of the kernels say."""
    return compiled("tree_factor_model", "faces")


def drawn(structure="tree", n=40, holes=0.0, seed=0, **prior):
    rng = np.random.default_rng(seed)
    p = prior_of(structure, **({"n_features": 4} | prior))
    state, X = _model.draw_joint(p, n, rng)
    X[rng.random(X.shape) < holes] = np.nan
    return p, state, X


@every_structure
@every_scale
@every_update
@pytest.mark.parametrize(
    "holes, tail",
    [
        (0.0, {}),
        *slow_where([(0.3, {}), (0.0, TAILS[1])], lambda case: True),
        (0.3, TAILS[1]),
        (0.3, TAILS[2]),
    ],
)
def test_after_random_sweeps(structure, branch_scale, path_update, holes, tail):
    p, state, X = drawn(
        structure, holes=holes, branch_scale=branch_scale, noise_precision=FREE_RATE, **tail
    )
    sampler = make_sampler(X, p, state, path_update=path_update)
    for _ in range(12):
        state = sampler.get_state()
        for scores in ("integrated", "explicit"):
            expected = _model.log_joint(state, X, p, scores=scores)
            assert_allclose(sampler.log_joint(scores), expected, rtol=1e-8)
        sampler.sweep()


@pytest.mark.parametrize("noise", _model.NOISES)
def test_a_law_of_the_rate_that_is_cut_off(noise):
    """A quarter of this law is below the least rate: what is left is a density."""
    p, state, X = drawn("tree", noise=noise, noise_precision=SMALL_RATE)
    sampler = make_sampler(X, p, state)
    for _ in range(3):
        expected = _model.log_joint(sampler.get_state(), X, p)
        assert_allclose(sampler.log_joint("integrated"), expected, rtol=1e-10)
        sampler.sweep()


@every_tail
@pytest.mark.parametrize("noise", _model.NOISES)
def test_where_rows_fill_several_chunks(noise, tail):
    p, state, X = drawn(
        "tree", n=1500, n_features=6, max_depth=5, branch_levels=(2, 5), branch_scale="loadings",
        noise=noise, **tail,
    )  # fmt: skip
    X[:40][np.random.default_rng(1).random((40, 6)) < 0.3] = np.nan
    sampler = make_sampler(X, p, state)
    for _ in range(30):
        sampler.sweep()
    state = sampler.get_state()
    for scores in ("integrated", "explicit"):
        expected = _model.log_joint(state, X, p, scores=scores)
        assert_allclose(sampler.log_joint(scores), expected, rtol=1e-8)


def log_law(x, mean, scale, df):
    """SciPy's normal or t law; 0 for no entries."""
    if len(x) == 0:
        return 0.0
    if np.isinf(df):
        return stats.multivariate_normal(mean, scale).logpdf(x)
    return stats.multivariate_t(mean, scale, df).logpdf(x)


@every_tail
@every_scale
@pytest.mark.parametrize("shape", [(4, 3), (3, 6), (30, 8), (70, 40)])
def test_densities_against_dense_covariances(branch_scale, shape, tail):
    """To 1e-10 with complete and incomplete rows, fewer and more features than levels."""
    n_features, depth = shape
    p, state, X = drawn(
        n=30, n_features=n_features, max_depth=depth, branch_levels=(1, depth),
        branch_scale=branch_scale, **tail,
    )  # fmt: skip
    rng = np.random.default_rng(2)
    X[::2][rng.random(X[::2].shape) < 0.4] = np.nan
    X[0] = np.nan
    tree = State(X, p, state)
    laws = LeafLaws(tree, Pool(tree))
    for b in range(len(state["leaf_node"])):
        mean, scale = _model.branch_law(state, b)
        expected = [
            log_law(x[o], mean[o], scale[np.ix_(o, o)], state["tail_df"][b])
            for x, o in zip(X, ~np.isnan(X), strict=True)
        ]
        assert_allclose(face().log_densities(laws, b), expected, rtol=1e-10, atol=1e-10)
        assert abs(face().log_densities(laws, b)[0]) < 1e-10


@every_update
@pytest.mark.parametrize("holes", [0.0, 0.2])
@every_tail
def test_threads_do_not_change_the_chain(path_update, holes, tail):
    """Several blocks of rows and pieces of leaves, to the last bit."""
    p, state, X = drawn(
        n=3000 if path_update == "slice" else 300, holes=holes, n_features=6, max_depth=5,
        branch_levels=(2, 5), branch_scale="loadings", **tail,
    )  # fmt: skip
    chains = []
    for n_threads in (1, 3):
        chains.append(
            make_sampler(
                X, p, state, path_update=path_update,
                for_rows=partial(for_row_blocks, n_threads=n_threads),
            )
        )  # fmt: skip
        for _ in range(3):
            chains[-1].sweep()
    one, other = (chain.get_state() for chain in chains)
    for name in one.keys() - {"bit_generator", "moves"}:
        assert_array_equal(one[name], other[name], err_msg=name)
    assert chains[0].acceptance() == chains[1].acceptance()
    assert chains[0].log_joint() == chains[1].log_joint()


# -- the system of the loadings ---------------------------------------------------------------


def loadings_of(X, prior, state):
    """The move of the loadings of a state."""
    tree = State(X, prior, state)
    pool = Pool(tree)
    return Loadings(tree, pool, Products(tree, pool), np.random.PCG64(0))


def dense_system(rows, state):
    """The symmetric matrix that rows of couplings to ancestors stand for."""
    paths = _model.paths_of(state)
    n_nodes = len(state["parent"])
    above = []
    for node in range(n_nodes):
        line, at = [], node
        while at >= 0:
            line.insert(0, at)
            at = state["parent"][at]
        above.append(line)
    above += [[*paths[b], n_nodes + b] for b in range(len(paths))]
    A = np.zeros((len(rows), len(rows)))
    for v, (row, line) in enumerate(zip(rows, above, strict=True)):
        A[v, line] = A[line, v] = row
    return A


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("structure", ["single", "mixture", "tree"])
def test_elimination_has_no_fill_in(structure, seed):
    """A factor with exactly sum_n level(n) + B (L + 1) entries, equal to the dense one."""
    p, state, X = drawn(structure, n=25, holes=0.2, seed=seed, branch_scale="loadings")
    loadings = loadings_of(X, p, state)
    for feature in range(p.n_features):
        before, after = face().system(loadings, feature)
        n_entries = state["level"].sum() + len(state["leaf_node"]) * (p.max_depth + 1)
        assert sum(map(len, before)) == sum(map(len, after)) == n_entries
        A = dense_system(before, state)
        # What a dense elimination of leaves, then nodes from the deepest up, would leave.
        n_nodes = len(state["parent"])
        order = [*range(n_nodes, len(A)), *range(n_nodes - 1, -1, -1)]
        factor = np.linalg.cholesky(A[np.ix_(order, order)])
        factor *= np.diag(factor)
        got = np.tril(dense_system(after, state)[np.ix_(order, order)])
        assert_allclose(factor, got, rtol=1e-9, atol=1e-9 * np.abs(A).max())
        assert np.count_nonzero(factor) <= n_entries


@every_tail
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_system_against_its_definition(holes, tail):
    """A_p = diag(prior) + lambda_p Z'WZ over the rows where feature p is observed."""
    p, state, X = drawn("tree", n=30, holes=holes, branch_scale="loadings", **tail)
    loadings = loadings_of(X, p, state)
    n_nodes, b = len(state["parent"]), state["branch"]
    Z = np.zeros((30, n_nodes + len(state["leaf_node"])))
    Z[np.arange(30)[:, None], _model.paths_of(state)[b]] = state["scores"]
    Z[np.arange(30), n_nodes + b] = 1.0
    tau = np.exp(_model.log_precisions(state))
    for feature in range(p.n_features):
        seen = ~np.isnan(X[:, feature])
        prior = np.append(
            state["local_precision"][:, feature] * tau,
            np.full(len(state["leaf_node"]), state["mean_precision"][feature]),
        )
        w = state["noise_precision"][feature] * state["noise_scale"][b]
        w = w * state["row_precision"]
        expected = np.diag(prior) + (Z[seen].T * w[seen]) @ Z[seen]
        got = dense_system(face().system(loadings, feature)[0], state)
        assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


# -- states -----------------------------------------------------------------------------------


@every_tail
@every_structure
@every_update
def test_state_restores_bit_for_bit(structure, path_update, tail):
    p, state, X = drawn(structure, holes=0.1, branch_scale="loadings", **tail)
    one = make_sampler(X, p, state, seed=1, path_update=path_update)
    for _ in range(7):
        one.sweep()
    other = make_sampler(X, p, state, seed=2, path_update=path_update)
    other.set_state(one.get_state())
    for _ in range(20):
        one.sweep()
        other.sweep()
    assert one.log_joint() == other.log_joint()
    assert one.acceptance() == other.acceptance()
    for name, value in one.draw().items():
        assert_array_equal(value, other.draw()[name])


def is_plain(value):
    if isinstance(value, dict):
        return all(isinstance(k, str) and is_plain(v) for k, v in value.items())
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iuf" and value.flags.owndata
    return value is None or type(value) in (int, float, str)


def test_states_and_draws_are_plain_data():
    p, state, X = drawn("tree", branch_scale="loadings")
    sampler = make_sampler(X, p, state)
    sampler.sweep()
    for value in (sampler.get_state(), sampler.draw(), sampler.scalars()):
        assert is_plain(value), value
    json.dumps(sampler.scalars())


@pytest.mark.parametrize("branch_scale", ["noise", "whole", "loadings"])
def test_scales_held_at_one_are_the_basic_model(branch_scale):
    p, state, X = drawn("tree", branch_scale="none")
    samplers, laws = [], []
    for scale in ("none", branch_scale):
        changed = prior_of("tree", n_features=4, branch_scale=scale)
        samplers.append(make_sampler(X, changed, state, seed=3))
        samplers[-1].sweep_only("scores")
        laws.append(LeafLaws(samplers[-1].state, Pool(samplers[-1].state)))
    assert_array_equal(samplers[0].get_state()["scores"], samplers[1].get_state()["scores"])
    for b in range(len(state["leaf_node"])):
        assert_array_equal(*(face().log_densities(one, b) for one in laws))


def test_single_is_a_tree_that_never_branches():
    """structure 'single' and a tree whose concentrations are all but zero, draw for draw."""
    p, state, X = drawn("single", branch_scale="loadings")
    draws = []
    for levels in ((), (1, 3)):
        changed = prior_of(
            "single", n_features=4, branch_scale="loadings", branch_levels=levels,
            concentration=(1e-300,) * len(levels),
        )  # fmt: skip
        concentration = np.zeros(4)
        concentration[list(levels)] = 1e-300
        sampler = make_sampler(X, changed, state | {"concentration": concentration}, seed=4)
        for _ in range(5):
            for move in ("scores", "leaf_means", "loadings", "precisions"):
                sampler.sweep_only(move)
        draws.append(sampler.get_state())
    for name in ("loadings", "leaf_mean", "scores", "noise_precision"):
        assert_array_equal(draws[0][name], draws[1][name])


# -- depth ------------------------------------------------------------------------------------


def test_depth_follows_the_data_in_warm_up():
    """Two factors in ten columns: of ten levels few stay, and the joint stays right."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 10)) * 2
    X += 0.3 * rng.standard_normal(X.shape)
    p = prior_of("single", n_features=10, max_depth=10)
    state = start_state(X, p, rng, ())
    sampler = make_sampler(X, p, state, adapt_depth=True)
    depths = []
    for step in range(200):
        sampler.sweep()
        sampler.adapt(step)
        depths.append(sampler.state.depth)
        if step % 10 == 0 or depths[-2:-1] != depths[-1:]:
            expected = _model.log_joint(sampler.get_state(), X, p)
            assert_allclose(sampler.log_joint(), expected, rtol=1e-8)
    assert 2 <= np.median(depths[100:]) <= 5
    other = make_sampler(X, p, state)
    other.set_state(sampler.get_state())
    sampler.sweep(), other.sweep()
    assert sampler.log_joint() == other.log_joint()


def test_depth_is_fixed_where_leaves_branch():
    p, state, X = drawn("tree", max_depth=3, branch_levels=(1, 3))
    sampler = make_sampler(X, p, state, adapt_depth=True)
    for step in range(50):
        sampler.sweep()
        sampler.adapt(step)
    assert sampler.state.depth == 3
