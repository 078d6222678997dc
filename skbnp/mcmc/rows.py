"""Work on rows in fixed blocks, by a few threads.

The blocks depend on the number of rows alone and results come back in block order, so a sum over
rows is the same to the last bit whatever the number of threads.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import ClassVar

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import ThreadpoolController

BLOCK_SIZE = 1024
_local = threading.local()


def row_blocks(n_rows, size=BLOCK_SIZE):
    """Cut rows into blocks.

    Parameters
    ----------
    n_rows : int
    size : int, default=1024
        Rows per block; the last one may be shorter.

    Returns
    -------
    blocks : list of slice
    """
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def for_row_blocks(function, n_rows, size=BLOCK_SIZE, *, n_threads=1):
    """Call a function on every block of rows.

    Parameters
    ----------
    function : callable
        Called as ``function(start, stop)``. Threads help only where it releases the GIL.
    n_rows : int
    size : int, default=1024
        Rows per block.
    n_threads : int, default=1

    Returns
    -------
    results : list
        One result per block, in block order. If a call fails its exception is raised, once all
        threads have come to rest.
    """
    with OneBlasThread():
        return _for_blocks(function, row_blocks(n_rows, size), n_threads)


def _for_blocks(function, blocks, n_threads):
    n_parts = min(n_threads, len(blocks))
    if n_parts <= 1:
        return [function(block.start, block.stop) for block in blocks]

    def work(first):
        return [function(block.start, block.stop) for block in blocks[first::n_parts]]

    pool = _pool(n_threads)
    futures = [pool.submit(work, first) for first in range(n_parts)]
    try:
        parts = [future.result() for future in futures]
    finally:
        wait(futures)  # also after an error nobody may touch the rows behind the caller's back
    return [parts[i % n_parts][i // n_parts] for i in range(len(blocks))]


def _pool(n_threads):
    """The calling thread's own pool, kept because to start threads takes longer than many blocks.

    A forked process has none of the threads of its parent, hence the process in the key.
    """
    key = (os.getpid(), n_threads)
    if getattr(_local, "key", None) != key:
        _local.key, _local.pool = key, ThreadPoolExecutor(n_threads)
    return _local.pool


def available_threads(n_jobs=None):
    """Number of threads that `n_jobs` stands for.

    Parameters
    ----------
    n_jobs : int or None, default=None
        As everywhere in joblib: None takes the number of `joblib.parallel_config` (else one),
        -1 all cores, -2 all but one.

    Returns
    -------
    n_threads : int
        At least one and at most the cores of this machine, also where the jobs of the current
        configuration are those of a whole cluster.
    """
    return max(1, min(effective_n_jobs(n_jobs), cpu_count()))


@cache
def _controller():
    """The BLAS libraries of the process, looked up once: that takes milliseconds."""
    return ThreadpoolController()


class OneBlasThread:
    """Holds BLAS to one thread while any chain or row block of this process is at work.

    The threads are ours, and BLAS with threads of its own would fight them for the cores. The
    limit is one of the whole process, so among those at work the first sets it and the last
    lifts it. Ctrl-C may come at the very call that ends the work: then it ends with this object.
    """

    # An object may be deleted while its thread is in here for another.
    _lock = threading.RLock()
    _at_work: ClassVar[set] = set()
    _limits = None

    def __enter__(self):
        kind = OneBlasThread
        with kind._lock:
            is_first = not kind._at_work
            kind._at_work.add(id(self))
            if is_first:
                kind._limits = _controller().limit(limits=1, user_api="blas")

    def __exit__(self, *exception):
        kind = OneBlasThread
        with kind._lock:
            if kind._limits is not None and not kind._at_work - {id(self)}:
                kind._limits.restore_original_limits()
                kind._limits = None
            kind._at_work.discard(id(self))

    __del__ = __exit__
