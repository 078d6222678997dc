from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport LayerMove


cdef class Scores(LayerMove):
    cdef:
        Py_ssize_t[::1] column_order        # (room,)
        Py_ssize_t[::1] link_start, link_row    # (room + 1,), (room_below * room,)
        double[::1] link_weight             # (room_below * room,)
        Py_ssize_t[::1] row                 # (room_below,)
        double[::1] row_x, row_a, row_step  # (room_below,) one sample
        double[::1] row_score, row_variance, row_draw   # (room,)

    cdef int make_room(self) except -1 nogil
    cdef void update_sample(self, bitgen_t* rng, Py_ssize_t t) noexcept nogil
    cdef void _load(self, Py_ssize_t t) noexcept nogil
    cdef void _store(self, Py_ssize_t t) noexcept nogil
    cdef void _elliptical_slice(self, bitgen_t* rng) noexcept nogil
    cdef void _draw_step(self, bitgen_t* rng) noexcept nogil
    cdef Py_ssize_t _list_rows(self) noexcept nogil
    cdef void _turn(self, double u, double v) noexcept nogil
    cdef void _flip(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil
    cdef void _slice(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil
    cdef double prior_variance(self, Py_ssize_t k, Py_ssize_t t) noexcept nogil
    cdef double log_sample(self, Py_ssize_t n_rows, double u, double v) noexcept nogil
    cdef double log_score(self, Py_ssize_t k, double change) noexcept nogil
    cdef void move_score(self, Py_ssize_t k, double change) noexcept nogil
