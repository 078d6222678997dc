"""The public estimator."""

from functools import partial
from numbers import Integral, Real
from types import NoneType
from typing import ClassVar

import numpy as np

from skbnp.estimators.files import OldFileError
from skbnp.infinite_factor_clusterer._clustering import ClustersMixin
from skbnp.infinite_factor_clusterer._components import components
from skbnp.infinite_factor_clusterer._detection_limits import DetectionLimitsMixin
from skbnp.infinite_factor_clusterer._model import Prior, draw_joint
from skbnp.infinite_factor_clusterer._old_files import ScalePrior, is_scale_model, parameters_of_now
from skbnp.infinite_factor_clusterer._parameters import ClustererParameters
from skbnp.infinite_factor_clusterer._predictive import (
    cell_moments,
    expected_scores,
    log_densities,
    sample_rows,
    together,
)
from skbnp.infinite_factor_clusterer._sampler import Sampler
from skbnp.infinite_factor_clusterer._saved import check_draw, check_fitted
from skbnp.infinite_factor_clusterer._standard_prior import PriorMixin
from skbnp.infinite_factor_clusterer._start import start_state
from skbnp.infinite_factor_clusterer._training_rows import TrainingRows, WatchedRows
from skbnp.mcmc.fields import Field
from skbnp.summaries.factors import some_rows
from skbnp.units import Units

# Rows that the order of factors is judged by, at most.
_MOST_ANCHORS = 256


class InfiniteFactorClusterer(ClustersMixin, DetectionLimitsMixin, PriorMixin, ClustererParameters):
    r"""Clusters over sparse factors, without a given number of clusters or of factors.

    It is for tables of ten to a hundred correlated columns, such as signal strengths of radio
    transmitters. Clusters may differ along a few shared directions, or in which columns are loud
    and which are quiet, and they may be other than Gaussian. Readings may be missing or below a
    detection limit. `DirichletProcessMixture` is the better tool for few columns, for Gaussian
    clusters of any shape, for columns that are binary, categories or counts, and for very many
    rows.

    Row t of standardised X has a cluster :math:`z_t` of a Dirichlet process, and in cluster g

    .. math::

        y_{tk} \sim \mathcal{N}(m_{gk},\; v_{gk} / \lambda_t), \qquad
        x_{tn} \sim \mathcal{N}\big(w_n \cdot y_t + o_{gn},\; s_{gn} / \lambda_t\big):

    every cluster has its own mean and variance of each factor, and its own noise in each column.
    The links of columns to factors follow an Indian buffet process. NaN marks a missing cell;
    cells are taken to be missing at random.

    The model grew out of that of Pan and Han [1]_, which is `DeepScaleModel`: there factors drive
    variances.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Consensus partition of the training rows, clusters by decreasing size. It has the least
        expected variation of information over at most 300 draws, the overlapping components of
        each joined.
    component_labels_ : ndarray of shape (n_samples,)
        The same with the components of the draws as they are. Draws differ more about these, so
        that there may be fewer of them than clusters.
    n_clusters_ : int
        Number of clusters in `labels_`.
    expected_loss_ : float
        Posterior expected loss of `component_labels_`, variation of information in nats.
    labels_per_level_ : list of ndarray of shape (n_samples,)
        `labels_`, and for each layer above the first the factor with the largest share of a row's
        energy in the layer below, in the reference draw; -1 for the background.
    feature_labels_ : ndarray of shape (`n_features_in_`,)
        The factor with the largest part in a column's variance, in the reference draw; -1 where
        noise has the largest part, and for constant columns.
    n_factors_ : float
        Posterior mean of the number of factors. They are directions that clusters share, not
        clusters.
    n_shared_factors_ : float
        Posterior mean of the number of factors that are linked to two columns or more. Only these
        can be known; other factors come and go.
    n_layers_ : int
        Number of layers, counted from the first, that in at least half of the draws have a factor
        with two links and more than one per cent of the energy.
    cluster_energies_ : dict of ndarray
        Variances of each cluster, averaged over draws by members. ``factors`` (n_clusters,
        n_factors) has the columns of `transform`; ``noise`` (n_clusters, n_features) is in the
        squared units of X.
    energy_correlation_ : ndarray of shape (n_features, n_features)
        Correlations of log squared deviations from the mean, in the training data. They are high
        for columns that become loud together: 1/2 where two columns have one factor in common and
        nothing else.
    partition_info_ : dict
        What the search for `labels_` did. ``dropped`` has an entry for each cluster that was noise
        or had too little support. ``support`` has, for each cluster left, the share of the draws
        that have a component or a cluster much like it; see `skbnp.summaries.consensus`.
        ``n_clusters_of_chains`` has the median number of clusters in the draws of each chain, and
        ``merge_overlap`` is that of the fit.
    X_imputed_, X_imputed_std_ : ndarray or frame of shape (n_samples, n_features)
        The training table with its missing cells filled as `impute` does, and their standard
        deviations, 0 for observed cells. Only if X had missing cells.
    posterior_ : skbnp.mcmc.posterior.Posterior
        The draws, with traces, R-hat and effective sample sizes.
    n_chains_ : int
        Number of chains.
    n_warmup_ : int
        Sweeps of warm-up: what "auto" came to.
    n_draws_ : int
        Draws per chain: what "auto" came to.
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
    A sweep draws labels by slice sampling [2]_, with the scores integrated out. Then it draws
    scores, means and variances, noise, links and loadings [3]_, hyperparameters, and missing and
    censored cells; it adds and removes factors, and splits and merges clusters. For T rows, N
    columns, K factors and G clusters a sweep costs O(T G N K + T K^2). Components are joined by
    the criterion of [4]_.

    To find no factors is an answer, and so is one cluster. Codes for "not heard" in radio data,
    such as -100 or +100, are not missing at random. Make them -inf and give the `detection_limit`,
    or fill in something below the weakest reading. Prediction takes cells below the limit in by an
    approximation that is exact for one such cell. Constant columns are set aside and restored.
    float32 input is computed in float64, which takes a copy of twice its size. Files of `save`
    hold the training rows, for ``posterior_.loo()``. Sparse X is refused. `sample_weight` and
    `partial_fit` are not available.

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

    _fills_training_table = True
    _reported_traces = ("log_density", "n_clusters", "n_factors", "concentration")
    _findings = "factors and clusters"
    _moves_of_traces: ClassVar[dict] = {
        "n_clusters": ("labels", "splits", "merges", "divisions", "unions"),
        "n_factors": ("births", "deaths"),
    }
    _saved_types = (Prior, ScalePrior, Units, TrainingRows)
    _fitted_attributes: ClassVar[dict] = {
        **ClustererParameters._fitted_attributes,
        "component_labels_": np.ndarray,
        "expected_loss_": Real,
        "cluster_energies_": dict,
        "partition_info_": dict,
        "_limit": (np.ndarray, NoneType),
        "_prior": Prior,
        "_training_rows": TrainingRows,
    }
    # Below the detection limit X is -inf; rows without tails have infinitely many degrees of
    # freedom, the last of ``hyper``.
    _may_hold: ClassVar[dict] = {
        **ClustererParameters._may_hold,
        "X": (np.nan, -np.inf),
        "hyper": (np.inf,),
    }

    # -- before sampling

    def _prepare(self, X):
        """Check the parameters against X, scale it and say how to build a sampler."""
        self._check_parameters()
        self._warn_of_copies(X)
        self._units = self._fitted_units(X)
        A, limit = self._modelled(X), self._standard_limit()
        self._prior = self._make_prior()
        self._training_rows = TrainingRows(A, self._prior, self._units, limit)
        settings = self._sampler_settings()
        n_clusters = settings.n_init_clusters
        return partial(
            _make_sampler,
            X=A,
            prior=self._prior,
            limit=limit,
            n_init_clusters=(
                (n_clusters,) if isinstance(n_clusters, Integral) else tuple(n_clusters)
            ),
            n_births=settings.n_births,
            n_split_merge=settings.n_split_merge,
            log_jacobian=float(self._log_jacobian(X).sum()),
        )

    def _work(self, X):
        n_split_merge = self._sampler_settings().n_split_merge
        A = self._training_rows.X
        work = partial(_work_of_sweep, X=A, prior=self._prior, n_split_merge=n_split_merge)
        return work(1.0, 0.0), lambda traces: work(
            float(traces["n_clusters"].mean()), float(traces["n_factors"].mean())
        )

    def _density(self, X, rows):
        A, limit = self._training_rows.X, self._training_rows.limit
        return WatchedRows(A, rows, self._prior, limit, self._log_jacobian(X[rows]))

    # -- after sampling

    def _summarise(self, X):
        draws = self._summary_draws()
        self._summarise_partition(X, draws)
        self.cluster_energies_ = self._cluster_energies()
        self._summarise_factors(draws)
        self._keep_training_cells(X)

    def _feature_labels(self):
        draw = self._reference
        members = draw["n_members"] / draw["n_members"].sum()
        noise = np.sum(np.broadcast_to(draw["noise_variance"], draw["offset"].shape)
                       * members[:, np.newaxis], axis=0)  # fmt: skip
        energy = draw["loadings1"] ** 2 * draw["score_energy"]
        return np.column_stack([noise, energy]).argmax(axis=1) - 1

    def _score_sizes(self, draw):
        return np.sqrt(draw["score_energy"])

    def _anchor_scores(self):
        anchors = self._prepared(some_rows(self._training_rows.X, _MOST_ANCHORS, 0))
        return lambda draw: expected_scores(anchors, components(draw, self._prior))

    # -- files

    @classmethod
    def _parameters_of_file(cls, parameters):
        if is_scale_model(parameters):
            raise OldFileError(
                'it holds a clusterer of top="gaussian", which is the estimator DeepScaleModel '
                "now: fit that one to the data"
            )
        return parameters_of_now(parameters, cls._settings_type)

    def _check_draw(self, draw):
        check_draw(draw, self._prior, *self._training_rows.X.shape)

    def _check_loaded(self):
        super()._check_loaded()
        check_fitted(self)
        missing = np.zeros((len(self._training_rows.X), self.n_features_in_), dtype=bool)
        # Of columns that do not vary the rows of the model know nothing.
        cells = self._training_cells
        if cells is not None and cells.X.shape == missing.shape:
            missing = np.isnan(cells.X)
        missing[:, self._units.columns] = np.isnan(self._training_rows.X)
        self._check_training_cells(missing)

    # -- for ArviZ

    _draw_fields = (
        Field("label", int, ("n_samples",)),
        Field("noise_rate", float, ("n_modelled",)),
    )

    def _block_means(self, draw):
        return self._units.from_visible(draw["score_mean"] @ draw["loadings1"].T + draw["offset"])

    def _prior_chain(self, rng):
        state, A = draw_joint(self._prior, *self._training_rows.X.shape, rng)
        return Sampler(A, self._prior, state, rng.bit_generator), A

    def _replicated(self, A):
        found = super()._replicated(A)
        found["X"] = np.where(self._is_below(found["X"]), -np.inf, found["X"])
        return found

    # -- one draw

    def _law_of(self, draw, t):
        return components(draw, self._prior)

    def _new_laws(self):
        return together(super()._new_laws())

    def _laws_of_blocks(self, draws, new):
        return self._prediction_laws()

    def _log_joint_of(self, law, t, rows, new=True):
        return log_densities(rows, law, new) + law.log_weight

    def _cell_moments_of(self, law, t, rows):
        return cell_moments(rows, law)

    def _scores_of(self, law, t, rows):
        return expected_scores(rows, law)

    def _sample_of(self, draw, n_rows, rng):
        return sample_rows(draw, self._prior, n_rows, rng)[0]


def _make_sampler(bit_generator, chain, *, X, prior, limit, n_init_clusters, **options):
    """The sampler of one chain; runs where the chain runs."""
    rng = np.random.Generator(bit_generator)
    n_clusters = int(n_init_clusters[chain % len(n_init_clusters)])
    state = start_state(X, prior, rng, n_clusters, limit)
    return Sampler(X, prior, state, bit_generator, limit=limit, **options)


def _work_of_sweep(n_clusters, n_factors, X, prior, n_split_merge):
    """Nominal seconds of one core for a sweep of one chain with so many clusters and factors.

    Fitted to what sweeps of tables of 100 to 1,300 rows and 4 to 28 columns take, most of it for
    splits and merges.
    """
    n, d = X.shape
    holes = np.isnan(X)
    # Rows with a layer above have each a law of their own, as those with the same holes share one.
    n_laws = n if prior.max_layers > 1 else len(np.unique(np.packbits(holes, axis=1), axis=0))
    of_attempt = 0.5 + 0.03 * d
    of_labels = n * (20.0 + 5.0 * d) + n_laws * (300.0 + 20.0 * d + n_factors**3)
    # In nanoseconds; every sweep costs some whatever its rows do.
    return 1e-9 * (200_000.0 + 1_000.0 * n_split_merge * n * of_attempt + n_clusters * of_labels)
