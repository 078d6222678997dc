from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.icp_network.moves._choice cimport Choice
from skbnp.icp_network.moves._newborn cimport Newborn
from skbnp.icp_network.moves._proposal cimport Proposal
from skbnp.mcmc.chain cimport Move


cdef class Births(Move):
    cdef:
        Network net
        Graph graph
        Choice choice
        Newborn newborn
        bint _paper
        Py_ssize_t n_attempts               # in a sweep
        public Py_ssize_t n_guard_rejections    # births that ``max_units`` refused
        Py_ssize_t[:, ::1] slots            # (2, n_slots) room of proposals: children, parents
        double[:, ::1] values               # (5, n_slots) and what else they have

    cdef int _reserve(self) except -1 nogil
    cdef void _point(self, Proposal* p, int kind) noexcept nogil
    cdef int _draw_kind(self) noexcept nogil
    cdef int _birth(self, int kind) except -1 nogil
    cdef int _death(self, int kind) except -1 nogil
    cdef double _log_return(self, Proposal* p) noexcept nogil
    cdef Py_ssize_t _attach(self, Proposal* p) noexcept nogil
    cdef void _draw_parameters(self, Proposal* p, Py_ssize_t slot) noexcept nogil
    cdef void _read(self, Proposal* p, Py_ssize_t slot) noexcept nogil
    cdef void _settle_birth(self, Proposal* p, Py_ssize_t slot) noexcept nogil
    cdef void _settle_death(self, Proposal* p, Py_ssize_t slot) noexcept nogil
