"""What follows from draws that are networks over the columns and hidden nodes."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import refuses_by_name
from skbnp.reports import network as networks


class NetworkMixin:
    """The nodes and edges of a draw.

    A draw has ``edges`` (n_edges, 2), each [parent, child], their ``weights``, and ``biases`` and
    ``unit_precision`` of all nodes, columns first. A subclass says

    - ``_node_names()``: names of all columns that nodes stand for, constant ones among them, and
      ``_node_columns()``: which of them are nodes of the draws; by default those of X;
    - ``_level_name``: what says where a node is, and ``_levels_of(draw)``: that of each node;
      ``_levels_of_constants()`` those of all columns, for constant ones.
    """

    _level_name = "order"

    def _node_names(self):
        return self._feature_names()

    def _node_columns(self):
        return self._units.columns

    def _feature_names(self):
        return list(map(str, self._column_labels()))

    def _levels_of_constants(self):
        return np.zeros(len(self._node_names()))

    @refuses_by_name
    def network(self, draw=None):
        """Nodes and edges of a draw, numbered with all columns first.

        Parameters
        ----------
        draw : dict, default=None
            One of `posterior_`; None is the reference draw.

        Returns
        -------
        network : dict
            ``names``, a list of those of the columns, targets before features;
            where each node is: its ``layer`` in a network of layers, 0 for columns, and its
            ``order`` in one without; ``edges`` (n_edges, 2), each [parent, child];
            ``weights`` (n_edges,), ``biases`` and ``unit_precision`` of each node, for columns as
            they are scaled inside; NaN for constant columns.
        """
        check_is_fitted(self, "posterior_")
        draw = self._given_draw(draw)
        columns, names = self._node_columns(), self._node_names()
        levels = self._levels_of(draw)
        n_hidden = len(levels) - len(columns)
        number = np.concatenate([columns, len(names) + np.arange(n_hidden)])
        level = np.zeros(len(names) + n_hidden, dtype=levels.dtype)
        level[: len(names)] = self._levels_of_constants()
        level[number] = levels
        out = {
            "names": names,
            self._level_name: level,
            "edges": number[draw["edges"]],
            "weights": draw["weights"].copy(),
        }
        for name in ("biases", "unit_precision"):
            out[name] = np.full(len(level), np.nan)
            out[name][number] = draw[name]
        return out

    def _network_section(self, traces, edges=None):
        """What networks look like; ``traces`` are those that are counted, by what they count."""
        columns = self._node_columns()
        names = self._node_names()
        together = networks.common_parents(self._prediction_draws(), columns, len(names))
        return networks.section(self._counts(traces), self.network(), len(names), together, edges)

    def _counts(self, traces):
        """Traces by words for what they count."""
        return {words: self.posterior_.traces[name] for words, name in traces.items()}

    @refuses_by_name
    def structure_graph(self, draw=None):
        """The network of a draw as a networkx.DiGraph.

        Parameters
        ----------
        draw : dict, default=None
            One of `posterior_`; None is the reference draw.

        Returns
        -------
        graph : networkx.DiGraph
            Edges from parent to child with ``weight``; nodes with ``layer`` or ``order``, ``bias``,
            ``precision`` and, for columns, ``name``.

        Raises
        ------
        ImportError
            Without networkx, which comes with ``pip install skbnp[plot]``.
        """
        nodes = self.network(draw)
        import networkx

        graph = networkx.DiGraph()
        of_nodes = (nodes[self._level_name], nodes["biases"], nodes["unit_precision"])
        for node, (level, bias, precision) in enumerate(zip(*of_nodes, strict=True)):
            label = {"name": nodes["names"][node]} if node < len(nodes["names"]) else {}
            label[self._level_name] = level.item()
            graph.add_node(node, bias=float(bias), precision=float(precision), **label)
        for (parent, child), weight in zip(nodes["edges"], nodes["weights"], strict=True):
            graph.add_edge(int(parent), int(child), weight=float(weight))
        return graph


class ColumnGraphMixin(NetworkMixin):
    """Networks in which columns may be parents: how probable that is.

    A draw has the ``order`` of each node, and edges lead to nodes of lower order.
    """

    def _levels_of(self, draw):
        return draw["order"]

    @refuses_by_name
    def edge_probabilities(self):
        """Posterior probability that a column is a parent of another.

        Returns
        -------
        probability : ndarray of shape (n_columns, n_columns)
            [parent, child], targets before features; 0 wherever both have the same order.
        """
        return self._column_probabilities(_edges_among)

    @refuses_by_name
    def ancestor_probabilities(self):
        """Posterior probability that a column is an ancestor of another, through any nodes.

        Returns
        -------
        probability : ndarray of shape (n_columns, n_columns)
            [ancestor, descendant], targets before features.
        """
        return self._column_probabilities(_ancestors_among)

    def _column_probabilities(self, of_draw):
        check_is_fitted(self, "posterior_")
        columns = self._node_columns()
        total = np.zeros((len(self._node_names()),) * 2)
        for t in range(self.posterior_.n_stored):
            total[np.ix_(columns, columns)] += of_draw(self.posterior_.in_order(t), len(columns))
        return total / self.posterior_.n_stored


def _edges_among(draw, n_observed):
    """Which observed nodes are parents of which, (n_observed, n_observed)."""
    out = np.zeros((n_observed, n_observed))
    out[tuple(draw["edges"][(draw["edges"] < n_observed).all(axis=1)].T)] = 1.0
    return out


def lowest_first(draw):
    """The edges of a network, (n_edges, 2), those of lower parents before those of higher ones."""
    return draw["edges"][np.argsort(draw["order"][draw["edges"][:, 0]], kind="stable")]


def _ancestors_among(draw, n_observed):
    """Which observed nodes are ancestors of which, (n_observed, n_observed)."""
    below = np.zeros((len(draw["order"]), n_observed), dtype=bool)
    for parent, child in lowest_first(draw):
        below[parent] |= below[child]
        if child < n_observed:
            below[parent, child] = True
    return below[:n_observed]
