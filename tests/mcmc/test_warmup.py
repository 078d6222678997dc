"""A warm-up in rounds: what ends it, and that nothing but its length touches what is kept."""

import time
from itertools import cycle

import joblib
import numpy as np
import pytest

from checks.answers import assert_same_answers
from checks.callbacks import NEEDS_CALLBACKS
from checks.processes import Child
from checks.toy_samplers import StopAt, ToyDensity, ToyEstimator, ToySampler
from checks.watched import fit, table_with_holes
from skbnp import InfiniteFactorClusterer
from skbnp.mcmc import Posterior, diagnostics, io, run_chains, runner
from skbnp.mcmc.warmup import Warmup, WarmupRounds, is_settled

NAMES = ("log_density", "x", "y")


def rounds(**options):
    """Rounds of 16, 32, ... sweeps, each sweep of a chain one unit of work."""
    given = {"first": 16, "names": NAMES, "max_work": 6000.0, "n_draws": 20, **options}
    return WarmupRounds(work_per_sweep=lambda traces: 1.0, least_work=1.0, **given)


def noise(n_chains=4, n_draws=200, correlation=0.0, seed=0):
    x = np.random.default_rng(seed).normal(size=(n_chains, n_draws))
    for t in range(1, n_draws):
        x[:, t] = correlation * x[:, t - 1] + np.sqrt(1 - correlation**2) * x[:, t]
    return x


# -- the rule


def test_rounds_double():
    rule = rounds(first=200)
    assert [rule.end_of(n) for n in range(4)] == [0, 200, 600, 1400]
    assert rule.recorded(0) == (100, 1)
    assert rule.recorded(1) == (400, 1)
    # At most 200 records, however long the round.
    assert rule.recorded(2) == (1000, 2)
    assert rule.recorded(6) == (19000, 32)


def test_agreement_settles():
    traces = {"log_density": noise(seed=1), "log_joint": noise(seed=2), "n": noise(seed=3)}
    assert is_settled(traces, ("log_density", "n"))


def apart(x):
    x[0] += 2.0


def slow(x):
    x[:] = noise(correlation=0.97, seed=5)


def not_finite(x):
    x[1, 3] = np.inf


def test_an_ensemble_need_not_agree():
    traces = {"log_density": noise(seed=1), "log_joint": noise(seed=2)}
    apart(traces["log_density"])
    rule = rounds(names=(), n_draws=5)
    ended = rule.after_round(Warmup(), traces)
    assert (ended.ended, ended.thin) == ("settled", 1)
    rising = traces | {"log_density": traces["log_density"] + np.linspace(0, 3, 200)}
    assert rule.after_round(Warmup(), rising).ended == ""


@pytest.mark.parametrize("name", ["log_density", "n"])
@pytest.mark.parametrize("spoil", [apart, slow, not_finite])
def test_any_reported_trace_may_ask_for_more(name, spoil):
    traces = {"log_density": noise(seed=1), "log_joint": noise(seed=2), "n": noise(seed=3)}
    spoil(traces[name])
    assert not is_settled(traces, ("log_density", "n"))
    # What is not reported does not count, drift of log_density apart.
    if name == "n":
        assert is_settled(traces, ("log_density",))


def test_drift_asks_for_more():
    # A quarter of a standard deviation between halves: no R-hat sees it, 4 standard errors do.
    flat = noise(n_draws=400, seed=1)
    flat -= np.repeat(flat.reshape(4, 2, 200).mean(axis=(0, 2)), 200)
    traces = {"log_joint": noise(n_draws=400), "log_density": flat}
    assert is_settled(traces, ("log_density",))
    traces["log_density"] = flat + np.repeat([0.0, 0.25], 200)
    assert not is_settled(traces, ("log_density",))
    # Chains at different heights have not drifted.
    traces["log_density"] = flat + 10.0 * np.arange(4)[:, np.newaxis]
    assert is_settled(traces, ("log_joint",))


def test_few_draws_are_not_enough():
    traces = {"log_density": noise(4, 16), "log_joint": noise(4, 16)}
    assert not is_settled(traces, ("log_density",))
    short = {name: x[:, :6] for name, x in traces.items()}
    assert not is_settled(short, ())


def test_a_chain_alone_needs_as_many_draws_as_each_of_four():
    traces = {"log_density": noise(1, 100, 0.3, seed=4), "log_joint": noise(1, 100)}
    assert 25 < diagnostics.ess(traces["log_density"]) < 100
    assert is_settled(traces, ("log_density",))
    fewer = {name: x[:, :12] for name, x in traces.items()}
    assert not is_settled(fewer, ("log_density",))


def test_a_chain_alone_is_judged_by_its_drift():
    # By means of its halves, less than R-hat asks of more chains: with 33 effective draws that is
    # above 1.05 of itself.
    slow = noise(1, 100, 0.5, seed=8)
    assert diagnostics.rhat(slow) > 1.05 and diagnostics.ess(slow) > 25
    traces = {"log_density": noise(1, 100, seed=4), "log_joint": noise(1, 100), "n": slow}
    assert is_settled(traces, ("log_density", "n"))
    # Halves half a standard deviation apart: two and a half errors, and enough effective draws.
    flat = noise(1, 100, seed=4)
    flat -= np.repeat(flat.reshape(2, 50).mean(axis=1), 50)
    drifting = flat + np.repeat([0.0, 0.5], 50)
    assert diagnostics.ess(drifting) > 25
    assert not is_settled(traces | {"n": drifting}, ("log_density", "n"))
    # Drift of log_density counts though it is not among the names.
    assert is_settled(traces | {"log_density": flat}, ("n",))
    assert not is_settled(traces | {"log_density": drifting}, ("n",))
    for name in ("log_density", "n"):
        stuck = traces | {name: np.repeat([[1.0, 2.0]], 50, axis=1)}
        assert not is_settled(stuck, ("log_density", "n"))
    constant = traces | {"n": np.ones((1, 100))}
    assert is_settled(constant, ("log_density", "n"))


def decided(rule, traces, n_rounds=0, work=None):
    return rule.after_round(Warmup(n_rounds, work), traces)


def test_work_that_is_spent_ends_it():
    stuck = {"log_joint": noise() + 5.0 * np.arange(4)[:, np.newaxis]}
    rule = rounds(names=("log_joint",), max_work=4 * (16 + 32 + 64 + 128))
    found = decided(rule, stuck)
    # 16 are done; the next round of 32 and as much again for the draws can be paid.
    assert found == Warmup(1, 1.0)
    assert decided(rule, stuck, 1, 1.0) == Warmup(2, 1.0)
    # 112 are done, 128 and 128 cannot.
    found = decided(rule, stuck, 2, 1.0)
    assert (found.ended, found.n_rounds) == ("spent", 3)
    # What is left, 128 sweeps, goes to the 20 draws.
    assert found.thin == 6


def test_work_of_a_sweep_is_the_most_of_all_rounds():
    def work(traces):
        return 2.0 + traces["n"].mean()

    rule = WarmupRounds(16, ("log_joint",), work, 2.0, 1e6, 20)
    stuck = {"log_joint": noise() + 5.0 * np.arange(4)[:, None], "n": np.full((4, 200), 3.0)}
    found = decided(rule, stuck)
    assert found == Warmup(1, 5.0)
    stuck["n"] += 1
    grown = rule.after_round(found, stuck)
    assert grown == Warmup(2, 6.0)
    stuck["n"] -= 3
    assert rule.after_round(grown, stuck) == Warmup(3, 6.0)


def test_thinning_follows_the_effective_sample_size():
    rule = rounds(first=400, names=("log_joint",), max_work=1e9, n_draws=100)
    fast, slow = noise(seed=1), noise(correlation=0.6, seed=1)
    assert decided(rule, {"log_joint": fast}).thin == 1
    # A quarter of 800 draws is effective: 200 of them need the 200 sweeps of a half.
    assert decided(rule, {"log_joint": slow}).thin in (2, 3)
    assert decided(rounds(first=400, names=("log_joint",), thin=7), {"log_joint": slow}).thin == 7
    # A chain alone is to have as many effective draws as each of four: as many sweeps per draw.
    assert decided(rule, {"log_joint": slow[:1]}).thin in (2, 3)


def test_most_sweeps_is_a_bound():
    rule = rounds(max_work=4000.0)
    assert rule.most_work(4, 20)[0] >= 1000
    assert rounds(max_work=1e-9).most_work(4, 30)[0] == 16 + 30


@pytest.mark.parametrize(
    "changed",
    [
        {"n_rounds": -1},
        {"n_rounds": 1.0},
        {"n_rounds": 10**9},
        {"work_per_sweep": None},
        {"work_per_sweep": 0.0},
        {"ended": "tired"},
        {"ended": ""},
        {"thin": 0},
        {"thin": None},
        {"n_rounds": 0, "work_per_sweep": None},
    ],
)
def test_data_of_a_warmup(changed):
    data = Warmup(2, 1.5, "settled", 3).to_data()
    assert Warmup.from_data(data) == Warmup(2, 1.5, "settled", 3)
    assert Warmup.from_data(Warmup().to_data()) == Warmup()
    with pytest.raises(ValueError, match="the warm-up is"):
        Warmup.from_data({**data, **changed})


# -- runs

RUN = {"n_chains": 3, "n_draws": 9, "seed": 7, "density": ToyDensity()}


def assert_same_run(one, other):
    assert one.traces.keys() == other.traces.keys()
    for name in one.traces:
        np.testing.assert_array_equal(one.traces[name], other.traces[name])
    for draw, other_draw in zip(one, other, strict=True):
        np.testing.assert_equal(draw, other_draw)
    np.testing.assert_equal(one.acceptance, other.acceptance)
    for a, b in zip(one.ends, other.ends, strict=True):
        np.testing.assert_equal(a.to_data(), b.to_data())
    assert one.pool() == other.pool()
    assert (one.n_warmup, one.sweeps_per_draw) == (other.n_warmup, other.sweeps_per_draw)


@pytest.fixture(scope="module")
def expected():
    found = run_chains(ToySampler, **RUN, n_warmup=rounds())
    assert (found.warmup.ended, found.warmup.n_rounds) == ("settled", 6)
    assert found.sweeps_per_draw > 1
    return found


def test_draws_are_those_of_the_same_lengths(expected):
    n_warmup, thin = expected.n_warmup, expected.sweeps_per_draw
    assert n_warmup == 16 * 63
    assert_same_run(run_chains(ToySampler, **RUN, n_warmup=n_warmup, thin=thin), expected)


def test_what_is_kept_decides_nothing(expected):
    """A rule that sees the same rounds and would stop at another draw count keeps the same."""
    longer = run_chains(ToySampler, **{**RUN, "n_draws": 30}, n_warmup=rounds())
    assert longer.warmup == expected.warmup
    for name, trace in expected.traces.items():
        np.testing.assert_array_equal(trace, longer.traces[name][:, :9])


@pytest.mark.parametrize(
    "backend, n_jobs", [("threading", 2), ("loky", 2), ("multiprocessing", 2), ("sequential", 1)]
)
def test_same_draws_whatever_the_backend(expected, backend, n_jobs):
    with joblib.parallel_config(backend=backend):
        assert_same_run(run_chains(ToySampler, **RUN, n_warmup=rounds(), n_jobs=n_jobs), expected)


@pytest.mark.parametrize("lengths", [[1], [2, 5, 3], [1000]])
def test_same_draws_whatever_the_blocks(expected, monkeypatch, lengths):
    endless = cycle(lengths)
    monkeypatch.setattr(runner, "_block_length", lambda *_: next(endless))
    assert_same_run(run_chains(ToySampler, **RUN, n_warmup=rounds()), expected)


class EverySave:
    """A checkpoint that keeps all that is written, as a file would hold it."""

    path = "nowhere"

    def __init__(self, path):
        self._path, self.found = path, []

    def begin(self):
        pass

    def is_due(self):
        return True

    def save(self, posterior):
        io.write(self._path, "posterior", posterior.to_data())
        self.found.append(Posterior.load(self._path))


def test_goes_on_from_any_moment(expected, monkeypatch, tmp_path):
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr(runner, "_block_length", lambda *_: 97)
    saves = EverySave(tmp_path / "file")
    run_chains(ToySampler, **RUN, n_warmup=rounds(), checkpoint=saves)
    phases = {(one.warmup.n_rounds, one.warmup.ended) for one in saves.found}
    assert phases == {*((n, "") for n in range(6)), (6, "settled")}
    for start in saves.found:
        assert_same_run(run_chains(ToySampler, **RUN, n_warmup=rounds(), start=start), expected)
    # To more draws as well.
    more = {**RUN, "n_draws": 12}
    longer = run_chains(ToySampler, **more, n_warmup=rounds())
    assert_same_run(run_chains(ToySampler, **more, n_warmup=rounds(), start=expected), longer)


def test_files_that_do_not_fit(expected, monkeypatch, tmp_path):
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr(runner, "_block_length", lambda *_: 5)
    saves = EverySave(tmp_path / "file")
    run_chains(ToySampler, **RUN, n_warmup=rounds(), checkpoint=saves)
    # In the second half of the second round.
    (start,) = [one for one in saves.found if one.n_swept == 41]
    assert start.ends[0].record["x"].shape == (9,)

    def spoiled(change):
        data = start.to_data()
        data["ends"] = [{**end, "record": dict(end["record"])} for end in data["ends"]]
        change(data)
        return Posterior.from_data(data)

    def shorter(data):
        data["ends"][1]["record"]["x"] = data["ends"][1]["record"]["x"][:-1]

    def of_text(data):
        data["ends"][1]["record"]["x"] = "x" * 9

    def without(data):
        data["ends"][1]["record"].pop("y")

    def empty(data):
        data["ends"][2]["record"] = {}

    def another_round(data):
        data["warmup"]["n_rounds"] = 2

    for change in (shorter, of_text, without, empty, another_round):
        with pytest.raises(
            ValueError, match="start must|a chain must|all chains must|trace 'x' of record must"
        ):
            run_chains(ToySampler, **RUN, n_warmup=rounds(), start=spoiled(change))
    with pytest.raises(ValueError, match="start must have"):
        run_chains(ToySampler, **RUN, n_warmup=48, start=start)

    def other_rows(data):
        for end in data["ends"]:
            end["log_sums"] = end["log_sums"][:2]

    data = expected.to_data()
    data["ends"] = [dict(end) for end in data["ends"]]
    other_rows(data)
    with pytest.raises(ValueError, match="must not have densities"):
        run_chains(ToySampler, **RUN, n_warmup=rounds(), start=Posterior.from_data(data))


def test_says_which_round(expected, capsys):
    run_chains(ToySampler, **RUN, n_warmup=rounds(), verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("3 chains, warm-up round 1, sweep 1 of 16; ")
    seen = {line.split("round ")[1][0] for line in lines if "round" in line}
    assert seen == set("123456")
    n_all = 1008 + 9 * expected.sweeps_per_draw
    first = 1008 + expected.sweeps_per_draw
    assert any(f" draws, sweep {first:,} of {n_all:,}; " in line for line in lines)
    assert lines[-1].startswith(f"3 chains, all {n_all:,} sweeps; ")


@NEEDS_CALLBACKS
def test_callback_in_a_round(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_block_length", lambda *_: 5)
    saves = EverySave(tmp_path / "file")
    estimator = ToyEstimator(n_chains=3).set_callbacks(StopAt(tmp_path / "log", {1: 36}))
    root = estimator._init_callback_context(max_subtasks=3)
    run = {**RUN, "n_warmup": rounds(max_work=600.0)}
    with pytest.raises(RuntimeError, match="first comes after more than 49 sweeps"):
        run_chains(ToySampler, **run, callbacks=(estimator, root), checkpoint=saves)
    # One chain stands behind the others, and catches up.
    assert len({end.n_swept for end in saves.found[-1].ends}) == 2
    assert_same_run(
        run_chains(ToySampler, **run, start=saves.found[-1]), run_chains(ToySampler, **run)
    )


# -- log densities of rows


def test_log_density_is_the_mean_over_rows(expected):
    wanted = [ToyDensity.of_draw(draw).mean() for draw in expected]
    np.testing.assert_array_equal(expected.traces["log_density"].ravel(), wanted)
    assert list(expected.traces)[:2] == ["log_joint", "log_density"]
    without = run_chains(
        ToySampler, **{**RUN, "density": None}, n_warmup=1008, thin=expected.sweeps_per_draw
    )
    for name, trace in without.traces.items():
        np.testing.assert_array_equal(trace, expected.traces[name])
    assert without.pool() == {}
    assert np.isnan(without.doubling_gain()) and without.known_gain() is None


def test_pool_by_hand(expected):
    log_p = np.array([ToyDensity.of_draw(draw) for draw in expected]).reshape(3, 9, 3)
    single = np.log(np.exp(log_p).mean(axis=1)).mean()
    pooled = np.log(np.exp(log_p).mean(axis=(0, 1))).mean()
    found = expected.pool()
    assert found == pytest.approx(
        {"single": single, "pooled": pooled, "pool_gain": pooled - single}
    )
    assert found["pool_gain"] > 0.0
    halves = [np.log(np.exp(half).mean(axis=(0, 1))).mean() for half in (log_p[:2], log_p[2:])]
    assert expected.doubling_gain() == pytest.approx(pooled - np.mean(halves))
    summary = expected.summary()
    assert list(summary.index) == [*expected.traces, "single", "pooled", "pool_gain"]
    assert summary.loc["pool_gain", "mean"] == found["pool_gain"]
    assert summary.loc["pool_gain"].drop("mean").isna().all()
    assert expected.thin(2).pool() == found
    assert expected.known_gain() == found["pool_gain"]


class FarDensity(ToyDensity):
    """The same of rows that all draws are far from: the nearest draws have all of the mean."""

    @staticmethod
    def of_draw(draw):
        return 200.0 * ToyDensity.of_draw(draw)


def test_a_gain_that_few_draws_make_is_not_known():
    found = run_chains(ToySampler, **{**RUN, "density": FarDensity()}, n_warmup=20)
    assert found.pool()["pool_gain"] > 1.0
    assert found.known_gain() is None


def test_pool_of_a_draw_that_is_not_stored(expected):
    """Rows' densities count every kept draw, whatever there is room for."""
    sparse = run_chains(ToySampler, **RUN, n_warmup=rounds(), store=1000)
    assert sparse.store_every > 1
    assert sparse.pool() == expected.pool()
    np.testing.assert_array_equal(sparse.traces["log_density"], expected.traces["log_density"])


# -- fits that are killed

X = table_with_holes()


@pytest.mark.slow
@pytest.mark.parametrize("backend, n_kills", [("threading", 12), ("loky", 6)])
def test_killed_in_every_phase(tmp_path, backend, n_kills):
    run = {"n_warmup": "auto", "thin": "auto", "n_draws": 20}
    expected, n_all = fit("rounds", X, **run)
    assert n_all > 4 * (16 * 7 + 20)  # more than three rounds
    log, directory = tmp_path / "log", tmp_path / "checkpoints"
    log.touch()
    run |= {"checkpoint": directory, "checkpoint_every": 0.0, "n_jobs": 2, "backend": backend}
    run |= {"block": 7, "watch": {"log": log, "seconds": 0.001}}
    for _ in range(n_kills):
        child, n_before = Child(fit, "rounds", X, **run), log.stat().st_size
        deadline = time.monotonic() + 60
        while log.stat().st_size < n_before + n_all / (n_kills + 2) and child.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.002)
        assert child.is_alive()
        child.kill(group=backend == "loky")
        child.wait()
    found, n_run = Child(fit, "rounds", X, **run).result()
    assert_same_answers(found, expected)
    assert 0 < n_run < n_all
    again, n_run = fit("rounds", X, **{**run, "block": None})
    assert_same_answers(again, expected)
    assert n_run == 0


@pytest.mark.parametrize("ended, thin, said", [
    ("settled", 31, "raise n_warmup (it ended by itself after 6 sweeps; set thin=31 too)"),
    ("settled", 1, "raise n_warmup (it ended by itself after 6 sweeps)"),
    ("spent", 31, "raise max_work (the warm-up ended when max_work=9 was spent)"),
])  # fmt: skip
def test_a_number_for_the_warm_up_comes_with_sweeps_per_draw(ended, thin, said):
    """With a number in place of "auto" every sweep would be kept."""
    flat = noise()
    flat -= np.repeat(flat.reshape(4, 2, 100).mean(axis=(0, 2)), 100)
    n = np.repeat([[2.0], [3.0], [4.0], [5.0]], 200, axis=1)
    model = InfiniteFactorClusterer(max_work=9.0)
    model.n_features_in_, model.n_warmup_ = 3, 6
    model.posterior_ = Posterior(
        [[{}] * 200] * 4,
        {"log_joint": flat, "log_density": flat, "n_clusters": n, "n_factors": n},
        sweeps_per_draw=thin,
        warmup=Warmup(1, 1.0, ended, thin),
    )
    (advice,) = model._lacks_of_chains().advice
    assert advice.condition == "it is n_clusters or n_factors that you look at"
    assert advice.to_do == said


@pytest.mark.parametrize("ended, more", [
    ("settled", "n_chains"), ("spent", "n_chains, and max_work in proportion"),
])  # fmt: skip
def test_more_chains_come_with_more_work(ended, more, monkeypatch):
    """They would share that of the first ones, and each be shorter."""
    apart = noise() + 3.0 * np.arange(4)[:, np.newaxis]
    model = InfiniteFactorClusterer(max_work=9.0)
    model.n_features_in_, model.n_warmup_ = 3, 6
    traces = dict.fromkeys(("log_joint", "log_density", "n_clusters", "n_factors"), apart)
    model.posterior_ = Posterior([[{}] * 200] * 4, traces, warmup=Warmup(1, 1.0, ended, 1))
    monkeypatch.setattr(Posterior, "known_gain", lambda self: 1.0)
    advice = model._lacks_of_chains().advice[0]
    assert advice.to_do == f"more chains ({more}) help more than longer ones"
