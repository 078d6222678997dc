"""Units of the columns: where the models put them, there and back, once for all models."""

from dataclasses import dataclass, replace

import numpy as np

from skbnp.numerics.scaling import column_scaling
from skbnp.numerics.states import is_same

# Where values beyond the range of the training data are put before they are squashed back.
_LARGEST = 0.999
# Share of a column's range below which values differ by rounding errors alone.
_ROUNDING = 1e-9
# Share of columns that have the least and the greatest value of a table on a scale with ends.
_SHARE_WITH_ENDS = 0.5


@dataclass(frozen=True)
class Units:
    """An affine map of every modelled column, and for "sigmoid" units s^-1(u) = 2 artanh(u).

    Attributes
    ----------
    visible : {"gaussian", "sigmoid"}
        What is modelled: the scaled column, or what tanh(a / 2) takes to it.
    columns : ndarray of shape (n_modelled,)
        Ascending; the other columns are constant and set aside.
    constant : ndarray of shape (n_features,)
        Values of the columns that are set aside.
    center, scale : ndarray of shape (n_modelled,)
    """

    visible: str
    columns: np.ndarray
    constant: np.ndarray
    center: np.ndarray
    scale: np.ndarray

    @classmethod
    def unscaled(cls, n_features):
        """Those in which nothing is moved or scaled, of so many columns."""
        zeros = np.zeros(n_features)
        return cls("gaussian", np.arange(n_features), zeros, zeros.copy(), np.ones(n_features))

    def is_same(self, other):
        """Whether other units are equal to these."""
        return is_same(self, other)

    def set_aside(self):
        """Columns that are not modelled."""
        return np.setdiff1d(np.arange(len(self.constant)), self.columns)

    def with_common_scale(self):
        """The same with one scale for all columns, the root of their mean variance."""
        largest = self.scale.max()
        common = largest * np.sqrt(np.mean((self.scale / largest) ** 2))
        return replace(self, scale=np.full_like(self.scale, common))

    def scaled(self, X):
        """The modelled columns, centred and divided by their scale."""
        if len(self.columns) < X.shape[1]:
            X = X[:, self.columns]
        with np.errstate(over="ignore"):
            scaled = X - self.center
            scaled /= self.scale
        return scaled

    def is_outside(self, X):
        """Rows with a cell that "sigmoid" units never reach."""
        if self.visible == "gaussian":
            return np.zeros(len(X), dtype=bool)
        with np.errstate(invalid="ignore"):
            return (np.abs(self.scaled(X)) >= 1.0).any(axis=1)

    def to_visible(self, X):
        """Pre-activations of the visible units, NaN where X is missing; clipped to their range."""
        scaled = self.scaled(X)
        if self.visible == "gaussian":
            return np.ascontiguousarray(scaled)
        return 2.0 * np.arctanh(np.clip(scaled, -_LARGEST, _LARGEST))

    def log_jacobian(self, X):
        """log |d pre-activation / d x| summed over the observed cells of each row."""
        log_slope = np.broadcast_to(-np.log(self.scale), (len(X), len(self.columns)))
        if self.visible == "sigmoid":
            u = np.clip(self.scaled(X), -_LARGEST, _LARGEST)
            log_slope = log_slope - np.log((1.0 - u**2) / 2.0)
        return np.where(np.isnan(X[:, self.columns]), 0.0, log_slope).sum(axis=1)

    def log_jacobian_of_visible(self, A):
        """The same of rows that have been through `to_visible`; of cells that are finite."""
        log_slope = np.broadcast_to(-np.log(self.scale), A.shape)
        if self.visible == "sigmoid":
            u = np.clip(np.tanh(A / 2.0), -_LARGEST, _LARGEST)
            log_slope = log_slope - np.log((1.0 - u**2) / 2.0)
        return np.where(np.isfinite(A), log_slope, 0.0).sum(axis=1)

    def from_visible(self, A):
        """Whole rows in the units of the data, of pre-activations."""
        X = np.tile(self.constant, (len(A), 1))
        u = A if self.visible == "gaussian" else np.tanh(A / 2.0)
        X[:, self.columns] = u * self.scale + self.center
        return X

    def moments(self, mean, variance):
        """Mean and standard deviation in the units of the data, of what is squashed if it is."""
        out = np.tile(self.constant, (len(mean), 1)), np.zeros((len(mean), len(self.constant)))
        out[0][:, self.columns] = mean * self.scale + self.center
        out[1][:, self.columns] = np.sqrt(variance) * self.scale
        return out


def ends_of_scale(X):
    """Least and greatest value of a table whose columns have a scale with ends, as pixels do.

    That is where at least half of the columns that vary have both; None elsewhere.
    """
    with np.errstate(invalid="ignore"):
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        varies = low < high
    if not varies.any():
        return None
    low, high = low[varies], high[varies]
    ends = float(low.min()), float(high.max())
    has_ends = (low == ends[0]) & (high == ends[1])
    # One column says nothing of a scale in common.
    return ends if has_ends.sum() > 1 and has_ends.mean() >= _SHARE_WITH_ENDS else None


def steps(X):
    """Step of each column that holds few values and one of them in many rows, 0 elsewhere.

    That is fewer than 100 distinct values, one of which more than a third of the rows have: a
    continuous unit would follow such a column to its bound. The step is the smallest difference
    of two values; what rounding errors set apart is one value.
    """
    step = np.zeros(X.shape[1])
    for j, column in enumerate(X.T):
        values, count = np.unique(column[~np.isnan(column)], return_counts=True)
        with np.errstate(over="ignore"):
            apart = np.diff(values)
            real = apart > _ROUNDING * (values[-1] - values[0])
        count = np.bincount(np.concatenate([[0], np.cumsum(real)]), weights=count)
        if 1 < len(count) < 100 and count.max() > count.sum() / 3:
            step[j] = apart[real].min()
    return step


def standard_units(
    X, scaling="each", *, keep_constant=False, step=None, what="X", named=str, where="",
    sums_of_squares=False,
):  # fmt: skip
    """Units with mean 0 and, as ``scaling`` says, variance 1 of the training data.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where missing.
    scaling : {"each", "common", "none"}
        Divide every column by its standard deviation, all by the root of their mean variance, or
        none.
    keep_constant : bool, default=False
        Model constant columns too, with scale 1; else they are set aside.
    step : ndarray of shape (n_features,) or None
        Width of the jitter that will be added to each column.
    what, where : str
        What a message calls X, and what it says after that no column varies.
    named : callable
        What a message calls columns of these numbers.
    sums_of_squares : bool, default=False
        Whether the model takes them in the units of X, so that floats have to hold them.

    Returns
    -------
    units : Units

    Raises
    ------
    ValueError
        If no column is left, or one has a mean or a spread beyond the range of floats.
    """
    low = low_of(X)
    with np.errstate(over="ignore", invalid="ignore"):
        jitter = None if step is None else step**2 / 12
        center, scale = column_scaling(X, common=scaling == "common", more_variance=jitter)
    columns = np.arange(X.shape[1])
    if not keep_constant:
        columns = np.flatnonzero(low < np.nanmax(X, axis=0))
    if not columns.size:
        raise ValueError(f"{what} must have a column that is not constant{where}")
    center, scale = center[columns], scale[columns]
    _refuse_overflow(center, scale, columns, what, named, len(X) if sums_of_squares else 0)
    if scaling == "none":
        scale = np.ones(len(columns))
    return Units("gaussian", columns, low, center, scale)


def range_units(X, feature_bounds, feature_range, step=None, named=str):
    """Units in which columns lie within (-feature_range, feature_range), for "sigmoid".

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN where missing; constant columns are set aside.
    feature_bounds : pair of ndarray of shape (n_features,) or None
        Ends of the range of the columns; None for those of X.
    feature_range : float
    step : ndarray of shape (n_features,) or None
        Width of the jitter that will be added to each column.
    named : callable
        What a message calls columns of these numbers.

    Returns
    -------
    units : Units

    Raises
    ------
    ValueError
        If no column varies, or one has a range beyond that of floats.
    """
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    columns = np.flatnonzero(high > low)
    if not columns.size:
        raise ValueError("X must have a column that is not constant")
    low, high = (low, high) if feature_bounds is None else feature_bounds
    low, high = (np.broadcast_to(end, X.shape[1])[columns] for end in (low, high))
    with np.errstate(over="ignore", invalid="ignore"):
        if step is not None:
            low, high = low - step[columns] / 2, high + step[columns] / 2
        center, scale = low / 2 + high / 2, (high / 2 - low / 2) / feature_range
    _refuse_overflow(center, scale, columns, "X", named)
    return Units("sigmoid", columns, low_of(X), center, scale)


def _refuse_overflow(center, scale, columns, what, named, n_squares=0):
    """Raise a ValueError unless means, spreads and sums of so many squares are floats."""
    with np.errstate(over="ignore", invalid="ignore"):
        has_floats = {
            "mean and a spread": np.isfinite(center) & np.isfinite(scale) & (scale > 0.0),
            "variance": np.isfinite(n_squares * scale**2) | (n_squares == 0),
        }
    for words, is_float in has_floats.items():
        if not is_float.all():
            raise ValueError(
                f"{what} must have a {words} in every column that floats can hold, got overflow "
                f"in {named(columns[~is_float])}"
            )


def low_of(X):
    """Least value of each column: the value of those that are constant."""
    return np.nanmin(X, axis=0)


def checked_bounds(feature_bounds, X):
    """A pair of numbers or arrays as two arrays (n_features,), checked against X."""
    if len(feature_bounds) != 2:
        raise ValueError(f"feature_bounds must be a pair, got {feature_bounds!r}")
    try:
        low, high = (
            np.broadcast_to(np.asarray(end, dtype=np.float64), X.shape[1]) for end in feature_bounds
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"feature_bounds must be two numbers or arrays of {X.shape[1]} numbers, got "
            f"{feature_bounds!r}"
        ) from error
    varies = np.nanmin(X, axis=0) < np.nanmax(X, axis=0)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high)[varies].all()):
        raise ValueError(
            f"feature_bounds must be finite, the first below the second, got {feature_bounds!r}"
        )
    if (np.nanmin(X, axis=0) < low).any() or (np.nanmax(X, axis=0) > high).any():
        raise ValueError(
            f"feature_bounds must hold all of X, got {feature_bounds!r} for values from "
            f"{np.nanmin(X):g} to {np.nanmax(X):g}"
        )
    return low, high


def check_units(units, n_columns, visible="gaussian", keep_constant=False):
    """Raise a ValueError unless units from outside are of so many columns and of this kind."""
    if visible not in ("gaussian", "sigmoid") or units.visible != visible:
        raise ValueError("visible must be 'gaussian' or 'sigmoid', as in its units")
    columns = np.asarray(units.columns)
    if columns.dtype.kind not in "iu" or ((columns < 0) | (columns >= n_columns)).any():
        raise ValueError("the units must be of columns that there are")
    if columns.ndim != 1 or (np.diff(columns) <= 0).any():
        raise ValueError("the columns of the units must be ascending")
    if keep_constant and len(columns) != n_columns:
        raise ValueError("the units must be of all columns")
    sizes = {"constant": n_columns, "center": len(columns), "scale": len(columns)}
    for name, size in sizes.items():
        value = getattr(units, name)
        if value.shape != (size,) or value.dtype != np.float64:
            raise ValueError(f"{name} of the units must have {size} numbers")
    if not (units.scale > 0.0).all():
        raise ValueError("scale of the units must be > 0")
