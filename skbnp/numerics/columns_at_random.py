"""Columns that are drawn row by row, with given log probabilities."""

import numpy as np


def draw_columns(log_p, rng):
    """A column for each row, with probabilities in proportion to e^log_p.

    Parameters
    ----------
    log_p : ndarray of shape (n_rows, n_columns)
        Not -inf in all columns.
    rng : RandomState or Generator

    Returns
    -------
    column : ndarray of int of shape (n_rows,)
    """
    # The largest of log p with Gumbel noise has probability p.
    return np.argmax(log_p + rng.gumbel(size=log_p.shape), axis=1)
