"""``skbnp cluster``: tables with their clusters, files, refusals, interrupts."""

import os
import re
import signal
import subprocess
import sys
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from matplotlib import image

from checks.callbacks import NEEDS_CALLBACKS
from skbnp import DirichletProcessMixture
from skbnp.command_line import cluster, fitting
from skbnp.dirichlet_process_mixture.families import KINDS

SHORT = ["--chains", "2", "--warmup", "20", "--draws", "20", "--jobs", "1"]
BARE = [*SHORT, "--quiet", "--no-picture"]


@pytest.fixture
def people(tmp_path):
    """A file of two groups of people; which of them each belongs to."""
    random = np.random.default_rng(0)
    group = np.arange(40) % 2
    frame = pd.DataFrame(
        {
            "id": [f"p{i:03d}" for i in range(40)],
            "height": np.round(random.normal(150 + 30 * group, 3.0), 1),
            "weight": np.round(random.normal(50 + 30 * group, 3.0), 1),
            "town": np.where(group, "Oslo", "Bergen"),
        }
    )
    frame.loc[3, "height"] = np.nan
    frame.to_csv(tmp_path / "people.csv", index=False)
    return group


def same_groups(labels, group):
    return len(set(zip(labels, group, strict=True))) == len(set(group)) == len(set(labels))


def test_families_are_those_of_the_mixture():
    assert sorted(cluster._FAMILIES) == sorted(KINDS)


def test_as_a_process(process, people, tmp_path):
    ended = process("cluster", "people.csv", "--index", "id", *BARE)
    assert (ended.code, ended.out) == (0, "")
    # So few draws are worth a note.
    assert ended.err.startswith("note: The chains may not have converged: ")
    assert re.match(r"[^;]*; [^;]*; \d+ more\. To do: ", ended.err)
    found = pd.read_csv(tmp_path / "people_clusters.csv")
    assert same_groups(found["cluster"], people)


def test_the_table_with_its_clusters(skbnp, people, tmp_path):
    ended = skbnp("cluster", "people.csv", "--index", "id", "--probabilities", *BARE)
    assert (ended.code, ended.out) == (0, "")
    given = (tmp_path / "people.csv").read_text().splitlines()
    written = (tmp_path / "people_clusters.csv").read_text().splitlines()
    assert written[0] == f"{given[0]},cluster,probability,novelty,cluster0,cluster1"
    # What was given is there letter by letter.
    assert all(new.startswith(f"{old},") for new, old in zip(written, given, strict=True))
    found = pd.read_csv(tmp_path / "people_clusters.csv")
    assert same_groups(found["cluster"], people)
    assert (found["probability"] > 0.9).all() and found["novelty"].between(0, 0.5).all()
    np.testing.assert_allclose(found["cluster0"] + found["cluster1"], 1.0, atol=2e-4)
    own = np.where(found["cluster"] == 0, found["cluster0"], found["cluster1"])
    assert np.array_equal(own, found["probability"])


def test_picture_mixture_and_parquet(skbnp, people, tmp_path):
    pd.read_csv(tmp_path / "people.csv").to_parquet(tmp_path / "people.parquet")
    files = ["--output", "out.parquet", "--save", "people.skbnp"]
    ended = skbnp("cluster", "people.parquet", "--drop", "id", *files, *SHORT, "--quiet")
    assert ended.code == 0
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert same_groups(found["cluster"], people) and found["cluster"].dtype.kind == "i"
    assert found["id"].iloc[0] == "p000"
    loaded = DirichletProcessMixture.load(tmp_path / "people.skbnp")
    assert np.array_equal(loaded.labels_, found["cluster"])
    assert loaded.feature_names_in_.tolist() == ["height", "weight", "town"]
    picture = image.imread(tmp_path / "out.png")
    assert picture.shape[1] > 1.5 * picture.shape[0] and picture.std() > 0.05


def test_a_picture_of_one_panel_shows_its_labels(skbnp, tmp_path):
    (tmp_path / "a.csv").write_text("town,colour\n" + "A,x\nB,y\n" * 20)
    assert skbnp("cluster", "a.csv", *SHORT, "--quiet").code == 0
    picture = image.imread(tmp_path / "a_clusters.png")[..., :3]
    edges = (picture[0], picture[-1], picture[:, 0], picture[:, -1])
    assert all((edge == 1.0).all() for edge in edges) and picture.std() > 0.05


def test_letters_that_a_font_lacks_are_no_warning(skbnp, tmp_path):
    text = "\u91cd\u3055,\u9577\u3055\n" + "0.5,1.25\n1.5,2.75\n0.25,-1.5\n" * 10
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Glyph")
        assert skbnp("cluster", "a.csv", *SHORT, "--quiet").code == 0
    assert (tmp_path / "a_clusters.png").exists()


def test_settings_reach_the_mixture(skbnp, people, monkeypatch):
    seen = {}

    def fit(self, X):
        seen.update(self.get_params(), X=X)
        raise ValueError("X is only looked at")

    monkeypatch.setattr(DirichletProcessMixture, "fit", fit)
    ended = skbnp(
        *(
            "cluster",
            "people.csv",
            "--columns",
            "height",
            "weight",
            "--index",
            "id",
            "--no-picture",
        ),
        *("--family", "height=gaussian", "--covariance", "diag", "--chains", "3", "--warmup", "0"),
        *("--draws", "5", "--jobs", "2", "--seed", "7", "--checkpoint", "kept"),
    )
    assert (
        ended.code == 2 and ended.err == "skbnp cluster: people.csv: the table is only looked at\n"
    )
    assert seen["family"] == {"height": "gaussian"} and seen["covariance_type"] == "diag"
    assert (seen["n_chains"], seen["n_warmup"], seen["n_draws"]) == (3, 0, 5)
    assert (seen["n_jobs"], seen["random_state"], str(seen["checkpoint"])) == (2, 7, "kept")
    assert seen["X"].columns.tolist() == ["height", "weight"] and seen["X"].index[1] == "p001"
    skbnp("cluster", "people.csv", "--no-picture")
    # What is not asked for is the model's own choice.
    assert (seen["family"], seen["n_chains"], seen["n_warmup"]) == ("auto",) * 3


def test_reports(skbnp, people, tmp_path):
    ended = skbnp(
        *("cluster", "people.csv", "--index", "id", *SHORT, "--no-picture"),
        *("--report", "people.html"),
    )
    assert ended.code == 0
    assert "wrote people_clusters.csv\nwrote people.html\n" in ended.out
    # The report follows on the terminal.
    assert "height" in ended.out
    page = (tmp_path / "people.html").read_text()
    assert page.lstrip().startswith("<!DOCTYPE html>") and "height" in page


@pytest.mark.parametrize(
    ("options", "file"),
    [
        (["--no-picture", "--save=a.skbnp"], "a.skbnp"),
        (["--no-picture", "--report=a.html"], "a.html"),
        (["--picture=a.png"], "a.png"),
    ],
)
def test_a_disk_that_is_full(skbnp, people, monkeypatch, options, file):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DirichletProcessMixture, "save", full)
    monkeypatch.setattr("pathlib.Path.write_text", full)
    monkeypatch.setattr("skbnp.plot.save_figure", full)
    ended = skbnp("cluster", "people.csv", "--index", "id", *SHORT, *options)
    assert ended.code == 2 and f"cannot write {file}: " in ended.err


def test_a_fit_that_fails(skbnp, people, monkeypatch):
    def fit(self, X):
        raise FloatingPointError("chain 1 left the range of floats")

    monkeypatch.setattr(DirichletProcessMixture, "fit", fit)
    ended = skbnp("cluster", "people.csv", *BARE)
    assert ended.code == 1
    assert ended.err == (
        "skbnp cluster: ended with an error: FloatingPointError: chain 1 left the range of floats\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv"], "cannot read none.csv: there is no such file"),
        (["people.xlsx"], "people.xlsx: the name of a table must end in .csv"),
        (["people.csv", "--drop", "name"], "people.csv has no column 'name'; it has 'id', 'hei"),
        (["people.csv", "--family", "name=poisson"], "people.csv has no column 'name'"),
        (["people.csv", "--family", "height"], "--family must be COLUMN=FAMILY, of gaussian"),
        (["people.csv", "--family", "height=normal"], "got 'height=normal'"),
        (["people.csv", "--family", "town=gaussian"], "people.csv: .*column 'town'"),
        (["people.csv", "--family", "weight=poisson"], "people.csv: .*column 'weight'"),
        (["people.csv", "--output", "people.csv"], "would overwrite the input people.csv"),
        (["people.csv", "--output", "a/b.csv"], "--output a/b.csv: there is no folder a"),
        (["people.csv", "--output", "a.doc"], "--output a.doc: the name of a table must end"),
        (["people.csv", "--save", "."], "--save must be a file, and . is a folder"),
        (["people.csv", "--save", "people_clusters.csv"], "would overwrite that of --output"),
        (["people.csv", "--picture", "a.txt"], "--picture must end in .png"),
        (["people.csv", "--report", "a.txt"], "--report must end in .html or .htm, got a.txt"),
        (["people.csv", "--picture", "a.png", "--no-picture"], "contradict each other"),
        (["dated.csv"], "dated.csv: .*dates.*column 'day'"),
        (["empty.csv"], "empty.csv: .*observed value in every column.*'b': --drop what"),
        (["done.csv"], "done.csv has a column 'cluster' already.*: rename it"),
        (["people.csv", "--checkpoint", "people.csv"], "people.csv: .*checkpoint must be a dir"),
    ],
)
def test_what_it_refuses(refused, people, tmp_path, monkeypatch, arguments, message):
    (tmp_path / "dated.csv").write_text(
        "day,x\n" + "".join(f"2020-01-0{i},{i}\n" for i in range(1, 9))
    )
    (tmp_path / "empty.csv").write_text("a,b\n1,\n2,\n3,\n")
    (tmp_path / "done.csv").write_text("a,cluster\n1,0\n2,1\n")
    assert re.search(message, refused("cluster", *arguments))


@NEEDS_CALLBACKS
def test_progress_is_for_terminals(skbnp, people, monkeypatch):
    shown = []
    monkeypatch.setattr(DirichletProcessMixture, "set_callbacks", lambda self, *x: shown.extend(x))
    monkeypatch.setattr("rich.reconfigure", lambda **options: shown.append(options))
    skbnp("cluster", "people.csv", *BARE)
    assert shown == []
    for is_quiet, n_shown in [(True, 0), (False, 2)]:
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        arguments = type("Arguments", (), {"quiet": is_quiet})
        fitting.show_progress(DirichletProcessMixture(), arguments)
        assert len(shown) == n_shown
    assert shown[0] == {"stderr": True} and type(shown[1]).__name__ == "ProgressBar"
    monkeypatch.setitem(sys.modules, "rich", None)
    fitting.show_progress(DirichletProcessMixture(), arguments)
    assert len(shown) == n_shown


# -- interrupts


class InterruptAfter:
    """A callback that is Ctrl-C at the end of the n-th sweep."""

    def __init__(self, n):
        self.n = n

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.max_subtasks == 0:
            self.n -= 1
            if self.n == 0:
                signal.raise_signal(signal.SIGINT)

    def teardown(self, estimator, context):
        pass


@pytest.fixture
def interrupt(monkeypatch):
    def after(n):
        def show_progress(model, arguments):
            model.set_callbacks(InterruptAfter(n))

        monkeypatch.setattr(fitting, "show_progress", show_progress)

    return after


@NEEDS_CALLBACKS
@pytest.mark.parametrize(
    ("n", "said"),
    # Two chains: 42 sweeps are those up to the first draw, where the chains meet.
    [(10, "sweeps, before the first draw"), (42, "with 1 draws of each chain; they are in kept")],
)
def test_ctrl_c_and_on(skbnp, people, tmp_path, interrupt, n, said):
    command = ["cluster", "people.csv", "--index", "id", *BARE]
    assert skbnp(*command, "--output", "whole.csv").code == 0
    interrupt(n)
    ended = skbnp(*command, "--checkpoint", "kept", "--output", "again.csv")
    assert ended.code == 130 and ended.out == "" and ended.err.count("\n") == 1
    assert re.search(f"skbnp cluster: interrupted .*{said}", ended.err)
    assert not (tmp_path / "again.csv").exists() and len(list((tmp_path / "kept").iterdir())) == 1
    interrupt(-1)
    assert skbnp(*command, "--checkpoint", "kept", "--output", "again.csv").code == 0
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "whole.csv").read_text()


@NEEDS_CALLBACKS
def test_ctrl_c_without_a_checkpoint(skbnp, people, tmp_path, interrupt):
    interrupt(42)
    ended = skbnp("cluster", "people.csv", *BARE)
    assert ended.code == 130 and ended.err.count("\n") == 1
    assert "nothing is kept: --checkpoint DIR would have kept them" in ended.err


@NEEDS_CALLBACKS
def test_bar_and_ctrl_c_of_a_process_on_a_terminal(people, tmp_path):
    command = [sys.executable, "-m", "skbnp", "cluster", "people.csv", "--no-picture", *SHORT]
    command += ["--index", "id", "--draws", "100000", "--checkpoint", "kept"]
    terminal, stderr = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    running = subprocess.Popen(
        command, cwd=tmp_path, stderr=stderr, stdout=subprocess.PIPE, env=environment
    )
    os.close(stderr)
    try:
        shown = b""
        while b"2 chains" not in shown:
            shown += os.read(terminal, 1000)
        os.kill(running.pid, signal.SIGINT)
        with suppress(OSError):  # at the end of a terminal
            while block := os.read(terminal, 1000):
                shown += block
        out, _ = running.communicate(timeout=60)
    finally:
        running.kill()
        os.close(terminal)
    assert running.returncode == 130 and out == b"" and b"Traceback" not in shown
    # The cursor comes back before the last line.
    assert b"\x1b[?25hskbnp cluster: interrupted " in shown.splitlines()[-1]
