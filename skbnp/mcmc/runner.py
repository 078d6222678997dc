"""Run the chains of any sampler side by side.

A sampler is known by its contract alone: ``sweep``, ``adapt``, ``log_joint``, ``scalars``,
``draw``, ``get_state``, ``set_state`` and ``acceptance``. Chains advance together in blocks of
sweeps. Where a block ends never touches a draw, nor does which thread, process or machine does
the sweeping.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from joblib import Parallel, delayed

from skbnp.mcmc.posterior import Posterior
from skbnp.mcmc.rows import one_blas_thread

# Seconds of work between two meetings of the chains. To another process the state travels each
# time, so there they meet less often.
_BLOCK_SECONDS = 0.5
_BLOCK_SECONDS_ACROSS_PROCESSES = 5.0

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


def run_chains(
    make_sampler,
    *,
    n_chains,
    n_warmup,
    n_draws,
    thin=1,
    seed,
    n_jobs=None,
    verbose=0,
    callbacks=None,
):
    """Run several chains and keep their draws.

    Parameters
    ----------
    make_sampler : callable
        ``make_sampler(bit_generator, chain)`` builds the sampler of one chain, where the chain
        runs. It must pickle for chains to run in other processes.
    n_chains : int
    n_warmup : int
        Sweeps per chain before the first draw, each followed by ``adapt``. May be zero.
    n_draws : int
        Draws kept per chain.
    thin : int, default=1
        One draw is kept after every `thin` sweeps: a chain makes ``n_warmup + n_draws * thin``.
    seed : int
        Entropy of the seed sequence that gives each chain its own.
    n_jobs : int or None, default=None
        Chains at a time, in threads unless `joblib.parallel_config` names another backend.
    verbose : int, default=0
        1 prints the expected time once ten sweeps are done, 2 also a line per block.
    callbacks : tuple (estimator, context), default=None
        The estimator that is being fitted and its root callback context, made with
        ``max_subtasks=n_chains``. Below it each chain is a task "chain" and each of its sweeps,
        warm-up included, a task "sweep"; of more than 1000 sweeps evenly spaced ones, at most
        1000.

    Returns
    -------
    posterior : Posterior
        The same draws whatever `n_jobs` and the backend.

    Raises
    ------
    NonFiniteLogJointError
        If the log joint of a chain is not finite after a sweep.
    RuntimeError
        If a callback stops the run before each chain has kept a draw.

    Notes
    -----
    A callback stops the run by returning True at the end of a sweep task. That chain makes no
    further sweep, the others finish their block, and all are cut to the draws which they have in
    common: so where blocks end does not show in what is kept.
    """
    _check_sizes(n_chains=(n_chains, 1), n_warmup=(n_warmup, 0), n_draws=(n_draws, 1))
    _check_sizes(thin=(thin, 1), seed=(seed, 0))
    plan = _Plan(make_sampler, n_warmup, n_draws, thin)
    chains = [
        _Chain(index, child)
        for index, child in enumerate(np.random.SeedSequence(seed).spawn(n_chains))
    ]
    tasks = _chain_tasks(callbacks, n_chains, plan.n_sweeps)
    for task in filter(None, tasks):
        task.begin()
    chains, records = _run_blocks(chains, plan, n_jobs, verbose, tasks)
    for task in filter(None, tasks):
        task.end()
    return _gather(chains, records, plan, seed)


def _check_sizes(**sizes):
    for name, (value, least) in sizes.items():
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise TypeError(f"{name} must be an integer, got {value!r}")
        if value < least:
            raise ValueError(f"{name} must be >= {least}, got {value}")


# -- one chain


@dataclass(frozen=True)
class _Plan:
    """What all chains have in common."""

    make_sampler: Callable
    n_warmup: int
    n_draws: int
    thin: int

    @property
    def n_sweeps(self):
        return self.n_warmup + self.n_draws * self.thin

    def is_kept(self, n_swept):
        """Whether a draw is kept once `n_swept` sweeps are done."""
        return n_swept > self.n_warmup and (n_swept - self.n_warmup) % self.thin == 0


class _Chain:
    """Where one chain stands.

    Within a process its sampler stays alive. On the way to another process the sampler shrinks
    to its state, from which the chain goes on there.
    """

    def __init__(self, index, seed):
        self.index = index
        self.seed = seed
        self.n_swept = 0
        self.counts_after_warmup = {}
        self.counts = {}
        self._sampler = None
        self._state = None

    def wake(self, make_sampler):
        """The sampler, built from the seed or the state if it is not alive here."""
        if self._sampler is None:
            bit_generator = np.random.default_rng(self.seed).bit_generator
            sampler = make_sampler(bit_generator, self.index)
            if self._state is not None:
                sampler.set_state(self._state)
            self._sampler, self._state = sampler, None
        return self._sampler

    def get_state(self):
        return self._state if self._sampler is None else self._sampler.get_state()

    def __getstate__(self):
        return {**self.__dict__, "_sampler": None, "_state": self.get_state()}

    def acceptance(self, move):
        """How many proposals of a move were accepted and made since the warm-up."""
        none = (0, 0)
        return np.subtract(self.counts.get(move, none), self.counts_after_warmup.get(move, none))


@dataclass
class _Record:
    """What a chain has kept: draws, and as many rows of traced figures."""

    draws: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    stopped: bool = False

    def extend(self, other):
        self.draws += other.draws
        self.rows += other.rows
        self.stopped |= other.stopped


def _advance(chain, plan, n_sweeps, task):
    """Take a chain on by some sweeps.

    Returns the chain, which is another object if it has come from another process, and the
    record of these sweeps.
    """
    record = _Record()
    with one_blas_thread:
        sampler = chain.wake(plan.make_sampler)
        for _ in range(n_sweeps):
            record.stopped = _sweep_as_task(task, sampler, chain, plan, record)
            if record.stopped:
                break
        chain.counts = _counts(sampler)
    return chain, record


def _sweep(sampler, chain, plan, record):
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
        sampler.adapt(sweep)
    chain.n_swept += 1
    if plan.is_kept(chain.n_swept):
        record.rows.append({"log_joint": log_joint, **sampler.scalars()})
        record.draws.append(_owned(sampler.draw()))


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


# -- all chains


def _run_blocks(chains, plan, n_jobs, verbose, tasks):
    """Advance all chains together, block by block, to the end or until a callback stops them."""
    records = [_Record() for _ in chains]
    clock = _Clock(len(chains), plan.n_sweeps, verbose)
    n_sweeps = 1
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", batch_size=1, pre_dispatch="all")
    with one_blas_thread, parallel:
        while clock.n_swept < plan.n_sweeps and not any(record.stopped for record in records):
            n_sweeps = min(n_sweeps, plan.n_sweeps - clock.n_swept)
            results = parallel(
                delayed(_advance)(chain, plan, n_sweeps, task)
                for chain, task in zip(chains, tasks, strict=True)
            )
            seconds = clock.block_done(n_sweeps)
            across = any(new is not old for (new, _), old in zip(results, chains, strict=True))
            chains = [chain for chain, _ in results]
            for record, (_, block) in zip(records, results, strict=True):
                record.extend(block)
            n_sweeps = _block_length(n_sweeps, seconds, across)
    return chains, records


def _block_length(n_sweeps, seconds, across_processes):
    """Length of the next block, from the length and the duration of the last."""
    target = _BLOCK_SECONDS_ACROSS_PROCESSES if across_processes else _BLOCK_SECONDS
    # At most tenfold: the first sweeps may be unlike the later ones.
    return int(np.clip(n_sweeps * target / max(seconds, 1e-9), 1, 10 * n_sweeps))


class _Clock:
    """Counts sweeps, times blocks and tells the user how long it will take."""

    def __init__(self, n_chains, n_sweeps, verbose):
        self.n_chains = n_chains
        self.n_sweeps = n_sweeps
        self.verbose = verbose
        self.n_swept = 0
        self._started = self._last = time.perf_counter()
        self._after_first = None
        self._has_told = False

    def block_done(self, n_sweeps):
        """Count the sweeps of a block that ends now; return its duration."""
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        self.n_swept += n_sweeps
        if self._after_first is None:
            self._after_first = (now, self.n_swept)
        self._tell(now - self._started, self._remaining(now))
        return seconds

    def _remaining(self, now):
        """Expected seconds to the end; start-up is in the first block, so leave it out."""
        then, n_then = self._after_first
        if self.n_swept == n_then:
            then, n_then = self._started, 0
        return (now - then) / (self.n_swept - n_then) * (self.n_sweeps - self.n_swept)

    def _tell(self, elapsed, remaining):
        if self.verbose >= 1 and not self._has_told and self.n_swept >= 10:
            total = _duration(elapsed + remaining)
            print(
                f"{self.n_chains} chains of {self.n_sweeps} sweeps: about {total} in all",
                flush=True,
            )
            self._has_told = True
        if self.verbose >= 2:
            print(
                f"sweep {self.n_swept} of {self.n_sweeps}: {_duration(elapsed)}, "
                f"about {_duration(remaining)} left",
                flush=True,
            )


def _duration(seconds):
    """Seconds as a person says them."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _gather(chains, records, plan, seed):
    """Make the posterior from what the chains have kept."""
    n_draws = min(len(record.draws) for record in records)
    if n_draws == 0:
        n_swept = min(chain.n_swept for chain in chains)
        raise RuntimeError(
            f"a callback stopped the run after {n_swept} sweeps, before every chain had kept a "
            f"draw: the first comes after {plan.n_warmup + plan.thin} sweeps"
        )
    names = records[0].rows[0]
    moves = dict.fromkeys(move for chain in chains for move in chain.counts)
    return Posterior(
        [record.draws[:n_draws] for record in records],
        {
            name: [[row[name] for row in record.rows[:n_draws]] for record in records]
            for name in names
        },
        acceptance={move: [chain.acceptance(move) for chain in chains] for move in moves},
        n_warmup=plan.n_warmup,
        sweeps_per_draw=plan.thin,
        seed=seed,
        final_states=[chain.get_state() for chain in chains],
    )


# -- callbacks: fit -> chain -> sweep


@dataclass(frozen=True)
class _ChainTask:
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


def _chain_tasks(callbacks, n_chains, n_sweeps):
    """The task of each chain; None for all where there are no callbacks."""
    if callbacks is None or not getattr(callbacks[0], "_skl_callbacks", []):
        return [None] * n_chains
    estimator, root = callbacks
    sweeps_per_task = -(-n_sweeps // _MAX_TASKS_PER_CHAIN)
    contexts = [
        root.subcontext(
            task_name="chain",
            task_id=None if root.sequential_subtasks else chain,
            max_subtasks=n_sweeps // sweeps_per_task,
            # Sweeps are numbered here: a context counts only what has passed in its process.
            sequential_subtasks=False,
        )
        for chain in range(n_chains)
    ]
    return [_ChainTask(estimator, context, sweeps_per_task) for context in contexts]


def _sweep_as_task(task, sampler, chain, plan, record):
    """Make one sweep, with its callbacks if there are any; return whether one says stop."""
    if task is None:
        _sweep(sampler, chain, plan, record)
        return False
    context = task.begin_sweep(chain.n_swept)
    _sweep(sampler, chain, plan, record)
    return task.end_sweep(context)
