"""One chain over architectures: proposals of the process, judged by a rule of `_evidence`."""

import numpy as np

from skbnp.icp_network.convolution._layout import IMAGE, OUTPUT
from skbnp.icp_network.convolution._model import check_graph, draw_graph
from skbnp.icp_network.convolution._structure import KINDS, Structure
from skbnp.icp_network.convolution._training import Training
from skbnp.mcmc.chain import Chain, Move, State
from skbnp.mcmc.fields import Field

_DONE, _BROKEN = 0, 1


class Architecture(State):
    """An architecture with weights, and how likely labels are under it.

    ``order``, ``edges`` and ``names`` are those of ``structure``; ``z`` are the weights of live
    edges over their prior deviations, in the order of ``layout``. ``learnt`` and ``kept`` are log
    likelihoods of the labels that weights are fitted to, and of those that are kept apart; both
    are known from the first sweep on.
    """

    FIELDS = (
        Field("order", float, (None,), at_least=0.0),
        Field("edges", int, (None, 2), at_least=0),
        Field("z", float, (None,)),
        Field("learnt"),
        Field("kept"),
        Field("is_trained", int, at_least=0, below=2),
    )

    def __init__(self, data, prior, graph, bit_generator):
        """``graph`` is a dict of order and edges; ``data`` are `LabelledImages`."""
        self.data, self.prior, self.bit_generator = data, prior, bit_generator
        self.structure = Structure(prior, graph, bit_generator)
        self.order, self.edges, self.names = self.structure.arrays()
        self.edges = self.edges.astype(np.intp)
        self.layout = prior.layout(self.order, self.edges)
        rng = np.random.Generator(bit_generator)
        self.z = rng.standard_normal(self.layout.n_weights).astype(np.float32).astype(float)
        self.learnt = self.kept = 0.0
        self.is_trained = 0

    def check(self, state, values):
        check_graph(values["order"], values["edges"], self.prior)
        n_weights = self.prior.layout(values["order"], values["edges"]).n_weights
        if values["z"].shape != (n_weights,):
            raise ValueError(f"z of the state must have shape {(n_weights,)}")

    def refresh(self, state):
        names = np.arange(len(self.order))
        self.structure = Structure(
            self.prior, {"order": self.order, "edges": self.edges}, self.bit_generator
        )
        self.names = names
        self.layout = self.prior.layout(self.order, self.edges)

    def log_joint(self):
        """Of structure, weights and all labels."""
        deviation = self.layout.deviations
        of_weights = -0.5 * (self.z @ self.z) - np.sum(0.5 * np.log(2 * np.pi) + np.log(deviation))
        return float(self.structure.log_density() + of_weights + self.learnt + self.kept)

    def put_back(self):
        """The structure as it was before a proposal."""
        self.structure.put(self.order, self.edges, self.prior.hyper, self.names)

    def take(self, graph, layout, z, likelihoods=None):
        """An accepted proposal."""
        self.order, edges, self.names = graph
        self.edges, self.layout, self.z = edges.astype(np.intp), layout, z
        if likelihoods is not None:
            self.learnt, self.kept = likelihoods

    def keys(self, layout, names):
        """What each tensor belongs to, by names that last: key -> slice of the weights."""
        found, first = {}, 0
        for (one, other), shape, _ in layout.tensors:
            key = ("bias", names[other]) if one == "bias" else (names[one], names[other])
            size = int(np.prod(shape))
            found[(*map(str, key), shape)] = slice(first, first + size)
            first += size
        return found


class Search(Move):
    """One proposal of `Structure`; weights that it needs are fitted, then it is judged.

    New tensors come from the prior, the others go on from where they are if the rule lets them, by
    ``n_steps`` of Adam. What the rule makes of the log likelihoods stands for the evidence:
    equation (I10.4). Where no live edge changes nothing is fitted, and the ratio is exact.
    """

    NAME = "search"
    COUNTS = KINDS

    def __init__(self, state, rule, settings, bit_generator):
        super().__init__(bit_generator)
        self._state, self._rule, self._settings = state, rule, settings
        self._rng = np.random.Generator(bit_generator)

    def run(self):
        """Propose and judge.

        The sweep holds the lock of the bit generator, and before NumPy 2.4 the methods of a
        generator cannot take it a second time.
        """
        self._bits.lock.release()
        try:
            return self._run()
        finally:
            self._bits.lock.acquire()

    def _run(self):
        state = self._state
        if not state.is_trained:
            found = self._fitted(state.layout, state.z, self._settings["n_start_steps"])
            if found is None:
                return _BROKEN
            state.z, (state.learnt, state.kept) = found
            state.is_trained = 1
        kind, ratio = state.structure.propose()
        self.proposed[kind] += 1
        log_u = np.log1p(-self._rng.random())
        if ratio > -np.inf and self._accepts(ratio, log_u):
            self.accepted[kind] += 1
        else:
            state.put_back()
        return _DONE

    def _accepts(self, ratio, log_u):
        """Whether the proposal that ``structure`` is at is accepted; it is taken over then."""
        state = self._state
        graph = order, edges, names = state.structure.arrays()
        layout = state.prior.layout(order, edges)
        before, after = state.keys(state.layout, state.names), state.keys(layout, names)
        z = self._rng.standard_normal(layout.n_weights) if after.keys() - before.keys() else None
        z = np.empty(layout.n_weights) if z is None else z
        for key in before.keys() & after.keys():
            z[after[key]] = state.z[before[key]]
        if before.keys() == after.keys():
            if log_u >= ratio:
                return False
            state.take(graph, layout, z)
            return True
        found = self._fitted(layout, self._rule.start(z, self._rng), self._settings["n_steps"])
        if found is None:
            return False
        old, new = (state.learnt, state.kept), found[1]
        if log_u >= ratio + self._rule.judging(*new) - self._rule.judging(*old):
            return False
        state.take(graph, layout, *found)
        return True

    def _fitted(self, layout, z, n_steps):
        """Weights after so many steps, and log likelihoods of labels learnt from and kept.

        None where these are not finite.
        """
        data, settings = self._state.data, self._settings
        training = Training(layout, data.images, data.labels, data.learnt, z, self._bits)
        training.climb(n_steps, settings["batch_size"], settings["learning_rate"])
        found = training.log_likelihood(data.learnt), training.log_likelihood(data.kept)
        z = np.asarray(training.z, dtype=np.float64)
        return (z, found) if np.isfinite(found).all() and np.isfinite(z).all() else None

    @property
    def _bits(self):
        return self._rng.bit_generator


class Sampler(Chain):
    """A chain over architectures: one proposal a sweep."""

    def __init__(self, state, rule, settings, bit_generator):
        super().__init__(state, [Search(state, rule, settings, bit_generator)], bit_generator)

    def scalars(self):
        """Quantities traced beside the log joint."""
        layout = self.state.layout
        return {
            "log_kept": float(self.state.kept),
            "n_hidden": len(self.state.order) - 2,
            "n_live": layout.n_live,
            "n_edges": layout.n_live_edges,
            "depth": layout.depth,
            "width": layout.width,
            "n_weights": layout.n_weights,
        }

    def draw(self):
        """Snapshot: the network, as `_model` has it."""
        state = self.state
        return {
            "order": state.order.copy(),
            "edges": state.edges.astype(np.int32),
            "weights": (state.z * state.layout.deviations).astype(np.float32),
        }


def make_sampler(bit_generator, chain, *, data, prior, inits, rule, settings):
    """The sampler of one chain; runs where the chain runs."""
    graph = start_graph(inits[chain % len(inits)], prior, np.random.Generator(bit_generator))
    state = Architecture(data, prior, graph, bit_generator)
    return Sampler(state, rule, settings, bit_generator)


def start_graph(init, prior, rng):
    """Orders and edges that a chain starts with.

    "chain": a node of the first bin above one of the second, or of the first where there is no
    other; both see the image and are seen by the output. "empty": the image alone. "prior": a draw.
    """
    if init == "prior":
        return draw_graph(prior, rng)
    if init == "empty" or not prior.max_units:
        return {"order": np.array(prior.orders), "edges": np.array([(IMAGE, OUTPUT)])}
    # In the middle of the first bin and of the second, or both in the only one.
    first = 1.0 - 0.5 / prior.n_bins
    second = 1.0 - 1.5 / prior.n_bins if prior.n_bins > 1 else 0.5 * first
    if prior.max_units < 2:
        order, edges = [first], [(IMAGE, 2), (2, OUTPUT)]
    else:
        order = [second, first]
        edges = [(IMAGE, 2), (IMAGE, 3), (3, 2), (2, OUTPUT), (3, OUTPUT)]
    return {"order": np.array([*prior.orders, *order]), "edges": np.array(edges)}
