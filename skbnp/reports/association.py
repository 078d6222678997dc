"""Columns that hang together: correlations under the draws of any model that has samples."""

import numpy as np

from skbnp.markup import counted, listed, number, percent
from skbnp.reports import pictures
from skbnp.reports.page import Section

# Columns that are looked at, at most: evenly spaced ones of more.
MOST_COLUMNS = 100
# A correlation is named from this size on, where it is as large in this share of the draws.
_NAMED, _LIKELY = 0.3, 0.9
_MOST_NAMED = 8
# Rows that are sampled from each draw; with so many for each column multiple correlations are told.
N_ROWS, _ROWS_PER_COLUMN = 500, 20
# Added to the variances, so that columns that others determine have an inverse.
_RIDGE = 1e-3
# They are told where the best known column has this part of its variance from the others.
_LEAST_SHARE = 0.1


def section(correlations, names, n_columns, noun="correlation"):
    """Pairs of columns that go together.

    Parameters
    ----------
    correlations : ndarray of shape (n_draws, n_shown, n_shown)
        Between the columns, in each draw.
    names : list of str of length n_shown
    n_columns : int
        How many there are, of which some may not be shown.
    noun : str
        What is correlated, in words.
    """
    mean, low, high = (
        correlations.mean(axis=0),
        *np.quantile(correlations, [0.05, 0.95], axis=0),
    )
    alike = (np.abs(correlations) >= _NAMED) & (np.sign(correlations) == np.sign(mean))
    sure = alike.mean(axis=0)
    pairs = np.argwhere(np.triu(np.ones(mean.shape, dtype=bool), 1))
    pairs = pairs[np.argsort(-np.abs(mean[tuple(pairs.T)]), kind="stable")]
    records = [
        {
            "column": names[a],
            "other column": names[b],
            noun: round(float(mean[a, b]), 3),
            "5 %": round(float(low[a, b]), 3),
            "95 %": round(float(high[a, b]), 3),
            f"beyond {_NAMED:g}": round(float(sure[a, b]), 3),
        }
        for a, b in pairs
    ]
    likely = [(a, b) for a, b in pairs if sure[a, b] >= _LIKELY]
    sentences = []
    if len(names) < n_columns:
        sentences.append(
            f"Only {len(names)} of the {n_columns} columns are compared, evenly spaced."
        )
    if likely:
        shown = [f"{names[a]} and {names[b]} ({mean[a, b]:+.2f})" for a, b in likely[:_MOST_NAMED]]
        sentences.append(
            f"Of {counted(len(pairs), 'pair')} of columns {len(likely)} go together: their {noun} "
            f"is beyond {_NAMED:g} in at least {percent(_LIKELY)} of the draws. The strongest: "
            f"{listed(shown)}."
        )
        sentences += _groups(likely, names)
    else:
        sentences.append(
            f"No two columns go together for sure: no {noun} is beyond {_NAMED:g} in "
            f"{percent(_LIKELY)} of the draws. The largest on average is "
            f"{number(float(np.abs(mean[tuple(pairs[0])])), 2)}."
            if len(pairs)
            else "There is one column alone."
        )
    sentences += _predicted(mean, names)
    sentences.append("A correlation says that columns vary together, not that one acts on another.")
    show = pictures.matrix(mean, names, names, "Columns that hang together", noun)
    return Section(
        "columns", "Which columns hang together", tuple(sentences), records,
        n_shown=min(10, len(likely)), pictures=(show,) if len(names) > 1 else (),
    )  # fmt: skip


def _groups(likely, names):
    """Columns that are linked by such pairs, one to the next."""
    group = list(range(len(names)))
    for a, b in likely:
        old, new = group[b], group[a]
        group = [new if one == old else one for one in group]
    groups = [[names[j] for j in range(len(names)) if group[j] == one] for one in set(group)]
    groups = sorted((one for one in groups if len(one) > 2), key=len, reverse=True)
    if not groups or (len(groups) == 1 and len(groups[0]) == len(names)):
        return []
    return ["Linked by such pairs: " + "; ".join(listed(one) for one in groups[:4]) + "."]


def _predicted(mean, names):
    """Which columns the others predict, by their squared multiple correlations."""
    if not 2 < len(names) <= N_ROWS // _ROWS_PER_COLUMN:
        return []
    inverse = np.linalg.pinv(mean + _RIDGE * np.eye(len(mean)))
    share = np.clip(1.0 - 1.0 / np.maximum(np.diag(inverse), 1.0), 0.0, 1.0)
    order = np.argsort(-share, kind="stable")
    if share[order[0]] < _LEAST_SHARE:
        return []
    best, worst = order[: min(3, len(order) // 2)], order[::-1][: min(3, len(order) // 2)]

    def shown(places):
        return listed([f"{names[j]} ({percent(float(share[j]))})" for j in places])

    return [
        f"By the other columns together best known are {shown(best)}, least {shown(worst)}: the "
        "part of their variance that is a linear function of the others."
    ]


def correlations(sample, draws, columns, seed, of_sizes=False):
    """Correlations of the columns in rows sampled from each draw.

    Parameters
    ----------
    sample : callable
        ``sample(draw, rng)``: rows of all columns.
    draws : list of dict
    columns : ndarray of int
        Places of the columns to compare.
    seed : int
    of_sizes : bool
        Whether sizes of deviations from the mean are compared and not the values.
    """
    rng = np.random.default_rng(seed)
    found = np.empty((len(draws), len(columns), len(columns)))
    for place, draw in enumerate(draws):
        rows = sample(draw, rng)[:, columns]
        rows = rows - rows.mean(axis=0)
        if of_sizes:
            rows = np.log(rows**2 + 1e-12)
            rows -= rows.mean(axis=0)
        norm = np.sqrt(np.sum(rows**2, axis=0))
        rows = rows / np.where(norm > 0.0, norm, 1.0)
        found[place] = rows.T @ rows
    return found
