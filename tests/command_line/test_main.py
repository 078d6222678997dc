"""The command itself: help, versions, codes, and the names of the package it waits for."""

import inspect
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import skbnp as package
from skbnp.command_line import _main
from skbnp.command_line.errors import BadInput, in_words, report_in_words, require, text_of
from skbnp.reports.page import Report, Section, Verdict

COMMANDS = list(_main.COMMANDS)


def test_help_is_there_before_anything_large_is_imported(tmp_path):
    asked = (
        "import sys; from skbnp.command_line import main\n"
        "for arguments in (['--help'], *([name, '--help'] for name in sys.argv[1:])):\n"
        "    try: main(arguments)\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "print('imported:', {'sklearn', 'scipy', 'pandas', 'matplotlib'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", asked, *COMMANDS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "imported: set()" in done.stdout
    for name in COMMANDS:
        assert (
            f"usage: skbnp {name} " in done.stdout and f"example:\n  skbnp {name} " in done.stdout
        )


def test_version(process):
    ended = process("--version")
    assert (ended.code, ended.out) == (0, f"skbnp {package.__version__}\n")


def test_nothing_at_all_is_a_question_for_help(skbnp):
    ended = skbnp()
    assert ended.code == 0 and all(name in ended.out for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["clusters", "a.csv"], "skbnp: argument COMMAND: invalid choice: 'clusters'"),
        (["--quiet"], "skbnp: the following arguments are required: COMMAND"),
        (["cluster"], "skbnp cluster: the following arguments are required: FILE"),
        (["impute", "a.csv", "--chains", "0"], "--chains: must be >= 1, got 0"),
        (["impute", "a.csv", "--draws", "many"], "--draws: invalid whole number value: 'many'"),
        (["inpaint", "a.png", "--jobs", "0"], "--jobs: must be 1 or more, or -1"),
        (["complete", "a", "--warm", "3"], "unrecognized arguments: --warm 3"),
    ],
)
def test_wrong_usage(skbnp, arguments, message):
    ended = skbnp(*arguments)
    assert ended.code == 2 and ended.out == ""
    assert message in ended.err and ended.err.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_no_such_file(process, name):
    ended = process(name, "nowhere.csv")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"skbnp {name}: cannot read nowhere.csv: there is no such file\n"


def test_reader_that_has_left(tmp_path):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "skbnp", "--help"]
    done = subprocess.run(
        command,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.fixture
def failing(monkeypatch):
    """Let a command end with an error."""

    def let(error):
        from skbnp.command_line import cluster

        def run(arguments):
            raise error

        monkeypatch.setattr(cluster, "run", run)

    return let


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ArithmeticError("chain 0: the log joint\nis NaN"), 1, "ended with an error: Arithmetic"),
        (MemoryError(), 1, "ended with an error: MemoryError"),
        (BadInput("a.csv has no rows"), 2, "a.csv has no rows"),
        (KeyboardInterrupt("after 3 sweeps"), 130, "interrupted after 3 sweeps"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_how_a_command_ends(skbnp, failing, error, code, message, debug):
    failing(error)
    ended = skbnp("cluster", "a.csv", *["--debug"] * debug)
    assert ended.code == code and ended.out == ""
    assert ended.err.splitlines()[-1].startswith(f"skbnp cluster: {message}")
    assert ("Traceback" in ended.err) == debug
    assert debug or ended.err.count("\n") == 1


def test_missing_extra(monkeypatch):
    require("json")
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(BadInput, match=r"needs pandas and Pillow: .* pip install 'skbnp\[cli\]'"):
        require("json", "pandas", "PIL")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("X must have 2 columns", "the table must have 2 columns"),
        (
            "raise n_warmup and n_draws. Look at posterior_.summary().",
            "raise --warmup and --draws.",
        ),
        ("missing_values=-999, or check", "--na -999, or check"),
        ("MAX and n_draws_", "MAX and n_draws_"),
        (
            "laws of their own: family={'my site': 'categorical', 'age': 'categorical'} for such",
            "laws of their own: --family 'my site=categorical' age=categorical for such",
        ),
        ("family={<A>: 'categorical'}", "family={<A>: 'categorical'}"),
        (
            "X must vary in every column for covariance_type='full' without a covariance_prior, "
            "got the constant column 'x'; remove them or use covariance_type='diag'",
            "the table must vary in every column, got the constant column 'x'; --drop them or use "
            "--covariance 'diag'",
        ),
        (
            "X must hold no dates or times where family is 'auto', got some in 'day': drop it; "
            "where they are names of a few groups, family 'categorical' takes them",
            "the table must hold no dates or times, got some in 'day': --drop it; where they are "
            "names of a few groups, --family COLUMN=categorical takes them",
        ),
        (
            "log_density is still falling: raise max_work (the warm-up ended when max_work=15 was "
            "spent)",
            "log_density is still falling: name a longer --warmup",
        ),
        (
            "more chains (n_chains, and max_work in proportion) help more than longer ones",
            "more chains (--chains, with a --warmup as long as now) help more than longer ones",
        ),
        ("raise n_draws. (TreeFactorModel, the imputer's estimator, says so.)", "raise --draws."),
        ("few effective draws: raise n_draws or thin.", "few effective draws: raise --draws."),
        (
            "Leave copies out, as by numpy.unique(X, axis=0), or give columns of few values "
            "another family",
            "Leave copies out, or make columns of few values names, by --family COLUMN=categorical",
        ),
        (
            "labels_ has 2 clusters, but of the pairs of rows of different ones 45% are together "
            "in single draws: their number is open. Look at skbnp.plot.MergeTreeDisplay and "
            "coclustering(joined=False)",
            "there are 2 clusters, but of the pairs of rows of different ones 45% are together in "
            "single draws: their number is open",
        ),
        (
            "joined that overlap by 0.31, not much more than merge_overlap=0.3: merge_tree_.cut("
            "n_clusters=2)[component_labels_] keeps 2 apart. Look at skbnp.plot.MergeTreeDisplay",
            "joined that overlap by 0.31, not much more than joins need: with a little less there "
            "would be 2",
        ),
        (
            "have clusters like 1 and 2 of labels_, 40% have one. Look at predict_proba or "
            "coclustering, or run longer chains",
            "have clusters like 1 and 2, 40% have one. Look at --probabilities, or run longer "
            "chains",
        ),
        (
            "store='auto' has room for 60 of the 400 draws, fewer than predict_draws=100: labels "
            "and predictions rest on these alone",
            "there is room for 60 of the 400 draws: labels and predictions rest on these alone",
        ),
        (
            "where that is no mistake, name another family in family",
            "where that is no mistake, name another one by --family",
        ),
        (
            "X must have an observed value in every column, got only NaN in column(s) 'a', 'X'",
            "the table must have an observed value in every column, got only NaN in column(s) 'a', "
            "'X': --drop what is empty",
        ),
    ],
)
def test_words_of_the_command_line(message, said):
    assert in_words(message) == said


def test_words_of_a_report():
    """Of what is to be done in Python; names of columns stay, also X."""
    joined = (
        "Those that overlap are one cluster. merge_overlap sets how much they must overlap, and "
        "merge_tree_ has all joins; where a join is near that limit, more draws can change it."
    )
    verdict = Verdict(
        "rows", "with care", "X", "Use estimator.predict_proba(X) in place of labels_, or run on."
    )
    table = [{"row": j} for j in range(5)]
    sections = [
        Section("one", "One", ("Taken for measurements: X.", joined), verdicts=(verdict,)),
        Section(
            "two", "Two", ("X has -999.",), table, n_shown=2, in_short="Short.",
            steps=("Look, by skbnp.plot.CoclusteringDisplay.from_estimator(estimator).",),
        ),
    ]  # fmt: skip
    said = report_in_words(Report("title", sections))
    assert said.sections["one"].sentences == (
        "Taken for measurements: X.",
        "Those that overlap are one cluster. Where a join is near the limit for that, more draws "
        "can change it.",
    )
    assert said.sections["two"].sentences == ("the table has -999.",)
    assert said.sections["two"].steps == ("Look, in the --picture.",)
    (found,) = said.sections["one"].verdicts
    assert found.why == "X"
    assert found.remedy == "Use --probabilities in place of clusters, or run on."
    assert said.sections.keys() == Report("title", sections).sections.keys()
    text = text_of(said)
    assert "(3 more)" in text and "report.sections" not in text and "Short." in text


# -- the package, whose estimators wait until they are asked for


def test_all_names_of_the_package_are_there():
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        found = getattr(package, name)
        if name != "__version__":
            assert inspect.isclass(found) and found.__name__ == name
            assert found.__module__.startswith(f"skbnp.{package._FOLDERS[name]}.")


def test_modules_of_the_package_are_there():
    assert package.laws.Gamma(1, 1) and package.plot.ClusterDisplay
    for name in ("nothing", "_nothing"):
        with pytest.raises(AttributeError, match=f"module 'skbnp' has no attribute '{name}'"):
            getattr(package, name)


def test_what_is_installed():
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    module, name = project["scripts"]["skbnp"].split(":")
    assert getattr(import_module(module), name) is _main.main
    extras = project["optional-dependencies"]
    assert set(extras["cli"]) <= set(extras["test"])
