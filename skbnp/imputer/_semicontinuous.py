"""Columns of numbers many of whose cells have one value: whether one has it, and what else it is.

To a model such a column, a debt that most people do not have, is two: one of the numbers other than
the common one, missing where a cell has that, and one of two values, whether a cell has it.
"""

from dataclasses import dataclass

import numpy as np

from skbnp.tables.columns import columns_of, is_frame, names_of, tells_kinds
from skbnp.tables.kinds_of_numbers import kind_of_numbers
from skbnp.tables.parts import beside, with_names, with_numbers

# The share of the cells above which the most frequent value is set apart in any case; the share and
# the number of cells from which it is if the next one has at most this part of it, which those of
# counts have not.
_MOST_EQUAL, _LEAST_EQUAL, _LEAST_CELLS, _NEXT = 0.5, 0.1, 10, 0.25
# Other values that there must be for a law of them.
_LEAST_OTHERS = 5


def common_value(column):
    """The value that many cells of a semicontinuous column have, None for any other column.

    Parameters
    ----------
    column : skbnp.tables.columns.Column
    """
    if column.kind not in ("integer", "real"):
        return None
    levels, n_equal = np.unique(column.values.astype(np.float64), return_counts=True)
    if len(levels) <= _LEAST_OTHERS:
        return None
    second, first = np.sort(n_equal)[-2:]
    least = max(_LEAST_CELLS, _LEAST_EQUAL * n_equal.sum())
    is_common = first > _MOST_EQUAL * n_equal.sum() or first >= max(least, second / _NEXT)
    return float(levels[n_equal.argmax()]) if is_common else None


@dataclass(frozen=True)
class TwoParts:
    """The semicontinuous columns of a table, as a model sees them.

    Parameters
    ----------
    n_columns : int
        Those of the table.
    values : dict of int to float
        The common value of each semicontinuous one.
    """

    n_columns: int
    values: dict

    @classmethod
    def of(cls, X, families):
        """That of a table whose columns belong to some families of a mixture.

        Parameters
        ----------
        X : ndarray or frame of shape (n_samples, n_columns)
        families : list of str
            Columns that are real, and are so of "auto", may be semicontinuous.
        """
        values, tells = {}, tells_kinds(X)
        for j, (column, family) in enumerate(zip(columns_of(X), families, strict=True)):
            value = common_value(column)
            if value is not None and _is_real(column, family, tells):
                values[j] = value
        return cls(len(families), values)

    def families(self, families):
        """The families of the columns that the model sees, from those of the table."""
        return [*families, *["bernoulli"] * len(self.values)]

    def names(self, names):
        """The same of names, which are all text then."""
        names = [str(name) for name in names]
        for j, value in self.values.items():
            name = f"{names[j]} is {value:g}"
            while name in names:
                name += "'"
            names.append(name)
        return names

    def cells(self, which):
        """The same of cells that are marked: (n_samples, n_columns) of bool."""
        return np.column_stack([which, which[:, list(self.values)]])

    def apart(self, X):
        """A table as the model sees it: the columns of two values are on the right.

        Parameters
        ----------
        X : ndarray or frame of shape (n_samples, n_columns)
        """
        if not self.values:
            return X
        columns = columns_of(X)
        numbers = {j: columns[j].numbers(f"column {j}") for j in self.values}
        others = {j: np.where(x == self.values[j], np.nan, x) for j, x in numbers.items()}
        are_common = [
            np.where(np.isnan(x), np.nan, x == self.values[j]) for j, x in numbers.items()
        ]
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

        Parameters
        ----------
        drawn : list of ndarray of shape (n_samples,)
        """
        drawn, are_common = self._by_parts(drawn)
        for j, is_common in are_common.items():
            drawn[j] = np.where(is_common > 0.5, self.values[j], drawn[j])
        return drawn

    def moments(self, means, stds=None):
        """Means of cells, and their standard deviations if given, likewise.

        Whether a cell has the common value, and what it is else, are as good as independent.
        """
        means, are_common = self._by_parts(means)
        stds = None if stds is None else self._by_parts(stds)[0]
        for j, p in are_common.items():
            p, value = p.astype(np.float64), self.values[j]
            if stds is not None:
                # The law of total variance.
                variance = p * (1.0 - p) * (means[j] - value) ** 2 + (1.0 - p) * stds[j] ** 2
                stds[j] = np.sqrt(variance)
            means[j] = p * value + (1.0 - p) * means[j]
        return means, stds

    def _by_parts(self, columns):
        """Those of the table, and of each semicontinuous one that of two values."""
        columns = list(columns)
        return columns[: self.n_columns], dict(
            zip(self.values, columns[self.n_columns :], strict=True)
        )


def _is_real(column, family, tells):
    """Whether a mixture takes a column of numbers for real."""
    if family != "auto" or not tells:
        return family in ("auto", "gaussian")
    return kind_of_numbers(column.values.astype(np.float64), column.kind == "integer") == "float"
