from numpy.random cimport bitgen_t

from skbnp.infinite_factor_clusterer._law cimport Law
from skbnp.infinite_factor_clusterer._table cimport Table
from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer
from skbnp.mcmc cimport chain


cdef class State(chain.State):
    cdef:
        readonly object prior
        readonly Law law
        readonly Table table
        bint is_broken                      # whether something had no finite result
        readonly Py_ssize_t n_samples, n_features, n_clusters, n_factors
        Py_ssize_t factor_room, cluster_room
        double concentration, mass, offset_precision, tail_df, log_jacobian
        bint has_upper                      # whether there may be layers above the first
        bint inflated                       # whether the second has factors
        ScaleLayer upper                    # the second; its rows are the factors here
        # Rows.
        double[:, ::1] X                    # (n_samples, n_features), open cells filled
        double[:, ::1] Y                    # (n_samples, factor_room) scores
        double[:, ::1] R                    # (n_samples, n_features) X - Y W', when refreshed
        bint has_residuals                  # whether R is that of the present state
        double[:, ::1] U                    # (n_samples, factor_room) inflation; 1 if not inflated
        double[::1] row_precision           # (n_samples,) lambda
        Py_ssize_t[::1] label               # (n_samples,)
        Py_ssize_t[::1] cluster_start       # (cluster_room + 1,) into by_cluster
        Py_ssize_t[::1] by_cluster          # (n_samples,) rows by cluster, then by pattern
        # Parameters of clusters and factors.
        double[:, ::1] W                    # (n_features, factor_room)
        double[::1] slab                    # (factor_room,)
        Py_ssize_t[::1] n_links             # (factor_room,)
        double[:, ::1] M, V                 # (cluster_room, factor_room)
        double[:, ::1] S, shift             # (cluster_room, n_features); S: one row if shared
        double[::1] rate                    # (n_features,) h

    cdef int reserve_factors(self, Py_ssize_t n) except -1 with gil
    cdef int reserve_clusters(self, Py_ssize_t n) except -1 with gil
    cdef double* noise(self, Py_ssize_t g) noexcept nogil
    cdef void sort_rows(self) noexcept nogil
    cdef void join(self, Py_ssize_t low, Py_ssize_t high) noexcept nogil
    cdef Py_ssize_t n_members(self, Py_ssize_t g) noexcept nogil
    cdef void refresh_residuals(self) noexcept nogil
    cdef void need_residuals(self) noexcept nogil
    cdef void refresh_inflation(self) noexcept nogil
    cdef double inflation(self, Py_ssize_t t, Py_ssize_t k) noexcept nogil
    cdef void remove_factor(self, Py_ssize_t k) noexcept nogil
    cdef int outcome(self) noexcept nogil
    cdef double log_prior(self) noexcept nogil
    cdef double log_data(self) noexcept nogil


cdef double log_inverse_gamma(double x, double shape, double scale) noexcept nogil
cdef double draw_inverse_gamma(bitgen_t* rng, double shape, double scale) noexcept nogil
