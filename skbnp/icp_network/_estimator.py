"""The density of a table by networks of any shape."""

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.cells_of_sweeps import CellsOfSweepsMixin
from skbnp.estimators.density import DensityMixin
from skbnp.estimators.factors import OutputsMixin
from skbnp.estimators.network_parameters import VisibleColumns
from skbnp.estimators.parameters import parameter
from skbnp.estimators.rounds import bound_on_work, in_rounds
from skbnp.icp_network._base_estimator import BaseICPNetwork, work_of_sweep
from skbnp.icp_network._predictive import (
    expected_activations,
    fantasies_of,
    imputed_moments,
    log_densities,
    sample_rows,
)
from skbnp.likelihoods.nonlinear_gaussian._leaf_network import FEW_FEATURES
from skbnp.mcmc.caller import warn
from skbnp.units import Units, check_units

# Sweeps of the first round of warm-up, and draws per chain.
_N_WARMUP = _N_DRAWS = 150
# Rows beyond which three chains have the work: networks drift long, and a sweep is dear.
_FEWER_CHAINS = 1000
# Median effective number of fantasies below which densities are hardly worth anything.
_FEW_FANTASIES = 5.0


class ICPNetwork(CellsOfSweepsMixin, OutputsMixin, DensityMixin, BaseICPNetwork, VisibleColumns):
    r"""Density of real columns by a network whose hidden nodes, edges and depth are inferred.

    .. math::

        a_{ni} \sim \mathcal{N}\Big(b_i + \sum_k Z_{ki} W_{ki} u_{nk},\; 1/\rho_i\Big), \qquad
        u_{nk} = \tanh(a_{nk} / 2)

    where some nodes are the columns of X and the others are hidden. The graph Z follows the Indian
    chefs process: node k has an order in [0, 1], and its children have lower orders. The hidden
    nodes, with their orders and popularities, are a Poisson process of intensity :math:`\alpha
    \gamma \pi^{-1} (1 - \pi)^{\alpha - 1}`, with mass :math:`\gamma` and concentration
    :math:`\alpha`. Node k is a parent of each node below it with probability :math:`\pi_k`. Only
    hidden nodes from which a column descends are kept [1]_. Popularities of columns are
    :math:`\mathrm{Beta}(\phi, \alpha)`. Weights and biases are normal with mean 0, and the
    precisions :math:`\rho_i` have gamma distributions. All priors are for data as scaled inside.
    NaN marks a missing cell, missing at random.

    Attributes
    ----------
    n_hidden_ : int
        Number of hidden nodes of the reference draw, the draw of the highest log joint density.
    n_edges_ : int
        Number of its edges.
    depth_ : int
        Number of edges on its longest path.
    posterior_ : skbnp.mcmc.posterior.Posterior
        The draws, with traces (``n_hidden``, ``n_edges``, ``depth`` and others), R-hat and
        effective sample sizes. Each draw is a network for X as scaled inside; see `network`.
    n_guard_rejections_ : int
        Number of proposals, over all chains, that were refused because of `max_units`.
    n_chains_ : int
        Number of chains.
    n_warmup_ : int
        Sweeps of warm-up: what "auto" stood for.
    n_draws_ : int
        Draws per chain: what "auto" stood for.
    X_imputed_ : ndarray or frame of shape (n_samples, n_features)
        The training table with its holes filled, in the form of X; only if X has missing cells.
        It is averaged over all sweeps after the warm-up while the chains run, and costs nothing:
        `impute` answers training rows with it. It is not kept where `max_rows` is less than the
        number of rows: call `impute`.
    X_imputed_std_ : ndarray or frame of shape (n_samples, n_features)
        Standard deviations of what `X_imputed_` fills in, 0 for observed cells.
    seed_ : int
        Entropy from which the seeds of all chains are derived.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had any.

    See Also
    --------
    ICPNetworkRegressor : The same network from features to targets.
    ICPNetworkClassifier : The same network from features to classes.
    skbnp.CIBPBeliefNet : Networks in layers, for images and other wide tables.
    skbnp.processes.icp : The prior on graphs on its own.

    Notes
    -----
    Units are those of [2]_. A sweep updates the hidden activations of each unit, of each row by
    elliptical slices [3]_, and of all rows along Hamiltonian trajectories; every edge, with the
    weights and the bias of its child integrated out; hidden nodes, by births and deaths, by
    splitting edges and by exchanging neighbours; the orders; and the hyperparameters.

    For N rows, K nodes and E edges a sweep costs O(N K^2) in matrix products and O(N E) in
    everything else; the trajectories repeat the latter about 60 times. The paper's density is not
    normalised, and its acceptance ratios are right only for that density. This and several other
    formulas of the paper are corrected here.

    The paper's priors are ``mass=Gamma(0.5, 0.5)``, ``concentration=InverseGamma(0.5, 0.5)``,
    ``observed_popularity=Gamma(0.5, 0.5)``, ``noise_precision=Gamma(0.5, 0.5)``,
    ``weight_variance=1`` and ``bias_variance=1``. Under them networks of hundreds of nodes are not
    rare a priori.

    Hidden nodes are identified only up to their signs, and cannot be compared across draws. Graphs
    mix slowly, more slowly than predictions: expect `fit` to warn. Constant columns are set aside
    and restored. float32 input is computed in float64 (a copy of twice its size). Files of `save`
    hold the training rows, for ``posterior_.loo()``. Sparse X is refused. `sample_weight` and
    `partial_fit` are not available.

    References
    ----------
    .. [1] P. Dallaire, L. Ambrogioni, L. Trottier, U. Guclu, M. Hinne, P. Giguere, B. Chaib-draa,
       M. van Gerven and F. Laviolette (2020). The Indian Chefs Process.
    .. [2] R. P. Adams, H. M. Wallach and Z. Ghahramani (2010). Learning the structure of deep
       sparse graphical models. Proceedings of the 13th International Conference on Artificial
       Intelligence and Statistics, 1-8.
    .. [3] I. Murray, R. P. Adams and D. J. C. MacKay (2010). Elliptical slice sampling.
       Proceedings of the 13th International Conference on Artificial Intelligence and Statistics,
       541-548.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp import ICPNetwork
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 80)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(80, 2))
    >>> net = ICPNetwork(n_chains=2, n_warmup=200, n_draws=50, random_state=0).fit(X)
    >>> inside, on_the_ring = net.score_samples([[0.0, 0.0], [0.0, 1.0]])
    >>> bool(on_the_ring > inside)
    True
    """

    visible: str = parameter(default="auto")
    feature_bounds: Sequence | None = parameter(default=None)
    feature_range: float = parameter(default=0.95)
    observed_order: float | str | ArrayLike = parameter(
        default=0.0,
        kind='float, "free" or sequence of (float or None)',
        rules=[Interval(Real, 0, 1, closed="both"), StrOptions({"free"}), "array-like"],
        text="""
        Order of the columns in the network, in [0, 1]: one number for all columns, or one for each.
        Columns of order 0 have no children. With "free", or None for a single column, the order is
        sampled under a uniform prior, and a column may be a parent of another.
        """,
    )
    density: str = parameter(
        default="auto",
        of_chains=False,
        kind='{"auto", "fantasies", "importance", "ais"}',
        rules=[StrOptions({"auto", "fantasies", "importance", "ais"})],
        text="""
        How hidden nodes are integrated out of the density of a row. "fantasies": by samples from
        the prior of the hidden nodes. "importance": by importance sampling around the modes of the
        posterior of the noises. "ais": by annealed importance sampling from the prior, which is
        slower. "auto": by importance sampling for rows of which more than eight cells are known;
        by fantasies for others, but for a row and draw for which fewer than 5 in a half of the
        fantasies carry the weight. All are unbiased for the density, so its logarithm is too low on
        average.
        """,
    )
    n_chains: int | str = parameter(
        default="auto",
        text="""
        Number of independent chains; "auto" is 4, and 3 beyond 1,000 rows, where each has
        more sweeps for the same work. They find different networks, and averages over several of
        them predict better.
        """,
    )
    n_warmup: int | str = parameter(
        default="auto",
        text=in_rounds(
            "150 sweeps, 300, 600",
            "A number is quicker, as in a grid search, where 150 is a good start.",
        ),
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws that are kept per chain; "auto" is 150.
        """,
    )
    n_importance: int | str = parameter(
        default="auto",
        of_chains=False,
        kind='int or "auto"',
        rules=[Interval(Integral, 1, 1_000_000, closed="both"), StrOptions({"auto"})],
        text="""
        Points of the importance sampling, per row and draw. "auto" is 400, and 64 in up to eight
        columns with ``density="auto"``, where few rows need points.
        """,
    )
    n_temperatures: int = parameter(default=60)
    n_particles: int = parameter(default=8)
    max_work: float | str = parameter(
        default="auto",
        text=bound_on_work(
            """
            A sweep of many hidden nodes takes up to two and a half times as long as is counted:
            with ten columns and more a fit may take three times as long in all. "auto" is in
            proportion to the rows, from 6.7 up to 100 rows to 100 from 1,500 on.
            """
        ),
    )
    _most_rows_of_work = 1500
    _parameters_of_laws = ("n_fantasies",)
    _layers = ("gaussianised", "two-level")
    _output_name = "unit"
    _fitted_attributes: ClassVar[dict] = {**BaseICPNetwork._fitted_attributes, "_units": Units}

    # -- prediction

    def transform(self, X):
        """Expected activations of the hidden nodes of the reference draw given each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        activations : ndarray of shape (n_samples, `n_hidden_`)
            Between -1 and 1; the nodes are sorted by order, lowest first. Signs are arbitrary.
        """
        X = self._check_new(X)
        A, draw = self._conditioned(X), self._reference

        def activations(start, stop):
            return expected_activations(
                draw, self._prior, A[start:stop], self.seed_, **self._density_options()
            )

        return self._by_row_blocks(activations, len(X))

    # -- before sampling

    def _auto_lengths(self, X):
        return _N_WARMUP, _N_DRAWS

    def _work(self, X):
        work = partial(work_of_sweep, len(X))
        return work(0.0), lambda traces: work(float(traces["n_edges"].mean()))

    def _observed(self, X):
        units = self._units = self._fitted_units(X)
        roles = ["gaussian"] * len(units.columns)
        orders = self._checked_orders()
        no_labels = np.empty(0, dtype=np.intp)
        return (
            units.to_visible(X), units.log_jacobian(X), no_labels, roles,
            [orders[j] for j in units.columns],
        )  # fmt: skip

    def _checked_orders(self):
        """`observed_order` for each column, None where free."""
        value, n = self.observed_order, self.n_features_in_
        if isinstance(value, str):
            return [None] * n
        orders = [value] * n if isinstance(value, Real) else list(value)
        real = [x is None or (isinstance(x, Real) and not isinstance(x, bool)) for x in orders]
        if len(orders) != n or not all(real) or not all(x is None or 0 <= x <= 1 for x in orders):
            raise ValueError(
                f"observed_order must be 'free', a number from 0 to 1 or {n} of them or None, one "
                f"for each feature, got {value!r}"
            )
        return [None if x is None else float(x) for x in orders]

    def _density_options(self):
        n_points = self.n_importance
        if n_points == "auto":
            is_small = self._prior.n_observed <= FEW_FEATURES and self.density == "auto"
            n_points = 64 if is_small else 400
        return super()._density_options() | {
            "n_fantasies": self.n_fantasies, "n_importance": n_points,
        }  # fmt: skip

    def _auto_n_chains(self, X):
        return 4 if len(X) <= _FEWER_CHAINS else 3

    # -- after sampling

    def _summarise(self, X):
        super()._summarise(X)
        if self._fills_training_table:
            self._keep_training_cells(X)

    def _found(self, training):
        words = {"hidden units": "n_hidden", "edges": "n_edges"}
        are_free = any(order != 0.0 for order in self._prior.orders)
        edges = self.edge_probabilities() if are_free else None
        return [self._network_section(words, edges), self._association_section(training)]

    @property
    def _fills_training_table(self):
        # With fewer rows than it has, what the chains fill is not the training table.
        return not getattr(self, "_drops_rows", self.max_rows is not None)

    def _check_loaded(self):
        check_units(self._units, self.n_features_in_, self._units.visible)
        super()._check_loaded()
        if len(self._training_rows.labels) or "input" in self._prior.roles:
            raise ValueError("the prior must have columns alone")
        self._check_training_cells(np.isnan(self._training_rows.table))

    # -- one draw

    @property
    def _n_features_out(self):
        return self.n_hidden_

    def _law_of(self, draw, t):
        return draw, fantasies_of(draw, self._prior, self.seed_, t, self.n_fantasies)

    def _log_density_of(self, law, t, rows):
        draw, fantasies = law
        options = self._density_options() | {"fantasies": fantasies}
        return np.stack(log_densities(draw, self._prior, rows, self.seed_, t, **options))

    def _judge(self, figures):
        if self.density == "fantasies" and np.median(np.median(figures, axis=0)) < _FEW_FANTASIES:
            warn(
                "Most rows have the weight of fewer than 5 fantasies under most draws: raise "
                "n_fantasies or set density='auto'",
            )

    def _cell_moments_of(self, law, t, rows):
        draw, fantasies = law
        options = self._density_options() | {"fantasies": fantasies}
        return imputed_moments(
            draw, self._prior, rows, self._units.visible, self.seed_, t, **options
        )

    def _sample_of(self, draw, n_rows, rng):
        return sample_rows(draw, self._prior, n_rows, rng)
