"""The public estimator."""

from functools import partial
from numbers import Integral, Real
from types import NoneType

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.estimators.partition import PartitionMixin
from skbnp.estimators.tables import FARTHEST
from skbnp.infinite_factor_clusterer._model import Prior
from skbnp.infinite_factor_clusterer._predictive import (
    as_rows,
    cell_moments,
    cluster_probabilities,
    components,
    expected_scores,
    log_densities,
    responsibilities,
    sample_rows,
)
from skbnp.infinite_factor_clusterer._sampler import Sampler
from skbnp.infinite_factor_clusterer._saved import (
    MOVED,
    ScalePrior,
    check_draw,
    check_fitted,
    parameters_of_file,
)
from skbnp.infinite_factor_clusterer._start import start_state
from skbnp.infinite_factor_clusterer._training_rows import TrainingRows
from skbnp.likelihoods.sparse_loadings.layers import MOST_LAYERS, real_layers
from skbnp.likelihoods.sparse_loadings.parameters import checked_array, checked_pair, fixed
from skbnp.mcmc.caller import warn
from skbnp.summaries.consensus import drop_unsupported, stable_consensus, support
from skbnp.summaries.factors import aligned, alignments, energy_correlation, some_rows
from skbnp.summaries.joining import merge_tree
from skbnp.summaries.partitions import central_draw, companion_table
from skbnp.units import Units, check_units, standard_units

# Sweeps of warm-up, and draws, where the user leaves them open.
_LENGTH = 300
# As many empty clusters, and more, are looked at in every sweep.
_MOST_CONCENTRATION = 100
# Draws that summaries of all draws look at, and rows that the overlap of components and the order
# of factors are judged by, at most.
_MOST_SUMMARY_DRAWS, _MOST_MERGE_ROWS, _MOST_ANCHORS = 300, 1000, 256
# Pairs of labels, of one row in two draws, that the choice of the reference draw looks at, at most.
_COMPARISONS = 2e9


class InfiniteFactorClusterer(ClusterMixin, TransformerMixin, PartitionMixin, BaseMCMCEstimator):
    r"""Clusters over sparse factors: no number of clusters and no number of factors is given.

    Take it for tables of some ten to a hundred correlated columns, signal strengths of radio
    transmitters say, whose clusters differ along a few shared directions, in the columns that are
    loud or quiet in them, or are no single Gaussians; and where readings are missing or below a
    detection limit. `DirichletProcessMixture` is the better tool for few columns, for clusters
    that are Gaussians of any shape, for columns that are binary, categories or counts, and for
    very many rows.

    Row t of standardised X has a cluster :math:`z_t` of a Dirichlet process, and in cluster g

    .. math::

        y_{tk} \sim \mathcal{N}(m_{gk},\; v_{gk} / \lambda_t), \qquad
        x_{tn} \sim \mathcal{N}\big(w_n \cdot y_t + o_{gn},\; s_{gn} / \lambda_t\big):

    mean and energy of every factor, and the noise of every column, are the cluster's own. The
    links of columns to factors follow an Indian buffet process. NaN is a missing cell, missing at
    random.

    `DeepScaleModel` is the paper's own model [1]_ of such factors, in which they drive variances.


    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Consensus partition of the training rows: of least expected variation of information over
        at most 300 draws whose overlapping components are joined; clusters by decreasing size.
    component_labels_ : ndarray of shape (n_samples,)
        The same of the components as they are.
    n_clusters_ : int
        Number of clusters in `labels_`.
    labels_per_level_ : list of ndarray of shape (n_samples,)
        `labels_`, then for each layer above the first, in the reference draw, the factor with the
        largest share of the energy of the layer below, -1 for the background.
    feature_labels_ : ndarray of shape (`n_features_in_`,)
        The factor with the largest part in a column's variance in the reference draw, -1 where
        noise has it and for constant columns.
    n_factors_ : float
        Posterior mean of the number of factors: directions that clusters share, not clusters.
    n_shared_factors_ : float
        Posterior mean of the number of factors linked to two columns or more, which is what can be
        known: others come and go.
    n_layers_ : int
        Layers, from the first, that have in at least half of the draws a factor with two links and
        more than one per cent of the energy.
    cluster_energies_ : dict of ndarray
        Variances of each cluster, averaged over draws by members: ``factors`` (n_clusters,
        n_factors), columns as in `transform`, and ``noise`` (n_clusters, n_features) in the squared
        units of X.
    energy_correlation_ : ndarray of shape (n_features, n_features)
        Correlations of log squared deviations from the mean, of the training data: what columns
        that become loud together have in common. A factor that two share alone gives 1/2.
    partition_info_ : dict
        What the search for `labels_` did, with ``dropped``, the clusters that were noise or of too
        little support, and ``support``, the share of the draws that has a component or a cluster
        much like each cluster left; see `skbnp.summaries.consensus`.
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
    skbnp.DeepScaleModel : Sparse factors that make columns loud and quiet.
    skbnp.DirichletProcessMixture : Mixtures of plain Gaussians and other laws.
    skbnp.processes.ibp : The prior on links on its own.

    Notes
    -----
    A sweep draws labels with the scores integrated out by slice sampling [2]_,
    scores, means, energies, noise, links and loadings, births and deaths of factors, splits and
    merges of clusters, hyperparameters, missing and censored cells. For T rows, N columns, K
    factors and G clusters it costs O(T G N K + T K^2).

    No factors and one cluster are answers. "Not heard" codes of radio data, -100 or +100 say, are
    not missing at random: make them -inf and give the `detection_limit`, or fill in something below
    the weakest reading. Prediction takes cells below the limit in by an approximation that is exact
    for one such cell. Constant columns are set aside and restored. float32 input is computed in
    float64 (a copy of twice its size). Files of `save` hold the training rows, for
    ``posterior_.loo()``. Sparse X is refused. `sample_weight` and `partial_fit` are not available.

    References
    ----------
    .. [1] E. Pan and Z. Han. Non-parametric Bayesian learning with deep learning structure and its
       applications in wireless networks.
    .. [2] M. Kalli, J. E. Griffin and S. G. Walker (2011). Slice sampling mixture models.
       Statistics and Computing 21, 93-105.
    .. [3] D. Knowles and Z. Ghahramani (2011). Nonparametric Bayesian sparse factor models with
       application to gene expression modeling. Annals of Applied Statistics 5, 1534-1552.
    .. [4] C. Hennig (2010). Methods for merging Gaussian mixture components. Advances in Data
       Analysis and Classification 4, 3-34.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp import InfiniteFactorClusterer
    >>> rng = np.random.default_rng(0)
    >>> loud = np.repeat([[5, 5, 1, 1], [1, 1, 5, 5]], 60, axis=0)  # the same means
    >>> X = loud * rng.normal(size=(120, 4))
    >>> ifc = InfiniteFactorClusterer(n_chains=2, n_warmup=100, n_draws=50, random_state=0).fit(X)
    >>> ifc.n_clusters_
    2
    >>> here, there = ifc.predict([[9.0, -8.0, 0.5, np.nan], [1.0, 0.5, 9.0, -7.0]])
    >>> bool(here != there)
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
    concentration: float | str = parameter(
        default="sample",
        kind='float or "sample"',
        rules=[
            Interval(Real, 1e-6, _MOST_CONCENTRATION, closed="both"),
            StrOptions({"sample"}),
        ],
        text="""
        Of the Dirichlet process: more gives more clusters. At most 100, as every sweep looks at
        that many empty clusters and more.
        """,
    )
    concentration_prior: tuple = parameter(
        default=(1.0, 1.0),
        kind="tuple of (shape, rate)",
        rules=[tuple, list],
        text="""
        Gamma prior of a sampled concentration, with a mean of at most 100.
        """,
    )
    score_shape: float = parameter(
        default=2.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Inverse gamma prior of a cluster's variances v of the scores: its shape.
        """,
    )
    score_scale: float = parameter(
        default=1.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Its scale.
        """,
    )
    score_precision: float = parameter(
        default=0.2,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Means m of clusters have the prior variance v / `score_precision`.
        """,
    )
    noise: str = parameter(
        default="cluster",
        kind='{"cluster", "shared"}',
        rules=[StrOptions({"cluster", "shared"})],
        text="""
        Each cluster's own, or "shared", where clusters differ by factors alone.
        """,
    )
    noise_shape: float = parameter(
        default=2.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Inverse gamma prior of noise variances.
        """,
    )
    noise_rate_prior: tuple = parameter(
        default=(1.0, 5.0),
        kind="tuple of (shape, rate)",
        rules=[tuple, list],
        text="""
        Its scale has a gamma prior for each column.
        """,
    )
    means: str = parameter(
        default="factor",
        kind='{"factor", "both", "feature"}',
        rules=[StrOptions({"factor", "both", "feature"})],
        text="""
        Whether clusters have means of the factors m, of the columns o, or both. "feature" is a
        mixture of factor analysers with shared loadings.
        """,
    )
    tails: str = parameter(
        default="normal",
        kind='{"normal", "student"}',
        rules=[StrOptions({"normal", "student"})],
        text=r"""
        "student": rows have precisions :math:`\lambda_t`, so that clusters are multivariate t laws,
        whose degrees of freedom, the same for all, are sampled from 2 to infinity.
        """,
    )
    merge_overlap: float | None = parameter(
        default=0.15,
        kind="float in (0, 1] or None",
        rules=[Interval(Real, 0, 1, closed="right"), None],
        text="""
        Components of a draw are joined while the chance that a row of one is put in another is as
        large. Smaller joins more. None leaves components as they are.
        """,
    )
    detection_limit: ArrayLike | None = parameter(
        default=None,
        kind="float or array-like of shape (n_features,)",
        rules=[Interval(Real, None, None, closed="neither"), "array-like", None],
        text="""
        Cells at or below it, -inf among them, are known to be below and no more.
        """,
    )
    n_init_clusters: int | list = parameter(
        default=(2, 4, 8, 16),
        kind="int or sequence of int",
        rules=[Interval(Integral, 1, None, closed="left"), tuple, list],
        text="""
        Clusters of k-means that chains start from, in turn. With tens of columns chains may keep
        to their start: different ones are pooled, and `fit` says so where they disagree.
        """,
    )
    n_births: int = parameter(
        default=1,
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
        Attempts for each sweep to split or merge clusters, half of them with new scores for their
        rows.
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
        Sweeps per chain before the first draw; "auto" is 300.
        """,
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws kept per chain; "auto" is 300.
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

    # Those of the model that is an estimator of its own now.
    _renamed = dict.fromkeys(MOVED, "it is a parameter of DeepScaleModel now") | {
        "top": 'the clusterer is what top="dp" was, DeepScaleModel is what top="gaussian" was'
    }
    _parameters_after_sampling = ("merge_overlap",)
    _bool_parameters = (*BaseMCMCEstimator._bool_parameters, "standardize")
    _consensus_labels = "component_labels_"
    _reported_traces = ("log_joint", "n_clusters", "n_factors", "concentration")
    _saved_types = (Prior, ScalePrior, Units, TrainingRows)
    _fitted_attributes: dict = {
        **BaseMCMCEstimator._fitted_attributes,
        "labels_": np.ndarray,
        "component_labels_": np.ndarray,
        "n_clusters_": Integral,
        "labels_per_level_": list,
        "feature_labels_": np.ndarray,
        "n_factors_": Real,
        "n_shared_factors_": Real,
        "n_layers_": Integral,
        "cluster_energies_": dict,
        "energy_correlation_": np.ndarray,
        "partition_info_": dict,
        "_limit": (np.ndarray, NoneType),
        "_units": Units,
        "_prior": Prior,
        "_reference": dict,
        "_training_rows": TrainingRows,
        "_n_features_out": Integral,
    }
    # Below the detection limit X is -inf; rows without tails have infinitely many degrees of
    # freedom, the last of ``hyper``.
    _may_hold: dict = {
        **BaseMCMCEstimator._may_hold,
        "X": (np.nan, -np.inf),
        "hyper": (np.inf,),
    }

    # -- clusters

    def predict(self, X):
        """Most probable cluster of each row, among those of `labels_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing. Training rows count as new rows; their own clusters are in
            `labels_`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.argmax(self.predict_proba(X), axis=1)

    def predict_proba(self, X):
        """Probability that each row belongs with each cluster of `labels_`.

        The average over draws of the chance that a training row out of the row's component has
        label j, so that no draw is relabelled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        proba : ndarray of shape (n_samples, `n_clusters_`)
            Rows sum to one.
        """
        A = self._visible(self._check_new(X))
        draws = self._prediction_draws()
        laws = [components(draw, self._prior) for draw in draws]
        tables = [self._companion_table(draw) for draw in draws]

        def of_draw(draw, t, block):
            return cluster_probabilities(self._rows(block), laws[t]) @ tables[t]

        proba = np.empty((len(A), self.n_clusters_))
        for rows, parts in self._over_draws(A, of_draw, sum):
            proba[rows] = np.sum(parts, axis=0) / len(draws)
        return proba / proba.sum(axis=1, keepdims=True)

    def novelty_score(self, X):
        """Probability that each row is of a cluster that no training row is of.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        score : ndarray of shape (n_samples,)
            Mean over draws. Ten clusters from the prior stand for the new one, few of which are
            very far out: rank rows there by `score_samples`.
        """
        A = self._visible(self._check_new(X))
        draws = self._prediction_draws()
        laws = [components(draw, self._prior) for draw in draws]

        def of_draw(draw, t, block):
            log_p = log_densities(self._rows(block), laws[t]) + laws[t].log_weight
            return responsibilities(log_p)[:, -1]

        score = np.empty(len(A))
        for rows, parts in self._over_draws(A, of_draw, sum):
            score[rows] = np.sum(parts, axis=0) / len(draws)
        return score

    # -- densities, factors, missing cells

    def score_samples(self, X):
        """Log posterior predictive density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; where cells are missing, the density of the observed ones (0 for none). Cells
            below `detection_limit` count by their probability. Constant columns of the training
            data do not count.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Averaged over draws inside the logarithm; a density in the units of X.
        """
        X = self._check_new(X)
        draws = self._prediction_draws()
        laws = [components(draw, self._prior) for draw in draws]

        def of_draw(draw, t, block):
            log_p = log_densities(self._rows(block), laws[t]) + laws[t].log_weight
            return logsumexp(log_p, axis=1)

        density = np.empty(len(X))
        for rows, parts in self._over_draws(self._visible(X), of_draw):
            density[rows] = logsumexp(np.concatenate(parts), axis=0) - np.log(len(draws))
        # Sums of nothing are 0 up to their rounding only.
        empty = np.isnan(X[:, self._units.columns]).all(axis=1)
        return np.where(empty, 0.0, density + self._log_jacobian(X))

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
            In standard deviations as the model has them, no units of X. No columns where the
            reference draw has no factor.
        """
        A = self._visible(self._check_new(X))
        draws = [self._reference, *self._prediction_draws()]
        places = self._alignments(draws)
        laws = [components(draw, self._prior) for draw in draws]

        def of_draw(t, block):
            return aligned(expected_scores(self._rows(block), laws[t]), *places[t])

        def of_rows(start, stop):
            return sum(of_draw(t, A[start:stop]) for t in range(len(draws)))

        n_matched = np.sum([column >= 0 for column, _ in places], axis=0)
        return self._by_row_blocks(of_rows, len(A)) / n_matched

    def impute(self, X, return_std=False):
        """Fill missing cells with their mean given the row's observed ones, over all draws alike.

        Rows are taken to be of the clusters there are: those that a new cluster explains better
        (`novelty_score` near 1) are filled by the nearest old ones, unlike in `score_samples`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing. Cells below `detection_limit` are readings and stay.
        return_std : bool, default=False
            Also return the predictive standard deviation.

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_features)
            Observed cells are those of X, bit for bit.
            A frame of the kind, names and index of X where that is one.
        std : ndarray or frame of shape (n_samples, n_features)
            Only if `return_std`: by the law of total variance over draws and clusters, 0 for
            observed cells, inf where a tail has no variance.
        """
        check_is_fitted(self, "posterior_")
        # What a draw makes of clusters is the same for all rows.
        laws = [components(draw, self._prior) for draw in self._prediction_draws()]

        def of_draw(draw, t, block):
            return cell_moments(block, laws[t])

        return self._impute(X, return_std, self._visible, of_draw, self._rows)

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
            draw = self.posterior_.in_order(int(t))
            A[rows] = sample_rows(draw, self._prior, len(rows), rng)[0]
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
        self._check_parameters()
        self._units = self._fitted_units(X)
        columns = self._units.columns
        A = self._visible(X)
        limit = None
        if self._limit is not None:
            with np.errstate(over="ignore"):
                limit = (self._limit[columns] - self._units.center) / self._units.scale
            if not (np.abs(limit) <= FARTHEST).all():
                raise ValueError(
                    f"detection_limit must be within {FARTHEST:g} standard deviations of the means "
                    f"of X, got {self.detection_limit!r}"
                )
        self._prior = self._make_prior()
        self._training_rows = TrainingRows(A, self._prior, self._units, limit)
        n_clusters = self.n_init_clusters
        return partial(
            _make_sampler,
            X=A,
            prior=self._prior,
            limit=limit,
            n_init_clusters=(
                (n_clusters,) if isinstance(n_clusters, Integral) else tuple(n_clusters)
            ),
            n_births=self.n_births,
            n_split_merges=self.n_split_merges,
            log_jacobian=float(self._log_jacobian(X).sum()),
        )

    def _check_parameters(self):
        """What single-parameter constraints cannot say."""
        n_clusters = self.n_init_clusters
        if not isinstance(n_clusters, Integral):
            whole = [isinstance(n, Integral) and not isinstance(n, bool) for n in n_clusters]
            if not n_clusters or not all(whole) or min(n_clusters) < 1:
                raise ValueError(
                    "n_init_clusters must be an integer >= 1 or a sequence of them, got "
                    f"{n_clusters!r}"
                )

    def _fitted_units(self, X):
        """Where the columns that vary are put; what the data say against that is a warning."""
        if self._limit is not None:
            X = np.where(self._is_below(X), self._limit, X)
        above = "" if self._limit is None else " above detection_limit"
        units = standard_units(
            X, "each" if self.standardize else "none", named=self._named, where=above,
            sums_of_squares=True,
        )  # fmt: skip
        self._warn_of_constant(units)
        return units

    def _make_prior(self):
        return Prior(
            concentration=fixed(self.concentration),
            concentration_prior=self._concentration_prior(),
            score_shape=float(self.score_shape),
            score_scale=float(self.score_scale),
            score_precision=float(self.score_precision),
            mass=fixed(self.mass),
            mass_prior=checked_pair("mass_prior", self.mass_prior),
            mass_upper=float(self.mass_upper),
            slab_shape=float(self.slab_shape),
            slab_scale=float(self.slab_scale),
            noise=self.noise,
            noise_shape=float(self.noise_shape),
            noise_rate_prior=checked_pair("noise_rate_prior", self.noise_rate_prior),
            means=self.means,
            tails=self.tails,
            max_layers=MOST_LAYERS if self.max_layers is None else int(self.max_layers),
        )

    def _concentration_prior(self):
        shape, rate = checked_pair("concentration_prior", self.concentration_prior)
        if isinstance(self.concentration, str) and not shape / rate <= _MOST_CONCENTRATION:
            raise ValueError(
                f"concentration_prior must have a mean (shape / rate) <= {_MOST_CONCENTRATION:g}, "
                f"got {self.concentration_prior!r}"
            )
        return shape, rate

    # -- after sampling

    def _summarise(self, X):
        traces = self.posterior_.traces
        self.n_factors_ = float(traces["n_factors"].mean())
        self.n_shared_factors_ = float(traces["n_shared_factors"].mean())
        self.energy_correlation_ = energy_correlation(
            self._training_rows.X, self._units.columns, self.n_features_in_
        )
        draws = self.posterior_.evenly_spaced(_MOST_SUMMARY_DRAWS)
        self._summarise_partition(X, draws)
        self.cluster_energies_ = self._cluster_energies()
        self._n_features_out = self._reference["loadings1"].shape[1]
        self.feature_labels_ = np.full(self.n_features_in_, -1)
        self.feature_labels_[self._units.columns] = self._feature_labels()
        upper = self._reference.get("level_labels", [])
        self.labels_per_level_ = [self.labels_, *(level.astype(np.intp) for level in upper)]
        self.n_layers_ = real_layers(draws)

    def _summarise_partition(self, X, draws):
        """The consensus of the draws' partitions, and the draw in their middle."""
        labels = [draw["label"] for draw in draws]
        work = self._search_work(X)

        def consensus(labels):
            return stable_consensus(labels, max_work=work, random_state=self.seed_ % 2**32)

        merged = labels
        self.component_labels_, _, info = consensus(labels)
        self.labels_ = self.component_labels_
        if self.merge_overlap is not None:
            merged = self._merged_labels(draws)
            partition, _, info = consensus(merged)
            self.labels_, unsupported = drop_unsupported(
                partition, labels, merged, random_state=self.seed_ % 2**32
            )
            info["dropped"] += unsupported
            info["support"] = support(self.labels_, labels, merged).tolist()
        self.partition_info_ = info
        self.n_clusters_ = int(self.labels_.max()) + 1
        most = max(16, int((_COMPARISONS / len(X)) ** 0.5))
        step = -(-len(draws) // most)
        self._reference = draws[::step][central_draw(merged[::step])]
        self._warn_if_chains_disagree(draws, merged)

    def _merged_labels(self, draws):
        """Labels of each draw after its overlapping components are joined."""
        rows = self._rows(some_rows(self._training_rows.X, _MOST_MERGE_ROWS, self.seed_))

        def merge(start, stop):
            found = []
            for draw in draws[start:stop]:
                r = cluster_probabilities(rows, components(draw, self._prior))
                tree = merge_tree(r.T @ r, draw["n_members"])
                found.append(tree.cut(self.merge_overlap)[draw["label"]])
            return found

        return [labels for part in self._by_blocks(merge, len(draws), 8) for labels in part]

    def _warn_if_chains_disagree(self, draws, merged):
        """Chains have starts of their own; with many features each may keep to its own."""
        chain_of = {id(draw): c for c, chain in enumerate(self.posterior_.all_draws())
                    for draw in chain}  # fmt: skip
        counts = [[] for _ in range(self.n_chains)]
        for draw, labels in zip(draws, merged, strict=True):
            counts[chain_of[id(draw)]].append(len(np.unique(labels)))
        usual = [int(np.median(count)) for count in counts if count]
        if len(set(usual)) > 1:
            warn(
                f"the chains have {', '.join(map(str, usual))} clusters; labels_ rest on all of "
                "them alike. Raise n_warmup, or compare chains by their held-out density",
                ConvergenceWarning,
            )

    def _search_work(self, X):
        """Trial moves that the partition search may make: about as long as the sampling."""
        n_sweeps = self.n_chains * (self.n_warmup_ + self.n_draws_ * self.thin)
        return int(max(1e8, n_sweeps * X.size * self.posterior_.traces["n_clusters"].mean()))

    def _cluster_energies(self):
        """Variances of factors and noise of each cluster, over draws by members."""
        draws = self._prediction_draws()
        n_features, n_factors = self.n_features_in_, self._reference["loadings1"].shape[1]
        total = np.zeros((self.n_clusters_, n_factors + n_features))
        counts = np.zeros_like(total)
        for draw, (column, _) in zip(draws, self._alignments(draws), strict=True):
            # Members of each cluster by component.
            share = (self._companion_table(draw) * draw["n_members"][:, np.newaxis]).T
            noise = np.zeros((len(draw["n_members"]), n_features))
            noise[:, self._units.columns] = draw["noise_variance"] * self._units.scale**2
            values = aligned(draw["score_variance"], column, np.ones(n_factors))
            there = np.append(column >= 0, np.ones(n_features, dtype=bool))
            total += share @ np.concatenate([values, noise], axis=1)
            counts += share.sum(axis=1, keepdims=True) * there
        mean = total / np.where(counts > 0, counts, 1.0)
        return {"factors": mean[:, :n_factors], "noise": mean[:, n_factors:]}

    def _feature_labels(self):
        draw = self._reference
        members = draw["n_members"] / draw["n_members"].sum()
        noise = np.sum(np.broadcast_to(draw["noise_variance"], draw["offset"].shape)
                       * members[:, np.newaxis], axis=0)  # fmt: skip
        energy = draw["loadings1"] ** 2 * draw["score_energy"]
        return np.column_stack([noise, energy]).argmax(axis=1) - 1

    def _attach_rows(self):
        self.posterior_.attach_rows(self._training_rows)

    # -- files

    @classmethod
    def _parameters_of_file(cls, parameters):
        return parameters_of_file(parameters)

    def _check_draw(self, draw):
        check_draw(draw, self._prior, *self._training_rows.X.shape)

    def _check_loaded(self):
        check_units(self._units, self.n_features_in_)
        check_fitted(self)

    # -- one draw

    def _as_floats(self, X, reset=True):
        if reset:
            self._limit = None
        if (self.detection_limit if reset else self._limit) is None:
            return super()._as_floats(X, reset)
        X = super()._as_floats(X, reset, finite=False)
        if np.isposinf(X).any():
            raise ValueError("X must be finite, NaN where missing or -inf where below the limit")
        if reset:
            limit = checked_array("detection_limit", self.detection_limit, X.shape[1])
            # A reading of the limit itself may have come as float32, a little above it.
            with np.errstate(over="ignore"):
                single = limit.astype(np.float32)
            self._limit = np.where(np.isfinite(single), np.maximum(limit, single), limit)
        return X

    def _is_below(self, X):
        with np.errstate(invalid="ignore"):
            return X <= self._limit

    def _distances(self, X):
        # What is below the limit is at no distance.
        A = self._visible(X)
        return np.where(A == -np.inf, 0.0, A)

    def _visible(self, X):
        """The modelled columns, standardised; -inf where below the detection limit."""
        if self._limit is not None:
            X = np.where(self._is_below(X), -np.inf, X)
        return np.ascontiguousarray(self._units.scaled(X))

    def _log_jacobian(self, X):
        """log |d standardised / d x| of the cells of each row that were read."""
        if self._limit is not None:
            X = np.where(self._is_below(X), np.nan, X)
        return self._units.log_jacobian(X)

    def _rows(self, A):
        return as_rows(A, self._training_rows.limit)

    def _in_units(self, mean, variance):
        """Means and standard deviations of all columns in the units of X."""
        return self._units.moments(mean, variance)

    def _companion_table(self, draw):
        """Shares of the clusters of `labels_` among the members of each component."""
        return companion_table(
            draw["label"].astype(np.intp), len(draw["n_members"]), self.labels_, self.n_clusters_
        )

    def _alignments(self, draws):
        """Where each column of the reference is in each draw, -1 for nowhere, and its sign."""
        anchors = self._rows(some_rows(self._training_rows.X, _MOST_ANCHORS, 0))

        def scores(draw):
            return expected_scores(anchors, components(draw, self._prior))

        return alignments(self._reference, draws, scores)


def _make_sampler(bit_generator, chain, *, X, prior, limit, n_init_clusters, **options):
    """The sampler of one chain; runs where the chain runs."""
    rng = np.random.Generator(bit_generator)
    n_clusters = int(n_init_clusters[chain % len(n_init_clusters)])
    state = start_state(X, prior, rng, n_clusters, limit)
    return Sampler(X, prior, state, bit_generator, limit=limit, **options)
