from numpy.random cimport bitgen_t

from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.cibp_belief_net.moves.counts cimport Counts


cdef class Toggles:
    cdef Py_ssize_t[::1] order               # (n_candidate_slots,) of visits

    cdef int run(
        self, LayerRegression layer, bitgen_t* rng, Py_ssize_t c, Counts* counts
    ) except -1 nogil
