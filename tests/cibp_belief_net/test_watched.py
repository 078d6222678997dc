"""The trace ``log_density``: what it is, and that chains say by it what ails them."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from skbnp import CIBPBeliefNet
from skbnp.cibp_belief_net._predictive import densities_around_modes, densities_by_fantasies
from skbnp.cibp_belief_net._training_rows import WatchedRows
from skbnp.likelihoods.nonlinear_gaussian._fantasies import Noise


class Standing:
    """A sampler that stands at a draw."""

    def __init__(self, draw):
        self._draw = draw

    def draw(self):
        return self._draw


def quiet(**options):
    options = dict(n_chains=2, n_warmup=10, n_draws=8, random_state=0) | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CIBPBeliefNet(**options)


@pytest.mark.parametrize("n_features", [3, 9])
def test_with_row_clusters_the_trace_is_that_of_the_draws(n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, n_features)) * 3.0 + rng.normal(size=(60, 1))
    X[rng.random(X.shape) < 0.1] = np.nan
    net = quiet(max_layers=2, row_clusters=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        net.fit(X)
    rows = net._watched_rows(len(X))
    density = net._density(X, rows)
    found = [[density(Standing(draw)) for draw in chain] for chain in net.posterior_.all_draws()]
    assert density.n_rows == (60 if n_features == 3 else 50)
    assert_array_equal(net.posterior_.traces["log_density"], np.mean(found, axis=2))
    pooled = np.logaddexp.reduce(np.concatenate(found), axis=0) - np.log(16)
    assert_allclose(net.posterior_.pool()["pooled"], pooled.mean(), rtol=1e-12)


@pytest.mark.parametrize("n_features", [5, 10])
@pytest.mark.parametrize("max_layers", [1, 3])
def test_the_trace_is_near_the_density_under_a_draw(n_features, max_layers):
    rng = np.random.default_rng(3)
    X = np.tanh(rng.normal(size=(60, 2)) @ rng.normal(size=(2, n_features)))
    X += 0.02 * rng.normal(size=X.shape)
    X[5, :3] = np.nan
    net = quiet(n_chains=1, n_warmup=200, max_layers=max_layers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        net.fit(X)
    density = net._density(X, np.arange(60))
    sampler = net._prepare(X)(np.random.PCG64(0), 0)
    sampler.set_state(net.posterior_.final_states[0])
    state, rows = sampler.get_state(), [7, 5, 30]
    every = np.hstack([state["visible"], state["pre_activations"]])
    assert_array_equal(sampler.state.pre_activations(rows), every[rows])
    found = density(sampler)
    assert_array_equal(pickle.loads(pickle.dumps(density))(sampler), found)
    rows = np.linspace(0, 60, len(found), endpoint=False).astype(int)
    A = net._units.to_visible(X[rows])
    exact, _ = densities_around_modes(sampler.draw(), A, 1, 0, 20_000)
    found = found - net._units.log_jacobian(X[rows])
    # Fifty points around one mode are low by a nat.
    assert abs(np.mean(found - exact)) < 1.5
    if n_features == 5:
        few, _ = densities_by_fantasies(sampler.draw(), A, Noise(0, 500))
        assert np.mean(few - exact) < -5.0


@pytest.mark.parametrize("n_features", [3, 9])
def test_the_trace_is_in_the_units_of_the_table(n_features):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, n_features))
    X[rng.random(X.shape) < 0.1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        here, there = (quiet(max_layers=2).fit(scale * X) for scale in (1.0, 4.0))
    # A factor of two changes no digit of what is sampled, so that the draws are the same.
    n_observed = np.isfinite(X).sum(axis=1).mean()
    assert_allclose(
        there.posterior_.traces["log_density"],
        here.posterior_.traces["log_density"] - n_observed * np.log(4.0),
        rtol=1e-9,
    )


def test_little_noise_is_told_from_a_bad_fit():
    """Few fantasies are near a row then, and by them alone it would be hundreds of nats too low."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 5)) + 0.02 * rng.normal(size=(80, 5))
    net = quiet(n_warmup=150, max_layers=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        net.fit(X)
        trace, score = net.posterior_.traces["log_density"], net.score(X)
    assert np.ptp(trace.mean(axis=1)) < 2.0
    assert abs(trace.mean() - score) < 2.0


def test_skip_connections_in_many_columns_have_no_trace():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        few = quiet(skip_connections=True).fit(rng.normal(size=(20, 8)))
        many = quiet(skip_connections=True).fit(rng.normal(size=(20, 9)))
    assert "log_density" in few.posterior_.traces
    assert "log_density" not in many.posterior_.traces
    assert not many.posterior_.pool()
    assert not WatchedRows.can_watch(many._prior)


def test_chains_that_are_too_short_are_still_improving():
    X, _ = make_moons(1000, noise=0.1, random_state=103)
    with pytest.warns(ConvergenceWarning, match="still improving") as caught:
        CIBPBeliefNet(n_warmup=1, n_draws=20, random_state=0).fit(X)
    assert "log_density" in str(caught[0].message)
    assert "log_joint" not in str(caught[0].message)


def test_work_that_auto_allows_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(CIBPBeliefNet, "_auto_work", lambda self, n_rows: 1.0 / 300.0)
    X = np.random.default_rng(0).normal(size=(40, 3)) ** 3
    net = CIBPBeliefNet(max_layers=1, n_chains=2, n_draws=10, random_state=0)
    with pytest.warns(ConvergenceWarning, match="when max_work=0.00333 was spent"):
        net.fit(X)
    path = tmp_path / "net.skbnp"
    net.save(path)
    assert "max_work=auto" in str(CIBPBeliefNet.load(path).report())
