from libc.stdint cimport uint64_t

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily


# What rows draw by counter under the key of a record or of a proposal.
cdef enum Purpose:
    ORDER_AND_LABEL
    IMPUTATION
    PARAMETERS
    SIDE


cdef double place_of(uint64_t key, Py_ssize_t number) noexcept nogil
cdef double side_of(uint64_t key, Py_ssize_t number) noexcept nogil


cdef class RowSlice:
    cdef:
        readonly ConjugateFamily family
        readonly Py_ssize_t n_samples
        readonly Py_ssize_t[::1] number     # (n_samples,) of the rows in the whole table, ascending
        readonly Py_ssize_t[::1] label      # (n_samples,) block in the record
        object _known                       # key of the record that the labels are of
        bint _failed                        # whether some row had no finite weight
        Py_ssize_t _n_blocks
        Py_ssize_t[::1] _row                # (n_samples,) rows that lack the same cells together
        Py_ssize_t[::1] _member             # (n_samples,) scratch: rows block by block
        unsigned char[::1] _chosen          # (n_samples,) scratch: whether a row is in a subset
        double[::1] _log_weight             # (n_blocks + 1,) the rest last
        double[::1] _anchor_place           # (n_blocks,) in the order of the pass; -1: before all
        Py_ssize_t[::1] _anchor_row         # (n_blocks,) its number in the whole table
        double _last_place                  # of the last anchor

    cdef int _draw_parameters(self, uint64_t key, double discount, double rest) except -1
    cdef void _label_rows(
        self, uint64_t key, double remembered, double* log_p, Py_ssize_t n_together, double* work
    ) noexcept nogil
    cdef int _draw_label(
        self, uint64_t key, Py_ssize_t i, double* log_p, Py_ssize_t* chosen
    ) noexcept nogil
    cdef void _choose(self, const Py_ssize_t[::1] subset) noexcept nogil
    cdef void _list_members(self, Py_ssize_t* start) noexcept nogil
    cdef void _first(
        self, uint64_t key, const Py_ssize_t* member, Py_ssize_t n, double* place, Py_ssize_t* row
    ) noexcept nogil
