from skbnp.icp_network._trajectories cimport Trajectories


cdef class Reshapes(Trajectories):
    cdef:
        public double[:, ::1] before        # (2, stride) activations of the units at work
        public long n_affine, n_affine_tried, n_rotations, n_rotations_tried

    cdef int _stretch(self) except -1 nogil
    cdef int _rotate(self) except -1 nogil
    cdef double _log_children_evidence(self, Py_ssize_t one, Py_ssize_t other) noexcept nogil
    cdef void _draw_children(self, Py_ssize_t one, Py_ssize_t other) noexcept nogil
    cdef void _keep(self, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    cdef void _restore(self, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
