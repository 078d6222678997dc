"""Cells of the clusterer as its model has them: standardised, -inf where below the limit."""

import numpy as np

from skbnp.estimators.arguments import finite_by_column
from skbnp.estimators.tables import FARTHEST
from skbnp.infinite_factor_clusterer._predictive import as_rows


class DetectionLimitsMixin:
    """Detection limits of columns; rows in the units of the model."""

    def _fitted_units(self, X):
        """Where the columns that vary are put; cells below the limit count as there."""
        if self._limit is None:
            return super()._fitted_units(X)
        return super()._fitted_units(self._at_limit(X), " above detection_limit")

    def _standard_limit(self):
        """Detection limits of the modelled columns in their units; None without."""
        if self._limit is None:
            return None
        units = self._units
        with np.errstate(over="ignore"):
            limit = (self._limit[units.columns] - units.center) / units.scale
        if not (np.abs(limit) <= FARTHEST).all():
            raise ValueError(
                f"detection_limit must be within {FARTHEST:g} standard deviations of the means "
                f"of X, got {self.detection_limit!r}"
            )
        return limit

    def _as_floats(self, X, reset=True):
        if reset:
            self._limit = None
        if (self.detection_limit if reset else self._limit) is None:
            return super()._as_floats(X, reset)
        X = super()._as_floats(X, reset, finite=False)
        if np.isposinf(X).any():
            raise ValueError("X must be finite, NaN where missing or -inf where below the limit")
        if reset:
            limit = finite_by_column("detection_limit", self.detection_limit, X.shape[1])
            # A reading of the limit itself may have come as float32, a little above it.
            with np.errstate(over="ignore"):
                single = limit.astype(np.float32)
            self._limit = np.where(np.isfinite(single), np.maximum(limit, single), limit)
        return X

    def _advice_on_columns(self, X, is_named):
        # What is below the limit is no reading, whatever number stands for it.
        X = np.where(self._is_below(X), np.nan, X)
        return super()._advice_on_columns(X, is_named)

    def _advice_on_marks(self, value):
        return (
            f"make it -inf and give detection_limit if it says that a reading was too weak, say "
            f"missing_values={value:g} if it says nothing, or check those cells"
        )

    def _is_below(self, X):
        with np.errstate(invalid="ignore"):
            return super()._is_below(X) if self._limit is None else X <= self._limit

    def _at_limit(self, X):
        return X if self._limit is None else np.where(self._is_below(X), self._limit, X)

    def _distances(self, X):
        # What is below the limit is at no distance.
        A = self._modelled(X)
        return np.where(A == -np.inf, 0.0, A)

    def _modelled(self, X):
        """The modelled columns, standardised; -inf where below the detection limit."""
        X = np.where(self._is_below(X), -np.inf, X)
        return np.ascontiguousarray(self._units.scaled(X))

    def _log_jacobian(self, X):
        """log |d standardised / d x| of the cells of each row that were read."""
        return self._units.log_jacobian(np.where(self._is_below(X), np.nan, X))

    def _prepared(self, A):
        return as_rows(A, self._training_rows.limit)
