"""The prior of convolutional networks, and the joint density in plain NumPy.

A state is a dict of arrays. Node 0 is the output, node 1 the image, the H hidden ones follow, in
ascending order.

=================  ========  ==============================================================
order              (H + 2,)  theta, in [0, 1]
edges              (E, 2)    [parent, child], sorted by parent, then child
weights            (W,)      all weights of live nodes and edges, as `Layout` has them
=================  ========  ==============================================================
"""

from dataclasses import dataclass

import numpy as np

from skbnp.icp_network._model import Prior as GraphPrior
from skbnp.icp_network._model import log_structure
from skbnp.icp_network.convolution._layout import OUTPUT, Layout
from skbnp.icp_network.convolution._network import Network
from skbnp.numerics.states import checked_array
from skbnp.processes import icp

# Draws of a structure from the prior before one within max_units is given up.
_MOST_STRUCTURES = 1000


@dataclass(frozen=True)
class Prior:
    """What is known of a network before the labels of images of one shape.

    Attributes
    ----------
    image_shape : tuple of int
        Height, width and channels.
    n_classes : int
    n_bins : int
        Orders are cut into so many; each next one has maps of half the side and twice the channels.
    n_channels : int
        Of maps of the first bin.
    readout : int
        Maps of larger sides are pooled to this one before the output reads them.
    weight_variance, readout_variance : float
        Of a pixel's sum over a parent's channels and kernel, and of a logit's over a map, for maps
        of ones.
    mass, concentration, observed_popularity : float
        Of the Indian chefs process.
    max_units : int
        Hidden nodes, at most.
    """

    image_shape: tuple
    n_classes: int
    n_bins: int = 3
    n_channels: int = 4
    readout: int = 14
    weight_variance: float = 16.0
    readout_variance: float = 50.0
    mass: float = 2.0
    concentration: float = 1.0
    observed_popularity: float = 2.0
    max_units: int = 40

    @classmethod
    def from_data(cls, data):
        """The prior of a file."""
        return cls(**{**data, "image_shape": tuple(data["image_shape"])})

    # What a `Graph` asks for: the output has the order 0, the image 1.
    n_observed = 2
    orders = (0.0, 1.0)

    @property
    def hyper(self):
        """The hyperparameters of the process, as a graph takes them."""
        return np.array([self.mass, self.concentration, self.observed_popularity], dtype=float)

    @property
    def n_pixels(self):
        """Numbers of one image."""
        return int(np.prod(self.image_shape))

    def bin_of(self, order):
        """The bin of a hidden node: floor(n_bins (1 - theta)), and n_bins - 1 at 0."""
        return min(int(self.n_bins * (1.0 - order)), self.n_bins - 1)

    def map_shape(self, order):
        """Channels, height and width of the map of a hidden node."""
        b = self.bin_of(order)
        height, width, _ = self.image_shape
        return self.n_channels * 2**b, -(-height // 2**b), -(-width // 2**b)

    def layout(self, order, edges):
        """The `Layout` of a graph."""
        return Layout(self, order, edges)


def check_prior(prior):
    """Raise a ValueError unless a prior that comes from a file has a meaning."""
    shape = prior.image_shape
    whole = (*shape, prior.n_classes, prior.n_bins, prior.n_channels, prior.readout)
    if len(shape) != 3 or any(type(n) is not int or not 1 <= n <= 10**6 for n in whole):
        raise ValueError("sizes of the prior must be integers >= 1")
    if prior.n_bins > 20 or type(prior.max_units) is not int or not 0 <= prior.max_units <= 10_000:
        raise ValueError("n_bins and max_units of the prior must be those of an estimator")
    numbers = (prior.weight_variance, prior.readout_variance, *prior.hyper)
    if not all(1e-6 <= number <= 1e6 for number in numbers):
        raise ValueError("hyperparameters of the prior must be from 1e-6 to 1e6")


# -- the law ----------------------------------------------------------------------------------


def log_joint(state, images, labels, prior, terms=False):
    """log p(state, labels | images): of structure, weights and labels.

    Parameters
    ----------
    state : dict
        As this module's docstring has it.
    images : ndarray of shape (n_samples, channels, height, width)
        Centred and scaled.
    labels : ndarray of int of shape (n_samples,)
    prior : Prior
    terms : bool, default=False
        Return a dict of the terms instead of their sum.
    """
    layout = prior.layout(state["order"], state["edges"])
    z = np.asarray(state["weights"], dtype=np.float64) / layout.deviations
    parts = {
        "structure": log_graph(state, prior),
        "weights": float(np.sum(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.log(layout.deviations))),
        "labels": log_likelihood(state, images, labels, prior),
    }
    return parts if terms else sum(parts.values())


def log_graph(state, prior):
    """Log density of edges and orders."""
    of_process = GraphPrior(roles=("latent", "input"), orders=(0.0, 1.0))
    return log_structure({**state, "hyper": prior.hyper}, of_process)


def log_likelihood(state, images, labels, prior):
    """log p(labels | images, network)."""
    logits = logits_of(state, images, prior)
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_sums = np.log(np.exp(shifted).sum(axis=1))
    return float(np.sum(shifted[np.arange(len(labels)), labels] - log_sums))


def logits_of(state, images, prior):
    """Logits (n_samples, n_classes)."""
    return forward(state, images, prior)[1]


def forward(state, images, prior):
    """Maps of the live nodes and logits: equations (I10.1) and (I10.2), map by map."""
    layout = prior.layout(state["order"], state["edges"])
    tensors = layout.split(np.asarray(state["weights"], dtype=np.float64))
    maps = [np.asarray(images, dtype=np.float64)]
    for i, node in enumerate(layout.nodes[1:], start=1):
        channels, height, width = layout.shapes[i]
        total = np.zeros((len(images), channels, height, width))
        total += tensors["bias", node][:, np.newaxis, np.newaxis]
        for parent, child in layout.edges:
            if child == i:
                seen = pooled(maps[parent], height, width)
                total += convolved(seen, tensors[layout.nodes[parent], node])
        maps.append(np.maximum(total, 0.0))
    logits = np.tile(tensors["bias", OUTPUT], (len(images), 1))
    for parent, height, width in layout.readouts:
        seen = pooled(maps[parent], height, width)
        logits += np.einsum("nchw,ychw->ny", seen, tensors[layout.nodes[parent], OUTPUT])
    return maps, logits


def convolved(maps, kernel):
    """Maps (n, c, h, w) under a kernel (d, c, 3, 3), padded by one pixel: (n, d, h, w)."""
    _, _, height, width = maps.shape
    padded = np.pad(maps, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return sum(
        np.einsum("nchw,dc->ndhw", padded[:, :, i : i + height, j : j + width], kernel[:, :, i, j])
        for i in range(3)
        for j in range(3)
    )


def pooled(maps, height, width):
    """Maps (n, c, H, W) at another size, by adaptive average pooling."""
    tall, wide = pooling(maps.shape[2], height), pooling(maps.shape[3], width)
    return np.einsum("ih,nchw,jw->ncij", tall, maps, wide)


def pooling(large, small):
    """The matrix (small, large) that takes means of pixels."""
    out = np.zeros((small, large))
    for i in range(small):
        first, last = i * large // small, -(-(i + 1) * large // small)
        out[i, first:last] = 1.0 / (last - first)
    return out


# -- states -----------------------------------------------------------------------------------


def draw_graph(prior, rng):
    """Orders and edges from the prior: a dict."""
    observed = np.array(prior.orders)
    for _ in range(_MOST_STRUCTURES):
        try:
            order, Z = icp.sample(
                observed,
                mass=prior.mass,
                concentration=prior.concentration,
                observed_popularity=prior.observed_popularity,
                max_hidden=prior.max_units,
                random_state=rng,
            )
        except icp.TooManyNodesError:
            continue
        child, parent = np.nonzero(Z)
        return graph_of(order, np.column_stack([parent, child]))
    raise ValueError(
        f"max_units must allow draws from the prior: none of {_MOST_STRUCTURES} had at most "
        f"{prior.max_units} hidden nodes"
    )


def graph_of(order, edges):
    """Orders and edges with the hidden nodes in ascending order."""
    order, edges = np.asarray(order, dtype=np.float64), np.asarray(edges).reshape(-1, 2)
    rank = np.argsort(order[2:], kind="stable") + 2
    number = np.arange(len(order))
    number[rank] = np.arange(2, len(order))
    edges = number[edges]
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return {
        "order": np.concatenate([order[:2], order[rank]]),
        "edges": np.ascontiguousarray(edges, dtype=np.int32),
    }


def check_graph(order, edges, prior):
    """Raise a ValueError unless these are orders and edges of a graph of this prior."""
    n_nodes = len(order)
    if not 2 <= n_nodes <= prior.max_units + 2 or tuple(order[:2]) != prior.orders:
        raise ValueError("order must have the output at 0, the image at 1, and the hidden nodes")
    if not ((order >= 0.0) & (order <= 1.0)).all() or (np.diff(order[2:]) < 0.0).any():
        raise ValueError("orders of hidden nodes must ascend from 0 to 1")
    if ((edges < 0) | (edges >= n_nodes)).any():
        raise ValueError("edges must be of nodes that there are")
    if (order[edges[:, 0]] <= order[edges[:, 1]]).any():
        raise ValueError("edges must lead to nodes of lower order")
    if len(np.unique(edges, axis=0)) != len(edges):
        raise ValueError("edges must be there once")
    if not np.isin(np.arange(2, n_nodes), edges[:, 0]).all():
        raise ValueError("each hidden node must have a child")


def checked_state(state, prior):
    """The arrays of a draw, checked: a ValueError unless it is a network of this prior."""
    order = checked_array(state, "order", (-1,), "f", np.float64)
    edges = checked_array(state, "edges", (-1, 2), "iu", np.int32)
    check_graph(order, edges, prior)
    n_weights = prior.layout(order, edges).n_weights
    weights = checked_array(state, "weights", (n_weights,), "f", np.float32)
    if not np.isfinite(weights).all():
        raise ValueError("weights must be finite")
    return {"order": order, "edges": edges, "weights": weights}


def network_of(draw, prior):
    """The compiled network of a draw, and its weights."""
    layout = prior.layout(draw["order"], draw["edges"])
    return Network(layout), np.ascontiguousarray(draw["weights"], dtype=np.float32)
