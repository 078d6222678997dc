"""Which columns of a table a model is asked about, and how answers are put back into the table."""

from dataclasses import dataclass

import numpy as np

from skbnp.tables.columns import columns_of, is_frame
from skbnp.tables.forms import fill_table
from skbnp.tables.parts import take


@dataclass(frozen=True)
class Layout:
    """The columns of the training table by what is known of them.

    Parameters
    ----------
    is_empty : ndarray of bool of shape (n_features,)
        Columns without any value.
    constants : dict of int to object
        The value of each column that has only one.
    is_kept : ndarray of bool of shape (n_features,)
        Columns of the answer.
    """

    is_empty: np.ndarray
    constants: dict
    is_kept: np.ndarray

    @classmethod
    def of(cls, columns, keep_empty):
        """That of the `Column` list of a table."""
        is_empty = np.array([column.missing.all() for column in columns])
        constants = {
            j: column.values[0]
            for j, column in enumerate(columns)
            if not is_empty[j] and _is_constant(column.values)
        }
        return cls(is_empty, constants, ~is_empty | keep_empty)

    @property
    def modelled(self):
        """The columns that vary."""
        varies = ~self.is_empty
        varies[list(self.constants)] = False
        return np.flatnonzero(varies)

    def put_back(self, X, found):
        """X with all holes filled, its kept columns alone.

        Parameters
        ----------
        X : ndarray or frame of shape (n_samples, n_features)
        found : list of ndarray or None
            Values of the modelled columns, one for every row; None where none of them has a hole.

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_kept)
        """
        columns, kept = columns_of(X), np.flatnonzero(self.is_kept)
        replaced = {} if found is None else dict(zip(self.modelled.tolist(), found, strict=True))
        for j, value in self.constants.items():
            replaced[j] = np.full(len(columns[j].missing), value, dtype=_dtype_of(value))
        for j in np.flatnonzero(self.is_empty):
            replaced[j] = np.zeros(len(columns[j].missing))
        holes = np.array([columns[j].missing.any() for j in kept], dtype=bool)
        filled = {
            place: _filled(columns[j], replaced[j]) for place, j in enumerate(kept) if holes[place]
        }
        table = take(X, kept)
        if not is_frame(X):
            table = table.copy()
            for place, values in filled.items():
                table[:, place] = values
            return table
        whole = {place for place, values in filled.items() if values.dtype.kind in "iub"}
        return fill_table(table, [filled.get(place) for place in range(len(kept))], holes, whole)

    def put_back_floats(self, numbers, holes):
        """Numbers about cells of the modelled columns as numbers about those of the kept ones.

        Parameters
        ----------
        numbers : ndarray of shape (n_samples, n_modelled)
        holes : ndarray of bool of shape (n_samples, n_features)

        Returns
        -------
        numbers : ndarray of shape (n_samples, n_kept)
            0 for constant columns, NaN for holes of those without any value.
        """
        out = np.zeros(holes.shape)
        out[:, self.modelled] = numbers
        out[holes & self.is_empty] = np.nan
        return out[:, self.is_kept]


def _is_constant(values):
    first = values[0]
    return all(bool(value == first) for value in values.tolist())


def _dtype_of(value):
    """That of an array that holds such a value as it is."""
    return value.dtype if isinstance(value, np.generic) else object


def _filled(column, replacement):
    """The cells of a column, those that are missing from an array of the same length."""
    if not len(column.values):
        return replacement
    values = column.values
    if column.kind == "text" and replacement.dtype.kind == "f":
        values = values.astype(np.float64)  # as the model has read them
    both = (values, replacement)
    # A model of real columns fills one of bools with numbers, and then all of it is numbers.
    numbers = "biuf" if replacement.dtype.kind == "f" else "iuf"
    if all(one.dtype.kind in numbers for one in both):
        dtype = np.result_type(*both)
    else:
        dtype = both[0].dtype if both[0].dtype == both[1].dtype else object
    out = np.empty(len(column.missing), dtype=dtype)
    out[~column.missing] = values
    out[column.missing] = replacement[column.missing]
    return out
