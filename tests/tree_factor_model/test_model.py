"""The reference joint density against scipy.stats, and the starts of chains."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.metrics import adjusted_rand_score

from skbnp.processes import ncrp
from skbnp.tree_factor_model import _model
from skbnp.tree_factor_model._model import Prior

STRUCTURES = {"single": (), "mixture": (0,), "tree": (1, 3)}
every_structure = pytest.mark.parametrize("structure", STRUCTURES)
every_scale = pytest.mark.parametrize("branch_scale", _model.BRANCH_SCALES)


def prior_of(structure, **changes):
    defaults = dict(n_features=4, max_depth=3, branch_levels=STRUCTURES[structure])
    return Prior(**(defaults | changes))


def label_paths(state):
    """Path of each row, leaf last, as labels for ``ncrp``."""
    leaf = np.asarray(state["branch"])
    return np.column_stack([_model.paths_of(state)[leaf], leaf])


@every_structure
@every_scale
@pytest.mark.parametrize("noise", _model.NOISES)
def test_terms_against_scipy(structure, branch_scale, noise):
    rng = np.random.default_rng(0)
    p = prior_of(structure, branch_scale=branch_scale, noise=noise, noise_rate_prior=(3.0, 2.0))
    s, X = _model.draw_joint(p, 30, rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[3] = np.nan
    got = _model.log_joint(s, X, p, terms=True)
    tau = np.exp(_model.log_precisions(s))
    shape = np.where(s["parent"] < 0, 2.0, 3.0)
    sd = 1 / np.sqrt(s["local_precision"] * tau[:, None])
    lam = s["noise_precision"]
    assert_allclose(got["paths"], ncrp.log_prob(label_paths(s), s["concentration"]))
    assert_allclose(got["multiplier"], stats.gamma(shape).logpdf(s["multiplier"]).sum())
    assert_allclose(
        got["local_precision"], stats.gamma(1.5, scale=1 / 1.5).logpdf(s["local_precision"]).sum()
    )
    assert_allclose(got["loadings"], stats.norm(0, sd).logpdf(s["loadings"]).sum())
    assert_allclose(got["mean_precision"], stats.expon().logpdf(s["mean_precision"]).sum())
    spread = 1 / np.sqrt(s["mean_precision"])
    assert_allclose(got["leaf_mean"], stats.norm(0, spread).logpdf(s["leaf_mean"]).sum())
    unique = lam if noise == "diagonal" else lam[:1]
    assert_allclose(
        got["noise_precision"], stats.gamma(1, scale=1 / s["noise_rate"]).logpdf(unique).sum()
    )
    assert_allclose(got["noise_rate"], stats.gamma(3, scale=1 / 2).logpdf(s["noise_rate"]))
    k = len(p.branch_levels)
    rate = 2 / 0.5 ** np.arange(k)
    alpha = s["concentration"][list(p.branch_levels)]
    assert_allclose(got["concentration"], stats.gamma(2, scale=1 / rate).logpdf(alpha).sum())
    if branch_scale == "loadings":
        assert_allclose(got["score_precision"], stats.gamma(1).logpdf(s["score_precision"]).sum())
    if branch_scale != "none":
        assert_allclose(got["noise_scale"], stats.gamma(1).logpdf(s["noise_scale"]).sum())
    data = 0.0
    for x, b in zip(X, s["branch"], strict=True):
        D, seen = s["loadings"][_model.paths_of(s)[b]], ~np.isnan(x)
        covariance = np.diag(1 / (lam * s["noise_scale"][b]))
        for d, psi in zip(D, s["score_precision"][b], strict=True):
            covariance += np.outer(d, d) / psi
        if seen.any():
            law = stats.multivariate_normal(s["leaf_mean"][b][seen], covariance[np.ix_(seen, seen)])
            data += law.logpdf(x[seen])
    assert_allclose(got["data"], data, rtol=1e-9)
    assert sum(got.values()) == pytest.approx(_model.log_joint(s, X, p))


@every_scale
def test_scores_integrate_out(branch_scale):
    """log p(y, x) - log p(x | y) is log p(y), whatever x."""
    rng = np.random.default_rng(1)
    p = prior_of("tree", branch_scale=branch_scale)
    s, X = _model.draw_joint(p, 6, rng)
    X[0, 1] = X[2, 0] = X[2, 3] = np.nan
    X[4] = np.nan
    joint = _model.log_joint(s, X, p, scores="explicit")
    for i, b in enumerate(s["branch"]):
        D, seen = s["loadings"][_model.paths_of(s)[b]], ~np.isnan(X[i])
        w = s["noise_scale"][b] * s["noise_precision"]
        precision = np.diag(s["score_precision"][b]) + (D[:, seen] * w[seen]) @ D[:, seen].T
        rhs = (D[:, seen] * w[seen]) @ (X[i] - s["leaf_mean"][b])[seen]
        law = stats.multivariate_normal(np.linalg.solve(precision, rhs), np.linalg.inv(precision))
        joint -= law.logpdf(s["scores"][i])
    assert joint == pytest.approx(_model.log_joint(s, X, p), rel=1e-10)


@every_structure
def test_draws_have_the_structure(structure):
    p = prior_of(structure)
    s, X = _model.draw_joint(p, 50, np.random.default_rng(2))
    assert X.shape == (50, 4)
    assert np.isfinite(_model.log_joint(s, X, p))
    assert (s["parent"] < np.arange(len(s["parent"]))).all()
    assert (s["level"][s["leaf_node"]] == 3).all()
    if structure == "single":
        assert len(s["parent"]) == 3 and len(s["leaf_node"]) == 1
    if structure == "mixture":
        assert len(s["parent"]) == 3 * len(s["leaf_node"])
    if structure == "tree":
        assert (s["parent"] < 0).sum() == 1


@every_structure
@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("start", ["klines", "em", "kmeans"])
def test_starts(structure, holes, start):
    rng = np.random.default_rng(3)
    p = prior_of(structure, max_depth=6)
    X = rng.standard_normal((40, 4))
    X[rng.random(X.shape) < holes] = np.nan
    s = _model.start_state(X, p, rng, [3] * len(p.branch_levels), start)
    _model.checked_state(s, p, len(X))
    assert np.isfinite(_model.log_joint(s, X, p))
    assert set(s["branch"]) == set(range(len(s["leaf_node"])))
    assert len(s["leaf_node"]) > 1 or structure == "single"
    alone = _model.start_state(X, p, rng, [1] * len(p.branch_levels), start)
    assert len(alone["leaf_node"]) == 1


@pytest.mark.parametrize("start", ["klines", "em", "kmeans"])
def test_a_start_from_a_part_of_the_rows_places_all(start, monkeypatch):
    """Two clusters far apart, a tree from 60 of 400 rows: nobody is in the wrong branch."""
    monkeypatch.setattr(_model, "MOST_START_ROWS", 60)
    rng = np.random.default_rng(3)
    label = rng.integers(2, size=400)
    X = 0.2 * rng.standard_normal((400, 4)) * [3.0, 1.0, 1.0, 1.0] + 5.0 * label[:, np.newaxis]
    X -= X.mean(axis=0)
    X[rng.random(X.shape) < 0.1] = np.nan
    p = prior_of("mixture", n_features=4)
    state = _model.checked_state(_model.start_state(X, p, rng, (2,), start), p, 400)
    assert len(state["leaf_node"]) <= 2
    if start == "kmeans":  # the others look for lines through the origin, not for means
        assert adjusted_rand_score(label, state["branch"]) == 1.0


def test_k_lines_finds_lines():
    """Two zero-mean groups along different directions."""
    rng = np.random.default_rng(4)
    truth = np.repeat([0, 1], 100)
    axes = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]])
    X = rng.standard_normal((200, 1)) * 5 * axes[truth] + 0.1 * rng.standard_normal((200, 3))
    parts = _model.k_lines(X, np.arange(200), 2, rng)
    agreement = np.mean(np.isin(np.arange(200), parts[0]) == truth)
    assert max(agreement, 1 - agreement) > 0.9


def test_components_of_a_mixture_are_grouped_by_their_shapes():
    """Four zero-mean groups, two by two alike."""
    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(4), 300)
    sd = np.array([[3.0, 0.2, 0.2], [3.0, 1.5, 0.2], [0.2, 0.2, 3.0], [0.2, 1.5, 3.0]])
    X = rng.standard_normal((1200, 3)) * sd[truth]
    shapes = np.array([np.diag(s**2) / np.sum(s**2) for s in sd])
    label = _model.nearest_groups(_model.shape_distances(shapes), 2)
    np.testing.assert_array_equal(label, [0, 0, 1, 1])
    path = _model.grouped_components(X, [2, 2], rng)
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
    s = _model.start_state(X, p, rng, [4] if len(levels) == 1 else [2, 2], "kmeans")
    _model.checked_state(s, p, len(X))
    assert adjusted_rand_score(label, s["branch"]) == 1.0
    tops = _model.paths_of(s)[s["branch"]][:, levels[-1] - 1]
    if levels == (1, 2):
        assert adjusted_rand_score(label < 2, tops) == 1.0
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
    s = _model.start_state(X, p, rng, [4, 4], "kmeans")
    _model.checked_state(s, p, len(X))
    assert np.isfinite(_model.log_joint(s, X, p))
    assert len(s["leaf_node"]) == len(np.unique(X, axis=0))
    few = _model.start_state(X[:2], p, rng, [4, 4], "kmeans")
    assert len(few["leaf_node"]) <= 2


def test_the_same_k_means_start_from_the_same_seed():
    X, _ = clusters(np.random.default_rng(8), n_each=300)
    p = Prior(n_features=80, max_depth=4, branch_levels=(1, 2))
    one, other = (
        _model.start_state(X, p, np.random.default_rng(9), [4, 4], "kmeans") for _ in range(2)
    )
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
