from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.likelihoods.sparse_loadings.layer_schedule cimport LayerSchedule
from skbnp.mcmc.chain cimport Move


cdef class Upper(Move):
    cdef:
        State state
        LayerSchedule layers

    cdef int update(self) except -1 nogil
