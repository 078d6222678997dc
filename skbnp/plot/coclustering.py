"""Probabilities that rows share a cluster, as a picture."""

import numpy as np

from skbnp.plot._checks import check_most
from skbnp.plot._estimator import check_estimator, labels_in_memory
from skbnp.plot._style import import_pyplot, styled

SMALLEST_NAMED = 0.035  # of the rows shown: names of smaller clusters would run together
FRAME = "#404040"


class CoclusteringDisplay:
    """Probability that each two rows share a cluster, as a square picture.

    Rows are ordered by their cluster in a point estimate and within it by hierarchical clustering,
    so that what belongs together stands together. Sure clusters are dark squares; a pale square
    is a cluster that many draws split, a shade beside the diagonal two that many draws join.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    probability : array-like of shape (n, n)
        Symmetric, between 0 and 1, as by `skbnp.summaries.partitions.coclustering`.
    labels : array-like of int of shape (n,)
        Cluster of each row.
    n_rows : int, default=None
        How many rows there are of which these are a sample; None if these are all.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    ax_ : matplotlib Axes
        The axes.
    image_ : AxesImage
        The probabilities of the rows in the order of `order_`.
    order_ : ndarray of int of shape (n,)
        Position, in `probability`, of each row of the picture.
    boundaries_ : LineCollection
        A square around each cluster.
    colorbar_ : Colorbar or None
        The scale, from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp.plot import CoclusteringDisplay
    >>> probability = np.kron(np.eye(2), np.ones((3, 3)))
    >>> display = CoclusteringDisplay(probability, [0, 0, 0, 1, 1, 1]).plot()
    """

    def __init__(self, probability, labels, *, n_rows=None):
        self.probability = probability
        self.labels = labels
        self.n_rows = n_rows

    @classmethod
    def from_estimator(
        cls,
        estimator,
        *,
        rows=None,
        max_rows=500,
        joined=True,
        ax=None,
        colorbar=True,
        **image_kw,
    ):
        """Show what the draws of a fitted estimator say about its training rows.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``labels_`` and a method ``coclustering``.
        rows : array-like of int of shape (n,), default=None
            The rows to show; None stands for all or, beyond `max_rows`, a sample with every
            cluster in proportion: evenly spaced rows of each, one at least.
        max_rows : int, default=500
            Size of that sample.
        joined : bool, default=True
            Whether rows are together where they are in one cluster, as ``labels_`` has them, or
            only where they are in one component of a draw: as in ``coclustering``.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        colorbar : bool, default=True
            Whether to show the scale.
        **image_kw : dict
            Passed to ``Axes.imshow``, such as ``cmap``.

        Returns
        -------
        CoclusteringDisplay
            With its artists as attributes. At most 300 evenly spaced draws are used.
        """
        check_estimator(estimator, "coclustering")
        labels = np.asarray(labels_in_memory(estimator))
        n = len(labels)
        if rows is None:
            rows = _sample_rows(labels, max_rows)
        display = cls(estimator.coclustering(rows, joined=joined), labels[rows], n_rows=n)
        return display.plot(ax=ax, colorbar=colorbar, **image_kw)

    @styled
    def plot(self, *, ax=None, colorbar=True, **image_kw):
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        colorbar : bool, default=True
            Whether to show the scale.
        **image_kw : dict
            Passed to ``Axes.imshow``, such as ``cmap``.

        Returns
        -------
        CoclusteringDisplay
            This object.
        """
        probability, labels = self._check()
        if ax is None:
            ax = import_pyplot().subplots(figsize=(5.8, 5.0))[1]
        self.ax_, self.figure_ = ax, ax.figure
        self.order_ = _order_rows(probability, labels)
        style = {"cmap": "Blues", "vmin": 0.0, "vmax": 1.0, "interpolation": "nearest", **image_kw}
        self.image_ = ax.imshow(probability[np.ix_(self.order_, self.order_)], **style)
        self.boundaries_ = _add_boundaries(ax, labels[self.order_])
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, shrink=0.8)
            self.colorbar_.set_label("probability of the same cluster")
            self.colorbar_.outline.set_visible(False)
        n = len(labels)
        ax.set_xlabel(f"{n} of {self.n_rows} rows" if self.n_rows not in (None, n) else f"{n} rows")
        return self

    def _check(self):
        probability = np.asarray(self.probability, dtype=np.float64)
        labels = np.asarray(self.labels)
        n = len(probability)
        if n == 0 or probability.shape != (n, n):
            raise ValueError(f"probability must have shape (n, n), n >= 1, got {probability.shape}")
        if labels.shape != (n,):
            raise ValueError(f"labels must have shape ({n},), got {labels.shape}")
        return probability, labels


def _sample_rows(labels, max_rows):
    """All rows or, of more than `max_rows`, one of each cluster and evenly spaced others.

    Of more than `max_rows` clusters, one row of the largest.
    """
    check_most("max_rows", max_rows)
    n = len(labels)
    if n <= max_rows:
        return np.arange(n)
    by_cluster = np.argsort(labels, kind="stable")
    _, start, size = np.unique(labels[by_cluster], return_index=True, return_counts=True)
    largest = np.argsort(-size, kind="stable")[:max_rows]
    one_each = (start + size // 2)[largest]
    others = np.delete(by_cluster, one_each)
    n_more = max_rows - len(one_each)
    # The middle of each of n_more equal stretches.
    spread = others[(2 * np.arange(n_more) + 1) * len(others) // (2 * n_more)] if n_more else []
    return np.sort(np.concatenate([by_cluster[one_each], spread]).astype(np.intp))


def _order_rows(probability, labels):
    """Cluster by cluster in the order of the labels."""
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return np.concatenate([at[_order_within(probability[np.ix_(at, at)])] for at in members])


def _order_within(probability):
    """Leaves of a hierarchical clustering, turned so that the core of the cluster comes first."""
    from scipy.cluster.hierarchy import leaves_list, linkage

    n = len(probability)
    if n < 3:
        return np.arange(n)
    distance = np.maximum(1.0 - probability[np.triu_indices(n, 1)], 0.0)
    leaves = leaves_list(linkage(distance, "average", optimal_ordering=True))
    typical = probability.mean(axis=1)[leaves]
    turned = typical[: n // 2].sum() < typical[-(n // 2) :].sum()
    return leaves[::-1] if turned else leaves


def _add_boundaries(ax, labels):
    """A square around each cluster of the ordered rows, and the names of the larger clusters."""
    from matplotlib.collections import LineCollection

    _, start, size = np.unique(labels, return_index=True, return_counts=True)
    low, high = start - 0.5, start + size - 0.5
    corners = [(low, low), (high, low), (high, high), (low, high), (low, low)]
    squares = LineCollection(
        np.array(corners).transpose(2, 0, 1), colors=FRAME, linewidths=0.8, capstyle="projecting"
    )
    ax.add_collection(squares, autolim=False)
    named = size >= SMALLEST_NAMED * len(labels)
    ax.set_yticks((start + 0.5 * (size - 1))[named], labels[start[named]])
    ax.set_ylabel("cluster")
    ax.set_xticks([])
    ax.tick_params(left=False)
    ax.spines[:].set_visible(False)
    return squares
