"""Images with holes, filled in, beside the truth."""

import numpy as np
from sklearn.utils import _safe_indexing

from skbnp.plot._checks import check_most, checked_images
from skbnp.plot._estimator import check_estimator, marks_in_fit
from skbnp.plot._style import frame_image, import_pyplot, styled
from skbnp.tables.columns import as_numbers
from skbnp.tables.marks import unmarked

MISSING = "#D55E00"  # no grey, and told apart with any colour vision
CELL = 1.3  # inches of our own figure for an image of several rows
LONE = 3.0  # and for one of a single row
TITLE, HEAD = 0.3, 0.5  # inches above each, and above the first row


class CompletionDisplay:
    """Rows of images: what was given, what was filled in, and the truth where it is known.

    Missing pixels are orange, the others on one scale of greys for all images of the picture.
    Titles give the share of pixels that was missing and, with a truth, the root mean square error
    over those.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    given : array-like of shape (n, n_pixels)
        Images, NaN where missing.
    filled : array-like of shape (n, n_pixels) or dict of str to such arrays
        The same without NaN; a dict compares fillings, by name.
    truth : array-like of shape (n, n_pixels), default=None
        The whole images.
    image_shape : tuple of (height, width)
        Shape of one image.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    axes_ : ndarray of matplotlib Axes of shape (n, n_columns)
        Given, filled (one column for each filling), truth.
    images_ : ndarray of AxesImage of shape (n, n_columns)
        The images.
    errors_ : ndarray of shape (n, n_fillings) or None
        Root mean square error over the missing pixels of each image, NaN where none is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp.plot import CompletionDisplay
    >>> truth = np.arange(12.0).reshape(2, 6)
    >>> given = np.where(truth % 3 == 1, np.nan, truth)
    >>> display = CompletionDisplay(given, truth + 0.5, truth, image_shape=(2, 3)).plot()
    >>> display.errors_
    array([[0.5],
           [0.5]])
    """

    def __init__(self, given, filled, truth=None, *, image_shape):
        self.given = given
        self.filled = filled
        self.truth = truth
        self.image_shape = image_shape

    @classmethod
    def from_estimator(
        cls, estimator, X, *, image_shape, truth=None, max_rows=5, ax=None, **image_kw
    ):
        """Show what a fitted estimator fills in.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``impute``.
        X : array-like of shape (n, n_features)
            Images, NaN where missing.
        image_shape : tuple of (height, width)
            Shape of one image.
        truth : array-like of shape (n, n_features), default=None
            The whole images.
        max_rows : int, default=5
            Of more images with missing pixels, so many evenly spaced ones are shown.
        ax : array-like of Axes, default=None
            As in :meth:`plot`.
        **image_kw : dict
            Passed to ``Axes.imshow``, such as ``vmin``.

        Returns
        -------
        CompletionDisplay
            With its artists as attributes.
        """
        check_estimator(estimator, "impute")
        check_most("max_rows", max_rows)
        table, marks = X, marks_in_fit(estimator)
        X = np.asarray(as_numbers(X, marks), dtype=np.float64)
        X = unmarked(X, marks, getattr(table, "dtype", None))
        incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
        if not incomplete.size:
            raise ValueError("X must have a row with missing entries")
        n_shown = min(max_rows, len(incomplete))
        shown = incomplete[np.linspace(0, len(incomplete) - 1, n_shown).astype(np.intp)]
        if truth is not None:
            truth = np.asarray(truth, dtype=np.float64)
            if truth.shape != X.shape:
                raise ValueError(f"truth must have the shape of X, {X.shape}, got {truth.shape}")
            truth = truth[shown]
        # A frame goes in as a frame, so that its names are compared with those of fit.
        filled = estimator.impute(_safe_indexing(table, shown))
        filled = np.asarray(filled, dtype=np.float64)
        display = cls(X[shown], filled, truth, image_shape=image_shape)
        return display.plot(ax=ax, **image_kw)

    @styled
    def plot(self, *, ax=None, **image_kw):
        """Draw the images.

        Parameters
        ----------
        ax : array-like of Axes, default=None
            As many as there are images, n times the columns; None makes a new figure.
        **image_kw : dict
            Passed to ``Axes.imshow``, such as ``vmin``.

        Returns
        -------
        CompletionDisplay
            This object.
        """
        given, fillings, truth = self._check()
        columns = {"given": given, **fillings} | ({} if truth is None else {"truth": truth})
        self.axes_ = self._arrange_axes(ax, len(given), len(columns))
        self.figure_ = self.axes_[0, 0].figure
        known = given if truth is None else truth
        cmap = import_pyplot().get_cmap(image_kw.pop("cmap", "gray")).with_extremes(bad=MISSING)
        style = {
            "vmin": np.nanmin(known),
            "vmax": np.nanmax(known),
            "interpolation": "nearest",
            **image_kw,
        }
        self.images_ = np.array(
            [
                [
                    ax.imshow(image.reshape(self.image_shape), cmap=cmap, **style)
                    for ax, image in zip(axes, images, strict=True)
                ]
                for axes, *images in zip(self.axes_, *columns.values(), strict=True)
            ]
        )
        missing = np.isnan(given)
        self.errors_ = None
        if truth is not None:
            errors = [_errors(filled, truth, missing) for filled in fillings.values()]
            self.errors_ = np.array(errors).T
        self._add_titles(list(columns), missing.mean(axis=1))
        return self

    def _check(self):
        given = checked_images("given", self.given, self.image_shape)
        fillings = self.filled if isinstance(self.filled, dict) else {"filled": self.filled}
        fillings = {name: np.asarray(value, dtype=float) for name, value in fillings.items()}
        truth = None if self.truth is None else np.asarray(self.truth, dtype=np.float64)
        whole = fillings if truth is None else {**fillings, "truth": truth}
        for name, value in whole.items():
            if value.shape != given.shape:
                raise ValueError(f"{name} must have shape {given.shape}, got {value.shape}")
        return given, fillings, truth

    def _arrange_axes(self, ax, n, n_columns):
        if ax is not None:
            axes = np.asarray(ax, dtype=object)
            if axes.size != n * n_columns:
                raise ValueError(f"ax must hold {n} x {n_columns} axes, got {axes.size}")
            return axes.reshape(n, n_columns)
        height, width = self.image_shape
        cell = LONE if n == 1 else CELL
        wide, tall = cell * np.array([width, height]) / max(height, width)
        size = (n_columns * max(wide, CELL) + 0.2, n * (tall + TITLE) + HEAD)
        return import_pyplot().subplots(n, n_columns, figsize=size, squeeze=False)[1]

    def _add_titles(self, names, share):
        """Names of the columns above the first row, figures above all."""
        for row, axes in enumerate(self.axes_):
            for column, ax in enumerate(axes):
                parts = [names[column]] if row == 0 else []
                if column == 0:
                    parts.append(f"{share[row]:.0%} missing")
                elif self.errors_ is not None and column <= self.errors_.shape[1]:
                    error = self.errors_[row, column - 1]
                    parts.append("" if np.isnan(error) else f"error {error:#.3g}")
                ax.set_title("\n".join(parts), fontsize="medium")
                frame_image(ax)


def _errors(filled, truth, missing):
    """Root mean square over the missing pixels of each image, NaN where none is missing."""
    square = np.where(missing, (filled - truth) ** 2, 0.0).sum(axis=1)
    n_missing = missing.sum(axis=1)
    return np.sqrt(
        np.divide(square, n_missing, out=np.full(len(filled), np.nan), where=n_missing > 0)
    )
