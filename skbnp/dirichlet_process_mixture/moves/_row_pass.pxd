from libc.stdint cimport uint64_t
from numpy.random cimport bitgen_t

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily


cdef class RowPass:
    cdef:
        readonly ConjugateFamily family
        object _for_rows                    # runs function(start, stop) over fixed chunks
        readonly Py_ssize_t n_moved         # rows that changed block in the last pass
        readonly bint failed                # some row had no finite weight
        Py_ssize_t _n_samples, _n_blocks
        double _n_imputed                   # sweeps that the moments of missing cells are of
        bint _anchored
        uint64_t _key                       # of the pass: rows draw by counter under it
        Py_ssize_t[::1] _label              # (n_samples,) the state's
        Py_ssize_t[::1] _row                # (n_samples,) rows that lack the same cells together
        Py_ssize_t[::1] _member             # (n_samples,) rows block by block
        double[::1] _log_weight             # (n_blocks,)
        Py_ssize_t[::1] _anchor             # (n_blocks,) first member in the order of the pass
        double[::1] _place                  # (n_blocks,) its place in that order
        double _last_place                  # of the last anchor
        Py_ssize_t[:, ::1] _chunk_anchor    # (n_chunks, n_blocks) the same within a chunk, or -1
        Py_ssize_t[:, ::1] _chunk_count     # (n_chunks, n_blocks) rows; then where they are listed
        Py_ssize_t[::1] _chunk_moved        # (n_chunks,)
        Py_ssize_t[::1] _chunk_failed       # (n_chunks,)
        Py_ssize_t[::1] _size               # (n_blocks,)
        Py_ssize_t[::1] _piece_block        # (n_pieces,) pieces of blocks that are summed alone
        Py_ssize_t[::1] _piece_start        # (n_pieces + 1,) where they begin in _member
        double[:, ::1] _piece_sums          # (n_pieces, sums_size)

    cdef int run(
        self, bitgen_t* rng, Py_ssize_t n_blocks, double discount, double rest, bint anchored,
        Py_ssize_t n_imputed,
    ) except -1
    cdef int rebuild(self, Py_ssize_t n_blocks) except -1
    cdef int _summarise(self) except -1
    cdef int _draw_parameters(self, bitgen_t* rng, double discount, double rest) except -1 nogil
    cdef double _place_of(self, Py_ssize_t i) noexcept nogil
    cdef bint _precedes(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef void _label_chunk(
        self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t n_together, double* log_p,
        double* work,
    ) noexcept nogil
    cdef int _draw_label(self, Py_ssize_t i, double* log_p, Py_ssize_t* chosen) noexcept nogil
    cdef void _collect(self) noexcept nogil
