from skbnp.infinite_factor_clusterer._row_law cimport RowLaw
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Means(Move):
    cdef:
        State state
        RowLaw row_law
        # n_means = K or 0, then n_features if there are offsets.
        double[:, ::1] information          # (n_means, n_means)
        double[::1] side                    # (n_means,)
        double[::1] weighted_row            # (n_features,)
        double[:, ::1] whitened             # (K, n_features)

    cdef int make_room(self) except -1 with gil
    cdef int update(self) except -1 nogil
    cdef void add_rows(self, Py_ssize_t n) noexcept nogil
    cdef void draw_cluster(self, Py_ssize_t g) noexcept nogil
