"""Rows coloured by cluster, in two columns of the data."""

import numpy as np

from skbnp.plot._style import COLORS, GREY, check_estimator, hide_frame, import_pyplot
from skbnp.tables.columns import columns_of, names_of

MARKERS = "osD^vP"  # the next one each time the colours are used up
MAX_LEGEND = 12
MAX_AVOIDED = 5_000  # points that the search for a place of the legend can look at
FAINTEST = 0.2  # opacity of a row that could be anywhere


class ClusterDisplay:
    """Rows as points in two columns, coloured by cluster.

    The less certain the cluster of a row, the fainter its point. Hollow points have at least
    one of the two coordinates imputed. A negative label means no known cluster, in grey. Labels
    that are no integers, such as the names of known classes, take their colours as sorted.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    points : array-like of shape (n, 2)
        Coordinates, without NaN.
    labels : array-like of int or str of shape (n,)
        Cluster of each row.
    certainty : array-like of shape (n,), default=None
        Between 0 and 1; None draws all points alike.
    imputed : array-like of bool of shape (n,), default=None
        The rows to draw hollow.
    names : tuple of two str, default=None
        Names of the axes.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    ax_ : matplotlib Axes
        The axes.
    scatter_ : list of PathCollection
        The points of each cluster, in the order of their labels.
    legend_ : Legend
        Clusters with their sizes, the largest 12 of them. Beside the axes where the figure makes
        room for it, as our own does; within the axes of a figure without a layout engine.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp.plot import ClusterDisplay
    >>> points = np.random.default_rng(0).normal(size=(20, 2))
    >>> display = ClusterDisplay(points, np.repeat([0, 1], 10)).plot()
    """

    def __init__(self, points, labels, certainty=None, *, imputed=None, names=None):
        self.points = points
        self.labels = labels
        self.certainty = certainty
        self.imputed = imputed
        self.names = names

    @classmethod
    def from_estimator(cls, estimator, X, *, columns=(0, 1), labels=None, ax=None, **scatter_kw):
        """Show the rows of X as a fitted estimator sees them.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``predict``; ``predict_proba`` gives the opacity where there is one,
            ``impute`` the place of rows with NaN in the two columns.
        X : array-like or DataFrame of shape (n, n_features)
            The rows.
        columns : tuple of two int or str, default=(0, 1)
            The columns to show, by position or by name.
        labels : array-like of int or str of shape (n,), default=None
            The clusters to show; None stands for ``estimator.predict(X)``. For the rows of
            `fit` pass ``estimator.labels_`` to see the point estimate itself: predict takes
            every row as a new one.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **scatter_kw : dict
            Passed to ``Axes.scatter``, such as the size ``s``; the colours are the display's.

        Returns
        -------
        ClusterDisplay
            With its artists as attributes.
        """
        check_estimator(estimator, "predict")
        columns, names = _find_columns(estimator, X, columns)
        points = _take_columns(X, columns)
        imputed = np.isnan(points).any(axis=1)
        if imputed.any():
            points = _take_columns(estimator.impute(X), columns)
        if labels is None:
            labels = estimator.predict(X)
        certainty = None
        if hasattr(estimator, "predict_proba"):
            certainty = np.asarray(estimator.predict_proba(X)).max(axis=1)
        display = cls(points, labels, certainty, imputed=imputed, names=names)
        return display.plot(ax=ax, **scatter_kw)

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
            ax = import_pyplot().subplots(figsize=(6.0, 4.5), layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        values, code = np.unique(labels, return_inverse=True)
        looks = [_look(value, place) for place, value in enumerate(values)]
        self.scatter_ = [
            _scatter(ax, look, points[at], certainty[at], imputed[at], scatter_kw)
            for place, look in enumerate(looks)
            for at in [code == place]
        ]
        self.legend_ = self._add_legend(looks, np.bincount(code), imputed.any())
        if self.names is not None:
            ax.set_xlabel(self.names[0])
            ax.set_ylabel(self.names[1])
        hide_frame(ax)
        return self

    def _check(self):
        points, labels = np.asarray(self.points, dtype=np.float64), np.asarray(self.labels)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"points must have shape (n, 2), got {points.shape}")
        n = len(points)
        certainty = np.ones(n) if self.certainty is None else np.asarray(self.certainty, float)
        imputed = np.zeros(n, bool) if self.imputed is None else np.asarray(self.imputed, bool)
        for name, value in (("labels", labels), ("certainty", certainty), ("imputed", imputed)):
            if value.shape != (n,):
                raise ValueError(f"{name} must have shape ({n},), got {value.shape}")
        return points, labels, certainty, imputed

    def _add_legend(self, looks, sizes, any_imputed):
        largest = np.argsort(-sizes, kind="stable")
        shown = np.sort(largest[:MAX_LEGEND])
        entries = [_entry(*looks[t][:2], f"{looks[t][2]}  ({sizes[t]})") for t in shown]
        rest = largest[MAX_LEGEND:]
        if len(rest):
            entries.append(_entry("none", "none", f"{len(rest)} more  ({sizes[rest].sum()})"))
        if any_imputed:
            entries.append(_entry("none", "o", "imputed"))
        if self.figure_.get_layout_engine() is not None:  # beside the points it hides none
            place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "frameon": False}
        else:  # there it would be cut off
            few = sizes.sum() <= MAX_AVOIDED
            place = {"loc": "best" if few else "upper right", "framealpha": 0.7}
        return self.ax_.legend(handles=entries, handletextpad=0.3, **place)


def _look(label, place):
    """Colour, marker and name of a cluster: the same integer looks the same in every picture."""
    if not isinstance(label, np.integer):
        name = str(label)
    elif label < 0:
        return GREY, "X", "no cluster"
    else:
        place, name = label, f"cluster {label}"
    return COLORS[place % len(COLORS)], MARKERS[place // len(COLORS) % len(MARKERS)], name


def _scatter(ax, look, points, certainty, imputed, scatter_kw):
    from matplotlib.colors import to_rgba_array

    color, marker, name = look
    edge = np.tile(to_rgba_array(color), (len(points), 1))
    edge[:, 3] = FAINTEST + (1.0 - FAINTEST) * np.clip(certainty, 0.0, 1.0)
    face = edge.copy()
    face[:, 3] *= 0.7  # so that dense places show
    face[imputed, 3] = 0.0
    style = {"s": 22, "linewidths": 0.9, "marker": marker, "label": name, **scatter_kw}
    return ax.scatter(points[:, 0], points[:, 1], facecolors=face, edgecolors=edge, **style)


def _entry(color, marker, text):
    from matplotlib.lines import Line2D

    edge = GREY if color == "none" else color
    return Line2D([], [], linestyle="none", marker=marker, mfc=color, mec=edge, label=text)


def _find_columns(estimator, X, columns):
    """Positions and names of the two columns."""
    names = getattr(estimator, "feature_names_in_", names_of(X))
    names = None if names is None else [str(name) for name in names]
    n_features = np.shape(X)[1]
    columns = tuple(columns)
    if len(columns) != 2:
        raise ValueError(f"columns must be two columns of X, got {columns}")
    positions = []
    for column in columns:
        if isinstance(column, str):
            if names is None or column not in names:
                raise ValueError(f"columns must be columns of X, {names}, got {column!r}")
            column = names.index(column)
        if not -n_features <= column < n_features:
            raise ValueError(f"columns must be between 0 and {n_features - 1}, got {column}")
        positions.append(int(column) % n_features)
    return positions, tuple(f"feature {t}" if names is None else names[t] for t in positions)


def _take_columns(X, columns):
    """Two columns of any table as floats, NaN where missing; the others may hold anything."""
    found = columns_of(X)
    return np.column_stack([found[j].numbers(f"column {j}") for j in columns])
