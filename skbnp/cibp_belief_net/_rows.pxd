from skbnp.cibp_belief_net._families cimport Families
from skbnp.likelihoods.nonlinear_gaussian._regression cimport RowRegression


cdef class Rows(Families):
    cdef:
        RowRegression row
        bint _prior_births, _block_births
        double _swap_rate                   # probability of a try, per row
        double _birth_rate, _block_rate     # probability of a try, per row and per layer
        # The layer at work: its candidate parents, the bias first, and its units' products.
        Py_ssize_t layer, n_candidates
        public Py_ssize_t[::1] candidate    # (n_candidate_slots,) slot, -1 for the bias or a dead
        public Py_ssize_t[::1] place        # (n_slots,) where a slot is among them, -1 if not
        public double[:, ::1] regressor     # (n_candidate_slots, stride) Phi, unit by unit
        public double[:, ::1] gram          # (n_candidate_slots, n_candidate_slots) upper
        public double[:, ::1] side          # (n_children, n_candidate_slots) Phi'a of each child
        public double[:, ::1] response      # (n_children, stride) activations of a hidden layer
        public double[::1] response_square  # (n_children,) a'a
        public double[::1] product          # (n_candidate_slots,) Phi'u of a newborn
        public double[::1] new_side, gain   # (n_children,) u'a of a newborn, gains of it
        double[::1] residual                # (stride,)
        public double[::1] drawn            # (n_candidate_slots,) a row's bias and weights
        public Py_ssize_t[::1] order, child_order  # (n_candidate_slots,), (n_children,) of visits
        public Py_ssize_t[::1] singleton    # (n_slots,)
        public unsigned char[::1] chosen    # (n_children,)
        public long n_flipped, n_toggled, n_births, n_deaths, n_births_tried, n_deaths_tried
        public long n_blocks, n_blocks_tried, n_swaps, n_swaps_tried

    cdef int _update_layer(self, Py_ssize_t layer) except -1 nogil
    cdef int _gather_layer(self, Py_ssize_t layer) except -1 nogil
    cdef int _need_candidates(self, Py_ssize_t n) except -1 nogil
    cdef int _need_children(self, Py_ssize_t n) except -1 nogil
    cdef int _add_candidate(self, Py_ssize_t slot) except -1 nogil
    cdef const double* _response(self, Py_ssize_t c) noexcept nogil
    cdef int _start_row(self, Py_ssize_t c) noexcept nogil
    cdef void _toggle(self, Py_ssize_t c) noexcept nogil
    cdef bint _is_free(self, Py_ssize_t unit, Py_ssize_t j) noexcept nogil
    cdef double _log_urn(self, Py_ssize_t unit, Py_ssize_t j) noexcept nogil
    cdef void _swap(self, Py_ssize_t c) noexcept nogil
    cdef int _birth_or_death(self, Py_ssize_t c) except -1 nogil
    cdef int _birth(self, Py_ssize_t c) except -1 nogil
    cdef int _death(self, Py_ssize_t c) except -1 nogil
    cdef void _draw_row(self, Py_ssize_t c) noexcept nogil
    cdef double _log_rate(self, double n_singletons) noexcept nogil
    cdef void _bury(self) noexcept nogil
    cdef int _welcome(self) except -1 nogil
    cdef int _block_move(self) except -1 nogil
    cdef int _block_birth(self) except -1 nogil
    cdef int _block_death(self) except -1 nogil
    cdef double _log_pivot(self, Py_ssize_t n_chosen) noexcept nogil
    cdef void _direct(self, Py_ssize_t pivot) noexcept nogil
    cdef double _draw_directed(self, double sign) noexcept nogil
    cdef double _log_directed(
        self, const double* a, double sign, Py_ssize_t slot
    ) noexcept nogil
    cdef double _log_choice(self, Py_ssize_t pivot, bint draw) noexcept nogil
