"""DirichletProcessMixture: clusters and densities without a given number of clusters."""

from functools import partial
from numbers import Integral, Real
from types import NoneType

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skbnp.dirichlet_process_mixture._missing_cells import draw_new_cells, draw_training_cells
from skbnp.dirichlet_process_mixture._model import (
    STARTS,
    CategoricalPrior,
    GaussianPrior,
    PoissonPrior,
    Prior,
    column_scaling,
    default_covariance,
    default_degrees_of_freedom,
    draw_joint,
    guess_covariance,
    start_labels,
)
from skbnp.dirichlet_process_mixture._predictive import (
    Rows,
    accumulate_shares,
    conditional_moments,
    log_densities,
    log_weights,
    sample_row,
)
from skbnp.dirichlet_process_mixture._sampler import SUBSET, Sampler
from skbnp.dirichlet_process_mixture._saved import (
    check_components_prior,
    check_draw,
    check_fitted,
)
from skbnp.dirichlet_process_mixture._table import FAMILIES, Table
from skbnp.dirichlet_process_mixture._training_rows import TrainingRows, WatchedRows
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.likelihoods.learned_covariance import rounds_in_a_sweep
from skbnp.mcmc.caller import warn
from skbnp.mcmc.diagnostics import MIN_DRAWS
from skbnp.mcmc.rows import row_blocks
from skbnp.summaries.consensus import (
    distances_to_consensus,
    drop_unsupported,
    stable_consensus,
    support,
)
from skbnp.summaries.joining import (
    LEAST_DRAWS,
    MergeTree,
    cluster_shares,
    joined_draws,
    merge_tree,
    move_rows,
)
from skbnp.summaries.partitions import (
    coclustering,
    companion_table,
    credible_ball,
    expected_loss,
    relabel_by_size,
)
from skbnp.summaries.training_cells import TrainingCells, over_chains

# "auto" goes over to the parallel algorithm above so many rows.
_MANY_ROWS = 20_000
# How overlap is measured, see `skbnp.summaries.joining.overlap_of`.
_OVERLAP = "share"
# Plain Gibbs keeps parameters and a score for every component, empty ones included.
_MOST_COMPONENTS = 10_000
# A prior mean enters the statistics squared: beyond this the data are lost in its rounding.
_FARTHEST_MEAN = 1e6
_SMALLEST, _LARGEST = 1e-100, 1e100
# Draws whose distance to the consensus of each chain is looked at.
_DRAWS_FOR_DISTANCES = 100
# kappa0 where covariances are not learned.
_FIXED_MEAN_PRECISION = 0.01

# What `sample` says of a prior without bounds to speak of.
_TOO_WIDE = (
    "the prior is so wide that rows drawn from it leave the range of floats: raise "
    "degrees_of_freedom_prior or mean_precision_prior, or lower prior_scale"
)


class DirichletProcessMixture(ClusterMixin, TransformerMixin, BaseMCMCEstimator):
    r"""Mixture with an unknown number of components, by Markov chain Monte Carlo.

    .. math::

        \rho \sim \mathrm{PY}(\alpha, d), \qquad \theta_c \sim H \text{ for each block } c,
        \qquad x_i \mid z_i = c \sim F(\theta_c)

    with :math:`\alpha` the concentration and :math:`d` the discount: :math:`d = 0` is the
    Dirichlet process, :math:`0 < d < 1` the Pitman-Yor process. With ``n_components=M`` the mixture
    is finite with weights :math:`\mathrm{Dirichlet}(\alpha/M, \ldots, \alpha/M)`, which is the
    member :math:`d = -\alpha/M` of the same family. With ``n_components="sample"`` M has a law of
    its own and the weights are :math:`\mathrm{Dirichlet}(\gamma, \ldots, \gamma)`: a mixture of
    finite mixtures [5]_.

    The columns of X may be real, binary, categorical and counts, mixed at will. Given the cluster
    of a row, real columns are jointly Gaussian and all others independent. The base measure H is
    conjugate; for the real columns, by `covariance_type`,

    - "full": :math:`\Sigma \sim \mathrm{IW}(\nu_0, \Psi_0)` and
      :math:`\mu \mid \Sigma \sim \mathcal{N}(m_0, \Sigma/\kappa_0)`;
    - "diag": :math:`\sigma_j^2 \sim \mathrm{IG}(\nu_0/2, \Psi_{0j}/2)` and
      :math:`\mu_j \mid \sigma_j^2 \sim \mathcal{N}(m_{0j}, \sigma_j^2/\kappa_0)` for each feature;
    - "spherical": one :math:`\sigma^2 \sim \mathrm{IG}(\nu_0/2, \Psi_0/2)` for all features;

    a probability is :math:`\mathrm{Beta}`, probabilities of levels are
    :math:`\mathrm{Dirichlet}`, a Poisson rate is :math:`\mathrm{Gamma}`. NaN (or None or pandas'
    NA) in X is a missing cell, missing at random.

    By default the components of the real columns learn from one another [6]_:
    :math:`\Psi_0 = \delta\Lambda` and :math:`\nu_0 = \delta + d + 1`, so that
    :math:`\mathrm{E}[\Sigma] = \Lambda` with

    .. math::

        \Lambda \sim \mathrm{Wishart}(d + 2, R/(d + 2)), \qquad
        \delta \in \{1, 2^{1/4}, \ldots, 2^9\}, \qquad
        \kappa_0 \in \{2^{-10}, \ldots, 1\}

    where R is the correlation of X, shrunk by .01, or by .5 where there are fewer than five
    complete rows a column, and :math:`\delta` and :math:`\kappa_0` are uniform. A large
    :math:`\delta` means that all components have about the same covariance :math:`\Lambda`, a
    small one that each has its own. For "diag" this holds for each variance with
    d = 1, for "spherical" for the one variance. With `degrees_of_freedom_prior` or
    `covariance_prior`, :math:`\nu_0` is a number and :math:`\Psi_0` is `prior_scale` times a given
    matrix.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each training row, numbered by decreasing size: components that overlap are
        joined, and clusters that fewer than half of the draws support go to the others.
    n_clusters_ : int
        Number of clusters in `labels_`.
    component_labels_ : ndarray of shape (n_samples,)
        Consensus partition of the draws, before any join: each component about a Gaussian.
        Without the clusters whose gain in expected loss is within its Monte Carlo error.
    merge_tree_ : skbnp.summaries.joining.MergeTree
        Which components overlap most, joined two by two down to one:
        ``merge_tree_.cut(0.1)[component_labels_]`` is a cut of one's own. `MergeTreeDisplay` draws
        it.
    merged_n_clusters_ : ndarray of int of shape (n_draws,)
        Number of clusters of at most 40 evenly spaced draws, the blocks of each joined by the same
        rule: how sure the rule is of their number. No calibrated posterior of the number of
        classes. That of components: ``posterior_.traces["n_clusters"]``.
    expected_loss_ : float
        Posterior expected loss of `component_labels_`: nats for "vi" and "map", pairs for
        "binder"; over at most 300 evenly spaced draws.
    partition_info_ : dict
        What the search for `component_labels_` did, with the keys of
        `skbnp.summaries.consensus.stable_consensus`: also the clusters ``dropped`` before and
        after the joins, and the ``support`` of those of `labels_`.
    posterior_ : skbnp.mcmc.posterior.Posterior
        The draws, with traces, R-hat and effective sample sizes. A draw holds ``label`` of every
        row and, for standardised X, the posterior statistics of its clusters and last of the
        empty one: ``n_members``; ``mean``; and ``factor`` U with Psi = U^T U ("full") or
        ``count`` of observed cells and ``rate`` of the inverse gamma ("diag", "spherical"); with
        full covariances also the ``imputed`` missing real cells, row by row. The density in
        ``posterior_.log_likelihood()`` is that of a row given all other rows and their clusters.
    X_imputed_ : ndarray or frame of shape (n_samples, n_features)
        Training data with each missing cell replaced by its posterior mean (a level by the most
        probable one), the row itself left out of what it is predicted from; over all sweeps after
        the warm-up, of all chains. Only if X had missing cells; a frame of the same kind, names
        and index where X was one.
    X_imputed_std_ : ndarray or frame of shape (n_samples, n_features)
        Posterior standard deviation of each missing cell, from the same sweeps: what
        `impute(X, return_std=True)` says of a new row. 0 for observed cells.
    families_ : ndarray of str of shape (n_features,)
        What each column was taken for.
    levels_ : list
        The levels of each categorical column in sorted order, None for the other columns.
    algorithm_ : str
        What "auto" came to.
    n_warmup_ : int
        Sweeps of warm-up, what "auto" came to.
    n_draws_ : int
        Draws per chain: what "auto" came to, fewer after Ctrl-C.
    seed_ : int
        Entropy from which every chain got its own seed.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had them.

    See Also
    --------
    sklearn.mixture.BayesianGaussianMixture : Variational, needs an upper bound on the components.
    skbnp.processes.crp : The prior on partitions on its own.
    skbnp.processes.mfm : The same for ``n_components="sample"``.

    Notes
    -----
    A sweep is a collapsed Gibbs pass over the rows [1]_ or what `algorithm` says, split-merge
    proposals [2]_, and updates of concentration, discount and prior scale. For N rows, K
    clusters and d features it costs O(N K d^2) with full covariance, O(N K d) otherwise; a row with
    missing cells under full covariance O(K d^3).

    X is standardised internally; all answers are in its own units. float32 input is computed in
    float64 (a copy of twice its size). Sparse X is taken where all columns are binary or counts,
    and made dense. `sample_weight` and `partial_fit` are not available. The number of clusters is
    not a consistent estimate of the number of components of a population that is not such a
    mixture: skewed clusters are covered by several components. These overlap, and every draw cuts
    them in its own way, so that `labels_` joins them [7]_, up to `merge_overlap`.

    References
    ----------
    .. [1] R. M. Neal (2000). Markov chain sampling methods for Dirichlet process mixture models.
       Journal of Computational and Graphical Statistics 9, 249-265. Algorithm 3.
    .. [2] D. B. Dahl and S. Newcomb (2022). Sequentially allocated merge-split samplers for
       conjugate Bayesian nonparametric models. Journal of Statistical Computation and Simulation.
    .. [3] S. Wade and Z. Ghahramani (2018). Bayesian cluster analysis: point estimation and
       credible balls. Bayesian Analysis 13, 559-626.
    .. [4] S. Jain and R. M. Neal (2004). A split-merge Markov chain Monte Carlo procedure for the
       Dirichlet process mixture model. Journal of Computational and Graphical Statistics 13,
       158-182.
    .. [5] J. W. Miller and M. T. Harrison (2018). Mixture models with a prior on the number of
       components. Journal of the American Statistical Association 113, 340-356.
    .. [6] C. E. Rasmussen (2000). The infinite Gaussian mixture model. Advances in Neural
       Information Processing Systems 12, 554-560.
    .. [7] C. Hennig (2010). Methods for merging Gaussian mixture components. Advances in Data
       Analysis and Classification 4, 3-34.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp import DirichletProcessMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(8, 1, (50, 2))])
    >>> X[3, 1] = np.nan
    >>> dpm = DirichletProcessMixture(random_state=0).fit(X)
    >>> dpm.n_clusters_
    2
    >>> dpm.predict([[8.0, np.nan]]) == dpm.labels_[-1]
    array([ True])
    """

    family: str | list | dict = parameter(
        "gaussian",
        "str, sequence of str or dict",
        [StrOptions({*FAMILIES, "auto"}), list, tuple, dict],
        """
        What the columns hold: "gaussian" (real numbers), "bernoulli" (0, 1 or bool),
        "categorical" (names, or integers that name levels) or "poisson" (counts, 0 to 2^22); one
        for all columns, a sequence with one per column, or a dict by column name, where columns
        it leaves out are "auto". "auto" goes by the dtype: categories, strings and objects are
        categorical, bool is Bernoulli, non-negative integers up to 2^22 are counts, all else is
        real. `families_` says what each column was taken for.
        """,
    )
    n_components: int | str | None = parameter(
        None,
        'int, "sample" or None',
        [
            Interval(Integral, 1, 10**15, closed="both"),
            StrOptions({"sample"}),
            None,
        ],
        """
        None for infinitely many components (the data use finitely many of them), a number for a
        finite mixture with that many, "sample" for a finite mixture whose number of components M
        is inferred. The latter opens fewer tiny clusters than a Dirichlet process, and its number
        of clusters settles at M where the components are right. It takes no `discount`, and
        `component_concentration` in place of `concentration`.
        """,
    )
    n_components_prior: tuple = parameter(
        (1, 4, 3),
        "tuple of (a, b, c)",
        [tuple, list],
        """
        Law of M for ``n_components="sample"``: M - 1 ~ BetaNegativeBinomial(a, b, c), with mean
        a c / (b - 1) and a tail like M^(-1 - b); each number from 0.1 to 1e4.
        """,
    )
    component_concentration: float = parameter(
        1.0,
        "float",
        [Interval(Real, 1e-10, 1e10, closed="both")],
        """
        Dirichlet parameter gamma of the weight of each component for ``n_components="sample"``,
        1e-10 to 1e10; larger makes cluster sizes more even. With a number of components M it is
        `concentration` / M.
        """,
    )
    covariance_type: str = parameter(
        "full",
        '{"full", "diag", "spherical"}',
        [StrOptions({"full", "diag", "spherical"})],
        """
        Shape of the components in the real columns. "full" has d (d + 1) / 2 numbers per
        component: above about 20 features, or with fewer than 10 rows per feature, prefer "diag"
        or reduce X first. Components are diagonal or spherical along the columns of X, each
        divided by its standard deviation ("spherical" with a `covariance_prior`: by one common
        scale).
        """,
    )
    concentration: float | str = parameter(
        "sample",
        'float or "sample"',
        [Interval(Real, -1, None, closed="neither"), StrOptions({"sample"})],
        """
        Strength alpha; more gives more clusters. A number, > -discount (> 0 for a finite mixture),
        fixes it.
        """,
    )
    concentration_prior: tuple = parameter(
        (1.0, 1.0),
        "tuple of (shape, rate)",
        [tuple, list],
        """
        Gamma prior of a sampled concentration.
        """,
    )
    discount: float | str = parameter(
        0.0,
        'float in [0, 1) or "sample"',
        [Interval(Real, 0, 1, closed="left"), StrOptions({"sample"})],
        """
        Discount of the Pitman-Yor process; more gives more small clusters.
        """,
    )
    discount_prior: tuple = parameter(
        (1.0, 9.0),
        "tuple of (a, b)",
        [tuple, list],
        """
        Beta prior of a sampled discount.
        """,
    )
    mean_prior: ArrayLike | None = parameter(
        None,
        "array-like of shape (n_features,)",
        ["array-like", None],
        """
        Prior mean m0 of the component means, in the units of X. Default: the column means. Here
        and in what follows a table with other columns has as many features as real columns.
        """,
    )
    mean_precision_prior: float | None = parameter(
        None,
        "float or None",
        [Interval(Real, _SMALLEST, _LARGEST, closed="both"), None],
        """
        kappa0: the prior is worth that many rows, 1e-100 to 1e100. Larger draws the means to
        `mean_prior`. Default: sampled with the covariances, 0.01 where these are not learned.
        """,
    )
    degrees_of_freedom_prior: float | None = parameter(
        None,
        "float",
        [Interval(Real, 1e-6, 1e8, closed="both"), None],
        """
        nu0, > n_features - 1 for "full", >= 1e-6 otherwise, at most 1e8. Default: learned, and
        n_features + 2, or 4, where `covariance_prior` is given.
        """,
    )
    covariance_prior: ArrayLike | None = parameter(
        None,
        "array-like or float",
        ["array-like", Interval(Real, 0, None, closed="neither"), None],
        """
        In the squared units of X, as in `sklearn.mixture.BayesianGaussianMixture`: the matrix
        (n_features, n_features) for "full", the vector (n_features,) for "diag", a float for
        "spherical"; `prior_scale` multiplies it. Default: learned. Where
        `degrees_of_freedom_prior` is given: such that the prior mean of a component's covariance
        is `prior_scale` times the shrunk covariance of X (the diagonal of it for "diag" and
        "spherical"); with fewer degrees of freedom than n_features + 2, or 4, the matrix that
        those would have.
        """,
    )
    prior_scale: float | str = parameter(
        "sample",
        'float or "sample"',
        [
            Interval(Real, _SMALLEST, _LARGEST, closed="both"),
            StrOptions({"sample"}),
        ],
        """
        Multiplier s of `covariance_prior`; only where that or `degrees_of_freedom_prior` is
        given. "sample" draws it, uniform on 1, 1/2, ..., 2^-12: small when clusters are tight
        compared with the spread of X. With your own `covariance_prior`, 1.0 takes it as it is.
        """,
    )
    bernoulli_prior: tuple = parameter(
        (0.5, 0.5),
        "tuple of (a, b)",
        [tuple, list],
        """
        Beta prior of the probability of a 1 in every Bernoulli column.
        """,
    )
    categorical_prior: float = parameter(
        1.0,
        "float",
        [Interval(Real, 1e-10, 1e10, closed="both")],
        """
        Total of the pseudo counts of every categorical column, shared evenly by its levels.
        """,
    )
    poisson_prior: tuple | None = parameter(
        None,
        "tuple of (shape, rate) or None",
        [tuple, list, None],
        """
        Gamma prior of the rate of every Poisson column. Default: shape 1 and the column's own
        mean, at least 1 / n_samples.
        """,
    )
    algorithm: str = parameter(
        "auto",
        '{"auto", "collapsed", "parallel", "gibbs"}',
        [StrOptions({"auto", "collapsed", "parallel", "gibbs"})],
        """
        How a sweep draws the labels. "collapsed": row after row, everything else integrated out;
        mixes best per sweep. "parallel": all rows at once given weights and parameters of the
        clusters, and some 2,000 rows as in "collapsed"; for many rows, on all cores. "gibbs": all
        rows at once given weights and parameters of all components; only with `n_components`, at
        most 10,000. "auto" is "collapsed" up to 20,000 rows, "parallel" above.
        """,
    )
    n_split_merge: int | str = parameter(
        "auto",
        'int or "auto"',
        [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        """
        Split-merge proposals per sweep; 0 for none. "auto" is the larger of 4 and half the
        number of clusters, followed during warm-up and then frozen.
        """,
    )
    split_merge: str = parameter(
        "sequential",
        '{"sequential", "restricted_gibbs"}',
        [StrOptions({"sequential", "restricted_gibbs"})],
        """
        How a split is proposed: rows allocated one after the other [2]_, or by restricted Gibbs
        sampling from a random start [4]_.
        """,
    )
    point_estimate: str = parameter(
        "vi",
        '{"vi", "binder", "map"}',
        [StrOptions({"vi", "binder", "map"})],
        """
        The components that `labels_` are made of minimise the posterior expected variation of
        information or Binder loss, or are those of the draw with the highest log joint density.
        """,
    )
    merge_overlap: float | None = parameter(
        0.3,
        "float in (0, 1] or None",
        [Interval(Real, 0, 1, closed="right"), None],
        """
        Components are joined to clusters while the chance that, of two, a row of one is put in the
        other is as large, averaged over draws and divided by the fourth root of the share of the
        rows that the two hold. Smaller joins more. None leaves components as they are. It takes 40
        draws.
        """,
    )
    n_chains: int = parameter(
        4,
        None,
        None,
        """
        Independent chains. They start from one cluster and from k-means with 5 to 20 centres, in
        turn, so that they can be seen to agree from either side.
        """,
    )
    n_warmup: int | str = parameter(
        "auto",
        None,
        None,
        """
        Sweeps per chain before the first draw. "auto" runs rounds of 200 sweeps (100 above
        100,000 rows), 400, 800, ... until the traces that `fit` checks agree between the chains
        (R-hat up to 1.05, 100 effective draws in the last half of the round, no drift) or
        `max_work` is spent; draws are kept after that, and none of them takes part in the
        decision. A number is quicker, as in a grid search, where 200 is a good start.
        """,
    )
    n_draws: int | str = parameter(
        "auto",
        None,
        None,
        """
        Draws kept per chain; "auto" is 300 (100 above 100,000 rows).
        """,
    )
    thin: int | str = parameter(
        "auto",
        'int or "auto"',
        [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        """
        Sweeps per kept draw. "auto" is 1 where `n_warmup` is a number, and otherwise follows from
        the effective sample size at the end of the warm-up, so that 300 draws are as many sweeps
        as 200 effective draws need; ``posterior_.sweeps_per_draw`` says what it came to.
        """,
    )
    max_work: float = parameter(
        15.0,
        "float",
        [Interval(Real, 0, None, closed="neither")],
        """
        Bound on the work of all chains together where `n_warmup` is "auto", in about seconds of
        one core. It is counted from sweeps, rows, clusters and columns and never timed, so that
        a fit makes the same draws on every machine. The first round of warm-up and the draws
        after it are made in any case.
        """,
    )

    _reported_traces = ("log_density", "n_clusters", "concentration", "largest_cluster")
    _findings = "partitions"
    _parameters_after_sampling = ("point_estimate", "merge_overlap")
    _saved_types = (
        *(Prior, GaussianPrior, CategoricalPrior, PoissonPrior, Table, TrainingRows),
        MergeTree,
    )
    _fitted_attributes: dict = {
        **BaseMCMCEstimator._fitted_attributes,
        "labels_": np.ndarray,
        "n_clusters_": Integral,
        "component_labels_": np.ndarray,
        "merge_tree_": MergeTree,
        "merged_n_clusters_": np.ndarray,
        "expected_loss_": Real,
        "partition_info_": dict,
        "families_": np.ndarray,
        "algorithm_": str,
        "_table": (Table, NoneType),
        "_center": np.ndarray,
        "_scale": np.ndarray,
        "_prior": Prior,
        "_training_rows": TrainingRows,
        "_n_features_out": Integral,
    }
    _may_hold: dict = {
        **BaseMCMCEstimator._may_hold,
        "X": (np.nan,),
        **dict.fromkeys(["missing_variance", "imputed_square"], (np.inf,)),
    }

    # -- prediction

    def predict(self, X):
        """Most probable cluster of each row, among those of `labels_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, NaN where missing. Training rows count as new rows; their own clusters are
            in `labels_`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.argmax(self.predict_proba(X), axis=1)

    def predict_proba(self, X):
        """Probability that each row belongs with each cluster of `labels_`.

        Averaged over draws by companions, so no draw is relabelled: the probability, given the
        training data and the row, that a training row drawn from the row's block has label k,
        given that the row's block is not a new one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, NaN where missing. A row with no observed cell gets the cluster sizes.

        Returns
        -------
        proba : ndarray of shape (n_samples, `n_clusters_`)
            Rows sum to one. Cost O(predict_draws n_clusters d^2) per row for full covariance.
        """
        return self._companion_shares(self._check_new(X), new=False)[:, :-1]

    def novelty_proba(self, X):
        """Probability that each row opens a cluster of its own, given the training data and it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, NaN where missing.

        Returns
        -------
        proba : ndarray of shape (n_samples,)
        """
        return self._companion_shares(self._check_new(X), new=True)[:, -1]

    def transform(self, X):
        """Soft membership: the same as `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, NaN where missing.

        Returns
        -------
        proba : ndarray of shape (n_samples, `n_clusters_`)
        """
        return self.predict_proba(X)

    def score_samples(self, X):
        """Log posterior predictive density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows; where cells are missing, the density of the observed ones (0 for none).

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Averaged over draws inside the logarithm; a density in the units of X.
        """
        X = self._check_new(X)
        jacobian = np.where(np.isnan(X), 0.0, np.log(self._scale)).sum(axis=1)
        draws = self._prediction_draws()

        def log_mean_density(start, stop):
            rows = self._rows(X[start:stop])
            level, sums = np.full(stop - start, -np.inf), np.zeros((stop - start, 1))
            for draw in draws:
                log_p = self._log_densities(rows, draw)
                accumulate_shares(log_p, np.ones((log_p.shape[1], 1)), level, sums)
            return rows.unsort(level + np.log(sums[:, 0]))

        log_density = self._by_row_blocks(log_mean_density, len(X))
        return log_density - np.log(len(draws)) - jacobian

    def impute(self, X, return_std=False, rounding=False):
        """Fill missing cells with their mean given the row's observed ones, over all draws alike.

        The posterior predictive mean would let a draw count for a row by its density of what is
        observed, as `predict_proba` and `score_samples` do. For a fitted row that counts the row
        twice, and in many columns it leaves one draw of a hundred in effect: equal weights have
        smaller errors and honest deviations.

        A training row is answered with its own `X_imputed_` and `X_imputed_std_`: one that lacks
        the same cells and has the same bits in all others. Where several training rows are equal,
        the answer is the mixture of theirs. A complete training row is never looked up: a cell
        that is missing in X is not filled with what was observed there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows or training rows, NaN where missing.
        return_std : bool, default=False
            Also return the predictive standard deviation.
        rounding : bool, default=False
            Round the means of Bernoulli and Poisson cells to integers.

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_features)
            Observed cells are those of X, bit for bit; a missing level is the most probable one.
            A frame of the kind, names and index of X where that is one.
        std : ndarray or frame of shape (n_samples, n_features)
            Only if `return_std`: by the law of total variance over draws and clusters, 0 for
            observed cells, inf where a component has no second moment. For a level, the root of
            p (1 - p) with p the probability of the one that was filled in.
        """

        def of_draw(draw, t, rows):
            log_p = self._log_densities(rows, draw)
            moments = conditional_moments(rows, draw, self._prior, log_p)
            return [rows.unsort(one) for one in moments]

        check_is_fitted(self, "posterior_")
        whole = self._whole_columns() if rounding else []
        return self._impute(X, return_std, self._standard, of_draw, self._as_rows, whole)

    @property
    def X_imputed_(self):
        """The training table with its holes filled, in the form it was given in."""
        # Kept as numbers: a file holds no DataFrame.
        if not self._knows_training_cells():
            raise AttributeError("X_imputed_ is there once fit has seen an X with missing cells")
        whole = np.flatnonzero(~np.isnan(self._training_cells.X).any(axis=0))
        return self._as_trained(self._filled_training()[0], whole=whole)

    @property
    def X_imputed_std_(self):
        """Standard deviations of what `X_imputed_` fills in, 0 for observed cells."""
        if not self._knows_training_cells():
            raise AttributeError(
                "X_imputed_std_ is there once fit has seen an X with missing cells"
            )
        return self._form.build_floats(self._filled_training()[1])

    @property
    def levels_(self):
        """The levels of each categorical column in sorted order, None for the other columns."""
        # A file holds levels in the table alone, which writes intervals and dates as plain data.
        if "_table" not in vars(self):
            raise AttributeError("levels_ is there once fit has seen X")
        return [None] * self.n_features_in_ if self._table is None else self._table.levels

    def __getattr__(self, name):
        if name == "coclustering_":
            raise AttributeError("coclustering_ is computed, not stored: call coclustering()")
        # Not found, or a property without a value: the usual words, or those of the property.
        return object.__getattribute__(self, name)

    def coclustering(self, rows=None, columns=None):
        """Posterior probability that chosen training rows share a cluster, O(cells) per draw.

        Parameters
        ----------
        rows : array-like of int or bool, default=None
            Training rows, by position or as a mask of shape (n_samples,); None means all.
        columns : array-like of int or bool, or "all", default=None
            The rows to pair them with; "all" means all, None the same as `rows`.

        Returns
        -------
        proba : ndarray of shape (n_rows, n_columns)
            Over at most 300 evenly spaced draws.

        Raises
        ------
        ValueError
            If the result would have more than 4e8 cells.
        """
        check_is_fitted(self, "posterior_")
        return coclustering(self._label_draws(), rows, columns)

    def credible_ball(self, level=0.95):
        """Partitions around `component_labels_` that hold most of the posterior, and its extremes.

        Of draws as they are, without joins: for the number of joined clusters see
        `merged_n_clusters_`.

        Parameters
        ----------
        level : float in (0, 1], default=0.95
            Posterior probability that the ball holds at least.

        Returns
        -------
        ball : skbnp.summaries.partitions.CredibleBall
            Its radius, and its bounds with the fewest clusters (``upper``), the most
            (``lower``) and the farthest (``horizontal``), as by Wade and Ghahramani (2018); in
            the loss of `point_estimate`, "vi" for "map". Over at most 300 evenly spaced draws.
        """
        check_is_fitted(self, "posterior_")
        loss = "binder" if self.point_estimate == "binder" else "vi"
        return credible_ball(self.component_labels_, self._label_draws(), loss, level=level)

    def sample(self, n_samples=1, random_state=None):
        """Draw rows from the posterior predictive distribution, each from a draw of its own.

        All draws take part, not `predict_draws` of them: more cost nothing here.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : ndarray or frame of shape (n_samples, n_features)
            In the units and the form of the training data.
        labels : ndarray of shape (n_samples,)
            Label in `labels_` of a random companion in the row's block, -1 for a new block.

        Raises
        ------
        ValueError
            If a prior that was given is so wide that rows leave the range of floats.
        """
        check_is_fitted(self, "posterior_")
        _check_count("n_samples", n_samples)
        rng = check_random_state(random_state)
        X = np.empty((n_samples, self.n_features_in_))
        labels = np.empty(n_samples, dtype=np.intp)
        chosen = rng.randint(self.posterior_.n_stored, size=n_samples)
        for t in np.unique(chosen):
            draw = self.posterior_.in_order(t)
            weight = np.exp(self._log_weights(draw))
            table = self._companion_table(draw)
            rows = np.flatnonzero(chosen == t)
            blocks = rng.choice(len(weight), size=len(rows), p=weight / weight.sum())
            for i, k in zip(rows, blocks, strict=True):
                with np.errstate(over="ignore"):
                    X[i] = sample_row(draw, self._prior, k, rng)
                labels[i] = rng.choice(table.shape[1], p=table[k])
        labels[labels == self.n_clusters_] = -1
        return self._as_drawn(X), labels

    def sample_missing(self, X=None, n_tables=5, random_state=None):
        """Complete a table several times, its missing cells drawn from the posterior.

        For multiple imputation: analyse each table and pool the estimates, whose spread between
        tables says what the missing cells add to the doubt. Each table rests on a draw of its
        own as long as there are enough, among all stored draws. Missing cells of the training
        table are drawn jointly; new rows are drawn each on its own, training rows among them (as
        `impute` knows them) as in the training table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            New rows or training rows, NaN where missing. None means the training table.
        n_tables : int, default=5
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        tables : list of n_tables ndarrays or frames of shape (n_samples, n_features)
            In the form of X. Observed cells are those of X, bit for bit; counts are integers and
            levels are drawn by their probabilities.

        Raises
        ------
        ValueError
            If X is None and `fit` has seen no missing cells, or if a prior that was given is so
            wide that cells leave the range of floats.
        """
        check_is_fitted(self, "posterior_")
        _check_count("n_tables", n_tables)
        given, cells = X, vars(self).get("_training_cells")
        if given is None and cells is None:
            raise ValueError("X must be a table where fit has seen no missing cells, got None")
        X = cells.X if given is None else self._check_new(X)
        holes = np.isnan(X)
        whole = np.union1d(self._whole_columns(), np.flatnonzero(~holes.any(axis=0)))
        rng = check_random_state(random_state)
        n_stored = self.posterior_.n_stored
        chosen = rng.choice(n_stored, size=n_tables, replace=n_tables > n_stored)
        complete = self._completer(given is None, X, holes)
        tables = []
        for t in chosen:
            drawn = self._in_range(complete(self.posterior_.in_order(t), rng), holes)
            filled = np.where(holes, drawn, X)
            if given is None:
                tables.append(self._as_trained(filled, whole=whole))
            else:
                tables.append(self._filled_as(given, X, filled, None, whole))
        return tables

    def _completer(self, are_training, X, holes):
        """A function of a draw and a generator: standardised X with its missing cells drawn."""
        trained = self._training_rows.X
        if are_training:
            return lambda draw, rng: draw_training_cells(trained, draw, self._prior, rng)
        standard = self._standard(X)
        new = np.flatnonzero(holes.any(axis=1))
        known, equals = new[:0], []
        if self._knows_training_cells():
            found = self._training_cells.matches(X[new])
            is_known = np.array([len(places) > 0 for places in found], dtype=bool)
            equals = [self._training_cells.rows[places] for places in found if places]
            known, new = new[is_known], new[~is_known]
        blocks = [new[rows] for rows in row_blocks(len(new))]
        prepared = [self._as_rows(standard[block]) for block in blocks]

        def complete(draw, rng):
            out = standard.copy()
            if known.size:
                # Of several equal training rows, one at random.
                chosen = [rows[rng.randint(len(rows))] for rows in equals]
                out[known] = draw_training_cells(trained, draw, self._prior, rng)[chosen]
            for block, rows in zip(blocks, prepared, strict=True):
                log_p = self._log_densities(rows, draw)
                out[block] = draw_new_cells(standard[block], rows, draw, self._prior, log_p, rng)
            return out

        return complete

    def sample_prior(self, n_samples=1, random_state=None):
        """Draw a table from the prior predictive distribution: all rows from one mixture.

        Hyperparameters, partition and parameters come from the prior that `fit` used, in which
        defaults follow the training data. Call it again for another mixture.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : ndarray or frame of shape (n_samples, n_features)
            In the units and the form of the training data.
        labels : ndarray of shape (n_samples,)
            Clusters in order of appearance.

        Raises
        ------
        ValueError
            If a prior that was given is so wide that rows leave the range of floats.
        """
        check_is_fitted(self, "posterior_")
        _check_count("n_samples", n_samples)
        seed = check_random_state(random_state).randint(2**31, size=4)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            try:
                state, X = draw_joint(self._prior, n_samples, np.random.default_rng(seed))
            except np.linalg.LinAlgError as error:
                raise ValueError(_TOO_WIDE) from error
        return self._as_drawn(X), state["label"]

    def _as_drawn(self, X):
        """Standardised rows that were drawn, in the form of the training table."""
        return self._as_sampled(self._in_range(X))

    def _in_range(self, X, drawn=True):
        """Standardised rows in the units of X, those cells that were drawn being finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            X = X * self._scale + self._center
        if not np.isfinite(X, where=drawn, out=np.ones(X.shape, dtype=bool)).all():
            raise ValueError(_TOO_WIDE)
        return X

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: "cluster0", "cluster1", ...

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self, "posterior_")
        return np.array([f"cluster{k}" for k in range(self.n_clusters_)], dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = self.family != "gaussian"
        tags.input_tags.sparse = self.family in ("bernoulli", "poisson")
        return tags

    def _as_floats(self, X, reset=True):
        """X as float64, levels as codes; a table that is not all real is read by its columns."""
        if reset:
            self._table = None
        if self.family == "gaussian" if reset else self._table is None:
            X = super()._as_floats(X, reset)
            if reset:
                self.families_ = np.full(X.shape[1], "gaussian")
            return X
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            self._table = Table(X, self.family, self._form.labels())
            self.families_ = np.array(self._table.families)
        return check_array(self._table.encode(X), ensure_all_finite="allow-nan", input_name="X")

    def _columns(self, X):
        return super()._columns(X) if self._table is None else self._table.decode(X)

    def _whole_columns(self):
        return self._columns_of("bernoulli", "poisson")

    def _nominal_columns(self):
        return self._columns_of("categorical")

    def _check_new(self, X):
        X = super()._check_new(X)
        self._refuse_far(self._standard(X), range(X.shape[1]))
        return X

    # -- before sampling

    def _auto_lengths(self, X):
        return (100, 100) if len(X) > 100_000 else (200, 300)

    def _work(self, X):
        work = partial(
            _work_of_sweep, X=self._training_rows.X, prior=self._prior, algorithm=self.algorithm_
        )
        return work(1.0), lambda traces: work(float(traces["n_clusters"].mean()))

    def _density(self, X, rows):
        return WatchedRows(self._training_rows.X, rows, self._prior, self._scale)

    @property
    def _moves_of_traces(self):
        """A lone row, or all rows in the only component, can be divided in one way alone."""
        if len(self._training_rows.X) == 1 or self.n_components == 1:
            return {}
        return dict.fromkeys(
            ("n_clusters", "largest_cluster"), ("gibbs", "all_rows", "split", "merge")
        )

    def _prepare(self, X):
        """Check the parameters against X, standardise it and say how to build a sampler."""
        self._check_parameters(X)
        self._center, self._scale = self._scaling(X)
        if not np.all(np.isfinite(self._center) & np.isfinite(self._scale)):
            raise ValueError("X must have a finite mean and spread in every column, got overflow")
        self.algorithm_ = self.algorithm
        if self.algorithm == "auto":
            self.algorithm_ = "collapsed" if len(X) <= _MANY_ROWS else "parallel"
        standard = self._standard(X)
        self._prior = self._standard_prior(standard)
        self._training_rows = TrainingRows(standard, self._prior, self._center, self._scale)
        return partial(
            _make_sampler,
            X=standard,
            prior=self._prior,
            algorithm=self.algorithm_,
            for_rows=self._row_threads(),
            n_split_merge=self.n_split_merge,
            split_merge=self.split_merge,
            log_jacobian=-float(np.sum(~np.isnan(X), axis=0) @ np.log(self._scale)),
        )

    def _about_data(self):
        levels = [None if one is None else [repr(x) for x in one.tolist()] for one in self.levels_]
        return [list(self.families_), levels]

    def _attach_rows(self):
        self.posterior_.attach_rows(self._training_rows)
        self.posterior_.attach_figures(_partition_figures)

    def _check_draw(self, draw):
        check_draw(draw, self._prior, self._training_rows.X)

    def _check_loaded(self):
        check_fitted(self)

    def _columns_of(self, *families):
        return np.flatnonzero(np.isin(self.families_, families))

    def _scaling(self, X):
        """Center and scale of each column; only real columns are standardised."""
        center, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        real = self._columns_of("gaussian")
        if not real.size:
            return center, scale
        X = X[:, real]
        common = self.covariance_type == "spherical" and self.covariance_prior is not None
        constant = np.flatnonzero(np.nanmax(X, axis=0) == np.nanmin(X, axis=0))
        if constant.size and len(X) > 1 and self.covariance_prior is None:
            message = f"got the constant {self._named(real[constant])}"
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
        center[real], scale[real] = column_scaling(X, common)
        return center, scale

    def _standard_prior(self, X):
        """The prior for standardised X."""
        parts = [self._gaussian_prior(X), self._categorical_prior(), self._poisson_prior(X)]
        return Prior(
            parts=tuple(part for part in parts if part.columns.size),
            **self._number_of_components(),
            concentration_prior=tuple(float(x) for x in self.concentration_prior),
            discount=_fixed(self.discount),
            discount_prior=tuple(float(x) for x in self.discount_prior),
            prior_scale=_fixed(self.prior_scale),
        )

    def _number_of_components(self):
        """What the prior says of components: their number or its law, and their concentration."""
        if self.n_components != "sample":
            return dict(n_components=self.n_components, concentration=_fixed(self.concentration))
        return dict(
            n_components_prior=tuple(float(x) for x in self.n_components_prior),
            concentration=float(self.component_concentration),
        )

    def _gaussian_prior(self, X):
        columns = self._columns_of("gaussian")
        X, d, kind = X[:, columns], len(columns), self.covariance_type
        kappa0, df, covariance = self.mean_precision_prior, self.degrees_of_freedom_prior, None
        if self._learns_covariance():
            covariance = guess_covariance(X, kind) if d else np.zeros((0, 0))
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
            mean = (given - self._center[columns]) / self._scale[columns]
            self._refuse_far(np.atleast_1d(mean), columns, "mean_prior", _FARTHEST_MEAN)
        kappa0 = None if kappa0 is None else float(kappa0)
        return GaussianPrior(columns, kind, mean, kappa0, df, covariance)

    def _learns_covariance(self):
        """Whether the numbers of the covariances' prior are part of the state."""
        return self.degrees_of_freedom_prior is None and self.covariance_prior is None

    def _categorical_prior(self):
        """Binary and categorical columns: a Bernoulli one has the levels 0 and 1."""
        columns = self._columns_of("bernoulli", "categorical")
        a, b = self.bernoulli_prior
        counts = []
        for j in columns:
            if self.families_[j] == "bernoulli":
                counts.append(np.array([b, a], dtype=np.float64))
            else:
                n_levels = len(self.levels_[j])
                counts.append(np.full(n_levels, self.categorical_prior / n_levels))
        return CategoricalPrior(columns, tuple(counts))

    def _poisson_prior(self, X):
        columns = self._columns_of("poisson")
        if self.poisson_prior is None:
            mean = np.maximum(np.nanmean(X[:, columns], axis=0), 1 / len(X))
            return PoissonPrior(columns, np.ones(len(columns)), 1 / mean)
        shape, rate = self.poisson_prior
        return PoissonPrior(
            columns, np.full(len(columns), float(shape)), np.full(len(columns), float(rate))
        )

    def _standard_covariance(self, covariance):
        """covariance_prior in units of the standardised X."""
        scale = self._scale[self._columns_of("gaussian")]
        if self.covariance_type == "spherical":
            scale = scale[0]
        # One division after the other: the square of a scale may underflow.
        with np.errstate(over="ignore"):
            if self.covariance_type == "full":
                covariance = covariance / scale[:, None] / scale
            else:
                covariance = covariance / scale / scale
        variances = np.diag(covariance) if self.covariance_type == "full" else covariance
        if not (np.all(variances >= _SMALLEST) and np.all(variances <= _LARGEST)):
            raise ValueError(
                f"covariance_prior must be within {_SMALLEST} and {_LARGEST} times the variances "
                f"of X, got {np.min(variances):.3g} to {np.max(variances):.3g} times"
            )
        return covariance

    def _check_parameters(self, X):
        """What single-parameter constraints cannot say."""
        real = self._columns_of("gaussian")
        d = len(real)
        for name in ("concentration_prior", "discount_prior", "bernoulli_prior"):
            _check_pair(name, getattr(self, name))
        if self.poisson_prior is not None:
            _check_pair("poisson_prior", self.poisson_prior)
        for name in ("mean_prior", "degrees_of_freedom_prior", "covariance_prior"):
            if not d and getattr(self, name) is not None:
                raise ValueError(f"{name} must be None where X has no real column")
        if self.n_components is not None and self.discount != 0:
            raise ValueError(
                f"discount must be 0 for a finite mixture (n_components={self.n_components}), "
                f"got {self.discount!r}"
            )
        check_components_prior("n_components_prior", self.n_components_prior)
        if self.n_components == "sample":
            if self.concentration != "sample":
                raise ValueError(
                    "concentration must be 'sample' for n_components='sample', which has "
                    f"component_concentration instead, got {self.concentration!r}"
                )
        elif self.component_concentration != 1.0:
            raise ValueError(
                "component_concentration must be 1.0 unless n_components='sample', got "
                f"{self.component_concentration!r}; concentration is that of all components"
            )
        if self.algorithm == "gibbs" and (
            not isinstance(self.n_components, Integral) or self.n_components > _MOST_COMPONENTS
        ):
            raise ValueError(
                f"n_components must be a number up to {_MOST_COMPONENTS} for algorithm='gibbs', "
                f"got {self.n_components!r}"
            )
        if self.concentration != "sample":
            lowest = 0 if self.n_components or self.discount == "sample" else -self.discount
            if not self.concentration > lowest:
                raise ValueError(
                    f"concentration must be > {lowest or 0}, got {self.concentration!r}"
                )
        if d and self._learns_covariance() and self.prior_scale != "sample":
            raise ValueError(
                "prior_scale must be 'sample' where covariances are learned: give "
                "degrees_of_freedom_prior or covariance_prior for it to multiply, got "
                f"{self.prior_scale!r}"
            )
        df = self.degrees_of_freedom_prior
        if df is not None and self.covariance_type == "full" and not df > d - 1:
            raise ValueError(
                f"degrees_of_freedom_prior must be > n_features - 1 = {d - 1} for "
                f"covariance_type='full', got {df!r}"
            )
        if self.covariance_type == "full" and np.isnan(X[:, real]).all(axis=1).any():
            # An imputed row of so heavy a tail leaves the range of floats.
            if df is not None and not df >= d:
                raise ValueError(
                    f"degrees_of_freedom_prior must be >= n_features = {d} where X has rows with "
                    f"no observed value, got {df!r}"
                )
        if self.mean_prior is not None:
            mean = _finite_array("mean_prior", self.mean_prior)
            if mean.shape != (d,):
                raise ValueError(f"mean_prior must have shape ({d},), got {mean.shape}")
        if self.covariance_prior is not None:
            self._checked_covariance(d)
        self._advise(len(X), d)

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

    def _advise(self, n, d):
        df = self.degrees_of_freedom_prior or d + 2
        if self.covariance_type == "full" and n > 1 and df + n / 10 < 2 * d:
            warn(
                f"covariance_type='full' has little to learn {d} x {d} covariances from {n} rows; "
                "covariance_type='diag' or fewer features would be a better model",
            )

    # -- after sampling

    def _summarise(self, X):
        labels, seed = self._label_draws(), self.seed_ % 2**32
        if self.point_estimate == "map":
            components = relabel_by_size(self.posterior_.highest()["label"])
            self.expected_loss_ = expected_loss(components, labels)
            info = {"n_draws": len(labels), "dropped": []}
            info["support"] = support(components, labels).tolist()
        else:
            components, self.expected_loss_, info = stable_consensus(
                labels, self.point_estimate, max_work=self._search_work(X), random_state=seed
            )
        self.component_labels_, self.partition_info_ = components, info
        self._join_components(seed)
        self.n_clusters_ = int(self.labels_.max()) + 1
        self._n_features_out = self.n_clusters_
        if np.isnan(X).any():
            columns = self._prior.columns_of_values
            moments = self._moments_over_sweeps(X, columns)
            self._training_cells = TrainingCells(X.copy(), columns, *moments)

    def _join_components(self, seed):
        """The tree of components, and clusters: those that overlap as one."""
        components, info = self.component_labels_, self.partition_info_
        draws = self.posterior_.evenly_spaced(LEAST_DRAWS)
        n, rows, rng = len(components), None, np.random.RandomState(seed)
        if n > _MANY_ROWS:
            # As good to .01 by labels alone and by a part of the rows, and then no matter of time.
            rows = np.random.default_rng(seed).choice(n, _MANY_ROWS, replace=False)
        completed = self._training_rows.completed(draws, rng, rows)
        labels, reference = [draw["label"] for draw in draws], components
        if completed.rows.size:
            labels = [
                move_rows(draw["label"], completed.rows, completed.labels(draw, rng))
                for draw in draws
            ]
            found = cluster_shares(components, labels, map(completed.shares, draws))
            reference = move_rows(components, completed.rows, np.argmax(found, axis=1))
        if rows is None:
            left_out = map(self._training_rows.shares, draws)
            shares = cluster_shares(reference, labels, left_out)
            if completed.rows.size:
                found = cluster_shares(reference, labels, map(completed.shares, draws))
                shares[completed.rows] = found
        else:
            shares = cluster_shares(reference, labels, rows=rows)
        self.merge_tree_ = merge_tree(shares.T @ shares, np.bincount(components), _OVERLAP)
        joined, self.labels_ = labels, components.copy()
        if self._can_join():
            joined = joined_draws(labels, self.merge_overlap, _OVERLAP, rows=rows)
            self.labels_, dropped = drop_unsupported(
                self.merge_tree_.cut(self.merge_overlap)[components],
                labels,
                joined,
                random_state=seed,
            )
            info["dropped"] += dropped
            info["support"] = support(self.labels_, labels, joined).tolist()
        self.merged_n_clusters_ = np.array([int(draw.max()) + 1 for draw in joined])

    def _can_join(self):
        """Whether components are to be joined, and there are draws enough to say which."""
        return self.merge_overlap is not None and self.posterior_.n_stored >= LEAST_DRAWS

    def _warn_if_not_converged(self):
        super()._warn_if_not_converged()
        if self.merge_overlap is not None and not self._can_join():
            warn(
                f"components that overlap are joined from {LEAST_DRAWS} draws on, got "
                f"{self.posterior_.n_stored}: labels_ are component_labels_. Raise n_draws, or set "
                "merge_overlap=None",
                ConvergenceWarning,
            )

    def _moments_over_sweeps(self, X, columns):
        """Mean and variance of missing cells over the sweeps of all chains, as `TrainingCells` has
        them; ``columns`` are those of the numbers that the model says of a row.
        """
        rows, values = np.nonzero(TrainingCells.numbers(X, columns))
        mean, variance = np.empty((2, len(rows)))
        for p, part in enumerate(self._prior.parts):
            of_chains = []
            for state in self.posterior_.final_states:
                # A table of several kinds keeps one family for each.
                family = state["family"].get(f"part{p}", state["family"])
                weight = float(state["n_imputed"])
                of_chains.append((weight, family["imputed_mean"], family["imputed_square"]))
            # A family has its numbers row by row too, and each row in the order of its columns.
            place = np.full(X.shape[1], -1)
            place[part.columns] = np.arange(len(part.columns))
            own = np.flatnonzero(place[columns[values]] >= 0)
            own = own[np.lexsort((values[own], place[columns[values[own]]], rows[own]))]
            mean[own], variance[own] = over_chains(of_chains)
        return mean, variance

    def _label_draws(self):
        """Labels of at most 300 evenly spaced draws, each (n_samples,)."""
        return [draw["label"] for draw in self.posterior_.evenly_spaced(300)]

    def _search_work(self, X):
        """Trial moves that the partition search may make: about as long as the sampling."""
        n_sweeps = self.n_warmup_ + self.n_draws_ * self.posterior_.sweeps_per_draw
        mean_k = self.posterior_.traces["n_clusters"].mean()
        return int(max(1e8, self.n_chains * n_sweeps * X.size * mean_k))

    # -- one draw

    def _standard(self, X):
        with np.errstate(over="ignore"):
            return (X - self._center) / self._scale

    def _rows(self, X):
        return self._as_rows(self._standard(X))

    def _as_rows(self, standard):
        return Rows(standard, self._prior)

    def _log_weights(self, draw):
        return log_weights(draw, self._prior)

    def _log_densities(self, rows, draw):
        return log_densities(rows, draw, self._prior, self._log_weights(draw))

    def _companion_table(self, draw):
        """|c and r_k| / |c| for the draw's blocks c and the clusters r_k, and a column for new."""
        n_blocks = len(draw["n_members"]) - 1
        table = np.zeros((n_blocks + 1, self.n_clusters_ + 1))
        table[:-1, :-1] = companion_table(
            draw["label"].astype(np.int32), n_blocks, self.labels_, self.n_clusters_
        )
        table[-1, -1] = 1.0
        return table

    def _companion_shares(self, X, new):
        """Shares of the clusters and, last, of a new one if that counts: rows sum to one."""
        draws = self._prediction_draws()
        tables = [self._companion_table(draw) for draw in draws]

        def shares(start, stop):
            rows = self._rows(X[start:stop])
            level = np.full(stop - start, -np.inf)
            sums = np.zeros((stop - start, self.n_clusters_ + 1))
            # Summed over draws before they are normalised: draws that explain the row count more.
            for draw, table in zip(draws, tables, strict=True):
                log_p = self._log_densities(rows, draw)
                if not new:
                    # Before the sums: far out a new block would drown the others in rounding.
                    log_p[:, -1] = -np.inf
                accumulate_shares(log_p, table, level, sums)
            return rows.unsort(sums / sums.sum(axis=1, keepdims=True))

        return self._by_row_blocks(shares, len(X))

    def _in_units(self, mean, variance):
        """What fills missing cells and its deviation, in the units of X; levels come last."""
        d = len(self._center)
        mean, levels = np.split(mean, [d], axis=1)
        variance = variance[:, :d].copy()
        for part in self._parts_of(CategoricalPrior):
            for c, j in enumerate(part.columns):
                p = levels[:, part.level_start[c] : part.level_start[c + 1]]
                mean[:, j], variance[:, j] = self._level_moments(j, p)
        with np.errstate(over="ignore"):  # inf, as where a component has no second moment
            return mean * self._scale + self._center, np.sqrt(variance) * self._scale

    def _level_moments(self, column, p):
        """What fills cells of a column of levels, and its variance; p is (n_cells, n_levels)."""
        highest = p.max(axis=1)
        value = p[:, 1] if self.families_[column] == "bernoulli" else p.argmax(axis=1)
        return value, highest * (1 - highest)

    def _parts_of(self, kind):
        return [part for part in self._prior.parts if isinstance(part, kind)]


def _work_of_sweep(n_clusters, X, prior, algorithm):
    """Nominal seconds of one core for a sweep of one chain with so many clusters.

    Fitted to what sweeps of tables of 60 to 30,000 rows and 1 to 30 columns take.
    """
    n, d = X.shape
    per_row_and_cluster, per_row_divided, per_cluster = 20.0 + 2.0 * d, 300.0 + 2.0 * d, 1_000.0
    gaussian = prior.gaussian
    if gaussian is not None:
        real = len(gaussian.columns)
        full = gaussian.covariance_type == "full"
        n_rounds = rounds_in_a_sweep(n, real, real if full else 1) if prior.learned else 1
        if full:
            holes = np.isnan(X[:, gaussian.columns]).any(axis=1).mean()
            per_row_and_cluster += 0.08 * real**2 + holes * (100.0 + 0.27 * real**3)
            per_row_divided += 1.2 * real**2
            per_cluster += n_rounds * (1_500.0 + 20.0 * real**2 + 0.2 * real**3)
        else:
            per_cluster += n_rounds * 250.0 * real
    per_row = 250.0 + n_clusters * per_row_and_cluster
    # A pass over all rows at once takes a third of one over rows one by one.
    n_rows = {"collapsed": n, "parallel": n / 3 + min(n, SUBSET), "gibbs": n / 3}[algorithm]
    # As many splits and merges as half the clusters divide about half of the rows. In nanoseconds;
    # every sweep costs some whatever its rows do.
    return 1e-9 * (
        20_000.0 + n_rows * per_row + 0.5 * n * per_row_divided + n_clusters * per_cluster
    )


def _partition_figures(posterior):
    """Distance of draws to the consensus of each chain, of at most 100 draws in all."""
    per_chain = posterior.n_stored // posterior.n_chains
    n_taken = min(per_chain, max(MIN_DRAWS, _DRAWS_FOR_DISTANCES // posterior.n_chains))
    if n_taken < MIN_DRAWS:
        return {}
    chosen = [(2 * i + 1) * per_chain // (2 * n_taken) for i in range(n_taken)]
    labels = [[posterior[c, t]["label"] for t in chosen] for c in range(posterior.n_chains)]
    return {"distance_to_consensus": distances_to_consensus(labels)}


def _fixed(value):
    """None for "sample", else the number."""
    return None if isinstance(value, str) else float(value)


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


def _check_count(name, value):
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")


def _check_pair(name, value):
    """Two numbers that leave start values and log densities in the range of floats."""
    numbers = [x for x in value if isinstance(x, Real) and not isinstance(x, bool)]
    if len(value) != 2 or len(numbers) != 2 or not all(1e-10 <= x <= 1e10 for x in numbers):
        raise ValueError(f"{name} must be two positive numbers, 1e-10 to 1e10, got {value!r}")


def _make_sampler(bit_generator, chain, *, X, prior, start=None, **options):
    """The sampler of one chain on standardised X; runs where the chain runs."""
    start = start or STARTS[chain % len(STARTS)]
    labels = start_labels(start, X, prior, np.random.Generator(bit_generator))
    return Sampler(X, prior, labels, bit_generator, **options)
