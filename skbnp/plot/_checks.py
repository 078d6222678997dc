"""What displays ask of the arrays and numbers that they are given."""

from numbers import Integral

import numpy as np


def check_most(name, value):
    """Refuse what is no number of things to show at most."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")


def checked_images(name, images, image_shape):
    """Images as an array (n, n_pixels).

    Parameters
    ----------
    name : str
        The parameter.
    images : array-like
    image_shape : tuple of int
    """
    images = np.asarray(images, dtype=np.float64)
    n_pixels = int(np.prod(image_shape))
    if images.ndim != 2 or not len(images) or images.shape[1] != n_pixels:
        raise ValueError(
            f"{name} must have shape (n, {n_pixels}), n >= 1, for images of shape "
            f"{tuple(image_shape)}, got {images.shape}"
        )
    return images


def checked_graph(place, edges, weights, *, nodes):
    """A graph whose parents are above their children, as arrays.

    Parameters
    ----------
    place, weights : tuple of (str, array-like)
        How high each node is, and a number for each edge, with the parameters' names.
    edges : array-like of int of shape (n_edges, 2)
        Parents and children.
    nodes : str
        What nodes are called.

    Returns
    -------
    place : ndarray of shape (n_nodes,)
    edges : ndarray of int of shape (n_edges, 2)
    weights : ndarray of shape (n_edges,)
    """
    name_of_place, place = place[0], np.asarray(place[1], dtype=np.float64)
    name_of_weights, weights = weights[0], np.asarray(weights[1], dtype=np.float64)
    edges = np.asarray(edges, dtype=np.intp).reshape(-1, 2)
    if weights.shape != (len(edges),):
        raise ValueError(f"{name_of_weights} must have shape ({len(edges)},), got {weights.shape}")
    if len(edges) and not 0 <= edges.min() <= edges.max() < len(place):
        raise ValueError(
            f"edges must be of {nodes} 0 to {len(place) - 1}, got {edges.min()} to {edges.max()}"
        )
    if np.any(place[edges[:, 0]] <= place[edges[:, 1]]):
        raise ValueError(
            f"{name_of_place} must be larger for the parent than for the child of each edge"
        )
    return place, edges, weights
