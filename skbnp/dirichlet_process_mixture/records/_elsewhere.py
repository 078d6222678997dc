"""Rows that are read anew for every question, wherever they are."""

from functools import partial

import numpy as np

from skbnp.dirichlet_process_mixture.records._kernels import Kernels
from skbnp.dirichlet_process_mixture.records._slice import RowSlice


class RowsElsewhere:
    """All cells of a table that are read anew for every question.

    Parameters
    ----------
    cells : object
        With ``n_samples`` and ``n_features``; ``run(task, argument, combine)`` calls
        ``task(X, rows, argument)`` for the standardised rows of every cell and their numbers
        (start, stop), and returns the sum of what comes back.
    prior : Prior
    start : dict
    """

    remembers = False

    def __init__(self, cells, prior, start):
        self.n_samples, self.n_features = cells.n_samples, cells.n_features
        self._cells, self._kernels = cells, Kernels(prior, start)

    def run(self, task, request, combine):
        """As `RowsInMemory.run`."""
        of_cell = partial(run_on_cell, name=task, kernels=self._kernels)
        return self._cells.run(of_cell, request, combine)


def run_on_cell(X, rows, request, *, name, kernels):
    """What a method of `RowSlice` returns for the rows of a cell; runs where these are."""
    return getattr(RowSlice(X, np.arange(*rows), kernels), name)(request)
