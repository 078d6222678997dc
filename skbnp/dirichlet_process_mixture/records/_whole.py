"""The state of a table that is visited cell by cell, between two passes over its rows."""

import numpy as np

from skbnp.dirichlet_process_mixture.records._at_hand import Outside, RowsAtHand
from skbnp.dirichlet_process_mixture.records._blocks import rows_of_blocks, take_blocks
from skbnp.dirichlet_process_mixture.records._slice import places
from skbnp.mcmc.chain import State
from skbnp.numerics.states import entry

# What a state of it is made of.
_PARTS = ("record", "found", "next_key", "next_subset", "n_imputed")


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
        rng = np.random.Generator(np.random.PCG64(key))
        n = self.service.n_samples
        chosen = rng.choice(n, self.n_subset, replace=False, shuffle=False)
        self.next_key, self.next_subset = int(key), np.sort(chosen).astype(np.intp)

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
        return rows_of_blocks(_about_rows(blocks), np.maximum(self.block_of, 0))

    def next_record(self):
        """A record of the present state: every block keeps its first row in the next order."""
        state = self.at_hand
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
        """The last record, what came of it, and the moments of missing cells."""
        found = {name: getattr(self, name) for name in _PARTS}
        moments = self.service.moments() if self.service.remembers else {}
        return _copied(found) | {"family": moments}

    def set_state(self, state):
        """Take what ``get_state`` returned."""
        parts = _copied({name: entry(state, name) for name in _PARTS})
        check_state(parts, self)
        self.n_imputed = int(parts["n_imputed"])
        self.record = parts["record"]
        self.next_key, self.next_subset = int(parts["next_key"]), parts["next_subset"]
        self._take(parts["found"])
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


def _about_rows(blocks):
    """The same with the mean of the rows in the place of that of each block."""
    out = {
        name: _about_rows(value) if isinstance(value, dict) else value
        for name, value in blocks.items()
    }
    return out | {"mean": out["row_mean"]} if "row_mean" in out else out


def add_passes(left, right):
    """What two neighbouring runs of cells return of a pass, as of one."""
    return {
        **_added(left, right),
        **{
            name: np.concatenate([left[name], right[name]])
            for name in ("number", "label", "X", "missing")
        },
    }


def add_divisions(left, right):
    """The same of proposals."""
    return [
        {"log_q": one["log_q"] + other["log_q"], **_added(one, other)}
        for one, other in zip(left, right, strict=True)
    ]


def _added(left, right):
    """Sums, and the first rows in the order of a key."""
    before = (left["place"] < right["place"]) | (
        (left["place"] == right["place"]) & (left["row"] < right["row"])
    )
    return {
        "n": left["n"] + right["n"],
        "sums": left["sums"] + right["sums"],
        "place": np.where(before, left["place"], right["place"]),
        "row": np.where(before, left["row"], right["row"]),
    }


COMBINE = {"pass_rows": add_passes, "divide": add_divisions}


def check_state(parts, whole):
    """Raise a ValueError unless the parts of a state fit together: kernels trust their indices."""
    record, found = parts["record"], parts["found"]
    n_table, n_blocks = whole.service.n_samples, len(entry(entry(record, "blocks"), "n_members"))
    subset = parts["next_subset"]
    numbers = entry(found, "number")
    if not (
        isinstance(subset, np.ndarray)
        and subset.dtype == np.intp
        and len(subset) == whole.n_subset
        and np.all(np.diff(subset) > 0)
        and subset[0] >= 0
        and subset[-1] < n_table
        and np.array_equal(subset, numbers)
    ):
        raise ValueError("next_subset of the state must be sorted rows of the table, those found")
    label = entry(found, "label")
    n = entry(found, "n")
    if not (
        label.shape == subset.shape
        and np.all((label >= 0) & (label < n_blocks))
        and n.shape == (n_blocks,)
        and np.all(n >= 0)
        and n.sum() + len(label) == n_table
    ):
        raise ValueError("label and n of the state must count all rows of the table")
    for name in ("anchor_place", "anchor_row"):
        if entry(record, name).shape != (n_blocks,):
            raise ValueError(f"{name} of the state must have one entry a block")
    for name in ("place", "row"):
        if entry(found, name).shape != (n_blocks,):
            raise ValueError(f"{name} of the state must have one entry a block")
    shape = (len(subset), whole.service.n_features)
    for name in ("X", "missing"):
        if entry(found, name).shape != shape:
            raise ValueError(f"{name} of the state must have shape {shape}")
    if not np.isfinite(found["sums"]).all() or len(found["sums"]) != n_blocks:
        raise ValueError("sums of the state must be finite, one row a block")
