from skbnp.cibp_belief_net._state cimport Network
from skbnp.likelihoods.nonlinear_gaussian._regression cimport RowRegression


cdef class LayerRegression:
    cdef:
        Network net
        RowRegression row                   # of the child at work
        Py_ssize_t index                    # of the layer that was gathered
        # The bias, the layer's candidate parents and those that are born meanwhile.
        Py_ssize_t n_candidates
        Py_ssize_t[::1] candidate           # (n_candidate_slots,) slot, -1 for the bias or a dead
        Py_ssize_t[::1] place               # (n_slots,) where a slot is among them, -1 if not
        double[:, ::1] regressor            # (n_candidate_slots, stride) Phi, unit by unit
        double[:, ::1] gram                 # (n_candidate_slots, n_candidate_slots) upper
        double[::1] product                 # (n_candidate_slots,) Phi'u of a new parent
        double[:, ::1] side                 # (n_children, n_candidate_slots) Phi'a of each child
        double[:, ::1] copied               # (n_children, stride) activations of a hidden layer
        double[::1] response_square         # (n_children,) a'a
        double[::1] new_side                # (n_children,) u'a of a new parent

    cdef int gather(self, Py_ssize_t layer) except -1 nogil
    cdef const double* response(self, Py_ssize_t c) noexcept nogil
    cdef int start(self, Py_ssize_t c) noexcept nogil
    cdef bint is_free(self, Py_ssize_t unit, Py_ssize_t j) noexcept nogil
    cdef double n_others(self, Py_ssize_t unit, Py_ssize_t slot) noexcept nogil
    cdef double log_urn(self, Py_ssize_t unit, Py_ssize_t j) noexcept nogil
    cdef double gain_of_new(self, Py_ssize_t c, const double* u) noexcept nogil
    cdef int gains_of_new(self, const double* u, double* gain) noexcept nogil
    cdef void put_residual(self, Py_ssize_t c, double* e) noexcept nogil
    cdef int add(self, Py_ssize_t slot) except -1 nogil
    cdef void drop(self, Py_ssize_t slot) noexcept nogil
    cdef int _need_candidates(self, Py_ssize_t n) except -1 nogil
    cdef int _need_children(self, Py_ssize_t n) except -1 nogil
    cdef int _need_places(self) except -1 nogil
