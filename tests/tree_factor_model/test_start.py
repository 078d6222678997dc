"""Where chains start: valid states, and the groups that they are to find."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from checks.tree_factor_model import STRUCTURES
from skbnp.tree_factor_model import _model, _saved, _start
from skbnp.tree_factor_model._model import Prior


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("start", ["klines", "em", "kmeans"])
def test_starts(structure, holes, start):
    rng = np.random.default_rng(3)
    p = Prior(n_features=4, max_depth=6, branch_levels=STRUCTURES[structure])
    X = rng.standard_normal((40, 4))
    X[rng.random(X.shape) < holes] = np.nan
    s = _start.start_state(X, p, rng, [3] * len(p.branch_levels), start)
    _saved.checked_state(s, p, len(X))
    assert np.isfinite(_model.log_joint(s, X, p))
    assert set(s["branch"]) == set(range(len(s["leaf_node"])))
    assert len(s["leaf_node"]) > 1 or structure == "single"
    alone = _start.start_state(X, p, rng, [1] * len(p.branch_levels), start)
    assert len(alone["leaf_node"]) == 1


@pytest.mark.parametrize("start", ["klines", "em", "kmeans"])
def test_a_start_from_a_part_of_the_rows_places_all(start, monkeypatch):
    """Two clusters far apart, a tree from 60 of 400 rows: nobody is in the wrong branch."""
    monkeypatch.setattr(_start, "MOST_START_ROWS", 60)
    rng = np.random.default_rng(3)
    label = rng.integers(2, size=400)
    X = 0.2 * rng.standard_normal((400, 4)) * [3.0, 1.0, 1.0, 1.0] + 5.0 * label[:, np.newaxis]
    X -= X.mean(axis=0)
    X[rng.random(X.shape) < 0.1] = np.nan
    p = Prior(n_features=4, max_depth=3, branch_levels=(0,))
    state = _saved.checked_state(_start.start_state(X, p, rng, (2,), start), p, 400)
    assert len(state["leaf_node"]) <= 2
    if start == "kmeans":  # the others look for lines through the origin, not for means
        assert adjusted_rand_score(label, state["branch"]) == 1.0


def test_k_lines_finds_lines():
    """Two zero-mean groups along different directions."""
    rng = np.random.default_rng(4)
    truth = np.repeat([0, 1], 100)
    axes = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]])
    X = rng.standard_normal((200, 1)) * 5 * axes[truth] + 0.1 * rng.standard_normal((200, 3))
    parts = _start.k_lines(X, np.arange(200), 2, rng)
    agreement = np.mean(np.isin(np.arange(200), parts[0]) == truth)
    assert max(agreement, 1 - agreement) > 0.9


def test_components_of_a_mixture_are_grouped_by_their_shapes():
    """Four zero-mean groups, two by two alike."""
    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(4), 300)
    sd = np.array([[3.0, 0.2, 0.2], [3.0, 1.5, 0.2], [0.2, 0.2, 3.0], [0.2, 1.5, 3.0]])
    X = rng.standard_normal((1200, 3)) * sd[truth]
    shapes = np.array([np.diag(s**2) / np.sum(s**2) for s in sd])
    label = _start.nearest_groups(_start.shape_distances(shapes), 2)
    assert_array_equal(label, [0, 0, 1, 1])
    path = _start.grouped_components(X, [2, 2], rng)
    assert len(np.unique(path[:, 0])) == 2
    agreement = np.mean((path[:, 0] == path[0, 0]) == (truth < 2))
    assert agreement > 0.9


def clusters(rng, n_each=30, n_features=80):
    """Four clusters apart in their means, two by two next to each other: (X, label)."""
    center = np.zeros((4, n_features))
    center[:, :10] = np.repeat([[-4.0, -2.0], [-4.0, 2.0], [4.0, -2.0], [4.0, 2.0]], 5, axis=1)
    label = np.repeat(np.arange(4), n_each)
    within = np.zeros((4, n_features))
    within[np.arange(4), [10, 11, 20, 21]] = 2.0
    X = center[label] + rng.standard_normal((len(label), 1)) * within[label]
    return X + 0.1 * rng.standard_normal(X.shape), label


@pytest.mark.parametrize("levels", [(0,), (1, 2), (2, 4)])
@pytest.mark.parametrize("holes", [0.0, 0.05])
def test_k_means_starts_from_clusters_and_what_varies_within(levels, holes):
    """More features than rows; no loading has to span the distance between clusters."""
    rng = np.random.default_rng(6)
    X, label = clusters(rng)
    X[rng.random(X.shape) < holes] = np.nan
    p = Prior(n_features=80, max_depth=4, branch_levels=levels)
    s = _start.start_state(X, p, rng, [4] if len(levels) == 1 else [2, 2], "kmeans")
    _saved.checked_state(s, p, len(X))
    assert adjusted_rand_score(label, s["branch"]) == 1.0
    tops = _model.paths_of(s)[s["branch"]][:, levels[-1] - 1]
    if levels == (1, 2):
        assert adjusted_rand_score(label < 2, tops) == 1.0
    if levels[-1] < 4:
        assert (s["loadings"][s["level"] <= levels[-1]] == 0.0).all()
    if holes == 0.0:
        for leaf in range(4):
            rows = X[s["branch"] == leaf]
            assert_allclose(s["leaf_mean"][leaf], rows.mean(axis=0), atol=1e-12)
        assert np.abs(s["loadings"][:, :10]).max() < 0.2
        assert np.abs(s["loadings"][:, [10, 11, 20, 21]]).max() > 0.9


@pytest.mark.parametrize("n", [1, 2, 5])
def test_k_means_start_of_few_different_rows(n):
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((n, 3))
    X = rows[rng.integers(n, size=40)] * [1.0, 1.0, 0.0]
    p = Prior(n_features=3, max_depth=2, branch_levels=(1, 2))
    s = _start.start_state(X, p, rng, [4, 4], "kmeans")
    _saved.checked_state(s, p, len(X))
    assert np.isfinite(_model.log_joint(s, X, p))
    assert len(s["leaf_node"]) == len(np.unique(X, axis=0))
    few = _start.start_state(X[:2], p, rng, [4, 4], "kmeans")
    assert len(few["leaf_node"]) <= 2


def test_the_same_k_means_start_from_the_same_seed():
    X, _ = clusters(np.random.default_rng(8), n_each=300)
    p = Prior(n_features=80, max_depth=4, branch_levels=(1, 2))
    one, other = (
        _start.start_state(X, p, np.random.default_rng(9), [4, 4], "kmeans") for _ in range(2)
    )
    for name in one:
        assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("n", [2, 3, 7, 30])
def test_a_mixture_of_more_components_than_rows_leaves_some(n):
    X = np.random.default_rng(10).standard_normal((n, 4))
    p = Prior(n_features=4, max_depth=2, branch_levels=(1, 2))
    s = _start.start_state(X, p, np.random.default_rng(11), [100, 100], "em")
    _saved.checked_state(s, p, n)
    assert np.isfinite(_model.log_joint(s, X, p))
    assert len(s["leaf_node"]) <= n // 2
