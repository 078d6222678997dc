"""Which components overlap, and what is joined at which overlap."""

import numpy as np

from skbnp.plot._estimator import check_estimator
from skbnp.plot._style import GREY, class_look, hide_frame, import_pyplot, size_in_points, styled
from skbnp.summaries.joining import LEAST_OVERLAP

CELL = 0.42  # inches of our own figure for a component
LABEL = 22.0  # points that a number of rows takes
NARROW = 9.0  # points that it takes upright
FOOT = 0.05  # of the scale, below an overlap of 1


class MergeTreeDisplay:
    """Joins of overlapping components as a tree, those that overlap most at the bottom.

    Each component stands at the foot with the number of its rows; two lines meet at the least
    overlap at which they are joined. Where that is less than the overlap of the two, an earlier
    join overlaps less and has to be made before; overlaps beyond 1 are drawn at 1. The dashed line
    is the overlap at which the tree is cut: what is joined below it is one cluster, in one colour,
    beyond six clusters dashed; joins above it are not made.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    tree : skbnp.summaries.joining.MergeTree
        The joins.
    merge_overlap : float, default=0.25
        Where to cut the tree.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    ax_ : matplotlib Axes
        The axes.
    components_ : ndarray of int of shape (n_components,)
        The components from left to right.
    lines_ : LineCollection
        The vertical lines: first those of all components, then those of the joins in their order,
        but for the last.
    joins_ : LineCollection
        A horizontal line for each join.
    cut_ : Line2D
        The overlap at which the tree is cut.

    Examples
    --------
    >>> from skbnp.plot import MergeTreeDisplay
    >>> from skbnp.summaries.joining import merge_tree
    >>> tree = merge_tree([[8, 4, 0], [4, 6, 1], [0, 1, 9]], sizes=[12, 11, 10])
    >>> display = MergeTreeDisplay(tree).plot()
    """

    def __init__(self, tree, *, merge_overlap=LEAST_OVERLAP):
        self.tree = tree
        self.merge_overlap = merge_overlap

    @classmethod
    def from_estimator(cls, estimator, *, merge_overlap=None, ax=None, **line_kw):
        """Show how the components of a fitted estimator are joined.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``merge_tree_``.
        merge_overlap : float, default=None
            Where to cut the tree; None means the ``merge_overlap`` that ``labels_`` rest on, 0.25
            where they rest on no joins.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **line_kw : dict
            Passed to the ``LineCollection`` of lines and joins, such as ``linewidths``.

        Returns
        -------
        MergeTreeDisplay
            With its artists as attributes.
        """
        check_estimator(estimator, "merge_tree_")
        if merge_overlap is None:
            # Not the parameter: that may have been set since.
            merge_overlap = estimator.partition_info_.get("merge_overlap") or LEAST_OVERLAP
        return cls(estimator.merge_tree_, merge_overlap=merge_overlap).plot(ax=ax, **line_kw)

    @styled
    def plot(self, *, ax=None, **line_kw):
        """Draw the tree.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **line_kw : dict
            Passed to the ``LineCollection`` of lines and joins, such as ``linewidths``.

        Returns
        -------
        MergeTreeDisplay
            This object.
        """
        if not 0.0 <= self.merge_overlap <= 1.0:
            raise ValueError(f"merge_overlap must be from 0 to 1, got {self.merge_overlap!r}")
        plt = import_pyplot()
        from matplotlib.collections import LineCollection

        n = len(self.tree.sizes)
        if ax is None:
            size = (max(4.0, 1.2 + CELL * n), 3.8)
            ax = plt.subplots(figsize=size)[1]
        self.ax_, self.figure_ = ax, ax.figure
        lines, joins, self.components_, member = _arrange(self.tree)
        cluster = self.tree.cut(self.merge_overlap)
        # A join that is made has the colour of its cluster, one that is not is grey.
        made = np.cumprod(self.tree.overlap >= self.merge_overlap).astype(bool)
        not_made = class_look(0)._replace(color=GREY)
        looks = [class_look(k) for k in cluster[member]]
        of_joins = [look if m else not_made for look, m in zip(looks[n:], made, strict=True)]
        of_lines = [*looks[:n], *of_joins[:-1]]
        self.lines_ = LineCollection(lines, **(_line_style(of_lines) | line_kw))
        self.joins_ = LineCollection(joins, **(_line_style(of_joins) | line_kw))
        for collection in (self.lines_, self.joins_):
            ax.add_collection(collection, autolim=False)
        self.cut_ = ax.axhline(self.merge_overlap, color=GREY, linestyle="--", linewidth=1.0)
        ax.set_xlim(-0.6, n - 0.4)
        highest = max(self.merge_overlap, *self.tree.overlap, 0.0)
        # What overlaps entirely is joined above the foot, or the join would not be seen.
        ax.set_ylim(min(1.0 + FOOT, 1.15 * highest + 0.02), -0.02)
        ax.spines["left"].set_bounds(0.0, min(1.0, ax.get_ylim()[0]))
        self._label(ax)
        return self

    def _label(self, ax):
        """Rows of the components at the foot, as far as there is room."""
        sizes = self.tree.sizes[self.components_]
        room = size_in_points(ax)[0] / len(sizes)
        ax.set_xticks([])
        if room >= NARROW:
            upright = "vertical" if room < LABEL else "horizontal"
            ax.set_xticks(range(len(sizes)), sizes, rotation=upright)
        ax.tick_params(axis="x", length=0)
        ax.set_xlabel("rows of each component")
        beyond = np.any(self.tree.overlap > 1.0)
        ax.set_ylabel("overlap, at the foot 1 and more" if beyond else "overlap")
        hide_frame(ax)
        ax.spines["bottom"].set_visible(False)


def _line_style(looks):
    colors, dashes = [look.color for look in looks], [look.linestyle for look in looks]
    style = {"linewidths": 1.6, "capstyle": "projecting"}
    return {"colors": colors, "linestyles": dashes, **style}


def _arrange(tree):
    """Ends of the lines and joins, components from left to right, and one component of each line.

    Lines are those of the components, then of the joins. A join hangs at the least overlap so far:
    no cut makes it without those before it.
    """
    n = len(tree.sizes)
    # The measure of an estimator may reach beyond 1, where nothing is undecided.
    height = np.minimum(np.minimum.accumulate(tree.overlap), 1.0)
    # By the index that a joined cluster goes by: its components in order, the larger part first.
    leaves = [[k] for k in range(n)]
    for g, h in tree.pairs:
        first, second = (g, h) if len(leaves[g]) >= len(leaves[h]) else (h, g)
        leaves[g] = leaves[first] + leaves[second]
    order = np.array(leaves[0], dtype=np.intp)
    place = np.empty(2 * n - 1)
    place[order] = np.arange(n)
    bottom, top = np.concatenate([np.full(n, 1.0 + FOOT), height]), np.zeros(2 * n - 1)
    member = np.concatenate([np.arange(n), tree.pairs[:, 0]]).astype(np.intp)
    joins, line = [], list(range(n))  # the line that it has now
    for t, (g, h) in enumerate(tree.pairs):
        a, b = line[g], line[h]
        top[[a, b]] = height[t]
        place[n + t] = (place[a] + place[b]) / 2
        joins.append([(place[a], height[t]), (place[b], height[t])])
        line[g] = n + t
    ends = np.stack([np.c_[place, bottom], np.c_[place, top]], axis=1)
    # The last join has nothing above it; a component alone has its line to the top.
    return ends[: max(2 * n - 2, 1)], joins, order, member
