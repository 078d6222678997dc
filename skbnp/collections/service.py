"""The rows of a collection as samplers see them: questions about all rows, and some rows."""

import numpy as np

from skbnp.collections.here import Here
from skbnp.collections.kinds import DASK_FRAME, SLICED, active_client, kind_of
from skbnp.collections.meeting import Meeting
from skbnp.collections.reading import Reading
from skbnp.collections.sources import of_encoded, opened
from skbnp.collections.tree import total
from skbnp.collections.work import Batch, ChangedError, Failed, Request, taken_of_block


class StoredRows:
    """The rows of a collection.

    Parameters
    ----------
    X : collection
        As `skbnp.collections.kinds` knows them. Of Dask with an active client of `distributed`
        they are read by its workers, all others by threads of this process.
    n_threads : int, default=1
        Of this process.

    Attributes
    ----------
    n_samples, n_features : int
    reading : Reading
        How they become numbers.
    """

    def __init__(self, X, n_threads=1):
        client = None if kind_of(X) == SLICED else active_client()
        if client is None:
            self._executor = Here(n_threads)
        else:
            from skbnp.collections.cluster import Cluster

            self._executor = Cluster(client)
        self._is_frame = kind_of(X) == DASK_FRAME
        # As they are stored, and as what is read in every pass; a frame becomes an array.
        self._stored = opened(X, self._executor)
        self._source = None
        self.n_samples, self.n_features = self._stored.n_samples, self._stored.n_features
        self.reading = Reading()
        self._checksums = None
        self._meeting = Meeting(self._serve)

    @property
    def lengths(self):
        """Rows of each block, as the collection has them."""
        return self._stored.lengths

    def prepare(self, reading):
        """Say how rows are read, before the first `run`."""
        self._source, self.reading = self._stored, reading
        if self._is_frame:
            self._source = of_encoded(self._stored, reading.encode, self._executor)
            self.reading = Reading(units=reading.units)
        self._executor.hold(self._source)

    def use_units(self, units):
        """Hand out rows in these units from now on."""
        self.reading = self.reading.with_units(units)

    def expect(self, n_chains):
        """Say how many chains will ask."""
        self._meeting.n_chains = n_chains

    def sweep(self):
        """A context in which a chain makes a sweep: those that are in one ask together."""
        return self._meeting.sweep()

    def run(self, task, argument, combine):
        """Work something out of all rows.

        Parameters
        ----------
        task : callable
            ``task(piece, rows, argument)`` with a cell's rows in the units of the model, float64
            (n_rows, n_features), NaN where missing, and their numbers ``rows = (start, stop)``. An
            importable function.
        argument : object
            It pickles.
        combine : callable
            ``combine(left, right)`` of the values of neighbouring cells.

        Returns
        -------
        value : object
            The same to the last bit whatever blocks rows come in and whoever reads them.

        Raises
        ------
        ValueError, TypeError
            If a block cannot be read: it names block and rows.
        RuntimeError
            If rows are not those of an earlier pass, or workers are gone.
        """
        return self._meeting.ask(Request(task, argument, combine))

    def take(self, rows):
        """Some rows as they are stored, in memory.

        Parameters
        ----------
        rows : ndarray of int
            Their numbers, ascending.

        Returns
        -------
        X : ndarray or frame of shape (len(rows), n_features)
        """
        places, blocks, wanted = [], [], []
        for where, block in zip(self._stored.places, self._stored.blocks, strict=True):
            first, last = np.searchsorted(rows, [where.start, where.stop])
            if last > first:
                places.append(where)
                blocks.append(block)
                wanted.append((rows[first:last],))
        found = self._executor.map(taken_of_block, places, blocks, wanted)
        _raise_failed(found)
        if self._is_frame:
            import pandas as pd

            return found[0] if len(found) == 1 else pd.concat(found)
        return np.concatenate(found)

    def _serve(self, requests):
        batch = Batch(requests, self.reading)
        part = self._executor.part(self._source.places, batch, self._meeting.n_sweeps)
        _raise_failed([part])
        self._check_checksums(dict(part.checksums))
        return [
            total(nodes, request.combine)
            for nodes, request in zip(part.nodes, requests, strict=True)
        ]

    def _check_checksums(self, found):
        if self._checksums is None:
            self._checksums = found
        for where in self._source.places:
            if found[where.block] != self._checksums[where.block]:
                raise ChangedError(
                    "X must stay as it is while it is sampled, but the first or last row of "
                    f"{where} is another one than in an earlier pass"
                )


def _raise_failed(found):
    for one in found:
        if isinstance(one, Failed):
            # Without the traceback of a worker or thread, which has the same words.
            raise one.raised() from None
