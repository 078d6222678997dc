"""Blocks divided and united until the log joint is high: for starts, not part of any chain."""

from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.dirichlet_process_mixture.moves.split_merge cimport SplitMerge
from skbnp.numerics cimport rng as draws

import numpy as np


cdef enum:
    LOOKED_AT = 30          # rows of a block from which the one that fits it least is taken


cdef class StartSearch(SplitMerge):
    """Splits of all blocks, and unions that raise the log joint.

    A chain needs many sweeps for both. It proposes to split the block of two random rows, so that
    small blocks are seldom tried; and it accepts a merge only where the division that would undo
    it is likely to be proposed, which is one of too many where a block has thousands of rows.
    """

    def __init__(self, State state, bit_generator):
        super().__init__(state, 0, "sequential", bit_generator)

    def split_blocks(self):
        """Propose to split every block at two random rows, and at a row and one unlike the block.

        The latter may be of a small cluster. Accepted as proposals of a chain are. Cost: O(N d^2).
        """
        self.division.discount = self.state.law.discount
        order = np.argsort(self.state.label, kind="stable")
        sizes = np.bincount(self.state.label, minlength=self.state.n_clusters)
        stops = np.cumsum(sizes)
        for start, stop in zip(stops - sizes, stops, strict=True):
            if stop - start > 1:
                self._split(order[start:stop], False)
                self._split(order[start:stop], True)

    cdef int _split(self, const Py_ssize_t[::1] rows, bint is_unlike) except -1:
        cdef Py_ssize_t n = len(rows), first = draws.below(self.rng, n), second = first
        if is_unlike:
            second = self._unlike(rows, first)
        while second == first:
            second = draws.below(self.rng, n)
        if self.state.label[rows[first]] != self.state.label[rows[second]]:
            return 0  # they have been divided
        self.state.reserve()
        return self.propose_split(rows[first], rows[second])

    cdef Py_ssize_t _unlike(self, const Py_ssize_t[::1] rows, Py_ssize_t first) noexcept nogil:
        """The row of some that fits the block least, or the first."""
        cdef Py_ssize_t found = first, row, _
        cdef double least = 0.0, fit
        for _ in range(LOOKED_AT):
            row = draws.below(self.rng, rows.shape[0])
            fit = self.state.family.log_predictive_own(self.state.label[rows[row]], rows[row])
            if row != first and (found == first or fit < least):
                least, found = fit, row
        return found

    def unite_blocks(self):
        """Unite the two blocks that gain most until no two gain.

        Cost: O(K^2 d^3) for K blocks, and O(K d^3) for each union.
        """
        cdef Py_ssize_t n = self.state.n_clusters, k, other
        gain = np.full((n, n), -np.inf)
        self.state.reserve()
        for k in range(n):
            for other in range(k):
                gain[k, other] = self.gain(k, other)
        while self.state.n_clusters > 1 and gain.max() > 0.0:
            k, other = np.unravel_index(gain.argmax(), gain.shape)
            self.unite(other, k)
            gain = self._of_united(gain, other, k)

    def _of_united(self, gain, Py_ssize_t first, Py_ssize_t gone):
        """Gains after a merge: the last block has taken the number of the one that is gone."""
        cdef Py_ssize_t last = self.state.n_clusters, k
        both_ways = np.maximum(gain, gain.T)
        both_ways[gone], both_ways[:, gone] = both_ways[last], both_ways[:, last]
        gain = np.tril(both_ways[:last, :last], -1)
        gain[np.triu_indices(last)] = -np.inf
        for k in range(last):
            if k != first:
                gain[max(k, first), min(k, first)] = self.gain(first, k)
        return gain

    cdef double gain(self, Py_ssize_t k, Py_ssize_t other) noexcept nogil:
        """Of the log joint, where two blocks become one."""
        cdef Py_ssize_t both = self.state.n_clusters + 1
        cdef double gain
        if self.state.family.merge(k, other, both) != 0:
            self.unite_by_rows(k, other, both)
        gain = -self.log_new_block(self.state.n_clusters - 1) - self.log_gain(k, other, both)
        self.state.family.clear(both)
        return gain

    cdef void unite(self, Py_ssize_t k, Py_ssize_t gone) noexcept nogil:
        """Let all rows of one block join another."""
        cdef Py_ssize_t i
        for i in range(self.state.n_samples):
            if self.state.label[i] == gone:
                self.state.label[i] = k
        self.state.rebuild_block(k)
        self.state.weigh(k)
        self.state.drop_block(gone, -1)
