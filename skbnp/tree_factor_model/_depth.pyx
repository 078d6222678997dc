"""The depth below the last branching level, which follows the data in warm-up.

mathematics/tree_factor_model, section 12.
"""

from libc.math cimport fmax


# An axis whose signal-to-noise is below this share of what noise alone gives is pruned.
cdef double PRUNE_TOLERANCE = 0.1


cdef class Depth:
    """Cuts last levels that no branch needs, and adds one where all are needed.

    Branches keep a common depth: one that could be cut alone would never grow back when it is born
    again, and the chain would forget its own law.
    """

    def __init__(self, State state, LeafLaws laws):
        self.state, self.laws = state, laws
        self.law = Law(state.rows, state.max_depth)

    cdef int follow_data(self, bitgen_t* rng) except -1 nogil:
        cdef Py_ssize_t k, n_cut = 0, lowest = 1
        for k in range(self.state.hyper.branch_level.shape[0]):
            lowest = max(lowest, self.state.hyper.branch_level[k] + 1)
        while self.state.depth > lowest and self._last_level_is_idle():
            self.state.cut_last_level()
            n_cut += 1
        if n_cut == 0 and lowest <= self.state.depth < self.state.max_depth:
            self.state.add_level(rng)
        return 0

    cdef bint _last_level_is_idle(self) noexcept nogil:
        """Whether in no branch the last axis stands out of the noise: (T12.1)."""
        cdef Py_ssize_t b, last = self.state.depth - 1
        cdef double pivot
        for b in range(self.state.n_leaves):
            if self.laws.prepare(self.law, b, self.state.rows.n_patterns, 1) != 0:
                return False
            pivot = self.law.factor[last * self.state.depth + last]
            if pivot * pivot / self.state.score_precision[b, last] - 1.0 > PRUNE_TOLERANCE * fmax(
                1.0, self.state.n_features / <double> self.state.leaf_count[b]
            ):
                return False
        return True
