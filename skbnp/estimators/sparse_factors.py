"""What the estimators with sparse loadings share: parameters, units of columns, factors."""

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.arguments import check_numbers_of_law, number_or_law
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.density import DensityMixin
from skbnp.estimators.factors import FactorsMixin
from skbnp.estimators.parameters import parameter
from skbnp.laws import Gamma, InverseGamma, Law
from skbnp.likelihoods.sparse_loadings.layers import MOST_LAYERS, n_layers, real_layers
from skbnp.numerics.states import checked_floats, checked_indices, is_same
from skbnp.reports import factors
from skbnp.summaries.factors import aligned, column_signs, energy_correlation
from skbnp.units import Units, check_units, standard_units


class SparseFactorEstimator(ClusterMixin, FactorsMixin, DensityMixin, BaseMCMCEstimator):
    """Base of estimators of rows that have scores on sparse factors.

    A subclass has the class of its ``_prior`` and sets ``_units``, ``_training_rows`` and, in
    ``_summarise``, the draw ``_reference``; beside what densities and factors are made of it says
    in ``_feature_labels()`` those of the modelled columns in the reference draw, and in
    ``_score_sizes(draw)`` the root mean square of the scores of each factor.
    """

    max_layers: int | None = parameter(
        default=1,
        kind="int or None",
        rules=[Interval(Integral, 1, MOST_LAYERS, closed="both"), None],
        text="""
        Largest number of layers, up to 8. Layers above the first say which factors are loud
        together. None: layers are added until one is empty, or there are 8.
        """,
    )
    mass: float | Gamma = parameter(
        default=Gamma(1.0, 1.0),
        kind="float or Gamma",
        rules=[Interval(Real, 1e-6, 1e4, closed="both"), Gamma],
        text="""
        Mass of the Indian buffet process: the number of factors that a column is expected to be
        linked to.
        """,
    )
    mass_upper: float = parameter(
        default=0.5,
        kind="float in (0, 1]",
        rules=[Interval(Real, 0, 1, closed="right")],
        text="""
        Mass of the layers above the first.
        """,
    )
    loading_variance: InverseGamma = parameter(
        default=InverseGamma(2.0, 1.0),
        kind="InverseGamma",
        rules=[InverseGamma],
        text="""
        Law of the variance that the loadings of a factor have.
        """,
    )
    scaling: str = parameter(
        default="each",
        kind='{"each", "none"}',
        rules=[StrOptions({"each", "none"})],
        text="""
        "each" divides every column by its standard deviation first; the laws of the other
        parameters are for such columns. "none" leaves columns as they are.
        """,
    )
    n_jobs: int | None = parameter(
        default=None,
        text="""
        Chains at a time in `fit`, draws at a time when predicting; see `joblib.Parallel`. The
        results do not depend on it.
        """,
    )
    predict_draws: int = parameter(
        default=100,
        text="""
        Evenly spaced draws that predict-type methods use, at most. Their time is in proportion.
        """,
    )

    # No parameter is read for the laws of draws: they are kept, and so is the order of factors.
    _parameters_of_laws = ()
    _fewest_rows = 2
    # Sweeps of warm-up, and draws, where the user leaves them open.
    _length = 300
    _fitted_attributes: ClassVar[dict] = {
        **BaseMCMCEstimator._fitted_attributes,
        "labels_": np.ndarray,
        "n_clusters_": Integral,
        "labels_per_level_": list,
        "feature_labels_": np.ndarray,
        "n_factors_": Real,
        "n_shared_factors_": Real,
        "n_layers_": Integral,
        "energy_correlation_": np.ndarray,
        "_units": Units,
        "_reference": dict,
        "_n_features_out": Integral,
    }

    # -- before sampling

    def _auto_lengths(self, X):
        return self._length, self._length

    def _check_shared_parameters(self):
        """What rules of single parameters do not say."""
        for name in ("mass", "loading_variance"):
            self._check_law(name, getattr(self, name))

    @staticmethod
    def _check_law(name, value):
        """Refuse a law whose numbers leave no room for start values and log densities."""
        if isinstance(value, Law):
            check_numbers_of_law(name, value, 1e-6, 1e6)

    def _shared_prior(self):
        """Hyperparameters of the layers, by their names in the prior."""
        return {
            "mass": number_or_law(self.mass),
            "mass_upper": float(self.mass_upper),
            "loading_variance": self.loading_variance,
            "max_layers": MOST_LAYERS if self.max_layers is None else int(self.max_layers),
        }

    def _fitted_units(self, X, where=""):
        """Where the columns that vary are put; ``where`` ends the message that none does."""
        units = standard_units(
            X, self.scaling, named=self._named, where=where, sums_of_squares=True
        )
        self._warn_of_constant(units)
        return units

    # -- after sampling

    def _summarise_factors(self, draws):
        """What is known of factors and layers, given the reference draw and `labels_`."""
        traces, columns = self.posterior_.traces, self._units.columns
        self.n_factors_ = float(traces["n_factors"].mean())
        self.n_shared_factors_ = float(traces["n_shared_factors"].mean())
        self.energy_correlation_ = energy_correlation(
            self._training_rows.X, columns, self.n_features_in_
        )
        self._n_features_out = self._reference["loadings1"].shape[1]
        self.feature_labels_ = np.full(self.n_features_in_, -1)
        self.feature_labels_[columns] = self._feature_labels()
        self.labels_per_level_ = [self.labels_, *self._upper_labels()]
        self.n_layers_ = real_layers(draws)

    def _upper_labels(self):
        """Labels of the layers above the first in the reference draw."""
        levels, n_upper = self._reference.get("level_labels", []), n_layers(self._reference) - 1
        return [level.astype(np.intp) for level in levels[len(levels) - n_upper :]]

    def _factors_section(self, training):
        """Loadings of the reference's factors, over the draws of a prediction."""
        draws = self._prediction_draws()
        here = self._scaled_loadings(self._reference) * column_signs(self._reference["loadings1"])
        loadings = [
            aligned(self._scaled_loadings(draw), column, sign)
            for draw, (column, sign) in zip(draws, self._alignments(draws), strict=True)
        ]
        traces = self.posterior_.traces
        return factors.section(
            traces["n_factors"],
            traces["n_shared_factors"],
            *factors.over_draws(here, np.stack(loadings)),
            [training.names[j] for j in self._units.columns],
        )

    def _scaled_loadings(self, draw):
        """Loadings for scores of mean square one: standard deviations of scaled columns."""
        return draw["loadings1"] * self._score_sizes(draw)

    # -- files

    def _check_loaded(self):
        check_units(self._units, self.n_features_in_)

    def _check_factors(self):
        """Raise a ValueError unless rows, units, labels and factors of a file belong together.

        The prior has been checked before.
        """
        d, rows, prior, labels = self.n_features_in_, self._training_rows, self._prior, self.labels_
        n_modelled = len(self._units.columns)
        if rows.X.ndim != 2 or rows.X.shape[1] != n_modelled or rows.X.dtype != np.float64:
            raise ValueError("the training rows must have a number for each feature")
        if not is_same([self._units, prior], [rows.units, rows.prior]):
            raise ValueError("the units and the prior of the rows must be those of the draws")
        if labels.shape != (len(rows.X),) or labels.dtype.kind != "i":
            raise ValueError("labels_ must have one entry per row")
        loadings = checked_floats(self._reference, "loadings1", (n_modelled, -1))
        checked_indices(vars(self), "feature_labels_", (d,), -1, loadings.shape[1])
        checked_floats(vars(self), "energy_correlation_", (d, d))
        self._check_levels()
        if self._n_features_out != loadings.shape[1] or self.n_layers_ > prior.max_layers:
            raise ValueError("_n_features_out and n_layers_ must be those of the draws")

    def _check_levels(self):
        """Raise a ValueError unless `labels_per_level_` has factors that there are."""
        levels, shape = self.labels_per_level_, self.labels_.shape
        if not levels or not np.array_equal(levels[0], self.labels_):
            raise ValueError("the first of labels_per_level_ must be labels_")
        for number, level in enumerate(levels[1:], start=2):
            n_above = self._reference[f"loadings{number}"].shape[1]
            checked_indices({"labels_per_level_": level}, "labels_per_level_", shape, -1, n_above)
