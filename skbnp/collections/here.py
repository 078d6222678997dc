"""Blocks of rows, worked on by a few threads of this process."""

import numpy as np

from skbnp.collections.sources import Slice
from skbnp.collections.work import joined, part_of_block
from skbnp.mcmc.rows import for_row_blocks


class Graph:
    """The tasks that a block of a Dask collection comes from; computed where it is read."""

    def __init__(self, key, tasks):
        self._key, self._tasks = key, tasks

    def read(self):
        import dask

        return dask.get(self._tasks, self._key)


def readers_of(blocks):
    """What can read blocks wherever it is: a `Slice` itself, the graph of a Delayed."""
    if all(isinstance(block, Slice) for block in blocks):
        return list(blocks)
    graphs, readers = {}, []
    for block in blocks:
        # Blocks of one collection have one graph, of which each needs its own part alone.
        graph = block.dask
        if id(graph) not in graphs:
            graphs[id(graph)] = graph, dict(graph)  # the first so that it lives
        readers.append(Graph(block.key, _tasks_of(graphs[id(graph)][1], block.key)))
    return readers


def _tasks_of(graph, key):
    """The part of a graph that one key needs: in time of its own size, not of all blocks'."""
    from dask.core import get_dependencies

    found, ahead = {}, [key]
    while ahead:
        key = ahead.pop()
        if key not in found:
            found[key] = graph[key]
            ahead.extend(get_dependencies(graph, key))
    return found


class Here:
    """Runs functions of blocks in threads of this process.

    Parameters
    ----------
    n_threads : int
    """

    def __init__(self, n_threads):
        self.n_threads = n_threads
        self._readers = None

    def delayed(self, X):
        """The blocks of a Dask collection, in order."""
        return np.ravel(X.to_delayed()).tolist()

    def hold(self, source):
        """Take the blocks that will be read again and again."""
        self._readers = readers_of(source.blocks)

    def map(self, function, places, blocks, arguments):
        """``function(block, where, *arguments)`` of each block, in order."""
        readers = readers_of(blocks)

        def call(first, _):
            return function(readers[first], places[first], *arguments[first])

        return for_row_blocks(call, len(readers), 1, n_threads=self.n_threads)

    def part(self, places, batch, n_sweeps):
        """Answers to a batch for all rows that are held: a Part, or Failed."""

        def call(first, _):
            return part_of_block(self._readers[first], places[first], batch)

        return joined(for_row_blocks(call, len(places), 1, n_threads=self.n_threads), batch)
