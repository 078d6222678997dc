"""Missing cells: how many, what fills them, and how sure that is."""

import numpy as np

from skbnp.markup import counted, listed, measured, number, percent
from skbnp.mcmc.diagnostics import MOST_RHAT
from skbnp.reports import pictures
from skbnp.reports.page import Section, Verdict

# Relative to the spread of the column: what fills a cell is well known up to, and hardly known from
# so much on.
_WELL, _HARDLY = 0.5, 0.9
# By so much more often right than the most frequent name, a filled one rests on the other columns.
_SURER = 0.02
# From the first to the third quartile of a normal law, in standard deviations.
_MIDDLE_HALF = 1.349
_ENOUGH_CELLS = 30  # to say how long tails are
_MOST_NAMED = 8
_CALIBRATE = (
    "For intervals of filled cells that hold as often as they say, fit again with "
    'interval_calibration="holes" (of a BNPImputer\'s estimator); it takes twice the time.'
)
_CHECK = (
    "To see how good filled cells are, hide some observed ones, fill them with "
    "impute(X, return_std=True), and compare."
)


def section(table, filled, std, scale=None, can_calibrate=False, n_hidden=0):
    """The missing cells of the training table; None where there are none.

    Parameters
    ----------
    table : skbnp.reports.table.TrainingTable
    filled, std : ndarray of shape (n_samples, n_features), or None
        The table without holes, and standard deviations of what fills them; None where they are
        not kept.
    scale : float or None
        What the deviations have been multiplied by, None where they are not calibrated.
    can_calibrate : bool
        Whether the estimator can calibrate them.
    n_hidden : int
        Hidden cells that the scale is taken from.
    """
    holes = table.holes
    if not holes.any():
        return None
    n_rows = int(holes.any(axis=1).sum())
    per_column = holes.sum(axis=0)
    worst = np.argsort(-per_column, kind="stable")
    worst = [j for j in worst if per_column[j]]
    shown = listed([f"{table.names[j]} ({per_column[j]})" for j in worst], _MOST_NAMED)
    sentences = [
        f"{counted(int(holes.sum()), 'cell')} in {counted(n_rows, 'row')} are missing: {shown}.",
        "They are taken to be missing at random: whether a cell is missing may depend on the other "
        "cells of its row, not on the value that it would have had.",
    ]
    records = [_record(table, holes, filled, std, j) for j in worst]
    steps, verdicts, show = [], [], ()
    if filled is None:
        sentences.append("What fills them is not kept, as it would take long: call impute(X).")
        steps.append("To fill the table, call impute(X).")
    else:
        sentences += _how_well(table, records, _no_surer(table, holes, std))
        sentences += _below_zero(table, holes, filled)
        verdicts += list(_verdicts(scale, can_calibrate, n_hidden))
        show = (_picture(records),) if _relative(records) else ()
        if scale is None and not can_calibrate:
            steps.append(_CHECK)
    return Section(
        "cells", "Missing cells", tuple(sentences), records, n_shown=12, pictures=show,
        verdicts=tuple(verdicts), steps=tuple(steps),
    )  # fmt: skip


def _record(table, holes, filled, std, j):
    here, x = holes[:, j], table.X[:, j]
    seen = x[~here]
    spread = float(np.std(seen)) if seen.size and table.levels[j] is None else np.nan
    record = {
        "column": table.names[j],
        "missing": int(here.sum()),
    }
    if filled is None:
        return record
    deviation = float(np.median(std[here, j]))
    is_level = table.levels[j] is not None
    ends = np.min(filled[here, j]), np.max(filled[here, j])
    if is_level:
        words = listed(sorted({str(table.levels[j][int(code)]) for code in filled[here, j]}), 3)
    elif table.families[j] == "bernoulli":
        words = f"a chance of {' to '.join(dict.fromkeys(map(percent, ends)))}"
    else:
        words = " to ".join(dict.fromkeys(measured(end, spread) for end in ends))
    usual = _usual_spread(seen, spread)
    relative = deviation / usual if usual > 0.0 else np.nan
    return record | {
        "relative to column": relative,
        "deviation": deviation,
        "filled with": words,
    }


def _usual_spread(x, spread):
    """Standard deviation of a column, that of its middle half where tails are longer."""
    if not np.isfinite(spread) or len(x) < _ENOUGH_CELLS:
        return spread
    middle = np.subtract(*np.quantile(x, [0.75, 0.25])) / _MIDDLE_HALF
    return min(spread, middle) if middle > 0.0 else spread


def _no_surer(table, holes, std):
    """Columns of names, or of yes or no, whose cells are filled no surer than by the usual one."""
    found = []
    for j in np.flatnonzero(holes.any(axis=0)):
        x = table.X[~holes[:, j], j]
        if x.size and (table.levels[j] is not None or table.families[j] == "bernoulli"):
            usual = np.unique(x, return_counts=True)[1].max() / x.size
            # Deviations are those of the most probable value, sqrt(p (1 - p)).
            p = 0.5 + np.sqrt(np.maximum(0.25 - std[holes[:, j], j] ** 2, 0.0))
            if p.mean() <= usual + _SURER:
                found.append(table.names[j])
    return found


def _relative(records):
    return [one for one in records if np.isfinite(one["relative to column"])]


def _how_well(table, records, no_surer):
    known = _relative(records)
    sentences = [
        "Each is filled with its mean given the rest of its row. Its standard deviation, of which "
        "the table has the median, says how far off that may be; relative to the spread of the "
        "column, of its middle half where tails are long, 0 means known exactly, about 1 that the "
        "rest of the row says nothing."
    ]
    well = [one["column"] for one in known if one["relative to column"] <= _WELL]
    hardly = [one["column"] for one in known if one["relative to column"] >= _HARDLY]
    if well:
        sentences.append(f"Well known from the other columns: {listed(well, _MOST_NAMED)}.")
    if hardly:
        sentences.append(
            f"Hardly better than the mean of the column: {listed(hardly, _MOST_NAMED)}."
        )
    if any(levels is not None for levels in table.levels):
        sentences.append(
            "For categories the most probable one is filled in, and the deviation is 0 where it is "
            "sure and .5 where it is as likely as not."
        )
    if no_surer:
        sentences.append(
            f"No surer than by the most frequent value: {listed(no_surer, _MOST_NAMED)}. Within a "
            "cluster names are independent of all other columns, and many skewed measurements take "
            "the clusters: their logarithms may help, and a BNPImputer looks names up in another "
            "column that determines them."
        )
    return sentences


def _below_zero(table, holes, filled):
    """Of columns that never are, which says that a normal law does not suit them."""
    found = [
        table.names[j]
        for j in np.flatnonzero(holes.any(axis=0))
        if table.levels[j] is None
        and np.min(table.X[~holes[:, j], j], initial=np.inf) >= 0.0 > filled[holes[:, j], j].min()
    ]
    if not found:
        return []
    return [
        f"Some cells of {listed(found, _MOST_NAMED)} are filled with numbers below zero, where no "
        "observed one is: take the logarithm of such columns, or of 1 more than they are."
    ]


def _verdicts(scale, can_calibrate, n_hidden):
    part = "standard deviations of filled cells"
    if scale == 1.0 and not n_hidden:
        yield Verdict(
            part, "with care", "not calibrated: there were too few cells to hide, or no time"
        )
    elif scale is not None:
        yield Verdict(
            part, "yes",
            f"calibrated on {f'{number(n_hidden)} ' if n_hidden else ''}hidden cells, multiplied "
            f"by {number(float(scale), 2)}",
        )  # fmt: skip
    elif can_calibrate:
        yield Verdict(part, "with care", "not checked on hidden cells", _CALIBRATE)
    else:
        yield Verdict(part, "with care", "those of the model, not checked on hidden cells")


def _picture(records):
    known = _relative(records)
    return pictures.bars(
        [one["relative to column"] for one in known],
        [one["column"] for one in known],
        "How well missing cells are known",
        "deviation of a filled cell, relative to the column",
    )


def of_imputer(
    model,
    *,
    filled,
    common,
    looked_up,
    zero,
    dropped,
    n_missing,
    n_empty_rows,
    can_draw,
    r_hat,
    n_far=0,
    marks=(),
):
    """What the imputer did beside its model.

    Parameters
    ----------
    model : str or None
        The class of the model, None where no column varies.
    filled : dict of str to (object, int)
        Columns with one value alone: that value, and how many cells got it.
    common : dict of str to list of float
        Columns that the model sees in parts: the values that many of their cells have.
    looked_up : dict of str to list of str
        Columns that are filled from others: these, the best one first.
    zero, dropped : list of str
        Columns without any value that got 0, and those that were left out.
    n_missing : int
        Missing cells of the whole table.
    n_empty_rows : int
        Rows without any value.
    can_draw : bool
        Whether the model draws missing cells.
    r_hat : float
        How far chains differ in what they fill in; NaN where that is unknown.
    n_far : int, default=0
        Cells that got numbers farther outside all observed values than these reach.
    marks : sequence of (str, float), default=()
        Columns and those of their common values that look like marks of missing cells.
    """
    sentences = [f"{counted(n_missing, 'cell')} of the table are missing."]
    if model is None:
        sentences.append("No column varies, so that there is no model.")
    else:
        sentences.append(
            f"Cells of columns that vary are filled by a {model}, see below"
            + (", but for those that are looked up in another column." if looked_up else ".")
        )
    for name, (value, n) in filled.items():
        sentences.append(f"{name} has one value alone, {value}, which {counted(n, 'cell')} got.")
    for name, values in common.items():
        sentences.append(
            f"Many cells of {name} are {' or '.join(f'{value:g}' for value in values)}: the model "
            "sees whether one is, and what number it holds otherwise."
        )
    for name, others in looked_up.items():
        sentences.append(
            f"Cells of {name} are filled from {listed(others, _MOST_NAMED)} where that is known: "
            "how often two values go together is as good for what is observed as the model."
        )
    for name, value in marks:
        sentences.append(
            f"{value:g} is far from all other values of {name}, as marks of missing cells are: if "
            f"it is one, fit again with missing_values={value:g}."
        )
    if zero:
        sentences.append(f"Without any value, so that all cells got 0: {listed(zero)}.")
    if dropped:
        sentences.append(f"Without any value, so that they were dropped: {listed(dropped)}.")
    if n_empty_rows:
        sentences.append(
            f"{counted(n_empty_rows, 'row')} without any value got what is expected of a new row."
        )
    verdicts, in_short = (), ""
    if r_hat >= 1.0:
        agree = r_hat <= MOST_RHAT
        in_short = (
            f"{counted(n_missing, 'missing cell')} are filled by a {model}, on which its chains "
            + ("agree" if agree else "do not agree yet")
            + (", or from another column." if looked_up else ".")
        )
        why = (
            f"chains differ by {number(np.sqrt(r_hat**2 - 1), 2)} standard deviations of a cell, "
            f"R-hat is {number(r_hat, 3)}"
        )
        sentences.append(
            f"By what they {'would ' * bool(looked_up)}fill in {why}: "
            + ("they agree on that, whatever else they differ in." if agree else "that is much.")
        )
        level = "no" if not agree else "with care" if n_far else "yes"
        verdicts = (Verdict("what fills missing cells", level, why),)
    if n_far:
        sentences.append(
            f"{counted(n_far, 'cell')} got numbers farther outside all observed values than these "
            "reach: look at standard_deviations() before you use them."
        )
    steps = ()
    if can_draw and n_missing:
        steps = (
            "To analyse the table take multiple(n_tables=20), tables that differ in their filled "
            "cells, and pool what they say by skbnp.summaries.pool: analysed as if it had been "
            "complete, one filled table makes results look too sure.",
        )
    return Section(
        "imputer", "How the table is filled", tuple(sentences), verdicts=verdicts, steps=steps,
        in_short=in_short,
    )  # fmt: skip
