"""TreeFactorModel: densities, holes and factors by low-rank Gaussians that share loadings."""

from functools import partial
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.completion import CompletionMixin
from skbnp.estimators.density import DensityMixin
from skbnp.estimators.factors import OutputsMixin
from skbnp.estimators.interval_calibration import CalibratedCellsMixin
from skbnp.estimators.tables import FARTHEST
from skbnp.mcmc.caller import warn
from skbnp.mcmc.rows import row_blocks
from skbnp.reports.factors import of_tree
from skbnp.tree_factor_model._clustering import ClustersMixin
from skbnp.tree_factor_model._missing_cells import draw_cells
from skbnp.tree_factor_model._model import Prior, draw_joint
from skbnp.tree_factor_model._new_branches import with_new_branches
from skbnp.tree_factor_model._new_chain import make_sampler
from skbnp.tree_factor_model._parameters import TreeParameters
from skbnp.tree_factor_model._predictive import (
    branch_probabilities,
    conditional_moments,
    expected_scores,
    inverted,
    log_densities,
    prepared,
    sample_rows,
)
from skbnp.tree_factor_model._rows import Rows
from skbnp.tree_factor_model._sampler import Sampler
from skbnp.tree_factor_model._saved import FIELDS, NOT_IN_DRAWS, check_prior, checked_draw
from skbnp.tree_factor_model._scaling import scaling_of
from skbnp.tree_factor_model._standard_prior import PriorMixin, parameters_of_now
from skbnp.tree_factor_model._training_rows import TrainingRows, WatchedRows
from skbnp.units import Units, check_units, standard_units

# Columns from which on there are so many chains with so many sweeps of warm-up and draws. In many
# columns rows never leave the branch that the start gave them: chains stay apart, and many starts
# tell more than long chains, at the same cost.
_CHAINS = ((101, 32, 50, 15), (40, 16, 110, 25), (0, 4, 500, 200))

# Chains from which on densities are means over more draws, and how many times as many: the chains
# differ so much there that the logarithm of a mean over few of them is too low.
_MANY_CHAINS, _MORE_DRAWS = 8, 5
# Numbers in the loadings of these draws beyond which they are not kept for the next rows.
_MOST_KEPT = 10_000_000
# New branches that stand for all, below each node.
_NEW_BRANCHES = 4


class TreeFactorModel(
    CalibratedCellsMixin,
    OutputsMixin,
    ClustersMixin,
    CompletionMixin,
    DensityMixin,
    PriorMixin,
    TreeParameters,
):
    r"""Tree-structured infinite factor model: low-rank Gaussians whose covariances share terms.

    .. math::

        b_i \sim \mathrm{nCRP}(\alpha), \qquad
        y_i \mid b_i = b \sim \mathcal{N}\Big(m_b + \sum_l x_{il}\, d_{b_l},\;
        (\kappa_b \Lambda)^{-1}\Big), \qquad x_{il} \sim \mathcal{N}(0, 1/\psi_{b l})

    A branch b is a path of `max_depth` nodes down a tree, each with a loading :math:`d`, and a leaf
    with a mean :math:`m_b`. Branches that share nodes share loadings. Paths follow a nested Chinese
    restaurant process that may branch below `branch_levels`. Its concentration at the k-th of them
    is :math:`\alpha_l \sim \mathrm{Gamma}(\text{shape}, \text{rate} / \rho^{k - 1})`, where
    :math:`\rho` is `concentration_decay`, or fixed. Loadings shrink down the path:

    .. math::

        d_{np} \sim \mathcal{N}\big(0, (\phi_{np} \tau_n)^{-1}\big), \quad
        \phi_{np} \sim \mathrm{Gamma}(\nu/2, \nu/2), \quad
        \tau_n = \prod_{a \text{ above and at } n} \zeta_a

    with :math:`\zeta \sim \mathrm{Gamma}(c_1, 1)` at level 1 and :math:`\mathrm{Gamma}(c_2, 1)`
    deeper; :math:`m_{bp} \sim \mathcal{N}(0, 1/\xi_p)`, :math:`\xi_p \sim \mathrm{Gamma}(g_0,
    h_0)`, :math:`\lambda_p \sim \mathrm{Gamma}(a_0, b_0)`, :math:`\psi_{bl} \sim
    \mathrm{Gamma}(a_\psi, a_\psi)` and :math:`\kappa_b \sim \mathrm{Gamma}(a_\kappa, a_\kappa)`.
    Gamma laws are by shape and rate, and all of this is for X centred and divided as `scaling`
    says. Density, imputation and inversion average over branches and draws. NaN marks a missing
    entry, which must be missing at random.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each training row, by decreasing size: branches of the reference draw, of which
        those that overlap are one cluster. Of at most 300 evenly spaced draws the reference draw is
        the one whose clusters have the least expected variation of information to those of all;
        where all rows are one cluster it is the draw with the highest log joint density. Trees are
        never averaged over draws.
    component_labels_ : ndarray of shape (n_samples,)
        Branch of each training row in the reference draw, by its place in the leaves of `tree_`.
    n_clusters_ : int
        Number of clusters in `labels_`.
    expected_loss_ : float
        Posterior expected loss of `component_labels_`, variation of information in nats.
    partition_info_ : dict
        How branches became clusters. ``dropped`` has an entry for each cluster that had too little
        support in the draws, whose rows went to others. ``support`` has, for each cluster left,
        the share of the draws that have a branch or a cluster much like it; see
        `skbnp.summaries.consensus`. ``n_clusters_of_chains`` has the median number of clusters in
        the draws of each chain, and ``merge_overlap`` is that of the fit.
    tree_ : dict of ndarray
        The tree of the reference draw: ``parent`` (-1 at level 1), ``level``, ``count`` of rows and
        ``loadings`` of its nodes; ``leaf_node``, ``leaf_count`` and ``leaf_mean`` of its branches.
        Loadings and means are in the units of X.
    X_imputed_, X_imputed_std_ : ndarray or frame of shape (n_samples, n_features)
        The training table with its missing cells filled as `impute` does, and their standard
        deviations, 0 for observed cells. Only if X had missing cells.
    std_scale_, new_std_scale_ : float
        Factors of the standard deviations of filled cells, of training rows and of others. Only
        with ``interval_calibration="holes"``.
    n_hidden_cells_ : int
        Hidden cells of training rows that `std_scale_` is taken from, 0 where they were too few.
        Only with ``interval_calibration="holes"``.
    posterior_ : skbnp.mcmc.posterior.Posterior
        The draws, with traces, R-hat and effective sample sizes. A draw is a tree with its
        parameters for standardised X, and the ``branch`` of each row.
    max_depth_ : int
        What "auto" came to.
    branch_levels_ : tuple of int
        What "auto" came to.
    init_ : str
        What "auto" came to.
    n_chains_ : int
        Chains, what "auto" came to.
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
    sklearn.decomposition.FactorAnalysis : One branch with a fixed number of factors.
    skbnp.processes.ncrp : The prior on paths on its own.
    skbnp.processes.multiplicative_gamma : The shrinkage prior on its own.

    Notes
    -----
    A sweep draws paths and leaf means with the scores integrated out [1]_. Then it draws the
    scores, all loadings and leaf means of a feature jointly, precisions and concentrations. For N
    rows, P features, B branches, K nodes and depth L it costs O(N B L (P + L) + P K L^2). A row
    whose pattern of holes no other row has costs O(B L^2 (P + L)). Where the last levels do not
    branch, the depth follows the data during warm-up and is then fixed. Loadings shrink along a
    branch as in [2]_; a mixture of factor analyzers shares none of them between components [3]_.

    Loadings are known only up to signs and rotations: look at covariances, branches and densities.
    float32 input is converted to float64, a copy of twice its size. Sparse X is refused.
    `sample_weight` and `partial_fit` are not available.

    References
    ----------
    .. [1] X. Zhang, D. B. Dunson and L. Carin (2011). Tree-structured infinite sparse factor
       model. Proceedings of the 28th International Conference on Machine Learning, 785-792.
    .. [2] A. Bhattacharya and D. B. Dunson (2011). Sparse Bayesian infinite factor models.
       Biometrika 98, 291-306.
    .. [3] M. Chen et al. (2010). Compressive sensing on manifolds using a nonparametric mixture of
       factor analyzers. IEEE Transactions on Signal Processing 58, 6140-6155.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp import TreeFactorModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 1)) * [1.0, 2.0, -1.0] + 0.1 * rng.normal(size=(60, 3))
    >>> model = TreeFactorModel(structure="single", n_warmup=100, n_draws=50, random_state=0)
    >>> bool(abs(model.fit(X).impute([[1.0, np.nan, -1.0]])[0, 1] - 2.0) < 0.2)
    True
    """

    _fills_training_table = True
    _parameters_of_laws = ("new_branch",)
    # Not the noise precision: only their priors tell it from the scales of the branches.
    _reported_traces = ("log_density", "n_branches")
    _fewest_rows = 2
    _findings = "trees"
    # With one path, or one row, no path is proposed.
    _moves_of_traces: ClassVar[dict] = {"n_branches": ("paths",)}
    _saved_types = (Prior, TrainingRows, Units)
    _fitted_attributes: ClassVar[dict] = {
        **TreeParameters._fitted_attributes,
        **CalibratedCellsMixin._scales_of_cells,
        "labels_": np.ndarray,
        "component_labels_": np.ndarray,
        "n_clusters_": Integral,
        "expected_loss_": Real,
        "partition_info_": dict,
        "tree_": dict,
        "max_depth_": Integral,
        "branch_levels_": tuple,
        "init_": str,
        "_units": Units,
        "_prior": Prior,
        "_reference": dict,
        "_training_rows": TrainingRows,
        "_n_features_out": Integral,
    }
    # Gaussian rows are Student-t ones with infinitely many degrees of freedom.
    _may_hold: ClassVar[dict] = {**TreeParameters._may_hold, "X": (np.nan,), "tail_df": (np.inf,)}

    # -- prediction

    # Its branches are labels, and the model a density before anything else.
    fit_predict = ClusterMixin.fit_predict

    def transform(self, X):
        """Expected scores of the nodes of the reference draw.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_nodes)
            Expectation given the row of the score of each node of `tree_`, 0 where the row's path
            does not hold the node.
        """
        A = self._modelled(self._check_new(X))
        law = self._kept("reference", lambda: prepared(self._reference), self._reference)

        def scores(start, stop):
            rows = Rows(A[start:stop])
            return expected_scores(rows, law, branch_probabilities(rows, law))

        return self._by_row_blocks(scores, len(A))

    def invert(self, Phi, v, noise_var=0.0):
        """Reconstruct rows from linear measurements: their mean, averaged over draws alike.

        The measurements of a row y are v = Phi y + e with e ~ N(0, `noise_var`). This is
        compressive sensing.

        Parameters
        ----------
        Phi : array-like of shape (n_measurements, n_features)
            Rows must be linearly independent unless `noise_var` is positive.
        v : array-like of shape (n_samples, n_measurements) or (n_measurements,)
            Measurements of each row, in the units that Phi and X give.
        noise_var : float, default=0.0
            Variance of the measurements' own noise; the noise of the features is in the model.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features) or (n_features,)
        """
        check_is_fitted(self, "posterior_")
        self._validate_params()
        for name, value in (("Phi", Phi), ("v", v)):
            if np.ma.is_masked(value):
                raise ValueError(f"{name} must not hold masked cells: leave such measurements out")
        Phi = check_array(Phi, dtype=np.float64, input_name="Phi")
        single = np.ndim(v) == 1
        v = check_array(v, dtype=np.float64, ensure_2d=False, input_name="v").reshape(
            (1, -1) if single else np.shape(v)
        )
        if Phi.shape[1] != self.n_features_in_ or v.ndim != 2 or v.shape[1] != len(Phi):
            raise ValueError(
                f"Phi must have {self.n_features_in_} columns and v one for each row of Phi, got "
                f"shapes {Phi.shape} and {v.shape}"
            )
        if not isinstance(noise_var, Real) or not 0.0 <= noise_var < np.inf:
            raise ValueError(f"noise_var must be a number >= 0, got {noise_var!r}")
        Phi_standard, v_standard = Phi * self._units.scale, v - Phi @ self._units.center

        def of_draw(draw, t, block):
            with np.errstate(over="ignore", invalid="ignore"):
                return inverted(Phi_standard, block, noise_var, draw)

        laws, y = self._prediction_laws(), np.empty((len(v), self.n_features_in_))
        try:
            for rows, parts in self._over_draws(v_standard, of_draw, sum, laws=laws):
                y[rows] = np.sum(parts, axis=0) / len(laws)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "Phi must have linearly independent rows where noise_var is 0"
            ) from error
        y = y * self._units.scale + self._units.center
        if not np.isfinite(y).all():
            raise ValueError(
                f"v must be within about {FARTHEST:g} standard deviations of what Phi makes of "
                "the training data"
            )
        return y[0] if single else y

    # -- before sampling

    def _auto_n_chains(self, X):
        width = self._width_that_freezes(X.shape[1])
        return next(n for least, n, *_ in _CHAINS if width >= least)

    def _auto_lengths(self, X):
        width = self._width_that_freezes(X.shape[1]) if self.n_chains == "auto" else 0
        return next(tuple(lengths) for least, _, *lengths in _CHAINS if width >= least)

    def _is_ensemble(self, n_features):
        return self.n_chains == "auto" and self._width_that_freezes(n_features) >= _CHAINS[-2][0]

    def _width_that_freezes(self, n_features):
        """The number of columns, 0 where rows change their branches or lengths are given."""
        freezes = self.structure != "single" and self.n_warmup == "auto"
        return n_features if freezes else 0

    def _density(self, X, rows):
        return WatchedRows(self._training_rows.X[rows], self._units)

    def _prepare(self, X):
        """Check the parameters against X, standardise it and say how to build a sampler."""
        n, d = X.shape
        self._advise()
        self._warn_of_copies(X)
        self._settle(n, d)
        scaling = scaling_of(X) if self.scaling == "auto" else self.scaling
        self._units = standard_units(X, scaling, keep_constant=True, named=self._named)
        constant = np.flatnonzero(np.nanmax(X, axis=0) == np.nanmin(X, axis=0))
        if constant.size:
            warn(
                f"X is constant in {self._named(constant)}, where only the prior bounds the noise "
                "precision; remove what says nothing",
            )
        self._prior = self._make_prior(d)
        standard = self._units.to_visible(X)
        self._training_rows = TrainingRows(standard, self._units)
        sampler = self._sampler_settings()
        return partial(
            make_sampler,
            X=standard,
            prior=self._prior,
            start=self.init_,
            n_children=self._start_children(n),
            path_update=sampler.path_update,
            birth=sampler.birth,
            for_rows=self._row_threads(),
            log_jacobian=-float(np.sum(~np.isnan(X), axis=0) @ np.log(self._units.scale)),
        )

    # -- after sampling

    def _summarise(self, X):
        self._summarise_partition()
        self.tree_ = self._tree_of(self._reference)
        self._n_features_out = len(self._reference["parent"])
        self._keep_training_cells(X)
        self._calibrate_cells(X)

    def _found(self, training):
        traces = self.posterior_.traces
        tree = of_tree(traces["depth"], traces["n_nodes"])
        return [*self._clusters_section(training), tree, self._association_section(training)]

    def _tree_of(self, draw):
        """The tree of a draw in the units of X."""
        count = np.zeros(len(draw["parent"]), dtype=np.intp)
        np.add.at(count, draw["leaf_node"], draw["leaf_count"])
        for node in range(len(count) - 1, -1, -1):
            if draw["parent"][node] >= 0:
                count[draw["parent"][node]] += count[node]
        return {
            "parent": draw["parent"].copy(),
            "level": draw["level"].copy(),
            "count": count,
            "loadings": draw["loadings"] * self._units.scale,
            "leaf_node": draw["leaf_node"].copy(),
            "leaf_count": draw["leaf_count"].copy(),
            "leaf_mean": draw["leaf_mean"] * self._units.scale + self._units.center,
        }

    # -- files

    @classmethod
    def _parameters_of_file(cls, parameters):
        return parameters_of_now(parameters)

    @classmethod
    def _fitted_of_file(cls, fitted):
        # Names that 0.1 had.
        fitted = {"n_clusters_" if k == "n_branches_" else k: x for k, x in fitted.items()}
        if "_center" in fitted:
            del fitted["_center"], fitted["_scale"]
            fitted["_units"] = fitted["_training_rows"].units
        return super()._fitted_of_file(fitted)

    def _check_draw(self, draw):
        checked_draw(draw, self._prior, len(self._training_rows.X))

    def _check_loaded(self):
        check_prior(self._prior, self.n_features_in_)
        found = (self.max_depth_, self.branch_levels_)
        if found != (self._prior.max_depth, self._prior.branch_levels):
            raise ValueError("max_depth_ and branch_levels_ must be those of the prior")
        check_units(self._units, self.n_features_in_, keep_constant=True)
        self._check_rows(self.n_features_in_)
        self._check_scales()
        tree = self._tree_of(self._reference)
        same = tree.keys() == self.tree_.keys() and all(
            np.array_equal(tree[name], self.tree_[name]) for name in tree
        )
        if not same or self._n_features_out != len(tree["parent"]):
            raise ValueError("tree_ must be that of the reference draw")
        self._check_clusters()

    # -- for ArviZ

    _draw_fields = tuple(field for field in FIELDS if field.name not in NOT_IN_DRAWS)

    def _axes(self):
        return super()._axes() | {"n_features": self._columns_axis()}

    def _block_means(self, draw):
        return self._units.from_visible(draw["leaf_mean"])

    def _prior_chain(self, rng):
        state, A = draw_joint(self._prior, len(self._training_rows.X), rng)
        return Sampler(A, self._prior, state, rng.bit_generator), A

    # -- one draw

    def _membership_draws(self, new):
        # The clusters are branches of the reference draw, whose tree `tree_` is.
        return self._prediction_draws() if new else [self._reference]

    def _laws_of_blocks(self, draws, new):
        if new or self.new_branch == "prior":
            rng = np.random.default_rng(self.seed_)
            draws = [with_new_branches(draw, self._prior, _NEW_BRANCHES, rng) for draw in draws]
        return [prepared(draw) for draw in draws]

    def _new_laws(self):
        return self._laws_of_blocks(self._prediction_draws(), new=False)

    def _density_laws(self):
        if self.n_chains_ < _MANY_CHAINS:
            return super()._density_laws()

        def laws():
            draws = self.posterior_.evenly_spaced(_MORE_DRAWS * self.predict_draws)
            return self._laws_of_blocks(draws, new=False)

        n_numbers = _MORE_DRAWS * self.predict_draws * self._reference["loadings"].size
        return self._kept("density", laws) if n_numbers <= _MOST_KEPT else laws()

    def _log_joint_of(self, law, t, rows, new=True):
        return log_densities(rows, law) + law.log_weight

    def _cell_moments_of(self, law, t, rows):
        return conditional_moments(rows, law)

    def _completer(self, are_training, X, holes):
        # Given the draw rows are independent, those of the training table too.
        standard, some = self._units.to_visible(X), np.flatnonzero(holes.any(axis=1))

        def complete(draw, rng):
            if self.new_branch == "prior":
                draw = with_new_branches(draw, self._prior, _NEW_BRANCHES, rng)
            out = standard.copy()
            for block in row_blocks(len(some)):
                rows = some[block]
                out[rows] = draw_cells(standard[rows], draw, rng)
            return out

        return complete

    def _sample_of(self, draw, n_rows, rng):
        if self.new_branch == "prior":
            draw = with_new_branches(draw, self._prior, _NEW_BRANCHES, rng)
        return sample_rows(draw, n_rows, rng)

    def _prepared(self, A):
        return Rows(A)
