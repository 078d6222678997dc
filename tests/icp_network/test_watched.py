"""The trace ``log_density``: what the rows that it watches have under a draw."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import norm

from skbnp import ICPNetwork, ICPNetworkClassifier, ICPNetworkRegressor
from skbnp.icp_network._model import activations_from
from skbnp.icp_network._outputs import Outputs
from skbnp.icp_network._predictive import log_densities, predicted

pytestmark = pytest.mark.filterwarnings("ignore")
SHORT = dict(n_chains=1, n_warmup=8, n_draws=2, random_state=0)


def table(n_columns):
    X = np.random.default_rng(0).normal(size=(40, n_columns))
    X[:20] += 2.0
    return X


def watched(model, X):
    """The density of rows, and a sampler at the end of the only chain."""
    density = model._density(X, np.arange(len(X)))
    sampler = model._prepare(X)(np.random.PCG64(0), 0)
    sampler.set_state(model.posterior_.final_states[0])
    assert density.n_rows == len(density(sampler))
    assert_array_equal(pickle.loads(pickle.dumps(density))(sampler), density(sampler))
    return density, sampler


def test_of_few_columns_it_is_that_of_its_fantasies():
    X = table(3)
    X[3, 1] = np.nan
    X[4] = np.nan
    model = ICPNetwork(**SHORT).fit(X)
    density, sampler = watched(model, X)
    draw, rows = sampler.draw(), model._training_rows
    noise = np.random.default_rng(0).standard_normal((2 * len(draw["order"]), 500))
    noise = noise[: len(draw["order"])].T.copy()
    noise[:, :3] = 0.0  # so that columns are at their means
    mean = activations_from(draw, model._prior, noise)[:, :3]
    spread = draw["unit_precision"][:3] ** -0.5
    log_p = norm.logpdf(rows.visible[:, np.newaxis], mean, spread)
    expected = logsumexp(np.nansum(log_p, axis=2), axis=1) - np.log(500)
    assert_allclose(density(sampler), expected + rows.log_jacobian, atol=1e-9)
    assert density(sampler)[4] == 0.0


def test_of_many_columns_it_is_importance_sampling_of_some_rows():
    X = table(10)
    density, sampler = watched(ICPNetwork(**SHORT).fit(X), X)
    assert density.n_rows == 20
    assert np.isfinite(density(sampler)).all()


def test_of_many_columns_it_is_near_the_density_under_a_draw():
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(60, 2))
    X = np.tanh(factors @ rng.normal(size=(2, 10))) + 0.03 * rng.normal(size=(60, 10))
    X[5, :4] = np.nan
    model = ICPNetwork(n_chains=1, n_warmup=300, n_draws=2, random_state=0).fit(X)
    density, sampler = watched(model, X)
    draw, A = sampler.draw(), model._training_rows.visible[::3]
    state, rows = sampler.get_state(), [7, 5, 30]
    every = np.hstack([state["visible"], state["pre_activations"]])
    assert_array_equal(sampler.state.pre_activations(rows), every[rows])
    exact, _ = log_densities(draw, model._prior, A, 1, 0, "importance", 2000, 20000)
    apart = density(sampler) - model._training_rows.log_jacobian[::3] - exact
    assert np.abs(np.mean(apart)) < 0.5
    # By fantasies alone they are off by more.
    few, _ = log_densities(draw, model._prior, A, 1, 0, "fantasies", 500)
    assert np.mean(np.abs(few - exact)) > 10 * np.mean(np.abs(apart))


def test_of_targets_it_is_their_density_given_the_features():
    X = table(3)
    y = X[:, 0] + 0.1 * X[:, 1] ** 2
    model = ICPNetworkRegressor(**SHORT).fit(X, y)
    density, sampler = watched(model, np.column_stack([X, y]))
    rows = model._training_rows
    exact, _ = log_densities(sampler.draw(), model._prior, rows.visible, 1, 0, "fantasies", 4000)
    assert np.median(np.abs(density(sampler) - exact - rows.log_jacobian)) < 0.2
    model = ICPNetworkClassifier(**SHORT).fit(X, y > 0)
    density, sampler = watched(model, np.column_stack([X, y > 0]))
    rows = model._training_rows
    p, _ = predicted(sampler.draw(), model._prior, rows.visible, 1, 0, 4000)
    assert_allclose(np.exp(density(sampler)), p[np.arange(40), rows.labels], atol=0.15)


def test_of_a_skewed_target_it_is_too_low_by_far_less_than_without_a_kernel():
    # Its own node has little noise: of twenty fantasies none is near a value far out.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.exp(2.0 * rng.normal(size=200))
    options = dict(n_chains=1, n_warmup=60, n_draws=2)
    off = []
    for seed in range(4):
        model = ICPNetworkRegressor(**options, random_state=seed).fit(X, y)
        density, sampler = watched(model, np.column_stack([X, y]))
        rows, draw = model._training_rows, sampler.draw()
        exact, _ = log_densities(draw, model._prior, rows.visible, 1, 0, "fantasies", 4000)
        outputs = Outputs(draw, model._prior, density._noise_of(len(draw["order"])))
        without = outputs.log_densities(rows.visible, None, False)
        off.append([density(sampler) - rows.log_jacobian - exact, without - exact])
    mean, worst = np.mean(off, axis=2), np.min(off, axis=2)
    assert (mean[:, 0] > -5.0).all()
    assert mean[:, 0].sum() > 0.3 * mean[:, 1].sum()
    assert worst[:, 0].sum() > 0.5 * worst[:, 1].sum()


def test_the_kernel_has_the_width_of_silvermans_rule():
    X = table(2)
    model = ICPNetworkRegressor(**SHORT).fit(X, X + 0.1)
    density, sampler = watched(model, np.column_stack([X, X + 0.1]))
    draw, A = sampler.draw(), model._training_rows.visible
    noise = density._noise_of(len(draw["order"]))
    values = noise.T.copy()
    values[:, :2] = 0.0  # so that targets are at their means
    spread = draw["unit_precision"][:2] ** -0.5
    found = Outputs(draw, model._prior, noise).log_densities(A, None, True)
    for row, one in zip(A, found, strict=True):
        values[:, 2:4] = row[2:]
        mean = activations_from(draw, model._prior, values)[:, :2]
        # Two targets, twenty fantasies: (4 / (4 * 20)) ** (2 / 6) of the variance of the means.
        width = np.sqrt(spread**2 + 0.05 ** (1 / 3) * mean.var(axis=0))
        expected = logsumexp(norm.logpdf(row[:2], mean, width).sum(axis=1)) - np.log(20)
        assert one == pytest.approx(expected, abs=1e-9)
