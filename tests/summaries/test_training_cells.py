"""What chains say of missing cells, and how far they differ."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbnp import BNPImputer, DirichletProcessMixture, ICPNetwork, TreeFactorModel
from skbnp.mcmc.diagnostics import rhat
from skbnp.summaries.training_cells import TrainingCells, over_chains, r_hat


def moments(draws):
    """As `over_chains` wants them, of draws (n_draws, n_cells)."""
    return float(len(draws)), draws.mean(axis=0), len(draws) * draws.var(axis=0)


def test_r_hat_is_that_of_draws_but_for_their_number():
    rng = np.random.default_rng(0)
    draws = (
        rng.normal(size=(4, 5000, 1)) + np.array([0.0, 0.3, -0.2, 0.5])[:, np.newaxis, np.newaxis]
    )
    within, between = draws.var(axis=1).mean(), draws.mean(axis=1).var(ddof=1)
    found = r_hat([moments(one) for one in draws])
    assert_allclose(found, np.sqrt(1 + between / within), rtol=1e-12)
    assert_allclose(found, rhat(draws[:, :, 0]), rtol=0.01)


def test_r_hat_is_the_mean_square_over_cells():
    square = np.array([2.0, 2.0])
    apart = [(2.0, np.array([0.0, 0.0]), square), (2.0, np.array([2.0, 0.0]), square)]
    # Means 0 and 2 have the variance 2, and cells that of 1.
    assert_allclose(r_hat(apart), np.sqrt(1 + (2.0 + 0.0) / 2))


def test_r_hat_sees_that_spreads_differ():
    """As R-hat of distances from the median does, the other part of the rank-normalised one."""
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4, 20000)) * np.array([1.0, 1.5, 0.8, 1.2])[:, np.newaxis]
    found = r_hat([moments(one[:, np.newaxis]) for one in draws])
    assert_allclose(found, rhat(np.abs(draws)), rtol=0.02)
    assert found > 1.05


def test_levels_of_a_cell_count_as_one_cell():
    """However many levels a column has, it hides no number on which chains differ."""
    number = [(2.0, np.array([m]), np.array([2.0])) for m in (0.0, 1.0)]
    levels = [(2.0, np.full(10, 0.1), np.full(10, 0.18))] * 2
    both = [
        (2.0, np.concatenate([a[1], b[1]]), np.concatenate([a[2], b[2]]))
        for a, b in zip(number, levels, strict=True)
    ]
    found = r_hat(both, np.array([0, *[1] * 10]))
    assert_allclose(found**2 - 1, (r_hat(number) ** 2 - 1) / 2)
    # Of a row that lacks a number and a name with ten levels.
    cells = TrainingCells.of(np.full((1, 2), np.nan), np.array([0, *[1] * 10]), both)
    assert cells.r_hat == found


@pytest.mark.parametrize("square, expected", [(np.inf, 1.0), (0.0, np.inf)])
def test_r_hat_at_the_ends(square, expected):
    assert r_hat([(2.0, np.array([m]), np.array([square])) for m in (0.0, 1.0)]) == expected
    same = [(2.0, np.array([1.0]), np.array([0.0]))] * 2
    assert r_hat(same) == 1.0


def test_r_hat_of_the_cells_that_are_judged():
    X, columns = np.array([[np.nan, np.nan], [1.0, np.nan]]), np.arange(2)
    means, one = np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 2.0]]), np.ones(3)
    chains = [(10.0, mean, 10.0 * one) for mean in means]
    whole = TrainingCells.of(X, columns, chains)
    judged = np.array([[False, True], [True, True]])
    found = TrainingCells.of(X, columns, chains, judged)
    assert_allclose(found.r_hat, np.sqrt(1 + (0.0 + 2.0) / 2))
    assert_allclose(whole.r_hat, np.sqrt(1 + (40.5 + 0.0 + 2.0) / 3))
    assert np.array_equal(found.mean, whole.mean)
    assert np.isnan(TrainingCells.of(X, columns, chains, np.zeros((2, 2), dtype=bool)).r_hat)


def test_r_hat_of_one_chain_or_no_cell_is_unknown():
    assert np.isnan(r_hat([(2.0, np.zeros(3), np.ones(3))]))
    assert np.isnan(r_hat([(2.0, np.zeros(0), np.zeros(0))] * 2))
    assert np.isnan(TrainingCells.of(np.ones((2, 1)), np.arange(1), []).r_hat)


@pytest.fixture
def X():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 1)) * [1.0, 2.0] + 0.5 * rng.normal(size=(30, 2))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


@pytest.mark.parametrize(
    "make", [DirichletProcessMixture, TreeFactorModel, ICPNetwork], ids=lambda one: one.__name__
)
def test_chains_apart_are_seen_by_every_model(make, X):
    """Pooled moments of the cells are those of the chains, whose differences r_hat tells."""
    short = dict(n_warmup=10, n_draws=10, random_state=0)
    two = make(n_chains=2, **short).fit(X)
    cells = two._training_cells
    ones = [make(n_chains=1, **short).fit(X)._training_cells]
    assert np.isnan(ones[0].r_hat) and 1.0 < cells.r_hat < 2.0
    # The first chain is the same alone; the other follows from both.
    n = 10.0
    first = (n, ones[0].mean, n * ones[0].variance)
    mean = 2 * cells.mean - ones[0].mean
    square = 2 * n * cells.variance - first[2] - n / 2 * (first[1] - mean) ** 2
    assert_allclose(r_hat([first, (n, mean, square)]), cells.r_hat, rtol=1e-6)
    assert_allclose(over_chains([first, (n, mean, square)])[0], cells.mean)


def test_the_imputer_has_it(X):
    imputer = BNPImputer(
        estimator=DirichletProcessMixture(n_chains=2, n_warmup=10, n_draws=10), random_state=0
    ).fit(X)
    assert imputer.r_hat_ == imputer.estimator_._training_cells.r_hat
