from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer


cdef enum:
    # Places of the counts, as in ``layer_move.COUNTS``.
    OF_LINKS = 0
    OF_BIRTHS = 1
    OF_DEATHS = 2
    OF_SPLITS = 3
    OF_MERGES = 4
    OF_SCALES = 5


cdef class LayerMove:
    cdef:
        ScaleLayer layer
        Py_ssize_t[::1] accepted, proposed  # (len(COUNTS),)

    cdef int run(self, bitgen_t* rng) except -1 nogil
