"""Run the chains of any sampler side by side.

A sampler is known by its contract alone: ``sweep``, ``adapt``, ``log_joint``, ``scalars``,
``draw``, ``get_state``, ``set_state`` and ``acceptance``. Chains advance together in blocks of
sweeps. Where a block ends never touches a draw, nor does which thread, process or machine does
the sweeping.

A run follows one plan after the other. A plan of fixed lengths is the only one; a warm-up in
rounds has one for each round, which keeps no draws, and a last one of fixed lengths.
"""

import math
from concurrent.futures import BrokenExecutor
from numbers import Integral

import numpy as np
from joblib import Parallel, delayed

from skbnp.mcmc.advance import (
    ChainRun,
    FixedLengths,
    LengthsInRounds,
    Plan,
    advance,
    chain_tasks,
)
from skbnp.mcmc.caller import warn
from skbnp.mcmc.diagnostics import MIN_DRAWS
from skbnp.mcmc.interrupt import HeldInterrupt
from skbnp.mcmc.posterior import Posterior
from skbnp.mcmc.progress import Watch
from skbnp.mcmc.rows import OneBlasThread
from skbnp.mcmc.warmup import Warmup, WarmupRounds

# Seconds of work between two meetings of the chains. To another process the state travels each
# time, so there they meet less often.
_BLOCK_SECONDS = 0.5
_BLOCK_SECONDS_ACROSS_PROCESSES = 5.0

# Times in a row that a block is tried again after a worker process died.
_MAX_BROKEN = 3


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
    reported=None,
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
        1 prints where the run stands, once ten sweeps are done, then once a minute and at the
        end; 2 prints it each time the chains meet. With a checkpoint also where the run starts.
    callbacks : tuple (estimator, context), default=None
        The estimator that is being fitted and its root callback context, made with
        ``max_subtasks=n_chains``, or more where other tasks follow. Below it each chain is a task
        "chain" and each of its sweeps, warm-up included, a task "sweep"; of more than 1000 sweeps
        evenly spaced ones, at most 1000. A callback with a method
        ``on_progress(estimator, context, progress)`` is told by a
        `skbnp.mcmc.progress.Progress` where the run stands whenever the chains meet.
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
    reported : tuple of str, default=None
        The traces of which `verbose` and callbacks tell; None means all.

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
        lengths = LengthsInRounds(make_sampler, n_warmup, n_draws, density)
    else:
        _check_sizes(n_warmup=(n_warmup, 0), thin=(thin, 1))
        lengths = FixedLengths(Plan(make_sampler, n_warmup, n_draws, thin, density))
    run = _Run(lengths, seed, n_chains, store, start)
    most_sweeps, _ = lengths.most_work(n_chains, None)
    tasks = chain_tasks(callbacks, n_chains, most_sweeps, lengths.is_fixed)
    for task in filter(None, tasks):
        task.begin()
    if checkpoint is not None and not run.is_done():
        checkpoint.begin()
    if verbose >= 1 and checkpoint is not None:
        print(f"checkpoint {checkpoint.path}: {_where(run)}", flush=True)
    watch = Watch(callbacks, verbose, reported)
    try:
        interrupted = _run_blocks(run, n_jobs, tasks, checkpoint, watch)
    except BaseException:
        watch.failed()
        raise
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
            ChainRun(index, child, end)
            for index, (child, end) in enumerate(
                zip(np.random.SeedSequence(seed).spawn(n_chains), ends, strict=True)
            )
        ]
        self._n_at_start = sum(chain.n_swept for chain in self.chains)
        self.n_sweeps_run = 0
        self.stopped = False
        self._of_last_round = {}
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
        self._of_last_round = traces
        self.warmup = self._lengths.rounds.after_round(self.warmup, traces)
        self.plan = self._lengths.plan_of(self.warmup)
        for chain in self.chains:
            chain.record = {}

    @property
    def n_swept(self):
        """Sweeps that every chain has made."""
        return min(chain.n_swept for chain in self.chains)

    def most_work(self):
        """Sweeps of a chain at most, in all, and times that its figures are still to be taken."""
        n_sweeps, n_figures = self._lengths.most_work(len(self.chains), self.warmup)
        plan, n_swept = self.plan, self.n_swept
        n_taken = plan.n_recorded(n_swept) if plan.is_round else plan.n_kept(n_swept)
        return n_sweeps, max(0, n_figures - n_taken)

    def traces_so_far(self, names=None):
        """Traces of the draws so far, in a round of warm-up of what is recorded in it.

        Of the round before as long as there is too little of either. Arrays (n_chains, n), for
        those of the names that there are; None means all.
        """
        if self.plan.is_round:
            columns = {
                name: [chain.record.get(name, []) for chain in self.chains]
                for name in self.chains[0].record
            }
        else:
            columns = self.kept.traces()
        n_common = min((len(x) for chains in columns.values() for x in chains), default=0)
        if n_common < 2 * MIN_DRAWS and self._of_last_round:
            columns, n_common = self._of_last_round, None
        return {
            name: np.array([x[:n_common] for x in columns[name]])
            for name in (columns if names is None else names)
            if name in columns
        }

    def take(self, results):
        """Take over what `advance` returned for each chain."""
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
        if plan.n_kept(end.n_swept) != n_kept:
            raise ValueError(f"a chain of {end.n_swept} sweeps must not have {n_kept} draws")
        n_sums = np.shape(end.log_sums)
        if plan.density is not None and n_sums != (plan.density.n_rows,) * bool(n_kept):
            raise ValueError(f"a chain of {n_kept} draws must not have densities {n_sums}")
        if plan.is_round:
            _check_record(end.record, plan.n_recorded(end.n_swept), ends[0].record)


def _check_record(record, n_recorded, of_first):
    """What a chain has recorded in its round of warm-up has the right shape."""
    shapes = {getattr(x, "shape", None) for x in record.values()}
    dtypes = {getattr(x, "dtype", None) for x in record.values()}
    wanted = {(n_recorded,)} if n_recorded else set()
    if shapes != wanted or dtypes > {np.dtype(float)} or (n_recorded and "log_joint" not in record):
        raise ValueError(f"a chain must have recorded {n_recorded} sweeps, got the shapes {shapes}")
    if n_recorded and of_first and record.keys() != of_first.keys():
        raise ValueError("all chains must have recorded the same figures")


def _run_blocks(run, n_jobs, tasks, checkpoint, watch):
    """Advance all chains together, block by block, to the end or until somebody stops them.

    Returns whether that was Ctrl-C.
    """
    n_sweeps, n_broken = 1, 0
    watch.tell(run)
    with OneBlasThread(), HeldInterrupt() as interrupt:
        parallel = _Workers(n_jobs)
        with parallel:
            while not (run.is_done() or run.stopped or interrupt.requested):
                if run.is_at_end_of_plan():
                    run.decide()
                    continue
                plan = run.plan
                # Chains that an earlier stop has left behind catch up first.
                n_before = run.n_swept
                goal = min(n_before + n_sweeps, plan.n_sweeps)
                if n_before < plan.n_warmup + plan.thin:
                    # Before the first draw nobody knows how much room draws take.
                    goal = min(goal, plan.n_warmup + plan.thin)
                look = watch.wants_figures()
                calls = [
                    delayed(advance)(
                        chain, plan, max(0, goal - chain.n_swept), run.kept.store_every, task, look
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
                seconds = watch.block_done(goal - n_before, [block for _, block in results])
                across = any(
                    new is not old for (new, _), old in zip(results, run.chains, strict=True)
                )
                run.take(results)
                if not run.is_done():
                    watch.tell(run)
                if checkpoint is not None and not run.is_done() and checkpoint.is_due():
                    checkpoint.save(run.posterior())
                most = run.kept.most_draws() * plan.thin * run.kept.store_every
                n_sweeps = min(_block_length(goal - n_before, seconds, across), most)
        if checkpoint is not None and run.n_sweeps_run:
            checkpoint.save(run.posterior())
    watch.tell(run, has_ended=True)
    return interrupt.requested


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
