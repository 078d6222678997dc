"""Columns of a table as numbers and back: which family each belongs to, and its levels."""

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

FAMILIES = ("gaussian", "bernoulli", "categorical", "poisson")

# Sums of counts stay exact in floats: a billion rows of the largest count are below 2^53.
_LARGEST_COUNT = 2**22


class Table:
    """How the columns of one table are read, learned from the training rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Array, sparse matrix, list of rows or DataFrame.
    family : str, sequence or dict
        As the parameter of ``DirichletProcessMixture``.
    names : sequence of str or None
        Names of the columns, for messages and for a dict.

    Attributes
    ----------
    families : list of str
        One of ``FAMILIES`` per column.
    levels : list
        Sorted levels of each categorical column, None for the others.
    """

    def __init__(self, X, family, names):
        columns = _columns(X)
        self.names = names
        self.families = _resolve(family, columns, names)
        self._is_frame = _is_frame(X)
        # Of the pandas categories: whether they are ordered, and the dtype of their names.
        self._categories = {
            j: (bool(column.cat.ordered), str(column.cat.categories.dtype))
            for j, column in enumerate(columns)
            if self.families[j] == "categorical" and _is_category(column)
        }
        self.levels = [
            _levels(column, self._name(j)) if self.families[j] == "categorical" else None
            for j, column in enumerate(columns)
        ]

    def encode(self, X):
        """The table as float64, levels as codes, NaN where missing: (n_samples, n_features)."""
        columns = _columns(X)
        out = np.empty((len(columns[0]), len(columns)))
        for j, column in enumerate(columns):
            out[:, j] = self._encode_column(j, column)
        return out

    def decode(self, X):
        """Back to what the table held: an array, or a DataFrame where levels have names."""
        values = [
            X[:, j] if levels is None else levels[X[:, j].astype(np.intp)]
            for j, levels in enumerate(self.levels)
        ]
        if not (self._is_frame and any(levels is not None for levels in self.levels)):
            return np.array(values, dtype=np.result_type(*values)).T
        import pandas as pd

        for j, (ordered, dtype) in self._categories.items():
            names = pd.Index(self.levels[j], dtype=dtype)
            values[j] = pd.Categorical(values[j], dtype=pd.CategoricalDtype(names, ordered))
        return pd.DataFrame(dict(zip(self.names, values, strict=True)))

    def to_data(self):
        """Plain data from which `from_data` makes the table's reading again."""
        return vars(self)

    @classmethod
    def from_data(cls, data):
        """Make what `to_data` described."""
        table = cls.__new__(cls)
        n = len(data["families"])
        if set(data) != {"names", "families", "_is_frame", "_categories", "levels"}:
            raise ValueError(f"a table has the attributes {sorted(data)}")
        if not all(name in FAMILIES for name in data["families"]) or len(data["levels"]) != n:
            raise ValueError(f"a table has the families {data['families']}")
        vars(table).update(data)
        return table

    def _name(self, j):
        return f"column {j}" if self.names is None else f"column {str(self.names[j])!r}"

    def _encode_column(self, j, column):
        if self.families[j] == "categorical":
            return _codes(column, self.levels[j], self._name(j))
        x = _numbers(column, self._name(j), self.families[j])
        seen = x[~np.isnan(x)]
        if self.families[j] == "bernoulli":
            wrong = seen[(seen != 0) & (seen != 1)]
            rule = "0, 1, False or True in a 'bernoulli' column"
        elif self.families[j] == "poisson":
            wrong = seen[~((seen >= 0) & (seen <= _LARGEST_COUNT) & (seen == np.floor(seen)))]
            rule = f"integers from 0 to {_LARGEST_COUNT} in a 'poisson' column"
        else:
            return x
        if wrong.size:
            raise ValueError(f"X must hold {rule}, got {wrong[0]:g} in {self._name(j)}")
        return x


def _is_frame(X):
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def _columns(X):
    """The columns of any two-dimensional table, each one-dimensional."""
    if _is_frame(X):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    if issparse(X):
        X = X.toarray()
    X = check_array(X, dtype=None, ensure_all_finite=False, input_name="X")
    return list(X.T)


def _is_category(column):
    return hasattr(column, "cat")


def _resolve(family, columns, names):
    """The family of each column."""
    n = len(columns)
    if isinstance(family, str):
        family = [family] * n
    elif isinstance(family, dict):
        known = [] if names is None else list(names)
        unknown = [name for name in family if name not in known]
        if unknown:
            raise ValueError(f"family must name columns of X, got {unknown[0]!r}")
        family = [family.get(name, "auto") for name in known]
    elif len(family) != n:
        raise ValueError(f"family must have one entry per column, {n}, got {len(family)}")
    for name in family:
        if name not in (*FAMILIES, "auto"):
            raise ValueError(f"family must be one of {(*FAMILIES, 'auto')}, got {name!r}")
    return [
        _family_of(column) if name == "auto" else name
        for name, column in zip(family, columns, strict=True)
    ]


def _family_of(column):
    """What "auto" takes a column for, by its dtype."""
    if _is_category(column):
        return "categorical"
    kind = column.dtype.kind
    if kind == "b":
        return "bernoulli"
    if kind in "iu":
        values = _present(column)
        counts = np.all((values >= 0) & (values <= _LARGEST_COUNT))
        return "poisson" if counts else "gaussian"
    return "gaussian" if kind == "f" else "categorical"


def _missing(column):
    """Cells that hold None, NaN or pandas' NA."""
    if hasattr(column, "isna"):
        return column.isna().to_numpy()
    if column.dtype.kind == "O":
        return np.array([value is None or value != value for value in column], dtype=bool)
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)


def _present(column):
    """The cells of a column that are not missing, as an array."""
    values = column[~_missing(column)]
    return values.to_numpy() if hasattr(values, "to_numpy") else values


def _numbers(column, name, family):
    """A column as float64 with NaN where missing."""
    out = np.full(len(column), np.nan)
    try:
        out[~_missing(column)] = np.asarray(_present(column), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must hold numbers in a {family!r} column, got {name}: {error}"
        ) from error
    if np.isinf(out).any():
        raise ValueError(f"X must not hold infinite values, got one in {name}")
    return out


def _levels(column, name):
    """All levels of a column, those of its dtype or else those it holds, sorted."""
    if _is_category(column):
        return np.asarray(column.cat.categories)
    values = _present(column)
    try:
        levels = np.unique(values)
    except TypeError:  # of several types
        levels = np.array(sorted(set(values.tolist()), key=str), dtype=object)
    if levels.dtype.kind == "f":
        wrong = levels[levels != np.floor(levels)]
        if wrong.size:
            raise ValueError(
                f"X must hold integers or names in a 'categorical' column, got {wrong[0]:g} "
                f"in {name}"
            )
    return levels


def _codes(column, levels, name):
    """Codes of the levels, NaN where missing."""
    code_of = {level: code for code, level in enumerate(levels.tolist())}
    values = _present(column).tolist()
    unseen = [value for value in values if value not in code_of]
    if unseen:
        raise ValueError(f"X has the level {unseen[0]!r} in {name}, unseen in fit")
    out = np.full(len(column), np.nan)
    out[~_missing(column)] = [code_of[value] for value in values]
    return out
