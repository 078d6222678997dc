"""Leave-one-out densities of the rows of a collection, block by block."""

import numpy as np

from skbnp.dirichlet_process_mixture._record_draws import given_others, unpacked

# Densities that are held at a time: of some rows under all draws.
_TOGETHER = 2**22


class LeaveOneOutOfRows:
    """Smoothed log densities of the rows of any block, each given all other rows. It pickles.

    Parameters
    ----------
    draws : list of list of dict
        Chain by chain, as many of each.
    smooth : callable
        ``smooth(log_likelihood)``, of shape (n_chains, n_draws, n_rows), returns the density of
        each row given all others and its Pareto k. It pickles.
    rows : RowsOfFit
    prior : Prior
    n_table, n_subset : int
        As of `KeptTable`.
    """

    def __init__(self, draws, smooth, rows, prior, n_table, n_subset):
        self._draws = [[dict(draw) for draw in chain] for chain in draws]
        self._smooth, self._rows, self._prior = smooth, rows, prior
        self._n_table, self._n_subset = n_table, n_subset

    def __call__(self, block, start):
        """Of a block, the first row of which has this number: density and Pareto k, (n_rows, 2)."""
        cells = self._rows.cells(block, start)
        return np.concatenate([np.zeros((0, 2)), *(self._of_cell(*cell) for cell in cells)])

    def _of_cell(self, rows, X):
        size = max(1, _TOGETHER // sum(map(len, self._draws)))
        log_jacobian = self._rows.reading.units.log_jacobian_of_visible(X)
        out = np.empty((len(X), 2))
        for first in range(0, len(X), size):
            some = slice(first, min(first + size, len(X)))
            density = [[self._under(draw, rows, some) for draw in chain] for chain in self._draws]
            out[some] = np.transpose(self._smooth(np.array(density)))
        out[:, 0] += log_jacobian
        return out

    def _under(self, draw, rows, some):
        record = unpacked(draw, self._n_table, self._n_subset)
        others = given_others(rows, draw, record, self._prior, self._n_table)
        return others.log_densities(some.start, some.stop)
