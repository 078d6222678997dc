from skbnp.icp_network._child_regression cimport ChildRegression
from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport Move


cdef class Edges(Move):
    cdef:
        Network net
        Graph graph
        ChildRegression regression
        Py_ssize_t[::1] visit, turn         # (n_slots,) children, candidates: orders of visits
        Py_ssize_t[::1] n_below             # (n_slots,)

    cdef int _reserve(self) except -1 nogil
    cdef Py_ssize_t _list_children(self) noexcept nogil
    cdef int _update_child(self, Py_ssize_t child) noexcept nogil
    cdef void _toggle(self, Py_ssize_t child, Py_ssize_t j) noexcept nogil
    cdef double _log_prior_odds(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil
    cdef void _draw_precision(self, Py_ssize_t child) noexcept nogil
