from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer


cdef enum:
    # Codes of FAULTS in _sampler.pyx that lower parts look at.
    NO_DETERMINANT = 1
    NO_SLICE = 2
    BLIND_MEANS = 3
    PRIOR_SCORES = 4
    UNWEIGHTED = 5
    OWN_LINK = 6
    BIRTH_COUNT = 7
    NO_STRETCH = 8
    NO_PARTITION = 9
    STALE_NOISE = 10
    FREE_DIVISION = 11
    FLAT_UPPER = 12
    FREE_SCORES = 13

cdef enum:
    # Cells of the table.
    KNOWN = 0
    MISSING = 1
    CENSORED = 2

cdef enum:
    # Which means clusters have.
    OF_FACTORS = 0
    OF_BOTH = 1
    OF_FEATURES = 2

cdef enum:
    # Moves; MOVES in _sampler.pyx has their names.
    NO_MOVE = 0
    LABELS = 1
    TAILS = 2
    MEANS = 3
    SCORES = 4
    ENERGIES = 5
    LOADINGS = 6
    BIRTHS = 7
    SPLITS = 8
    RESCALES = 9
    HYPER = 10
    UPPER = 11


cdef class State:
    cdef:
        object _bit_generator               # owner of *_rng, must outlive it
        bitgen_t* _rng
        readonly object prior
        int fault, _broken                  # the move that first had no finite result
        int means                           # OF_FACTORS, OF_BOTH, OF_FEATURES
        bint shared_noise, student, has_open_cells
        bint has_upper                      # whether there may be layers above the first
        bint inflated                       # whether the second has factors
        ScaleLayer upper                    # the second; its rows are the factors here
        readonly Py_ssize_t n_samples, n_features, n_clusters, n_factors
        Py_ssize_t factor_room, cluster_room
        # Hyperparameters, and those that are given, NaN where sampled.
        double concentration, mass, offset_precision, tail_df
        double given_concentration, given_mass
        double concentration_law[2]         # shape, rate of gamma priors
        double mass_law[2]
        double rate_law[2]
        double offset_law[2]
        double slab_shape, slab_scale, score_shape, score_scale, score_precision, noise_shape
        double smallest_rate, _log_rate_share
        double[::1] tail_grid
        # Rows.
        double[:, ::1] X                    # (n_samples, n_features), open cells filled
        unsigned char[:, ::1] cell          # KNOWN, MISSING, CENSORED; (0, 0) if all are known
        double[::1] limit                   # (n_features,) below which censored cells lie
        double[:, ::1] Y                    # (n_samples, factor_room) scores
        double[:, ::1] R                    # (n_samples, n_features) X - Y W', when last refreshed
        double[:, ::1] U                    # (n_samples, factor_room) inflation; 1 if not inflated
        double[::1] row_precision           # (n_samples,) lambda
        Py_ssize_t[::1] label               # (n_samples,)
        # Patterns of missing cells; rows by pattern, and by cluster then pattern.
        Py_ssize_t n_patterns
        Py_ssize_t[::1] pattern             # (n_samples,)
        Py_ssize_t[::1] feature_start       # (n_patterns + 2,) into feature
        Py_ssize_t[::1] feature             # observed features of each pattern; at last, all
        Py_ssize_t[::1] pattern_start       # (n_patterns + 1,) into by_pattern
        Py_ssize_t[::1] by_pattern          # (n_samples,)
        Py_ssize_t[::1] cluster_start       # (cluster_room + 1,) into by_cluster
        Py_ssize_t[::1] by_cluster          # (n_samples,)
        # Parameters of clusters and factors.
        double[:, ::1] W                    # (n_features, factor_room)
        double[::1] slab                    # (factor_room,)
        Py_ssize_t[::1] n_links             # (factor_room,)
        double[:, ::1] M, V                 # (cluster_room, factor_room)
        double[:, ::1] S, shift             # (cluster_room, n_features); S: one row if shared
        double[::1] rate                    # (n_features,) h

    cdef int _reserve_factors(self, Py_ssize_t n) except -1 with gil
    cdef int _reserve_clusters(self, Py_ssize_t n) except -1 with gil
    cdef double* _noise(self, Py_ssize_t g) noexcept nogil
    cdef void _sort_rows(self) noexcept nogil
    cdef Py_ssize_t _n_members(self, Py_ssize_t g) noexcept nogil
    cdef void _refresh_residuals(self) noexcept nogil
    cdef void _refresh_inflation(self) noexcept nogil
    cdef double _inflation(self, Py_ssize_t t, Py_ssize_t k) noexcept nogil
    cdef void _break(self, int move) noexcept nogil
    cdef double _inverse_gamma(self, double shape, double scale) noexcept nogil
    cdef double _log_prior(self) noexcept nogil
    cdef double _log_data(self) noexcept nogil


cdef double log_inverse_gamma(double x, double shape, double scale) noexcept nogil
