from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport LayerMove
from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer


cdef class LayerSchedule:
    cdef:
        ScaleLayer layer
        LayerSchedule above                 # None at the last layer there may be
        LayerMove links, births, splits, scores, scales

    cdef int update(self, bitgen_t* rng) except -1 nogil
    cdef int update_layer(self, bitgen_t* rng, Py_ssize_t number) except -1 nogil
    cdef int update_part(self, bitgen_t* rng, int part) except -1 nogil
    cdef int own_moves(self, bitgen_t* rng) except -1 nogil
