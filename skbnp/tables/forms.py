"""The form that a table came in, and answers in the same form."""

from dataclasses import dataclass, field, replace

import narwhals.stable.v2 as nw
import numpy as np

from skbnp.tables.columns import in_words, is_frame, is_pandas, names_of, objects
from skbnp.tables.labels import dtype_from_data, dtype_to_data, index_from_data, index_to_data
from skbnp.tables.marks import check_marks, resolve_marks


def refuse_names_twice(X):
    """Raise a ValueError if two columns of a frame have one name."""
    if is_pandas(X) and not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueError(f"X must have a name of its own for every column, got {twice!r} twice")


@dataclass(frozen=True)
class TableForm:
    """The form that a table came in, as plain data.

    Parameters
    ----------
    kind : str
        "array", "masked", "pandas", or what narwhals calls the library of the frame.
    names : plain data or None
        Of the columns of a frame.
    index : plain data or None
        Of the rows of a frame of pandas.
    dtypes : tuple of plain data
        Of the columns; None for one that takes the dtype of its values. Of an array its own, or
        nothing for an array of floats or a list.
    marks : dict
        What stands for missing cells, as `skbnp.tables.marks.resolve_marks` has it.
    """

    kind: str
    names: object = None
    index: object = None
    dtypes: tuple = ()
    marks: dict = field(default_factory=dict)

    @classmethod
    def of(cls, X, missing_values=None):
        """The form of a table.

        Parameters
        ----------
        X : array-like or frame
        missing_values : number, str, sequence or dict
            As the parameter of estimators.

        Raises
        ------
        ValueError
            If two columns have one name, or a file could not hold a name or a level; or if
            `missing_values` is no mark of these columns.
        TypeError
            If X is a lazy frame.
        """
        form = cls._without_marks(X)
        return replace(form, marks=resolve_marks(missing_values, form.labels()))

    @classmethod
    def _without_marks(cls, X):
        if not is_frame(X):
            dtype = _dtype_of_array(X)
            kind = "masked" if isinstance(X, np.ma.MaskedArray) else "array"
            return cls(kind, dtypes=() if dtype is None else (dtype.str,))
        refuse_names_twice(X)
        if is_pandas(X):
            dtypes = []
            for name, dtype in zip(X.columns, X.dtypes, strict=True):
                dtypes.append(dtype_to_data(dtype, f"levels of {in_words(name)}"))
            return cls(
                "pandas",
                index_to_data(X.columns, "column names"),
                index_to_data(X.index, "an index"),
                tuple(dtypes),
            )
        frame = nw.from_native(X, eager_only=True)
        dtypes = tuple(_narwhals_to_data(dtype) for dtype in frame.schema.values())
        return cls(str(frame.implementation), list(frame.columns), None, dtypes)

    @property
    def is_array(self):
        """Whether it is that of an array, masked or not, or of a list."""
        return self.kind in ("array", "masked")

    def labels(self):
        """Names of the columns, None for an array."""
        if self.is_array:
            return None
        return list(self.names if self.kind != "pandas" else index_from_data(self.names))

    def row_labels(self):
        """The index of a frame of pandas as an array, None for all other tables."""
        if self.kind != "pandas":
            return None
        index = index_from_data(self.index)
        is_plain = getattr(index.dtype, "kind", "O") in "iufM" and not hasattr(index.dtype, "tz")
        return index.to_numpy() if is_plain else objects(index.astype(object))

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
            A column, or an array, keeps its dtype where that holds its values. Numbers that are
            not whole in a column of integers make it one of floats.
        """
        if self.is_array:
            dtype = np.dtype(self.dtypes[0]) if self.dtypes else None
            is_whole = len(whole) == len(columns)
            return _array(columns, dtype, is_whole, self.kind == "masked")
        if self.kind != "pandas":
            dtypes = map(_narwhals_from_data, self.dtypes)
            return _narwhals_frame(self.names, columns, dtypes, whole, self.kind)
        dtypes = map(dtype_from_data, self.dtypes)
        index = index_from_data(self.index) if with_index else None
        return _pandas_frame(index_from_data(self.names), columns, dtypes, whole, index)

    def build_floats(self, values):
        """Floats of shape (n_samples, n_features) in a table of this kind, names and index."""
        dtypes = () if self.is_array else (None,) * values.shape[1]
        return replace(self, dtypes=dtypes).build(values.T)

    def check(self, n_columns, n_rows=None):
        """Raise a ValueError unless a table of so many columns, and rows, can be built."""
        check_marks(self.marks, n_columns)
        if self.is_array:
            if len(self.dtypes) > 1 or any(np.dtype(x).kind not in "biuf" for x in self.dtypes):
                raise ValueError(f"an array has the dtypes {self.dtypes}")
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
    if is_pandas(X):
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
    is_whole = all(j in whole for j in np.flatnonzero(holes))
    return _array(columns, _dtype_of_array(X), is_whole, isinstance(X, np.ma.MaskedArray))


def floats_like(X, values):
    """Floats of shape (n_samples, n_features) in a table of the kind, names and index of X."""
    if is_pandas(X):
        return _pandas_frame(X.columns, values.T, [None] * values.shape[1], (), X.index)
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        dtypes = [nw.Float64()] * values.shape[1]
        return _narwhals_frame(frame.columns, values.T, dtypes, (), frame.implementation)
    return np.ma.MaskedArray(values) if isinstance(X, np.ma.MaskedArray) else values


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


def _dtype_of_array(X):
    """The dtype that answers to an array of numbers keep, None for float64 and for all else."""
    dtype = getattr(X, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf" or dtype.itemsize > 8:
        return None
    dtype = dtype.newbyteorder("=")
    return None if dtype == np.float64 else dtype


def _array(columns, dtype, is_whole, is_masked):
    """Columns side by side, in this dtype where it holds them; masked with nothing masked."""
    out = _stacked(columns)
    if dtype is not None and out.dtype.kind in "biuf" and (is_whole or dtype.kind == "f"):
        if not _in_range(out, dtype):
            dtype = np.dtype("f8" if dtype.kind == "f" else "i8")
        out = out.astype(dtype)
    return np.ma.MaskedArray(out) if is_masked else out


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


# -- columns of frames


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
            dtype = _widest_beside(dtype, "f")
        if dtype.kind not in "biuf":
            dtype = None
        else:
            size = getattr(dtype, "subtype", dtype).itemsize  # sparse ones have none of their own
            if not _in_range(values, np.dtype(f"{dtype.kind}{size}")):
                dtype = _widest_beside(dtype, "f" if dtype.kind == "f" else "i")
        if dtype is not None and dtype.kind in "biu":
            values = values.astype({"b": bool, "i": np.int64, "u": np.uint64}[dtype.kind])
        series = pd.Series(values, index)
        return series if dtype is None else series.astype(dtype)
    # Its own dtype first: pandas would make one of texts of objects.
    series = pd.Series(values, index, dtype=values.dtype)
    try:
        if dtype is None:
            return series
        if hasattr(getattr(dtype, "pyarrow_dtype", None), "index_type"):
            return pd.Series(_coded_by_arrow(values, dtype.pyarrow_dtype), index)
        kept = series.astype(dtype)
    except (TypeError, ValueError, NotImplementedError, OverflowError):
        return series  # names of levels in a column that was empty, of floats say
    return kept if list(kept) == list(series) else series


def _in_range(values, dtype):
    """Whether all finite numbers are in the range of a dtype of numpy."""
    values = values[np.isfinite(values)]
    lowest, highest = np.min(values, initial=0), np.max(values, initial=0)
    if dtype.kind == "b":
        return 0 <= lowest and highest <= 1
    limits = (np.iinfo if dtype.kind in "iu" else np.finfo)(dtype)
    return float(limits.min) <= lowest and highest <= float(limits.max)


def _widest_beside(dtype, kind):
    """The dtype of floats ("f") or of integers ("i") with 64 bits, of the same sort as another."""
    import pandas as pd

    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow

        return pd.ArrowDtype(pyarrow.float64() if kind == "f" else pyarrow.int64())
    if isinstance(dtype, (np.dtype, pd.SparseDtype)):
        return np.dtype(f"{kind}8")
    return pd.Float64Dtype() if kind == "f" else pd.Int64Dtype()


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


def _numpy_dtype(dtype):
    """The dtype of numpy for one of numbers of narwhals."""
    return np.dtype(bool if dtype == nw.Boolean else str(dtype).lower())


def _holds_levels(dtype, levels):
    """Whether a column of this dtype of narwhals can have these values, as they are."""
    if isinstance(dtype, nw.Enum) or dtype in (nw.String, nw.Categorical):
        return all(isinstance(level, str) for level in levels.tolist())
    if dtype == nw.Boolean:
        return levels.dtype.kind == "b"
    return levels.dtype.kind in "iu" and _in_range(levels, _numpy_dtype(dtype))


def _narwhals_column(name, values, dtype, whole, library):
    if dtype is not None and values.dtype.kind == "f":
        if not dtype.is_float() and not (whole and (dtype.is_integer() or dtype == nw.Boolean)):
            dtype = nw.Float64()
        elif not _in_range(values, _numpy_dtype(dtype)):
            dtype = nw.Float64() if dtype.is_float() else nw.Int64()
        if dtype == nw.Boolean:
            values = values.astype(bool)
        elif dtype.is_integer():
            values = values.astype(np.uint64 if dtype.is_unsigned_integer() else np.int64)
    elif dtype is not None and not _holds_levels(dtype, values):
        dtype = None
    elif isinstance(dtype, nw.Enum):
        dtype = nw.Enum(list(dict.fromkeys([*dtype.categories, *values.tolist()])))
    values = values.tolist() if values.dtype.kind == "O" else values
    if dtype == nw.Categorical:
        # By way of text, which all libraries can make levels of.
        return nw.new_series(name, values, nw.String(), backend=library).cast(dtype)
    return nw.new_series(name, values, dtype, backend=library)
