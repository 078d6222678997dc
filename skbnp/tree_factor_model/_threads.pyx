"""Work that several threads do item by item: blocks or pieces of rows, leaves, features.

Items depend on the state alone, write to places of their own that are added in order, and draw
random numbers keyed by row, leaf or feature. So a chain is the same to the last bit however items
are distributed over threads.
"""

from skbnp.mcmc.chain cimport BROKEN, DONE


cdef class Scratch:
    """What one thread needs to work on an item."""

    def __init__(self, State state):
        self.law = Law(state.rows, state.max_depth)
        self.system = System(state)


cdef class Work:
    """One kind of work; ``item`` does the k-th part of it."""

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        return 0

    cdef int fail(self) noexcept nogil:
        """An item had no finite result; others go on."""
        self.failed = True
        return 0


cdef class Pool:
    """Threads and their scratch."""

    def __init__(self, State state, for_rows=None):
        """``for_rows(function, n_items, size)`` calls ``function(start, stop)`` for every so many.

        By threads if it likes; default: one after the other.
        """
        self.state = state
        self._for_rows = for_rows or in_order
        self._scratch = []

    cdef int run(self, Work work, Py_ssize_t n_items) except -1:
        """Do all items; BROKEN where one of them failed."""
        self._work = work
        work.failed = False
        self._for_rows(self._do, n_items, 1)
        return BROKEN if work.failed else DONE

    def _do(self, Py_ssize_t start, Py_ssize_t stop):
        """Items start..stop-1 of the work at hand; called by several threads."""
        cdef Scratch scratch
        cdef Work work = self._work
        cdef Py_ssize_t k
        try:
            scratch = self._scratch.pop()
        except IndexError:
            scratch = Scratch(self.state)
        with nogil:
            for k in range(start, stop):
                work.item(scratch, k)
        self._scratch.append(scratch)


def in_order(function, n_items, size):
    """Call function(start, stop) for each block of the items, one after the other."""
    for start in range(0, n_items, size):
        function(start, min(start + size, n_items))
