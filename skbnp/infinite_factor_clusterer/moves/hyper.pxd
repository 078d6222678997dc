from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Hyper(Move):
    cdef:
        State state
        Py_ssize_t[::1] size                # (cluster_room,) of the clusters

    cdef int update(self) except -1 nogil
