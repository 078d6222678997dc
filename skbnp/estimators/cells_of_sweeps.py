"""Missing cells of the training rows, where the chains average them as they run."""

import numpy as np

from skbnp.summaries.training_cells import TrainingCells


class CellsOfSweepsMixin:
    """For chains with a move "missing" that has moments of the cells: `mcmc.cell_moments`.

    It stands before `DensityMixin`, which would ask the draws.
    """

    _fills_training_table = True

    def _keep_training_cells(self, X):
        """Set what the chains say of the missing cells, over all sweeps after the warm-up."""
        if np.isnan(X).any():
            # Without a move there is no cell to model: holes are in constant columns alone.
            states = [state["moves"] for state in self.posterior_.final_states]
            chains = [moves["missing"] for moves in states if "missing" in moves]
            columns = self._modelled_columns()
            self._training_cells = TrainingCells.of_states(X, columns, chains)

    def _known_cells(self):
        return self._training_cells
