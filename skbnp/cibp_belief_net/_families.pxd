from skbnp.cibp_belief_net._clusters cimport Clusters


cdef class Families(Clusters):
    cdef:
        # A newborn unit and those that are born with it, layer by layer; the newborn comes first.
        Py_ssize_t n_born
        public Py_ssize_t[::1] born_layer, born_takers, born_slot  # (n_born_slots,)
        public Py_ssize_t[::1] born_edge_start  # (n_born_slots + 1,)
        public double[::1] born_bias, born_precision, born_rate  # (n_born_slots,)
        public double[:, ::1] born_pre, born_post  # (n_born_slots, stride)
        public double[:, ::1] born_cluster_mean, born_cluster_precision
        double[::1] born_mean               # (stride,) mean of the newborn's activations
        # Their edges upwards: a slot, or -1 - its place for one born now.
        public Py_ssize_t[::1] born_parent  # (n_born_edge_slots,)
        public double[::1] born_weight
        # What a birth or a death changes: children of each slot, units of each layer, who goes.
        public Py_ssize_t[::1] change       # (n_slots,)
        public unsigned char[::1] gone      # (n_slots,)
        public Py_ssize_t[::1] victim       # (n_slots,)
        Py_ssize_t n_victims
        public Py_ssize_t[::1] layer_change  # (n_layer_slots + 2,)
        public long n_guard_rejections

    cdef int _need_born(self, Py_ssize_t n) except -1 nogil
    cdef int _need_born_edges(self, Py_ssize_t n) except -1 nogil
    cdef int _draw_family(self, Py_ssize_t layer) except -1 nogil
    cdef int _draw_family_edges(self, Py_ssize_t layer) except -1 nogil
    cdef void _draw_family_values(self) noexcept nogil
    cdef void _draw_born_cluster_laws(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t _admit_family(self) except -1 nogil
    cdef void _forget_changes(self) noexcept nogil
    cdef bint _find_victims(self, Py_ssize_t slot) noexcept nogil
    cdef bint _has_far_edge(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t _count_singletons(
        self, Py_ssize_t child, Py_ssize_t layer, Py_ssize_t* out
    ) noexcept nogil
    cdef void _mark_victims(self) noexcept nogil
    cdef void _remove_victims(self) noexcept nogil
    cdef double _log_skip_factor(self, bint changed) noexcept nogil
    cdef double _log_skip_change(self) noexcept nogil
