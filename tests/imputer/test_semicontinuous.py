"""Columns of numbers with one common value in two parts: what a model sees, and what it says."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbnp import BNPImputer, DirichletProcessMixture, TreeFactorModel
from skbnp.imputer._semicontinuous import TwoParts, common_value
from skbnp.mcmc.caller import judging
from skbnp.tables.columns import columns_of

SHORT = dict(n_chains=2, n_warmup=20, n_draws=20, random_state=0, n_jobs=1)
NAN = np.nan


def debts(n=300, seed=0):
    """(complete, given): whether one has a debt goes with a name, and its size with the income."""
    rng = np.random.default_rng(seed)
    has = rng.random(n) < 0.4
    income = rng.normal(size=n)
    debt = np.where(has, 8.0 + 2.0 * income + 0.5 * rng.normal(size=n), 0.0)
    home = np.where(rng.random(n) < 0.9, has, ~has)
    table = pd.DataFrame({"home": np.where(home, "own", "rent"), "income": income, "debt": debt})
    return table, table.assign(debt=table["debt"].mask(rng.random(n) < 0.25))


def column(values):
    return columns_of(np.array(values, dtype=float)[:, np.newaxis])[0]


# -- which columns


def test_common_values():
    rest = np.arange(1.0, 41.0)
    assert common_value(column([*[0.0] * 60, *rest])) == 0.0
    assert common_value(column([*[7.5] * 10, *rest, NAN])) == 7.5
    # Fewer cells, or less than a tenth of them, may be equal by chance.
    assert common_value(column([*[7.5] * 9, *rest])) is None
    assert common_value(column([*[0.0] * 11, *np.arange(1.0, 101.0)])) is None
    assert common_value(column([*[0.0] * 12, *np.arange(1.0, 101.0)])) == 0.0
    # Counts, in which zero is no more than the most frequent of many frequent values.
    assert common_value(column([*[0.0] * 40, *[1.0] * 10, *rest])) is None
    assert common_value(column([*[0.0] * 40, *[1.0] * 9, *rest])) == 0.0
    assert common_value(column([*[0.0] * 90, *[1.0] * 20, *rest])) == 0.0
    # No law can be learned of nearly no others.
    assert common_value(column([*[0.0] * 60, *rest[:5]])) == 0.0
    assert common_value(column([*[0.0] * 60, *rest[:4]])) is None
    assert common_value(columns_of(pd.DataFrame({"a": ["x"] * 9}))[0]) is None


def test_families_say_which_columns_are_real():
    table, _ = debts(60)
    table = table.assign(visits=np.r_[np.zeros(40, dtype=int), np.arange(20) % 7 + 1])
    auto = ["auto"] * 4
    assert TwoParts.of(table, auto).values == {2: 0.0}
    assert TwoParts.of(table, ["auto", "auto", "auto", "gaussian"]).values == {2: 0.0, 3: 0.0}
    assert TwoParts.of(table, ["auto", "auto", "poisson", "auto"]).values == {}
    # An array tells no kinds, and "auto" takes all of its columns for real.
    assert TwoParts.of(table[["income", "visits"]].to_numpy(), auto[:2]).values == {1: 0.0}


# -- a table in two parts


@pytest.mark.parametrize("kind", ["array", "objects", "pandas", "numbers as names", "polars"])
def test_parts_of_a_table(kind):
    X = np.array([[1.0, 0.0], [2.0, 3.0], [NAN, NAN], [4.0, 0.0]])
    given = {
        "array": X,
        "objects": X.astype(object),
        "pandas": pd.DataFrame(X, columns=["a", "b"], index=[3, 4, 5, 6]),
        "numbers as names": pd.DataFrame(X),
        "polars": pl.DataFrame(X, ["a", "b"]),
    }[kind]
    seen = TwoParts(2, {1: 0.0}).apart(given)
    assert type(seen) is type(given) and seen.shape == (4, 3)
    values = np.asarray(seen, dtype=float)
    assert_array_equal(values, [[1, NAN, 1], [2, 3, 0], [NAN, NAN, NAN], [4, NAN, 1]])
    if kind in ("pandas", "polars"):
        assert list(seen.columns) == ["a", "b", "b is 0"]
    if kind == "pandas":
        assert list(seen.index) == [3, 4, 5, 6]
    assert_array_equal(np.asarray(given, dtype=float), X)
    assert TwoParts(2, {}).apart(given) is given


def test_names_are_new():
    assert TwoParts(2, {0: 1.5}).names(["a", "a is 1.5"]) == ["a", "a is 1.5", "a is 1.5'"]


def test_moments_are_those_of_draws():
    rng = np.random.default_rng(0)
    p, mean, std, n = 0.3, 2.0, 0.7, 400_000
    parts = TwoParts(2, {0: -1.0})
    number, common = mean + std * rng.normal(size=n), (rng.random(n) < p).astype(float)
    drawn, other = parts.together([number, np.ones(n), common])
    assert_array_equal(other, 1.0)
    assert_array_equal(drawn == -1.0, common == 1.0)
    (found, _), (deviation, _) = parts.moments(
        [np.array([mean]), np.ones(1), np.array([p])], [np.array([std]), np.zeros(1), np.ones(1)]
    )
    error = drawn.std() / np.sqrt(n)
    assert abs(found[0] - drawn.mean()) < 4 * error
    # The fourth moment about the mean is at most that of the range.
    assert abs(deviation[0] - drawn.std()) < 4 * np.abs(drawn - drawn.mean()).max() / np.sqrt(n)
    assert_array_equal(parts.moments([np.array([2.0]), np.ones(1), np.array([0.0])])[0][0], 2.0)


# -- the imputer


def test_draws_have_the_common_value_as_often_as_the_cells_that_were_removed():
    table, given = debts()
    holes = given["debt"].isna().to_numpy()
    truth = table["debt"][holes].to_numpy()
    imputer = BNPImputer(random_state=0, n_jobs=1).fit(given)
    assert imputer.common_values_ == {2: 0.0}
    assert imputer.estimator_.covariance_type == "full"
    assert list(imputer.estimator_.families_) == [
        "categorical", "gaussian", "gaussian", "bernoulli"
    ]  # fmt: skip
    drawn = np.array([one["debt"][holes] for one in imputer.multiple(40)])
    # Of a row of the table, by the name alone: .9 of one kind.
    p = np.where(table["home"][holes] == "rent", 0.9 * 0.6, 0.1 * 0.6)
    p = p / (p + np.where(table["home"][holes] == "rent", 0.1 * 0.4, 0.9 * 0.4))
    assert_allclose((drawn == 0.0).mean(axis=0), p, atol=0.25)
    assert abs((drawn == 0.0).mean() - p.mean()) < 0.06
    low, high = (one["debt"][holes].to_numpy() for one in imputer.intervals())
    assert np.mean((low <= truth) & (truth <= high)) > 0.85
    filled = imputer.fit_transform(given)["debt"][holes]
    std = imputer.standard_deviations()["debt"][holes]
    assert_allclose(filled, drawn.mean(axis=0), atol=4 * 8.0 / np.sqrt(40))
    assert np.mean(np.abs(filled - truth) < 2 * std) > 0.85
    error = np.sqrt(np.mean((filled - truth) ** 2))
    income = table["income"][holes]
    # What one knows who knows the laws.
    best = (1 - p) * (8.0 + 2.0 * income)
    assert error < 1.15 * np.sqrt(np.mean((best - truth) ** 2))
    # One part alone is behind.
    whole = BNPImputer(random_state=0, n_jobs=1, semicontinuous=False).fit(given)
    assert list(whole.estimator_.families_) == ["categorical", "gaussian", "gaussian"]
    assert whole.estimator_.covariance_type == "diag" and whole.common_values_ == {}
    lows, highs = (one["debt"][holes].to_numpy() for one in whole.intervals())
    assert np.mean(high - low) < np.mean(highs - lows)


@pytest.mark.parametrize("form", ["frame", "objects", "polars"])
def test_new_rows_and_forms(form):
    table, given = debts(80)
    make = {"frame": lambda X: X, "objects": lambda X: X.to_numpy(dtype=object)}
    make = make.get(form, pl.from_pandas)
    imputer = BNPImputer(
        estimator=DirichletProcessMixture(**SHORT), random_state=0, add_indicator=True
    )
    filled = imputer.fit_transform(make(given))
    assert filled.shape == (80, 4)
    new = table.iloc[:5].assign(debt=NAN)
    out = np.asarray(imputer.transform(make(new)))
    assert out.shape == (5, 4) and np.isfinite(out[:, 2].astype(float)).all()
    drawn = np.array(
        [np.asarray(one)[:, 2].astype(float) for one in imputer.multiple(30, make(new))]
    )
    assert (drawn == 0.0).any() and (drawn != 0.0).any()
    assert list(imputer.get_feature_names_out(["home", "income", "debt"])) == [
        "home", "income", "debt", "missingindicator_debt"
    ]  # fmt: skip
    # A row without values, and one whose name is new.
    rows = table.iloc[:2].assign(home=[None, "tent"], income=NAN, debt=NAN)
    with pytest.warns(UserWarning, match="that fit has not seen, in column"):
        assert np.isfinite(np.asarray(imputer.transform(make(rows)))[:, 2].astype(float)).all()
    name = "x2" if form == "objects" else "debt"
    assert f"Many cells of {name} are 0: the model sees whether" in str(imputer.report())


@pytest.mark.parametrize(
    "family", ["auto", ["categorical", "gaussian", "gaussian"], {"home": "categorical"}]
)
def test_families_of_a_given_mixture(family):
    given = debts(60)[1]
    model = DirichletProcessMixture(family=family, **SHORT)
    imputer = BNPImputer(estimator=model).fit(given)
    assert list(imputer.estimator_.families_)[-2:] == ["gaussian", "bernoulli"]
    assert model.family is family


@pytest.mark.parametrize(
    ("family", "message"),
    [({"nobody": "gaussian"}, "'nobody'"), (["gaussian"], "one entry per column, 3, got 1")],
)
def test_families_that_are_wrong(family, message):
    with pytest.raises(ValueError, match=message):
        BNPImputer(estimator=DirichletProcessMixture(family=family, **SHORT)).fit(debts(60)[1])


def test_arrays_and_other_models():
    X = debts(60)[1][["income", "debt"]].to_numpy()
    imputer = BNPImputer(estimator=DirichletProcessMixture(**SHORT)).fit(X)
    assert imputer.estimator_.n_features_in_ == 3
    assert imputer.fit_transform(X).shape == X.shape
    tree = TreeFactorModel(max_depth=2, **SHORT)
    assert BNPImputer(estimator=tree).fit(X).estimator_.n_features_in_ == 2
    with pytest.raises(ValueError, match="semicontinuous"):
        BNPImputer(semicontinuous="yes").fit(X)


def test_numbers_that_are_not_there_are_not_judged():
    """R-hat and the warning of what is far out are not of the size of a debt that there is not."""
    table, given = debts(80)
    imputer = BNPImputer(estimator=DirichletProcessMixture(**SHORT)).fit(table)
    model = imputer.estimator_
    assert np.isnan(imputer.r_hat_) and np.isnan(model.X_imputed_["debt"]).sum() == 0
    far = np.isnan(model._training_cells.X)
    assert far.any()
    with pytest.warns(UserWarning, match="farther outside"):
        model._warn_of_far(far)
    with warnings.catch_warnings(), judging(model, imputer._cells(np.zeros((80, 3), dtype=bool))):
        warnings.simplefilter("error")
        model._warn_of_far(far)
    assert BNPImputer(estimator=DirichletProcessMixture(**SHORT)).fit(given).r_hat_ >= 1.0
