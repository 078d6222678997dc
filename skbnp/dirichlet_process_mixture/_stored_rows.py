"""A chain of the mixture over the rows of a collection."""

import numpy as np

from skbnp.dirichlet_process_mixture._model import STARTS, start_labels
from skbnp.dirichlet_process_mixture._record_draws import RecordDraw, packed
from skbnp.dirichlet_process_mixture.records._elsewhere import RowsElsewhere
from skbnp.dirichlet_process_mixture.records._sampler import RecordSampler


class CollectionSampler(RecordSampler):
    """A chain over the rows of a collection: in a sweep it asks together with all others."""

    def __init__(self, rows, prior, labels, bit_generator, **options):
        self._rows = rows
        everywhere = RowsElsewhere(rows, prior, prior.start())
        super().__init__(everywhere, prior, labels, bit_generator, finds_start=True, **options)

    def sweep(self):
        """One full transition."""
        with self._rows.sweep():
            super().sweep()

    def draw(self):
        """Snapshot for prediction, with the record in the place of labels."""
        return {**self._blocks(), **packed(self.state.record)}

    @property
    def labels(self):
        """Block of each row in memory."""
        return RecordDraw(self.draw(), self._kept)["label"]


def make_sampler(bit_generator, chain, *, rows, kept, X, prior, **options):
    """The sampler of one chain on a collection.

    Parameters
    ----------
    rows : StoredRows
    kept : KeptTable
        The rows that are in memory too.
    X : ndarray of shape (n_kept, n_features)
        Those rows, standardised.
    """
    labels = start_labels(STARTS[chain % len(STARTS)], X, prior, np.random.Generator(bit_generator))
    return CollectionSampler(rows, prior, labels, bit_generator, kept=kept, **options)
