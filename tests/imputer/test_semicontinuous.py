"""Columns of numbers with one common value in two parts: what a model sees, and what it says."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbnp import BNPImputer, DirichletProcessMixture, TreeFactorModel
from skbnp.imputer import default_model
from skbnp.imputer._semicontinuous import TwoParts, common_values
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


def short(X, **options):
    """An imputer whose model is the default one in shorter chains."""
    model = default_model(X, options.get("semicontinuous", True)).set_params(max_work=0.5)
    return BNPImputer(estimator=model, random_state=0, **options)


def column(values):
    return columns_of(np.array(values, dtype=float)[:, np.newaxis])[0]


# -- which columns


def test_common_values():
    rest = np.arange(1.0, 41.0)
    assert common_values(column([*[0.0] * 60, *rest])) == [0.0]
    assert common_values(column([*[7.5] * 10, *rest, NAN])) == [7.5]
    # Fewer cells, or less than a tenth of them, may be equal by chance.
    assert common_values(column([*[7.5] * 9, *rest])) == []
    assert common_values(column([*[0.0] * 11, *np.arange(1.0, 101.0)])) == []
    assert common_values(column([*[0.0] * 12, *np.arange(1.0, 101.0)])) == [0.0]
    # Counts, in which zero is no more than the most frequent of many frequent values.
    counts = np.repeat(rest, 3)
    assert common_values(column([*[0.0] * 40, *[1.0] * 17, *[2.0] * 12, *counts])) == []
    assert common_values(column([*[0.0] * 90, *[1.0] * 9, *rest])) == [0.0]
    # Both ends of a scale, the most frequent one first.
    assert common_values(column([*[0.0] * 20, *[99.0] * 30, *rest])) == [99.0, 0.0]
    assert common_values(column([*[0.0] * 9, *[99.0] * 80, *rest])) == [99.0]
    # No law can be learned of nearly no others, nor of infinite ones.
    assert common_values(column([*[0.0] * 60, *rest[:5]])) == [0.0]
    assert common_values(column([*[0.0] * 60, *rest[:4]])) == []
    assert common_values(column([*[-np.inf] * 60, *rest])) == []
    assert common_values(columns_of(pd.DataFrame({"a": ["x"] * 9}))[0]) == []


def test_families_say_which_columns_are_real():
    table, _ = debts(60)
    table = table.assign(visits=np.r_[np.zeros(40, dtype=int), np.arange(20) % 7 + 1])
    auto = ["auto"] * 4
    assert TwoParts.of(table, auto).common_values == {2: [0.0]}
    assert TwoParts.of(table, ["auto", "auto", "auto", "gaussian"]).common_values == {
        2: [0.0],
        3: [0.0],
    }
    assert TwoParts.of(table, ["auto", "auto", "poisson", "auto"]).steps == ()
    # An array tells no kinds, and "auto" takes all of its columns for real.
    assert TwoParts.of(table[["income", "visits"]].to_numpy(), auto[:2]).steps == ((1, 0.0),)


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
    seen = TwoParts(2, ((1, 0.0),), {1: (0.0, 3.0)}).apart(given)
    assert type(seen) is type(given) and seen.shape == (4, 3)
    values = np.asarray(seen, dtype=float)
    assert_array_equal(values, [[1, NAN, 1], [2, 3, 0], [NAN, NAN, NAN], [4, NAN, 1]])
    if kind in ("pandas", "polars"):
        assert list(seen.columns) == ["a", "b", "b is 0"]
    if kind == "pandas":
        assert list(seen.index) == [3, 4, 5, 6]
    assert_array_equal(np.asarray(given, dtype=float), X)
    assert TwoParts(2).apart(given) is given


def test_names_are_new():
    assert TwoParts(2, ((0, 1.5),)).names(["a", "a is 1.5"]) == ["a", "a is 1.5", "a is 1.5'"]


def test_moments_are_those_of_draws():
    rng = np.random.default_rng(0)
    p, mean, std, n = 0.3, 2.0, 0.7, 400_000
    parts = TwoParts(2, ((0, -1.0),), {0: (-1.0, 9.0)})
    number, common = mean + std * rng.normal(size=n), (rng.random(n) < p).astype(float)
    drawn, other = parts.together([number, np.ones(n), common])
    assert_array_equal(other, 1.0)
    assert_array_equal(drawn == -1.0, common == 1.0)
    (found,), (deviation,) = parts.moments(0, [np.array([p])], np.array([mean]), np.array([std]))
    error = drawn.std() / np.sqrt(n)
    assert abs(found - drawn.mean()) < 4 * error
    # The fourth moment about the mean is at most that of the range.
    assert abs(deviation - drawn.std()) < 4 * np.abs(drawn - drawn.mean()).max() / np.sqrt(n)
    assert_array_equal(parts.moments(0, [np.zeros(1)], np.array([2.0]), np.ones(1)), [[2.0], [1.0]])
    tiny = parts.moments(0, [np.array([0.5])], np.array([1e-200]), np.array([1e-200]))[1]
    huge = parts.moments(0, [np.array([0.5])], np.array([1e200]), np.array([1e200]))[1]
    assert 0.0 < tiny[0] and huge[0] < np.inf


# -- the imputer


def test_draws_have_the_common_value_as_often_as_the_cells_that_were_removed():
    table, given = debts()
    holes = given["debt"].isna().to_numpy()
    truth = table["debt"][holes].to_numpy()
    imputer = short(given).fit(given)
    assert imputer.common_values_ == {2: [0.0]}
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
    whole = short(given, semicontinuous=False).fit(given)
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


def test_both_ends_of_a_scale():
    """Of two common values the first is asked for first, and numbers stay between them."""
    rng = np.random.default_rng(0)
    hours = np.clip(rng.normal(5.0, 6.0, 300), 0.0, 10.0)
    x = hours + rng.normal(size=300)
    given = np.column_stack([np.where(rng.random(300) < 0.2, NAN, hours), x])
    imputer = short(given).fit(given)
    assert sorted(imputer.common_values_[0]) == [0.0, 10.0]
    first, second = imputer.common_values_[0]
    seen = imputer.model_table()
    known = ~np.isnan(given[:, 0])
    assert_array_equal(seen[known, 2], given[known, 0] == first)
    rest = known & (given[:, 0] != first)
    assert_array_equal(seen[rest, 3], given[rest, 0] == second)
    assert np.isnan(seen[known & ~rest, 3]).all()
    assert_array_equal(np.isnan(seen[:, 0]), ~known | np.isin(given[:, 0], (0.0, 10.0)))
    drawn = np.array([one[~known, 0] for one in imputer.multiple(40)])
    assert drawn.min() == 0.0 and drawn.max() == 10.0
    for end in (0.0, 10.0):
        assert abs(np.mean(drawn == end) - np.mean(hours[~known] == end)) < 0.1
    filled = imputer.fit_transform(given)[~known, 0]
    assert_allclose(filled, drawn.mean(axis=0), atol=4 * 4.0 / np.sqrt(40))
    assert imputer.estimator_.score_samples(imputer.model_table(given[:7])).shape == (7,)


def test_numbers_beyond_an_end_are_mirrored():
    parts = TwoParts(1, ((0, 0.0), (0, 10.0)), {0: (0.0, 10.0)})
    numbers, none = np.array([-2.0, 4.0, 11.0, 25.0]), np.zeros(4)
    assert_array_equal(parts.together([numbers, none, none])[0], [2.0, 4.0, 9.0, 0.0])
    # One in five is 0, of the others half are 10 and half 6.
    chances = [np.array([0.0, 0.2]), np.array([0.0, 0.5])]
    found = parts.moments(0, chances, np.array([-2.0, 6.0]), np.zeros(2))
    assert_allclose(found, [[0.0, 6.4], [0.0, np.sqrt(0.2 * 0.8 * 64 + 0.8 * 4)]])
    # Nothing is known of the other side, nor of a value between others.
    numbers, none = np.array([-2.0, 99.0]), np.zeros(2)
    one = TwoParts(1, ((0, 0.0),), {0: (0.0, 5.0)})
    assert_array_equal(one.together([numbers, none])[0], [2.0, 99.0])
    inner = TwoParts(1, ((0, 0.0),), {0: (-1.0, 5.0)})
    assert_array_equal(inner.together([numbers, none])[0], numbers)


def test_infinite_numbers_are_refused():
    given = debts(80)[1]
    with np.errstate(divide="ignore"):
        given["debt"] = np.log(given["debt"])
    with pytest.raises(ValueError, match="X must not hold infinity, got some in column 'debt'"):
        BNPImputer().fit(given)


def test_the_report_is_of_the_columns_of_the_table():
    given = debts(120)[1]
    imputer = BNPImputer(estimator=DirichletProcessMixture(**SHORT)).fit(given)
    said = str(imputer.report())
    assert "The table has 120 rows and 3 columns" in said
    n_missing = int(given.isna().sum().sum())
    assert f"{n_missing} of 360 cells" in said and f"debt ({n_missing})" in said
    assert "below zero" not in said
    whole = BNPImputer(estimator=DirichletProcessMixture(**SHORT), semicontinuous=False)
    assert f"{n_missing} of 360 cells" in str(whole.fit(given).report())


def test_a_common_value_that_looks_like_a_mark_is_named():
    rng = np.random.default_rng(0)
    X = 50.0 + 10.0 * rng.normal(size=(100, 2))
    X[:20, 1], X[20:30, 1] = -999.0, NAN
    imputer = BNPImputer(estimator=DirichletProcessMixture(**SHORT))
    with pytest.warns(UserWarning, match="X has -999 in column 1, .* say so by missing_values=-9"):
        imputer.fit(X)
    assert imputer.common_values_ == {1: [-999.0]}
    assert "-999 is far from all other values of x1, as marks of missing" in str(imputer.report())
    # One that is near the others is none, nor one that is said to be missing.
    for table, marks in ((np.where(X == -999.0, 0.0, X), NAN), (X, -999)):
        imputer = BNPImputer(estimator=DirichletProcessMixture(**SHORT), missing_values=marks)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            imputer.fit(table)
        assert not any("as marks of" in str(one.message) for one in caught)


def test_a_table_in_the_place_of_a_number():
    X = debts(60)[1][["income", "debt"]].to_numpy()
    imputer = BNPImputer(estimator=DirichletProcessMixture(**SHORT)).fit(X)
    with pytest.raises(TypeError, match=r"must be an integer, got a ndarray: write X=\.\.\."):
        imputer.multiple(X)
    constant = BNPImputer().fit(np.ones((5, 2)))
    with pytest.raises(ValueError, match="no column of the training table varies"):
        constant.model_table()


def test_the_number_is_that_of_cells_without_the_common_value():
    """Debts are large where few have one, so that clusters differ in both."""
    rng = np.random.default_rng(1)
    cluster = rng.integers(2, size=400)
    has = rng.random(400) < np.where(cluster == 0, 0.1, 0.9)
    debt = np.where(has, np.where(cluster == 0, 1000.0, 10.0) * (1 + 0.1 * rng.normal(size=400)), 0)
    given = np.column_stack([5.0 * (2 * cluster - 1) + rng.normal(size=400), debt])
    lost = np.arange(400) < 80
    given[lost, 1] = NAN
    imputer = short(given).fit(given)
    # Of a row without values, which is of either cluster: .05 * 1000 and .45 * 10.
    expected = debt.mean()
    row = np.full((1, 2), NAN)
    drawn = np.array([one[0, 1] for one in imputer.multiple(4000, row)])
    filled = imputer.transform(row)[0, 1]
    assert abs(filled - drawn.mean()) < 4 * drawn.std() / np.sqrt(4000)
    assert abs(filled - expected) < 0.25 * expected
    assert abs(imputer.standard_deviations(row)[0, 1] - drawn.std()) < 0.1 * drawn.std()


def test_common_values_in_single_precision():
    rng = np.random.default_rng(0)
    a = rng.normal(size=100)
    b = np.where(rng.random(100) < 0.5, 0.1, 5.0 + a + 0.1 * rng.normal(size=100))
    X = np.column_stack([a, b])
    X[:4, 0] = NAN
    imputer = BNPImputer(estimator=DirichletProcessMixture(**SHORT), random_state=0).fit(X)
    row = np.array([[NAN, 0.1]])
    assert_allclose(imputer.transform(row.astype(np.float32)), imputer.transform(row), atol=1e-3)


def test_what_is_filled_in_far_outside(monkeypatch):
    given = debts(80)[1]
    imputer = BNPImputer(estimator=DirichletProcessMixture(**SHORT)).fit(given)
    holes = given.isna().to_numpy()
    values = [None, None, np.where(holes[:, 2], 99.0, 1.0)]
    with pytest.warns(UserWarning, match=f"{holes[:, 2].sum()} missing cell.* 'debt' were filled"):
        imputer._warn_of_far(values, holes)
    monkeypatch.setattr(imputer, "_in_parts", lambda: {2: (values[2], np.ones(80))})
    assert f"{holes[:, 2].sum()} cells got numbers farther outside" in str(imputer.report())


@pytest.mark.parametrize(
    "family",
    [
        {"year": "gaussian", "home": "categorical"},
        ["gaussian", "categorical", "gaussian", "gaussian"],
        ["categorical", "gaussian", "gaussian"],
    ],
)
def test_families_of_columns_that_do_not_vary(family):
    """A list is of all columns, or of those that vary, as that of `default_model` is."""
    given = debts(60)[1]
    given.insert(0, "year", 2024.0)
    imputer = BNPImputer(estimator=DirichletProcessMixture(family=family, **SHORT)).fit(given)
    assert list(imputer.estimator_.families_) == [
        "categorical", "gaussian", "gaussian", "bernoulli"
    ]  # fmt: skip


def test_objects_and_large_integers():
    given = debts(80)[1]
    objects = BNPImputer(estimator=DirichletProcessMixture(**SHORT), random_state=0)
    deviations = objects.fit(given.to_numpy(dtype=object)).standard_deviations()
    assert np.isfinite(np.asarray(deviations, dtype=float)).all()
    large = given.assign(debt=pd.array([2**53 + 1] * 50 + list(range(30)), dtype="Int64"))
    with pytest.raises(ValueError, match=r"integers up to 2\^53"):
        BNPImputer(estimator=DirichletProcessMixture(**SHORT)).fit(large)
    with pytest.raises(ValueError, match=r"integers up to 2\^53 .* in column 'debt'"):
        objects.fit(given).transform(large.assign(income=NAN))
