"""Warnings of others that chains, which may be threads, keep to themselves."""

import threading
import warnings
from contextlib import contextmanager

# catch_warnings puts back the filters of all threads: interleaved, it would lose some of them.
_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def ignoring(category):
    """Leave out warnings of a category, in one thread at a time."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
