"""A consensus of draws without noise: no cluster that the draws do not bear out."""

from itertools import repeat

import numpy as np

from skbnp.summaries._draws import (
    check_count,
    check_draws,
    check_partition,
    check_weights,
    merge_rows,
    number_blocks,
    number_for_packing,
    pack,
    thin,
)
from skbnp.summaries._losses import distances, loss_table, scale
from skbnp.summaries._search import UNBOUNDED, Search
from skbnp.summaries.partitions import (
    companion_table,
    consensus_partition,
    make_generator,
    relabel_by_size,
)

MOST_BLOCKS = 0.95  # quantile of the draws' numbers of blocks
# A gain that is no larger than so many standard errors may be none.
ERRORS = 2.0
LEAST_JACCARD = 0.5
LEAST_SUPPORT = 0.5


def stable_consensus(labels, loss="vi", *, max_draws=300, max_work=None, random_state=None):
    """Consensus of the draws that drops clusters whose gain is within its Monte Carlo error.

    A partition of least expected loss keeps clusters that hardly any draw has, such as a few rows
    that waver between two others, for a gain in expected loss that other draws would not show.

    Parameters
    ----------
    labels : array-like of int of shape (n_draws, n), or list of n_draws arrays of shape (n,)
        Posterior draws of the partition, each with any labels, chain after chain.
    loss : {"vi", "binder"}, default="vi"
        As in `skbnp.summaries.partitions.expected_loss`.
    max_draws : int, default=300
        As in `skbnp.summaries.partitions.consensus_partition`.
    max_work : int, default=None
        As there, for the search; as much again for looking which clusters are noise.
    random_state : int, Generator, RandomState or None, default=None
        An int makes the result reproducible.

    Returns
    -------
    partition : ndarray of int of shape (n,)
        Labels 0, 1, ... by decreasing cluster size, ties by first row. No more clusters than the
        95 % quantile of the draws' numbers of blocks.
    expected : float
        Its expected loss over the draws used.
    info : dict
        As by `consensus_partition`, with ``dropped``: for each cluster that was dropped, in that
        order, a dict of its ``size``, its ``support``, its ``gain``, the expected loss without it
        less the one with it, and the standard ``error`` of that gain. ``support`` is that of each
        cluster left, as by :func:`support`.

    Notes
    -----
    To drop a cluster is to move its rows, one after the other, to the best of the others. It is
    done where the gain is at most two standard errors and fewer than half of the draws support
    the cluster: chains that disagree make the error large, but what most of them have is no
    noise. The error is of a mean over batches of consecutive draws, as many as a batch is long.
    To look at all clusters takes O(n_items n_draws n_clusters) time, where rows that all draws
    keep together are one item.

    A cluster of little support whose gain is sure is left: the pieces that every draw cuts in its
    own way are such, and make up a cluster once they are joined.
    """
    draws = check_draws(labels)
    check_count("max_draws", max_draws, optional=True)
    draws, share = thin(draws, check_weights(None, len(draws)), max_draws)
    generator = make_generator(random_state)
    n_blocks = [number_blocks(draw)[1] for draw in draws]
    most = int(np.quantile(n_blocks, MOST_BLOCKS, method="inverted_cdf"))
    partition, _, info = consensus_partition(
        draws, loss, max_clusters=most, max_draws=None, max_work=max_work, random_state=generator
    )
    pruning = _Pruning(partition, thin(draws, share, info["n_draws"])[0], loss, generator)
    finished = pruning.drop_noise(UNBOUNDED if max_work is None else max_work)
    partition = pruning.partition()
    info["truncated"] = info["truncated"] or not finished
    info["dropped"] = pruning.dropped
    info["support"] = support(partition, draws).tolist()
    return partition, pruning.expected_loss(), info


def drop_unsupported(
    partition, labels, joined=None, *, least_support=LEAST_SUPPORT, random_state=None
):
    """Partition without the clusters that too few draws support.

    Parameters
    ----------
    partition : array-like of int of shape (n,)
        Clusters 0, 1, ...
    labels : array-like of int of shape (n_draws, n), or list of n_draws arrays of shape (n,)
        Draws of the partition, each with any labels.
    joined : as `labels`, default=None
        The same draws with overlapping blocks joined: a draw supports a cluster by a block of
        either.
    least_support : float in [0, 1], default=0.5
        Clusters that a smaller share of the draws supports are dropped, see :func:`support`.
    random_state : int, Generator, RandomState or None, default=None
        An int makes the result reproducible.

    Returns
    -------
    partition : ndarray of int of shape (n,)
        Labels 0, 1, ... by decreasing cluster size, ties by first row. That which was given where
        the last cluster has too little support as well, so that the draws support none.
    dropped : list of dict
        ``size`` and ``support`` of each cluster dropped, the least supported first.

    Notes
    -----
    The rows of a cluster move, one after the other, to that of the others which adds least to the
    expected variation of information from `joined` or, if there are none, `labels`.
    """
    draws = check_draws(labels if joined is None else joined)
    partition, generator = relabel_by_size(partition), make_generator(random_state)
    if support(partition, labels, joined).min() >= least_support:
        return partition, []
    pruning = _Pruning(partition, draws, "vi", generator)
    pruning.drop_unsupported(least_support, labels, joined)
    found = pruning.partition()
    if pruning.n_clusters == 1 and support(found, labels, joined)[0] < least_support:
        # Rows that were given away have spoiled one cluster after the other, for nothing.
        return partition, []
    return found, pruning.dropped


def support(partition, labels, joined=None):
    """Share of the draws that have a block much like each cluster.

    Parameters
    ----------
    partition : array-like of int of shape (n,)
        Clusters 0, 1, ...
    labels : array-like of int of shape (n_draws, n), or list of n_draws arrays of shape (n,)
        Draws of the partition, each with any labels.
    joined : as `labels`, default=None
        The same draws with overlapping blocks joined: a block of either counts.

    Returns
    -------
    ndarray of shape (n_clusters,)
        Much alike are block and cluster with a Jaccard index of at least 0.5: of the rows that
        are in one of them, half are in both.
    """
    draws = check_draws(labels)
    partition = np.asarray(partition)
    check_partition(partition, len(draws[0]))
    seen = 0.0
    others = repeat(None) if joined is None else check_draws(joined)
    for draw, other in zip(draws, others, strict=joined is not None):
        has = _has_alike(partition, draw)
        if other is not None:
            has |= _has_alike(partition, other)
        seen = seen + has
    return seen / len(draws)


def _has_alike(partition, draw):
    """Whether the draw has a block much like each cluster."""
    block, n_blocks = number_blocks(draw)
    size, of_block = np.bincount(partition), np.bincount(block)[:, np.newaxis]
    both = companion_table(block, n_blocks, partition, len(size)) * of_block
    # Whole numbers but for rounding.
    return (both >= LEAST_JACCARD * (of_block + size - both) - 1e-6).any(axis=0)


class _Pruning:
    """A partition that loses clusters, and its loss against each draw.

    Invariant between moves: the search holds the clusters 0..n_clusters-1 of the items, none of
    them empty, and ``losses`` the total loss against each draw.
    """

    def __init__(self, partition, draws, loss, generator):
        numbered = [number_for_packing(draw) for draw in draws]
        # Rows that the draws and the partition keep together are one item.
        rows = pack([*numbered, number_for_packing(partition)])
        self._item, first, weight = merge_rows(rows)
        self._loss, self._n = loss, len(partition)
        label = partition[first].astype(np.intc)
        self._search = Search(
            np.ascontiguousarray(rows[first, :-1]),
            np.array([k for *_, k in numbered], dtype=np.intc),
            weight,
            np.full(len(draws), 1.0 / len(draws)),
            loss_table(loss, self._n),
            int(label.max()) + 1,
            UNBOUNDED,
            generator,
        )
        self._search.start_from(label)
        self._weight, self.losses = weight, self._search.losses()
        self.dropped = []

    @property
    def n_clusters(self):
        """How many are left."""
        return self._search.n_slots

    @property
    def label(self):
        """Cluster of each item."""
        return self._search.partition()

    def partition(self):
        """Clusters of the rows, by decreasing size."""
        return relabel_by_size(self.label[self._item])

    def expected_loss(self):
        """In the units of the loss."""
        return float(scale(self.losses.mean(), self._loss, self._n))

    def drop_noise(self, max_work):
        """Drop what gains no more than its error; False if the work ran out before all were seen.

        All are looked at, and those that are noise dropped one by one, the clearest first and
        looked at again, until a look finds none.
        """
        search, unit = self._search, float(scale(1.0, self._loss, self._n))
        while self.n_clusters > 1:
            found = []
            for k in np.flatnonzero(self._support() < LEAST_SUPPORT):
                if search.work >= max_work:
                    return False
                members, _, more = search.without(k)
                gain, error = self._gain(more)
                if gain <= ERRORS * error:
                    found.append((gain - ERRORS * error, int(members.min())))
            n_before = self.n_clusters
            for _, item in sorted(found):
                # By an item of it: clusters are numbered anew as others go, and gain their rows.
                k = self.label[item]
                of_cluster = search.support_of(k, LEAST_JACCARD)
                if self.n_clusters == 1 or of_cluster >= LEAST_SUPPORT:
                    continue
                if search.work >= max_work:
                    return False
                without = search.without(k)
                gain, error = self._gain(without[-1])
                if gain <= ERRORS * error:
                    about = {"gain": float(gain) * unit, "error": float(error) * unit}
                    self._drop(k, without, {"support": of_cluster, **about})
            if self.n_clusters == n_before:
                break
        return True

    def drop_unsupported(self, least_support, labels, joined):
        """Drop the cluster of least support while that is too little."""
        while self.n_clusters > 1:
            of_cluster = support(self.label[self._item], labels, joined)
            k = int(np.argmin(of_cluster))
            if of_cluster[k] >= least_support:
                break
            self._drop(k, self._search.without(k), {"support": float(of_cluster[k])})

    def _support(self):
        return np.array([self._search.support_of(k, LEAST_JACCARD) for k in range(self.n_clusters)])

    def _drop(self, k, without, about):
        members, joined, change = without
        self.dropped.append({"size": int(self._weight[members].sum()), **about})
        self._search.dissolve(k, members, joined)
        self.losses += change

    def _gain(self, more):
        """What the partition gains over one with so much more loss, and the error of that mean."""
        gain = more.mean()
        n_batches = int(len(more) ** 0.5)
        batch = np.arange(len(more)) * n_batches // len(more)
        # Batches differ by a draw in length at most; parts of the mean, so they need no weights.
        parts = np.bincount(batch, more - gain) / len(more)
        error = np.sqrt(parts @ parts * n_batches / max(n_batches - 1, 1))
        return gain, error


def distances_to_consensus(labels, *, max_work=10**8):
    """How far each draw of several chains is from the consensus of each chain.

    A trace of the number of clusters looks alike in chains that have found different clusters of
    about the same number; these distances do not.

    Parameters
    ----------
    labels : list of lists of n_draws arrays of int of shape (n,)
        Draws of the partition, chain by chain, the same number of each.
    max_work : int, default=1e8
        As in `skbnp.summaries.partitions.consensus_partition`, of all chains together.

    Returns
    -------
    distance : ndarray of shape (n_chains, n_chains, n_draws)
        Variation of information in nats; ``distance[k, c, t]`` is that of draw t of chain c to
        the consensus of chain k.
    """
    n = len(labels[0][0])
    f, _ = loss_table("vi", n)
    found = []
    for chain in labels:
        work = max_work // len(labels)
        consensus, *_ = consensus_partition(chain, n_runs=2, max_work=work, random_state=0)
        reference = check_partition(consensus, n)
        found.append([scale(distances(*reference, check_draws(x), f), "vi", n) for x in labels])
    return np.array(found)
