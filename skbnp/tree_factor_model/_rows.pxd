cdef enum:
    CHUNK = 256                                 # rows worked on together

cdef class Rows:
    cdef:
        readonly Py_ssize_t n_samples, n_features, n_patterns
        double[:, ::1] X                        # (n_samples, n_features), 0 where missing
        Py_ssize_t[::1] pattern                 # (n_samples,)
        Py_ssize_t[::1] by_pattern              # (n_samples,) rows sorted by pattern
        Py_ssize_t[::1] pattern_start           # (n_patterns + 1,) into by_pattern
        # The patterns, and one more in which all is observed.
        Py_ssize_t[:, ::1] observed             # (n_patterns + 1, n_features), the first in use
        Py_ssize_t[::1] n_observed              # (n_patterns + 1,)
        unsigned char[:, ::1] is_observed       # (n_patterns + 1, n_features)
        Py_ssize_t[::1] n_seen                  # (n_features,) observed rows of each feature

        # One branch and pattern, filled by prepare; only the first depth^2 etc. are in use.
        Py_ssize_t depth
        const double* mean
        double[::1] root                        # (n_features,) sqrt(kappa lambda) of the observed
        double[::1] scaled                      # (max_depth, n_features) loadings times root
        double[::1] factor                      # (max_depth, max_depth) of diag(psi) + kappa G
        double log_det                          # of Omega, observed entries
        # A chunk, filled by whiten.
        Py_ssize_t[::1] chosen                  # (CHUNK,) rows
        double[::1] residual                    # (CHUNK, n_features)
        double[::1] omega                       # (CHUNK, max_depth)
        double[::1] square                      # (CHUNK,) (y - m)' Omega^-1 (y - m)

    cdef int prepare(
        self, Py_ssize_t g, Py_ssize_t depth, const double* loading, const Py_ssize_t* path,
        const double* mean, const double* psi, double kappa, const double* noise,
    ) noexcept nogil
    cdef void whiten(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil
    cdef double log_density(self, Py_ssize_t g, double square) noexcept nogil
