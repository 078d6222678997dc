"""A line about a fit now and then."""

import logging
import threading
import time
from numbers import Integral, Real

from skbnp.mcmc.clock import duration
from skbnp.mcmc.progress import Lines
from skbnp.progress._callback import ProgressCallback


class ProgressLog(ProgressCallback):
    """Log lines that say where a fit stands, while it runs.

    Each has the phase, the sweep, the log density, the number of clusters or units and what else
    ``fit`` checks (from the lowest chain to the highest), the largest R-hat so far, and the time
    left. The first comes after ten sweeps, one more every `every` seconds, and a last one at the
    end, all of them at once and not only when `fit` is through.

    Parameters
    ----------
    every : float, default=60.0
        Seconds between two lines, however many fits run in a search. Lines are written when the
        chains meet, within half a second or the longest sweep, across processes five seconds.
    level : int, default=logging.INFO
        Level of the lines.

    Raises
    ------
    ValueError
        If `every` is negative or not finite.
    TypeError
        If `every` or `level` is of another type.

    See Also
    --------
    ProgressBar : The same as a bar in terminals and notebooks.

    Notes
    -----
    Lines go to the logger "skbnp" of the standard library's `logging`. Where the program has not
    set up any handler, they go to standard error with the time before them; where it has, its
    levels decide what is shown.

    Set it on the outermost estimator, as on a search, whose fits then all tell of themselves.

    Examples
    --------
    >>> from skbnp import DirichletProcessMixture
    >>> from skbnp.progress import ProgressLog
    >>> mixture = DirichletProcessMixture().set_callbacks(ProgressLog(every=30))
    """

    def __init__(self, every=60.0, level=logging.INFO):
        super().__init__()
        self.every = check_seconds("every", every)
        if not isinstance(level, Integral) or isinstance(level, bool):
            raise TypeError(f"level must be an integer, as logging.INFO, got {level!r}")
        self.level = level

    def _make_display(self, name):
        return LinesOfRun(name, LogWriter(self.level), self.every)


def check_seconds(name, value):
    """A parameter in seconds: a finite number >= 0."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not 0.0 <= value < float("inf"):
        raise ValueError(f"{name} must be >= 0 and finite, got {value!r}")
    return value


class LogWriter:
    """Writes lines to the logger "skbnp", through a handler of its own if there is no other.

    A line is where it goes to when the call returns.
    """

    def __init__(self, level):
        self._logger, self._level = logging.getLogger("skbnp"), level
        self._own = None
        if not self._logger.hasHandlers():
            self._own = logging.StreamHandler()
            self._own.setFormatter(logging.Formatter("%(asctime)s %(message)s"))

    def __call__(self, line):
        if self._own is not None:
            record = self._logger.makeRecord("skbnp", self._level, "", 0, line, (), None)
            self._own.handle(record)
            return
        self._logger.log(self._level, "%s", line)
        logger = self._logger
        while logger is not None:
            for handler in logger.handlers:
                handler.flush()
            logger = logger.parent if logger.propagate else None


class LinesOfRun:
    """Lines about the fits of a run, whichever of them has news when a line is due.

    Parameters
    ----------
    name : str
        Of the outermost estimator.
    write : callable
        ``write(line)``.
    every : float
        Seconds between two lines.
    """

    def __init__(self, name, write, every):
        self._name = name
        self._lines = Lines(write, every)
        self._lock = threading.Lock()
        self._started = time.perf_counter()
        self._running = set()
        self._n_done = 0

    def tell(self, path, label, progress):
        """Write a line of a fit if it is time for one."""
        with self._lock:
            if len(path) == 1:
                self._lines.tell(progress)
            elif progress.phase == "stopped":
                self._running.discard(path)
            else:
                self._running.add(path)
                if not progress.has_ended:
                    self._lines.tell(progress, f"{self._name}: {label}")

    def fit_done(self, path):
        """Count the fits that are done within another."""
        with self._lock:
            if path in self._running:
                self._running.remove(path)
                self._n_done += 1

    def close(self):
        """Write the last line of a run of several fits; a single fit has told of its end."""
        with self._lock:
            if self._n_done:
                taken = duration(time.perf_counter() - self._started)
                self._lines.write(f"{self._name}: {fits_done(self._n_done)}; {taken}")


def fits_done(n_fits):
    """How many fits within another are done, in words."""
    return f"{n_fits} fit{'s' * (n_fits > 1)} within it done"
