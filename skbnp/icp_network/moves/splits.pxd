from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport Move


cdef struct Insertion:
    # A node between a parent and a child, and the edge that it stands for.
    Py_ssize_t slot, parent, child
    double weight                   # from the node to the child
    double direct                   # of the edge from the parent to the child without it


cdef class Splits(Move):
    cdef:
        Network net
        Graph graph
        public Py_ssize_t n_guard_rejections    # splits that ``max_units`` refused
        Py_ssize_t[::1] mergeable           # (n_slots,)
        double[::1] residual                # (stride,) of the child without node and edge
        double[::1] drawn                   # (stride,) activations of the node

    cdef int _reserve(self) except -1 nogil
    cdef int _split(self) except -1 nogil
    cdef int _merge(self) except -1 nogil
    cdef void _draw_edge(self, Insertion* at) noexcept nogil
    cdef double _log_room(self, const Insertion* at) noexcept nogil
    cdef void _insert(self, const Insertion* at) noexcept nogil
    cdef void _take_away(self, const Insertion* at) noexcept nogil
    cdef Py_ssize_t _list_mergeable(self) noexcept nogil
    cdef bint _find_ends(self, Insertion* at) noexcept nogil
    cdef double _log_split(self, Insertion* at) noexcept nogil
    cdef double _log_merge(self, Insertion* at) noexcept nogil
    cdef void _regress_direct(
        self, const Insertion* at, double* mean, double* precision
    ) noexcept nogil
    cdef double _log_direct(
        self, const Insertion* at, double mean, double precision
    ) noexcept nogil
