"""Numbers that a count fixes, such as a log gamma of it, worked out once and remembered."""

import numpy as np

cdef Py_ssize_t FEWEST_PLACES = 64


cdef class ByCount:
    """Numbers by count. All counts of up to ``n_counts`` have a place of their own.

    Larger ones, of blocks with rows that are elsewhere, share places: the last of them is known.
    """

    def __init__(self, Py_ssize_t n_counts):
        cdef Py_ssize_t n_places = FEWEST_PLACES
        while n_places <= n_counts:
            n_places *= 2
        self.mask = n_places - 1
        self.count = np.full(n_places, -1, dtype=np.intp)
        self.number = np.zeros(n_places)

    cdef void forget(self) noexcept nogil:
        """All: the numbers of the prior that they depend on are others."""
        cdef Py_ssize_t place
        for place in range(self.mask + 1):
            self.count[place] = -1
