"""Draws of missing cells under one draw of the chains: of the training rows, and of new rows.

All rows are in the units of the draw. The training rows are of the draw's partition, and cells of
one block depend on one another through its parameters; a new row joins a block by its observed
cells, and new rows know nothing of one another.
"""

import numpy as np

from skbnp.numerics.columns_at_random import draw_columns


def draw_training_cells(X, draw, prior, rng):
    """The training rows with their missing cells drawn from the joint law given the draw.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    draw : dict
    prior : Prior
    rng : RandomState

    Returns
    -------
    X_filled : ndarray of shape (n_samples, n_features)
    """
    out = X.copy()
    for part in prior.parts:
        rows, c = np.nonzero(np.isnan(X[:, part.columns]))
        if not rows.size:
            continue
        if part.imputes:
            values = draw["imputed"]  # they are part of the state
        else:
            cells = _Cells(rows, c, draw["label"][rows].astype(np.intp), together=True)
            values = part.draw_cells(draw, cells, X[:, part.columns], rng)
        out[rows, part.columns[c]] = values
    return out


def draw_new_cells(X, rows, draw, prior, log_p, rng):
    """New rows with their missing cells drawn, each row on its own.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    rows : Rows
        The same rows.
    draw : dict
    prior : Prior
    log_p : ndarray of shape (n_rows, n_blocks + 1)
        Their ``log_densities``.
    rng : RandomState

    Returns
    -------
    X_filled : ndarray of shape (n_rows, n_features)
    """
    block = draw_columns(log_p, rng)
    out = X[rows.order]
    for part, x in zip(prior.parts, rows.parts, strict=True):
        known = out[:, part.columns]
        if part.imputes:
            out[:, part.columns] = part.draw_rows(draw, x, known, block, rng)
            continue
        i, c = np.nonzero(np.isnan(known))
        if i.size:
            cells = _Cells(i, c, block[i], together=False)
            out[i, part.columns[c]] = part.draw_cells(draw, cells, known, rng)
    return rows.unsort(out)


class _Cells:
    """Missing cells of one kind of columns, and which of them have the same parameters.

    ``column`` counts the columns of this kind. Cells of one block and column share their
    parameters where rows are ``together``, otherwise each cell has its own.
    """

    def __init__(self, row, column, block, together):
        self.row, self.column, self.block, self.together = row, column, block, together
        self.first = self.which = np.arange(len(row))
        if together:
            _, self.first, which = np.unique(
                np.column_stack([block, column]), axis=0, return_index=True, return_inverse=True
            )
            self.which = which.reshape(-1)

    def at(self, table):
        """The entries of a table (n_blocks, n_columns) for each set of parameters."""
        return table[self.block[self.first], self.column[self.first]]
