"""Tables as they come in: the columns of any table, and answers in the same form.

A frame of pandas is read and made by pandas, which alone has an index and names of any type; all
others (polars, pyarrow) go through narwhals. All that is kept of a table is plain data.
"""

import datetime
from dataclasses import dataclass
from decimal import Decimal

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

# What to do with a column that no model has a law for.
DROP_IT = "drop it, set it as the index, or turn it into numbers (such as days since a start)"


def is_frame(X):
    """Whether X is a table with named columns; a lazy one raises a TypeError."""
    if nw.dependencies.is_polars_lazyframe(X):
        raise TypeError("X must be a table in memory, got a lazy frame: use X.collect()")
    return nw.dependencies.is_into_dataframe(X)


def _is_pandas(X):
    return nw.dependencies.is_pandas_dataframe(X)


# -- columns


@dataclass(frozen=True)
class Column:
    """One column of a table, whatever that is made of.

    Parameters
    ----------
    kind : {"real", "integer", "bool", "category", "text", "date"}
        By the dtype; "text" are names and objects of any type, "date" dates, times and spans.
    values : ndarray
        The cells that are not missing; dates as objects.
    missing : ndarray of bool of shape (n_samples,)
        Cells that are masked or hold None, NaN or another sign for nothing.
    levels : ndarray or None
        All levels that the dtype names, in its order.
    """

    kind: str
    values: np.ndarray
    missing: np.ndarray
    levels: np.ndarray | None = None

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


def columns_of(X):
    """The columns of any table.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)

    Returns
    -------
    columns : list of Column
    """
    if _is_pandas(X):
        return [_column_of_pandas(X.iloc[:, j]) for j in range(X.shape[1])]
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        return [_column_of_narwhals(frame[name]) for name in frame.columns]
    if issparse(X):
        X = X.toarray()
    mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    X = np.ma.getdata(X) if mask is not None else X
    X = check_array(X, dtype=None, ensure_all_finite=False, input_name="X")
    masks = [False] * X.shape[1] if mask is None else mask.T
    return [_column_of_array(x, masked) for x, masked in zip(X.T, masks, strict=True)]


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
    return Column("text", values, missing)


def _column_of_pandas(series):
    import pandas as pd

    missing = series.isna().to_numpy(dtype=bool)
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories
        levels = categories.to_numpy()
        if levels.dtype.kind in "mM" or isinstance(categories, pd.IntervalIndex):
            levels = categories.astype(object).to_numpy()
        return Column("category", levels[series.cat.codes.to_numpy()[~missing]], missing, levels)
    if isinstance(dtype, pd.PeriodDtype) or dtype.kind in "mM":
        return Column("date", series[~missing].astype(object).to_numpy(), missing)
    values = series[~missing].to_numpy()
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


def as_numbers(X):
    """A table of numbers, for scikit-learn's checks: NaN where cells are masked or missing.

    Parameters
    ----------
    X : array-like or frame

    Returns
    -------
    X : array-like
        An array for a frame, a masked array or an array of objects; all else as it came.
    """
    if is_frame(X):
        return _frame_as_floats(X)
    if isinstance(X, np.ma.MaskedArray):
        if X.dtype.kind in "biuf":
            return X.astype(np.float64).filled(np.nan)
        mask, X = np.ma.getmaskarray(X), np.ma.getdata(X)
        X = X.astype(object) if mask.any() else X
        X[mask] = None
    if getattr(getattr(X, "dtype", None), "kind", "") in tuple("mM"):
        raise ValueError(f"X must hold numbers, got dates or times: {DROP_IT}")
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        missing = np.array([is_missing(cell) for cell in X.ravel()], dtype=bool)
        X = np.where(missing.reshape(X.shape), np.nan, X)
    return X


def _frame_as_floats(X):
    if _is_pandas(X):
        if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in X.dtypes):
            return X.to_numpy(dtype=np.float64)
    columns = columns_of(X)
    out = np.empty((X.shape[0], len(columns)))
    for j, (name, column) in enumerate(zip(names_of(X), columns, strict=True)):
        out[:, j] = column.numbers(in_words(name), "numbers, NaN where missing")
    return out


def names_of(X):
    """Names of the columns of a frame, None for all other tables."""
    if _is_pandas(X):
        return X.columns.tolist()
    return list(nw.from_native(X, eager_only=True).columns) if is_frame(X) else None


# -- identifiers


def identifier_columns(X, nominal=()):
    """Columns whose values differ in nearly every row, as numbers or names of rows do.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where missing.
    nominal : sequence of int
        Columns whose numbers are codes of levels.

    Returns
    -------
    columns : list of int
        Of whole numbers, so narrow in range that independent rows would tie ten times and more:
        by the birthday bound, fewer ties among such rows than a tenth of that happen less than
        once in a thousand tables, whatever the law of a column.
    """
    if X.shape[1] < 2:
        return []
    nominal = set(nominal)
    return [j for j in range(X.shape[1]) if _is_identifier(X[:, j], j in nominal)]


def _is_identifier(x, nominal):
    x = x[np.isfinite(x)]
    n = len(x)
    if n < 2 or not (np.abs(x) < 2**53).all() or not (x == np.floor(x)).all():
        return False
    step = x - x.min()
    # Numbers may go up in tens. Codes of levels may have gaps where no row has the level.
    unit = np.gcd.reduce(step.astype(np.int64))
    n_places = int(step.max() / max(unit, 1)) + 1
    if n_places < 0.9 * n:
        return False
    if not nominal and n * (n - 1) < 20 * n_places:
        return False
    n_values = len(np.unique(x))
    n_ties = n - n_values
    n_expected = n * (n - 1) / (2 * (n_values if nominal else n_places))
    return n_values >= 0.9 * n and n_expected >= 10 * (1 + n_ties)


# -- forms


@dataclass(frozen=True)
class TableForm:
    """The form that a table came in, as plain data.

    Parameters
    ----------
    kind : str
        "array", "pandas", or what narwhals calls the library of the frame.
    names : plain data or None
        Of the columns of a frame.
    index : plain data or None
        Of the rows of a frame of pandas.
    dtypes : tuple of plain data
        Of the columns; None for one that takes the dtype of its values.
    """

    kind: str
    names: object = None
    index: object = None
    dtypes: tuple = ()

    @classmethod
    def of(cls, X):
        """The form of a table.

        Parameters
        ----------
        X : array-like or frame

        Raises
        ------
        ValueError
            If two columns have one name, or a file could not hold a name or a level.
        TypeError
            If X is a lazy frame.
        """
        if not is_frame(X):
            return cls("array")
        if _is_pandas(X):
            twice = X.columns[X.columns.duplicated()]
            if len(twice):
                raise ValueError(
                    f"X must have a name of its own for every column, got {twice[0]!r} twice"
                )
            dtypes = []
            for name, dtype in zip(X.columns, X.dtypes, strict=True):
                dtypes.append(_dtype_to_data(dtype, f"levels of {in_words(name)}"))
            return cls(
                "pandas",
                index_to_data(X.columns, "column names"),
                index_to_data(X.index, "an index"),
                tuple(dtypes),
            )
        frame = nw.from_native(X, eager_only=True)
        dtypes = tuple(_narwhals_to_data(dtype) for dtype in frame.schema.values())
        return cls(str(frame.implementation), list(frame.columns), None, dtypes)

    def labels(self):
        """Names of the columns, None for an array."""
        if self.kind == "array":
            return None
        return list(self.names if self.kind != "pandas" else index_from_data(self.names))

    def check_names(self, X):
        """Raise a ValueError where a frame has other names than this one, or in another order.

        Names that are all strings are left to scikit-learn, which says the same of them.
        """
        mine, others = self.labels(), names_of(X)
        if mine is None or others is None or mine == others or len(mine) != len(others):
            return
        if not all(isinstance(name, str) for name in mine):
            raise ValueError(
                "The feature names should match those that were passed during fit: X must have "
                f"the columns {_shown(mine)}, in this order, got {_shown(others)}"
            )

    def build(self, columns, whole=(), with_index=True):
        """A table of this form.

        Parameters
        ----------
        columns : list of ndarray, or ndarray of shape (n_features, n_samples)
            Values of each column.
        whole : collection of int
            Columns whose numbers are whole: they may be of a dtype of integers.
        with_index : bool
            Whether the rows are those of the table that this is the form of.

        Returns
        -------
        table : ndarray or frame
            A column keeps its dtype where that holds its values. Numbers that are not whole in a
            column of integers make it one of floats.
        """
        if self.kind == "array":
            return _stacked(columns)
        if self.kind != "pandas":
            dtypes = map(_narwhals_from_data, self.dtypes)
            return _narwhals_frame(self.names, columns, dtypes, whole, self.kind)
        dtypes = map(_dtype_from_data, self.dtypes)
        index = index_from_data(self.index) if with_index else None
        return _pandas_frame(index_from_data(self.names), columns, dtypes, whole, index)

    def check(self, n_columns, n_rows=None):
        """Raise a ValueError unless a table of so many columns, and rows, can be built."""
        if self.kind == "array":
            return
        found = [len(self.dtypes), len(self.labels())]
        if found != [n_columns] * 2:
            raise ValueError(f"the form of a table must have {n_columns} columns, got {found}")
        if self.kind == "pandas" and n_rows is not None:
            if len(index_from_data(self.index)) != n_rows:
                raise ValueError(f"the index of a table must have {n_rows} rows")
        self.build([np.empty(0)] * n_columns, with_index=False)


def fill_table(X, columns, holes, whole=()):
    """A table with the columns that have holes replaced.

    Parameters
    ----------
    X : array-like or frame
    columns : list of ndarray, or ndarray of shape (n_features, n_samples)
        All columns without holes.
    holes : ndarray of bool of shape (n_features,)
        Which columns have missing cells in X; all others stay as they are.
    whole : collection of int
        Columns whose numbers are whole: they may be of a dtype of integers.

    Returns
    -------
    table : ndarray or frame
        Of the kind, names and index of X; dtypes as by `TableForm.build`.
    """
    if _is_pandas(X):
        columns = [x if holes[j] else X.iloc[:, j] for j, x in enumerate(columns)]
        dtypes = list(X.dtypes)
        return _pandas_frame(X.columns, columns, dtypes, whole, X.index)
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        columns = [
            x if holes[j] else frame[name]
            for j, (name, x) in enumerate(zip(frame.columns, columns, strict=True))
        ]
        dtypes = map(_kept, frame.schema.values())
        return _narwhals_frame(frame.columns, columns, dtypes, whole, frame.implementation)
    return _stacked(columns)


def floats_like(X, values):
    """Floats of shape (n_samples, n_features) in a table of the kind, names and index of X."""
    if _is_pandas(X):
        return _pandas_frame(X.columns, values.T, [None] * values.shape[1], (), X.index)
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        dtypes = [nw.Float64()] * values.shape[1]
        return _narwhals_frame(frame.columns, values.T, dtypes, (), frame.implementation)
    return values


def _pandas_frame(names, columns, dtypes, whole, index):
    import pandas as pd

    series = {
        j: column
        if isinstance(column, pd.Series)
        else _pandas_column(column, dtype, j in whole, index)
        for j, (column, dtype) in enumerate(zip(columns, dtypes, strict=True))
    }
    frame = pd.DataFrame(series, copy=True)
    frame.columns = names
    return frame


def _narwhals_frame(names, columns, dtypes, whole, library):
    series = {
        name: column
        if isinstance(column, nw.Series)
        else _narwhals_column(name, column, dtype, j in whole, library)
        for j, (name, column, dtype) in enumerate(zip(names, columns, dtypes, strict=True))
    }
    return nw.from_dict(series).to_native()


def _shown(names):
    return "[" + ", ".join(map(repr, names[:10])) + (", ...]" if len(names) > 10 else "]")


def _stacked(columns):
    """Columns side by side; as objects where no other dtype holds them all."""
    if isinstance(columns, np.ndarray):
        return columns.T
    kinds = {column.dtype.kind for column in columns}
    if kinds <= set("biuf") or kinds <= set("biufU") or len(kinds) == 1:
        return np.stack(columns, axis=1, dtype=np.result_type(*columns))
    out = np.empty((len(columns[0]), len(columns)), dtype=object)
    for j, column in enumerate(columns):
        out[:, j] = objects(column.tolist() if column.dtype.kind != "O" else column)
    return out


# -- dtypes


def _dtype_to_data(dtype, what):
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        return {
            "categories": index_to_data(dtype.categories, what),
            "ordered": bool(dtype.ordered),
        }
    if isinstance(dtype, pd.StringDtype):
        return {"string": dtype.storage, "nan": dtype.na_value is not pd.NA}
    if isinstance(dtype, pd.ArrowDtype):
        return _arrow_to_data(dtype.pyarrow_dtype)
    return str(dtype)


def _dtype_from_data(data):
    """A dtype of pandas, None for one that cannot be made from its name."""
    import pandas as pd

    if isinstance(data, dict):
        if "categories" in data:
            return pd.CategoricalDtype(index_from_data(data["categories"]), data["ordered"])
        if "string" in data:
            missing = {"na_value": np.nan} if data["nan"] else {}  # pandas 2.2 knows one kind
            return pd.StringDtype(data["string"], **missing)
        try:
            return pd.ArrowDtype(_arrow_from_data(data))
        except ValueError:  # of several parts, such as a list
            return None
    try:
        return None if data is None else pd.api.types.pandas_dtype(data)
    except TypeError:
        return None


def _arrow_to_data(kind):
    import pyarrow

    if not pyarrow.types.is_dictionary(kind):
        return {"arrow": str(kind)}
    parts = {"arrow": str(kind.value_type), "codes": str(kind.index_type)}
    return parts | {"ordered": kind.ordered}


def _arrow_from_data(data):
    import pyarrow

    kind = pyarrow.type_for_alias(data["arrow"])
    if "codes" not in data:
        return kind
    return pyarrow.dictionary(pyarrow.type_for_alias(data["codes"]), kind, data["ordered"])


def _coded_by_arrow(values, kind):
    """Levels as a dictionary of Arrow, which pandas cannot make by a conversion."""
    import pandas as pd
    import pyarrow

    coded = pyarrow.array(values.tolist(), kind.value_type).dictionary_encode()
    coded = pyarrow.DictionaryArray.from_arrays(
        coded.indices.cast(kind.index_type), coded.dictionary, ordered=kind.ordered
    )
    return pd.arrays.ArrowExtensionArray(coded)


def _pandas_column(values, dtype, whole, index):
    import pandas as pd

    if hasattr(getattr(dtype, "pyarrow_dtype", None), "index_type") and values.dtype.kind != "f":
        return pd.Series(_coded_by_arrow(values, dtype.pyarrow_dtype), index)
    if isinstance(dtype, pd.CategoricalDtype):
        values = pd.Index(values, tupleize_cols=False)
        unknown = values[dtype.categories.get_indexer(values) < 0].unique()
        if len(unknown) and values.dtype.kind == "f":
            return pd.Series(values, index)  # numbers, which were read from their categories
        if len(unknown):
            # Levels of fit that this table has no word for.
            levels = pd.Index([*dtype.categories, *unknown], tupleize_cols=False)
            dtype = pd.CategoricalDtype(levels, dtype.ordered)
        codes = dtype.categories.get_indexer(values)
        return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index)
    if values.dtype.kind == "f" and dtype is not None:
        if dtype.kind in "biu" and not whole:
            dtype = _float_beside(dtype)
        if dtype.kind not in "biuf":
            dtype = None
        elif dtype.kind in "biu":
            values = values.astype({"b": bool, "i": np.int64, "u": np.uint64}[dtype.kind])
    # Its own dtype first: pandas would make one of texts of objects.
    series = pd.Series(values, index, dtype=values.dtype)
    return series if dtype is None else series.astype(dtype)


def _float_beside(dtype):
    """The dtype of floats of the same sort as one of integers."""
    import pandas as pd

    if isinstance(dtype, np.dtype):
        return np.dtype(np.float64)
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow

        return pd.ArrowDtype(pyarrow.float64())
    return pd.Float64Dtype()


def _kept(dtype):
    """A dtype of narwhals that answers keep, None for one that follows its values."""
    simple = dtype.is_float() or dtype.is_integer() or dtype in (nw.Boolean, nw.String)
    return dtype if simple or isinstance(dtype, nw.Enum) or dtype == nw.Categorical else None


def _narwhals_to_data(dtype):
    if isinstance(dtype, nw.Enum):
        return {"enum": list(dtype.categories)}
    return None if _kept(dtype) is None else str(dtype)


def _narwhals_from_data(data):
    if isinstance(data, dict):
        return nw.Enum(data["enum"])
    return None if data is None else getattr(nw, data)()


def _narwhals_column(name, values, dtype, whole, library):
    if isinstance(dtype, nw.Enum):
        levels = dtype.categories
        dtype = nw.Enum(list(dict.fromkeys([*levels, *values.tolist()])))
    elif dtype is not None and values.dtype.kind == "f":
        if not dtype.is_float() and not (whole and (dtype.is_integer() or dtype == nw.Boolean)):
            dtype = nw.Float64()
        elif dtype == nw.Boolean:
            values = values.astype(bool)
        elif dtype.is_integer():
            values = values.astype(np.uint64 if dtype.is_unsigned_integer() else np.int64)
    values = values.tolist() if values.dtype.kind == "O" else values
    if dtype == nw.Categorical:
        # By way of text, which all libraries can make levels of.
        return nw.new_series(name, values, nw.String(), backend=library).cast(dtype)
    return nw.new_series(name, values, dtype, backend=library)


# -- labels as plain data


def index_to_data(index, what):
    """An index of pandas as plain data.

    Parameters
    ----------
    index : Index
    what : str
        What it holds, for messages.

    Returns
    -------
    data : dict
        For `index_from_data`.

    Raises
    ------
    ValueError
        If it holds something that is no plain data.
    """
    import pandas as pd

    def inner(part):
        return index_to_data(part, what)

    names = [_cell_to_data(name, what) for name in index.names]
    if isinstance(index, pd.MultiIndex):
        return {
            "type": "multi",
            "names": names,
            "levels": [inner(level) for level in index.levels],
            "codes": [np.asarray(codes, dtype=np.int64) for codes in index.codes],
        }
    if isinstance(index, pd.RangeIndex):
        return {"type": "range", "names": names, "range": [index.start, index.stop, index.step]}
    if isinstance(index, pd.IntervalIndex):
        ends = [inner(index.left), inner(index.right)]
        return {"type": "interval", "names": names, "ends": ends, "closed": index.closed}
    if isinstance(index, pd.CategoricalIndex):
        codes = np.asarray(index.codes, dtype=np.int64)
        dtype = _dtype_to_data(index.dtype, what)
        return {"type": "category", "names": names, "codes": codes, "dtype": dtype}
    if isinstance(index, pd.PeriodIndex):
        freq = index.freqstr
        return {"type": "period", "names": names, "ordinals": index.asi8, "freq": freq}
    if isinstance(index, (pd.DatetimeIndex, pd.TimedeltaIndex)):
        zone = None if getattr(index, "tz", None) is None else str(index.tz)
        bare = index if zone is None else index.tz_convert("UTC").tz_localize(None)
        freq = index.freqstr
        return {
            "type": "time",
            "names": names,
            "values": bare.to_numpy(),
            "zone": zone,
            "freq": freq,
        }
    dtype = _dtype_to_data(index.dtype, what)
    if isinstance(index.dtype, np.dtype) and index.dtype.kind in "biuf":
        return {"type": "plain", "names": names, "values": index.to_numpy(), "dtype": dtype}
    cells = objects(_cell_to_data(cell, what) for cell in index.astype(object))
    return {"type": "cells", "names": names, "values": cells, "dtype": dtype}


def index_from_data(data):
    """The index of pandas again."""
    import pandas as pd

    kind = data["type"]
    names = [_cell_from_data(name) for name in data["names"]]
    if kind == "multi":
        levels = [index_from_data(level) for level in data["levels"]]
        return pd.MultiIndex(levels, data["codes"], names=names)
    if kind == "range":
        return pd.RangeIndex(*data["range"], name=names[0])
    if kind == "interval":
        left, right = map(index_from_data, data["ends"])
        return pd.IntervalIndex.from_arrays(left, right, closed=data["closed"], name=names[0])
    if kind == "category":
        dtype = _dtype_from_data(data["dtype"])
        return pd.CategoricalIndex(pd.Categorical.from_codes(data["codes"], dtype=dtype),
                                   name=names[0])  # fmt: skip
    if kind == "period":
        return pd.PeriodIndex.from_ordinals(data["ordinals"], freq=data["freq"], name=names[0])
    if kind == "time":
        index = pd.Index(data["values"], name=names[0])
        if data["zone"] is not None:
            index = index.tz_localize("UTC").tz_convert(data["zone"])
        if data["freq"] is not None:
            index.freq = data["freq"]
        return index
    values = data["values"]
    if kind == "cells":
        values = objects(_cell_from_data(cell) for cell in values)
    index = pd.Index(values, dtype=_dtype_from_data(data["dtype"]), tupleize_cols=False)
    return index.rename(names[0])


def labels_to_data(labels, what):
    """An array of labels, levels of a column say, as plain data; see `index_to_data`."""
    if labels.dtype.kind != "O":
        return {"array": labels}
    return {"cells": [_cell_to_data(label, what) for label in labels]}


def labels_from_data(data):
    """The array of labels again."""
    if "array" in data:
        return data["array"]
    return objects(_cell_from_data(cell) for cell in data["cells"])


# Of the standard library: how to write one as text, and to read it.
_AS_TEXT = {
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    datetime.date: ("date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: ("time", datetime.time.isoformat, datetime.time.fromisoformat),
    datetime.datetime: (
        "datetime",
        datetime.datetime.isoformat,
        datetime.datetime.fromisoformat,
    ),
    Decimal: ("decimal", str, Decimal),
}


def _cell_to_data(cell, what):
    """One label: a tag and a body in a dict, where JSON has no word for it."""

    def inner(part):
        return _cell_to_data(part, what)

    if cell is None or type(cell) in (bool, int, float, str):
        return cell
    if isinstance(cell, np.generic) and cell.dtype.kind in "biufUS":
        return cell
    kind = type(cell)
    if kind is tuple:
        return {"tuple": [inner(part) for part in cell]}
    if kind in _AS_TEXT and getattr(cell, "tzinfo", None) is None:
        tag, write, _ = _AS_TEXT[kind]
        return {tag: write(cell)}
    if kind is datetime.timedelta:
        return {"timedelta": [cell.days, cell.seconds, cell.microseconds]}
    if kind.__module__.partition(".")[0] == "pandas":
        name = kind.__name__
        if name in ("NAType", "NaTType"):
            return {"missing": name}
        if name == "Interval":
            return {"interval": [inner(cell.left), inner(cell.right), cell.closed]}
        if name in ("Timestamp", "Timedelta", "Period"):
            import pandas as pd

            return {"pandas": index_to_data(pd.Index([cell]), what)}
    raise ValueError(
        f"X must not have {what} of type {kind.__name__}, which no file of ours can hold, got "
        f"{cell!r}: turn them into text or numbers"
    )


def _cell_from_data(data):
    if not isinstance(data, dict):
        return data
    ((tag, body),) = data.items()
    if tag == "tuple":
        return tuple(map(_cell_from_data, body))
    if tag == "timedelta":
        return datetime.timedelta(*body)
    for name, _, read in _AS_TEXT.values():
        if tag == name:
            return read(body)
    import pandas as pd

    if tag == "missing":
        return {"NAType": pd.NA, "NaTType": pd.NaT}[body]
    if tag == "interval":
        left, right, closed = body
        return pd.Interval(_cell_from_data(left), _cell_from_data(right), closed)
    if tag == "pandas":
        return index_from_data(body)[0]
    raise ValueError(f"a label has the unknown tag {tag!r}")
