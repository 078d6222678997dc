from skbnp.mcmc.chain cimport Move


cdef class CellMoments(Move):
    cdef:
        readonly Py_ssize_t n_cells
        public Py_ssize_t n_imputed         # sweeps that the moments are of
        # Mean over sweeps and n_imputed times the variance, cell by cell.
        public double[::1] imputed_mean, imputed_square

    cdef void add_cell(self, Py_ssize_t t, double mean, double variance) noexcept nogil
