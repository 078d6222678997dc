"""The ledger of proofs on a toy: a package of one sampler, two proofs of it, and a wrong one."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from checks.proofs import Ledger
from checks.sources import Sources, stripped, without_other_tests

CHECKS = Path(__file__).parent
LEDGER_TEST = CHECKS.parent / "proofs" / "test_ledger.py"

SAMPLER = '''
"""A toy."""

import numpy as np
from toy.numbers import spread


def sweep(x, rng):
    # The autoregression whose law is N(0, 1).
    return 0.6 * x + spread(0.6) * rng.normal(size=x.shape)
'''
NUMBERS = """
def spread(a):
    return (1.0 - a * a) ** 0.5
"""
HARNESS = """
import numpy as np
from checks.proofs import record


def z_scores(sweep, n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = sweep(x, rng)
    moved = {"x": y - x, "x^2": y**2 - x**2}
    return {k: record(np.sqrt(n) * d.mean() / d.std()) for k, d in moved.items()}
"""
TEST = """
import os
import time

import pytest

from checks.harness import z_scores
from checks.proofs import proof
from toy.sampler import sweep


@proof(pairs=(100, 20_000), seed=(1, 2), smoke="one")
@pytest.mark.parametrize("name", ["one", "two"])
def test_sweep(name, size, seed):
    z = z_scores(sweep, size, seed)
    assert max(map(abs, z.values())) < 4
    print("RAN", name, size, seed)
    while name == "two" and os.environ.get("TOY_HANGS"):
        time.sleep(0.05)


@proof(seed=3, wrong=True)
def test_wrong_spread_is_seen(seed):
    z = z_scores(lambda x, rng: 0.6 * x + 0.5 * rng.normal(size=x.shape), 4000, seed)
    assert max(map(abs, z.values())) > 6


def test_no_proof():
    print("RAN plain")
"""


NAMES = ("test_sweep[one]", "test_sweep[two]", "test_wrong_spread_is_seen")
BUSY = """
import time

import pytest


def busy():
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass


@pytest.fixture
def shared():
    busy()


def test_busy():
    busy()


def test_shared(shared):
    time.sleep(0.2)
"""


class Toy:
    """A repository in a temporary directory."""

    def __init__(self, root):
        self.root, self.ledger = root, root / "tests" / "proofs" / "LEDGER.jsonl"
        # Plugins that nothing here needs take most of the time of a run.
        self.environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def build(self):
        self.write("toy/__init__.py", "")
        self.write("toy/sampler.py", SAMPLER)
        self.write("toy/numbers.py", NUMBERS)
        self.write("tests/checks/harness.py", HARNESS)
        self.write("tests/toy/test_sweep.py", TEST)
        self.write("tests/conftest.py", 'pytest_plugins = ["checks.proofs"]\n')
        for name in ("proofs.py", "sources.py"):
            self.write(f"tests/checks/{name}", (CHECKS / name).read_text())
        self.write("tests/proofs/test_ledger.py", LEDGER_TEST.read_text())
        options = '["--import-mode=importlib", "-p", "no:cacheprovider"]'
        self.write(
            "pyproject.toml",
            f'[tool.pytest.ini_options]\naddopts = {options}\npythonpath = ["tests", "."]\n'
            'markers = ["proof: a proof"]\n',
        )
        return self

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def replace(self, path, old, new):
        text = (self.root / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))

    def command(self, *arguments):
        return [sys.executable, "-B", "-m", "pytest", "-s", "-rs", "tests", *arguments]

    def run(self, *arguments):
        """The exit status, what was printed, and which proofs ran how long."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr, re.findall(r"RAN (.*)", done.stdout)

    def entries(self):
        return Ledger(self.ledger).entries()


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path).build()


@pytest.fixture(scope="module")
def proved_once(tmp_path_factory):
    toy = Toy(tmp_path_factory.mktemp("proved")).build()
    status, text, ran = toy.run("--proofs=prove")
    assert status == 0 and ran == ["one 20000 2", "two 20000 2"], text
    return toy


@pytest.fixture
def proved(proved_once, tmp_path):
    shutil.copytree(proved_once.root, tmp_path, dirs_exist_ok=True)
    return Toy(tmp_path)


def test_what_has_no_entry_is_due_and_runs_short(toy):
    status, text, ran = toy.run()
    assert status == 1 and "3 proofs are due" in text and "run: make prove" in text
    assert ran == ["one 100 1", "two 100 1", "plain"]


def test_smoke_proofs_run_in_any_case_and_alone(toy):
    status, text, ran = toy.run("--proofs=smoke", "--deselect", "tests/proofs")
    assert status == 0 and ran == ["one 100 1", "plain"], text
    toy.replace("tests/toy/test_sweep.py", 'smoke="one"', 'smoke="five"')
    status, text, _ = toy.run("--proofs=smoke", "tests/proofs")
    assert status == 1 and "test_smoke_proofs_are_there" in text


@pytest.mark.slow
def test_ids_that_are_no_smoke_proofs_may_have_a_long_size_of_their_own(toy):
    toy.replace("tests/toy/test_sweep.py", "(100, 20_000)", "(100, 20_000, 5000)")
    status, _, ran = toy.run("--proofs=prove")
    assert status == 0 and ran == ["one 20000 2", "two 5000 2"]


def test_a_plan_says_what_is_due_and_how_long_it_takes(toy):
    status, text, ran = toy.run("--proofs=plan")
    assert status == 0 and ran == [] and not toy.ledger.exists()
    assert "plan: 3 proofs are due, 3 of them of unknown length; 0 CPU seconds" in text
    assert toy.run("--proofs=short", "--write-seconds", "--deselect", "tests/proofs")[0] == 0
    path = toy.ledger.with_name("SECONDS.json")
    seconds = json.loads(path.read_text())
    assert seconds.keys() == {f"toy/test_sweep.py::{name}" for name in NAMES}
    # In proportion to the size; a proof of one size takes what it took.
    known = {name: [0.5, one[1]] for name, one in seconds.items()}
    path.write_text(json.dumps(known))
    _, text, _ = toy.run("--proofs=plan")
    assert "100 s    toy/test_sweep.py::test_sweep[two] pairs 20000" in text
    assert "0 s    toy/test_sweep.py::test_wrong_spread_is_seen" in text
    assert "plan: 3 proofs are due; 200 CPU seconds" in text


@pytest.mark.slow
def test_a_test_above_the_limit_of_cpu_seconds_fails_the_run(toy):
    toy.write("tests/toy/test_busy.py", BUSY)
    shutil.copy(CHECKS / "cpu_seconds.py", toy.root / "tests" / "checks")
    toy.write("tests/conftest.py", 'pytest_plugins = ["checks.proofs", "checks.cpu_seconds"]\n')
    options = ("--proofs=none", "--deselect", "tests/proofs")
    status, text, _ = toy.run("--cpu-seconds=0.15", *options)
    assert status == 1 and "1 of 3 tests took more than 0.15 CPU seconds" in text
    assert re.search(r"0\.\d+ CPU seconds: .*test_busy$", text, re.M)
    assert re.search(r"0\.\d+ CPU seconds, setup and teardown: .*test_shared$", text, re.M)
    assert toy.run("--cpu-seconds=30", *options)[0] == 0


def test_an_unchanged_source_needs_no_run(proved):
    before = proved.ledger.read_bytes()
    status, text, ran = proved.run()
    assert status == 0 and ran == ["one 100 1", "plain"], text
    assert proved.ledger.read_bytes() == before


def test_other_words_and_other_tests_need_no_run(proved):
    proved.replace("toy/sampler.py", "# The autoregression", "# Another word for the chain")
    proved.replace("toy/sampler.py", '"""A toy."""', '"""A toy of one move."""')
    proved.replace("tests/toy/test_sweep.py", 'print("RAN plain")', "pass")
    status, text, ran = proved.run("--proofs=prove")
    assert status == 0 and ran == [] and "0 proofs passed" in text


@pytest.mark.parametrize(
    "path, old, new",
    [
        ("toy/numbers.py", "1.0 - a * a", "1.0 - a**2"),
        ("tests/checks/harness.py", "d.std()", "d.std(ddof=1)"),
        ("tests/toy/test_sweep.py", "20_000", "20_001"),
        ("tests/toy/test_sweep.py", "seed=(1, 2)", "seed=(1, 3)"),
    ],
)
def test_a_change_fails_with_the_command(proved, path, old, new):
    proved.replace(path, old, new)
    status, text, _ = proved.run("tests/proofs")
    assert status == 1 and "are due, toy/test_sweep.py::test_" in text and "make prove" in text


@pytest.mark.slow
def test_a_change_is_right_again_once_it_is_proved(proved):
    proved.replace("toy/numbers.py", "1.0 - a * a", "1.0 - a**2")
    status, _, ran = proved.run("--proofs=prove")
    assert status == 0 and len(ran) == 2
    assert proved.run()[0] == 0


def test_a_proof_that_fails_is_not_written_and_fails_the_command(toy):
    toy.replace("toy/numbers.py", "1.0 - a * a", "1.1 - a * a")
    status, _, ran = toy.run("--proofs=prove")
    assert status == 1 and ran == []
    assert list(toy.entries()) == ["toy/test_sweep.py::test_wrong_spread_is_seen"]


def test_a_proof_states_figures(toy):
    toy.replace("tests/checks/harness.py", "k: record(", "k: float(")
    status, text, _ = toy.run("--proofs=short")
    assert status == 1 and "records no figure" in text


@pytest.mark.slow
def test_all_again_repeats_every_digit_and_writes_nothing(proved):
    before = proved.ledger.read_bytes()
    status, text, ran = proved.run("--proofs=prove-all")
    assert status == 0 and ran == ["one 20000 2", "two 20000 2"], text
    assert "prove-all: 3 proofs passed" in text
    assert proved.ledger.read_bytes() == before


@pytest.mark.slow
def test_two_runs_from_nothing_give_the_same_digits(proved):
    entries = proved.entries()
    proved.ledger.unlink()
    assert proved.run("--proofs=prove")[0] == 0
    again = proved.entries()
    for entry in (*entries.values(), *again.values()):
        del entry["seconds"]
    assert again == entries
    one = entries["toy/test_sweep.py::test_sweep[one]"]
    assert (one["pairs"], one["seed"], one["figures"]) == (20_000, 2, 2) and one["largest_z"] < 4
    assert entries["toy/test_sweep.py::test_wrong_spread_is_seen"]["largest_z"] > 6


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("largest_z", 0.5, "largest_z is 0.5, this run has"),
        ("key", "0" * 32, "its key is not that of today's sources"),
        ("digits", "0" * 16, "digits is"),
        pytest.param("pairs", 10, "pairs is 10, this run has 20000", marks=pytest.mark.slow),
        pytest.param("seed", 5, "seed is 5, this run has 2", marks=pytest.mark.slow),
        pytest.param("figures", 3, "figures is 3, this run has 2", marks=pytest.mark.slow),
        pytest.param("note", "checked", "note is 'checked', this run has", marks=pytest.mark.slow),
    ],
)
def test_a_forged_entry_fails_when_all_are_run_again(proved, field, value, message):
    entry = proved.entries()["toy/test_sweep.py::test_sweep[two]"]
    Ledger(proved.ledger).put(entry | {field: value})
    status, text, _ = proved.run("--proofs=prove-all", "-k", "two")
    assert status == 1 and message in text


def test_entries_of_a_build_that_draws_the_same_are_carried_over(proved):
    before = proved.entries()
    proved.write("setup.py", "flags = ['-O2']\n")
    _, text, _ = proved.run("--proofs=plan", "--carry-over=before.py")
    assert "3 entries carried over" in text and "0 proofs are due" in text, text
    assert all(one["key"] != before[name]["key"] for name, one in proved.entries().items())
    # Of sources that changed as well nothing is known.
    proved.write("setup.py", "flags = ['-O1']\n")
    proved.write("toy/numbers.py", NUMBERS.replace("1.0", "1.00"))
    _, text, _ = proved.run("--proofs=plan", "--carry-over=before.py")
    assert "0 entries carried over" in text and "3 proofs are due" in text, text


@pytest.mark.slow
def test_digits_of_other_versions_are_not_compared(proved):
    entry = proved.entries()["toy/test_sweep.py::test_sweep[two]"]
    entry["versions"]["numpy"] = "1.0"
    Ledger(proved.ledger).put(entry | {"largest_z": 0.5})
    assert proved.run("--proofs=prove-all", "-k", "two")[0] == 0


@pytest.mark.slow
def test_a_killed_run_loses_nothing_that_was_finished(toy):
    command = toy.command("--proofs=prove")
    environment = toy.environment | {"TOY_HANGS": "1"}
    with subprocess.Popen(command, cwd=toy.root, env=environment, stdout=subprocess.DEVNULL) as run:
        finished, until = "toy/test_sweep.py::test_sweep[one]", time.monotonic() + 60
        try:
            while finished not in toy.entries() and time.monotonic() < until:
                time.sleep(0.05)
        finally:
            run.kill()
    assert list(toy.entries()) == [finished]
    status, _, ran = toy.run("--proofs=prove")
    assert status == 0 and ran == ["two 20000 2"]


@pytest.mark.slow
def test_an_entry_of_a_proof_that_is_gone_is_named(proved):
    proved.replace("tests/toy/test_sweep.py", '["one", "two"]', '["one"]')
    proved.run("--proofs=prove")
    status, text, _ = proved.run()
    assert status == 1 and "no proofs of these names" in text and "test_sweep[two]" in text


@pytest.mark.slow
def test_kernels_that_were_not_compiled_since_are_not_proved(toy):
    toy.write("toy/kernel.pyx", "cdef int one():\n    return 1\n")
    toy.write("toy/unused.pyx", "cdef int one():\n    return 1\n")
    toy.replace(
        "toy/numbers.py", "def spread", "if False:\n    from toy import kernel\n\n\ndef spread"
    )
    status, text, _ = toy.run("--proofs=prove")
    assert status == 4 and "not what is installed or compiled: toy/kernel.pyx\n" in text
    toy.write("toy/kernel.cpython-3.so", "")
    kernel = toy.root / "toy" / "kernel.pyx"
    assert stale_of(toy.root, kernel) == "[]"
    os.utime(kernel, (time.time() + 60, time.time() + 60))
    assert stale_of(toy.root, kernel) == "['toy/kernel.pyx']"
    toy.write("toy/kernel.h", "")  # not installed, as in a wheel
    header = toy.root / "toy" / "kernel.h"
    os.utime(header, (time.time() - 60, time.time() - 60))
    assert stale_of(toy.root, header) == "[]"
    os.utime(header, (time.time() + 60, time.time() + 60))
    assert stale_of(toy.root, header) == "['toy/kernel.h']"


def stale_of(root, file):
    code = "import sys; sys.path[:0] = ['tests', '.']; from checks.proofs import stale_files; "
    code += f"from pathlib import Path; print(stale_files([Path({str(file)!r})]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


# -- keys ---------------------------------------------------------------------------------------

KERNELS = {
    "toy/__init__.py": "from toy._estimator import Toy\nfrom toy.other import Other\n",
    "toy/_estimator.py": "from toy import _sampler\n\n\nclass Toy: ...\n",
    "toy/_sampler.pyx": "from toy.law cimport (\n    density,\n    sample as draw,\n)\n",
    "toy/_sampler.pxd": "cimport toy.numbers as numbers\n",
    "toy/law.pyx": "cdef double density(double x): return x # half\n",
    "toy/law.pxd": "cdef double density(double x)\n",
    "toy/numbers.pyx": "# cython: cdivision=True\ncdef double two = 2.0\n",
    "toy/other.py": "x = 1\n",
    "setup.py": "flags = ['-O3']\n",
    "tests/checks/harness.py": "from checks.deeper import n\nfrom checks.mutants import compiled\n",
    "tests/checks/deeper.py": "n = 1\n",
    "tests/checks/unused.py": "n = 1\n",
    "tests/checks/mutants.py": "def compiled(name): ...\n",
    "tests/mutants/toy.pyx": "from toy.law cimport density\n\ninclude 'rules.pxi'\n",
    "tests/mutants/rules.pxi": "cdef int n = 1\n",
    "tests/faces/toy.pyx": "x = 1\n",
    "tests/toy/vectors.json": "[1]\n",
    "tests/toy/test_toy.py": (
        "from checks.harness import n\nfrom toy import Toy\n\nM = compiled('toy')\n"
        "F = compiled('toy', 'faces')\n"
        "V = 'vectors.json'\n\n\ndef test_one():\n    assert n\n\n\ndef test_two():\n    pass\n"
    ),
}


def key_of(root):
    return Sources(root).key(root / "tests/toy/test_toy.py", "test_one", 40_000)


@pytest.fixture
def kernels(tmp_path):
    for path, text in KERNELS.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "path", sorted(set(KERNELS) - {"toy/__init__.py", "toy/other.py", "tests/checks/unused.py"})
)
def test_the_key_is_of_all_that_a_proof_stands_on(kernels, path):
    before = key_of(kernels)
    with open(kernels / path, "a") as file:
        file.write("y = 2\n")
    assert key_of(kernels) != before


@pytest.mark.parametrize(
    "path, line",
    [
        ("toy/other.py", "y = 2"),
        ("toy/__init__.py", "from toy.third import Third"),
        ("tests/checks/unused.py", "n = 2"),
        ("toy/law.pyx", "\n   # why"),
        ("tests/toy/test_toy.py", "\ndef test_three():\n    from toy.other import x\n"),
    ],
)
def test_the_key_is_of_nothing_else(kernels, path, line):
    before = key_of(kernels)
    with open(kernels / path, "a") as file:
        file.write(f"{line}\n")
    assert key_of(kernels) == before


def test_a_directive_is_no_comment(kernels):
    before, path = key_of(kernels), kernels / "toy/numbers.pyx"
    path.write_text(path.read_text().replace("True", "False"))
    assert key_of(kernels) != before


@pytest.mark.parametrize(
    "source, expected",
    [
        ('"""Module."""\n\nx = 1  # one\n', "x = 1"),
        ('def f(x):\n    """Doc # no."""\n    return x\n', "def f(x):\n    return x"),
        ("x = '# no comment'\n", "x = '# no comment'"),
        ('x = f("""\n# text""")\n', 'x = f("""\n# text""")'),
        ('x = {"a":\n    """text"""}\n', 'x = {"a":\n    """text"""}'),
        ('x = p(\n    1,\n    text="""\n    A.\n    """,\n)\n', "x = p(\n    1,\n    text=,\n)"),
        ('x = p(context="""\nA""")\n', 'x = p(context="""\nA""")'),
        ("cdef char c = b'\"'  # a quote\n", "cdef char c = b'\"'"),
        ("# don't\nx = 'it'\n", "x = 'it'"),
        (r"x = 'don\'t # do'  # it", r"x = 'don\'t # do'"),
        ("#cython: boundscheck=True\nx = 1", "#cython: boundscheck=True\nx = 1"),
    ],
)
def test_what_is_left_without_comments(source, expected):
    assert stripped(source) == expected


def test_other_tests_are_cut_out():
    source = "a = 1\n\n@mark\n@mark(2)\ndef test_a():\n    x\n\ndef test_b():\n    y\nb = 2\n"
    assert stripped(without_other_tests(source, "test_b")) == "a = 1\ndef test_b():\n    y\nb = 2"


def test_the_mixture_stands_on_its_kernels_and_no_other_model():
    sources = Sources(CHECKS.parents[1])
    test = CHECKS.parent / "proofs" / "dirichlet_process_mixture" / "test_geweke.py"
    reached = sources.reached(test.read_text())
    found = {path.relative_to(sources.root).as_posix() for path in reached}
    assert "skbnp/dirichlet_process_mixture/_sampler.pyx" in found
    assert "skbnp/numerics/rng.pxd" in found
    assert "tests/checks/joint_distribution.py" in found
    assert "tests/mutants/dirichlet_process_mixture.pyx" in found
    models = {path.split("/")[1] for path in found if path.startswith("skbnp/")}
    assert not models & {"tree_factor_model", "plot", "estimators", "icp_network"}


def test_lines_of_the_ledger_are_one_an_entry(tmp_path):
    ledger = Ledger(tmp_path / "new" / "LEDGER.jsonl")
    for name in "bac":
        ledger.put({"name": name, "key": name})
    ledger.put({"name": "b", "key": "again"})
    lines = (tmp_path / "new" / "LEDGER.jsonl").read_text().splitlines()
    assert [json.loads(line)["key"] for line in lines] == ["a", "again", "c"]
    assert os.listdir(tmp_path / "new") == ["LEDGER.jsonl"]
