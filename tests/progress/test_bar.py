"""Bars in terminals and notebooks, and what is printed where there is neither."""

import io
import itertools
import re
import sys
import threading
import types

import joblib
import numpy as np
import pytest
import rich
from rich.console import Console
from sklearn.model_selection import GridSearchCV

from checks.toy_samplers import ToyEstimator
from skbnp.mcmc import runner
from skbnp.progress import ProgressBar, _bar

HIDES, SHOWS = "\x1b[?25l", "\x1b[?25h"


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 100 columns, as the text that was sent to it."""
    sent = io.StringIO()
    console = Console(file=sent, force_terminal=True, width=100, legacy_windows=False)
    console._environ = {}
    monkeypatch.setattr(rich, "get_console", lambda: console)
    monkeypatch.setattr("rich.live.get_console", lambda: console)
    monkeypatch.setattr(_bar, "_SECONDS_PER_PICTURE", 0.0)
    monkeypatch.setattr(runner, "_block_length", lambda *_: 4)
    return sent


def texts(sent):
    """The pictures that a terminal was sent, without colours, one after the other."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", sent.getvalue())
    return [part for part in re.split(r"(?:\r?\x1b\[(?:2K|1A|\?25[lh]))+", plain) if part.strip()]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_bar_in_a_terminal(terminal, backend):
    with joblib.parallel_config(backend=backend):
        ToyEstimator(n_jobs=2).set_callbacks(ProgressBar()).fit()
    pictures = texts(terminal)
    sweeps = [
        int(found[1]) for found in (re.search(r"sweep (\d+) of 11", x) for x in pictures) if found
    ]
    assert sorted(set(sweeps)) == sweeps == [0, 1, 5, 9]
    assert "ToyEstimator: 2 chains, warm-up, sweep 1 of 11" in pictures[1]
    assert re.search(r"log_joint -\d.*; x .*; R-hat not yet", pictures[2])
    assert re.search(r"━+ [\d.]+ s, about [\d.]+ s left", pictures[2])
    assert "all 11 sweeps, summaries" in pictures[4]
    assert "all 11 sweeps " in pictures[-1] and "summaries" not in pictures[-1]
    filled = [picture.count("━") for picture in pictures]
    assert min(filled) > 40
    assert terminal.getvalue().count(HIDES) == terminal.getvalue().count(SHOWS) == 1


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_the_terminal_is_given_back_after_an_error(terminal, monkeypatch, error):
    def fails(*arguments):
        raise error("stop")

    monkeypatch.setattr(runner, "_block_length", fails)
    with pytest.raises(error, match="stop"):
        ToyEstimator().set_callbacks(ProgressBar()).fit()
    assert terminal.getvalue().endswith(SHOWS)
    assert "stopped after 1 of 11 sweeps" in texts(terminal)[-1]
    assert _bar._terminal._of_runs == []
    # And it can be used again.
    monkeypatch.setattr(runner, "_block_length", lambda *_: 4)
    ToyEstimator().set_callbacks(ProgressBar()).fit()
    assert terminal.getvalue().endswith(SHOWS)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_bar_for_each_fit_of_a_search(terminal, backend):
    search = GridSearchCV(ToyEstimator(), {"n_draws": [2, 3]}, cv=2, n_jobs=2)
    with joblib.parallel_config(backend=backend):
        search.set_callbacks(ProgressBar()).fit(np.zeros((6, 1)))
    pictures = texts(terminal)
    for place in range(1, 5):
        name = f"candidate-split-evaluation {place} of 4: ToyEstimator: 2 chains, "
        assert any(name in picture for picture in pictures)
    assert any("refit-with-best-params: ToyEstimator: 2 chains, " in x for x in pictures)
    # What has ended makes room.
    assert pictures[-1].strip() == "GridSearchCV: 5 fits within it done"


def test_the_bar_of_a_fit_that_fails_is_taken_away(terminal, monkeypatch):
    n_blocks = itertools.count()

    def fails_once(*arguments):
        if next(n_blocks) == 1:
            raise RuntimeError("stop")
        return 4

    monkeypatch.setattr(runner, "_block_length", fails_once)
    search = GridSearchCV(ToyEstimator(), {"n_draws": [4, 2]}, cv=2)
    with pytest.warns(UserWarning):
        search.set_callbacks(ProgressBar()).fit(np.zeros((6, 1)))
    pictures = texts(terminal)
    (first,) = {x.split(":")[0].strip() for x in pictures if "evaluation 1 of 4" in x}
    assert first == "candidate-split-evaluation 1 of 4"
    assert not any("1 of 4" in x and "2 of 4" in x for x in pictures)
    assert pictures[-1].strip() == "GridSearchCV: 4 fits within it done"


def test_runs_in_several_threads_share_the_terminal(terminal):
    both = threading.Barrier(2, timeout=30)

    class Meets(ProgressBar):
        def on_progress(self, estimator, context, progress):
            if progress.n_swept == 1:
                both.wait()
            super().on_progress(estimator, context, progress)

    def fit(n_draws):
        ToyEstimator(n_draws=n_draws).set_callbacks(Meets()).fit()

    threads = [threading.Thread(target=fit, args=[n]) for n in (4, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert any("of 11" in x and "of 13" in x for x in texts(terminal))
    assert terminal.getvalue().count(HIDES) == terminal.getvalue().count(SHOWS) == 1


def test_what_is_printed_stays_above_the_bar(terminal):
    class Talks(ToyEstimator):
        def _init_callback_context(self, **options):
            context = super()._init_callback_context(**options)
            print("a word in between")
            return context

    Talks().set_callbacks(ProgressBar()).fit()
    assert "a word in between" in terminal.getvalue()


# -- notebooks


class Shown:
    """IPython's display, as far as it is used: what a cell shows, picture by picture."""

    def __init__(self):
        self.pictures = []
        self.html = []

    def display(self, picture, display_id):
        assert display_id is True
        self.update(picture)
        return self

    def update(self, picture):
        data = picture._repr_mimebundle_([], [])
        self.pictures.append(data["text/plain"])
        self.html.append(data["text/html"])


@pytest.fixture
def notebook(monkeypatch):
    shown = Shown()
    fake = types.ModuleType("IPython.display")
    fake.display = shown.display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    console = Console(force_jupyter=True, width=100)
    monkeypatch.setattr(rich, "get_console", lambda: console)
    monkeypatch.setattr(_bar, "_SECONDS_PER_PICTURE", 0.0)
    monkeypatch.setattr(runner, "_block_length", lambda *_: 4)
    return shown


def test_a_bar_in_a_notebook(notebook, capsys):
    ToyEstimator().set_callbacks(ProgressBar()).fit()
    assert "sweep 1 of 11" in notebook.pictures[2]
    assert "all 11 sweeps" in notebook.pictures[-1]
    assert "━" in notebook.html[-1] and notebook.html[-1].startswith("<pre")
    assert capsys.readouterr().out == ""


# -- elsewhere


def test_lines_where_the_output_is_a_file(capsys, monkeypatch):
    monkeypatch.setattr(runner, "_block_length", lambda *_: 4)
    ToyEstimator(n_draws=10).set_callbacks(ProgressBar()).fit()
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("ToyEstimator: 2 chains, ")
    assert last.startswith("ToyEstimator: 2 chains, all 23 sweeps; ")


def test_lines_in_a_terminal_that_cannot_move(capsys, monkeypatch):
    console = Console(force_terminal=True, _environ={"TERM": "dumb"})
    monkeypatch.setattr(rich, "get_console", lambda: console)
    ToyEstimator().set_callbacks(ProgressBar(every=0)).fit()
    assert len(capsys.readouterr().out.splitlines()) > 2


def test_without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(ImportError, match=r"pip install 'skbnp\[progress\]'"):
        ProgressBar()


def test_bad_parameters():
    with pytest.raises(ValueError, match="every must be >= 0 and finite, got -3"):
        ProgressBar(every=-3)
