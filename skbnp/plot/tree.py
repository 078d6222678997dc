"""The tree of a tree factor model."""

import numpy as np

from skbnp.plot._checks import check_most
from skbnp.plot._estimator import check_estimator
from skbnp.plot._style import (
    COLORS,
    GREY,
    hide_frame,
    import_pyplot,
    size_in_points,
    styled,
)

THINNEST, THICKEST = 1.0, 10.0  # points, for no rows and for all
STUB = 0.05  # of the depth, below the last loading, where branches may part once more
SMALLEST_IMAGE, LARGEST_IMAGE = 20.0, 48.0  # points
IMAGE_SHARE = 0.85  # of the room that there is for it
GAP = 4.0  # points between a branch and its image
CROWDED = 0.04  # of the depth: levels closer than that run together
LABEL = 24.0  # points that a number of rows takes
CELL = 0.62  # inches of our own figure for a branch


class TreeDisplay:
    """Branches of a tree of loadings, root at the top, as wide as they have rows.

    Vertical lines are runs of loadings that the same branches share; they part at the levels on
    the left. The number below a branch is that of its rows. With `image_shape` the mean of each
    branch, or what its own loadings do, is shown as an image.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    tree : dict of ndarray
        As `tree_` of `TreeFactorModel`: ``parent`` (-1 at level 1), ``level``, ``count`` and
        ``loadings`` of the nodes; ``leaf_node``, ``leaf_count`` and ``leaf_mean`` of the branches.
    image_shape : tuple of (height, width), default=None
        Shape of a row of X as an image; None shows no images.
    images : {"means", "loadings"}, default="means"
        "means" shows the branches' means, at their feet and on one scale of greys. "loadings" shows
        the leading direction of the loadings of each vertical line, on the line, scaled each by
        itself, zero in white: blue and red are of opposite signs, which is which says nothing.
        Loadings that rows hardly use look as strong as any others.
    max_branches : int, default=20
        Of more branches, those with the most rows are shown.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    ax_ : matplotlib Axes
        The axes.
    branches_ : ndarray of int
        The branches shown, from left to right, as numbered in `component_labels_` of the estimator.
    segments_ : list of ndarray of int
        The nodes of each vertical line, from top to bottom. Where branches part below the last
        loading their lines have none.
    lines_ : LineCollection
        The vertical lines, in the order of `segments_`.
    forks_ : LineCollection
        A horizontal line wherever branches part.
    images_ : list of AnnotationBbox
        Images of `branches_`, or of those of `segments_` that have nodes; empty without
        `image_shape`.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp.plot import TreeDisplay
    >>> tree = {"parent": np.array([-1, 0, 0]), "level": np.array([1, 2, 2])}
    >>> tree |= {"count": np.array([9, 7, 2]), "loadings": np.ones((3, 4))}
    >>> tree |= {"leaf_node": np.array([1, 2]), "leaf_count": np.array([7, 2])}
    >>> tree |= {"leaf_mean": np.arange(8.0).reshape(2, 4)}
    >>> display = TreeDisplay(tree, image_shape=(2, 2)).plot()
    """

    def __init__(self, tree, *, image_shape=None, images="means", max_branches=20):
        self.tree = tree
        self.image_shape = image_shape
        self.images = images
        self.max_branches = max_branches

    @classmethod
    def from_estimator(
        cls, estimator, *, image_shape=None, images="means", max_branches=20, ax=None, **line_kw
    ):
        """Show the tree of the reference draw of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``tree_``.
        image_shape : tuple of (height, width), default=None
            Shape of a row of X as an image; None shows no images.
        images : {"means", "loadings"}, default="means"
            What the images show.
        max_branches : int, default=20
            Of more branches, those with the most rows are shown.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **line_kw : dict
            Passed to the ``LineCollection`` of the vertical lines, such as ``colors``.

        Returns
        -------
        TreeDisplay
            With its artists as attributes.
        """
        check_estimator(estimator, "tree_")
        display = cls(
            estimator.tree_, image_shape=image_shape, images=images, max_branches=max_branches
        )
        return display.plot(ax=ax, **line_kw)

    @styled
    def plot(self, *, ax=None, **line_kw):
        """Draw the tree.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **line_kw : dict
            Passed to the ``LineCollection`` of the vertical lines, such as ``colors``.

        Returns
        -------
        TreeDisplay
            This object.
        """
        self._check()
        plt = import_pyplot()
        from matplotlib.collections import LineCollection

        leaf_count = np.asarray(self.tree["leaf_count"])
        largest = np.argsort(-leaf_count, kind="stable")[: self.max_branches]
        lines, self.segments_, forks, self.branches_ = _arrange(self.tree, largest)
        n_shown, n_rows = len(self.branches_), leaf_count.sum()
        if ax is None:
            size = (max(4.0, 1.0 + CELL * n_shown), 4.2)
            ax = plt.subplots(figsize=size)[1]
        self.ax_, self.figure_ = ax, ax.figure
        x, top, bottom, count = lines
        style = {
            "colors": COLORS[0],
            "linewidths": THINNEST + (THICKEST - THINNEST) * count / n_rows,
            "capstyle": "butt",
            **line_kw,
        }
        self.lines_ = LineCollection(_ends((x, top), (x, bottom)), **style)
        self.forks_ = LineCollection(forks, colors=GREY, linewidths=1.0, capstyle="projecting")
        for collection in (self.forks_, self.lines_):
            ax.add_collection(collection, autolim=False)
        depth, foot = np.max(self.tree["level"]), bottom.max()
        self._label(ax, sorted({0, depth, *top}), n_rows)
        ax.set_xlim(-0.6, n_shown - 0.4)
        self.images_ = []
        if self.image_shape is not None and self.images == "means":
            foot = self._add_means(ax, foot)
        ax.set_ylim(foot + 0.02 * depth, -0.02 * depth)
        if self.image_shape is not None and self.images == "loadings":
            self._add_loadings(ax, x, top, bottom)
        return self

    def _check(self):
        if self.images not in ("means", "loadings"):
            raise ValueError(f"images must be 'means' or 'loadings', got {self.images!r}")
        check_most("max_branches", self.max_branches)
        n_features = self.tree["leaf_mean"].shape[1]
        if self.image_shape is not None and (
            len(self.image_shape) != 2 or np.prod(self.image_shape) != n_features
        ):
            raise ValueError(
                f"image_shape must be (height, width) with {n_features} pixels, "
                f"got {self.image_shape}"
            )

    def _label(self, ax, levels, n_rows):
        """Levels at the left, rows of the branches at the foot."""
        count = self.tree["leaf_count"]
        shown = count[self.branches_]
        crowded = size_in_points(ax)[0] < LABEL * len(shown)
        ax.set_xticks(range(len(shown)), shown, rotation="vertical" if crowded else "horizontal")
        ax.tick_params(axis="x", length=0)
        n_left = len(count) - len(shown)
        left = f" ({n_rows - shown.sum()} in {n_left} more)" if n_left else ""
        ax.set_xlabel("rows of each branch" + left)
        ax.set_yticks(_apart(levels, CROWDED * levels[-1]))
        ax.set_ylabel("level")
        hide_frame(ax)
        ax.spines["bottom"].set_visible(False)

    def _add_means(self, ax, foot):
        """The images below the branches and the lowest level that they need."""
        means = self.tree["leaf_mean"][self.branches_]
        width, height = size_in_points(ax)
        size = min(LARGEST_IMAGE, IMAGE_SHARE * width / len(means))
        grey = {"cmap": "gray", "norm": (means.min(), means.max())}
        self.images_ = [
            _add_image(ax, (place, foot), mean.reshape(self.image_shape), size, grey, foot=True)
            for place, mean in enumerate(means)
        ]
        tall = size * self.image_shape[0] / max(self.image_shape) + GAP
        return foot / max(1.0 - tall / height, 0.3)

    def _add_loadings(self, ax, x, top, bottom):
        """An image in the middle of each line that has loadings."""
        width, height = size_in_points(ax)
        level = height / np.abs(np.diff(ax.get_ylim()))[0]
        for t, nodes in enumerate(self.segments_):
            if nodes.size == 0:
                continue
            direction = _leading_direction(self.tree["loadings"][nodes])
            limit = np.abs(direction).max()
            room = min(width / len(self.branches_), level * (bottom[t] - top[t]))
            size = min(LARGEST_IMAGE, max(SMALLEST_IMAGE, IMAGE_SHARE * room))
            signs = {"cmap": "RdBu", "norm": (-limit, limit)}
            at, image = (x[t], (top[t] + bottom[t]) / 2), direction.reshape(self.image_shape)
            self.images_.append(_add_image(ax, at, image, size, signs))


def _arrange(tree, shown):
    """Lines from top to bottom with their nodes, forks, and the branches from left to right.

    Lines are arrays of places, levels above and below, and counts of rows.
    """
    n_nodes, depth = len(tree["parent"]), np.max(tree["level"])
    # Branches as nodes below their last loading: node n_nodes + b is branch b.
    parent = np.concatenate([tree["parent"], tree["leaf_node"]])
    count = np.concatenate([tree["count"], tree["leaf_count"]])
    below = {}
    for node in shown + n_nodes:
        while node >= 0 and node not in below.setdefault(parent[node], []):
            below[parent[node]].append(node)
            node = parent[node]
    lines, segments, forks, branches = [], [], [], []

    def hang(node, top):
        """Lay out the line that begins with this node, and all below it; returns its place."""
        first, nodes = node, []
        while node < n_nodes:
            nodes.append(node)
            if len(below[node]) > 1:
                break
            node = below[node][0]
        if node < n_nodes:
            bottom = tree["level"][node]
            x = part(node, bottom)
        else:
            bottom = depth * (1.0 + STUB)
            x = len(branches)
            branches.append(node - n_nodes)
        lines.append((x, top, bottom, count[first]))
        segments.append(np.array(nodes, dtype=np.intp))
        return x

    def part(node, level):
        """Lay out what hangs from a node, the largest first; returns the place of the node."""
        children = sorted(below[node], key=lambda child: -count[child])
        x = [hang(child, level) for child in children]
        if len(x) > 1:
            forks.append([(x[0], level), (x[-1], level)])
        return (x[0] + x[-1]) / 2

    part(-1, 0)
    return np.array(lines, dtype=np.float64).T, segments, forks, np.array(branches)


def _apart(levels, least):
    """The levels without those that are too close above another."""
    kept = levels[-1:]
    for level in levels[-2::-1]:
        if kept[0] - level >= least:
            kept.insert(0, level)
    return kept


def _ends(start, stop):
    """Line segments, shape (n, 2, 2), from the coordinates of their ends."""
    return np.array([start, stop]).transpose(2, 0, 1)


def _leading_direction(loadings):
    """Principal direction of the covariance they give, its largest entry positive."""
    direction = np.linalg.svd(loadings, full_matrices=False)[2][0]
    return direction * np.sign(direction[np.argmax(np.abs(direction))])


def _add_image(ax, at, image, size, style, *, foot=False):
    """An image of so many points at its longer side, in a thin frame, on a line or at its foot."""
    from matplotlib.colors import Normalize
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    scale = {"zoom": size / max(image.shape), "interpolation": "nearest"}
    picture = OffsetImage(image, cmap=style["cmap"], norm=Normalize(*style["norm"]), **scale)
    frame = {"pad": 0.0, "bboxprops": {"edgecolor": GREY, "linewidth": 0.8}}
    offset, alignment = ((0.0, -GAP), (0.5, 1.0)) if foot else ((0.0, 0.0), (0.5, 0.5))
    box = AnnotationBbox(
        picture, at, offset, boxcoords="offset points", box_alignment=alignment, **frame
    )
    return ax.add_artist(box)
