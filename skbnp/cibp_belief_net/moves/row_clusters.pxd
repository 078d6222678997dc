from skbnp.cibp_belief_net._state cimport Network
from skbnp.mcmc.chain cimport Move


cdef class RowClusters(Move):
    cdef:
        Network net
        Py_ssize_t width                    # units of the top layer
        double[:, ::1] top                  # (n_samples, width) their activations
        double[:, ::1] total, square        # (n_cluster_slots, width) sums over a cluster's rows
        double[:, ::1] centre, spread       # of the predictive t laws: where, and 1 / width^2
        double[::1] level                   # (n_cluster_slots,) log density at the centre, summed
        double[::1] log_weight              # (n_cluster_slots + 1,)

    cdef int _reserve(self, Py_ssize_t n_clusters) except -1 nogil
    cdef Py_ssize_t _slot(self, Py_ssize_t k) noexcept nogil
    cdef void _gather(self) noexcept nogil
    cdef void _add(self, Py_ssize_t i, Py_ssize_t c, double sign) noexcept nogil
    cdef void _refresh(self, Py_ssize_t c) noexcept nogil
    cdef double _log_predictive(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil
    cdef void _renumber(self, Py_ssize_t source, Py_ssize_t to) noexcept nogil
    cdef void _clear(self, Py_ssize_t c) noexcept nogil
    cdef int _draw_labels(self) except -1 nogil
    cdef void _draw_laws(self) noexcept nogil
