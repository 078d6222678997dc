from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.icp_network.moves.latents cimport Latents
from skbnp.likelihoods.nonlinear_gaussian._feedforward cimport Feedforward
from skbnp.mcmc.chain cimport Move


cdef class Trajectories(Move):
    cdef:
        Network net
        Graph graph
        Latents latents                     # None without latents
        Feedforward forward                 # the network as it is, nodes from the highest down
        Py_ssize_t[::1] position            # (n_latents,) of latents in ``forward``
        unsigned char[::1] is_latent        # (n_slots,) by position
        unsigned char[::1] has_log          # (n_slots,) whether the log precision moves
        Py_ssize_t n_attempts               # in a sweep
        Py_ssize_t n_leapfrog
        public double length                # of a step
        double _total_acceptance            # since the last adaptation
        long long _n_adapting
        # By position in ``forward``.
        double[:, ::1] pre, post            # (n_slots, stride) a and u
        double[:, ::1] noise, impulse       # (n_slots, stride) e and its momentum
        double[:, ::1] slope                # (n_slots, stride) of the log density by a
        # What the latent of a row's own class exceeds its mean by, its momentum and the
        # gradient by it but for its own density.
        double[::1] lead, lead_impulse, lead_slope  # (stride,)
        # Weights, then biases, then log precisions; a zero where there is none.
        Py_ssize_t n_values
        double[::1] value, momentum, gradient, inertia  # (n_values,) and more
        double[::1] stiffness               # (n_edges,) prior precisions of the weights

    cdef int _reserve(self) except -1 nogil
    cdef void _attempt(self) noexcept nogil
    cdef void _start(self) noexcept nogil
    cdef void _read_values(self) noexcept nogil
    cdef void _read_node(self, Py_ssize_t p) noexcept nogil
    cdef void _draw_momenta(self) noexcept nogil
    cdef double _follow_means(self) noexcept nogil
    cdef double _follow_node(self, Py_ssize_t p) noexcept nogil
    cdef void _add_parents(self, Py_ssize_t p, double sign, double* out) noexcept nogil
    cdef double _judge_labels(self) noexcept nogil
    cdef double _judge_single(self, Py_ssize_t i) noexcept nogil
    cdef void _judge_lead(self, Py_ssize_t i, double* total) noexcept nogil
    cdef double* _slope_of_latent(self, Py_ssize_t c, Py_ssize_t i) noexcept nogil
    cdef void _differentiate(self) noexcept nogil
    cdef double _scale_slope(self, Py_ssize_t p) noexcept nogil
    cdef void _differentiate_node(self, Py_ssize_t p) noexcept nogil
    cdef void _kick(self, double length) noexcept nogil
    cdef void _drift(self, double length) noexcept nogil
    cdef double _kinetic(self) noexcept nogil
    cdef void _take(self) noexcept nogil
    cdef void _take_latents(self) noexcept nogil
    cdef Py_ssize_t _slot_at(self, Py_ssize_t p) noexcept nogil
