"""Centers and scales of columns with missing cells."""

import numpy as np

_ENTRIES_AT_A_TIME = 1_000_000


def column_scaling(X, common=False, more_variance=None):
    """Center and scale of each column, NaN left out: mean and standard deviation.

    A constant column has scale 1; ``common`` gives all columns the root of their mean variance.
    ``more_variance`` (n_features,) is added to that of the columns first.
    """
    highest = np.nanmax(X, axis=0)
    constant = highest == np.nanmin(X, axis=0)
    # Few columns at a time where X is large: the copies that this takes are not.
    width = max(1, _ENTRIES_AT_A_TIME // len(X))
    blocks = [slice(start, start + width) for start in range(0, X.shape[1], width)]

    def by_columns(function):
        # A mean that overflows is for the caller to refuse.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.concatenate([function(X[:, block], block) for block in blocks])

    # The mean of a large constant is off by its rounding, which scale 1 would not take away.
    center = np.where(constant, highest, by_columns(lambda x, _: np.nanmean(x, axis=0)))
    # Not what is to be refused, from which all cells would be NaN.
    offset = np.where(np.isfinite(center), center, 0.0)
    # Squares are taken near one, so that no magnitude of X over- or underflows.
    exponent = by_columns(lambda x, b: np.frexp(np.nanmax(np.abs(x - offset[b]), axis=0))[1])
    if common and not constant.all():
        # Not that of a constant column, 0, below which squares of tiny columns would be.
        exponent = np.full_like(exponent, exponent[~constant].max())
    variance = by_columns(
        lambda x, b: np.nanmean(np.ldexp(x - offset[b], -exponent[b]) ** 2, axis=0)
    )
    if more_variance is not None:
        variance = variance + np.ldexp(more_variance, -2 * exponent)
    if common and not constant.all():
        return center, np.ldexp(np.full(X.shape[1], np.sqrt(variance[~constant].mean())), exponent)
    return center, np.where(constant, 1.0, np.ldexp(np.sqrt(variance), exponent))


def column_means(X):
    """Mean of the observed entries of each column, 0 where there is none."""
    seen = ~np.isnan(X)
    return np.where(seen, X, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
