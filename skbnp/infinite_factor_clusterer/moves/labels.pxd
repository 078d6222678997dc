from skbnp.infinite_factor_clusterer._row_law cimport RowLaw
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Labels(Move):
    cdef:
        State state
        RowLaw row_law
        double[::1] log_weight              # (room,)
        double[::1] log_slice               # (n_samples,)
        double[::1] best                    # (n_samples,) perturbed log density of the choice
        double[::1] shape                   # (room,)
        Py_ssize_t[::1] renamed             # (room,)
        Py_ssize_t[::1] before              # (n_samples,) labels before the move

    cdef int make_room(self) except -1 with gil
    cdef int update(self) except -1 nogil
    cdef bint opens(self, double rest, double lowest) noexcept nogil
    cdef int offer(self, Py_ssize_t g) except -1 nogil
    cdef void keep_offers(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil
    cdef void name_clusters(self, Py_ssize_t n) noexcept nogil
    cdef void draw_new_cluster(self, Py_ssize_t g) noexcept nogil
