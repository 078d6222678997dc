"""What a draw of the scale model says of rows, against quadrature and closed forms."""

import pickle
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import k0, logsumexp

from skbnp.deep_scale_model import _predictive as predictive
from skbnp.deep_scale_model._model import Prior, draw_joint
from skbnp.deep_scale_model._training_rows import WatchedRows
from skbnp.units import Units


def make_draw(*loadings, noise, location=None, drift=0.0, n_samples=50):
    """A draw with these loadings, scores of its training rows from their law."""
    rng = np.random.default_rng(0)
    n = len(loadings[0])
    draw = {
        "noise_variance": np.array(noise, dtype=float),
        "location": np.zeros(n) if location is None else np.array(location, dtype=float),
        "hyper": np.array([1.0, drift]),
    }
    spread = 1.0
    for level in range(len(loadings), 0, -1):
        w = np.array(loadings[level - 1], dtype=float)
        draw[f"loadings{level}"] = w
        scores = spread * rng.normal(size=(n_samples, w.shape[1]))
        draw[f"scores{level}"] = scores.astype(np.float32)
        spread = np.sqrt(1 + (scores @ w.T) ** 2)
    return draw


ONE = make_draw([[0.8], [-0.5]], noise=[0.2, 0.1])
TWO = make_draw(
    [[0.8, 0.3], [-0.5, 1.0], [0.0, 0.7]], noise=[0.2, 0.1, 0.3], location=[0.1, 0.0, -0.2]
)
DRIFTING = make_draw(
    [[0.8, 0.3], [-0.5, 1.0], [0.0, 0.7]], noise=[0.2, 0.1, 0.3], location=[0.1, 0, 0], drift=1.5
)
DEEP = make_draw([[0.8], [-0.5]], [[1.5]], noise=[0.2, 0.1], drift=0.7)
# Two parts and a feature that stands alone.
PARTS = make_draw(
    [[0.8, 0, 0], [-0.5, 0, 0], [0, 1.2, 0.5], [0, 0, -0.9], [0, 0, 0]],
    noise=[0.2, 0.1, 0.3, 0.2, 0.5],
    location=[0, 1, 0, -1, 0.5],
)
X = np.array([[0.0, 0.0], [1.0, -0.4], [3.0, 2.0], [np.nan, 1.0], [np.nan, np.nan]])
X3 = np.array([[0.0, 0.0, 0.0], [1.0, -0.4, 0.5], [np.nan, 1.5, -1.0], [2.0, -2.5, 1.0]])


def two_numbers(draw):
    """All pairs z of a fine grid, their log prior weights, and the amplitudes they give."""
    u = np.linspace(-8, 8, 801)
    z = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    weight = -0.5 * np.sum(z**2, axis=1) - np.log(2 * np.pi) + 2 * np.log(u[1] - u[0])
    return z, weight, predictive.amplitudes(predictive.layers_of(draw), z)


def log_likelihoods(draw, x, amplitude):
    """log p(x | A) over the observed cells of one row."""
    seen = ~np.isnan(x)
    variance = (amplitude**2 + draw["noise_variance"])[:, seen]
    mean = (draw["location"] + draw["hyper"][1] * amplitude)[:, seen]
    return -0.5 * np.sum(np.log(2 * np.pi * variance) + (x[seen] - mean) ** 2 / variance, axis=1)


# -- densities --------------------------------------------------------------------------------


def test_check_vectors():
    found, variance = predictive.log_density(ONE, X, 0)
    assert_allclose(found[:3], [-0.5942560423, -2.3815603508, -7.8856455632], atol=2e-10)
    assert found[4] == pytest.approx(0.0, abs=1e-10)
    assert_array_equal(variance, 0.0)


def test_a_feature_without_noise_has_a_bessel_density():
    draw, x = make_draw([[0.8]], noise=[1e-14]), np.array([0.1, 1.0, 3.0])
    found, _ = predictive.log_density(draw, x[:, np.newaxis], 0)
    assert_allclose(np.exp(found), k0(x / 0.8) / (np.pi * 0.8), rtol=1e-9)
    assert_allclose(np.exp(found), [0.878483, 0.118413, 0.005878488], rtol=1e-5)


@pytest.mark.parametrize("w", [1e-4, 0.7, 50.0])
@pytest.mark.parametrize("drift", [0.0, 6.0])
def test_one_factor_integrates_to_one(w, drift):
    draw = make_draw([[w]], noise=[0.01], drift=drift)
    u = np.linspace(-14, 14, 20001)
    x = 0.05 * np.sinh(u)
    density = np.exp(predictive.log_density(draw, x[:, np.newaxis], 0)[0])
    assert np.sum(density * 0.05 * np.cosh(u)) * (u[1] - u[0]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("annealed", [False, True], ids=["Sobol", "annealed"])
@pytest.mark.parametrize(
    ("draw", "rows"), [(TWO, X3), (DRIFTING, X3), (DEEP, X)], ids=["two", "drift", "deep"]
)
def test_densities_against_quadrature(draw, rows, annealed, monkeypatch):
    if annealed:
        monkeypatch.setattr(predictive, "MOST_SOBOL", 0)
    _, weight, amplitude = two_numbers(draw)
    exact = [logsumexp(weight + log_likelihoods(draw, x, amplitude)) for x in rows]
    found = np.array([predictive.log_density(draw, rows, 1, t) for t in range(30)])
    density = np.exp(found[:, 0] - exact)
    error = density.std(axis=0, ddof=1) / np.sqrt(30)
    assert (np.abs(density.mean(axis=0) - 1) < 4 * error + 1e-7).all()
    # Points of a sequence are better than their number says, particles as good as they say.
    said = np.sqrt(found[:, 1].mean(axis=0))
    assert (density.std(axis=0) < 1.5 * said + 1e-6).all()
    if not annealed:
        assert (np.abs(density[:, :2] - 1) < 5e-3).all()


def test_parts_are_independent():
    rng = np.random.default_rng(1)
    rows = predictive.sample_rows(PARTS, 5, rng)
    rows[3, [0, 3]] = np.nan
    assert [list(features) for features, _ in predictive.parts_of(PARTS)] == [[0, 1], [2, 3]]
    found, _ = predictive.log_density(PARTS, rows, 0)
    one = make_draw([[0.8], [-0.5]], noise=[0.2, 0.1], location=[0, 1])
    two = make_draw([[1.2, 0.5], [0, -0.9]], noise=[0.3, 0.2], location=[0, -1])
    alone = -0.5 * np.log(2 * np.pi * 0.5) - (rows[:, 4] - 0.5) ** 2
    parts = predictive.log_density(one, rows[:, :2], 0)[0]
    parts += predictive.log_density(two, rows[:, 2:4], 0)[0] + alone
    assert_allclose(found, parts, atol=0.01)


def test_rows_that_few_points_know_are_annealed(monkeypatch):
    """A drift so strong that four features leave next to nothing of the prior."""
    w = np.array([[1.0, 0.5], [0.3, -1.0], [0.8, 0.8], [-1.2, 0.4]])
    draw = make_draw(w, noise=np.full(4, 1e-4), drift=4.0)
    x = 4.0 * np.array([[2.0, -2.0]]) @ w.T
    u = np.linspace(-5, 5, 1001)
    z = np.stack(np.meshgrid(u, u), axis=-1).reshape(-1, 2)
    weight = -0.5 * np.sum(z**2, axis=1) - np.log(2 * np.pi) + 2 * np.log(u[1] - u[0])
    exact = logsumexp(weight + log_likelihoods(draw, x[0], z @ w.T))
    density = np.exp([predictive.log_density(draw, x, 0, t)[0][0] - exact for t in range(100)])
    error = density.std(ddof=1) / 10
    assert error < 0.3 and abs(density.mean() - 1) < 4 * error
    monkeypatch.setattr(predictive, "LEAST_EFFECTIVE", 1e-9)
    points, spread = predictive.log_density(draw, x, 0)
    assert spread > 1 / 50 and points < exact - 1


# -- expectations -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "rows"), [(TWO, X3), (DRIFTING, X3), (DEEP, X)], ids=["two", "drift", "deep"]
)
def test_expectations_against_quadrature(draw, rows):
    """z-scores over 40 seeds, about 100 of them: all below 4."""
    z, weight, amplitude = two_numbers(draw)
    loadings = predictive.layers_of(draw)
    scores = [z, None]
    if len(loadings) == 2:
        scores = [z[:, :1] * np.sqrt(1 + (z[:, 1:] * loadings[1][0]) ** 2), z[:, 1:]]
    exact = {name: [] for name in ("mean", "magnitude", "energy", "amplitude", "amplitude_square")}
    largest = [[] for _ in loadings]
    for x in rows:
        p = weight + log_likelihoods(draw, x, amplitude)
        p = np.exp(p - logsumexp(p))
        exact["mean"].append(p @ scores[0])
        exact["magnitude"].append(p @ np.abs(scores[0]))
        exact["energy"].append(p @ scores[0] ** 2)
        exact["amplitude"].append(p @ amplitude)
        exact["amplitude_square"].append(p @ amplitude**2)
        for level in range(len(loadings)):
            share = energy_shares(draw, level + 1, scores[level])
            label = share.argmax(axis=1)
            largest[level].append(np.bincount(label, weights=p, minlength=share.shape[1]))
    runs = [predictive.row_moments(draw, rows, 5, t, n_kept=200) for t in range(40)]
    pairs = [(np.array([run[name] for run in runs]), exact[name], 1e-6) for name in exact]
    for level in range(len(loadings)):
        # The grid has an error of its own where one share overtakes another.
        found = np.array([run["largest"][level] for run in runs])
        pairs.append((found, largest[level], 2e-3))
        assert_allclose(found.sum(axis=-1), 1)
    for found, truth, grid_error in pairs:
        error = found.std(axis=0, ddof=1) / np.sqrt(len(runs))
        assert (np.abs(found.mean(axis=0) - truth) < 4 * error + grid_error).all()


def test_cells_of_a_drifting_draw_follow_the_others():
    """Mean and variance of a missing cell, against quadrature."""
    x = np.array([[1.2, -1.0, np.nan]])
    _, weight, amplitude = two_numbers(DRIFTING)
    p = weight + log_likelihoods(DRIFTING, x[0], amplitude)
    p = np.exp(p - logsumexp(p))
    a, noise = amplitude[:, 2], DRIFTING["noise_variance"][2]
    mean = 1.5 * p @ a
    variance = p @ (a**2 + noise + (1.5 * a) ** 2) - mean**2
    runs = np.array([predictive.cell_moments(DRIFTING, x, 2, t, n_kept=200) for t in range(40)])
    found, error = runs.mean(axis=0)[:, 0, 2], runs.std(axis=0, ddof=1)[:, 0, 2] / np.sqrt(40)
    assert (np.abs(found - [mean, variance]) < 4 * error).all()
    still, _ = predictive.cell_moments(TWO, x, 0)
    assert_allclose(still[0], TWO["location"])


def test_moments_of_rows():
    """Closed forms, (D1.6), from a million rows; errors from a hundred parts."""
    W = np.array([[1.0, 0.5], [0.7, 0.0], [-0.4, 1.2]])
    draw = make_draw(W, noise=[0.3, 0.2, 0.1])
    rows = predictive.sample_rows(draw, 10**6, np.random.default_rng(3))
    square = rows**2
    figures = np.column_stack(
        [square, square**2, (square[:, 0] - 1.55) * (square[:, 2] - 1.70), rows[:, 0] * rows[:, 2]]
    )
    parts = figures.reshape(100, 10**4, -1).mean(axis=1)
    truth = [1.55, 0.69, 1.70, 16.5825, 2.8689, 24.03, 0.08, 0.0]
    z = (parts.mean(axis=0) - truth) / (parts.std(axis=0, ddof=1) / 10)
    assert (np.abs(z) < 4).all()


def test_upper_layers_add_variance():
    """Variance of a chain of two layers, (1 + c^2) w1^2 (1 + w2^2) + s^2."""
    draw = make_draw([[1.0]], [[1.5]], noise=[0.3], drift=0.5, location=[2.0])
    rows = predictive.sample_rows(draw, 10**6, np.random.default_rng(4)) - 2.0
    second = (1 + 0.25) * (1 + 1.5**2) + 0.3
    parts = np.column_stack([rows[:, 0], rows[:, 0] ** 2]).reshape(100, 10**4, 2).mean(axis=1)
    z = (parts.mean(axis=0) - [0.0, second]) / (parts.std(axis=0, ddof=1) / 10)
    assert (np.abs(z) < 4).all()


# -- the same in any company ------------------------------------------------------------------


@pytest.mark.parametrize("draw", [ONE, TWO, DRIFTING, DEEP, PARTS])
def test_watched_rows_have_nearly_their_density(draw):
    """By 2^9 points instead of 2^12, in the units of the data; one pickle as good as another."""
    X = predictive.sample_rows(draw, 150, np.random.default_rng(1))
    X[::7, 0] = np.nan
    n = X.shape[1]
    units = replace(Units.unscaled(n), scale=np.linspace(0.5, 2.0, n))
    watched = WatchedRows(X, units)
    assert watched.n_rows == 75
    sampler = Mock(draw=lambda: draw)
    found = watched(sampler)
    assert_array_equal(pickle.loads(pickle.dumps(watched))(sampler), found)
    wanted, _ = predictive.log_density(draw, X[::2], 0)
    wanted -= np.where(np.isnan(X[::2]), 0.0, np.log(units.scale)).sum(axis=1)
    assert abs(found.mean() - wanted.mean()) < 0.02
    # A row far out has few of the points near it.
    assert np.quantile(np.abs(found - wanted), 0.9) < 0.1


@pytest.mark.parametrize("draw", [PARTS, DEEP], ids=["parts", "deep"])
def test_rows_do_not_depend_on_their_company(draw, monkeypatch):
    rng = np.random.default_rng(6)
    rows = predictive.sample_rows(draw, 7, rng)
    rows[2, 0] = np.nan
    order = rng.permutation(7)
    whole, some = (predictive.row_moments(draw, x, 3, 1, 5, 5) for x in (rows, rows[order]))
    for name in ("mean", "energy", "amplitude_square"):
        assert_array_equal(some[name], whole[name][order])
    for annealed in (False, True):
        if annealed:
            monkeypatch.setattr(predictive, "MOST_SOBOL", 0)
        found, variance = predictive.log_density(draw, rows, 3, 1)
        again, variance_again = predictive.log_density(draw, rows[order], 3, 1)
        assert_allclose(again, found[order], rtol=1e-10)
        assert_allclose(variance_again, variance[order], atol=1e-10)


# -- labels -----------------------------------------------------------------------------------


def energy_shares(draw, level=1, scores=None, feature_variance=None):
    """Energies of the background and of each factor, as shares of a row's: (n_rows, K + 1).

    ``scores`` of this level are the draw's own if not given.
    """
    per_square, background = predictive.energy_per_square(draw, level, feature_variance)
    y = np.asarray(draw[f"scores{level}"] if scores is None else scores, dtype=np.float64)
    energy = np.column_stack([np.full(len(y), background), y**2 * per_square])
    return energy / energy.sum(axis=1, keepdims=True)


def hard_labels(draw):
    """The factor of the largest share in each training row, -1 the background: (L, n_samples)."""
    levels = range(1, len(predictive.layers_of(draw)) + 1)
    return np.array([energy_shares(draw, level).argmax(axis=1) - 1 for level in levels])


def test_shares_and_labels_by_hand():
    W = np.array([[1.0, 0.0], [1.0, 2.0]])
    draw = make_draw(W, [[1.0], [0.0]], noise=[0.5, 0.5], drift=1.0)
    draw["scores1"] = np.array([[0.1, 0.1], [2.0, 1.0], [0.0, 1.0]], dtype=np.float32)
    draw["scores2"] = np.array([[0.0], [3.0], [1.0]], dtype=np.float32)
    # (1 + c^2) y^2 |w|^2: 0.04 and 0.08; 16 and 8; 0 and 8, beside a background of 1
    energy = np.array([[1, 0.04, 0.08], [1, 16, 8], [1, 0, 8]])
    share = energy / energy.sum(axis=1, keepdims=True)
    assert_allclose(energy_shares(draw), share, rtol=1e-6)
    # Above: y^2 / (1 + 10/3) beside 1 / (1 + 10/3) + 1 / 1
    assert_array_equal(hard_labels(draw), [[-1, 0, 1], [-1, 0, -1]])
    found = energy_shares(draw, feature_variance=[1.0, 4.0])
    assert_allclose(found[1], np.array([0.625, 10, 2]) / 12.625, rtol=1e-6)
    # mean y^2 = 4.01 / 3 and 2.01 / 3
    assert_array_equal(predictive.feature_labels(draw), [0, 1])
    draw["noise_variance"][0] = 2.0
    assert_array_equal(predictive.feature_labels(draw), [-1, 1])


def test_no_factor():
    draw = make_draw(np.empty((2, 0)), noise=[0.5, 2.0], location=[1.0, 0.0], drift=1.0)
    density, variance = predictive.log_density(draw, X, 0)
    cells = -0.5 * np.log(2 * np.pi * np.array([0.5, 2.0])) - (X - [1, 0]) ** 2 / [1.0, 4.0]
    assert_allclose(density, np.nansum(cells, axis=1))
    assert_array_equal(variance, 0.0)
    found = predictive.row_moments(draw, X, 0)
    assert found["mean"].shape == (5, 0)
    assert_allclose(found["largest"][0], np.ones((5, 1)))
    assert_array_equal(hard_labels(draw), np.full((1, 50), -1))
    assert_array_equal(predictive.feature_labels(draw), [-1, -1])
    mean, variance = predictive.cell_moments(draw, X, 0)
    assert_allclose(mean, np.tile([1.0, 0.0], (5, 1)))
    assert_allclose(variance, np.tile([0.5, 2.0], (5, 1)))
    assert predictive.sample_rows(draw, 3, np.random.default_rng(0)).shape == (3, 2)


def test_draws_from_the_prior():
    """Whatever structure there is, answers are finite and labels those of the shares."""
    rng = np.random.default_rng(7)
    for birth_move in ("singleton", "finite"):
        prior = Prior(mass=3.0, mass_upper=1.0, max_layers=4, birth_move=birth_move)
        for _ in range(15):
            draw, rows = draw_joint(prior, 12, 5, rng)
            rows[0] = np.nan
            rows[1:3, :2] = np.nan
            found, _ = predictive.log_density(draw, rows, 0)
            assert np.isfinite(found).all() and abs(found[0]) < 0.2
            moments = predictive.row_moments(draw, rows, 0, n_burn=2, n_kept=3)
            assert len(moments["largest"]) == len(hard_labels(draw))
            for values in (moments["energy"], moments["amplitude_square"], *moments["largest"]):
                assert np.isfinite(values).all()
