from skbnp.infinite_factor_clusterer._state cimport State


cdef enum:
    BOTH = 2                # the two sides together


cdef class Sides:
    cdef:
        State state
        Py_ssize_t n_columns                # K + n_features: y, then residuals
        Py_ssize_t count[3]
        double[:, ::1] weight               # (3, n_columns) sum of lambda, of lambda / u for y
        double[:, ::1] sum                  # (3, n_columns) of lambda x
        double[:, ::1] square               # (3, n_columns) of lambda x^2
        double log_marginal[3]
        double log_rates                    # sum of log h
        Py_ssize_t[::1] member              # (n_samples,) rows that are divided
        unsigned char[::1] side             # (n_samples,) of each member
        double[::1] column                  # (n_columns,) of one row: y, then residuals
        double[::1] factor                  # (n_columns,) 1 / u, 1

    cdef int make_room(self) except -1 with gil
    cdef void sum_rates(self) noexcept nogil
    cdef void clear(self, int side) noexcept nogil
    cdef void take_row(self, Py_ssize_t t) noexcept nogil
    cdef void take_scores(self, Py_ssize_t t, const double* y) noexcept nogil
    cdef void add_row(self, int side, double sign) noexcept nogil
    cdef double log_marginal_with(self, int side, bint with_row) noexcept nogil
    cdef Py_ssize_t list_members(
        self, Py_ssize_t g, Py_ssize_t i, Py_ssize_t j, Py_ssize_t n
    ) noexcept nogil
