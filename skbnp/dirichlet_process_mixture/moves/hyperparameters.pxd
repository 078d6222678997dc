from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Concentration(Move):
    cdef State state

    cdef double redrawn(self) noexcept nogil


cdef class Discount(Move):
    cdef State state


cdef class PriorScale(Move):
    cdef:
        State state
        double[::1] log_weight                  # scratch, (n_grid,)

    cdef int weigh(self) noexcept nogil


cdef class LearnCovariance(Move):
    cdef State state
