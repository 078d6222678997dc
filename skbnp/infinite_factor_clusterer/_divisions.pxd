from skbnp.infinite_factor_clusterer._clusters cimport Clusters


cdef class Divisions(Clusters):
    cdef:
        readonly Py_ssize_t n_divisions_tried, n_divisions, n_unions_tried, n_unions
        double[:, ::1] launched             # (n_samples, K) scores of a launch
        double[:, ::1] draft                # (n_samples, K) scores that are proposed
        double[:, ::1] log_density_of       # (2, n_samples) of a row on either side
        double log_share[2]                 # of the sides

    cdef int _need_drafts(self) except -1 with gil
    cdef void _accept_division(self, Py_ssize_t n, bint is_split, Py_ssize_t second) noexcept nogil
    cdef void _launch(self, Py_ssize_t n, bint divided) noexcept nogil
    cdef void _start_energies(self, Py_ssize_t slot) noexcept nogil
    cdef void _draw_slots(self, Py_ssize_t n, bint divided) noexcept nogil
    cdef double _place(self, Py_ssize_t n, bint forced, Py_ssize_t first) noexcept nogil
    cdef double _score(self, Py_ssize_t n, bint divided, int which) noexcept nogil
    cdef double _score_row(self, Py_ssize_t slot, Py_ssize_t t, int which) noexcept nogil
    cdef void _sum_sides(self, Py_ssize_t n, bint divided, int which) noexcept nogil
    cdef void _take_scores(self, Py_ssize_t t, const double* y) noexcept nogil
    cdef double* _scores_of(self, Py_ssize_t t, int which) noexcept nogil
