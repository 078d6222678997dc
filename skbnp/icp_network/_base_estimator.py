"""What all three estimators share: the run, the prior, checks and files."""

from functools import partial
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from skbnp.estimators.arguments import check_numbers_of_law, number_or_law
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.network import ColumnGraphMixin, lowest_first
from skbnp.estimators.network_parameters import NetworkChains
from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import moved_to_sampler, of_sampler
from skbnp.icp_network._model import (
    Prior,
    activations_from,
    check_prior,
    checked_state,
    draw_joint,
    labels_of,
)
from skbnp.icp_network._old_files import parameters_of_file
from skbnp.icp_network._sampler import Sampler
from skbnp.icp_network._sampler_settings import ICPSampler
from skbnp.icp_network._start import start_state
from skbnp.icp_network._training_rows import TrainingRows, WatchedRows
from skbnp.laws import Gamma, InverseGamma, Law
from skbnp.mcmc.caller import warn
from skbnp.mcmc.fields import Field
from skbnp.summaries.reference import reference_draw
from skbnp.units import Units

# Rows and features beyond which a sweep is slow.
_MANY_ROWS, _MANY_FEATURES = 20_000, 10_000
# Parameters that the prior takes as they are.
_HYPERPARAMETERS = (
    *("mass", "concentration", "observed_popularity", "weight_variance", "bias_variance"),
    "noise_precision",
)
# Units of the layer that chains start with, at least.
_INIT_UNITS = 10
# Share of the warm-up that chains which start from a network are left without births.
_SETTLING = 0.1


class BaseICPNetwork(ColumnGraphMixin, NetworkChains):
    """Networks under the Indian chefs process: what a table of nodes is made of differs.

    A subclass says in ``_observed(table)`` how a table as validated stands as observed nodes, in
    ``_feature_units()`` which units the columns of X have, and in ``_layers`` which layers of
    hidden nodes chains may start with: the sampler's init "auto" is the first of them.
    """

    mass: float | Gamma = parameter(
        default=Gamma(1.0, 1.0),
        kind="float or Gamma",
        rules=[Interval(Real, 1e-6, 1e4, closed="both"), Gamma],
        text="""
        Sets how many hidden nodes there are a priori: a node of order 0 has Poisson(mass) hidden
        parents.
        """,
    )
    concentration: float | InverseGamma = parameter(
        default=InverseGamma(2.0, 2.0),
        kind="float or InverseGamma",
        rules=[Interval(Real, 1e-6, 1e4, closed="both"), InverseGamma],
        text="""
        The larger it is, the fewer parents nodes share, and the more hidden nodes there are.
        """,
    )
    observed_popularity: float | Gamma = parameter(
        default=Gamma(1.0, 1.0),
        kind="float or Gamma",
        rules=[Interval(Real, 1e-6, 1e4, closed="both"), Gamma],
        text="""
        Called phi; sets how often columns are parents of nodes below them. The expected share is
        phi / (phi + concentration). It has no effect on columns of order 0, which have no children.
        """,
    )
    weight_variance: float = parameter(
        default=4.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Variance of the normal prior of each weight, with mean 0. With larger weights units switch
        more sharply.
        """,
    )
    bias_variance: float = parameter(
        default=4.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Variance of the normal prior of each bias, with mean 0.
        """,
    )
    noise_precision: Gamma = parameter(
        default=Gamma(1.0, 0.1),
        kind="Gamma",
        rules=[Gamma],
        text="""
        Prior of the precision of each node, for columns as they are scaled inside. Its rate is a
        bound: noise below sqrt(rate / (shape + n_samples / 2)) deviations of a column is not found.
        """,
    )
    max_units: int = parameter(
        default=200,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Largest number of hidden nodes. It is a part of the model: the prior is restricted to
        networks of this size.
        """,
    )
    n_fantasies: int = parameter(
        default=2000,
        of_chains=False,
        kind="int",
        rules=[Interval(Integral, 2, 1_000_000, closed="both")],
        text="""
        Samples from the prior of the hidden nodes, per draw, that every row is compared with.
        """,
    )
    store_activations: bool = parameter(
        default=False,
        kind="bool",
        rules=["boolean"],
        text="""
        Whether every draw keeps the hidden activations of the training rows, as
        ``pre_activations``.
        """,
    )
    max_rows: int | None = parameter(
        default=None,
        kind="int or None",
        rules=[Interval(Integral, 2, None, closed="left"), None],
        text="""
        Largest number of training rows that are used. They are chosen at random, the same ones for
        every `random_state`. The time of a sweep is proportional to it. None uses all rows.
        """,
    )
    sampler: ICPSampler | None = parameter(default=None, **of_sampler(ICPSampler))

    _reported_traces = ("log_density", "n_hidden", "n_edges")
    _findings = "networks"
    _fewest_rows = 2
    _saved_types = (Prior, Units, TrainingRows)
    _settings_type = ICPSampler
    _layers: ClassVar[tuple] = ()
    _renamed: ClassVar[dict] = {
        "mass_prior": "mass takes the law itself: mass=Gamma(shape, rate), from skbnp.laws",
        "inverse_concentration_prior": (
            "concentration takes the law itself: concentration=InverseGamma(shape, scale), from "
            "skbnp.laws, where the scale is the rate of before"
        ),
        "popularity_prior": (
            "observed_popularity takes the law itself: observed_popularity=Gamma(shape, rate), "
            "from skbnp.laws"
        ),
        "noise_prior": (
            "it is noise_precision now, which takes the law itself: noise_precision=Gamma(shape, "
            "rate), from skbnp.laws"
        ),
        "hyperprior": (
            "each hyperparameter takes its own law; those of the paper are mass=Gamma(0.5, 0.5), "
            "concentration=InverseGamma(0.5, 0.5), observed_popularity=Gamma(0.5, 0.5), "
            "noise_precision=Gamma(0.5, 0.5), and 1 for every variance of weights and biases"
        ),
        "max_hidden": "it is max_units now",
        **moved_to_sampler(ICPSampler, *ICPSampler._declared),
    }
    _fitted_attributes: ClassVar[dict] = {
        **BaseMCMCEstimator._fitted_attributes,
        "n_hidden_": Integral,
        "n_edges_": Integral,
        "depth_": Integral,
        "n_guard_rejections_": Integral,
        "_prior": Prior,
        "_reference": dict,
        "_training_rows": TrainingRows,
        "_drops_rows": bool,
    }
    # A file of 0.1 does not say it.
    _not_always_fitted = (*BaseMCMCEstimator._not_always_fitted, "_drops_rows")
    _may_hold: ClassVar[dict] = {
        **BaseMCMCEstimator._may_hold,
        "table": (np.nan,),
        "visible": (np.nan,),
    }

    # -- nodes

    def _levels_of_constants(self):
        # Targets and columns stand at 0, features that are inputs at 1.
        names = self._node_names()
        is_feature = np.arange(len(names)) >= len(names) - self.n_features_in_
        return np.where(is_feature & ("input" in self._prior.roles), 1.0, 0.0)

    # -- before sampling

    def _check_training(self, X, y):
        X = super()._check_training(X, y)
        n, table = len(X), self._table(X, y)
        self._drops_rows = self.max_rows is not None and n > self.max_rows
        if self._drops_rows:
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
        settings = self._sampler_settings()
        init = self._checked_init(settings.init)
        if init == "prior":
            # To see that chains can start, before any does.
            draw_joint(self._prior, 0, np.random.default_rng(0))
        # A copy: the user may change X afterwards.
        self._training_rows = TrainingRows(
            X.copy(), visible, log_jacobian, labels, self._prior, self._density_options()
        )
        n_units = self._n_init_units(settings.n_init_units, len(X))
        n_warmup = self._auto_lengths(X)[0] if self.n_warmup == "auto" else self.n_warmup
        return partial(
            _make_sampler,
            visible=visible,
            labels=labels,
            prior=self._prior,
            log_jacobian=float(log_jacobian.sum()),
            squashes_cells=self._feature_units().visible == "sigmoid",
            n_settle=int(_SETTLING * n_warmup),
            store_activations=self.store_activations,
            **settings.get_params(deep=False) | {"init": init, "n_init_units": n_units},
        )

    def _checked_init(self, init):
        """Where chains start."""
        if init == "auto":
            return self._layers[0]
        allowed = ("auto", *self._layers, "empty", "prior")
        if init not in allowed:
            raise ValueError(
                f"init of sampler must be one of {', '.join(map(repr, allowed))} for "
                f"{type(self).__name__}, got {init!r}"
            )
        return init

    def _n_init_units(self, n_units, n_rows):
        if n_units != "auto":
            return n_units
        n_inputs = self._prior.roles.count("input")
        if not n_inputs:
            return 2 * _INIT_UNITS
        # More units than half the rows would follow each of them.
        return max(_INIT_UNITS, min(n_inputs // 2, n_rows // 2))

    def _make_prior(self, roles, orders):
        """The hyperparameters, checked."""
        values = {}
        for name in _HYPERPARAMETERS:
            value = getattr(self, name)
            if isinstance(value, Law):
                check_numbers_of_law(name, value, 1e-6, 1e6)
            values[name] = number_or_law(value)
        return Prior(
            roles=tuple(roles), orders=tuple(orders), max_units=int(self.max_units), **values
        )

    # -- after sampling

    def _summarise(self, X):
        draw = self._reference = reference_draw(self.posterior_)
        self.n_hidden_ = len(draw["order"]) - self._prior.n_observed
        self.n_edges_ = len(draw["edges"])
        self.depth_ = _depth(draw)
        self.n_guard_rejections_ = sum(
            int(move.get("n_guard_rejections", 0))
            for state in self.posterior_.final_states
            for move in state["moves"].values()
        )

    def _density(self, X, rows):
        return WatchedRows(self._training_rows, rows)

    # -- files

    @classmethod
    def _parameters_of_file(cls, parameters):
        if "max_hidden" not in parameters:
            return parameters
        # A file of version 0.1.
        knobs = {name: parameters[name] for name in ICPSampler().get_params()}
        rest = {name: value for name, value in parameters.items() if name not in knobs}
        return parameters_of_file(rest) | {"sampler": ICPSampler(**knobs)}

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

    # -- for ArviZ

    @property
    def _draw_fields(self):
        names = ["biases"]
        if "gaussian" in self._prior.roles:
            names.append("unit_precision")
        if None in self._prior.orders:
            names.append("order")
        return tuple(Field(name, float, ("columns_first",)) for name in names)

    def _prior_chain(self, rng):
        prior, visible = self._prior, self._training_rows.visible
        state = draw_joint(prior, 0, rng)
        noise = rng.standard_normal((len(visible), len(state["order"])))
        is_input = np.flatnonzero(~prior.has_law(prior.n_observed))
        noise[:, is_input] = visible[:, is_input]
        A, hidden = np.split(activations_from(state, prior, noise), [prior.n_observed], axis=1)
        state |= {"visible": np.ascontiguousarray(A), "pre_activations": hidden.copy()}
        labels = labels_of(state, prior) if "latent" in prior.roles else None
        return Sampler(state["visible"], prior, state, rng.bit_generator, labels=labels), A


def work_of_sweep(n_rows, n_edges, has_classes=False):
    """Nominal seconds of one core for a sweep of one chain over so many rows and edges.

    Fitted to what sweeps of tables of 40 to 500 rows and 2 to 64 columns take.
    """
    return 1e-6 * (300.0 + n_rows * ((13.0 if has_classes else 7.0) + 0.028 * n_edges))


def _n_values(table):
    """Number of distinct values of each column, counted up to 2."""
    low, high = np.fmin.reduce(table, axis=0), np.fmax.reduce(table, axis=0)
    return np.where(np.isnan(low), 0, 1 + (low < high))


def _depth(draw):
    """Edges of the longest path."""
    below = np.zeros(len(draw["order"]), dtype=np.intp)
    for parent, child in lowest_first(draw):
        below[parent] = max(below[parent], below[child] + 1)
    return int(below.max(initial=0))


def _make_sampler(
    bit_generator, chain, *, visible, labels, prior, log_jacobian, init, n_init_units, n_settle,
    **options,
):  # fmt: skip
    """The sampler of one chain; runs where the chain runs."""
    rng = np.random.Generator(bit_generator)
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
