"""Estimators whose sweeps are counted in a file and take their time, to be killed in the middle."""

import os
import resource
import signal
import time
import warnings
from contextlib import contextmanager
from functools import partial
from unittest import mock

import joblib
import numpy as np

from checks.answers import answers
from checks.toy_samplers import ToyDensity, ToySampler
from contract.registry import DEFAULTS
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.rounds import WarmupInRounds
from skbnp.mcmc import runner
from skbnp.units import Units


class Watched:
    """Another sampler; at each sweep it leaves a byte in a file and sleeps.

    With ``dies=(n_sweeps, times)`` it kills its process after so many sweeps of all chains.
    """

    def __init__(self, sampler, log, seconds, n_bytes, dies):
        self._sampler = sampler
        self._log = log
        self._seconds = seconds
        self._n_bytes = n_bytes
        self._dies = dies

    def __getattr__(self, name):
        return getattr(self._sampler, name)

    def sweep(self):
        if self._log:
            with open(self._log, "ab", buffering=0) as file:
                file.write(b".")
        if self._dies and os.stat(self._log).st_size > self._dies[0]:
            with open(f"{self._log}.dead", "ab", buffering=0) as file:
                if file.write(b".") and file.tell() <= self._dies[1]:
                    os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self._seconds)
        self._sampler.sweep()

    def draw(self):
        draw = self._sampler.draw()
        if self._n_bytes:
            draw["ballast"] = np.zeros(self._n_bytes, np.uint8)
            draw["ballast"][:] = 1
        return draw


def _make_watched(bit_generator, chain, *, make_sampler, watch):
    return Watched(make_sampler(bit_generator, chain), *watch)


class _WatchedMixin:
    # The arguments of `Watched`.
    _watch = (None, 0.0, 0, None)

    def watch(self, log=None, seconds=0.0, n_bytes=0, dies=None):
        self._watch = (log and str(log), seconds, n_bytes, dies)
        return self

    def _prepare(self, X):
        return partial(_make_watched, make_sampler=super()._prepare(X), watch=self._watch)


class _ToyModel(BaseMCMCEstimator):
    def __init__(
        self,
        *,
        start=0.0,
        n_chains=4,
        n_warmup=5,
        n_draws=20,
        thin=1,
        n_jobs=None,
        random_state=None,
        warm_start=False,
        checkpoint=None,
        checkpoint_every=60.0,
        store="auto",
        missing_values=None,
        predict_draws=100,
        verbose=0,
    ):
        self.start = start
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.store = store
        self.missing_values = missing_values
        self.predict_draws = predict_draws
        self.verbose = verbose

    _parameter_constraints: dict = {**BaseMCMCEstimator._parameter_constraints, "start": [float]}
    _fitted_attributes: dict = {**BaseMCMCEstimator._fitted_attributes, "mean_": float}

    def _prepare(self, X):
        return partial(ToySampler, start=self.start + float(np.nansum(X)))

    def _feature_units(self):
        return Units.unscaled(self.n_features_in_)

    def _summarise(self, X):
        self.mean_ = float(self.posterior_.traces["x"].mean())

    def _auto_lengths(self, X):
        return 5, 20

    def _check_draw(self, draw):
        if draw["value"].shape != (2,):
            raise ValueError("value of a draw must have the shape (2,)")

    def _check_loaded(self):
        pass

    def _warn_if_not_converged(self):
        pass

    def score_samples(self, X):
        X = self._check_new(X)
        return np.array([-np.nansum((x - self.mean_) ** 2) for x in X])

    def score(self, X, y=None):
        return float(np.mean(self.score_samples(X)))


class ToyModel(_WatchedMixin, _ToyModel):
    """Chains of `ToySampler` as a whole estimator; X only moves the start."""


class ToyInRounds(ToyModel, WarmupInRounds):
    """The same with a warm-up that ends when it is done."""

    max_work = 4.0
    _parameter_constraints: dict = {**ToyModel._parameter_constraints, "thin": [int, str]}
    _reported_traces = ("log_density", "x", "y")

    def _auto_lengths(self, X):
        return 16, 20

    def _work(self, X):
        return 0.001, lambda traces: 0.001

    def _density(self, X, rows):
        return ToyDensity()


def _watched(kind):
    return type(f"Watched{kind.__name__}", (_WatchedMixin, kind), {"__module__": __name__})


# Every estimator of the library, watched. Other processes find them by their names.
WATCHED = {setting.kind.__name__: _watched(setting.kind) for setting in DEFAULTS}
globals().update({kind.__name__: kind for kind in WATCHED.values()})
WatchedMixture = WATCHED["DirichletProcessMixture"]
MODELS = {"toy": ToyModel, "rounds": ToyInRounds, "mixture": WatchedMixture, **WATCHED}


def table_with_holes(n_samples=60, seed=3):
    """Two clusters in three columns, a tenth of the cells missing."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 3))
    X[: n_samples // 2] += 3
    X[random.random(X.shape) < 0.1] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.0
    return X


@contextmanager
def _blocks_of(length):
    """All blocks but the first have this length, None for that of the library."""
    if length is None:
        yield
    else:
        with mock.patch.object(runner, "_block_length", lambda *_: length):
            yield


def fit(model, X, y=None, backend="threading", block=None, watch=None, max_file=None, **parameters):
    """Fit a model; return its answers and the number of sweeps it made.

    All blocks but the first have the length `block`. No file may grow beyond `max_file` bytes.
    """
    if max_file is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file, max_file))
    estimator = MODELS[model](random_state=5)
    estimator.set_params(**parameters).watch(**(watch or {}))
    with _blocks_of(block), joblib.parallel_config(backend=backend), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
        return answers(estimator, X), estimator.posterior_.n_sweeps_run


def peak_of_fit(backend, n_bytes, n_warmup, n_draws, store, checkpoint=None):
    """Megabytes that a fit adds to this process at its peak, and what it stored."""
    estimator = ToyModel(n_chains=2, n_warmup=n_warmup, n_draws=n_draws, random_state=5, n_jobs=2)
    estimator.set_params(store=store, checkpoint=checkpoint).watch(n_bytes=n_bytes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with joblib.parallel_config(backend=backend):
        posterior = estimator.fit(table_with_holes()).posterior_
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    of_workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    summary = {
        "stored": posterior.stored,
        "n_draws": posterior.traces["x"].shape[1],
        "nbytes": posterior.nbytes,
        "values": [draw["value"][0] for draw in posterior],
        "x": posterior.traces["x"][:, posterior.stored].ravel(),
    }
    return (after - before) / 1024, of_workers / 1024, summary


def fit_until_interrupt(
    model, X, y=None, backend="threading", block=None, watch=None, ignored=False, **parameters
):
    """Fit with Ctrl-C expected, or ignored; return what came of it, for the parent to look at."""
    if ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    estimator = MODELS[model](random_state=5)
    estimator.set_params(**parameters).watch(**(watch or {}))
    before = signal.getsignal(signal.SIGINT)
    raised, found = None, None
    with (
        _blocks_of(block),
        joblib.parallel_config(backend=backend),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        try:
            estimator.fit(X, y)
        except KeyboardInterrupt:
            raised = "KeyboardInterrupt"
        else:
            found = answers(estimator, X)
    return {
        "raised": raised,
        "answers": found,
        "warnings": [str(w.message) for w in caught if w.category is UserWarning],
        "handler_restored": signal.getsignal(signal.SIGINT) is before,
        "pid": os.getpid(),
    }
