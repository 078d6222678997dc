"""Which maps and tensors an architecture has: their shapes, their places, their prior deviations.

Node 0 is the output Y of order 0, node 1 the image X of order 1, all others are hidden. A node is
live if a path leads to it from X: only live nodes have maps, only edges between live nodes tensors.
"""

import numpy as np

OUTPUT, IMAGE = 0, 1


class Layout:
    """Nodes, edges and places of the weights of one graph under a `Prior`.

    Attributes
    ----------
    nodes : list of int
        Live nodes but Y, parents first: X, then hidden ones from the highest order down.
    shapes : list of tuple
        Channels, height and width of their maps.
    n_classes : int
    edges : list of tuple
        Live edges between these, as places in ``nodes``: (parent, child).
    readouts : list of tuple
        (place of the parent, height, width) of the live edges into Y.
    tensors : list of tuple
        (key, shape, prior standard deviation); a key is ("bias", node) or (parent, child), of
        numbers of nodes. The weights are these one after the other.
    """

    def __init__(self, prior, order, edges):
        edges = np.asarray(edges, dtype=np.intp).reshape(-1, 2)
        self.nodes, self.n_classes = live_nodes(order, edges), prior.n_classes
        place = {node: i for i, node in enumerate(self.nodes)}
        height, width, channels = prior.image_shape
        self.shapes = [(channels, height, width)]
        self.shapes += [prior.map_shape(order[node]) for node in self.nodes[1:]]
        found = sorted(
            (place[parent], place[child]) for parent, child in edges.tolist()
            if parent in place and child in place
        )  # fmt: skip
        # Children that see a parent at the same side stand together.
        self.edges = sorted(found, key=lambda edge: (edge[0], *self._negative_side(edge[1])))
        readers = sorted(
            place[parent] for parent, child in edges.tolist()
            if parent in place and child == OUTPUT
        )  # fmt: skip
        most, n_classes = prior.readout, prior.n_classes
        self.readouts = [
            (i, min(self.shapes[i][1], most), min(self.shapes[i][2], most)) for i in readers
        ]
        self.tensors = []
        for i, node in enumerate(self.nodes[1:], start=1):
            self.tensors.append((("bias", node), (self.shapes[i][0],), 1.0))
        for parent, child in self.edges:
            c, key = self.shapes[parent][0], (self.nodes[parent], self.nodes[child])
            deviation = np.sqrt(prior.weight_variance / (9 * c))
            self.tensors.append((key, (self.shapes[child][0], c, 3, 3), deviation))
        for parent, h, w in self.readouts:
            c, key = self.shapes[parent][0], (self.nodes[parent], OUTPUT)
            deviation = np.sqrt(prior.readout_variance / (c * h * w))
            self.tensors.append((key, (n_classes, c, h, w), deviation))
        self.tensors.append((("bias", OUTPUT), (n_classes,), 1.0))

    def _negative_side(self, place):
        _, height, width = self.shapes[place]
        return -height, -width, place

    @property
    def sizes(self):
        """Number of weights of each tensor."""
        return np.array([int(np.prod(shape)) for _, shape, _ in self.tensors], dtype=np.intp)

    @property
    def n_weights(self):
        """Number of all weights."""
        return int(self.sizes.sum())

    @property
    def deviations(self):
        """Prior standard deviation of each weight, (n_weights,)."""
        return np.repeat([deviation for _, _, deviation in self.tensors], self.sizes)

    @property
    def starts(self):
        """Where each tensor begins, by its key."""
        first = np.concatenate([[0], np.cumsum(self.sizes)])[:-1]
        return {key: int(at) for (key, _, _), at in zip(self.tensors, first, strict=True)}

    @property
    def n_live(self):
        """Number of live hidden nodes."""
        return len(self.nodes) - 1

    @property
    def n_live_edges(self):
        """Number of live edges, those into the output among them."""
        return len(self.edges) + len(self.readouts)

    @property
    def depth(self):
        """Edges on the longest path from X to Y, 0 without any."""
        below = self._lengths()
        return max((below[i] + 1 for i, _, _ in self.readouts), default=0)

    @property
    def width(self):
        """Most hidden nodes that are equally far from X, by longest paths."""
        return int(np.bincount(self._lengths())[1:].max(initial=0))

    def _lengths(self):
        """Edges of the longest path from X to each of ``nodes``."""
        length = [0] * len(self.nodes)
        for parent, child in self.edges:
            length[child] = max(length[child], length[parent] + 1)
        return length

    def multiplications(self):
        """Of a forward pass of one image."""
        total = 0
        for parent, child in self.edges:
            c, height, width = self.shapes[child]
            total += 9 * self.shapes[parent][0] * c * height * width
        for parent, height, width in self.readouts:
            total += self.n_classes * self.shapes[parent][0] * height * width
        return total

    def split(self, weights):
        """Key -> tensor, views of the weights (n_weights,)."""
        parts = np.split(np.asarray(weights), np.cumsum(self.sizes)[:-1])
        return {
            key: part.reshape(shape)
            for (key, shape, _), part in zip(self.tensors, parts, strict=True)
        }


def live_nodes(order, edges):
    """X and the hidden nodes that a path leads to from it, from the highest order down."""
    order = np.asarray(order)
    parents = {node: [] for node in range(len(order))}
    for parent, child in np.asarray(edges).tolist():
        parents[child].append(parent)
    hidden = np.arange(2, len(order))
    # Not by numbers of nodes: equal orders have no edges, and their sequence does not matter.
    hidden = hidden[np.argsort(-order[hidden], kind="stable")]
    live = [IMAGE]
    found = {IMAGE}
    for node in hidden.tolist():
        if found.intersection(parents[node]):
            found.add(node)
            live.append(node)
    return live
