from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.dirichlet_process_mixture.moves._row_pass cimport RowPass
from skbnp.mcmc.chain cimport Move


cdef class AllRows(Move):
    cdef:
        State state
        RowPass row_pass
        readonly bint over_components           # of a finite mixture, empty ones included
        Py_ssize_t[::1] new_label               # scratch, (n_slots,)

    cdef bint anchored(self) noexcept nogil
    cdef double discount(self) noexcept nogil
    cdef int close_gaps(self, Py_ssize_t n_blocks) except -1 nogil
