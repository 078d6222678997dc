"""The prior of the deep scale model in standardised units, and what data say against it."""

from dataclasses import replace

import numpy as np

from skbnp.deep_scale_model._model import Prior
from skbnp.estimators.arguments import finite_by_column, number_or_law
from skbnp.laws import Law
from skbnp.mcmc.caller import warn

# Prior variance of a sampled location, in standardised units.
_LOCATION_VARIANCE = 100.0
# Least variance of given noise, in standardised units.
_LEAST_NOISE = 1e-12
# Means farther from 0 than so many standard deviations are worth a warning.
_OFF_CENTER = 0.5
# Correlation of the signs of two columns: of normal ones with .45.
_ALIKE = 0.3


class PriorMixin:
    """What the parameters say, as the model takes it; where columns are put."""

    def _check_parameters(self, X):
        """What rules of single parameters do not say."""
        self._check_shared_parameters()
        if isinstance(self.noise_variance, Law):
            self._check_law("noise_variance", self.noise_variance)
        elif not (finite_by_column("noise_variance", self.noise_variance, X.shape[1]) > 0).all():
            raise ValueError(
                "noise_variance must be > 0: without a floor a feature that has lost its links, "
                "which every birth_move may bring about, has no density, and neither has a 0 in "
                "X; take a small number such as noise_variance=1e-6, got "
                f"{self.noise_variance!r}"
            )
        if isinstance(self.drift, Law):
            self._check_drift()
        if self._has_no_drift() and self.signed:
            raise ValueError("signed=True must have a drift: without one signs mean nothing")
        if self._has_no_drift() and self.transform_output == "mean":
            raise ValueError(
                "transform_output='mean' must have a drift: without one all means are 0"
            )

    def _check_drift(self):
        location, variance = self.drift.location, self.drift.variance
        if not (abs(location) <= 1e3 and 1e-6 <= variance <= 1e6):
            raise ValueError(
                "drift must have a location from -1000 to 1000 and a variance from 1e-06 to 1e+06, "
                f"got {self.drift!r}"
            )

    def _has_no_drift(self):
        return not isinstance(self.drift, str) and self.drift == 0.0

    def _fitted_units(self, X):
        """Where the columns that vary are put; what the data say against that is a warning."""
        units = super()._fitted_units(X)
        columns = units.columns
        if self.center == "median":
            return replace(units, center=np.nanmedian(X[:, columns], axis=0))
        if self.center is not False:
            return units
        off = np.abs(units.center) > _OFF_CENTER * np.nanstd(X[:, columns], axis=0)
        if off.any():
            warn(
                f"X should be centred where center=False: the means of "
                f"{self._named(columns[off])} are farther from 0 than {_OFF_CENTER} standard "
                "deviations, which the model can only take for noise",
            )
        return replace(units, center=np.zeros(len(columns)))

    def _make_prior(self):
        return Prior(
            **self._shared_prior(),
            noise_variance=self._standard_noise(),
            drift=number_or_law(self.drift),
            location_variance=_LOCATION_VARIANCE if self.center == "sample" else 0.0,
            birth_move=self.birth_move,
        )

    def _standard_noise(self):
        """The law of noise variances, or those that are given in the units of the columns."""
        if isinstance(self.noise_variance, Law):
            return self.noise_variance
        given = finite_by_column("noise_variance", self.noise_variance, self.n_features_in_)
        with np.errstate(over="ignore", under="ignore"):
            noise = (np.sqrt(given[self._units.columns]) / self._units.scale) ** 2
        if not ((noise >= _LEAST_NOISE) & (noise <= 1 / _LEAST_NOISE)).all():
            raise ValueError(
                f"noise_variance must be within {_LEAST_NOISE:g} and {1 / _LEAST_NOISE:g} "
                f"variances of X, got {self.noise_variance!r}"
            )
        return noise

    def _advise(self, A):
        """Say where the model has nothing to find."""
        with np.errstate(invalid="ignore", divide="ignore"):
            off = A - np.nanmean(A, axis=0)
            off /= np.nanmax(np.abs(off), axis=0)  # fourth powers stay in the range of floats
            kurtosis = np.nanmean(off**4, axis=0) / np.nanmean(off**2, axis=0) ** 2
        if not self._has_no_drift():
            return
        alike = _most_alike(off)
        if alike:
            pair, found = alike
            warn(
                f"X is correlated in {self._named(self._units.columns[pair])}: on which side of "
                f"their means cells are has a correlation of {found:.2f}. Where drift=0 the model "
                "has none, and impute and sample know of none; TreeFactorModel is the better model"
            )
        if not (kurtosis > 3).any():
            warn(
                "X should have a column of kurtosis > 3 where drift=0, got at most "
                f"{np.max(kurtosis):.2f}: there is no scale structure, expect no factors; "
                "InfiniteFactorClusterer is the better model",
            )


def _most_alike(off):
    """The two columns whose signs have the largest correlation, and that.

    By signs, as a few rows of large amplitude decide about correlations. None where that may be
    chance, five standard errors from zero, or is small.
    """
    signs = np.nan_to_num(np.sign(off))
    seen = np.abs(signs)
    n = np.maximum(seen.T @ seen, 1.0)
    mean = signs.T @ seen / n
    free = np.sqrt(np.maximum(1.0 - mean**2, 0.0))
    covariance = signs.T @ signs / n - mean * mean.T
    found = covariance / np.maximum(free * free.T, 1e-9)
    found[np.abs(found) <= np.maximum(_ALIKE, 5.0 / np.sqrt(n))] = 0.0
    np.fill_diagonal(found, 0.0)
    i, j = np.unravel_index(np.argmax(np.abs(found)), found.shape)
    return ([i, j], found[i, j]) if found[i, j] else None
