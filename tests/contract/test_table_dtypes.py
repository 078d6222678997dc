"""Answers keep the dtypes of columns where these hold them, levels of any type included."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from contract.tables import (
    HOURS,
    PAIRS,
    SHUFFLED,
    N,
    assert_equal_tables,
    clone_of_fitted,
    numbers,
    short,
    table,
)
from skbnp import TreeFactorModel
from skbnp.tables.forms import TableForm
from skbnp.tables.labels import index_from_data, index_to_data

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:covariance_type='full' has little"),
]


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
    model = short(covariance_type="diag", family="gaussian").fit(frame)
    for answer in (model.X_imputed_, model.impute(frame)):
        assert list(map(str, answer.dtypes)) == expected
        assert (answer.drop(frame.index[[3, 4, 5]]) == frame.drop(frame.index[[3, 4, 5]])).all(
            axis=None
        )
    pd.testing.assert_frame_equal(model.impute(frame.iloc[10:]), frame.iloc[10:], check_exact=True)
    # Samples of a real column are no integers.
    dtypes = list(map(str, model.sample(3)[0].dtypes))
    assert dtypes == ["float32", "Float64", "float64", "Float64", "float64"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int16, np.bool_, ">f8", "list"])
@pytest.mark.parametrize("is_masked", [False, True])
def test_an_array_keeps_its_dtype_where_that_holds_its_values(dtype, is_masked):
    """Integers with a filled cell are seldom whole, and samples of a real column never."""
    holes = np.arange(3 * N).reshape(N, 3) % 7 == 3
    dtype, is_list = (np.float64, True) if dtype == "list" else (np.dtype(dtype), False)
    X = (10 * numbers(False)) if np.dtype(dtype).kind != "b" else numbers(False) > 3
    X = X.astype(dtype)
    given = np.ma.MaskedArray(X, mask=holes) if is_masked else X.tolist() if is_list else X
    model = short(covariance_type="diag").fit(given)
    filled, std = model.impute(given, return_std=True)
    assert type(filled) is type(std) is (np.ma.MaskedArray if is_masked else np.ndarray)
    assert std.dtype == np.float64
    kept = np.dtype(dtype).newbyteorder("=")
    assert filled.dtype == (np.float64 if is_masked and kept.kind in "bi" else kept)
    assert_array_equal(filled[~holes], X[~holes])
    rows = model.sample(3, random_state=0)[0]
    assert rows.dtype == (kept if kept.kind == "f" else np.float64)
    if is_masked:
        assert model.X_imputed_.dtype == filled.dtype
        assert not np.ma.is_masked(model.X_imputed_)


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_])
def test_samples_of_counts_in_an_array(dtype):
    """A count of 2 is no bool, and one of 300 no byte."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (60, 2)).clip(0, 1) if dtype == np.bool_ else rng.poisson(5, (60, 2))
    model = short(family="poisson").fit(X.astype(dtype))
    few = model.sample(1, random_state=0)[0]
    assert few.dtype == (dtype if few.max() <= 1 or dtype != np.bool_ else np.int64)
    many = model.sample(300, random_state=0)[0]
    assert many.max() > 1
    assert many.dtype == (np.int64 if dtype == np.bool_ else np.uint8)
    frame = pd.DataFrame(X.astype(dtype), columns=["a", "b"])
    many = short(family="poisson").fit(frame).sample(300, random_state=0)[0]
    assert many["a"].max() > 1
    assert many["a"].dtype == (np.int64 if dtype == np.bool_ else np.uint8)


@pytest.mark.parametrize("dtype", ["int8", "Int8", "int8[pyarrow]", "polars"])
def test_samples_of_counts_do_not_leave_their_dtype(dtype):
    """A count of 130 would be -126 in the dtype of its column."""
    rng = np.random.default_rng(0)
    x, counts = rng.normal(size=40), np.minimum(rng.poisson(115, size=40), 127)
    if dtype == "polars":
        frame = pl.DataFrame({"x": x, "k": counts.astype(np.int8)})
    else:
        frame = pd.DataFrame({"x": x, "k": pd.array(counts, dtype=dtype)})
    family = {"k": "poisson"}
    rows = short(family=family).fit(frame).sample(200, random_state=0)[0]
    drawn = np.asarray(rows["k"], dtype=np.int64)
    assert drawn.max() > 127
    assert drawn.min() >= 0
    few = short(family=family).fit(frame).sample(1, random_state=0)[0]
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
    answer = short(covariance_type="diag", family="gaussian").fit(frame).X_imputed_
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
