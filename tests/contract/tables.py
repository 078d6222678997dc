"""Tables of numbers in every form that users have them in, and what tests ask of answers."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest

from contract.registry import SHORTEST
from skbnp import DirichletProcessMixture

try:
    import polars as pl
except ImportError:  # tests of its frames are skipped
    pl = None
try:
    import pyarrow as pa
except ImportError:
    pa = None

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
    "objects": objects,
}
# What most tables are.
COMMON = ("numpy", "masked", "pandas", "MultiIndex names", "objects", "polars")
if pl is not None:
    FORMS["polars"] = lambda X: pl.DataFrame(X, schema=["a", "b", "c"]).fill_nan(None)
    FORMS["polars by default"] = lambda X: pl.DataFrame(X).fill_nan(None)
if pa is not None:
    FORMS["arrow in pandas"] = pandas_with(["a", "b", "c"], SHUFFLED, "double[pyarrow]")
    FORMS["pyarrow"] = lambda X: pa.table(
        {name: pa.array(column, from_pandas=True) for name, column in zip("abc", X.T, strict=True)}
    )


def table(form, holes):
    """The numbers in a form; the test is skipped where there is no library for it."""
    if form not in FORMS:
        pytest.skip(f"needs the library of {form!r}")
    return FORMS[form](numbers(holes))


def values(answer):
    """The numbers of a table, NaN where missing."""
    if isinstance(answer, pd.DataFrame):
        return answer.to_numpy(dtype=float, na_value=np.nan)
    if pl is not None and isinstance(answer, pl.DataFrame):
        if answer.shape == (0, 0):
            pytest.skip("before polars 2 a frame without columns has no rows either")
        return answer.to_numpy()
    if pa is not None and isinstance(answer, pa.Table):
        return np.column_stack([column.to_numpy() for column in answer.columns])
    return np.asarray(answer)


def assert_same_form(answer, given, rows=True):
    """Equal in kind and names, and in the index unless the rows are new ones."""
    assert type(answer) is (np.ndarray if isinstance(given, list) else type(given))
    if isinstance(given, pd.DataFrame):
        pd.testing.assert_index_equal(answer.columns, given.columns, exact=True)
        expected = given.index if rows else pd.RangeIndex(len(answer))
        pd.testing.assert_index_equal(answer.index, expected, exact=True)
        assert getattr(answer.index, "freq", None) == getattr(expected, "freq", None)
    elif isinstance(given, (list, np.ndarray)):
        assert answer.dtype == np.float64
        assert not np.ma.is_masked(answer)
    else:
        assert answer.schema == given.schema


_FITTED = {}


def fitted(setting, form, holes):
    """One fit of each case, shared by the tests."""
    case = setting.name, form, holes
    if case not in _FITTED:
        model = setting.make(**SHORTEST)
        _FITTED[case] = model.fit(table(form, holes), setting.target(numbers(holes)))
    return _FITTED[case]


def has(estimator, name):
    return getattr(estimator, name, None) is not None


def any_method(estimator):
    """The name of one method that takes a table."""
    return "predict" if has(estimator, "predict") else "score_samples"


def clone_of_fitted(model):
    return pickle.loads(pickle.dumps(model))


def assert_equal_tables(one, other):
    assert type(one) is type(other)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_freq=True, check_exact=True)
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    else:
        assert one.equals(other)


def short(**options):
    """A mixture of one short chain."""
    return DirichletProcessMixture(
        **dict(n_chains=1, n_warmup=4, n_draws=4, random_state=0) | options
    )
