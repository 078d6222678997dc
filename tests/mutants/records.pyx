"""Wrong formulas of the mixture over cells of rows."""

from skbnp.dirichlet_process_mixture.records._at_hand cimport RowsAtHand
from skbnp.dirichlet_process_mixture.records._split_merge cimport RecordSplitMerge


cdef class LaunchSeesDivision(RecordSplitMerge):
    """A pilot that begins, for a merge, from the division that it would undo."""

    def _launch(self, Py_ssize_t i, Py_ssize_t j, Py_ssize_t n, Py_ssize_t a, Py_ssize_t b):
        cdef RowsAtHand state = self.at_hand
        cdef Py_ssize_t t, row
        if state.label[i] == state.label[j]:
            RecordSplitMerge._launch(self, i, j, n, a, b)
            return
        state.family.clear(a)
        state.family.clear(b)
        state.family.add(a, i)
        state.family.add(b, j)
        for t in range(n):
            row = self.member[t]
            state.family.add(b if state.label[row] == state.label[j] else a, row)
