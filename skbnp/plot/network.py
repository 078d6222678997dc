"""The units and edges of a belief network."""

from numbers import Integral

import numpy as np

from skbnp.plot._style import COLORS, GREY, check_estimator, hide_frame, import_pyplot

POSITIVE, NEGATIVE = COLORS[0], COLORS[4]
THICKEST = (1.0, 4.0)  # points, for the largest weight, where there are many edges and few
THINNEST, FAINTEST = 0.15, 0.35  # width, as a share of that, and opacity of a weight of zero
DOT, DOTS = 0.6, (1.5, 10.0)  # share of the room of a unit; points
BEND, N_POINTS = 0.15, 17  # of edges that pass a row: of the width; points of the curve
LABEL = 9.0  # points that an upright name takes
N_PASSES = 8  # up and down, to order the rows
MARGIN = 0.03


class NetworkDisplay:
    """Units as dots, parents above their children, edges coloured by the sign of their weight.

    Units of one height are a row, ordered so that few edges cross: each unit near the mean of its
    children, then of its parents. Heights that are no whole numbers, or visible units above 0, are
    those of a network without layers; units keep them. The wider and the less transparent an edge,
    the larger its weight: blue is positive, orange negative. Edges that pass a row are curved.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    height : array-like of shape (n_units,)
        The layer of each unit, that of the visible ones 0, or its order in [0, 1]; parents are
        higher than their children.
    edges : array-like of int of shape (n_edges, 2)
        Parent and child of each edge.
    weights : array-like of shape (n_edges,)
        Their weights.
    n_visible : int
        Units 0 to ``n_visible - 1`` are the visible ones, grey dots; the others are black.
    names : sequence of str of length n_visible, default=None
        Names of the visible units; None takes their numbers. Left out where there is no room.
    max_edges : int, default=1000
        Of more edges, those with the largest weights are shown.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    ax_ : matplotlib Axes
        The axes.
    position_ : ndarray of shape (n_units, 2)
        Where each unit is: from 0, left, to 1, right, and its height.
    shown_ : ndarray of int
        Numbers of the edges shown, in the order of `edges_`: the largest weight comes last, on top.
    edges_ : LineCollection
        The edges.
    units_ : PathCollection
        The units.
    names_ : list of Annotation
        The names of the visible units, below them, or above those at the top; empty where there is
        no room.

    Examples
    --------
    >>> from skbnp.plot import NetworkDisplay
    >>> edges = [[3, 0], [3, 1], [4, 1], [4, 2], [5, 3]]
    >>> weights = [1.0, -0.5, 0.8, 2.0, -1.5]
    >>> display = NetworkDisplay([0, 0, 0, 1, 1, 2], edges, weights, n_visible=3).plot()
    >>> display.position_[5]
    array([0.5, 2. ])
    """

    def __init__(self, height, edges, weights, *, n_visible, names=None, max_edges=1000):
        self.height = height
        self.edges = edges
        self.weights = weights
        self.n_visible = n_visible
        self.names = names
        self.max_edges = max_edges

    @classmethod
    def from_estimator(cls, estimator, *, draw=None, max_edges=1000, ax=None, **line_kw):
        """Show a network of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``network``.
        draw : dict, default=None
            A draw, as ``posterior_[chain, draw]``; None shows the reference draw.
        max_edges : int, default=1000
            Of more edges, those with the largest weights are shown.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **line_kw : dict
            Passed to the ``LineCollection`` of the edges, such as ``alpha``.

        Returns
        -------
        NetworkDisplay
            With its artists as attributes.
        """
        check_estimator(estimator, "network")
        network = estimator.network(draw)
        names = network.get("names", getattr(estimator, "feature_names_in_", None))
        display = cls(
            network["order" if "order" in network else "layer"],
            network["edges"],
            network["weights"],
            n_visible=estimator.n_features_in_ if names is None else len(names),
            names=names,
            max_edges=max_edges,
        )
        return display.plot(ax=ax, **line_kw)

    def plot(self, *, ax=None, **line_kw):
        """Draw the network.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **line_kw : dict
            Passed to the ``LineCollection`` of the edges, such as ``alpha``.

        Returns
        -------
        NetworkDisplay
            This object.
        """
        height, edges, weights = self._check()
        plt = import_pyplot()
        from matplotlib.collections import LineCollection

        row = _rows(height, self.n_visible)
        self.position_ = np.column_stack([_places(row, edges, np.abs(weights)), height])
        if ax is None:
            size = (np.clip(2.0 + 0.1 * np.bincount(row).max(), 6.0, 12.0), 2.0 + 0.8 * row.max())
            ax = plt.subplots(figsize=(size[0], np.clip(size[1], 3.0, 8.0)), layout="constrained")[
                1
            ]
        self.ax_, self.figure_ = ax, ax.figure
        strength = np.abs(weights)
        self.shown_ = np.argsort(strength, kind="stable")[-self.max_edges :]
        lines = _lines(self.position_, row, edges[self.shown_])
        style = _line_style(weights[self.shown_]) | line_kw
        self.edges_ = LineCollection(lines, zorder=1, **style)
        ax.add_collection(self.edges_, autolim=False)
        self._add_units(row)
        self._label(row, len(edges))
        return self

    def _check(self):
        height = np.asarray(self.height, dtype=np.float64)
        edges = np.asarray(self.edges, dtype=np.intp).reshape(-1, 2)
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (len(edges),):
            raise ValueError(f"weights must have shape ({len(edges)},), got {weights.shape}")
        if len(edges) and not 0 <= edges.min() <= edges.max() < len(height):
            raise ValueError(
                f"edges must be of units 0 to {len(height) - 1}, got {edges.min()} to {edges.max()}"
            )
        if np.any(height[edges[:, 0]] <= height[edges[:, 1]]):
            raise ValueError("height must be larger for the parent than for the child of each edge")
        if not 1 <= self.n_visible <= len(height):
            raise ValueError(f"n_visible must be from 1 to {len(height)}, got {self.n_visible}")
        if self.names is not None and len(self.names) != self.n_visible:
            raise ValueError(
                f"names must be of {self.n_visible} visible units, got {len(self.names)}"
            )
        if not isinstance(self.max_edges, Integral) or self.max_edges < 1:
            raise ValueError(f"max_edges must be an integer >= 1, got {self.max_edges!r}")
        return height, edges, weights

    def _add_units(self, row):
        """The dots, as large as their rows allow, and the names below the visible ones."""
        ax, in_row = self.ax_, np.bincount(row)
        low, high = self.position_[:, 1].min(), self.position_[:, 1].max()
        margin = MARGIN * max(high - low, 1.0)
        ax.set(xlim=(-MARGIN, 1.0 + MARGIN), ylim=(low - margin, high + margin))
        width = 72.0 / ax.figure.dpi * ax.get_window_extent().width
        diameter = np.clip(DOT * width / in_row, *DOTS)[row]
        visible = np.arange(len(row)) < self.n_visible
        self.units_ = ax.scatter(
            *self.position_.T,
            s=diameter**2,
            color=np.where(visible, GREY, "black"),
            linewidths=0.0,
            zorder=2,
            clip_on=False,
        )
        self.names_ = []
        crowd = in_row[row[visible]].max()
        if LABEL * crowd > width:
            return
        names = range(self.n_visible) if self.names is None else self.names
        longest = max(len(f"{name}") for name in names)
        upright = 0.7 * LABEL * longest * crowd < width
        side = np.where((self.position_[:, 1] == high) & (high > low), 1.0, -1.0)
        self.names_ = [
            ax.annotate(
                f"{name}",
                at,
                (0.0, away),
                textcoords="offset points",
                ha="center",
                va="bottom" if away > 0 else "top",
                rotation="horizontal" if upright else "vertical",
                fontsize="small",
                annotation_clip=False,
            )
            for name, at, away in zip(
                names, self.position_, side * (3.0 + diameter / 2), strict=False
            )
        ]
        above = self._reach("bottom")
        if above:  # into the axes with them, where a title does not go
            tall = 72.0 / ax.figure.dpi * ax.get_window_extent().height
            tall -= self._reach("top")  # what a layout takes from the axes for those below
            above = min(above, 0.6 * tall)
            ax.set_ylim(top=high + (high - low + margin) * above / (tall - above))

    def _reach(self, va):
        """Points from units to the far end of names, those above ("bottom") or below ("top") them.

        0 without names.
        """
        points = 72.0 / self.figure_.dpi
        return max(
            (
                abs(text.xyann[1]) + points * text.get_window_extent().height
                for text in self.names_
                if text.get_va() == va
            ),
            default=0.0,
        )

    def _label(self, row, n_edges):
        """What the rows are, what is left out, and what the colours mean."""
        from matplotlib.lines import Line2D

        ax, height = self.ax_, self.position_[:, 1]
        if _are_layers(height, self.n_visible):
            layers, widths = np.unique(height, return_counts=True)
            names = ["visible" if layer == 0 else f"layer {layer:.0f}" for layer in layers]
            units = ["1 unit" if width == 1 else f"{width} units" for width in widths]
            labels = [f"{name}\n{unit}" for name, unit in zip(names, units, strict=True)]
            ax.set_yticks(layers, labels)
            ax.tick_params(axis="y", length=0)
            ax.spines["left"].set_visible(False)
        else:
            ax.set_ylabel("order")
        hide_frame(ax)
        ax.spines["bottom"].set_visible(False)
        ax.set_xticks([])
        n_shown = len(self.shown_)
        if n_shown < n_edges:
            ax.set_xlabel(
                f"the {n_shown} of {n_edges} edges with the largest weights",
                labelpad=ax.xaxis.labelpad + self._reach("top"),
            )
        if n_shown:
            signs = {"positive": POSITIVE, "negative": NEGATIVE}
            handles = [Line2D([], [], color=color, label=sign) for sign, color in signs.items()]
            # Above the axes, or beside them where names are above.
            names_above = self._reach("bottom") > 0
            ax.legend(
                handles=handles,
                loc="upper left" if names_above else "lower right",
                bbox_to_anchor=(1.0, 1.0),
                ncols=1 if names_above else 2,
                frameon=False,
            )


def _are_layers(height, n_visible):
    return np.array_equal(height, np.round(height)) and not height[:n_visible].any()


def _rows(height, n_visible):
    """Row of each unit, from 0: its layer, or one of sqrt(n) sets of orders, with gaps between.

    Units that are close in height are in one row, so that their places differ.
    """
    values, row = np.unique(height, return_inverse=True)
    if _are_layers(height, n_visible):
        return row
    n_rows = int(np.ceil(np.sqrt(len(values))))
    gaps = np.argsort(np.diff(values), kind="stable")[len(values) - n_rows :]
    return np.searchsorted(np.sort(gaps), row)


def _places(row, edges, strength):
    """Horizontal place of each unit: evenly spaced in its row, near its children and parents.

    The barycentre heuristic of Sugiyama, Tagawa and Toda (1981); of all passes that with the
    shortest edges is kept.
    """
    members = [np.flatnonzero(row == r) for r in range(row.max() + 1)]
    place = np.empty(len(row))
    for units in members:
        place[units] = _even(len(units))
    parent, child = edges.T
    best, shortest = place.copy(), _length(place, edges, strength)
    for _ in range(N_PASSES):
        for own, other, order in ((parent, child, members[1:]), (child, parent, members[-2::-1])):
            total = np.bincount(own, strength, minlength=len(row))
            for units in order:
                pull = np.bincount(own, strength * place[other], minlength=len(row))[units]
                pulled = total[units] > 0
                target = place[units]
                target[pulled] = pull[pulled] / total[units][pulled]
                place[units[np.argsort(target, kind="stable")]] = _even(len(units))
        length = _length(place, edges, strength)
        if length < shortest:
            best, shortest = place.copy(), length
    return best


def _even(n):
    return (np.arange(n) + 0.5) / n


def _length(place, edges, strength):
    return strength @ np.abs(np.diff(place[edges], axis=1)[:, 0])


def _lines(position, row, edges):
    """Ends of each edge, or the points of its curve if it passes a row."""
    start, stop = position[edges[:, 0]], position[edges[:, 1]]
    lines = list(np.stack([start, stop], axis=1))
    passing = np.flatnonzero(row[edges[:, 0]] - row[edges[:, 1]] > 1)
    t = np.linspace(0.0, 1.0, N_POINTS)[:, np.newaxis]
    for edge in passing:
        middle = (start[edge] + stop[edge]) / 2
        middle[0] += BEND if middle[0] < 0.5 else -BEND  # inwards, to stay in the axes
        lines[edge] = (1 - t) ** 2 * start[edge] + 2 * t * (1 - t) * middle + t**2 * stop[edge]
    return lines


def _line_style(weights):
    """Colours and widths of edges."""
    from matplotlib.colors import to_rgba

    strength = np.abs(weights)
    share = strength / strength.max() if strength.any() else strength
    colors = np.where(weights[:, np.newaxis] < 0, to_rgba(NEGATIVE), to_rgba(POSITIVE))
    colors[:, 3] = FAINTEST + (1.0 - FAINTEST) * share
    thickest = np.clip(60.0 / np.sqrt(max(len(weights), 1)), *THICKEST)
    return {"colors": colors, "linewidths": thickest * (THINNEST + (1.0 - THINNEST) * share)}
