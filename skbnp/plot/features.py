"""What hidden units of a belief network stand for, as images."""

from numbers import Integral

import numpy as np
from scipy.sparse import csr_array

from skbnp.plot._checks import check_most, checked_images
from skbnp.plot._estimator import check_estimator
from skbnp.plot._style import frame_image, import_pyplot, styled

ABSENT = "black"
CELL, TITLE = 1.1, 0.4  # inches of our own figure: an image, and what stands above it


class FeatureDisplay:
    """Weights of hidden units to the pixels, one image for each unit; absent edges are black.

    White is a weight of zero, blue positive and red negative, on one scale for all images. Which
    sign a unit has is nearly arbitrary: its weights and its activations may change signs together.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    features : array-like of shape (n, n_pixels)
        Weights to the visible units, NaN where there is no edge.
    image_shape : tuple of (height, width)
        Shape of a row of X as an image.
    titles : sequence of str of length n, default=None
        What stands above the images; None leaves it empty.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    axes_ : ndarray of matplotlib Axes of shape (n,)
        One for each image.
    images_ : list of AxesImage
        The images.
    colorbar_ : Colorbar or None
        The scale; None where `ax` was given to :meth:`plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp.plot import FeatureDisplay
    >>> features = np.array([[0.5, np.nan, -1.0, 0.2], [np.nan, 2.0, np.nan, 1.0]])
    >>> display = FeatureDisplay(features, image_shape=(2, 2)).plot()
    """

    def __init__(self, features, *, image_shape, titles=None):
        self.features = features
        self.image_shape = image_shape
        self.titles = titles

    @classmethod
    def from_estimator(
        cls,
        estimator,
        *,
        image_shape,
        layer=1,
        max_units=16,
        units=None,
        draw=None,
        ax=None,
        **image_kw,
    ):
        """Show the units of a layer of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``network``.
        image_shape : tuple of (height, width)
            Shape of a row of X as an image.
        layer : int, default=1
            The layer of the units. Of those above the first, weights are multiplied along each
            path down to a pixel and added over all paths, as if the units between did not squash
            what they get; black are the pixels that no path leads to.
        max_units : int, default=16
            Of more units, those with the most edges to their children are shown.
        units : sequence of int, default=None
            Numbers of the units to show instead, as in ``network()["edges"]``, of any hidden layer.
        draw : dict, default=None
            A draw, as ``posterior_[chain, draw]``; None shows the reference draw.
        ax : array-like of Axes, default=None
            As in :meth:`plot`.
        **image_kw : dict
            Passed to ``Axes.imshow``, such as ``vmax``.

        Returns
        -------
        FeatureDisplay
            With its artists as attributes.
        """
        check_estimator(estimator, "network")
        network = estimator.network(draw)
        if "layer" not in network:
            kind = type(estimator).__name__
            raise TypeError(f"estimator must have a network of layers, which {kind} has not")
        n_edges = np.bincount(network["edges"][:, 0], minlength=len(network["layer"]))
        units = _choose(network["layer"], n_edges, layer, max_units, units)
        display = cls(
            _project(network, units, estimator.n_features_in_),
            image_shape=image_shape,
            titles=[f"unit {unit}\n{_in_words(n_edges[unit])}" for unit in units],
        )
        return display.plot(ax=ax, **image_kw)

    @styled
    def plot(self, *, ax=None, **image_kw):
        """Draw the images.

        Parameters
        ----------
        ax : array-like of Axes, default=None
            As many as there are images; None makes a new figure.
        **image_kw : dict
            Passed to ``Axes.imshow``, such as ``vmax``.

        Returns
        -------
        FeatureDisplay
            This object.
        """
        features = self._check()
        own = ax is None
        self.axes_ = self._make_axes(len(features)) if own else self._check_axes(ax, len(features))
        self.figure_ = self.axes_[0].figure
        cmap = import_pyplot().get_cmap(image_kw.pop("cmap", "RdBu")).with_extremes(bad=ABSENT)
        limit = np.nanmax(np.abs(features), initial=0.0) or 1.0
        style = {"vmin": -limit, "vmax": limit, "interpolation": "nearest", **image_kw}
        self.images_ = [
            ax.imshow(feature.reshape(self.image_shape), cmap=cmap, **style)
            for ax, feature in zip(self.axes_, features, strict=True)
        ]
        for i, ax in enumerate(self.axes_):
            frame_image(ax)
            if self.titles is not None:
                ax.set_title(self.titles[i], fontsize="small")
        self.colorbar_ = None
        if own:
            self.colorbar_ = self.figure_.colorbar(
                self.images_[0], ax=self.figure_.axes, label="weight", shrink=0.8
            )
        return self

    def _check(self):
        features = checked_images("features", self.features, self.image_shape)
        if self.titles is not None and len(self.titles) != len(features):
            raise ValueError(f"titles must be {len(features)}, got {len(self.titles)}")
        return features

    def _make_axes(self, n):
        """A grid nearly square, without the places that stay empty."""
        n_columns = int(np.ceil(np.sqrt(n)))
        n_rows = -(-n // n_columns)
        height, width = self.image_shape
        wide, tall = CELL * np.array([width, height]) / max(height, width)
        size = (n_columns * max(wide, 0.8 * CELL) + 1.0, n_rows * (tall + TITLE) + 0.2)
        figure = import_pyplot().figure(figsize=size)
        return np.array([figure.add_subplot(n_rows, n_columns, i + 1) for i in range(n)])

    @staticmethod
    def _check_axes(ax, n):
        axes = np.asarray(ax, dtype=object).ravel()
        if axes.size != n:
            raise ValueError(f"ax must hold {n} axes, got {axes.size}")
        return axes


def _choose(layer_of, n_edges, layer, max_units, units):
    """Numbers of the units to show, those with the most edges first."""
    if units is not None:
        units = np.asarray(units, dtype=np.intp)
        if not units.size or units.min() < 0 or units.max() >= len(layer_of):
            raise ValueError(f"units must be from 0 to {len(layer_of) - 1}, got {units.tolist()}")
        if np.any(layer_of[units] == 0):
            raise ValueError("units must be hidden ones")
        return units
    check_most("max_units", max_units)
    depth = layer_of.max()
    if depth == 0:
        raise ValueError("the network has no hidden units")
    if not isinstance(layer, Integral) or not 1 <= layer <= depth:
        raise ValueError(f"layer must be from 1 to {depth}, the depth of the network, got {layer}")
    members = np.flatnonzero(layer_of == layer)
    return members[np.argsort(-n_edges[members], kind="stable")[:max_units]]


def _in_words(n_edges):
    return "1 edge" if n_edges == 1 else f"{n_edges} edges"


def _project(network, units, n_visible):
    """Weights of the units to the visible ones, summed over paths; NaN where there is none."""
    n_units = len(network["layer"])
    parent, child = network["edges"].T
    weights = csr_array((network["weights"], (parent, child)), shape=(n_units, n_units))
    joins = csr_array((np.ones(len(parent)), (parent, child)), shape=(n_units, n_units))
    weight = np.zeros((len(units), n_units))
    weight[np.arange(len(units)), units] = 1.0
    n_paths, total = weight.copy(), np.zeros((len(units), n_visible))
    found = np.zeros_like(total)
    while n_paths.any():
        weight, n_paths = weight @ weights, n_paths @ joins
        total += weight[:, :n_visible]
        found += n_paths[:, :n_visible]
    return np.where(found > 0, total, np.nan)
