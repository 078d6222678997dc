from numpy.random cimport bitgen_t

from skbnp.cibp_belief_net._laws cimport Laws
from skbnp.mcmc.chain cimport State


cdef class Network(State):
    cdef:
        readonly Laws laws
        readonly Py_ssize_t n_samples, n_visible, n_hidden, n_layers
        Py_ssize_t stride                   # of activations: n_samples, at least 1
        double log_jacobian                 # of the data's transform, a constant
        # The data: missing cells of a visible unit d are cell_row[cell_start[d]:cell_start[d + 1]].
        double[:, ::1] visible              # (n_visible, stride)
        Py_ssize_t[::1] cell_start, cell_row
        # Hidden units live in slots; what belongs to unit number v is at v for a visible one, at
        # n_visible + slot for a hidden one.
        public double[:, ::1] pre, post     # (n_slots, stride) a and u = tanh(a / 2)
        public double[::1] bias, precision  # (n_visible + n_slots,)
        public double[:, ::1] weight        # (n_visible + n_slots, n_slots) child x parent
        public unsigned char[:, ::1] edge   # the same
        public Py_ssize_t[::1] slot_layer   # (n_slots,) 0: free
        public Py_ssize_t[::1] n_children, n_near  # (n_slots,) all, and those one layer below
        public Py_ssize_t[::1] member, layer_start  # slots layer by layer; (n_layer_slots + 2,)
        public Py_ssize_t[::1] free_slot    # a stack of those that are free
        Py_ssize_t n_free
        public double[:, ::1] hyper         # (7, n_layer_slots) MASS to NOISE_RATE of each layer
        # Row clusters: their law of the activations of each slot of layer ``deepest``.
        Py_ssize_t[::1] label               # (n_samples,)
        Py_ssize_t[::1] cluster_count       # (n_samples + 1,)
        Py_ssize_t n_clusters
        public double[:, ::1] cluster_mean, cluster_precision  # (n_slots, n_cluster_slots)
        public double[::1] cluster_rate     # (n_slots,)
        double[::1] mean                    # (stride,) scratch

    cdef Py_ssize_t n_slots(self) noexcept nogil
    cdef Py_ssize_t width(self, Py_ssize_t layer) noexcept nogil
    cdef Py_ssize_t unit(self, Py_ssize_t layer, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t slot(self, Py_ssize_t layer, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t layer_of(self, Py_ssize_t unit) noexcept nogil
    cdef Py_ssize_t first_above(self, Py_ssize_t layer) noexcept nogil
    cdef Py_ssize_t end_above(self, Py_ssize_t layer) noexcept nogil
    cdef Py_ssize_t offered(self, Py_ssize_t layer) noexcept nogil
    cdef double* activity(self, Py_ssize_t unit) noexcept nogil
    cdef bint follows_clusters(self, Py_ssize_t layer) noexcept nogil
    cdef int reserve_units(self, Py_ssize_t n_new) except -1 nogil
    cdef int reserve_layers(self, Py_ssize_t n_layers) except -1 nogil
    cdef int reserve_clusters(self, Py_ssize_t n_clusters) except -1 nogil
    cdef Py_ssize_t insert(self, Py_ssize_t layer) noexcept nogil
    cdef void remove(self, Py_ssize_t slot) noexcept nogil
    cdef void link(self, Py_ssize_t child, Py_ssize_t slot) noexcept nogil
    cdef void unlink(self, Py_ssize_t child, Py_ssize_t slot) noexcept nogil
    cdef void squash(self, Py_ssize_t slot) noexcept nogil
    cdef void add_inputs(self, Py_ssize_t unit, double* mean) noexcept nogil
    cdef void draw_visible(self, bitgen_t* rng) noexcept nogil
    cdef double _log_structure(self) noexcept nogil
    cdef double _log_prior(self) noexcept nogil
    cdef double _log_clusters(self, double total) noexcept nogil
    cdef double _log_data(self) noexcept nogil
