"""Tables, ways to hold them, and questions for tests of collections."""

import numpy as np

from skbnp.collections.reading import Reading
from skbnp.collections.service import StoredRows


def table(n_samples=40_000, n_features=3, seed=0, dtype=np.float32):
    """Normal numbers with a few missing cells."""
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (n_samples, n_features)).astype(dtype)
    X[rng.random(X.shape) < 0.01] = np.nan
    return X


def memory_map(X, directory):
    """The same rows in a file."""
    found = np.memmap(directory / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
    found[:] = X
    found.flush()
    return np.memmap(directory / "rows", dtype=X.dtype, mode="r", shape=X.shape)


def prepared(X, n_threads=1, reading=None):
    """The rows of a collection, ready for questions."""
    rows = StoredRows(X, n_threads)
    rows.prepare(reading or Reading())
    return rows


# -- questions, which workers import


def sums_of_cell(X, rows, argument):
    """Sums of the columns times a number, and the numbers of the rows, as strings of bytes."""
    seen = np.where(np.isnan(X), 0.0, X) * argument
    return seen.sum(axis=0), [rows]


def sums_of_both(left, right):
    return left[0] + right[0], left[1] + right[1]


def broken(X, rows, argument):
    raise ValueError("this question has no answer")
