"""A chain of the mixture over the rows of a collection."""

import numpy as np

from skbnp.dirichlet_process_mixture._model import STARTS, start_labels
from skbnp.dirichlet_process_mixture.records._sampler import RecordSampler
from skbnp.dirichlet_process_mixture.records._service import RowsElsewhere, RowsInMemory


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


def make_sampler(bit_generator, chain, *, rows, kept, X, prior, for_rows, **options):
    """The sampler of one chain on a collection.

    Parameters
    ----------
    rows : StoredRows
    kept : ndarray of int of shape (n_kept,)
        Numbers of the rows that are in memory too.
    X : ndarray of shape (n_kept, n_features)
        Those rows, standardised.
    """
    labels = start_labels(STARTS[chain % len(STARTS)], X, prior, np.random.Generator(bit_generator))
    in_memory = RowsInMemory(X, prior, prior.start(), for_rows, numbers=kept)
    return CollectionSampler(rows, prior, labels, bit_generator, kept=in_memory, **options)
