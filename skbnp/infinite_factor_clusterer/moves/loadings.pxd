from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Loadings(Move):
    cdef:
        State state
        double[:, ::1] gram                 # (K, K) sum of lambda y y' / s for one feature
        # Sums over the rows of each cluster.
        double[:, :, ::1] cluster_gram      # (G, K, K) of lambda y y'
        double[:, :, ::1] cluster_side      # (G, K, n_features) of lambda y (x - o)'
        double[::1] feature_side            # (K,)
        double[:, ::1] weighted             # (2 CHUNK, K) lambda y, then y
        double[:, ::1] chunk                # (CHUNK, n_features) x - o
        Py_ssize_t[::1] order               # (K,) of a scan

    cdef int make_room(self) except -1 with gil
    cdef int update(self) except -1 nogil
    cdef int sum_products(self) except -1 nogil
    cdef void draw_feature(self, Py_ssize_t j) noexcept nogil
    cdef double weight_of(self, Py_ssize_t g, Py_ssize_t j) noexcept nogil
    cdef Py_ssize_t other_links(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil
