from skbnp.infinite_factor_clusterer._row_law cimport RowLaw
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Scores(Move):
    cdef:
        State state
        RowLaw row_law

    cdef int update(self) except -1 nogil
    cdef void draw_rows(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil
    cdef void fill_cells(self) noexcept nogil
