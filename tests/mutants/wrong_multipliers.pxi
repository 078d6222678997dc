"""Updates of the multiplicative gamma process by wrong rules, for mutants of it and of the tree."""

from libc.math cimport exp, log
from numpy.random cimport bitgen_t

from skbnp.numerics cimport rng as draws


cdef enum Rule:
    CHILDREN_ONLY           # as Zhang et al. print it
    DESCENDANTS_ONLY        # the subtree without its root
    CHILDREN_SHAPE          # the right rate, but the shape of the children

RULES = ("children_only", "descendants_only", "children_shape")


cdef void draw_multipliers(
    bitgen_t* rng, Py_ssize_t n_nodes, const Py_ssize_t* parent, const double* square,
    Py_ssize_t n_features, double root_shape, double shape, double* multiplier,
    double* log_precision, double* scratch, Rule rule,
) noexcept nogil:
    """Update every multiplier from the roots down, by sums over the wrong nodes."""
    cdef double* total = scratch
    cdef double* size = scratch + n_nodes
    cdef double* log_before = scratch + 2 * n_nodes
    cdef double own, gain, first
    cdef Py_ssize_t h
    for h in range(n_nodes):
        log_before[h] = log_precision[h]
        total[h] = size[h] = 0.0
    # Of all descendants, deepest first; `total` lacks the node itself until its turn has come.
    for h in range(n_nodes - 1, -1, -1):
        own = exp(log_precision[h]) * square[h]
        if parent[h] >= 0:
            total[parent[h]] += own
            size[parent[h]] += 1.0
            if rule != CHILDREN_ONLY:
                total[parent[h]] += total[h]
            if rule == DESCENDANTS_ONLY:
                size[parent[h]] += size[h]
    for h in range(n_nodes):
        own = exp(log_before[h]) * square[h] if rule == CHILDREN_SHAPE else 0.0
        gain = 0.0 if parent[h] < 0 else log_precision[parent[h]] - log_before[parent[h]]
        first = root_shape if parent[h] < 0 else shape
        multiplier[h] = draws.draw_gamma(
            rng, first + 0.5 * n_features * size[h],
            1.0 + 0.5 * exp(gain) * (total[h] + own) / multiplier[h],
        )
        log_precision[h] = log(multiplier[h])
        if parent[h] >= 0:
            log_precision[h] += log_precision[parent[h]]
