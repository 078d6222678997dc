"""Time of a gradient of a convolutional network: the library's kernel, and torch where it is there.

torch is no requirement: without it its column is empty. Both compute on one thread.
"""

import time
from functools import partial

import numpy as np

from skbnp.icp_network.convolution._layout import IMAGE, OUTPUT
from skbnp.icp_network.convolution._model import Prior
from skbnp.icp_network.convolution._network import Network

# By words: side of the images, bins of the hidden nodes 2, 3, ..., edges [parent, child].
_FOUR = [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 5), (4, 5), (2, OUTPUT), (5, OUTPUT)]
_CHAIN = [(1, 2), (2, 3), (3, 4), (4, 5), (5, OUTPUT), (IMAGE, OUTPUT)]
CASES = {
    "8 x 8, bins 0, 1, 1, 2, nine edges": (8, (0, 1, 1, 2), _FOUR),
    "28 x 28, bins 0, 1, 1, 2, nine edges": (28, (0, 1, 1, 2), _FOUR),
    "28 x 28, bins 0, 1, 2, 3 in a chain, six edges": (28, (0, 1, 2, 3), _CHAIN),
}
N_CHANNELS, N_CLASSES, N_BINS = 4, 10, 4


def gradients(quick):
    """Rows of the table: case, images, ms of ours, ms of torch or NaN."""
    rows = []
    for words, (side, bins, edges) in CASES.items():
        prior = Prior((side, side, 1), N_CLASSES, n_bins=N_BINS, n_channels=N_CHANNELS)
        order = [0.0, 1.0, *(1.0 - (b + 0.5 + 0.1 * i) / N_BINS for i, b in enumerate(bins))]
        layout = prior.layout(np.array(order), np.array(edges))
        for n in (20,) if quick else (100, 500):
            rng = np.random.default_rng(0)
            images = rng.normal(size=(n, side * side)).astype(np.float32)
            labels = rng.integers(N_CLASSES, size=n).astype(np.intp)
            weights = (rng.standard_normal(layout.n_weights) * layout.deviations).astype(np.float32)
            ours = partial(Network(layout).gradient, images, labels, weights)
            taken = milliseconds(ours, quick)
            theirs, of_torch = torch_gradient(layout, images, labels, weights), np.nan
            if theirs is not None:
                of_torch, found = milliseconds(theirs, quick), ours()[1]
                np.testing.assert_allclose(theirs(), found, atol=1e-4 * np.abs(found).max())
            rows.append((words, n, taken, of_torch))
    return rows


def milliseconds(ask, quick):
    """CPU time of a call: the least of some."""
    ask()
    found = []
    for _ in range(3 if quick else 40):
        start = time.process_time()
        ask()
        found.append(time.process_time() - start)
    return 1000.0 * min(found)


def torch_gradient(layout, images, labels, weights):
    """A function that gives the same gradient by torch, or None without torch."""
    try:
        import torch
    except ImportError:
        return None
    from torch.nn import functional

    torch.set_num_threads(1)
    channels, height, width = layout.shapes[0]
    x = torch.from_numpy(images).reshape(len(images), channels, height, width)
    y = torch.from_numpy(labels)
    tensors = {
        key: torch.from_numpy(np.array(tensor)).requires_grad_()
        for key, tensor in layout.split(weights).items()
    }

    def seen(map_, side):
        same = tuple(map_.shape[2:]) == side
        return map_ if same else functional.adaptive_avg_pool2d(map_, side)

    def slope():
        for tensor in tensors.values():
            tensor.grad = None
        maps = [x]
        for i, node in enumerate(layout.nodes[1:], start=1):
            bias, total = tensors["bias", node], None
            for parent, child in layout.edges:
                if child == i:
                    kernel = tensors[layout.nodes[parent], node]
                    part = functional.conv2d(
                        seen(maps[parent], layout.shapes[i][1:]), kernel,
                        bias if total is None else None, padding=1,
                    )  # fmt: skip
                    total = part if total is None else total + part
            maps.append(functional.relu(total))
        logits = tensors["bias", OUTPUT]
        for parent, h, w in layout.readouts:
            read = seen(maps[parent], (h, w)).flatten(1)
            logits = logits + read @ tensors[layout.nodes[parent], OUTPUT].flatten(1).T
        (-functional.cross_entropy(logits, y, reduction="sum")).backward()
        return np.concatenate([tensors[key].grad.numpy().ravel() for key, _, _ in layout.tensors])

    return slope


def print_gradients(rows):
    print("\n| network | images | ms | ms, torch | ratio |\n|---|---|---|---|---|")
    for words, n, ours, theirs in rows:
        other = "" if np.isnan(theirs) else f"{theirs:.1f}"
        ratio = "" if np.isnan(theirs) else f"{ours / theirs:.2f}"
        print(f"| {words} | {n} | {ours:.1f} | {other} | {ratio} |")
    print(flush=True)
