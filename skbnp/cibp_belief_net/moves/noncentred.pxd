from skbnp.cibp_belief_net._state cimport Network
from skbnp.cibp_belief_net.moves.activations cimport LayerActivations
from skbnp.mcmc.chain cimport Move


cdef enum:
    # Kinds of parameters.
    PRECISION = 0
    BIAS = 1
    WEIGHT = 2


cdef struct Line:
    # A unit's activations a + slope t + O(t^2) as one of its parameters moves by t.
    Py_ssize_t slot, unit
    int kind                                # PRECISION, BIAS or WEIGHT
    double value                            # of the parameter; of a precision its logarithm
    double prior_mean, prior_precision      # of a bias or weight
    double shape, rate                      # of a precision
    double quadratic                        # S of the unit's children


cdef class NonCentred(Move):
    cdef:
        Network net
        LayerActivations gathered           # lends what the children say of a layer's units
        # Of the unit at work, (stride,).
        double[::1] linear                  # T where its u is what it is
        double[::1] residual                # a - mean
        double[::1] slope                   # da/dt
        double[::1] pre, post               # at the proposal

    cdef int _update_layer(self, Py_ssize_t layer) except -1 nogil
    cdef void _load(self, Py_ssize_t layer, Py_ssize_t k, Line* line) noexcept nogil
    cdef void _try_precision(self, Py_ssize_t layer, Line* line) noexcept nogil
    cdef void _try_bias(self, Py_ssize_t layer, Line* line) noexcept nogil
    cdef void _try_weight(self, Py_ssize_t layer, Py_ssize_t parent, Line* line) noexcept nogil
    cdef bint _is_accepted(self, const Line* line, double* step) noexcept nogil
    cdef double _log_way_back(self, const Line* line, double step) noexcept nogil
    cdef void _follow(self, const Line* line, double step) noexcept nogil
    cdef double _gain(self, const Line* line, double step) noexcept nogil
    cdef void _measure(
        self, const Line* line, double step, double* center, double* precision
    ) noexcept nogil
    cdef void _take(self, const Line* line) noexcept nogil
