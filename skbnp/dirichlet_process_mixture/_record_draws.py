"""Stored draws of collections: the record of a pass in the place of labels.

Labels are a function of the record and the rows, equation (M4.8). So they are worked out when
somebody looks at them, here for rows in memory, elsewhere for any others. So is the density of a
row given all others: blocks of a draw hold all rows.
"""

import threading
import zlib
from collections import OrderedDict
from functools import partial

import numpy as np

from skbnp.collections.tree import CELL
from skbnp.dirichlet_process_mixture._sweep import in_order
from skbnp.dirichlet_process_mixture.records._given_others import GivenOthers
from skbnp.dirichlet_process_mixture.records._kernels import Kernels
from skbnp.dirichlet_process_mixture.records._service import RowsInMemory
from skbnp.dirichlet_process_mixture.records._slice import RowSlice
from skbnp.dirichlet_process_mixture.records._whole import check_record, subset_of
from skbnp.processes.crp_law import PartitionLaw
from skbnp.processes.mfm import FiniteMixtures

# Before the names of what a draw has of its record; between names of blocks within blocks.
_PREFIX, _BETWEEN = "record.", "."
# Statistics of blocks that no label depends on.
_LEFT_OUT = ("row_mean", "scatter", "squares")
# Statistics that a draw has of its blocks.
_SLOTS = ("n_members", "mean", "factor", "count", "rate", "level_count", "total", "cells")
# What follows from the record of a draw and the rows in memory.
_FOLLOWS = ("label", "imputed")
# Draws whose labels are remembered: as many as summaries look at.
_MOST_KNOWN = 300


def packed(record):
    """A record that a pass has had, as entries of a draw."""
    return dict(_flat({name: record[name] for name in record if name != "subset"}, _PREFIX))


def _flat(values, prefix):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, prefix + name + _BETWEEN)
        elif name not in _LEFT_OUT:
            # The chain goes on with its own: arrays of draws become read-only.
            yield prefix + name, value.copy() if isinstance(value, np.ndarray) else value


def has_record(draw):
    """Whether a draw has a record in the place of labels."""
    return _PREFIX + "key" in draw


def unpacked(draw, n_table, n_subset):
    """The record of a draw of a table with so many rows, of which so many were at hand."""
    record = {}
    for path, value in draw.items():
        if path.startswith(_PREFIX):
            *folders, name = path.removeprefix(_PREFIX).split(_BETWEEN)
            place = record
            for folder in folders:
                place = place.setdefault(folder, {})
            # Arrays of draws are read-only, which kernels do not take.
            place[name] = value.copy() if isinstance(value, np.ndarray) else value
    _put_left_out(record["blocks"])
    return record | {"subset": subset_of(record["key"], n_table, n_subset)}


def _put_left_out(blocks):
    """Let there be something in the place of what no label depends on."""
    for name in list(blocks):
        if isinstance(blocks[name], dict):
            _put_left_out(blocks[name])
    if "factor" in blocks:
        blocks |= {"row_mean": np.zeros_like(blocks["mean"])}
        blocks |= {"scatter": np.zeros_like(blocks["factor"])}
    elif "rate" in blocks:
        blocks |= {"row_mean": np.zeros_like(blocks["mean"])}
        blocks |= {"squares": np.zeros_like(blocks["mean"])}


def blocks_of(draw, record, prior):
    """The blocks of a draw as families take them, the empty one last.

    Parameters
    ----------
    draw : dict
    record : dict
        `unpacked` from it: its blocks are those before the pass, under the same prior.
    prior : Prior
    """
    blocks = record["blocks"]
    if len(prior.parts) == 1:
        return blocks | _slots_of(draw, blocks, prior.parts[0])
    of_parts = {
        f"part{p}": blocks[f"part{p}"] | _slots_of(draw, blocks[f"part{p}"], part)
        for p, part in enumerate(prior.parts)
    }
    return blocks | of_parts | {"n_members": draw["n_members"]}


def _slots_of(draw, blocks, part):
    """Statistics of the columns of one kind, with what follows from those that a draw has."""
    found = {name: draw[name] for name in _SLOTS if name in blocks}
    if "log_det" in blocks:
        diagonals = np.diagonal(found["factor"], axis1=1, axis2=2)
        found["log_det"] = 2.0 * np.log(diagonals).sum(axis=1)
    if "log_rate" in blocks:
        found["log_rate"] = np.log(found["rate"])
    if "observed_count" in blocks:
        starts = part.level_start[:-1]
        found["observed_count"] = np.add.reduceat(found["level_count"], starts, axis=1)
    if "factorials" in blocks:  # no density of a row depends on them
        found["factorials"] = np.zeros(len(found["n_members"]))
    _put_left_out(found)
    return found


def given_others(rows, draw, record, prior, n_table):
    """Rows of a slice, each given all other rows of the table, under a draw.

    Parameters
    ----------
    rows : RowSlice
        Its labels become those of the draw.
    draw, record, prior
        As for `blocks_of`.
    n_table : int
        Rows of the table.

    Returns
    -------
    others : GivenOthers
    """
    if prior.components_law is not None:
        law = FiniteMixtures(n_table, draw["concentration"], prior.components_law)
    else:
        law = PartitionLaw(draw["concentration"], draw["discount"], prior.n_components or 0)
    rows.see(record)
    return GivenOthers(rows, blocks_of(draw, record, prior), law, n_table)


def check_record_of(draw, n_table, n_subset):
    """Raise a ValueError unless the record of a draw may be what its blocks come from."""
    record = unpacked(draw, n_table, n_subset)
    check_record(record, n_table)
    if len(record["blocks"]["n_members"]) != len(draw["n_members"]) - 1:
        raise ValueError("the record of a draw must have the blocks of the draw")


def label_type(n_blocks):
    """The smallest type that holds so many labels."""
    return np.uint8 if n_blocks <= 255 else np.uint16 if n_blocks <= 65535 else np.int32


class RecordDraw(dict):
    """A stored draw whose ``"label"`` and ``"imputed"`` are worked out when they are asked for.

    Parameters
    ----------
    draw : dict
    kept : KeptTable
    """

    __slots__ = ("_kept", "companions")

    def __init__(self, draw, kept):
        super().__init__(draw)
        self._kept = kept
        # Where its blocks belong among the clusters, once somebody has found out.
        self.companions = None

    def __missing__(self, name):
        if name in _FOLLOWS:
            return self._kept.of(self)[name]
        raise KeyError(name)

    def __contains__(self, name):
        # Whether there are cells to impute is known when they have been.
        return name == "label" or super().__contains__(name)

    def __or__(self, other):
        return RecordDraw(super().__or__(other), self._kept)

    def given_others(self):
        """`KeptTable.given_others` of this draw."""
        return self._kept.given_others(self)

    def get(self, name, default=None):
        """As of any dict; what follows from the record counts as there."""
        try:
            return self[name]
        except KeyError:
            return default


class KeptTable:
    """The rows of a collection that are in memory, and what draws say of them.

    Parameters
    ----------
    X : ndarray of shape (n_kept, n_features)
        Standardised, NaN where missing.
    prior : Prior
    numbers : ndarray of int of shape (n_kept,)
        Of these rows in the collection, ascending.
    n_table, n_subset : int
        Rows of the collection, and how many are at hand in a sweep.
    for_rows : callable
        As in `Sweep`.
    """

    def __init__(self, X, prior, numbers, n_table, n_subset, for_rows=in_order):
        self._X, self._prior, self._numbers = X, prior, numbers
        self.n_samples, self.n_features = X.shape
        self._n_table, self._n_subset = n_table, n_subset
        self._for_rows = for_rows
        self._begin()

    def _begin(self):
        self._rows, self._known, self._lock = None, OrderedDict(), threading.Lock()

    def observed(self, rows):
        """Some of them as they came, NaN where missing."""
        return self._X[rows]

    def of(self, draw):
        """What follows from the record of a draw: a dict of read-only arrays."""
        key = draw[_PREFIX + "key"]
        with self._lock:
            if key not in self._known:
                self._known[key] = self._found(draw)
            self._known.move_to_end(key)
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
            return self._known[key]

    def given_others(self, draw):
        """Log density of each row given all other rows of the collection, under a draw.

        In the units of the model; NaN as `GivenOthers` has it.
        """
        with self._lock:
            record = self._see(draw)
            slices = self._rows.slices
            found = [None] * len(slices)

            def work(first, stop):
                for s in range(first, stop):
                    rows = slices[s]
                    others = given_others(rows, draw, record, self._prior, self._n_table)
                    found[s] = others.log_densities(0, rows.n_samples)

            self._for_rows(work, len(slices), 1)
            return np.concatenate(found)

    def _see(self, draw):
        """Let the rows have the labels of a draw; returns its record."""
        if self._rows is None:
            start = self._prior.start()
            self._rows = RowsInMemory(
                self._X, self._prior, start, self._for_rows, numbers=self._numbers
            )
        record = unpacked(draw, self._n_table, self._n_subset)
        self._rows.see(record)
        return record

    def _found(self, draw):
        self._see(draw)
        labels, imputed = self._rows.labels(), self._rows.imputed()
        found = {"label": labels.astype(label_type(len(draw["n_members"]) - 1))}
        found |= {"imputed": imputed} if imputed.size else {}
        for array in found.values():
            array.flags.writeable = False
        return found

    def __getstate__(self):
        state = {**vars(self), "_for_rows": in_order}
        return {name: state[name] for name in state if name not in ("_rows", "_known", "_lock")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._begin()


class RowsOfFit:
    """How blocks of the rows that `fit` saw become slices, and a check that they are these rows.

    It pickles: of the rows in memory it has checksums.

    Parameters
    ----------
    reading : Reading
        From stored rows to the units of the model.
    prior : Prior
    numbers : ndarray of int of shape (n_kept,)
        Of rows in memory, ascending.
    X : ndarray of shape (n_kept, n_features)
        These, in the units of the model.
    """

    def __init__(self, reading, prior, numbers, X):
        self.reading, self._kernels = reading, Kernels(prior, prior.start())
        self._numbers, self._checksums = numbers, _checksums(X)

    def cells(self, block, start):
        """The rows of a block, the first of which has this number, in slices.

        Yields
        ------
        rows : RowSlice
        X : ndarray of shape (n_rows, n_features)
            In the units of the model.

        Raises
        ------
        ValueError
            If a row is not the one of its number.
        """
        rows = getattr(block, "iloc", block)
        for first in range(0, len(block), CELL):
            X = self.reading.visible(self.reading.floats(rows[first : first + CELL]))
            numbers = np.arange(start + first, start + first + len(X))
            self._check(X, start + first)
            yield RowSlice(X, numbers, self._kernels), X

    def _check(self, X, start):
        known = slice(*np.searchsorted(self._numbers, [start, start + len(X)]))
        found = _checksums(X[self._numbers[known] - start])
        others = np.flatnonzero(found != self._checksums[known])
        if len(others):
            raise ValueError(
                "X must have the rows that fit saw, in their order, got another row "
                f"{self._numbers[known][others[0]]}"
            )


def _checksums(X):
    """One of each row; a missing cell is one, whatever its bits."""
    rows = np.where(np.isnan(X), np.inf, X + 0.0)
    return np.array([zlib.crc32(row) for row in rows], dtype=np.uint32)


class LabelsOfDraw:
    """Labels of the rows of any block under a draw. It pickles.

    Parameters
    ----------
    draw : dict
    rows : RowsOfFit
    n_table, n_subset : int
        As of `KeptTable`.
    """

    def __init__(self, draw, rows, n_table, n_subset):
        self._record, self._rows = unpacked(draw, n_table, n_subset), rows

    def __call__(self, block, start):
        """Of all rows of a block, the first of which has this number: ndarray of int."""
        parts = [self._labels(cell) for cell, _ in self._rows.cells(block, start)]
        return np.concatenate([np.zeros(0, dtype=np.intp), *parts])

    def _labels(self, cell):
        cell.see(self._record)
        return np.array(cell.label)


def wrapped(posterior_draws, kept):
    """Draws with a record as `RecordDraw`, all others as they are."""
    wrap = partial(RecordDraw, kept=kept)
    return [
        [wrap(draw) if has_record(draw) else draw for draw in chain] for chain in posterior_draws
    ]
