from skbnp.dirichlet_process_mixture.moves.split_merge cimport SplitMerge
from skbnp.dirichlet_process_mixture.records._at_hand cimport RowsAtHand


cdef class RecordSplitMerge(SplitMerge):
    cdef:
        object whole                        # the state of the whole table
        RowsAtHand at_hand
        public Py_ssize_t n_runs            # sweeps since the warm-up
        unsigned char[::1] second           # (n_samples,) scratch: sides of the rows at hand
        Py_ssize_t[::1] member              # (n_samples,) scratch: other rows of the blocks

