from numpy.random cimport bitgen_t

from skbnp.cibp_belief_net._state cimport Network


cdef class StructureChange:
    cdef:
        Network net
        Py_ssize_t[::1] children            # (n_slots,) children that a unit would gain
        unsigned char[::1] gone             # (n_slots,) units that would go
        Py_ssize_t[::1] units               # (n_layer_slots + 2,) units that a layer would gain

    cdef int reserve(self) except -1 nogil
    cdef void clear(self) noexcept nogil
    cdef double log_skip_ratio(
        self, Py_ssize_t n_new, const Py_ssize_t* layer, const Py_ssize_t* n_takers
    ) noexcept nogil
    cdef double _log_skip_factor(
        self, bint changed, Py_ssize_t n_new, const Py_ssize_t* layer, const Py_ssize_t* n_takers
    ) noexcept nogil


cdef class BirthProposal:
    cdef:
        Network net
        StructureChange change
        public long long n_beyond           # that would have exceeded ``max_units``
        # The newborn comes first, then, layer by layer, what its birth brings along.
        Py_ssize_t n_units
        Py_ssize_t[::1] layer, n_takers     # (n_unit_slots,)
        Py_ssize_t[::1] slot                # (n_unit_slots,) after ``admit``
        Py_ssize_t[::1] edge_start          # (n_unit_slots + 1,)
        Py_ssize_t[::1] parent              # (n_edge_slots,) a slot, or -1 - its number here
        double[::1] weight                  # (n_edge_slots,)
        double[::1] bias, precision, cluster_rate  # (n_unit_slots,)
        double[:, ::1] pre, post            # (n_unit_slots, stride)
        double[:, ::1] cluster_mean, cluster_precision
        double[::1] mean                    # (stride,) prior mean of the newborn's activations

    cdef int draw(self, bitgen_t* rng, Py_ssize_t layer) except -1 nogil
    cdef int draw_alone(self, bitgen_t* rng, Py_ssize_t layer) except -1 nogil
    cdef int _draw(self, bitgen_t* rng, Py_ssize_t layer, bint alone) except -1 nogil
    cdef double log_skip_ratio(self) noexcept nogil
    cdef Py_ssize_t admit(self) except -1 nogil
    cdef void withdraw(self) noexcept nogil
    cdef int _draw_edges(self, bitgen_t* rng, Py_ssize_t layer, bint alone) except -1 nogil
    cdef int _choose_parents(
        self, bitgen_t* rng, Py_ssize_t i, Py_ssize_t n_before, Py_ssize_t first_above,
        Py_ssize_t* n_edges,
    ) except -1 nogil
    cdef void _draw_values(self, bitgen_t* rng) noexcept nogil
    cdef void _draw_activations(self, bitgen_t* rng, Py_ssize_t i) noexcept nogil
    cdef void _draw_cluster_laws(self, bitgen_t* rng, Py_ssize_t i) noexcept nogil
    cdef int _need_units(self, Py_ssize_t n) except -1 nogil
    cdef int _need_edges(self, Py_ssize_t n) except -1 nogil


cdef class DeathProposal:
    cdef:
        Network net
        StructureChange change
        Py_ssize_t n_units
        Py_ssize_t[::1] slot                # (n_slots,) the unit, then what goes with it

    cdef int reserve(self) except -1 nogil
    cdef bint find(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t list_singletons(
        self, Py_ssize_t child, Py_ssize_t layer, Py_ssize_t* out
    ) noexcept nogil
    cdef double log_skip_ratio(self) noexcept nogil
    cdef void carry_out(self) noexcept nogil
    cdef bint _may_die(self, Py_ssize_t slot) noexcept nogil
    cdef bint _has_far_edge(self, Py_ssize_t slot) noexcept nogil
