"""What the columns of each cluster have that those of the other rows have not."""

import numpy as np

from skbnp.plot._checks import check_most
from skbnp.plot._estimator import as_measured, check_estimator, labels_in_memory
from skbnp.plot._style import import_pyplot, styled
from skbnp.summaries.profiles import profiles
from skbnp.tables.columns import labels_or_numbers, names_of

# Beyond so many cells numbers would overlap.
_MOST_NUMBERS = 160
# Colours are full from so many standard deviations on.
_FULL = 2.0


class ClusterProfileDisplay:
    """Differences of each cluster from all other rows, column by column, as a heat map.

    A cell is the mean of a column within a cluster less that of all other rows, in standard
    deviations of the column over all rows; for a level of a categorical column it is the same of
    its share. Red is above the others, blue below.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    difference : array-like of shape (n_clusters, n_traits)
        NaN where nothing is known.
    names : sequence of str of length n_traits, default=None
        Of columns, or of levels such as "colour = red".
    sizes : array-like of int of shape (n_clusters,), default=None
        Rows of each cluster.
    noun : str, default="cluster"
        What the rows of the picture are called.
    max_columns : int, default=20
        Of more traits those are shown that differ most in some cluster, in their order.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    ax_ : matplotlib Axes
        The axes.
    image_ : AxesImage
        The heat map, a row for each cluster.
    colorbar_ : Colorbar
        Its scale.
    shown_ : ndarray of int
        Places of the traits that are shown.
    texts_ : list of Text
        The differences as numbers; empty where they find no room.

    Examples
    --------
    >>> from skbnp.plot import ClusterProfileDisplay
    >>> display = ClusterProfileDisplay([[1.2, 0.1], [-0.6, 0.0]], ["height", "age"]).plot()
    """

    def __init__(self, difference, names=None, sizes=None, *, noun="cluster", max_columns=20):
        self.difference = difference
        self.names = names
        self.sizes = sizes
        self.noun = noun
        self.max_columns = max_columns

    @classmethod
    def from_estimator(cls, estimator, X=None, *, max_columns=20, ax=None, **image_kw):
        """Show the clusters of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``labels_``, ``n_features_in_`` and ``posterior_``, and, for an `X`, with
            ``predict``.
        X : array-like or frame of shape (n, n_features), default=None
            New rows, which are put into clusters by ``predict``. None shows the training rows by
            ``labels_``, of more than 100,000 those that are in memory.
        max_columns : int, default=20
            As of the class.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **image_kw : dict
            Passed to ``Axes.imshow``, such as ``cmap``.

        Returns
        -------
        ClusterProfileDisplay
            With its artists as attributes.

        Raises
        ------
        ValueError
            If no row is of a cluster, as may be with `DeepScaleModel`.
        """
        check_estimator(
            estimator, "labels_" if labels_in_memory(estimator) is None else "posterior_"
        )
        levels = getattr(estimator, "levels_", None) or [None] * estimator.n_features_in_
        names = getattr(estimator, "feature_names_in_", None)
        labels = labels_in_memory(estimator) if X is None else estimator.predict(X)
        rows = as_measured(estimator, X)
        names = names_of(X) if names is None and X is not None else names
        names = labels_or_numbers(names, len(levels))
        found = profiles(rows, labels, [None if one is None else len(one) for one in levels])
        traits = [
            str(names[j]) if code < 0 else f"{names[j]} = {levels[j][code]}"
            for j, code in zip(found.column, found.level, strict=True)
        ]
        if not len(found.difference):
            raise ValueError("estimator must have found a cluster, got rows of none alone")
        sizes = np.bincount(labels[labels >= 0])
        display = cls(found.difference, traits, sizes, max_columns=max_columns)
        return display.plot(ax=ax, **image_kw)

    @styled
    def plot(self, *, ax=None, **image_kw):
        """Draw the heat map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **image_kw : dict
            Passed to ``Axes.imshow``, such as ``cmap``.

        Returns
        -------
        ClusterProfileDisplay
            This object.
        """
        difference, names, sizes = self._check()
        strongest = np.max(np.abs(np.nan_to_num(difference)), axis=0, initial=0.0)
        self.shown_ = np.sort(np.argsort(-strongest, kind="stable")[: self.max_columns])
        values = difference[:, self.shown_]
        n_clusters, n_shown = values.shape
        if ax is None:
            size = figure_size(n_clusters, n_shown)
            ax = import_pyplot().subplots(figsize=size, layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        style = {"cmap": "RdBu_r", "vmin": -_FULL, "vmax": _FULL, "aspect": "auto", **image_kw}
        self.image_ = ax.imshow(np.ma.masked_invalid(values), **style)
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, shrink=0.9, extend="both")
        self.colorbar_.set_label("standard deviations")
        self.colorbar_.outline.set_visible(False)
        self.texts_ = _add_numbers(ax, values) if values.size <= _MOST_NUMBERS else []
        ax.set_xticks(range(n_shown), [names[j] for j in self.shown_], rotation=45, ha="right")
        rows = [f"{self.noun} {k}" for k in range(n_clusters)]
        if sizes is not None:
            rows = [f"{row}  ({size})" for row, size in zip(rows, sizes, strict=True)]
        ax.set_yticks(range(n_clusters), rows)
        if n_shown < difference.shape[1]:
            ax.set_xlabel(f"{n_shown} of {difference.shape[1]} columns and levels")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        return self

    def _check(self):
        difference = np.asarray(self.difference, dtype=np.float64)
        if difference.ndim != 2 or 0 in difference.shape:
            raise ValueError(
                f"difference must have shape (n_clusters, n_traits), got {difference.shape}"
            )
        n_clusters, n_traits = difference.shape
        names = labels_or_numbers(self.names, n_traits)
        if len(names) != n_traits:
            raise ValueError(f"names must have {n_traits} entries, got {len(names)}")
        sizes = None if self.sizes is None else np.asarray(self.sizes)
        if sizes is not None and sizes.shape != (n_clusters,):
            raise ValueError(f"sizes must have shape ({n_clusters},), got {sizes.shape}")
        check_most("max_columns", self.max_columns)
        return difference, names, sizes


def figure_size(n_clusters, n_traits):
    """Inches of a figure in which so many cells and the names beside them find room.

    Parameters
    ----------
    n_clusters, n_traits : int

    Returns
    -------
    size : tuple of two float
    """
    return 3.0 + 0.5 * n_traits, max(3.2, 2.2 + 0.35 * n_clusters)


def _add_numbers(ax, values):
    """The numbers in their cells, white where the colour is dark."""
    return [
        ax.text(
            j, k, f"{value:+.1f}", ha="center", va="center", fontsize="small",
            color="white" if abs(value) > 0.75 * _FULL else "black",
        )
        for (k, j), value in np.ndenumerate(values)
        if np.isfinite(value)
    ]  # fmt: skip
