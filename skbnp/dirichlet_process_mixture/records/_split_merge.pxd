from skbnp.dirichlet_process_mixture.moves._division cimport Division
from skbnp.dirichlet_process_mixture.moves.split_merge cimport SplitMerge
from skbnp.dirichlet_process_mixture.records._at_hand cimport RowsAtHand
from skbnp.mcmc.chain cimport Move


cdef class RecordSplitMerge(Move):
    cdef:
        object whole                        # the state of the whole table
        object _division                    # how a pilot begins
        RowsAtHand at_hand
        SplitMerge ratio                    # of the same move on the rows at hand: its densities
        bint _follows                       # the number of blocks, in warm-up
        public Py_ssize_t n_proposals       # of a sweep
        public Py_ssize_t n_runs            # sweeps since the warm-up
        unsigned char[::1] second           # (n_samples,) scratch: sides of the rows at hand
        Py_ssize_t[::1] member              # (n_samples,) scratch: other rows of the blocks

    cdef double _log_ratio_of_merge(
        self, Py_ssize_t k, Py_ssize_t gone, Py_ssize_t both
    ) noexcept nogil
