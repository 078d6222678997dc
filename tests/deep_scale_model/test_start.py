"""Where chains start: valid states of finite density, near the data where they can be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbnp.deep_scale_model._estimator import _make_sampler
from skbnp.deep_scale_model._model import Prior, checked_state, log_joint
from skbnp.deep_scale_model._sampler import Sampler
from skbnp.deep_scale_model._start import start_state
from skbnp.laws import Normal
from skbnp.numerics.scaling import column_means

LAWS = {
    "default": {},
    "given": {"mass": 3.0, "drift": 0.5, "noise_variance": 0.05},
    "drift and location": {"drift": Normal(0.0, 1.0), "location_variance": 100.0},
    "finite": {"birth_move": "finite", "mass": 3.0},
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


@pytest.mark.parametrize("n_factors", [0, 3])
@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("law", LAWS)
def test_starts(law, shape, holes, n_factors):
    X, options = table(shape, holes), dict(LAWS[law])
    if "noise_variance" in options:
        options["noise_variance"] = np.full(X.shape[1], options["noise_variance"])
    prior = Prior(**options)
    state = start_state(X, prior, np.random.default_rng(2), n_factors)
    assert state["loadings1"].shape == (X.shape[1], n_factors)
    state = checked_state(state, prior, *X.shape)
    assert np.isfinite(log_joint(state, X, prior))
    loud = start_state(X, prior, np.random.default_rng(2), n_factors, annealed=True)
    variance = column_means((X - state["location"]) ** 2)
    seen = variance > 0
    assert_allclose(loud["noise_variance"][seen], variance[seen])


@pytest.mark.parametrize("noise", [None, 0.05])
def test_annealed_noise_goes_down_linearly_in_its_logarithm(noise):
    X = 3.0 * table("usual", 0.0)
    prior = Prior() if noise is None else Prior(noise_variance=np.full(6, noise))
    state = start_state(X, prior, np.random.default_rng(0), annealed=True)
    chain = Sampler(X, prior, state, np.random.PCG64(0), n_anneal=5)
    found = []
    for step in range(6):
        found.append(np.log(chain.draw()["noise_variance"]))
        chain.adapt(step)
    last = np.log(0.05)  # 0.1 / 2 where it is sampled from then on
    assert_allclose(found, np.linspace(np.log(np.mean(X**2, axis=0)), last, 6, axis=0))


@pytest.mark.parametrize("n_anneal", [0, 5])
def test_chains_of_the_estimator_start_from_the_noise_that_they_anneal(n_anneal):
    X, given = table("usual", 0.0), np.full(6, 0.01)
    chain = _make_sampler(
        np.random.PCG64(0),
        0,
        X=X,
        prior=Prior(noise_variance=given),
        n_init_factors=2,
        n_anneal=n_anneal,
    )
    noise = chain.draw()["noise_variance"]
    assert_allclose(noise, np.mean(X**2, axis=0) if n_anneal else given)


@pytest.mark.parametrize(
    "X", [np.zeros((8, 3)), np.full((5, 2), np.nan), np.ones((1, 4))], ids=["0", "NaN", "1"]
)
def test_nothing_to_start_from(X):
    state = start_state(X, Prior(), np.random.default_rng(0))
    assert np.isfinite(log_joint(state, X, Prior()))
