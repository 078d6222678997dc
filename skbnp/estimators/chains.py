"""The base of all estimators: parameters of the chains, the fit template, going on."""

import os
from contextlib import nullcontext
from copy import copy
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, MissingValues, StrOptions

from skbnp.estimators.arguments import refuses_by_name
from skbnp.estimators.callbacks import CallbackSupportMixin, with_callbacks
from skbnp.estimators.draws import DrawsMixin
from skbnp.estimators.export import ExportMixin
from skbnp.estimators.files import FilesMixin
from skbnp.estimators.parameters import Declared, parameter
from skbnp.estimators.reports import ReportMixin
from skbnp.estimators.tables import TablesMixin
from skbnp.mcmc.caller import is_judged_by_caller, stands_in, warn
from skbnp.mcmc.checkpoint import Checkpoint, digest
from skbnp.mcmc.diagnostics import convergence_problems, never_moved
from skbnp.mcmc.interrupt import HeldInterrupt
from skbnp.mcmc.posterior import Posterior
from skbnp.mcmc.remedies import (
    ChainsWarning,
    Diagnosis,
    in_a_row,
    remedies,
    shortcomings_of_ensemble,
)
from skbnp.mcmc.rows import OneBlasThread
from skbnp.mcmc.runner import run_chains
from skbnp.mcmc.warmup import WarmupRounds
from skbnp.summaries.training_cells import TrainingCells
from skbnp.tables.forms import TableForm

# What "auto" stores of full draws, and one megabyte, in bytes.
_STORE_AUTO, _MEGABYTE = 10**9, 10**6

# Training rows whose log density is traced, at most, and what tells their choice from the seeds
# of the chains, which are numbered from 0.
_MOST_WATCHED_ROWS, _KEY_OF_WATCHED_ROWS = 200, 2**32 - 1

# The least gain, in nats per row and column, of pooling chains that is called a disagreement; an
# ensemble should gain less by twice as many chains, or by longer ones.
_LEAST_POOL_GAIN = 0.02


class BaseMCMCEstimator(
    FilesMixin,
    TablesMixin,
    ExportMixin,
    DrawsMixin,
    ReportMixin,
    Declared,
    CallbackSupportMixin,
    BaseEstimator,
):
    """Fit by Markov chain Monte Carlo, predict from the kept draws.

    A subclass defines ``_prepare(X)``, which checks its own parameters against the validated X
    and returns ``make_sampler(bit_generator, chain)``; ``_summarise(X)``, which computes point
    estimates from ``posterior_``; and ``_auto_lengths(X)``. With
    ``_density(X, rows)`` it has the trace ``log_density``; of `skbnp.estimators.rounds` it has a
    warm-up that ends when it is done. For files it says which attributes ``fit`` sets, which of
    their numbers need not be finite, and in ``_check_draw(draw)`` and ``_check_loaded()`` what
    would make its kernels read beyond an array or its answers no numbers.
    """

    n_chains: int | str = parameter(
        default="auto",
        of_chains=False,
        kind='int or "auto"',
        rules=[Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        text="""
        Independent chains; "auto" is 4. `n_chains_` says what "auto" came to.
        """,
    )
    n_warmup: int | str = parameter(
        default="auto",
        of_chains=False,
        kind='int or "auto"',
        rules=[Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        text="""
        Sweeps per chain before the first draw. `n_warmup_` says what "auto" came to.
        """,
    )
    n_draws: int | str = parameter(
        default="auto",
        of_chains=False,
        kind='int or "auto"',
        rules=[Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        text="""
        Draws kept per chain. `n_draws_` says what "auto" came to.
        """,
    )
    thin: int = parameter(
        default=1,
        of_chains=False,
        kind="int",
        rules=[Interval(Integral, 1, None, closed="left")],
        text="""
        Sweeps per kept draw.
        """,
    )
    n_jobs: int | None = parameter(
        default=None,
        of_chains=False,
        kind="int or None",
        rules=[
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        text="""
        Chains at a time in `fit`, threads over rows where jobs outnumber chains and when
        predicting; see `joblib.Parallel`. The results do not depend on it.
        """,
    )
    random_state: int | np.random.RandomState | None = parameter(
        default=None,
        of_chains=False,
        kind="int, RandomState instance or None",
        rules=["random_state"],
        text="""
        Seed of the chains.
        """,
    )
    warm_start: bool = parameter(
        default=False,
        of_chains=False,
        kind="bool",
        rules=["boolean"],
        text="""
        Whether `fit` continues the chains of the last `fit` of this object to a larger `n_draws`,
        without a new warm-up. Data and parameters must be the same.
        """,
    )
    checkpoint: str | os.PathLike | None = parameter(
        default=None,
        of_chains=False,
        kind="str or Path",
        rules=[str, os.PathLike, None],
        text="""
        Directory for a checkpoint file. A later `fit` on the same data with the same parameters
        continues from it, also after the process was killed, and also to a larger `n_draws`.
        Several fits may share a directory. The files are never removed automatically.
        """,
    )
    checkpoint_every: float = parameter(
        default=60.0,
        of_chains=False,
        kind="float",
        rules=[Interval(Real, 0, None, closed="left")],
        text="""
        Seconds between two writes of that file. It is also written at the end.
        """,
    )
    store: str | float = parameter(
        default="auto",
        of_chains=False,
        kind='"auto", "all" or float',
        rules=[Interval(Real, 0, None, closed="neither"), StrOptions({"auto", "all"})],
        text="""
        Megabytes that the stored draws may take, "auto" means 1000. When there are more, every
        second draw is let go, again and again; traces are always complete.
        """,
    )
    missing_values: Any = parameter(
        default=None,
        of_chains=False,
        kind="number, str, list of these, dict or None",
        rules=[MissingValues(), Real, list, tuple, dict],
        text="""
        What marks a missing cell in X beside NaN, None, masks and pandas' NA: -999 say, or "?", a
        list of such, or a dict with those of some columns, by name in a frame and by place in an
        array. None: nothing else. What it was in `fit` holds for all later tables.
        """,
    )
    predict_draws: int = parameter(
        default=100,
        of_chains=False,
        kind="int",
        rules=[Interval(Integral, 1, None, closed="left")],
        text="""
        Evenly spaced draws that predict-type methods use, at most.
        """,
    )
    verbose: int = parameter(
        default=0,
        of_chains=False,
        kind="int",
        rules=["verbose"],
        text="""
        1 prints where the chains stand and the time left, after ten sweeps, then once a minute and
        at the end; 2 each time the chains meet. See also :mod:`skbnp.progress`.
        """,
    )

    # Names of the traces whose convergence ``fit`` checks.
    _reported_traces = ("log_joint",)
    # What chains that disagree have found, and the moves without which a trace never changes.
    _findings = "answers"
    _moves_of_traces: ClassVar[dict] = {}
    # What `sampler` takes, where there is one: a subclass of SamplerSettings.
    _settings_type = None
    # Classes of the subclass that its fitted attributes are made of.
    _saved_types = ()
    # The attributes that ``fit`` sets, with their types: what files hold, and nothing else.
    _fitted_attributes: ClassVar[dict] = {
        "posterior_": Posterior,
        "n_chains_": Integral,
        "n_warmup_": Integral,
        "n_draws_": Integral,
        "seed_": Integral,
        "n_features_in_": Integral,
        "feature_names_in_": np.ndarray,
        "_form": TableForm,
        "_training_cells": TrainingCells,
        "_fitted_on": dict,
        "_sklearn_output_config": dict,
    }
    # Those among them that depend on parameters or data.
    _not_always_fitted = ("feature_names_in_", "_training_cells", "_sklearn_output_config")
    # None where no cell of the training table was missing, or they are not kept.
    _training_cells = None
    # None where a model keeps none.
    _training_rows = None
    # Names of arrays and numbers in files that need not be finite, and what they may hold. An
    # index of a frame may hold anything.
    _may_hold: ClassVar[dict] = dict.fromkeys(
        ["parameters", "_form", "_training_cells"], (np.nan, np.inf, -np.inf)
    )

    @_fit_context(prefer_skip_nested_validation=True)
    @refuses_by_name
    def fit(self, X, y=None):
        """Sample the posterior given X and summarise it.

        What is found is attached in one step at the end: a fit that fails leaves the estimator as
        it was before, also fitted, if it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; NaN marks missing cells, as do masked cells, None and pandas' NA. They
            are refused where targets are predicted.
        y : None, or array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets or labels, for an estimator that predicts them; ignored by all others.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X or a parameter breaks a rule, or `warm_start` meets other data or parameters;
            before any sampling.
        skbnp.mcmc.io.FileFormatError
            If the file in `checkpoint` is damaged, of another run or of a newer version.
        OSError
            If `checkpoint` cannot be written, before any sampling.
        skbnp.mcmc.NonFiniteLogJointError
            If a chain leaves the range of floats.
        KeyboardInterrupt
            If Ctrl-C was pressed before every chain had kept a draw, or a second time: nothing is
            attached. Also if it was pressed after the last sweep: the estimator is fitted in full.

        Warns
        -----
        ConvergenceWarning
            If R-hat or the effective sample size of a reported quantity is poor.
        UserWarning
            If Ctrl-C has cut the run short, the draws so far being kept; if the checkpoint could
            not be written later on; if `store` has room for fewer draws than `predict_draws`; if
            a column has another value in nearly every row, as an identifier has.
        """
        attempt = copy(self)
        stands_in(attempt, self)
        for name in self._not_always_fitted:
            # Of an earlier fit, which this one might not find. How output is shown stays.
            if name != "_sklearn_output_config":
                vars(attempt).pop(name, None)
        with HeldInterrupt() as interrupt:
            was_cut_short = attempt._sample(X, y)
            # One assignment: whoever looks finds the fit before or this one, never parts of both.
            self.__dict__ = vars(attempt)
            if not is_judged_by_caller(self):
                self._judge_chains()
            self._warn_if_few_are_stored()
        if interrupt.requested and not was_cut_short:
            # It came too late to cut anything short, and whoever pressed it wants to stop.
            raise KeyboardInterrupt("after the last sweep; the estimator is fitted")
        return self

    @with_callbacks
    def _sample(self, X, y):
        """Check everything, run the chains and summarise them: all of `fit`, on its copy.

        Returns whether Ctrl-C has cut the run short.
        """
        self._refuse_bools()
        if self._settings_type is not None:
            self._sampler_settings()._refuse_bools()
        X = self._check_training(X, y)
        self.n_chains_ = self._auto_n_chains(X) if self.n_chains == "auto" else self.n_chains
        with OneBlasThread():
            make_sampler = self._prepare(X)
        n_warmup, self.n_draws_, thin = self._lengths(X)
        checkpoint, start = self._where_to_start(X, n_warmup, thin)
        n_tasks = self.n_chains_ + self._n_tasks_after_chains()
        context = self._init_callback_context(max_subtasks=n_tasks)
        context.call_on_fit_task_begin(estimator=self, X=X)
        n_jobs, backend = self._where_chains_run()
        with backend:
            self.posterior_ = run_chains(
                make_sampler,
                n_chains=self.n_chains_,
                n_warmup=n_warmup,
                n_draws=self.n_draws_,
                thin=thin,
                seed=self.seed_,
                n_jobs=n_jobs,
                verbose=self.verbose,
                callbacks=(self, context),
                store=self._bytes_to_store(),
                start=start,
                checkpoint=checkpoint,
                density=self._density(X, self._watched_rows(len(X))),
                reported=self._reported_traces,
            )
        self.n_warmup_ = self.posterior_.n_warmup
        was_cut_short = self.posterior_.interrupted and self.posterior_.n_draws < self.n_draws_
        self.n_draws_ = self.posterior_.n_draws
        self._attach_rows()
        self._summarise(X)
        self._attach_exporter()
        context.call_on_fit_task_end(estimator=self, X=X)
        return was_cut_short

    def _where_chains_run(self):
        """Chains at a time, and a context in which joblib runs them where they have to be."""
        return self.n_jobs, nullcontext()

    def _n_tasks_after_chains(self):
        """Tasks of callbacks that `_summarise` adds to those of the chains."""
        return 0

    def _validate_params(self):
        super()._validate_params()
        if self._settings_type is not None:
            self._sampler_settings()._validate_params()

    def _sampler_settings(self):
        """The value of `sampler`, its defaults where that is None."""
        return self._settings_type() if self.sampler is None else self.sampler

    # -- lengths

    def _lengths(self, X):
        """The warm-up, a number of sweeps or rounds, the draws and the sweeps per draw."""
        n_warmup, n_draws = self._auto_lengths(X)
        n_warmup = n_warmup if self.n_warmup == "auto" else self.n_warmup
        n_draws = n_draws if self.n_draws == "auto" else self.n_draws
        return n_warmup, n_draws, 1 if self.thin == "auto" else self.thin

    def _auto_n_chains(self, X):
        """The number of chains that "auto" stands for."""
        return 4

    def _is_ensemble(self, n_features):
        """Whether chains stay apart as long as anybody would run them, and are many and short.

        A warm-up in rounds then ends when `log_density` drifts no more, and `fit` does not warn of
        chains that differ.
        """
        return False

    def _density(self, X, rows):
        """Log density of some training rows: ``density(sampler)`` (n_rows,), with ``n_rows``.

        In the units of X, of the observed cells, all that is not in the draw integrated out; it
        must pickle. None where the model has none yet.
        """
        return None

    def _watched_rows(self, n_samples):
        """The training rows whose log density is traced, chosen by the seed, in their order."""
        if n_samples <= _MOST_WATCHED_ROWS:
            return np.arange(n_samples)
        seed = np.random.SeedSequence(self.seed_, spawn_key=(_KEY_OF_WATCHED_ROWS,))
        rows = np.random.default_rng(seed).permutation(n_samples)[:_MOST_WATCHED_ROWS]
        return np.sort(rows)

    # -- going on from an earlier run

    def _where_to_start(self, X, n_warmup, thin):
        """The checkpoint, None without, and the posterior to go on from, None to start anew.

        Sets the seed, that of the posterior or else a new one, and what the draws depend on; and
        begins a new checkpoint where there is nothing to go on from.
        """
        seed = int(check_random_state(self.random_state).randint(2**62, dtype=np.int64))
        fingerprint = self._fingerprint(
            X, None if self.random_state is None else seed, n_warmup, thin
        )
        found = []
        if self.warm_start and hasattr(self, "posterior_"):
            others = [name for name, x in fingerprint.items() if self._fitted_on.get(name) != x]
            if not isinstance(self.random_state, Integral):
                # A generator has moved on since the last fit; the chains have their seeds.
                others = [name for name in others if name != "random_state"]
            if others:
                raise ValueError(
                    "warm_start=True goes on with the chains of the last fit, which differs in "
                    f"{', '.join(others)}; set warm_start=False to start anew"
                )
            if not self.posterior_.ends:
                raise ValueError("warm_start=True must have a posterior_ as fit has left it")
            found.append(self.posterior_)
        self._fitted_on = fingerprint
        checkpoint = None
        if self.checkpoint is not None:
            checkpoint = Checkpoint(self.checkpoint, fingerprint, self.checkpoint_every)
            stored = checkpoint.load(self._may_hold)
            if stored is not None:
                checkpoint.check(stored, self._check_draw)
                found.append(stored)
        start = max(found, key=lambda posterior: posterior.n_swept, default=None)
        self.seed_ = seed if start is None else start.seed
        if checkpoint is not None and (start is None or not start.has(self.n_draws_)):
            # Here already, while what there was before can be put back.
            checkpoint.begin()
        return checkpoint, start

    def _fingerprint(self, X, seed, n_warmup, thin):
        """All that the draws of this fit depend on, each as a digest, by name."""
        parameters = self.get_params(deep=False)
        if self._settings_type is not None:
            parameters["sampler"] = self._sampler_settings()
        for name, one in self._declared.items():
            if not one.of_chains:
                parameters.pop(name, None)
        if isinstance(n_warmup, WarmupRounds):
            parameters["max_work"] = n_warmup.max_work
            n_warmup = ["auto", n_warmup.first]
        parameters |= {
            "n_chains": self.n_chains_,
            "n_warmup": n_warmup,
            "thin": thin,
            "random_state": seed,
        }
        shown = {name: digest(value)[:16] for name, value in sorted(parameters.items())}
        data = digest([digest(X), self._about_data()])
        return {"model": type(self).__name__, "data": data, **shown}

    def _about_data(self):
        """What X, once validated, does not say of the data."""
        return None

    def _bytes_to_store(self):
        if self.store == "all":
            return None
        return _STORE_AUTO if self.store == "auto" else int(self.store * _MEGABYTE)

    @property
    def _training_labels(self):
        """Clusters of the training rows that are in memory, None of a model without clusters."""
        return getattr(self, "labels_", None)

    def _attach_rows(self):
        """Let ``posterior_`` know the training rows: given a draw they are independent."""
        if self._training_rows is not None:
            self.posterior_.attach_rows(self._training_rows)

    # -- warnings

    def _lacks_of_chains(self):
        """What speaks against convergence, and what helps: a `Diagnosis`."""
        posterior = self.posterior_
        # A file of an older version may have no density.
        names = [name for name in self._reported_traces if name in posterior.traces]
        problems = convergence_problems(posterior.traces, names)
        problems += never_moved(posterior, self._moves_of_traces)
        if not problems:
            return Diagnosis()
        gain, thin = posterior.known_gain() or 0.0, posterior.sweeps_per_draw
        found = posterior.traces, names, gain, self._least_gain(), self._findings
        advice = self._remedies(partial(remedies, *found, thin=thin))
        return Diagnosis(tuple(problems), tuple(advice))

    def _remedies(self, helps):
        """What helps chains that are not what they should be, a list of `Advice`.

        ``helps`` is `mcmc.remedies.remedies` of what they have found, to be told what is longer.
        """
        return helps()

    def _least_gain(self):
        """Nats per row from which on a gain is worth having."""
        return _LEAST_POOL_GAIN * self.n_features_in_

    def _judge_chains(self):
        """Warn where the chains, or an ensemble of them, are not what they should be."""
        if self._is_ensemble(self.n_features_in_):
            self._warn_if_ensemble_falls_short()
        else:
            self._warn_if_not_converged()

    def _warn_if_not_converged(self):
        found = self._lacks_of_chains()
        if found:
            warn(
                f"The chains may not have converged: {in_a_row(found.problems)}. To do: "
                f"{found.to_do()}. Look at posterior_.summary() and skbnp.plot.TraceDisplay.",
                partial(ChainsWarning, problems=found.problems),
            )

    def _lacks_of_ensemble(self):
        """What more chains or longer ones would gain, if that is worth having: a `Diagnosis`."""
        posterior = self.posterior_
        advice = shortcomings_of_ensemble(
            posterior.traces["log_density"],
            posterior.doubling_gain(),
            self._least_gain(),
            self._findings,
        )
        return Diagnosis(advice=tuple(advice))

    def _warn_if_ensemble_falls_short(self):
        found = self._lacks_of_ensemble()
        if found:
            warn(
                f"An ensemble of {self.posterior_.n_chains} short chains is too small: "
                f"{found.to_do()}. Look at posterior_.summary().",
                ConvergenceWarning,
            )

    def _warn_if_few_are_stored(self):
        posterior = self.posterior_
        n_wanted = min(self.predict_draws, posterior.n_chains * posterior.n_draws)
        if posterior.n_stored < n_wanted:
            warn(
                f"store={self.store!r} has room for {posterior.n_stored} of the "
                f"{posterior.n_chains * posterior.n_draws} draws, fewer than "
                f"predict_draws={self.predict_draws}: labels and predictions rest on these alone",
            )
