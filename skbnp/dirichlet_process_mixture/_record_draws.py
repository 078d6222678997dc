"""Stored draws of collections: the record of a pass in the place of labels.

Labels are a function of the record and the rows, equation (M4.8). So they are worked out when
somebody looks at them, here for rows in memory, elsewhere for any others.
"""

import threading
from collections import OrderedDict
from functools import partial

import numpy as np

from skbnp.collections.tree import CELL
from skbnp.dirichlet_process_mixture._sweep import in_order
from skbnp.dirichlet_process_mixture.records._kernels import Kernels
from skbnp.dirichlet_process_mixture.records._service import RowsInMemory
from skbnp.dirichlet_process_mixture.records._slice import RowSlice
from skbnp.dirichlet_process_mixture.records._whole import check_record, subset_of

# Before the names of what a draw has of its record; between names of blocks within blocks.
_PREFIX, _BETWEEN = "record.", "."
# Statistics of blocks that no label depends on.
_LEFT_OUT = ("row_mean", "scatter", "squares")
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

    def _found(self, draw):
        if self._rows is None:
            start = self._prior.start()
            self._rows = RowsInMemory(
                self._X, self._prior, start, self._for_rows, numbers=self._numbers
            )
        self._rows.see(unpacked(draw, self._n_table, self._n_subset))
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


class LabelsOfDraw:
    """Labels of the rows of any block under a draw. It pickles.

    Parameters
    ----------
    draw : dict
    reading : Reading
        From stored rows to the units of the model.
    prior : Prior
    n_table, n_subset : int
        As of `KeptTable`.
    """

    def __init__(self, draw, reading, prior, n_table, n_subset):
        self._record = unpacked(draw, n_table, n_subset)
        self._reading, self._kernels = reading, Kernels(prior, prior.start())

    def __call__(self, block, start):
        """Of all rows of a block, the first of which has this number: ndarray of int."""
        rows = getattr(block, "iloc", block)
        parts = [self._of_cell(rows[t : t + CELL], start + t) for t in range(0, len(block), CELL)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)

    def _of_cell(self, rows, start):
        X = self._reading.visible(self._reading.floats(rows))
        cell = RowSlice(X, np.arange(start, start + len(X)), self._kernels)
        cell.see(self._record)
        return np.array(cell.label)


def wrapped(posterior_draws, kept):
    """Draws with a record as `RecordDraw`, all others as they are."""
    wrap = partial(RecordDraw, kept=kept)
    return [
        [wrap(draw) if has_record(draw) else draw for draw in chain] for chain in posterior_draws
    ]
