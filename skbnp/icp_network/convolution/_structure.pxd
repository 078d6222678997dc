from numpy.random cimport bitgen_t

from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network.moves._choice cimport Choice
from skbnp.icp_network.moves._proposal cimport Proposal
from skbnp.icp_network.moves.orders cimport ExactOrders
from skbnp.icp_network.moves.splits cimport Splits


cdef class Structure:
    cdef:
        object _bit_generator               # owner of *rng, must outlive it
        bitgen_t* rng
        readonly Graph graph
        Choice choice
        Splits insertions
        ExactOrders orders
        readonly Py_ssize_t[::1] name       # (n_slots,) that a node keeps as long as it lives
        Py_ssize_t _next_name
        Py_ssize_t[:, ::1] slots            # (2, n_slots) room of proposals: children, parents
        Py_ssize_t[::1] listed              # (n_slots,) scratch

    cdef int _reserve(self) except -1
    cdef void _point(self, Proposal* p) noexcept
    cdef void _attach(self, Proposal* p) noexcept
    cdef double _toggle(self) except? 0.5
    cdef double _birth(self) except? 0.5
    cdef double _death(self) except? 0.5
    cdef double _remove(self, Py_ssize_t slot, Py_ssize_t n_eligible) except? 0.5
    cdef double _order(self) except? 0.5
    cdef double _split(self) except? 0.5
    cdef double _merge(self) except? 0.5
    cdef double _take_out(self, Py_ssize_t slot, Py_ssize_t n_mergeable) except? 0.5
