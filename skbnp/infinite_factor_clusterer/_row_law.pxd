from skbnp.infinite_factor_clusterer._state cimport State


cdef enum:
    CHUNK = 256             # rows that are worked on together


cdef class RowLaw:
    cdef:
        State state
        Py_ssize_t n_here                   # observed features
        const Py_ssize_t* here              # which they are
        double[:, ::1] loading              # (n_features, K) S^-1 W
        double[::1] mean                    # (n_features,) o + W m
        double[::1] precision               # (n_features,) 1 / s
        double[:, ::1] gram                 # (K, K) W' S^-1 W, upper triangle
        double[:, ::1] factor               # (K, K) U with U'U = W' S^-1 W + 1 / (v u)
        double[::1] inverse                 # (K,) 1 / (v u)
        double log_norm                     # log density at the mean
        double log_noise                    # the part of it that u leaves alone
        # Rows that are worked on together.
        double[:, ::1] chunk                # (CHUNK, n_features)
        double[:, ::1] half                 # (CHUNK, K)
        double[::1] distance                # (CHUNK,)
        Py_ssize_t[::1] picked              # (CHUNK,) rows
        # Where `next_run` is.
        Py_ssize_t cluster, place, stop, pattern

    cdef int make_room(self) except -1 with gil
    cdef void gather(self, Py_ssize_t g, Py_ssize_t p) noexcept nogil
    cdef int factorise(self, Py_ssize_t g, Py_ssize_t row) noexcept nogil
    cdef void measure(self, Py_ssize_t n) noexcept nogil
    cdef double log_density(self, double square) noexcept nogil
    cdef void start_cluster(self, Py_ssize_t g) noexcept nogil
    cdef Py_ssize_t next_run(self) noexcept nogil
