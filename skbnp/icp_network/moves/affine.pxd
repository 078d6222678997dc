from skbnp.icp_network._child_regression cimport ChildRegression
from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport Move


cdef class Affine(Move):
    cdef:
        Network net
        Graph graph
        ChildRegression regression
        Py_ssize_t n_attempts               # in a sweep
        Py_ssize_t[::1] hidden              # (n_slots,)
        double[::1] before                  # (stride,) activations before the move

    cdef int _reserve(self) except -1 nogil
    cdef void _attempt(self) noexcept nogil
    cdef double _log_inverse_shift(self, double c, double t) noexcept nogil
    cdef double _log_weights_ratio(self, Py_ssize_t slot, double c) noexcept nogil
