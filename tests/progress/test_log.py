"""Lines in logs: where they go, how often, and which is the last."""

import logging
import pickle
import re
from logging.handlers import MemoryHandler
from pickle import UnpicklingError
from threading import Thread
from time import sleep
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import sklearn.callback
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from checks.toy_samplers import TaskLog, ToyEstimator
from skbnp import BNPImputer, DirichletProcessMixture, TreeFactorModel
from skbnp.mcmc import runner
from skbnp.progress import ProgressLog

X = np.random.default_rng(0).normal(size=(24, 2))
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def lines_of(caplog):
    assert {record.name for record in caplog.records} <= {"skbnp"}
    return [record.getMessage() for record in caplog.records]


def mixture(**options):
    given = {"n_chains": 2, "n_warmup": 10, "n_draws": 10, "random_state": 0, **options}
    return DirichletProcessMixture(**given)


def test_the_state_of_a_mixture(caplog, monkeypatch):
    monkeypatch.setattr(runner, "_block_length", lambda *_: 5)
    with caplog.at_level(logging.INFO, "skbnp"):
        fitted = mixture().set_callbacks(ProgressLog()).fit(X)
    first, last = lines_of(caplog)
    number = r"-?\d[\d,.e+-]*"
    span = rf"{number}(?: to {number})?"
    state = "; ".join(f"{name} {span}" for name in fitted._reported_traces)
    assert re.fullmatch(
        rf"DirichletProcessMixture: 2 chains, draws, sweep 11 of 20; {state}; R-hat not yet; "
        r"[\d.]+ s, about [\d.]+ s left",
        first,
    )
    assert re.fullmatch(
        rf"DirichletProcessMixture: 2 chains, all 20 sweeps; {state}; "
        r"R-hat (?:\d+\.\d\d|inf) \(\w+\); [\d.]+ s",
        last,
    )


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_lines_come_while_chains_run(caplog, monkeypatch, backend):
    monkeypatch.setattr(runner, "_block_length", lambda *_: 2)
    with caplog.at_level(logging.DEBUG, "skbnp"), joblib.parallel_config(backend=backend):
        callback = ProgressLog(every=0, level=logging.DEBUG)
        ToyEstimator(n_jobs=2).set_callbacks(callback).fit()
    sweeps = [
        int(found[1])
        for found in map(re.compile(r"sweep (\d+) of 11").search, lines_of(caplog))
        if found
    ]
    assert sweeps == [1, 3, 5, 7, 9]
    assert "all 11 sweeps" in lines_of(caplog)[-1]


def test_levels_of_the_program_decide(caplog):
    with caplog.at_level(logging.WARNING, "skbnp"):
        ToyEstimator().set_callbacks(ProgressLog()).fit()
        assert caplog.records == []
        ToyEstimator().set_callbacks(ProgressLog(level=logging.WARNING)).fit()
        assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_without_any_handler_lines_go_to_standard_error(monkeypatch, capsys):
    # As in a program that has not set up logging. Before a test pytest adds handlers of its own.
    monkeypatch.setattr(logging.getLogger("skbnp"), "propagate", False)
    monkeypatch.setattr(logging.getLogger("skbnp"), "handlers", [])
    monkeypatch.setattr(runner, "_block_length", lambda *_: 4)
    ToyEstimator(n_draws=10).set_callbacks(ProgressLog()).fit()
    out, err = capsys.readouterr()
    assert out == ""
    first, last = err.splitlines()
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ToyEstimator: 2 chains, ", first)
    assert "all 23 sweeps" in last
    # Nothing is left behind.
    assert not logging.getLogger("skbnp").hasHandlers()


def test_lines_are_flushed_at_once():
    written = []

    class Buffer(MemoryHandler):
        def flush(self):
            written.extend(record.getMessage() for record in self.buffer)
            self.buffer.clear()

    buffer = Buffer(1000)
    logger = logging.getLogger("skbnp")
    logger.addHandler(buffer)
    before, seen = logger.level, []
    logger.setLevel(logging.INFO)
    try:

        class Look(ProgressLog):
            def on_progress(self, estimator, context, progress):
                super().on_progress(estimator, context, progress)
                seen.append(len(written))

        ToyEstimator().set_callbacks(Look(every=0)).fit()
    finally:
        logger.removeHandler(buffer)
        logger.setLevel(before)
    assert seen == list(range(len(seen)))


def test_an_error_has_a_last_line(caplog, monkeypatch):
    def fails(*arguments):
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(runner, "_block_length", fails)
    with caplog.at_level(logging.INFO, "skbnp"), pytest.raises(RuntimeError, match="disk"):
        ToyEstimator().set_callbacks(ProgressLog()).fit()
    (line,) = lines_of(caplog)
    assert "stopped after 1 of 11 sweeps" in line or "stopped after 0 of 11 sweeps" in line


# -- fits within others


@pytest.mark.parametrize("backend, n_jobs", [("threading", 1), ("threading", 2), ("loky", 2)])
def test_a_search_tells_of_its_fits(caplog, backend, n_jobs):
    model = make_pipeline(StandardScaler(), mixture(n_warmup=20))
    search = GridSearchCV(model, {"dirichletprocessmixture__n_draws": [5, 6]}, cv=2, n_jobs=n_jobs)
    with caplog.at_level(logging.INFO, "skbnp"), joblib.parallel_config(backend=backend):
        search.set_callbacks(ProgressLog(every=0)).fit(X)
    *lines, last = lines_of(caplog)
    assert re.fullmatch(r"GridSearchCV: 5 fits within it done; [\d.]+ s", last)
    assert lines
    place = r"(?:candidate-split-evaluation [1-4] of 4|refit-with-best-params)"
    wanted = rf"GridSearchCV: {place}: fit-final-estimator: DirichletProcessMixture: 2 chains, \w"
    for line in lines:
        assert re.match(wanted, line)


def test_a_search_has_a_line_a_minute_in_all(caplog):
    search = GridSearchCV(mixture(n_warmup=20), {"n_draws": [5, 6]}, cv=2)
    with caplog.at_level(logging.INFO, "skbnp"):
        search.set_callbacks(ProgressLog()).fit(X)
    first, last = lines_of(caplog)
    assert "candidate-split-evaluation 1 of 4" in first
    assert "5 fits within it done" in last


def test_the_second_fit_has_a_name(caplog):
    options = {"n_chains": 2, "n_warmup": 12, "n_draws": 4, "random_state": 0}
    table = X.copy()
    table[::3, 1] = np.nan
    tree = TreeFactorModel(**options, interval_calibration="holes")
    with caplog.at_level(logging.INFO, "skbnp"), pytest.warns(UserWarning):
        tree.set_callbacks(ProgressLog(every=0)).fit(table)
    lines = lines_of(caplog)
    second = "TreeFactorModel: interval-calibration: TreeFactorModel: 2 chains, "
    is_second = [line.startswith(second) for line in lines]
    n_first = is_second.index(True)
    assert "all 16 sweeps" in lines[n_first - 1]
    assert all(is_second[n_first:-1]) and len(lines) > n_first + 2
    assert "1 fit within it done" in lines[-1]


def test_other_callbacks_see_the_second_fit_as_one_task(tmp_path, capsys):
    options = {"n_chains": 2, "n_warmup": 3, "n_draws": 4, "random_state": 0}
    tree = TreeFactorModel(**options, interval_calibration="holes")
    log = TaskLog(tmp_path / "log")
    with pytest.warns(UserWarning):
        tree.set_callbacks(log, sklearn.callback.ProgressBar()).fit(X)
    second = [line for line in log.lines() if "interval-calibration" in line]
    assert second == [f"{event} fit0/interval-calibration2" for event in ("begin", "end")]
    assert sum("sweep" in line for line in log.lines()) == 2 * 2 * 7
    shown = capsys.readouterr().out
    assert "TreeFactorModel - interval-calibration | TreeFactorModel - fit #2" in shown
    assert not hasattr(tree, "_callback_fit_ctx")


def test_the_model_of_an_imputer(caplog):
    table = X.copy()
    table[::3, 1] = np.nan
    imputer = BNPImputer(estimator=mixture(n_warmup=20), random_state=0)
    with caplog.at_level(logging.INFO, "skbnp"):
        imputer.set_callbacks(ProgressLog(every=0)).fit(table)
    *lines, last = lines_of(caplog)
    name = "BNPImputer: model: DirichletProcessMixture: 2 chains, "
    assert lines and all(line.startswith(name) for line in lines)
    assert last.startswith("BNPImputer: 1 fit within it done; ")
    assert not hasattr(imputer.estimator_, "_skl_callbacks")


# -- the callback itself


def test_it_can_be_used_again_and_pickled(caplog):
    callback = ProgressLog(every=5.0)
    with caplog.at_level(logging.INFO, "skbnp"):
        for _ in range(2):
            ToyEstimator().set_callbacks(callback).fit()
            assert callback._listeners == {}
            callback = pickle.loads(pickle.dumps(callback))
    assert callback.every == 5.0
    assert sum("all 11 sweeps" in line for line in lines_of(caplog)) == 2


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"every": -1.0}, ValueError, "every must be >= 0 and finite, got -1.0"),
        ({"every": np.inf}, ValueError, "every must be >= 0 and finite, got inf"),
        ({"every": np.nan}, ValueError, "every must be >= 0 and finite, got nan"),
        ({"every": "60"}, TypeError, "every must be a number, got '60'"),
        ({"every": True}, TypeError, "every must be a number, got True"),
        ({"level": "INFO"}, TypeError, "level must be an integer, as logging.INFO, got 'INFO'"),
    ],
)
def test_bad_parameters(options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        ProgressLog(**options)


@pytest.mark.parametrize("error", [ConnectionRefusedError, EOFError, UnpicklingError])
def test_nobody_listens_anymore(monkeypatch, error):
    """As on a machine that cannot reach the one where the run began."""
    callback = ProgressLog()

    def unreachable(*arguments):
        raise error("no such socket")

    monkeypatch.setattr("skbnp.progress._callback.send", unreachable)
    with pytest.warns(UserWarning, match=f"cannot be shown here: {error.__name__}") as caught:
        ToyEstimator().set_callbacks(callback).fit()
    assert len(caught) == 1


def test_threads_do_not_send_at_a_time(monkeypatch):
    """The searches of a process share one connection to whoever shows them."""
    callback, context = ProgressLog(), SimpleNamespace(root_uuid=0)
    callback._listeners[0] = "somewhere"
    now, most = [], []

    def send(*arguments):
        now.append(1)
        most.append(len(now))
        sleep(0.005)
        now.pop()

    monkeypatch.setattr("skbnp.progress._callback.send", send)
    threads = [Thread(target=callback._send, args=(context, "tell")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]
