"""Rows coloured by cluster, in one column or two of the data."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import is_regressor

from skbnp.plot._estimator import (
    check_estimator,
    labels_in_memory,
    marks_in_fit,
    places_in_training,
)
from skbnp.plot._style import (
    GREY,
    class_look,
    hide_frame,
    import_pyplot,
    short_name,
    size_in_points,
    styled,
    wrapped_name,
)
from skbnp.tables.columns import columns_of, in_words, names_of

MAX_LEGEND = 12
LONGEST_NAME = 24  # characters of a class or a category
LINE_HEIGHT, LETTER = 11.0, 5.5  # points
LEFT = 0.7  # of the length of an axis, once the layout has made room for labels and legend
MAX_AVOIDED = 5_000  # points that the search for a place of the legend can look at
LARGEST, SMALLEST, MANY = 22.0, 3.0, 1_000  # points^2 of up to so many rows, and of very many
MAX_VECTORS = 20_000  # points that an editor can open one by one
FAINTEST = 0.2  # opacity of a row that could be anywhere
SCATTER = 0.3  # to either side of a category
# Roberts's sequence: as even in the plane as on either axis.
STEPS = (0.7548776662466927, 0.5698402909980532)
LEVELS = ("category", "text", "bool")  # kinds of columns that are no numbers


class ClusterDisplay:
    """Rows as points in one column or two, coloured by cluster.

    The less certain the cluster of a row, the fainter its point. Hollow points have at least
    one of the coordinates imputed. A negative label means no known cluster, in grey. Labels
    that are no integers, such as the names of known classes, take their colours as sorted; after
    each six clusters the marker changes, so that 36 look different. In one column each cluster has
    a line of its own. Points of one category are spread beside its tick, evenly and not at random.
    From 1,000 rows on points are smaller; more than 20,000 are one image in vector files.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    points : array-like of shape (n, 2) or (n, 1)
        Coordinates, without NaN.
    labels : array-like of int or str of shape (n,)
        Cluster of each row.
    certainty : array-like of shape (n,), default=None
        Between 0 and 1; None draws all points alike.
    imputed : array-like of bool of shape (n,), default=None
        The rows to draw hollow.
    names : sequence of str, default=None
        Names of the axes, one for each coordinate.
    categories : sequence of (sequence of str or None), default=None
        For each coordinate None or, where it is a category, the names of the values 0, 1, ...

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    ax_ : matplotlib Axes
        The axes.
    scatter_ : list of PathCollection
        The points of each cluster, in the order of their labels.
    legend_ : Legend
        Clusters with their sizes, the largest 12 of them, and what hollow points are. Beside the
        axes where the figure makes room for it, as our own does; within the axes of a figure
        without a layout engine.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp.plot import ClusterDisplay
    >>> points = np.random.default_rng(0).normal(size=(20, 2))
    >>> display = ClusterDisplay(points, np.repeat([0, 1], 10)).plot()
    """

    def __init__(
        self, points, labels, certainty=None, *, imputed=None, names=None, categories=None
    ):
        self.points = points
        self.labels = labels
        self.certainty = certainty
        self.imputed = imputed
        self.names = names
        self.categories = categories

    @classmethod
    def from_estimator(cls, estimator, X, *, columns=None, labels=None, ax=None, **scatter_kw):
        """Show the rows of X as a fitted estimator sees them.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``predict``; ``predict_proba`` gives the opacity where there is one,
            ``impute`` the place of rows that lack one of the columns shown.
        X : array-like or DataFrame of shape (n, n_features)
            The rows.
        columns : int, str or sequence of one or two of them, default=None
            The columns to show, by position or by name: numbers or categories. None means the
            first two, or the only one.
        labels : array-like of int or str of shape (n,), default=None
            The clusters to show. None means the estimator's own: ``labels_`` for rows of the
            training table, in any order and number, and ``predict`` for all others. A training
            row is known by its cells; of equal ones each is taken in turn.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **scatter_kw : dict
            Passed to ``Axes.scatter``, such as the size ``s``; the colours are the display's.

        Returns
        -------
        ClusterDisplay
            With its artists as attributes.

        Raises
        ------
        TypeError
            If the estimator has no clusters or classes, or lacks ``impute`` where a coordinate is
            missing.
        """
        check_estimator(estimator, "predict")
        kind = type(estimator).__name__
        if hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator):
            raise TypeError(f"estimator must have clusters or classes, which {kind} has not")
        positions, names = _find_columns(estimator, X, columns)
        coordinates = _find_coordinates(estimator, X, positions)
        given, certainty = labels, None
        if labels is None:
            labels = _find_labels(estimator, X)
        if hasattr(estimator, "predict_proba"):
            certainty = _find_certainty(estimator, X, labels if given is None else None)
        display = cls(
            np.column_stack([one.places for one in coordinates]),
            labels,
            certainty,
            imputed=np.any([one.imputed for one in coordinates], axis=0),
            names=names,
            categories=[one.names for one in coordinates],
        )
        return display.plot(ax=ax, **scatter_kw)

    @styled
    def plot(self, *, ax=None, **scatter_kw):
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **scatter_kw : dict
            Passed to ``Axes.scatter``, such as the size ``s``; the colours are the display's.

        Returns
        -------
        ClusterDisplay
            This object.
        """
        points, labels, certainty, imputed = self._check()
        if ax is None:
            ax = import_pyplot().subplots(figsize=(6.0, 4.5))[1]
        self.ax_, self.figure_ = ax, ax.figure
        values, code = np.unique(labels, return_inverse=True)
        looks = [_look(value, place) for place, value in enumerate(values)]
        names, categories = self._axes(points.shape[1], [look[2] for look in looks])
        if points.shape[1] == 1:
            points = np.column_stack([points, code])
            ax.invert_yaxis()
        points = _spread(points, categories)
        style = _point_style(len(points)) | scatter_kw
        self.scatter_ = [
            _scatter(ax, look, points[at], certainty[at], imputed[at], style)
            for place, look in enumerate(looks)
            for at in [code == place]
        ]
        self.legend_ = self._add_legend(looks, np.bincount(code), imputed.sum())
        for axis, name, levels in zip((ax.xaxis, ax.yaxis), names, categories, strict=True):
            axis.set_label_text(name)
            if levels is not None:
                _name_ticks(ax, axis, levels)
        hide_frame(ax)
        return self

    def _check(self):
        points, labels = np.asarray(self.points, dtype=np.float64), np.asarray(self.labels)
        if points.ndim != 2 or points.shape[1] not in (1, 2):
            raise ValueError(f"points must have shape (n, 2) or (n, 1), got {points.shape}")
        n = len(points)
        certainty = np.ones(n) if self.certainty is None else np.asarray(self.certainty, float)
        imputed = np.zeros(n, bool) if self.imputed is None else np.asarray(self.imputed, bool)
        for name, value in (("labels", labels), ("certainty", certainty), ("imputed", imputed)):
            if value.shape != (n,):
                raise ValueError(f"{name} must have shape ({n},), got {value.shape}")
        for name in ("names", "categories"):
            value = getattr(self, name)
            if value is not None and len(value) != points.shape[1]:
                raise ValueError(f"{name} must be {points.shape[1]}, got {len(value)}")
        return points, labels, certainty, imputed

    def _axes(self, n_columns, clusters):
        """What the two axes are called and, where they are no numbers, what their ticks are."""
        names = ["", ""][:n_columns] if self.names is None else list(map(wrapped_name, self.names))
        categories = [None, None][:n_columns] if self.categories is None else list(self.categories)
        if n_columns == 1:
            names.append("")
            categories.append(clusters)
        return names, categories

    def _add_legend(self, looks, sizes, n_imputed):
        largest = np.argsort(-sizes, kind="stable")
        shown = np.sort(largest[:MAX_LEGEND])
        entries = [_entry(*looks[t][:2], f"{looks[t][2]}  ({sizes[t]})") for t in shown]
        rest = largest[MAX_LEGEND:]
        if len(rest):
            entries.append(_entry("none", "none", f"{len(rest)} more  ({sizes[rest].sum()})"))
        if n_imputed:
            entries.append(_entry("none", "o", f"hollow: imputed  ({n_imputed})"))
        if self.figure_.get_layout_engine() is not None:  # beside the points it hides none
            place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "frameon": False}
        else:  # there it would be cut off
            few = sizes.sum() <= MAX_AVOIDED
            place = {"loc": "best" if few else "upper right", "frameon": True, "framealpha": 0.7}
        return self.ax_.legend(handles=entries, handletextpad=0.3, **place)


def _look(label, place):
    """Colour, marker and name of a cluster: the same integer looks the same in every picture."""
    if not isinstance(label, np.integer):
        name = short_name(label, LONGEST_NAME)
    elif label < 0:
        return GREY, "X", "no cluster"
    else:
        place, name = label, f"cluster {label}"
    look = class_look(place)
    return look.color, look.marker, name


def _point_style(n):
    """Smaller points for more rows; for very many a picture of them, where text stays text."""
    size = max(LARGEST * min(1.0, np.sqrt(MANY / max(n, 1))), SMALLEST)
    return {"s": size, "linewidths": 0.04 * size, "rasterized": n > MAX_VECTORS}


def _scatter(ax, look, points, certainty, imputed, style):
    from matplotlib.colors import to_rgba_array

    color, marker, name = look
    edge = np.tile(to_rgba_array(color), (len(points), 1))
    edge[:, 3] = FAINTEST + (1.0 - FAINTEST) * np.clip(certainty, 0.0, 1.0)
    face = edge.copy()
    face[:, 3] *= 0.7  # so that dense places show
    face[imputed, 3] = 0.0
    style = {"marker": marker, "label": name, **style}
    return ax.scatter(points[:, 0], points[:, 1], facecolors=face, edgecolors=edge, **style)


def _entry(color, marker, text):
    from matplotlib.lines import Line2D

    edge = GREY if color == "none" else color
    return Line2D([], [], linestyle="none", marker=marker, mfc=color, mec=edge, label=text)


def _spread(points, categories):
    """Points of a category to either side of it, so that they do not hide one another."""
    rows = np.arange(1.0, len(points) + 1.0)
    away = [
        np.zeros(len(points)) if levels is None else SCATTER * (2.0 * (rows * step % 1.0) - 1.0)
        for levels, step in zip(categories, STEPS, strict=True)
    ]
    return points + np.column_stack(away)


def _name_ticks(ax, axis, levels):
    """Names at the ticks: on two lines or upright where they crowd, some of them if many."""
    names = [short_name(level, LONGEST_NAME) for level in levels]
    across = axis is ax.xaxis
    room = LEFT * size_in_points(ax)[0 if across else 1] / len(names)
    every = int(np.ceil(LINE_HEIGHT / room))
    upright, letters = False, int(room / LETTER)
    if across and max(map(len, names)) > letters:
        upright = letters < LONGEST_NAME // 2
        if not upright:
            names = [wrapped_name(name, letters) for name in names]
    axis.set_ticks(range(0, len(names), every), names[::every])
    axis.set_tick_params(length=0, labelrotation=90 if upright else 0)


# -- what an estimator says of a table


def _find_columns(estimator, X, columns):
    """Positions and names of the columns to show."""
    names = getattr(estimator, "feature_names_in_", names_of(X))
    names = None if names is None else [str(name) for name in names]
    n_features = np.shape(X)[1]
    if columns is None:
        columns = range(min(2, n_features))
    # In a frame with columns of several levels names are tuples.
    is_name = isinstance(columns, tuple) and columns in (names_of(X) or ())
    is_one = is_name or isinstance(columns, (str, int, np.integer))
    columns = (columns,) if is_one else tuple(columns)
    if len(columns) not in (1, 2):
        raise ValueError(f"columns must be one or two columns of X, got {columns}")
    positions = []
    for column in columns:
        column = str(column) if isinstance(column, tuple) else column
        if isinstance(column, str):
            if names is None or column not in names:
                raise ValueError(f"columns must be columns of X, {names}, got {column!r}")
            column = names.index(column)
        if not -n_features <= column < n_features:
            raise ValueError(f"columns must be between 0 and {n_features - 1}, got {column}")
        positions.append(int(column) % n_features)
    return positions, tuple(f"feature {t}" if names is None else names[t] for t in positions)


@dataclass(frozen=True)
class _Coordinate:
    """Where the rows are in one column, the names of its categories or None, and what is filled."""

    places: np.ndarray
    names: list | None
    imputed: np.ndarray


def _find_coordinates(estimator, X, positions):
    """The columns at these positions; the estimator fills the cells that they lack."""
    found = columns_of(X, marks_in_fit(estimator))
    filled = found
    if any(found[j].missing.any() for j in positions):
        if not hasattr(estimator, "impute"):
            raise TypeError(
                "estimator must have 'impute' to show rows that lack one of the columns, which "
                f"{type(estimator).__name__} has not"
            )
        filled = columns_of(estimator.impute(X))
    names = names_of(X) or range(len(found))
    return [_coordinate(found[j], filled[j], in_words(names[j])) for j in positions]


def _coordinate(column, filled, label):
    missing = column.missing
    if column.kind not in LEVELS:
        places = column.numbers(label)
        return _Coordinate(np.where(missing, filled.numbers(label), places), None, missing)
    cells = np.empty(len(missing), dtype=object)
    cells[~missing] = column.values
    cells[missing] = filled.values[missing[~filled.missing]]
    used = set(cells.tolist())
    levels = sorted(used, key=str) if column.levels is None else column.levels.tolist()
    place = {level: t for t, level in enumerate(level for level in levels if level in used)}
    places = np.array([place[cell] for cell in cells.tolist()], dtype=np.float64)
    return _Coordinate(places, [str(level) for level in place], missing)


def _find_labels(estimator, X):
    """``labels_`` of the training rows, and the most probable clusters of all others."""
    known = labels_in_memory(estimator)
    places = None if known is None else places_in_training(estimator, X)
    if places is None:
        return estimator.predict(X)
    labels = np.asarray(known)[places]
    if (places < 0).any():  # all rows are asked for: X may be any table
        labels = np.where(places < 0, estimator.predict(X), labels)
    return labels


def _find_certainty(estimator, X, labels):
    """How probable the clusters shown are; of labels of one's own, None, that of the likeliest."""
    proba = np.asarray(estimator.predict_proba(X))
    # Only where rows are in blocks does column k speak of label k.
    if labels is not None and hasattr(estimator, "coclustering"):
        return proba[np.arange(len(proba)), labels]
    return proba.max(axis=1)
