"""Labels of rows and columns, levels and dtypes of pandas as plain data, for files."""

import datetime
from decimal import Decimal

import numpy as np

from skbnp.tables.columns import objects

# -- dtypes


def dtype_to_data(dtype, what):
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


def dtype_from_data(data):
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


# -- labels


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
        dtype = dtype_to_data(index.dtype, what)
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
    dtype = dtype_to_data(index.dtype, what)
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
        dtype = dtype_from_data(data["dtype"])
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
    index = pd.Index(values, dtype=dtype_from_data(data["dtype"]), tupleize_cols=False)
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
