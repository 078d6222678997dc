"""Labels of rows one by one, each given all others."""

import numpy as np

from skbnp.dirichlet_process_mixture._row_scores cimport RowScores
from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.mcmc.chain cimport BROKEN, DONE, Move
from skbnp.numerics cimport rng as draws

from skbnp.mcmc.fields import Field


cdef enum:
    AHEAD = 2       # rows from one that is asked for to the one that is redrawn


cdef class Gibbs(Move):
    """z_i | z_-i, X for rows in a fresh random order: Neal (2000), algorithm 3; equation (M4.1).

    O(K d^2) a row with full covariance, O(K d) else; an incomplete row under full covariance
    O(K d^3).
    """

    NAME = "gibbs"
    COUNTS = ("gibbs",)  # rows that moved, and rows that were redrawn
    FIELDS = (Field("order", int, ("n_samples",)),)

    def __init__(self, State state, n_rows, bint remembers, bit_generator):
        """Redraws ``n_rows`` rows, chosen at random; ``remembers`` the imputations it makes."""
        super().__init__(bit_generator)
        self.state = state
        self.scores = RowScores(state)
        self.order = np.arange(state.n_samples)
        self.n_rows = min(n_rows, state.n_samples)
        self._remembers = remembers
        self._has_holes = self.has_holes()

    @classmethod
    def of(cls, State state, sweep, bit_generator):
        """All rows, or with a pass over all rows at once some of them.

        That pass remembers all imputations; this one might make only some.
        """
        if not sweep.by_rows:
            return None
        n_rows = sweep.n_subset if sweep.at_once else state.n_samples
        return cls(state, n_rows, not sweep.at_once, bit_generator)

    @property
    def n_samples(self):
        """Number of rows."""
        return self.state.n_samples

    cdef bint has_holes(self) noexcept nogil:
        """Whether some row lacks cells; else no row is asked."""
        cdef Py_ssize_t i
        for i in range(self.state.n_samples):
            if self.state.family.incomplete(i):
                return True
        return False

    def check(self, values):
        """Whether the order is one."""
        if not np.array_equal(np.sort(values["order"]), np.arange(self.n_samples)):
            raise ValueError("order of the state must be one of all rows")

    cpdef int run(self) except -1:
        cdef State state = self.state
        cdef Py_ssize_t t, i
        self._broken = False
        with nogil:
            self.shuffle()
            for t in range(self.n_rows):
                i = self.order[t]
                if t + AHEAD < self.n_rows:
                    state.fetch(self.order[t + AHEAD])
                if self._has_holes and state.family.augmented(i):
                    self.redraw_guest(i)
                else:
                    self.redraw_member(i)
                if self._has_holes and self._remembers and state.family.incomplete(i):
                    state.family.remember_imputation(i, state.n_imputed)
        state.n_imputed += self._remembers
        self.proposed[0] += self.n_rows
        return BROKEN if self._broken else DONE

    cdef void shuffle(self) noexcept nogil:
        """Put the rows of a pass, at random, to the front of ``order``."""
        cdef Py_ssize_t t, i, other
        for t in range(self.n_rows):
            other = t + draws.below(self.rng, self.state.n_samples - t)
            i = self.order[other]
            self.order[other] = self.order[t]
            self.order[t] = i

    cdef int redraw_member(self, Py_ssize_t i) except -1 nogil:
        """p(z_i | z_-i, X) without taking row i out first: most rows stay where they are."""
        cdef Py_ssize_t own = self.state.label[i], k
        cdef bint alone = self.state.family.n_members[own] == 1
        if not self.score_member(i):
            return self.redraw_guest(i)
        if self.scores.draw(draws.uniform(self.rng), &k) != 0:
            self._broken = True
            return 0
        if alone and k == self.state.n_clusters:
            k = own
        if k != own:
            self.accepted[0] += 1
            k = self.state.detach(i, k)
            self.state.attach(i, k)
        if self._has_holes and self.state.family.incomplete(i):
            self.state.family.missing_of_member(k, i)
        return 0

    cdef int redraw_guest(self, Py_ssize_t i) except -1 nogil:
        """p(z_i, missing cells of row i | the rest), row i taken out of its block first."""
        cdef Py_ssize_t own = self.state.label[i], k
        cdef bint alone = self.state.family.n_members[own] == 1
        self.state.detach(i, -1)
        if alone:
            own = self.state.n_clusters  # its block is gone: to stay is to open one
        self.scores.of_guest(i)
        if self.scores.draw(draws.uniform(self.rng), &k) != 0:
            self._broken = True
            k = self.state.n_clusters
        self.accepted[0] += k != own
        if self.state.family.incomplete(i):
            self.state.family.draw_missing(k, i, self.rng)
        self.state.attach(i, k)
        return 0

    cdef bint score_member(self, Py_ssize_t i) except -1 nogil:
        return self.scores.of_member(i)
