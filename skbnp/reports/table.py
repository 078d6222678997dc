"""The table that an estimator was fitted to: its columns, its rows, and what is odd about it."""

from dataclasses import dataclass

import numpy as np

from skbnp.markup import counted, listed, number, percent
from skbnp.reports.page import Section

# What columns are taken for, in words.
_KINDS = {
    "gaussian": "measurements",
    "poisson": "counts",
    "bernoulli": "yes or no (0 or 1)",
    "categorical": "categories",
}

# A measurement is called skewed from this skewness on, if its logarithm has less than half of it,
# and if there are so many cells to say so.
_SKEWED, _ENOUGH_CELLS = 1.5, 30


@dataclass(frozen=True)
class TrainingTable:
    """The training rows and how to speak of them.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Numbers, levels as codes, NaN where missing; the detection limit where below it.
    holes : ndarray of bool of shape (n_samples, n_features)
        Missing cells.
    names : list of str
        Of the columns.
    rows : sequence
        Labels of the rows: those of an index, or numbers from 0.
    families : list of str
        What each column is taken for, as ``families_`` of the mixture has it.
    levels : list
        The levels of each categorical column, None for the others.
    constant : list of int
        Columns that do not vary.
    advice : list of str
        What is odd about columns, and what to do.
    n_below : int, default=0
        Cells below a detection limit.
    n_rows_of_fit : int, default=0
        Rows that the estimator was fitted to, where those of X are a sample of them.
    is_described : bool, default=True
        Whether the model has a law of the columns, and does not predict from them.
    """

    X: np.ndarray
    holes: np.ndarray
    names: list
    rows: object
    families: list
    levels: list
    constant: list
    advice: list
    n_below: int = 0
    n_rows_of_fit: int = 0
    is_described: bool = True

    @property
    def n_levels(self):
        """How many levels each column has, None for a column of numbers."""
        return [None if levels is None else len(levels) for levels in self.levels]

    def row(self, place):
        """The label of a row in words."""
        return str(self.rows[place])

    def trait(self, column, level):
        """A column, or the share of one of its levels, in words."""
        if level >= 0:
            return f"{self.names[column]} = {self.levels[column][level]}"
        return self.names[column]


def rows_in_words(n, n_of_fit):
    """How many rows a report is about."""
    return f"{number(n)} of {counted(n_of_fit, 'row')}" if n_of_fit > n else counted(n, "row")


def section(table):
    """What was learned from, and what the model took the columns for."""
    n, d = table.X.shape
    n_missing = int(table.holes.sum())
    n_all, in_short = max(n, table.n_rows_of_fit), ""
    if n_all > n:
        in_short = (
            f"The model was fitted to {counted(n_all, 'row')}; this report counts "
            f"{number(n)} of them, drawn at random."
        )
    sentences = [
        *([in_short] if in_short else []),
        f"The table has {counted(n_all, 'row')} and {counted(d, 'column')}; "
        + (
            f"{number(n_missing)} of {number(n * d)} cells ({percent(n_missing / (n * d))}) "
            "are missing, which the model takes into account."
            if n_missing
            else "no cell is missing."
        ),
    ]
    if table.n_below:
        verb = "is" if table.n_below == 1 else "are"
        sentences.append(
            f"{counted(table.n_below, 'cell')} {verb} below the detection limit; means and spreads "
            "in this report take such cells as the limit."
        )
    kinds = {}
    for name, family in zip(table.names, table.families, strict=True):
        kinds.setdefault(_KINDS.get(family, family), []).append(name)
    sentences += [f"Taken for {kind}: {listed(names)}." for kind, names in kinds.items()]
    if table.constant:
        names = listed([table.names[j] for j in table.constant])
        sentences.append(f"Without any variation, so that nothing follows from them: {names}.")
    skewed, with_zeros = _skewed(table)
    if skewed:
        sentences.append(
            f"Skewed, with a long tail of large values: {listed(skewed)}."
            + " The model describes measurements by bell curves, and may take such a tail for "
            "groups of their own." * table.is_described
        )
    sentences += [f"Look at this before you go on: {one}." for one in table.advice]
    records = [
        {
            "column": name,
            "taken for": _KINDS.get(family, family),
            "missing": int(missing.sum()),
            "share missing": round(float(missing.mean()), 4),
        }
        for name, family, missing in zip(table.names, table.families, table.holes.T, strict=True)
    ]
    steps = [f"Look at the columns of the table: {one}." for one in table.advice]
    if skewed:
        steps.append(
            f"Take the logarithm of {listed(skewed)}{', of 1 + x where x may be 0,' * with_zeros} "
            "before you fit again: it makes skewed measurements more even"
            + ", and groups that are only a tail, if any, go away" * table.is_described
            + "."
        )
    return Section(
        "table", "The table", tuple(sentences), records, in_short=in_short, n_shown=0,
        steps=tuple(steps),
    )  # fmt: skip


def unknown():
    """In place of the table, where an estimator keeps no training rows."""
    return Section(
        "table",
        "The table",
        (
            "The training rows are not kept, so that this report says nothing of them: no sizes, "
            "no profiles, no doubtful rows, no missing cells.",
        ),
    )


def _skewed(table):
    """Measurements with a long tail that a logarithm takes away, and whether some may be 0."""
    found, with_zeros = [], False
    for name, family, x in zip(table.names, table.families, table.X.T, strict=True):
        x = x[~np.isnan(x)]
        if family == "gaussian" and len(x) >= _ENOUGH_CELLS and x.min() >= 0.0:
            skewness, may_be_zero = _skewness(x), x.min() == 0.0
            logarithm = np.log1p(x) if may_be_zero else np.log(x)
            if skewness > _SKEWED and abs(_skewness(logarithm)) < skewness / 2:
                found.append(name)
                with_zeros |= bool(may_be_zero)
    return found, with_zeros


def _skewness(x):
    off = (x - x.mean()) / (np.abs(x).max() or 1.0)
    spread = np.sqrt(np.mean(off**2))
    return float(np.mean((off / spread) ** 3)) if spread > 0.0 else 0.0
