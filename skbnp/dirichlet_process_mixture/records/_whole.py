"""The state of a table that is visited cell by cell, between two passes over its rows."""

import numpy as np

from skbnp.dirichlet_process_mixture.records._at_hand import Outside, RowsAtHand
from skbnp.dirichlet_process_mixture.records._blocks import (
    about_rows,
    rows_of_blocks,
    take_blocks,
)
from skbnp.dirichlet_process_mixture.records._slice import places
from skbnp.dirichlet_process_mixture.records._sums import COMBINE
from skbnp.mcmc.chain import State
from skbnp.numerics.states import entry

# What a state of it is made of: all else follows from it and the rows.
_PARTS = ("record", "next_key", "n_imputed")
LOST_DIGITS = (
    "the covariance of a cluster cannot be worked out in double precision, even about the mean of "
    "its rows: X may hold values that are far beyond all others of their column"
)


class Whole(State):
    """Labels as the last record gives them, and what the last pass returned.

    Attributes
    ----------
    record : dict
        ``key`` of the pass, ``blocks`` with the prior they are under, ``concentration``,
        ``discount`` and ``rest``, ``anchor_place`` and ``anchor_row`` of every block, ``subset``.
        Of a start also ``label`` of every row.
    next_key : int
    next_subset : ndarray of int
        Key and subset of the next pass, drawn before this one: neither looks at the state.
    found : dict
        See `RowSlice.pass_rows`, the sum over all cells.
    at_hand : RowsAtHand
        The rows of the next subset, and all blocks. Moves change it until the next pass.
    """

    def __init__(self, service, prior, n_subset, log_jacobian):
        self.service, self.prior = service, prior
        self.n_subset = min(n_subset, service.n_samples)
        self.n_imputed = 0
        self._log_jacobian = log_jacobian
        self._names = ("concentration", "discount", *prior.start())

    def draw_next(self, key):
        """Let the next pass have this key, and a subset drawn by it."""
        self.next_key = int(key)
        self.next_subset = subset_of(key, self.service.n_samples, self.n_subset)

    def run(self, task, request):
        """A task over all cells."""
        return self.service.run(task, request, COMBINE[task])

    def visit(self, record, remembers):
        """Labels of all rows by a record, and the state that they make."""
        self.record = record
        request = {
            "record": record,
            "next_key": self.next_key,
            "next_subset": self.next_subset,
            "remembered": float(self.n_imputed) if remembers else -1.0,
        }
        self._take(self.run("pass_rows", request))
        if self.at_hand.failed:
            # Some block has moved so far that digits were lost: squares about where it is now.
            again = {"center": self._centers(), "remembered": -1.0}
            self._take(self.run("pass_rows", request | again) | {"center": again["center"]})
            if self.at_hand.failed:
                raise ArithmeticError(LOST_DIGITS)
        self.n_imputed += remembers

    def _take(self, found):
        self.found = found
        n_blocks = len(found["n"])
        sizes = found["n"] + np.bincount(found["label"], minlength=n_blocks)
        # Only a start leaves blocks without rows: afterwards all keep their anchors.
        self.kept = np.flatnonzero(sizes > 0)
        self.block_of = np.cumsum(sizes > 0) - 1
        blocks = found.get("center", self.record["blocks"])
        outside = []
        for k in self.kept:
            parts = []
            if found["n"][k] > 0:
                parts = [(_block(blocks, k), int(found["n"][k]), found["sums"][k])]
            outside.append(Outside(k, parts, found["place"][k], found["row"][k]))
        X = np.where(found["missing"], np.nan, found["X"])
        self.at_hand = RowsAtHand(
            X,
            found["X"],
            found["number"],
            self.block_of[found["label"]],
            outside,
            self.prior,
            self._hyperparameters(),
            self.record["blocks"],
            n_table=self.service.n_samples,
            log_jacobian=self._log_jacobian,
        )

    def _hyperparameters(self):
        """Those of the record, as a state takes them at its start."""
        return {name: self.record[name] for name in self._names if name in self.record}

    def _centers(self):
        """Blocks about whose means squares lose no digits, one for each block of the record."""
        blocks = take_blocks(self.at_hand.family, self.at_hand.n_clusters)
        return rows_of_blocks(about_rows(blocks), np.maximum(self.block_of, 0))

    def next_record(self):
        """A record of the present state: every block keeps its first row in the next order."""
        state = self.at_hand
        if state.failed:  # since the last pass: under other hyperparameters, or after a move
            raise ArithmeticError(LOST_DIGITS)
        place = np.array([outside.place for outside in state.outside], dtype=float)
        row = np.array([outside.row for outside in state.outside], dtype=np.intp)
        # Rows at hand are the subset and come last.
        last = places(self.next_key, state.number) + 1.0
        label, number = np.asarray(state.label), np.asarray(state.number)
        for k in np.flatnonzero(row < 0):
            own = np.flatnonzero(label == k)
            first = own[np.lexsort((number[own], last[own]))[0]]
            place[k], row[k] = last[first], number[first]
        base = state.base()
        return {
            "key": self.next_key,
            "blocks": take_blocks(state.family, state.n_clusters),
            "rest": state.weight_of_rest(),
            "anchor_place": place,
            "anchor_row": row,
            "subset": self.next_subset,
            "concentration": state.concentration,
            "discount": state.discount,
            **{name: base[name] for name in self._names if name in base},
        }

    # -- what a chain resumes from --------------------------------------------------------------

    def get_state(self):
        """The record of the last pass, the key of the next, and the moments of missing cells.

        Rows at hand and sums are what the last pass returned; it is made again.
        """
        found = _copied({name: getattr(self, name) for name in _PARTS})
        del found["record"]["subset"]
        return found | {"family": self.service.moments() if self.service.remembers else {}}

    def set_state(self, state):
        """Take what ``get_state`` returned, and make the last pass again."""
        parts = _copied({name: entry(state, name) for name in _PARTS})
        n_table, record = self.service.n_samples, parts["record"]
        check_record(record, n_table)
        is_start = not np.any(record["anchor_row"] >= 0)
        record["subset"] = (
            np.zeros(0, dtype=np.intp)
            if is_start
            else subset_of(entry(record, "key"), n_table, self.n_subset)
        )
        self.draw_next(parts["next_key"])
        self.visit(record, remembers=False)
        self.n_imputed = int(parts["n_imputed"])
        if self.service.remembers:
            self.service.put_moments(entry(state, "family"))

    def adapt(self):
        """Imputations of warm-up count for nothing."""
        if self.service.remembers:
            self.service.forget_imputations()
        self.n_imputed = 0

    def log_joint(self):
        """log p(rho, X, all hyperparameters)."""
        return self.at_hand.log_joint()


def _copied(value):
    if isinstance(value, dict):
        return {name: _copied(one) for name, one in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


def _block(blocks, k):
    return rows_of_blocks(blocks, slice(k, k + 1))


def subset_of(key, n_samples, n_subset):
    """Numbers of the rows that are at hand in the pass of a key, ascending."""
    rng = np.random.Generator(np.random.PCG64(key))
    chosen = rng.choice(n_samples, n_subset, replace=False, shuffle=False)
    return np.sort(chosen).astype(np.intp)


def check_record(record, n_table):
    """Raise a ValueError unless the parts of a record fit together: kernels trust their indices."""
    n_blocks = len(entry(entry(record, "blocks"), "n_members"))
    place, row = entry(record, "anchor_place"), entry(record, "anchor_row")
    if not (place.shape == row.shape == (n_blocks,) and np.isfinite(place).all()):
        raise ValueError("anchor_place and anchor_row of the state must have one entry a block")
    if row.dtype != np.intp or not np.all((row >= -1) & (row < n_table)):
        raise ValueError("anchor_row of the state must be rows of the table")
    label = record.get("label")
    if label is not None and not (
        label.shape == (n_table,) and np.all((label >= 0) & (label < n_blocks))
    ):
        raise ValueError("label of the state must be a block for every row of the table")
