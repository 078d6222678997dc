from skbnp.icp_network._network cimport Network
from skbnp.mcmc.cell_moments cimport CellMoments


cdef class Missing(CellMoments):
    cdef:
        Network net
        bint squashes                       # whether cells are activations, not pre-activations
        double[::1] residual                # (stride,) scratch

    cdef bint _is_parent(self, Py_ssize_t slot) noexcept nogil
