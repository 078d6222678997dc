"""Arrays that grow."""

import numpy as np


def grown(array, shape, dtype=None):
    """A larger array that begins with ``array``, zero beyond it; ``array`` may be None."""
    if array is None:
        return np.zeros(shape, dtype=dtype)
    old = np.asarray(array)
    new = np.zeros(shape, dtype=old.dtype)
    new[tuple(slice(n) for n in old.shape)] = old
    return new
