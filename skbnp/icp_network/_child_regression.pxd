from numpy.random cimport bitgen_t

from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.likelihoods.nonlinear_gaussian._regression cimport RowRegression


cdef class ChildRegression:
    cdef:
        Network net
        Graph graph
        RowRegression row
        readonly Py_ssize_t[::1] candidate  # (n_slots + 1,) slots of the candidates, in ``row``
        double[:, ::1] regressor            # (n_slots + 1, stride) by order or by candidate, then 1
        double[:, ::1] response             # (n_slots, stride) a of all nodes by order
        double[:, ::1] gram, side           # (n_slots + 1, n_slots + 1) Phi'Phi, Phi'a
        double[::1] drawn                   # (n_slots + 1,) weights of the candidates, bias

    cdef int reserve(self) except -1 nogil
    cdef void multiply(self) noexcept nogil
    cdef int start_among(self, Py_ssize_t at, Py_ssize_t first) noexcept nogil
    cdef int start_parents(self, Py_ssize_t child, Py_ssize_t other) noexcept nogil
    cdef int draw_weights(self, Py_ssize_t child, bitgen_t* rng) noexcept nogil
    cdef double squared_residual(self) noexcept nogil
    cdef double log_evidence_of_children(self, Py_ssize_t one, Py_ssize_t other) noexcept nogil
    cdef void redraw_children(
        self, Py_ssize_t one, Py_ssize_t other, bitgen_t* rng
    ) noexcept nogil
    cdef void _offer(self, Py_ssize_t child, Py_ssize_t j, double side) noexcept nogil
    cdef void _offer_bias(self, Py_ssize_t j, double side) noexcept nogil
    cdef int _start(self, Py_ssize_t child, Py_ssize_t size, const double* gram) noexcept nogil
    cdef void _put_ones(self, Py_ssize_t at) noexcept nogil
