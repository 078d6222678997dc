from skbnp.cibp_belief_net._network cimport Network


cdef class Clusters(Network):
    cdef:
        double[:, ::1] top                  # (n_samples, width) activations of the units above
        public double[:, ::1] total, square  # (n_cluster_slots, width) sums over a cluster's rows
        public double[:, ::1] centre, spread  # of the predictive t laws: where, and 1 / width^2
        public double[::1] level            # (n_cluster_slots,) log density at the centre, summed
        public double[::1] log_weight       # (n_cluster_slots + 1,)
        public long n_relabelled, n_labels_drawn

    cdef int _update_clusters(self) except -1 nogil
    cdef int _need_cluster_room(self, Py_ssize_t n_clusters, Py_ssize_t width) except -1 nogil
    cdef void _gather_top(self, Py_ssize_t width) noexcept nogil
    cdef void _add(self, Py_ssize_t i, Py_ssize_t c, double sign, Py_ssize_t width) noexcept nogil
    cdef void _refresh(self, Py_ssize_t c, Py_ssize_t width) noexcept nogil
    cdef double _log_predictive(
        self, Py_ssize_t i, Py_ssize_t c, Py_ssize_t width
    ) noexcept nogil
    cdef void _move_cluster(self, Py_ssize_t source, Py_ssize_t to) noexcept nogil
    cdef int _draw_labels(self, Py_ssize_t width) except -1 nogil
    cdef void _draw_cluster_laws(self, Py_ssize_t width) noexcept nogil
