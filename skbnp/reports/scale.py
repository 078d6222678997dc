"""Factors of scale: columns that become loud or quiet together, and rows by what drives them."""

import numpy as np

from skbnp.markup import counted, listed, percent
from skbnp.reports.page import Section


def section(feature_labels, labels, names):
    """Groups of columns by the factor that drives their size, and what drives the rows.

    Parameters
    ----------
    feature_labels : ndarray of int of shape (n_columns,)
        The factor with the largest part in a column's variance, -1 for noise.
    labels : ndarray of int of shape (n_samples,)
        The factor with the largest share of a row's energy, -1 for the background.
    names : list of str
        Of the columns.
    """
    groups = {
        int(k): [names[j] for j in np.flatnonzero(feature_labels == k)]
        for k in np.unique(feature_labels[feature_labels >= 0])
    }
    rest = [names[j] for j in np.flatnonzero(feature_labels < 0)]
    sentences = [
        "This model looks for columns whose values spread widely in the same rows and narrowly in "
        "the others, while their means stay: they become loud or quiet together."
    ]
    if groups:
        sentences += [f"Driven by factor {k}: {listed(group)}." for k, group in groups.items()]
    else:
        sentences.append("It found no such columns: each is mostly noise of its own.")
    if groups and rest:
        sentences.append(f"Mostly noise of their own: {listed(rest)}.")
    here, counts = np.unique(labels, return_counts=True)
    background = int(counts[here < 0].sum())
    driven = [
        f"{counted(n, 'row')} by factor {k}" for k, n in zip(here, counts, strict=True) if k >= 0
    ]
    if driven:
        sentences.append(
            f"Most of the energy of a row comes in {listed(driven)}; "
            f"{percent(background / len(labels))} of the rows are background, in which no factor "
            "stands out."
        )
    else:
        sentences.append("All rows are background: no factor stands out in any of them.")
    records = [
        {"column": name, "factor": int(k)} for name, k in zip(names, feature_labels, strict=True)
    ]
    steps = (
        "This is no clustering: for groups of rows fit InfiniteFactorClusterer or "
        "DirichletProcessMixture.",
    )
    return Section(
        "scale", "What was found: columns that are loud together", tuple(sentences), records,
        n_shown=0, steps=steps,
        in_short=sentences[0],
    )  # fmt: skip
