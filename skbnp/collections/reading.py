"""From the rows of a block, as they are stored, to what samplers are given."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from skbnp.tables.marks import unmarked
from skbnp.units import Units


@dataclass(frozen=True)
class Reading:
    """How rows become numbers, and numbers values in the units of a model. It pickles.

    Parameters
    ----------
    encode : callable or None
        ``encode(rows)`` returns float64 (n_rows, n_features), NaN where missing; None for an
        array of numbers.
    marks : dict
        What stands for missing cells in such an array, as `skbnp.tables.marks.resolve_marks` has
        it.
    units : Units or None
        None leaves numbers as they are.
    """

    encode: Callable | None = None
    marks: dict = field(default_factory=dict)
    units: Units | None = None

    @classmethod
    def of(cls, rows, marks, encode=None):
        """How to read all rows of a table of which these are some.

        Parameters
        ----------
        rows : ndarray or frame
        marks : dict
            As the parameter of `Reading`.
        encode : callable or None
            Of columns that are not all real; None reads numbers.
        """
        from skbnp.tables.columns import as_numbers, is_frame

        if encode is None and is_frame(rows):
            encode = partial(as_numbers, marks=marks)
        return cls(encode, marks)

    def with_units(self, units):
        """The same in other units."""
        return replace(self, units=units)

    def floats(self, rows):
        """Rows as float64, in C order, NaN where missing."""
        if self.encode is not None:
            return self.encode(rows)
        _refuse_odd(rows)
        dtype = rows.dtype
        if isinstance(rows, np.ma.MaskedArray) or (dtype.kind in "iu" and dtype.itemsize == 8):
            X = _through_columns(rows, self.marks)
        else:
            X = np.array(rows, dtype=np.float64, order="C")
        return unmarked(X, self.marks, dtype)

    def visible(self, X):
        """Such floats in the units of the model."""
        return X if self.units is None else self.units.to_visible(X)


def _through_columns(rows, marks):
    """Rows of which floats may not be all there is to know.

    What it needs brings other libraries along, without which a worker is half as large.
    """
    from skbnp.tables.columns import as_numbers, refuse_inexact

    X = np.array(as_numbers(rows, marks), dtype=np.float64, order="C")
    if rows.dtype.kind in "iu":
        refuse_inexact(rows, X)
    return X


def refuse_dtype(dtype):
    """Raise a TypeError unless a dtype is one of real numbers."""
    if getattr(dtype, "kind", "O") not in "biuf":
        raise TypeError(
            f"X must hold numbers in its blocks, got dtype {dtype}: use X.astype(float), or a "
            "data frame for columns of names"
        )


def _refuse_odd(rows):
    """Raise a TypeError for a block that is no dense array of numbers."""
    if not isinstance(rows, np.ndarray):
        raise TypeError(
            f"X must have dense blocks, NumPy arrays, got one of {type(rows).__module__}."
            f"{type(rows).__name__}: use X.map_blocks(lambda block: block.toarray())"
        )
    refuse_dtype(rows.dtype)
