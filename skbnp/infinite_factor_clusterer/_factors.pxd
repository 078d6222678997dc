from skbnp.infinite_factor_clusterer._rows cimport Rows


cdef class Factors(Rows):
    cdef:
        readonly Py_ssize_t n_births_tried, n_births, n_deaths_tried, n_deaths
        readonly Py_ssize_t n_rescales_tried, n_rescales
        double[:, ::1] gram                 # (K, K) sum of lambda y y' / s for one feature
        # Sums over the rows of each cluster.
        double[:, :, ::1] cluster_gram      # (G, K, K) of lambda y y'
        double[:, :, ::1] cluster_side      # (G, K, n_features) of lambda y (x - o)'
        double[::1] feature_side            # (K,)
        double[:, ::1] weighted             # (2 CHUNK, K) lambda y, then y
        Py_ssize_t[::1] order               # (K,) of a scan
        double[::1] residual                # (n_samples,) of one feature
        double[::1] new_variance, new_noise     # (cluster_room,) v*, s*

    cdef int _need_sums(self) except -1 with gil
    cdef int _sum_products(self) except -1 nogil
    cdef int _update_loadings(self) except -1 nogil
    cdef void _draw_feature(self, Py_ssize_t j) noexcept nogil
    cdef int _update_singletons(self, Py_ssize_t n_attempts) except -1 nogil
    cdef int _give_birth(self, Py_ssize_t j) except -1 nogil
    cdef int _let_die(self, Py_ssize_t j) except -1 nogil
    cdef double _log_gain(self, Py_ssize_t j, double w, Py_ssize_t slot) noexcept nogil
    cdef double _noise_scale(self, Py_ssize_t g, Py_ssize_t j, double* shape) noexcept nogil
    cdef void _draw_noise_without(self, Py_ssize_t j) noexcept nogil
    cdef double _within_scale(self, Py_ssize_t g, Py_ssize_t j) noexcept nogil
    cdef void _propose_energies(self, Py_ssize_t j, double w) noexcept nogil
    cdef void _draw_singleton(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil
    cdef void _remove_factor(self, Py_ssize_t k) noexcept nogil
    cdef Py_ssize_t _n_singletons(self, Py_ssize_t j) noexcept nogil
    cdef int _draw_upper_row(self) except -1 nogil
    cdef void _drop_upper_row(self) noexcept nogil
    cdef void _remove_upper_row(self, Py_ssize_t k) noexcept nogil
    cdef void _rescale(self) noexcept nogil
