"""The public estimator."""

from dataclasses import replace
from functools import partial
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from skbnp.deep_scale_model._model import BIRTH_MOVES, Prior
from skbnp.deep_scale_model._predictive import (
    cell_moments,
    feature_labels,
    log_density,
    row_moments,
    sample_rows,
)
from skbnp.deep_scale_model._sampler import Sampler
from skbnp.deep_scale_model._saved import check_draw, check_fitted
from skbnp.deep_scale_model._start import start_state
from skbnp.deep_scale_model._training_rows import TrainingRows
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.likelihoods.sparse_loadings.layers import MOST_LAYERS, real_layers
from skbnp.likelihoods.sparse_loadings.parameters import checked_array, checked_pair, fixed
from skbnp.mcmc.caller import warn
from skbnp.summaries.factors import aligned, alignments, column_signs, energy_correlation
from skbnp.summaries.partitions import central_draw
from skbnp.units import Units, check_units, standard_units

# Sweeps of warm-up, and draws, where the user leaves them open.
_LENGTH = 500
# Share of the warm-up in which the noise is annealed.
_ANNEALED = 0.4
# Prior variance of a sampled location, in standardised units.
_LOCATION_VARIANCE = 100.0
# Least variance of given noise, in standardised units.
_LEAST_NOISE = 1e-12
# Means farther from 0 than so many standard deviations are worth a warning.
_OFF_CENTER = 0.5
# Draws that summaries of all draws look at, at most.
_MOST_SUMMARY_DRAWS = 300
# Pairs of labels, of one row in two draws, that the choice of the reference draw looks at, at most.
_COMPARISONS = 2e9
# Sweeps of a row's own chain that each draw keeps, in averages over draws.
_N_KEPT = 20
# Points that should carry the density of a row.
_LEAST_EFFECTIVE = 50


class DeepScaleModel(ClusterMixin, TransformerMixin, BaseMCMCEstimator):
    r"""Factors of scale: groups of columns that become loud or quiet together.

    The model of Pan and Han [1]_ with its repairs. Row t of standardised X has scores
    :math:`y_{tk}` of sparse factors, amplitudes :math:`A_t = W y_t`, and

    .. math::

        x_{tn} \sim \mathcal{N}\big(\mu_n + c A_{tn},\; A_{tn}^2 + s_n^2\big), \qquad
        y_{tk} \sim \mathcal{N}\big(0,\; 1 + (A^{(2)}_{tk})^2\big):

    factors drive the variances of the columns, and through the drift c their means. Links of
    columns to factors follow an Indian buffet process, and so do those of factors to the layer
    above them, whose amplitudes are :math:`A^{(2)}`. NaN is a missing cell, missing at random.

    It finds groups of columns that become loud or quiet together while their means stay, with
    mostly disjoint groups. Its own products are `feature_labels_`, predicted variances and factors
    of energy. It is not for clusters that differ in their means, as most signal strengths do, nor
    for clusters that share columns: a row's cluster is the factor that has the largest share of
    its energy, and four clusters need not give four factors. A Gaussian mixture beat it on every
    table we measured; to cluster, take `InfiniteFactorClusterer`.


    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The factor with most often the largest share of the row's energy, -1 for the background.
    n_clusters_ : int
        Number of clusters in `labels_`, the background left out.
    labels_per_level_ : list of ndarray of shape (n_samples,)
        `labels_`, then for each layer above the first, in the reference draw, the factor with the
        largest share of the energy of the layer below, -1 for the background.
    feature_labels_ : ndarray of shape (`n_features_in_`,)
        The factor with the largest part in a column's variance in the reference draw, -1 where
        noise has it and for constant columns.
    n_factors_ : float
        Posterior mean of the number of factors with a link.
    n_shared_factors_ : float
        Posterior mean of the number of factors linked to two columns or more, which is what can be
        known: others come and go.
    n_layers_ : int
        Layers, from the first, that have in at least half of the draws a factor with two links and
        more than one per cent of the energy.
    energy_correlation_ : ndarray of shape (n_features, n_features)
        Correlations of log squared deviations from the mean, of the training data: what columns
        that become loud together have in common. A factor that two share alone gives 1/2.
    posterior_ : skbnp.mcmc.posterior.Posterior
        The draws, with traces, R-hat and effective sample sizes.
    n_warmup_ : int
        Sweeps of warm-up, what "auto" came to.
    n_draws_ : int
        Draws per chain, what "auto" came to.
    seed_ : int
        Entropy from which every chain got its own seed.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had them.

    See Also
    --------
    skbnp.InfiniteFactorClusterer : Clusters over sparse factors.
    skbnp.processes.ibp : The prior on links on its own.

    Notes
    -----
    A sweep draws links and loadings one by one, births and deaths of factors, splits and merges of
    factors, scores by elliptical and univariate slices, scales, noise, location, drift and mass.
    For T rows, N columns and K factors it costs some 25 T N K and, for every attempt at a birth,
    T times the 61 points of a grid (121 beyond 2,000 rows).

    Without a floor of noise the paper's model has no density: a column that no factor is linked to
    would have the variance 0. Slab variances are integrated out. Constant columns are set aside
    and restored. No factors are an answer. float32 input is computed in float64 (a copy of twice
    its size). Files of `save` hold the training rows, for ``posterior_.loo()``. Sparse X is
    refused. `sample_weight` and `partial_fit` are not available.

    References
    ----------
    .. [1] E. Pan and Z. Han. Non-parametric Bayesian learning with deep learning structure and its
       applications in wireless networks.
    .. [2] D. Knowles and Z. Ghahramani (2011). Nonparametric Bayesian sparse factor models with
       application to gene expression modeling. Annals of Applied Statistics 5, 1534-1552.
    .. [3] I. Murray, R. P. Adams and D. J. C. MacKay (2010). Elliptical slice sampling. AISTATS 9,
       541-548.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp import DeepScaleModel
    >>> rng = np.random.default_rng(0)
    >>> loud = np.repeat([[5, 5, 1, 1], [1, 1, 5, 5]], 60, axis=0)  # the same means
    >>> X = loud * rng.normal(size=(120, 4))
    >>> dsm = DeepScaleModel(n_chains=2, n_warmup=100, n_draws=50, random_state=0).fit(X)
    >>> first, second, third, fourth = dsm.feature_labels_
    >>> bool(first == second != third == fourth)
    True
    """

    max_layers: int | None = parameter(
        default=1,
        kind="int or None",
        rules=[Interval(Integral, 1, MOST_LAYERS, closed="both"), None],
        text="""
        Layers at most, up to 8. Those above the first say which factors are loud together. None:
        until a layer is empty, or 8.
        """,
    )
    mass: float | str = parameter(
        default="sample",
        kind='float or "sample"',
        rules=[Interval(Real, 1e-6, 1e4, closed="both"), StrOptions({"sample"})],
        text="""
        Of the Indian buffet: factors that a column is linked to, expected a priori.
        """,
    )
    mass_prior: tuple = parameter(
        default=(1.0, 1.0),
        kind="tuple of (shape, rate)",
        rules=[tuple, list],
        text="""
        Gamma prior of a sampled mass.
        """,
    )
    mass_upper: float = parameter(
        default=0.5,
        kind="float in (0, 1]",
        rules=[Interval(Real, 0, 1, closed="right")],
        text="""
        The mass of layers above the first.
        """,
    )
    slab_shape: float = parameter(
        default=2.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Inverse gamma prior of the variance of a factor's loadings: its shape.
        """,
    )
    slab_scale: float = parameter(
        default=1.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Its scale.
        """,
    )
    noise: str | ArrayLike = parameter(
        default="sample",
        kind='"sample", float or array-like',
        rules=[
            StrOptions({"sample"}),
            Interval(Real, 0, None, closed="left"),
            "array-like",
        ],
        text="""
        Standard deviations s of the noise, sampled or given: one or one for each column, > 0, in
        the units of X.
        """,
    )
    noise_shape: float = parameter(
        default=2.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Inverse gamma prior of sampled noise variances: its shape. The scale is 0.1.
        """,
    )
    drift: float | str = parameter(
        default=0.0,
        kind='float or "sample"',
        rules=[Interval(Real, -1e3, 1e3, closed="both"), StrOptions({"sample"})],
        text="""
        c. "sample" has the prior N(0, 1).
        """,
    )
    center: str = parameter(
        default="mean",
        kind='{"mean", "median", "sample", False}',
        rules=[StrOptions({"mean", "median", "sample"}), Options(bool, {False})],
        text="""
        The location: taken from X, sampled with it, or 0.
        """,
    )
    birth_move: str = parameter(
        default="singleton",
        kind='{"singleton", "finite", "pan-han"}',
        rules=[StrOptions(set(BIRTH_MOVES))],
        text="""
        How factors come and go. "finite": one of a finite model, empty factors included.
        "pan-han": the paper's own moves, for comparison alone. They leave no posterior invariant,
        the number of factors stays near that of the start, and a chain without factors can never
        have one again.
        """,
    )
    schedule: str = parameter(
        default="joint",
        kind='{"joint", "greedy"}',
        rules=[StrOptions({"joint", "greedy"})],
        text="""
        All layers in every sweep, or the paper's recursion in the warm-up, layer by layer.
        """,
    )
    n_births: int = parameter(
        default=2,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Attempts for each column and sweep to add or remove a factor of it alone.
        """,
    )
    n_split_merges: int = parameter(
        default=10,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Attempts for each sweep to split or merge factors.
        """,
    )
    n_init_factors: int = parameter(
        default=2,
        kind="int",
        rules=[Interval(Integral, 0, 1000, closed="both")],
        text="""
        Random factors that chains start with. More are hard to get rid of.
        """,
    )
    signed: bool = parameter(
        default=False,
        kind="bool",
        rules=["boolean"],
        text="""
        With a drift: factor k gives two clusters, 2 k where its score is positive and 2 k + 1.
        """,
    )
    transform_output: str = parameter(
        default="auto",
        kind='{"auto", "mean", "magnitude", "log_energy"}',
        rules=[StrOptions({"auto", "mean", "magnitude", "log_energy"})],
        text="""
        E y, E abs(y) or log E y^2. "auto" is the first with a drift, the second without, as E y is
        0 then.
        """,
    )
    standardize: bool = parameter(
        default=True,
        kind="bool",
        rules=["boolean"],
        text="""
        Divide columns by their standard deviations first. The priors are for such columns.
        """,
    )
    n_warmup: int | str = parameter(
        default="auto",
        text="""
        Sweeps per chain before the first draw; "auto" is 500.
        """,
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws kept per chain; "auto" is 500.
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

    _parameters_after_sampling = ("signed", "transform_output")
    _bool_parameters = (*BaseMCMCEstimator._bool_parameters, "center", "signed", "standardize")
    _reported_traces = ("log_joint", "n_shared_factors")
    _saved_types = (Prior, Units, TrainingRows)
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
        "_prior": Prior,
        "_reference": dict,
        "_training_rows": TrainingRows,
        "_n_features_out": Integral,
    }
    _may_hold: dict = {**BaseMCMCEstimator._may_hold, "X": (np.nan,)}

    # -- clusters

    def predict(self, X):
        """Factor that most probably has the largest share of each row's energy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing. Training rows count as new rows; their own clusters are in
            `labels_`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            -1 is the background.
        """
        labels = np.argmax(self.predict_proba(X), axis=1) - 1
        if not self.signed:
            return labels
        found = row_moments(self._reference, self._visible(self._check_new(X)), self.seed_)
        return _split_by_sign(labels, found["mean"] * column_signs(self._reference["loadings1"]))

    def predict_proba(self, X):
        """Probability that each factor has the largest share of a row's energy.

        Given the loadings of the reference draw; `signed` does not change it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        proba : ndarray of shape (n_samples, 1 + n_factors)
            That of the background first. Rows sum to one.
        """
        A = self._visible(self._check_new(X))

        def largest(start, stop):
            return row_moments(self._reference, A[start:stop], self.seed_)["largest"][0]

        return self._by_row_blocks(largest, len(A))

    # -- densities, factors, missing cells

    def score_samples(self, X):
        """Log posterior predictive density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; where cells are missing, the density of the observed ones (0 for none). Constant
            columns of the training data do not count.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Averaged over draws inside the logarithm; a density in the units of X.

        Warns
        -----
        UserWarning
            If fewer than 50 points effectively carry a row's density.
        """
        X = self._check_new(X)
        draws = self._prediction_draws()

        def of_draw(draw, t, block):
            return np.stack(log_density(draw, block, self.seed_, t))

        density, error = np.empty(len(X)), np.empty(len(X))
        for rows, parts in self._over_draws(self._visible(X), of_draw):
            log_p, relative = np.concatenate(parts).transpose(1, 0, 2)
            density[rows] = logsumexp(log_p, axis=0) - np.log(len(draws))
            error[rows] = relative.mean(axis=0)
        few = np.count_nonzero(error > 1 / _LEAST_EFFECTIVE)
        if few:
            warn(
                f"the density of {few} row(s) rests on fewer than {_LEAST_EFFECTIVE} effective "
                "points: they are far from what the factors explain",
            )
        # Sums of nothing are 0 up to their rounding only.
        empty = np.isnan(X[:, self._units.columns]).all(axis=1)
        return np.where(empty, 0.0, density + self._units.log_jacobian(X))

    def transform(self, X):
        """Expected scores of the factors given each row, averaged over draws.

        Columns are those of the reference draw; factors of other draws are matched to them by the
        correlation of scores, and the largest loading of each is positive. A draw without a
        partner for a column does not count there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_factors)
            In standard deviations as the model has them, no units of X; what `transform_output`
            says. No columns where the reference draw has no factor.
        """
        A = self._visible(self._check_new(X))
        kind = self._output_kind()
        draws = [self._reference, *self._prediction_draws()]
        places = self._alignments(draws)

        def of_draw(t, block):
            values = row_moments(draws[t], block, self.seed_, t, n_kept=_N_KEPT)[kind]
            column, sign = places[t]
            return aligned(values, column, sign if kind == "mean" else np.ones(len(sign)))

        def of_rows(start, stop):
            return sum(of_draw(t, A[start:stop]) for t in range(len(draws)))

        n_matched = np.sum([column >= 0 for column, _ in places], axis=0)
        scores = self._by_row_blocks(of_rows, len(A)) / n_matched
        if self.transform_output == "log_energy":
            return np.log(np.maximum(scores, np.finfo(float).tiny))
        return scores

    def impute(self, X, return_std=False):
        """Fill missing cells with their mean given the row's observed ones, over all draws alike.

        Without drift that is the location, whatever the other features say: they predict the
        variance alone, which `return_std` returns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.
        return_std : bool, default=False
            Also return the predictive standard deviation.

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_features)
            Observed cells are those of X, bit for bit.
            A frame of the kind, names and index of X where that is one.
        std : ndarray or frame of shape (n_samples, n_features)
            Only if `return_std`: by the law of total variance over draws, 0 for observed cells.
        """
        check_is_fitted(self, "posterior_")

        def of_draw(draw, t, block):
            return cell_moments(draw, block, self.seed_, t)

        return self._impute(X, return_std, self._visible, of_draw)

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
        if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
            raise ValueError(f"n_samples must be an integer >= 1, got {n_samples!r}")
        seed = check_random_state(random_state).randint(2**32, dtype=np.uint64)
        rng = np.random.default_rng(seed)
        A = np.empty((n_samples, len(self._units.columns)))
        chosen = rng.integers(self.posterior_.n_stored, size=n_samples)
        for t in np.unique(chosen):
            rows = np.flatnonzero(chosen == t)
            A[rows] = sample_rows(self.posterior_.in_order(int(t)), len(rows), rng)
        return self._as_sampled(self._units.from_visible(A))

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
        return _LENGTH, _LENGTH

    def _prepare(self, X):
        """Check the parameters against X, scale it and say how to build a sampler."""
        if len(X) < 2:
            raise ValueError(f"X must have at least 2 samples, got n_samples = {len(X)}")
        self._check_parameters(X.shape[1])
        self._units = self._fitted_units(X)
        A = self._visible(X)
        self._prior = self._make_prior()
        self._training_rows = TrainingRows(A, self._prior, self._units)
        self._advise(A)
        n_warmup = _LENGTH if self.n_warmup == "auto" else int(self.n_warmup)
        return partial(
            _make_sampler,
            X=A,
            prior=self._prior,
            n_init_factors=int(self.n_init_factors),
            n_births=self.n_births,
            n_split_merges=self.n_split_merges,
            # The paper does not anneal.
            n_anneal=0 if self.birth_move == "pan-han" else int(_ANNEALED * n_warmup),
            schedule=self.schedule,
            n_greedy=n_warmup // (self._prior.max_layers + 1),
            log_jacobian=float(self._units.log_jacobian(X).sum()),
        )

    def _check_parameters(self, n_features):
        """What single-parameter constraints cannot say."""
        if not isinstance(self.noise, str):
            noise = checked_array("noise", self.noise, n_features)
            if not (noise > 0).all():
                raise ValueError(
                    "noise must be > 0: without a floor a feature that has lost its links, which "
                    "every birth_move may bring about, has no density, and neither has a 0 in X; "
                    f"take a small number such as noise=1e-3, got {self.noise!r}"
                )
        if self._has_no_drift() and self.signed:
            raise ValueError("signed=True must have a drift: without one signs mean nothing")
        if self._has_no_drift() and self.transform_output == "mean":
            raise ValueError(
                "transform_output='mean' must have a drift: without one all means are 0"
            )

    def _has_no_drift(self):
        return not isinstance(self.drift, str) and self.drift == 0.0

    def _fitted_units(self, X):
        """Where the columns that vary are put; what the data say against that is a warning."""
        units = standard_units(
            X, "each" if self.standardize else "none", named=self._named, sums_of_squares=True
        )
        columns = units.columns
        self._warn_of_constant(units)
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
        noise = None
        if not isinstance(self.noise, str):
            noise = checked_array("noise", self.noise, self.n_features_in_)[self._units.columns]
            with np.errstate(over="ignore"):
                noise = (noise / self._units.scale) ** 2
            if not ((noise >= _LEAST_NOISE) & (noise <= 1 / _LEAST_NOISE)).all():
                raise ValueError(
                    f"noise must be within {_LEAST_NOISE**0.5:g} and {_LEAST_NOISE**-0.5:g} "
                    f"standard deviations of X, got {self.noise!r}"
                )
        return Prior(
            mass=fixed(self.mass),
            mass_prior=checked_pair("mass_prior", self.mass_prior),
            mass_upper=float(self.mass_upper),
            slab_shape=float(self.slab_shape),
            slab_scale=float(self.slab_scale),
            noise=noise,
            noise_shape=float(self.noise_shape),
            drift=fixed(self.drift),
            location_variance=_LOCATION_VARIANCE if self.center == "sample" else 0.0,
            max_layers=MOST_LAYERS if self.max_layers is None else int(self.max_layers),
            birth_move=self.birth_move,
        )

    def _advise(self, A):
        """Say where the model has nothing to find."""
        with np.errstate(invalid="ignore", divide="ignore"):
            off = A - np.nanmean(A, axis=0)
            off /= np.nanmax(np.abs(off), axis=0)  # fourth powers stay in the range of floats
            kurtosis = np.nanmean(off**4, axis=0) / np.nanmean(off**2, axis=0) ** 2
        if self._has_no_drift() and not (kurtosis > 3).any():
            warn(
                "X should have a column of kurtosis > 3 where drift=0, got at most "
                f"{np.max(kurtosis):.2f}: there is no scale structure, expect no factors; "
                "InfiniteFactorClusterer is the better model",
            )

    # -- after sampling

    def _summarise(self, X):
        traces = self.posterior_.traces
        self.n_factors_ = float(traces["n_factors"].mean())
        self.n_shared_factors_ = float(traces["n_shared_factors"].mean())
        columns = self._units.columns
        self.energy_correlation_ = energy_correlation(
            self._training_rows.X, columns, self.n_features_in_
        )
        draws = self.posterior_.evenly_spaced(_MOST_SUMMARY_DRAWS)
        labels = [draw["level_labels"][0] for draw in draws]
        self._reference = self._central(draws, labels)
        self.labels_ = self._most_frequent(draws, labels)
        if self.signed:
            scores = self._reference["scores1"] * column_signs(self._reference["loadings1"])
            self.labels_ = _split_by_sign(self.labels_, scores)
        self.n_clusters_ = len(np.unique(self.labels_[self.labels_ >= 0]))
        self._n_features_out = self._reference["loadings1"].shape[1]
        self.feature_labels_ = np.full(self.n_features_in_, -1)
        self.feature_labels_[columns] = feature_labels(self._reference)
        upper = self._reference["level_labels"][1:]
        self.labels_per_level_ = [self.labels_, *(level.astype(np.intp) for level in upper)]
        self.n_layers_ = real_layers(draws)

    def _central(self, draws, labels):
        """The draw in the middle by its labels; where no row has a factor, the most probable."""
        if not any((one >= 0).any() for one in labels):
            return self.posterior_.highest()
        most = max(16, int((_COMPARISONS / len(labels[0])) ** 0.5))
        step = -(-len(draws) // most)
        return draws[::step][central_draw([one + 1 for one in labels[::step]], "binder")]

    def _most_frequent(self, draws, labels):
        """The label that each row has in most draws, factors matched to those of the reference."""
        n_factors = self._reference["loadings1"].shape[1]
        # Background first; a factor without a partner in the reference has no say.
        share = np.zeros((len(labels[0]), n_factors + 1))
        for one, (column, _) in zip(labels, self._alignments(draws), strict=True):
            place = np.full(one.max(initial=-1) + 2, -1)
            place[0] = 0
            for k, partner in enumerate(column):
                if 0 <= partner < len(place) - 1:
                    place[partner + 1] = k + 1
            at = place[one + 1]
            rows = np.flatnonzero(at >= 0)
            share[rows, at[rows]] += 1
        return np.argmax(share, axis=1) - 1

    def _attach_rows(self):
        self.posterior_.attach_rows(self._training_rows)

    # -- files

    def _check_draw(self, draw):
        check_draw(draw, self._prior, *self._training_rows.X.shape)

    def _check_loaded(self):
        check_units(self._units, self.n_features_in_)
        check_fitted(self)

    # -- rows

    def _visible(self, X):
        """The modelled columns, standardised."""
        return np.ascontiguousarray(self._units.scaled(X))

    def _in_units(self, mean, variance):
        """Means and standard deviations of all columns in the units of X."""
        return self._units.moments(mean, variance)

    def _alignments(self, draws):
        """Where each column of the reference is in each draw, -1 for nowhere, and its sign."""
        return alignments(self._reference, draws, lambda draw: draw["scores1"])

    def _output_kind(self):
        """What `transform` averages: "mean", "magnitude" or "energy" of scores."""
        if self.transform_output == "auto":
            return "magnitude" if self._prior.drift == 0.0 else "mean"
        return "energy" if self.transform_output == "log_energy" else self.transform_output


def _split_by_sign(labels, scores):
    """Labels 2 k where the score of factor k is positive, 2 k + 1 where negative, -1 as before."""
    factor = np.maximum(labels, 0)
    if not scores.shape[1]:
        return labels
    negative = scores[np.arange(len(labels)), factor] < 0
    return np.where(labels < 0, -1, 2 * factor + negative)


def _make_sampler(bit_generator, chain, *, X, prior, n_init_factors, n_anneal, **options):
    """The sampler of one chain; runs where the chain runs."""
    rng = np.random.Generator(bit_generator)
    state = start_state(X, prior, rng, n_init_factors, annealed=n_anneal > 0)
    return Sampler(X, prior, state, bit_generator, n_anneal=n_anneal, **options)
