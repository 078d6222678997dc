"""Simulated truth is found from the default start."""

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from checks.proofs import proof, record
from skbnp import TreeFactorModel
from skbnp.samplers import TreeSampler
from skbnp.tree_factor_model._model import Prior
from skbnp.tree_factor_model._new_chain import filled_rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def planted(seed, n=400, n_features=24):
    """Four leaves, two by two, L = 4."""
    rng = np.random.default_rng(seed)
    label, X = rng.integers(4, size=n), np.empty((n, n_features))
    root, pair = rng.normal(size=n_features) * 1.5, rng.normal(size=(2, n_features)) * 1.2
    for b in range(4):
        own = rng.normal(size=(2, n_features)) * np.array([[1.0], [0.8]])
        D, rows = np.vstack([root, pair[b // 2], own]), label == b
        mean = rng.normal(size=n_features) * 0.5
        X[rows] = mean + rng.normal(size=(rows.sum(), 4)) @ D
    return X + 0.5 * rng.normal(size=X.shape), label


def short(**changes):
    options = dict(max_depth=4, branch_levels=(1, 2), n_chains=2, n_warmup=400, n_draws=50)
    return TreeFactorModel(**(options | {"random_state": 0} | changes))


@proof(seed=0)
@pytest.mark.parametrize(
    "path_update, branch_scale", list(product(["slice", "collapsed"], ["loadings", "none"]))
)
def test_planted_tree(branch_scale, path_update, seed):
    X, label = planted(0)
    sampler = TreeSampler(path_update=path_update)
    model = short(branch_scale=branch_scale, sampler=sampler, random_state=seed).fit(X)
    assert record(adjusted_rand_score(label, model.labels_)) > 0.9
    assert record(adjusted_rand_score(label, model.predict(X))) > 0.9


@proof(seed=0)
def test_planted_tree_with_holes(seed):
    X, label = planted(1)
    holes = X.copy()
    holes[np.random.default_rng(2).random(X.shape) < 0.3] = np.nan
    model = short(random_state=seed).fit(holes)
    assert record(adjusted_rand_score(label, model.labels_)) > 0.9
    missing = np.isnan(holes)
    filled, std = model.impute(holes, return_std=True)
    error = (filled - X)[missing]
    by_mean = (np.broadcast_to(np.nanmean(holes, axis=0), X.shape) - X)[missing]
    assert np.mean(error**2) < 0.25 * np.mean(by_mean**2)
    # Calibrated: standardised errors of about unit size.
    assert 0.8 < record(np.sqrt(np.mean((error / std[missing]) ** 2))) < 1.3


@proof(seed=0)
def test_branches_that_differ_beat_one_branch(seed):
    X, _ = planted(3)
    new, train = X[:100], X[100:]
    tree = short(random_state=seed).fit(train).score(new)
    single = short(structure="single", branch_levels="auto", random_state=seed).fit(train)
    # How likely a new row is under the one branch, next to the tree.
    assert record(np.exp(single.score(new) - tree)) < np.exp(-3)


@proof(seed=0)
def test_one_branch_is_factor_analysis(seed):
    """The covariance of simulated factors, against their truth."""
    rng = np.random.default_rng(4)
    D = rng.normal(size=(3, 10)) * np.array([[2.0], [1.5], [1.0]])
    X = rng.normal(size=(2000, 3)) @ D + 0.3 * rng.normal(size=(2000, 10)) + 5.0
    options = dict(structure="single", branch_levels="auto", max_depth=6, random_state=seed)
    model = short(**options).fit(X)
    sampled = model.sample(20_000, random_state=0)
    truth = D.T @ D + 0.09 * np.eye(10)
    assert record(np.abs(np.cov(sampled.T) - truth).max() / np.abs(truth).max()) < 0.1
    np.testing.assert_allclose(sampled.mean(axis=0), X.mean(axis=0), atol=0.1)


@proof(seed=0)
def test_inversion_of_few_measurements(seed):
    X, _ = planted(5)
    model = short(random_state=seed).fit(X[50:])
    Phi = np.random.default_rng(6).normal(size=(12, 24))
    back = model.invert(Phi, X[:50] @ Phi.T)
    least_norm = X[:50] @ Phi.T @ np.linalg.pinv(Phi).T
    error = np.mean((back - X[:50]) ** 2) / np.mean((least_norm - X[:50]) ** 2)
    assert record(error) < 0.3
    np.testing.assert_allclose(back @ Phi.T, X[:50] @ Phi.T, atol=1e-6)
    np.testing.assert_allclose(model.invert(Phi, Phi @ X[0]), back[0], atol=1e-9)


def test_chains_start_from_filled_rows():
    # Three of four entries of each row are missing; what is left tells the one big factor.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1)) + 0.1 * rng.normal(size=(300, 24))
    holed = np.where(rng.random(X.shape) < 0.75, np.nan, X)
    holes = np.isnan(holed)
    filled = filled_rows(holed, Prior(24, 4, branch_levels=(2, 4)), np.random.PCG64(0))
    assert np.array_equal(filled[~holes], X[~holes])
    # Given about six entries the variance of another is 0.01 + 0.01 / 6.
    assert np.mean((filled - X)[holes] ** 2) < 0.02
