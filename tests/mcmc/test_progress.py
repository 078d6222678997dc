"""What is told of a run while it goes on, and when lines say it."""

import math
from dataclasses import replace

import joblib
import numpy as np
import pytest

from checks.answers import assert_same_answers
from checks.toy_samplers import StopAt, ToyDensity, ToyEstimator, ToySampler, Watcher
from skbnp.mcmc import NonFiniteLogJointError, diagnostics, progress, run_chains, runner
from skbnp.mcmc.advance import Block
from skbnp.mcmc.progress import Lines, Progress, Watch
from skbnp.mcmc.warmup import WarmupRounds

RUN = {"n_chains": 3, "n_draws": 20, "seed": 7, "density": ToyDensity()}
NAMES = ("log_density", "x", "y")


class Estimator:
    """No more of an estimator than the runner looks at."""

    def __init__(self, *callbacks):
        self._skl_callbacks = list(callbacks)


def watched(make_sampler=ToySampler, *, watcher=None, n_warmup=10, **changes):
    """What somebody who watches a run is told, and its posterior."""
    watcher = watcher or Watcher()
    estimator = ToyEstimator(n_chains=3).set_callbacks(watcher)
    root = estimator._init_callback_context(max_subtasks=3)
    run = {**RUN, "n_warmup": n_warmup, "reported": NAMES, **changes}
    posterior = run_chains(make_sampler, **run, callbacks=(estimator, root))
    return watcher.told, posterior


def rounds(**options):
    given = {"first": 16, "names": NAMES, "max_work": 6000.0, "n_draws": 20, **options}
    return WarmupRounds(work_per_sweep=lambda traces: 1.0, least_work=1.0, **given)


# -- what is told


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_from_before_the_first_sweep_to_after_the_last(monkeypatch, backend):
    monkeypatch.setattr(runner, "_block_length", lambda *_: 7)
    with joblib.parallel_config(backend=backend):
        told, posterior = watched(n_jobs=2)
    assert [x.n_swept for x in told] == [0, 1, 8, 11, 18, 25, 30]
    assert [x.phase for x in told] == ["warm-up"] * 3 + ["draws"] * 3 + ["done"]
    first, last = told[0], told[-1]
    assert {x.model for x in told} == {"ToyEstimator"}
    assert {(x.n_chains, x.n_sweeps, x.most_sweeps, x.warmup_round) for x in told} == {
        (3, 30, 30, None)
    }
    assert (first.figures, first.rhat, first.fraction) == ({}, None, 0.0)
    assert math.isnan(first.seconds_left)
    assert list(last.figures) == ["log_joint", *NAMES]
    for name, values in last.figures.items():
        np.testing.assert_array_equal(values, posterior.traces[name][:, -1])
    found = {diagnostics.rhat(posterior.traces[name]): name for name in NAMES}
    assert last.rhat == (max(found), found[max(found)])
    assert (last.fraction, last.seconds_left, last.has_ended) == (1.0, 0.0, True)
    seconds = [x.seconds for x in told]
    assert seconds == sorted(seconds)


def test_watching_changes_nothing(monkeypatch):
    monkeypatch.setattr(progress, "_SHARE_OF_TIME", np.inf)
    for n_warmup in (10, rounds()):
        _, seen = watched(n_warmup=n_warmup)
        alone = run_chains(ToySampler, **RUN, n_warmup=n_warmup)
        assert_same_answers(seen.traces, alone.traces)
        for one, other in zip(seen.ends, alone.ends, strict=True):
            np.testing.assert_equal(one.to_data(), other.to_data())


def test_rounds(monkeypatch):
    # However long R-hat takes on a busy machine, it is told each time.
    monkeypatch.setattr(progress, "_SHARE_OF_TIME", np.inf)
    monkeypatch.setattr(runner, "_block_length", lambda *_: 8)
    told, posterior = watched(n_warmup=rounds())
    rule, n_rounds = rounds(), posterior.warmup.n_rounds
    assert n_rounds > 2
    seen = [x.warmup_round for x in told]
    assert seen == sorted(seen, key=lambda n: n or n_rounds + 1)
    assert set(seen) == {*range(1, n_rounds + 1), None}
    n_all = posterior.n_warmup + 20 * posterior.sweeps_per_draw
    for x in told:
        assert x.n_sweeps == (n_all if x.warmup_round is None else rule.end_of(x.warmup_round))
        assert x.n_swept <= x.n_sweeps <= x.most_sweeps
        assert n_all <= x.most_sweeps
        assert (x.most_sweeps == n_all) or x.warmup_round
    # R-hat of a round is that of its second half, and before that of the round before.
    assert all(x.rhat is None for x in told if x.n_swept < 8)
    assert all(x.rhat is not None for x in told if x.n_swept > 16)


def test_most_work_is_what_a_warmup_that_never_settles_does():
    calls = []

    def density(sampler):
        calls.append(1)
        return ToyDensity()(sampler)

    density.n_rows = 3
    apart = rounds(first=10, names=("x",), max_work=3 * 1000.0)
    watcher = Watcher()

    def start_apart(bit_generator, chain):
        return Frozen(bit_generator, chain)

    told, posterior = watched(start_apart, watcher=watcher, n_warmup=apart, density=density)
    assert posterior.warmup.ended == "spent"
    n_all = posterior.n_warmup + 20 * posterior.sweeps_per_draw
    n_sweeps, n_figures = apart.most_work(3, 20)
    assert told[0].most_sweeps == n_sweeps == n_all
    assert n_figures >= posterior.n_warmup / 2 + 20 - 10


class Frozen(ToySampler):
    """Chains that stay apart, however long they run."""

    def sweep(self):
        super().sweep()
        self.value[0] = self.chain + 0.01 * self.random.normal()


def test_goes_on_where_an_earlier_run_ended():
    _, whole = watched(n_draws=30)
    _, start = watched(n_draws=12)
    told, posterior = watched(n_draws=30, start=start)
    assert (told[0].n_swept, told[0].n_swept_before, told[0].phase) == (22, 22, "draws")
    assert told[0].fraction == 22 / 40
    assert told[0].rhat is not None  # of the draws that are there
    np.testing.assert_array_equal(posterior.traces["x"], whole.traces["x"])
    # All draws are there, and more.
    told, _ = watched(n_draws=5, start=whole)
    assert [(x.phase, x.n_swept, x.seconds_left) for x in told] == [
        ("draws", 15, 0.0),
        ("done", 15, 0.0),
    ]


def test_an_error_is_told():
    watcher = Watcher()
    with pytest.raises(NonFiniteLogJointError):
        watched(FailsLate, watcher=watcher)
    last = watcher.told[-1]
    assert (last.phase, last.has_ended) == ("stopped", True)
    assert last.n_swept < 30


class FailsLate(ToySampler):
    def __init__(self, bit_generator, chain):
        super().__init__(bit_generator, chain, fail=(1, 20))


def test_a_stop_is_told(tmp_path):
    watcher = Watcher()
    estimator = ToyEstimator(n_draws=10).set_callbacks(StopAt(tmp_path / "log", {0: 12}), watcher)
    posterior = estimator.fit().posterior_
    assert watcher.told[-1].phase == "stopped"
    assert posterior.n_draws < 10


# -- what it costs


@pytest.mark.parametrize("is_watched", [False, True])
def test_figures_are_looked_at_sparingly(monkeypatch, is_watched):
    """Once at first; again when a hundred times as long as that has taken has passed."""
    monkeypatch.setattr(runner, "_block_length", lambda *_: 1)
    n_calls = []

    def density(sampler):
        n_calls.append(sampler.n_swept)
        return ToyDensity()(sampler)

    density.n_rows = 3
    if is_watched:
        # So dear that there is no second look.
        monkeypatch.setattr(progress, "_SHARE_OF_TIME", 1e-12)
        watched(density=density)
    else:
        run_chains(ToySampler, **{**RUN, "density": density}, n_warmup=10)
    looks = [n_swept for n_swept in n_calls if n_swept <= 10]
    assert looks == [1] * (3 * is_watched)
    assert len(n_calls) == len(looks) + 3 * 20


def test_a_look_is_due_after_a_hundred_times_its_cost(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress, "Clock", lambda: real_clock(now=lambda: now[0]))
    watch = Watch((Estimator(Watcher()), None), 0, None)
    assert watch.wants_figures()
    block = Block(n_sweeps=1, n_figures=1, seconds=0.3, seconds_of_figures=0.2)
    block.seconds_of_look = 0.2
    watch.block_done(1, [block, block])
    for seconds, due in [(0.0, False), (39.9, False), (40.1, True)]:
        now[0] = seconds
        assert watch.wants_figures() == due
    assert not Watch((Estimator(), None), 0, None).wants_figures()
    assert not Watch(None, 0, None).wants_figures()


real_clock = progress.Clock


def test_rhat_is_computed_sparingly(monkeypatch):
    n_calls = []

    def counted(trace):
        n_calls.append(trace.shape)
        return 1.0

    monkeypatch.setattr(runner, "_block_length", lambda *_: 1)
    monkeypatch.setattr(progress, "_SHARE_OF_TIME", 1e-12)
    monkeypatch.setattr(progress.diagnostics, "rhat", counted)
    told, _ = watched(n_warmup=0)
    # After the first sweep, and at the end.
    assert n_calls == [(3, 1)] * 3 + [(3, 20)] * 3
    assert told[-1].rhat == (1.0, "y")


# -- in words

STATE = Progress(
    model="Model",
    phase="warm-up",
    warmup_round=3,
    n_chains=4,
    n_swept=1200,
    n_sweeps=1792,
    most_sweeps=5000,
    figures={"log_joint": np.array([-12345.6, -12345.5]), "n_clusters": np.array([3.0, 3.0])},
    rhat=(1.083, "n_clusters"),
    seconds=125.0,
    seconds_left=7300.0,
)


@pytest.mark.parametrize(
    "changes, words",
    [
        (
            {},
            "Model: 4 chains, warm-up round 3, sweep 1,200 of 1,792; log_joint -12,346; "
            "n_clusters 3; R-hat 1.08 (n_clusters); 2 min 5 s, at most 2 h 1 min left",
        ),
        (
            {"figures": {"log_joint": np.array([1.0]), "log_density": np.array([-3.40001, 2.0])}},
            "Model: 4 chains, warm-up round 3, sweep 1,200 of 1,792; log_density -3.4 to 2; "
            "R-hat 1.08 (n_clusters); 2 min 5 s, at most 2 h 1 min left",
        ),
        (
            {"phase": "draws", "warmup_round": None, "figures": {}, "model": "", "n_chains": 1},
            "1 chain, draws, sweep 1,200 of 1,792; 2 min 5 s, about 2 h 1 min left",
        ),
        (
            {"phase": "done", "n_swept": 1792, "figures": {}},
            "Model: 4 chains, all 1,792 sweeps; 2 min 5 s",
        ),
        (
            {"phase": "stopped", "figures": {}, "rhat": None},
            "Model: 4 chains, stopped after 1,200 of 1,792 sweeps; 2 min 5 s",
        ),
        (
            {"rhat": None, "seconds_left": math.nan, "figures": {"x": np.array([0.12345])}},
            "Model: 4 chains, warm-up round 3, sweep 1,200 of 1,792; x 0.1235; R-hat not yet; "
            "2 min 5 s",
        ),
    ],
)
def test_line(changes, words):
    assert replace(STATE, **changes).line() == words


class Written:
    """Lines on a fake clock."""

    def __init__(self, every):
        self.seconds, self.lines = 0.0, []
        self._lines = Lines(self.lines.append, every, now=lambda: self.seconds)

    def after(self, seconds, **changes):
        """How many lines there are once the time is so late and this is told."""
        self.seconds = seconds
        self._lines.tell(replace(STATE, **changes))
        return len(self.lines)


def test_a_line_a_minute():
    written = Written(60.0)
    assert written.after(0.0, n_swept=0) == 0
    assert written.after(1.0, n_swept=9) == 0
    assert written.after(2.0, n_swept=10) == 1  # the first
    assert written.after(61.9, n_swept=300) == 1
    assert written.after(62.1, n_swept=301) == 2
    assert written.after(122.0, n_swept=400) == 2
    assert written.after(200.0, n_swept=500) == 3
    assert written.after(201.0, n_swept=600, phase="done") == 4  # the last


def test_long_sweeps_have_a_line_too():
    written = Written(60.0)
    assert written.after(59.0, n_swept=1) == 0
    assert written.after(70.0, n_swept=1) == 1
    assert written.after(120.0, n_swept=2) == 1
    assert written.after(140.0, n_swept=3) == 2


def test_the_sweeps_of_an_earlier_run_are_not_waited_for():
    written = Written(60.0)
    assert written.after(0.0, n_swept=500, n_swept_before=500) == 0
    assert written.after(1.0, n_swept=509, n_swept_before=500) == 0
    assert written.after(2.0, n_swept=510, n_swept_before=500) == 1


def test_lines_at_all_news():
    written = Written(0.0)
    assert written.after(0.0, n_swept=0) == 0
    assert [written.after(0.0, n_swept=n) for n in (1, 2, 3)] == [1, 2, 3]
