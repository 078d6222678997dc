"""Values that stand for "not measured": those that users name, and those that look like it."""

import sys
from numbers import Real

import numpy as np

# Rows below which nothing is guessed.
_FEWEST_ROWS = 20
# What computers have as the last integer of a type.
_LIMITS = {2**15 - 1, -(2**15), 2**16 - 1, 2**31 - 1, -(2**31), 2**32 - 1}


def resolve_marks(missing_values, names):
    """The marks of missing cells as plain data.

    Parameters
    ----------
    missing_values : number, str, sequence or dict
        As the parameter of estimators.
    names : list or None
        Of the columns; None for an array, whose columns go by their places.

    Returns
    -------
    marks : dict
        Lists of numbers and strings: under None those of all columns, under its place those of
        one. Empty where there are none beside NaN and None.
    """
    by_column = missing_values if isinstance(missing_values, dict) else {None: missing_values}
    marks = {}
    for name, values in by_column.items():
        place = name
        if name is not None and names is not None:
            if name not in names:
                raise ValueError(f"missing_values must name columns of X, got {name!r}")
            place = names.index(name)
        elif name is not None and (not isinstance(name, int) or name < 0):
            raise ValueError(
                "missing_values must name columns of an array by their places 0, 1, ..., got "
                f"{name!r}"
            )
        values = values if isinstance(values, (list, tuple)) else [values]
        found = [value for value in values if value is not None and not _is_nan(value)]
        for value in found:
            if isinstance(value, bool) or not isinstance(value, (Real, str)):
                raise ValueError(f"missing_values must be numbers or strings, got {value!r}")
            if not isinstance(value, str) and sys.float_info.max < abs(value) < np.inf:
                raise ValueError(f"missing_values must be numbers that a float holds, got {value}")
        if found:
            marks[place] = [x if isinstance(x, (str, int)) else float(x) for x in found]
    return marks


def as_plain(missing_values):
    """The parameter for a file: None in place of pandas' NA, which is missing in any case."""
    if isinstance(missing_values, dict):
        return {name: as_plain(values) for name, values in missing_values.items()}
    if isinstance(missing_values, (list, tuple)):
        return type(missing_values)(as_plain(value) for value in missing_values)
    return None if _is_nan(missing_values) else missing_values


def check_marks(marks, n_columns):
    """Raise a ValueError unless marks are those of a table of so many columns."""
    for place, values in marks.items():
        if place is not None and not (isinstance(place, int) and 0 <= place < n_columns):
            raise ValueError(
                f"missing_values must name columns of X, which has {n_columns}, got {place!r}"
            )
        if not all(isinstance(x, (str, Real)) and not isinstance(x, bool) for x in values):
            raise ValueError(f"missing_values must be numbers or strings, got {values!r}")


def has_infinity(marks):
    """Whether infinity is a mark of any column."""
    return any(x in (np.inf, -np.inf) for values in marks.values() for x in values)


def marks_of(marks, column):
    """The marks of one column, by its place."""
    return [*marks.get(None, ()), *marks.get(column, ())]


def numbers_of(marks, dtype):
    """Those marks that are numbers, as columns of a dtype hold them: floats of 32 bits rounded.

    True and False are no numbers.
    """
    if getattr(dtype, "kind", None) == "b":
        return np.empty(0)
    numbers = np.array([float(x) for x in marks if not isinstance(x, str)])
    if getattr(dtype, "kind", None) != "f":
        return numbers
    with np.errstate(over="ignore"):
        rounded = numbers.astype(dtype)
    return rounded[np.isfinite(rounded) == np.isfinite(numbers)]


def unmarked(X, marks, dtype=None):
    """Numbers with NaN in place of marks; not a copy where there are none.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    marks : dict
        As by `resolve_marks`.
    dtype : dtype or None
        That the numbers came in, None for float64.
    """
    if not marks:
        return X
    hit = np.zeros(X.shape, dtype=bool)
    for j in range(X.shape[1]):
        hit[:, j] = np.isin(X[:, j], numbers_of(marks_of(marks, j), dtype))
    return np.where(hit, np.nan, X) if hit.any() else X


def suspicious_marks(X, nominal=()):
    """Values that look like marks of cells that were not measured.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where missing.
    nominal : sequence of int
        Columns whose numbers are codes of levels.

    Returns
    -------
    found : dict
        For each value the columns that have it: the least or the largest of a column, twice or
        more, farther from all others than half of their range, and of nines alone (-99, 999.9),
        a power of ten from 100 on, or the last integer that a type holds.
    """
    nominal, found = set(nominal), {}
    for j in range(X.shape[1]):
        if j not in nominal:
            for value in _marks_in(X[:, j]):
                found.setdefault(value, []).append(j)
    return found


def mark_in_words(value, columns, remedy):
    """What is said of such a value, of columns in words."""
    return (
        f"X has {value:g} in {columns}, far from all other values there, as marks of what was not "
        f"measured are: {remedy}"
    )


def remedy_of_mark(value):
    """What to do about it where missing cells are taken."""
    return f"say so by missing_values={value:g}, or check those cells"


def _marks_in(x):
    x = x[np.isfinite(x)]
    if len(x) < _FEWEST_ROWS or not (_has_form(x.min()) or _has_form(x.max())):
        return []
    values, counts = np.unique(x, return_counts=True)
    found = []
    while True:
        for end, others in ((0, slice(1, None)), (-1, slice(None, -1))):
            if counts[end] > 1 and _is_mark(values[end], values[others]):
                found.append(float(values[end]))
                values, counts = values[others], counts[others]
                break
        else:
            return found


def _digits(value):
    return f"{abs(value):.10g}".replace(".", "")


def _is_nines(value):
    return abs(value) >= 99 and set(_digits(value)) == {"9"}


def _has_form(value):
    """Whether people or computers write this number for what is missing."""
    is_round = abs(value) >= 100 and _digits(value).rstrip("0") == "1"
    return is_round or value in _LIMITS or _is_nines(value)


def _is_mark(value, others):
    """Whether a value looks like a mark beside the others of its column, in their order."""
    # Doses and magnifications are powers of ten too, but few of them.
    least = 3 if _is_nines(value) or value in _LIMITS else 10
    if not _has_form(value) or len(others) < least:
        return False
    gap = min(abs(value - others[0]), abs(value - others[-1]))
    return bool(gap > (others[-1] - others[0]) / 2)


def few_valued_columns(X, columns, fewest=2, most=10):
    """Columns of few different whole numbers: codes of groups or counts rather than measurements.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where missing.
    columns : sequence of int
        Those to look at.
    fewest, most : int
        Values that a column has at least, and at most.

    Returns
    -------
    columns : list of int
        Where 50 rows and more have so few.
    """
    found = []
    for j in columns:
        x = X[np.isfinite(X[:, j]), j]
        if len(x) >= 50 and (x == np.floor(x)).all() and fewest <= len(np.unique(x)) <= most:
            found.append(int(j))
    return found


def _is_nan(value):
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA is neither equal nor different
        return True
