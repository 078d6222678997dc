from numpy.random cimport bitgen_t

from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.cibp_belief_net.moves.counts cimport Counts


cdef class Swaps:
    cdef Py_ssize_t[::1] order               # (n_candidate_slots,) first those that are on

    cdef int run(
        self, LayerRegression layer, bitgen_t* rng, Py_ssize_t c, Counts* counts
    ) except -1 nogil
    cdef double _log_urn_ratio(
        self, LayerRegression layer, Py_ssize_t unit, Py_ssize_t old, Py_ssize_t new
    ) noexcept nogil
