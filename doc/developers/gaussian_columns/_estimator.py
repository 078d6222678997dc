"""The public estimator."""

from functools import partial
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from gaussian_columns._model import Prior, log_densities
from gaussian_columns._sampler import Sampler
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.density import DensityMixin
from skbnp.estimators.parameters import parameter
from skbnp.units import Units, check_units, standard_units


class GaussianColumns(DensityMixin, BaseMCMCEstimator):
    r"""Independent Gaussian columns of unknown mean and precision.

    Attributes
    ----------
    means_ : ndarray of shape (n_features,)
        Posterior means of the columns' means.
    posterior_ : Posterior
        All kept draws.
    n_chains_, n_warmup_, n_draws_ : int
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

    # -- what the base asks for

    def _auto_lengths(self, X):
        return 100, 200

    def _prepare(self, X):
        self._units = standard_units(X, keep_constant=True, named=self._named)
        self._prior = Prior(float(self.mean_variance), 1.0, 1.0)
        log_jacobian = float(self._log_jacobian(X).sum())
        return partial(
            _make_sampler, X=self._modelled(X), prior=self._prior, log_jacobian=log_jacobian
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

    # -- one draw

    def _log_density_of(self, law, t, rows):
        return log_densities(rows, law)

    def _cell_moments_of(self, law, t, rows):
        like = np.zeros(rows.shape)
        return like + law["mean"], like + 1.0 / law["precision"]

    def _sample_of(self, draw, n_rows, rng):
        noise = rng.standard_normal((n_rows, len(draw["mean"])))
        return draw["mean"] + noise / np.sqrt(draw["precision"])


def _make_sampler(bit_generator, chain, *, X, prior, log_jacobian):
    return Sampler(X, prior, bit_generator, log_jacobian)
