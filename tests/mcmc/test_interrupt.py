"""Ctrl-C, for real: signals to processes that fit, in threads, alone and with workers."""

import signal
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from checks.answers import answers, assert_same_answers
from checks.processes import Child
from checks.toy_samplers import ToySampler
from checks.watched import ToyModel, fit, fit_until_interrupt, table_with_holes
from skbnp.mcmc import io, runner
from skbnp.mcmc.interrupt import HeldInterrupt

X = table_with_holes()
LONG = {"n_chains": 2, "n_warmup": 20, "n_draws": 100_000, "n_jobs": 2}


def wait_for(condition, child):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        assert child.is_alive()
        time.sleep(0.002)


def interrupted(tmp_path, n_sweeps, model="toy", group=False, **run):
    """What a fit says that gets a Ctrl-C after so many sweeps."""
    log = tmp_path / "log"
    log.touch()
    n_before = log.stat().st_size
    watch = {"log": log, "seconds": 0.002}
    child = Child(fit_until_interrupt, model, X, watch=watch, **{**LONG, **run})
    wait_for(lambda: log.stat().st_size >= n_before + n_sweeps, child)
    child.kill(signal.SIGINT, group=group)
    return child.result()


BACKENDS = [
    ("toy", "threading", 2, False),
    ("toy", "threading", 1, True),
    ("mixture", "threading", 2, True),
    pytest.param("mixture", "loky", 2, True, marks=pytest.mark.slow),
    pytest.param("mixture", "loky", 2, False, marks=pytest.mark.slow),
    pytest.param("toy", "loky", 2, True, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("model, backend, n_jobs, group", BACKENDS)
def test_after_the_warmup(tmp_path, model, backend, n_jobs, group):
    directory = tmp_path / "checkpoints"
    run = {"backend": backend, "n_jobs": n_jobs, "checkpoint": directory, "checkpoint_every": 0.0}
    found = interrupted(tmp_path, 150, model, group, **run)
    assert found["raised"] is None
    assert found["handler_restored"]
    (message,) = found["warnings"]
    kept = found["answers"]["log_joint"]
    n_draws = kept.shape[1]
    assert 0 < n_draws < LONG["n_draws"]
    assert message.startswith(f"Interrupted after {n_draws} of 100000 draws per chain")
    assert "the same checkpoint directory to go on" in message
    # A usable estimator: that of a shorter run. And the checkpoint goes on from there.
    whole, _ = fit(model, X, **{**LONG, "n_draws": n_draws})
    assert_same_answers(found["answers"], whole)
    longer = {**LONG, "n_draws": n_draws + 5}
    resumed, n_run = fit(model, X, **longer, checkpoint=directory)
    assert n_run <= 2 * 5
    assert_same_answers(resumed, fit(model, X, **longer)[0])


@pytest.mark.parametrize("model, backend, n_jobs, group", BACKENDS)
def test_during_the_warmup(tmp_path, model, backend, n_jobs, group):
    directory = tmp_path / "checkpoints"
    run = {"n_warmup": 100_000, "n_draws": 5, "checkpoint": directory}
    found = interrupted(tmp_path, 50, model, group, backend=backend, n_jobs=n_jobs, **run)
    assert found["raised"] == "KeyboardInterrupt"
    assert found["handler_restored"]
    (path,) = directory.iterdir()
    ends = io.read(path, "checkpoint")["posterior"]["ends"]
    assert all(0 < end["n_swept"] <= (tmp_path / "log").stat().st_size for end in ends)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_in_the_background_a_fit_runs_to_its_end(tmp_path, n_jobs):
    """A shell without job control has SIGINT ignored there."""
    run = {"n_draws": 100, "n_jobs": n_jobs, "ignored": True}
    found = interrupted(tmp_path, 60, **run)
    assert (found["raised"], found["warnings"]) == (None, [])
    assert found["handler_restored"]
    assert found["answers"]["n_draws_"] == 100


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_second_one_goes_through(tmp_path, n_jobs):
    log = tmp_path / "log"
    log.touch()
    # Sweeps so long that the chains do not meet before the second one.
    watch = {"log": log, "seconds": 2.0}
    child = Child(fit_until_interrupt, "toy", X, watch=watch, n_warmup=0, n_jobs=n_jobs)
    wait_for(lambda: log.stat().st_size > 0, child)
    started = time.monotonic()
    child.kill(signal.SIGINT)
    time.sleep(0.1)
    child.kill(signal.SIGINT)
    found = child.result()
    assert found["raised"] == "KeyboardInterrupt"
    assert found["handler_restored"]
    assert n_jobs > 1 or time.monotonic() - started < 1.5


@pytest.fixture
def press_after(monkeypatch):
    """Press Ctrl-C once, after so many sweeps of this process; blocks are short."""

    def arrange(n_sweeps):
        sweeps, sweep = [], ToySampler.sweep

        def counted(sampler):
            sweep(sampler)
            sweeps.append(1)
            if len(sweeps) == n_sweeps:
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(ToySampler, "sweep", counted)
        monkeypatch.setattr(runner, "_block_length", lambda *_: 7)

    return arrange


def test_interrupted_and_warm_started(press_after):
    estimator = ToyModel(n_chains=2, n_warmup=10, n_draws=60, random_state=5, warm_start=True)
    whole = answers(clone(estimator).fit(X), X)
    press_after(60)
    with pytest.warns(UserWarning, match="Interrupted.*warm_start=True to go on"):
        estimator.fit(X)
    n_swept = 10 + estimator.posterior_.n_draws
    assert 30 <= n_swept <= 30 + 7
    assert estimator.n_draws_ == n_swept - 10
    estimator.fit(X)
    assert_same_answers(answers(estimator, X), whole)
    assert estimator.posterior_.n_sweeps_run == 2 * (70 - n_swept)


def test_interrupted_before_the_first_draw(press_after):
    estimator = ToyModel(n_chains=2, n_warmup=50, n_draws=5, random_state=5)
    press_after(40)
    with pytest.raises(KeyboardInterrupt, match="before the first draw; nothing is kept"):
        estimator.fit(X)
    assert not hasattr(estimator, "posterior_")


def test_too_late_to_cut_anything_short(press_after):
    """A program of many short fits must stop all the same; this one is whole."""
    estimator = ToyModel(n_chains=2, n_warmup=10, n_draws=60, random_state=5)
    whole = answers(clone(estimator).fit(X), X)
    press_after(139)
    with pytest.raises(KeyboardInterrupt, match="after the last sweep; the estimator is fitted"):
        estimator.fit(X)
    assert_same_answers(answers(estimator, X), whole)


def test_other_threads_take_no_signals():
    handler = signal.getsignal(signal.SIGINT)
    found, handlers = [], []

    def work():
        estimator = ToyModel(random_state=5, n_draws=30).watch(seconds=0.002)
        found.append(answers(estimator.fit(X), X))

    thread = threading.Thread(target=work)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        time.sleep(0.02)
        handlers.append(signal.getsignal(signal.SIGINT))
        signal.raise_signal(signal.SIGINT)
    thread.join()
    assert handlers == [handler]
    assert_same_answers(found[0], fit("toy", X, n_draws=30)[0])


def test_within_a_grid_search(press_after):
    """The fit at work ends early, with what it has; the search goes on."""
    model = ToyModel(n_chains=1, n_warmup=5, n_draws=80, random_state=1)
    press_after(100)  # in the second of five fits
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search = GridSearchCV(model, {"start": [0.0, 1.0]}, cv=2, error_score="raise").fit(X)
    (message,) = [str(w.message) for w in caught if "Interrupted after" in str(w.message)]
    assert 100 - 85 - 5 <= int(message.split()[2]) <= 100 - 85 - 5 + 7
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.posterior_.n_draws == 80


def test_handlers():
    before = signal.getsignal(signal.SIGINT)
    with HeldInterrupt() as outer:
        handler = signal.getsignal(signal.SIGINT)
        with HeldInterrupt() as inner:
            assert signal.getsignal(signal.SIGINT) == handler
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == handler
    assert outer.requested and inner.requested
    with HeldInterrupt() as later:
        assert not later.requested
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(ZeroDivisionError), HeldInterrupt():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_handlers_that_nobody_can_call_are_left_alone(handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with HeldInterrupt():
            assert signal.getsignal(signal.SIGINT) == handler
        assert signal.getsignal(signal.SIGINT) == handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_handler_of_others_gets_the_second_one():
    calls = []
    before = signal.signal(signal.SIGINT, lambda *_: calls.append(1))
    try:
        with HeldInterrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            assert (interrupt.requested, calls) == (True, [])
            signal.raise_signal(signal.SIGINT)
            assert calls == [1]
    finally:
        signal.signal(signal.SIGINT, before)
