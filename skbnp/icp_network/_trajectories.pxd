from skbnp.icp_network._rows cimport Rows


cdef class Trajectories(Rows):
    cdef:
        Py_ssize_t n_leapfrog
        public double step
        double _total_acceptance            # since the last adaptation
        long _n_adapting
        # By position in ``forward``.
        public double[:, ::1] path_pre, path_post   # (n_slots, stride) a and u
        public double[:, ::1] noise, impulse        # (n_slots, stride) e and its momentum
        public double[:, ::1] slope                 # (n_slots, stride) of the log density by a
        # What the latent of a row's own class exceeds its mean by, its momentum and the
        # gradient by it but for its own density.
        public double[::1] lead, lead_impulse, lead_slope   # (stride,)
        # Weights, then biases, then log precisions; a zero where there is none.
        public double[::1] value, momentum, gradient    # (n_edges + 2 n_slots,)
        public double[::1] inertia                       # the same
        public long n_trajectories, n_trajectories_tried

    cdef void _adapt_step(self, double rate) noexcept nogil
    cdef double _precision_along(self, Py_ssize_t edge) noexcept nogil
    cdef bint _has_free_log(self, Py_ssize_t p) noexcept nogil
    cdef double _shape(self) noexcept nogil
    cdef int _move_along(self) except -1 nogil
    cdef int _need_values(self) except -1 nogil
    cdef void _start_path(self) noexcept nogil
    cdef double _follow_means(self) noexcept nogil
    cdef double _judge(self) noexcept nogil
    cdef bint _is_latent(self, Py_ssize_t p) noexcept nogil
    cdef void _differentiate(self) noexcept nogil
    cdef void _kick(self, double length) noexcept nogil
    cdef void _drift(self, double length) noexcept nogil
    cdef double _kinetic(self) noexcept nogil
    cdef void _take_path(self) noexcept nogil
