cdef enum:
    CHUNK = 256                                 # rows worked on together
    # Features up to which covariance matrices of all branches are kept beside their loadings.
    MOST_DENSE_FEATURES = 512

cdef class Rows:
    cdef:
        readonly Py_ssize_t n_samples, n_features, n_patterns
        const double[:, ::1] X                  # (n_samples, n_features), 0 where missing
        Py_ssize_t[::1] pattern                 # (n_samples,)
        Py_ssize_t[::1] by_pattern              # (n_samples,) rows sorted by pattern
        Py_ssize_t[::1] pattern_start           # (n_patterns + 1,) into by_pattern
        # The patterns, and one more in which all is observed.
        Py_ssize_t[:, ::1] observed             # (n_patterns + 1, n_features), the first in use
        Py_ssize_t[::1] n_observed              # (n_patterns + 1,)
        unsigned char[:, ::1] is_observed       # (n_patterns + 1, n_features)
        Py_ssize_t[::1] n_seen                  # (n_features,) observed rows of each feature
        const double[:, ::1] column             # (n_features, n_samples), once it is needed

    cdef int need_columns(self) except -1

cdef class Law:
    cdef:
        readonly Rows rows
        # One branch and pattern, filled by prepare; only the first depth^2 etc. are in use.
        Py_ssize_t pattern, n_seen, depth
        const double* mean
        double[::1] root                        # (n_features,) sqrt(kappa lambda) of the observed
        double[::1] scaled                      # (max_depth, n_features) loadings times root
        double[::1] factor                      # (max_depth, max_depth) U of diag(psi) + kappa G
        bint dense                              # U is that of Omega instead
        double log_det                          # of Omega, observed entries
        double df                               # of the tail, infinite for a normal one
        double log_norm                         # log density where the square is 0
        # For many rows also
        bint for_many
        double[::1] inverse                     # (max_depth, max_depth) U^-1
        double[::1] axes                        # (n_features, max_depth) scaled' U^-1
        # A chunk, filled by whiten.
        Py_ssize_t[::1] chosen                  # (CHUNK,) rows
        double[::1] residual                    # (CHUNK, n_features)
        double[::1] omega                       # (CHUNK, max_depth + 1)
        double[::1] square                      # (CHUNK,) (y - m)' Omega^-1 (y - m)
        double[::1] other                       # (CHUNK, max_depth + 1)

    cdef int prepare(
        self, Py_ssize_t g, Py_ssize_t n_rows, Py_ssize_t depth, const double* loading,
        const Py_ssize_t* path, const double* mean, const double* psi, double kappa,
        const double* noise, double df,
    ) noexcept nogil
    cdef int prepare_dense(
        self, Py_ssize_t g, const double* omega, const double* mean, double df
    ) noexcept nogil
    cdef void _invert(self) noexcept nogil
    cdef void whiten(self, Py_ssize_t n) noexcept nogil
    cdef void _whiten_dense(self, Py_ssize_t n) noexcept nogil
    cdef void add_residuals(
        self, Py_ssize_t n, const double* mean, const double* row_precision, double* total
    ) noexcept nogil
    cdef void solve(self, Py_ssize_t n) noexcept nogil
    cdef double log_density(self, double square) noexcept nogil
    cdef double spread(self, double square) noexcept nogil

cdef double log_norm(Py_ssize_t n, double log_det, double df) noexcept nogil
