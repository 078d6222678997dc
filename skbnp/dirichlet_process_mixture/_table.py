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
from skbnp.tables.kinds_of_numbers import kind_of_numbers
from skbnp.tables.labels import labels_from_data, labels_to_data


def is_plainly_real(X, family):
    """Whether all columns are real without a look at any of them."""
    return family == "gaussian" or (family == "auto" and not tells_kinds(X))


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
    are_guessed : list of bool
        Whether "auto" took the few numbers of a column for its levels. Other numbers there are no
        mistake, but may come in any later table: they are missing, with a warning.
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
        self.are_guessed = [
            name == "auto" and found and column.kind in ("integer", "real")
            for name, found, column in zip(asked, has_levels, columns, strict=True)
        ]
        self.levels = [
            _numbers(column) if guessed else _levels(column, label) if found else None
            for column, guessed, found, label in zip(
                columns, self.are_guessed, has_levels, self.labels, strict=True
            )
        ]
        self.to_data()  # what no file could hold is refused before any sampling

    def encode(self, X, marks=None):
        """The table as float64, levels as codes, NaN where missing: (n_samples, n_features)."""
        columns = columns_of(X, marks)
        out = np.empty((len(columns[0].missing), len(columns)))
        for j, column in enumerate(columns):
            out[:, j] = self._encode_column(j, column)
        return refuse_inexact(X, out)

    def decode(self, X):
        """Back to what the table held: the values of each column."""
        return [self._decode_column(j, x) for j, x in enumerate(X.T)]

    def _decode_column(self, j, x):
        levels = self.levels[j]
        if levels is None:
            return x
        codes = x.astype(np.intp)
        if self.are_guessed[j] and (codes != x).any():
            return np.interp(x, np.arange(len(levels)), levels)
        return levels[codes]

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
        if not self.are_guessed[j]:
            return None
        levels = self.levels[j].astype(np.float64)
        mean = p @ levels
        variance = np.maximum(p @ levels**2 - mean**2, 0.0)
        return np.interp(mean, levels, np.arange(len(levels))), variance

    def unseen_cells(self, X, marks=None):
        """Cells with numbers that are no guessed level, which `encode` takes as missing.

        Returns
        -------
        cells : list of (int, ndarray, ndarray)
            Column, rows and numbers, integers where all are whole.
        """
        found = []
        for j, column in enumerate(columns_of(X, marks) if any(self.are_guessed) else ()):
            if self.are_guessed[j]:
                x = column.numbers(self.labels[j])
                rows = np.flatnonzero(self._are_unseen(j, x))
                x = x[rows]
                is_whole = (np.floor(x) == x).all()
                found += [(j, rows, x.astype(np.int64) if is_whole else x)] * (rows.size > 0)
        return found

    def to_data(self):
        """Plain data from which `from_data` makes the table's reading again."""
        levels = [
            None if levels is None else labels_to_data(levels, f"levels of {label}")
            for levels, label in zip(self.levels, self.labels, strict=True)
        ]
        return vars(self) | {"levels": levels}

    @classmethod
    def from_data(cls, data):
        """Make what `to_data` described, in files of before 0.2 without a guess."""
        table = cls.__new__(cls)
        n = len(data["families"])
        if "are_guessed" not in data:
            data = data | {"are_guessed": [False] * n}
        if set(data) != {"labels", "families", "levels", "are_guessed"}:
            raise ValueError(f"a table has the attributes {sorted(data)}")
        if not all(name in KINDS for name in data["families"]):
            raise ValueError(f"a table has the families {data['families']}")
        if not all(len(data[name]) == n for name in ("labels", "levels", "are_guessed")):
            raise ValueError(f"a table of {n} columns has the levels {data['levels']}")
        vars(table).update(data)
        table.levels = [
            None if levels is None else labels_from_data(levels) for levels in data["levels"]
        ]
        return table

    def _encode_column(self, j, column):
        kind = KINDS[self.families[j]]
        if kind.has_levels and not self.are_guessed[j]:
            return _codes(column, self.levels[j], self.labels[j])
        x = column.numbers(self.labels[j], f"numbers in a {self.families[j]!r} column")
        if np.isinf(x).any():
            raise ValueError(f"X must not hold infinite values, got one in {self.labels[j]}")
        if self.are_guessed[j]:
            return self._guessed_codes(j, x)
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
        """Codes of integers; those that `fit` has not met there are missing."""
        levels, is_unseen = self.levels[j].astype(np.float64), self._are_unseen(j, x)
        if is_unseen.any():
            unseen = np.unique(x[is_unseen])[:3]
            some, known = (", ".join(f"{x:g}" for x in values) for values in (unseen, levels))
            warn(
                f"X has {some} in {self.labels[j]}, where fit has met {known} alone: such cells "
                "are taken as missing; if other numbers may come, name the column in family, as "
                "'gaussian' or 'poisson'"
            )
        return np.where(is_unseen | np.isnan(x), np.nan, np.searchsorted(levels, x))

    def _are_unseen(self, j, x):
        return ~np.isnan(x) & ~np.isin(x, self.levels[j].astype(np.float64))


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
    values = column.values
    if values.dtype.kind not in "iuf":
        values = values.astype(np.float64)
        values = values.astype(np.int64) if column.kind == "integer" else values
    return np.unique(values)


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
