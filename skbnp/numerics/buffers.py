"""Room that kernels fill: it begins empty and grows.

An array that a kernel does not need from the start is set to an empty one in ``__cinit__``, so that
its shape always says how much room there is. It is never None and never left unset: of an unset
memoryview the shape is 0 only by chance, and a build with checks refuses to look at it.
"""

import numpy as np


def longer(old, shape):
    """A larger array of the same dtype that begins with what the old one holds, then zeros.

    Parameters
    ----------
    old : array
    shape : tuple of int
        As that of ``old``, but for a first axis that is longer. An empty array may have any.
    """
    old = np.asarray(old)
    out = np.zeros(shape, dtype=old.dtype)
    if len(old) > 0:
        out[: len(old)] = old
    return out
