"""What all three estimators share: the run, the prior, checks and files."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import refuses_by_name
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.icp_network._model import Prior, check_prior, checked_state, draw_joint
from skbnp.icp_network._sampler import Sampler
from skbnp.icp_network._start import start_state
from skbnp.icp_network._training_rows import TrainingRows
from skbnp.mcmc.caller import warn
from skbnp.units import Units, range_units, standard_units

# Rows beyond which chains are shorter and much shorter, and features beyond which a sweep is slow.
_SOME_ROWS, _MANY_ROWS, _MANY_FEATURES = 2_000, 20_000, 10_000
# What None stands for, by `hyperprior`.
_HYPERPRIORS = {
    "default": {
        "mass_prior": (1.0, 1.0),
        "inverse_concentration_prior": (2.0, 2.0),
        "popularity_prior": (1.0, 1.0),
        "weight_variance": 4.0,
        "bias_variance": 4.0,
        "noise_prior": (1.0, 0.1),
    },
    "paper": {
        "mass_prior": (0.5, 0.5),
        "inverse_concentration_prior": (0.5, 0.5),
        "popularity_prior": (0.5, 0.5),
        "weight_variance": 1.0,
        "bias_variance": 1.0,
        "noise_prior": (0.5, 0.5),
    },
}
# Units of the layer that chains start with, at least.
_INIT_UNITS = 10
# Share of the warm-up that chains which start from a network are left without births.
_SETTLING = 0.1


class BaseICPNetwork(BaseMCMCEstimator):
    """Networks under the Indian chefs process: what a table of nodes is made of differs.

    A subclass says in ``_observed(table)`` how a table as validated stands as observed nodes, and
    in ``_feature_units()`` which units the columns of X have.
    """

    mass: float | str = parameter(
        default="sample",
        kind='float or "sample"',
        rules=[Interval(Real, 1e-6, 1e4, closed="both"), StrOptions({"sample"})],
        text="""
        How many hidden nodes there are: a node of order 0 has Poisson(mass) hidden parents.
        """,
    )
    mass_prior: tuple | None = parameter(
        default=None,
        kind="tuple of (shape, rate)",
        rules=[list, tuple, None],
        text="""
        Gamma prior of a sampled mass; None takes that of `hyperprior`.
        """,
    )
    concentration: float | str = parameter(
        default="sample",
        kind='float or "sample"',
        rules=[Interval(Real, 1e-6, 1e4, closed="both"), StrOptions({"sample"})],
        text="""
        Larger makes nodes share parents less, so that there are more of them.
        """,
    )
    inverse_concentration_prior: tuple | None = parameter(
        default=None,
        kind="tuple of (shape, rate)",
        rules=[list, tuple, None],
        text="""
        Gamma prior of 1 / concentration, where sampled.
        """,
    )
    observed_popularity: float | str = parameter(
        default="sample",
        kind='float or "sample"',
        rules=[Interval(Real, 1e-6, 1e4, closed="both"), StrOptions({"sample"})],
        text="""
        How often columns are parents of nodes below them: phi / (phi + concentration) is the
        expected share. Of no consequence where `observed_order` is 0.
        """,
    )
    popularity_prior: tuple | None = parameter(
        default=None,
        kind="tuple of (shape, rate)",
        rules=[list, tuple, None],
        text="""
        Gamma prior of `observed_popularity`, where sampled.
        """,
    )
    weight_variance: float | None = parameter(
        default=None,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both"), None],
        text="""
        Of the normal prior of each weight, around 0. Larger makes units switch more sharply.
        """,
    )
    bias_variance: float | None = parameter(
        default=None,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both"), None],
        text="""
        The same for the biases.
        """,
    )
    noise_prior: tuple | None = parameter(
        default=None,
        kind="tuple of (shape, rate)",
        rules=[list, tuple, None],
        text="""
        Gamma prior of each unit's precision.
        """,
    )
    hyperprior: str = parameter(
        default="default",
        kind='{"default", "paper"}',
        rules=[StrOptions({"default", "paper"})],
        text="""
        What None stands for above. "default": (1, 1), (2, 2), (1, 1), 4, 4 and (1, 0.1) in the
        order above; "paper": (0.5, 0.5) three times, 1, 1 and (0.5, 0.5), under which networks of
        hundreds of nodes are not rare a priori.
        """,
    )
    max_hidden: int = parameter(
        default=200,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Hidden nodes at most; a part of the model, whose prior is restricted to such networks.
        """,
    )
    moves: str = parameter(
        default="default",
        kind='{"default", "paper"}',
        rules=[StrOptions({"default", "paper"})],
        text="""
        "paper": the paper's moves of the graph alone, corrected; they mix far more slowly.
        """,
    )
    activation_update: str = parameter(
        default="grid",
        kind='{"grid", "slice", "mtm"}',
        rules=[StrOptions({"grid", "slice", "mtm"})],
        text="""
        How hidden activations are drawn unit by unit: from a grid in the prior's quantiles, by
        univariate slices, or by multiple tries.
        """,
    )
    n_noise_slices: int = parameter(
        default=1,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Elliptical slices over all noises of a row, per sweep.
        """,
    )
    n_hmc: int = parameter(
        default=3,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Hamiltonian trajectories over noises and parameters, per sweep.
        """,
    )
    n_leapfrog: int = parameter(
        default=20,
        kind="int",
        rules=[Interval(Integral, 1, 10_000, closed="both")],
        text="""
        Steps of each.
        """,
    )
    n_births: int = parameter(
        default=10,
        kind="int",
        rules=[Interval(Integral, 0, 1_000_000, closed="both")],
        text="""
        Births or deaths of hidden nodes that are tried, per sweep.
        """,
    )
    n_affine: int = parameter(
        default=0,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Moves that scale and shift the activations of a hidden node, per sweep.
        """,
    )
    n_rotations: int = parameter(
        default=0,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Moves that rotate the noises of two hidden nodes without parents, per sweep.
        """,
    )
    n_init_units: int | str = parameter(
        default="auto",
        kind='int or "auto"',
        rules=[Interval(Integral, 1, 1_000_000, closed="both"), StrOptions({"auto"})],
        text="""
        Units of that layer, at most. "auto" is 20.
        """,
    )
    store_activations: bool = parameter(
        default=False,
        kind="bool",
        rules=["boolean"],
        text="""
        Keep the hidden activations of the training rows in every draw, as ``pre_activations``.
        """,
    )
    n_fantasies: int = parameter(
        default=2000,
        kind="int",
        rules=[Interval(Integral, 2, 1_000_000, closed="both")],
        text="""
        Samples of the network's prior, per draw, that rows are weighed by.
        """,
    )
    max_rows: int | None = parameter(
        default=None,
        kind="int",
        rules=[Interval(Integral, 2, None, closed="left"), None],
        text="""
        Rows that are used, at most: a random choice, the same for every `random_state`. A sweep
        costs in proportion.
        """,
    )

    _reported_traces = ("log_joint", "n_hidden", "n_edges")
    _parameters_after_sampling = (
        *("n_fantasies", "density", "n_importance", "n_temperatures", "n_particles"),
    )
    _bool_parameters = (*BaseMCMCEstimator._bool_parameters, "store_activations")
    _saved_types = (Prior, Units, TrainingRows)
    _fitted_attributes: dict = {
        **BaseMCMCEstimator._fitted_attributes,
        "n_hidden_": Integral,
        "n_edges_": Integral,
        "depth_": Integral,
        "n_guard_rejections_": Integral,
        "_prior": Prior,
        "_reference": dict,
        "_training_rows": TrainingRows,
    }
    _may_hold: dict = {
        **BaseMCMCEstimator._may_hold,
        "table": (np.nan,),
        "visible": (np.nan,),
    }

    # -- the networks

    @refuses_by_name
    def network(self, draw=None):
        """Nodes and edges of a draw, numbered with all columns first.

        Parameters
        ----------
        draw : dict, default=None
            One of `posterior_`; None is the reference draw.

        Returns
        -------
        network : dict
            ``names``, a list of those of the columns, targets before features;
            ``order`` of each node, these first; ``edges`` (n_edges, 2), each [parent, child];
            ``weights`` (n_edges,), ``biases`` and ``unit_precision`` of each node, for columns as
            they are scaled inside; NaN for constant columns, which stand at order 0, features
            that are inputs at 1.
        """
        check_is_fitted(self, "posterior_")
        draw = self._given_draw(draw)
        columns, names = self._node_columns(), self._node_names()
        n_hidden = len(draw["order"]) - len(columns)
        number = np.concatenate([columns, len(names) + np.arange(n_hidden)])
        out = {"names": names, "edges": number[draw["edges"]], "weights": draw["weights"].copy()}
        for name in ("order", "biases", "unit_precision"):
            out[name] = np.full(len(names) + n_hidden, np.nan)
            out[name][number] = draw[name]
        n_targets = len(names) - self.n_features_in_
        at_the_top = (np.arange(len(out["order"])) >= n_targets) & ("input" in self._prior.roles)
        out["order"] = np.where(np.isnan(out["order"]), at_the_top, out["order"])
        return out

    @refuses_by_name
    def structure_graph(self, draw=None):
        """The network of a draw as a networkx.DiGraph.

        Parameters
        ----------
        draw : dict, default=None
            One of `posterior_`; None is the reference draw.

        Returns
        -------
        graph : networkx.DiGraph
            Edges from parent to child with ``weight``; nodes with ``order``, ``bias``,
            ``precision`` and, for columns, ``name``.

        Raises
        ------
        ImportError
            Without networkx, which comes with ``pip install skbnp[plot]``.
        """
        network = self.network(draw)
        import networkx

        graph = networkx.DiGraph()
        columns = zip(network["order"], network["biases"], network["unit_precision"], strict=True)
        for node, (order, bias, precision) in enumerate(columns):
            label = {"name": network["names"][node]} if node < len(network["names"]) else {}
            graph.add_node(
                node, order=float(order), bias=float(bias), precision=float(precision), **label
            )
        for (parent, child), weight in zip(network["edges"], network["weights"], strict=True):
            graph.add_edge(int(parent), int(child), weight=float(weight))
        return graph

    def _feature_names(self):
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return [f"x{j}" for j in range(self.n_features_in_)]
        return [str(name) for name in names]

    # -- before sampling

    def _auto_lengths(self, X):
        if len(X) > _MANY_ROWS:
            return 200, 200
        return (500, 500) if len(X) > _SOME_ROWS else (1000, 1000)

    def _check_training(self, X, y):
        X = super()._check_training(X, y)
        n = len(X)
        if n < 2:
            raise ValueError(f"X must have at least 2 samples, got n_samples = {n}")
        table = self._table(X, y)
        if self.max_rows is not None and n > self.max_rows:
            chosen = np.random.default_rng(0).choice(n, self.max_rows, replace=False)
            table, whole = np.ascontiguousarray(table[np.sort(chosen)]), table
            if (_n_values(table) < np.minimum(_n_values(whole), 2)).any():
                raise ValueError(
                    "max_rows must leave values, and two of them where there are two, in every "
                    f"column of X and y, got {self.max_rows}"
                )
        elif n > _MANY_ROWS:
            warn(
                f"X has {n} rows, and a sweep costs in proportion: expect it to be slow, or "
                f"set max_rows",
            )
        if self.n_features_in_ > _MANY_FEATURES:
            warn(
                f"X has {self.n_features_in_} features, and a sweep costs in proportion: expect "
                "it to be slow",
            )
        return table

    def _table(self, X, y):
        """What is modelled, X and y side by side where there is a y."""
        return X

    def _prepare(self, X):
        """Check the parameters against the table X, scale it and say how to build a sampler."""
        visible, log_jacobian, labels, roles, orders = self._observed(X)
        self._prior = self._make_prior(roles, orders)
        if self.init == "prior":
            # To see that chains can start, before any does.
            draw_joint(self._prior, 0, np.random.default_rng(0))
        # A copy: what the user does with X afterwards is no business of ours.
        self._training_rows = TrainingRows(
            X.copy(), visible, log_jacobian, labels, self._prior, self._density_options()
        )
        n_warmup = self._auto_lengths(X)[0] if self.n_warmup == "auto" else self.n_warmup
        return partial(
            _make_sampler,
            visible=visible,
            labels=labels,
            prior=self._prior,
            log_jacobian=float(log_jacobian.sum()),
            inits=self._inits(),
            n_init_units=self._n_init_units(len(X)),
            n_settle=int(_SETTLING * n_warmup),
            moves=self.moves,
            activation_update=self.activation_update,
            n_noise_slices=self.n_noise_slices,
            n_hmc=self.n_hmc,
            n_leapfrog=self.n_leapfrog,
            n_births=self.n_births,
            n_affine=self.n_affine,
            n_rotations=self.n_rotations,
            store_activations=self.store_activations,
        )

    def _n_init_units(self, n_rows):
        if self.n_init_units != "auto":
            return self.n_init_units
        n_inputs = self._prior.roles.count("input")
        if not n_inputs:
            return 2 * _INIT_UNITS
        # More units than half the rows would follow each of them.
        return max(_INIT_UNITS, min(n_inputs // 2, n_rows // 2))

    def _make_prior(self, roles, orders):
        """The hyperparameters, checked."""
        default = _HYPERPRIORS[self.hyperprior]
        values = {}
        for name in ("mass", "concentration", "observed_popularity"):
            value = getattr(self, name)
            values[name] = None if isinstance(value, str) else float(value)
        for name, pair in default.items():
            value = getattr(self, name)
            if isinstance(pair, tuple):
                values[name] = pair if value is None else _pair(name, value)
            else:
                values[name] = pair if value is None else float(value)
        return Prior(
            roles=tuple(roles), orders=tuple(orders), max_hidden=int(self.max_hidden), **values
        )

    def _fitted_units(self, X, what, visible="gaussian", bounds=None, feature_range=1.0):
        """The units of the columns of X that vary."""

        def named(columns):
            return self._named(columns) if what == "X" else f"column(s) {columns.tolist()}"

        if visible == "gaussian":
            # Sums over a column that lies in one piece are pairwise.
            units = standard_units(np.asfortranarray(X), what=what, named=named)
        else:
            units = range_units(X, bounds, feature_range, named=named)
        self._warn_of_constant(units, what, named)
        return units

    # -- after sampling

    def _summarise(self, X):
        draw = self._reference = self.posterior_.highest()
        self.n_hidden_ = len(draw["order"]) - self._prior.n_observed
        self.n_edges_ = len(draw["edges"])
        self.depth_ = _depth(draw)
        self.n_guard_rejections_ = sum(
            int(move.get("n_guard_rejections", 0))
            for state in self.posterior_.final_states
            for move in state["moves"].values()
        )

    def _attach_rows(self):
        self.posterior_.attach_rows(self._training_rows)

    # -- files

    def _check_draw(self, draw):
        checked_state(draw, self._prior, len(self._training_rows.table), draw=True)

    def _check_loaded(self):
        check_prior(self._prior)
        rows = self._training_rows
        n, n_observed = len(rows.table), self._prior.n_observed
        for name, shape in (("visible", (n, n_observed)), ("log_jacobian", (n,))):
            value = getattr(rows, name)
            if value.shape != shape or value.dtype != np.float64:
                raise ValueError(f"{name} of the training rows must have shape {shape}")
        if rows.prior != self._prior:
            raise ValueError("the prior of the training rows must be that of the draws")
        if len(self._node_columns()) != n_observed:
            raise ValueError("the prior must have a role for each column that varies")
        draw = self._reference
        self._check_draw(draw)
        found = (len(draw["order"]) - n_observed, len(draw["edges"]), _depth(draw))
        if (self.n_hidden_, self.n_edges_, self.depth_) != found:
            raise ValueError("n_hidden_, n_edges_ and depth_ must be those of the reference draw")

    # -- one draw

    def _in_units(self, mean, variance):
        """Means and standard deviations of all columns in the units of X."""
        return self._units.moments(mean, variance)


def _n_values(table):
    """Number of distinct values of each column, counted up to 2."""
    low, high = np.fmin.reduce(table, axis=0), np.fmax.reduce(table, axis=0)
    return np.where(np.isnan(low), 0, 1 + (low < high))


def _pair(name, value):
    """Shape and rate of a gamma prior."""
    value = tuple(value)
    real = [isinstance(x, Real) and not isinstance(x, bool) for x in value]
    if len(value) != 2 or not all(real) or not all(1e-6 <= x <= 1e6 for x in value):
        raise ValueError(f"{name} must be 2 numbers, positive from 1e-6 to 1e6, got {value!r}")
    return tuple(float(x) for x in value)


def generator_for(n_samples, random_state):
    """A Generator for so many samples."""
    if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
        raise ValueError(f"n_samples must be an integer >= 1, got {n_samples!r}")
    rng = check_random_state(random_state)
    return np.random.default_rng(rng.randint(2**32, dtype=np.uint64))


def _depth(draw):
    """Edges of the longest path."""
    below = np.zeros(len(draw["order"]), dtype=np.intp)
    lowest_first = np.argsort(draw["order"][draw["edges"][:, 0]], kind="stable")
    for parent, child in draw["edges"][lowest_first]:
        below[parent] = max(below[parent], below[child] + 1)
    return int(below.max(initial=0))


def _make_sampler(
    bit_generator, chain, *, visible, labels, prior, log_jacobian, inits, n_init_units, n_settle,
    **options,
):  # fmt: skip
    """The sampler of one chain; runs where the chain runs."""
    rng = np.random.Generator(bit_generator)
    init = inits[chain % len(inits)]
    labels = labels if len(labels) else None
    state = start_state(visible, prior, rng, init, n_init_units, labels)
    return Sampler(
        visible,
        prior,
        state,
        bit_generator,
        labels=labels,
        n_settle=0 if init in ("empty", "prior") else n_settle,
        log_jacobian=log_jacobian,
        **options,
    )
