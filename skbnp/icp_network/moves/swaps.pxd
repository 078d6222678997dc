from skbnp.icp_network._child_regression cimport ChildRegression
from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport Move


cdef struct Pair:
    Py_ssize_t at                   # place of the lower node, the upper one is the next
    Py_ssize_t lower, upper         # slots
    bint joined                     # whether the upper is a parent of the lower


cdef class Swaps(Move):
    cdef:
        Network net
        Graph graph
        ChildRegression regression
        bint _broken                        # in this run

    cdef void _attempt(self) noexcept nogil
    cdef bint _choose(self, Pair* pair) noexcept nogil
    cdef int _add_evidence(self, const Pair* pair, double* ratio) noexcept nogil
    cdef void _exchange(self, Py_ssize_t at, bint joined) noexcept nogil
    cdef void _redraw(self, const Pair* pair) noexcept nogil
