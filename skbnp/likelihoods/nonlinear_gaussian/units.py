"""Units of the data and the pre-activations of the visible units: there and back."""

from dataclasses import dataclass, replace

import numpy as np

from skbnp.numerics.states import is_same

# Where values beyond the range of the training data are put before they are squashed back.
_LARGEST = 0.999
# Share of a column's range below which values differ by rounding errors alone.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Units:
    """An affine map of every modelled column, and for "sigmoid" units s^-1(u) = 2 artanh(u).

    ``columns`` are those that are modelled; the others are constant, with values ``constant``.
    """

    visible: str
    columns: np.ndarray
    constant: np.ndarray
    center: np.ndarray
    scale: np.ndarray

    def is_same(self, other):
        """Whether other units are equal to these."""
        return is_same(self, other)

    def with_common_scale(self):
        """The same with one scale for all columns, the root of their mean variance."""
        largest = self.scale.max()
        common = largest * np.sqrt(np.mean((self.scale / largest) ** 2))
        return replace(self, scale=np.full_like(self.scale, common))

    def scaled(self, X):
        """The modelled columns, centred and divided by their scale."""
        with np.errstate(over="ignore"):
            return (X[:, self.columns] - self.center) / self.scale

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


def fitted_units(X, visible, feature_bounds, feature_range, step):
    """The units of training data X, NaN where missing; ``step`` as ``steps`` gives them."""
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    columns = np.flatnonzero(high > low)
    x, step = X[:, columns], step[columns]
    if visible == "gaussian":
        # Variances add: uniform jitter of one step has step^2 / 12. What overflows is refused by
        # name later.
        with np.errstate(over="ignore", invalid="ignore"):
            center = np.nanmean(x, axis=0)
            scale = np.sqrt(np.nanvar(x, axis=0) + step**2 / 12)
    else:
        if feature_bounds is None:
            low, high = low[columns] - step / 2, high[columns] + step / 2
        else:
            low, high = (np.broadcast_to(b, X.shape[1])[columns] for b in feature_bounds)
            low, high = low - step / 2, high + step / 2
        center = low / 2 + high / 2
        scale = (high / 2 - low / 2) / feature_range
    return Units(visible, columns, low_of(X), center, scale)


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


def check_units(units, n_columns, visible="gaussian"):
    """Raise a ValueError unless units from outside are of so many columns and of this kind."""
    if visible not in ("gaussian", "sigmoid") or units.visible != visible:
        raise ValueError("visible must be 'gaussian' or 'sigmoid', as in its units")
    columns = np.asarray(units.columns)
    if columns.dtype.kind not in "iu" or ((columns < 0) | (columns >= n_columns)).any():
        raise ValueError("the units must be of columns that there are")
    if columns.ndim != 1 or (np.diff(columns) <= 0).any():
        raise ValueError("the columns of the units must be ascending")
    sizes = {"constant": n_columns, "center": len(columns), "scale": len(columns)}
    for name, size in sizes.items():
        value = getattr(units, name)
        if value.shape != (size,) or value.dtype != np.float64:
            raise ValueError(f"{name} of the units must have {size} numbers")
    if not (units.scale > 0.0).all():
        raise ValueError("scale of the units must be > 0")
