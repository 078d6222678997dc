"""A table in is a table out, from every estimator: the same kind, names, index and order.

What is in the cells does not depend on the form: it is what an array of the same numbers gives.
"""

import pickle
import warnings
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.exceptions import ConvergenceWarning

from contract.registry import DEFAULTS
from skbnp import DirichletProcessMixture, ICPNetworkRegressor, TreeFactorModel
from skbnp.tables.forms import TableForm
from skbnp.tables.identifiers import identifier_columns
from skbnp.tables.labels import index_from_data, index_to_data
from skbnp.tables.outlying import outlying_columns

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:covariance_type='full' has little"),
]
by_setting = pytest.mark.parametrize("setting", DEFAULTS, ids=str)
TAKE_HOLES = [setting for setting in DEFAULTS if setting.takes_holes]
N = 24


@cache
def numbers(holes):
    """Two clusters in float64, with missing cells or without."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (N // 2, 3)), rng.normal(6, 1, (N // 2, 3))])
    if holes:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X


def masked(X):
    """NaN as a mask over some other number."""
    return np.ma.MaskedArray(np.nan_to_num(X, nan=3e7), mask=np.isnan(X))


def objects(X):
    """A frame of Python floats with every sign for nothing that pandas knows."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).astype(object)
    for j, sign in enumerate([None, pd.NA, np.nan]):
        frame.iloc[np.isnan(X[:, j]), j] = sign
    return frame


def pandas_with(columns, index=None, dtype=None):
    def make(X):
        if dtype is None:
            frame = pd.DataFrame(X.copy())
        else:
            frame = pd.DataFrame({j: pd.array(x, dtype=dtype) for j, x in enumerate(X.T)})
        frame.columns = columns
        if index is not None:
            frame.index = index
        return frame

    return make


SHUFFLED = np.random.default_rng(1).permutation(N) + 100
HOURS = pd.date_range("2024-03-30", periods=N, freq="h", tz="Europe/Oslo", name="when")
PAIRS = pd.MultiIndex.from_product([["u", "v"], range(N // 2)], names=["who", None])
TUPLES = pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)], names=["part", "place"])
FORMS = {
    "numpy": lambda X: X.copy(),
    "masked": masked,
    "list": lambda X: X.tolist(),
    "pandas": pandas_with(["a", "b", "c"], SHUFFLED),
    "pandas by default": pandas_with(pd.RangeIndex(3)),
    "int names": pandas_with([7, 3, 5], pd.Index(SHUFFLED, name="number")),
    "MultiIndex names": pandas_with(TUPLES, PAIRS),
    "dates as index": pandas_with(pd.Index(["a", "b", "c"], name="what"), HOURS),
    "doubled index": pandas_with(["a", "b", "c"], SHUFFLED // 2),
    "texts as index": pandas_with(["a", "b", "c"], [f"row {i}" for i in SHUFFLED]),
    "nullable": pandas_with(["a", "b", "c"], SHUFFLED, "Float64"),
    "arrow in pandas": pandas_with(["a", "b", "c"], SHUFFLED, "double[pyarrow]"),
    "objects": objects,
    "polars": lambda X: pl.DataFrame(X, schema=["a", "b", "c"]).fill_nan(None),
    "pyarrow": lambda X: pa.table(
        {name: pa.array(column, from_pandas=True) for name, column in zip("abc", X.T, strict=True)}
    ),
}
COMMON = ("numpy", "masked", "pandas", "MultiIndex names", "objects", "polars")
by_form = pytest.mark.parametrize("form", FORMS)


def table(form, holes):
    return FORMS[form](numbers(holes))


def values(answer):
    """The numbers of a table, NaN where missing."""
    if isinstance(answer, pd.DataFrame):
        return answer.to_numpy(dtype=float, na_value=np.nan)
    if isinstance(answer, pl.DataFrame):
        return answer.to_numpy()
    if isinstance(answer, pa.Table):
        return np.column_stack([column.to_numpy() for column in answer.columns])
    return np.asarray(answer)


def assert_same_form(answer, given, rows=True):
    """Equal in kind and names, and in the index unless the rows are new ones."""
    if isinstance(given, pd.DataFrame):
        assert type(answer) is pd.DataFrame
        pd.testing.assert_index_equal(answer.columns, given.columns, exact=True)
        expected = given.index if rows else pd.RangeIndex(len(answer))
        pd.testing.assert_index_equal(answer.index, expected, exact=True)
        assert getattr(answer.index, "freq", None) == getattr(expected, "freq", None)
    elif isinstance(given, (pl.DataFrame, pa.Table)):
        assert type(answer) is type(given)
        assert answer.schema == given.schema
    else:
        assert type(answer) is np.ndarray and answer.dtype == np.float64


_FITTED = {}


def fitted(setting, form, holes):
    """One fit of each case, shared by the tests."""
    case = setting.name, form, holes
    if case not in _FITTED:
        _FITTED[case] = setting.make().fit(table(form, holes), setting.target(numbers(holes)))
    return _FITTED[case]


def has(estimator, name):
    return getattr(estimator, name, None) is not None


def any_method(estimator):
    """The name of one method that takes a table."""
    return "predict" if has(estimator, "predict") else "score_samples"


def cases():
    for setting in DEFAULTS:
        for form in FORMS:
            for holes in [False, True] if setting.takes_holes else [False]:
                name = f"{setting}-{form}-{'holes' if holes else 'whole'}"
                # All forms, with holes, of one estimator, and the common ones of each.
                is_first = setting is DEFAULTS[0] or form in COMMON
                is_fast = is_first and (holes or not setting.takes_holes)
                marks = [] if is_fast else [pytest.mark.slow]
                yield pytest.param(setting, form, holes, id=name, marks=marks)


by_case = pytest.mark.parametrize(["setting", "form", "holes"], list(cases()))


# -- the same kind, names and index; the values of an array


@cache
def answers_to_array(setting_name, holes):
    """What the model of an array says of it, by name."""
    (setting,) = [one for one in DEFAULTS if one.name == setting_name]
    model, X = fitted(setting, "numpy", holes), numbers(holes)
    of_rows = ("predict", "score_samples", "predict_proba")
    found = {name: getattr(model, name)(X) for name in of_rows if has(model, name)}
    if has(model, "impute"):
        found["impute"] = model.impute(X, return_std=True)
    return found


@by_case
def test_every_answer_has_the_form_of_its_table(setting, form, holes):
    X, model, plain = table(form, holes), fitted(setting, form, holes), numbers(holes)
    as_array = fitted(setting, "numpy", holes)
    expected = answers_to_array(setting.name, holes).copy()
    filling = expected.pop("impute", None)
    for name in expected:
        answer = getattr(model, name)(X)
        assert type(answer) is np.ndarray
        assert_array_equal(answer, expected[name], err_msg=name)
    if filling is None:
        return
    filled, std = model.impute(X, return_std=True)
    assert_same_form(filled, X)
    assert_array_equal(values(filled).astype(float), filling[0])
    assert_same_form(std, X)
    assert_array_equal(values(std), filling[1])
    seen = ~np.isnan(plain)
    assert_array_equal(values(filled).astype(float)[seen], plain[seen])
    if has(model, "X_imputed_"):
        for name in ("X_imputed_", "X_imputed_std_"):
            assert_same_form(getattr(model, name), X)
            assert_array_equal(values(getattr(model, name)), getattr(as_array, name))


@by_case
def test_samples_have_the_form_of_the_training_table(setting, form, holes):
    model = fitted(setting, form, holes)
    if has(model, "sample"):
        one, other = (
            rows[0] if isinstance(rows, tuple) else rows
            for rows in (
                model.sample(5, random_state=0),
                fitted(setting, "numpy", holes).sample(5, random_state=0),
            )
        )
        assert_same_form(one, table(form, holes), rows=False)
        assert_array_equal(values(one), other)


@pytest.mark.parametrize("form", ["pandas", "int names", "MultiIndex names", "dates as index"])
@pytest.mark.parametrize("setting", TAKE_HOLES, ids=str)
def test_holes_filled_by_label_are_those_of_the_same_row(setting, form):
    X, model = table(form, True), fitted(setting, form, True)
    upside_down = X.iloc[::-1]
    for answer in [model.impute(X), getattr(model, "X_imputed_", None)]:
        if answer is not None:
            pd.testing.assert_frame_equal(upside_down.fillna(answer), answer.iloc[::-1])


@pytest.mark.parametrize("setting", TAKE_HOLES, ids=str)
def test_the_form_of_impute_follows_its_own_table(setting):
    model = fitted(setting, "int names", True)
    assert type(model.impute(numbers(True))) is np.ndarray
    frame = table("polars", True).rename({"a": "7", "b": "3", "c": "5"})
    with pytest.raises(ValueError, match=r"\[7, 3, 5\], in this order, got \['7', '3', '5'\]"):
        model.impute(frame)
    named = fitted(setting, "pandas", True)
    assert_same_form(named.impute(table("polars", True)), table("polars", True))


@pytest.mark.parametrize("form", ["pandas", "polars"])
@pytest.mark.parametrize(
    "setting", [one for one in DEFAULTS if hasattr(one.kind, "transform")], ids=str
)
def test_transform_keeps_the_index(setting, form):
    model = fitted(setting, form, False)
    X = table(form, False)
    answer = clone_of_fitted(model).set_output(transform=form).transform(X)
    assert type(answer) is type(X)
    assert_array_equal(values(answer), model.transform(X))
    if form == "pandas":
        assert_array_equal(answer.index, X.index)


def clone_of_fitted(model):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize(
    "form", ["int names", "MultiIndex names", "dates as index", "texts as index", "polars"]
)
@by_setting
def test_the_form_survives_files_and_pickles(setting, form, tmp_path):
    holes = setting.takes_holes
    model = fitted(setting, form, holes)
    model.save(tmp_path / "file")
    for again in [type(model).load(tmp_path / "file"), clone_of_fitted(model)]:
        for name in ("X_imputed_", "X_imputed_std_"):
            if has(model, name):
                assert_equal_tables(getattr(again, name), getattr(model, name))
        if has(model, "sample"):
            one, other = again.sample(3, random_state=0), model.sample(3, random_state=0)
            assert_equal_tables(
                *(rows[0] if isinstance(rows, tuple) else rows for rows in (one, other))
            )
        name = any_method(model)
        X = table(form, holes)
        assert_array_equal(getattr(again, name)(X), getattr(model, name)(X))


def assert_equal_tables(one, other):
    assert type(one) is type(other)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_freq=True, check_exact=True)
    else:
        assert one.equals(other)


# -- names


@by_setting
@pytest.mark.parametrize("form", ["int names", "MultiIndex names", "pandas by default"])
def test_columns_in_another_order_are_refused(setting, form):
    model, X = fitted(setting, form, False), table(form, False)
    answer = getattr(model, any_method(model))
    with pytest.raises(ValueError, match="feature names should match"):
        answer(X.iloc[:, [1, 0, 2]])
    with pytest.raises(ValueError, match="features"):
        answer(X.iloc[:, [0, 1]])


@by_setting
def test_names_are_all_strings_or_none(setting):
    frame = table("pandas", False)
    with pytest.raises(TypeError, match="string names"):
        setting.fit(frame.set_axis(["a", "b", 3], axis=1))
    with pytest.raises(ValueError, match="'b' twice"):
        setting.fit(frame.set_axis(["a", "b", "b"], axis=1))
    assert not hasattr(fitted(setting, "int names", False), "feature_names_in_")
    assert list(fitted(setting, "polars", False).feature_names_in_) == ["a", "b", "c"]


@by_setting
def test_a_lazy_frame_is_to_be_collected(setting):
    with pytest.raises(TypeError, match=r"collect\(\)"):
        setting.make().fit(table("polars", False).lazy(), setting.target(numbers(False)))


# -- masks


@pytest.mark.parametrize("setting", [one for one in DEFAULTS if not one.takes_holes], ids=str)
def test_a_masked_cell_is_refused_where_none_may_be_missing(setting):
    """Where some may be, "masked" is one of the forms above."""
    hidden = masked(numbers(True))
    with pytest.raises(ValueError, match="X must not hold masked cells"):
        setting.fit(hidden)
    model = fitted(setting, "numpy", False)
    with pytest.raises(ValueError, match="X must not hold masked cells"):
        model.predict(hidden)
    y = np.ma.MaskedArray(setting.target(numbers(False)), mask=np.arange(N) == 3)
    with pytest.raises(ValueError, match="y must not hold masked cells"):
        setting.make().fit(numbers(False), y)
    whole = np.ma.MaskedArray(numbers(False))
    assert_array_equal(model.predict(whole), model.predict(numbers(False)))


@pytest.mark.parametrize("name", ["Phi", "v"])
def test_masked_measurements_are_refused(name):
    given = {"Phi": np.eye(3), "v": np.ones((2, 3))}
    given[name] = np.ma.MaskedArray(given[name], mask=np.zeros(given[name].shape))
    given[name][0, 0] = np.ma.masked
    setting = next(one for one in DEFAULTS if hasattr(one.kind, "invert"))
    with pytest.raises(ValueError, match=f"{name} must not hold masked cells"):
        fitted(setting, "numpy", False).invert(**given)


@pytest.mark.parametrize("family", ["poisson", "categorical", "auto"])
def test_masks_of_a_mixed_table(family):
    X = np.random.default_rng(0).poisson(3, size=(N, 3))
    hidden = np.random.default_rng(1).random(X.shape) < 0.2
    options = dict(family=family, n_chains=1, n_warmup=4, n_draws=4, random_state=0)
    one = DirichletProcessMixture(**options).fit(np.ma.MaskedArray(X, mask=hidden))
    options["family"] = "poisson" if family == "auto" else family
    other = DirichletProcessMixture(**options).fit(np.where(hidden, np.nan, X))
    assert list(one.families_) == list(other.families_)
    assert_array_equal(one.X_imputed_, other.X_imputed_)


# -- dtypes of the answers


def short(**options):
    return DirichletProcessMixture(
        **dict(n_chains=1, n_warmup=4, n_draws=4, random_state=0, **options)
    )


def test_a_column_keeps_its_dtype_where_that_holds_its_values():
    X = numbers(False)
    frame = pd.DataFrame(
        {
            "single": X[:, 0].astype(np.float32),
            "nullable": pd.array(X[:, 1], dtype="Float64"),
            "whole": np.rint(10 * X[:, 2]).astype(np.int16),
            "holed": pd.array(np.rint(10 * X[:, 0]).astype(int), dtype="Int64"),
            "flag": X[:, 0] > 3,
        },
        index=SHUFFLED,
    )
    frame.iloc[3, 0] = np.nan
    frame.iloc[4, 1] = pd.NA
    frame.iloc[5, 3] = pd.NA
    expected = ["float32", "Float64", "int16", "Float64", "bool"]
    model = short(covariance_type="diag").fit(frame)
    for answer in (model.X_imputed_, model.impute(frame)):
        assert list(map(str, answer.dtypes)) == expected
        assert (answer.drop(frame.index[[3, 4, 5]]) == frame.drop(frame.index[[3, 4, 5]])).all(
            axis=None
        )
    pd.testing.assert_frame_equal(model.impute(frame.iloc[10:]), frame.iloc[10:], check_exact=True)
    # Samples of a real column are no integers.
    dtypes = list(map(str, model.sample(3)[0].dtypes))
    assert dtypes == ["float32", "Float64", "float64", "Float64", "float64"]


@pytest.mark.parametrize("dtype", ["int8", "Int8", "int8[pyarrow]", "polars"])
def test_samples_of_counts_do_not_leave_their_dtype(dtype):
    """A count of 130 would be -126 in the dtype of its column."""
    rng = np.random.default_rng(0)
    x, counts = rng.normal(size=40), np.minimum(rng.poisson(115, size=40), 127)
    if dtype == "polars":
        frame = pl.DataFrame({"x": x, "k": counts.astype(np.int8)})
    else:
        frame = pd.DataFrame({"x": x, "k": pd.array(counts, dtype=dtype)})
    rows = short(family="auto").fit(frame).sample(200, random_state=0)[0]
    drawn = np.asarray(rows["k"], dtype=np.int64)
    assert drawn.max() > 127
    assert drawn.min() >= 0
    few = short(family="auto").fit(frame).sample(1, random_state=0)[0]
    assert few["k"].dtype == frame["k"].dtype


@pytest.mark.parametrize("dtype", ["float16", "float32", "Float32", "float[pyarrow]", "polars"])
def test_answers_do_not_overflow_in_their_dtype(dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    wide = (x + rng.normal(size=40)).clip(-1.5, 1.5)
    wide = wide * (4e4 if dtype == "float16" else 2.2e38)
    if dtype == "polars":
        frame = pl.DataFrame({"x": x, "wide": wide.astype(np.float32)})
    else:
        frame = pd.DataFrame({"x": x, "wide": pd.Series(wide).astype(dtype)})
    model = TreeFactorModel(n_chains=1, n_warmup=4, n_draws=4, random_state=0).fit(frame)
    rows = model.sample(200, random_state=0)
    assert np.isfinite(np.asarray(rows, dtype=np.float64)).all()
    if dtype != "polars":
        new = frame.iloc[:2].assign(x=[40.0, -40.0], wide=frame["wide"].where(frame["x"] > 1e9))
        assert np.isfinite(model.impute(new).to_numpy(dtype=np.float64)).all()


EMPTY = {
    "float64": pd.Series(np.full(N, np.nan)),
    "float32": pd.Series(np.full(N, np.nan, dtype=np.float32)),
    **{
        name: pd.Series(pd.array([None] * N, dtype=name))
        for name in ("Int8", "boolean", "string", "int8[pyarrow]")
    },
    "arrow dictionary": pd.Series(
        [None] * N, dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.float64()))
    ),
    "sparse": pd.Series(pd.arrays.SparseArray(np.full(N, np.nan))),
    "polars floats": pl.Series([None] * N, dtype=pl.Float64),
    "polars integers": pl.Series([None] * N, dtype=pl.Int8),
    "polars text": pl.Series([None] * N, dtype=pl.String),
    "polars enum": pl.Series([None] * N, dtype=pl.Enum(["small"])),
}


@pytest.mark.parametrize("kind", EMPTY)
@pytest.mark.parametrize("levels", [("small", "big"), (300, 301)], ids=["names", "integers"])
def test_an_empty_column_of_any_dtype_is_filled_with_levels(kind, levels):
    x = numbers(False)[:, 0]
    frame = pd.DataFrame({"x": x, "level": pd.Categorical(np.where(x > 3, *levels[::-1]))})
    model = short(family=["gaussian", "categorical"]).fit(frame)
    for name, numeric in (("level", False), ("x", True)):
        if kind.startswith("polars"):
            table = pl.DataFrame({"x": x, "level": frame["level"].tolist()})
            filled = model.impute(table.with_columns(EMPTY[kind].alias(name)))[name].to_list()
        else:
            filled = model.impute(frame.assign(**{name: EMPTY[kind]}))[name].tolist()
        assert np.isfinite(filled).all() if numeric else set(filled) <= set(levels)


def test_filled_numbers_are_no_new_levels():
    """Categories of numbers in a real column, unsigned integers, decimals."""
    x = numbers(False)[:, 0]
    frame = pd.DataFrame(
        {
            "x": x,
            "rank": pd.Categorical([None, *np.rint(x[1:])]),
            "large": (np.arange(N) % 7).astype(np.uint64) * 2**11 + np.uint64(2**63),
            "money": [None] + [Decimal(int(10 * t)) / 4 for t in x[1:]],
        }
    )
    answer = short(covariance_type="diag").fit(frame).X_imputed_
    assert list(map(str, answer.dtypes)) == ["float64", "float64", "uint64", "float64"]
    assert_array_equal(answer["large"], frame["large"])
    assert_array_equal(answer["money"][1:], frame["money"][1:].astype(float))
    assert list(short(family="auto").fit(frame[["x", "money"]]).families_) == ["gaussian"] * 2


LEVELS = {
    "cut": lambda x: pd.cut(x, [-10, 0, 3, 20]),
    "cut with labels": lambda x: pd.cut(x, [-10, 0, 3, 20], labels=["low", "mid", "high"]),
    "bytes": lambda x: pd.Series(np.where(x > 3, b"big", b"small")).astype(object),
    "times": lambda x: pd.Series(pd.to_datetime(np.where(x > 3, "2024-01-01", "2023-05-01"))),
    "times of a zone": lambda x: pd.Series(
        pd.to_datetime(np.where(x > 3, "2024-01-01", "2023-05-01")).tz_localize("Europe/Oslo")
    ),
    "tuples": lambda x: pd.Series([("a", 1) if t > 3 else ("b", 2) for t in x]),
    "bools": lambda x: pd.Series(x > 3),
    "nullable bools": lambda x: pd.array(x > 3, dtype="boolean"),
    "texts": lambda x: pd.Series(np.where(x > 3, "big", "small")),
    "arrow texts": lambda x: pd.array(np.where(x > 3, "big", "small"), "string[pyarrow]"),
    "arrow dictionary": lambda x: pd.Series(np.where(x > 3, "big", "small")).astype(
        pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    ),
    "objects": lambda x: pd.Series(np.where(x > 3, "big", "small")).astype(object),
    "mixed": lambda x: pd.Series([1 if t > 3 else "one" for t in x], dtype=object),
    "categories of times": lambda x: pd.Categorical(
        pd.to_datetime(np.where(x > 3, "2024-01-01", "2023-05-01"))
    ),
    "categories of numbers": lambda x: pd.Categorical(np.where(x > 3, 0.5, 1.5), ordered=True),
    "integers": lambda x: pd.array(np.where(x > 3, 3, 1), dtype="Int64"),
}


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("name", LEVELS)
def test_levels_of_any_kind_come_back_and_are_saved(name, holes, tmp_path):
    X = numbers(False)
    frame = pd.DataFrame({"x": X[:, 0], "level": LEVELS[name](X[:, 1])})
    if holes:
        if name == "bools":
            frame["level"] = frame["level"].astype(object)
        frame.loc[[2, 15], "level"] = None
    frame.index = SHUFFLED
    model = short(family={"level": "categorical"}).fit(frame)
    filled = model.impute(frame)
    assert filled["level"].dtype == frame["level"].dtype
    seen = frame["level"].notna()
    assert (filled["level"][seen] == frame["level"][seen]).all()
    assert not filled["level"].isna().any()
    model.save(tmp_path / "file")
    for again in [type(model).load(tmp_path / "file"), clone_of_fitted(model)]:
        assert_equal_tables(again.impute(frame), filled)
        rows = model.sample(4, random_state=0)[0]
        assert rows["level"].dtype == frame["level"].dtype
        assert_equal_tables(again.sample(4, random_state=0)[0], rows)
        assert_array_equal(again.score_samples(frame), model.score_samples(frame))
        if holes:
            assert_equal_tables(again.X_imputed_, model.X_imputed_)
            assert model.X_imputed_["level"].dtype == frame["level"].dtype
        assert [x is None for x in again.levels_] == [True, False]
        assert_array_equal(again.levels_[1], model.levels_[1])
    again = clone(model).fit(frame)
    assert_equal_tables(again.impute(frame), filled)


class Odd:
    """A level that is no data."""

    def __lt__(self, other):
        return id(self) < id(other)


def test_levels_that_no_file_holds_are_refused_in_fit():
    odd = [Odd(), Odd()]
    frame = pd.DataFrame({"x": np.arange(10.0) ** 2, "thing": odd * 5})
    with pytest.raises(ValueError, match="levels of column 'thing' of type Odd"):
        short(family="auto").fit(frame)
    frame["thing"] = pd.Categorical(frame["thing"], categories=odd)
    with pytest.raises(ValueError, match="levels of column 'thing' of type Odd"):
        short(family="auto").fit(frame)
    with pytest.raises(ValueError, match="an index of type Odd"):
        short().fit(frame[["x"]].set_axis(odd * 5))
    frame["thing"] = [[1], [2]] * 5
    with pytest.raises(ValueError, match="column 'thing'"):
        short(family="auto").fit(frame)


MIXED = {
    "number": lambda x: x,
    "kind": lambda x: np.where(x > 3, "big", "small"),
    "flag": lambda x: x > 3,
    "count": lambda x: np.clip(np.rint(x), 0, None).astype(int),
}


def mixed_polars():
    columns = {name: make(numbers(False)[:, 0]) for name, make in MIXED.items()}
    frame = pl.DataFrame(columns).with_columns(
        pl.col("kind").cast(pl.Categorical).alias("category"),
        pl.col("kind").cast(pl.Enum(["small", "medium", "big"])).alias("enum"),
    )
    holes = pl.Series(np.arange(N) % 7 == 2)
    return frame.with_columns(
        pl.when(holes).then(None).otherwise(pl.col(name)).alias(name) for name in frame.columns[1:]
    )


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "arrow in pandas"])
def test_mixed_tables_of_other_libraries(kind, tmp_path):
    frame = mixed_polars()
    if kind == "pyarrow":
        frame = frame.to_arrow()
    elif kind == "arrow in pandas":
        frame = frame.to_pandas(use_pyarrow_extension_array=True)
    model = short(family="auto").fit(frame)
    assert list(model.families_) == [
        *("gaussian", "categorical", "bernoulli", "poisson", "categorical", "categorical")
    ]
    for answer in (model.impute(frame), model.X_imputed_):
        assert type(answer) is type(frame)
        frames = [
            pl.from_pandas(x) if kind == "arrow in pandas" else pl.DataFrame(x)
            for x in (answer, frame)
        ]
        for name in frames[1].columns:
            seen = frames[1][name].is_not_null()
            assert frames[0][name].null_count() == 0
            one, other = (x.filter(seen)[name].to_list() for x in frames)
            assert one == other, name
    if kind == "polars":
        assert model.impute(frame).schema["enum"] == frame.schema["enum"]
        assert model.impute(frame).schema["category"] == frame.schema["category"]
        assert model.impute(frame, rounding=True).schema == frame.schema
        assert model.sample(3)[0].schema == frame.schema
    model.save(tmp_path / "file")
    again = type(model).load(tmp_path / "file")
    for name in ("X_imputed_", "sample"):
        one, other = (
            getattr(m, name) if name == "X_imputed_" else m.sample(3, random_state=0)[0]
            for m in (again, model)
        )
        assert_equal_tables(one, other)


def test_a_level_that_the_new_table_has_no_word_for():
    x = numbers(False)[:, 0]
    frame = pd.DataFrame({"x": x, "kind": pd.Categorical(np.where(x > 3, "big", "small"))})
    model = short(family="auto").fit(frame)
    new = frame.assign(kind=pd.Categorical(["small"] * (N - 1) + [None]))
    assert model.impute(new)["kind"].isna().sum() == 0


# -- an index as plain data

INDEXES = {
    "range": pd.RangeIndex(3, 9, 2, name="r"),
    "integers": pd.Index([3, 1, 2], name=("a", 1)),
    "floats": pd.Index([0.5, np.nan]),
    "bools": pd.Index([True, False]),
    "texts": pd.Index(["a", "b", None]),
    "objects": pd.Index(["a", 1, (2, "b"), None, b"x", pd.Timestamp("2024"), pd.NaT], dtype=object),
    "dates": pd.DatetimeIndex(["2024-01-01", None], name="d"),
    "regular dates": pd.date_range("2024", periods=4, freq="MS"),
    "seconds": pd.DatetimeIndex(["2024-01-01"]).as_unit("s"),
    "zone": HOURS,
    "spans": pd.to_timedelta([1, 2], unit="h"),
    "periods": pd.period_range("2024-01", periods=3, freq="M"),
    "intervals": pd.IntervalIndex.from_breaks([0.0, 1.0, 2.0], closed="left"),
    "intervals of time": pd.interval_range(pd.Timestamp("2024"), periods=2),
    "categories": pd.CategoricalIndex(["a", "b", "a"], ["b", "a"], ordered=True, name="c"),
    "nullable": pd.Index(pd.array([1, None], dtype="Int64")),
    "pairs": PAIRS,
    "pairs with dates": pd.MultiIndex.from_product([["a"], pd.date_range("2024", periods=2)]),
    "plain dates": pd.Index([d.date() for d in pd.date_range("2024", periods=2)], dtype=object),
}


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_comes_back_from_plain_data(name, tmp_path):
    from skbnp.mcmc import io

    index = INDEXES[name]
    io.write(tmp_path / "file", "index", {"index": index_to_data(index, "an index")})
    again = index_from_data(io.read(tmp_path / "file", "index")["index"])
    pd.testing.assert_index_equal(again, index, exact=True)
    assert getattr(again, "freq", None) == getattr(index, "freq", None)


def test_forged_forms_are_refused():
    form = TableForm.of(table("MultiIndex names", False))
    form.check(3, N)
    with pytest.raises(ValueError, match="4 columns"):
        form.check(4, N)
    with pytest.raises(ValueError, match="rows"):
        form.check(3, N + 1)


# -- identifiers and dates


def clusters(n):
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(0, 1, (n // 2, 2)), rng.normal(8, 1, (n // 2, 2))])
    return pd.DataFrame(X, columns=["a", "b"])


IDENTIFIERS = {
    "from zero": lambda n: np.arange(n),
    "from a thousand": lambda n: np.arange(n) + 1000.0,
    "shuffled": lambda n: np.random.default_rng(0).permutation(n),
    "in tens": lambda n: 10 * np.arange(n),
    "a part of them": lambda n: np.sort(np.random.default_rng(0).permutation(2 * n)[:n]),
    "with holes": lambda n: np.where(np.arange(n) % 10 == 3, np.nan, np.arange(n)),
    "two of them twice": lambda n: np.maximum(np.arange(n), 2),
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_an_identifier_is_seen_whatever_its_numbers(name):
    frame = clusters(120).assign(row=IDENTIFIERS[name](120))
    assert identifier_columns(frame.to_numpy(dtype=float)) == [2]


@by_setting
def test_an_identifier_is_named_at_the_line_of_fit(setting):
    frame = clusters(40).assign(row=np.arange(40))
    with pytest.warns(UserWarning, match=r"column\(s\) 'row', .*: drop .* index") as caught:
        setting.fit(frame)
    assert any("'row'" in str(one.message) for one in caught)
    with pytest.warns(UserWarning, match=r"column\(s\) 2, ") as caught:
        X = frame.to_numpy()
        setting.make().fit(X, setting.target(X))
    found = [one for one in caught if "column(s) 2" in str(one.message)]
    assert [one.filename for one in found] == [__file__]


@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_names_of_rows_are_identifiers(dtype):
    frame = clusters(40).assign(row=[f"row {i}" for i in range(40)]).astype({"row": dtype})
    with pytest.warns(UserWarning, match="'row'"):
        short(family="auto").fit(frame)


REAL_TABLES = [load_iris, load_wine, load_breast_cancer, load_diabetes, load_digits]


@pytest.mark.parametrize("load", REAL_TABLES)
def test_no_false_alarm_on_measurements(load):
    X = load().data
    assert identifier_columns(X) == []
    rng = np.random.default_rng(0)
    for n in (5, 10, 20, 30, 50, 100):
        rows = X[rng.permutation(len(X))[:n]]
        assert identifier_columns(rows) == []
        # Whole numbers of every fineness.
        for digits in (1, 10, 100, 1000):
            spread = np.maximum(X.std(axis=0), 1e-9)
            assert identifier_columns(np.rint(rows / spread * digits)) == []


def test_false_alarms_of_the_rule_are_rare():
    """Uniform integers tie the least of all: their widest range that is looked at is the worst."""
    rng = np.random.default_rng(0)
    n_alarms = 0
    for n in (25, 60, 200):
        X = rng.integers(0, n * (n - 1) // 20, size=(n, 2000)).astype(float)
        n_alarms += len(identifier_columns(X))
    # At most e^-10 each: among 6,000 more than 3 come with a chance of 2e-4.
    assert n_alarms <= 3


@by_setting
@pytest.mark.filterwarnings("ignore:.*reach beyond the range")
def test_a_cell_that_makes_all_others_equal_is_named(setting):
    frame = clusters(40)
    frame.iloc[7, 1] = 1e30
    name = frame.columns[1]
    with pytest.warns(UserWarning, match=rf"so far out in column\(s\) '{name}'") as caught:
        setting.fit(frame)
    assert sum("so far out" in str(one.message) for one in caught) == 1


@pytest.mark.parametrize("n", [4, 10, 19, 40, 1000])
@pytest.mark.parametrize("far", [1e7, -1e7, 1e150, -1e307])
@pytest.mark.parametrize("unit", [1e-290, 1.0])
def test_columns_of_one_far_cell(n, far, unit):
    X = np.random.default_rng(n).normal(size=(n, 3)) * unit
    assert outlying_columns(X) == []
    X[n // 2, 1] = far * unit
    X[n // 3, 2] = np.nan
    assert outlying_columns(X) == [1]
    assert outlying_columns(X, nominal=[1]) == []


@pytest.mark.parametrize("load", REAL_TABLES)
def test_measurements_are_not_far_out(load):
    assert outlying_columns(load().data) == []


def test_long_tails_are_not_far_out():
    rng = np.random.default_rng(0)
    assert outlying_columns(rng.standard_cauchy(size=(500, 200))) == []
    assert outlying_columns(rng.lognormal(sigma=2.5, size=(500, 200))) == []
    assert outlying_columns((rng.random((500, 20)) < 0.01) * 1e30) == []  # the others are equal


DATES = {
    "datetime": pd.date_range("2024", periods=40),
    "of a zone": pd.date_range("2024", periods=40, tz="UTC"),
    "period": pd.period_range("2024", periods=40, freq="D"),
    "span": pd.to_timedelta(np.arange(40), unit="D"),
    "date": [d.date() for d in pd.date_range("2024", periods=40)],
    "text": [str(d.date()) for d in pd.date_range("2024", periods=40)],
}


@by_setting
@pytest.mark.parametrize("kind", DATES)
def test_dates_are_refused_where_numbers_are_due(setting, kind):
    frame = clusters(40).assign(when=DATES[kind])
    y = setting.target(clusters(40).to_numpy())
    with pytest.raises((TypeError, ValueError), match="'when'.*drop it, set it as the index"):
        setting.make().fit(frame, y)
    model = fitted(setting, "pandas", False)
    with pytest.raises((TypeError, ValueError), match="'c'.*drop it, set it as the index"):
        getattr(model, any_method(model))(frame.set_axis(["a", "b", "c"], axis=1))
    if kind == "datetime":
        with pytest.raises((TypeError, ValueError), match="dates or times"):
            setting.make().fit(frame[["when"]].to_numpy(), y)
        with pytest.raises((TypeError, ValueError), match="'when'.*drop it"):
            setting.make().fit(pl.from_pandas(frame), y)


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_no_levels_unless_they_are_said_to_be(kind):
    frame = clusters(40).assign(when=DATES[kind])
    with pytest.raises(ValueError, match="no dates or times.*'when'.*drop it"):
        short(family="auto").fit(frame)
    frame["when"] = pd.Series(DATES[kind]).take(np.repeat(np.arange(4), 10)).to_numpy()
    with pytest.raises(ValueError, match="no dates or times.*'when'.*drop it"):
        short(family="auto").fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        short(family={"when": "categorical"}).fit(frame)
        short(family="auto").fit(frame.astype({"when": "category"}))


def test_supervised_targets_may_be_frames():
    X, y = numbers(False), numbers(False)[:, 0]
    one = ICPNetworkRegressor(n_chains=1, n_warmup=3, n_draws=3, random_state=0).fit(X, y)
    other = clone(one).fit(table("polars", False), pl.Series(y))
    assert_array_equal(one.predict(X), other.predict(table("polars", False)))
