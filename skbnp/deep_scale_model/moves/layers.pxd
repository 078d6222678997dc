from skbnp.deep_scale_model._state cimport State
from skbnp.likelihoods.sparse_loadings.layer_schedule cimport LayerSchedule
from skbnp.mcmc.chain cimport Move


cdef class Layers(Move):
    cdef:
        State state
        LayerSchedule schedule
