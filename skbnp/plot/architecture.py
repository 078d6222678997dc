"""The architecture of a convolutional network, and what its maps show of an image."""

import numpy as np

from skbnp.plot._checks import checked_graph
from skbnp.plot._estimator import check_estimator
from skbnp.plot._style import COLORS, GREY, frame_image, hide_frame, import_pyplot, styled

EDGE, DEAD = COLORS[0], GREY
THICKEST, FAINTEST = 3.0, 0.6  # points of the edge of most weights; opacity of all edges
TILE = 0.16  # height of a map, as a share of that of the axes
GAP = 0.03  # between a map and what it is called


class ArchitectureDisplay:
    """Maps from the image, on top, to the output; parents are above their children.

    Each node stands at its order, and is said by the sides of its map, times the channels. Edges
    are the wider the more weights they have. Dead nodes, to which no path leads from the image,
    and their edges are grey. With ``maps`` each live node shows its map of one image, the mean over
    the channels.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    order : array-like of shape (n_nodes,)
        Of the nodes, in [0, 1]: output and image first.
    edges : array-like of int of shape (n_edges, 2)
        Parent and child of each edge.
    n_weights : array-like of shape (n_edges,)
        Of each edge; 0 where it is dead.
    shapes : sequence of tuple
        Height, width and channels of the map of each node.
    is_live : array-like of bool of shape (n_nodes,)
        Whether a path leads from the image to the node.
    maps : dict, default=None
        Number of a node -> array of shape (height, width, channels), of one image.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    ax_ : matplotlib Axes
        The axes.
    position_ : ndarray of shape (n_nodes, 2)
        Where each node is: from 0, left, to 1, right, and its order.
    edges_ : LineCollection
        The edges.
    names_ : list of Text
        What each node is called.
    images_ : dict
        Number of a node -> AxesImage, of those with a map.

    Examples
    --------
    >>> from skbnp.plot import ArchitectureDisplay
    >>> edges, shapes = [[1, 2], [2, 0]], [(1, 1, 10), (8, 8, 1), (8, 8, 4)]
    >>> display = ArchitectureDisplay([0.0, 1.0, 0.8], edges, [36, 2560], shapes, [1, 1, 1]).plot()
    >>> display.names_[2].get_text()
    '8 x 8, 4 channels'
    """

    def __init__(self, order, edges, n_weights, shapes, is_live, *, maps=None):
        self.order = order
        self.edges = edges
        self.n_weights = n_weights
        self.shapes = shapes
        self.is_live = is_live
        self.maps = maps

    @classmethod
    def from_estimator(cls, estimator, *, draw=None, image=None, ax=None, **line_kw):
        """Show an architecture of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``architecture``.
        draw : dict, default=None
            A draw, as ``posterior_[chain, draw]``; None shows the reference draw.
        image : array-like of shape (n_features,), (height, width) or (height, width, channels), \
default=None
            One image, whose maps are shown; None shows none.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **line_kw : dict
            Passed to the ``LineCollection`` of the edges, such as ``alpha``.

        Returns
        -------
        ArchitectureDisplay
            With its artists as attributes.
        """
        check_estimator(estimator, "architecture")
        found, maps = estimator.architecture(draw), None
        if image is not None:
            of_nodes = estimator.feature_maps(np.asarray(image)[np.newaxis], draw)
            maps = {node: one[0] for node, one in of_nodes.items()}
        names = ("order", "edges", "n_weights", "shapes", "is_live")
        return cls(*(found[name] for name in names), maps=maps).plot(ax=ax, **line_kw)

    @styled
    def plot(self, *, ax=None, **line_kw):
        """Draw the architecture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **line_kw : dict
            Passed to the ``LineCollection`` of the edges, such as ``alpha``.

        Returns
        -------
        ArchitectureDisplay
            This object.
        """
        order, edges, n_weights, is_live = self._check()
        if ax is None:
            ax = import_pyplot().subplots(figsize=(6.0, 5.0))[1]
        self.ax_, self.figure_ = ax, ax.figure
        self.position_ = np.column_stack([_places(order), order])
        self._add_edges(edges, n_weights, line_kw)
        self._add_nodes(is_live)
        ax.set(xlim=(-0.15, 1.15), ylim=(-0.1, 1.12), xticks=[], ylabel="order")
        hide_frame(ax)
        ax.spines["bottom"].set_visible(False)
        return self

    def _check(self):
        order, edges, n_weights = checked_graph(
            ("order", self.order), self.edges, ("n_weights", self.n_weights), nodes="nodes"
        )
        is_live = np.asarray(self.is_live, dtype=bool)
        if len(self.shapes) != len(order) or is_live.shape != order.shape:
            raise ValueError(
                f"shapes and is_live must be of {len(order)} nodes, got {len(self.shapes)} and "
                f"{is_live.size}"
            )
        for node in self.maps or {}:
            if not 0 <= node < len(order):
                raise ValueError(f"maps must be of nodes 0 to {len(order) - 1}, got {node}")
        return order, edges, n_weights, is_live

    def _add_edges(self, edges, n_weights, line_kw):
        from matplotlib.collections import LineCollection

        share = np.sqrt(n_weights / max(n_weights.max(initial=0.0), 1.0))
        style = {
            "linewidths": 0.5 + (THICKEST - 0.5) * share,
            "colors": np.where(n_weights > 0, EDGE, DEAD),
            "alpha": FAINTEST,
            "zorder": 1,
            **line_kw,
        }
        self.edges_ = LineCollection(self.position_[edges], **style)
        self.ax_.add_collection(self.edges_, autolim=False)

    def _add_nodes(self, is_live):
        """Maps, and what nodes are called: below their maps, or where they stand."""
        maps, self.names_, self.images_ = self.maps or {}, [], {}
        for node, ((x, y), shape) in enumerate(zip(self.position_, self.shapes, strict=True)):
            below = 0.0
            if node in maps:
                self.images_[node] = self._add_map(x, y, maps[node])
                below = TILE / 2 + GAP
            name = _name(node, shape)
            text = self.ax_.text(
                x, y - below, name, ha="center", va="center", fontsize="small", zorder=3,
                color="black" if is_live[node] else DEAD,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0},
            )  # fmt: skip
            self.names_.append(text)

    def _add_map(self, x, y, one):
        """The mean over channels."""
        shown = np.asarray(one, dtype=np.float64)
        if shown.ndim != 3:
            raise ValueError(f"maps must be (height, width, channels), got {shown.shape}")
        inner = self.ax_.inset_axes(
            (x - TILE / 2, y - TILE / 2, TILE, TILE), transform=self.ax_.transData, zorder=2
        )
        frame_image(inner)
        return inner.imshow(shown.mean(axis=2), cmap="gray_r", interpolation="nearest")


def _places(order):
    """From left to right: output and image in the middle, hidden nodes by turns to the sides."""
    place = np.full(len(order), 0.5)
    hidden = np.arange(2, len(order))
    by_order = hidden[np.argsort(-np.asarray(order)[hidden], kind="stable")]
    sides = (0.15, 0.85, 0.35, 0.65)
    place[by_order] = [sides[i % len(sides)] for i in range(len(by_order))]
    return place


def _name(node, shape):
    height, width, channels = shape
    if node == 0:
        return f"output, {channels} classes"
    what = f"{height} x {width}"
    if node == 1:
        return f"image, {what}" + (f", {channels} channels" if channels > 1 else "")
    return f"{what}, {channels} channel" + ("s" if channels > 1 else "")
