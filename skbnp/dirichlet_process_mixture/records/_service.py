"""Rows in this process, cell by cell."""

import numpy as np

from skbnp.collections.tree import CELL, leaves, total
from skbnp.dirichlet_process_mixture._sweep import in_order
from skbnp.dirichlet_process_mixture.records._kernels import Kernels
from skbnp.dirichlet_process_mixture.records._slice import RowSlice

# What the state of a family says of its missing cells over the sweeps.
_MOMENTS = ("missing_mean", "missing_variance", "imputed_mean", "imputed_square")


class RowsInMemory:
    """All cells of a table, kept with their labels, completed cells and moments of these.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Standardised, NaN where missing.
    prior : Prior
    start : dict
        The hyperparameters of the columns.
    for_rows : callable
        As in `Sweep`.
    numbers : ndarray of int, default=None
        Of the rows in a larger table, ascending.
    cell : int
        Rows of a cell.
    """

    remembers = True

    def __init__(self, X, prior, start, for_rows=in_order, numbers=None, cell=CELL):
        self.n_samples, self.n_features = X.shape
        self._X = X
        self._for_rows = for_rows
        numbers = np.arange(len(X)) if numbers is None else np.asarray(numbers)
        kernels = Kernels(prior, start)
        self.slices = [
            RowSlice(X[first : first + cell], numbers[first : first + cell], kernels)
            for first in range(0, len(X), cell)
        ]

    def run(self, task, request, combine):
        """The sum over all cells of what a method of `RowSlice` returns."""
        values = [None] * len(self.slices)

        def work(first, stop):
            for c in range(first, stop):
                values[c] = getattr(self.slices[c], task)(request)

        self._for_rows(work, len(self.slices), 1)
        return total(leaves(values, 0), combine)

    def see(self, record):
        """Let labels and completed cells be those of a record."""
        self._for_rows(lambda c, _: self.slices[c].see(record), len(self.slices), 1)

    def observed(self, rows):
        """Some rows as they came, NaN where missing."""
        return self._X[rows]

    def labels(self):
        """Of all rows, blocks of the record."""
        return np.concatenate([one.label for one in self.slices])

    def imputed(self):
        """The imputed cells, row by row."""
        return np.concatenate([one.family.imputed() for one in self.slices])

    def set_imputed(self, values):
        """Put values into the imputed cells."""
        sizes = [one.family.imputed().size for one in self.slices]
        for one, part in zip(self.slices, np.split(values, np.cumsum(sizes)[:-1]), strict=True):
            one.family.set_imputed(part)

    def completed(self):
        """The rows with their cells as they are imputed, (n_samples, n_features)."""
        return np.concatenate([one.family.completed() for one in self.slices])

    # -- moments of missing cells over the sweeps -----------------------------------------------

    def moments(self):
        """Of all missing cells, as states of families name them."""
        return _joined([one.family.get_state(0) for one in self.slices])

    def put_moments(self, moments):
        """Take what ``moments`` returned."""
        for one in self.slices:
            state = one.family.get_state(0)
            moments = _put(state, moments)
            one.family.set_state(state, 0)
            one.forget()

    def forget_imputations(self):
        """Start these moments anew."""
        for one in self.slices:
            one.family.forget_imputations()


def _joined(states):
    """Moments of several families one behind another."""
    return {
        name: _joined([state[name] for state in states])
        if isinstance(value, dict)
        else np.concatenate([state[name] for state in states])
        for name, value in states[0].items()
        if isinstance(value, dict) or name in _MOMENTS
    }


def _put(state, moments):
    """Move the first of some moments into a state; returns the others."""
    left = {}
    for name, value in moments.items():
        if isinstance(value, dict):
            left[name] = _put(state[name], value)
            continue
        n = len(state[name])
        if len(value) < n:
            raise ValueError(f"{name} of the state must have an entry for each missing cell")
        state[name], left[name] = value[:n].copy(), value[n:]
    return left
