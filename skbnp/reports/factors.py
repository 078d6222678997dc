"""Factors: how many, and which columns load on each."""

import numpy as np

from skbnp.markup import counted, listed, percent
from skbnp.reports import pictures
from skbnp.reports.page import Section, Verdict
from skbnp.reports.words import spread

# A loading is named with this probability of a link, and this share of the column's variance.
_LIKELY, _NAMED = 0.5, 0.05
# From this congruence of their loadings on, factors of two draws are called alike.
_CONGRUENCE = 0.85
_MOST_NAMED, _MOST_FACTORS = 5, 10


def section(n_factors, n_shared, loadings, linked, found, names):
    """The factors of the reference draw, over all draws in which they have a partner.

    Parameters
    ----------
    n_factors, n_shared : ndarray of shape (n_chains, n_draws)
        Number of factors, and of those linked to two columns or more, in each draw.
    loadings : ndarray of shape (n_columns, n_factors)
        Mean loading in standard deviations of the column, for scores of variance one, over the
        draws that have the factor.
    linked : ndarray of shape (n_columns, n_factors)
        Share of these draws that have the link.
    found : ndarray of shape (n_factors,)
        Share of all draws that have the factor.
    names : list of str
        Of the columns.
    """
    sentences = [
        "A factor is a direction in which several columns vary together. Draws have "
        f"{spread(n_factors)} factors, {spread(n_shared)} linked to two columns or more (in 90% "
        "of the draws); only these can be known, the others come and go.",
    ]
    order = np.argsort(-found, kind="stable")
    for k in order[:_MOST_FACTORS]:
        columns = _columns(loadings, linked, k, names)
        sentences.append(f"Factor {k}, in {percent(found[k])} of the draws: {columns}.")
    if not len(found):
        sentences.append("The draw that stands for all has no factor: columns vary on their own.")
    records = [
        {
            "factor": int(k),
            "column": names[j],
            "loading": round(float(loadings[j, k]), 3),
            "probability of a link": round(float(linked[j, k]), 3),
            "factor in draws": round(float(found[k]), 3),
        }
        for k in order
        for j in np.argsort(-np.abs(loadings[:, k]), kind="stable")
    ]
    verdicts = [
        Verdict(
            f"factor {k}",
            "yes" if found[k] >= 0.9 else "with care" if found[k] >= 0.5 else "no",
            f"{percent(found[k])} of the draws have one like it",
        )
        for k in order[:_MOST_FACTORS]
    ]
    show = ()
    if len(found):
        title = "Loadings: how far each column moves with each factor"
        labels = [f"factor {k}" for k in range(len(found))]
        show = (pictures.matrix(loadings.T, labels, names, title, "standard deviations"),)
    return Section(
        "factors", "What was found: factors", tuple(sentences), records, n_shown=0,
        pictures=show, verdicts=tuple(verdicts),
        in_short=sentences[0],
    )  # fmt: skip


def _columns(loadings, linked, k, names):
    strong = [
        j
        for j in np.argsort(-np.abs(loadings[:, k]), kind="stable")
        if linked[j, k] >= _LIKELY and loadings[j, k] ** 2 >= _NAMED
    ]
    if not strong:
        return "no column moves with it by much"
    shown = [
        f"{names[j]} ({loadings[j, k]:+.2f}, linked with probability {linked[j, k]:.2f})"
        for j in strong[:_MOST_NAMED]
    ]
    more = counted(len(strong) - _MOST_NAMED, "more column") if len(strong) > _MOST_NAMED else ""
    return listed([*shown, more] if more else shown)


def over_draws(reference, loadings):
    """What the draws that have a factor like one of the reference say of it.

    Parameters
    ----------
    reference : ndarray of shape (n_columns, n_factors)
        Loadings of the reference draw.
    loadings : ndarray of shape (n_draws, n_columns, n_factors)
        Those of its partners in other draws, 0 where there is none.

    Returns
    -------
    mean, linked : ndarray of shape (n_columns, n_factors)
        Mean loading, and the share of loadings that are not 0, over draws with a like factor: one
        whose loadings have a congruence (the cosine of the angle between them) of at least .85.
    found : ndarray of shape (n_factors,)
        The share of such draws.
    """
    norms = np.sqrt(np.sum(loadings**2, axis=1) * np.sum(reference**2, axis=0))
    products = np.sum(loadings * reference, axis=1)
    alike = (norms > 0.0) & (products >= _CONGRUENCE * norms)
    n_alike = np.maximum(alike.sum(axis=0), 1)
    weights = alike[:, np.newaxis, :]
    mean = np.sum(loadings * weights, axis=0) / n_alike
    linked = np.sum((loadings != 0.0) * weights, axis=0) / n_alike
    return mean, linked, alike.mean(axis=0)


def of_tree(depth, n_nodes):
    """How many factors the branches of a tree have.

    Parameters
    ----------
    depth, n_nodes : ndarray of shape (n_chains, n_draws)
        Levels of the tree, and all of its nodes, in each draw.
    """
    sentences = (
        "Within a branch rows vary along a few directions, the nodes of its path; branches with "
        f"nodes in common vary alike along them. Paths have {spread(depth)} nodes, trees "
        f"{spread(n_nodes)} (in 90% of the draws). Single directions are known only up to "
        "rotations: look at which columns hang together.",
    )
    return Section("tree", "The tree of directions", sentences)
