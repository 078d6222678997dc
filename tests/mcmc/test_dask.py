"""Chains on a cluster of worker processes on this machine, and on joblib's own: same draws."""

import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor

import distributed
import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from checks.answers import answers, assert_same_answers
from checks.callbacks import NEEDS_CALLBACKS
from checks.toy_samplers import StopAt, TaskLog
from checks.watched import ToyModel, WatchedMixture, table_with_holes
from skbnp.mcmc import runner
from skbnp.samplers import MixtureSampler

X = table_with_holes()
SIZES = {"n_chains": 3, "n_warmup": 20, "n_draws": 60, "random_state": 5}
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning:distributed"
)


@pytest.fixture(scope="module")
def client():
    """Of a cluster of three worker processes."""
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address=None, memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def expected():
    return {model: answers(model(**SIZES).fit(X), X) for model in (ToyModel, WatchedMixture)}


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(runner, "_block_length", lambda *_: 20)


def kill_later(find_pid, log, n_sweeps):
    """Kill the process that is found, once so many sweeps have been made."""

    def work():
        while not log.exists() or log.stat().st_size < n_sweeps:
            time.sleep(0.01)
        os.kill(find_pid(), signal.SIGKILL)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.mark.slow
@pytest.mark.parametrize("model", [ToyModel, WatchedMixture])
def test_same_draws_on_dask(client, expected, model):
    with joblib.parallel_config(backend="dask"):
        found = answers(model(**SIZES).fit(X), X)
    assert_same_answers(found, expected[model])


@pytest.mark.slow
@pytest.mark.parametrize("model", [ToyModel, WatchedMixture])
def test_a_worker_of_dask_is_killed(client, expected, model, tmp_path):
    log, pids = tmp_path / "log", client.run(os.getpid)
    killer = kill_later(lambda: sorted(pids.values())[0], log, 3 * 40)
    with joblib.parallel_config(backend="dask"):
        estimator = model(**SIZES).watch(log=log, seconds=0.01).fit(X)
    killer.join()
    assert_same_answers(answers(estimator, X), expected[model])
    assert estimator.posterior_.n_sweeps_run == 3 * 80
    client.wait_for_workers(3, timeout=60)
    assert set(client.run(os.getpid).values()) != set(pids.values())


@pytest.mark.slow
def test_searches_on_dask(client, tmp_path):
    model = ToyModel(n_chains=2, n_draws=10, random_state=5)
    grid = {"start": [0.0, 1.0]}
    search, scores = GridSearchCV(model, grid, cv=2).fit(X), cross_val_score(model, X, cv=3)
    kept = clone(model).set_params(checkpoint=tmp_path)
    with joblib.parallel_config(backend="dask"):
        np.testing.assert_array_equal(cross_val_score(kept, X, cv=3), scores)
        found = GridSearchCV(kept, grid, cv=2).fit(X)
    for name in ("split0_test_score", "split1_test_score"):
        np.testing.assert_array_equal(found.cv_results_[name], search.cv_results_[name])
    assert len(list(tmp_path.iterdir())) == 3 + 2 * 2 + 1


# -- workers of joblib


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, n_times", [(WatchedMixture, 1), (WatchedMixture, 2), (ToyModel, 1)]
)
def test_a_worker_of_loky_is_killed(expected, model, tmp_path, n_times):
    log = tmp_path / "log"
    estimator = model(**SIZES, n_jobs=2).watch(log=log, seconds=0.002, dies=(3 * 30, n_times))
    with joblib.parallel_config(backend="loky"):
        estimator.fit(X)
    assert_same_answers(answers(estimator, X), expected[model])
    assert log.stat().st_size > 3 * 80  # a block was done again
    assert estimator.posterior_.n_sweeps_run == 3 * 80


@pytest.mark.slow
def test_workers_that_die_each_time_end_the_run(expected, tmp_path):
    estimator = ToyModel(**SIZES, n_jobs=2)
    with joblib.parallel_config(backend="loky"):
        with pytest.raises(BrokenExecutor):
            clone(estimator).watch(log=tmp_path / "log", dies=(3 * 30, 1000)).fit(X)
        # and the next run finds workers again
        assert_same_answers(answers(estimator.fit(X), X), expected[ToyModel])


# -- all the ways to the same draws


def test_same_draws_on_every_way(tmp_path, expected):
    wanted = expected[WatchedMixture]
    for n_jobs in (1, 2, -1):
        assert_same_answers(answers(WatchedMixture(**SIZES, n_jobs=n_jobs).fit(X), X), wanted)
    with joblib.parallel_config(backend="loky"):
        assert_same_answers(answers(WatchedMixture(**SIZES, n_jobs=2).fit(X), X), wanted)
    # Begun here and finished there.
    kept = {**SIZES, "checkpoint": tmp_path / "loky"}
    WatchedMixture(**{**kept, "n_draws": 25}).fit(X)
    with joblib.parallel_config(backend="loky"):
        resumed = WatchedMixture(**kept, n_jobs=2).fit(X)
    assert_same_answers(answers(resumed, X), wanted)
    assert resumed.posterior_.n_sweeps_run == 3 * 35


def test_row_threads_do_not_show():
    # Three blocks of rows, for two threads.
    table = np.concatenate([table_with_holes(1100, seed=s) for s in range(2)])
    sampler = MixtureSampler(algorithm="parallel")
    sizes = {"n_warmup": 3, "n_draws": 2, "random_state": 5, "sampler": sampler}
    # One chain with two threads, two with one each.
    for n_chains in (1, 2):
        one = WatchedMixture(**sizes, n_chains=n_chains, n_jobs=1).fit(table)
        two = WatchedMixture(**sizes, n_chains=n_chains, n_jobs=2).fit(table)
        assert_same_answers(answers(one, table), answers(two, table))


@NEEDS_CALLBACKS
@pytest.mark.parametrize("way", ["warm_start", "checkpoint"])
@pytest.mark.parametrize("model", [ToyModel, WatchedMixture])
def test_stopped_by_a_callback_and_resumed(tmp_path, monkeypatch, expected, model, way):
    monkeypatch.setattr(runner, "_block_length", lambda *_: 7)
    estimator = model(**SIZES)
    if way == "checkpoint":
        estimator.set_params(checkpoint=tmp_path / "checkpoint")
    else:
        estimator.set_params(warm_start=True)
    # The chains end up at different lengths.
    estimator.set_callbacks(StopAt(tmp_path / "log", {0: 52, 1: 49, 2: 50})).fit(X)
    posterior = estimator.posterior_
    assert posterior.n_draws < 60
    assert len({end.n_swept for end in posterior.ends}) > 1
    n_left = sum(80 - end.n_swept for end in posterior.ends)
    np.testing.assert_array_equal(
        posterior.traces["log_joint"], expected[model]["log_joint"][:, : posterior.n_draws]
    )
    resumed = estimator if way == "warm_start" else clone(estimator)
    resumed.set_callbacks(TaskLog(tmp_path / "second")).fit(X)
    assert_same_answers(answers(resumed, X), expected[model])
    assert resumed.posterior_.n_sweeps_run == n_left
    # Each chain goes on with the number of its next sweep.
    lines = (tmp_path / "second").read_text().splitlines()
    for chain, end in enumerate(posterior.ends):
        sweeps = [f"begin fit0/chain{chain}/sweep{sweep}" for sweep in range(end.n_swept, 80)]
        assert [
            line for line in lines if line.startswith(sweeps[0].rsplit("sweep", 1)[0])
        ] == sweeps


@NEEDS_CALLBACKS
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_tasks_of_a_mixture(tmp_path, backend):
    log = TaskLog(tmp_path / "log")
    mixture = WatchedMixture(n_chains=2, n_warmup=3, n_draws=4, n_jobs=2).set_callbacks(log)
    with joblib.parallel_config(backend=backend):
        mixture.fit(X)
    lines = log.lines()
    assert (lines[0], lines[-1]) == ("begin fit0", "end fit0")
    for chain in range(2):
        name = f"fit0/chain{chain}"
        sweeps = [f"{e} {name}/sweep{s}" for s in range(7) for e in ("begin", "end")]
        of_chain = [line for line in lines if name in line]
        assert of_chain == [f"begin {name}", *sweeps, f"end {name}"]


def test_progress_bar_of_mixtures_in_a_search(capsys):
    ProgressBar = pytest.importorskip("sklearn.callback").ProgressBar

    mixture = WatchedMixture(n_chains=2, n_warmup=3, n_draws=4, random_state=0)
    search = GridSearchCV(mixture, {"concentration": [0.5, 2.0]}, cv=2, n_jobs=2)
    search.set_callbacks(ProgressBar()).fit(X)
    assert "WatchedDirichletProcessMixture - chain #1" in capsys.readouterr().out
