from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport LayerMove


cdef class Links(LayerMove):
    cdef Py_ssize_t[::1] row_order, column_order    # (room_below,), (room,)

    cdef int make_room(self) except -1 nogil
    cdef void update_link(self, bitgen_t* rng, Py_ssize_t n, Py_ssize_t k) noexcept nogil
    cdef double n_others(self, double others, bint was_on) noexcept nogil
