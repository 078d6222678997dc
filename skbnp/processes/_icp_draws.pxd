from libc.stdint cimport uint8_t
from numpy.random cimport bitgen_t


cdef class GrowingGraph:
    cdef:
        double[::1] order
        Py_ssize_t[::1] name
        uint8_t[:, ::1] Z
        Py_ssize_t n_nodes, n_hidden
        Py_ssize_t most_hidden

    cdef Py_ssize_t add(self, double order, Py_ssize_t name) except -1
    cdef bint is_full(self) noexcept nogil


cdef class DrawByOrder:
    cdef:
        object _bit_generator               # owner of *rng, must outlive it
        bitgen_t* rng
        double mass, alpha, phi
        Py_ssize_t most_hidden
        GrowingGraph network
        double per_mass                     # psi_n of equation (I1.2) of all nodes, so far
        Py_ssize_t n_counted                # the n that it is of

    cdef Py_ssize_t _climb(self, double x, double end) except -1
    cdef void _draw_children_of_hidden(self, Py_ssize_t parent) noexcept nogil
    cdef void _draw_children(
        self, Py_ssize_t parent, Py_ssize_t first, Py_ssize_t n_below, Py_ssize_t n_children,
        double shape,
    ) noexcept nogil


cdef class DrawNodeByNode:
    cdef:
        object _bit_generator               # owner of *rng, must outlive it
        bitgen_t* rng
        double mass, alpha, phi
        Py_ssize_t most_hidden
        GrowingGraph network

    cdef void _offer(self, Py_ssize_t i) noexcept nogil
    cdef void _choose_parents(self, Py_ssize_t i, Py_ssize_t n_counted) noexcept nogil
    cdef int _add_parents(self, Py_ssize_t i, Py_ssize_t n_counted) except -1
    cdef bint _is_taken(self, Py_ssize_t m, Py_ssize_t d) noexcept nogil
    cdef Py_ssize_t _count(self, Py_ssize_t i) noexcept nogil
    cdef double _weight_of_none(self, Py_ssize_t n_others) noexcept nogil
