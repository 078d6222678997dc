from skbnp.icp_network._child_regression cimport ChildRegression
from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport Move


cdef class Rotations(Move):
    cdef:
        Network net
        Graph graph
        ChildRegression regression
        Py_ssize_t n_attempts               # in a sweep
        Py_ssize_t[::1] orphan              # (n_slots,)
        double[:, ::1] before               # (2, stride) activations before the move

    cdef int _reserve(self) except -1 nogil
    cdef Py_ssize_t _list_orphans(self) noexcept nogil
    cdef void _attempt(self) noexcept nogil
    cdef void _turn(self, Py_ssize_t one, Py_ssize_t other, double angle) noexcept nogil
