"""Parts of tables of any kind: some of their rows and columns, marks, more columns beside them."""

import narwhals.stable.v2 as nw
import numpy as np

from skbnp.tables.columns import columns_of, is_frame, is_pandas
from skbnp.tables.marks import marks_of


def take(X, columns, rows=None):
    """Some columns of a table, of all rows or of some, as a table of the same kind.

    Parameters
    ----------
    X : ndarray or frame
    columns : ndarray of int
    rows : ndarray of int or None
        None for all of them.
    """
    if is_pandas(X):
        X = X.iloc[:, columns]
        return X if rows is None else X.iloc[rows]
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)[:, columns.tolist()]
        return (frame if rows is None else frame[rows.tolist()]).to_native()
    X = X[:, columns]
    return X if rows is None else X[rows]


def own_copy(X):
    """A table of the same kind that does not change with it; frames that cannot change as they are.

    Parameters
    ----------
    X : ndarray or frame
    """
    return X.copy() if isinstance(X, np.ndarray) or is_pandas(X) else X


def beside(X, columns):
    """A frame with more columns on its right.

    Parameters
    ----------
    X : frame
    columns : dict of str to ndarray
        Names and values.
    """
    if is_pandas(X):
        return X.assign(**columns)
    frame = nw.from_native(X, eager_only=True)
    more = [
        nw.new_series(name, values, backend=frame.implementation)
        for name, values in columns.items()
    ]
    return frame.with_columns(more).to_native()


def with_names(X, names):
    """A frame whose columns have other names, those of frames of pandas maybe not text."""
    return X.set_axis(names, axis=1) if is_pandas(X) else X


def without_marks(X, marks):
    """A table in which the cells that equal a mark are missing.

    Parameters
    ----------
    X : ndarray or frame
    marks : dict
        What stands for "not measured", as `skbnp.tables.marks.resolve_marks` has it.

    Returns
    -------
    X : ndarray or frame
        The table itself where no cell equals a mark; None, NaN and the like are missing anyway.
        A column of text that is all numbers once the marks are gone holds these numbers.
    """
    if not marks:
        return X
    columns = columns_of(X)
    marked = np.column_stack(
        [column.marked(marks_of(marks, j)) for j, column in enumerate(columns)]
    )
    numbers = {}
    for j in np.flatnonzero(marked.any(axis=0)):
        column = columns[j].without(marks_of(marks, j))
        if columns[j].kind == "text" and column.kind in ("integer", "real"):
            numbers[int(j)] = column.numbers(f"column {j}")
    return with_numbers(without_cells(X, marked, set(numbers)), numbers)


def without_cells(X, cells, spared=()):
    """A table in which some cells are missing.

    Parameters
    ----------
    X : ndarray or frame
    cells : ndarray of bool of shape (n_samples, n_features)
    spared : set of int
        Columns of a frame that stay as they are.

    Returns
    -------
    X : ndarray or frame
        The table itself where there are no such cells.
    """
    found = np.flatnonzero(cells.any(axis=0))
    if not found.size:
        return X
    found = [j for j in found if j not in spared]
    if is_pandas(X):
        X = X.copy()
        for j in found:
            X.isetitem(j, X.iloc[:, j].mask(cells[:, j]))
        return X
    if is_frame(X):
        return _narwhals_without(nw.from_native(X, eager_only=True), cells, found)
    X = X.astype(np.float64 if X.dtype.kind in "biuf" else object)
    X[cells] = np.nan
    return X


def with_numbers(X, numbers):
    """A table some of whose columns are others.

    Parameters
    ----------
    X : ndarray or frame
    numbers : dict of int to ndarray of shape (n_samples,)
        Floats of each of these columns.
    """
    if not numbers:
        return X
    if is_pandas(X):
        X = X.copy()
        for j, values in numbers.items():
            X.isetitem(j, values)
        return X
    if is_frame(X):
        names = nw.from_native(X, eager_only=True).columns
        return beside(X, {names[j]: values for j, values in numbers.items()})
    X = X.astype(object)
    for j, values in numbers.items():
        X[:, j] = values
    return X


def with_column(X, j, numbers):
    """A table with one column of numbers in the place of another, of an array in its dtype."""
    if is_frame(X):
        return with_numbers(X, {j: numbers})
    X = X.copy()
    X[:, j] = numbers
    return X


def _narwhals_without(frame, marked, found):
    names = frame.columns
    series = []
    for j in found:
        one = frame[names[j]]
        cells = [
            None if hit else cell for cell, hit in zip(one.to_list(), marked[:, j], strict=True)
        ]
        series.append(nw.new_series(names[j], cells, one.dtype, backend=frame.implementation))
    return frame.with_columns(series).to_native()
