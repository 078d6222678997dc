"""Columns of numbers many of whose cells have one value: whether one has it, and what else it is.

To a model such a column, a debt that most people do not have, is two: one of the numbers other than
the common one, missing where a cell has that, and one of two values, whether a cell has it. Where
two values are common, as both ends of a scale, the second is one of the first's other numbers.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from skbnp.tables.columns import (
    columns_of,
    in_words,
    is_frame,
    names_of,
    refuse_inexact,
    tells_kinds,
)
from skbnp.tables.kinds_of_numbers import LARGEST_WHOLE, kind_of_numbers
from skbnp.tables.marks import suspicious_marks
from skbnp.tables.parts import beside, take, with_names, with_numbers

# The share of the cells above which the most frequent value is set apart in any case; the share and
# the number of cells from which it is if the next one has at most this part of it, which those of
# counts have not. The same holds for the second value and the third.
_MOST_EQUAL, _LEAST_EQUAL, _LEAST_CELLS, _NEXT = 0.5, 0.1, 10, 0.25
# Other values that there must be for a law of them.
_LEAST_OTHERS = 5


def common_values(column):
    """The one or two values that many cells of a semicontinuous column have, none of any other.

    Parameters
    ----------
    column : skbnp.tables.columns.Column
    """
    if column.kind not in ("integer", "real") or column.values.dtype.kind == "c":
        return []
    values = column.values.astype(np.float64)
    levels, n_equal = np.unique(values, return_counts=True)
    order = np.argsort(-n_equal, kind="stable")[:3]
    if len(levels) < _LEAST_OTHERS + 1 or not (np.abs(values) < LARGEST_WHOLE).all():
        return []  # the model refuses what is infinite, and integers that floats do not hold
    first, second, third = n_equal[order]
    least = max(_LEAST_CELLS, _LEAST_EQUAL * len(values))
    if second >= max(least, third / _NEXT) and len(levels) >= _LEAST_OTHERS + 2:
        n_common = 2
    else:
        n_common = int(first > _MOST_EQUAL * len(values) or first >= max(least, second / _NEXT))
    return (levels[order[:n_common]] + 0.0).tolist()  # no zero with a sign


@dataclass(frozen=True)
class TwoParts:
    """The semicontinuous columns of a table, as a model sees them.

    Parameters
    ----------
    n_columns : int
        Those of the table.
    steps : tuple of (int, float)
        Columns and their common values: each is asked for in turn, where a cell has none so far.
    reach : dict of int to (float, float)
        The least and the largest value of each of these columns.
    """

    n_columns: int
    steps: tuple = ()
    reach: dict = field(default_factory=dict)

    @classmethod
    def of(cls, X, families):
        """That of a table whose columns belong to some families of a mixture.

        Parameters
        ----------
        X : ndarray or frame of shape (n_samples, n_columns)
        families : list of str
            Columns that are real, and are so of "auto", may be semicontinuous.
        """
        steps, reach, tells = [], {}, tells_kinds(X)
        for j, (column, family) in enumerate(zip(columns_of(X), families, strict=True)):
            common = common_values(column)
            if common and _is_real(column, family, tells):
                steps += [(j, value) for value in common]
                values = column.values.astype(np.float64)
                reach[j] = float(values.min()), float(values.max())
        return cls(len(families), tuple(steps), reach)

    @property
    def common_values(self):
        """Those of each semicontinuous column, as a dict of lists."""
        found = {}
        for j, value in self.steps:
            found.setdefault(j, []).append(value)
        return found

    def marks(self, X):
        """Common values that look like marks of missing cells: value -> columns.

        No model sees them beside the other values of their columns.
        """
        found, columns = {}, columns_of(X)
        for j, common in self.common_values.items():
            values = columns[j].values.astype(np.float64)
            for value in suspicious_marks(values[:, np.newaxis]):
                if value in common:
                    found.setdefault(value, []).append(j)
        return found

    def families(self, families):
        """The families of the columns that the model sees, from those of the table."""
        families = ["gaussian" if j in self.reach else family for j, family in enumerate(families)]
        return families + ["bernoulli"] * len(self.steps)

    def names(self, names, of_numbers="{}"):
        """The same of names, which are all text then.

        Parameters
        ----------
        names : sequence
        of_numbers : str, default="{}"
            How a column of the other numbers is called.
        """
        whole = [str(name) for name in names]
        names = [
            of_numbers.format(name) if j in self.reach else name for j, name in enumerate(whole)
        ]
        for j, value in self.steps:
            name = f"{whole[j]} is {value:g}"
            while name in names:
                name += "'"
            names.append(name)
        return names

    def cells(self, which):
        """The same of cells that are marked: (n_samples, n_columns) of bool."""
        return np.column_stack([which, which[:, [j for j, _ in self.steps]]])

    def whole_cells(self, which):
        """The same but for semicontinuous columns."""
        which = which.copy()
        which[:, list(self.reach)] = False
        return self.cells(which)

    def apart(self, X):
        """A table as the model sees it: the columns of two values are on the right.

        Parameters
        ----------
        X : ndarray or frame of shape (n_samples, n_columns)
        """
        if not self.steps:
            return X
        columns, others, are_common = columns_of(X), {}, []
        for j in self.reach:
            name = in_words(names_of(X)[j] if is_frame(X) else j)
            others[j] = columns[j].numbers(name)
            refuse_inexact(take(X, np.array([j])), others[j][:, np.newaxis])
        for j, value in self.steps:
            x, is_common = others[j], _are(others[j], value)
            are_common.append(np.where(np.isnan(x), np.nan, is_common))
            others[j] = np.where(is_common, np.nan, x)
        if not is_frame(X):
            X = X.copy()
            for j, x in others.items():
                X[:, j] = x
            return np.column_stack([X, *are_common])
        names = self.names(names_of(X))
        X = with_names(with_numbers(X, others), names[: self.n_columns])
        return beside(X, dict(zip(names[self.n_columns :], are_common, strict=True)))

    def together(self, drawn):
        """Drawn cells of the columns of the table, from those that the model sees.

        A number beyond a common value beyond which none was seen is mirrored at it.

        Parameters
        ----------
        drawn : list of ndarray of shape (n_samples,)
        """
        drawn, are_common = self._by_parts(drawn)
        for j in self.reach:
            low, high = self._ends(j)
            x = drawn[j].astype(np.float64)
            x = np.where(x < low, 2.0 * low - x, x)
            drawn[j] = np.clip(np.where(x > high, 2.0 * high - x, x), low, high)
        for (j, value), is_common in are_common:
            drawn[j] = np.where(is_common > 0.5, value, drawn[j])
        return drawn

    def moments(self, j, chances, mean, std):
        """Mean and standard deviation of cells of one column by the law of total variance.

        Parameters
        ----------
        j : int
        chances : list of ndarray of shape (n_cells,)
            The probability of each common value, of those that have none of the earlier ones.
        mean, std : ndarray of shape (n_cells,)
            Of those that have none of them.
        """
        mean = np.clip(mean, *self._ends(j))
        for p, value in zip(chances[::-1], self.common_values[j][::-1], strict=True):
            std = np.hypot(np.sqrt(p * (1.0 - p)) * (mean - value), np.sqrt(1.0 - p) * std)
            mean = p * value + (1.0 - p) * mean
        return mean, std

    def places(self, j):
        """Where the model has the columns of two values of a semicontinuous column."""
        return [self.n_columns + place for place, (i, _) in enumerate(self.steps) if i == j]

    def far(self, filled, holes):
        """Cells filled farther outside all values of a semicontinuous column than these reach.

        Parameters
        ----------
        filled : list of ndarray of shape (n_samples,)
            Of the columns of the table.
        holes : ndarray of bool of shape (n_samples, n_columns)

        Returns
        -------
        far : ndarray of bool of shape (n_samples, number of columns that the model sees)
        """
        far = np.zeros((len(holes), self.n_columns + len(self.steps)), dtype=bool)
        for j, (low, high) in self.reach.items():
            x = filled[j].astype(np.float64)
            far[:, j] = holes[:, j] & (np.maximum(x - high, low - x) > high - low)
        return far

    def _ends(self, j):
        """Common values of a column beyond which none was seen, infinite where there is none."""
        low, high = self.reach[j]
        common = self.common_values[j]
        return low if low in common else -np.inf, high if high in common else np.inf

    def training_table(self, seen, names):
        """A `TrainingTable` of the model as one of the table, whose columns have these names."""
        if not self.steps:
            return seen
        d = self.n_columns
        X, are_common = self._by_parts(list(seen.X.T))
        for (j, value), is_common in are_common:
            X[j] = np.where(is_common == 1.0, value, X[j])
        X = np.column_stack(X)
        whole = dict(families=seen.families[:d], levels=list(seen.levels)[:d], names=list(names))
        return replace(seen, X=X, holes=np.isnan(X), **whole)

    def _by_parts(self, columns):
        """Those of the table; and the steps, last ones first, with their columns of two values."""
        columns = list(columns)
        steps = list(zip(self.steps, columns[self.n_columns :], strict=True))
        return columns[: self.n_columns], steps[::-1]


def _are(x, value):
    """Which numbers are a value, or are so in single precision, as tables may have been."""
    if value == np.floor(value):
        return x == value
    return x.astype(np.float32) == np.float32(value)


def _is_real(column, family, tells):
    """Whether a mixture takes a column of numbers for real."""
    if family != "auto" or not tells:
        return family in ("auto", "gaussian")
    return kind_of_numbers(column.values.astype(np.float64), column.kind == "integer") == "float"
