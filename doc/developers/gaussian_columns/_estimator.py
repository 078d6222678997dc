"""The public estimator."""

from functools import partial
from numbers import Real

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from gaussian_columns._model import Prior, log_densities
from gaussian_columns._sampler import Sampler
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.units import Units, check_units, standard_units


class GaussianColumns(BaseMCMCEstimator):
    r"""Independent Gaussian columns of unknown mean and precision.

    Attributes
    ----------
    means_ : ndarray of shape (n_features,)
        Posterior means of the columns' means.
    posterior_ : Posterior
        All kept draws.
    n_warmup_, n_draws_ : int
        Sweeps of warm-up and draws per chain, what "auto" came to.
    seed_ : int
        Entropy from which every chain got its own seed.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had them.
    """

    mean_variance: float = parameter(
        default=100.0,
        kind="float",
        rules=[Interval(Real, 1e-10, 1e10, closed="both")],
        text="""
        Prior variance of a column's mean, in variances of the column.
        """,
    )

    _reported_traces = ("log_joint", "log_precision")
    _saved_types = (Prior, Units)
    _fitted_attributes: dict = {
        **BaseMCMCEstimator._fitted_attributes,
        "means_": np.ndarray,
        "_units": Units,
        "_prior": Prior,
    }

    def score_samples(self, X):
        """Log posterior predictive density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            A density in the units of X.
        """
        X = self._check_new(X)
        A, draws = self._units.to_visible(X), self._prediction_draws()

        def of_rows(start, stop):
            return np.logaddexp.reduce([log_densities(A[start:stop], draw) for draw in draws])

        log_density = self._by_row_blocks(of_rows, len(X))
        return log_density - np.log(len(draws)) + self._units.log_jacobian(X)

    def impute(self, X, return_std=False):
        """Fill missing cells with the mean of their column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.
        return_std : bool, default=False
            Also return the predictive standard deviation.

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_features)
        std : ndarray or frame of shape (n_samples, n_features)
            Only if `return_std`.
        """

        def of_draw(draw, t, rows):
            like = np.zeros(rows.shape)
            return like + draw["mean"], like + 1.0 / draw["precision"]

        check_is_fitted(self, "posterior_")
        return self._impute(X, return_std, self._units.to_visible, of_draw)

    def sample(self, n_samples=1, random_state=None):
        """Draw rows from the posterior predictive distribution, each from a draw of its own.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : ndarray or frame of shape (n_samples, n_features)
        """
        check_is_fitted(self, "posterior_")
        rng = check_random_state(random_state)
        chosen = rng.randint(self.posterior_.n_stored, size=n_samples)
        draws = [self.posterior_.in_order(t) for t in chosen]
        mean, precision = (np.array([draw[name] for draw in draws]) for name in draws[0])
        A = mean + rng.standard_normal(mean.shape) / np.sqrt(precision)
        return self._as_sampled(self._units.from_visible(A))

    # -- what the base asks for

    def _auto_lengths(self, X):
        return 100, 200

    def _prepare(self, X):
        self._units = standard_units(X, keep_constant=True, named=self._named)
        self._prior = Prior(float(self.mean_variance), 1.0, 1.0)
        return partial(
            _make_sampler,
            X=self._units.to_visible(X),
            prior=self._prior,
            log_jacobian=float(self._units.log_jacobian(X).sum()),
        )

    def _summarise(self, X):
        mean = np.mean([draw["mean"] for draw in self.posterior_], axis=0)
        self.means_ = self._units.from_visible(mean[np.newaxis])[0]

    def _check_draw(self, draw):
        if set(draw) != {"mean", "precision"}:
            raise ValueError("a draw must hold mean and precision")
        for array in draw.values():
            if array.shape != (self.n_features_in_,) or not np.isfinite(array).all():
                raise ValueError("mean and precision must be finite, one a column")
        if not (draw["precision"] > 0.0).all():
            raise ValueError("precision must be > 0")

    def _check_loaded(self):
        check_units(self._units, self.n_features_in_, keep_constant=True)
        if self.means_.shape != (self.n_features_in_,):
            raise ValueError("means_ must be those of the columns")

    def _in_units(self, mean, variance):
        return self._units.moments(mean, variance)


def _make_sampler(bit_generator, chain, *, X, prior, log_jacobian):
    return Sampler(X, prior, bit_generator, log_jacobian)
