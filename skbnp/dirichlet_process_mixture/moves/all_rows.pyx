"""Labels of all rows at once, given weights and parameters of the blocks."""

import numpy as np

from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.dirichlet_process_mixture.moves._row_pass cimport RowPass
from skbnp.mcmc.chain cimport BROKEN, DONE, Move


cdef class AllRows(Move):
    """Weights and parameters given the partition, then every label given these.

    Over all components of a finite mixture that is plain Gibbs sampling. Over the occupied blocks
    of an infinite one, rows join only blocks whose anchor comes before them: equation (M4.4).
    """

    NAME = "all_rows"
    COUNTS = ("all_rows",)  # rows that moved, and rows that were redrawn

    def __init__(self, State state, bint over_components, for_rows, bit_generator):
        super().__init__(bit_generator)
        self.state = state
        self.over_components = over_components
        self.row_pass = RowPass(state.family, state.label, for_rows)
        self.new_label = np.zeros(0, dtype=np.intp)
        self.row_pass.rebuild(state.n_clusters)
        state.weigh_all()

    @classmethod
    def of(cls, State state, sweep, bit_generator):
        """Over all components where no row is redrawn alone."""
        if not sweep.at_once:
            return None
        return cls(state, not sweep.by_rows, sweep.for_rows, bit_generator)

    cpdef int run(self) except -1:
        cdef State state = self.state
        cdef Py_ssize_t n_blocks = state.n_clusters
        if self.over_components:
            n_blocks = state.law.n_components
        self.row_pass.run(
            self.rng, n_blocks, self.discount(), state.law.weight_of_rest(n_blocks),
            self.anchored(), state.n_imputed,
        )
        self.close_gaps(n_blocks)
        state.n_imputed += 1
        self.accepted[0] += self.row_pass.n_moved
        self.proposed[0] += state.n_samples
        return BROKEN if self.row_pass.failed else DONE

    cdef bint anchored(self) noexcept nogil:
        """Whether every block keeps its anchor, so that none runs empty."""
        return not self.over_components

    cdef double discount(self) noexcept nogil:
        """Weights are Dirichlet(n_c - discount, ..., rest)."""
        return self.state.law.discount

    cdef int close_gaps(self, Py_ssize_t n_blocks) except -1 nogil:
        """Let the non-empty among the first n_blocks slots be slots 0..n_clusters-1, in order."""
        cdef Py_ssize_t k, i
        if self.new_label.shape[0] < n_blocks:
            with gil:
                self.new_label = np.zeros(2 * n_blocks, dtype=np.intp)
        self.state.n_clusters = 0
        for k in range(n_blocks):
            if self.state.family.n_members[k] == 0:
                continue
            self.new_label[k] = self.state.n_clusters
            if k != self.state.n_clusters:
                self.state.family.copy(k, self.state.n_clusters)
                self.state.family.clear(k)
            self.state.n_clusters += 1
        if self.state.n_clusters < n_blocks:
            for i in range(self.state.n_samples):
                self.state.label[i] = self.new_label[self.state.label[i]]
        self.state.weigh_all()
        return 0
