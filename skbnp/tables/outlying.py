"""Columns in which a few cells lie so far out that all others look alike."""

import numpy as np

# The rows at the two ends that are left out, a share of all, and the part of the standard
# deviation within which all others lie.
_ENDS, _NARROWEST = 0.05, 1e-4


def outlying_columns(X, nominal=()):
    """Columns whose standard deviation is that of a few cells, next to which the others vanish.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where missing.
    nominal : sequence of int
        Columns whose numbers are codes of levels.

    Returns
    -------
    columns : list of int
        Where nine tenths of the rows differ, but by less than 1e-4 of the standard deviation.
    """
    nominal = set(nominal)
    return [j for j in range(X.shape[1]) if j not in nominal and _is_outlying(X[:, j])]


def _is_outlying(x):
    x = x[np.isfinite(x)]
    low = max(1, round(_ENDS * len(x)))
    high = len(x) - 1 - low
    if high <= low:
        return False
    ranked = np.partition(x, (low, high))
    # Halves, so that no difference of two finite numbers overflows.
    x, within = x / 2 - ranked[low] / 2, ranked[high] / 2 - ranked[low] / 2
    largest = np.abs(x).max()
    if not within > 0:
        return False
    return bool(within / largest < _NARROWEST * np.std(x / largest))
