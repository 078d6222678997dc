import pickle
from collections import Counter

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from checks.toy_samplers import StopAt, TaskLog, ToyEstimator, ToySampler
from skbnp.mcmc import advance, run_chains, runner

N_SWEEPS = 3 + 4 * 2  # of ToyEstimator
EVENTS = ("begin", "end")


@pytest.mark.parametrize(
    "backend, n_jobs",
    [("threading", 1), ("threading", 2), pytest.param("loky", 2, marks=pytest.mark.slow)],
)
def test_tasks_are_fit_chain_sweep(tmp_path, monkeypatch, backend, n_jobs):
    monkeypatch.setattr(runner, "_block_length", lambda *_: 4)
    log = TaskLog(tmp_path / "log")
    with joblib.parallel_config(backend=backend):
        ToyEstimator(n_jobs=n_jobs).set_callbacks(log).fit()
    names = ["fit0"]
    for chain in range(2):
        names.append(f"fit0/chain{chain}")
        names += [f"fit0/chain{chain}/sweep{sweep}" for sweep in range(N_SWEEPS)]
    lines = log.lines()
    assert Counter(lines) == Counter(
        f"{event} {name}" for name in names for event in ("begin", "end")
    )
    assert lines[0] == "begin fit0"
    assert lines[-1] == "end fit0"
    for chain in range(2):
        of_chain = [line for line in lines if f"chain{chain}" in line]
        sweeps = [
            f"{event} fit0/chain{chain}/sweep{sweep}"
            for sweep in range(N_SWEEPS)
            for event in EVENTS
        ]
        assert of_chain == [f"begin fit0/chain{chain}", *sweeps, f"end fit0/chain{chain}"]


def test_callbacks_do_not_touch_draws(tmp_path):
    plain = ToyEstimator().fit().posterior_
    watched = ToyEstimator().set_callbacks(TaskLog(tmp_path / "log")).fit().posterior_
    np.testing.assert_array_equal(plain.traces["x"], watched.traces["x"])


def test_no_tasks_without_callbacks():
    estimator = ToyEstimator()
    root = estimator._init_callback_context(max_subtasks=2)
    run_chains(ToySampler, n_chains=2, n_warmup=0, n_draws=2, seed=0, callbacks=(estimator, root))
    assert len(list(root)) == 1


def test_long_chains_have_fewer_tasks(tmp_path, monkeypatch):
    monkeypatch.setattr(advance, "_MAX_TASKS_PER_CHAIN", 5)
    log = TaskLog(tmp_path / "log")
    ToyEstimator(n_chains=1).set_callbacks(log).fit()
    sweeps = [line for line in log.lines() if "begin" in line and "sweep" in line]
    assert sweeps == [f"begin fit0/chain0/sweep{i}" for i in range(3)]  # every third of eleven


@pytest.mark.parametrize("sequential", [True, False])
def test_root_may_number_its_chains_or_not(tmp_path, sequential):
    estimator = ToyEstimator().set_callbacks(TaskLog(tmp_path / "log"))
    root = estimator._init_callback_context(max_subtasks=2, sequential_subtasks=sequential)
    run_chains(ToySampler, n_chains=2, n_warmup=0, n_draws=20, seed=0, callbacks=(estimator, root))
    assert [context.task_id for context in root] == [0, 0, 1]  # finished sweeps are let go
    assert len(pickle.dumps(root)) < 2000


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize("length", [1, 4, 100])
def test_stop_leaves_chains_equally_long(tmp_path, monkeypatch, backend, length):
    monkeypatch.setattr(runner, "_block_length", lambda *_: length)
    whole = ToyEstimator(n_draws=10).fit().posterior_
    # Warm-up is 3 sweeps and thin 2: sweep 9 completes the third draw, sweep 12 the fourth.
    estimator = ToyEstimator(n_draws=10, n_jobs=2)
    estimator.set_callbacks(StopAt(tmp_path / "log", {0: 12, 1: 9}))
    with joblib.parallel_config(backend=backend):
        posterior = estimator.fit().posterior_
    assert posterior.n_draws == 3
    np.testing.assert_array_equal(posterior.traces["x"], whole.traces["x"][:, :3])
    lines = estimator._skl_callbacks[0].lines()
    assert "end fit0/chain0" in lines
    assert "begin fit0/chain1/sweep10" not in lines


def test_stop_before_the_first_draw(tmp_path):
    estimator = ToyEstimator().set_callbacks(StopAt(tmp_path / "log", {0: 3}))
    with pytest.raises(RuntimeError, match="stopped the run after 4 sweeps.*comes after 5 sweeps"):
        estimator.fit()


@pytest.mark.parametrize("backend, n_jobs", [("threading", 2), ("loky", 2)])
def test_progress_bar(capsys, backend, n_jobs):
    from sklearn.callback import ProgressBar

    with joblib.parallel_config(backend=backend):
        ToyEstimator(n_jobs=n_jobs).set_callbacks(ProgressBar()).fit()
    shown = capsys.readouterr().out
    assert "ToyEstimator - fit" in shown
    assert "chain #0" in shown
    assert "chain #1" in shown
    assert "100%" in shown


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_bar_in_grid_search(capsys, n_jobs):
    from sklearn.callback import ProgressBar

    search = GridSearchCV(ToyEstimator(), {"n_draws": [2, 3]}, cv=2, n_jobs=n_jobs)
    search.set_callbacks(ProgressBar()).fit(np.zeros((6, 1)))
    assert "ToyEstimator - chain #1" in capsys.readouterr().out
