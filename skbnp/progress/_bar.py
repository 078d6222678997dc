"""A bar for each fit, in terminals and notebooks; elsewhere lines."""

import math
import multiprocessing
import threading
import time
from abc import ABC, abstractmethod
from functools import partial

from skbnp.progress._callback import ProgressCallback
from skbnp.progress._log import LinesOfRun, check_seconds, fits_done

# Seconds between two pictures of the same screen.
_SECONDS_PER_PICTURE = 0.1


class ProgressBar(ProgressCallback):
    """A bar that says where a fit stands, in terminals and in notebooks.

    Above it phase and sweep, beside it the time taken and left, below it the log density, the
    number of clusters or units and what else ``fit`` checks (from the lowest chain to the highest),
    and the largest R-hat so far. While a warm-up in rounds goes on, the bar and the time left are
    those of the longest run that `max_work` allows: the bar jumps ahead when it has ended.

    Where the output is neither a terminal nor a notebook, such as a file, lines are printed as
    `ProgressLog` writes them, one every `every` seconds.

    Parameters
    ----------
    every : float, default=60.0
        Seconds between two lines where there is no bar.

    Raises
    ------
    ImportError
        If rich is not installed: ``pip install 'skbnp[progress]'``.
    ValueError
        If `every` is negative or not finite.
    TypeError
        If `every` is no number.

    See Also
    --------
    ProgressLog : The same as log lines.
    sklearn.callback.ProgressBar : Counts sweeps only; takes any estimator.

    Notes
    -----
    Set it on the outermost estimator: on a search, which then has a bar for each fit that runs,
    also in other processes. The bar closes when `fit` ends in whichever way.

    Examples
    --------
    >>> from skbnp import DirichletProcessMixture
    >>> from skbnp.progress import ProgressBar
    >>> mixture = DirichletProcessMixture().set_callbacks(ProgressBar())
    """

    def __init__(self, every=60.0):
        super().__init__()
        self.every = check_seconds("every", every)
        _import_rich()

    def _make_display(self, name):
        console = _import_rich().get_console()
        # Several processes would write over each other's bars.
        if multiprocessing.current_process().name == "MainProcess":
            if console.is_jupyter:
                return Bars(name, _notebook)
            if console.is_terminal and not console.is_dumb_terminal:
                return Bars(name, _terminal)
        return LinesOfRun(name, partial(print, flush=True), self.every)


def _import_rich():
    try:
        import rich
    except ImportError as error:
        raise ImportError(
            "ProgressBar needs rich: install it with `pip install 'skbnp[progress]'`; "
            "ProgressLog does without"
        ) from error
    return rich


class Bars:
    """The bars of the fits of a run on a screen.

    Parameters
    ----------
    name : str
        Of the outermost estimator.
    screen : Screen
    """

    def __init__(self, name, screen):
        self._name = name
        self._screen = screen
        self._bars = {}
        self._summarised = False
        self._n_done = 0
        screen.open(self)

    def tell(self, path, label, progress):
        """Draw the bar of a fit."""
        is_inner = len(path) > 1
        with self._screen.lock:
            is_news = path not in self._bars or progress.has_ended
            if is_inner and progress.phase == "stopped":
                self._bars.pop(path, None)
            else:
                self._bars[path] = label, progress
        self._screen.refresh(at_once=is_news)

    def fit_done(self, path):
        """Take the bars of a task that has ended away, where it is not the whole run."""
        with self._screen.lock:
            if len(path) > 1:
                self._n_done += path in self._bars
                for inner in [x for x in self._bars if x[: len(path)] == path]:
                    del self._bars[inner]
            else:
                self._summarised = True
        self._screen.refresh(at_once=True)

    def close(self):
        """Leave the screen."""
        self._screen.close(self)

    def pictures(self):
        """What rich draws, from top to bottom."""
        from rich.progress_bar import ProgressBar as RichBar
        from rich.table import Table
        from rich.text import Text

        if self._n_done:
            yield Text(f"{self._name}: {fits_done(self._n_done)}")
        for path, (label, progress) in self._bars.items():
            are_summaries_due = progress.phase == "done" and not (
                len(path) == 1 and self._summarised
            )
            yield Text(label + progress.title() + ", summaries" * are_summaries_due)
            line = Table.grid(padding=(0, 1), expand=True)
            line.add_column(ratio=1)
            line.add_column(no_wrap=True)
            line.add_row(RichBar(total=1.0, completed=progress.fraction), progress.time())
            yield line
            if progress.figures:
                yield Text(f"  {progress.state()}", style="dim")


class Screen(ABC):
    """The one place of a process where bars are drawn: runs in several threads share it."""

    def __init__(self):
        self.lock = threading.RLock()
        self._of_runs = []
        self._last = -math.inf

    def open(self, bars):
        """Begin to draw the bars of a run."""
        with self.lock:
            self._of_runs.append(bars)
            if len(self._of_runs) == 1:
                self._begin()

    def close(self, bars):
        """Draw the bars of a run for the last time."""
        with self.lock:
            self.refresh(at_once=True)
            self._of_runs.remove(bars)
            if not self._of_runs:
                self._end()

    def refresh(self, at_once=False):
        """Draw all bars, unless that has just been done."""
        with self.lock:
            now = time.perf_counter()
            if at_once or now - self._last >= _SECONDS_PER_PICTURE:
                self._draw()
                self._last = now

    def picture(self):
        """All bars."""
        from rich.table import Table

        with self.lock:
            lines = Table.grid(expand=True)
            for bars in self._of_runs:
                for line in bars.pictures():
                    lines.add_row(line)
        return lines

    @abstractmethod
    def _begin(self):
        """Take a part of the output."""

    @abstractmethod
    def _draw(self):
        """Put the bars there."""

    @abstractmethod
    def _end(self):
        """Leave it as it is drawn."""


class TerminalScreen(Screen):
    """The last lines of a terminal."""

    def _begin(self):
        from rich.live import Live

        self._live = Live(get_renderable=self.picture, auto_refresh=False)
        self._live.start()

    def _draw(self):
        self._live.refresh()

    def _end(self):
        # It gives the cursor back, whatever has ended the run.
        self._live.stop()


class NotebookScreen(Screen):
    """The output of a cell; it needs no widgets, and what is drawn is saved with the notebook."""

    def _begin(self):
        from IPython.display import display

        self._handle = display(self.picture(), display_id=True)

    def _draw(self):
        self._handle.update(self.picture())

    def _end(self):
        """Nothing: the picture stays."""


_terminal, _notebook = TerminalScreen(), NotebookScreen()
