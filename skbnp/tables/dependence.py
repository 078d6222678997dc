"""Columns that follow from others, along which covariances and noises have no bound."""

import numpy as np

# Columns are dependent where so many complete rows a column, or more, have correlations with an
# eigenvalue below this; those with a weight above the other number are a part of it.
_ROWS_PER_COLUMN, _DEPENDENT, _PART_OF_IT = 5, 1e-7, 1e-3


def dependent_columns(X, rows_per_column=_ROWS_PER_COLUMN):
    """Which columns have a part in what never varies.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows that lack cells are left out, and columns of one value.
    rows_per_column : int, default=5
        With fewer rows than that none are found.

    Returns
    -------
    columns : ndarray of int
    """
    # Halves, as differences of what floats hold may be too large for them.
    X = X[~np.isnan(X).any(axis=1)] / 2.0
    off = X - X[:1]
    reach = np.abs(off).max(axis=0, initial=0.0)
    varies = np.flatnonzero(reach > 0.0)
    if len(varies) < 2 or len(X) < rows_per_column * len(varies):
        return varies[:0]
    eigenvalue, vector = np.linalg.eigh(np.corrcoef(off[:, varies] / reach[varies], rowvar=False))
    never_vary = np.abs(vector[:, eigenvalue < _DEPENDENT])
    return varies[never_vary.max(axis=1, initial=0.0) > _PART_OF_IT]
