"""Where chains start: valid states of finite density, near the data where they can be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from checks.cibp_belief_net import make_sampler
from skbnp.cibp_belief_net import _model
from skbnp.cibp_belief_net._model import Prior
from skbnp.cibp_belief_net._start import start_state

LAWS = {
    "default": {},
    "one layer": {"max_layers": 1},
    "unbounded": {"max_layers": None},
    "skip connections": {"skip_connections": True},
    "row clusters": {"max_layers": 1, "row_clusters": True},
    "row clusters, three layers": {"max_layers": 3, "row_clusters": True},
    "given": {"mass": (1.0, 0.5), "concentration": (2.0,)},
    "bounded precisions": {"highest_precision": 4.0},
    "few units": {"max_units": 2},
    "no unit": {"max_units": 0},
}
SHAPES = {"usual": (40, 5), "wide": (6, 30), "two rows": (2, 4), "one column": (30, 1)}


@pytest.mark.parametrize("init", ["pca", "empty", "prior"])
@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("law", LAWS)
def test_starts(law, shape, holes, init):
    rng = np.random.default_rng(0)
    X = rng.normal(size=SHAPES[shape])
    X[2:][rng.random(X[2:].shape) < holes] = np.nan
    prior = Prior(X.shape[1], **LAWS[law])
    state = start_state(X, prior, rng, init, 20)
    _model.checked_state(state, prior, len(X))
    assert np.isfinite(_model.log_joint(state, prior))
    seen = ~np.isnan(X)
    assert_array_equal(state["visible"][seen], X[seen])
    sampler = make_sampler(prior, state, X)
    sampler.sweep()
    assert np.isfinite(sampler.log_joint())


def test_principal_components_explain_the_columns():
    """Two factors of ten columns: what is left is noise."""
    rng = np.random.default_rng(1)
    X = np.tanh(rng.normal(size=(300, 2)) @ rng.normal(size=(2, 10))) + 0.1 * rng.normal(
        size=(300, 10)
    )
    prior = Prior(10)
    state = start_state(X, prior, rng, "pca", 2)
    assert_array_equal(state["widths"], [10, 2])
    assert len(state["edges"]) == 20
    residual = X - _model.means_of(state)[:, :10]
    assert np.mean(residual**2) < 0.3 * X.var()
    assert_allclose(state["pre_activations"].std(axis=0), 1.5, rtol=1e-6)
    assert_allclose(state["unit_precision"][:10], 1 / residual.var(axis=0), rtol=0.2)


def test_no_more_components_than_there_are():
    X = np.random.default_rng(2).normal(size=(8, 4))
    rng = np.random.default_rng(3)
    assert start_state(X, Prior(4), rng, "pca", 50)["widths"][1] == 4
    assert start_state(X[:3], Prior(4), rng, "pca", 50)["widths"][1] == 3
    assert start_state(X, Prior(4, max_units=2), rng, "pca", 50)["widths"][1] == 2
    assert_array_equal(start_state(X, Prior(4), rng, "empty", 50)["widths"], [4])


def test_row_clusters_start_from_groups():
    rng = np.random.default_rng(4)
    label = np.repeat([0, 1, 2], 2)
    X = 10.0 * np.eye(3)[label] + 0.01 * rng.normal(size=(6, 3))
    prior = Prior(3, max_layers=1, row_clusters=True)
    state = start_state(X, prior, rng, "pca", 2)
    assert adjusted_rand_score(label, state["row_cluster"]) > 0.5
    assert state["cluster_mean"].shape == (state["row_cluster"].max() + 1, 2)
    two = np.repeat([[0.0, 1.0, 2.0], [3.0, -1.0, 2.5]], 8, axis=0)
    assert start_state(two, prior, rng, "pca", 2)["row_cluster"].max() == 1


def test_layers_up_to_the_row_clusters():
    X = np.random.default_rng(5).normal(size=(50, 8))
    prior = Prior(8, max_layers=3, row_clusters=True)
    state = start_state(X, prior, np.random.default_rng(6), "pca", 8)
    assert_array_equal(state["widths"], [8, 8, 4, 2])


def test_the_same_start_from_the_same_seed():
    X = np.random.default_rng(7).normal(size=(50, 8))
    for law in LAWS.values():
        one, other = (
            start_state(X, Prior(8, **law), np.random.default_rng(8), "pca", 4) for _ in range(2)
        )
        for name in one:
            assert_array_equal(one[name], other[name], err_msg=name)
