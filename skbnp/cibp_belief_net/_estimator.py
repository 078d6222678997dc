"""CIBPBeliefNet: densities, holes and features by deep sparse networks of any width and depth."""

from functools import partial
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbnp.cibp_belief_net._model import Prior, checked_state, draw_joint
from skbnp.cibp_belief_net._new_chain import make_sampler
from skbnp.cibp_belief_net._parameters import BeliefNetParameters
from skbnp.cibp_belief_net._predictive import (
    expected_activations,
    fantasies_of,
    imputed_moments,
    judged_densities,
    sample_rows,
)
from skbnp.cibp_belief_net._predictive_laws import components_under, row_components
from skbnp.cibp_belief_net._prior_checks import check_prior
from skbnp.cibp_belief_net._sampler import Sampler
from skbnp.cibp_belief_net._standard_prior import PriorMixin
from skbnp.cibp_belief_net._start import n_start_clusters
from skbnp.cibp_belief_net._training_rows import TrainingRows, WatchedRows
from skbnp.estimators.cells_of_sweeps import CellsOfSweepsMixin
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.density import DensityMixin
from skbnp.estimators.factors import OutputsMixin
from skbnp.estimators.interval_calibration import CalibratedCellsMixin
from skbnp.estimators.network import NetworkMixin
from skbnp.mcmc.caller import warn
from skbnp.mcmc.fields import Field
from skbnp.summaries.reference import reference_draw
from skbnp.units import Units, check_units, ends_of_scale, steps

# Features beyond which every part of a sweep is slow.
_MANY_FEATURES = 10_000
# Sweeps that the work must allow for a warm-up in rounds.
_SWEEPS_OF_ROUNDS = 1_050
# Units that chains have in the end, at least, when work is counted.
_UNITS_TO_COME = 7.0
# Units that chains start with by default, at most, without and with row clusters, and rows that
# there are for each of them.
_INIT_UNITS, _INIT_UNITS_UNDER_CLUSTERS, _ROWS_PER_UNIT = 20, 40, 6
# Hidden layers at most, where rows have no clusters and `max_layers` is "auto".
_LAYERS = 3
# Columns from which rows have clusters by default, and chains are short and many: those freeze
# where they start, and no two at the same place. The work goes to more of them first, then to
# longer ones.
_MANY_COLUMNS = 40
_FEWEST_CHAINS, _MOST_CHAINS = 4, 16
_FEWEST_SWEEPS, _MOST_SWEEPS, _SHORT_DRAWS = 70, 300, 4
_MORE_WORK, _FEWEST_ROWS_OF_ENSEMBLE = 1.5, 150
# Particles of a row, of all that a draw has, below which its density is not trusted; and the share
# of rows of which that is said.
_LEAST_EFFECTIVE, _SOME_ROWS = 1.25, 0.1
# Ways of births under each value of `birth`; "auto": those that are known to pay.
_BIRTHS = {
    "auto": ("prior", "block"),
    "all": ("prior", "block", "matched"),
    "prior": ("prior",),
    "block": ("block",),
    "matched": ("matched",),
}


class CIBPBeliefNet(
    CalibratedCellsMixin,
    CellsOfSweepsMixin,
    OutputsMixin,
    NetworkMixin,
    DensityMixin,
    PriorMixin,
    BeliefNetParameters,
):
    r"""Deep sparse belief network whose width, depth and edges are inferred.

    .. math::

        a_{nk} \sim \mathcal{N}\Big(b_k + \sum_j Z_{jk} W_{jk} u_{nj},\; 1/\nu_k\Big), \qquad
        u_{nj} = \tanh(a_{nj} / 2)

    where the sum is over the parents j of unit k in the layer above. Layer 0 holds the columns of
    X; all other layers are hidden. The edges Z follow a cascading Indian buffet process, with mass
    :math:`\alpha_m` and concentration :math:`\beta_m` in layer m: the units of a layer are
    customers, and the dishes that they share are the units of the next layer. The network ends
    where nobody takes a dish.

    The weights of a layer are normal with a normal-gamma prior, and so are its biases. The
    precision of a unit is :math:`\nu_k \sim \mathrm{Gamma}(a_\nu, b_{\nu m})`, where
    :math:`b_{\nu m}` is gamma too. By default :math:`\alpha_m` and :math:`\beta_m` are uniform
    within bounds. Gamma laws are by shape and rate, and all of this is for X as `visible` scales
    it. A unit of low precision is nearly binary; one of high precision is nearly a deterministic
    function of its parents. NaN marks a missing cell; cells must be missing at random.

    Attributes
    ----------
    n_layers_ : int
        Number of hidden layers of the reference draw, which is the draw of the highest log joint
        density.
    layer_widths_ : ndarray of shape (`n_layers_`,)
        Number of units of each of its hidden layers, from the lowest up.
    n_edges_ : int
        Number of its edges.
    posterior_ : skbnp.mcmc.posterior.Posterior
        The draws, with traces (``n_layers``, ``n_units``, ``n_edges``, ``width1`` and others),
        R-hat and effective sample sizes. A draw is a network for X as it is scaled inside; see
        `network`.
    n_guard_rejections_ : int
        Number of proposals, in all chains, that were refused because of `max_units`.
    X_imputed_ : ndarray or frame of shape (n_samples, n_features)
        The training rows with missing cells replaced by their posterior means, over all sweeps
        after the warm-up. Only if X had missing cells; a frame of the kind, names and index of X
        where X was one.
    X_imputed_std_ : ndarray or frame of shape (n_samples, n_features)
        Posterior standard deviations of these cells, 0 for observed ones.
    std_scale_, new_std_scale_ : float
        Factors of the standard deviations of filled cells, of training rows and of others. Only
        with ``interval_calibration="holes"``.
    n_hidden_cells_ : int
        Hidden cells of training rows that `std_scale_` is taken from, 0 where they were too few.
        Only with ``interval_calibration="holes"``.
    visible_ : {"gaussian", "sigmoid"}
        How the columns entered the network.
    max_layers_ : int or None
        Largest number of hidden layers that there could be.
    row_clusters_ : bool
        Whether the activations of rows in that layer come from a mixture.
    n_chains_ : int
        Number of chains.
    n_warmup_ : int
        Number of warm-up sweeps.
    n_draws_ : int
        Number of draws per chain.
    seed_ : int
        Seed from which every chain got its own.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had any.

    See Also
    --------
    skbnp.samplers.BeliefNetSampler : How the model is sampled.
    skbnp.processes.cibp : The prior on networks on its own.
    skbnp.TreeFactorModel : Linear factors, for data without bounds.

    Notes
    -----
    A sweep draws, in this order, the activations, layer by layer; the edges, each with the weights
    and bias of its child integrated out, with births and deaths of units, weights and precisions;
    the row clusters; the missing cells; and the hyperparameters. For N rows, a layer of K units
    below p others costs O(N K p + N p^2) in matrix products, and O(K s p^2) for its edges where a
    unit has s of them. The acceptance ratio for births in [1]_ has its rate inverted and its count
    squared; it is corrected here.

    Hidden units have no fixed order and no fixed signs, so they cannot be compared across draws:
    `transform` uses one draw. Widths and edges mix slowly, more slowly than predictions do: expect
    `fit` to warn below 40 columns, from which on chains are many and meant to differ. Constant
    columns are set aside and restored. float32 input is copied to float64. Files of `save` hold the
    training rows, which ``posterior_.loo()`` needs; with `row_clusters` there is no ``loo``. Sparse
    X is refused. `sample_weight`, `partial_fit` and `predict` are not available: for regression,
    put the target among the columns and `impute` it.

    References
    ----------
    .. [1] R. P. Adams, H. M. Wallach and Z. Ghahramani (2010). Learning the structure of deep
       sparse graphical models. Proceedings of the 13th International Conference on Artificial
       Intelligence and Statistics, 1-8.
    .. [2] P. Dallaire, P. Giguere and B. Chaib-draa (2014). Learning the structure of probabilistic
       graphical models with an extended cascading Indian buffet process. AAAI.
    .. [3] R. M. Neal (2000). Markov chain sampling methods for Dirichlet process mixture models.
       Journal of Computational and Graphical Statistics 9, 249-265.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp import CIBPBeliefNet
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 1)) * [1.0, 2.0, -1.0] + 0.1 * rng.normal(size=(80, 3))
    >>> net = CIBPBeliefNet(n_chains=2, n_warmup=200, n_draws=50, random_state=0).fit(X)
    >>> bool(abs(net.impute([[1.0, np.nan, -1.0]])[0, 1] - 2.0) < 0.3)
    True
    """

    # Fantasies of a draw are worth keeping.
    _parameters_of_laws = ()
    _output_name = "unit"
    _level_name = "layer"
    _findings = "networks"
    _fewest_rows = 2
    _saved_types = (Prior, Units, TrainingRows)
    _fitted_attributes: ClassVar[dict] = {
        **BaseMCMCEstimator._fitted_attributes,
        **CalibratedCellsMixin._scales_of_cells,
        "n_layers_": Integral,
        "layer_widths_": np.ndarray,
        "n_edges_": Integral,
        "n_guard_rejections_": Integral,
        "visible_": str,
        "_units": Units,
        "_prior": Prior,
        "_reference": dict,
        "_training_rows": TrainingRows,
        "_n_features_out": Integral,
    }
    _may_hold: ClassVar[dict] = {**BaseMCMCEstimator._may_hold, "X": (np.nan,)}

    @property
    def max_layers_(self):
        return self._prior.max_layers

    @property
    def row_clusters_(self):
        return self._prior.row_clusters

    # -- prediction

    def impute(self, X, return_std=False, prior="network", n_burn_in=10, n_passes=20):
        """Fill missing cells with their mean given the row's observed ones, over all draws alike.

        Rows that `fit` has seen with the same holes are answered with `X_imputed_` and
        `X_imputed_std_`, from all sweeps after the warm-up, unless `prior` is "rows".

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing. A row without values gets the predictive mean.
        return_std : bool, default=False
            Also return the predictive standard deviation.
        prior : {"network", "rows"}, default="network"
            "rows" replaces the prior of the hidden activations by the smoothed activations of at
            most 1,000 training rows. This is often much more exact where rows come in kinds and
            `row_clusters_` is False. It needs `max_layers_` of 1, and what it fills is not from the
            posterior of the model.
        n_burn_in : int, default=10
            First passes of each inner chain, which are left out. There are inner chains with more
            than one hidden layer or without row clusters, in more than eight columns or where
            `visible` is "sigmoid".
        n_passes : int, default=20
            Passes that are kept after these, of each draw. A mean over few draws needs more.

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_features)
            Observed cells are those of X, bit for bit.
            A frame of the kind, names and index of X where that is one.
        std : ndarray or frame of shape (n_samples, n_features)
            Only if `return_std`: by the law of total variance over draws, 0 for observed cells.
        """
        check_is_fitted(self, "posterior_")
        if prior not in ("network", "rows"):
            raise ValueError(f"prior must be 'network' or 'rows', got {prior!r}")
        n_layers = self._prior.max_layers
        if prior == "rows" and n_layers != 1:
            raise ValueError(f"prior='rows' must have max_layers=1, got max_layers={n_layers!r}")
        for name, value, least in (("n_burn_in", n_burn_in, 0), ("n_passes", n_passes, 1)):
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")

        def of_draw(law, t, rows):
            draw, components, fantasies = law
            if prior == "rows" and len(draw["widths"]) > 1:
                components, fantasies = row_components(draw), None
            return imputed_moments(
                draw, rows, self.visible_, self.seed_, t, components=components,
                n_burn_in=int(n_burn_in), n_kept=int(n_passes), fantasies=fantasies,
            )  # fmt: skip

        # "rows" is another law than that of the chains.
        known = self._known_cells() if prior == "network" else None
        return self._impute(X, return_std, of_draw, known=known)

    def transform(self, X, layer=1):
        """Expected activations of a hidden layer of the reference draw given each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.
        layer : int, default=1
            Number of the layer, from 1, which is next to the columns, to `n_layers_`.

        Returns
        -------
        activations : ndarray of shape (n_samples, n_units)
            Between -1 and 1; signs and order of units mean nothing. No columns where the reference
            draw has no hidden units.
        """
        X = self._check_new(X)
        if not isinstance(layer, Integral) or isinstance(layer, bool) or layer < 1:
            raise ValueError(f"layer must be an integer >= 1, got {layer!r}")
        if layer > max(1, self.n_layers_):
            raise ValueError(f"layer must be at most n_layers_ = {self.n_layers_}, got {layer}")
        if self.n_layers_ == 0:
            return np.empty((len(X), 0))
        A, draw = self._conditioned(X), self._reference
        components = self._components(draw, 0)

        def activations(start, stop):
            return expected_activations(
                draw, A[start:stop], int(layer), self.seed_, components=components
            )

        return self._by_row_blocks(activations, len(X))

    # -- before sampling

    def _auto_n_chains(self, X):
        if not self._is_ensemble(X.shape[1]):
            return 4
        work = (_FEWEST_SWEEPS + _SHORT_DRAWS) * self._work_at_start(X)
        return int(np.clip(self._work_allowed(X) / work, _FEWEST_CHAINS, _MOST_CHAINS))

    def _auto_lengths(self, X):
        sweeps = self._work_allowed(X) / (self.n_chains_ * self._work_at_start(X))
        if self._is_ensemble(X.shape[1]):
            warmup = np.clip(sweeps - _SHORT_DRAWS, _FEWEST_SWEEPS, _MOST_SWEEPS)
            return int(warmup), _SHORT_DRAWS
        if len(X) >= 20_000:
            return 200, 50
        return (150 if sweeps >= _SWEEPS_OF_ROUNDS else 500), 200

    def _work_allowed(self, X):
        if self.max_work == "auto" and self._is_ensemble(X.shape[1]):
            return _MORE_WORK * self._auto_work(max(len(X), _FEWEST_ROWS_OF_ENSEMBLE))
        return super()._work_allowed(X)

    def _is_ensemble(self, n_features):
        is_auto = self.n_chains == "auto" and self.n_warmup == "auto"
        # With connections that skip layers nothing says when chains have come far enough.
        return is_auto and n_features >= _MANY_COLUMNS and not self.skip_connections

    def _work(self, X):
        if self._is_ensemble(X.shape[1]):
            return None

        def per_sweep(traces):
            clusters = traces.get("n_clusters", np.zeros(1))
            return self._work_of_sweep(X, float(traces["n_units"].mean()), float(clusters.mean()))

        return self._work_of_sweep(X, 0.0), per_sweep

    def _work_of_sweep(self, X, n_units, n_clusters=0.0):
        """Nominal seconds of one core for a sweep of one chain with so many units and clusters."""
        n, d = X.shape
        # Chains that begin with few units grow to about as many in a longer warm-up.
        n_units = max(n_units, _UNITS_TO_COME)
        per_row = 300.0 * n_units + 25.0 * d + 5.0 * n_clusters * n_units
        return 1e-9 * (100_000.0 + n * per_row)

    def _work_at_start(self, X):
        """The same for the units and clusters that chains start with."""
        clustered = self._has_row_clusters(X)
        n_units = min(self._n_init_units(len(X), clustered), *X.shape)
        return self._work_of_sweep(X, n_units, n_start_clusters(len(X)) if clustered else 0)

    def _prepare(self, X):
        """Check the parameters against X, scale it and say how to build a sampler."""
        n, d = X.shape
        if d > _MANY_FEATURES:
            warn(
                f"X has {d} features, and a sweep costs in proportion: expect it to be slow",
            )
        n_layers, clustered = self._largest_number_of_layers(X), self._has_row_clusters(X)
        if clustered and n_layers is None:
            raise ValueError("max_layers must be a number where row_clusters=True, got None")
        sampler = self._sampler_settings()
        if clustered and sampler.init == "pca" and self.max_units < n_layers:
            raise ValueError(
                "max_units must be at least max_layers where row_clusters=True and the sampler's "
                f"init is 'pca', got {self.max_units} and {n_layers}"
            )
        self._check_density(n_layers, clustered)
        step = steps(X) if self.dequantise else np.zeros(d)
        self._units = self._fitted_units(X, step)
        self.visible_ = self._units.visible
        self._prior = self._make_prior(len(self._units.columns), n_layers, clustered)
        if sampler.init == "prior":
            # To see that chains can start, before any does.
            draw_joint(self._prior, 0, np.random.default_rng(0))
        # A copy: what the user does with X afterwards is no business of ours.
        self._training_rows = TrainingRows(X.copy(), self._units, self._density_options())
        return partial(
            make_sampler,
            X=X,
            units=self._units,
            step=step,
            prior=self._prior,
            init=sampler.init,
            n_init_units=self._n_init_units(n, clustered),
            activation_update=sampler.activation_update,
            n_activation_passes=sampler.n_activation_passes,
            n_tries=sampler.n_tries,
            **{f"{kind}_births": kind in _BIRTHS[sampler.birth] for kind in _BIRTHS["all"]},
        )

    def _bounds(self, X):
        is_open = self.feature_bounds is None and self.visible == "auto"
        return ends_of_scale(X) if is_open and X.shape[1] >= _MANY_COLUMNS else super()._bounds(X)

    def _n_init_units(self, n_rows, clustered):
        n_units = self._sampler_settings().n_init_units
        if n_units != "auto":
            return n_units
        most = _INIT_UNITS_UNDER_CLUSTERS if clustered else _INIT_UNITS
        return max(1, min(most, n_rows // _ROWS_PER_UNIT))

    def _has_row_clusters(self, X):
        """What `row_clusters` says or, if that is "auto", whether one layer has many columns."""
        if self.row_clusters != "auto":
            return bool(self.row_clusters)
        one_layer = self.max_layers in ("auto", 1) and not self.skip_connections
        return one_layer and X.shape[1] >= _MANY_COLUMNS and self.max_units > 0

    def _largest_number_of_layers(self, X):
        if self.max_layers == "auto":
            return 1 if self._has_row_clusters(X) else _LAYERS
        return None if self.max_layers is None else int(self.max_layers)

    def _has_law_of_pairs(self):
        return bool(self.dequantise)

    def _density(self, X, rows):
        if not WatchedRows.can_watch(self._prior):
            return None
        return WatchedRows(X, rows, self._units, self._prior, self.seed_)

    @property
    def _reported_traces(self):
        followed = "log_density" if WatchedRows.can_watch(self._prior) else "log_joint"
        return followed, "width1", "n_edges"

    def _check_density(self, max_layers, clustered):
        if self.density == "importance" and clustered and max_layers != 1:
            raise ValueError(
                "density='importance' must have max_layers=1 where row_clusters=True, got "
                f"{max_layers!r}"
            )

    # -- after sampling

    def _summarise(self, X):
        draw = self._reference = reference_draw(self.posterior_)
        self.n_layers_ = len(draw["widths"]) - 1
        self.layer_widths_ = draw["widths"][1:].copy()
        self.n_edges_ = len(draw["edges"])
        self._n_features_out = int(draw["widths"][1]) if self.n_layers_ else 0
        of_rows = [state["moves"]["rows"] for state in self.posterior_.final_states]
        self.n_guard_rejections_ = sum(int(rows["n_guard_rejections"]) for rows in of_rows)
        self._keep_training_cells(X)
        self._calibrate_cells(X)

    def _found(self, training):
        words = {"layers": "n_layers", "hidden units": "n_units", "edges": "n_edges"}
        return [self._network_section(words), self._association_section(training)]

    def _attach_rows(self):
        # Rows of one cluster hang together.
        if not self._prior.row_clusters:
            super()._attach_rows()

    # -- files

    def _check_draw(self, draw):
        checked_state(draw, self._prior, len(self._training_rows.X), draw=True)

    def _check_loaded(self):
        check_units(self._units, self.n_features_in_, self.visible_)
        check_prior(self._prior, len(self._units.columns))
        self._check_rows(self.n_features_in_)
        self._check_scales()
        widths = self._reference["widths"][1:]
        if self.n_layers_ != len(widths) or not np.array_equal(self.layer_widths_, widths):
            raise ValueError("n_layers_ and layer_widths_ must be those of the reference draw")
        if self.n_edges_ != len(self._reference["edges"]):
            raise ValueError("n_edges_ must be that of the reference draw")
        if self._n_features_out != (widths[0] if len(widths) else 0):
            raise ValueError("_n_features_out must be the first of layer_widths_")

    # -- for ArviZ

    _draw_fields = (
        Field("row_cluster", int, ("n_samples",)),
        Field("biases", float, ("columns_first",)),
        Field("unit_precision", float, ("columns_first",)),
    )

    def _prior_chain(self, rng):
        state = draw_joint(self._prior, len(self._training_rows.X), rng)
        return Sampler(state["visible"], self._prior, state, rng.bit_generator), state["visible"]

    # -- one draw

    def _components(self, draw, t):
        return components_under(self._prior, draw, self.seed_, t)

    def _law_of(self, draw, t):
        components = self._components(draw, t)
        return draw, components, fantasies_of(draw, self.seed_, t, components)

    def _log_density_of(self, law, t, rows):
        self._check_density(self._prior.max_layers, self._prior.row_clusters)
        draw, components, fantasies = law
        options = self._density_options() | {"components": components, "fantasies": fantasies}
        return np.stack(judged_densities(draw, rows, self.seed_, t, **options))

    def _judge(self, figures):
        few = np.count_nonzero(figures.mean(axis=0) > 1 / _LEAST_EFFECTIVE)
        # A few rows that lie far out are like that in every table.
        if few > _SOME_ROWS * figures.shape[1] and self.n_particles > 1:
            warn(
                f"the log density of {few} of {figures.shape[1]} row(s) may be low by half a nat, "
                f"or by many: of the {self.n_particles} particles of annealing and the points "
                "beside them about one counts under most draws. Raise n_temperatures, and until "
                "this is gone do not compare such densities with those of other models",
            )

    def _sample_of(self, draw, n_rows, rng):
        components = self._components(draw, int(rng.integers(2**31)))
        return sample_rows(draw, n_rows, rng, components)

    # -- nodes

    def _levels_of(self, draw):
        return np.repeat(np.arange(len(draw["widths"])), draw["widths"])
