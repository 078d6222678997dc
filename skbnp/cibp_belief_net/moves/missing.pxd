from skbnp.cibp_belief_net._state cimport Network
from skbnp.mcmc.chain cimport Move


cdef class Missing(Move):
    cdef Network net
