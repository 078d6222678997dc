"""The columns of any table: arrays, sparse matrices, and frames of any library."""

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from skbnp.tables.kinds_of_numbers import LARGEST_WHOLE
from skbnp.tables.marks import marks_of, numbers_of

# A number, thousands maybe apart, with a currency or a percent sign.
_MARKED_NUMBER = re.compile(
    r"[$€£¥]?\s*[+-]?(\d{1,3}(([,' ]\d{2,3})+|(\.\d{3})+)|\d+)([.,]\d*)?\s*[%$€£¥]?"
)
# What to do with a column that no model has a law for.
DROP_IT = "drop it, set it as the index, or turn it into numbers (such as days since a start)"


def is_frame(X):
    """Whether X is a table with named columns; a lazy one raises a TypeError."""
    if nw.dependencies.is_polars_lazyframe(X):
        raise TypeError("X must be a table in memory, got a lazy frame: use X.collect()")
    return nw.dependencies.is_into_dataframe(X)


def is_pandas(X):
    return nw.dependencies.is_pandas_dataframe(X)


# -- columns


@dataclass(frozen=True)
class Column:
    """One column of a table, whatever that is made of.

    Parameters
    ----------
    kind : {"real", "integer", "bool", "category", "text", "date"}
        By the dtype; "text" are names and objects of any type, "date" dates, times and spans.
        Objects that are all numbers are what these are. Floats of NumPy in a frame of pandas are
        integers where they are whole and a cell is missing: pandas has made them floats for that.
    values : ndarray
        The cells that are not missing; dates as objects, numbers maybe as text.
    missing : ndarray of bool of shape (n_samples,)
        Cells that are masked or hold None, NaN or another sign for nothing.
    levels : ndarray or None
        All levels that the dtype names, in its order.
    """

    kind: str
    values: np.ndarray
    missing: np.ndarray
    levels: np.ndarray | None = None

    def marked(self, marks):
        """Which cells hold one of these numbers and strings, (n_samples,)."""
        hit = np.zeros(len(self.missing), dtype=bool)
        if marks and self.kind != "date":
            hit[~self.missing] = _are_among(self.values, marks)
        return hit

    def without(self, marks):
        """The column with cells that hold one of these numbers and strings missing.

        Names that are all numbers once the marks are gone are of the kind of these numbers. They
        stay names among the values, as in another part of the table, which has no marks.
        """
        if not marks or self.kind == "date":
            return self
        hit = _are_among(self.values, marks)
        levels = None if self.levels is None else self.levels[~_are_among(self.levels, marks)]
        missing, values, kind = self.missing.copy(), self.values[~hit], self.kind
        missing[np.flatnonzero(~missing)[hit]] = True
        if kind == "text" and hit.any():
            try:
                numbers = values.astype(np.float64)
            except (TypeError, ValueError):
                return Column(kind, values, missing, levels)
            kind = "integer" if (np.floor(numbers) == numbers).all() else "real"
        return Column(kind, values, missing, levels)

    def numbers(self, label, rule="numbers"):
        """The column as float64, NaN where missing.

        Parameters
        ----------
        label : str
            The column in words, for messages.
        rule : str
            What it must hold, for messages.
        """
        out = np.full(len(self.missing), np.nan)
        if self.kind == "date":
            raise ValueError(f"X must hold {rule}, got dates or times in {label}: {DROP_IT}")
        if self.values.dtype.kind == "c":
            raise ValueError(f"X must hold {rule}, got complex numbers in {label}")
        try:
            out[~self.missing] = self.values.astype(np.float64)
        except (TypeError, ValueError) as error:
            advice = f": {DROP_IT}" if are_dates(self) else ""
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"X must hold {rule}, got {label}: {error}{advice}") from error
        return out

    def a_marked_number(self):
        """One of the texts that is no number for Python, if all may be numbers; else None."""
        values = self.values.tolist()
        if self.kind != "text" or not all(isinstance(x, str) for x in values):
            return None
        if not all(_MARKED_NUMBER.fullmatch(x.strip()) for x in values):
            return None
        return next((x for x in values if not x.strip().isdigit()), None)

    def holds_numbers_as_text(self):
        """Whether all cells are texts of numbers, not all whole: groups have other names."""
        values = self.values.tolist()
        if self.kind != "text" or not values or not all(isinstance(x, str) for x in values):
            return False
        try:
            numbers = self.values.astype(np.float64)
        except ValueError:
            return False
        return bool(np.isfinite(numbers).all() and (np.floor(numbers) != numbers).any())


def _are_among(values, marks):
    if values.dtype.kind in "biufc":
        return np.isin(values, numbers_of(marks, values.dtype))
    # Cells may be of any type, arrays say.
    same = [
        isinstance(x, (str, Real)) and not isinstance(x, bool) and x in marks
        for x in values.tolist()
    ]
    return np.array(same, dtype=bool)


def are_dates(column):
    """Whether a column holds dates, as such or as ISO text, in nearly every cell that it has."""
    if column.kind == "date":
        return True
    values = column.values if column.levels is None else column.levels
    texts = [value for value in values.tolist() if isinstance(value, str)]
    if column.kind not in ("category", "text") or not texts or len(texts) < 0.9 * len(values):
        return False
    # Most columns are known from their first cells.
    if not any(map(_is_iso_date, texts[:10])):
        return False
    return sum(map(_is_iso_date, texts)) >= 0.9 * len(values)


def _is_iso_date(text):
    # Eight digits without dashes may as well be a number.
    if len(text) < 10 or text[4] != "-" or not text[0].isdigit():
        return False
    try:
        datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def columns_of(X, marks=None):
    """The columns of any table.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
    marks : dict or None
        What stands for missing cells, as `skbnp.tables.marks.resolve_marks` has it.

    Returns
    -------
    columns : list of Column
    """
    columns = _columns_of(X)
    if not marks:
        return columns
    return [column.without(marks_of(marks, j)) for j, column in enumerate(columns)]


def _columns_of(X):
    if is_pandas(X):
        return [_column_of_pandas(X.iloc[:, j]) for j in range(X.shape[1])]
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        return [_column_of_narwhals(frame[name]) for name in frame.columns]
    X = X.toarray() if issparse(X) else _unlisted(X)
    mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    X = np.ma.getdata(X) if mask is not None else X
    X = check_array(X, dtype=None, ensure_all_finite=False, input_name="X")
    masks = [False] * X.shape[1] if mask is None else mask.T
    return [_column_of_array(x, masked) for x, masked in zip(X.T, masks, strict=True)]


def _unlisted(X):
    """Rows in lists, where some cells are text, as an array of objects.

    NumPy would make text of all cells, the word nan of missing ones.
    """
    if not isinstance(X, (list, tuple)) or np.asarray(X).dtype.kind not in "SU":
        return X
    cells = np.array(X, dtype=object)
    return X if all(isinstance(cell, (str, bytes)) for cell in cells.ravel()) else cells


_KINDS = {"b": "bool", "i": "integer", "u": "integer", "f": "real", "c": "real"}


def _column_of_array(x, masked=False):
    if x.dtype.kind in "mM":
        missing = np.isnat(x) | masked
        # Nanoseconds would become plain integers.
        return Column("date", x[~missing].astype(f"{x.dtype.kind}8[us]").astype(object), missing)
    if x.dtype.kind == "O":
        missing = np.array([is_missing(cell) for cell in x], dtype=bool) | masked
        return _column_of_objects(x[~missing], missing)
    missing = (np.isnan(x) if x.dtype.kind in "fc" else np.zeros(len(x), dtype=bool)) | masked
    return Column(_KINDS.get(x.dtype.kind, "text"), x[~missing], missing)


def _column_of_objects(values, missing):
    dates = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
    if len(values) and isinstance(values[0], dates) and all(isinstance(x, dates) for x in values):
        return Column("date", values, missing)
    if len(values) and all(isinstance(x, Decimal) for x in values):
        return Column("real", values.astype(np.float64), missing)
    return Column(_kind_of_objects(values), values, missing)


def _kind_of_objects(values):
    """What a column of these objects is: numbers where all of them are, of the widest kind."""
    if not len(values) or not all(map(_is_number, values)):
        return "text"
    if all(isinstance(x, (bool, np.bool_)) for x in values):
        return "bool"
    return "integer" if all(isinstance(x, Integral) for x in values) else "real"


def _is_number(cell):
    return isinstance(cell, (Real, np.bool_))


def _column_of_pandas(series):
    import pandas as pd

    missing = series.isna().to_numpy(dtype=bool)
    dtype = series.dtype
    if dtype.kind == "f" and not isinstance(dtype, np.dtype):
        # To pandas NaN is a number there, as of 0 / 0.
        missing = missing | np.isnan(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories
        levels = categories.to_numpy()
        if levels.dtype.kind in "mM" or isinstance(categories, pd.IntervalIndex):
            levels = categories.astype(object).to_numpy()
        return Column("category", levels[series.cat.codes.to_numpy()[~missing]], missing, levels)
    if isinstance(dtype, pd.PeriodDtype) or dtype.kind in "mM":
        return Column("date", series[~missing].astype(object).to_numpy(), missing)
    values = series[~missing].to_numpy()
    if isinstance(dtype, np.dtype) and dtype.kind == "f" and missing.any():
        is_whole = len(values) > 0 and bool((np.floor(values) == values).all())
        return Column("integer" if is_whole else "real", values, missing)
    if dtype.kind in _KINDS:
        return Column(_KINDS[dtype.kind], values, missing)
    return _column_of_objects(objects(values), missing)


def _column_of_narwhals(series):
    dtype = series.dtype
    if dtype.is_float():
        return _column_of_array(series.to_numpy())
    missing = series.is_null().to_numpy().astype(bool)
    present = series.filter((~missing).tolist()) if missing.any() else series
    if dtype.is_temporal():
        return Column("date", objects(present.to_list()), missing)
    if dtype == nw.Boolean:
        return Column("bool", np.array(present.to_list(), dtype=bool), missing)
    if dtype.is_integer():
        return Column("integer", present.to_numpy(), missing)
    if dtype.is_numeric():
        return Column("real", present.to_numpy(), missing)
    values = objects(present.to_list())
    if isinstance(dtype, nw.Enum):
        return Column("category", values, missing, objects(dtype.categories))
    if dtype == nw.Categorical:
        return Column("category", values, missing)
    return _column_of_objects(values, missing)


def tells_kinds(X):
    """Whether a table says of each column what it is: a frame, or an array of objects and names.

    An array of numbers has one dtype for all, and so have objects that are all numbers. Rows in
    lists are as an array of what they hold.
    """
    if is_frame(X):
        return True
    X = _unlisted(X)
    if not isinstance(X, np.ndarray) or X.dtype.kind != "O":
        return False
    cells = X.compressed() if isinstance(X, np.ma.MaskedArray) else X.ravel()
    return any(isinstance(cell, (str, bytes)) for cell in cells)


def is_missing(cell):
    """Whether one object stands for nothing: None, NaN, NaT or pandas' NA."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except TypeError:  # NA is neither equal nor different
        return type(cell).__name__ == "NAType"
    except ValueError:  # an array in a cell
        return False


def objects(items):
    """A one-dimensional array of objects, also where these are tuples or arrays."""
    items = list(items)
    out = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        out[place] = item
    return out


def in_words(name):
    """A column in words, by its name or position."""
    return f"column {str(name)!r}" if isinstance(name, str) else f"column {name!r}"


def as_numbers(X, marks=None):
    """A table of numbers, for scikit-learn's checks: NaN where cells are masked or missing.

    Parameters
    ----------
    X : array-like or frame
    marks : dict or None
        What stands for missing cells, as `skbnp.tables.marks.resolve_marks` has it: of a frame
        all of them are NaN, of an array the strings; `skbnp.tables.marks.unmarked` does the rest.

    Returns
    -------
    X : array-like
        An array for a frame, a masked array or an array of objects; all else as it came.
    """
    if is_frame(X):
        return _frame_as_floats(X, marks)
    if isinstance(X, np.ma.MaskedArray):
        if X.dtype.kind in "biuf":
            return X.astype(np.float64).filled(np.nan)
        mask, X = np.ma.getmaskarray(X), np.ma.getdata(X)
        X = X.astype(object) if mask.any() else X
        X[mask] = None
    if getattr(getattr(X, "dtype", None), "kind", "") in tuple("mM"):
        raise ValueError(f"X must hold numbers, got dates or times: {DROP_IT}")
    if isinstance(X, (list, tuple)) or getattr(getattr(X, "dtype", None), "kind", "") == "U":
        # Numbers beside a mark that is text would all be read as text.
        if any(isinstance(x, str) for values in (marks or {}).values() for x in values):
            X = np.array(X, dtype=object)
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        missing = np.array([is_missing(cell) for cell in X.ravel()], dtype=bool)
        X = np.where(missing.reshape(X.shape), np.nan, X)
        known = [None, *range(X.shape[1])] if X.ndim == 2 else []
        for place, values in (marks or {}).items():
            if place not in known:
                continue  # refused by whoever knows the columns
            part = X if place is None else X[:, place]
            part[_are_among(part.ravel(), values).reshape(part.shape)] = np.nan
    return X


def infinite_columns(X):
    """Places of the columns of a table of numbers that hold infinity."""
    return np.flatnonzero(np.isinf(np.asarray(X, dtype=np.float64)).any(axis=0))


def refuse_inexact(X, floats):
    """Raise a ValueError for an integer of X that is another number among its floats.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
    floats : ndarray of shape (n_samples, n_features)
        What X has been read as.

    Returns
    -------
    floats : ndarray
    """
    with np.errstate(invalid="ignore"):
        large = np.abs(floats) >= LARGEST_WHOLE
    for j in np.flatnonzero(large.any(axis=0)):
        if is_frame(X):
            frame = nw.from_native(X, eager_only=True)
            name, cells = in_words(names_of(X)[j]), frame[:, int(j)].to_list()
        else:
            table = X.toarray() if issparse(X) else np.asarray(X, dtype=object)
            name, cells = in_words(int(j)), table[:, j]
        for i in np.flatnonzero(large[:, j]):
            if isinstance(cells[i], Integral) and int(cells[i]) != int(floats[i, j]):
                raise ValueError(
                    f"X must hold integers up to 2^53 in size, beyond which floats do not hold "
                    f"them all, got {cells[i]} in {name}; if it is a name of rows, drop it"
                )
    return floats


def _frame_as_floats(X, marks=None):
    if is_pandas(X) and not marks:
        if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in X.dtypes):
            return X.to_numpy(dtype=np.float64)
    columns = columns_of(X, marks)
    out = np.empty((X.shape[0], len(columns)))
    for j, (name, column) in enumerate(zip(names_of(X), columns, strict=True)):
        out[:, j] = column.numbers(in_words(name), "numbers, NaN where missing")
        if column.kind in ("category", "text"):  # numbers that came as text
            out[np.isin(out[:, j], numbers_of(marks_of(marks or {}, j), None)), j] = np.nan
    return out


def names_of(X):
    """Names of the columns of a frame, None for all other tables."""
    if is_pandas(X):
        return X.columns.tolist()
    return list(nw.from_native(X, eager_only=True).columns) if is_frame(X) else None


def labels_or_numbers(names, n_columns):
    """Names of columns as a list; x0, x1, ... where there are none."""
    return [f"x{j}" for j in range(n_columns)] if names is None else list(names)
