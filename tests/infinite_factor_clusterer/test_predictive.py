"""What a draw says of rows, against quadrature, dense Gaussians and its own samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats
from scipy.special import logsumexp

from skbnp.infinite_factor_clusterer import _predictive
from skbnp.infinite_factor_clusterer._components import components
from skbnp.infinite_factor_clusterer._model import Prior, draw_joint
from skbnp.infinite_factor_clusterer._predictive import (
    as_rows,
    cell_moments,
    cluster_probabilities,
    expected_scores,
    log_densities,
    sample_rows,
    together,
)


@pytest.fixture(params=["covariances", "scores"])
def way(request, monkeypatch):
    """By covariances as they stand, as in narrow tables, and by K x K matrices, as in wide ones."""
    if request.param == "scores":
        monkeypatch.setattr(_predictive, "_MOST_DENSE_FEATURES", 0)


def one_cluster(df=np.inf):
    """Two factors, three features: values by quadrature over the scores."""
    return {
        "loadings1": np.array([[0.8, 0.3], [-0.5, 1.0], [0.0, 0.7]]),
        "score_mean": np.array([[0.5, -1.0]]),
        "score_variance": np.array([[0.4, 1.5]]),
        "noise_variance": np.array([[0.2, 0.1, 0.3]]),
        "noise_rate": np.full(3, 0.3),
        "offset": np.zeros((1, 3)),
        "hyper": np.array([1.0, 1.0, 1.0, df]),
        "n_members": np.array([7]),
    }


def random_draw(seed=0, prior=None, n_samples=30, n_features=4, least_factors=2):
    """What a chain would keep of a draw from the prior, with some factors and clusters."""
    prior = Prior(mass=2.0, concentration=1.5) if prior is None else prior
    rng = np.random.default_rng(seed)
    while True:
        state, _ = draw_joint(prior, n_samples, n_features, rng)
        n_layers = 1 + ("loadings2" in state)
        if state["loadings1"].shape[1] >= least_factors and n_layers == min(2, prior.max_layers):
            break
    names = (
        "label",
        "score_mean",
        "score_variance",
        "noise_variance",
        "noise_rate",
        "offset",
        "hyper",
    )
    draw = {name: state[name] for name in names}
    draw |= {name: value for name, value in state.items() if name.startswith("loadings")}
    return {**draw, "n_members": np.bincount(state["label"])}, prior


def log_density(draw, prior, X, limit=None):
    """log of the whole mixture's density."""
    parts = components(draw, prior)
    return logsumexp(log_densities(as_rows(X, limit), parts) + parts.log_weight, axis=1)


def dense(draw, g):
    """Mean and scale matrix of a cluster without upper layers."""
    w = draw["loadings1"]
    s = np.broadcast_to(draw["noise_variance"], draw["offset"].shape)[g]
    scale = w * draw["score_variance"][g] @ w.T + np.diag(s)
    return w @ draw["score_mean"][g] + draw["offset"][g], scale


STUDENT = Prior(mass=2.0, concentration=1.5, tails="t")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "df, expected",
    [
        (np.inf, [-2.7441318488, -3.2672634534, -21.9262888421]),
        (4.0, [-2.8832693847, -3.5363331194, -10.3824622221]),
    ],
)
def test_quadrature_over_scores(df, expected):
    X = np.array([[0.0, 0.0, 0.0], [1.0, -0.4, 0.5], [2.5, 1.0, -2.0]])
    got = log_densities(as_rows(X), components(one_cluster(df), STUDENT))[:, 0]
    assert_allclose(got, expected, atol=2e-8)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("means", ["factor", "both", "feature"])
@pytest.mark.parametrize("tails", ["gaussian", "t"])
@pytest.mark.parametrize("noise", ["cluster", "shared"])
def test_densities_of_rows_with_holes(means, tails, noise):
    """Rows and columns of the covariance are left out, pattern by pattern."""
    prior = Prior(mass=2.0, concentration=1.5, means=means, tails=tails, noise=noise)
    draw, _ = random_draw(1, prior)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 4)) * 2
    X[rng.random(X.shape) < 0.4] = np.nan
    X[0] = np.nan
    got = log_densities(as_rows(X), components(draw, prior))
    for g in range(len(draw["n_members"])):
        mean, scale = dense(draw, g)
        law = stats.multivariate_normal, {"cov": scale}
        for row, value in zip(X, got[:, g], strict=True):
            o = np.flatnonzero(~np.isnan(row))
            if not o.size:
                assert value == 0.0
                continue
            law = {"mean": mean[o], "cov": scale[np.ix_(o, o)]}
            df = draw["hyper"][3]
            if np.isfinite(df):
                law = {"loc": mean[o], "shape": scale[np.ix_(o, o)], "df": df}
                expected = stats.multivariate_t(**law).logpdf(row[o])
            else:
                expected = stats.multivariate_normal(**law).logpdf(row[o])
            assert_allclose(value, expected, rtol=1e-9)


@pytest.mark.usefixtures("way")
def test_densities_integrate_to_one():
    for prior in (Prior(mass=2.0), STUDENT, Prior(mass=2.0, mass_upper=2.0, max_layers=2)):
        draw, _ = random_draw(3, prior, n_features=1, least_factors=1)
        # Over the whole line, for the sake of tails.
        angle = np.linspace(-np.pi / 2, np.pi / 2, 10_002)[1:-1]
        p = np.exp(log_density(draw, prior, np.tan(angle)[:, np.newaxis])) / np.cos(angle) ** 2
        assert_allclose(integrate.trapezoid(p, angle), 1.0, rtol=1e-3)


def test_marginals_are_those_of_the_joint_density():
    """The density of three cells is that of four, integrated over the fourth."""
    prior = Prior(mass=2.0, mass_upper=2.0, max_layers=2)
    draw, _ = random_draw(5, prior)
    row = np.array([0.3, np.nan, -0.5, 1.0])
    grid = np.linspace(-40, 40, 8_001)
    rows = np.tile(row, (len(grid), 1))
    rows[:, 1] = grid
    total = np.log(integrate.trapezoid(np.exp(log_density(draw, prior, rows)), grid))
    assert_allclose(log_density(draw, prior, row[np.newaxis])[0], total, rtol=1e-5)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("tails", ["gaussian", "t"])
def test_missing_cells_by_conditioning(tails):
    """Means and variances against dense conditioning in every cluster."""
    prior = Prior(mass=2.0, concentration=1.5, means="both", tails=tails)
    draw, _ = random_draw(7, prior)
    df = draw["hyper"][3] = 4.0 if tails == "t" else np.inf
    rng = np.random.default_rng(8)
    X = rng.normal(size=(20, 4)) * 1.5
    X[rng.random(X.shape) < 0.4] = np.nan
    rows, parts = as_rows(X), components(draw, prior)
    r = cluster_probabilities(rows, parts)
    assert_allclose(r.sum(axis=1), 1.0)
    first, variance = cell_moments(rows, parts)
    for i, row in enumerate(X):
        o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        mean, square = np.zeros(len(m)), np.zeros(len(m))
        for g in range(len(draw["n_members"])):
            center, scale = dense(draw, g)
            solved = np.linalg.solve(scale[np.ix_(o, o)], scale[np.ix_(o, m)]).T
            given = center[m] + solved @ (row[o] - center[o])
            left = np.diag(scale[np.ix_(m, m)] - solved @ scale[np.ix_(o, m)])
            if np.isfinite(df):
                far = (row[o] - center[o]) @ np.linalg.solve(
                    scale[np.ix_(o, o)], row[o] - center[o]
                )
                left = left * (df + far) / (df + len(o) - 2)
            mean += r[i, g] * given
            square += r[i, g] * (left + given**2)
        assert_allclose(first[i, m], mean, rtol=1e-8, atol=1e-10)
        assert_allclose(variance[i, m], square - mean**2, rtol=1e-8)


def test_layers_above_by_conditioning():
    """Density, mean and variance of a missing cell, over the draws that stand for the layers."""
    prior = Prior(mass=2.0, mass_upper=1.0, concentration=1.5, max_layers=3)
    draw, _ = random_draw(11, prior)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 4)) * 2
    X[:, 0] = np.nan
    X[3, 1] = np.nan
    rows, parts = as_rows(X), components(draw, prior)
    assert parts.factor.shape == (32, draw["loadings1"].shape[1]) and (parts.factor >= 1).all()
    log_p = log_densities(rows, parts)
    first, variance = cell_moments(rows, parts)
    r = cluster_probabilities(rows, parts)
    for i, row in enumerate(X):
        o = np.flatnonzero(~np.isnan(row))
        mean = square = 0.0
        for g in range(r.shape[1]):
            found = []
            for factor in parts.factor:
                layered = {**draw, "score_variance": draw["score_variance"] * factor**2}
                center, scale = dense(layered, g)
                solved = np.linalg.solve(scale[np.ix_(o, o)], scale[o, 0])
                law = stats.multivariate_normal(center[o], scale[np.ix_(o, o)])
                given = center[0] + solved @ (row[o] - center[o])
                found.append((law.logpdf(row[o]), given, scale[0, 0] - solved @ scale[o, 0]))
            log_q, given, left = np.array(found).T
            assert_allclose(log_p[i, g], logsumexp(log_q) - np.log(32), rtol=1e-9)
            share = np.exp(log_q - logsumexp(log_q))
            mean += r[i, g] * share @ given
            square += r[i, g] * share @ (left + given**2)
        assert_allclose([first[i, 0], variance[i, 0]], [mean, square - mean**2], rtol=1e-8)


@pytest.mark.usefixtures("way")
def test_variances_that_are_infinite():
    draw, prior = random_draw(7, STUDENT)
    draw["hyper"][3] = 2.0
    X = np.array([[np.nan] * 4, [0.5, np.nan, np.nan, np.nan]])
    rows = as_rows(X)
    mean, variance = cell_moments(rows, components(draw, prior))
    assert np.isfinite(mean).all()
    assert np.isinf(variance[0]).all() and np.isfinite(variance[1]).all()


def test_scores_by_conditioning():
    draw, prior = random_draw(9)
    X = np.random.default_rng(0).normal(size=(10, 4))
    rows, parts = as_rows(X), components(draw, prior)
    r, w = cluster_probabilities(rows, parts), draw["loadings1"]
    expected = np.zeros((10, w.shape[1]))
    for g in range(r.shape[1]):
        center, scale = dense(draw, g)
        gain = draw["score_variance"][g][:, np.newaxis] * w.T @ np.linalg.inv(scale)
        expected += r[:, [g]] * (draw["score_mean"][g] + (X - center) @ gain.T)
    assert_allclose(expected_scores(rows, parts), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.usefixtures("way")
def test_no_factors():
    draw, prior = random_draw(0, least_factors=0)
    n_clusters = len(draw["n_members"])
    draw |= {
        "loadings1": np.zeros((4, 0)),
        "score_mean": np.zeros((n_clusters, 0)),
        "score_variance": np.zeros((n_clusters, 0)),
    }
    X = np.random.default_rng(0).normal(size=(6, 4))
    X[0, :2] = np.nan
    rows, parts = as_rows(X), components(draw, prior)
    expected = stats.norm.logpdf(X[1:], 0, np.sqrt(draw["noise_variance"][0])).sum(axis=1)
    assert_allclose(log_densities(rows, parts)[1:, 0], expected)
    assert expected_scores(rows, parts).shape == (6, 0)
    assert np.isfinite(cell_moments(rows, parts)).all()
    assert sample_rows(draw, prior, 5, np.random.default_rng(0))[0].shape == (5, 4)


@pytest.mark.parametrize("kind", ["gaussian", "t", "layers"])
def test_samples_follow_the_density(kind):
    """E log p under the samples against that under half of them, and sizes of the clusters."""
    prior = {
        "gaussian": Prior(mass=2.0, means="both"),
        "t": STUDENT,
        "layers": Prior(mass=2.0, mass_upper=2.0, max_layers=2),
    }[kind]
    draw, _ = random_draw(4, prior, n_features=2, least_factors=1)
    draw["hyper"][3] = 8.0 if kind == "t" else np.inf
    X, cluster = sample_rows(draw, prior, 40_000, np.random.default_rng(0))
    weight = np.append(draw["n_members"], draw["hyper"][0]) / (30 + draw["hyper"][0])
    count = np.bincount(cluster, minlength=len(weight))
    z = (count - 40_000 * weight) / np.sqrt(40_000 * weight * (1 - weight))
    assert np.abs(z).max() < 4
    # Rows of clusters that there are: a new one is here a few draws, there as many as rows.
    old = cluster < len(weight) - 1
    low, high = -0.5, 0.8
    inside = ((X[old] > low) & (X[old] < high)).all(axis=1)
    parts, grid = components(draw, prior), np.linspace(low, high, 101)
    points = np.stack(np.meshgrid(grid, grid), axis=-1)
    log_p = log_densities(as_rows(points.reshape(-1, 2)), parts, new=False) + parts.log_weight
    p = np.exp(logsumexp(log_p, axis=1)).reshape(101, 101) / weight[:-1].sum()
    chance = integrate.trapezoid(integrate.trapezoid(p, grid), grid)
    error = np.sqrt(chance * (1 - chance) / old.sum())
    # Of the layers above a few draws stand for all.
    assert abs(inside.mean() - chance) < 4 * error + (0.01 if kind == "layers" else 0.0)


# -- cells below the detection limit


@pytest.mark.parametrize("tails", ["gaussian", "t"])
def test_a_cell_below_the_limit(tails):
    """Its chance is the integral of the density over what is below the limit."""
    prior = Prior(mass=2.0, concentration=1.5, tails=tails)
    draw, _ = random_draw(7, prior, n_features=3)
    draw["hyper"][3] = 6.0 if tails == "t" else np.inf
    limit = np.array([-0.5, 0.2, 0.0])
    rows = np.array([[0.3, -np.inf, 0.4], [np.nan, -np.inf, -1.0], [0.3, 0.1, 0.4]])
    got = log_densities(as_rows(rows, limit), components(draw, prior))[:, :-1]
    grid = limit[1] - np.sinh(np.linspace(12.0, 0.0, 20_001)) / 100
    for i, row in enumerate(rows[:2]):
        filled = np.tile(row, (len(grid), 1))
        filled[:, 1] = grid
        p = np.exp(log_densities(as_rows(filled), components(draw, prior))[:, :-1])
        expected = np.log(integrate.trapezoid(p, grid, axis=0))
        assert_allclose(got[i], expected, atol=1e-5)
    alone = log_densities(as_rows(rows[2:]), components(draw, prior))[:, :-1]
    assert_allclose(got[2:], alone, rtol=1e-10)


def test_two_cells_below_the_limit():
    """Chance and moments of a third cell against sums over a grid of both."""
    draw, prior = random_draw(7, n_features=3)
    limit = np.array([-0.5, 0.2, 0.0])
    row = np.array([[-np.inf, -np.inf, np.nan]])
    rows, parts = as_rows(row, limit), components(draw, prior)
    got = log_densities(rows, parts)[0, :-1]
    mean, variance = (moment[0, 2] for moment in cell_moments(rows, parts))
    a, b = (at - np.sinh(np.linspace(8.0, 0.0, 301)) / 50 for at in limit[:2])
    cells = np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2)
    grid = as_rows(np.column_stack([cells, np.full(len(cells), np.nan)]))

    def integral(values):
        return integrate.trapezoid(integrate.trapezoid(values.reshape(301, 301), b), a)

    p = np.exp(log_densities(grid, parts)[:, :-1])
    expected = np.array([integral(q) for q in p.T])
    assert_allclose(got, np.log(expected), atol=0.05)
    one, spread = (moment[:, 2] for moment in cell_moments(grid, parts))
    total = p @ draw["n_members"]
    exact = [integral(total * x) / integral(total) for x in (one, spread + one**2)]
    assert_allclose([mean, variance], [exact[0], exact[1] - exact[0] ** 2], rtol=0.05)


def test_cells_below_the_limit_without_factors():
    """Nothing is random then: products of distribution functions."""
    prior = Prior(mass=2.0)
    draw, _ = random_draw(0, prior, least_factors=0)
    draw |= {name: np.zeros((len(draw["n_members"]), 0)) for name in ("score_mean",)}
    draw |= {"score_variance": draw["score_mean"].copy(), "loadings1": np.zeros((4, 0))}
    limit = np.full(4, -0.3)
    X = np.array([[-np.inf, -np.inf, 0.5, np.nan]])
    sd = np.sqrt(draw["noise_variance"])
    expected = stats.norm.logcdf(-0.3, 0, sd[:, :2]).sum(axis=1)
    expected += stats.norm.logpdf(0.5, 0, sd[:, 2])
    got = log_densities(as_rows(X, limit), components(draw, prior))[0, :-1]
    assert_allclose(got, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "prior", [None, STUDENT, Prior(mass=2.0, concentration=1.5, noise="shared")]
)
def test_few_rows_meet_the_components_of_all_draws_at_once(prior):
    draws = [random_draw(seed, prior, least_factors=seed) for seed in (0, 1, 2)]
    X = np.random.default_rng(0).normal(size=(5, 4))
    X[1, 2], X[3, :2], X[4] = np.nan, np.nan, np.nan
    apart = [components(draw, law) for draw, law in draws]
    for rows in (X[:1], X[1:2], X, X[:1]):
        prepared = as_rows(rows)
        for one, joined in zip(apart, together(apart), strict=True):
            assert joined.together.is_for(prepared) and one.together is None
            for of in (log_densities, cluster_probabilities, expected_scores):
                assert_allclose(of(prepared, joined), of(as_rows(rows), one), rtol=1e-9, atol=1e-12)
            missing = np.isnan(rows)
            for found, expected in zip(
                cell_moments(prepared, joined), cell_moments(as_rows(rows), one), strict=True
            ):
                assert_allclose(found[missing], expected[missing], rtol=1e-9)


def test_many_rows_layers_and_cells_below_a_limit_meet_each_draw_by_itself():
    draw, prior = random_draw()
    joined = together([components(draw, prior)] * 2)
    assert not joined[0].together.is_for(as_rows(np.zeros((100_000, 4))))
    assert not joined[0].together.is_for(as_rows(np.full((1, 4), -np.inf), np.zeros(4)))
    draw, prior = random_draw(prior=Prior(mass=2.0, concentration=1.5, max_layers=2))
    assert together([components(draw, prior)])[0].together is None
