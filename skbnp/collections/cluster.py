"""Blocks of rows on the workers of a cluster, through a client of `distributed`.

Only ``submit``, ``map``, ``compute`` and results of futures are used. What workers need to know
goes as the argument of one small task on which the others depend: data that are sent to workers by
themselves are lost with the worker that has them, those of a task are made again.
"""

import logging
import time
import uuid

import numpy as np

from skbnp.collections.here import readers_of
from skbnp.collections.work import Failed, joined, part_on_worker, same

_LOG = logging.getLogger("skbnp")
# Parts that are joined in one task; times that the tasks of a dead worker are tried again.
_FAN_IN, _RETRIES = 16, 3
# Seconds between two looks at whether there are still workers.
_LOOK_EVERY = 2.0


class Cluster:
    """Runs functions of blocks on workers.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client):
        self._client = client
        self._id = uuid.uuid4().hex[:12]
        self._n_rounds = self._n_sweeps = 0
        self._handles = self._places = None
        self._source = None
        workers = self._workers()
        if not workers:
            self._await_workers()
            workers = self._workers()
        self._first_workers = workers
        self.n_threads = sum(one["nthreads"] for one in workers.values())

    # -- blocks

    def delayed(self, X):
        """The blocks of a Dask collection, in order."""
        from distributed import futures_of

        # Dask's optimisation would lose what workers have already.
        in_memory = bool(futures_of(X))
        return np.ravel(X.to_delayed(optimize_graph=not in_memory)).tolist()

    def hold(self, source):
        """Take the blocks that will be read again and again, into the workers' memory if they fit.

        At most half of it: tasks need some, and so does whatever else is there.
        """
        limits = [one["memory_limit"] for one in self._workers().values()]
        fits = not all(limits) or source.n_bytes <= sum(limits) / 2
        self._handles = self._computed(source.blocks) if fits else self._readable(source.blocks)
        self._source, self._places = source, source.places
        _LOG.info(
            "X takes %.0f MB in %d blocks and is %s; %d workers with %d threads",
            source.n_bytes / 1e6,
            len(source.blocks),
            "held in the memory of the workers" if fits else "read again in every pass",
            len(limits),
            self.n_threads,
        )

    def map(self, function, places, blocks, arguments):
        """``function(block, where, *arguments)`` of each block, in order."""
        key = self._new_key()
        blocks = self._readable(blocks)
        futures = self._submit_each(
            function, blocks, places, *zip(*arguments, strict=True), key=key
        )
        return [self._result(future) for future in futures]

    def _readable(self, blocks):
        """Blocks as arguments of tasks, which compute them in their own place where they can."""
        from distributed import futures_of

        # What workers have already cannot be made anew within a task.
        graphs = {id(block.dask): block for block in blocks}
        if any(futures_of(block) for block in graphs.values()):
            return self._computed(blocks)
        return readers_of(blocks)

    def _computed(self, blocks):
        """Blocks as futures, whose results stay in the memory of workers."""
        return self._client.compute(list(blocks), retries=_RETRIES)

    def part(self, places, batch, n_sweeps):
        """Answers to a batch for all rows that are held: a Part, or Failed."""
        self._n_sweeps = n_sweeps
        key = self._new_key()
        record = self._submit(same, batch, key=f"{key}-record")
        records = [record] * len(places)
        level = self._submit_each(part_on_worker, self._handles, places, records, key=key)
        depth = 0
        while len(level) > 1:
            depth += 1
            level = [
                self._submit(joined, level[t : t + _FAN_IN], record, key=f"{key}-{depth}.{t}")
                for t in range(0, len(level), _FAN_IN)
            ]
        return self._result(level[0])

    def _new_key(self):
        self._n_rounds += 1
        return f"skbnp-{self._id}-{self._n_rounds}"

    def _submit(self, function, *arguments, key):
        self._check_running()
        return self._client.submit(function, *arguments, key=key, retries=_RETRIES, pure=False)

    def _submit_each(self, function, blocks, places, *arguments, key):
        """A task for each block, all at once: schedulers remember what they were sent at a time."""
        self._check_running()
        # The client would stop at the shortest list without a word.
        columns = zip(*zip(blocks, places, *arguments, strict=True), strict=True)
        keys = [f"{key}-{where.block}" for where in places]
        return self._client.map(function, *columns, key=keys, retries=_RETRIES, pure=False)

    def _check_running(self):
        if self._client.status != "running":
            raise RuntimeError(self._words_of_lost("its scheduler"))

    # -- what may go wrong

    def _result(self, future):
        """The result of a future, however long it takes as long as there are workers."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        alone_since = None
        while True:
            try:
                return future.result(timeout=_LOOK_EVERY)
            except TimeoutError:
                if future.status == "error":
                    return self._blamed(future.exception())
                alone_since = self._alone_since(alone_since)
            except KilledWorker as error:
                raise MemoryError(self._words_of_killed(error)) from None
            except (CommClosedError, OSError) as error:
                if self._client.status != "running":
                    raise RuntimeError(self._words_of_lost("its scheduler")) from error
                return self._blamed(error)
            except Exception as error:
                return self._blamed(error)
            except BaseException as error:
                # A future that was cancelled: asyncio's error is no Exception.
                if type(error).__name__ != "CancelledError":
                    raise
                raise RuntimeError(self._words_of_lost("its scheduler")) from error

    def _blamed(self, error):
        """The error of a task as the failure of the block which could not be made."""
        if type(error).__name__ in ("CancelledError", "FutureCancelledError"):
            raise RuntimeError(self._words_of_lost("its scheduler")) from error
        for where, handle in zip(self._places or (), self._handles or (), strict=True):
            if getattr(handle, "status", None) == "error":
                return Failed(where, error)
        raise error

    def _workers(self):
        return self._client.scheduler_info().get("workers", {})

    def _patience(self):
        """Seconds that a cluster may be without workers."""
        import dask
        from dask.utils import parse_timedelta

        configured = dask.config.get("distributed.scheduler.no-workers-timeout", None)
        return parse_timedelta(configured or dask.config.get("distributed.comm.timeouts.connect"))

    def _alone_since(self, since):
        """The moment since which there has been no worker, None if there is one."""
        if self._client.status == "running" and self._workers():
            return None
        since = since or time.monotonic()
        if time.monotonic() - since > self._patience():
            lost = f"its last worker, and none has come for {self._patience():g} s"
            raise RuntimeError(self._words_of_lost(lost))
        return since

    def _await_workers(self):
        since = None
        while not self._workers():
            since = self._alone_since(since)
            time.sleep(0.1)

    def _words_of_lost(self, what):
        n_sweeps = self._n_sweeps
        sweeps = f"{n_sweeps} sweeps of all chains" if n_sweeps else "no sweep"
        return (
            f"the cluster has lost {what}: {sweeps} of this fit were done. With "
            "checkpoint=directory, fit of the same X with the same parameters goes on from where "
            "it was last written, on any cluster"
        )

    def _words_of_killed(self, error):
        """What to do where workers die of one task: their memory is too small for their blocks."""
        # Just now there may be none.
        workers = (self._workers() or self._first_workers).values()
        n_threads = max((one["nthreads"] for one in workers), default=1)
        limit = min((one["memory_limit"] for one in workers if one["memory_limit"]), default=0)
        words = f"workers died again and again of {self._where_of(error)}: {error}"
        if not limit or self._source is None:
            return words
        # A block as it is stored, and room for what reading it takes.
        rows = int(limit / 4 / n_threads / self._source.row_bytes) // 65_536 * 65_536
        return (
            f"{words}. {n_threads} threads with blocks of {self._source.block_bytes / 1e6:.3g} MB "
            f"must fit well within the limit of {limit / 1e6:.3g} MB of a worker: use "
            f"X.rechunk({{0: {max(rows, 65_536)}}}), fewer threads a worker or more memory"
        )

    def _where_of(self, error):
        """The block that a killed task was about, by its key."""
        key = getattr(error, "task", "")
        for where, handle in zip(self._places or (), self._handles or (), strict=True):
            # Of a block that is held it may be any of the tasks that it comes from.
            is_lost = getattr(handle, "status", None) == "error"
            if is_lost or str(key).endswith(f"-{where.block}"):
                return str(where)
        return "a block of X"
