"""What is traced of training rows, and what fit says of chains."""

import pickle
import warnings

import numpy as np
import pytest

from checks.watched import table_with_holes
from skbnp import TreeFactorModel
from skbnp.estimators import chains
from skbnp.samplers import TreeSampler
from skbnp.tree_factor_model import _estimator

QUICK = {"n_chains": 2, "n_warmup": 20, "n_draws": 10, "random_state": 0}


def fitted(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TreeFactorModel(**{**QUICK, **options}).fit(X)


def warnings_of(X, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        TreeFactorModel(**{**QUICK, **options}).fit(X)
    return [str(one.message) for one in found]


def empty_row(X):
    return np.vstack([X, np.full((1, X.shape[1]), np.nan)])


@pytest.mark.parametrize(
    "X, options",
    [
        (table_with_holes(40), {}),
        (empty_row(table_with_holes(40)), {"tails": "t"}),
        (8.0 * table_with_holes(40), {"structure": "single", "scaling": "each"}),
        (table_with_holes(40), {"structure": "mixture", "branch_scale": "whole"}),
    ],
)
def test_log_density_is_that_of_single_draws(X, options):
    """The trace says of a draw what `score_samples` says with that draw alone."""
    model = fitted(X, **options)
    posterior = model.posterior_
    found = posterior.traces["log_density"].ravel()
    log_p = []
    for draw in posterior:
        model.posterior_ = type(posterior)([[draw]], {"log_joint": [[0.0]]})
        log_p.append(model.score_samples(X))
    np.testing.assert_allclose(found, np.mean(log_p, axis=1), rtol=1e-10)
    by_chain = np.array(log_p).reshape(2, 10, len(X))
    pooled = np.log(np.exp(by_chain).mean(axis=(0, 1))).mean()
    assert posterior.pool()["pooled"] == pytest.approx(pooled)


def test_the_trace_does_not_depend_on_what_new_rows_do():
    X = table_with_holes(40)
    traces = [
        fitted(X, new_branch=option).posterior_.traces["log_density"]
        for option in ("drop", "prior")
    ]
    np.testing.assert_array_equal(*traces)


def test_watched_rows_pickle():
    X = table_with_holes(40)
    model = fitted(X)
    density = model._density(X, np.arange(7))
    sampler = model._prepare(X)(np.random.PCG64(0), 0)
    sampler.set_state(model.posterior_.final_states[0])
    found = density(sampler)
    assert density.n_rows == 7
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(density))(sampler), found)


def test_branches_that_no_row_may_leave_are_named():
    """From one branch in many columns: new ones come from the prior, which suits no row."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 1)) * random.normal(size=200) + 0.1 * random.normal(size=(40, 200))
    options = {"max_depth": 3, "sampler": TreeSampler(init="single")}
    (said,) = warnings_of(X, **options)
    assert "n_branches never changed, and none of 2400 proposals" in said
    said = warnings_of(X, max_depth=3, structure="single")
    assert not any("never changed" in one for one in said)


def lengths(n_columns, **options):
    model = TreeFactorModel(**options)
    X = np.zeros((50, n_columns))
    n_chains = model._auto_n_chains(X) if model.n_chains == "auto" else model.n_chains
    return n_chains, *model._auto_lengths(X), model._is_ensemble(X.shape[1])


def test_wide_tables_have_many_short_chains():
    long = (4, 500, 200, False)
    assert lengths(39) == long
    assert lengths(40) == lengths(100) == (16, 110, 25, True)
    assert lengths(101) == lengths(101, structure="mixture") == (32, 50, 15, True)
    assert lengths(101, structure="single") == long
    # Numbers turn it off.
    assert lengths(101, n_warmup=30) == long
    assert lengths(101, n_chains=8) == (8, 500, 200, False)


def test_an_ensemble_is_not_asked_to_agree(monkeypatch):
    """It is warned of where more chains would gain, or longer ones; not where they differ."""
    monkeypatch.setattr(_estimator, "_CHAINS", ((5, 4, 20, 10), (0, 4, 20, 10)))
    X = np.random.default_rng(0).normal(size=(60, 6))
    X[:30] += 8.0
    options = {"n_chains": "auto", "n_warmup": "auto", "n_draws": "auto"}
    model = fitted(X, **options)
    assert (model.n_chains_, model.n_warmup_, model.n_draws_) == (4, 20, 10)
    assert max(model.posterior_.rhat().values()) > 1.05
    assert warnings_of(X, **options) == []
    judged, of_numbers = warnings_of(X, **options | {"n_chains": 4})
    assert "converged" in judged and of_numbers.startswith("the chains have ")
    monkeypatch.setattr(chains, "_LEAST_POOL_GAIN", 0.0)
    (said,) = warnings_of(X, **options)
    assert said.startswith("An ensemble of 4 short chains is too small: the chains found different")
    assert "raise n_chains" in said
