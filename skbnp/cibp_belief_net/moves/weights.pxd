from numpy.random cimport bitgen_t

from skbnp.cibp_belief_net._layer cimport LayerRegression


cdef class Weights:
    cdef double[::1] drawn                   # (n_candidate_slots,) a row's bias and weights

    cdef int run(self, LayerRegression layer, bitgen_t* rng, Py_ssize_t c) except -1 nogil
