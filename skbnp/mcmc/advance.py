"""One chain, block by block: its plan, its sweeps, its tasks in the callbacks."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from skbnp.mcmc.chain_end import ChainEnd
from skbnp.mcmc.interrupt import HeldInterrupt
from skbnp.mcmc.rows import OneBlasThread
from skbnp.mcmc.warmup import WarmupRounds

# ProgressBar's work per finished task grows with the number of tasks before it: 4 chains of 5,000
# tasks kept it busy for 17 s, 4 of 1,000 for 0.7 s.
_MAX_TASKS_PER_CHAIN = 1000


class NonFiniteLogJointError(ArithmeticError):
    """The log joint density of a chain is no longer a finite number.

    Parameters
    ----------
    chain, sweep : int
        Both count from zero, `sweep` from the first one of the warm-up.
    move : str
        The move after which it happened, empty if the sampler does not know.
    value : float
        The log joint.
    """

    def __init__(self, chain, sweep, move, value):
        super().__init__(chain, sweep, move, value)  # the arguments, so that it pickles
        self.chain, self.sweep, self.move, self.value = chain, sweep, move, value

    def __str__(self):
        move = f", first after the move {self.move!r}" if self.move else ""
        return f"log joint is {self.value} in chain {self.chain} after sweep {self.sweep}{move}"


# -- one chain


@dataclass(frozen=True)
class Plan:
    """What all chains have in common.

    The plan of a round of warm-up ends with that round and keeps no draws; its ``recorded`` says
    from which sweep on figures are recorded, and how many sweeps apart.
    """

    make_sampler: Callable
    n_warmup: int
    n_draws: int
    thin: int
    density: Callable | None = None
    recorded: tuple[int, int] | None = None

    @property
    def is_round(self):
        """Whether this is a round of warm-up, after which another plan follows."""
        return self.recorded is not None

    def is_recorded(self, n_swept):
        """Whether figures are recorded once `n_swept` sweeps are done."""
        if not self.is_round:
            return False
        start, every = self.recorded
        return n_swept > start and (n_swept - start) % every == 0

    def n_recorded(self, n_swept):
        """How many times they have been recorded in this round by then."""
        start, every = self.recorded
        return max(0, n_swept - start) // every

    def has_figures(self, n_swept):
        """Whether figures are taken after that sweep, to be recorded or kept."""
        return self.is_kept(n_swept) or self.is_recorded(n_swept)

    @property
    def n_sweeps(self):
        return self.n_warmup + self.n_draws * self.thin

    def is_kept(self, n_swept):
        """Whether a draw is kept once `n_swept` sweeps are done."""
        return n_swept > self.n_warmup and (n_swept - self.n_warmup) % self.thin == 0

    def n_kept(self, n_swept):
        """How many draws have been kept once `n_swept` sweeps are done."""
        return max(0, n_swept - self.n_warmup) // self.thin


class ChainRun:
    """Where one chain stands.

    Within a process its sampler stays alive. On the way to another process the sampler shrinks
    to its state, from which the chain goes on there.
    """

    def __init__(self, index, seed, end=None):
        end = end or ChainEnd()
        self.index = index
        self.seed = seed
        self.record = {name: x.tolist() for name, x in end.record.items()}
        self.warmup_traces = {name: x.tolist() for name, x in end.warmup_traces.items()}
        self.log_sums = end.log_sums
        self.n_swept = end.n_swept
        self.counts = end.counts
        self.counts_after_warmup = end.counts_after_warmup
        # What was last seen of its traces, for those who watch.
        self.latest = {}
        self._sampler = None
        self._state = end.state

    def wake(self, make_sampler):
        """The sampler, built from the seed or the state if it is not alive here."""
        if self._sampler is None:
            bit_generator = np.random.default_rng(self.seed).bit_generator
            sampler = make_sampler(bit_generator, self.index)
            if self._state is not None:
                try:
                    sampler.set_state(self._state)
                except Exception as error:
                    raise ValueError(
                        f"chain {self.index} cannot go on from its last state: {error!r}"
                    ) from error
            self._sampler, self._state = sampler, None
        return self._sampler

    def end(self):
        """All that `__init__` needs to go on from here."""
        return ChainEnd(
            self.n_swept,
            self.counts,
            self.counts_after_warmup,
            self.get_state(),
            {name: np.array(x) for name, x in self.record.items()},
            {name: np.array(x) for name, x in self.warmup_traces.items()},
            self.log_sums,
        )

    def get_state(self):
        return self._state if self._sampler is None else self._sampler.get_state()

    def __getstate__(self):
        return {**self.__dict__, "_sampler": None, "_state": self.get_state()}

    def acceptance(self, move):
        """How many proposals of a move were accepted and made since the warm-up."""
        none = (0, 0)
        return np.subtract(self.counts.get(move, none), self.counts_after_warmup.get(move, none))


@dataclass
class Block:
    """What a chain has kept in one block: figures of every draw, and the stored draws.

    Beside them what it has cost: seconds, and those of them that went into figures; of these again
    the seconds of a look at the last state, which nothing but those who watch have asked for.
    """

    rows: list = field(default_factory=list)
    draws: list = field(default_factory=list)
    stopped: bool = False
    n_sweeps: int = 0
    n_figures: int = 0
    seconds: float = 0.0
    seconds_of_figures: float = 0.0
    seconds_of_look: float = 0.0


def advance(chain, plan, n_sweeps, store_every, task, look=False):
    """Take a chain on by some sweeps.

    With `look` the figures of its last state are taken, whether that is kept or not. Returns the
    chain, which is another object if it has come from another process, and what it has kept in
    these sweeps.
    """
    block = Block()
    with OneBlasThread(), HeldInterrupt():
        sampler = chain.wake(plan.make_sampler)
        began, n_before = time.perf_counter(), chain.n_swept
        for _ in range(n_sweeps):
            block.stopped = _sweep_as_task(task, sampler, chain, plan, store_every, block)
            if block.stopped:
                break
        block.n_sweeps = chain.n_swept - n_before
        if look and block.n_sweeps and not plan.has_figures(chain.n_swept):
            before = block.seconds_of_figures
            _take_figures(chain.latest["log_joint"], sampler, chain, plan, block)
            block.seconds_of_look = block.seconds_of_figures - before
        chain.counts = _counts(sampler)
        block.seconds = time.perf_counter() - began
    return chain, block


def _sweep(sampler, chain, plan, store_every, block):
    """One sweep and what must follow it."""
    sweep = chain.n_swept
    if sweep == plan.n_warmup:
        chain.counts_after_warmup = _counts(sampler)
    sampler.sweep()
    log_joint = float(sampler.log_joint())
    if not math.isfinite(log_joint):
        move = getattr(sampler, "broken_move", "")
        raise NonFiniteLogJointError(chain.index, sweep, move, log_joint)
    if sweep < plan.n_warmup:
        for name, value in {"log_joint": log_joint, **sampler.scalars()}.items():
            chain.warmup_traces.setdefault(name, []).append(float(value))
        sampler.adapt(sweep)
    chain.n_swept += 1
    chain.latest["log_joint"] = log_joint
    if plan.is_kept(chain.n_swept):
        is_stored = plan.n_kept(chain.n_swept) % store_every == 0
        figures, log_densities = _take_figures(log_joint, sampler, chain, plan, block)
        block.rows.append(figures)
        if log_densities is not None:
            before = chain.log_sums
            chain.log_sums = (
                log_densities if before is None else np.logaddexp(before, log_densities)
            )
        if is_stored:
            block.draws.append(_owned(sampler.draw()))
    elif plan.is_recorded(chain.n_swept):
        for name, value in _take_figures(log_joint, sampler, chain, plan, block)[0].items():
            chain.record.setdefault(name, []).append(float(value))


def _take_figures(log_joint, sampler, chain, plan, block):
    """The figures of the present sweep, which take time that is counted apart."""
    began = time.perf_counter()
    figures, log_densities = _figures(log_joint, sampler, plan.density)
    block.seconds_of_figures += time.perf_counter() - began
    block.n_figures += 1
    chain.latest = dict(figures)
    return figures, log_densities


def _figures(log_joint, sampler, density):
    """What is traced of the present sweep, and the log densities of the fixed rows or None."""
    if density is None:
        return {"log_joint": log_joint, **sampler.scalars()}, None
    found = density(sampler)
    return {"log_joint": log_joint, "log_density": float(found.mean()), **sampler.scalars()}, found


def _counts(sampler):
    return {move: (int(done), int(made)) for move, (done, made) in sampler.acceptance().items()}


def _owned(draw):
    """The draw with arrays that a later sweep cannot change: views copied, all read-only."""
    owned = {}
    for name, value in draw.items():
        if isinstance(value, np.ndarray):
            value = value if value.flags.owndata else value.copy()
            value.flags.writeable = False
        owned[name] = value
    return owned


# -- lengths: which plan the chains follow, given where the warm-up stands


@dataclass(frozen=True)
class FixedLengths:
    """Lengths that are known before: one plan."""

    plan: Plan
    is_fixed = True

    def plan_of(self, warmup):
        return self.plan

    def most_work(self, n_chains, warmup):
        """Sweeps of a chain, and how many times its figures are taken, in all."""
        return self.plan.n_sweeps, self.plan.n_draws


@dataclass(frozen=True)
class LengthsInRounds:
    """A warm-up in rounds, each a plan of its own."""

    make_sampler: Callable
    rounds: WarmupRounds
    n_draws: int
    density: Callable | None
    is_fixed = False

    def plan_of(self, warmup):
        if warmup.ended:
            n_warmup = self.rounds.end_of(warmup.n_rounds)
            return Plan(self.make_sampler, n_warmup, self.n_draws, warmup.thin, self.density)
        n_warmup = self.rounds.end_of(warmup.n_rounds + 1)
        recorded = self.rounds.recorded(warmup.n_rounds)
        return Plan(self.make_sampler, n_warmup, 0, 1, self.density, recorded)

    def most_work(self, n_chains, warmup):
        """Sweeps of a chain at most, in all; times that figures are taken from this round on."""
        if warmup is not None and warmup.ended:
            return self.plan_of(warmup).n_sweeps, self.n_draws
        return self.rounds.most_work(n_chains, self.n_draws, warmup)


# -- callbacks: fit -> chain -> sweep


@dataclass(frozen=True)
class ChainTask:
    """The task of one chain, as the callbacks of an estimator see it."""

    estimator: object
    context: object
    sweeps_per_task: int

    def begin(self):
        self.context.call_on_fit_task_begin(estimator=self.estimator)

    def end(self):
        self.context.call_on_fit_task_end(estimator=self.estimator)

    def begin_sweep(self, sweep):
        """Begin the task of a sweep; None for a sweep that is no task."""
        if (sweep + 1) % self.sweeps_per_task:
            return None
        context = self.context.subcontext(task_name="sweep", task_id=sweep // self.sweeps_per_task)
        return context.call_on_fit_task_begin(estimator=self.estimator)

    def end_sweep(self, context):
        """End the task of a sweep; return whether a callback says stop."""
        if context is None:
            return False
        stop = context.call_on_fit_task_end(estimator=self.estimator)
        # A context holds on to all its finished children, and is pickled with them.
        getattr(self.context, "_children_map", {}).pop(context.task_id, None)
        return stop


def chain_tasks(callbacks, n_chains, n_sweeps, is_exact):
    """The task of each chain, of so many sweeps or at most so many; None without callbacks."""
    if callbacks is None or not getattr(callbacks[0], "_skl_callbacks", []):
        return [None] * n_chains
    estimator, root = callbacks
    sweeps_per_task = -(-n_sweeps // _MAX_TASKS_PER_CHAIN)
    contexts = [
        root.subcontext(
            task_name="chain",
            task_id=None if root.sequential_subtasks else chain,
            max_subtasks=n_sweeps // sweeps_per_task if is_exact else None,
            # Sweeps are numbered here: a context counts only what has passed in its process.
            sequential_subtasks=False,
        )
        for chain in range(n_chains)
    ]
    return [ChainTask(estimator, context, sweeps_per_task) for context in contexts]


def _sweep_as_task(task, sampler, chain, plan, store_every, block):
    """Make one sweep, with its callbacks if there are any; return whether one says stop."""
    if task is None:
        _sweep(sampler, chain, plan, store_every, block)
        return False
    context = task.begin_sweep(chain.n_swept)
    _sweep(sampler, chain, plan, store_every, block)
    return task.end_sweep(context)
