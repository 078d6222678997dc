"""Density of each training row given all others, against enumeration and against refits."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from checks.dirichlet_process_mixture import (
    case_data,
    case_prior,
    case_state,
    exact_posterior,
    make_sampler,
    vector_cases,
)
from checks.monte_carlo import mcse_mean, z_score
from checks.proofs import proof, record
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture._training_rows import TrainingRows
from skbnp.mcmc import diagnostics
from skbnp.samplers import MixtureSampler
from skbnp.units import Units

CASES = vector_cases()
IMPUTED = "gauss-full PY missing monotone"
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def log_density_given_others(case):
    """log p(x_i | X_-i) of each row, from the evidence with and without it."""
    found = []
    for i in range(len(case["X"])):
        without = {**case, "X": [row for t, row in enumerate(case["X"]) if t != i]}
        found.append(exact_posterior(case)[2] - exact_posterior(without)[2])
    return np.array(found)


@pytest.mark.parametrize("name", [name for name in CASES if name != IMPUTED])
def test_importance_identity(name):
    """The mean over the posterior of 1 / p(x_i | z_-i, X_-i) is 1 / p(x_i | X_-i)."""
    case = CASES[name]
    X, prior = case_data(case), case_prior(case)
    d = X.shape[1]
    rows = TrainingRows(X, prior, Units.unscaled(d))
    partitions, p, _ = exact_posterior(case)
    inverse = np.array([np.exp(-rows(case_state(case, label))) for label in partitions])
    assert_allclose(-np.log(p @ inverse), log_density_given_others(case), rtol=1e-8)


@proof(sweeps=(10_000, 100_000), seed=3)
def test_importance_identity_with_imputed_cells(size, seed):
    """The same by Monte Carlo: |z| < 4 for each of six rows, false alarm 4e-4."""
    case = CASES[IMPUTED]
    X, prior = case_data(case), case_prior(case)
    rows = TrainingRows(X, prior, Units.unscaled(2))
    sampler = make_sampler(X, prior, np.zeros(len(X), int), seed=seed)
    inverse = np.empty((size, len(X)))
    for t in range(len(inverse)):
        sampler.sweep()
        inverse[t] = np.exp(-rows(sampler.draw()))
    expected = np.exp(-log_density_given_others(case))
    z = [z_score(inverse[:, i], expected[i]) for i in range(len(X))]
    assert max(np.abs(z)) < 4, z
    # The test can fail: rows scored as if they had not been in the data.
    wrong = [
        (inverse[:, i].mean() - 1.05 * e) / mcse_mean(inverse[:, i]) for i, e in enumerate(expected)
    ]
    assert max(np.abs(wrong)) > 4


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (15, 2)), rng.normal(6, 1, (15, 2))]) * [1.0, 50.0]
    X[4, 1] = X[20, 0] = np.nan
    return X


@proof(draws=(1000, 4000), seed=0)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"covariance_type": "diag"},
        {"sampler": MixtureSampler(algorithm="parallel")},
    ],
)
def test_against_refits_without_the_row(table, options, size, seed):
    """elpd_i beside score_samples of a fit to the other rows, in the units of X.

    Defaults follow the data, so everything that does is fixed; what is left is Monte Carlo error.
    """
    fixed = dict(
        mean_prior=[3.0, 150.0],
        covariance_prior=np.diag([4.0, 1e4]),
        prior_scale=1.0,
        n_draws=size,
        predict_draws=4000,
        random_state=seed,
    )
    if options.get("covariance_type") == "diag":
        fixed["covariance_prior"] = [4.0, 1e4]
    mixture = DirichletProcessMixture(**fixed, **options).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loo = mixture.posterior_.loo(max_draws=4000)
    assert loo.elpd == pytest.approx(loo.elpd_i.sum())
    for i in (0, 4, 20, 29):
        refit = DirichletProcessMixture(**fixed, **options).fit(np.delete(table, i, axis=0))
        assert abs(record(loo.elpd_i[i] - refit.score_samples(table[[i]])[0])) < 0.1


def test_a_posterior_without_rows_says_so(table):
    posterior = DirichletProcessMixture(n_warmup=5, n_draws=5).fit(table).posterior_
    assert posterior.thin(2).loo is not None
    posterior.attach_rows(None)
    for method in (posterior.loo, posterior.log_likelihood, posterior.observed_data):
        with pytest.raises(ValueError, match="must know the training rows"):
            method()


def test_rows_come_back(table):
    mixture = DirichletProcessMixture(n_warmup=5, n_draws=5, random_state=0).fit(table)
    assert_allclose(mixture.posterior_.observed_data(), table, rtol=1e-14)
    density = mixture.posterior_.log_likelihood()
    assert density.shape == (4, 5, 30)
    assert mixture.posterior_.log_likelihood(max_draws=8).shape == (4, 2, 30)
    assert_allclose(mixture.posterior_.thin(5).log_likelihood()[:, 0], density[:, 4])


def test_units(table):
    """Rows in other units have a density that differs by the units alone."""
    options = dict(n_warmup=5, n_draws=5, random_state=0)
    one = DirichletProcessMixture(**options).fit(table).posterior_.log_likelihood()
    other = DirichletProcessMixture(**options).fit(table * [4.0, 0.5]).posterior_.log_likelihood()
    jacobian = np.where(np.isnan(table), 0.0, np.log([4.0, 0.5])).sum(axis=1)
    assert_allclose(other, one - jacobian, rtol=1e-10)


def test_sampled_hyperparameters_are_those_of_the_draw(table):
    mixture = DirichletProcessMixture(n_warmup=5, n_draws=5, random_state=0).fit(table)
    rows, draw = mixture._training_rows, mixture.posterior_[0, 0]
    part = replace(rows.prior.gaussian, mean_precision=draw["mean_precision"])
    fixed = replace(rows.prior, concentration=draw["concentration"], parts=(part,))
    assert_allclose(replace(rows, prior=fixed)(draw), rows(draw), rtol=1e-12)


# -- the figures


def test_loo_of_a_known_model():
    """Normal mean with a flat prior: leave-one-out densities in closed form."""
    rng = np.random.default_rng(0)
    x, n = rng.normal(size=50), 50
    mean = rng.normal(x.mean(), 1 / np.sqrt(n), size=(4, 1000))
    density = -0.5 * (x - mean[..., None]) ** 2 - 0.5 * np.log(2 * np.pi)
    found = diagnostics.loo(density)
    others = (x.sum() - x) / (n - 1)
    variance = 1 + 1 / (n - 1)
    exact = -0.5 * (x - others) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
    assert_allclose(found.elpd_i, exact, atol=0.02)
    assert found.se == pytest.approx(np.sqrt(n) * exact.std(), rel=0.02)
    assert found.n_draws == 4000
    assert "elpd=" in repr(found)


def test_heavy_tails_warn():
    rng = np.random.default_rng(0)
    density = rng.normal(scale=5.0, size=(2, 500, 3))
    with pytest.warns(UserWarning, match="Pareto's k is above .* for 3 of 3 rows"):
        diagnostics.loo(density)


def test_loo_needs_draws_and_numbers():
    with pytest.raises(ValueError, match="25 stored draws and 4 per chain, got 9 chains of 3"):
        diagnostics.loo(np.zeros((9, 3, 5)))
    with pytest.raises(ValueError, match="got 2 chains of 12"):
        diagnostics.loo(np.zeros((2, 12, 5)))
    with pytest.raises(ValueError, match="not NaN"):
        diagnostics.loo(np.full((2, 20, 5), np.nan))


@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
def test_loo_where_draws_tie(family):
    """A row without entries has a density of one but for rounding; partitions come back."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) + 3 * np.repeat([[-1], [1]], 20, axis=0)
    X = X if family == "gaussian" else (X > 0).astype(float)
    X[0] = np.nan
    options = dict(concentration=1.0, n_warmup=50, n_draws=60, random_state=0)
    with pytest.warns(UserWarning, match="no observed value"):
        mixture = DirichletProcessMixture(family=family, **options).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        loo = mixture.posterior_.loo()
    assert np.isfinite(loo.elpd)
    assert loo.elpd_i[0] == pytest.approx(0.0, abs=1e-12)
    assert loo.pareto_k[0] == -np.inf
