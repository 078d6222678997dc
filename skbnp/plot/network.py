"""The units and edges of a belief network."""

from dataclasses import dataclass

import numpy as np

from skbnp.plot._checks import check_most, checked_graph
from skbnp.plot._estimator import check_estimator
from skbnp.plot._style import (
    COLORS,
    GREY,
    hide_frame,
    import_pyplot,
    short_name,
    size_in_points,
    styled,
)

POSITIVE, NEGATIVE = COLORS[0], COLORS[4]
THICKEST = (1.0, 4.0)  # points, for the largest weight, where there are many edges and few
THINNEST, FAINTEST = 0.15, 0.35  # width, as a share of that, and opacity of a weight of zero
DOT, DOTS = 0.6, (1.5, 10.0)  # share of the room of a unit; points
BEND, N_POINTS = 0.15, 17  # of edges that pass a row: of the width; points of the curve
LABEL = 9.0  # points that an upright name takes
N_PASSES = 8  # up and down, to order the rows
LONGEST_NAME = 20  # characters
MARGIN = 0.03
SHIFT, GOLDEN = (
    0.3,
    0.618034,
)  # of levels, to either side
MAX_EDGES, MAX_UNITS = 50, 200
UNIT = 0.15  # inches of our own figure for a unit


class NetworkDisplay:
    """Units as dots, parents above their children, edges coloured by the sign of their weight.

    Units of one height are a row, ordered so that few edges cross: each unit near the mean of its
    children, then of its parents. Heights that are no whole numbers, or visible units above 0, are
    those of a network without layers; units keep them. The wider and the less transparent an edge,
    the larger its weight: blue is positive, orange negative. Edges that pass a row are curved.

    Of a network with more than `max_edges` edges the strongest are shown, and the picture says how
    many edges are not. Strong is a large weight, in size. Of such a network, and of one with more
    than 200 units, only units with an edge are shown. If it has no layers it stands in levels: each
    unit one above its highest child, visible units that have no parents and are above all others on
    top.

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
        Names of the visible units; None takes their numbers. Of those with more than 20 characters
        the middle is left out. Left out where there is no room.
    max_edges : int, default=50
        How many edges are shown at most.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    ax_ : matplotlib Axes
        The axes.
    position_ : ndarray of shape (n_units, 2)
        Where each unit is: from 0, left, to 1, right, and its height or level. NaN where it is not
        shown.
    shown_ : ndarray of int
        Numbers of the edges shown, in the order of `edges_`: the largest weight comes last, on top.
    edges_ : LineCollection
        The edges.
    units_ : PathCollection
        The units that are shown, in the order of their numbers.
    names_ : list of Annotation
        The names of the visible units that are shown, below them, or above those at the top; empty
        where there is no room.

    Examples
    --------
    >>> from skbnp.plot import NetworkDisplay
    >>> edges = [[3, 0], [3, 1], [4, 1], [4, 2], [5, 3]]
    >>> weights = [1.0, -0.5, 0.8, 2.0, -1.5]
    >>> display = NetworkDisplay([0, 0, 0, 1, 1, 2], edges, weights, n_visible=3).plot()
    >>> display.position_[5]
    array([0.5, 2. ])
    """

    def __init__(self, height, edges, weights, *, n_visible, names=None, max_edges=MAX_EDGES):
        self.height = height
        self.edges = edges
        self.weights = weights
        self.n_visible = n_visible
        self.names = names
        self.max_edges = max_edges

    @classmethod
    def from_estimator(cls, estimator, *, draw=None, max_edges=MAX_EDGES, ax=None, **line_kw):
        """Show a network of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``network``.
        draw : dict, default=None
            A draw, as ``posterior_[chain, draw]``; None shows the reference draw. Hidden units have
            no partners in other draws, so that edges are those of one draw and not means.
        max_edges : int, default=50
            How many edges are shown at most.
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

    @styled
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
        self.shown_ = np.argsort(np.abs(weights), kind="stable")[-self.max_edges :]
        is_large = len(edges) > self.max_edges or len(height) > MAX_UNITS
        is_part = is_large and len(edges) > 0
        shown = _Shown.of(height, edges[self.shown_], self.n_visible, is_part)
        row = shown.rows()
        # Edges may pass levels: units in line would hide them.
        turn = SHIFT * (2.0 * (GOLDEN * np.arange(row.max() + 1) % 1.0) - 1.0) * shown.in_levels
        place = _places(row, shown.edges, np.abs(weights[self.shown_]), turn)
        at = np.column_stack([place, shown.height])
        self.position_ = np.full((len(height), 2), np.nan)
        self.position_[shown.units] = at
        if ax is None:
            width, tall = 2.0 + UNIT * np.bincount(row).max(), 2.0 + 0.8 * row.max()
            size = np.clip(width, 5.0, 10.0), np.clip(tall, 3.0, 8.0)
            ax = import_pyplot().subplots(figsize=size)[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._add_edges(at, row, shown.edges, weights[self.shown_], line_kw)
        self._add_units(at, row, shown)
        self._label(shown, len(edges))
        return self

    def _check(self):
        height, edges, weights = checked_graph(
            ("height", self.height), self.edges, ("weights", self.weights), nodes="units"
        )
        if not 1 <= self.n_visible <= len(height):
            raise ValueError(f"n_visible must be from 1 to {len(height)}, got {self.n_visible}")
        if self.names is not None and len(self.names) != self.n_visible:
            raise ValueError(
                f"names must be of {self.n_visible} visible units, got {len(self.names)}"
            )
        check_most("max_edges", self.max_edges)
        return height, edges, weights

    def _add_edges(self, at, row, edges, weights, line_kw):
        from matplotlib.collections import LineCollection

        style = {"zorder": 1, **_line_style(weights), **line_kw}
        self.edges_ = LineCollection(_lines(at, row, edges), **style)
        self.ax_.add_collection(self.edges_, autolim=False)

    def _add_units(self, at, row, shown):
        """The dots, as large as their rows allow, and the names of the visible ones."""
        ax, in_row = self.ax_, np.bincount(row)
        low, high = at[:, 1].min(), at[:, 1].max()
        margin = MARGIN * max(high - low, 1.0)
        ax.set(xlim=(-MARGIN, 1.0 + MARGIN), ylim=(low - margin, high + margin))
        width = size_in_points(ax)[0]
        diameter = np.clip(DOT * width / in_row, *DOTS)[row]
        is_visible = np.arange(len(row)) < shown.n_visible
        self.units_ = ax.scatter(
            *at.T,
            s=diameter**2,
            color=np.where(is_visible, GREY, "black"),
            linewidths=0.0,
            zorder=2,
            clip_on=False,
        )
        crowd = in_row[row[is_visible]].max(initial=0)
        self.names_ = []
        if crowd and LABEL * crowd <= width:
            self._add_names(at[is_visible], shown, 3.0 + diameter[is_visible] / 2, width / crowd)
        above = self._reach("bottom")
        if above:  # into the axes with them, where a title does not go
            tall = size_in_points(ax)[1]
            tall -= self._reach("top")  # what a layout takes from the axes for those below
            above = min(above, 0.6 * tall)
            ax.set_ylim(top=high + (high - low + margin) * above / (tall - above))

    def _add_names(self, at, shown, away, room):
        """Below the visible units, or above those at the top; ``room`` is that of each, points."""
        low, high = shown.height.min(), shown.height.max()
        names = range(self.n_visible) if self.names is None else self.names
        names = [short_name(names[unit], LONGEST_NAME) for unit in shown.units[: shown.n_visible]]
        upright = 0.7 * LABEL * max(map(len, names)) >= room
        side = np.where((at[:, 1] == high) & (high > low), 1.0, -1.0)
        self.names_ = [
            self.ax_.annotate(
                name,
                place,
                (0.0, offset),
                textcoords="offset points",
                ha="center",
                va="bottom" if offset > 0 else "top",
                rotation="vertical" if upright else "horizontal",
                fontsize="small",
                annotation_clip=False,
                # Edges may pass below the name of a unit between rows.
                bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0.0, "pad": 0.3},
            )
            for name, place, offset in zip(names, at, side * away, strict=True)
        ]

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

    def _label(self, shown, n_edges):
        """What the rows are, what is left out, and what the colours mean."""
        ax = self.ax_
        low, high = shown.height.min(), shown.height.max()
        ax.spines["left"].set_bounds(low, high)  # names may stand above
        if shown.in_levels:
            ax.set_ylabel("level")
            ax.set_yticks(np.unique(shown.height))
        elif _are_layers(shown.height, shown.n_visible):
            layers, labels = self._name_layers(shown)
            ax.set_yticks(layers, labels)
            ax.tick_params(axis="y", length=0)
            ax.spines["left"].set_visible(False)
        else:
            ax.set_ylabel("order")
            ticks = np.linspace(0.0, 1.0, 6)
            ax.set_yticks(ticks[(low <= ticks) & (ticks <= high)])
        hide_frame(ax)
        ax.spines["bottom"].set_visible(False)
        ax.set_xticks([])
        n_left = n_edges - len(self.shown_)
        if n_left:
            ax.set_xlabel(
                f"the {len(self.shown_)} strongest of {n_edges} edges,\n{n_left} weaker not shown",
                labelpad=ax.xaxis.labelpad + self._reach("top"),
            )
        if len(self.shown_):
            self._add_legend()

    def _name_layers(self, shown):
        """The layers with the numbers of their units."""
        height = np.asarray(self.height)
        layers, widths = np.unique(shown.height, return_counts=True)
        names = ["visible" if layer == 0 else f"layer {layer:.0f}" for layer in layers]
        totals = [np.sum(height == layer) for layer in layers] if shown.is_part else widths
        units = [
            f"{total}" if total == width else f"{width} of {total}"
            for width, total in zip(widths, totals, strict=True)
        ]
        return layers, [
            f"{name}\n{unit} unit" + "s" * (unit != "1")
            for name, unit in zip(names, units, strict=True)
        ]

    def _add_legend(self):
        from matplotlib.lines import Line2D

        signs = {"positive": POSITIVE, "negative": NEGATIVE}
        handles = [Line2D([], [], color=color, label=sign) for sign, color in signs.items()]
        # Above the axes, or beside them where names are above.
        names_above = self._reach("bottom") > 0
        self.ax_.legend(
            handles=handles,
            loc="upper left" if names_above else "lower right",
            bbox_to_anchor=(1.0, 1.0),
            ncols=1 if names_above else 2,
            frameon=False,
        )


@dataclass(frozen=True)
class _Shown:
    """What is shown of a network: its units with their heights, and edges between their places.

    The first ``n_visible`` are visible. A part of a network has the units at the ends of its edges;
    ``in_levels`` says that these have been put in levels.
    """

    units: np.ndarray
    height: np.ndarray
    edges: np.ndarray
    n_visible: int
    is_part: bool
    in_levels: bool

    @classmethod
    def of(cls, height, edges, n_visible, is_part):
        if not is_part:
            return cls(np.arange(len(height)), height, edges, n_visible, False, False)
        units, places = np.unique(edges, return_inverse=True)
        places, n_shown = places.reshape(-1, 2), int(np.sum(units < n_visible))
        in_levels = not _are_layers(height, n_visible)
        height = height[units]
        if in_levels:
            height = _levels(height, places, n_shown)
        return cls(units, height, places, n_shown, True, in_levels)

    def rows(self):
        """Row of each unit, from 0: its layer or level, or one of sqrt(n) sets of orders.

        Between these sets are gaps. Units that are close in height are in one row, so that their
        places differ.
        """
        values, row = np.unique(self.height, return_inverse=True)
        if self.in_levels or _are_layers(self.height, self.n_visible):
            return row
        n_rows = int(np.ceil(np.sqrt(len(values))))
        gaps = np.argsort(np.diff(values), kind="stable")[len(values) - n_rows :]
        return np.searchsorted(np.sort(gaps), row)


def _levels(height, edges, n_visible):
    """The longest way down from each unit, for hidden ones 1 at least.

    Visible ones above all others are a level of their own: the inputs of a regressor, whose ways
    down are long and short.
    """
    level = (np.arange(len(height)) >= n_visible).astype(np.float64)
    for parent, child in edges[np.argsort(height[edges[:, 0]], kind="stable")]:
        level[parent] = max(level[parent], level[child] + 1.0)
    is_input = (np.arange(len(height)) < n_visible) & (height == height.max())
    is_input &= ~np.isin(np.arange(len(height)), edges[:, 1])
    if is_input.any() and not is_input.all():
        level[is_input] = level[~is_input].max() + 1.0
    return level


def _are_layers(height, n_visible):
    return np.array_equal(height, np.round(height)) and not height[:n_visible].any()


def _places(row, edges, strength, shift):
    """Horizontal place of each unit: evenly spaced in its row, near its children and parents.

    Rows are shifted by ``shift`` (n_rows,), a share of the room of a unit.
    The barycentre heuristic of Sugiyama, Tagawa and Toda (1981); of all passes that with the
    shortest edges is kept.
    """
    members = [np.flatnonzero(row == r) for r in range(row.max() + 1)]
    place = np.empty(len(row))
    for units, away in zip(members, shift, strict=True):
        place[units] = _even(len(units), away)
    parent, child = edges.T
    best, shortest = place.copy(), _length(place, edges, strength)
    for _ in range(N_PASSES):
        upwards, downwards = range(1, len(members)), range(len(members) - 2, -1, -1)
        for own, other, order in ((parent, child, upwards), (child, parent, downwards)):
            total = np.bincount(own, strength, minlength=len(row))
            for r in order:
                units = members[r]
                pull = np.bincount(own, strength * place[other], minlength=len(row))[units]
                pulled = total[units] > 0
                target = place[units]
                target[pulled] = pull[pulled] / total[units][pulled]
                place[units[np.argsort(target, kind="stable")]] = _even(len(units), shift[r])
        length = _length(place, edges, strength)
        if length < shortest:
            best, shortest = place.copy(), length
    return best


def _even(n, shift):
    return (np.arange(n) + 0.5 + shift) / n


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
