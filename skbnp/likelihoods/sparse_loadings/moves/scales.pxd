from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport LayerMove


cdef class Scales(LayerMove):
    cdef double log_jacobian(self, double n_links, double g) noexcept nogil
