"""What all estimators share: parameters of the chains, the fit template, scores."""

import inspect
import os
from copy import copy
from functools import partial, wraps
from numbers import Integral, Real

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skbnp.estimators.parameters import Declared, parameter
from skbnp.mcmc import io
from skbnp.mcmc.caller import warn
from skbnp.mcmc.checkpoint import Checkpoint, digest
from skbnp.mcmc.diagnostics import convergence_problems, never_moved, remedies
from skbnp.mcmc.interrupt import HeldInterrupt
from skbnp.mcmc.posterior import Posterior
from skbnp.mcmc.rows import (
    BLOCK_SIZE,
    available_threads,
    for_row_blocks,
    one_blas_thread,
    row_blocks,
)
from skbnp.mcmc.runner import run_chains
from skbnp.mcmc.warmup import WarmupRounds
from skbnp.numerics.moments import merged
from skbnp.summaries.training_cells import TrainingCells
from skbnp.tables.columns import as_numbers, is_frame, refuse_inexact
from skbnp.tables.forms import TableForm, fill_table, floats_like
from skbnp.tables.identifiers import identifier_columns
from skbnp.tables.outlying import outlying_columns

# What "auto" stores of full draws, and one megabyte, in bytes.
_STORE_AUTO, _MEGABYTE = 10**9, 10**6

# Standard deviations of the training data up to which every kernel stays finite: squares of such
# distances, times any precision that a prior allows, are far within the range of floats.
FARTHEST = 1e50

# Numbers that the moments of one block of rows may take, and groups of draws that are summed.
_BLOCK_NUMBERS, _DRAW_GROUPS = 2_000_000, 8

# Parameters that no draw of a chain depends on, or that the fingerprint has in another form.
_NOT_OF_THE_CHAINS = {
    *("n_warmup", "n_draws", "thin", "max_work", "n_jobs", "random_state", "warm_start"),
    *("checkpoint", "checkpoint_every", "store", "predict_draws", "verbose"),
}

# Training rows whose log density is traced, at most, and what tells their choice from the seeds
# of the chains, which are numbered from 0.
_MOST_WATCHED_ROWS, _KEY_OF_WATCHED_ROWS = 200, 2**32 - 1

# The least gain of pooling chains, in nats per row and column, that is called a disagreement.
_LEAST_POOL_GAIN = 0.02


def refuses_by_name(method):
    """Let a method that classes inherit refuse arguments in the name of the class it is called on.

    Python's own message names the class in which the method is written.
    """
    signature = inspect.signature(method)

    @wraps(method)
    def checked(self, *args, **kwargs):
        try:
            signature.bind(self, *args, **kwargs)
        except TypeError as error:
            hint = "; rows have no weights" if "sample_weight" in kwargs else ""
            kind = self if isinstance(self, type) else type(self)
            raise TypeError(f"{kind.__name__}.{method.__name__}(): {error}{hint}") from None
        return method(self, *args, **kwargs)

    return checked


class BaseMCMCEstimator(Declared, CallbackSupportMixin, BaseEstimator):
    """Fit by Markov chain Monte Carlo, predict from the kept draws.

    A subclass defines ``_prepare(X)``, which checks its own parameters against the validated X
    and returns ``make_sampler(bit_generator, chain)``; ``_summarise(X)``, which computes point
    estimates from ``posterior_``; ``_auto_lengths(X)``; and ``score_samples``. With
    ``_density(X, rows)`` it has the trace ``log_density``, with ``_work(X)`` a warm-up that ends
    when it is done. For files it says
    which attributes ``fit`` sets, which of their numbers need not be finite, and in
    ``_check_draw(draw)`` and ``_check_loaded()`` what would make its kernels read beyond an array
    or its answers no numbers.
    """

    n_chains: int = parameter(
        4,
        "int",
        [Interval(Integral, 1, None, closed="left")],
        """
        Independent chains.
        """,
    )
    n_warmup: int | str = parameter(
        "auto",
        'int or "auto"',
        [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        """
        Sweeps per chain before the first draw. `n_warmup_` says what "auto" came to.
        """,
    )
    n_draws: int | str = parameter(
        "auto",
        'int or "auto"',
        [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        """
        Draws kept per chain. `n_draws_` says what "auto" came to.
        """,
    )
    thin: int = parameter(
        1,
        "int",
        [Interval(Integral, 1, None, closed="left")],
        """
        Sweeps per kept draw.
        """,
    )
    n_jobs: int | None = parameter(
        None,
        "int or None",
        [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        """
        Chains at a time in `fit`, threads over rows where jobs outnumber chains and when
        predicting; see `joblib.Parallel`. The results do not depend on it.
        """,
    )
    random_state: int | np.random.RandomState | None = parameter(
        None,
        "int, RandomState instance or None",
        ["random_state"],
        """
        Seed of the chains.
        """,
    )
    warm_start: bool = parameter(
        False,
        "bool",
        ["boolean"],
        """
        Go on with the chains of the last `fit` of this object to a larger `n_draws`, on the same X
        with the same parameters; without a new warm-up.
        """,
    )
    checkpoint: str | os.PathLike | None = parameter(
        None,
        "str or Path",
        [str, os.PathLike, None],
        """
        Directory for a file from which a later `fit` on the same X with the same parameters goes
        on where this one was stopped, killed included, and to a larger `n_draws`. Any number of
        fits share a directory; its files are removed by hand.
        """,
    )
    checkpoint_every: float = parameter(
        60.0,
        "float",
        [Interval(Real, 0, None, closed="left")],
        """
        Seconds between two writes of that file. It is also written at the end.
        """,
    )
    store: str | float = parameter(
        "auto",
        '"auto", "all" or float',
        [Interval(Real, 0, None, closed="neither"), StrOptions({"auto", "all"})],
        """
        Megabytes that the stored draws may take, "auto" means 1000. When there are more, every
        second draw is let go, again and again; traces are always complete.
        """,
    )
    predict_draws: int = parameter(
        100,
        "int",
        [Interval(Integral, 1, None, closed="left")],
        """
        Evenly spaced draws that predict-type methods use, at most.
        """,
    )
    verbose: int = parameter(
        0,
        "int",
        ["verbose"],
        """
        1 prints the expected time after ten sweeps, 2 also the progress.
        """,
    )

    # What scikit-learn calls ensure_all_finite, of X.
    _finite = "allow-nan"
    # Parameters that may be a bool.
    _bool_parameters = ("verbose", "warm_start")
    # Names of the traces whose convergence ``fit`` checks.
    _reported_traces = ("log_joint",)
    # What chains that disagree have found, and the moves without which a trace never changes.
    _findings = "answers"
    _moves_of_traces: dict = {}
    # Parameters of the subclass that are read after the sampling alone.
    _parameters_after_sampling = ()
    # Classes of the subclass that its fitted attributes are made of.
    _saved_types = ()
    # The attributes that ``fit`` sets, with their types: what files hold, and nothing else.
    _fitted_attributes: dict = {
        "posterior_": Posterior,
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
    # Names of arrays and numbers in files that need not be finite, and what they may hold. An
    # index of a frame may hold anything.
    _may_hold: dict = dict.fromkeys(
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
            If Ctrl-C was pressed before every chain had kept a draw or twice, and nothing is
            attached, or so late that the estimator is fitted in full.

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
        for name in self._not_always_fitted:
            # Of an earlier fit, which this one might not find. How output is shown stays.
            if name != "_sklearn_output_config":
                vars(attempt).pop(name, None)
        with HeldInterrupt() as interrupt:
            was_cut_short = attempt._sample(X, y)
            # One assignment: whoever looks finds the fit before or this one, never parts of both.
            self.__dict__ = vars(attempt)
            self._warn_if_not_converged()
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
        X = self._check_training(X, y)
        with one_blas_thread:
            make_sampler = self._prepare(X)
        n_warmup, thin = self._lengths(X)
        checkpoint, start = self._where_to_start(X, n_warmup, thin)
        context = self._init_callback_context(max_subtasks=self.n_chains)
        context.call_on_fit_task_begin(estimator=self, X=X)
        self.posterior_ = run_chains(
            make_sampler,
            n_chains=self.n_chains,
            n_warmup=n_warmup,
            n_draws=self.n_draws_,
            thin=thin,
            seed=self.seed_,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            callbacks=(self, context),
            store=self._bytes_to_store(),
            start=start,
            checkpoint=checkpoint,
            density=self._density(X, self._watched_rows(len(X))),
        )
        self.n_warmup_ = self.posterior_.n_warmup
        was_cut_short = self.posterior_.interrupted and self.posterior_.n_draws < self.n_draws_
        self.n_draws_ = self.posterior_.n_draws
        self._attach_rows()
        self._summarise(X)
        context.call_on_fit_task_end(estimator=self, X=X)
        return was_cut_short

    # -- lengths

    def _lengths(self, X):
        """The warm-up, a number of sweeps or rounds, and the sweeps per kept draw.

        Sets the number of draws.
        """
        n_warmup, n_draws = self._auto_lengths(X)
        self.n_draws_ = n_draws if self.n_draws == "auto" else self.n_draws
        work = self._work(X)
        if self.n_warmup != "auto" or work is None:
            thin = 1 if self.thin == "auto" else self.thin
            return n_warmup if self.n_warmup == "auto" else self.n_warmup, thin
        least, per_sweep = work
        thin = None if self.thin == "auto" else self.thin
        max_work = float(self.max_work)
        names = self._reported_traces
        return WarmupRounds(n_warmup, names, per_sweep, least, max_work, n_draws, thin), thin

    def _work(self, X):
        """What a sweep of one chain costs, in nominal seconds of one core; None: lengths are fixed.

        Returns the least that it may be, and a function of the traces of the first round of
        warm-up, as `WarmupRounds` wants them. Both are counted: they must be the same on every
        machine.
        """
        return None

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

        Sets the seed: that of the posterior, or else a new one.
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
        for name in _NOT_OF_THE_CHAINS.union(self._parameters_after_sampling):
            parameters.pop(name, None)
        if isinstance(n_warmup, WarmupRounds):
            parameters["max_work"] = n_warmup.max_work
            n_warmup = ["auto", n_warmup.first]
        parameters |= {"n_warmup": n_warmup, "thin": thin, "random_state": seed}
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

    def _attach_rows(self):
        """Let ``posterior_`` know the training rows, where they are exchangeable."""

    # -- files

    @refuses_by_name
    def save(self, path):
        """Save the fitted estimator as data: an npz archive with a JSON document, no pickle.

        Parameters
        ----------
        path : str or Path
            An older file of this name is replaced once the new one is complete.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            If a parameter is no data, such as a callable, or an attribute is none of `fit`.
        OSError
            If the file cannot be written.
        """
        check_is_fitted(self, "posterior_")
        parameters = self.get_params(deep=False)
        fitted = {
            name: value
            for name, value in vars(self).items()
            # Callbacks are code, and what belongs to them.
            if name not in parameters and "callback" not in name and name != "_metadata_request"
        }
        for name in fitted:
            if name not in self._fitted_attributes:
                raise TypeError(
                    f"{name} cannot be saved: it is neither a parameter of "
                    f"{type(self).__name__} nor an attribute that fit sets"
                )
        content = {"parameters": parameters, "fitted": fitted}
        if hasattr(self, "_metadata_request"):
            content["requests"] = self.get_metadata_routing()._serialize()
        io.write(path, f"fitted {type(self).__name__}", content, self._types_in_files())
        return self

    @classmethod
    @refuses_by_name
    def load(cls, path):
        """Load a fitted estimator that `save` has written.

        Nothing in the file is ever executed, and only the classes of this estimator are made.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        estimator : object
            Answers as the saved one did, bit for bit, and asks for the same metadata; callbacks
            are not kept.

        Raises
        ------
        skbnp.mcmc.io.FileFormatError
            If the file is damaged, holds another estimator or comes from a newer version.
        """
        content = io.read(path, f"fitted {cls.__name__}", cls._types_in_files(), cls._may_hold)
        try:
            estimator = cls(**cls._parameters_of_file(content["parameters"]))
            estimator._validate_params()
            estimator._set_requests(content.get("requests", {}))
            cls._check_attributes(content["fitted"])
            vars(estimator).update(content["fitted"])
            estimator._form.check(estimator.n_features_in_)
            estimator._check_loaded()
            for chain in estimator.posterior_.all_draws():
                for draw in chain:
                    estimator._check_draw(draw)
            estimator._attach_rows()
        except (io.FileFormatError, ImportError):
            raise
        except Exception as error:  # the file is at fault, whatever it is
            raise io.FileFormatError(f"{path} is damaged: {error}") from error
        return estimator

    def _set_requests(self, requests):
        """What methods ask for under metadata routing, as `set_predict_request` and its kin do."""
        # They refuse to be called where routing is off, though requests may be there already.
        with config_context(enable_metadata_routing=True):
            for method, asked in requests.items():
                getattr(self, f"set_{method}_request")(**asked)

    @classmethod
    def _parameters_of_file(cls, parameters):
        """Constructor parameters of a file, in the names of now where it is an older one."""
        return parameters

    @classmethod
    def _types_in_files(cls):
        return (Posterior, TableForm, TrainingCells, *cls._saved_types)

    @classmethod
    def _check_attributes(cls, fitted):
        """Raise a ValueError unless fitted attributes are those of this class, of their types."""
        for name, value in fitted.items():
            kind = cls._fitted_attributes.get(name)
            if kind is None:
                raise ValueError(f"it sets {name!r}")
            # True is an integer to Python.
            if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
                raise ValueError(f"its {name} is a {type(value).__name__}")
            if kind is Integral and value < 0:
                raise ValueError(f"its {name} is {value}")
        for name in cls._fitted_attributes:
            if name not in fitted and name not in cls._not_always_fitted:
                raise ValueError(f"it has no {name}")
        posterior, names = fitted["posterior_"], fitted.get("feature_names_in_")
        found = (posterior.seed, posterior.n_warmup, posterior.n_draws)
        if found != tuple(fitted[name] for name in ("seed_", "n_warmup_", "n_draws_")):
            raise ValueError("its posterior_ is not that of seed_, n_warmup_ and n_draws_")
        if names is not None and names.shape != (fitted["n_features_in_"],):
            raise ValueError("its feature_names_in_ are not those of n_features_in_ features")

    @refuses_by_name
    def score(self, X, y=None):
        """Mean log posterior predictive density of the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows not used in `fit`, for an honest figure; NaN marks missing cells.
        y : None
            Ignored.

        Returns
        -------
        score : float
            In nats per row, for X in its own units. Larger is better.
        """
        return float(np.mean(self.score_samples(X)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._finite == "allow-nan"
        return tags

    # -- checks

    def _refuse_bools(self):
        """True is an integer to Python, hence to the constraints on single parameters."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, bool) and name not in self._bool_parameters:
                raise ValueError(f"{name} must not be a bool, got {value!r}")

    def _check_training(self, X, y):
        """X as a float64 array, all that the rest of `fit` knows of the data.

        Sets the number and the names of the features. y is ignored; a subclass with a target
        returns a table of both.
        """
        self._form = TableForm.of(X)
        X = self._as_floats(X)
        missing = np.isnan(X)
        empty = np.flatnonzero(missing.all(axis=0))
        if empty.size:
            raise ValueError(
                "X must have an observed value in every column, got only NaN in "
                + self._named(empty)
            )
        empty = np.flatnonzero(missing.all(axis=1))
        if empty.size:
            shown = ", ".join(map(str, empty[:10])) + (", ..." if empty.size > 10 else "")
            warn(
                f"X has {empty.size} row(s) with no observed value, row(s) {shown}; "
                "their labels follow the prior",
            )
        found = identifier_columns(X, self._nominal_columns())
        if found:
            warn(
                f"X has another value in nearly every row of {self._named(found)}, as numbers or "
                "names of rows have, and the model would explain them like all others: drop such "
                "columns, or set one as the index"
            )
        found = outlying_columns(X, self._nominal_columns())
        if found:
            warn(
                f"X has cells so far out in {self._named(found)} that most other rows differ by "
                "less than 1e-4 of its standard deviation, and the model would take them as equal: "
                "check those cells, set them to NaN, or transform the column, by its logarithm say"
            )
        return X

    def _nominal_columns(self):
        """Columns of the validated X whose numbers are codes of levels."""
        return ()

    def _check_new(self, X):
        """X to predict for, as a float64 array with the features of `fit`."""
        check_is_fitted(self, "posterior_")
        self._validate_params()
        self._form.check_names(X)
        return self._as_floats(X, reset=False)

    def _as_floats(self, X, reset=True, finite=None):
        """X as a C-ordered float64 array; not a copy if it is one already.

        ``finite`` is what scikit-learn calls ensure_all_finite, by default that of the class.
        """
        finite = self._finite if finite is None else finite
        if finite is True and isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
            raise ValueError(
                f"X must not hold masked cells, which are missing: {type(self).__name__} does not "
                "take missing values"
            )
        options = {"dtype": np.float64, "order": "C", "ensure_all_finite": finite}
        try:
            # scikit-learn looks at the sum of all cells, which may overflow, before at each.
            with np.errstate(over="ignore", invalid="ignore"):
                if is_frame(X):
                    validate_data(self, X, reset=reset, skip_check_array=True)
                    found = check_array(as_numbers(X), input_name="X", estimator=self, **options)
                else:
                    found = validate_data(self, as_numbers(X), reset=reset, **options)
            return refuse_inexact(X, found)
        except OverflowError as error:
            raise ValueError(f"X must hold numbers that floats hold: {error}") from error
        except (TypeError, ValueError) as error:
            if "X" in str(error):
                raise
            kind = TypeError if isinstance(error, TypeError) else ValueError
            missing = "" if finite is True else ", NaN where missing"
            rule = f" must hold numbers{missing}" if "convert" in str(error) else ""
            raise kind(f"X{rule}: {error}") from error

    def _refuse_far(self, standard, columns, name="X", farthest=FARTHEST):
        """Refuse values so far out that densities and distances would leave the range of floats.

        ``standard`` (..., len(columns)) are values of these columns of X in standard deviations of
        the training data, NaN where missing.
        """
        far = np.max(
            np.abs(standard), axis=tuple(range(np.ndim(standard) - 1)), initial=0.0,
            where=~np.isnan(standard),
        )  # fmt: skip
        if len(far) and far.max() > farthest:
            j = int(far.argmax())
            raise ValueError(
                f"{name} must be within {farthest:g} standard deviations of the training data in "
                f"every column, got a value at {far[j]:.3g} in {self._named([columns[j]])}"
            )

    def _named(self, columns):
        """Columns in words, by name where there are names."""
        names = self._form.labels()
        labels = [str(j) if names is None else repr(names[j]) for j in columns[:10]]
        return "column(s) " + ", ".join(labels) + (", ..." if len(columns) > 10 else "")

    def _warn_if_not_converged(self):
        posterior, names = self.posterior_, self._reported_traces
        problems = convergence_problems(posterior.traces, names)
        problems += never_moved(posterior, self._moves_of_traces)
        if problems:
            gain, least = posterior.pool().get("pool_gain", 0.0), _LEAST_POOL_GAIN
            advice = remedies(
                posterior.traces, names, gain, least * self.n_features_in_, self._findings
            )
            if posterior.warmup is not None and posterior.warmup.ended == "spent":
                advice.append(
                    f"the warm-up ended because the work that max_work={self.max_work:g} allows "
                    "was spent: raise it for a longer one"
                )
            warn(
                "The chains may not have converged: " + "; ".join(problems) + ". To do: "
                + "; ".join(advice) + ". Look at posterior_.summary() and skbnp.plot.TraceDisplay.",
                ConvergenceWarning,
            )  # fmt: skip

    def _warn_if_few_are_stored(self):
        posterior = self.posterior_
        n_wanted = min(self.predict_draws, posterior.n_chains * posterior.n_draws)
        if posterior.n_stored < n_wanted:
            warn(
                f"store={self.store!r} has room for {posterior.n_stored} of the "
                f"{posterior.n_chains * posterior.n_draws} draws, fewer than "
                f"predict_draws={self.predict_draws}: labels and predictions rest on these alone",
            )

    # -- answers in the form of a table

    def _columns(self, X):
        """The values of each column of rows of numbers, levels by their names."""
        return X.T

    def _whole_columns(self):
        """Columns of which samples are whole numbers."""
        return ()

    def _filled_as(self, given, X, filled, std=None, whole=()):
        """What `impute` answers: in the form of the table that it was given.

        Parameters
        ----------
        given : array-like or frame
        X : ndarray of shape (n_samples, n_features)
            The numbers that it was read as, NaN where missing.
        filled : ndarray of shape (n_samples, n_features)
        std : ndarray of shape (n_samples, n_features) or None
            To return as well.
        whole : collection of int
            Columns that were filled with whole numbers.
        """
        holes = np.isnan(X).any(axis=0)
        table = fill_table(given, self._columns(filled), holes, whole)
        return table if std is None else (table, floats_like(given, std))

    def _as_trained(self, X, **options):
        """Rows of numbers in the form of the training table."""
        return self._form.build(self._columns(X), **options)

    def _as_sampled(self, X):
        """New rows in the form of the training table, with an index of their own."""
        return self._as_trained(X, whole=self._whole_columns(), with_index=False)

    # -- threads

    def _row_threads(self):
        """``for_rows`` of each chain's sampler: together they use as many threads as `n_jobs`."""
        n_threads = available_threads(self.n_jobs)
        return partial(for_row_blocks, n_threads=max(1, n_threads // min(self.n_chains, n_threads)))

    # -- prediction

    def _given_draw(self, draw):
        """The draw that the user names: the reference draw for None."""
        if draw is None:
            return self._reference
        rule = "draw must be None or a draw of posterior_, such as posterior_[0, 0]"
        if not isinstance(draw, dict):
            raise TypeError(f"{rule}, got a {type(draw).__name__}")
        try:
            self._check_draw(draw)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"{rule} of this estimator: {error}") from error
        return draw

    def _prediction_draws(self):
        return self.posterior_.evenly_spaced(self.predict_draws)

    def _by_row_blocks(self, function, n_rows):
        """Results of ``function(start, stop)`` over fixed row blocks, stacked."""
        return np.concatenate(self._by_blocks(function, n_rows))

    def _by_blocks(self, function, n, size=BLOCK_SIZE):
        """Results of ``function(start, stop)`` over fixed blocks of so many rows, or draws."""
        return for_row_blocks(function, n, size, n_threads=available_threads(self.n_jobs))

    def _over_draws(self, A, of_draw, combine=None, prepare=None):
        """Results of ``of_draw(draw, t, rows of A)`` for blocks of rows: yields (rows, parts).

        A part is what ``combine`` makes of the results of one group of draws, by default a stack
        of them; groups and blocks do not depend on the number of threads. What
        ``prepare(rows of A)`` makes of a block goes to all draws in its place.
        """
        combine = combine or _stacked
        draws = self._prediction_draws()
        size = max(1, min(BLOCK_SIZE, _BLOCK_NUMBERS // max(1, A.shape[1])))
        for start in range(0, len(A), size):
            rows = slice(start, min(start + size, len(A)))
            block = A[rows] if prepare is None else prepare(A[rows])

            def part(first, last, block=block):
                return combine(of_draw(draws[t], t, block) for t in range(first, last))

            yield rows, self._by_blocks(part, len(draws), -(-len(draws) // _DRAW_GROUPS))

    def _moments(self, A, of_draw, prepare=None):
        """Mean and variance of what the draws say of the rows of A, all draws alike.

        Yields (rows, mean, variance) block by block. ``of_draw(draw, t, rows of A)`` gives those
        of one draw; by the law of total variance, inf where a draw's is.

        All draws weigh the same, although Bayes' rule lets each count by its density of what is
        observed of the row. Of a row that the draws were fitted to they know that already, and in
        many columns such weights leave one draw of a hundred in effect: intervals too short, and
        larger errors for new rows as well.
        """

        def combine(results):
            return merged((1.0, mean, variance) for mean, variance in results)

        for rows, parts in self._over_draws(A, of_draw, combine, prepare):
            n_draws, mean, square = merged(parts)
            yield rows, mean, square / n_draws

    def _impute(self, X, return_std, to_model, of_draw, prepare=None, whole=()):
        """X with its missing cells filled, and with ``return_std`` their standard deviations too.

        ``to_model(rows of X)`` are rows as the draws know them, of whose missing cells
        ``of_draw`` gives mean and variance as `_moments` wants them; `_in_units` makes of these
        mean and standard deviation of all columns in the units of X. The columns ``whole`` are
        filled with whole numbers. Training rows, where an estimator keeps what its chains say of
        their missing cells, are answered with that.
        """
        given, X = X, self._check_new(X)
        incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
        filled, std = X.copy(), np.zeros_like(X)
        if incomplete.size and self._knows_training_cells():
            found = self._training_cells.matches(X[incomplete])
            known = np.flatnonzero([len(places) > 0 for places in found])
            self._fill_known(filled, std, incomplete[known], [found[t] for t in known])
            incomplete = np.delete(incomplete, known)
        if incomplete.size:
            for rows, *moments in self._moments(to_model(X[incomplete]), of_draw, prepare):
                self._fill(filled, std, incomplete[rows], *moments)
        filled[:, whole] = np.rint(filled[:, whole])
        return self._filled_as(given, X, filled, std if return_std else None, whole)

    def _fill(self, filled, std, rows, mean, variance):
        """Fill missing cells of some rows from their moments, and set their deviations."""
        holes = np.isnan(filled[rows])
        mean, spread = self._in_units(mean, variance)
        filled[rows] = np.where(holes, mean, filled[rows])
        std[rows] = np.where(holes, spread, 0.0)

    def _knows_training_cells(self):
        return "_training_cells" in vars(self)

    def _filled_training(self):
        """The training rows with their missing cells filled, and the deviations of these."""
        cells = self._training_cells
        filled, std = cells.X.copy(), np.zeros_like(cells.X)
        self._fill_known(filled, std, cells.rows, [[place] for place in range(len(cells.rows))])
        return filled, std

    def _fill_known(self, filled, std, rows, places):
        """The same of training rows, from what the chains say; ``places`` are those of each."""
        for block in row_blocks(len(rows)):
            moments = self._training_cells.moments(places[block])
            self._fill(filled, std, rows[block], *moments)


def _stacked(results):
    return np.stack(list(results))
