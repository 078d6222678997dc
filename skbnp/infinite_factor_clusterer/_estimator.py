"""The public estimator."""

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from types import NoneType

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from skbnp.base import FARTHEST, BaseMCMCEstimator
from skbnp.infinite_factor_clusterer._alignment import aligned, matched_columns
from skbnp.infinite_factor_clusterer._model import MOST_LAYERS, Prior
from skbnp.infinite_factor_clusterer._predictive import (
    as_rows,
    cell_moments,
    cluster_probabilities,
    components,
    expected_scores,
    log_densities,
    n_layers,
    responsibilities,
    sample_rows,
)
from skbnp.infinite_factor_clusterer._sampler import Sampler
from skbnp.infinite_factor_clusterer._saved import check_draw, check_fitted
from skbnp.infinite_factor_clusterer._scale_model import ScalePrior
from skbnp.infinite_factor_clusterer._scale_predictive import cell_moments as scale_cell_moments
from skbnp.infinite_factor_clusterer._scale_predictive import (
    feature_labels,
    log_density,
    row_moments,
)
from skbnp.infinite_factor_clusterer._scale_predictive import sample_rows as sample_scale_rows
from skbnp.infinite_factor_clusterer._scale_sampler import ScaleSampler
from skbnp.infinite_factor_clusterer._start import start_scale_state, start_state
from skbnp.infinite_factor_clusterer._training_rows import TrainingRows
from skbnp.infinite_factor_clusterer._units import fitted_units
from skbnp.likelihoods.nonlinear_gaussian.units import Units, check_units
from skbnp.mcmc.caller import warn
from skbnp.summaries.consensus import drop_unsupported, stable_consensus, support
from skbnp.summaries.joining import merge_tree
from skbnp.summaries.partitions import central_draw, companion_table

# Parameters that mean something in one of the two settings alone.
_FOR_MIXTURES = (
    *("concentration", "concentration_prior", "score_shape", "score_scale", "score_precision"),
    *("noise_rate_prior", "means", "tails", "merge_overlap", "detection_limit", "n_init_clusters"),
)
_FOR_GAUSSIAN = (
    *("drift", "center", "birth_move", "schedule", "signed", "transform_output"),
    "n_init_factors",
)
# Share of the warm-up in which the noise of the paper's model is annealed (spec 4.10).
_ANNEALED = 0.4
# Prior variance of a sampled location, in standardised units.
_LOCATION_VARIANCE = 100.0
# Least variance of given noise, in standardised units.
_LEAST_NOISE = 1e-12
# As many empty clusters, and more, are looked at in every sweep.
_MOST_CONCENTRATION = 100
# Means farther from 0 than so many standard deviations are worth a warning.
_OFF_CENTER = 0.5
# Added to squares before their logarithm, in standardised units.
_LEAST_ENERGY = 1e-6
# A layer with no factor above this share of the energy is not there.
_LEAST_SHARE = 0.01
# Draws that summaries of all draws look at, and rows that the overlap of components and the order
# of factors are judged by, at most.
_MOST_SUMMARY_DRAWS, _MOST_MERGE_ROWS, _MOST_ANCHORS = 300, 1000, 256
# Pairs of labels, of one row in two draws, that the choice of the reference draw looks at, at most.
_COMPARISONS = 2e9
# Sweeps of a row's own chain that each draw keeps, in averages over draws.
_N_KEPT = 20
# Points that should carry the density of a row.
_LEAST_EFFECTIVE = 50


class InfiniteFactorClusterer(ClusterMixin, TransformerMixin, BaseMCMCEstimator):
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

    ``top="gaussian"`` is the model of Pan and Han [1]_ with its repairs: scores are N(0, 1), or of
    variance :math:`1 + A^2` given the layer above, and :math:`x_{tn} \sim \mathcal{N}(\mu_n + c
    A_{tn}, A_{tn}^2 + s_n^2)` with :math:`A_t = W y_t`. Its clusters are the factors that have the
    largest share of a row's energy. It finds groups of columns that become loud or quiet together
    while their means stay, with mostly disjoint groups. It is not for clusters that differ in their
    means, as most signal strengths do, nor for clusters that share columns: four clusters need
    not give four factors. A Gaussian mixture beat it on every table we measured, and so does
    ``top="dp"``. Its own products are `feature_labels_`, predicted variances and factors of energy.

    Parameters
    ----------
    top : {"dp", "gaussian"}, default="dp"
        The law of the scores: a Dirichlet process mixture, or the paper's.
    max_layers : int or None, default=1
        Layers at most, up to 8. Those above the first say which factors are loud together. None:
        until a layer is empty, or 8.
    mass : float or "sample", default="sample"
        Of the Indian buffet: factors that a column is linked to, expected a priori.
    mass_prior : tuple of (shape, rate), default=(1.0, 1.0)
        Gamma prior of a sampled mass.
    mass_upper : float in (0, 1], default=0.5
        The mass of layers above the first.
    slab_shape : float, default=2.0
        Inverse gamma prior of the variance of a factor's loadings: its shape.
    slab_scale : float, default=1.0
        Its scale.
    concentration : float or "sample", default="sample"
        Of the Dirichlet process: more gives more clusters. At most 100, as every sweep looks at
        that many empty clusters and more.
    concentration_prior : tuple of (shape, rate), default=(1.0, 1.0)
        Gamma prior of a sampled concentration, with a mean of at most 100.
    score_shape : float, default=2.0
        Inverse gamma prior of a cluster's variances v of the scores: its shape.
    score_scale : float, default=1.0
        Its scale.
    score_precision : float, default=0.2
        Means m of clusters have the prior variance v / `score_precision`.
    noise : {"auto", "cluster", "shared", "sample"}, float or array-like, default="auto"
        With ``top="dp"`` each cluster's own (what "auto" is) or "shared", where clusters differ by
        factors alone. With ``top="gaussian"`` "sample" (what "auto" is), or given standard
        deviations, one or one for each column, > 0, in the units of X.
    noise_shape : float, default=2.0
        Inverse gamma prior of noise variances.
    noise_rate_prior : tuple of (shape, rate), default=(1.0, 5.0)
        Its scale has a gamma prior for each column.
    means : {"factor", "both", "feature"}, default="factor"
        Whether clusters have means of the factors m, of the columns o, or both. "feature" is a
        mixture of factor analysers with shared loadings.
    tails : {"normal", "student"}, default="normal"
        "student": rows have precisions :math:`\lambda_t`, so that clusters are multivariate t laws,
        whose degrees of freedom, the same for all, are sampled from 2 to infinity.
    merge_overlap : float in (0, 1] or None, default=0.15
        Components of a draw are joined while the chance that a row of one is put in another is as
        large. Smaller joins more. None leaves components as they are.
    detection_limit : float or array-like of shape (n_features,), default=None
        Cells at or below it, -inf among them, are known to be below and no more.
    n_init_clusters : int or sequence of int, default=(2, 4, 8, 16)
        Clusters of k-means that chains start from, in turn. With tens of columns chains may keep
        to their start: different ones are pooled, and `fit` says so where they disagree.
    n_births : int or "auto", default="auto"
        Attempts for each column and sweep to add or remove a factor of it alone; "auto" is 1, or 2
        for ``top="gaussian"``.
    n_split_merges : int, default=10
        Attempts for each sweep to split or merge clusters, half of them with new scores for their
        rows; for ``top="gaussian"`` to split or merge factors.
    drift : float or "sample", default=0.0
        c of ``top="gaussian"``. "sample" has the prior N(0, 1).
    center : {"mean", "median", "sample", False}, default="mean"
        For ``top="gaussian"``, the location: taken from X, sampled with it, or 0.
    birth_move : {"singleton", "finite", "pan-han"}, default="singleton"
        For ``top="gaussian"``, how factors come and go. "finite": one of a finite model, empty
        factors included. "pan-han": the paper's own moves, for comparison alone. They leave no
        posterior invariant, the number of factors stays near that of the start, and a chain
        without factors can never have one again.
    schedule : {"joint", "greedy"}, default="joint"
        For ``top="gaussian"``: all layers in every sweep, or the paper's recursion in the warm-up,
        layer by layer.
    signed : bool, default=False
        For ``top="gaussian"`` with a drift: factor k gives two clusters, 2 k where its score is
        positive and 2 k + 1.
    transform_output : {"auto", "mean", "magnitude", "log_energy"}, default="auto"
        For ``top="gaussian"``: E y, E abs(y) or log E y^2. "auto" is the first with a drift, the
        second without, as E y is 0 then.
    standardize : bool, default=True
        Divide columns by their standard deviations first. The priors are for such columns.
    n_init_factors : int, default=2
        For ``top="gaussian"``, random factors that chains start with. More are hard to get rid of.
    n_chains : int, default=4
        Independent chains.
    n_warmup : int or "auto", default="auto"
        Sweeps per chain before the first draw; "auto" is 300, or 500 for ``top="gaussian"``.
    n_draws : int or "auto", default="auto"
        Draws kept per chain; "auto" is 300, or 500 for ``top="gaussian"``.
    thin : int, default=1
        Sweeps per kept draw.
    n_jobs : int or None, default=None
        Chains at a time in `fit`, draws at a time when predicting; see `joblib.Parallel`. The
        results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the chains.
    warm_start : bool, default=False
        Go on with the chains of the last `fit` of this object to a larger `n_draws`, on the same X
        with the same parameters; without a new warm-up.
    checkpoint : str or Path, default=None
        Directory for a file from which a later `fit` on the same X with the same parameters goes
        on where this one was stopped, killed included, and to a larger `n_draws`. Any number of
        fits share a directory; its files are removed by hand.
    checkpoint_every : float, default=60.0
        Seconds between two writes of that file. It is also written at the end.
    store : "auto", "all" or float, default="auto"
        Megabytes that the stored draws may take, "auto" means 1000. When there are more, every
        second draw is let go, again and again; traces are always complete.
    predict_draws : int, default=100
        Evenly spaced draws that predict-type methods use, at most. Their time is in proportion.
    verbose : int, default=0
        1 prints the expected time after ten sweeps, 2 also the progress.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Consensus partition of the training rows: of least expected variation of information over
        at most 300 draws whose overlapping components are joined; clusters by decreasing size.
        With ``top="gaussian"`` the factor with most often the largest share of the row's energy, -1
        for the background.
    component_labels_ : ndarray of shape (n_samples,)
        The same of the components as they are. With ``top="dp"``.
    n_clusters_ : int
        Number of clusters in `labels_`, the background left out.
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
        units of X. With ``top="dp"``.
    energy_correlation_ : ndarray of shape (n_features, n_features)
        Correlations of log squared deviations from the mean, of the training data: what columns
        that become loud together have in common. A factor that two share alone gives 1/2.
    partition_info_ : dict
        What the search for `labels_` did, with ``dropped``, the clusters that were noise or of too
        little support, and ``support``, the share of the draws that has a component or a cluster
        much like each cluster left; see `skbnp.summaries.consensus`. With ``top="dp"``.
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
    skbnp.DirichletProcessMixture : Mixtures of plain Gaussians and other laws.
    skbnp.processes.ibp : The prior on links on its own.

    Notes
    -----
    A sweep of ``top="dp"`` draws labels with the scores integrated out by slice sampling [2]_,
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

    _parameter_constraints: dict = {
        **BaseMCMCEstimator._parameter_constraints,
        "top": [StrOptions({"dp", "gaussian"})],
        "max_layers": [Interval(Integral, 1, MOST_LAYERS, closed="both"), None],
        "mass": [Interval(Real, 1e-6, 1e4, closed="both"), StrOptions({"sample"})],
        "mass_prior": [tuple, list],
        "mass_upper": [Interval(Real, 0, 1, closed="right")],
        "slab_shape": [Interval(Real, 1e-6, 1e6, closed="both")],
        "slab_scale": [Interval(Real, 1e-6, 1e6, closed="both")],
        "concentration": [
            Interval(Real, 1e-6, _MOST_CONCENTRATION, closed="both"),
            StrOptions({"sample"}),
        ],
        "concentration_prior": [tuple, list],
        "score_shape": [Interval(Real, 1e-6, 1e6, closed="both")],
        "score_scale": [Interval(Real, 1e-6, 1e6, closed="both")],
        "score_precision": [Interval(Real, 1e-6, 1e6, closed="both")],
        "noise": [
            StrOptions({"auto", "cluster", "shared", "sample"}),
            Interval(Real, 0, None, closed="left"),
            "array-like",
        ],
        "noise_shape": [Interval(Real, 1e-6, 1e6, closed="both")],
        "noise_rate_prior": [tuple, list],
        "means": [StrOptions({"factor", "both", "feature"})],
        "tails": [StrOptions({"normal", "student"})],
        "merge_overlap": [Interval(Real, 0, 1, closed="right"), None],
        "detection_limit": [Interval(Real, None, None, closed="neither"), "array-like", None],
        "n_init_clusters": [Interval(Integral, 1, None, closed="left"), tuple, list],
        "n_births": [Interval(Integral, 0, 10_000, closed="both"), StrOptions({"auto"})],
        "n_split_merges": [Interval(Integral, 0, 10_000, closed="both")],
        "drift": [Interval(Real, -1e3, 1e3, closed="both"), StrOptions({"sample"})],
        "center": [StrOptions({"mean", "median", "sample"}), Options(bool, {False})],
        "birth_move": [StrOptions({"singleton", "finite", "pan-han"})],
        "schedule": [StrOptions({"joint", "greedy"})],
        "signed": ["boolean"],
        "transform_output": [StrOptions({"auto", "mean", "magnitude", "log_energy"})],
        "standardize": ["boolean"],
        "n_init_factors": [Interval(Integral, 0, 1000, closed="both")],
    }

    _parameters_after_sampling = ("merge_overlap", "signed", "transform_output")
    _bool_parameters = (*BaseMCMCEstimator._bool_parameters, "center", "signed", "standardize")
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
        "_prior": (Prior, ScalePrior),
        "_reference": dict,
        "_training_rows": TrainingRows,
        "_n_features_out": Integral,
    }
    _not_always_fitted = (
        *BaseMCMCEstimator._not_always_fitted,
        *("component_labels_", "cluster_energies_", "partition_info_"),
    )
    # Below the detection limit X is -inf; rows without tails have infinitely many degrees of
    # freedom, the last of ``hyper``.
    _may_hold: dict = {
        **BaseMCMCEstimator._may_hold,
        "X": (np.nan, -np.inf),
        "hyper": (np.inf,),
    }

    def __init__(
        self,
        *,
        top="dp",
        max_layers=1,
        mass="sample",
        mass_prior=(1.0, 1.0),
        mass_upper=0.5,
        slab_shape=2.0,
        slab_scale=1.0,
        concentration="sample",
        concentration_prior=(1.0, 1.0),
        score_shape=2.0,
        score_scale=1.0,
        score_precision=0.2,
        noise="auto",
        noise_shape=2.0,
        noise_rate_prior=(1.0, 5.0),
        means="factor",
        tails="normal",
        merge_overlap=0.15,
        detection_limit=None,
        n_init_clusters=(2, 4, 8, 16),
        n_births="auto",
        n_split_merges=10,
        drift=0.0,
        center="mean",
        birth_move="singleton",
        schedule="joint",
        signed=False,
        transform_output="auto",
        standardize=True,
        n_init_factors=2,
        n_chains=4,
        n_warmup="auto",
        n_draws="auto",
        thin=1,
        n_jobs=None,
        random_state=None,
        warm_start=False,
        checkpoint=None,
        checkpoint_every=60.0,
        store="auto",
        predict_draws=100,
        verbose=0,
    ):
        self.top = top
        self.max_layers = max_layers
        self.mass = mass
        self.mass_prior = mass_prior
        self.mass_upper = mass_upper
        self.slab_shape = slab_shape
        self.slab_scale = slab_scale
        self.concentration = concentration
        self.concentration_prior = concentration_prior
        self.score_shape = score_shape
        self.score_scale = score_scale
        self.score_precision = score_precision
        self.noise = noise
        self.noise_shape = noise_shape
        self.noise_rate_prior = noise_rate_prior
        self.means = means
        self.tails = tails
        self.merge_overlap = merge_overlap
        self.detection_limit = detection_limit
        self.n_init_clusters = n_init_clusters
        self.n_births = n_births
        self.n_split_merges = n_split_merges
        self.drift = drift
        self.center = center
        self.birth_move = birth_move
        self.schedule = schedule
        self.signed = signed
        self.transform_output = transform_output
        self.standardize = standardize
        self.n_init_factors = n_init_factors
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.store = store
        self.predict_draws = predict_draws
        self.verbose = verbose

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
            With ``top="gaussian"`` -1 is the background.
        """
        proba = self.predict_proba(X)
        if self._is_mixture:
            return np.argmax(proba, axis=1)
        labels = np.argmax(proba, axis=1) - 1
        if not self.signed:
            return labels
        found = row_moments(self._reference, self._visible(self._check_new(X)), self.seed_)
        return _split_by_sign(labels, found["mean"] * _column_signs(self._reference["loadings1"]))

    def predict_proba(self, X):
        """Probability that each row belongs with each cluster of `labels_`.

        With ``top="dp"`` the average over draws of the chance that a training row out of the row's
        component has label j, so that no draw is relabelled. With ``top="gaussian"`` the chance
        that the background (first) or a factor has the largest share of the row's energy, given
        the loadings of the reference draw; `signed` does not change it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        proba : ndarray of shape (n_samples, `n_clusters_`), or (n_samples, 1 + n_factors)
            Rows sum to one.
        """
        A = self._visible(self._check_new(X))
        if not self._is_mixture:

            def largest(start, stop):
                return row_moments(self._reference, A[start:stop], self.seed_)["largest"][0]

            return self._by_row_blocks(largest, len(A))
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

        Raises
        ------
        ValueError
            With ``top="gaussian"``, which has no clusters to be new.
        """
        A = self._visible(self._check_new(X))
        if not self._is_mixture:
            raise ValueError("novelty_score must have top='dp', got top='gaussian'")
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

        Warns
        -----
        UserWarning
            With ``top="gaussian"``, if fewer than 50 points effectively carry a row's density.
        """
        X = self._check_new(X)
        draws = self._prediction_draws()
        if self._is_mixture:
            laws = [components(draw, self._prior) for draw in draws]

            def of_draw(draw, t, block):
                log_p = log_densities(self._rows(block), laws[t]) + laws[t].log_weight
                return np.stack([logsumexp(log_p, axis=1), np.zeros(len(block))])
        else:

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
            In standard deviations as the model has them, no units of X. With ``top="gaussian"``
            what `transform_output` says. No columns where the reference draw has no factor.
        """
        A = self._visible(self._check_new(X))
        kind = self._output_kind()
        draws = [self._reference, *self._prediction_draws()]
        places = self._alignments(draws)
        if self._is_mixture:
            laws = [components(draw, self._prior) for draw in draws]

        def of_draw(t, block):
            if self._is_mixture:
                values = expected_scores(self._rows(block), laws[t])
            else:
                values = row_moments(draws[t], block, self.seed_, t, n_kept=_N_KEPT)[kind]
            column, sign = places[t]
            return aligned(values, column, sign if kind == "mean" else np.ones(len(sign)))

        def of_rows(start, stop):
            return sum(of_draw(t, A[start:stop]) for t in range(len(draws)))

        n_matched = np.sum([column >= 0 for column, _ in places], axis=0)
        scores = self._by_row_blocks(of_rows, len(A)) / n_matched
        if kind == "energy" and self.transform_output == "log_energy":
            return np.log(np.maximum(scores, np.finfo(float).tiny))
        return scores

    def impute(self, X, return_std=False):
        """Fill missing cells with their mean given the row's observed ones, over all draws alike.

        Rows are taken to be of the clusters there are: those that a new cluster explains better
        (`novelty_score` near 1) are filled by the nearest old ones, unlike in `score_samples`.
        With ``top="gaussian"`` and no drift that is the location, whatever the other features say:
        there they predict the variance alone, which `return_std` returns.

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
        if self._is_mixture:
            # What a draw makes of clusters is the same for all rows.
            laws = [components(draw, self._prior) for draw in self._prediction_draws()]

        def of_draw(draw, t, block):
            if self._is_mixture:
                return cell_moments(block, laws[t])
            return scale_cell_moments(draw, block, self.seed_, t)

        prepare = self._rows if self._is_mixture else None
        return self._impute(X, return_std, self._visible, of_draw, prepare)

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
            if self._is_mixture:
                A[rows] = sample_rows(draw, self._prior, len(rows), rng)[0]
            else:
                A[rows] = sample_scale_rows(draw, len(rows), rng)
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

    @property
    def _is_mixture(self):
        # Once fitted, what it was fitted as.
        if hasattr(self, "_prior"):
            return isinstance(self._prior, Prior)
        # Once there is a prior it tells what was fitted, whatever `top` has become.
        prior = vars(self).get("_prior")
        return self.top == "dp" if prior is None else isinstance(prior, Prior)

    @property
    def _reported_traces(self):
        if self._is_mixture:
            return ("log_joint", "n_clusters", "n_factors", "concentration")
        return ("log_joint", "n_shared_factors")

    def _auto_lengths(self, X):
        return (300, 300) if self._is_mixture else (500, 500)

    def _prepare(self, X):
        """Check the parameters against X, scale it and say how to build a sampler."""
        self.__dict__.pop("_prior", None)
        if len(X) < 2:
            raise ValueError(f"X must have at least 2 samples, got n_samples = {len(X)}")
        self._check_parameters(X.shape[1])
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
        common = {
            "mass": _fixed(self.mass),
            "mass_prior": _pair("mass_prior", self.mass_prior),
            "mass_upper": float(self.mass_upper),
            "slab_shape": float(self.slab_shape),
            "slab_scale": float(self.slab_scale),
            "noise_shape": float(self.noise_shape),
            "max_layers": MOST_LAYERS if self.max_layers is None else int(self.max_layers),
        }
        self._prior = self._mixture_prior(common) if self._is_mixture else self._scale_prior(common)
        self._training_rows = TrainingRows(A, self._prior, self._units, limit)
        options = {
            "X": A,
            "prior": self._prior,
            "n_births": (1 if self._is_mixture else 2)
            if self.n_births == "auto"
            else self.n_births,
            "n_split_merges": self.n_split_merges,
            "log_jacobian": float(self._log_jacobian(X).sum()),
        }
        if self._is_mixture:
            n_clusters = self.n_init_clusters
            n_clusters = (n_clusters,) if isinstance(n_clusters, Integral) else tuple(n_clusters)
            return partial(_make_sampler, limit=limit, n_init_clusters=n_clusters, **options)
        self._advise(X[:, columns], A)
        n_warmup = self._auto_lengths(X)[0] if self.n_warmup == "auto" else int(self.n_warmup)
        return partial(
            _make_scale_sampler,
            n_init_factors=int(self.n_init_factors),
            # The paper does not anneal.
            n_anneal=0 if self.birth_move == "pan-han" else int(_ANNEALED * n_warmup),
            schedule=self.schedule,
            n_greedy=n_warmup // (self._prior.max_layers + 1),
            **options,
        )

    def _check_parameters(self, n_features):
        """What single-parameter constraints cannot say."""
        others = _FOR_GAUSSIAN if self._is_mixture else _FOR_MIXTURES
        defaults = type(self)().get_params()
        for name in others:
            if not _is_same(getattr(self, name), defaults[name]):
                raise ValueError(
                    f"{name} must be left at its default {defaults[name]!r} where "
                    f"top={self.top!r}, got {getattr(self, name)!r}"
                )
        kinds = ("cluster", "shared") if self._is_mixture else ("sample",)
        if isinstance(self.noise, str):
            if self.noise not in ("auto", *kinds):
                raise ValueError(
                    f"noise must be 'auto' or one of {kinds} where top={self.top!r}, got "
                    f"{self.noise!r}"
                )
        elif self._is_mixture:
            raise ValueError(
                f"noise must be 'auto', 'cluster' or 'shared' where top='dp', got {self.noise!r}"
            )
        else:
            noise = _checked_array("noise", self.noise, n_features)
            if not (noise > 0).all():
                raise ValueError(
                    "noise must be > 0: without a floor a feature that has lost its links, which "
                    "every birth_move may bring about, has no density, and neither has a 0 in X; "
                    f"take a small number such as noise=1e-3, got {self.noise!r}"
                )
        n_clusters = self.n_init_clusters
        if not isinstance(n_clusters, Integral):
            whole = [isinstance(n, Integral) and not isinstance(n, bool) for n in n_clusters]
            if not n_clusters or not all(whole) or min(n_clusters) < 1:
                raise ValueError(
                    "n_init_clusters must be an integer >= 1 or a sequence of them, got "
                    f"{n_clusters!r}"
                )
        if self.signed and _is_same(self.drift, 0.0):
            raise ValueError("signed=True must have a drift: without one signs mean nothing")
        if self.transform_output == "mean" and not self._is_mixture and _is_same(self.drift, 0.0):
            raise ValueError(
                "transform_output='mean' must have a drift: without one all means are 0"
            )

    def _fitted_units(self, X):
        """Where the columns that vary are put; what the data say against that is a warning."""
        if self._limit is not None:
            X = np.where(self._is_below(X), self._limit, X)
        units, spread = fitted_units(X, self.standardize)
        columns = units.columns
        if not columns.size:
            above = "" if self._limit is None else " above detection_limit"
            raise ValueError(f"X must have a column that is not constant{above}")
        with np.errstate(over="ignore"):
            beyond = ~np.isfinite(len(X) * spread**2)
        if beyond.any():
            raise ValueError(
                "X must have a variance in every column that floats can hold, got overflow in "
                + self._named(columns[beyond])
            )
        constant = np.setdiff1d(np.arange(X.shape[1]), columns)
        if constant.size:
            warn(
                f"X is constant in {self._named(constant)}, set aside and restored as it is",
            )
        if self.center == "median":
            return replace(units, center=np.nanmedian(X[:, columns], axis=0))
        if self.center is not False:
            return units
        off = np.abs(units.center) > _OFF_CENTER * spread
        if off.any():
            warn(
                f"X should be centred where center=False: the means of "
                f"{self._named(columns[off])} are farther from 0 than {_OFF_CENTER} standard "
                "deviations, which the model can only take for noise",
            )
        return replace(units, center=np.zeros(len(columns)))

    def _mixture_prior(self, common):
        return Prior(
            concentration=_fixed(self.concentration),
            concentration_prior=self._concentration_prior(),
            score_shape=float(self.score_shape),
            score_scale=float(self.score_scale),
            score_precision=float(self.score_precision),
            noise="cluster" if self.noise == "auto" else self.noise,
            noise_rate_prior=_pair("noise_rate_prior", self.noise_rate_prior),
            means=self.means,
            tails=self.tails,
            **common,
        )

    def _concentration_prior(self):
        shape, rate = _pair("concentration_prior", self.concentration_prior)
        if isinstance(self.concentration, str) and not shape / rate <= _MOST_CONCENTRATION:
            raise ValueError(
                f"concentration_prior must have a mean (shape / rate) <= {_MOST_CONCENTRATION:g}, "
                f"got {self.concentration_prior!r}"
            )
        return shape, rate

    def _scale_prior(self, common):
        noise = None
        if not isinstance(self.noise, str):
            noise = _checked_array("noise", self.noise, self.n_features_in_)[self._units.columns]
            with np.errstate(over="ignore"):
                noise = (noise / self._units.scale) ** 2
            if not ((noise >= _LEAST_NOISE) & (noise <= 1 / _LEAST_NOISE)).all():
                raise ValueError(
                    f"noise must be within {_LEAST_NOISE**0.5:g} and {_LEAST_NOISE**-0.5:g} "
                    f"standard deviations of X, got {self.noise!r}"
                )
        return ScalePrior(
            noise=noise,
            drift=_fixed(self.drift),
            location_variance=_LOCATION_VARIANCE if self.center == "sample" else 0.0,
            birth_move=self.birth_move,
            **common,
        )

    def _advise(self, X, A):
        """Say where the paper's model has nothing to find."""
        with np.errstate(invalid="ignore", divide="ignore"):
            off = A - np.nanmean(A, axis=0)
            off /= np.nanmax(np.abs(off), axis=0)  # fourth powers stay in the range of floats
            kurtosis = np.nanmean(off**4, axis=0) / np.nanmean(off**2, axis=0) ** 2
        if _is_same(self.drift, 0.0) and not (kurtosis > 3).any():
            warn(
                "X should have a column of kurtosis > 3 where top='gaussian' and drift=0, got at "
                f"most {np.max(kurtosis):.2f}: there is no scale structure, expect no factors; "
                "top='dp' is the better model",
            )

    # -- after sampling

    def _summarise(self, X):
        traces = self.posterior_.traces
        self.n_factors_ = float(traces["n_factors"].mean())
        self.n_shared_factors_ = float(traces["n_shared_factors"].mean())
        self.energy_correlation_ = self._energy_correlation()
        for name in ("component_labels_", "cluster_energies_", "partition_info_"):
            self.__dict__.pop(name, None)
        if self._is_mixture:
            self._summarise_mixture(X)
        else:
            self._summarise_scale_model()
        loadings = self._reference["loadings1"]
        self._n_features_out = loadings.shape[1]
        self.feature_labels_ = np.full(self.n_features_in_, -1)
        self.feature_labels_[self._units.columns] = self._feature_labels()
        upper = self._reference.get("level_labels", np.empty((0, len(X)), dtype=np.int16))
        upper = upper if self._is_mixture else upper[1:]
        self.labels_per_level_ = [self.labels_, *(level.astype(np.intp) for level in upper)]
        draws = list(self.posterior_.evenly_spaced(_MOST_SUMMARY_DRAWS))
        self.n_layers_ = _real_layers(draws)

    def _summarise_mixture(self, X):
        draws = self.posterior_.evenly_spaced(_MOST_SUMMARY_DRAWS)
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
        self.cluster_energies_ = self._cluster_energies()
        self._warn_if_chains_disagree(draws, merged)

    def _merged_labels(self, draws):
        """Labels of each draw after its overlapping components are joined."""
        rows = self._rows(_some_rows(self._training_rows.X, _MOST_MERGE_ROWS, self.seed_))

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

    def _summarise_scale_model(self):
        draws = self.posterior_.evenly_spaced(_MOST_SUMMARY_DRAWS)
        labels = [draw["level_labels"][0] for draw in draws]
        self._reference = self.posterior_.highest()
        if any((one >= 0).any() for one in labels):
            most = max(16, int((_COMPARISONS / len(labels[0])) ** 0.5))
            step = -(-len(draws) // most)
            near = central_draw([one + 1 for one in labels[::step]], "binder")
            self._reference = draws[::step][near]
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
        self.labels_ = np.argmax(share, axis=1) - 1
        if self.signed:
            scores = self._reference["scores1"] * _column_signs(self._reference["loadings1"])
            self.labels_ = _split_by_sign(self.labels_, scores)
        self.n_clusters_ = len(np.unique(self.labels_[self.labels_ >= 0]))

    def _energy_correlation(self):
        """Correlations of log energies about the mean, over pairs of observed cells."""
        A = np.where(np.isfinite(self._training_rows.X), self._training_rows.X, np.nan)
        energy = np.log((A - np.nanmean(A, axis=0)) ** 2 + _LEAST_ENERGY)
        seen = ~np.isnan(energy)
        off = np.where(seen, energy - np.nanmean(energy, axis=0), 0.0)
        squares = (off**2).T @ seen
        norm = np.sqrt(squares * squares.T)
        found = np.divide(off.T @ off, norm, where=norm > 0, out=np.zeros_like(norm))
        out = np.eye(self.n_features_in_)
        out[np.ix_(self._units.columns, self._units.columns)] = np.clip(found, -1.0, 1.0)
        np.fill_diagonal(out, 1.0)
        return out

    def _feature_labels(self):
        draw = self._reference
        if not self._is_mixture:
            return feature_labels(draw)
        members = draw["n_members"] / draw["n_members"].sum()
        noise = np.sum(np.broadcast_to(draw["noise_variance"], draw["offset"].shape)
                       * members[:, np.newaxis], axis=0)  # fmt: skip
        energy = draw["loadings1"] ** 2 * draw["score_energy"]
        return np.column_stack([noise, energy]).argmax(axis=1) - 1

    def _attach_rows(self):
        self.posterior_.attach_rows(self._training_rows)

    # -- files

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
            limit = _checked_array("detection_limit", self.detection_limit, X.shape[1])
            # A reading of the limit itself may have come as float32, a little above it.
            with np.errstate(over="ignore"):
                single = limit.astype(np.float32)
            self._limit = np.where(np.isfinite(single), np.maximum(limit, single), limit)
        return X

    def _is_below(self, X):
        with np.errstate(invalid="ignore"):
            return X <= self._limit

    def _check_new(self, X):
        X = super()._check_new(X)
        A = self._visible(X)
        # What is below the limit is at no distance.
        self._refuse_far(np.where(A == -np.inf, 0.0, A), self._units.columns)
        return X

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
        reference = self._reference
        if self._is_mixture:
            anchors = self._rows(_some_rows(self._training_rows.X, _MOST_ANCHORS, 0))

            def scores(draw):
                return expected_scores(anchors, components(draw, self._prior))
        else:

            def scores(draw):
                return draw["scores1"]

        here, sign = scores(reference), _column_signs(reference["loadings1"])
        found = [matched_columns(here, scores(draw)) for draw in draws]
        return [(column, sign * turn) for column, turn in found]

    def _output_kind(self):
        """What `transform` averages: "mean", "magnitude" or "energy" of scores."""
        if self._is_mixture:
            return "mean"
        if self.transform_output == "auto":
            return "magnitude" if self._prior.drift == 0.0 else "mean"
        return "energy" if self.transform_output == "log_energy" else self.transform_output


def _fixed(value):
    """None for "sample", else the number."""
    return None if isinstance(value, str) else float(value)


def _is_same(value, default):
    """Whether a parameter is what it is by default; sequences may be of any type."""
    if isinstance(value, (tuple, list)) and isinstance(default, tuple):
        return tuple(value) == default
    if type(value) is bool or type(default) is bool or not isinstance(value, (str, Real, tuple)):
        # Arrays and Series among others, which compare cell by cell.
        return value is default
    return value == default


def _pair(name, value):
    """Two numbers that leave start values and log densities in the range of floats."""
    numbers = [x for x in value if isinstance(x, Real) and not isinstance(x, bool)]
    if len(value) != 2 or len(numbers) != 2 or not all(1e-6 <= x <= 1e6 for x in numbers):
        raise ValueError(f"{name} must be two positive numbers, 1e-6 to 1e6, got {value!r}")
    return float(value[0]), float(value[1])


def _checked_array(name, value, n_features):
    """A finite number, or one for each feature, as an array (n_features,)."""
    try:
        array = np.broadcast_to(np.asarray(value, dtype=np.float64), n_features).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a number or {n_features} numbers, got {value!r}"
        ) from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    return array


def _some_rows(X, n_most, seed):
    """At most so many rows, at random but always the same ones."""
    if len(X) <= n_most:
        return X
    return X[np.sort(np.random.default_rng(seed).choice(len(X), n_most, replace=False))]


def _column_signs(loadings):
    """Sign of the largest loading of each factor."""
    if not loadings.shape[1]:
        return np.ones(0)
    largest = np.abs(loadings).argmax(axis=0)
    return np.where(loadings[largest, np.arange(loadings.shape[1])] < 0, -1.0, 1.0)


def _split_by_sign(labels, scores):
    """Labels 2 k where the score of factor k is positive, 2 k + 1 where negative, -1 as before."""
    factor = np.maximum(labels, 0)
    if not scores.shape[1]:
        return labels
    negative = scores[np.arange(len(labels)), factor] < 0
    return np.where(labels < 0, -1, 2 * factor + negative)


def _real_layers(draws):
    """Layers from the first with a factor of two links and of some energy, in half the draws.

    A layer that is not real is a few factors with one tiny link each, which come and go.
    """
    real = []
    for number in range(1, max(map(n_layers, draws)) + 1):
        real.append(np.mean([_is_real(draw, number) for draw in draws]))
        if real[-1] < 0.5:
            return number - 1
    return len(real)


def _is_real(draw, number):
    """Whether a layer has a factor with two links and more than one per cent of the energy."""
    if number > n_layers(draw):
        return False
    w = draw[f"loadings{number}"]
    energy = np.sum(w**2, axis=0)
    if f"scores{number}" in draw:
        energy = energy * np.mean(np.square(draw[f"scores{number}"], dtype=np.float64), axis=0)
    elif number == 1:
        energy = energy * draw["score_energy"]
    # Beside the factors below there is what they have by themselves.
    own = np.mean(draw["noise_variance"], axis=-1).mean() * len(w) if number == 1 else len(w)
    shared = np.count_nonzero(w, axis=0) > 1
    return bool((shared & (energy > _LEAST_SHARE * (energy.sum() + own))).any())


def _make_sampler(bit_generator, chain, *, X, prior, limit, n_init_clusters, **options):
    """The sampler of one chain of the mixture; runs where the chain runs."""
    rng = np.random.Generator(bit_generator)
    n_clusters = int(n_init_clusters[chain % len(n_init_clusters)])
    state = start_state(X, prior, rng, n_clusters, limit)
    return Sampler(X, prior, state, bit_generator, limit=limit, **options)


def _make_scale_sampler(bit_generator, chain, *, X, prior, n_init_factors, n_anneal, **options):
    """The sampler of one chain of the scale model; runs where the chain runs."""
    rng = np.random.Generator(bit_generator)
    state = start_scale_state(X, prior, rng, n_init_factors, annealed=n_anneal > 0)
    return ScaleSampler(X, prior, state, bit_generator, n_anneal=n_anneal, **options)
