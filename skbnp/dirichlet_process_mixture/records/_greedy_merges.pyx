"""Blocks united for as long as the log joint rises: for starts, not part of any chain."""

from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.dirichlet_process_mixture.moves.split_merge cimport SplitMerge

import numpy as np


cdef class GreedyMerges(SplitMerge):
    """Unite the two blocks that gain most until no two gain.

    Pieces of one cluster with many rows are merged too seldom by proposals: the division that would
    undo the merge has to be proposed with the probability that merging asks for, and the more rows
    there are the less likely any one division is. Cost: O(K^2 d^3) for K blocks, and O(K d^3) more
    for each merge.
    """

    def __init__(self, State state, bit_generator):
        super().__init__(state, 0, "sequential", bit_generator)

    cpdef int run(self) except -1:
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
        return 0

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
