"""A Markov chain over architectures and weights whose law is the joint posterior, for tests.

The search of `ICPConvClassifier` is an approximation. Here is what it approximates: weights by
Hamiltonian Monte Carlo, architectures by annealed jumps. A proposal of `Structure` goes from live
edges E to E'. New tensors come from the prior. Both sets together make one network, in which a gate
stands before each new edge whose child was live before, and before each edge that goes and whose
child stays; the first open, the second close, along u = 0, 1/T, ..., 1 by u^2 and (1 - u)^2. At
u = 0 it is the old network, at u = 1 the new one. At each u between, a step of Hamiltonian Monte
Carlo leaves the posterior of that network as it is, and the proposal is accepted with

    min(1, exp(r + sum_t l(z_t; u_{t+1}) - l(z_t; u_t))),

where r is the log ratio of prior and choices: annealed importance sampling inside a reversible jump
(Neal 2001; Karagiannis and Andrieu 2013). It is exact for any T; T = 1 is a plain jump.
"""

import numpy as np

from skbnp.icp_network.convolution._layout import IMAGE, OUTPUT
from skbnp.icp_network.convolution._model import draw_graph
from skbnp.icp_network.convolution._network import Network
from skbnp.icp_network.convolution._sampler import Architecture
from skbnp.icp_network.convolution._structure import KINDS, Structure


class Tensors:
    """Live tensors of a graph whose nodes have names."""

    def __init__(self, prior, order, edges, names):
        self.order, self.edges, self.names = order, np.asarray(edges), np.asarray(names)
        self.layout = prior.layout(order, edges)
        self.place = Architecture.keys(None, self.layout, self.names)
        nodes = [int(names[node]) for node in self.layout.nodes]
        self.live = {OUTPUT, *nodes}
        self.live_edges = {(nodes[parent], nodes[child]) for parent, child in self.layout.edges}
        self.live_edges |= {(nodes[parent], OUTPUT) for parent, _, _ in self.layout.readouts}
        self.bins = {
            int(name): prior.bin_of(theta) for name, theta in zip(names[2:], order[2:], strict=True)
        }

    def split(self, z):
        """Key -> part of z."""
        return {key: z[place] for key, place in self.place.items()}

    def joined(self, parts):
        """The z whose parts these are."""
        z = np.empty(self.layout.n_weights)
        for key, place in self.place.items():
            z[place] = parts[key]
        return z


class Target:
    """Log likelihood of the labels under weights ``deviation * z``, and its gradient in z."""

    def __init__(self, layout, images, labels):
        self._network, self._images, self._labels = Network(layout), images, labels
        self.deviation = layout.deviations

    def __call__(self, z, gate=1.0):
        deviation = gate * self.deviation
        total, slope = self._network.gradient(
            self._images, self._labels, (deviation * z).astype(np.float32)
        )
        return total, deviation * slope


def hamiltonian_step(target, z, gate, n_leapfrogs, step, rng, wrong=None):
    """One step on prior times likelihood; whether it was accepted, and the z."""
    fit, slope = target(z, gate)
    p = rng.standard_normal(len(z))
    energy, start = 0.5 * (p @ p + z @ z) - fit, z
    p = p + 0.5 * step * (slope - z)
    for i in range(n_leapfrogs):
        z = z + step * p
        fit, slope = target(z, gate)
        p = p + (0.5 if i == n_leapfrogs - 1 else 1.0) * step * (slope - z)
    energy -= 0.5 * (p @ p + z @ z) - fit
    if wrong == "no rejections" or np.log1p(-rng.random()) < energy:
        return True, z
    return False, start


class ExactChain:
    """Architectures and weights, z over prior deviations, given images and labels.

    Parameters
    ----------
    prior : Prior
    images : ndarray of shape (n, n_pixels), single precision
    labels : ndarray of int of shape (n,), or None to draw them
    rng : numpy.random.Generator
    kinds : tuple of str
        What is proposed, of `KINDS`, each as often; () for all as the search proposes them.
    n_rungs : int
        T.
    n_leapfrogs, step : int, float
        Of a step between rungs.
    wrong : str or None
        A fault, for tests that must fail.
    """

    def __init__(
        self, prior, images, labels, rng, kinds=(), n_rungs=4, n_leapfrogs=2, step=0.3,
        wrong=None,
    ):  # fmt: skip
        self.prior, self.images, self.rng, self.kinds = prior, images, rng, kinds
        self.n_rungs, self.n_leapfrogs, self.step, self.wrong = n_rungs, n_leapfrogs, step, wrong
        self.structure = Structure(prior, draw_graph(prior, rng), rng.bit_generator)
        self.tensors = Tensors(prior, *self.structure.arrays())
        self.z = rng.standard_normal(self.tensors.layout.n_weights)
        self.proposed, self.accepted = np.zeros((2, len(KINDS)), dtype=int)
        self.labels = labels
        if labels is None:
            self.simulate_data()

    def simulate_data(self):
        """Draw labels given the network."""
        layout = self.tensors.layout
        weights = (self.z * layout.deviations).astype(np.float32)
        logits = Network(layout).logits(self.images, weights).astype(np.float64)
        noise = self.rng.gumbel(size=logits.shape)
        self.labels = (logits + noise).argmax(axis=1).astype(np.intp)

    def fit(self):
        """Log likelihood of the labels."""
        return Target(self.tensors.layout, self.images, self.labels)(self.z)[0]

    def sweep(self):
        """One proposal."""
        before = self.structure.arrays()
        density = self.structure.log_density()
        if self.kinds:
            kind = KINDS.index(self.kinds[self.rng.integers(len(self.kinds))])
            ratio = self.structure.propose_only(kind)
        else:
            kind, ratio = self.structure.propose()
        if self.wrong == "choices" and ratio > -np.inf:
            ratio = self.structure.log_density() - density
        self.proposed[kind] += 1
        if ratio > -np.inf and self._accepts(ratio):
            self.accepted[kind] += 1
        else:
            order, edges, names = before
            self.structure.put(order, edges, self.structure.hyper(), names)

    def sweep_weights(self, n_leapfrogs=8, step=0.3):
        """One step of Hamiltonian Monte Carlo on the weights."""
        target = Target(self.tensors.layout, self.images, self.labels)
        step *= self.rng.uniform(0.7, 1.3)
        accepted, self.z = hamiltonian_step(target, self.z, 1.0, n_leapfrogs, step, self.rng)
        return accepted

    def _accepts(self, ratio):
        old, new = self.tensors, Tensors(self.prior, *self.structure.arrays())
        if any(new.bins[name] != b for name, b in old.bins.items() if name in new.bins):
            # Orders stay inside their bins.
            return False
        parts = old.split(self.z)
        if old.place.keys() == new.place.keys():
            accepted = np.log1p(-self.rng.random()) < ratio
            self._take(accepted, new, parts)
            return accepted
        for key, place in new.place.items():
            if key not in parts:
                parts[key] = self.rng.standard_normal(place.stop - place.start)
        both = self._both(old, new)
        target = Target(both.layout, self.images, self.labels)
        z, log_weight = both.joined(parts), 0.0
        for t in range(self.n_rungs):
            u = t / self.n_rungs
            if t > 0:
                _, z = hamiltonian_step(
                    target, z, self._gate(both, old, new, u), self.n_leapfrogs, self.step,
                    self.rng, self.wrong,
                )  # fmt: skip
            fit = target(z, self._gate(both, old, new, u))[0]
            after = target(z, self._gate(both, old, new, (t + 1) / self.n_rungs))[0]
            if self.wrong != "a rung" or t + 1 < self.n_rungs:
                log_weight += after - fit
        accepted = np.log1p(-self.rng.random()) < ratio + log_weight
        self._take(accepted, new, both.split(z))
        return accepted

    def _take(self, accepted, new, parts):
        if accepted:
            self.z, self.tensors = new.joined(parts), new

    def _both(self, old, new):
        """The network of all edges that are live before or after."""
        order_of = {}
        for one in (old, new):
            order_of |= dict(zip(one.names.tolist(), one.order.tolist(), strict=True))
        edges = sorted(old.live_edges | new.live_edges)
        hidden = sorted({name for edge in edges for name in edge} - {OUTPUT, IMAGE},
                        key=order_of.get)  # fmt: skip
        names = [OUTPUT, IMAGE, *hidden]
        place = {name: i for i, name in enumerate(names)}
        order = np.array([order_of[name] for name in names])
        edges = np.array([(place[a], place[b]) for a, b in edges], dtype=int).reshape(-1, 2)
        return Tensors(self.prior, order, edges, np.array(names))

    def _gate(self, both, old, new, u):
        """What each weight is multiplied by."""
        gate = np.ones(both.layout.n_weights)
        closing = u if self.wrong == "gates" else 1.0 - u
        names = both.names
        at = 0
        for (one, other), shape, _ in both.layout.tensors:
            size = int(np.prod(shape))
            if one != "bias":
                edge = int(names[one]), int(names[other])
                if edge not in old.live_edges and edge[1] in old.live:
                    gate[at : at + size] = u**2
                elif edge not in new.live_edges and edge[1] in new.live:
                    gate[at : at + size] = closing**2
            at += size
        return gate


def statistics(chain):
    """Of the state of an `ExactChain`."""
    tensors, z = chain.tensors, chain.z
    layout = tensors.layout
    return {
        "hidden": len(tensors.order) - 2,
        "edges": len(tensors.edges),
        "live nodes": layout.n_live,
        "live edges": layout.n_live_edges,
        "below a half": float((tensors.order[2:] < 0.5).sum()),
        "orders": float(tensors.order[2:].sum()),
        "weights": float(z.sum()),
        "squares": float(z @ z),
        "labels": chain.fit(),
    }
