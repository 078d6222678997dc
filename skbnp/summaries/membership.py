"""How sure it is that rows are of their clusters, from draws of the partition."""

import numpy as np

# Labels that draws are compared with, of all rows and clusters together, at most.
_MOST_CELLS = 2e8


def membership(labels, draws, tables=None):
    """Probability that each row belongs with each cluster, by its companions in the draws.

    Parameters
    ----------
    labels : array-like of int of shape (n_samples,)
        Clusters 0, 1, ...
    draws : list of array-like of int of shape (n_samples,)
        Labels of the rows in draws of the partition, numbered in any way. Of very many rows evenly
        spaced draws among them are used.
    tables : list of ndarray of shape (n_blocks, n_clusters), default=None
        The shares of the clusters in the blocks 0, 1, ... of each draw, if others than those of
        `labels` among the companions of a row: their mean over draws is the probability then.

    Returns
    -------
    probability : ndarray of shape (n_samples, n_clusters)
        The probability, over draws, that another row chosen at random from the block of the row is
        of the cluster. Rows sum to one or less: the rest is the share of the draws in which the row
        is alone in its block. That counts for its cluster where it is alone there too.
    """
    labels = np.asarray(labels, dtype=np.intp)
    n, n_clusters = len(labels), int(labels.max()) + 1
    most = max(10, int(_MOST_CELLS / (n * n_clusters)))
    step = -(-len(draws) // most)
    draws = draws[::step]
    if tables is not None:
        found = zip(draws, tables[::step], strict=True)
        return sum(table[draw] for draw, table in found) / len(draws)
    alone = np.bincount(labels)[labels] == 1
    total, rows = np.zeros((n, n_clusters)), np.arange(n)
    for draw in draws:
        _, block = np.unique(draw, return_inverse=True)
        n_blocks = int(block.max()) + 1
        table = np.bincount(block * n_clusters + labels, minlength=n_blocks * n_clusters)
        companions = table.reshape(n_blocks, n_clusters)[block].astype(np.float64)
        companions[rows, labels] -= 1.0
        n_companions = companions.sum(axis=1)
        total += companions / np.maximum(n_companions, 1.0)[:, np.newaxis]
        total[rows, labels] += alone & (n_companions == 0)
    return total / len(draws)
