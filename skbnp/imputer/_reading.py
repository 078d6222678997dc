"""How an imputer reads a table: marks, names and numbers."""

from numbers import Real

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from skbnp.imputer._default import holds_names
from skbnp.mcmc.caller import warn
from skbnp.tables.columns import (
    as_numbers,
    columns_of,
    in_words,
    infinite_columns,
    is_frame,
    names_of,
    refuse_inexact,
)
from skbnp.tables.forms import refuse_names_twice
from skbnp.tables.marks import check_marks, resolve_marks
from skbnp.tables.parts import with_numbers, without_cells, without_marks


class ReadingMixin:
    """Reads the tables of an imputer."""

    def _read(self, X, reset=False):
        """X with its missing cells as such: a frame, or an array of floats or of objects."""
        refuse_names_twice(X)
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if 0 in X.shape:
                check_array(np.empty(X.shape), input_name="X", estimator=self)
            X = self._without_marks(X, reset)
            named = [holds_names(column) for column in columns_of(X)]
            if not any(named):
                self._floats(X)
            return X
        if isinstance(X, np.ma.MaskedArray):
            X = as_numbers(X)
        options = {"dtype": object if isinstance(X, (list, tuple)) else None}
        X = validate_data(self, X, reset=reset, ensure_all_finite=False, **options)
        X = self._without_marks(X, reset)
        # An array of bool is one of numbers to all of scikit-learn.
        if X.dtype.kind in "OUS" and any(map(holds_names, _with_values(columns_of(X)))):
            return X.astype(object)
        return self._floats(X)

    def _without_marks(self, X, reset):
        """X whose marks are missing cells; numbers in text are numbers if `fit` has seen such."""
        if reset:
            self._marks = resolve_marks(self.missing_values, names_of(X))
            check_marks(self._marks, X.shape[1])
        X = without_marks(X, self._marks)
        columns, names = columns_of(X), columns_in_words(X, range(X.shape[1]))
        known = columns if reset else columns_of(self._training)
        numbers = {
            j: column.numbers(names[j])
            for j, column in enumerate(columns)
            if column.kind == "text" and len(column.values) and not holds_names(known[j])
        }
        return with_numbers(X, numbers)

    def _floats(self, X):
        numbers = as_numbers(X)
        options = {"dtype": np.float64, "ensure_all_finite": False, "input_name": "X"}
        floats = check_array(numbers, estimator=self, **options)
        found = infinite_columns(floats)
        if found.size:
            named = ", ".join(columns_in_words(X, found))
            raise ValueError(f"X must not hold infinity, got some in {named}")
        return refuse_inexact(X, floats)


def without_unseen(X, levels):
    """A table in which levels that a model has not seen are missing, with a warning.

    Parameters
    ----------
    X : ndarray or frame
    levels : dict of int to (ndarray or None)
        Those that it has seen, by column; None for columns of numbers.
    """
    columns = columns_of(X)
    unseen = np.zeros((len(columns[0].missing), len(columns)), dtype=bool)
    for j, known in levels.items():
        if known is not None:
            # What is of another kind than all levels is a mistake, and the model says so.
            known = set(known.tolist())
            kinds = {_kind(level) for level in known} - {None}
            cells = columns[j].values.tolist()
            unseen[~columns[j].missing, j] = [
                _kind(cell) in kinds and cell not in known for cell in cells
            ]
    found = np.flatnonzero(unseen.any(axis=0))
    if found.size:
        warn(
            f"X has names, categories or values that fit has not seen, in "
            f"{', '.join(columns_in_words(X, found))}: other cells of these "
            f"{int(unseen.any(axis=1).sum())} row(s) are filled as if they were missing"
        )
    return without_cells(X, unseen)


def _kind(cell):
    """What a level is; None where it is neither text nor number, as intervals and dates."""
    kinds = (bool, Real, str)
    return next((kind for kind in kinds if isinstance(cell, kind)), None)


def columns_in_words(X, columns):
    """Some columns of a table, for messages."""
    names = names_of(X)
    return [in_words(int(j) if names is None else names[j]) for j in columns]


def _with_values(columns):
    return [column for column in columns if len(column.values)]
