"""From components to clusters: components of a partition that overlap are joined.

A class that is no Gaussian is covered by several components of a mixture. Draws cut such a class
differently, but leave real clusters apart, so that probabilities of membership that are averaged
over draws overlap within a class and not between classes. Nothing here knows of a model: labels
of draws are enough, and probabilities of the rows given all others, where a model has them, make
it a little better.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from skbnp.summaries._draws import (
    check_draws,
    check_partition,
    merge_rows,
    number_blocks,
    number_for_packing,
    pack,
    small_type,
)
from skbnp.summaries.partitions import companion_table

LEAST_DRAWS = 40  # with fewer, chance decides what is joined
LEAST_OVERLAP = 0.25
OVERLAPS = ("rows", "pair", "share")
LINKAGES = ("sum", "capped")
# Share of all rows from which on overlaps are capped.
LEAST_CAPPED = 0.05

# Of the share of the rows in "share": its power is 3/16.
SIXTEENTHS = 3


# -- Overlap ----------------------------------------------------------------------------------


def cluster_shares(reference, labels, responsibilities=None, *, rows=None):
    """Probability, averaged over draws, that each row belongs with each cluster of a partition.

    Parameters
    ----------
    reference : array-like of int of shape (n,)
        Clusters 0, 1, ... of the partition, such as a consensus of the draws.
    labels : array-like of int of shape (n_draws, n), or list of n_draws arrays of shape (n,)
        Draws of the partition. With `responsibilities` their blocks are numbered 0, 1, ...
    responsibilities : iterable of n_draws arrays of shape (n_rows, n_blocks), default=None
        Draw by draw, the probability that a row belongs to each block of the draw; rows sum to
        one. Best with each row left out of what it is compared with. An iterator keeps one draw
        in memory. The rows may be others than those of `labels`. None puts every row of `labels`
        in its own block.
    rows : array-like of int, default=None
        Which rows to answer for; None for all. Without `responsibilities` alone.

    Returns
    -------
    ndarray of shape (n_rows, n_clusters)
        Mean over draws of sum_k r_t(k) T(k, b), where T(k, b) is the share of the rows of block k
        that cluster b has. Rows sum to one.
    """
    draws = check_draws(labels)
    reference, n_clusters = _check_reference(reference, len(draws[0]))
    if rows is not None and responsibilities is not None:
        raise ValueError("rows must be None where responsibilities are given: they have their own")
    wanted = slice(None) if rows is None else _check_rows(rows, len(draws[0]))
    total = 0.0
    if responsibilities is None:
        for draw in draws:
            block, n_blocks = number_blocks(draw)
            table = companion_table(block, n_blocks, reference, n_clusters)
            total = total + table[block[wanted]]
        return total / len(draws)
    n_seen = 0
    for n_seen, (draw, r) in enumerate(_pairs(draws, responsibilities), start=1):
        r = np.asarray(r, dtype=np.float64)
        if r.ndim != 2 or (n_seen > 1 and len(r) != len(total)):
            raise ValueError(
                "responsibilities must have shape (n_rows, n_blocks), the same rows for all draws, "
                f"got {r.shape} for draw {n_seen - 1}"
            )
        total = total + r @ companion_table(draw, r.shape[1], reference, n_clusters)
    return total / n_seen


def _pairs(draws, responsibilities):
    """Each draw with its own, and an error where one has more than the other."""
    try:
        yield from zip(draws, responsibilities, strict=True)
    except ValueError as error:
        if "zip()" not in str(error):
            raise
        raise ValueError(
            f"responsibilities must be one array for each draw of labels, {len(draws)}"
        ) from error


def _check_reference(reference, n):
    """The clusters as integers, and how many there are."""
    reference = np.asarray(reference)
    n_clusters = check_partition(reference, n)[1]
    if reference.min() != 0 or reference.max() != n_clusters - 1:
        raise ValueError(
            f"reference must have the labels 0 to {n_clusters - 1}, one for each of its clusters, "
            f"got {reference.min()} to {reference.max()}"
        )
    return reference.astype(np.intp), n_clusters


def _check_rows(rows, n):
    """The index of some of n rows."""
    rows = np.asarray(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not rows.size:
        raise ValueError(
            f"rows must be integers of shape (n_rows,), n_rows >= 1, got {rows.dtype} {rows.shape}"
        )
    if rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"rows must be 0 to {n - 1}, got {rows.min()} to {rows.max()}")
    return rows


def overlap_of(joint, kind="rows"):
    """How far each two clusters overlap, between 0 and 1.

    Parameters
    ----------
    joint : array-like of shape (n_clusters, n_clusters)
        J = P^T P of the shares P of `cluster_shares`.
    kind : {"rows", "pair", "share"}, default="rows"
        "rows": J[g, h] / sum_l J[g, l], the chance that a row of g, its label forgotten, is put in
        h. "pair": J[g, h] / (J[g, g] + J[g, h]), the same with two clusters and no less where
        others overlap too. "share": that, divided by the share of all rows that the two hold to the
        power of 3/16, so that more is asked of a join the more it decides. The larger of the two
        directions counts.

    Returns
    -------
    ndarray of shape (n_clusters, n_clusters)
        Symmetric, with 0 on the diagonal and for clusters that no row is put in. Of "share" it may
        be above 1.

    References
    ----------
    .. [1] C. Hennig (2010). Methods for merging Gaussian mixture components. Advances in Data
       Analysis and Classification 4, 3-34.
    """
    overlap = _Overlaps(_check_joint(joint, kind), kind).table()
    np.fill_diagonal(overlap, 0.0)
    return overlap


def _check_joint(joint, kind):
    joint = np.array(joint, dtype=np.float64)
    n = len(joint)
    if n == 0 or joint.shape != (n, n):
        raise ValueError(f"joint must have shape (n, n), n >= 1, got {joint.shape}")
    if not (np.isfinite(joint).all() and (joint >= 0).all()):
        raise ValueError("joint must hold finite numbers >= 0")
    skew = np.abs(joint - joint.T).max()
    if not skew <= 1e-8 * joint.max():
        raise ValueError(f"joint must be symmetric, got cells that differ by {skew:.3g}")
    if kind not in OVERLAPS:
        raise ValueError(f"kind must be one of {OVERLAPS}, got {kind!r}")
    # To the last digit, so that of two directions neither is larger by rounding.
    return (joint + joint.T) / 2


class _Overlaps:
    """J of clusters that are joined two by two, and what overlaps are relative to.

    A joined cluster has the index of one of the two; what is left at the other is of no meaning.
    """

    def __init__(self, joint, kind):
        self.kind = kind
        self.joint = joint
        self.rows = joint.sum(axis=1)  # that are put in a cluster, on the average
        self.n_rows = self.rows.sum()

    def table(self):
        """Overlap of all pairs."""
        base = self._base()
        held = self.rows[:, np.newaxis] + self.rows
        return self._overlap(self.joint, np.minimum(base[:, np.newaxis], base), held)

    def of(self, g):
        """Overlap of one with each."""
        base = self._base()
        return self._overlap(self.joint[g], np.minimum(base[g], base), self.rows[g] + self.rows)

    def are_large(self, g):
        """Which clusters hold enough rows, as one does itself, for their overlap to be capped."""
        return np.minimum(self.rows, self.rows[g]) >= LEAST_CAPPED * self.n_rows

    def join(self, g, h):
        """Add the second to the first."""
        self.joint[g] += self.joint[h]
        self.joint[:, g] += self.joint[:, h]
        self.rows[g] += self.rows[h]

    def _base(self):
        return self.rows if self.kind == "rows" else np.diag(self.joint)

    def _overlap(self, joint, base, held):
        """``base`` is the smaller of the two clusters', for the larger direction."""
        whole = base if self.kind == "rows" else base + joint
        overlap = np.divide(joint, whole, out=np.zeros_like(joint), where=whole > 0)
        if self.kind == "share":
            power = _power(held / self.n_rows)
            overlap = np.divide(overlap, power, out=overlap, where=power > 0)
        return overlap


def _power(share):
    """The power of "share", by operations whose results are the same on every machine."""
    root = share
    for _ in range(4):
        root = np.sqrt(root)
    return np.prod([root] * SIXTEENTHS, axis=0)


# -- The tree of joins ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MergeTree:
    """Which clusters overlap most, joined two by two down to one.

    A joined cluster goes by the lowest index of the clusters that it is made of.

    Attributes
    ----------
    sizes : ndarray of int of shape (n_clusters,)
        Rows of each cluster before any join.
    pairs : ndarray of int of shape (n_clusters - 1, 2)
        The two that each join makes one, the lower index first, in the order of the joins.
    overlap : ndarray of shape (n_clusters - 1,)
        Their overlap, as in :func:`overlap_of`. It may rise from one join to the next: two together
        overlap with a third more than each alone.
    rows : ndarray of int of shape (n_clusters - 1,)
        Rows of the joined cluster.

    Examples
    --------
    >>> from skbnp.summaries.joining import merge_tree
    >>> tree = merge_tree([[8, 2, 0], [2, 6, 1], [0, 1, 9]], sizes=[10, 8, 10])
    >>> tree.pairs.tolist(), tree.overlap.round(2).tolist(), tree.rows.tolist()
    ([[0, 1], [0, 2]], [0.22, 0.1], [18, 28])
    >>> tree.cut(0.2).tolist(), tree.cut(n_clusters=1).tolist()
    ([0, 0, 1], [0, 0, 0])
    """

    sizes: np.ndarray
    pairs: np.ndarray
    overlap: np.ndarray
    rows: np.ndarray

    def __post_init__(self):
        n = len(self.sizes)
        kinds = {"sizes": "iu", "pairs": "iu", "overlap": "f", "rows": "iu"}
        shapes = {"sizes": (n,), "pairs": (n - 1, 2), "overlap": (n - 1,), "rows": (n - 1,)}
        for name, shape in shapes.items():
            array = np.asarray(getattr(self, name))
            if array.shape != shape or array.dtype.kind not in kinds[name]:
                raise ValueError(
                    f"{name} of a MergeTree of {n} clusters must be an array of shape {shape}, got "
                    f"{array.dtype} {array.shape}"
                )
        left = dict(enumerate(self.sizes.tolist()))
        for (g, h), rows in zip(self.pairs.tolist(), self.rows.tolist(), strict=True):
            if not (g < h and {g, h} <= left.keys()):
                raise ValueError(f"pairs of a MergeTree must name two clusters left, got {g}, {h}")
            left[g] += left.pop(h)
            if left[g] != rows:
                raise ValueError(
                    f"rows of a MergeTree must be those of the two joined, {left[g]}, got {rows}"
                )

    def cut(self, merge_overlap=LEAST_OVERLAP, *, n_clusters=None):
        """Make the joins before the first whose overlap is too small.

        Parameters
        ----------
        merge_overlap : float, default=0.25
            Joins from the first one below this are not made. Estimators have limits of their own:
            theirs is ``partition_info_["merge_overlap"]``.
        n_clusters : int, default=None
            Make as many joins as leave so many clusters instead.

        Returns
        -------
        cluster : ndarray of int of shape (n_clusters,)
            The joined cluster of each cluster, numbered by decreasing rows, ties by lowest index:
            ``tree.cut()[labels]`` is the joined partition.
        """
        n = len(self.sizes)
        if n_clusters is None:
            below = np.flatnonzero(~(self.overlap >= merge_overlap))
            n_joins = below[0] if below.size else n - 1
        else:
            if n_clusters not in range(1, n + 1):
                raise ValueError(f"n_clusters must be an integer from 1 to {n}, got {n_clusters!r}")
            n_joins = n - n_clusters
        cluster = np.arange(n)
        for g, h in self.pairs[:n_joins]:
            cluster[cluster == h] = g
        names, cluster = np.unique(cluster, return_inverse=True)
        rows = np.bincount(cluster, self.sizes, minlength=len(names))
        rank = np.empty(len(names), dtype=np.intp)
        rank[np.argsort(-rows, kind="stable")] = np.arange(len(names))
        return rank[cluster]


def merge_tree(joint, sizes, kind="rows", linkage="sum"):
    """Join the two clusters that overlap most, again and again down to one.

    Parameters
    ----------
    joint : array-like of shape (n_clusters, n_clusters)
        J = P^T P of the shares P of `cluster_shares`. Joined clusters have the sum of their rows
        and columns.
    sizes : array-like of int of shape (n_clusters,)
        Rows of each cluster.
    kind : {"rows", "pair", "share"}, default="rows"
        The overlap, as in :func:`overlap_of`.
    linkage : {"sum", "capped"}, default="sum"
        Of sums two together overlap with a third more than each alone: right for the tail of one
        cluster, whose rows may be of any of its pieces, but of many clusters that merely touch all
        become one. "capped": no more than the one of them that does so most, where both they and
        the third hold a twentieth of all rows or more.

    Returns
    -------
    MergeTree
        Of pairs with the same overlap the lowest goes first. O(n_clusters^3) time.
    """
    joint = _check_joint(joint, kind)
    if linkage not in LINKAGES:
        raise ValueError(f"linkage must be one of {LINKAGES}, got {linkage!r}")
    n = len(joint)
    sizes = np.asarray(sizes)
    if sizes.shape != (n,):
        raise ValueError(f"sizes must have shape ({n},), got {sizes.shape}")
    overlaps, rows = _Overlaps(joint, kind), sizes.astype(np.intp)
    pairs = np.empty((n - 1, 2), dtype=np.intp)
    overlap, joined = np.empty(n - 1), np.empty(n - 1, dtype=np.intp)
    # Symmetric; -1 on the diagonal and for what is part of another cluster.
    table = overlaps.table()
    np.fill_diagonal(table, -1.0)
    for t in range(n - 1):
        g, h = pairs[t] = np.unravel_index(np.argmax(table), table.shape)
        overlap[t] = table[g, h]
        overlaps.join(g, h)
        rows[g] += rows[h]
        joined[t] = rows[g]
        found, most = overlaps.of(g), np.maximum(table[g], table[h])
        if linkage == "capped":
            found = np.where(overlaps.are_large(g), np.minimum(found, most), found)
        table[h] = table[:, h] = -1.0
        table[g] = table[:, g] = np.where(table[g] < 0.0, -1.0, found)
    return MergeTree(sizes.astype(np.intp), pairs, overlap, joined)


def move_rows(reference, rows, cluster):
    """A partition in which some rows are moved to other clusters.

    Parameters
    ----------
    reference : ndarray of int of shape (n,)
        Clusters 0, 1, ...
    rows : ndarray of int of shape (n_rows,)
    cluster : ndarray of int of shape (n_rows,)
        Where they go.

    Returns
    -------
    ndarray of int of shape (n,)
        The same clusters; those that would have no row take theirs back.
    """
    out = reference.copy()
    out[rows] = cluster
    n_clusters = int(reference.max()) + 1
    # Of blocks of a larger table there may be no row to take back.
    had_rows = np.bincount(reference, minlength=n_clusters) > 0
    while True:
        empty = (np.bincount(out, minlength=n_clusters)[:n_clusters] == 0) & had_rows
        if not empty.any():
            return out
        back = empty[reference]
        out[back] = reference[back]


def joined_shares(shares, cluster):
    """Columns of probabilities added over the clusters that are joined.

    Parameters
    ----------
    shares : array-like of shape (n_rows, n_clusters)
        A probability of each cluster.
    cluster : array-like of int of shape (n_clusters,)
        The joined cluster of each, as by `MergeTree.cut`.

    Returns
    -------
    ndarray of shape (n_rows, n_joined)
    """
    shares, cluster = np.asarray(shares, dtype=np.float64), np.asarray(cluster)
    if shares.ndim != 2 or shares.shape[1:] != cluster.shape:
        raise ValueError(
            f"shares must have a column for each of the {len(cluster)} clusters, got the shape "
            f"{shares.shape}"
        )
    joined = np.zeros((len(shares), int(cluster.max()) + 1))
    for k, g in enumerate(cluster):
        joined[:, g] += shares[:, k]
    return joined


def joined_draws(labels, merge_overlap=LEAST_OVERLAP, kind="rows", linkage="sum", *, rows=None):
    """Each draw with its own overlapping blocks joined, as the other draws cut them.

    For each draw its blocks take the place of the clusters, and the labels of all other draws say
    how far they overlap. The numbers of clusters that come of it are uncertain given the rule; they
    are no calibrated posterior of the number of classes.

    Parameters
    ----------
    labels : array-like of int of shape (n_draws, n), or list of n_draws arrays of shape (n,)
        Draws of the partition, each with any labels.
    merge_overlap : float, default=0.25
        As in `MergeTree.cut`.
    kind : {"rows", "pair", "share"}, default="rows"
        The overlap, as in :func:`overlap_of`.
    linkage : {"sum", "capped"}, default="sum"
        As in `merge_tree`.
    rows : array-like of int of shape (n_rows,), default=None
        The rows that say how far blocks overlap, None all of them: a random part of many rows says
        it nearly as well. A block without any of them is not joined.

    Returns
    -------
    list of n_draws ndarrays of int of shape (n,)
        Clusters 0, 1, ... by decreasing size, in the smallest type that holds them. O(n_items
        n_blocks n_draws^2) time, where rows that all draws keep together are one item.
    """
    draws = check_draws(labels)
    numbered = [number_for_packing(draw) for draw in draws]
    packed = pack(numbered)
    wanted = packed if rows is None else packed[_check_rows(rows, len(packed))]
    _, first, weight = merge_rows(wanted)
    blocks = wanted[first].astype(np.intp)
    n_blocks = np.array([k for *_, k in numbered])
    start = np.concatenate([[0], np.cumsum(n_blocks)])
    n_items, n_draws = blocks.shape
    # Which of all blocks hold an item: one of each draw.
    member = csr_array(
        (
            np.ones(blocks.size),
            (blocks + start[:-1]).ravel(),
            np.arange(0, blocks.size + 1, n_draws),
        ),
        shape=(n_items, start[-1]),
    )
    weighted = (member * weight[:, np.newaxis]).T.tocsr()
    size = weighted.sum(axis=1)
    found = []
    for m in range(n_draws):
        own = np.eye(n_blocks[m])[blocks[:, m]]
        companions = (weighted @ own) / np.maximum(size, 1)[:, np.newaxis]
        # All draws but this one, whose blocks are their own companions.
        shares = (member @ companions - own) / max(n_draws - 1, 1)
        joint = shares.T @ (shares * weight[:, np.newaxis])
        of_draw = packed[:, m]
        tree = merge_tree(joint, np.bincount(of_draw, minlength=n_blocks[m]), kind, linkage)
        cluster = tree.cut(merge_overlap)
        found.append(cluster.astype(small_type(len(cluster)))[of_draw])
    return found


def joined_across(labels, draws):
    """How often draws have rows of different clusters together.

    Parameters
    ----------
    labels : array-like of int of shape (n,)
        Clusters 0, 1, ...
    draws : list of n_draws ndarrays of int of shape (n,)
        Blocks 0, 1, ... of the rows in draws, such as `joined_draws`.

    Returns
    -------
    float
        The share of the pairs of rows of different clusters that are in one block, the mean over
        draws. 0 where there is one cluster.
    """
    labels = np.asarray(labels, dtype=np.intp)
    n_clusters = int(labels.max()) + 1
    n_apart = float(len(labels)) ** 2 - np.sum(np.bincount(labels).astype(np.float64) ** 2)
    if not n_apart:
        return 0.0
    n_together = 0.0
    for draw in draws:
        n_blocks = int(draw.max()) + 1
        cell = draw.astype(np.intp) * n_clusters + labels
        table = np.bincount(cell, minlength=n_blocks * n_clusters)
        table = table.reshape(n_blocks, n_clusters).astype(np.float64)
        n_together += np.sum(table.sum(axis=1) ** 2) - np.sum(table**2)
    return float(n_together / (n_apart * len(draws)))
