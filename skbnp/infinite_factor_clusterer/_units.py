"""Units of the data: which columns are modelled, and where they are put."""

import numpy as np

from skbnp.likelihoods.nonlinear_gaussian.units import Units, low_of
from skbnp.numerics.scaling import column_scaling


def fitted_units(X, standardize=True):
    """The affine map of the columns that vary: to mean 0 and, ``standardize``, to variance 1.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where missing.
    standardize : bool, default=True

    Returns
    -------
    units : Units
        Of no column where none varies.
    spread : ndarray of shape (n_modelled,)
        Standard deviations of the columns.

    Raises
    ------
    ValueError
        If a mean or a spread leaves the range of floats.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        center, spread = column_scaling(X)
    columns = np.flatnonzero(low_of(X) < np.nanmax(X, axis=0))
    center, spread = center[columns], spread[columns]
    if not (np.isfinite(center) & np.isfinite(spread) & (spread > 0)).all():
        raise ValueError("X must have a mean and a spread in every column that floats can hold")
    scale = spread if standardize else np.ones(len(columns))
    return Units("gaussian", columns, low_of(X), center, scale), spread
