"""Point estimates, their uncertainty, and tables from posterior draws of a partition."""

from dataclasses import dataclass

import numpy as np

from skbnp.summaries._coclustering import (
    add_draws,
    add_draws_of_clusters,
    check_tables,
    mirror,
)
from skbnp.summaries._draws import (
    check_count,
    check_draws,
    check_partition,
    check_weights,
    number_blocks,
)
from skbnp.summaries._losses import distances, loss_table, scale
from skbnp.summaries._strategy import find_partition

MAX_COCLUSTERING_CELLS = 400_000_000  # 3.2 GB of float64


# -- One partition for all draws --------------------------------------------------------------


def expected_loss(partition, labels, loss="vi", *, weights=None):
    """Posterior expected loss of a partition.

    Parameters
    ----------
    partition : array-like of int of shape (n,)
        The partition to judge; the names of its labels do not matter.
    labels : array-like of int of shape (n_draws, n), or list of n_draws arrays of shape (n,)
        Posterior draws of the partition, each with any labels; narrow types save memory.
    loss : {"vi", "binder"}, default="vi"
        "vi": variation of information in nats, between 0 and log n. "binder": the number of
        discordant pairs, that is pairs together in one partition and apart in the other.
    weights : array-like of float of shape (n_draws,), default=None
        Weights of the draws, proportional to their probabilities; None means equal weights.

    Returns
    -------
    float
        The mean loss over the draws.

    Notes
    -----
    Exact, from contingency tables: O(n n_draws) time, one draw in memory at a time.

    References
    ----------
    .. [1] Wade & Ghahramani (2018), "Bayesian cluster analysis: point estimation and credible
       balls", Bayesian Analysis 13, 559-626.
    """
    draws = check_draws(labels)
    share = check_weights(weights, len(draws))
    n = len(draws[0])
    f, _ = loss_table(loss, n)
    return float(scale(distances(*check_partition(partition, n), draws, f) @ share, loss, n))


def central_draw(labels, loss="vi"):
    """The draw of least posterior expected loss: its partition is the closest to all others.

    Where a draw is wanted as it was sampled, with the parameters that go with its partition;
    otherwise `consensus_partition` finds a better one.

    Parameters
    ----------
    labels : array-like of int of shape (n_draws, n), or list of n_draws arrays of shape (n,)
        Posterior draws of the partition, each with any labels; narrow types save memory.
    loss : {"vi", "binder"}, default="vi"
        As in :func:`expected_loss`.

    Returns
    -------
    index : int
        Which draw; the first of several that are equally close.

    Notes
    -----
    Exact, from contingency tables: O(n n_draws^2) time.
    """
    draws = check_draws(labels)
    return int(np.argmin([expected_loss(draw, draws, loss) for draw in draws]))


def consensus_partition(
    labels,
    loss="vi",
    *,
    n_runs=16,
    max_clusters=None,
    max_draws=300,
    max_work=None,
    weights=None,
    random_state=None,
):
    """Partition of least posterior expected loss, by greedy search.

    Parameters
    ----------
    labels : array-like of int of shape (n_draws, n), or list of n_draws arrays of shape (n,)
        Posterior draws of the partition, each with any labels; narrow types save memory.
    loss : {"vi", "binder"}, default="vi"
        As in :func:`expected_loss`.
    n_runs : int, default=16
        Number of searches at most; the best result is kept. More runs find better optima. Once four
        have come within one part in 10,000 of the least expected loss, there are no more.
    max_clusters : int, default=None
        Largest number of clusters of the result; None stands for twice the largest number
        among the draws, or single rows if these are better. Binder loss may want more: it likes
        many small clusters.
    max_draws : int, default=300
        At most that many evenly spaced draws are used; None means all. Fewer are used where
        they would take more than 512 MB, or their contingency tables more than 400 MB, that is
        with very many rows or clusters, and where `max_work` asks for it.
    max_work : int, default=None
        Bound on the work, all steps included, counted in trial evaluations of one item in one
        cluster against one draw (about 1e9 per second); None is unbounded. A search that reaches
        it returns the best partition so far. Whatever the bound, 16 draws are read and one of
        them is rated.
    weights : array-like of float of shape (n_draws,), default=None
        Weights of the draws, proportional to their probabilities; None means equal weights.
    random_state : int, Generator, RandomState or None, default=None
        An int makes the result reproducible.

    Returns
    -------
    partition : ndarray of int of shape (n,)
        Labels 0, 1, ... by decreasing cluster size, ties by first row.
    expected : float
        Its expected loss over the draws used. Never above that of any draw rated.
    info : dict
        ``n_runs`` completed, ``n_draws`` used, ``n_distinct`` partitions among them, ``n_items``
        after merging, ``n_sampled`` of them searched in full, ``n_rated`` draws compared on all
        rows as candidates, ``max_clusters``, ``work``, and whether the search was ``truncated``
        by `max_work`.

    Notes
    -----
    In the manner of SALSO [1]_. A run starts from sequential allocation in random order or,
    every second run, from one of the draws of least expected loss [2]_. It then passes over the
    items in random order, each moving to its best cluster, until nothing changes; last, some
    clusters are destroyed and their items allocated anew.

    Rows with the same label in every draw used become one weighted item. For both losses
    some optimum keeps such rows together in practice, but this is a heuristic. A pass costs
    O(n_items n_clusters n_draws), rating all draws O(n_items n_draws^2).

    Of more than 8192 items a sample of rows is searched in full, 4096 of them or 64 for each
    cluster; every other item then goes to its best cluster, and passes over all items follow
    until less than one in 10,000 moves. The same passes, started from the best draw, end the
    search. Beside `labels` all this takes 2 n n_draws bytes, twice that with more than 256
    clusters, and some 100 bytes per row.

    References
    ----------
    .. [1] Dahl, Johnson & Müller (2022), "Search algorithms and loss functions for Bayesian
       clustering", Journal of Computational and Graphical Statistics 31, 1189-1201.
    .. [2] Wade & Ghahramani (2018), "Bayesian cluster analysis: point estimation and credible
       balls", Bayesian Analysis 13, 559-626.
    """
    draws = check_draws(labels)
    share = check_weights(weights, len(draws))
    check_count("n_runs", n_runs)
    check_count("max_clusters", max_clusters, optional=True)
    check_count("max_draws", max_draws, optional=True)
    if max_work is not None and not max_work >= 0:
        raise ValueError(f"max_work must be >= 0, got {max_work!r}")
    n = len(draws[0])
    tables = loss_table(loss, n)
    generator = make_generator(random_state)
    best, total, info = find_partition(
        draws, share, tables, n_runs, max_clusters, max_draws, max_work, generator
    )
    return relabel_by_size(best), float(scale(total, loss, n)), info


def make_generator(random_state):
    """A NumPy Generator, from what scikit-learn or NumPy call a random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


# -- How sure that partition is ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CredibleBall:
    """What :func:`credible_ball` returns.

    Every bound is an array of partitions, one per row, because several draws may be equally far;
    their clusters are numbered by decreasing size.

    Attributes
    ----------
    radius : float
        Largest distance inside the ball: nats for "vi", pairs for "binder".
    mass : float
        Posterior probability of the ball, at least the level asked for.
    distance : ndarray of shape (n_draws,)
        Distance of each draw from the point estimate.
    inside : ndarray of bool of shape (n_draws,)
        The draws in the ball.
    horizontal : ndarray of int of shape (n_horizontal, n)
        Farthest partitions in the ball, all at the distance `radius`.
    upper : ndarray of int of shape (n_upper, n)
        Vertical upper bounds: of those with the fewest clusters, the farthest.
    upper_distance : float
        Their distance.
    lower : ndarray of int of shape (n_lower, n)
        Vertical lower bounds: of those with the most clusters, the farthest.
    lower_distance : float
        Their distance.
    """

    radius: float
    mass: float
    distance: np.ndarray
    inside: np.ndarray
    horizontal: np.ndarray
    upper: np.ndarray
    upper_distance: float
    lower: np.ndarray
    lower_distance: float


def credible_ball(partition, labels, loss="vi", *, level=0.95, weights=None):
    """Smallest ball around a partition that holds most of the posterior, and its extremes.

    The radius says how far the posterior reaches from the point estimate; the bounds are
    partitions to look at: what the data say about the clusters is somewhere between them [1]_.

    Parameters
    ----------
    partition : array-like of int of shape (n,)
        The centre, usually from :func:`consensus_partition`.
    labels : array-like of int of shape (n_draws, n), or list of n_draws arrays of shape (n,)
        Posterior draws of the partition, each with any labels.
    loss : {"vi", "binder"}, default="vi"
        The distance, as in :func:`expected_loss`. Both are metrics.
    level : float in (0, 1], default=0.95
        Posterior probability that the ball holds at least.
    weights : array-like of float of shape (n_draws,), default=None
        Weights of the draws, proportional to their probabilities; None means equal weights.

    Returns
    -------
    CredibleBall
        Radius, mass, distances of the draws, and the bounds.

    Notes
    -----
    The ball is closed: it holds all draws at its radius. Exact, from contingency tables:
    O(n n_draws) time, one draw in memory at a time. Distances closer than 1e-13 times that of
    one cluster from n are taken as equal.

    References
    ----------
    .. [1] Wade & Ghahramani (2018), "Bayesian cluster analysis: point estimation and credible
       balls", Bayesian Analysis 13, 559-626, section 4.

    Examples
    --------
    >>> from skbnp.summaries.partitions import credible_ball
    >>> labels = [[0, 0, 1, 1]] * 17 + [[0, 0, 0, 0]] * 2 + [[0, 1, 2, 3]]
    >>> ball = credible_ball([0, 0, 1, 1], labels, level=0.9)
    >>> ball.mass, ball.upper.tolist(), ball.lower.tolist()
    (1.0, [[0, 0, 0, 0]], [[0, 1, 2, 3]])
    """
    draws = check_draws(labels)
    share = check_weights(weights, len(draws))
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level must be above 0 and at most 1, got {level!r}")
    n = len(draws[0])
    f, _ = loss_table(loss, n)
    total = distances(*check_partition(partition, n), draws, f)
    tolerance = 1e-13 * max(1.0, f[n])
    inside = _smallest_ball(total, share, level, tolerance)
    n_blocks = np.array([number_blocks(draw)[1] for draw in draws])
    fewest, most = n_blocks[inside].min(), n_blocks[inside].max()

    def farthest(among):
        reach = total[among].max()
        index = np.flatnonzero(among & (total >= reach - tolerance))
        return _distinct([draws[m] for m in index]), float(scale(reach, loss, n))

    horizontal, radius = farthest(inside)
    upper, upper_distance = farthest(inside & (n_blocks == fewest))
    lower, lower_distance = farthest(inside & (n_blocks == most))
    return CredibleBall(
        radius=radius,
        mass=min(float(share[inside].sum()), 1.0),
        distance=scale(total, loss, n),
        inside=inside,
        horizontal=horizontal,
        upper=upper,
        upper_distance=upper_distance,
        lower=lower,
        lower_distance=lower_distance,
    )


def _smallest_ball(total, share, level, tolerance):
    """The draws that it holds: all that are as near as the one that brings it to the level."""
    nearest = np.argsort(total, kind="stable")
    mass = np.cumsum(share[nearest])
    # 19 of 20 draws are 95 %, whatever the rounding of their sum.
    enough = np.flatnonzero(mass >= level * (1.0 - 1e-12))[0]
    return (total <= total[nearest[enough]] + tolerance) & (share > 0.0)


def _distinct(draws):
    """The different partitions among them, in order of appearance, numbered by size."""
    partitions = [relabel_by_size(draw) for draw in draws]
    return np.array(list({partition.tobytes(): partition for partition in partitions}.values()))


# -- Tables -----------------------------------------------------------------------------------


def relabel_by_size(partition):
    """Number the clusters of a partition by decreasing size, ties by first row.

    Parameters
    ----------
    partition : array-like of shape (n,)
        Labels of any values.

    Returns
    -------
    ndarray of int of shape (n,)
        The same partition with labels 0, 1, ...

    Raises
    ------
    ValueError
        If `partition` is not one row of labels, or one of them is missing.
    """
    masked, partition = np.ma.is_masked(partition), np.asarray(partition)
    if partition.ndim != 1 or partition.size == 0:
        raise ValueError(f"partition must have shape (n,), n >= 1, got {partition.shape}")
    if masked or (partition.dtype.kind in "fcO" and (partition != partition).any()):
        raise ValueError("partition must have a label for every row, got a missing one")
    if partition.dtype.kind not in "iu":
        try:
            partition = np.unique(partition, return_inverse=True)[1]
        except TypeError as error:
            raise ValueError(f"partition must hold labels that can be sorted: {error}") from error
    partition = np.ascontiguousarray(partition)
    label, n_blocks = number_blocks(partition)
    rank = np.empty(n_blocks, dtype=np.intp)
    rank[np.argsort(-np.bincount(label), kind="stable")] = np.arange(n_blocks)
    return rank[label]


def coclustering(labels, rows=None, columns=None, *, weights=None, tables=None):
    """Posterior probability that two rows share a cluster.

    Parameters
    ----------
    labels : array-like of int of shape (n_draws, n), or list of n_draws arrays of shape (n,)
        Posterior draws of the partition, each with any labels.
    rows : array-like of int or bool, default=None
        The rows wanted, by position or as a mask of shape (n,); None means all.
    columns : array-like of int or bool, or "all", default=None
        The rows to compare them with; "all" means all n, None the same as `rows`.
    weights : array-like of float of shape (n_draws,), default=None
        Weights of the draws, proportional to their probabilities; None means equal weights.
    tables : list of n_draws array-like of shape (n_blocks, n_clusters), default=None
        The shares that the clusters of one partition have of the blocks of each draw, as by
        `companion_table`; the labels of `labels` are 0 to n_blocks - 1 then. None means that each
        draw has clusters of its own.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        Symmetric, with ones on the diagonal, where `columns` is None. With `tables` the mean over
        draws of sum_k T(b, k) T(c, k) of the blocks b, c of two rows, and one for a row with
        itself.

    Raises
    ------
    ValueError
        If the result would have more than 4e8 cells (3.2 GB, such as 20,000 x 20,000), or if
        tables are not those of the draws.

    Notes
    -----
    Time in proportion to n_draws (n_rows + n_columns) and to the pairs that are together, summed
    over the draws, so at most O(n_rows n_columns n_draws); n may be of any size. Beside the
    result 64 MB are needed, or two draws if they take more. With `tables` O(n_rows n_columns
    n_draws) time, an eighth of the result more memory, and twice the squares of the blocks of one
    draw.
    """
    draws = check_draws(labels)
    share = check_weights(weights, len(draws))
    n = len(draws[0])
    rows = _check_index("rows", rows, n)
    symmetric = columns is None
    columns = rows if symmetric else _check_index("columns", columns, n)
    if len(rows) * len(columns) > MAX_COCLUSTERING_CELLS:
        raise ValueError(
            f"coclustering stops at {MAX_COCLUSTERING_CELLS:,} cells, got {len(rows):,} rows x "
            f"{len(columns):,} columns: choose some with rows= and columns="
        )
    together = np.zeros((len(rows), len(columns)))
    if tables is None:
        add_draws(draws, share, rows, columns, symmetric, together)
    else:
        add_draws_of_clusters(
            draws, check_tables(tables, draws), share, rows, columns, symmetric, together
        )
        together[(rows % n)[:, np.newaxis] == columns % n] = 1.0
    if symmetric:
        mirror(together)
    # A sum of shares may exceed one by rounding.
    return np.minimum(together, 1.0, out=together)


def _check_index(name, index, n):
    """Positions of the rows of an index: None or "all", positions, or a mask."""
    if index is None or (isinstance(index, str) and index == "all"):
        return np.arange(n)
    index = np.asarray(index)
    if index.dtype.kind == "b" and index.shape == (n,):
        index = np.flatnonzero(index)
    if index.ndim != 1 or index.size == 0 or index.dtype.kind not in "iu":
        raise ValueError(f"{name} must be positions of rows or a mask of shape ({n},), got {index}")
    if index.min() < -n or index.max() >= n:
        raise ValueError(
            f"{name} must be between {-n} and {n - 1}, got {index.min()} to {index.max()}"
        )
    return index.astype(np.intp)


def _in_range(name, labels, n):
    """Labels as integers, each from 0 to n - 1."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers of shape (n,), got {labels!r}")
    if labels.size and not 0 <= labels.min() <= labels.max() < n:
        raise ValueError(
            f"{name} must be from 0 to {n - 1}, got {labels.min()} to {labels.max()}"
        )
    return labels.astype(np.intp)


def companion_table(labels_draw, n_blocks, reference, n_reference):
    """How the blocks of a draw spread over the clusters of a reference partition.

    Parameters
    ----------
    labels_draw : array-like of int of shape (n,)
        Blocks 0..n_blocks-1 of one draw.
    n_blocks : int
        Number of blocks of the draw.
    reference : array-like of int of shape (n,)
        Clusters 0..n_reference-1 of the reference partition.
    n_reference : int
        Number of clusters of the reference partition.

    Returns
    -------
    ndarray of shape (n_blocks, n_reference)
        Entry (c, k) is the fraction of block c that lies in cluster k: the probability that a
        uniformly drawn member of c bears label k. Rows sum to one; that of an empty block is
        zero. O(n) time.

    Raises
    ------
    ValueError
        If labels are beyond their range, or not as many in one as in the other.
    """
    check_count("n_blocks", n_blocks)
    check_count("n_reference", n_reference)
    if n_blocks * n_reference > MAX_COCLUSTERING_CELLS:
        raise ValueError(
            f"n_blocks times n_reference must be <= {MAX_COCLUSTERING_CELLS}, got {n_blocks} and "
            f"{n_reference}"
        )
    labels_draw = _in_range("labels_draw", labels_draw, n_blocks)
    reference = _in_range("reference", reference, n_reference)
    if labels_draw.shape != reference.shape:
        raise ValueError(
            f"reference must have as many labels as labels_draw, {len(labels_draw)}, got "
            f"{len(reference)}"
        )
    cell = labels_draw * n_reference + reference
    table = np.bincount(cell, minlength=n_blocks * n_reference)
    table = table.reshape(n_blocks, n_reference).astype(np.float64)
    return table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
