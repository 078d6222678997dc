"""Columns that name rows instead of measuring them."""

import numpy as np


def identifier_columns(X, nominal=()):
    """Columns whose values differ in nearly every row, as numbers or names of rows do.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where missing.
    nominal : sequence of int
        Columns whose numbers are codes of levels.

    Returns
    -------
    columns : list of int
        Of whole numbers, so narrow in range that independent rows would tie ten times and more:
        by the birthday bound, fewer ties among such rows than a tenth of that happen less than
        once in a thousand tables, whatever the law of a column.
    """
    if X.shape[1] < 2:
        return []
    nominal = set(nominal)
    return [j for j in range(X.shape[1]) if _is_identifier(X[:, j], j in nominal)]


def _is_identifier(x, nominal):
    x = x[np.isfinite(x)]
    n = len(x)
    if n < 2 or not (np.abs(x) < 2**53).all() or not (x == np.floor(x)).all():
        return False
    step = x - x.min()
    # Numbers may go up in tens. Codes of levels may have gaps where no row has the level.
    unit = np.gcd.reduce(step.astype(np.int64))
    n_places = int(step.max() / max(unit, 1)) + 1
    if n_places < 0.9 * n:
        return False
    if not nominal and n * (n - 1) < 20 * n_places:
        return False
    n_values = len(np.unique(x))
    n_ties = n - n_values
    n_expected = n * (n - 1) / (2 * (n_values if nominal else n_places))
    return n_values >= 0.9 * n and n_expected >= 10 * (1 + n_ties)
