"""The rows of a collection as a chain of the mixture visits them."""

from dataclasses import dataclass

import numpy as np

from skbnp.dirichlet_process_mixture._model import STARTS, Prior, start_labels
from skbnp.dirichlet_process_mixture.records._sampler import RecordSampler
from skbnp.dirichlet_process_mixture.records._service import RowsInMemory
from skbnp.dirichlet_process_mixture.records._slice import RowSlice


@dataclass(frozen=True)
class OfSlice:
    """A method of `RowSlice` as a task on the rows of a cell. It pickles."""

    method: str
    prior: Prior
    start: dict

    def __call__(self, X, rows, request):
        one = RowSlice(X, np.arange(*rows, dtype=np.intp), self.prior, self.start)
        return getattr(one, self.method)(request)


class RowsOfCollection:
    """All rows of a collection, none of them here; takes the place of `RowsInMemory`.

    Parameters
    ----------
    rows : StoredRows
    prior : Prior
    start : dict
        The hyperparameters of the columns.
    """

    def __init__(self, rows, prior, start):
        self._rows, self._prior, self._start = rows, prior, start
        self.n_samples, self.n_features = rows.n_samples, rows.n_features

    def run(self, task, request, combine):
        """The sum over all cells of what a method of `RowSlice` returns."""
        # Nobody remembers the cells of rows that are not kept.
        request = request | {"remembered": -1.0} if isinstance(request, dict) else request
        return self._rows.run(OfSlice(task, self._prior, self._start), request, combine)

    def moments(self):
        """Of missing cells over the sweeps: none are kept."""
        return {}

    def put_moments(self, moments):
        """Take what ``moments`` returned."""
        if moments:
            raise ValueError("moments of cells of a collection must be none")

    def forget_imputations(self):
        """There are none."""


class CollectionSampler(RecordSampler):
    """A chain over the rows of a collection: in a sweep it asks together with all others."""

    def sweep(self):
        """One full transition."""
        with self.state.service._rows.sweep():
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
    start = prior.start()
    return CollectionSampler(
        RowsOfCollection(rows, prior, start),
        prior,
        labels,
        bit_generator,
        finds_start=True,
        kept=RowsInMemory(X, prior, start, for_rows, numbers=kept),
        **options,
    )
