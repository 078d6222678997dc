"""Run the chains of any sampler side by side.

A sampler is known by its contract alone: ``sweep``, ``adapt``, ``log_joint``, ``scalars``,
``draw``, ``get_state``, ``set_state`` and ``acceptance``. Chains advance together in blocks of
sweeps. Where a block ends never touches a draw, nor does which thread, process or machine does
the sweeping.

A run follows one plan after the other. A plan of fixed lengths is the only one; a warm-up in
rounds has one for each round, which keeps no draws, and a last one of fixed lengths.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from joblib import Parallel, delayed

from skbnp.mcmc.caller import warn
from skbnp.mcmc.interrupt import HeldInterrupt
from skbnp.mcmc.posterior import Posterior
from skbnp.mcmc.rows import one_blas_thread
from skbnp.mcmc.warmup import Warmup, WarmupRounds

# Seconds of work between two meetings of the chains. To another process the state travels each
# time, so there they meet less often.
_BLOCK_SECONDS = 0.5
_BLOCK_SECONDS_ACROSS_PROCESSES = 5.0

# Times in a row that a block is tried again after a worker process died.
_MAX_BROKEN = 3

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
    store=None,
    start=None,
    checkpoint=None,
    density=None,
):
    """Run several chains and keep their draws.

    Parameters
    ----------
    make_sampler : callable
        ``make_sampler(bit_generator, chain)`` builds the sampler of one chain, where the chain
        runs. It must pickle for chains to run in other processes.
    n_chains : int
    n_warmup : int or WarmupRounds
        Sweeps per chain before the first draw, each followed by ``adapt``. May be zero. With
        `WarmupRounds` as many as it decides; the draws are those of a run with that number.
    n_draws : int
        Draws kept per chain.
    thin : int, default=1
        One draw is kept after every `thin` sweeps: a chain makes ``n_warmup + n_draws * thin``.
        Not read with `WarmupRounds`, which has its own.
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
    store : int or None, default=None
        Bytes that the stored draws of all chains may take. When they would take more, every
        second one is let go, again and again, down to one draw per chain. None stores all.
    start : Posterior, default=None
        The result of an earlier run with the same samplers, seed, warm-up and `thin`, to go on
        from: what comes out is what a single run to `n_draws` would have given.
    checkpoint : Checkpoint, default=None
        Where to write, at intervals and at the end, what a later run can start from.
    density : callable, default=None
        ``density(sampler)`` gives the log densities (n_rows,) of some fixed rows in the present
        state of a sampler, in which it changes nothing. It must pickle. Their mean becomes the
        trace ``"log_density"``, and the posterior's `pool` rests on them.

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
    KeyboardInterrupt
        If Ctrl-C was pressed before each chain has kept a draw, or twice.
    OSError
        If the checkpoint cannot be written, before any sampling.

    Warns
    -----
    UserWarning
        If Ctrl-C was pressed: the draws made so far are kept. If the checkpoint could not be
        written later on.

    Notes
    -----
    A callback stops the run by returning True at the end of a sweep task. That chain makes no
    further sweep, the others finish their block, and all are cut to the draws which they have in
    common: so where blocks end does not show in what is kept.

    Ctrl-C takes effect when the chains meet next, within half a second or the longest sweep, in
    other processes within five. A worker process that dies costs its block, which is done again.
    """
    _check_sizes(n_chains=(n_chains, 1), n_draws=(n_draws, 1), seed=(seed, 0))
    if isinstance(n_warmup, WarmupRounds):
        lengths = _InRounds(make_sampler, n_warmup, n_draws, density)
        most_sweeps = n_warmup.most_sweeps(n_chains, n_draws)
    else:
        _check_sizes(n_warmup=(n_warmup, 0), thin=(thin, 1))
        lengths = _Fixed(_Plan(make_sampler, n_warmup, n_draws, thin, density))
        most_sweeps = lengths.plan.n_sweeps
    run = _Run(lengths, seed, n_chains, store, start)
    tasks = _chain_tasks(callbacks, n_chains, most_sweeps, lengths.is_fixed)
    for task in filter(None, tasks):
        task.begin()
    if checkpoint is not None and not run.is_done():
        checkpoint.begin()
    if verbose >= 1 and checkpoint is not None:
        print(f"checkpoint {checkpoint.path}: {_where(run)}", flush=True)
    interrupted = _run_blocks(run, n_jobs, verbose, tasks, checkpoint)
    for task in filter(None, tasks):
        task.end()
    posterior = run.posterior()
    posterior.interrupted = interrupted
    if posterior.n_draws < n_draws:
        _report_early_end(posterior, run.plan, n_draws, interrupted, checkpoint)
    return posterior


def _where(run):
    """Where a run starts, in words."""
    if run.n_swept == 0:
        return "starts anew"
    if run.is_done():
        return "all draws are there"
    if run.plan.is_round:
        return f"goes on after {run.n_swept} sweeps, in round {run.warmup.n_rounds + 1} of warm-up"
    return f"goes on after {run.n_swept} of {run.plan.n_sweeps} sweeps"


def _report_early_end(posterior, plan, n_draws, interrupted, checkpoint):
    """Say that there are fewer draws than asked for, or raise if there are none."""
    if posterior.n_draws == 0:
        if interrupted:
            kept = "nothing is kept" if checkpoint is None else f"{checkpoint.path} goes on there"
            raise KeyboardInterrupt(
                f"after {posterior.n_swept} sweeps, before the first draw; {kept}"
            )
        first = f"after {'more than ' * plan.is_round}{plan.n_warmup + plan.thin} sweeps"
        raise RuntimeError(
            f"a callback stopped the run after {posterior.n_swept} sweeps, before every chain had "
            f"kept a draw: the first comes {first}"
        )
    if interrupted:
        how = "warm_start=True" if checkpoint is None else "the same checkpoint directory"
        warn(
            f"Interrupted after {posterior.n_draws} of {n_draws} draws per chain, which are "
            f"kept; fit again with {how} to go on from here",
        )


def _check_sizes(**sizes):
    for name, (value, least) in sizes.items():
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise TypeError(f"{name} must be an integer, got {value!r}")
        if value < least:
            raise ValueError(f"{name} must be >= {least}, got {value}")


# -- one chain


@dataclass(frozen=True)
class _Plan:
    """What all chains have in common.

    The plan of a round of warm-up ends with that round, keeps no draws, and ``recorded`` are the
    sweep from which on figures are recorded, and every so manieth.
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

    @property
    def n_sweeps(self):
        return self.n_warmup + self.n_draws * self.thin

    def is_kept(self, n_swept):
        """Whether a draw is kept once `n_swept` sweeps are done."""
        return n_swept > self.n_warmup and (n_swept - self.n_warmup) % self.thin == 0

    def n_kept(self, n_swept):
        """How many draws have been kept once `n_swept` sweeps are done."""
        return max(0, n_swept - self.n_warmup) // self.thin


class _Chain:
    """Where one chain stands.

    Within a process its sampler stays alive. On the way to another process the sampler shrinks
    to its state, from which the chain goes on there.
    """

    def __init__(self, index, seed, end=None):
        end = end or {"n_swept": 0, "counts": {}, "counts_after_warmup": {}, "state": None}
        self.index = index
        self.seed = seed
        # Files of earlier versions lack these two.
        self.record = {name: x.tolist() for name, x in end.get("record", {}).items()}
        self.log_sums = end.get("log_sums")
        self.n_swept = end["n_swept"]
        self.counts = end["counts"]
        self.counts_after_warmup = end["counts_after_warmup"]
        self._sampler = None
        self._state = end["state"]

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
        """All that `__init__` needs to go on from here, as plain data."""
        return {
            "n_swept": self.n_swept,
            "counts": self.counts,
            "counts_after_warmup": self.counts_after_warmup,
            "state": self.get_state(),
            "record": {name: np.array(x) for name, x in self.record.items()},
            "log_sums": self.log_sums,
        }

    def get_state(self):
        return self._state if self._sampler is None else self._sampler.get_state()

    def __getstate__(self):
        return {**self.__dict__, "_sampler": None, "_state": self.get_state()}

    def acceptance(self, move):
        """How many proposals of a move were accepted and made since the warm-up."""
        none = (0, 0)
        return np.subtract(self.counts.get(move, none), self.counts_after_warmup.get(move, none))


@dataclass
class _Block:
    """What a chain has kept in one block: figures of every draw, and the stored draws."""

    rows: list = field(default_factory=list)
    draws: list = field(default_factory=list)
    stopped: bool = False


def _advance(chain, plan, n_sweeps, store_every, task):
    """Take a chain on by some sweeps.

    Returns the chain, which is another object if it has come from another process, and what it
    has kept in these sweeps.
    """
    block = _Block()
    with one_blas_thread, HeldInterrupt():
        sampler = chain.wake(plan.make_sampler)
        for _ in range(n_sweeps):
            block.stopped = _sweep_as_task(task, sampler, chain, plan, store_every, block)
            if block.stopped:
                break
        chain.counts = _counts(sampler)
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
        sampler.adapt(sweep)
    chain.n_swept += 1
    if plan.is_kept(chain.n_swept):
        is_stored = plan.n_kept(chain.n_swept) % store_every == 0
        figures, log_densities = _figures(log_joint, sampler, plan.density)
        block.rows.append(figures)
        if log_densities is not None:
            before = chain.log_sums
            chain.log_sums = (
                log_densities if before is None else np.logaddexp(before, log_densities)
            )
        if is_stored:
            block.draws.append(_owned(sampler.draw()))
    elif plan.is_recorded(chain.n_swept):
        for name, value in _figures(log_joint, sampler, plan.density)[0].items():
            chain.record.setdefault(name, []).append(float(value))


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
class _Fixed:
    """Lengths that are known before: one plan."""

    plan: _Plan
    is_fixed = True

    def plan_of(self, warmup):
        return self.plan


@dataclass(frozen=True)
class _InRounds:
    """A warm-up in rounds, each a plan of its own."""

    make_sampler: Callable
    rounds: WarmupRounds
    n_draws: int
    density: Callable | None
    is_fixed = False

    def plan_of(self, warmup):
        if warmup.ended:
            n_warmup = self.rounds.end_of(warmup.n_rounds)
            return _Plan(self.make_sampler, n_warmup, self.n_draws, warmup.thin, self.density)
        n_warmup = self.rounds.end_of(warmup.n_rounds + 1)
        recorded = self.rounds.recorded(warmup.n_rounds)
        return _Plan(self.make_sampler, n_warmup, 0, 1, self.density, recorded)


# -- all chains


class _Run:
    """All chains of a run and what they have kept."""

    def __init__(self, lengths, seed, n_chains, store, start):
        ends = [None] * n_chains if start is None else start.ends
        self._lengths = lengths
        self.warmup = None if lengths.is_fixed else Warmup()
        if start is not None and start.warmup is not None:
            self.warmup = start.warmup
        self.plan = plan = lengths.plan_of(self.warmup)
        if start is not None:
            _check_start(start, plan, seed, n_chains)
        self.seed = seed
        self.chains = [
            _Chain(index, child, end)
            for index, (child, end) in enumerate(
                zip(np.random.SeedSequence(seed).spawn(n_chains), ends, strict=True)
            )
        ]
        self._n_at_start = sum(chain.n_swept for chain in self.chains)
        self.n_sweeps_run = 0
        self.stopped = False
        self.kept = _Kept(n_chains, store, start)

    def is_done(self):
        """Whether every chain has made all its sweeps."""
        return not self.plan.is_round and self.n_swept >= self.plan.n_sweeps

    def is_at_end_of_plan(self):
        """Whether every chain has made the sweeps of the present plan."""
        return self.n_swept >= self.plan.n_sweeps

    def decide(self):
        """Take the plan that follows the round of warm-up which has just been made.

        The record of all chains decides, whatever thread or process has made it.
        """
        names = self.chains[0].record
        traces = {name: np.array([chain.record[name] for chain in self.chains]) for name in names}
        self.warmup = self._lengths.rounds.after_round(self.warmup, traces)
        self.plan = self._lengths.plan_of(self.warmup)
        for chain in self.chains:
            chain.record = {}

    @property
    def n_swept(self):
        """Sweeps that every chain has made."""
        return min(chain.n_swept for chain in self.chains)

    def take(self, results):
        """Take over what `_advance` returned for each chain."""
        self.chains = [chain for chain, _ in results]
        n_all = sum(chain.n_swept for chain in self.chains)
        # Not the difference to before: a chain of this process has counted on by itself.
        self.n_sweeps_run = n_all - self._n_at_start
        self.stopped = self.stopped or any(block.stopped for _, block in results)
        self.kept.extend([block for _, block in results])

    def posterior(self):
        """What there is so far."""
        moves = dict.fromkeys(move for chain in self.chains for move in chain.counts)
        return Posterior(
            self.kept.draws,
            self.kept.traces(),
            store_every=self.kept.store_every,
            n_draws=self.plan.n_draws,
            acceptance={move: [chain.acceptance(move) for chain in self.chains] for move in moves},
            n_warmup=self.plan.n_warmup,
            sweeps_per_draw=self.plan.thin,
            seed=self.seed,
            ends=[chain.end() for chain in self.chains],
            n_sweeps_run=self.n_sweeps_run,
            warmup=self.warmup,
        )


class _Kept:
    """The traces of all chains, and as many of their draws as there is room for.

    Every ``store_every``-th draw is stored, where ``store_every`` is the smallest power of two
    with which the draws that all chains have in common fit into the room. It never falls, so it
    does not matter at which moments one looks.
    """

    def __init__(self, n_chains, room, start):
        self.room = room
        self.store_every = 1
        self.draws = [[] for _ in range(n_chains)]
        self._sizes = [[] for _ in range(n_chains)]
        self._columns = {}
        if start is not None:
            self.store_every = start.store_every
            self.draws = start.all_draws()
            self._sizes = [[_size(draw) for draw in chain] for chain in self.draws]
            self._warn_of_lost_draws()
            self._columns = {
                name: [x.tolist() for x in chains] for name, chains in start.all_traces.items()
            }
            self._make_room()

    def extend(self, blocks):
        for chain, block in enumerate(blocks):
            for row in block.rows:
                for name, value in row.items():
                    column = self._columns.setdefault(name, [[] for _ in self.draws])
                    column[chain].append(value)
            self.draws[chain] += block.draws
            self._sizes[chain] += [_size(draw) for draw in block.draws]
        self._make_room()

    def traces(self):
        return self._columns

    def most_draws(self):
        """Draws per chain that a block may store without going far beyond the room."""
        n_stored = sum(map(len, self._sizes))
        if self.room is None or not n_stored:
            return math.inf
        mean_size = sum(map(sum, self._sizes)) / n_stored
        return max(1, int(self.room / 4 / (mean_size * len(self.draws))))

    def _warn_of_lost_draws(self):
        """Say so when there is room again for what an earlier run has let go."""
        if self.store_every > 1 and (
            self.room is None or 2 * sum(map(sum, self._sizes)) <= self.room
        ):
            warn(
                f"The earlier run had room for 1 of {self.store_every} draws. What it let go does "
                "not come back, and later draws are stored as sparsely",
            )

    def _make_room(self):
        n_common = min((len(x) for x in self._columns.get("log_joint", [()])), default=0)
        while self._is_too_large(n_common):
            self.store_every *= 2
            self.draws = [chain[1::2] for chain in self.draws]
            self._sizes = [chain[1::2] for chain in self._sizes]

    def _is_too_large(self, n_common):
        if self.room is None or 2 * self.store_every > n_common:
            return False
        n_stored = n_common // self.store_every
        return sum(sum(chain[:n_stored]) for chain in self._sizes) > self.room


def _size(draw):
    """Bytes that a draw takes, its Python objects included."""
    return 200 + sum(120 + getattr(value, "nbytes", 0) for value in draw.values())


def _check_start(start, plan, seed, n_chains):
    """An earlier run that this one can go on from has the same shape; files may hold anything."""
    ends = start.ends
    same = (start.n_chains, len(ends), start.n_warmup, start.sweeps_per_draw, start.seed)
    if same != (n_chains, n_chains, plan.n_warmup, plan.thin, seed):
        raise ValueError(
            "start must have the run's n_chains, n_warmup, thin and seed, got "
            f"{same[0]} (with {same[1]} ends), {same[2]}, {same[3]} and {same[4]}"
        )
    if plan.is_round is (start.warmup is None or bool(start.warmup.ended)):
        raise ValueError("start must have the run's kind of warm-up")
    if start.store_every > plan.n_draws and not plan.is_round:
        raise ValueError(
            f"n_draws must be >= {start.store_every} to go on from a run that stored every "
            f"{start.store_every}th draw, got {plan.n_draws}"
        )
    lengths = [len(x) for x in start.all_traces.get("log_joint", [()] * n_chains)]
    for end, n_kept in zip(ends, lengths, strict=True):
        if type(end["n_swept"]) is not int or plan.n_kept(end["n_swept"]) != n_kept:
            raise ValueError(f"a chain of {end['n_swept']!r} sweeps must not have {n_kept} draws")
        n_sums = np.shape(end.get("log_sums"))
        if plan.density is not None and n_sums != (plan.density.n_rows,) * bool(n_kept):
            raise ValueError(f"a chain of {n_kept} draws must not have densities {n_sums}")
        if plan.is_round:
            _check_record(end["record"], plan.n_recorded(end["n_swept"]), ends[0]["record"])


def _check_record(record, n_recorded, of_first):
    """What a chain has recorded in its round of warm-up has the right shape."""
    shapes = {getattr(x, "shape", None) for x in record.values()}
    dtypes = {getattr(x, "dtype", None) for x in record.values()}
    wanted = {(n_recorded,)} if n_recorded else set()
    if shapes != wanted or dtypes > {np.dtype(float)} or (n_recorded and "log_joint" not in record):
        raise ValueError(f"a chain must have recorded {n_recorded} sweeps, got the shapes {shapes}")
    if n_recorded and of_first and record.keys() != of_first.keys():
        raise ValueError("all chains must have recorded the same figures")


def _run_blocks(run, n_jobs, verbose, tasks, checkpoint):
    """Advance all chains together, block by block, to the end or until somebody stops them.

    Returns whether that was Ctrl-C.
    """
    n_sweeps, n_broken = 1, 0
    clock = _clock_of(run, verbose)
    with one_blas_thread, HeldInterrupt() as interrupt:
        parallel = _Workers(n_jobs)
        with parallel:
            while not (run.is_done() or run.stopped or interrupt.requested):
                if run.is_at_end_of_plan():
                    run.decide()
                    clock = _clock_of(run, verbose)
                    continue
                plan = run.plan
                # Chains that an earlier stop has left behind catch up first.
                n_before = run.n_swept
                goal = min(n_before + n_sweeps, plan.n_sweeps)
                if n_before < plan.n_warmup + plan.thin:
                    # Before the first draw nobody knows how much room draws take.
                    goal = min(goal, plan.n_warmup + plan.thin)
                calls = [
                    delayed(_advance)(
                        chain, plan, max(0, goal - chain.n_swept), run.kept.store_every, task
                    )
                    for chain, task in zip(run.chains, tasks, strict=True)
                ]
                try:
                    results = parallel(calls)
                except BrokenExecutor:
                    # A worker process died. Nothing of the block has been taken over: do it again.
                    n_broken += 1
                    if n_broken > _MAX_BROKEN and not interrupt.requested:
                        raise
                    parallel.renew()
                    continue
                n_broken = 0
                seconds = clock.block_done(goal - n_before)
                across = any(
                    new is not old for (new, _), old in zip(results, run.chains, strict=True)
                )
                run.take(results)
                if checkpoint is not None and not run.is_done() and checkpoint.is_due():
                    checkpoint.save(run.posterior())
                most = run.kept.most_draws() * plan.thin * run.kept.store_every
                n_sweeps = min(_block_length(goal - n_before, seconds, across), most)
        if checkpoint is not None and run.n_sweeps_run:
            checkpoint.save(run.posterior())
    return interrupt.requested


def _clock_of(run, verbose):
    """A clock for the sweeps of the present plan."""
    of_round = f", round {run.warmup.n_rounds + 1} of warm-up" if run.plan.is_round else ""
    return _Clock(len(run.chains), run.n_swept, run.plan.n_sweeps, verbose, of_round)


class _Workers:
    """joblib's workers, kept from block to block, and anew when one of them has died."""

    def __init__(self, n_jobs):
        self._n_jobs = n_jobs
        self._parallel = None

    def __enter__(self):
        self._parallel = Parallel(
            n_jobs=self._n_jobs, prefer="threads", batch_size=1, pre_dispatch="all"
        )
        self._parallel.__enter__()
        return self

    def __exit__(self, *exception):
        return self._parallel.__exit__(*exception)

    def renew(self):
        self.__exit__(None, None, None)
        self.__enter__()

    def __call__(self, calls):
        return self._parallel(calls)


def _block_length(n_sweeps, seconds, across_processes):
    """Length of the next block, from the length and the duration of the last."""
    target = _BLOCK_SECONDS_ACROSS_PROCESSES if across_processes else _BLOCK_SECONDS
    # At most tenfold: the first sweeps may be unlike the later ones.
    return int(np.clip(n_sweeps * target / max(seconds, 1e-9), 1, 10 * n_sweeps))


class _Clock:
    """Counts sweeps, times blocks and tells the user how long it will take."""

    def __init__(self, n_chains, n_swept, n_sweeps, verbose, of_what=""):
        self.of_what = of_what
        self.n_chains = n_chains
        self.n_sweeps = n_sweeps
        self.verbose = verbose
        self.n_swept = self._n_at_start = n_swept
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
            then, n_then = self._started, self._n_at_start
        if self.n_swept == n_then:
            return math.inf
        return (now - then) / (self.n_swept - n_then) * (self.n_sweeps - self.n_swept)

    def _tell(self, elapsed, remaining):
        if self.verbose >= 1 and not self._has_told and self.n_swept - self._n_at_start >= 10:
            total = _duration(elapsed + remaining)
            print(
                f"{self.n_chains} chains of {self.n_sweeps - self._n_at_start} sweeps"
                f"{self.of_what}: about {total} in all",
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


def _chain_tasks(callbacks, n_chains, n_sweeps, is_exact):
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
    return [_ChainTask(estimator, context, sweeps_per_task) for context in contexts]


def _sweep_as_task(task, sampler, chain, plan, store_every, block):
    """Make one sweep, with its callbacks if there are any; return whether one says stop."""
    if task is None:
        _sweep(sampler, chain, plan, store_every, block)
        return False
    context = task.begin_sweep(chain.n_swept)
    _sweep(sampler, chain, plan, store_every, block)
    return task.end_sweep(context)
