"""Missing cells of the training rows: moments over all sweeps, and `impute` that knows the rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.slow import slow_where
from skbnp import DirichletProcessMixture
from skbnp.samplers import MixtureSampler

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KINDS = ["full", "diag", "spherical"]
# One Gaussian under a prior in units of X: what is known of a cell does not depend on other cells.
ONE_GAUSSIAN = {
    **dict(n_components=1, concentration=1.0, mean_prior=[1.0, 0.0, -1.0], prior_scale=1.0),
    **dict(mean_precision_prior=0.5, degrees_of_freedom_prior=6.0, n_chains=2, random_state=0),
}
COVARIANCE = {
    "full": [[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]],
    "diag": [2.0, 1.0, 0.5],
    "spherical": 1.5,
}


def short(**options):
    options = dict(n_chains=2, n_warmup=5, n_draws=10, random_state=0) | options
    return DirichletProcessMixture(**options)


def holed(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + np.repeat([[0.0], [4.0]], n // 2, axis=0)
    X[np.arange(0, n, 2), rng.integers(3, size=n // 2)] = np.nan
    return X


def moments(model):
    return np.array(model.X_imputed_), np.array(model.X_imputed_std_)


@pytest.mark.parametrize("kind", KINDS)
def test_deviations_are_those_of_the_predictive_law(kind):
    """One hole: a t law, which a fit without the row says in closed form."""
    X = np.random.default_rng(1).normal(size=(15, 3))
    X[3, 1] = np.nan
    options = dict(covariance_type=kind, covariance_prior=COVARIANCE[kind]) | ONE_GAUSSIAN
    model = short(**options).fit(X)
    rest = short(**options).fit(np.delete(X, 3, axis=0))
    expected = rest.impute(X[3:4], return_std=True)
    assert_allclose([one[3] for one in moments(model)], np.squeeze(expected, 1), rtol=1e-9)
    assert np.count_nonzero(model.X_imputed_std_) == 1


@pytest.mark.parametrize("algorithm", slow_where(["parallel", "gibbs"], lambda one: one == "gibbs"))
@pytest.mark.parametrize("kind", slow_where(KINDS, lambda kind: kind != "full"))
def test_deviations_of_all_rows_at_once(kind, algorithm):
    """The same by total variance over drawn parameters: 2,000 nearly independent sweeps."""
    X = np.random.default_rng(1).normal(size=(15, 3))
    X[3, 1] = np.nan
    options = dict(covariance_type=kind, covariance_prior=COVARIANCE[kind]) | ONE_GAUSSIAN
    expected = moments(short(**options).fit(X))
    model = short(
        **{**options, "sampler": MixtureSampler(algorithm=algorithm), "n_draws": 1000}
    ).fit(X)
    (mean, std), (found, found_std) = expected, moments(model)
    assert abs(found[3, 1] - mean[3, 1]) < 0.05 * std[3, 1]
    assert_allclose(found_std[3, 1], std[3, 1], rtol=0.05)


@pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])
@pytest.mark.parametrize("kind", KINDS)
def test_training_rows_are_answered_with_their_own(kind, algorithm):
    X = holed()
    X[4] = [0.0, np.nan, 1.0]
    model = short(covariance_type=kind, sampler=MixtureSampler(algorithm=algorithm)).fit(X)
    X[4, 0] = -0.0
    order = np.random.default_rng(2).permutation(len(X))[:30]
    filled, std = model.impute(X[order], return_std=True)
    assert_array_equal(filled, model.X_imputed_[order])
    assert_array_equal(std, model.X_imputed_std_[order])
    assert filled[~np.isnan(X[order])].tobytes() == X[order][~np.isnan(X[order])].tobytes()


def test_other_rows_are_predicted():
    """One bit or one hole more makes a new row; a complete row lends no value to any."""
    X = holed()
    X[1] = X[3] = [0.3, 7.0, 0.1]
    X[5] = [0.3, np.nan, -0.2]
    # So many draws that the mean of some of them is within .5 of that of all, whatever the seed.
    model = short(n_warmup=100, n_draws=200).fit(X)
    new = np.array(
        [[0.3, np.nan, 0.1], [0.3, np.nan, np.nan], [0.3, np.nan, np.nextafter(-0.2, 0)]]
    )
    filled, std = model.impute(new, return_std=True)
    assert (np.abs(filled[:, 1] - 7) > 2).all()
    assert (std[:, 1] > 0).all()
    known = model.impute(X[5:6])[0, 1]
    assert known == model.X_imputed_[5, 1]
    assert 0 < abs(filled[2, 1] - known) < 0.5
    before = model.predict_draws
    model.set_params(predict_draws=1)  # known rows are answered by all sweeps
    assert model.impute(X[5:6])[0, 1] == known
    assert model.impute(new)[2, 1] != filled[2, 1]
    model.set_params(predict_draws=before)


def test_equal_training_rows_are_averaged_as_mixtures():
    X = holed()
    X[[0, 7, 8]] = [0.2, np.nan, 0.4]
    model = short().fit(X)
    mean, std = (one[[0, 7, 8], 1] for one in moments(model))
    assert len(set(mean)) == 3
    filled, found = model.impute(X[[8]], return_std=True)
    assert_allclose(filled[0, 1], mean.mean(), rtol=1e-12)
    assert_allclose(found[0, 1], np.sqrt(np.mean(std**2) + mean.var()), rtol=1e-12)


@pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])
def test_every_kind_of_column(algorithm):
    rng = np.random.default_rng(3)
    group = rng.integers(2, size=60)
    table = pd.DataFrame(
        {
            "real": rng.normal(size=60) + 4 * group,
            "level": pd.Categorical(np.where(rng.random(60) < 0.9, group, 1 - group)).map(
                {0: "low", 1: "high"}
            ),
            "count": pd.array(rng.poisson(2 + 6 * group), dtype="Int64"),
            "flag": pd.array(rng.random(60) < 0.2 + 0.6 * group, dtype="boolean"),
            "other": rng.normal(size=60),
        },
        index=np.arange(60) + 100,
    )
    for j in range(4):
        table.iloc[j::6, j] = pd.NA if j else np.nan
    model = short(family="auto", sampler=MixtureSampler(algorithm=algorithm), n_draws=20).fit(table)
    std = model.X_imputed_std_
    assert list(std.columns) == list(table.columns) and std.index.equals(table.index)
    assert ((std > 0) == table.isna()).all().all()
    assert (std[["level", "flag"]] <= 0.5).all().all()
    seen = [0, 1, 2, 3, 11, 20, 33]
    filled, spread = model.impute(table.iloc[seen], return_std=True)
    pd.testing.assert_frame_equal(spread, std.iloc[seen])
    assert (filled == model.X_imputed_.iloc[seen]).all().all()


def test_missing_cells_alone_are_kept():
    """Of a column of levels their probabilities, of any other a number; nothing of the rest."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.normal(size=(40, 6)), columns=list("abcdef"))
    table["level"] = pd.Categorical(rng.integers(3, size=40), [0, 1, 2])
    table.iloc[::4, 1] = table.iloc[::8, 6] = np.nan
    model = short(family="auto").fit(table)
    cells = model._training_cells
    assert len(cells.mean) == len(cells.variance) == 10 + 3 * 5
    p = cells.moments([[place] for place in range(10)])[0][::2, -3:]
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(model.X_imputed_["level"][::8], p.argmax(axis=1))


def test_complete_tables_have_none():
    model = short().fit(np.random.default_rng(4).normal(size=(20, 2)))
    with pytest.raises(AttributeError, match="X_imputed_std_ is there once fit has seen"):
        model.X_imputed_std_  # noqa: B018
    assert np.isfinite(model.impute([[np.nan, 1.0]])).all()


def test_an_infinite_variance_survives_files(tmp_path):
    """A t law of two degrees of freedom at most has none: one value says no more."""
    X = np.array([[0.1, np.nan], [2.0, np.nan], [1.0, 0.5], [3.0, np.nan]])
    options = dict(covariance_type="diag", covariance_prior=[1.0, 1.0], n_draws=4)
    options["degrees_of_freedom_prior"] = 0.5
    model = short(**options, checkpoint=tmp_path).fit(X)
    assert np.isinf(model.X_imputed_std_[0, 1]) and np.isfinite(model.X_imputed_).all()
    model.save(tmp_path / "file")
    again = DirichletProcessMixture.load(tmp_path / "file")
    assert_array_equal(again.X_imputed_std_, model.X_imputed_std_)
    longer = short(**options | {"n_draws": 6}, checkpoint=tmp_path).fit(X)
    whole = short(**options | {"n_draws": 6}).fit(X)
    assert_array_equal(moments(longer), moments(whole))
