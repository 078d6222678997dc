"""What is done with a block of rows, in a thread of this process or on a worker.

All functions here are importable, and their answers are values: an error of a block is one too, so
that it is said once however many workers and retries there are.
"""

import pickle
import time
import zlib
from dataclasses import dataclass

import numpy as np

from skbnp.collections.allocator import keep_freed_memory
from skbnp.collections.tree import CELL, fold, leaves
from skbnp.mcmc.rows import OneBlasThread

# Times that a block is read before an error is believed, and seconds between.
_N_READS, _PAUSE = 3, 0.2


@dataclass(frozen=True)
class Request:
    """Something to be worked out of all rows.

    Parameters
    ----------
    task : callable
        ``task(piece, rows, argument)`` of the rows of a cell, float64 (n_rows, n_features) in the
        units of the model, and their global numbers ``(start, stop)``.
    argument : object
    combine : callable
        ``combine(left, right)`` of the values of neighbours.
    """

    task: object
    argument: object
    combine: object


class Batch:
    """Requests that are answered together, and how rows are read. It pickles.

    A class of its own, in which no scheduler looks for tasks.
    """

    def __init__(self, requests, reading):
        self.requests, self.reading = tuple(requests), reading


@dataclass(frozen=True)
class Where:
    """The place of a block: its number, and the numbers of its rows."""

    block: int
    start: int
    stop: int

    def __str__(self):
        block = f"block {self.block} of X"
        # How many rows a block has may be unknown until it is read.
        if self.stop > self.start:
            block += f" (rows {self.start} to {self.stop - 1})"
        return block


class Failed:
    """An error as a value: the answer of a block that cannot be read."""

    def __init__(self, where, error):
        self.where, self.error = where, _picklable(error)

    def raised(self):
        """The error that users see, which names the block and its rows."""
        if isinstance(self.error, ChangedError):
            return self.error
        known = (ValueError, TypeError, MemoryError)
        kind = next((one for one in known if isinstance(self.error, one)), RuntimeError)
        text = str(self.error) if kind is not RuntimeError else repr(self.error)
        return kind(f"{self.where}: {text}")


class ChangedError(RuntimeError):
    """The rows of a collection are no longer those of an earlier pass."""


@dataclass(frozen=True)
class Part:
    """What came of neighbouring blocks: nodes for each request, and checksums of the blocks."""

    nodes: tuple
    checksums: tuple


def part_of_block(block, where, batch):
    """Answer all requests for the rows of one block.

    Parameters
    ----------
    block : array or object with a method ``read()``
    where : Where
    batch : Batch

    Returns
    -------
    part : Part or Failed
    """
    try:
        with OneBlasThread():
            return _part(_rows_of(block, where), where, batch)
    except Exception as error:
        return Failed(where, error)


def part_on_worker(block, where, batch):
    """The same in a process that is there for such work."""
    keep_freed_memory()
    return part_of_block(block, where, batch)


def joined(parts, batch):
    """One part of neighbouring ones; the first failure where there is one."""
    failed = next((part for part in parts if isinstance(part, Failed)), None)
    if failed is not None:
        return failed
    nodes = tuple(
        fold([node for part in parts for node in part.nodes[r]], request.combine)
        for r, request in enumerate(batch.requests)
    )
    return Part(nodes, tuple(one for part in parts for one in part.checksums))


def taken_of_block(block, where, rows):
    """Some rows of a block as they are stored, by their global numbers, or Failed."""
    try:
        found = _rows_of(block, where)
        places = rows - where.start
        if hasattr(found, "iloc"):
            return found.iloc[places]
        return np.asarray(found[places])
    except Exception as error:
        return Failed(where, error)


def n_rows_of_block(block, where):
    """How many rows a block has, or Failed."""
    try:
        return len(_read(block))
    except Exception as error:
        return Failed(where, error)


def same(value):
    """The value itself: a task on which others depend."""
    return value


def _rows_of(block, where):
    """The rows of a block as they are stored; refused if they are not so many as there were."""
    found = _read(block)
    if len(found) != where.stop - where.start:
        raise ChangedError(
            f"X must stay as it is while it is sampled, but {where} has {len(found)} rows now"
        )
    return found


def _read(block):
    """A block itself, or what it reads: tried again where files or networks fail for a moment."""
    if not hasattr(block, "read"):
        return block
    for n_failed in range(1, _N_READS):
        try:
            return block.read()
        except OSError:
            time.sleep(_PAUSE * n_failed)
    return block.read()


def _part(found, where, batch):
    cells, values = range(where.start, where.stop, CELL), [[] for _ in batch.requests]
    ends = []
    for start in cells:
        stop = min(start + CELL, where.stop)
        X = _floats(found[start - where.start : stop - where.start], start, batch.reading)
        ends += [X[0].tobytes()] if start == where.start else []
        ends += [X[-1].tobytes()] if stop == where.stop else []
        piece = batch.reading.visible(X)
        for r, request in enumerate(batch.requests):
            values[r].append(request.task(piece, (start, stop), request.argument))
    nodes = tuple(
        fold(leaves(of_cells, where.start // CELL), request.combine)
        for of_cells, request in zip(values, batch.requests, strict=True)
    )
    return Part(nodes, ((where.block, zlib.crc32(b"".join(ends))),))


def _floats(rows, start, reading):
    """Rows as numbers; the error of a cell names the rows among which it is."""
    try:
        return reading.floats(rows)
    except (ValueError, TypeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{error}, among rows {start} to {start + len(rows) - 1}") from error


def _picklable(error):
    """The error, or its words where it does not survive the way from a worker."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(repr(error))
    return error
