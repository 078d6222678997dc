"""Prediction from draws against dense Gaussian mixtures."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from checks.enumeration import nested_partitions
from checks.tree_factor_model import STRUCTURES, make_sampler, prior_of
from skbnp.processes import ncrp
from skbnp.tree_factor_model import _model, _predictive
from skbnp.tree_factor_model._rows import Rows

every_structure = pytest.mark.parametrize("structure", STRUCTURES)
every_scale = pytest.mark.parametrize("branch_scale", _model.BRANCH_SCALES)
every_tail = pytest.mark.parametrize("tails", _model.TAILS)


def fitted(
    structure="tree", branch_scale="loadings", n_draws=3, n_features=6, seed=0, tails="gaussian"
):
    """Prior, draws of a short chain and new rows with holes; row 0 empty, row 1 complete."""
    rng = np.random.default_rng(seed)
    p = prior_of(structure, n_features=n_features, branch_scale=branch_scale, tails=tails)
    state, X = _model.draw_joint(p, 30, rng)
    sampler = make_sampler(X, p, state)
    draws = []
    for _ in range(n_draws):
        sampler.sweep()
        draws.append(sampler.draw())
    new = _model.draw_joint(p, 300, rng)[1]
    new[rng.random(new.shape) < 0.4] = np.nan
    new[0], new[1] = np.nan, 0.3
    return p, draws, new


def log_score(rows, draws):
    """Log posterior predictive density of rows, averaged over draws inside the logarithm."""
    of_draws = [
        np.logaddexp.reduce(
            _predictive.log_densities(rows, draw) + _predictive.log_branch_weights(draw), axis=1
        )
        for draw in draws
    ]
    # A row without entries has density 1, whatever the weights' sum rounds to.
    seen = rows.n_entries > 0
    return np.where(seen, np.logaddexp.reduce(of_draws) - np.log(len(draws)), 0.0)


def components(draws):
    """(log weight, mean, scale matrix, df) of every component of the mixture over draws."""
    out = []
    for draw in draws:
        log_weight = _predictive.log_branch_weights(draw)
        for b in range(len(log_weight)):
            law = (*_model.branch_law(draw, b), draw["tail_df"][b])
            out.append((log_weight[b] - np.log(len(draws)), *law))
    return out


def dense(x, mixture):
    """Log density of the observed entries, mean and variance of the missing ones."""
    o, m = ~np.isnan(x), np.isnan(x)
    logs, means, variances = [], [], []
    for log_weight, mean, C, df in mixture:
        logs.append(log_weight + _model.log_student(x[o], mean[o], C[np.ix_(o, o)], df))
        gain = np.linalg.solve(C[np.ix_(o, o)], C[np.ix_(o, m)]).T
        at = mean[m] + gain @ (x[o] - mean[o])
        means.append(at)
        spread = 1.0
        if np.isfinite(df):
            off, n = x[o] - mean[o], o.sum()
            q = off @ np.linalg.solve(C[np.ix_(o, o)], off)
            spread = (df + q) / (df + n - 2) if df + n > 2 else np.inf
        variances.append(spread * np.diag(C[np.ix_(m, m)] - gain @ C[np.ix_(o, m)]))
    total = logsumexp(logs)
    weight = np.exp(np.array(logs) - total)
    mean = weight @ np.array(means)
    return total, mean, weight @ (np.array(variances) + (np.array(means) - mean) ** 2)


@every_tail
@every_structure
@every_scale
def test_scores_and_moments_against_dense_algebra(structure, branch_scale, tails):
    p, draws, X = fitted(structure, branch_scale, tails=tails)
    X = X[:20]
    rows, mixture = Rows(X), components(draws)
    score = log_score(rows, draws)
    for i, x in enumerate(X):
        assert_allclose(score[i], dense(x, mixture)[0], rtol=1e-10, atol=1e-10)
    assert score[0] == 0.0
    for draw in draws:
        first, second = _predictive.conditional_moments(rows, draw)
        mixture = components([draw])
        for i, x in enumerate(X):
            _, mean, variance = dense(x, mixture)
            missing = np.isnan(x)
            assert_allclose(first[i, missing], mean, rtol=1e-9, atol=1e-10)
            assert_allclose(second[i, missing], variance, rtol=1e-8, atol=1e-9)
            assert (first[i, ~missing] == 0.0).all() and (second[i, ~missing] == 0.0).all()


@every_tail
@every_structure
def test_moments_of_far_rows(structure, tails):
    """The variance is that of the nearest branches, not what rounding leaves of two squares."""
    _, draws, X = fitted(structure, tails=tails)
    X = X[2:40]
    # One branch needs no weights; of several, those lose digits as log densities grow.
    far, rtol = (1e9, 1e-6) if structure == "single" else (1e5, 1e-4)
    mean, variance = _predictive.conditional_moments(Rows(far * X), draws[0])
    for i, x in enumerate(far * X):
        missing = np.isnan(x)
        _, one, other = dense(x, components(draws[:1]))
        assert_allclose(mean[i, missing], one, rtol=rtol, atol=rtol)
        assert_allclose(variance[i, missing], other, rtol=rtol)
        assert (variance[i, missing] > 0).all()


def test_an_empty_row_gets_the_predictive_moments():
    p, draws, X = fitted()
    first, second = _predictive.conditional_moments(Rows(X), draws[0])
    mixture = components(draws[:1])
    weight = np.exp([one[0] for one in mixture])
    mean = weight @ np.array([one[1] for one in mixture])
    square = weight @ np.array([np.diag(one[2]) + one[1] ** 2 for one in mixture])
    assert_allclose(first[0], mean, atol=1e-12)
    assert_allclose(second[0], square - mean**2, atol=1e-12)


@every_tail
def test_score_integrates_to_one(tails):
    """In one dimension, on a grid; x = sinh z reaches into the tails."""
    p, draws, _ = fitted(n_features=1, tails=tails)
    z = np.linspace(-40, 40, 80_001)
    score = log_score(Rows(np.sinh(z)[:, np.newaxis]), draws)
    assert np.exp(score) @ np.cosh(z) * (z[1] - z[0]) == pytest.approx(1.0, abs=1e-4)


@every_structure
def test_branch_weights_are_the_predictive(structure):
    """Against the predictive of the nested Chinese restaurant, renormalised."""
    _, draws, _ = fitted(structure)
    for draw in draws:
        paths = np.column_stack([_predictive.branch_paths(draw), np.arange(len(draw["leaf_node"]))])
        rows = paths[draw["branch"]]
        log_p = [ncrp.log_path_predictive(rows, path, draw["concentration"]) for path in paths]
        assert_allclose(_predictive.log_branch_weights(draw), log_p - logsumexp(log_p), atol=1e-12)


def test_branch_weights_of_small_trees():
    for tree in nested_partitions(4, 2):
        node, parent, level, count = ncrp.node_table(tree)
        inner = level == 1
        draw = {
            "parent": parent[inner] - 1,
            "leaf_node": parent[level == 2] - 1,
            "leaf_count": count[level == 2],
            "concentration": np.array([1.3, 0.6]),
            "score_precision": np.ones((np.sum(level == 2), 1)),
        }
        weight = np.exp(_predictive.log_branch_weights(draw))
        expected = [
            math.exp(ncrp.log_path_predictive(tree, tree[i], (1.3, 0.6)))
            for i in np.unique(node[:, 1], return_index=True)[1]
        ]
        assert_allclose(weight, expected / np.sum(expected), rtol=1e-12)


@every_tail
@every_scale
def test_probabilities_and_expected_scores(branch_scale, tails):
    p, draws, X = fitted("tree", branch_scale, tails=tails)
    draw, rows = draws[0], Rows(X)
    probability = _predictive.branch_probabilities(rows, draw)
    expected = np.zeros((len(X), len(draw["parent"])))
    paths = _predictive.branch_paths(draw)
    for i, x in enumerate(X):
        o = ~np.isnan(x)
        logs = [
            lw + _model.log_student(x[o], mean[o], C[np.ix_(o, o)], df)
            for lw, mean, C, df in components([draw])
        ]
        assert_allclose(probability[i], np.exp(logs - logsumexp(logs)), atol=1e-11)
        for b, path in enumerate(paths):
            D = draw["loadings"][path][:, o]
            w = draw["noise_scale"][b] * draw["noise_precision"][o]
            G = np.diag(draw["score_precision"][b]) + (D * w) @ D.T
            x_hat = np.linalg.solve(G, (D * w) @ (x - draw["leaf_mean"][b])[o])
            expected[i, path] += probability[i, b] * x_hat
    got = _predictive.expected_scores(rows, draw, probability)
    assert_allclose(got, expected, rtol=1e-9, atol=1e-10)


@every_scale
def test_covariances(branch_scale):
    _, draws, _ = fitted("tree", branch_scale)
    for b, covariance in enumerate(_predictive.branch_covariances(draws[0])):
        assert_allclose(covariance, _model.branch_law(draws[0], b)[1], rtol=1e-12)


@every_tail
@every_scale
@pytest.mark.parametrize("noise_var", [0.0, 0.3])
def test_inversion_against_dense_algebra(branch_scale, noise_var, tails):
    _, draws, _ = fitted("tree", branch_scale, tails=tails)
    rng = np.random.default_rng(1)
    Phi, v = rng.standard_normal((4, 6)), rng.standard_normal((5, 4))
    for draw in draws:
        got = _predictive.inverted(Phi, v, noise_var, draw)
        for i in range(5):
            logs, means = [], []
            for log_weight, mean, Omega, df in components([draw]):
                C = Phi @ Omega @ Phi.T + noise_var * np.eye(4)
                logs.append(log_weight + _model.log_student(v[i], Phi @ mean, C, df))
                means.append(mean + Omega @ Phi.T @ np.linalg.solve(C, v[i] - Phi @ mean))
            weight = np.exp(logs - logsumexp(logs))
            assert_allclose(got[i], weight @ np.array(means), rtol=1e-8, atol=1e-9)


@every_tail
def test_missing_entries_are_an_inversion(tails):
    """A selection of entries as Phi, without measurement noise, is imputation."""
    p, draws, X = fitted(tails=tails)
    for draw in draws:
        first = _predictive.conditional_moments(Rows(X), draw)[0]
        for i in (2, 3, 4, 5):
            o = ~np.isnan(X[i])
            y = _predictive.inverted(np.eye(6)[o], X[i : i + 1, o], 0.0, draw)[0]
            assert_allclose(y[~o], first[i, ~o], rtol=1e-8, atol=1e-9)
            assert_allclose(y[o], X[i, o], rtol=1e-8, atol=1e-8)


def test_rows_in_any_order_and_many():
    """More rows than fit into a chunk, permuted: the same answers."""
    p, draws, X = fitted()
    X[40:] = np.where(np.isnan(X[40:]), 0.5, X[40:])
    order = np.random.default_rng(2).permutation(len(X))
    one, other = Rows(X), Rows(X[order])
    assert_allclose(log_score(one, draws)[order], log_score(other, draws), rtol=1e-12)
    found = (_predictive.conditional_moments(rows, draws[0]) for rows in (one, other))
    for here, there in zip(*found, strict=True):
        assert_allclose(here[order], there, atol=1e-12)


@every_tail
@every_structure
def test_leave_one_out_against_dense_algebra(structure, tails):
    """The predictive of the nested Chinese restaurant from the other rows, without new branches."""
    p = prior_of(structure, n_features=3, branch_scale="loadings", tails=tails)
    state, X = _model.draw_joint(p, 25, np.random.default_rng(3))
    X[np.random.default_rng(4).random(X.shape) < 0.3] = np.nan
    X[5] = np.nan
    sampler = make_sampler(X, p, state)
    sampler.sweep()
    draw = sampler.draw()
    paths = np.column_stack([_predictive.branch_paths(draw), np.arange(len(draw["leaf_node"]))])
    got = _predictive.log_leave_one_out(Rows(X), draw)
    for i, x in enumerate(X):
        o, others = ~np.isnan(x), np.delete(draw["branch"], i)
        rows = paths[others]
        log_p = np.array(
            [
                ncrp.log_path_predictive(rows, path, draw["concentration"])
                if (others == b).any()
                else -np.inf
                for b, path in enumerate(paths)
            ]
        )
        laws = [(*_model.branch_law(draw, b), draw["tail_df"][b]) for b in range(len(paths))]
        logs = log_p + [
            _model.log_student(x[o], mean[o], C[np.ix_(o, o)], df) for mean, C, df in laws
        ]
        assert got[i] == pytest.approx(logsumexp(logs) - logsumexp(log_p), rel=1e-9, abs=1e-9)


def complete_rows(n_features, max_depth, tails="gaussian", n_rows=300):
    """A draw, rows without holes, and what is prepared of the draw."""
    rng = np.random.default_rng(n_features)
    p = prior_of("tree", n_features=n_features, max_depth=max_depth, tails=tails)
    state, X = _model.draw_joint(p, 30, rng)
    sampler = make_sampler(X, p, state)
    sampler.sweep()
    draw, new = sampler.draw(), _model.draw_joint(p, n_rows, rng)[1]
    return draw, new, _predictive.prepared(draw)


def by_pattern(X, draw):
    """Densities of complete rows as those of a table with holes elsewhere are."""
    holes = np.full((1, X.shape[1]), np.nan)
    return _predictive.log_densities(Rows(np.vstack([X, holes])), draw)[:-1]


@every_tail
@pytest.mark.parametrize("n_features, max_depth", [(1, 3), (5, 3), (6, 3), (7, 3), (20, 12)])
def test_complete_rows(n_features, max_depth, tails):
    """By laws that draws keep, of either kind, many rows and few: those of dense algebra."""
    draw, X, law = complete_rows(n_features, max_depth, tails)
    laws = [
        (*_model.branch_law(draw, b), draw["tail_df"][b]) for b in range(len(draw["leaf_count"]))
    ]
    assert len(laws) > 1
    expected = np.array([[_model.log_student(x, *one) for one in laws] for x in X])
    many = _predictive.log_densities(Rows(X), law)
    assert_allclose(many, expected, rtol=1e-9)
    assert_allclose(by_pattern(X, draw), expected, rtol=1e-9)
    for few in (X[7:8], X[7:12]):
        found = _predictive.log_densities(Rows(few), law)
        assert_allclose(found, many[7 : 7 + len(few)], rtol=1e-12)


def test_complete_rows_where_no_digit_of_the_noise_is_left():
    """Densities are then what the axes give, as where nothing is kept."""
    draw, X, _ = complete_rows(6, 3)
    draw["score_precision"][:, 0] = 1e-30
    law = _predictive.prepared(draw)
    for rows in (X, X[:3], X):
        assert_allclose(
            _predictive.log_densities(Rows(rows), law), by_pattern(rows, draw), rtol=1e-12
        )


def test_complete_rows_far_away():
    """Means and rows of a million standard deviations cost no digits that doubles have."""
    draw, X, _ = complete_rows(6, 3)
    near = _predictive.log_densities(Rows(X), draw)
    draw["leaf_mean"] += 1e6
    assert_allclose(_predictive.log_densities(Rows(X + 1e6), draw), near, atol=1e-6)


@every_tail
@pytest.mark.parametrize("least", [1e-9, 1e-14, 1e-30])
def test_rows_of_few_entries_where_loadings_drown_the_noise(least, tails):
    """Covariances lose the noise to rounding: the same answers as without them."""
    _, draws, X = fitted(tails=tails)
    X = X[np.sum(~np.isnan(X), axis=1) < draws[0]["score_precision"].shape[1]]
    assert len(X) > 10
    draw = draws[0]
    draw["score_precision"][:, 0] = least
    # Beyond so many features no covariances are made; these are never observed.
    score = log_score(Rows(X), [draw])
    first, second = _predictive.conditional_moments(Rows(X), draw)
    wide = {**draw, **wider(draw)}
    more = np.column_stack([X, np.full((len(X), 600), np.nan)])
    assert_allclose(score, log_score(Rows(more), [wide]), rtol=1e-7)
    theirs = _predictive.conditional_moments(Rows(more), wide)
    assert_allclose(first, theirs[0][:, : X.shape[1]], rtol=1e-4)
    assert not np.isnan(second).any()


def wider(draw, n_more=600):
    """Arrays of the draw with features without loadings: too many for covariances."""
    out = {
        name: np.column_stack([draw[name], np.zeros((len(draw[name]), n_more))])
        for name in ("loadings", "leaf_mean")
    }
    return out | {
        name: np.append(draw[name], np.ones(n_more))
        for name in ("noise_precision", "mean_precision")
    }


def test_rows_of_few_entries_among_very_many_features():
    """Beyond so many features no covariances are made; few entries do not ask for them."""
    rng = np.random.default_rng(12)
    p = prior_of("single", n_features=600)
    state, X = _model.draw_joint(p, 10, rng)
    draw = make_sampler(X, p, state).draw()
    X[:, 2:] = np.nan
    score = log_score(Rows(X), [draw])
    assert_allclose(score, [dense(x, components([draw]))[0] for x in X], rtol=1e-9)
