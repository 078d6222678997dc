"""Where a run of chains stands, and who is told."""

import math
import time
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from skbnp.mcmc import diagnostics
from skbnp.mcmc.clock import Clock, duration

# Figures that are taken for those who watch, and R-hat, may each take so much of the time.
_SHARE_OF_TIME = 0.01
# Seconds between two lines with verbose=1, and sweeps after which the first one comes.
_SECONDS_PER_LINE, _SWEEPS_BEFORE_FIRST_LINE = 60.0, 10


@dataclass(frozen=True)
class Progress:
    """Where a run of chains stands.

    ``on_progress(estimator, context, progress)`` of a callback is called with it, in the process
    of `fit`: before the first sweep, each time the chains meet, and after the last sweep.

    Parameters
    ----------
    model : str
        Class of the estimator.
    phase : {"warm-up", "draws", "done", "stopped"}
        "done": all sweeps are made, and summaries are still to come. "stopped": by Ctrl-C, a
        callback or an error.
    warmup_round : int or None
        Which one, from 1, in a warm-up that ends when it is done; None elsewhere.
    n_chains : int
    n_swept : int
        Sweeps that every chain has made, those of a run that this one goes on from included.
    n_sweeps : int
        Sweeps of a chain at the end of the round; after the warm-up, and where its length was
        given, at the end of the run.
    most_sweeps : int
        Sweeps of a chain at the end of the run; in a round of warm-up at most.
    n_swept_before : int
        Sweeps of every chain that an earlier run had made.
    figures : dict of str to ndarray of shape (n_chains,)
        What was last seen of the traces, ``"log_joint"`` among them; empty before the first sweep.
    rhat : tuple (float, str) or None
        The largest R-hat of the reported traces and its name: of the draws so far, in a warm-up in
        rounds of what is recorded in the second half of this round, or else of the one before.
        None where nothing can be said yet.
    seconds : float
        Time that this run has taken.
    seconds_left : float
        Time that it will take to the end of the sweeps; in a round of warm-up at most, as further
        rounds may follow up to `max_work`. NaN before the first sweep.
    """

    model: str
    phase: str
    warmup_round: int | None
    n_chains: int
    n_swept: int
    n_sweeps: int
    most_sweeps: int
    n_swept_before: int = 0
    figures: dict = field(default_factory=dict)
    rhat: tuple | None = None
    seconds: float = 0.0
    seconds_left: float = math.nan

    @property
    def has_ended(self):
        """Whether no further sweep follows."""
        return self.phase in ("done", "stopped")

    @property
    def fraction(self):
        """Share of the sweeps that is done; in a round of warm-up at least."""
        return min(1.0, self.n_swept / self.most_sweeps)

    # -- in words

    def where(self):
        """Phase and sweep.

        Returns
        -------
        words : str
        """
        if self.phase == "done":
            return f"all {self.n_swept:,} sweeps"
        if self.phase == "stopped":
            return f"stopped after {self.n_swept:,} of {self.n_sweeps:,} sweeps"
        of_round = "" if self.warmup_round is None else f" round {self.warmup_round}"
        return f"{self.phase}{of_round}, sweep {self.n_swept:,} of {self.n_sweeps:,}"

    def state(self):
        """What was last seen of the chains, from the lowest to the highest, and R-hat.

        Returns
        -------
        words : str
            Empty before the first sweep.
        """
        known = [name for name in self.figures if name != "log_joint"]
        if "log_density" not in known:
            known.insert(0, "log_joint")
        words = [f"{name} {_span(self.figures[name])}" for name in known if name in self.figures]
        if self.figures:
            words.append("R-hat not yet" if self.rhat is None else _rhat_in_words(*self.rhat))
        return "; ".join(words)

    def time(self):
        """Time that was taken, and time left.

        Returns
        -------
        words : str
        """
        if self.has_ended or math.isnan(self.seconds_left):
            return duration(self.seconds)
        least = "about" if self.warmup_round is None else "at most"
        return f"{duration(self.seconds)}, {least} {duration(self.seconds_left)} left"

    def title(self):
        """Model, chains, phase and sweep.

        Returns
        -------
        words : str
        """
        chains = "1 chain" if self.n_chains == 1 else f"{self.n_chains} chains"
        return f"{self.model}: " * bool(self.model) + f"{chains}, {self.where()}"

    def line(self):
        """All of it.

        Returns
        -------
        words : str
        """
        return "; ".join(filter(None, (self.title(), self.state(), self.time())))


def _span(values):
    """One number, or the lowest and the highest."""
    low, high = _number(np.min(values)), _number(np.max(values))
    return low if low == high else f"{low} to {high}"


def _number(value):
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def _rhat_in_words(value, name):
    return f"R-hat {value:.2f} ({name})"


class Lines:
    """Lines about a run, at most one in so many seconds, and always a last one.

    The first comes after ten sweeps, or once that time has passed.

    Parameters
    ----------
    write : callable
        ``write(line)``.
    every : float
        Seconds; 0 writes a line whenever there is news.
    now : callable, default=None
        ``now()`` gives seconds from any origin; None is `time.perf_counter`.
    """

    def __init__(self, write, every, now=None):
        self._write = write
        self._every = every
        self._now = now or time.perf_counter
        self._last = self._now()
        self._has_begun = False

    def tell(self, progress, label=""):
        """Write a line if it is time for one.

        Parameters
        ----------
        progress : Progress
        label : str, default=""
            Goes before it.
        """
        waited = self._now() - self._last
        n_swept = progress.n_swept - progress.n_swept_before
        is_first = not self._has_begun and n_swept >= _SWEEPS_BEFORE_FIRST_LINE
        if progress.has_ended or (waited >= self._every and n_swept) or is_first:
            self.write(label + progress.line())

    def write(self, line):
        """Write a line in any case.

        Parameters
        ----------
        line : str
        """
        self._has_begun = True
        self._last = self._now()
        self._write(line)


class Watch:
    """Tells whoever watches a run where it stands.

    Parameters
    ----------
    callbacks : tuple (estimator, context) or None
        Callbacks of the estimator are told by their method ``on_progress``, where they have one.
    verbose : int
        1 prints a line a minute, 2 one each time the chains meet.
    reported : tuple of str or None
        Names of traces that are told of beside the log density; None means all.
    """

    def __init__(self, callbacks, verbose, reported):
        estimator, context = (None, None) if callbacks is None else callbacks
        self._model = "" if estimator is None else type(estimator).__name__
        self._reported = reported
        self._tell = [
            partial(callback.on_progress, estimator, context)
            for callback in getattr(estimator, "_skl_callbacks", [])
            if hasattr(callback, "on_progress")
        ]
        if verbose:
            every = _SECONDS_PER_LINE if verbose == 1 else 0.0
            self._tell.append(Lines(partial(print, flush=True), every).tell)
        self.clock = Clock()
        self._figures_due = self._rhat_due = 0.0
        self._rhat = None
        self._n_swept_before = None
        self._told = None

    def wants_figures(self):
        """Whether it is time to take the figures of the chains where they stand."""
        return bool(self._tell) and self.clock.elapsed >= self._figures_due

    def block_done(self, n_sweeps, blocks):
        """Count a block of all chains, which ends now.

        Parameters
        ----------
        n_sweeps : int
            Of every chain.
        blocks : list of Block

        Returns
        -------
        seconds : float
            Duration of the block.
        """
        n_figures = max(block.n_figures for block in blocks)
        of_figures = sum(block.seconds_of_figures for block in blocks)
        self.clock.costs(
            (sum(block.seconds for block in blocks) - of_figures, sum(b.n_sweeps for b in blocks)),
            (of_figures, sum(block.n_figures for block in blocks)),
        )
        seconds = self.clock.block_done(n_sweeps, n_figures)
        of_look = sum(block.seconds_of_look for block in blocks)
        if of_look:
            self._figures_due = self.clock.elapsed + of_look / _SHARE_OF_TIME
        return seconds

    def tell(self, run, has_ended=False):
        """Tell where the run stands.

        Parameters
        ----------
        run : _Run
        has_ended : bool, default=False
            Whether no sweep follows, all being done or not.
        """
        if not self._tell:
            return
        if self._n_swept_before is None:
            self._n_swept_before = run.n_swept
        most_sweeps, n_figures = run.most_work()
        plan = run.plan
        in_draws = not plan.is_round and run.n_swept >= plan.n_warmup
        phase = "draws" if in_draws else "warm-up"
        if has_ended:
            phase = "done" if run.is_done() else "stopped"
            self._rhat_due = 0.0
        n_swept = min(run.n_swept, most_sweeps)  # a file may hold more draws than are asked for
        progress = Progress(
            model=self._model,
            phase=phase,
            warmup_round=run.warmup.n_rounds + 1 if plan.is_round else None,
            n_chains=len(run.chains),
            n_swept=n_swept,
            n_sweeps=plan.n_sweeps,
            most_sweeps=most_sweeps,
            n_swept_before=self._n_swept_before,
            figures=self._figures_of(run.chains),
            rhat=self._rhat_of(run),
            seconds=self.clock.elapsed,
            seconds_left=self.clock.seconds_of(most_sweeps - n_swept, n_figures),
        )
        self._told = progress
        for tell in self._tell:
            tell(progress)

    def failed(self):
        """Tell that the run has ended with an error where it was last seen."""
        if self._told is not None:
            progress = replace(self._told, phase="stopped", seconds=self.clock.elapsed)
            for tell in self._tell:
                tell(progress)

    def _figures_of(self, chains):
        """Figures that all chains have shown, the reported ones in their order."""
        latest = [chain.latest for chain in chains]
        shown = [name for name in latest[0] if all(name in figures for figures in latest)]
        wanted = shown if self._reported is None else ["log_joint", "log_density", *self._reported]
        return {
            name: np.array([figures[name] for figures in latest])
            for name in dict.fromkeys(wanted)
            if name in shown
        }

    def _rhat_of(self, run):
        """The largest R-hat and its name, computed again when it is due."""
        began = self.clock.elapsed
        if run.n_swept and began >= self._rhat_due:
            traces = run.traces_so_far(self._reported)
            found = [(diagnostics.rhat(trace), name) for name, trace in traces.items()]
            self._rhat = max((x for x in found if not math.isnan(x[0])), default=None)
            took = self.clock.elapsed - began
            self._rhat_due = self.clock.elapsed + took / _SHARE_OF_TIME
        return self._rhat
