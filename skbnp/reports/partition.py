"""Clusters: how many, how large, how sure, which rows are typical and which are doubtful."""

from dataclasses import dataclass

import numpy as np

from skbnp.markup import counted, listed, number, percent
from skbnp.reports import pictures, profiles
from skbnp.reports.page import Section, Verdict
from skbnp.reports.words import span
from skbnp.summaries.membership import membership
from skbnp.summaries.partitions import coclustering

# A row is doubtful below this probability of its cluster, a pair of rows surely together from this
# probability on, and surely apart up to what is left of one.
DOUBTFUL, SURE = 0.8, 0.95
# Rows whose pairs are looked at, at most.
MOST_ROWS_OF_PAIRS = 500
# A cluster is small below so many rows, and below this share of all.
_FEW_ROWS, _SMALL_SHARE = 5, 0.01
# A group of more than this share of the rows is missed where it is left out.
_LARGE_SHARE = 0.1
# Rows named of each cluster, at most, and clusters that sentences go through.
_MOST_NAMED, _MOST_CLUSTERS = 3, 12
# Doubtful rows that are shown, at most, and rows in the table of all rows.
_MOST_DOUBTFUL = 8
_MOST_LISTED = 10_000
# Share of draws with as many pieces as there are clusters, below which joins decide their number.
_OWN_PIECES = 0.1
# Numbers of clusters that are shown: with this probability and more.
_LEAST_PROBABILITY = 0.01
_LEAVE_COPIES_OUT = (
    "Keep one row of each such group, as by numpy.unique(X, axis=0) where they are equal, and fit "
    "again."
)
_NEAR_COPIES = (
    "If rows that are nearly equal are of things that were measured several times, keep one row of "
    "each, or their mean, and fit again; if such few rows are the groups that you look for, all is "
    "well."
)
# Share of rows with a probable cluster from which a partition is to be trusted, or with care.
_MOST_ROWS_SURE, _MANY_ROWS_SURE = 0.9, 0.6


@dataclass(frozen=True)
class Partition:
    """What an estimator says of the clusters of its training rows.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
        Clusters 0, 1, ...
    draws : list of ndarray of shape (n_samples,)
        Labels in draws.
    n_blocks : ndarray of shape (n_chains, n_draws)
        Number of blocks of each draw.
    expected_loss : float
    tables : list of ndarray of shape (n_blocks, n_clusters) or None
        The shares of the clusters in the blocks of each draw, where `labels` are joined from
        blocks; None where draws have clusters of their own.
    loss : {"vi", "binder"}
    pieces : ndarray of int of shape (n_samples,) or None
        The clusters before overlapping ones were joined, of which `expected_loss` speaks; None
        where nothing is joined.
    n_joined : ndarray of int of shape (n_used,) or None
        Number of clusters of some draws, evenly spaced over the chains, after the same joins.
    has_tree : bool
        Whether the estimator has ``merge_tree_``.
    noun : str
        "cluster" or "branch".
    dropped : sequence of dict
        Groups that were left out for want of support in the draws, each with its ``size``.
    copies : int
        Rows in groups of equal rows, which are together because they are equal.
    near_copies : int
        Rows in groups of a few rows that are nearly equal.
    unbounded : tuple of (str, str) or None
        Which pieces have densities without a bound, and what to do, in words.
    unsupported : sequence of int
        Clusters that fewer than half of the draws have.
    """

    labels: np.ndarray
    draws: list
    n_blocks: np.ndarray
    expected_loss: float
    tables: list | None = None
    loss: str = "vi"
    pieces: np.ndarray | None = None
    n_joined: np.ndarray | None = None
    has_tree: bool = True
    noun: str = "cluster"
    dropped: tuple = ()
    copies: int = 0
    near_copies: int = 0
    unbounded: tuple | None = None
    unsupported: tuple = ()

    @property
    def nouns(self):
        """More than one of them."""
        return "branches" if self.noun == "branch" else f"{self.noun}s"


def sections(partition, table):
    """What was found of clusters: the clusters, their profiles, rows, their number, pairs."""
    probability = membership(partition.labels, partition.draws, partition.tables)
    return [
        clusters(partition, probability),
        *profiles.sections(partition, table),
        rows(partition, table, probability),
        how_many(partition),
        pairs(partition),
    ]


# -- clusters and their sizes


def clusters(partition, probability):
    """Sizes, and how sure rows are of each cluster."""
    labels, n = partition.labels, len(partition.labels)
    own, _ = _own_and_others(labels, probability)
    sizes = np.bincount(labels)
    records = []
    for k, size in enumerate(sizes):
        here = np.flatnonzero(labels == k)
        records.append(
            {
                partition.noun: k,
                "rows": int(size),
                "share of rows": round(float(size / n), 3),
                "mean probability": round(float(own[here].mean()), 3),
                "doubtful rows": int((own[here] < DOUBTFUL).sum()),
            }
        )
    share_sure = float((own >= DOUBTFUL).mean())
    small = [k for k, size in enumerate(sizes) if _is_small(size, n)]
    sentences = [_sizes_in_words(partition, sizes)]
    n_doubtful = int((own < DOUBTFUL).sum())
    if len(sizes) > 1:
        rest = f"the other {number(n_doubtful)} {'is' if n_doubtful == 1 else 'are'} doubtful"
        share = percent(share_sure)
        sentences.append(
            f"{share[0].upper()}{share[1:]} of the rows are in their {partition.noun} with a "
            f"probability of at least {DOUBTFUL:g}; {rest if n_doubtful else 'none is doubtful'}."
        )
    if small and len(sizes) > 1:
        names = listed([f"{k} ({counted(sizes[k], 'row')})" for k in small])
        sentences.append(
            f"Small: {names}. Rows that stand apart may be a rare kind, or mistakes in the data; "
            "look at them one by one."
        )
    if partition.dropped:
        rows_of = listed([counted(int(one["size"]), "row") for one in partition.dropped], 6)
        sentences.append(
            f"Left out, as fewer than half of the draws have them or they gain nothing for sure: "
            f"{counted(len(partition.dropped), 'group')} of {rows_of}, which went to others."
        )
    steps = []
    if len(sizes) == 1 and not partition.dropped:
        steps.append(
            "No groups were found. If you expected some, look at the pictures of single columns, "
            "and leave out columns that say nothing of the groups you have in mind."
        )
    return Section(
        "clusters",
        f"What was found: {counted(len(sizes), partition.noun, partition.nouns)}",
        tuple(sentences),
        records,
        n_shown=20,
        verdicts=tuple(_verdicts_of_clusters(partition, sizes, own, share_sure)),
        steps=tuple(steps),
        in_short=_sizes_in_words(partition, sizes) + _least_sure(partition, probability),
    )


def _own_and_others(labels, probability):
    """Probabilities of the rows' own clusters, (n,), and of all others, -1 for their own."""
    own = labels[:, np.newaxis]
    others = probability.copy()
    np.put_along_axis(others, own, -1.0, axis=1)
    return np.take_along_axis(probability, own, axis=1)[:, 0], others


def _is_small(size, n):
    return size < max(_FEW_ROWS, _SMALL_SHARE * n)


def _sizes_in_words(partition, sizes):
    if len(sizes) == 1:
        n_pieces = 1 if partition.pieces is None else int(partition.pieces.max()) + 1
        # Without groups that were given up, pieces that overlap: no others are joined.
        if n_pieces == 1 or partition.dropped:
            whole = f"All rows are in one {partition.noun}"
            return f"{whole}: there are no groups that the draws agree on."
        return (
            f"All rows are in one {partition.noun}, made of {n_pieces} pieces that overlap, of "
            f"which the largest has {counted(int(np.bincount(partition.pieces).max()), 'row')}."
            + " How far they overlap says skbnp.plot.MergeTreeDisplay."
            * partition.has_tree
        )
    shown = [
        f"{partition.noun} {k} has {counted(size, 'row')}"
        for k, size in enumerate(sizes[:_MOST_CLUSTERS])
    ]
    return (
        f"The rows fall into {counted(len(sizes), partition.noun, partition.nouns)}: "
        f"{listed(shown, _MOST_CLUSTERS)}"
        + (f"; {len(sizes) - len(shown)} smaller ones follow." if len(sizes) > len(shown) else ".")
    )


def _least_sure(partition, probability):
    """The two clusters between which most doubtful rows are, if they are many."""
    own, others = _own_and_others(partition.labels, probability)
    doubtful = np.flatnonzero((own < DOUBTFUL) & (others.max(axis=1) > 0.0))
    if not doubtful.size:
        return ""
    pairs = np.sort(np.column_stack([partition.labels, others.argmax(axis=1)])[doubtful], axis=1)
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    (g, h), most = found[counts.argmax()], int(counts.max())
    if most < max(_FEW_ROWS, len(doubtful) / 4):
        return ""
    return (
        f" Least sure is where {partition.nouns} {g} and {h} meet: {counted(most, 'row')} may be "
        "of either."
    )


def _verdicts_of_clusters(partition, sizes, own, share_sure):
    if partition.unbounded and not partition.copies:
        which, remedy = partition.unbounded
        yield Verdict(
            "densities of rows", "no", f"pieces {which}", f"{remedy[0].upper()}{remedy[1:]}."
        )
    if len(sizes) == 1:
        return
    if partition.copies:
        yield Verdict(
            f"which {partition.noun} a row is of, and densities of rows",
            "no",
            f"{counted(partition.copies, 'row')} are in groups of equal rows",
            _LEAVE_COPIES_OUT,
        )
        return
    if partition.near_copies:
        yield Verdict(
            f"which {partition.noun} a row is of, and densities of rows",
            "with care",
            f"{counted(partition.near_copies, 'row')} are in groups of a few that are nearly equal",
            _NEAR_COPIES,
        )
        return
    if partition.unsupported:
        noun = partition.noun if len(partition.unsupported) == 1 else partition.nouns
        yield Verdict(
            f"{noun} {listed(partition.unsupported)}",
            "no",
            f"fewer than half of the draws have such {partition.nouns}",
            "Use estimator.predict_proba(X) in place of labels_, or run longer chains.",
        )
    why = f"{percent(share_sure)} of the rows have a {partition.noun} of probability "
    trust = "yes" if share_sure >= _MOST_ROWS_SURE else "with care"
    trust = "no" if share_sure < _MANY_ROWS_SURE else trust
    remedy = ""
    if trust == "yes" and partition.unbounded:
        trust, why = "with care", f"pieces may follow such values alone, and {why}"
    elif trust != "yes":
        remedy = (
            "Use estimator.predict_proba(X), the probabilities, in place of labels_: many rows "
            "lie between groups."
        )
    yield Verdict(
        f"which {partition.noun} a row is of", trust, f"{why}{DOUBTFUL:g} or more", remedy
    )
    labels = partition.labels
    means = np.array([own[labels == k].mean() for k in range(len(sizes))])
    shaky = [k for k in range(len(sizes)) if means[k] < DOUBTFUL]
    if shaky and trust != "no":
        noun = partition.noun if len(shaky) == 1 else partition.nouns
        yield Verdict(
            f"{noun} {listed(shaky)}",
            "with care",
            f"the rows there are of it with a probability of {number(means[shaky].min(), 2)} on "
            "average, at worst",
        )


# -- rows


def rows(partition, table, probability):
    """Typical and doubtful rows of each cluster; the table has their probabilities."""
    labels, n = partition.labels, len(partition.labels)
    own, others = _own_and_others(labels, probability)
    several = probability.shape[1] > 1
    distance = _distance_to_center(table, labels)
    sentences = []
    for k in range(min(probability.shape[1], _MOST_CLUSTERS)):
        here = np.flatnonzero(labels == k)
        # Of equally sure rows those nearest to the mean of the cluster.
        best = here[np.lexsort((distance[here], -np.round(own[here], 2)))[:_MOST_NAMED]]
        doubtful = here[own[here] < DOUBTFUL]
        best = best[own[best] >= DOUBTFUL]
        sentence = f"{partition.noun.capitalize()} {k}: "
        if best.size:
            are = "is row" if best.size == 1 else "are rows"
            sentence += f"typical {are} {_named(table, best)}"
        else:
            sentence += "no row is typical"
        if several and doubtful.size:
            worst = doubtful[np.argsort(own[doubtful], kind="stable")[:_MOST_NAMED]]
            shown = [f"{table.row(i)} ({_doubt(partition.noun, own[i], others[i])})" for i in worst]
            few = "row " if len(worst) == 1 else "rows "
            more = f"{doubtful.size} rows, above all " if doubtful.size > len(worst) else few
            sentence += f"; doubtful: {more}{listed(shown)}"
        sentences.append(sentence + ".")
    order = np.argsort(own, kind="stable")[:_MOST_LISTED]
    if len(order) < n:
        sentences.append(f"The table has the {number(len(order))} most doubtful of all rows.")
    if several and (own < DOUBTFUL).any():
        sentences.append(f"On its own: how probably a row is of none of these {partition.nouns}.")
    n_other = int((others.max(axis=1) > own).sum()) if several else 0
    if n_other:
        sentences.append(
            f"{counted(n_other, 'row')} {'is' if n_other == 1 else 'are'} more probably of another "
            f"{partition.noun} than of that in labels_, the same for all draws: see predict(X)."
        )
    records = [
        {
            "row": table.row(i),
            partition.noun: int(labels[i]),
            "probability": round(float(own[i]), 3),
            f"next {partition.noun}": int(others[i].argmax()) if several else -1,
            "its probability": round(float(max(others[i].max(), 0.0)), 3),
            "on its own": round(float(max(0.0, 1.0 - probability[i].sum())), 3),
        }
        for i in order
    ]
    return Section(
        "rows",
        "Typical and doubtful rows",
        tuple(sentences),
        records,
        n_shown=min(_MOST_DOUBTFUL, int((own < DOUBTFUL).sum())) if several else 0,
    )


def _doubt(noun, own, others):
    alone = 1.0 - own - np.maximum(others, 0.0).sum()
    if alone > others.max():
        return f"{own:.2f}; on its own: {alone:.2f}"
    if others.max() <= 0.0:
        return f"{own:.2f}"
    return f"{own:.2f}; {noun} {int(others.argmax())}: {others.max():.2f}"


def _named(table, places):
    return listed([table.row(place) for place in places])


def _distance_to_center(table, labels):
    """Mean squared distance to the mean of the row's cluster over its observed numbers."""
    is_number = np.array([levels is None for levels in table.levels], dtype=bool)
    X = table.X[:, is_number]
    total, count = np.zeros(len(X)), np.zeros(len(X))
    for x in X.T:
        seen = ~np.isnan(x)
        spread = np.std(x[seen]) if seen.any() else 0.0
        if not 0.0 < spread < np.inf:
            continue
        for k in range(int(labels.max()) + 1):
            here = seen & (labels == k)
            if here.any():
                total[here] += ((x[here] - x[here].mean()) / spread) ** 2
        count += seen
    return np.where(count > 0, total / np.maximum(count, 1), np.inf)


# -- how many


def how_many(partition):
    """The posterior of the number of clusters, and the expected loss of the partition."""
    found = int(partition.labels.max()) + 1
    drawn = np.asarray(partition.n_blocks, dtype=np.intp).ravel()
    joins = partition.n_joined is not None
    counts = np.asarray(partition.n_joined) if joins else drawn
    shares = np.bincount(counts) / len(counts)
    of_pieces = np.bincount(drawn) / len(drawn)
    support = sorted(
        set(np.flatnonzero(shares >= _LEAST_PROBABILITY))
        | (set(np.flatnonzero(of_pieces >= _LEAST_PROBABILITY)) if joins else set())
    )
    records = []
    for k in support:
        record = {partition.nouns: int(k), "probability": _share(shares, k)}
        if joins:
            record["before joins"] = _share(of_pieces, k)
        records.append(record)
    likely = [k for k in np.argsort(-shares, kind="stable") if shares[k] >= 0.05][:4]
    shown = [f"{percent(shares[k])} have {k}" for k in likely]
    shown[-1] += f" {partition.noun if likely[-1] == 1 else partition.nouns}"
    of = f"Of {number(len(counts))} of these" if joins else "Of these"
    sentences = [
        "The method keeps many answers that the data allow, its draws. "
        f"{of} {listed(shown)}" + (", after pieces that overlap are joined." if joins else ".")
    ]
    if joins:
        sentences.append(
            "A piece is one bell curve of a draw; skewed groups take several, and small ones come "
            f"and go. Nine in ten draws have {_range(of_pieces)} pieces. Those that overlap "
            "are one cluster, whose rows could as well be of either. merge_overlap sets how much "
            f"they must overlap{', and merge_tree_ has all joins' * partition.has_tree}; where a "
            "join is near that limit, more draws of the same chains can change the number."
        )
    mode = int(shares.argmax())
    is_less = _share(shares, found) < _share(shares, mode)
    if is_less:
        because = (
            f"it keeps {partition.nouns} that a part of the draws has joined to others"
            if found > mode
            else f"it joins to others, or leaves out, {partition.nouns} that draws disagree on"
        )
        sentences.append(
            f"The summary of all draws has {found}, though {mode} is the most frequent number: "
            f"{because}."
        )
    if partition.pieces is None:
        sentences.append(_loss_in_words(partition))
    nouns, when = ("pieces", ", before any joins") if joins else (partition.nouns, "")
    show = pictures.cluster_count(
        partition.n_blocks, nouns, f"Number of {nouns} in the draws{when}"
    )
    return Section(
        "number",
        f"How many {partition.nouns}",
        tuple(sentences),
        records,
        n_shown=12,
        pictures=(show,),
        verdicts=(_verdict_of_number(partition, shares, found),),
    )


def _share(shares, k):
    return round(float(shares[k]), 3) if k < len(shares) else 0.0


def _range(shares):
    below = np.cumsum(shares)
    low, high = np.searchsorted(below, [0.05, 0.95 - 1e-12])
    return span(low, high)


def _verdict_of_number(partition, shares, found):
    share = float(shares[found]) if found < len(shares) else 0.0
    n = len(partition.labels)
    small = any(_is_small(size, n) for size in np.bincount(partition.labels))
    display = "CoclusteringDisplay.from_estimator(estimator)"
    if partition.tables is not None:
        # Of clusters it says how sure rows are of these, and not whether they are right.
        display = "MergeTreeDisplay and CoclusteringDisplay.from_estimator(estimator, joined=False)"
    remedy = (
        "The number of groups is open: before you count on it, look at "
        f"{'the small ones, and at which of them' if small else 'which rows'} draws have "
        f"together, by skbnp.plot.{display}."
    )
    trust = "yes" if share >= 0.8 else "with care" if share >= 0.4 else "no"
    why = f"{percent(share)} of the draws have {found}"
    lowest = _lowest_share(partition, found)
    if trust == "yes" and lowest is not None:
        trust = "yes" if lowest >= 0.8 else "with care"
        why += f", in no chain fewer than {percent(lowest)}"
    if trust == "yes" and _hangs_on_joins(partition, found):
        trust = "with care"
        why += " once pieces are joined, and hardly any has so few pieces: joins decide"
        remedy = "Which pieces are one cluster is up to merge_overlap: look at what was joined, by "
        if partition.has_tree:
            remedy += "skbnp.plot.MergeTreeDisplay.from_estimator(estimator)."
        else:
            remedy += "component_labels_, and fit with another."
    lost = max((int(one["size"]) for one in partition.dropped), default=0)
    if lost > _LARGE_SHARE * n:
        trust, why = "no", f"{why}, and a group of {counted(lost, 'row')} was given up"
    if partition.copies:
        trust, why = "no", f"{counted(partition.copies, 'row')} are in groups of equal rows"
        remedy = _LEAVE_COPIES_OUT
    elif partition.near_copies and trust != "no":
        trust, remedy = "with care", _NEAR_COPIES
        why = (
            f"{counted(partition.near_copies, 'row')} are in groups of a few that are nearly equal"
        )
    if trust == "yes" and partition.unbounded:
        trust = "with care"
        why += ", but pieces may follow single values or columns that follow from others"
        remedy = (
            "The number may come from values or columns that pieces follow: fit again without "
            f"these, and see whether there still {'is' if found == 1 else 'are'} "
            f"{counted(found, partition.noun, partition.nouns)}."
        )
    return Verdict(
        f"the number of {partition.nouns}",
        trust,
        why,
        "" if trust == "yes" else remedy,
    )


def _hangs_on_joins(partition, found):
    """Whether few draws have as many pieces as there are clusters."""
    return partition.n_joined is not None and np.mean(partition.n_blocks == found) < _OWN_PIECES


def _lowest_share(partition, found):
    """The share of draws with this number in the chain that has it least; None of one chain."""
    n_chains = len(partition.n_blocks)
    if n_chains == 1:
        return None
    of_chains = partition.n_blocks
    if partition.n_joined is not None:
        of_chains = np.array_split(np.asarray(partition.n_joined), n_chains)
    return float(min(np.mean(np.asarray(one) == found) for one in of_chains))


def _loss_in_words(partition):
    n = len(partition.labels)
    of = "these clusters" if partition.noun == "cluster" else "these branches"
    loss = partition.expected_loss
    if partition.loss == "binder":
        share = loss / max(n * (n - 1) / 2, 1)
        return f"A draw differs from {of} in {percent(share)} of all pairs of rows, on average."
    most = np.log(n) if n > 1 else 1.0
    return (
        f"A draw differs from {of} by {number(loss, 2)} nats (variation of information) on "
        f"average, where 0 means the same groups and {number(most, 2)} nothing in common: that is "
        f"{percent(min(loss / most, 1.0))} of the way."
    )


# -- pairs


def sure_pairs(draws, n_samples, tables=None):
    """Pairs of rows that nearly all draws have together, and those that they have apart.

    Parameters
    ----------
    draws : list of ndarray of int of shape (n_samples,)
    n_samples : int
    tables : list of ndarray of shape (n_blocks, n_clusters) or None
        As in `Partition`.

    Returns
    -------
    rows : ndarray of int of shape (n_rows,)
        The rows whose pairs are looked at, evenly spaced, at most 500.
    together, apart : ndarray of bool of shape (n_rows, n_rows)
        Where the probability of a common cluster is at least .95, and at most .05.
    """
    step = -(-n_samples // MOST_ROWS_OF_PAIRS)
    chosen = np.arange(0, n_samples, step)
    found = coclustering([np.asarray(draw)[chosen] for draw in draws], tables=tables)
    return chosen, found >= SURE, found <= 1.0 - SURE


def pairs(partition):
    """How many pairs of rows are surely together or apart."""
    n = len(partition.labels)
    chosen, together, apart = sure_pairs(partition.draws, n, partition.tables)
    labels = partition.labels[chosen]
    above = np.triu(np.ones(together.shape, dtype=bool), 1)
    same = labels[:, np.newaxis] == labels
    if not above.any():
        return Section("pairs", "Pairs of rows", ("There is one row alone.",))
    records = []
    for k in range(int(partition.labels.max()) + 1):
        here = above & same & (labels == k)[:, np.newaxis]
        n_pairs = int(here.sum())
        records.append(
            {
                partition.noun: k,
                "pairs": n_pairs,
                "surely together": round(float(together[here].mean()), 3) if n_pairs else np.nan,
                "surely apart": round(float(apart[here].mean()), 3) if n_pairs else np.nan,
            }
        )
    shares = [percent(float(found[above].mean())) for found in (together, apart)]
    of = "all pairs of rows" if len(chosen) == n else f"the pairs of {len(chosen)} of the rows"
    open_share = float((~together & ~apart)[above].mean())
    sentence = (
        f"Of {of}, {shares[0]} are surely together (in one {partition.noun} with a probability of "
        f"at least {percent(SURE)}), {shares[1]} surely apart (of at most {percent(1 - SURE)}); of "
        f"{percent(open_share)} the data do not say."
    )
    show = pictures.pairs(partition.draws, partition.labels, partition.tables)
    return Section(
        "pairs", "Pairs of rows", (sentence,), records, n_shown=0, pictures=(show,)
    )  # fmt: skip
