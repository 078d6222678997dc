from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport Move


cdef class Hyperparameters(Move):
    cdef:
        Network net
        Graph graph
        Py_ssize_t[::1] n_below             # (n_slots,)

    cdef int _reserve(self) except -1 nogil
    cdef void _draw_mass(self) noexcept nogil
    cdef double _exposure_of_mass(self) noexcept nogil
    cdef double _slice(self, double x, bint of_concentration) noexcept nogil
    cdef double _log_density(self, double x, bint of_concentration) noexcept nogil
    cdef double _log_concentration(self, double log_alpha) noexcept nogil
    cdef double _log_popularity(self, double log_phi) noexcept nogil
