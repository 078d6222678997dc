"""One look at all rows: what their columns hold, from which their units follow."""

from dataclasses import dataclass, fields

import numpy as np

from skbnp.collections.tree import CELL, leaves, total
from skbnp.units import Units, _refuse_overflow

# Rows without values whose numbers are kept.
_MOST_SHOWN = 11


@dataclass(frozen=True)
class Summary:
    """What some rows hold.

    Attributes
    ----------
    n_samples : int
    count : ndarray of int of shape (n_features,)
        Observed cells of each column.
    mean : ndarray of shape (n_features,)
    square, exponent : ndarray of shape (n_features,)
        Sums of squared differences to the mean, divided by 4^exponent: no magnitude of X over- or
        underflows.
    low, high : ndarray of shape (n_features,)
        NaN where nothing is observed.
    n_empty : int
        Rows without an observed value; ``empty`` are the numbers of the first of them.
    """

    n_samples: int
    count: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    exponent: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_empty: int
    empty: np.ndarray

    def to_data(self):
        """All of it as plain data, by which tables can be told apart."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def constant(self):
        """Columns that do not vary."""
        return np.flatnonzero(self.low == self.high)

    def standard_units(self, columns, common=False, named=str):
        """Units with mean 0 and variance 1 of these columns, all others as they are.

        Parameters
        ----------
        columns : ndarray of int
        common : bool, default=False
            Divide all of them by the root of their mean variance.
        named : callable
            What a message calls columns of these numbers.

        Returns
        -------
        units : Units

        Raises
        ------
        ValueError
            If one has a mean or a spread beyond the range of floats.
        """
        center, scale = np.zeros(len(self.mean)), np.ones(len(self.mean))
        constant = self.low == self.high
        center[columns] = np.where(constant, self.high, self.mean)[columns]
        varying = columns[~constant[columns]]
        if varying.size:
            exponent = self.exponent[varying]
            if common:
                exponent = np.full_like(exponent, exponent.max())
            shift = 2 * (self.exponent[varying] - exponent)
            variance = np.ldexp(self.square[varying] / self.count[varying], shift)
            if common:
                scale[columns] = np.ldexp(np.sqrt(variance.mean()), exponent[0])
            else:
                scale[varying] = np.ldexp(np.sqrt(variance), exponent)
        _refuse_overflow(center, scale, np.arange(len(scale)), "X", named)
        return Units("gaussian", np.arange(len(scale)), self.low, center, scale)


def summary_of_cell(X, rows, argument=None):
    """What the rows of a cell hold; a task of `StoredRows.run`."""
    _refuse_infinite(X, rows[0])
    missing = np.isnan(X)
    count = (~missing).sum(axis=0)
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        # Halves, then the rest: the sum of large numbers may overflow where their mean does not.
        mean = np.where(missing, 0.0, X / np.maximum(count, 1)).sum(axis=0)
        mean = np.where(low == high, low, mean)
        apart = np.where(missing, 0.0, X - mean)
        exponent = np.frexp(np.abs(apart).max(axis=0))[1]
        square = (np.ldexp(apart, -exponent) ** 2).sum(axis=0)
    empty = rows[0] + np.flatnonzero(missing.all(axis=1))
    return Summary(
        len(X), count, np.where(count == 0, 0.0, mean), square, exponent, low, high, len(empty),
        empty[:_MOST_SHOWN],
    )  # fmt: skip


def combined(left, right):
    """What neighbours hold together, by Chan, Golub and LeVeque's formula."""
    count = left.count + right.count
    n = np.maximum(count, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.where((left.count > 0) & (right.count > 0), right.mean - left.mean, 0.0)
        mean = np.where(left.count > 0, left.mean + apart * (right.count / n), right.mean)
        exponent = np.maximum(left.exponent, right.exponent)
        exponent = np.maximum(exponent, np.frexp(apart)[1])
        square = np.ldexp(apart, -exponent) ** 2 * (left.count * (right.count / n))
        for one in (left, right):
            square = square + np.ldexp(one.square, 2 * (one.exponent - exponent))
    return Summary(
        left.n_samples + right.n_samples,
        count,
        mean,
        square,
        exponent,
        np.fmin(left.low, right.low),
        np.fmax(left.high, right.high),
        left.n_empty + right.n_empty,
        np.concatenate([left.empty, right.empty])[:_MOST_SHOWN],
    )


def summary_of(X):
    """What the rows of an array in memory hold: the same to the last bit as by blocks."""
    cells = range(0, len(X), CELL)
    values = [
        summary_of_cell(X[start : start + CELL], (start, min(start + CELL, len(X))))
        for start in cells
    ]
    return total(leaves(values, 0), combined)


def _refuse_infinite(X, start):
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is finite where all cells are: most tables are done with at that.
        if np.isfinite(np.nansum(X)):
            return
    infinite = np.argwhere(np.isinf(X))
    if len(infinite):
        row, column = infinite[0]
        raise ValueError(
            f"X must not hold infinity, got some in column {column}, row {start + row}"
        )
