from skbnp.dirichlet_process_mixture._state cimport State


cdef class Outside:
    cdef:
        public Py_ssize_t origin            # index of the block in the record, -1: none
        public list parts                   # (center, n, sums) of rows that are not at hand
        public double place                 # of the first of them in the order of the next pass
        public Py_ssize_t row               # its number in the table, -1: none


cdef class RowsAtHand(State):
    cdef:
        readonly Py_ssize_t n_table         # rows of the whole table
        readonly Py_ssize_t[::1] number     # (n_samples,) of the rows at hand, ascending
        readonly list outside               # (n_clusters,) an Outside each
        readonly bint failed                # whether statistics could not be built from sums

    cdef void build(self, Py_ssize_t k, list parts, Py_ssize_t spare) noexcept nogil
