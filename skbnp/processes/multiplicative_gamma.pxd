from numpy.random cimport bitgen_t


cdef enum ShrinkageFault:
    # Wrong formulas that the tests inject to see that they would be noticed.
    NO_SHRINKAGE_FAULT = 0
    CHILDREN_ONLY = 1         # Zhang et al.'s equation 5 as printed
    DESCENDANTS_ONLY = 2      # the subtree without its root
    CHILDREN_SHAPE = 3        # the right rate, but the shape of the children


cdef double log_density(double x, double shape) noexcept nogil
cdef void draw_local(
    bitgen_t* rng, Py_ssize_t n, const double* loading, double precision, double df, double* local
) noexcept nogil
cdef void draw_multipliers(
    bitgen_t* rng, Py_ssize_t n_nodes, const Py_ssize_t* parent, const double* weighted_square,
    Py_ssize_t n_features, double root_shape, double shape, double* multiplier,
    double* log_precision, double* scratch, int fault,
) noexcept nogil
