"""Networks: hidden units, layers and edges, and which columns they tie together."""

import numpy as np

from skbnp.markup import counted, listed, percent
from skbnp.reports import pictures
from skbnp.reports.page import Section, Verdict
from skbnp.reports.words import spread

_MOST_NAMED = 6
# A pair is tied with this probability of a common parent, and an edge is named from this one on.
_LIKELY, _EDGE = 0.9, 0.5
# Columns that are compared, at most: evenly spaced ones of more.
MOST_COLUMNS = 100


def section(traces, network, n_columns, together, edges=None):
    """What networks look like, and which columns they tie together.

    Parameters
    ----------
    traces : dict of str to ndarray of shape (n_chains, n_draws)
        What is counted, in words, such as "hidden units".
    network : dict
        That of the reference draw, as `network()` has it.
    n_columns : int
        The first of its nodes that are columns to speak of.
    together : ndarray of shape (n_columns, n_columns)
        Probability that two columns have a hidden parent in common.
    edges : ndarray of shape (n_columns, n_columns) or None
        Probability that a column is a parent of another, [parent, child], where it may be.
    """
    chosen = np.arange(0, n_columns, -(-n_columns // MOST_COLUMNS))
    names = [network["names"][j] for j in chosen]
    together = together[np.ix_(chosen, chosen)]
    edges = None if edges is None else edges[np.ix_(chosen, chosen)]
    shown = [f"{spread(trace)} {what}" for what, trace in traces.items()]
    sentences = [
        "A hidden unit is something that was not measured and that columns respond to together. "
        f"Networks of the draws have {listed(shown)} (in 90% of the draws).",
        "Hidden units have no names and no fixed order or sign, so that single ones cannot be "
        "compared from draw to draw; which columns they tie together can.",
    ]
    if len(chosen) < n_columns:
        sentences.append(f"Only {len(chosen)} of the {n_columns} columns are compared below.")
    pairs = np.argwhere(np.triu(np.ones(together.shape, dtype=bool), 1))
    pairs = pairs[np.argsort(-together[tuple(pairs.T)], kind="stable")]
    records = [_record(names, together, edges, a, b) for a, b in pairs]
    sentences += _ties(names, together, pairs)
    if edges is not None and (edges >= _EDGE).any():
        found = np.argwhere(edges >= _EDGE)
        found = found[np.argsort(-edges[tuple(found.T)], kind="stable")][:_MOST_NAMED]
        words = [f"{names[a]} to {names[b]} ({edges[a, b]:.2f})" for a, b in found]
        sentences.append(
            f"Edges from column to column with their probability: {listed(words)}. An edge is a "
            "way to describe the table; it need not be a cause."
        )
    sentences += _strongest(network)
    share = _share_of_mode(traces)
    verdicts = [
        Verdict(
            f"single hidden units and edges to them (the {what} vary)",
            "no",
            f"the most frequent number of {what} is that of {percent(mode)} of the draws",
        )
        for what, mode in share.items()
        if mode < 0.5
    ][:1]
    return Section(
        "network", "What was found: a network", tuple(sentences), records, n_shown=8,
        pictures=(pictures.network(network),), verdicts=tuple(verdicts),
        in_short=sentences[0],
    )  # fmt: skip


def common_parents(draws, columns, n_columns):
    """Probability that two columns have a hidden parent in common.

    Parameters
    ----------
    draws : list of dict
        Networks: ``edges`` (n_edges, 2), each [parent, child].
    columns : ndarray of int of shape (n_nodes,)
        The column of each observed node; those that are constant have none.
    n_columns : int
    """
    total = np.zeros((n_columns, n_columns))
    for draw in draws:
        parent, child = draw["edges"].T
        here = (parent >= len(columns)) & (child < len(columns))
        n_hidden = int(parent.max(initial=len(columns) - 1)) + 1 - len(columns)
        of_column = np.zeros((n_hidden, n_columns))
        of_column[parent[here] - len(columns), columns[child[here]]] = 1.0
        total += of_column.T @ of_column > 0.0
    return total / len(draws)


def _share_of_mode(traces):
    out = {}
    for what, trace in traces.items():
        _, count = np.unique(trace, return_counts=True)
        out[what] = float(count.max() / count.sum())
    return out


def _record(names, together, edges, a, b):
    record = {
        "column": names[a],
        "other column": names[b],
        "common unit": round(float(together[a, b]), 3),
    }
    if edges is not None:
        record["edge there"] = round(float(edges[a, b]), 3)
        record["edge back"] = round(float(edges[b, a]), 3)
    return record


def _ties(names, together, pairs):
    if not len(pairs):
        return []
    values = together[tuple(pairs.T)]
    tied = [(a, b) for a, b in pairs if together[a, b] >= _LIKELY]
    if len(tied) == len(pairs):
        return [
            "Any two columns share a hidden unit, so that this alone does not tell columns apart: "
            "look at which columns hang together."
        ]
    if tied:
        words = [f"{names[a]} and {names[b]}" for a, b in tied[:_MOST_NAMED]]
        return [
            f"{counted(len(tied), 'pair')} of {len(pairs)} share a hidden unit with a probability "
            f"of at least {_LIKELY:g}: {listed(words)}"
            + (f" and {len(tied) - _MOST_NAMED} more." if len(tied) > _MOST_NAMED else ".")
        ]
    a, b = pairs[0]
    return [
        f"No two columns share a hidden unit for sure; {names[a]} and {names[b]} do with the "
        f"highest probability, {values[0]:.2f}."
    ]


def _strongest(network):
    """The strongest edges of the reference draw that end at columns."""
    names, edges, weights = network["names"], network["edges"], network["weights"]
    at = np.flatnonzero(edges[:, 1] < len(names))
    at = at[np.argsort(-np.abs(weights[at]), kind="stable")][:_MOST_NAMED]
    if not at.size:
        return []
    words = []
    for parent, child, weight in zip(*edges[at].T, weights[at], strict=True):
        source = names[parent] if parent < len(names) else f"unit {parent - len(names)}"
        words.append(f"{source} to {names[child]} ({weight:+.2g})")
    return [f"In one of the networks, which the picture shows, the strongest edges to columns are "
            f"{listed(words)}."]  # fmt: skip
