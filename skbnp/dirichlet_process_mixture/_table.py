"""Columns of a table as numbers and back: which family each belongs to, and its levels."""

import numpy as np

from skbnp.dirichlet_process_mixture.families import KINDS
from skbnp.mcmc.caller import warn
from skbnp.tables.columns import (
    DROP_IT,
    are_dates,
    columns_of,
    in_words,
    objects,
    refuse_inexact,
    tells_kinds,
)
from skbnp.tables.kinds_of_numbers import are_plainly_counts, kind_of_numbers
from skbnp.tables.labels import labels_from_data, labels_to_data

_NUMBERS = ("integer", "real")
# Numbers that differ by less, in units of the largest, may be the same in single precision.
_SINGLE = 1e-6


def is_plainly_real(X, family):
    """Whether all columns are real without a look at any of them."""
    return family == "gaussian" or (family == "auto" and not tells_kinds(X))


def advise_on_truth_values(X, family):
    """Say that "auto" takes an array of bool for numbers, as it does any array."""
    if family == "auto" and getattr(X, "dtype", None) == np.bool_:
        warn(
            "X is an array of truth values, which family='auto' takes for measurements as it does "
            "any array of numbers: family='bernoulli' is for them, and a frame tells them itself"
        )


class Table:
    """How the columns of one table are read, learned from the training rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Array, sparse matrix, list of rows or frame.
    family : str, sequence or dict
        As the parameter of ``DirichletProcessMixture``.
    names : sequence or None
        Names of the columns, for messages and for a dict.
    marks : dict or None
        What stands for missing cells, as `skbnp.tables.marks.resolve_marks` has it.

    Attributes
    ----------
    families : list of str
        One of ``families.KINDS`` per column.
    levels : list
        Sorted levels of each categorical column, None for the others.
    guessed_from : list of int
        Of how many cells "auto" took the few numbers for the levels of a column, 0 where it did
        not. Other numbers there are no mistake, but may come in any later table: they are missing,
        with a warning.
    """

    def __init__(self, X, family, names, marks=None):
        columns = columns_of(X, marks)
        self.labels = _in_words(names, len(columns))
        by_column = tells_kinds(X)
        asked = _asked(family, columns, names)
        self.families = [
            name if name != "auto" else _family_of(column, label) if by_column else "gaussian"
            for name, column, label in zip(asked, columns, self.labels, strict=True)
        ]
        has_levels = [KINDS[name].has_levels for name in self.families]
        self.guessed_from = [
            len(column.values) if name == "auto" and found and column.kind in _NUMBERS else 0
            for name, found, column in zip(asked, has_levels, columns, strict=True)
        ]
        self.levels = [
            _numbers(column) if guessed else _levels(column, label) if found else None
            for column, guessed, found, label in zip(
                columns, self.guessed_from, has_levels, self.labels, strict=True
            )
        ]
        self.to_data()  # what no file could hold is refused before any sampling
        self._advise(columns)

    def _advise(self, columns):
        """Say which texts may be numbers."""
        for column, label, levels in zip(columns, self.labels, self.levels, strict=True):
            example = column.a_marked_number() if levels is not None else None
            if example is not None:
                warn(
                    f"X has text in {label}, such as {example!r}, that may be numbers: as text "
                    "they are names, none nearer to one than to another; write them as numbers"
                )

    def encode(self, X, marks=None):
        """The table as float64, levels as codes, NaN where missing: (n_samples, n_features)."""
        columns = columns_of(X, marks)
        out = np.empty((len(columns[0].missing), len(columns)))
        for j, column in enumerate(columns):
            out[:, j] = self._encode_column(j, column)
        refuse_inexact(X, out)
        for j in self.guessed:
            out[:, j] = self._guessed_codes(j, out[:, j])
        return out

    @property
    def guessed(self):
        """The columns whose levels were guessed."""
        return np.flatnonzero(self.guessed_from)

    def decode(self, X):
        """Back to what the table held: the values of each column."""
        return [self._decode_column(j, x) for j, x in enumerate(X.T)]

    def _decode_column(self, j, x):
        levels = self.levels[j]
        if levels is None:
            return x
        codes = x.astype(np.intp)
        if self.guessed_from[j] and (codes != x).any():
            return _between(levels, x)
        return levels[codes]

    def as_numbers(self, X):
        """Encoded rows with guessed levels as the numbers that they are; NaN stays."""
        X = X.copy()
        for j in self.guessed:
            X[:, j] = _between(self.levels[j], X[:, j])
        return X

    def guessed_moments(self, j, p):
        """Mean and variance of a column of guessed levels; None where they are not numbers.

        Parameters
        ----------
        j : int
        p : ndarray of shape (n_cells, n_levels)
            Probabilities of the levels.

        Returns
        -------
        moments : tuple of two ndarrays of shape (n_cells,) or None
            The mean as a code: between those of the levels that it lies between.
        """
        if not self.guessed_from[j]:
            return None
        levels = self.levels[j].astype(np.float64)
        mean = p @ levels
        variance = np.sum(p * (levels - mean[:, np.newaxis]) ** 2, axis=1)
        return np.interp(mean, levels, np.arange(len(levels))), variance

    def other_cells(self, X, marks=None):
        """Cells with numbers that are no guessed level bit for bit, as `decode` would have them.

        Returns
        -------
        cells : list of (int, ndarray, ndarray)
            Column, rows and numbers, integers where all are whole.
        """
        if not any(self.guessed_from):
            return []
        found, columns = [], columns_of(X, marks)
        for j in self.guessed:
            x = columns[j].numbers(self.labels[j])
            rows = np.flatnonzero(~np.isnan(x) & ~np.isin(x, self.levels[j].astype(np.float64)))
            x = x[rows]
            is_whole = (np.floor(x) == x).all() and (np.abs(x) < 2.0**53).all()
            if rows.size:
                found.append((j, rows, x.astype(np.int64) if is_whole else x))
        return found

    def log_p_of_unseen(self, X, total, marks=None):
        """Log probability of the numbers in each row that are no guessed levels.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        total : float
            Pseudo counts of a column: of n cells, another one has a number that none of them has
            with the probability total / (n + total), as under a Dirichlet process. It comes on
            top of the probabilities of the levels, whose sum is 1.
        """
        if not any(self.guessed_from):
            return 0.0
        log_p, columns = 0.0, columns_of(X, marks)
        for j in self.guessed:
            x = columns[j].numbers(self.labels[j])
            is_unseen = ~self._nearest_level(j, x)[1] & ~np.isnan(x)
            log_p = log_p + is_unseen * np.log(total / (self.guessed_from[j] + total))
        return log_p

    def to_data(self):
        """Plain data from which `from_data` makes the table's reading again."""
        levels = [
            None if levels is None else labels_to_data(levels, f"levels of {label}")
            for levels, label in zip(self.levels, self.labels, strict=True)
        ]
        return vars(self) | {"levels": levels}

    @classmethod
    def from_data(cls, data):
        """Make what `to_data` described; a file of 0.1 says nothing of guesses."""
        table = cls.__new__(cls)
        n = len(data["families"])
        if "guessed_from" not in data:
            data = data | {"guessed_from": [0] * n}
        if set(data) != {"labels", "families", "levels", "guessed_from"}:
            raise ValueError(f"a table has the attributes {sorted(data)}")
        if not all(name in KINDS for name in data["families"]):
            raise ValueError(f"a table has the families {data['families']}")
        if not all(len(data[name]) == n for name in ("labels", "levels", "guessed_from")):
            raise ValueError(f"a table of {n} columns has the levels {data['levels']}")
        vars(table).update(data)
        table.levels = [
            None if levels is None else labels_from_data(levels) for levels in data["levels"]
        ]
        return table

    def _encode_column(self, j, column):
        """The numbers of a column, or codes of its levels where these are not guessed."""
        kind = KINDS[self.families[j]]
        if kind.has_levels and not self.guessed_from[j]:
            return _codes(column, self.levels[j], self.labels[j])
        x = column.numbers(self.labels[j], f"numbers in a {self.families[j]!r} column")
        if np.isinf(x).any():
            raise ValueError(f"X must not hold infinity, got some in {self.labels[j]}")
        if kind.holds is not None:
            seen = x[~np.isnan(x)]
            wrong = seen[~kind.holds(seen)]
            if wrong.size:
                advice = "where that is no mistake, name another family in family"
                if kind.name == "bernoulli" and len(np.unique(seen)) <= 2:
                    advice = f"write 0 and 1 for two values, as by x > {seen.min():g}"
                raise ValueError(
                    f"X must hold {kind.rule} in a {kind.name!r} column, got {wrong[0]:g} in "
                    f"{self.labels[j]}: {advice}"
                )
        return x

    def _guessed_codes(self, j, x):
        """Codes of numbers; those that are no level are missing."""
        code, is_level = self._nearest_level(j, x)
        unseen = np.unique(x[~is_level & ~np.isnan(x)])
        if unseen.size:
            some, known = (
                ", ".join(f"{x:.12g}" for x in values) for values in (unseen[:3], self.levels[j])
            )
            warn(
                f"X has {some} in {self.labels[j]}, of whose few numbers fit made the levels "
                f"{known}: such cells are taken as missing, but in densities; if other numbers may "
                "come, name the column in family, as 'gaussian' or 'poisson'"
            )
        return np.where(is_level, code, np.nan)

    def _nearest_level(self, j, x):
        """The code of the level nearest to each number, and whether they are the same."""
        levels = self.levels[j].astype(np.float64)
        code = np.searchsorted((levels[1:] + levels[:-1]) / 2, x)
        # Numbers that are not whole may have been in single precision, here or there.
        error = 0.0 if (np.floor(levels) == levels).all() else _SINGLE * np.abs(levels).max()
        return code, np.abs(x - levels[code]) <= error


def may_be_answers(x):
    """Whether a column that was taken for counts may be one of answers or codes."""
    return not are_plainly_counts(x[~np.isnan(x)])


def _in_words(names, n):
    return [in_words(name) for name in (range(n) if names is None else names)]


def _asked(family, columns, names):
    """The family that each column is asked to have, "auto" where nothing is said."""
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
        if name not in (*KINDS, "auto"):
            raise ValueError(f"family must be one of {(*KINDS, 'auto')}, got {name!r}")
    return family


def _family_of(column, label):
    """What "auto" takes a column for, by its kind."""
    if column.kind != "category" and are_dates(column):
        raise ValueError(
            f"X must hold no dates or times where family is 'auto', got some in {label}: "
            f"{DROP_IT}; where they are names of a few groups, family 'categorical' takes them"
        )
    if column.holds_numbers_as_text():
        return "gaussian"
    values, taken_for = column.values, column.kind
    if taken_for in ("integer", "real") and values.dtype.kind != "c":
        values = values.astype(np.float64)
        taken_for = kind_of_numbers(values, taken_for == "integer")
    found = (name for name, kind in KINDS.items() if kind.is_for(taken_for, values))
    return next(found, "gaussian")


def _numbers(column):
    """The different ones in a column of numbers, which may be text beside marks."""
    levels = np.unique(column.values.astype(np.float64))
    return levels.astype(np.int64) if column.kind == "integer" else levels


def _between(levels, x):
    """Numbers by their codes, which may lie between two."""
    return np.interp(x, np.arange(len(levels)), levels)


def _levels(column, label):
    """All levels of a column, those of its dtype or else those it holds, sorted."""
    if column.levels is not None:
        return column.levels
    try:
        levels = np.unique(column.values)
    except TypeError:  # of several types
        try:
            levels = objects(sorted(set(column.values.tolist()), key=str))
        except TypeError as error:
            raise ValueError(
                f"X must hold integers or names in a 'categorical' column, got {label}: {error}"
            ) from error
    if levels.dtype.kind == "f":
        wrong = levels[levels != np.floor(levels)]
        if wrong.size:
            raise ValueError(
                f"X must hold integers or names in a 'categorical' column, got {wrong[0]:g} "
                f"in {label}: make it one of names, as by astype(str), if its values are levels"
            )
    return levels


def _codes(column, levels, label):
    """Codes of the levels, NaN where missing."""
    code_of = {level: code for code, level in enumerate(levels.tolist())}
    values = column.values.tolist()
    unseen = [value for value in values if value not in code_of]
    if unseen:
        raise ValueError(f"X has the level {unseen[0]!r} in {label}, unseen in fit")
    out = np.full(len(column.missing), np.nan)
    out[~column.missing] = [code_of[value] for value in values]
    return out
