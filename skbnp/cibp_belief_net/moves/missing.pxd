from skbnp.cibp_belief_net._state cimport Network
from skbnp.mcmc.chain cimport Move


cdef class Missing(Move):
    cdef:
        Network net
        bint squashes                       # whether cells are activations, not pre-activations
        readonly Py_ssize_t n_cells
        public Py_ssize_t n_imputed         # sweeps that the moments are of
        # Mean over sweeps and n_imputed times the variance, cell by cell as ``net.cell_row``.
        public double[::1] imputed_mean, imputed_square
