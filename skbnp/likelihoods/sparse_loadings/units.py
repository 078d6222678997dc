"""Units of the data: which columns are modelled, and where they are put."""

import numpy as np

from skbnp.likelihoods.nonlinear_gaussian.units import Units, low_of
from skbnp.numerics.scaling import column_scaling


def fitted_units(X, standardize, named, suffix=""):
    """The affine map of the columns that vary: to mean 0 and, ``standardize``, to variance 1.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where missing.
    standardize : bool
    named : callable
        What a message calls columns of these numbers.
    suffix : str, default=""
        Of the message where no column varies.

    Returns
    -------
    units : Units
    spread : ndarray of shape (n_modelled,)
        Standard deviations of the columns.
    constant : ndarray of int
        The columns that are left out.

    Raises
    ------
    ValueError
        If no column varies, or one has a mean or a spread beyond the range of floats.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        center, spread = column_scaling(X)
    columns = np.flatnonzero(low_of(X) < np.nanmax(X, axis=0))
    center, spread = center[columns], spread[columns]
    if not (np.isfinite(center) & np.isfinite(spread) & (spread > 0)).all():
        raise ValueError("X must have a mean and a spread in every column that floats can hold")
    if not columns.size:
        raise ValueError(f"X must have a column that is not constant{suffix}")
    with np.errstate(over="ignore"):
        beyond = ~np.isfinite(len(X) * spread**2)
    if beyond.any():
        raise ValueError(
            "X must have a variance in every column that floats can hold, got overflow in "
            + named(columns[beyond])
        )
    scale = spread if standardize else np.ones(len(columns))
    constant = np.setdiff1d(np.arange(X.shape[1]), columns)
    return Units("gaussian", columns, low_of(X), center, scale), spread, constant
