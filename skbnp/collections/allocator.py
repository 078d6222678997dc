"""Freed memory of workers, which they would otherwise give back and ask for again in every cell."""

import ctypes
import os
import sys
from functools import cache

# Parameters of glibc's mallopt, and the bytes they are set to here: what is kept at the end of the
# heap, and from where on an array gets pages of its own.
_TRIM, _MMAP = -1, -3
_KEPT, _OF_ITS_OWN = 16 * 2**20, 4 * 2**20


@cache
def keep_freed_memory():
    """Let this process keep a few megabytes that it has freed.

    Dask has its workers start with ``MALLOC_TRIM_THRESHOLD_=65536``, by which they return freed
    memory at once. Where rows are visited cell by cell, zeroing new pages is then more than half
    of the time. Nothing is changed where there is no such setting, or where somebody has set
    ``MALLOC_MMAP_THRESHOLD_`` too and so has thought about it.

    Returns
    -------
    is_changed : bool
    """
    is_of_dask = "MALLOC_TRIM_THRESHOLD_" in os.environ
    if not sys.platform.startswith("linux") or not is_of_dask:
        return False
    if "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc alone
    if mallopt is None:
        return False
    return bool(mallopt(_TRIM, _KEPT)) and bool(mallopt(_MMAP, _OF_ITS_OWN))
