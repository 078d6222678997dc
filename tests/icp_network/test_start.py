"""Where chains start: valid states of finite density, near the data where they can be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbnp.icp_network import _model
from skbnp.icp_network._model import Prior
from skbnp.icp_network._start import start_state

ROLES = {
    "columns at 0": lambda d: (("gaussian",) * d, (0.0,) * d),
    "free columns": lambda d: (("gaussian",) * d, (None,) * d),
    "mixed orders": lambda d: (("gaussian",) * d, (0.0, 1.0, 0.5, None, 0.9) * (d // 5)),
    "columns at 1": lambda d: (("gaussian",) * d, (1.0,) * d),
    "one output": lambda d: (("gaussian",) + ("input",) * (d - 1), (0.0,) + (1.0,) * (d - 1)),
    "two classes": lambda d: (("latent",) + ("input",) * (d - 1), (0.0,) + (1.0,) * (d - 1)),
    "three classes": lambda d: (("latent",) * 3 + ("input",) * d, (0.0,) * 3 + (1.0,) * d),
}
LAWS = {
    "default": {},
    "given": {"mass": 2.0, "concentration": 0.5, "observed_popularity": 3.0},
    "few nodes": {"max_units": 3},
    "one node": {"max_units": 1},
    "no node": {"max_units": 0},
}
SHAPES = {"usual": (40, 5), "wide": (6, 30), "two rows": (2, 5), "one row": (1, 5), "none": (0, 5)}
CASES = [("default", shape) for shape in SHAPES] + [(law, "usual") for law in list(LAWS)[1:]]
INITS = ("two-level", "gaussianised", "network", "empty", "prior")


def prior_of(roles, d, **law):
    roles, orders = ROLES[roles](d)
    return Prior(roles, orders, **law)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize(("law", "shape"), CASES)
@pytest.mark.parametrize("roles", ROLES)
def test_starts(law, roles, shape, init):
    rng = np.random.default_rng(0)
    n, d = SHAPES[shape]
    prior = prior_of(roles, d, **({"mass": 0.2, "max_units": 20} | LAWS[law]))
    if init == "prior" and law in ("one node", "no node"):
        prior = prior_of(roles, d, **(LAWS[law] | {"mass": 0.2, "max_units": 20}))
    if init == "network" and "input" not in prior.roles:
        with pytest.raises(ValueError, match="init"):
            start_state(np.zeros((n, d)), prior, rng, init, 4)
        return
    visible = rng.normal(size=(n, prior.n_observed))
    modelled = np.array([role == "gaussian" for role in prior.roles])
    latent = np.array([role == "latent" for role in prior.roles])
    holes = modelled & (rng.random(visible.shape) < 0.2)
    holes[:2] = False
    visible[holes] = np.nan
    visible[:, latent] = np.nan
    labels = rng.integers(max(2, latent.sum()), size=n) if latent.any() else None
    state = start_state(visible, prior, rng, init, 10, labels)
    _model.checked_state(state, prior, n)
    assert np.isfinite(_model.log_joint(state, prior))
    seen = ~np.isnan(visible)
    assert_array_equal(state["visible"][seen], visible[seen])
    if latent.any():
        assert_array_equal(_model.labels_of(state, prior), labels)


def test_latents_without_labels_are_drawn():
    prior = prior_of("three classes", 2)
    state = start_state(np.zeros((30, 5)), prior, np.random.default_rng(1), "empty", 4)
    assert len(np.unique(state["visible"][:, :3])) == 90


@pytest.mark.parametrize("shape", ["ring", "moons"])
def test_gaussianised_rows_come_back(shape):
    """What the layer says is near the rows, above it is standard normal."""
    rng = np.random.default_rng(2)
    angle = rng.uniform(0, 2 * np.pi, 400)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    if shape == "moons":
        X[:200] = np.abs(X[:200, 1:]) * [0, 1] + X[:200, :1] * [1, 0]
        X[200:] = [1, 0.5] - np.abs(X[200:, 1:]) * [0, 1] + X[200:, :1] * [1, 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0) + 0.05 * rng.normal(size=X.shape)
    prior = prior_of("columns at 0", 2)
    state = start_state(X, prior, rng, "gaussianised", 10)
    assert len(state["order"]) == 14
    top = state["pre_activations"][:, 10:]
    assert_allclose(top.mean(axis=0), 0.0, atol=1e-6)
    assert_allclose(top.std(axis=0), 1.0, rtol=0.02)
    assert abs(np.corrcoef(top.T)[0, 1]) < 0.1
    residual = X - _model.means_of(state, prior)[:, :2]
    assert np.mean(residual**2) < 0.2
    assert_allclose(state["unit_precision"][:2], 1 / np.mean(residual**2, axis=0))


def test_the_layer_from_inputs_to_outputs():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1]
    y = y / y.std() + 0.1 * rng.normal(size=300)
    prior = prior_of("one output", 3)
    state = start_state(np.column_stack([y, X]), prior, rng, "network", 10)
    residual = y - _model.means_of(state, prior)[:, 0]
    assert np.mean(residual**2) < 0.1
    labels = (y > 0).astype(np.intp)
    prior = prior_of("two classes", 3)
    state = start_state(np.column_stack([y, X]), prior, rng, "network", 10, labels)
    assert np.mean((_model.means_of(state, prior)[:, 0] > 0) == labels) > 0.9


def test_two_levels():
    X = np.random.default_rng(4).normal(size=(200, 3))
    state = start_state(X, prior_of("columns at 0", 3), np.random.default_rng(5), "two-level", 10)
    assert len(state["order"]) == 3 + 10 + 2
    parents = state["edges"][:, 0]
    assert_array_equal(np.bincount(parents), [0] * 3 + [3] * 10 + [10] * 2)
    assert_allclose(state["unit_precision"][:3], 1 / X.var(axis=0), rtol=0.3)


@pytest.mark.parametrize("init", INITS)
def test_the_same_start_from_the_same_seed(init):
    X = np.random.default_rng(7).normal(size=(50, 4))
    prior = prior_of("one output", 4)
    one, other = (start_state(X, prior, np.random.default_rng(8), init, 4) for _ in range(2))
    for name in one:
        assert_array_equal(one[name], other[name], err_msg=name)
