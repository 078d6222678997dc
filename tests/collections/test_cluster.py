"""The same draws from the workers of a cluster, whatever happens to them, and what is said then."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import dask
import dask.array as da
import distributed
import numpy as np
import pytest

from checks.collections_rows import prepared, sums_of_both, sums_of_cell, table
from checks.dying_workers import KillsOnce
from checks.slow import slow_where
from skbnp import DirichletProcessMixture
from skbnp.collections import cluster as cluster_module
from skbnp.collections.reading import Reading
from skbnp.collections.service import StoredRows
from skbnp.collections.tree import CELL
from skbnp.collections.work import Where
from skbnp.dirichlet_process_mixture import _collections

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning:distributed"
    )
]
X = table(3 * CELL + 700)
SIZES = {"n_chains": 2, "n_warmup": 2, "n_draws": 5, "random_state": 0, "covariance_type": "diag"}


@pytest.fixture(autouse=True)
def few_are_kept(monkeypatch):
    monkeypatch.setattr(_collections, "MOST_KEPT", 600)


@pytest.fixture
def client():
    """Of a cluster in this process."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            worker_dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def ask(rows):
    return rows.run(sums_of_cell, 2.0, sums_of_both)


def fitted(stored, **changes):
    return DirichletProcessMixture(**SIZES | changes).fit(stored)


def draws(model):
    return {name: trace.tobytes() for name, trace in model.posterior_.traces.items()}


@pytest.fixture(scope="module")
def expected():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_collections, "MOST_KEPT", 600)
        return draws(fitted(da.from_array(X, chunks=(CELL, 3))))


def test_nothing_is_sent_to_workers_but_by_tasks():
    """Data that are sent by themselves are lost with a worker, and named data are never renewed."""
    package = Path(cluster_module.__file__).parents[1]
    folders = ("collections", "estimators", "mcmc", "dirichlet_process_mixture")
    sources = [path for folder in folders for path in (package / folder).rglob("*.py*")]
    sources = [path for path in sources if path.suffix in (".py", ".pyx")]
    assert len(sources) > 60
    for path in sources:
        assert ".scatter" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("is_held", slow_where([True, False], lambda is_held: not is_held))
def test_answers_and_draws_are_those_of_this_process(client, expected, is_held, monkeypatch):
    stored = da.from_array(X, chunks=(CELL, 3))
    if not is_held:
        limits = {
            name: one | {"memory_limit": 1000}
            for name, one in client.scheduler_info()["workers"].items()
        }
        monkeypatch.setattr(cluster_module.Cluster, "_workers", lambda self: limits)
    assert draws(fitted(stored)) == expected
    persisted = client.persist(da.from_array(X, chunks=(10_000, 2)))
    assert draws(fitted(persisted)) == expected


@pytest.mark.slow
def test_a_task_a_block_serves_all_chains(client, monkeypatch):
    keys = []
    submit = distributed.Client.submit

    def counted(self, *args, **kwargs):
        keys.append(kwargs["key"])
        return submit(self, *args, **kwargs)

    monkeypatch.setattr(distributed.Client, "submit", counted)
    model = fitted(da.from_array(X, chunks=(CELL, 3)), n_chains=4, n_draws=6)
    records = [key for key in keys if key.endswith("-record")]
    assert all(key.startswith("skbnp-") for key in keys)
    # Passes of sweeps and of split-merge rounds, with the one that looks at the columns and the
    # start: fewer than if each chain asked for itself.
    assert len(records) < 0.7 * model.n_chains_ * 2 * (6 + 2)


def test_what_is_done_with_the_rows_is_logged(client, caplog):
    with caplog.at_level(logging.INFO, logger="skbnp"):
        prepared(da.from_array(X, chunks=(10_000, 3)))
    assert "of whose edges are new" in caplog.text
    assert "held in the memory of the workers" in caplog.text


def test_an_error_of_a_block_names_it_once(client):
    def fail(block, block_info=None):
        if block_info[None]["chunk-location"][0] == 1:
            raise OSError("the disk is gone")
        return block

    stored = da.ones((3 * CELL, 2), chunks=(CELL, 2)).map_blocks(fail, dtype=float)
    with pytest.raises(RuntimeError, match=r"block 1 of X \(rows 16384 to 32767\)") as caught:
        ask(prepared(stored))
    assert str(caught.value).count("the disk is gone") == 1


def test_a_bad_cell_is_named_with_block_rows_and_column(client):
    wrong = X.astype(float)
    wrong[CELL + 5, 1] = np.inf
    with pytest.raises(ValueError, match="infinity, got some in column 1, row 16389"):
        fitted(da.from_array(wrong, chunks=(CELL, 3)))


def test_a_cluster_without_workers_says_how_to_go_on(client, monkeypatch):
    rows = prepared(da.from_array(X, chunks=(CELL, 3)))
    ask(rows)
    monkeypatch.setattr(cluster_module, "_LOOK_EVERY", 0.05)
    with dask.config.set({"distributed.comm.timeouts.connect": "300ms"}):
        client.cluster.scale(0)
        while client.scheduler_info()["workers"]:
            time.sleep(0.01)
        with pytest.raises(RuntimeError, match=r"lost its last worker, .*checkpoint=directory"):
            ask(rows)
        with pytest.raises(RuntimeError, match="lost its last worker, .*no sweep of this fit"):
            StoredRows(da.from_array(X, chunks=(CELL, 3)))


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_a_scheduler_that_is_gone_says_how_to_go_on(client, seconds):
    def slowly(block):
        time.sleep(0.5)
        return block

    stored = da.from_array(X, chunks=(CELL, 3)).map_blocks(slowly, dtype=X.dtype, meta=X[:0])
    rows = prepared(stored)
    closing = threading.Timer(seconds, client.cluster.close)
    closing.start()
    if not seconds:
        closing.join()
    with pytest.raises(RuntimeError, match=r"lost its scheduler: no sweep .*checkpoint=directory"):
        ask(rows)
    closing.join()


def test_a_killed_worker_says_which_blocks_would_fit(client):
    rows = prepared(da.from_array(X, chunks=(CELL, 3)))
    executor = rows._executor
    worker = SimpleNamespace(address="tcp://10.0.0.1:1234")
    error = distributed.KilledWorker("skbnp-0-1-2", worker, 3)
    words = executor._words_of_killed(error)
    assert "block 2 of X (rows 32768 to 49151)" in words
    assert str(Where(3, 0, 0)) == "block 3 of X"
    assert "X.rechunk({0: " in words and "MB of a worker" in words
    size = int(words.partition("X.rechunk({0: ")[2].partition("}")[0])
    assert size % 65_536 == 0


def test_an_asynchronous_client_is_refused():
    async def work():
        async with distributed.Client(
            n_workers=0, processes=False, asynchronous=True, dashboard_address=None
        ):
            StoredRows(da.ones((5, 2)))

    import asyncio

    with pytest.raises(ValueError, match="must not be asynchronous"):
        asyncio.run(work())


def test_answers_are_lazy_on_a_cluster_too(client):
    model = DirichletProcessMixture(**SIZES).fit(X[:300])
    stored = da.from_array(X, chunks=(9000, 3))
    found = model.predict(stored)
    np.testing.assert_array_equal(found.compute(), model.predict(X))


def test_frames(client):
    import dask.dataframe as dd
    import pandas as pd

    stored = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=3)
    rows = prepared(stored, reading=Reading(pd.DataFrame.to_numpy))
    known = prepared(client.persist(stored), reading=Reading(pd.DataFrame.to_numpy))
    assert ask(rows)[0].tobytes() == ask(known)[0].tobytes()
    np.testing.assert_array_equal(rows.take(np.array([3, 20_000])).to_numpy(), X[[3, 20_000]])


# -- processes, some of which die


def processes(n_workers, **options):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=None, memory_limit="2GB",
        **options,
    )  # fmt: skip


@pytest.mark.slow
def test_workers_that_die_of_a_block_say_which_would_fit():
    def die(block, block_info=None):
        if block_info and block_info[None]["chunk-location"][0] == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    stored = da.from_array(X, chunks=(CELL, 3)).map_blocks(die, dtype=X.dtype, meta=X[:0])
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        processes(1) as cluster,
        distributed.Client(cluster),
        pytest.raises(MemoryError, match=r"block [23] of X .*X\.rechunk\(\{0: \d+\}\)"),
    ):
        ask(prepared(stored))


@pytest.mark.slow
def test_a_fit_whose_process_is_killed_goes_on_with_the_same_draws(expected, tmp_path):
    rows = tmp_path / "rows.npy"
    np.save(rows, X)
    runs = tmp_path / "runs"
    script = (
        "import sys, numpy as np\n"
        "from skbnp import DirichletProcessMixture\n"
        "from skbnp.dirichlet_process_mixture import _collections\n"
        "_collections.MOST_KEPT = 600\n"
        f"DirichletProcessMixture(**{SIZES!r}, checkpoint={str(runs)!r}, checkpoint_every=0)"
        f".fit(np.load({str(rows)!r}, mmap_mode='r'))"
    )
    for pause in (0.0, 0.2):
        process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
        while process.poll() is None and not list(runs.glob("*.skbnp")):
            time.sleep(0.01)
        time.sleep(pause)
        process.kill()
        process.wait()
    # Another way to hold the same rows.
    found = fitted(da.from_array(X, chunks=(10_000, 3)), checkpoint=runs)
    assert draws(found) == expected


@pytest.mark.slow
@pytest.mark.parametrize("n_sweeps", [1, 5, 9])
def test_a_process_that_is_killed_costs_one_sweep_of_each_chain(
    expected, tmp_path, monkeypatch, n_sweeps
):
    """It kills itself in the middle of a sweep; another goes on from the file."""
    rows, runs, log = (tmp_path / name for name in ("rows.npy", "runs", "log"))
    np.save(rows, X)
    script = (
        "import os, signal, numpy as np\n"
        "from skbnp import DirichletProcessMixture\n"
        "from skbnp.dirichlet_process_mixture import _collections, _stored_rows\n"
        "from skbnp.mcmc import runner\n"
        "_collections.MOST_KEPT = 600\n"
        "runner._BLOCK_SECONDS = 0.0\n"  # as sweeps of many rows take longer than a block
        "base, done = _stored_rows.RecordSampler.sweep, []\n"
        "def sweep(self):\n"
        "    base(self)\n"
        "    done.append(self)\n"
        f"    print('sweep', file=open({str(log)!r}, 'a'))\n"
        f"    if len(done) > {n_sweeps}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "_stored_rows.RecordSampler.sweep = sweep\n"
        f"DirichletProcessMixture(**{SIZES!r}, checkpoint={str(runs)!r}, checkpoint_every=0)"
        f".fit(np.load({str(rows)!r}, mmap_mode='r'))"
    )
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL
    n_before = len(log.read_text().split())
    found = fitted(da.from_array(X, chunks=(10_000, 3)), checkpoint=runs)
    assert draws(found) == expected
    n_wanted = found.n_chains_ * (SIZES["n_warmup"] + SIZES["n_draws"])
    n_twice = n_before + found.posterior_.n_sweeps_run - n_wanted
    assert 0 < n_twice <= found.n_chains_


def workers_of(client):
    return client.scheduler_info()["workers"]


@contextmanager
def lone_worker(address, client):
    """A worker without a nanny, which nobody restarts."""
    command = [sys.executable, "-m", "dask", "worker", address, "--no-nanny", "--nthreads", "1"]
    process = subprocess.Popen(
        [*command, "--name", "lone", "--no-dashboard"],
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        client.wait_for_workers(2, timeout=60)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_draws_do_not_depend_on_the_workers(expected, n_workers):
    with processes(n_workers) as cluster, distributed.Client(cluster):
        assert draws(fitted(da.from_array(X, chunks=(CELL, 3)))) == expected


@contextmanager
def two_workers(has_nanny):
    """A client of two processes: both with a nanny, or one of them without."""
    with (
        processes(2 if has_nanny else 1) as cluster,
        distributed.Client(cluster) as client,
        nullcontext() if has_nanny else lone_worker(cluster.scheduler_address, client),
    ):
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["summary_of_cell", "pass_rows", "pilot", "coin"])
@pytest.mark.parametrize("has_nanny", [True, False])
def test_a_worker_that_is_killed_in_a_round_of_each_kind(expected, tmp_path, kind, has_nanny):
    flag = tmp_path / "killed"
    with two_workers(has_nanny) as client:
        client.register_plugin(KillsOnce(kind, str(flag)), name="kills once")
        assert draws(fitted(da.from_array(X, chunks=(CELL, 3)))) == expected
        assert flag.exists()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("has_nanny", [True, False])
def test_a_worker_that_is_killed_costs_nothing_but_time(expected, seed, has_nanny):
    """At a random moment, in whatever kind of round; a nanny restarts it, or another survives."""
    pause = np.random.default_rng(seed).uniform(0.0, 1.0)

    def kill(pid):
        time.sleep(pause)
        os.kill(pid, signal.SIGKILL)

    with two_workers(has_nanny) as client:
        names = {info["name"]: address for address, info in workers_of(client).items()}
        pids = client.run(os.getpid)
        pid = pids[names.get("lone", next(iter(names.values())))]
        killer = threading.Thread(target=kill, args=(pid,))
        killer.start()
        found = fitted(da.from_array(X, chunks=(CELL, 3)))
        killer.join()
        assert draws(found) == expected
        assert draws(fitted(da.from_array(X, chunks=(CELL, 3)))) == expected
