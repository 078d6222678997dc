from numpy.random cimport bitgen_t

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily


cdef class DirichletCategorical(ConjugateFamily):
    cdef:
        readonly Py_ssize_t n_levels        # of all columns together
        Py_ssize_t[::1] level_start         # (n_features + 1,) first level of each column
        double[::1] pseudo_count            # (n_levels + n_features,) g, then its total by column
        # (n_samples, n_features) the level of each cell; n_levels + j where column j is missing
        int[:, ::1] level
        public double[:, ::1] level_count   # (n_slots, n_levels) members at each level
        public double[:, ::1] observed_count  # (n_slots, n_features) observed cells
        # What follows is a function of the counts. Slots stand side by side, so that one pass over
        # a row's cells serves all blocks. Below the logs of the levels, log(g + n), stand those of
        # the columns' totals: a missing cell takes its column's, which ``log_total`` takes back.
        double[:, ::1] log_count            # (n_levels + n_features, n_slots)
        double[::1] log_total               # (n_slots,) sum over columns of the log of the total
        double[:, ::1] log_prob             # parameters, (n_levels + n_features, room), 0 below
        double[::1] vector, vector_too      # scratch, (most levels of a column,)

    cdef void _count(self, Py_ssize_t k, Py_ssize_t i, double change) noexcept nogil
    cdef void _settle(self, Py_ssize_t k) noexcept nogil
    cdef void _settle_total(self, Py_ssize_t k) noexcept nogil
    cdef void _draw_column(self, Py_ssize_t k, Py_ssize_t j, bitgen_t* rng) noexcept nogil
