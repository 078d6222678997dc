from skbnp.cibp_belief_net._state cimport Network
from skbnp.mcmc.cell_moments cimport CellMoments


cdef class Missing(CellMoments):
    cdef:
        Network net
        bint squashes                       # whether cells are activations, not pre-activations
