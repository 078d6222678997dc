"""What a fitted classifier of images says of its architectures."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import refuses_by_name
from skbnp.icp_network.convolution._evidence import RULES
from skbnp.icp_network.convolution._model import network_of
from skbnp.mcmc.diagnostics import rhat
from skbnp.reports import architectures

# Training images that activities are averaged over, at most.
_MOST_WATCHED = 200
_QUANTILES = (0.05, 0.5, 0.95)
# What is summarised, by trace.
_COUNTED = {
    "live nodes": "n_live",
    "live edges": "n_edges",
    "depth": "depth",
    "width": "width",
    "weights": "n_weights",
}


class ArchitecturesMixin:
    """Summaries, graphs and activities, from draws and the prior."""

    @property
    def architecture_summary_(self):
        """Mean, sd, quantiles and R-hat of the sizes of architectures, by what is counted."""
        check_is_fitted(self, "posterior_")
        found = {}
        for words, name in _COUNTED.items():
            trace = self.posterior_.traces[name]
            low, middle, high = np.quantile(trace, _QUANTILES)
            found[words] = {
                "mean": float(trace.mean()),
                "sd": float(trace.std()),
                "5%": float(low),
                "50%": float(middle),
                "95%": float(high),
                "r_hat": float(rhat(trace)),
            }
        return found

    @property
    def inference_info_(self):
        """What the draws are, and what they are not."""
        check_is_fitted(self, "posterior_")
        tempered = (
            ""
            if self.temperature == 1.0
            else (
                f"; of the posterior to the power 1 / {self.temperature:g}, which is no posterior"
                if self.temperature
                else "; without noise: a path to a mode"
            )
        )
        return {
            "architectures": (
                f"proposals of the Indian chefs process, accepted {RULES[self.inference].WORDS}"
            ),
            "weights": (
                "stochastic-gradient Hamiltonian Monte Carlo on all images, without correction "
                f"for its noise{tempered}"
            ),
            "probabilities": (
                "averages over architectures and weights"
                if self.probability_calibration is None
                else "averages over architectures and weights, raised to the power "
                f"{self.power_:.3g} and made to sum to one: no posterior predictive distribution"
            ),
        }

    @refuses_by_name
    def architecture(self, draw=None):
        """Nodes and edges of an architecture.

        Parameters
        ----------
        draw : dict, default=None
            One of `posterior_` or `ensemble_`; None is the reference draw.

        Returns
        -------
        architecture : dict
            ``order`` (n_nodes,), output and image first; ``is_live`` (n_nodes,), whether a path
            leads from the image to the node; ``shapes``, a list of (height, width, channels) of the
            maps, those of the image and of classes included; ``edges`` (n_edges, 2), each [parent,
            child]; ``n_weights`` (n_edges,) of each, 0 for edges of dead nodes.
        """
        check_is_fitted(self, "posterior_")
        draw = self._given_draw(draw)
        order, edges, layout = draw["order"], draw["edges"], self._layout(draw)
        is_live = np.zeros(len(order), dtype=bool)
        is_live[[0, *layout.nodes]] = True
        shapes = [(1, 1, len(self.classes_)), self.image_shape_]
        for node in range(2, len(order)):
            channels, height, width = self._prior.map_shape(order[node])
            shapes.append((height, width, channels))
        sizes = {key: int(np.prod(shape)) for key, shape, _ in layout.tensors}
        return {
            "order": order.copy(),
            "is_live": is_live,
            "shapes": shapes,
            "edges": edges.copy(),
            "n_weights": np.array([sizes.get(tuple(edge), 0) for edge in edges.tolist()], int),
        }

    @refuses_by_name
    def structure_graph(self, draw=None):
        """An architecture as a networkx.DiGraph.

        Parameters
        ----------
        draw : dict, default=None
            One of `posterior_` or `ensemble_`; None is the reference draw.

        Returns
        -------
        graph : networkx.DiGraph
            Node 0 is the output, node 1 the image; nodes with ``order``, ``is_live``, ``height``,
            ``width`` and ``channels``, edges from parent to child with ``n_weights``.

        Raises
        ------
        ImportError
            Without networkx, which comes with ``pip install skbnp[plot]``.
        """
        found = self.architecture(draw)
        import networkx

        graph = networkx.DiGraph()
        of_nodes = zip(found["order"], found["is_live"], found["shapes"], strict=True)
        for node, (order, is_live, (height, width, channels)) in enumerate(of_nodes):
            graph.add_node(
                node,
                order=float(order),
                is_live=bool(is_live),
                height=height,
                width=width,
                channels=channels,
            )
        for (parent, child), n in zip(found["edges"], found["n_weights"], strict=True):
            graph.add_edge(int(parent), int(child), n_weights=int(n))
        return graph

    def _found(self, training):
        found, traces = self.architecture(), self.posterior_.traces
        counts = {words: traces[name] for words, name in _COUNTED.items()}
        return [
            architectures.section(
                counts, found["shapes"], found["is_live"], len(self.classes_), self.power_
            )
        ]

    def _layout(self, draw):
        """The layout of a draw, of the reference draw for None."""
        draw = self._reference if draw is None else draw
        return self._prior.layout(draw["order"], draw["edges"])

    def _activities(self, images):
        """Shares of the pixels of live hidden nodes that are above 0, of each draw."""
        images = np.ascontiguousarray(images[:: -(-len(images) // _MOST_WATCHED)])
        found = []
        for draw in self.ensemble_:
            network, weights = network_of(draw, self._prior)
            maps = network.maps(images, weights)[1:]
            found.append(np.array([np.mean(one > 0.0) for one in maps], dtype=np.float64))
        return found
