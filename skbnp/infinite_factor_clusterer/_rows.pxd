from skbnp.infinite_factor_clusterer._state cimport State


cdef enum:
    # What _visit does with the rows of a cluster that share a pattern.
    DISTANCES = 0
    INFORMATION = 1
    DRAWS = 2


cdef class Rows(State):
    cdef:
        # The law of one cluster and pattern: n observed features, K factors.
        Py_ssize_t n_here                   # observed features
        const Py_ssize_t* here              # which they are
        double[:, ::1] law_loading          # (n_features, K) S^-1 W
        double[::1] law_mean                # (n_features,) o + W m
        double[::1] law_precision           # (n_features,) 1 / s
        double[:, ::1] law_gram             # (K, K) W' S^-1 W, upper triangle
        double[:, ::1] law_factor           # (K, K) U with U'U = W' S^-1 W + 1 / (v u)
        double[::1] law_inverse             # (K,) 1 / (v u)
        double law_norm                     # log density at the mean
        double law_noise                    # the part of it that u leaves alone
        # Chunks of rows.
        double[:, ::1] chunk                # (CHUNK, n_features)
        double[:, ::1] half                 # (CHUNK, K)
        double[::1] distance                # (CHUNK,)
        Py_ssize_t[::1] picked              # (CHUNK,) rows
        # Labels.
        double[::1] log_weight, log_slice   # (room,), (n_samples,)
        double[::1] best                    # (n_samples,) perturbed log density of the choice
        double[::1] square                  # (n_samples,) squared distance in the own cluster
        double[::1] shape                   # (room,)
        Py_ssize_t[::1] renamed             # (room,)
        # Means: n_means = K or 0, then n_features if there are offsets.
        double[:, ::1] information
        double[::1] side, weighted_row
        double[:, ::1] whitened             # (K, n_features)

    cdef int _need_rows(self) except -1 with gil
    cdef int _update_labels(self) except -1 nogil
    cdef int _offer(self, Py_ssize_t g) except -1 nogil
    cdef void _keep_offers(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil
    cdef void _name_clusters(self, Py_ssize_t n) noexcept nogil
    cdef void _draw_new_cluster(self, Py_ssize_t g) noexcept nogil
    cdef void _gather(self, Py_ssize_t g, Py_ssize_t p) noexcept nogil
    cdef int _factorise(self, Py_ssize_t g, Py_ssize_t row) noexcept nogil
    cdef void _measure(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil
    cdef double _log_density(self, double square) noexcept nogil
    cdef int _visit(self, int work) except -1 nogil
    cdef void _do(self, int work, Py_ssize_t g, Py_ssize_t n) noexcept nogil
    cdef void _add_information(self, Py_ssize_t n) noexcept nogil
    cdef void _draw_means(self, Py_ssize_t g) noexcept nogil
    cdef void _draw_scores(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil
    cdef int _update_tails(self) except -1 nogil
    cdef void _fill_cells(self) noexcept nogil
    cdef int _update_rows(self) except -1 nogil
