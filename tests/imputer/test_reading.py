"""What an imputer takes for numbers and what for names, and tables that it refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from skbnp import BNPImputer, DirichletProcessMixture, TreeFactorModel
from skbnp.imputer import default_model
from skbnp.tables.columns import columns_of
from skbnp.tables.parts import without_marks

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = dict(n_chains=2, n_warmup=10, n_draws=10, random_state=0)
MODELS = [DirichletProcessMixture(**SHORT), TreeFactorModel(max_depth=2, **SHORT)]


def numbers_as_text(n=40):
    """A column of decimals in text, one of them missing, beside one of numbers."""
    z = np.random.default_rng(0).normal(size=n)
    text = [None, *(f"{value:.2f}" for value in z[1:])]
    return pd.DataFrame({"a": pd.Series(text, dtype=object), "b": z + 0.01})


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame, lambda X: X.to_numpy(object)])
def test_decimals_in_text_are_numbers(model, form):
    X = numbers_as_text()
    imputer = BNPImputer(estimator=model)
    filled = np.asarray(imputer.fit_transform(form(X)))
    assert filled.dtype == np.float64 and np.isfinite(filled).all()
    assert_array_equal(filled[1:, 0], X["a"][1:].astype(float))
    assert abs(filled[0, 0] - X["b"][0]) < 0.3
    # Rows of which none is decimal are of the same column.
    whole = X.iloc[:2].assign(a=pd.Series(["1", None], dtype=object))
    again = np.asarray(imputer.transform(form(whole)))
    assert again.dtype == np.float64 and again[0, 0] == 1.0


def test_whole_numbers_in_text_are_names():
    X = numbers_as_text().assign(g=["1", "2"] * 20)
    X.loc[3, "g"] = None
    assert default_model(X).family == ["gaussian", "gaussian", "categorical"]
    filled = BNPImputer(estimator=MODELS[0]).fit_transform(X)
    assert set(filled["g"]) == {"1", "2"}


@pytest.mark.parametrize("word", ["nan", "inf"])
def test_texts_of_no_finite_number_are_names(word):
    X = numbers_as_text().assign(g=[None, word, *["1", "2.5"] * 19])
    assert default_model(X).family == ["gaussian", "gaussian", "categorical"]


def test_a_model_of_real_columns_makes_whole_numbers_in_text_numbers():
    X = numbers_as_text().assign(g=["1", "2"] * 20)
    X.loc[3, "g"] = None
    filled = BNPImputer(estimator=MODELS[1]).fit_transform(X)["g"]
    assert filled.dtype == np.float64
    assert_array_equal(filled[:3], [1.0, 2.0, 1.0])


@pytest.mark.parametrize("dtype", [float, int, "Int64"])
def test_tables_of_0_and_1_have_columns_of_two_values(dtype):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(2, size=(60, 6)), columns=list("abcdef"), dtype=dtype)
    assert default_model(table).family == "bernoulli"
    assert isinstance(default_model(table.assign(f=rng.normal(size=60))), TreeFactorModel)
    holes = table.astype("Int64" if dtype == "Int64" else float)
    holes.loc[::7, "b"] = np.nan
    short = default_model(holes).set_params(n_chains=1, n_warmup=5, n_draws=5)
    imputer = BNPImputer(estimator=short, random_state=0)
    filled = imputer.fit_transform(holes)
    assert filled["b"].between(0.0, 1.0).all()
    assert {0, 1} >= set(imputer.multiple(2)[1]["b"].tolist())
    other = holes[:8].assign(a=[2, *holes["a"][1:8]])
    with pytest.warns(
        UserWarning, match="values that fit has not seen, in column 'a': other cells"
    ):
        answer = imputer.transform(other)
    assert_array_equal(answer["a"], other["a"])
    missing = other.assign(a=other["a"].where(other["a"] < 2))
    assert_array_equal(answer["b"], imputer.transform(missing)["b"])


def test_few_integers_beside_names_are_levels():
    """As real columns their single values would be components, and most fits diagonal."""
    rng = np.random.default_rng(0)
    n = 200
    group = rng.integers(3, size=n)
    x = 3.0 * group + rng.normal(size=n)
    table = pd.DataFrame(
        {
            "name": np.array(["u", "v", "w"])[group],
            "answer": np.where(rng.random(n) < 0.7, 2, 1 + group),
            "yes": (group == 1).astype(float),
            "count": rng.poisson(3.0, n),
            "x": x,
            "y": x + 0.5 * rng.normal(size=n),
        }
    )
    model = default_model(table)
    assert model.family == ["categorical", "auto", "bernoulli", "gaussian", "gaussian", "gaussian"]
    assert model.covariance_type == "full"
    # Counts of which most have one of two values.
    counts = table.assign(count=np.where(rng.random(n) < 0.6, 0, rng.poisson(8.0, n)))
    assert default_model(counts).family[3] == "auto"
    assert default_model(counts).covariance_type == "full"
    assert isinstance(default_model(table.drop(columns="name")), TreeFactorModel)
    few = default_model(table.iloc[:20].assign(answer=np.resize([1, 2, 3], 20)))
    assert few.family[1] == "auto"  # which takes so few of them for counts
    spread = default_model(table.iloc[:20].assign(answer=np.resize([1, 2, 3, 4], 20)))
    assert spread.family[1] == "gaussian"
    holes = table.astype({"answer": float, "count": float}).mask(rng.random(table.shape) < 0.1)
    short = default_model(holes).set_params(n_chains=1, n_warmup=100, n_draws=50)
    imputer = BNPImputer(estimator=short, random_state=0)
    filled, hidden = imputer.fit_transform(holes), holes.isna()
    assert imputer.estimator_.families_[1] == "categorical"
    assert filled["answer"].between(1, 3).all() and (filled["answer"][hidden["answer"]] % 1).any()
    for column in ("x", "y"):
        error = (filled[column] - table[column])[hidden[column]]
        assert np.sqrt(np.mean(error**2)) < 0.6 * table[column].std()
    drawn = imputer.multiple(2)[1]
    assert set(drawn["answer"]) == {1.0, 2.0, 3.0} and set(drawn["yes"]) == {0.0, 1.0}
    new = holes.iloc[:6].assign(answer=[9.0, np.nan, 1, 1, 1, 1])
    with pytest.warns(UserWarning, match="values that fit has not seen, in column 'answer'"):
        answer = imputer.transform(new)
    assert answer["answer"].iloc[0] == 9.0 and not answer.isna().any(axis=None)


def test_few_numbers_that_go_with_a_real_column_are_real():
    """Levels have no order: those in between tell nothing."""
    rng = np.random.default_rng(1)
    n = 160
    week = rng.integers(1, 9, size=n)
    table = pd.DataFrame(
        {
            "name": rng.choice(["u", "v"], size=n),
            "week": week.astype(float),
            "other": rng.integers(1, 9, size=n),
            "weight": 5.0 * week + rng.normal(size=n) * 4.0,
        }
    )
    model = default_model(table)
    assert model.family == ["categorical", "gaussian", "auto", "gaussian"]
    assert model.covariance_type == "full"
    falls = table.assign(weight=-np.exp(table["weight"] / 9.0))
    assert default_model(falls).family == model.family
    for n_values, family in ((5, "auto"), (6, "gaussian")):
        fewer = table.assign(week=np.where(week > n_values, week - n_values, week))
        fewer["weight"] = 5.0 * fewer["week"] + rng.normal(size=n)
        assert default_model(fewer).family[1] == family
    # Most of one value: covariances would have no bound.
    most = table.assign(week=np.where(rng.random(n) < 0.6, 1, week))
    most["weight"] = 5.0 * most["week"] + rng.normal(size=n)
    assert most["week"].nunique() == 8 and default_model(most).family[1] == "auto"
    few = table.assign(weight=table["weight"].where(np.arange(n) < 19))
    assert default_model(few).family[1] == "auto"
    hidden = rng.random(n) < 0.2
    holes = table.assign(week=table["week"].mask(hidden))
    short = default_model(holes).set_params(n_chains=1, n_warmup=100, n_draws=50)
    filled = BNPImputer(estimator=short, random_state=0).fit_transform(holes)["week"]
    error = np.sqrt(np.mean((filled - week)[hidden] ** 2))
    line = np.polyfit(table["weight"][~hidden], week[~hidden], 1)
    assert error < 1.2 * np.sqrt(np.mean((np.polyval(line, table["weight"]) - week)[hidden] ** 2))


@pytest.mark.parametrize("form", [pd.DataFrame.to_numpy, pd.DataFrame.copy])
def test_the_training_table_is_as_it_was_in_fit(form):
    """Whatever becomes of the caller's."""
    X = numbers_as_text().astype(float)
    X.iloc[3:6, 1] = np.nan
    X = form(X)
    imputer = BNPImputer(estimator=MODELS[0])
    filled = np.array(imputer.fit_transform(X))
    std, tables = imputer.standard_deviations(), imputer.multiple(2, random_state=0)
    X[:] = filled
    assert_array_equal(imputer.standard_deviations(), std)
    assert_array_equal(imputer.multiple(2, random_state=0), tables)
    assert np.count_nonzero(std) == 4


@pytest.mark.parametrize("library", [pd, pl])
def test_names_of_flags(library):
    X = numbers_as_text().astype(float)
    table = library.DataFrame(X.to_dict("list"))
    imputer = BNPImputer(estimator=MODELS[1], add_indicator=True)
    filled = imputer.fit_transform(table)
    assert list(filled.columns) == ["a", "b", "missingindicator_a"]
    taken = library.DataFrame({**X.to_dict("list"), "missingindicator_a": list(X["b"])})
    with pytest.raises(ValueError, match="no column 'missingindicator_a' with add_indicator"):
        imputer.fit(taken)


@pytest.mark.parametrize("library", [pd, pl, None])
def test_marks_of_several_kinds(library):
    """Lists of marks, and those of some columns alone; later tables have those of `fit`."""
    z = np.random.default_rng(0).normal(size=(40, 2)).round(2)
    z[:, 1] = z[:, 0] + 1.0
    holed, marked = z.copy(), z.copy()
    holed[2, 0] = holed[5, 1] = holed[7, 1] = np.nan
    marked[2, 0], marked[5, 1], marked[7, 1] = -999, -1, -999
    marked[9, 0] = holed[9, 0] = -1
    of_columns = {0: -999, 1: [-1, -999]}
    if library is not None:
        of_columns = {"ab"[j]: marks for j, marks in of_columns.items()}
        marked = library.DataFrame(dict(zip("ab", marked.T.tolist(), strict=True)))
    imputer = BNPImputer(estimator=MODELS[1], missing_values=of_columns)
    expected = BNPImputer(estimator=MODELS[1]).fit_transform(holed)
    assert_array_equal(np.asarray(imputer.fit_transform(marked)), expected)
    new = BNPImputer(estimator=MODELS[1]).fit(holed).transform(holed[:8])
    assert_array_equal(np.asarray(imputer.transform(marked[:8])), new)
    imputer.set_params(missing_values=np.nan)
    assert_array_equal(np.asarray(imputer.transform(marked[:8])), new)
    both = BNPImputer(estimator=MODELS[1], missing_values=[-1, -999]).fit_transform(marked)
    assert np.asarray(both)[9, 0] != -1


def test_marks_that_leave_numbers_in_text():
    X = numbers_as_text().fillna({"a": "?"})
    X.loc[[3, 4], "a"] = "unknown"
    found = BNPImputer(estimator=MODELS[1], missing_values=["?", "unknown"]).fit_transform(X)
    assert found["a"].dtype == np.float64
    found = without_marks(X, {None: ["?", "unknown"]})
    assert found["a"].dtype == np.float64 and found["a"].isna().sum() == 3


@pytest.mark.parametrize(
    "marks, message",
    [
        ({"c": -1}, "missing_values must name columns of X, got 'c'"),
        ([-1, True], "missing_values must be numbers or strings, got True"),
    ],
)
def test_marks_that_are_wrong(marks, message):
    with pytest.raises(ValueError, match=message):
        BNPImputer(missing_values=marks).fit(numbers_as_text())


def test_marks_of_columns_that_are_not_there():
    with pytest.raises(ValueError, match="missing_values must name columns of X, which has 2, got"):
        BNPImputer(missing_values={2: -1}).fit(numbers_as_text().to_numpy(dtype=float))


def test_names_of_flags_where_names_of_columns_are_numbers():
    X = numbers_as_text().astype(float).set_axis([0, 1], axis=1)
    imputer = BNPImputer(estimator=MODELS[1], add_indicator=True).fit(X)
    assert imputer.transform(X).columns[-1] == "missingindicator_x0"
    assert imputer.get_feature_names_out()[-1] == "missingindicator_x0"


def test_names_among_numbers_are_names():
    X = pd.DataFrame({"b": np.random.default_rng(0).normal(size=60), "s": [1, "a", None] * 20})
    assert default_model(X).family == ["gaussian", "categorical"]
    filled = BNPImputer(estimator=MODELS[0]).fit_transform(X)["s"]
    assert set(filled) == {1, "a"}
    unknown = X.assign(s=[None, *np.round(X["b"][1:-1], 2), "unknown"])
    with pytest.raises(
        ValueError, match="column 's': could not convert string to float: 'unknown'"
    ):
        BNPImputer(estimator=MODELS[1]).fit(unknown)
    assert not isinstance(default_model(unknown).family, list)
    numbers = X.assign(s=[1, "2.5", None] * 20)
    assert BNPImputer(estimator=MODELS[0]).fit_transform(numbers)["s"].dtype == np.float64


def test_refused():
    X = np.random.default_rng(0).normal(size=(9, 3))
    with pytest.raises(ValueError, match="a name of its own for every column, got 'a' twice"):
        BNPImputer().fit(pd.DataFrame(X, columns=list("aab")))
    X[2, 1] = np.inf
    with pytest.raises(ValueError, match="X must not hold infinity, got some in column 1"):
        BNPImputer().fit(X)
    for table in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, list("abc"))):
        with pytest.raises(ValueError, match="infinity, got some in column 'b'"):
            BNPImputer().fit(table)


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]"])
def test_nan_held_as_a_number_is_missing(dtype):
    """As 0 / 0 leaves it in frames of pandas whose dtypes have a sign of their own."""
    rng = np.random.default_rng(0)
    zero = pd.Series(np.arange(60) > 4, dtype=dtype)
    frame = pd.DataFrame({"name": ["a", "b"] * 30, "x": zero / zero + rng.normal(size=60)})
    frame["x"] = frame["x"].astype(dtype)
    frame.loc[50:52, "x"] = pd.NA
    assert columns_of(frame)[1].missing.sum() == 8
    short = DirichletProcessMixture(n_chains=1, n_warmup=10, n_draws=10)
    filled = BNPImputer(estimator=short, random_state=0).fit_transform(frame)
    x = filled["x"].to_numpy(dtype=float, na_value=np.nan)
    assert filled["x"].dtype == dtype and np.isfinite(x).all()
    before = frame["x"].to_numpy(dtype=float, na_value=np.nan)
    assert (x[5:50] == before[5:50]).all()
