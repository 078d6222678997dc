"""Wrong formulas of processes; they stand on no model, so that no kernel of one makes them due."""

from numpy.random cimport bitgen_t

import numpy as np

from skbnp.numerics cimport rng as draws
from skbnp.processes._icp_draws cimport DrawNodeByNode

include "wrong_multipliers.pxi"


def swapped_beta_chain(sizes, concentration, prior, seed, n_updates):
    """Successive values of the Dirichlet process' update with its Beta shapes swapped."""
    bit_generator = np.random.default_rng(seed).bit_generator
    cdef bitgen_t* rng = draws.borrow(bit_generator)
    cdef double current = concentration, shape = prior[0], rate = prior[1], log_x
    cdef double[::1] out = np.empty(n_updates)
    cdef Py_ssize_t n_items = sum(sizes), n_blocks = len(sizes), t
    for t in range(out.shape[0]):
        log_x = draws.log_beta(rng, n_items - 1, current + 1.0)
        current = draws.draw_gamma(rng, shape + n_blocks - 1, rate - log_x)
        out[t] = current
    return np.asarray(out)


def update_multipliers(squares, n_features, delta, root_shape, shape, parent, random_state, rule):
    """One update of all multipliers by one of ``RULES``; arguments as of `sample_multipliers`."""
    cdef const Py_ssize_t[::1] above = np.ascontiguousarray(parent, dtype=np.intp)
    cdef const double[::1] square = np.ascontiguousarray(squares)
    cdef double[::1] multiplier = np.array(delta), log_precision = np.log(delta)
    cdef double[::1] scratch = np.empty(3 * len(delta))
    cdef Py_ssize_t h
    for h in range(above.shape[0]):
        if above[h] >= 0:
            log_precision[h] += log_precision[above[h]]
    draw_multipliers(
        draws.borrow(random_state.bit_generator), above.shape[0], &above[0], &square[0],
        n_features, root_shape, shape, &multiplier[0], &log_precision[0], &scratch[0],
        RULES.index(rule),
    )
    return np.asarray(multiplier)


cdef class BinomialParents(DrawNodeByNode):
    """The paper's equation (10) as printed (section 9, item 6)."""

    cdef bint _is_taken(self, Py_ssize_t m, Py_ssize_t d) noexcept nogil:
        return draws.uniform(self.rng) * (self.phi + self.alpha) < self.phi


cdef class StrictlyBelowParents(DrawNodeByNode):
    """Equation (12) with the present node left out (item 7)."""

    cdef double _weight_of_none(self, Py_ssize_t n_others) noexcept nogil:
        return self.alpha + n_others - 1


cdef class AllIntroducedParents(DrawNodeByNode):
    """Equations (11) and (12) counting nodes that still wait (item 8)."""

    cdef Py_ssize_t _count(self, Py_ssize_t i) noexcept nogil:
        return self.network.n_nodes
