"""What regression and classification by networks share, and regression."""

from dataclasses import replace
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.export import Axis
from skbnp.estimators.parameters import parameter
from skbnp.estimators.tables import TargetMixin
from skbnp.icp_network._base_estimator import BaseICPNetwork, work_of_sweep
from skbnp.icp_network._predictive import outputs_of, sample_rows
from skbnp.laws import Gamma, Law
from skbnp.mcmc.arviz import Group
from skbnp.mcmc.caller import warn
from skbnp.reports import supervised
from skbnp.units import Units, check_units

# Sweeps per chain, at least and at most, and the share of them that is warm-up.
_LEAST_SWEEPS, _MOST_SWEEPS, _WARMUP = 140, 1600, 0.375
# Variance of a target, as a multiple of the least that the prior allows, that is called near it.
_NEAR_LEAST = 2.0
# Of noise_precision, that is allowed.
_LEAST_RATE = 1e-6
# Fantasies up to which those of all draws are kept from one prediction to the next.
_MOST_KEPT_FANTASIES = 500
# Rows and columns by which a report says what predictions rest on, at most.
_MOST_TRIED_ROWS, _MOST_TRIED_COLUMNS = 200, 30


def _share_a_range(X):
    """Whether all columns have the same minimum, and half of them the largest maximum."""
    low, high = X.min(axis=0), X.max(axis=0)
    return X.shape[1] > 1 and np.ptp(low) == 0.0 and np.mean(high == high.max()) >= 0.5


class SupervisedICPNetwork(TargetMixin, BaseICPNetwork):
    """Features are inputs of order 1, targets nodes of order 0."""

    scaling: str = parameter(
        default="auto",
        kind='{"auto", "each", "common"}',
        rules=[StrOptions({"auto", "each", "common"})],
        text="""
        How the columns of X are scaled, after they are centred. "each": every column is divided by
        its own standard deviation. "common": all are divided by one number, the root of their mean
        variance. Use it for columns in one unit, such as pixels or spectra, whose spread says how
        much they matter. "auto": "common" where all columns that vary have the same minimum and at
        least half of them reach the largest value of X, as pixels do, and "each" otherwise.
        """,
    )
    input_weight_variance: float | None = parameter(
        default=None,
        kind="float or None",
        rules=[Interval(Real, 1e-6, 1e6, closed="both"), None],
        text="""
        Variance of the prior of each weight out of an input, in place of `weight_variance`. None is
        `weight_variance` divided by the number of features that vary, so that what a node receives
        from all inputs together does not grow with their number.
        """,
    )
    n_warmup: int | str = parameter(
        default="auto",
        text="""
        Sweeps per chain before the first draw. With "auto", this and `n_draws` follow from
        `max_work`: 600 and 1,000, but fewer where that many sweeps take longer than it allows,
        and no fewer than 52 and 88.
        """,
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws that are kept per chain. "auto" is said at `n_warmup`.
        """,
    )
    thin: int | str = parameter(
        default="auto",
        kind='int or "auto"',
        rules=[Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        text="""
        Sweeps per kept draw; "auto" is 1.
        """,
    )
    max_work: float = parameter(
        default=15.0,
        of_chains=False,
        kind="float",
        rules=[Interval(Real, 0, None, closed="neither")],
        text="""
        Bound on the work of all chains together where lengths are "auto", in about seconds of one
        core. It is counted from rows, columns and classes and never timed, so that a fit makes the
        same draws on every machine. The fewest sweeps that `n_warmup` names are made in any case,
        with a warning where they take more.
        """,
    )
    n_fantasies: int = parameter(
        default=50,
        text="""
        Samples of the hidden nodes, per row and draw, that predictions average over.
        """,
    )

    _finite = True
    _layers = ("network",)
    _parameters_of_laws = ("n_fantasies",)
    _renamed: ClassVar[dict] = {**BaseICPNetwork._renamed, "feature_scaling": "it is scaling now"}
    _fitted_attributes: ClassVar[dict] = {
        **BaseICPNetwork._fitted_attributes,
        "_input_units": Units,
    }

    # -- before sampling

    def _auto_lengths(self, X):
        affordable = int(float(self.max_work) / self._work_at_start(len(X)))
        n_sweeps = min(max(affordable, _LEAST_SWEEPS), _MOST_SWEEPS)
        n_warmup = int(_WARMUP * n_sweeps)
        return n_warmup, n_sweeps - n_warmup

    def _work_at_start(self, n_rows):
        """Of the first sweep of all chains."""
        n_targets, n_inputs = self._n_outputs(), self._prior.roles.count("input")
        # Edges that chains start with: from all inputs to all units, and from these to all targets.
        n_edges = self._n_init_units("auto", n_rows) * (n_inputs + n_targets)
        return self.n_chains_ * work_of_sweep(n_rows, n_edges, "latent" in self._prior.roles)

    def _prepare(self, X):
        make = super()._prepare(X)
        work = _LEAST_SWEEPS * self._work_at_start(len(X))
        if work > self.max_work and self.n_warmup == self.n_draws == "auto":
            warn(
                f"The fewest sweeps that are made, {_LEAST_SWEEPS}, take about {work:.2g} seconds "
                f"of one core, above max_work={self.max_work:g}, and may be too few for "
                f"{self.n_features_in_} features: chosen or joined ones, as by SelectKBest or PCA, "
                "or fewer rows, by max_rows, take less"
            )
        return make

    def _make_prior(self, roles, orders):
        prior = super()._make_prior(roles, orders)
        variance = self.input_weight_variance
        if variance is None:
            # What a node gets from all inputs together has the same variance for any number.
            variance = prior.weight_variance / roles.count("input")
        return replace(prior, input_weight_variance=float(variance))

    def _of_inputs(self, X):
        """Units of the inputs X, scaled as asked for."""
        units = self._standard_units(X)
        scaling = self.scaling
        if scaling == "auto":
            scaling = "common" if _share_a_range(X[:, units.columns]) else "each"
        return units.with_common_scale() if scaling == "common" else units

    def _table(self, X, y):
        return self._with_target(X, y)

    def _density_options(self):
        return {"n_fantasies": self.n_fantasies}

    # -- for ArviZ

    def _axes(self):
        # Inputs have no parameters.
        return {"n_samples": self._rows_axis(), "columns_first": self._outputs_axis()}

    def _constant_group(self):
        return self._table_group("X", self._training_rows.table[:, : self.n_features_in_])

    def _replicate(self, draw, rng):
        A = self._training_rows.visible
        return sample_rows(draw, self._prior, len(A), rng, A[:, self._n_outputs() :])

    # -- prediction

    def _nodes(self, X):
        """New rows as observed nodes, targets unknown."""
        X = self._check_new(X)
        A = np.full((len(X), self._prior.n_observed), np.nan)
        A[:, self._n_outputs() :] = self._input_units.to_visible(X)
        return A

    def _feature_units(self):
        return self._input_units

    def _n_outputs(self):
        """Number of nodes that are targets."""
        return int(self._prior.has_law(self._prior.n_observed).sum())

    def _predicted(self, X):
        """Mean and variance of targets over the draws, all alike, or of classes the mean."""
        _, *moments = zip(*self._moments(self._nodes(X), self._outputs_under), strict=True)
        return [np.concatenate(one) for one in moments]

    def _law_of(self, draw, t):
        if self.n_fantasies > _MOST_KEPT_FANTASIES:
            return draw
        return outputs_of(draw, self._prior, self.seed_, t, self.n_fantasies)

    def _outputs_under(self, law, t, A):
        """Mean and variance of targets under the t-th draw of a prediction, or of classes."""
        if isinstance(law, dict):
            law = outputs_of(law, self._prior, self.seed_, t, self.n_fantasies)
        return law.moments(A)

    # -- report

    def _observed_rows(self):
        return self._training_rows.table[:, : self.n_features_in_]

    def _found(self, training):
        d, n_rows = self.n_features_in_, len(training.X)
        ancestors = self.ancestor_probabilities()
        n_targets = len(ancestors) - d
        paths = ancestors[n_targets:, :n_targets].max(axis=1)
        # Columns with a path to a target, the likeliest first, that vary.
        varying = self._input_units.columns
        tried = varying[np.argsort(-paths[varying], kind="stable")][:_MOST_TRIED_COLUMNS]
        rows = training.X[:: -(-n_rows // _MOST_TRIED_ROWS)]

        def predict(X):
            return self._predicted(self._as_trained(X, with_index=False))[0]

        return [
            supervised.section(
                self._counts({"hidden nodes": "n_hidden", "edges": "n_edges"}),
                self.network(),
                supervised.influence(predict, rows, tried, self.seed_),
                training.names,
                paths,
                **self._about_target(),
            )
        ]

    def _check_loaded(self):
        check_units(self._input_units, self.n_features_in_)
        super()._check_loaded()
        law = self._prior.has_law(self._prior.n_observed)
        n_outputs = self._n_outputs()
        if not 0 < n_outputs <= len(law) or not law[:n_outputs].all():
            raise ValueError("targets must come before inputs in the prior")


class ICPNetworkRegressor(RegressorMixin, SupervisedICPNetwork):
    r"""Regression by a network whose hidden nodes, edges and depth are inferred.

    .. math::

        a_{ni} \sim \mathcal{N}\Big(b_i + \sum_k Z_{ki} W_{ki} u_{nk},\; 1/\rho_i\Big), \qquad
        u_{nk} = \tanh(a_{nk} / 2)

    where the targets are nodes of order 0, the features are inputs of order 1, and all other nodes
    are hidden. u of an input is its scaled value. The graph Z follows the Indian chefs process:
    node k has an order in [0, 1], and its children have lower orders. The hidden nodes, with their
    orders and popularities, are a Poisson process of intensity :math:`\alpha \gamma \pi^{-1} (1 -
    \pi)^{\alpha - 1}`, with mass :math:`\gamma` and concentration :math:`\alpha`. Node k is a
    parent of each node below it with probability :math:`\pi_k`. Only hidden nodes from which a
    target descends are kept [1]_. Popularities of inputs are :math:`\mathrm{Beta}(\phi, \alpha)`.
    Weights and biases are normal with mean 0, and the precisions :math:`\rho_i` have gamma
    distributions. All priors are for data as scaled inside.

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
        effective sample sizes. Each draw is a network for X and y as scaled inside; see `network`.
    n_guard_rejections_ : int
        Number of proposals, over all chains, that were refused because of `max_units`.
    n_chains_ : int
        Number of chains.
    n_warmup_ : int
        Sweeps of warm-up: what "auto" stood for.
    n_draws_ : int
        Draws per chain: what "auto" stood for.
    seed_ : int
        Entropy from which the seeds of all chains are derived.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had any.

    See Also
    --------
    ICPNetworkClassifier : The same for classes.
    ICPNetwork : Density of all columns alike, with missing cells.

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
    ``weight_variance=1`` and ``bias_variance=1``, and ``input_weight_variance=1``. Under them
    networks of hundreds of nodes are not rare a priori.

    Hidden nodes are identified only up to their signs, and cannot be compared across draws. Graphs
    mix slowly, more slowly than predictions: expect `fit` to warn. Constant columns are set aside.
    float32 input is computed in float64 (a copy of twice its size). Files of `save` hold the
    training rows, for ``posterior_.loo()``. Sparse X is refused. `sample_weight` and `partial_fit`
    are not available.

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
    >>> from skbnp import ICPNetworkRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(100, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=100)
    >>> net = ICPNetworkRegressor(n_chains=2, n_warmup=200, n_draws=50, random_state=0).fit(X, y)
    >>> bool(net.score(X, y) > 0.9)
    True
    """

    noise_precision: Gamma = parameter(
        default=Gamma(1.0, 0.03),
        kind="Gamma",
        rules=[Gamma],
        text="""
        Prior of the precision of each node, for targets as they are scaled inside. Its rate is a
        bound: noise below sqrt(rate / (shape + n_samples / 2)) deviations of a target is not found.
        Lower ones suit targets that are computed from the features.
        """,
    )

    _fitted_attributes: ClassVar[dict] = {
        **SupervisedICPNetwork._fitted_attributes,
        "_units": Units,
        "_is_single": bool,
    }

    def predict(self, X, return_std=False):
        """Posterior predictive mean of the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows; NaN is refused.
        return_std : bool, default=False
            Also return the standard deviation of a new target.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Averaged over hidden nodes and draws.
        std : ndarray of the same shape
            Only if `return_std`: the variance within and between draws, noise included.
        """
        moments = self._predicted(X)
        mean, std = self._units.moments(*moments)
        return (self._shaped(mean), self._shaped(std)) if return_std else self._shaped(mean)

    def sample_y(self, X, n_samples=1, random_state=None):
        """Sample targets from the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows; NaN is refused.
        n_samples : int, default=1
            Samples for each row. The i-th samples of all rows come from the same draw.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples) or (n_rows, n_targets, n_samples)
        """
        A = self._nodes(X)
        generator = self._generator(n_samples, random_state)
        n_outputs, samples = self._n_outputs(), []
        for t in generator.integers(self.posterior_.n_stored, size=n_samples):
            rows = sample_rows(
                self.posterior_.in_order(int(t)), self._prior, len(A), generator, A[:, n_outputs:]
            )
            samples.append(self._shaped(self._units.from_visible(rows[:, :n_outputs])))
        return np.stack(samples, axis=-1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _shaped(self, y):
        return y[:, 0] if self._is_single else y

    # -- before sampling

    def _target(self, y):
        # A column of times with a zone is one of objects to NumPy.
        if {np.asarray(y).dtype.kind, getattr(getattr(y, "dtype", None), "kind", "")} & set("mM"):
            raise ValueError("y must hold numbers, got dates: take days since the first, say")
        # Its sum, by which it looks for them, may add inf and -inf.
        with np.errstate(invalid="ignore"):
            y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if y.ndim > 2:
            raise ValueError(f"y must have one or two dimensions, got {y.ndim}")
        self._is_single = y.ndim == 1
        self._warn_of_far_targets(y)
        return y

    def _observed(self, X):
        d = self.n_features_in_
        self._input_units = self._of_inputs(X[:, :d])
        units = self._units = self._standard_units(X[:, d:], "y")
        n_outputs, n_inputs = len(units.columns), len(self._input_units.columns)
        return (
            np.hstack([units.to_visible(X[:, d:]), self._input_units.to_visible(X[:, :d])]),
            units.log_jacobian(X[:, d:]),
            np.empty(0, dtype=np.intp),
            ["gaussian"] * n_outputs + ["input"] * n_inputs,
            [0.0] * n_outputs + [1.0] * n_inputs,
        )

    # -- after sampling

    def _judge_chains(self):
        super()._judge_chains()
        law, n_rows = self.noise_precision, len(self._training_rows.visible)
        if not isinstance(law, Law) or law.rate <= _LEAST_RATE:
            return
        # What the precision of a target's own node leaves of its variance, at least.
        least = law.rate / (law.shape + n_rows / 2)
        own = [1.0 / draw["unit_precision"][: self._n_outputs()] for draw in self._summary_draws()]
        if np.mean(own, axis=0).min() > _NEAR_LEAST * least:
            return
        variance = self._variance_of_targets().mean(axis=0)
        near = np.flatnonzero(variance < _NEAR_LEAST * least)
        if near.size:
            names = self._node_names()
            named = [names[self._units.columns[j]] for j in near[:10]]
            lower = max(law.rate / 1000, _LEAST_RATE)
            deviation = np.sqrt(least) * self._units.scale[near[0]]
            warn(
                f"The noise of {', '.join(named)} is about the least that noise_precision={law} "
                f"allows for {n_rows} rows, a standard deviation of {deviation:.2g}: where it is "
                f"smaller, those of predictions are too large. Lower the rate, "
                f"noise_precision={type(law).__name__}({law.shape:g}, {lower:g}) say"
            )

    # -- report

    def _about_target(self):
        noise = self._variance_of_targets().mean(axis=1)
        targets = "y" if self._is_single else f"{len(self._units.constant)} targets"
        return {"target": targets, "noise": np.minimum(noise, 1.0)}

    def _variance_of_targets(self):
        """Mean over training rows of the variance of each target given a draw, draw by draw.

        In units of the target's own variance. Hidden nodes have noise too: what is left of the
        target is more than the variance of its own node.
        """
        A = self._training_rows.visible
        A = A[:: -(-len(A) // _MOST_TRIED_ROWS)]
        laws = enumerate(self._prediction_laws())
        return np.array([self._outputs_under(law, t, A)[1].mean(axis=0) for t, law in laws])

    # -- nodes

    def _node_columns(self):
        n_targets = len(self._units.constant)
        return np.concatenate([self._units.columns, n_targets + self._input_units.columns])

    def _node_names(self):
        targets = ["y"]
        if not self._is_single:
            targets = [f"y{j}" for j in range(len(self._units.constant))]
        return targets + self._feature_names()

    # -- for ArviZ

    def _targets_axis(self):
        names = self._node_names()[: len(self._units.constant)]
        return Axis("target", np.array(names, dtype=object))

    def _outputs_axis(self):
        targets, columns = self._targets_axis(), self._units.columns
        if len(columns) == len(targets.labels):
            return targets
        return Axis("modelled_target", targets.labels[columns])

    def _observed_group(self):
        rows, targets = self._rows_axis(), self._targets_axis()
        y = self._shaped(self._training_rows.table[:, self.n_features_in_ :])
        coords = rows.coords() | ({} if self._is_single else targets.coords())
        return Group({"y": (("row", "target")[: y.ndim], y)}, coords)

    def _replicated(self, A):
        return {"y": self._shaped(self._units.from_visible(A[:, : self._n_outputs()]))}

    def _check_loaded(self):
        check_units(self._units, self._training_rows.table.shape[1] - self.n_features_in_)
        super()._check_loaded()
        if len(self._training_rows.labels) or "latent" in self._prior.roles:
            raise ValueError("the prior must have real targets")
