"""Parameters checked against X, and the prior that they make for standardised X."""

from numbers import Integral

import numpy as np

from skbnp.dirichlet_process_mixture._model import (
    SCALE_GRID,
    Prior,
    default_covariance,
    default_degrees_of_freedom,
    guess_covariance,
)
from skbnp.dirichlet_process_mixture._parameters import LARGEST, SMALLEST
from skbnp.dirichlet_process_mixture.families import FAMILIES, GaussianPrior
from skbnp.estimators.arguments import check_numbers_of_law, number_or_law
from skbnp.laws import Grid, Law
from skbnp.mcmc.caller import warn
from skbnp.tables.dependence import dependent_columns
from skbnp.units import Units, low_of, standard_units

# Plain Gibbs keeps parameters and a score for every component, empty ones included.
_MOST_COMPONENTS = 10_000
# A prior mean enters the statistics squared: beyond this the data are lost in its rounding.
_FARTHEST_MEAN = 1e6
# kappa0 where covariances are not learned.
_FIXED_MEAN_PRECISION = 0.01
# Dependent columns may be the work of the rows farthest out, at most this share of all.
_SHARE_FAR_OUT = 0.01


class PriorMixin:
    """Makes of constructor parameters and data what the sampler takes."""

    def _check_parameters(self, X):
        """What single-parameter constraints cannot say."""
        real = self._columns_of("gaussian")
        self._check_laws(len(real))
        self._check_partition()
        self._check_scale(len(real))
        self._check_degrees_of_freedom(X[:, real])
        self._check_base(len(real))
        self._advise(len(X), len(real))

    def _check_laws(self, d):
        """Numbers of laws, and what is for real columns alone."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Law) and not isinstance(value, Grid):
                check_numbers_of_law(name, value, 1e-10, 1e10)
        for name in ("mean_prior", "degrees_of_freedom_prior", "covariance_prior"):
            if not d and getattr(self, name) is not None:
                raise ValueError(f"{name} must be None where X has no real column")

    def _check_partition(self):
        """The law of the partition: its number of components, discount and concentration."""
        if self.n_components is not None and self.discount != 0:
            raise ValueError(
                f"discount must be 0 for a finite mixture (n_components={self.n_components}), "
                f"got {self.discount!r}"
            )
        if isinstance(self.n_components, Law):
            default = self._declared["concentration"].default
            if self.concentration != default:
                raise ValueError(
                    f"concentration must be its default {default} where n_components is a law, "
                    f"which has component_concentration instead, got {self.concentration!r}"
                )
        elif self.component_concentration != 1.0:
            raise ValueError(
                "component_concentration must be 1.0 unless n_components is a law, got "
                f"{self.component_concentration!r}; concentration is that of all components"
            )
        if self._sampler_settings().algorithm == "gibbs" and (
            not isinstance(self.n_components, Integral) or self.n_components > _MOST_COMPONENTS
        ):
            raise ValueError(
                f"n_components must be a number up to {_MOST_COMPONENTS} for algorithm='gibbs', "
                f"got {self.n_components!r}"
            )
        if not isinstance(self.concentration, Law):
            no_discount = self.n_components or isinstance(self.discount, Law)
            lowest = 0 if no_discount else -self.discount
            if not self.concentration > lowest:
                raise ValueError(
                    f"concentration must be > {lowest or 0}, got {self.concentration!r}"
                )

    def _check_degrees_of_freedom(self, real):
        """Enough of them for a covariance; ``real`` are the real columns of X."""
        df, d = self.degrees_of_freedom_prior, real.shape[1]
        if df is None or self.covariance_type != "full":
            return
        if not df > d - 1:
            raise ValueError(
                f"degrees_of_freedom_prior must be > n_features - 1 = {d - 1} for "
                f"covariance_type='full', got {df!r}"
            )
        # An imputed row of so heavy a tail leaves the range of floats.
        if np.isnan(real).all(axis=1).any() and not df >= d:
            raise ValueError(
                f"degrees_of_freedom_prior must be >= n_features = {d} where X has rows with "
                f"no observed value, got {df!r}"
            )

    def _check_base(self, d):
        """Shapes of the base measure's mean and covariance."""
        if self.mean_prior is not None:
            mean = _finite_array("mean_prior", self.mean_prior)
            if mean.shape != (d,):
                raise ValueError(f"mean_prior must have shape ({d},), got {mean.shape}")
        if self.covariance_prior is not None:
            self._checked_covariance(d)

    def _check_scale(self, d):
        """Values of the prior scale within its range, and a covariance that it multiplies."""
        if isinstance(self.prior_scale, Grid):
            values = np.array(self.prior_scale.values)
            if not np.all((values >= SMALLEST) & (values <= LARGEST)):
                raise ValueError(
                    f"prior_scale must have values from {SMALLEST} to {LARGEST}, got "
                    f"{self.prior_scale!r}"
                )
        if d and self._learns_covariance() and self.prior_scale != SCALE_GRID:
            raise ValueError(
                "prior_scale must be left at its default where covariances are learned: give "
                "degrees_of_freedom_prior or covariance_prior for it to multiply, got "
                f"{self.prior_scale!r}"
            )

    def _advise(self, n, d):
        df = self.degrees_of_freedom_prior or d + 2
        if self.covariance_type == "full" and n > 1 and df + n / 10 < 2 * d:
            warn(
                f"X has {n} rows to learn covariances of {d} columns from: compare "
                "covariance_type='diag' by the score of rows left out, in shuffled folds. It is "
                "the better model where columns have little to do with one another, and a far "
                "worse one where they have much",
            )

    def _checked_covariance(self, d):
        """covariance_prior as an array of the right shape, or a ValueError."""
        value = _finite_array("covariance_prior", self.covariance_prior)
        shape = {"full": (d, d), "diag": (d,), "spherical": ()}[self.covariance_type]
        if value.shape != shape:
            raise ValueError(
                f"covariance_prior must have shape {shape} for "
                f"covariance_type={self.covariance_type!r}, got {value.shape}"
            )
        if self.covariance_type != "full":
            if not np.all(value > 0):
                raise ValueError(f"covariance_prior must be positive, got {value.min()}")
            return value
        # Judged as a correlation, so that the units of the features do not matter.
        root = np.sqrt(np.maximum(np.diag(value), 0.0))
        if not np.all(root > 0):
            raise ValueError(
                "covariance_prior must be positive definite, got the smallest diagonal entry "
                f"{np.diag(value).min():.3g}"
            )
        correlation = value / root[:, None] / root
        skew = np.abs(correlation - correlation.T)
        if not skew.max() <= 1e-10:
            i, j = np.unravel_index(np.argmax(skew), skew.shape)
            raise ValueError(
                f"covariance_prior must be symmetric, got {value[i, j]:.3g} at [{i}, {j}] and "
                f"{value[j, i]:.3g} at [{j}, {i}]"
            )
        lowest = np.linalg.eigvalsh((correlation + correlation.T) / 2)[0]
        if not lowest > d * np.finfo(float).eps:
            raise ValueError(
                "covariance_prior must be positive definite, got a matrix whose correlations "
                f"have the smallest eigenvalue {lowest:.3g}"
            )
        return (value + value.T) / 2

    def _fitted_units(self, X):
        """The units of the columns; only real ones are standardised."""
        center, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        columns, low = np.arange(X.shape[1]), low_of(X)
        real = self._columns_of("gaussian")
        if not real.size:
            return Units("gaussian", columns, low, center, scale)
        X = X[:, real]
        constant = np.flatnonzero(np.nanmax(X, axis=0) == np.nanmin(X, axis=0))
        self._judge_constant(real[constant], len(X))
        found = standard_units(
            X, "common" if self._has_common_scale() else "each", keep_constant=True,
            named=lambda columns: self._named(real[columns]),
        )  # fmt: skip
        center[real], scale[real] = found.center, found.scale
        return Units("gaussian", columns, low, center, scale)

    def _has_common_scale(self):
        """Whether all real columns are divided by one scale."""
        return self.covariance_type == "spherical" and self.covariance_prior is not None

    def _judge_constant(self, columns, n_samples):
        """Refuse real columns that do not vary, or say what they do to the model."""
        if not columns.size or n_samples == 1 or self.covariance_prior is not None:
            return
        message = f"got the constant {self._named(columns)}"
        if self.covariance_type == "full":
            raise ValueError(
                "X must vary in every column for covariance_type='full' without a "
                f"covariance_prior, {message}; remove them or use covariance_type='diag'"
            )
        advice = ""
        if self.covariance_type == "spherical":
            advice = (
                "; remove them: they draw the one variance of spherical components towards "
                "zero, so that these become small and many"
            )
        warn(f"X should vary in every column, {message}, taken to have scale 1{advice}")

    def _judge_dependent(self, columns, X):
        """Say what real columns do to the model of which some follow from others.

        Along what never varies, the covariance that clusters share shrinks without end.
        """
        found = columns[dependent_columns(X)]
        if not found.size:
            return
        complete = X[~np.isnan(X).any(axis=1)]
        distance = np.abs(complete).max(axis=1)
        near = complete[distance <= np.quantile(distance, 1.0 - _SHARE_FAR_OUT)]
        if np.ptp(near, axis=0).all() and not dependent_columns(near, 2).size:
            rows = np.flatnonzero(np.nan_to_num(np.abs(X)).max(axis=1) > distance.max() / 2)
            warn(
                f"X has {len(rows)} row(s) so far out, row(s) {', '.join(map(str, rows[:10]))}"
                f"{', ...' if len(rows) > 10 else ''}, that columns seem to follow from one "
                "another: check those rows, leave them out, or transform the columns, by their "
                "logarithm say"
            )
            return
        warn(
            f"X should have no columns that follow from others for covariance_type='full', got "
            f"the linearly dependent {self._named(found)}: densities have no bound, so that "
            "chains drift without end or lose their digits; leave out what follows from the rest"
        )

    def _standard_prior(self, X):
        """The prior for standardised X."""
        columns = {one: self._columns_of(*[kind.name for kind in one.KINDS]) for one in FAMILIES}
        return Prior(
            parts=tuple(one.of(self, here, X) for one, here in columns.items() if here.size),
            n_components=self.n_components,
            concentration=number_or_law(
                self.component_concentration
                if isinstance(self.n_components, Law)
                else self.concentration
            ),
            discount=number_or_law(self.discount),
            prior_scale=number_or_law(self.prior_scale),
        )

    def _gaussian_prior(self, columns, X):
        """Of real columns, which are X."""
        d, kind = len(columns), self.covariance_type
        kappa0, df, covariance = self.mean_precision_prior, self.degrees_of_freedom_prior, None
        if self._learns_covariance():
            if kind == "full":
                self._judge_dependent(columns, X)
            covariance = guess_covariance(X, kind)
        else:
            kappa0 = _FIXED_MEAN_PRECISION if kappa0 is None else kappa0
            df = float(default_degrees_of_freedom(d, kind) if df is None else df)
            if self.covariance_prior is not None:
                covariance = self._standard_covariance(self._checked_covariance(d))
            else:
                covariance = default_covariance(X, kind, df)
        mean = np.zeros(d)
        if self.mean_prior is not None:
            given = np.asarray(self.mean_prior, dtype=np.float64)
            mean = (given - self._units.center[columns]) / self._units.scale[columns]
            self._refuse_far(np.atleast_1d(mean), columns, "mean_prior", _FARTHEST_MEAN)
        kappa0 = None if kappa0 is None else float(kappa0)
        return GaussianPrior(columns, kind, mean, kappa0, df, covariance)

    def _learns_covariance(self):
        """Whether the numbers of the covariances' prior are part of the state."""
        return self.degrees_of_freedom_prior is None and self.covariance_prior is None

    def _standard_covariance(self, covariance):
        """covariance_prior in units of the standardised X."""
        scale = self._units.scale[self._columns_of("gaussian")]
        if self.covariance_type == "spherical":
            scale = scale[0]
        # One division after the other: the square of a scale may underflow.
        with np.errstate(over="ignore"):
            if self.covariance_type == "full":
                covariance = covariance / scale[:, None] / scale
            else:
                covariance = covariance / scale / scale
        variances = np.diag(covariance) if self.covariance_type == "full" else covariance
        if not (np.all(variances >= SMALLEST) and np.all(variances <= LARGEST)):
            raise ValueError(
                f"covariance_prior must be within {SMALLEST} and {LARGEST} times the variances "
                f"of X, got {np.min(variances):.3g} to {np.max(variances):.3g} times"
            )
        return covariance


def _finite_array(name, value):
    given = value
    try:
        if np.asarray(value).dtype.kind not in "iufO":
            raise TypeError
        value = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, got {given!r}") from error
    if not np.all(np.isfinite(value)):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return value
