"""DirichletProcessMixture: clusters and densities without a given number of clusters."""

from functools import partial
from numbers import Integral, Real
from types import NoneType
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_array, validate_data

from skbnp.dirichlet_process_mixture._cells import CellsMixin
from skbnp.dirichlet_process_mixture._clustering import ClustersMixin
from skbnp.dirichlet_process_mixture._collections import CollectionFitMixin, KeptRows
from skbnp.dirichlet_process_mixture._model import (
    STARTS,
    Prior,
    draw_joint,
    start_labels,
)
from skbnp.dirichlet_process_mixture._parameters import MixtureParameters
from skbnp.dirichlet_process_mixture._predictive import (
    Rows,
    log_densities,
    log_weights,
    sample_row,
)
from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.dirichlet_process_mixture._saved import check_draw, check_fitted
from skbnp.dirichlet_process_mixture._searching import kind_of_sampler
from skbnp.dirichlet_process_mixture._standard_prior import PriorMixin
from skbnp.dirichlet_process_mixture._sweep import in_order
from skbnp.dirichlet_process_mixture._table import (
    Table,
    advise_on_truth_values,
    is_plainly_real,
    may_be_answers,
)
from skbnp.dirichlet_process_mixture._training_rows import TrainingRows, WatchedRows
from skbnp.dirichlet_process_mixture._work import work_of_sweep
from skbnp.dirichlet_process_mixture.families import FAMILIES, KINDS
from skbnp.dirichlet_process_mixture.records._sampler import RecordSampler
from skbnp.dirichlet_process_mixture.records._service import RowsInMemory
from skbnp.mcmc.diagnostics import MIN_DRAWS
from skbnp.mcmc.posterior_diagnostics import evenly
from skbnp.summaries.consensus import distances_to_consensus
from skbnp.summaries.joining import (
    MergeTree,
)
from skbnp.units import Units

# "auto" goes over to the parallel algorithm above so many rows.
_MANY_ROWS = 20_000
# Draws whose distance to the consensus of each chain is looked at.
_DRAWS_FOR_DISTANCES = 100

# What columns of whole numbers are called.
_NAMES_OF_WHOLE = tuple(name for name, kind in KINDS.items() if kind.is_whole)

# What `sample` says of a prior without bounds to speak of.
_TOO_WIDE = (
    "the prior is so wide that rows drawn from it leave the range of floats: raise "
    "degrees_of_freedom_prior or mean_precision_prior, or lower prior_scale"
)


class DirichletProcessMixture(
    CollectionFitMixin, ClusterMixin, ClustersMixin, CellsMixin, PriorMixin, MixtureParameters
):
    r"""Mixture with an unknown number of components, by Markov chain Monte Carlo.

    .. math::

        \rho \sim \mathrm{PY}(\alpha, d), \qquad \theta_c \sim H \text{ for each block } c,
        \qquad x_i \mid z_i = c \sim F(\theta_c)

    with :math:`\alpha` the concentration and :math:`d` the discount: :math:`d = 0` is the
    Dirichlet process, :math:`0 < d < 1` the Pitman-Yor process. With ``n_components=M`` the mixture
    is finite with weights :math:`\mathrm{Dirichlet}(\alpha/M, \ldots, \alpha/M)`, which is the
    member :math:`d = -\alpha/M` of the same family. With a law for ``n_components`` M is
    sampled too and the weights are :math:`\mathrm{Dirichlet}(\gamma, \ldots, \gamma)`: a mixture of
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
    labels_ : ndarray or dask.array.Array of shape (n_samples,)
        Cluster of each training row, numbered by decreasing size: components that overlap are
        joined, and clusters that fewer than half of the draws support go to the others, unless
        that would leave one cluster without support. Lazy where X came from Dask.
    n_clusters_ : int
        Number of clusters in `labels_`.
    component_labels_ : ndarray of shape (n_samples,)
        Consensus partition of the draws, before any join: each component about a Gaussian.
        Without the clusters whose gain in expected loss is within twice its Monte Carlo error.
        Rows that lack cells count as if complete, and are of the component that is then the most
        probable by the cells they have; not for "map", nor above 20,000 rows.
    merge_tree_ : skbnp.summaries.joining.MergeTree
        Which components overlap most, joined two by two down to one:
        ``merge_tree_.cut(0.1)[component_labels_]`` is a cut of one's own, in which rows that lack
        cells follow their component. `MergeTreeDisplay` draws it.
    merged_n_clusters_ : ndarray of int of shape (n_draws,)
        Number of clusters of at most 40 evenly spaced draws, the blocks of each joined by the same
        rule: how sure the rule is of their number. No calibrated posterior of the number of
        classes. That of components: ``posterior_.traces["n_clusters"]``.
    expected_loss_ : float
        Posterior expected loss of `component_labels_`: nats for "vi" and "map", pairs for
        "binder"; over at most 300 evenly spaced draws.
    partition_info_ : dict
        What `skbnp.summaries.consensus.stable_consensus` says of `component_labels_`; the clusters
        ``dropped`` before and after joins; the ``support`` of those of `labels_`, with rows that
        lack cells as if complete; the numbers of ``copies``, rows in components of rows that are
        equal in all real columns, and of ``near_copies``; ``ties``, each a real ``column``, the
        largest ``share`` of the rows that a chain's last draw has in components of one value of it,
        and the ``n_chains`` in which that is a tenth or more; ``dependent``, the same, from nine
        tenths on, of components in which real ``columns`` follow from one another by one law, {}
        without; the ``merge_overlap`` of the fit; and ``joined_across``, the share of the pairs of
        rows of different clusters that draws, joined by the same rule, have together.
    kept_rows_ : ndarray of int
        Numbers of the training rows in memory: all, or 100,000 of a longer collection.
    posterior_ : skbnp.mcmc.posterior.Posterior
        The draws, with traces, R-hat and effective sample sizes. A draw holds ``label`` of every
        row and, for standardised X, the posterior statistics of its clusters and last of the
        empty one: ``n_members``; ``mean``; and ``factor`` U with Psi = U^T U ("full") or
        ``count`` of observed cells and ``rate`` of the inverse gamma ("diag", "spherical"); with
        full covariances also the ``imputed`` missing real cells, row by row. Draws of collections
        of more than 100,000 rows work ``label`` and ``imputed`` out when they are asked for, of the
        rows in memory; `draw_labels` gives the labels of all rows. The density in
        ``posterior_.log_likelihood()`` is that of a row given all other rows and their clusters.
    X_imputed_ : ndarray or frame of shape (n_samples, n_features)
        Training data with each missing cell replaced by its posterior mean (a name by the most
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
    n_chains_ : int
        Number of chains.
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
    skbnp.processes.mfm : The same for a law of ``n_components``.

    Notes
    -----
    A sweep is a collapsed Gibbs pass over the rows [1]_ or what `sampler` says, split-merge
    proposals [2]_ [4]_, and updates of concentration, discount and prior scale. For N rows, K
    clusters and d features it costs O(N K d^2) with full covariance, O(N K d) otherwise; a row with
    missing cells under full covariance O(K d^3).

    X may be a Dask array or frame, a memory map, a Zarr array or an HDF5 dataset. Of these, and of
    arrays of real columns, 100,000 rows are kept in memory where there are more: attributes of
    training rows are of those, the draws and `labels_` of all. See the user guide on rows beyond
    one memory.

    X is standardised internally; all answers are in its own units. float32 input is computed in
    float64 (up to 100,000 rows a copy of twice its size). Sparse X is taken where all columns are
    binary or counts, and made dense. `sample_weight` and `partial_fit` are not available. The
    number of clusters is not a consistent estimate of the number of components of a population that
    is not such a mixture: skewed clusters are covered by several components. These overlap, and
    every draw cuts them in its own way: `labels_`, of least expected loss [3]_, joins them [7]_.

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

    _parameters_of_laws = ()
    _reported_traces = ("log_density", "n_clusters", "concentration", "largest_cluster")
    _findings = "partitions"
    _fewest_values = 2
    _saved_types = (
        *(Prior, *FAMILIES, Table, TrainingRows, KeptRows),
        *(MergeTree, Units),
    )
    _fitted_attributes: ClassVar[dict] = {
        **MixtureParameters._fitted_attributes,
        "labels_": np.ndarray,
        "_kept_labels": np.ndarray,
        "n_clusters_": Integral,
        "component_labels_": np.ndarray,
        "merge_tree_": MergeTree,
        "merged_n_clusters_": np.ndarray,
        "expected_loss_": Real,
        "partition_info_": dict,
        "families_": np.ndarray,
        "algorithm_": str,
        "_table": (Table, NoneType),
        "_units": Units,
        "_prior": Prior,
        "_training_rows": TrainingRows,
        "_sure_rows": (np.ndarray, NoneType),
        "_n_features_out": Integral,
    }
    _not_always_fitted = (
        *MixtureParameters._not_always_fitted,
        *("labels_", "_kept_labels", "_collection", "_fitting", "_sure_rows"),
    )
    _never_in_files = (*MixtureParameters._never_in_files, "_collection")
    _may_hold: ClassVar[dict] = {
        **MixtureParameters._may_hold,
        "X": (np.nan,),
        **dict.fromkeys(["missing_variance", "imputed_square"], (np.inf,)),
    }

    # -- prediction

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

    @property
    def levels_(self):
        """The levels of each categorical column in sorted order, None for the other columns."""
        # A file holds levels in the table alone, which writes intervals and dates as plain data.
        if "_table" not in vars(self):
            raise AttributeError("levels_ is there once fit has seen X")
        return [None] * self.n_features_in_ if self._table is None else self._table.levels

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
        rng = self._generator(n_samples, random_state)
        X = np.empty((n_samples, self.n_features_in_))
        labels = np.empty(n_samples, dtype=np.intp)
        for rows, draw in self._chosen_draws(n_samples, rng):
            weight, table = np.exp(self._log_weights(draw)), self._companion_table(draw)
            blocks = rng.choice(len(weight), size=len(rows), p=weight / weight.sum())
            for i, k in zip(rows, blocks, strict=True):
                with np.errstate(over="ignore"):
                    X[i] = sample_row(draw, self._prior, k, rng)
                labels[i] = rng.choice(table.shape[1], p=table[k]) if k < len(table) else -1
        return self._as_drawn(X), labels

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
        state, X = self._joint_from_prior(n_samples, self._generator(n_samples, random_state))
        return self._as_drawn(X), state["label"]

    def _joint_from_prior(self, n_samples, rng):
        """A draw from the prior: a state, and standardised rows."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            try:
                return draw_joint(self._prior, n_samples, rng)
            except np.linalg.LinAlgError as error:
                raise ValueError(_TOO_WIDE) from error

    def _prior_chain(self, rng):
        state, X = self._joint_from_prior(len(self._training_rows.X), rng)
        self._in_range(X)  # or an error: a chain needs finite rows
        start = {name: state[name] for name in ("concentration", "discount", *self._prior.start())}
        return Sampler(X, self._prior, state["label"], rng.bit_generator, start=start), X

    def _as_drawn(self, X):
        """Standardised rows that were drawn, in the form of the training table."""
        return self._as_sampled(self._in_range(X))

    def _in_range(self, X, drawn=True):
        """Standardised rows in the units of X, those cells that were drawn being finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            X = self._units.from_visible(X)
        if not np.isfinite(X, where=drawn, out=np.ones(X.shape, dtype=bool)).all():
            raise ValueError(_TOO_WIDE)
        return X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = self.family != "gaussian"
        # By default those of arrays are real.
        tags.input_tags.categorical = self.family not in ("gaussian", "auto")
        tags.input_tags.sparse = self.family in _NAMES_OF_WHOLE
        return tags

    def _as_floats(self, X, reset=True):
        """X as float64, levels as codes; a table that is not all real is read by its columns."""
        if reset:
            self._table = self._table_of(X)
        if self._table is None:
            X = super()._as_floats(X, reset)
            if reset:
                self.families_ = np.full(X.shape[1], "gaussian")
            return X
        validate_data(self, X, reset=reset, skip_check_array=True)
        X = self._table.encode(X, self._form.marks)
        return check_array(X, ensure_all_finite="allow-nan", input_name="X")

    def _table_of(self, X):
        """How the columns of X are read and their `families_`; None where all are just real."""
        if issparse(X) and isinstance(self.family, str) and self.family not in _NAMES_OF_WHOLE:
            raise TypeError(
                "Sparse data was passed for X, which is taken where all columns are counts or of "
                "two values: write family='poisson' or 'bernoulli', or X.toarray()"
            )
        if is_plainly_real(X, self.family):
            advise_on_truth_values(X, self.family)
            return None
        validate_data(self, X, skip_check_array=True)
        table = Table(X, self.family, self._form.labels(), self._form.marks)
        self.families_ = np.array(table.families)
        if self.family == "auto" and (self.families_ == "gaussian").all():
            return None
        return table

    def _columns(self, X):
        return super()._columns(X) if self._table is None else self._table.decode(X)

    def _guessed_columns(self):
        return () if self._table is None else self._table.guessed

    def _as_numbers(self, X):
        return X if self._table is None else self._table.as_numbers(X)

    def _cells_that_stay(self, X):
        return () if self._table is None else self._table.other_cells(X, self._form.marks)

    def _whole_columns(self):
        guessed = [int(j) for j in self._guessed_columns() if (self.levels_[j] % 1 == 0).all()]
        return np.array([*self._columns_of(*_NAMES_OF_WHOLE), *guessed], dtype=np.intp)

    def _lattice_columns(self, X):
        """Real ones that nobody has said to be so; and counts that may be codes or answers."""
        if self.family != "auto" and not isinstance(self.family, dict):
            return []
        said = self.family if isinstance(self.family, dict) else ()
        real, counts = self._columns_of("gaussian"), self._columns_of("poisson")
        found = [*real, *(j for j in counts if may_be_answers(X[:, j]))]
        return sorted(int(j) for j in found if self._label(j) not in said)

    def _advice_on_lattices(self, columns):
        return (
            "names of groups, answers and counts have laws of their own: family=" + repr(
                dict.fromkeys([self._label(j) for j in columns[:3]], "categorical")
            ) + " for names of groups and for answers such as 1 to 5, which as counts tell no "
            "clusters apart; 'poisson' for counts, 'gaussian' if they are measurements"
        )  # fmt: skip

    def _nominal_columns(self):
        return self._columns_of(*[name for name, kind in KINDS.items() if kind.has_levels])

    def _auto_lengths(self, X):
        n = self._n_training(X)  # of many rows fewer draws tell as much, and each takes longer
        return (100, 100) if n > 100_000 else (200, 150 if n >= 5_000 else 300)

    def _work(self, X):
        work = partial(
            work_of_sweep,
            n=self._n_training(X),
            X=self._training_rows.X,
            prior=self._prior,
            algorithm=self.algorithm_,
        )
        least = min(map(work, (1.0, 2.0, 3.0)))
        return least, lambda traces: work(float(traces["n_clusters"].mean()))

    def _density(self, X, rows):
        return WatchedRows(self._training_rows.X, rows, self._prior, self._units)

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
        if self._is_fitting_collection():
            return self._prepare_collection(X)
        self._check_parameters(X)
        self._units = self._fitted_units(X)
        settings = self._sampler_settings()
        self.algorithm_ = settings.algorithm
        if settings.algorithm == "auto":
            self.algorithm_ = "collapsed" if len(X) <= _MANY_ROWS else "parallel"
        standard = self._units.to_visible(X)
        self._prior = self._standard_prior(standard)
        self._training_rows = TrainingRows(standard, self._prior, self._units)
        return partial(
            _make_sampler,
            X=standard,
            prior=self._prior,
            algorithm=self.algorithm_,
            for_rows=self._row_threads(),
            n_split_merge=settings.n_split_merge,
            split_merge=settings.split_merge,
            log_jacobian=-float(np.sum(~np.isnan(X), axis=0) @ np.log(self._units.scale)),
            n_warmup=self.n_warmup,
        )

    def _about_data(self):
        levels = [None if one is None else [repr(x) for x in one.tolist()] for one in self.levels_]
        return [list(self.families_), levels, *self._about_collection()]

    def _attach_rows(self):
        self._attach_kept_rows()
        super()._attach_rows()
        self.posterior_.attach_figures(_partition_figures)

    def _check_draw(self, draw):
        rows = self._training_rows
        check_draw(draw, self._prior, rows.X, all_rows=not isinstance(rows, KeptRows))
        self._check_record_of(draw)

    @classmethod
    def _fitted_of_file(cls, fitted):
        fitted = super()._fitted_of_file(fitted)
        if "_center" not in fitted:
            return fitted
        kept = {name: fitted[name] for name in fitted if name not in ("_center", "_scale")}
        return kept | {"_units": fitted["_training_rows"].units}

    def _check_loaded(self):
        check_fitted(self)

    def _columns_of(self, *families):
        return np.flatnonzero(np.isin(self.families_, families))

    def _prepared(self, A):
        return Rows(A, self._prior)

    def _log_weights(self, draw):
        return log_weights(draw, self._prior)

    def _law_of(self, draw, t):
        return draw | {"log_weight": self._log_weights(draw)}

    def _log_joint_of(self, law, t, rows, new=True):
        """Of the blocks of a draw and last of a new one, (n_rows, n_blocks + 1)."""
        return rows.unsort(log_densities(rows, law, self._prior, law["log_weight"]))

    # -- after sampling

    def _summarise(self, X):
        self._find_clusters(X)
        self._keep_training_cells(X)
        self._leave_collection(X)


def _partition_figures(posterior):
    """Distance of draws to the consensus of each chain, of at most 100 draws in all."""
    per_chain = posterior.n_stored // posterior.n_chains
    n_taken = min(per_chain, max(MIN_DRAWS, _DRAWS_FOR_DISTANCES // posterior.n_chains))
    if n_taken < MIN_DRAWS:
        return {}
    chosen = evenly(per_chain, n_taken)
    labels = [[posterior[c, t]["label"] for t in chosen] for c in range(posterior.n_chains)]
    return {"distance_to_consensus": distances_to_consensus(labels)}


def _make_sampler(
    bit_generator,
    chain,
    *,
    X,
    prior,
    algorithm="collapsed",
    for_rows=in_order,
    start=None,
    n_warmup="auto",
    **options,
):
    """The sampler of one chain on standardised X; runs where the chain runs."""
    start = start or STARTS[chain % len(STARTS)]
    labels = start_labels(start, X, prior, np.random.Generator(bit_generator))
    if algorithm == "parallel":
        rows = RowsInMemory(X, prior, prior.start(), for_rows)
        return RecordSampler(rows, prior, labels, bit_generator, **options)
    kind = kind_of_sampler(X, prior, algorithm, n_warmup)
    return kind(X, prior, labels, bit_generator, algorithm=algorithm, for_rows=for_rows, **options)
