from skbnp.icp_network._graph cimport Graph
from skbnp.mcmc.chain cimport Move


cdef class ExactOrders(Move):
    cdef:
        Graph graph
        Py_ssize_t[::1] visit               # (n_slots,)
        double[::1] log_piece               # (n_slots + 1,) masses of the pieces of one order

    cdef int _reserve(self) except -1 nogil
    cdef int _draw(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t _weigh_pieces(
        self, Py_ssize_t slot, double low, double high, Py_ssize_t first
    ) noexcept nogil
    cdef double _pass(self, Py_ssize_t slot, Py_ssize_t i, double level) noexcept nogil


cdef class ProposedOrders(Move):
    cdef:
        Graph graph
        Py_ssize_t[::1] visit               # (n_slots,)

    cdef int _reserve(self) except -1 nogil
    cdef void _propose(self, Py_ssize_t slot) noexcept nogil
