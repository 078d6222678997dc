"""Images with labels, and which of them architectures are judged by."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from scipy.special import log_softmax

from skbnp.icp_network.convolution._model import Prior, network_of
from skbnp.units import Units

# One image in so many is kept apart.
_SHARE = 4


@dataclass(frozen=True)
class LabelledImages:
    """Images (n, n_pixels), channels first, in single precision, and their labels (n,).

    ``learnt`` and ``kept`` are the rows that weights are fitted to, and those that are kept apart
    to judge architectures by.
    """

    images: np.ndarray
    labels: np.ndarray
    learnt: np.ndarray
    kept: np.ndarray


def kept_apart(labels, rng):
    """Rows to judge by: a quarter of each class, of no class all; sorted.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
    rng : numpy.random.Generator
    """
    chosen, n_seen, n_chosen = [], 0, 0
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        n_seen += len(rows)
        # Small classes share a quarter.
        n = min(n_seen // _SHARE - n_chosen, len(rows) - 1)
        chosen.append(rows[:n])
        n_chosen += n
    return np.sort(np.concatenate(chosen))


def folds_of(labels, n_folds, rng):
    """The fold of each row, from 0 to n_folds - 1: classes are spread evenly over all.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
    n_folds : int
    rng : numpy.random.Generator

    Returns
    -------
    fold : ndarray of int of shape (n_samples,)
    """
    rows = rng.permutation(len(labels))
    rows = rows[np.argsort(labels[rows], kind="stable")]
    fold = np.empty(len(labels), dtype=np.intp)
    fold[rows] = np.arange(len(labels)) % n_folds
    return fold


def shared_out(n, most):
    """Divide n among parts as evenly as can be, none of which gets more than it can take.

    Parameters
    ----------
    n : int
        At most the sum of ``most``.
    most : iterable of int

    Returns
    -------
    counts : list of int
    """
    counts = [0] * len(most)
    for _ in range(n):
        counts[min((c, i) for i, c in enumerate(counts) if c < most[i])[1]] += 1
    return counts


def channels_first(X, image_shape):
    """Rows of pixels, channels last, as the kernels take them: (n, n_pixels)."""
    images = np.asarray(X, dtype=np.float32).reshape(len(X), *image_shape)
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(len(X), -1)


@dataclass(frozen=True)
class TrainingImages:
    """Training images in their own units (n, n_features) and as kernels take them, and labels."""

    table: np.ndarray
    images: np.ndarray
    labels: np.ndarray
    prior: Prior

    def __call__(self, draw):
        """Log density of each label given its image and a network."""
        return log_densities(draw, self.prior, self.images, self.labels)

    def observed_data(self):
        """The images in their own units."""
        return self.table


class WatchedLabels:
    """Log density of some training labels in the present state of a sampler."""

    def __init__(self, training, rows):
        self._prior, self._images = training.prior, training.images[rows]
        self._labels = training.labels[rows]

    @property
    def n_rows(self):
        """How many they are."""
        return len(self._labels)

    def __call__(self, sampler):
        """Their log densities, shape (n_rows,)."""
        return log_densities(sampler.draw(), self._prior, self._images, self._labels)


def log_densities(draw, prior, images, labels):
    """Log probability of each label given its image, (n,)."""
    return log_probabilities(draw, prior, images)[np.arange(len(labels)), labels]


def log_probabilities(draw, prior, images):
    """Of the classes given images, (n, n_classes)."""
    network, weights = network_of(draw, prior)
    logits = network.logits(np.ascontiguousarray(images), weights).astype(np.float64)
    return log_softmax(logits, axis=1)


def sizes_of(name, shape):
    """Height, width and channels, of two numbers or three."""
    try:
        sizes = tuple(shape)
        whole = all(isinstance(n, Integral) and not isinstance(n, bool) for n in sizes)
    except TypeError:
        sizes, whole = (), False
    if len(sizes) not in (2, 3) or not whole or min(sizes) < 1:
        raise ValueError(
            f"{name} must be (height, width) or (height, width, channels), integers >= 1, got "
            f"{shape!r}"
        )
    return (*map(int, sizes), 1)[:3]


def units_of_pixels(X):
    """One mean and one deviation over all pixels."""
    with np.errstate(over="ignore", invalid="ignore"):
        center = float(X.mean())
        scale = float(X.std())
    if not np.isfinite(scale) or not np.isfinite(center):
        raise ValueError("X must hold pixels whose squares floats hold")
    if scale <= 1e-12 * abs(center) or scale == 0.0:
        raise ValueError(f"X must have pixels that vary, got {center:g} in all of them")
    d = X.shape[1]
    return Units("gaussian", np.arange(d), np.zeros(d), np.full(d, center), np.full(d, scale))
