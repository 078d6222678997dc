from skbnp.icp_network._network cimport Network
from skbnp.likelihoods.nonlinear_gaussian._regression cimport RowRegression


cdef class Edges(Network):
    cdef:
        RowRegression row
        # All nodes by ascending order, or some, the constant 1 last.
        public double[:, ::1] regressor     # (n_slots + 1, stride)
        public double[:, ::1] gram, side    # (n_slots + 1, n_slots + 1) Phi'Phi, Phi'a
        public double[::1] drawn            # (n_slots + 1,) a node's weights and bias
        public Py_ssize_t[::1] candidate    # (n_slots + 1,) slots of the child at work
        public Py_ssize_t[::1] candidate_order
        public long n_flipped, n_toggled, n_swaps, n_swaps_tried

    cdef int _update_edges(self) except -1 nogil
    cdef void _multiply(self) noexcept nogil
    cdef void _put_ones(self, Py_ssize_t at) noexcept nogil
    cdef int _start_child(self, Py_ssize_t at, Py_ssize_t first) noexcept nogil
    cdef void _offer(self, Py_ssize_t child, Py_ssize_t j, double side) noexcept nogil
    cdef void _offer_bias(self, Py_ssize_t j, double side) noexcept nogil
    cdef int _start_row(
        self, Py_ssize_t child, Py_ssize_t size, const double* gram
    ) noexcept nogil
    cdef void _toggle_all(self, Py_ssize_t child) noexcept nogil
    cdef int _draw_weights(self, Py_ssize_t child) noexcept nogil
    cdef void _draw_precision(self, Py_ssize_t child) noexcept nogil
    cdef int _swap(self) except -1 nogil
    cdef void _exchange(self, Py_ssize_t j, bint joined) noexcept nogil
    cdef int _start_pair(self, Py_ssize_t child, Py_ssize_t other) noexcept nogil
