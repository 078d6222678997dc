"""Centers and scales of columns with missing cells."""

import numpy as np


def column_scaling(X, common=False):
    """Center and scale of each column, NaN left out: mean and standard deviation.

    A constant column has scale 1; ``common`` gives all columns the root of their mean variance.
    """
    highest = np.nanmax(X, axis=0)
    constant = highest == np.nanmin(X, axis=0)
    # The mean of a large constant is off by its rounding, which scale 1 would not take away.
    center = np.where(constant, highest, np.nanmean(X, axis=0))
    # Squares are taken near one, so that no magnitude of X over- or underflows.
    exponent = np.frexp(np.nanmax(np.abs(X - center), axis=0))[1]
    if common:
        exponent = np.full_like(exponent, exponent.max())
    variance = np.nanmean(np.ldexp(X - center, -exponent) ** 2, axis=0)
    if common and not constant.all():
        return center, np.ldexp(np.full(X.shape[1], np.sqrt(variance[~constant].mean())), exponent)
    return center, np.where(constant, 1.0, np.ldexp(np.sqrt(variance), exponent))
