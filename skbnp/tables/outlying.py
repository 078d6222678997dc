"""Columns in which a few cells lie so far out that all others look alike."""

import numpy as np

# The rows at the two ends that are left out, a share of all, and the part of the standard
# deviation within which all others lie.
_ENDS, _NARROWEST = 0.05, 1e-4
# Ranges of the middle rows beyond which a single target pulls predictions for all rows.
_FARTHEST_TARGET = 10.0


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


def n_far_targets(y):
    """How many targets are farther from the middle nine tenths than ten times their range.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
    """
    largest = np.abs(y).max(initial=0.0)
    if not largest > 0:
        return 0
    y = y / largest  # so that no difference of two finite numbers overflows
    low, high = np.quantile(y, (_ENDS, 1 - _ENDS), method="nearest")
    reach = _FARTHEST_TARGET * (high - low)
    return int(np.sum((y < low - reach) | (y > high + reach))) if reach > 0 else 0


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
