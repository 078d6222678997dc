"""Convolutional networks for tests: random ones, and gradients in double precision."""

import numpy as np

from skbnp.icp_network.convolution._layout import OUTPUT
from skbnp.icp_network.convolution._model import Prior, forward, pooled, pooling


def small_prior(image_shape=(8, 8, 1), n_classes=3, **options):
    """A prior of maps of few channels."""
    return Prior(image_shape, n_classes, **({"n_bins": 3, "n_channels": 2} | options))


def random_graph(rng, n_hidden, share=0.6):
    """Orders and edges of a random graph, some of whose nodes may be dead."""
    order = np.concatenate([[0.0, 1.0], np.sort(rng.uniform(size=n_hidden))])
    joined = [
        (parent, child)
        for parent in range(n_hidden + 2)
        for child in range(n_hidden + 2)
        if order[parent] > order[child] and rng.uniform() < share
    ]
    return {"order": order, "edges": np.array(joined, dtype=np.intp).reshape(-1, 2)}


def random_network(rng, prior, n_hidden):
    """Such a graph with weights from the prior."""
    graph = random_graph(rng, n_hidden)
    layout = prior.layout(**graph)
    z = rng.standard_normal(layout.n_weights)
    return graph | {"weights": (z * layout.deviations).astype(np.float32)}


def random_images(rng, prior, n):
    """Images (n, channels, height, width), the same as kernels take them, and labels."""
    height, width, channels = prior.image_shape
    images = rng.normal(size=(n, channels, height, width)).astype(np.float32)
    return images, images.reshape(n, -1), rng.integers(prior.n_classes, size=n).astype(np.intp)


def gradient(state, images, labels, prior):
    """Of the log likelihood in all weights, by the chain rule, map by map."""
    layout = prior.layout(state["order"], state["edges"])
    tensors = layout.split(np.asarray(state["weights"], dtype=np.float64))
    maps, logits = forward(state, images, prior)
    out = {key: np.zeros_like(tensor) for key, tensor in tensors.items()}
    slope = -np.exp(logits - logits.max(axis=1, keepdims=True))
    slope /= -slope.sum(axis=1, keepdims=True)
    slope[np.arange(len(labels)), labels] += 1.0
    out["bias", OUTPUT] += slope.sum(axis=0)
    of_maps = [np.zeros_like(one) for one in maps]
    for parent, height, width in layout.readouts:
        key = layout.nodes[parent], OUTPUT
        out[key] += np.einsum("nchw,ny->ychw", pooled(maps[parent], height, width), slope)
        back = np.einsum("ny,ychw->nchw", slope, tensors[key])
        of_maps[parent] += spread(back, *layout.shapes[parent][1:])
    for i in range(len(layout.nodes) - 1, 0, -1):
        node, (_, height, width) = layout.nodes[i], layout.shapes[i]
        inner = of_maps[i] * (maps[i] > 0.0)
        out["bias", node] += inner.sum(axis=(0, 2, 3))
        for parent, child in layout.edges:
            if child != i:
                continue
            key = layout.nodes[parent], node
            seen = windows(pooled(maps[parent], height, width))
            out[key] += np.einsum("nchwij,ndhw->dcij", seen, inner)
            turned = tensors[key][..., ::-1, ::-1]
            back = np.einsum("ndhwij,dcij->nchw", windows(inner), turned)
            of_maps[parent] += spread(back, *layout.shapes[parent][1:])
    return np.concatenate([out[key].ravel() for key, _, _ in layout.tensors])


def windows(maps):
    """(n, c, h, w, 3, 3): what stands under the kernel at each pixel."""
    padded = np.pad(maps, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))


def spread(slopes, height, width):
    """The transpose of `pooled`."""
    tall, wide = pooling(height, slopes.shape[2]), pooling(width, slopes.shape[3])
    return np.einsum("ih,ncij,jw->nchw", tall, slopes, wide)
