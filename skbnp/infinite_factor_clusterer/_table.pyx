"""Which cells of the data are open, and which rows have the same ones."""

import numpy as np


cdef class Table:
    """Cells that are missing or censored, and the patterns of missing ones."""

    def __init__(self, X, limit):
        """X is (n_samples, n_features), NaN where missing, -inf where below ``limit``."""
        self.cell = np.zeros((0, 0), dtype=np.uint8)
        p = X.shape[1]
        missing, below = np.isnan(X), np.isneginf(X)
        if below.any() and limit is None:
            raise ValueError("limit must be given where X is -inf")
        self.limit = np.zeros(p) if limit is None else np.array(limit, dtype=np.float64)
        self.has_open_cells = missing.any() or below.any()
        if self.has_open_cells:
            cell = np.where(missing, MISSING, np.where(below, CENSORED, KNOWN))
            self.cell = cell.astype(np.uint8)
        # Rows without a missing cell come first.
        kinds, pattern = np.unique(np.packbits(missing, axis=1), axis=0, return_inverse=True)
        pattern = pattern.ravel()
        self.n_patterns = len(kinds)
        self.pattern = pattern.astype(np.intp)
        self.by_pattern = np.argsort(pattern, kind="stable").astype(np.intp)
        self.pattern_start = np.searchsorted(
            pattern[self.by_pattern], np.arange(self.n_patterns + 1)
        ).astype(np.intp)
        observed = [
            np.flatnonzero(~missing[self.by_pattern[self.pattern_start[g]]])
            for g in range(self.n_patterns)
        ]
        # For moves that take filled cells as they are.
        observed.append(np.arange(p))
        self.feature_start = np.cumsum([0, *map(len, observed)], dtype=np.intp)
        self.feature = np.concatenate([*observed, []]).astype(np.intp)
