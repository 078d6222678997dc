from numpy.random cimport bitgen_t

from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network.moves._proposal cimport Proposal


cdef class Choice:
    cdef:
        Graph graph
        Py_ssize_t[::1] listed              # (n_slots,) scratch

    cdef int reserve(self) except -1 nogil
    cdef double draw(self, Proposal* p, bitgen_t* rng) noexcept nogil
    cdef double log_density(self, Proposal* p) noexcept nogil
    cdef double log_death(self, Proposal* p, Py_ssize_t n_eligible) noexcept nogil
    cdef Py_ssize_t choose_death(
        self, int kind, Py_ssize_t* n_eligible, bitgen_t* rng
    ) noexcept nogil
    cdef Py_ssize_t count_eligible(self, int kind, Py_ssize_t child) noexcept nogil
    cdef bint _is_eligible(self, int kind, Py_ssize_t slot) noexcept nogil
    cdef bint _may_lose_parents(self, Py_ssize_t slot) noexcept nogil
    cdef double _draw_child(self, Proposal* p, bitgen_t* rng) noexcept nogil
    cdef double _draw_children(self, Proposal* p, bitgen_t* rng) noexcept nogil
    cdef Py_ssize_t _draw_number(self, Py_ssize_t n, bitgen_t* rng) noexcept nogil
    cdef double _draw_parents(self, Proposal* p, bitgen_t* rng) noexcept nogil
    cdef double _log_parents(self, Proposal* p) noexcept nogil
    cdef double _log_interval(self, Proposal* p) noexcept nogil
