from numpy.random cimport bitgen_t

from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.icp_network.moves._proposal cimport Proposal


cdef class Newborn:
    cdef:
        Network net
        Graph graph
        # Of the node in each row: mean given its parents, T of equation (I5.8), activations drawn.
        double[::1] mean, linear, drawn     # (stride,)
        double[::1] residual                # (stride,) of one child

    cdef bint match_moments(self, Proposal* p, Py_ssize_t slot, bint birth) noexcept nogil
    cdef double draw(self, Proposal* p, Py_ssize_t slot, bitgen_t* rng) noexcept nogil
    cdef double weigh(self, Proposal* p, Py_ssize_t slot) noexcept nogil
    cdef double _average_mean(self, Proposal* p, Py_ssize_t slot, double* variance) noexcept nogil
    cdef void _fill_mean(self, Proposal* p, Py_ssize_t slot) noexcept nogil
    cdef double _compare_children(
        self, Proposal* p, Py_ssize_t slot, bint with_node, double* quadratic
    ) noexcept nogil
    cdef double _log_prior_ratio(self, Proposal* p, Py_ssize_t j) noexcept nogil
    cdef double _log_jacobian(self, double with_it, double without) noexcept nogil
