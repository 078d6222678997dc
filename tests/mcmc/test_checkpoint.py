"""Runs that are killed, disks that are full, files that are not what they should be."""

import errno
import os
import shutil
import socket
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from checks.answers import answers, assert_same_answers
from checks.processes import Child
from checks.watched import ToyModel, fit, table_with_holes
from skbnp.mcmc import io, runner
from skbnp.mcmc.checkpoint import Checkpoint, digest

X = table_with_holes()


def n_sweeps_in(directory):
    """Sweeps of all chains in the only checkpoint of a directory."""
    files = list(directory.glob("*.skbnp"))
    if not files:
        return 0
    (path,) = files
    content = io.read(path, "checkpoint")
    return sum(end["n_swept"] for end in content["posterior"]["ends"])


def wait_for_sweeps(log, n_sweeps, child):
    deadline = time.monotonic() + 60
    while log.stat().st_size < n_sweeps and child.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, backend, n_kills",
    [
        ("toy", "threading", 20),
        ("mixture", "threading", 20),
        ("mixture", "loky", 1),
        ("toy", "loky", 20),
        ("mixture", "loky", 20),
    ],
)
def test_killed_at_random_moments(tmp_path, model, backend, n_kills):
    n_chains, block, n_warmup, n_draws = 4, 3, 30, 150
    run = {"n_chains": n_chains, "n_warmup": n_warmup, "n_draws": n_draws}
    expected, n_all = fit(model, X, **run)
    assert n_all == n_chains * (n_warmup + n_draws)
    log, directory = tmp_path / "log", tmp_path / "checkpoints"
    log.touch()
    # A checkpoint after every block: the interval is one block.
    run |= {"checkpoint": directory, "checkpoint_every": 0.0, "n_jobs": 2, "backend": backend}
    run |= {"block": block, "watch": {"log": log, "seconds": 0.003}}
    interval = n_chains * block
    random = np.random.default_rng(8)
    for _ in range(n_kills):
        n_before, n_saved_before = log.stat().st_size, n_sweeps_in(directory)
        child = Child(fit, model, X, **run)
        # Some before the first sweep, the others at any moment of the first blocks.
        wait_for_sweeps(log, n_before + random.integers(0, 2 * interval), child)
        time.sleep(random.uniform(0, 0.01))
        assert child.is_alive()
        child.kill(group=backend == "loky")
        child.wait()
        n_made = log.stat().st_size - n_before
        n_saved = n_sweeps_in(directory) - n_saved_before
        # What was made and is in no file is made again: at most one interval.
        assert 0 <= n_saved <= n_made <= n_saved + interval
    n_before, n_saved = log.stat().st_size, n_sweeps_in(directory)
    assert 0 < n_saved < n_all
    found, n_run = Child(fit, model, X, **run).result()
    assert_same_answers(found, expected)
    assert n_run == log.stat().st_size - n_before == n_all - n_saved
    assert log.stat().st_size <= n_all + n_kills * interval
    assert [path.suffix for path in directory.iterdir()] == [".skbnp"]
    again, n_run = fit(model, X, **{**run, "block": None})
    assert_same_answers(again, expected)
    assert n_run == 0


# -- what can be wrong with a disk or a file

SMALL = {"n_chains": 2, "n_warmup": 4, "n_draws": 12, "checkpoint_every": 0.0, "block": 2}


@pytest.fixture
def begun(tmp_path):
    """A directory with the checkpoint of the first half of a run, and the whole run."""
    fit("toy", X, **{**SMALL, "n_draws": 6}, checkpoint=tmp_path)
    (path,) = tmp_path.iterdir()
    expected, _ = fit("toy", X, **SMALL)
    return path, expected


def assert_goes_on(path, expected):
    found, n_run = fit("toy", X, **SMALL, checkpoint=path.parent)
    assert_same_answers(found, expected)
    assert n_run == 12
    assert list(path.parent.iterdir()) == [path]


def test_more_draws_need_no_new_warmup(begun):
    assert_goes_on(*begun)


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_disk_full_from_the_start(begun, monkeypatch, tmp_path):
    path, expected = begun
    before, log = path.read_bytes(), tmp_path.parent / "sweeps"
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"No space left.*{path.name}") as caught:
        fit("toy", X, **SMALL, checkpoint=path.parent, watch={"log": log})
    assert caught.value.errno == errno.ENOSPC
    assert not log.exists()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    monkeypatch.undo()
    assert_goes_on(path, expected)


@pytest.mark.parametrize("n_good", [1, 3])
def test_disk_full_in_the_middle(begun, monkeypatch, n_good):
    path, expected = begun
    fsync, calls = os.fsync, []

    def full_later(descriptor):
        calls.append(descriptor)
        if len(calls) > n_good:
            full()
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full_later)
    before = path.read_bytes()
    estimator = ToyModel(random_state=5, checkpoint=path.parent, checkpoint_every=0.0)
    estimator.set_params(n_chains=2, n_warmup=4, n_draws=12)
    monkeypatch.setattr(runner, "_block_length", lambda *_: 2)
    with pytest.warns(UserWarning, match=f"No space left.*{path.name}.*earlier write stays") as w:
        estimator.fit(X)
    assert len(w) == 1  # one for a disk that stays full
    assert len(calls) > n_good + 1  # and yet it tries again
    assert_same_answers(answers(estimator, X), expected)
    assert list(path.parent.iterdir()) == [path]
    monkeypatch.undo()
    n_saved = n_sweeps_in(path.parent)
    if n_good == 1:  # the attempt at the start alone
        assert path.read_bytes() == before
    found, n_run = fit("toy", X, **SMALL, checkpoint=path.parent)
    assert_same_answers(found, expected)
    assert n_run == 2 * 16 - n_saved


def test_disk_has_room_again(begun, monkeypatch):
    path, expected = begun
    fsync, calls = os.fsync, []

    def full_for_a_while(descriptor):
        calls.append(descriptor)
        if len(calls) in (2, 3):
            full()
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full_for_a_while)
    fit("toy", X, **SMALL, checkpoint=path.parent)
    monkeypatch.undo()
    found, n_run = fit("toy", X, **SMALL, checkpoint=path.parent)
    assert_same_answers(found, expected)
    assert n_run == 0


def test_files_may_not_grow(begun):
    path, expected = begun
    size = path.stat().st_size
    found, _ = Child(fit, "toy", X, **SMALL, checkpoint=path.parent, max_file=2**16 + 1).result()
    assert_same_answers(found, expected)
    with pytest.raises(RuntimeError, match="OSError.*cannot write the file"):
        Child(fit, "toy", X, **SMALL, checkpoint=path.parent, max_file=size - 1).result()


def test_directory_that_cannot_be_written(begun, tmp_path):
    path, expected = begun
    before, log = path.read_bytes(), tmp_path.parent / "sweeps"
    path.parent.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:
        for parent in path.parents[1:-1]:  # those of pytest are closed to others
            parent.chmod(parent.stat().st_mode | 0o055)
        os.seteuid(65534)
    try:
        with pytest.raises(PermissionError, match=path.name):
            fit("toy", X, **SMALL, checkpoint=path.parent, watch={"log": log})
    finally:
        if is_root:
            os.seteuid(0)
        path.parent.chmod(0o755)
    assert not log.exists()
    assert path.read_bytes() == before
    assert_goes_on(path, expected)


def test_directory_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=str(tmp_path / "file")):
            fit("toy", X, **SMALL, checkpoint=directory)
    assert (tmp_path / "file").read_text() == "mine"


def test_directories_are_made(tmp_path):
    fit("toy", X, **SMALL, checkpoint=tmp_path / "a" / "b")
    assert n_sweeps_in(tmp_path / "a" / "b") == 2 * 16


def test_directory_in_the_place_of_the_file(begun):
    path, _ = begun
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError, match=path.name):
        fit("toy", X, **SMALL, checkpoint=path.parent)


def assert_refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(io.FileFormatError, match=message) as caught:
        fit("toy", X, **SMALL, checkpoint=path.parent)
    assert str(path) in str(caught.value)
    assert "to start anew" in str(caught.value)
    assert path.read_bytes() == content


def test_cut_off_files(begun):
    path, expected = begun
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 50).astype(int):
        assert_refused(path, whole[:length], "is damaged or was not written by skbnp")
    path.write_bytes(whole)
    assert_goes_on(path, expected)


def test_flipped_bits(begun):
    path, expected = begun
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    n_refused = 0
    for _ in range(150):
        damaged = bytearray(whole)
        damaged[random.integers(len(whole))] ^= 1 << random.integers(8)
        path.write_bytes(damaged)
        try:
            found, _ = fit("toy", X, **SMALL, checkpoint=path.parent)
        except io.FileFormatError:
            n_refused += 1
            assert path.read_bytes() == damaged
        else:  # a bit that nobody reads, such as one of a date
            assert_same_answers(found, expected)
    assert n_refused > 100


def test_files_of_other_runs(begun, tmp_path):
    path, expected = begun
    whole = path.read_bytes()
    other = tmp_path / "other"
    runs = {
        "data": ("toy", X + 1, {}),
        "start": ("toy", X, {"start": 1.0}),
        "random_state": ("toy", X, {"random_state": 6}),
        "n_warmup": ("toy", X, {"n_warmup": 5}),
        "thin": ("toy", X, {"thin": 2}),
        "n_chains": ("toy", X, {"n_chains": 3}),
        "model": ("mixture", X, {}),
    }
    for number, (name, (model, rows, changed)) in enumerate(runs.items()):
        fit(model, rows, **{**SMALL, **changed}, checkpoint=other / str(number))
        (foreign,) = (other / str(number)).iterdir()
        assert foreign.name != path.name
        message = (
            f"belongs to another run, which differs in .*{name}.* Remove the file or name another"
        )
        assert_refused(path, foreign.read_bytes(), message)
    path.write_bytes(whole)
    shutil.rmtree(other)
    assert_goes_on(path, expected)


def test_file_of_another_kind(begun, tmp_path):
    path, _ = begun
    estimator = ToyModel(n_draws=2).fit(X)
    estimator.posterior_.save(path)
    assert_refused(path, path.read_bytes(), "holds a posterior, not a checkpoint")


def test_file_of_a_newer_version(begun, monkeypatch):
    path, _ = begun
    monkeypatch.setattr(io, "FORMAT_VERSION", io.FORMAT_VERSION + 1)
    io.write(path, "checkpoint", {})
    monkeypatch.undo()
    assert_refused(path, path.read_bytes(), "written by a newer skbnp.*upgrade skbnp")


def test_parameters_that_shape_no_draw_share_a_file(begun):
    path, expected = begun
    shared = {"n_jobs": 2, "predict_draws": 3, "store": "all", "verbose": 0}
    fit("toy", X, **{**SMALL, **shared}, checkpoint=path.parent)
    assert list(path.parent.iterdir()) == [path]


# -- what somebody has tampered with

ENDS = {
    "no ends": lambda posterior: posterior.update(ends=[]),
    "ends are None": lambda posterior: posterior.update(ends=None),
    "ends are text": lambda posterior: posterior.update(ends=["a", "b"]),
    "no sweeps": lambda posterior: posterior["ends"][0].pop("n_swept"),
    "sweeps in text": lambda posterior: posterior["ends"][0].update(n_swept="7"),
    "counts of three": lambda posterior: posterior["ends"][0].update(counts={"walk": (1, 2, 3)}),
    "counts are None": lambda posterior: posterior["ends"][0].update(counts_after_warmup=None),
    "draws of another shape": lambda posterior: posterior["draws"][0]["columns"]["value"].update(
        posterior["draws"][0]["columns"]["path"]
    ),
}


@pytest.mark.parametrize("how", ENDS)
def test_tampered_ends(begun, how):
    path, _ = begun
    content = io.read(path, "checkpoint")
    ENDS[how](content["posterior"])
    io.write(path, "checkpoint", content)
    with pytest.raises(io.FileFormatError, match=path.name):
        fit("toy", X, **SMALL, checkpoint=path.parent)


@pytest.mark.parametrize("name, value", [("n_warmup", 3), ("sweeps_per_draw", 2), ("seed", "1")])
def test_tampered_sizes(begun, name, value):
    path, _ = begun
    content = io.read(path, "checkpoint")
    content["posterior"][name] = value
    io.write(path, "checkpoint", content)
    with pytest.raises((ValueError, TypeError), match=f"{name}|must have"):
        fit("toy", X, **SMALL, checkpoint=path.parent)


# -- several runs at a time


def test_two_fits_into_one_directory(tmp_path):
    other = X + 1
    watch = {"seconds": 0.001}
    run = {"n_draws": 60, "checkpoint": tmp_path, "checkpoint_every": 0.0, "block": 1}
    expected = fit("toy", X, n_draws=60)[0], fit("toy", other, n_draws=60)[0]
    children = [Child(fit, "toy", table, watch=watch, **run) for table in (X, X, other)]
    same, same_again, different = (child.result()[0] for child in children)
    assert_same_answers(same, expected[0])
    assert_same_answers(same_again, expected[0])
    assert_same_answers(different, expected[1])
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".skbnp"] * 2
    for table, wanted in zip((X, other), expected, strict=True):
        found, n_run = fit("toy", table, **run)
        assert_same_answers(found, wanted)
        assert n_run == 0


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_cross_validation_and_grid_search(tmp_path, n_jobs):
    plain = ToyModel(random_state=2, n_draws=10)
    kept = clone(plain).set_params(checkpoint=tmp_path / "folds")
    scores = cross_val_score(plain, X, cv=3)
    np.testing.assert_array_equal(cross_val_score(kept, X, cv=3, n_jobs=n_jobs), scores)
    assert len(list((tmp_path / "folds").iterdir())) == 3
    grid = {"start": [0.0, 1.0, 2.0]}
    expected = GridSearchCV(plain, grid, cv=2).fit(X)
    kept.set_params(checkpoint=tmp_path / "grid")
    for _ in range(2):  # from nothing, then from what is there
        search = GridSearchCV(kept, grid, cv=2, n_jobs=n_jobs).fit(X)
        for name in ("split0_test_score", "split1_test_score"):
            np.testing.assert_array_equal(search.cv_results_[name], expected.cv_results_[name])
        assert search.best_params_ == expected.best_params_
        assert len(list((tmp_path / "grid").iterdir())) == 3 * 2 + 1
    assert search.best_estimator_.posterior_.n_sweeps_run == 0


# -- the parts


def test_names_of_directories(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Checkpoint("~/runs", {"model": "Toy"}).path.parent == tmp_path / "runs"
    with pytest.raises(ValueError, match="checkpoint must name a directory, got ''"):
        Checkpoint("", {"model": "Toy"})
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="checkpoint must be a directory, got a file"):
        Checkpoint(tmp_path / "file", {"model": "Toy"})
    with pytest.raises(NotADirectoryError, match="cannot make the checkpoint directory"):
        Checkpoint(tmp_path / "file" / "below", {"model": "Toy"}).begin()


def test_a_fit_that_cannot_begin_leaves_the_last_one_as_it_was(tmp_path):
    (tmp_path / "file").touch()
    estimator = ToyModel(n_chains=2, n_warmup=4, n_draws=10, random_state=5).fit(X)
    expected = answers(estimator, X)
    estimator.set_params(checkpoint=tmp_path / "file" / "below", n_draws=20)
    with pytest.raises(NotADirectoryError):
        estimator.fit(X[:, :1])
    assert estimator.n_features_in_ == X.shape[1]
    assert estimator.n_draws_ == 10
    assert_same_answers(answers(estimator, X), expected)


def test_verbose_says_where_a_run_starts(tmp_path, capsys):
    options = dict(n_chains=2, n_warmup=4, random_state=5, checkpoint=tmp_path, verbose=1)
    for n_draws, words in [
        (20, "starts anew"),
        (20, "all draws are there"),
        (30, "goes on after 24 of 34 sweeps"),
    ]:
        ToyModel(**options, n_draws=n_draws).fit(X)
        line = capsys.readouterr().out.splitlines()[0]
        assert line.startswith(f"checkpoint {tmp_path}")
        assert line.endswith(words)


def test_warm_start_with_a_generator_goes_on():
    """It has moved on since the first fit, but the chains keep the seed they have."""
    options = dict(n_chains=2, n_warmup=4, warm_start=True)
    random_state = np.random.RandomState(3)
    estimator = ToyModel(**options, n_draws=10, random_state=random_state).fit(X)
    seed = estimator.seed_
    estimator.set_params(n_draws=20).fit(X)
    assert estimator.seed_ == seed
    assert estimator.posterior_.n_draws == 20
    with pytest.raises(ValueError, match="which differs in data; set warm_start=False"):
        estimator.fit(X + 1)
    assert estimator.posterior_.n_draws == 20
    estimator.random_state = 3
    with pytest.raises(ValueError, match="which differs in random_state;"):
        estimator.fit(X)


def test_interval(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    checkpoint = Checkpoint(tmp_path, {"model": "Toy"}, 10.0)
    checkpoint.begin()
    for moment, due in [(105.0, False), (109.9, False), (110.0, True)]:
        now[0] = moment
        assert checkpoint.is_due() == due
    checkpoint.save(ToyModel(n_draws=2).fit(X).posterior_)
    assert not checkpoint.is_due()


def test_unfinished_files_of_the_dead_are_removed(tmp_path):
    path = tmp_path / "Toy-1.skbnp"
    child = Child(os.getpid)
    host, dead = socket.gethostname(), child.result()
    names = {
        f".Toy-1.skbnp.{host}-{dead}-aa": False,
        f".Toy-1.skbnp.{host}-{os.getpid()}-aa": True,  # at work
        f".Toy-1.skbnp.elsewhere-{dead}-aa": True,  # nobody knows
        f".Toy-2.skbnp.{host}-{dead}-aa": True,  # of another run
        f".Toy-1.skbnp.elsewhere-{dead}-bb": False,  # two days old
    }
    for name in names:
        (tmp_path / name).touch()
    os.utime(tmp_path / f".Toy-1.skbnp.elsewhere-{dead}-bb", (time.time() - 2 * 86400,) * 2)
    io.remove_unfinished(path)
    assert {name: (tmp_path / name).exists() for name in names} == names


def test_processes_are_not_asked_where_that_would_end_them(tmp_path, monkeypatch):
    """As on Windows, where signal 0 is Ctrl-C."""
    monkeypatch.setattr(io, "_CAN_ASK", False)
    monkeypatch.setattr(os, "kill", lambda *args: pytest.fail("a signal was sent"))
    path = tmp_path / "Toy-1.skbnp"
    new, old = (tmp_path / f".{path.name}.{socket.gethostname()}-1-{name}" for name in "ab")
    for unfinished, days in [(new, 0.5), (old, 2)]:
        unfinished.touch()
        os.utime(unfinished, (time.time() - days * 86400,) * 2)
    io.remove_unfinished(path)
    assert new.exists() and not old.exists()


def test_fingerprints_tell_runs_apart():
    same = [1, 1.0, np.float32(1), np.int8(1)]
    assert len({digest(value) for value in same}) == 1
    assert digest([1, 2]) == digest((1.0, 2)) == digest(np.array([1, 2]))
    different = [
        *(None, "None", 0, 1, True, "1", [1], [[1]], [], {}, {"1": 1}, {1: 1}, {"1": 2}, "a"),
        *([1, 2], [2, 1], [1, [2]], np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(6)),
        *(np.nan, [np.nan], 1e300, np.inf, 2**60, 2**60 + 1, [1, None], ["1", None]),
    ]
    assert len({digest(value) for value in different}) == len(different)
    table = np.array([[0.0, np.nan], [1.0, 2.0]])
    other_nan = table.copy()
    other_nan.view(np.uint64)[0, 1] ^= 1
    assert digest(table) == digest(other_nan) == digest(np.asfortranarray(table))
    with pytest.raises(TypeError, match="tell runs apart"):
        digest(object())
