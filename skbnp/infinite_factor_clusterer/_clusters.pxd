from skbnp.infinite_factor_clusterer._factors cimport Factors


cdef class Clusters(Factors):
    cdef:
        readonly Py_ssize_t n_splits_tried, n_splits, n_merges_tried, n_merges
        # Sums over the rows of one side of a division, or of both together: y, then residuals.
        Py_ssize_t n_columns                # K + n_features
        Py_ssize_t count[3]
        double[:, ::1] column_weight        # (3, n_columns) sum of lambda, of lambda / u for y
        double[:, ::1] column_sum           # (3, n_columns) of lambda x
        double[:, ::1] column_square        # (3, n_columns) of lambda x^2
        double log_marginal[3]
        double log_rates                    # sum of log h
        double[::1] half_width              # (cluster_room,) of offsets, in units of the noise's sd
        Py_ssize_t[::1] member              # rows of the division but its two anchors
        unsigned char[::1] side             # (n_samples,) of each member
        double[::1] column                  # (n_columns,) of one row: y, then residuals
        double[::1] column_factor           # (n_columns,) 1 / u, 1

    cdef int _need_division(self) except -1 with gil
    cdef void _clear_side(self, int side) noexcept nogil
    cdef void _take_row(self, Py_ssize_t t) noexcept nogil
    cdef void _add_row(self, int side, double sign) noexcept nogil
    cdef double _log_marginal_with(self, int side, bint with_row) noexcept nogil
    cdef Py_ssize_t _partner(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t _list_members(
        self, Py_ssize_t g, Py_ssize_t i, Py_ssize_t j, Py_ssize_t n
    ) noexcept nogil
    cdef void _join(self, Py_ssize_t low, Py_ssize_t high) noexcept nogil
    cdef double _scan(self, Py_ssize_t n, bint forced, Py_ssize_t first) noexcept nogil
    cdef void _split_or_merge(self) noexcept nogil
    cdef int _update_partition(self, Py_ssize_t n_attempts) except -1 nogil
    cdef int _divide_or_unite(self) except -1 nogil
    cdef int _update_energies(self) except -1 nogil
    cdef void _draw_energies(self, Py_ssize_t g, int side) noexcept nogil
    cdef void _draw_noises(self) noexcept nogil
