"""Where chains start: valid states of finite density, near the data where they can be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest
from sklearn.decomposition import FactorAnalysis
from sklearn.metrics import adjusted_rand_score

from checks.slow import slow_where
from skbnp.infinite_factor_clusterer import _model, _start
from skbnp.infinite_factor_clusterer._model import Prior
from skbnp.infinite_factor_clusterer._sampler import Sampler
from skbnp.infinite_factor_clusterer._start import n_by_bic, start_state
from skbnp.laws import InverseGamma

LAWS = {
    "default": {},
    "shared noise": {"noise": "shared"},
    "offsets": {"means": "feature"},
    "offsets, shared noise": {"means": "both", "noise": "shared"},
    "t tails": {"tails": "t"},
    "layers": {"max_layers": 3},
    "given": {"concentration": 0.5, "mass": 3.0},
}
SHAPES = {
    "usual": (60, 6),
    "wide": (6, 30),
    "two rows": (2, 4),
    "one row": (1, 3),
    "one column": (30, 1),
    "one cell": (1, 1),
}


def table(shape, holes):
    """Rows of four groups in standard units, with holes and an empty row."""
    rng = np.random.default_rng(0)
    n, d = SHAPES[shape]
    X = rng.normal(size=(n, d)) + 2 * rng.normal(size=(4, d))[rng.integers(4, size=n)]
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 0.1)
    X[2:][rng.random(X[2:].shape) < holes] = np.nan
    if holes:
        X[-1] = np.nan
    return X


@pytest.mark.parametrize(
    "n_clusters, holes", [(1, 0.3), (8, 0.0), *slow_where([(1, 0.0), (8, 0.3)], lambda case: True)]
)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("law", LAWS)
def test_starts(law, shape, holes, n_clusters):
    X, prior = table(shape, holes), Prior(**LAWS[law])
    state = start_state(X, prior, np.random.default_rng(1), n_clusters)
    state = _model.checked_state(state, prior, *X.shape) | {"filled": state["filled"]}
    assert np.isfinite(_model.log_joint(state, X, prior))
    seen = ~np.isnan(X)
    assert_array_equal(state["filled"][seen], X[seen])
    assert state["label"].max() < n_clusters


@pytest.mark.parametrize(
    "X", [np.zeros((8, 3)), np.full((5, 2), np.nan), np.ones((1, 4))], ids=["0", "NaN", "1"]
)
def test_nothing_to_start_from(X):
    """Equal rows are one cluster without a factor."""
    state = start_state(X, Prior(), np.random.default_rng(0), 4)
    assert state["loadings1"].shape == (X.shape[1], 0)
    assert_array_equal(state["label"], 0)
    assert np.isfinite(_model.log_joint(state, X, Prior()))


def test_groups_and_factors_are_found():
    """Three groups along two factors, each seen by columns of its own; a tenth is missing."""
    rng = np.random.default_rng(3)
    label = rng.integers(3, size=300)
    center = np.array([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])
    loadings = np.kron(np.eye(2), np.ones((4, 1)))
    X = (center[label] + 0.2 * rng.normal(size=(300, 2))) @ loadings.T
    X = X + 0.3 * rng.normal(size=X.shape)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    holed = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    state = start_state(holed, Prior(), rng, 3)
    assert adjusted_rand_score(label, state["label"]) > 0.98
    missing = np.isnan(holed)
    assert np.mean((state["filled"] - X)[missing] ** 2) < 0.2
    # A rotation cannot be told from its mirror or its order.
    links = state["loadings1"] != 0
    assert_array_equal(links[:, np.argmax(links[0])], loadings[:, 0] != 0)
    assert_array_equal(links[:, np.argmax(links[-1])], loadings[:, 1] != 0)
    residual = state["filled"] - state["scores1"] @ state["loadings1"].T
    assert np.mean(residual**2) < 0.5
    # Offsets leave to the factors what varies within groups.
    within = start_state(X, Prior(means="feature"), rng, 3)["loadings1"]
    assert within.shape[1] == 2
    assert np.abs(within).max() < 0.3 < np.abs(state["loadings1"]).max()


def test_clusters_apart_in_little_of_the_variance():
    """Three blobs nearly on a line: one component has a variance above 1, but two factors count."""
    rng = np.random.default_rng(1)
    label = np.repeat(np.arange(3), 40)
    X = rng.normal(size=(120, 5)) + 10 * rng.normal(size=(3, 5))[label]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert np.sum(np.linalg.eigvalsh(np.cov(X.T)) > 1) == 1
    state = start_state(X, Prior(), rng, 4)
    assert state["loadings1"].shape[1] == 2
    assert np.linalg.matrix_rank(state["loadings1"]) == 2
    chain = Sampler(X, Prior(), state, np.random.PCG64(0))
    for _ in range(30):
        chain.sweep()
    found = chain.draw()["label"]
    assert adjusted_rand_score(label, found) > 0.9
    # Where there is nothing but noise, centres of k-means tell of nothing.
    X = rng.normal(size=(500, 5))
    assert start_state(X / X.std(axis=0), Prior(), rng, 8)["loadings1"].shape[1] <= 3


@pytest.mark.parametrize("n_factors", [0, 2, 4])
def test_the_number_of_factors_is_that_of_factor_analysis(n_factors):
    rng = np.random.default_rng(n_factors)
    n, d = 300, 16
    loadings = rng.normal(size=(n_factors, d)) * (rng.random((n_factors, d)) < 0.7)
    # Noise of many sizes, so that principal components see more than there are.
    noise = rng.uniform(0.2, 1.0, d) * rng.normal(size=(n, d))
    X = rng.normal(size=(n, n_factors)) @ loadings + noise
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    bics = [n * d * (1 + np.log(2 * np.pi))]
    for k in range(1, 7):
        likelihood = n * FactorAnalysis(k, tol=1e-4, max_iter=3000).fit(X).score(X)
        bics.append((k * d - k * (k - 1) / 2) * np.log(n) - 2 * likelihood)
    assert n_by_bic(X) == np.argmin(bics) == n_factors
    assert n_by_bic(1e-3 * X) == n_by_bic(X)


def test_a_number_of_factors_of_tables_that_tell_none():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X -= X.mean(axis=0)
    assert n_by_bic(np.zeros((9, 3))) == n_by_bic(X[:, :1]) == n_by_bic(X[:5]) == 0
    # Columns that are equal have one; beside a column of zeros there are no more.
    assert n_by_bic(np.repeat(X[:, :1], 3, axis=1)) == 1
    assert n_by_bic(np.c_[X[:, 0], X[:, 0], np.zeros(40)]) == 1


def test_strongly_correlated_columns_have_more_factors_than_one():
    """Of five widths that grow together a chain from one factor stays where it is."""
    rng = np.random.default_rng(2)
    label = np.repeat(np.arange(3), 50)
    size = 3.0 * rng.normal(size=(150, 1))
    shape = np.array([[0.4, 0.0], [-0.3, 0.4], [-0.3, -0.4]])[label] @ rng.normal(size=(2, 5))
    X = size + shape + 0.15 * rng.normal(size=(150, 5))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert np.sum(np.linalg.eigvalsh(np.cov(X.T)) > 1) == 1
    assert start_state(X, Prior(), rng, 2)["loadings1"].shape[1] >= 3


def test_cells_below_the_limit_start_there():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 3))
    limit = np.array([-0.5, 0.0, -np.inf])
    X[X < limit] = -np.inf
    state = start_state(X, Prior(), rng, 4, limit)
    below = np.isneginf(X)
    assert_array_equal(state["filled"][below], np.broadcast_to(limit, X.shape)[below])
    assert np.isfinite(_model.log_joint(state, X, Prior(), limit))


def test_varimax_turns_back():
    rng = np.random.default_rng(5)
    simple = np.kron(np.eye(3), np.ones((4, 1))) * rng.uniform(0.5, 1.5, size=(12, 1))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    found = _start.varimax(simple @ turn)
    assert_allclose(found @ found.T, simple @ simple.T, atol=1e-12)
    order = np.argmax(np.abs(found[[0, 4, 8]]), axis=1)
    assert_allclose(np.abs(found[:, order]), simple, atol=1e-6)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("precision", [0.2, np.inf])
def test_conjugate_draws(precision, shared):
    """Their law given rows, one column of two clusters: means are t, scales gamma."""
    rng = np.random.default_rng(6)
    label = np.array([0, 0, 0, 1])
    X = np.tile(np.array([[1.0], [2.0], [1.5], [-3.0]]), 4000)
    mean, variance = _start.drawn_clusters(X, label, InverseGamma(2.0, 0.3), precision, rng, shared)
    n, total = np.array([3.0, 1.0]), np.array([4.5, -3.0])
    squares = np.array([7.25, 9.0]) - total**2 / (n + precision)
    if shared:
        shape, rate = np.full(2, 2.0 + 2.0), np.full(2, 0.3 + squares.sum() / 2)
    else:
        shape, rate = 2.0 + n / 2, 0.3 + squares / 2
    assert variance.shape == (1 if shared else 2, 4000)
    for g in range(2):
        drawn = variance[0 if shared else g]
        assert kstest(rate[g] / drawn, "gamma", args=(shape[g],)).pvalue > 1e-4
        if np.isinf(precision):
            assert_array_equal(mean[g], 0.0)
            continue
        center = total[g] / (n[g] + precision)
        z = (mean[g] - center) * np.sqrt((n[g] + precision) * shape[g] / rate[g])
        assert kstest(z, "t", args=(2 * shape[g],)).pvalue > 1e-4
