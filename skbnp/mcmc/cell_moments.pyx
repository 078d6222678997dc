"""What the sweeps of a chain say of the missing cells of its rows."""

from skbnp.numerics._moments cimport merge_part

import numpy as np

from skbnp.mcmc.fields import Field


cdef class CellMoments(Move):
    """A move that knows the law of each missing cell given all else.

    The moments of that law are averaged over the sweeps after the warm-up; no later sweep depends
    on them.
    """

    FIELDS = (
        Field("n_imputed", int, at_least=0),
        Field("imputed_mean", float, ("n_cells",)),
        Field("imputed_square", float, ("n_cells",), at_least=0),
    )

    def __init__(self, Py_ssize_t n_cells, bit_generator):
        super().__init__(bit_generator)
        self.n_cells = n_cells
        self.forget()

    def forget(self):
        self.n_imputed = 0
        self.imputed_mean, self.imputed_square = np.zeros(self.n_cells), np.zeros(self.n_cells)

    def adapt(self):
        """What warm-up sweeps say of the cells counts for nothing."""
        self.forget()

    def set_state(self, state):
        """Take what ``get_state`` returned; a state of version 0.1 has no moments yet."""
        if "n_imputed" not in state:
            none = np.zeros(self.n_cells)
            state = state | {"n_imputed": 0, "imputed_mean": none, "imputed_square": none}
        super().set_state(state)

    cdef void add_cell(self, Py_ssize_t t, double mean, double variance) noexcept nogil:
        """What this sweep says of cell t."""
        merge_part(
            <double> self.n_imputed, 1.0, mean, variance, &self.imputed_mean[t],
            &self.imputed_square[t],
        )
