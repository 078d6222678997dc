"""A warm-up that ends when it is done: rounds, and what is decided after each of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skbnp.mcmc import diagnostics

# Sweeps of a round that each chain records at most, evenly spaced over its last half.
_MOST_RECORDED = 200
# Effective draws that thinning aims at, as a multiple of the least that raises no warning.
_AIMED = 2.0


@dataclass(frozen=True)
class WarmupRounds:
    """The rule that ends a warm-up and says how far apart the kept draws are.

    All chains run together in rounds, each twice as long as the one before. After a round the
    traces of its last half are looked at, and of these alone: no draw that is kept takes part in
    a decision, and none depends on one but through the lengths that it has set. Work is counted
    and never timed, so that the same chains stop at the same sweep on every machine.

    Parameters
    ----------
    first : int
        Sweeps of the first round, at least 8.
    names : tuple of str
        The traces that must agree between the chains, and whose effective sample sizes thinning
        goes by. Without any, a warm-up has ended when nothing drifts, and every sweep is kept.
    work_per_sweep : callable
        ``work_per_sweep(traces)`` is the work of one sweep of one chain, a positive number, from
        the traces of a round's last half: dict of name to array (n_chains, n_recorded).
        What it has been at most counts for all sweeps.
    least_work : float
        What that is at least, known before any sweep.
    max_work : float
        Work that all sweeps of all chains together may take, in the same units. The first round
        is run in any case, and so are the draws asked for.
    n_draws : int
        Draws per chain that thinning is chosen for. Not how many are kept: a run that goes on to
        more draws must have the same ones.
    thin : int or None, default=None
        Sweeps per kept draw; None lets the effective sample size of the last round decide.
    """

    first: int
    names: tuple[str, ...]
    work_per_sweep: Callable
    least_work: float
    max_work: float
    n_draws: int
    thin: int | None = None

    def end_of(self, n_rounds):
        """Sweeps of a chain once so many rounds are done.

        Parameters
        ----------
        n_rounds : int

        Returns
        -------
        n_sweeps : int
        """
        return self.first * (2**n_rounds - 1)

    def recorded(self, n_rounds):
        """What the chains record in the round that follows so many.

        Parameters
        ----------
        n_rounds : int

        Returns
        -------
        start, every : int
            One sweep in `every` after the first `start` of the chain.
        """
        half = self.first * 2**n_rounds // 2
        return self.end_of(n_rounds + 1) - half, -(-half // _MOST_RECORDED)

    def most_work(self, n_chains, n_draws, warmup=None):
        """What a chain does at most, for as many draws.

        Parameters
        ----------
        n_chains, n_draws : int
        warmup : Warmup, default=None
            Where the warm-up stands; None is before its first round.

        Returns
        -------
        n_sweeps : int
            Those that are done included.
        n_figures : int
            How many times figures are recorded or kept from here on, at most.
        """
        n_rounds, work = (0, 0.0) if warmup is None else (warmup.n_rounds, warmup.work_per_sweep)
        affordable = int(self.max_work / (n_chains * max(self.least_work, work or 0.0)))
        n_sweeps = n_figures = 0
        while True:
            half = self.first * 2**n_rounds // 2
            n_figures += half // self.recorded(n_rounds)[1]
            n_rounds += 1
            end = self.end_of(n_rounds)
            n_sweeps = max(n_sweeps, end + n_draws * self._most_thin(affordable - end))
            if not self._has_room(n_rounds, affordable):
                return n_sweeps, n_figures + n_draws

    def _has_room(self, n_rounds, affordable):
        """Whether another round may follow so many: as long again is left for draws after it."""
        return self.end_of(n_rounds + 1) + self.first * 2**n_rounds <= affordable

    def _most_thin(self, n_left):
        """Sweeps per draw at most, where so many sweeps are left for all draws."""
        return self.thin or max(1, int(n_left / self.n_draws))

    def after_round(self, warmup, traces):
        """What is decided after a round.

        Parameters
        ----------
        warmup : Warmup
            As it was during the round.
        traces : dict of str to ndarray of shape (n_chains, n_recorded)
            What was recorded in it.

        Returns
        -------
        warmup : Warmup
            With another round behind it, and ended if no more is to come.
        """
        n_rounds, n_chains = warmup.n_rounds + 1, len(next(iter(traces.values())))
        # Networks grow: what a sweep has cost at most is what those to come will cost at least.
        work = max(warmup.work_per_sweep or 0.0, float(self.work_per_sweep(traces)))
        affordable = self.max_work / (n_chains * work)
        if is_settled(traces, self.names):
            ended = "settled"
        elif not self._has_room(n_rounds, affordable):
            ended = "spent"
        else:
            return Warmup(n_rounds, work)
        n_left = affordable - self.end_of(n_rounds)
        return Warmup(n_rounds, work, ended, self._thin(traces, n_rounds, n_left))

    def _thin(self, traces, n_rounds, n_left):
        """Sweeps per draw that make as many effective draws as aimed at, if there is work left."""
        if self.thin is not None:
            return self.thin
        half = self.first * 2 ** (n_rounds - 1) // 2
        least = min((diagnostics.ess(traces[name]) for name in self.names), default=math.inf)
        aim = _AIMED * diagnostics.least_ess(len(next(iter(traces.values()))))
        wanted = aim * half / least / self.n_draws if least > 0.0 else math.inf
        most = self._most_thin(n_left)
        return most if wanted > most else max(1, math.ceil(wanted))


@dataclass(frozen=True)
class Warmup:
    """Where a warm-up in rounds stands.

    Parameters
    ----------
    n_rounds : int, default=0
        Rounds that are done.
    work_per_sweep : float or None, default=None
        Of one chain, the most of the rounds that are done.
    ended : {"", "settled", "spent"}, default=""
        "settled": the chains agreed and had enough effective draws. "spent": there was no work
        left for another round.
    thin : int or None, default=None
        Sweeps per kept draw, set when it has ended.
    """

    n_rounds: int = 0
    work_per_sweep: float | None = None
    ended: str = ""
    thin: int | None = None

    def to_data(self):
        """Plain data from which `from_data` makes it again.

        Returns
        -------
        data : dict
        """
        return dict(vars(self))

    @classmethod
    def from_data(cls, data):
        """Make the warm-up of `to_data` again.

        Parameters
        ----------
        data : dict

        Returns
        -------
        warmup : Warmup

        Raises
        ------
        ValueError
            If the data, which may come from a file, are not those of a warm-up.
        """
        warmup = cls(**data)
        work, thin = warmup.work_per_sweep, warmup.thin
        known = warmup.n_rounds > 0 if type(warmup.n_rounds) is int else None
        if (
            known is None
            or not 0 <= warmup.n_rounds <= 60
            or (type(work) is float and 0.0 < work < math.inf) is not known
            or warmup.ended not in ("", "settled", "spent")
            or (type(thin) is int and thin >= 1) is not bool(warmup.ended)
            or (warmup.ended and not known)
        ):
            raise ValueError(f"the warm-up is {data!r}")
        return warmup


def is_settled(traces, names):
    """Whether chains agree, have enough effective draws and have stopped to drift.

    A single chain has only two halves to compare. With just enough effective draws their R-hat is
    often too high by chance, so it is settled when no trace drifts.

    Parameters
    ----------
    traces : dict of str to ndarray of shape (n_chains, n_recorded)
        With ``"log_density"`` where the model has it; drift is looked for there, or else in
        ``"log_joint"``.
    names : iterable of str

    Returns
    -------
    settled : bool
    """
    followed = traces.get("log_density", traces["log_joint"])
    if len(followed) == 1:
        names = tuple(names)
        return (
            _is_steady(followed)
            and all(_is_steady(traces[name]) for name in names)
            and not diagnostics.convergence_problems(traces, names, max_rhat=math.inf)
        )
    return _is_steady(followed) and not diagnostics.convergence_problems(traces, names)


def _is_steady(trace):
    """Whether its halves differ by no more than twice their error; a NaN is not steady."""
    difference, error = diagnostics.drift(trace)
    return bool(np.abs(difference) <= 2 * error)
