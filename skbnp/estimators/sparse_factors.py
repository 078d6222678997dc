"""What the estimators with sparse loadings share: parameters, units of columns, factors."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import check_count, check_numbers_of_law, refuses_by_name
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.laws import Gamma, InverseGamma, Law
from skbnp.likelihoods.sparse_loadings.layers import MOST_LAYERS, real_layers
from skbnp.summaries.factors import aligned, alignments, energy_correlation
from skbnp.units import Units, check_units, standard_units

# Draws that summaries of all draws look at, at most.
MOST_SUMMARY_DRAWS = 300
# Pairs of labels, of one row in two draws, that the choice of the reference draw looks at, at most.
_COMPARISONS = 2e9


def number_or_law(value):
    """A hyperparameter as a prior takes it."""
    return value if isinstance(value, Law) else float(value)


class SparseFactorEstimator(ClusterMixin, TransformerMixin, BaseMCMCEstimator):
    """Base of estimators of rows that have scores on sparse factors.

    A subclass has the class of its ``_prior`` and sets ``_units``, ``_training_rows`` and, in
    ``_summarise``, the draw ``_reference``; and it defines

    - ``_visible(X)``, the modelled columns as the model has them,
    - ``_anchor_scores()``, a function of a draw: its scores of some rows, the same in all draws, by
      which factors of draws are matched,
    - ``_feature_labels()``, those of the modelled columns in the reference draw,
    - ``_sample_rows(draw, n, rng)``.
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

    # Sweeps of warm-up, and draws, where the user leaves them open.
    _length = 300
    _fitted_attributes: dict = {
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

    @refuses_by_name
    def sample(self, n_samples=1, random_state=None):
        """Draw rows from the posterior predictive distribution, each from a draw of its own.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : ndarray or frame of shape (n_samples, n_features)
            In the units and the form of the training data; constant columns are restored.
        """
        check_is_fitted(self, "posterior_")
        self._validate_params()
        check_count("n_samples", n_samples)
        seed = check_random_state(random_state).randint(2**32, dtype=np.uint64)
        rng = np.random.default_rng(seed)
        A = np.empty((n_samples, len(self._units.columns)))
        chosen = rng.integers(self.posterior_.n_stored, size=n_samples)
        for t in np.unique(chosen):
            rows = np.flatnonzero(chosen == t)
            A[rows] = self._sample_rows(self.posterior_.in_order(int(t)), len(rows), rng)
        return self._as_sampled(self._units.from_visible(A))

    @refuses_by_name
    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: "factor0", "factor1", ...

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self, "posterior_")
        return np.array([f"factor{k}" for k in range(self._n_features_out)], dtype=object)

    # -- before sampling

    def _auto_lengths(self, X):
        return self._length, self._length

    def _check_shared_parameters(self, X):
        """What rules of single parameters do not say."""
        if len(X) < 2:
            raise ValueError(f"X must have at least 2 samples, got n_samples = {len(X)}")
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
        n_upper = sum(name.startswith("loadings") for name in self._reference) - 1
        levels = self._reference.get("level_labels", [])
        return [level.astype(np.intp) for level in levels[len(levels) - n_upper :]]

    def _comparable(self, draws):
        """As many of the draws as can be compared with one another, evenly spaced."""
        most = max(16, int((_COMPARISONS / len(self._training_rows.X)) ** 0.5))
        return slice(None, None, -(-len(draws) // most))

    def _alignments(self, draws):
        """Where each column of the reference is in each draw, -1 for nowhere, and its sign."""
        return alignments(self._reference, draws, self._anchor_scores())

    def _matched_scores(self, A, scores_of, has_signs=True):
        """Scores of the factors of the reference draw, averaged over the draws that have them.

        ``scores_of(draw, t, rows of A)`` are those of a draw, the reference first.
        """
        draws = [self._reference, *self._prediction_draws()]
        places = [
            (column, sign if has_signs else np.ones(len(sign)))
            for column, sign in self._alignments(draws)
        ]

        def of_rows(start, stop):
            block = A[start:stop]
            return sum(
                aligned(scores_of(draw, t, block), *places[t]) for t, draw in enumerate(draws)
            )

        n_matched = np.sum([column >= 0 for column, _ in places], axis=0)
        return self._by_row_blocks(of_rows, len(A)) / n_matched

    def _attach_rows(self):
        self.posterior_.attach_rows(self._training_rows)

    def _check_loaded(self):
        check_units(self._units, self.n_features_in_)

    # -- rows

    def _in_units(self, mean, variance):
        """Means and standard deviations of all columns in the units of X."""
        return self._units.moments(mean, variance)
