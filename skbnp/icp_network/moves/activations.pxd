from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.likelihoods.nonlinear_gaussian._activations cimport Activations as UnitUpdate
from skbnp.mcmc.chain cimport Move


cdef struct Unit:
    # One node, and the rows at work: all, or those that lack its cell.
    Py_ssize_t slot
    Py_ssize_t n                    # rows at work
    const Py_ssize_t* row           # (n,) which they are; NULL: all
    double quadratic                # S of equation (I5.8)


cdef class Activations(Move):
    cdef:
        Network net
        Graph graph
        bint _on_grid                       # by grid proposals, else by ``update``
        UnitUpdate update
        Py_ssize_t[::1] visit               # (n_slots,)
        double[:, ::1] residual             # (n_slots, stride) what a exceeds its mean by
        # Of the unit's rows at work.
        double[::1] own, output, mean, linear   # (stride,) a, u, mean of a, T

    cdef int _reserve(self) except -1 nogil
    cdef Py_ssize_t _list_nodes(self) noexcept nogil
    cdef bint _update_node(self, Py_ssize_t slot) noexcept nogil
    cdef void _sum_children(self, Unit* unit) noexcept nogil
    cdef void _load(self, const Unit* unit) noexcept nogil
    cdef void _move(self, const Unit* unit) noexcept nogil
    cdef long long _update_on_grid(self, const Unit* unit, double spread) noexcept nogil
    cdef void _pass_on(self, const Unit* unit) noexcept nogil
    cdef bint _store(self, const Unit* unit) noexcept nogil


cdef inline Py_ssize_t row_of(const Unit* unit, Py_ssize_t i) noexcept nogil:
    return i if unit.row == NULL else unit.row[i]
