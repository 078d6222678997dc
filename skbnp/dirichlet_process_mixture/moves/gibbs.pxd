from skbnp.dirichlet_process_mixture._row_scores cimport RowScores
from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Gibbs(Move):
    cdef:
        State state
        readonly RowScores scores
        readonly Py_ssize_t n_rows              # redrawn in a sweep
        public Py_ssize_t[::1] order            # (n_samples,) of the rows in the last pass
        bint _remembers                         # counts the imputations of a sweep
        bint _has_holes                         # whether some row lacks cells
        bint _broken                            # in this pass some row had no finite score

    cdef bint has_holes(self) noexcept nogil
    cdef void shuffle(self) noexcept nogil
    cdef int redraw_member(self, Py_ssize_t i) except -1 nogil
    cdef int redraw_guest(self, Py_ssize_t i) except -1 nogil
    cdef bint score_member(self, Py_ssize_t i) except -1 nogil
