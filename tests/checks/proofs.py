"""Proofs and their ledger: a proof runs again only when what it stands on has changed.

A proof is a statistical test of a sampler: a joint-distribution test, a comparison with
enumeration, moments under a prior. It is a pure function of sources, size, seed and versions; run
again unchanged it shows nothing new. It says what it is, with a short and a long size::

    @proof(pairs=(250, 40_000, 10_000), seed=1, smoke="default")
    @pytest.mark.parametrize("name", CONFIGURATIONS)
    def test_sweep_paired(name, size, seed):
        assert_z_scores_small(paired_one_step(*configured(name), size, seed=seed))

Figures (z-scores of `checks.monte_carlo` and of `checks.joint_distribution`) are recorded while it
runs. ``make prove`` runs at the long size what is not in ``tests/proofs/LEDGER.jsonl`` under the
key of today's sources, and writes it there. ``make test`` runs the smoke proofs alone, and
``make test-slow`` what has no entry, at the short size. pytest's option ``--proofs`` says which:

====================  =================================================================
due (the default)     proofs without an entry, and smoke proofs, at the short size
smoke                 smoke proofs, at the short size
none                  no proof
short                 all, at the short size
prove                 those without an entry, at the long size; an entry for each that passes
prove-all             all, at the long size; they must repeat what their entries say
plan                  none; what ``prove`` would run, and the seconds that it is expected to take
====================  =================================================================

``--proofs=short --write-seconds`` writes ``tests/proofs/SECONDS.json``, from which a plan knows how
long a proof takes that has never been run at its long size.
"""

import hashlib
import json
import os
import platform
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from checks.sources import Sources

try:
    import fcntl
except ImportError:  # Windows, where no proof is written
    fcntl = None

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
LEDGER = TESTS / "proofs" / "LEDGER.jsonl"
SECONDS = TESTS / "proofs" / "SECONDS.json"
MODES = ("due", "smoke", "none", "short", "prove", "prove-all", "plan")
LONG = ("prove", "prove-all")


# -- what a test says ---------------------------------------------------------------------------


def proof(*, seed, smoke=False, wrong=False, **size):
    """Mark a test as a proof; its fixtures ``size`` and ``seed`` give the numbers said here.

    Parameters
    ----------
    seed : int or pair of int
        A pair has one for each size.
    smoke : bool, str or collection of str
        Whether ``make test`` runs it at the short size although it is in the ledger; of a
        parametrised test the ids for which it does.
    wrong : bool
        Whether the sampler is a wrong one, whose large z-scores the test asks for.
    **size : int, pair or triple of int
        At most one: the unit, and how many at the short and at the long size. A third number is
        the long size of those ids of a parametrised test that are no smoke proofs.
    """
    if len(size) > 1:
        raise TypeError(f"a proof has one size, got {sorted(size)}")
    unit, numbers = next(iter(size.items()), (None, None))
    return pytest.mark.proof(seed=seed, smoke=smoke, wrong=wrong, unit=unit, size=numbers)


@pytest.fixture
def size(request):
    """How many pairs, sweeps or draws this run of the proof has."""
    return _claim(request)[0]


@pytest.fixture
def seed(request):
    """The seed of this run of the proof."""
    return _claim(request)[1]


def _claim(request):
    found = request.config.stash[PROOFS].get(request.node.nodeid)
    if found is None:
        pytest.fail("only a proof has a size and a seed: @proof(...)")
    is_long = request.config.getoption("proofs") in LONG
    return found.sizes[is_long], found.seeds[is_long]


# The figures of the proof that is running; None outside of proofs.
_figures = None


def record(value):
    """Take a z-score down as a figure of the proof that is running, if one is; return it."""
    if _figures is not None:
        _figures.append(float(value))
    return value


@contextmanager
def recording():
    """The list of the figures that are recorded within."""
    global _figures
    before, _figures = _figures, []
    try:
        yield _figures
    finally:
        _figures = before


# -- keys and entries ---------------------------------------------------------------------------

PROOFS = pytest.StashKey()


@dataclass(frozen=True)
class Proof:
    """A collected proof: its place, what the mark says, and its key."""

    name: str
    path: Path
    function: str
    parameters: str
    seed: int | tuple
    smoke: bool
    asked: tuple  # the ids that the mark names as smoke, of all parameters of the test
    wrong: bool
    unit: str | None
    size: int | tuple | None
    sources: Sources

    @classmethod
    def of(cls, item, sources):
        """The proof that a collected test is, or None."""
        mark = item.get_closest_marker("proof")
        if mark is None:
            return None
        place = item.path.resolve().relative_to(sources.tests).as_posix()
        callspec = getattr(item, "callspec", None)
        parameters = callspec.id if callspec else ""
        said = dict(mark.kwargs)
        smoke = said.pop("smoke")
        asked = () if isinstance(smoke, bool) else (smoke,) if isinstance(smoke, str) else smoke
        return cls(
            name=f"{place}::{item.name}",
            path=item.path,
            function=item.originalname,
            parameters=parameters,
            smoke=smoke is True or parameters in asked,
            asked=tuple(asked),
            sources=sources,
            **said,
        )

    @property
    def sizes(self):
        """The short one and the long one."""
        if not isinstance(self.size, tuple):
            return self.size, self.size
        short, long, *of_others = self.size
        return short, of_others[0] if of_others and not self.smoke else long

    @property
    def seeds(self):
        """Of the short size and of the long one."""
        return self.seed if isinstance(self.seed, tuple) else (self.seed, self.seed)

    @cached_property
    def key(self):
        """Digest of the sources that it stands on, of its parameters, long size and seed."""
        long_run = (self.parameters, self.unit, self.sizes[1], self.seeds[1], self.wrong)
        return self.sources.key(self.path, self.function, *long_run)

    @property
    def model(self):
        """What its folder is called."""
        return self.path.parent.name

    def expected_seconds(self, entries, seconds):
        """CPU seconds at the long size: those of its entry, or in proportion to a short run."""
        short, long = self.sizes
        old, of_short = entries.get(self.name, {}), seconds.get(self.name)
        if "seconds" in old and old.get(self.unit, long) == long:
            return old["seconds"]
        if of_short is None or not of_short[1] == short:
            return None
        return of_short[0] * (long / short if self.unit else 1.0)

    @property
    def files(self):
        """The sources that it stands on."""
        return self.sources.test(self.path, self.function)[0]

    def entry(self, figures, seconds):
        """What the ledger says of a run at the long size."""
        digits = " ".join(map(repr, figures)).encode()
        entry = {"name": self.name, "key": self.key}
        if self.unit:
            entry[self.unit] = self.sizes[1]
        if self.wrong:
            entry["wrong"] = True
        return entry | {
            "seed": self.seeds[1],
            "largest_z": max(map(abs, figures)),
            "figures": len(figures),
            "digits": hashlib.sha256(digits).hexdigest()[:16],
            "versions": versions(),
            "seconds": round(seconds, 1),
        }


def versions():
    """What the digits of a proof depend on beside its sources."""
    import scipy.linalg  # loads its BLAS
    from threadpoolctl import threadpool_info

    # Libraries choose code by the processor, and OpenBLAS says which one it has found.
    kinds = {info.get("architecture") for info in threadpool_info()} - {None}
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "libc": " ".join(platform.libc_ver()).strip(),
        "cpu": " ".join([platform.machine(), *sorted(kinds)]),
    }


class Ledger:
    """The entries of a file, by name; written whole, so that it is never found half written."""

    def __init__(self, path):
        self.path = Path(path)

    def entries(self):
        """Name -> entry."""
        if not self.path.exists():
            return {}
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return {entry["name"]: entry for entry in map(json.loads, filter(None, lines))}

    def put(self, *entries):
        """Add entries, or replace those of the same names."""
        with self._alone():
            self._write(self.entries() | {entry["name"]: entry for entry in entries})

    def _write(self, entries):
        text = "".join(json.dumps(entries[name]) + "\n" for name in sorted(entries))
        with tempfile.NamedTemporaryFile(
            "w", dir=self.path.parent, delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(file.name, 0o644)
        os.replace(file.name, self.path)

    @contextmanager
    def _alone(self):
        """One writer at a time, of all processes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def differences(entry, found):
    """What an entry says otherwise than a run that has just ended, as sentences."""
    if entry["key"] != found["key"]:
        return ["its key is not that of today's sources"]
    if entry["versions"] != found["versions"]:
        return []
    names = sorted((set(entry) | set(found)) - {"seconds", "versions"})
    return [
        f"{name} is {entry.get(name)!r}, this run has {found.get(name)!r}"
        for name in names
        if entry.get(name) != found.get(name)
    ]


def stale_files(files, root=ROOT):
    """Those of the files of packages that are not what is installed, or not compiled since."""
    stale = []
    for path in sorted(files):
        package, *rest = path.relative_to(root).parts
        if not rest or not (root / package / "__init__.py").is_file():
            continue
        spec = find_spec(package)
        here = Path(spec.origin).parent.joinpath(*rest)
        if path.suffix in (".pyx", ".h"):  # neither need be installed
            compiled = [one.stat().st_mtime for one in here.parent.glob(f"{here.stem}.*.so")]
            own = [one.stat().st_mtime for one in (path, *path.parent.glob(f"{path.stem}.pxd"))]
            is_stale = max(compiled, default=-1.0) < max(own)
        else:
            is_stale = not here.is_file() or here.read_bytes() != path.read_bytes()
        if is_stale:
            stale.append(path.relative_to(root).as_posix())
    return stale


def plan_of(proofs, entries, seconds):
    """Lines that say which proofs are due and how long they will take, by models."""
    due, lines, total, n_unknown = set(unproved(proofs, entries)), [], 0.0, 0
    for model in sorted({one.model for one in proofs}):
        rows = [
            (one.expected_seconds(entries, seconds), one)
            for one in proofs
            if one.model == model and one.name in due
        ]
        known = sum(expected or 0.0 for expected, _ in rows)
        lines.append(f"{known:8.0f} s  {model}: {len(rows)} proofs")
        for expected, one in sorted(rows, key=lambda row: (-(row[0] or 0.0), row[1].name)):
            said = "       ?" if expected is None else f"{expected:8.0f}"
            lines.append(f"{said} s    {one.name} {one.unit or ''} {one.sizes[1] or ''}".rstrip())
        total += known
        n_unknown += sum(expected is None for expected, _ in rows)
    unknown = f", {n_unknown} of them of unknown length" if n_unknown else ""
    return [*lines, f"plan: {len(due)} proofs are due{unknown}; {total:.0f} CPU seconds"]


def unproved(proofs, entries):
    """The names of the proofs without an entry under today's key."""
    return sorted(one.name for one in proofs if entries.get(one.name, {}).get("key") != one.key)


def read_seconds():
    """Name -> [CPU seconds of a run at the short size, that size]; by no means of every proof."""
    return json.loads(SECONDS.read_text(encoding="utf-8")) if SECONDS.exists() else {}


def write_seconds(found):
    """Add what was measured to what is known of files that are still there."""
    known = {name: one for name, one in read_seconds().items() if _is_there(name)} | found
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
    SECONDS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _is_there(name):
    return (TESTS / name.partition("::")[0]).is_file()


# -- pytest -------------------------------------------------------------------------------------


def pytest_addoption(parser):
    parser.addoption("--proofs", choices=MODES, default="due", help="which proofs run, how long")
    parser.addoption(
        "--carry-over",
        metavar="FILE",
        help="an earlier setup.py, whose build makes the same draws: entries stay that it alone "
        "has made due",
    )
    parser.addoption("--write-seconds", action="store_true", help="keep those of short proofs")


def pytest_configure(config):
    config.stash[PROOFS] = {}
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(Keeper(config), "keeper of the ledger")


def is_run(one, mode, entries):
    """Whether a test runs in a mode; ``one`` is None for a test that is no proof."""
    if one is None:
        return mode not in (*LONG, "plan")
    if mode == "smoke" or (mode == "due" and one.smoke):
        return one.smoke
    if mode in ("due", "prove"):
        return bool(unproved([one], entries))
    return mode in ("short", "prove-all")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    # Before tests are chosen by marks and names: the ledger is checked against all of them.
    mode, sources, out = config.getoption("proofs"), Sources(ROOT), []
    entries = Ledger(LEDGER).entries()
    for item in items:
        if (one := Proof.of(item, sources)) is not None:
            config.stash[PROOFS][item.nodeid] = one
        if not is_run(one, mode, entries):
            out.append(item)
    if out:
        config.hook.pytest_deselected(items=out)
        left = set(out)
        items[:] = [item for item in items if item not in left]


def carry_over(proofs, setup, ledger):
    """Let entries stay that would be those of an earlier setup.py; return how many."""
    entries, earlier = ledger.entries(), Sources(ROOT, build=Path(setup))
    kept = [
        entries[one.name] | {"key": one.key}
        for one in proofs
        if (old := entries.get(one.name, {}).get("key")) not in (None, one.key)
        and replace(one, sources=earlier).key == old
    ]
    ledger.put(*kept)
    return len(kept)


def pytest_collection_finish(session):
    setup = session.config.getoption("carry_over")
    if setup is not None and not hasattr(session.config, "workerinput"):
        n = carry_over(session.config.stash[PROOFS].values(), setup, Ledger(LEDGER))
        print(f"{n} entries carried over")
    if session.config.getoption("proofs") in LONG:
        proofs = session.config.stash[PROOFS]
        used = set().union(*(proofs[item.nodeid].files for item in session.items))
        if stale := stale_files(used):
            raise pytest.UsageError(f"not what is installed or compiled: {', '.join(stale[:5])}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    one = item.config.stash[PROOFS].get(item.nodeid)
    if one is None:
        return (yield)
    with recording() as figures:
        start = time.process_time()
        result = yield
        seconds = time.process_time() - start
    if not figures:
        pytest.fail("a proof that records no figure proves nothing", pytrace=False)
    mode = item.config.getoption("proofs")
    if mode in LONG:
        found = one.entry(figures, seconds)
        old = Ledger(LEDGER).entries().get(one.name)
        if mode == "prove-all" and old is not None and (wrong := differences(old, found)):
            pytest.fail(f"the ledger's entry of {one.name}: {'; '.join(wrong)}", pytrace=False)
        item.user_properties.append(("proof", found))
    elif item.config.getoption("write_seconds"):
        item.user_properties.append(("seconds", (one.name, [round(seconds, 3), one.sizes[0]])))
    return result


class Keeper:
    """Writes the entries of proofs that passed, each as soon as it is there; says what came of it.

    It lives in the process that was started; workers only report.
    """

    def __init__(self, config):
        self.config, self.mode = config, config.getoption("proofs")
        self.n_run, self.seconds, self.of_short = 0, 0.0, {}

    def pytest_runtest_logreport(self, report):
        said = dict(report.user_properties)
        if report.when == "call" and "seconds" in said:
            name, seconds = said["seconds"]
            self.of_short[name] = seconds
        found = said.get("proof")
        if report.when != "call" or not report.passed or found is None:
            return
        self.n_run += 1
        self.seconds += found["seconds"]
        if self.mode == "prove":
            Ledger(LEDGER).put(found)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        if self.mode in (*LONG, "plan") and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        if self.of_short:
            write_seconds(self.of_short)

    def pytest_terminal_summary(self, terminalreporter):
        if self.mode == "plan":
            proofs = self.config.stash[PROOFS].values()
            for line in plan_of(proofs, Ledger(LEDGER).entries(), read_seconds()):
                terminalreporter.write_line(line)
        if self.mode in LONG:
            terminalreporter.write_line(
                f"{self.mode}: {self.n_run} proofs passed in {self.seconds:.0f} CPU seconds"
            )
