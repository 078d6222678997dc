"""How long a run takes, from the work that is done and the time that it took."""

import math
import time

import numpy as np

# Blocks whose times are kept; of more than that every second one is let go.
_MOST_POINTS = 400
# A trend changes what the present pace would take by at most the root of this factor.
_MOST_TREND = 4.0


class Clock:
    """Times the blocks of a run and says how long further sweeps will take.

    Work is counted: sweeps, and the times that figures are taken after one, which may cost more
    than the sweep. The pace is that of the last half of the work. Where the half before it had
    another one, the truth is taken to lie between a pace that stays and one that goes on changing
    in a straight line: the geometric mean of the two is within a factor of two of whatever lies
    between, as long as the second is at most four times the first.

    Parameters
    ----------
    now : callable, default=None
        ``now()`` gives seconds from any origin; None is `time.perf_counter`.
    """

    def __init__(self, now=None):
        self.now = now or time.perf_counter
        self._started = self._last = self.now()
        # Sweeps, figures and seconds so far, at the ends of blocks.
        self._points = [(0, 0, 0.0)]
        self._n_blocks = 0
        self._every = 1
        self._is_passing = False
        # Seconds of the chains themselves and counts, of sweeps and of figures.
        self._of_sweeps, self._of_figures = (0.0, 0), (0.0, 0)

    @property
    def elapsed(self):
        """Seconds since the run began, in this process."""
        return self.now() - self._started

    def block_done(self, n_sweeps, n_figures=0):
        """Count what every chain has done in a block that ends now.

        Parameters
        ----------
        n_sweeps, n_figures : int
            Sweeps, and how many of them figures were taken after.

        Returns
        -------
        seconds : float
            Duration of the block.
        """
        now = self.now()
        seconds, self._last = now - self._last, now
        sweeps, figures, _ = self._points[-1]
        point = (sweeps + n_sweeps, figures + n_figures, now - self._started)
        self._n_blocks += 1
        if self._is_passing:
            self._points.pop()
        self._points.append(point)
        if len(self._points) > _MOST_POINTS:
            # Start and end of the first block stay: what lies between them is start-up.
            self._points[2:-1] = self._points[2:-1:2]
            self._every *= 2
        # The last point is always there, and gives way to the next unless its turn has come.
        self._is_passing = self._n_blocks % self._every != 0
        return seconds

    def costs(self, of_sweeps, of_figures):
        """Take note of what the chains themselves took for sweeps and for figures.

        Parameters
        ----------
        of_sweeps, of_figures : tuple (seconds, count)
        """
        self._of_sweeps = _sum(self._of_sweeps, of_sweeps)
        self._of_figures = _sum(self._of_figures, of_figures)

    @property
    def figures_in_sweeps(self):
        """What figures cost, in sweeps; 0 as long as nobody knows."""
        (swept, n_sweeps), (taken, n_figures) = self._of_sweeps, self._of_figures
        if not (n_sweeps and n_figures and swept > 0.0):
            return 0.0
        return (taken / n_figures) / (swept / n_sweeps)

    def seconds_of(self, n_sweeps, n_figures=0):
        """How long further work will take.

        Parameters
        ----------
        n_sweeps, n_figures : int
            Of every chain.

        Returns
        -------
        seconds : float
            NaN before the second block: the first holds what the start has taken.
        """
        cost = self.figures_in_sweeps
        points = np.array(self._points)[1:]
        left = n_sweeps + cost * n_figures
        if len(points) < 2:
            return math.nan if left else 0.0
        work, seconds = points[:, 0] + cost * points[:, 1], points[:, 2]
        done = work[-1] - work[0]
        middle = np.interp(work[0] + done / 2, work, seconds)
        early, late = middle - seconds[0], seconds[-1] - middle
        if not late > 0.0:
            return 0.0
        trend = 1.0 + (1.0 - early / late) * (0.5 + left / done)
        trend = np.clip(trend, 1.0 / _MOST_TREND, _MOST_TREND)
        return float(left * late / (done / 2) * math.sqrt(trend))


def duration(seconds):
    """Seconds as a person says them.

    Parameters
    ----------
    seconds : float

    Returns
    -------
    words : str
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _sum(one, other):
    return one[0] + other[0], one[1] + other[1]
