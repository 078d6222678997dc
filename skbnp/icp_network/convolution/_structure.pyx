"""Proposals to change a graph under the Indian chefs process, for any likelihood.

What they choose, and with which probability, is what the dense networks' moves choose: `Choice` of
births and deaths, `Splits` of edges, `ExactOrders`. Here is no likelihood: a proposal changes the
graph and says its log ratio but for that of the labels; whoever asked accepts or puts it back.
"""

from libc.math cimport INFINITY, log

import numpy as np

from skbnp.icp_network.moves._proposal cimport WHOLE, Proposal
from skbnp.icp_network.moves.splits cimport Insertion, Splits
from skbnp.numerics cimport rng as draws

from skbnp.icp_network._graph import Graph as GraphOfPrior
from skbnp.icp_network.moves._choice import Choice
from skbnp.icp_network.moves.orders import ExactOrders

# What is proposed, in the order of `PROBABILITIES`.
KINDS = ("toggles", "births", "deaths", "orders", "splits", "merges")
PROBABILITIES = (0.4, 0.15, 0.15, 0.1, 0.1, 0.1)


cdef class Structure:
    """A graph with names of its nodes, and proposals to change it.

    Names are numbers that no other node ever has; they are 0 and 1 of output and image. Nothing
    that is drawn depends on them, nor on slots.
    """

    def __init__(self, prior, state, bit_generator):
        """``prior`` is a `Prior`; ``state`` has order and edges."""
        self._bit_generator, self.rng = bit_generator, draws.borrow(bit_generator)
        self.graph = GraphOfPrior(prior)
        self.choice = Choice(self.graph)
        # Of splits the graph's part alone is asked: there are no rows, and no units.
        self.insertions = Splits.__new__(Splits)
        self.insertions.graph, self.insertions.rng = self.graph, self.rng
        self.insertions.mergeable = np.zeros(0, dtype=np.intp)
        self.orders = ExactOrders(self.graph, bit_generator)
        self.name = np.zeros(0, dtype=np.intp)
        self.slots, self.listed = np.zeros((2, 0), dtype=np.intp), np.zeros(0, dtype=np.intp)
        self._next_name = len(state["order"])
        self.put(state["order"], state["edges"], prior.hyper, np.arange(self._next_name))

    def put(self, order, edges, hyper, names):
        """Take a graph over, whose nodes have these names."""
        slots = self.graph.put(order, np.asarray(edges).tolist(), tuple(hyper))
        self._reserve()
        np.asarray(self.name)[slots] = names

    def arrays(self):
        """Orders, edges [parent, child] and names, of output, image, ascending hidden nodes."""
        slots = self.graph.slots()
        edge = np.asarray(self.graph.edge)[np.ix_(slots, slots)]
        edges = np.argwhere(edge.T).astype(np.int32).reshape(-1, 2)
        return np.asarray(self.graph.order)[slots], edges, np.asarray(self.name)[slots]

    def hyper(self):
        """Mass, concentration and popularity."""
        law = self.graph.law
        return law.mass, law.concentration, law.popularity

    def log_density(self):
        """Of edges and orders: equation (I2.3)."""
        return self.graph.log_density()

    def propose(self):
        """Change the graph; what was proposed, a place in `KINDS`, and its log ratio.

        The ratio is -inf where nothing could be proposed. It is that of the prior and of the
        choices there and back.
        """
        cdef double u = draws.uniform(self.rng)
        cdef Py_ssize_t kind = 0
        self._reserve()
        while kind < 5 and u >= PROBABILITIES[kind]:
            u -= PROBABILITIES[kind]
            kind += 1
        return kind, self.propose_only(kind)

    def propose_only(self, Py_ssize_t kind):
        """A proposal of one kind; its log ratio but for the choice of the kind."""
        self._reserve()
        if kind == 0:
            return self._toggle()
        if kind == 1:
            return self._birth()
        if kind == 2:
            return self._death()
        if kind == 3:
            return self._order()
        if kind == 4:
            return self._split()
        return self._merge()

    def remove(self, Py_ssize_t name):
        """The death of this node, or -inf; its log ratio."""
        self._reserve()
        slot = int(np.flatnonzero(np.asarray(self.name) == name)[0])
        n_eligible = self.choice.count_eligible(WHOLE, 0)
        if slot not in np.asarray(self.choice.listed)[:n_eligible]:
            return -INFINITY
        return self._remove(slot, n_eligible)

    def merge(self, Py_ssize_t name):
        """The merge of this node, or -inf; its log ratio."""
        self._reserve()
        slot = int(np.flatnonzero(np.asarray(self.name) == name)[0])
        n_mergeable = self.insertions._list_mergeable()
        if slot not in np.asarray(self.insertions.mergeable)[:n_mergeable]:
            return -INFINITY
        return self._take_out(slot, n_mergeable)

    # -- room ---------------------------------------------------------------------------------

    cdef int _reserve(self) except -1:
        """For one node more, and for lists of all nodes."""
        self.graph.reserve(1)
        if self.name.shape[0] < self.graph.n_slots:
            name = np.full(self.graph.n_slots, -1, dtype=np.intp)
            name[:self.name.shape[0]] = self.name
            self.name = name
            self.slots = np.zeros((2, self.graph.n_slots), dtype=np.intp)
            self.listed = np.zeros(self.graph.n_slots, dtype=np.intp)
        self.choice.reserve()
        if self.insertions.mergeable.shape[0] < self.graph.n_slots:
            self.insertions.mergeable = np.zeros(self.graph.n_slots, dtype=np.intp)
        self.orders._reserve()
        return 0

    cdef void _point(self, Proposal* p) noexcept:
        """An empty proposal of parents and children."""
        p.kind, p.n_children, p.n_parents = WHOLE, 0, 0
        p.child, p.parent = &self.slots[0, 0], &self.slots[1, 0]

    # -- edges --------------------------------------------------------------------------------

    cdef double _toggle(self) except? 0.5:
        """An edge between two nodes, uniform among pairs, comes or goes: equation (I5.1)."""
        cdef Py_ssize_t i, j, child, parent
        cdef double before = self.graph.log_density()
        i = draws.below(self.rng, self.graph.n_nodes)
        j = draws.below(self.rng, self.graph.n_nodes - 1)
        j += j >= i
        child, parent = self.graph.ascending[min(i, j)], self.graph.ascending[max(i, j)]
        if self.graph.order[parent] <= self.graph.order[child]:
            return -INFINITY
        if not self.graph.edge[child, parent]:
            self.graph.link(child, parent)
        elif self.graph.is_hidden(parent) and self.graph.n_children[parent] == 1:
            return -INFINITY
        else:
            self.graph.unlink(child, parent)
        return self.graph.log_density() - before

    # -- nodes --------------------------------------------------------------------------------

    cdef double _birth(self) except? 0.5:
        """A node with parents and children: equation (I5.4)."""
        cdef Proposal p
        cdef double ratio = -self.graph.log_density()
        if self.graph.n_hidden >= self.graph.max_units:
            return -INFINITY
        self._point(&p)
        ratio += self.choice.draw(&p, self.rng)
        if ratio == -INFINITY:
            return ratio
        self._attach(&p)
        return ratio + self.graph.log_density() + self.choice.log_death(
            &p, self.choice.count_eligible(WHOLE, 0)
        )

    cdef double _death(self) except? 0.5:
        """Minus the log ratio of the birth that would undo it."""
        cdef Py_ssize_t n_eligible
        cdef Py_ssize_t slot = self.choice.choose_death(WHOLE, &n_eligible, self.rng)
        return -INFINITY if slot < 0 else self._remove(slot, n_eligible)

    cdef double _remove(self, Py_ssize_t slot, Py_ssize_t n_eligible) except? 0.5:
        """The death of this node, one of so many that may die."""
        cdef Proposal p
        cdef Py_ssize_t i, other
        cdef double ratio
        self._point(&p)
        p.order = self.graph.order[slot]
        for i in range(self.graph.n_nodes):
            other = self.graph.ascending[i]
            if self.graph.edge[other, slot]:
                p.child[p.n_children] = other
                p.n_children += 1
            if self.graph.edge[slot, other]:
                p.parent[p.n_parents] = other
                p.n_parents += 1
        ratio = -self.graph.log_density() - self.choice.log_death(&p, n_eligible)
        self.graph.remove(slot)
        return ratio + self.graph.log_density() - self.choice.log_density(&p)

    cdef void _attach(self, Proposal* p) noexcept:
        """A new node with these edges."""
        cdef Py_ssize_t i, slot = self.graph.insert(p.order)
        for i in range(p.n_children):
            self.graph.link(p.child[i], slot)
        for i in range(p.n_parents):
            self.graph.link(slot, p.parent[i])
        self._christen(slot)

    def _christen(self, Py_ssize_t slot):
        self.name[slot] = self._next_name
        self._next_name += 1

    # -- orders -------------------------------------------------------------------------------

    cdef double _order(self) except? 0.5:
        """The order of a node, uniform among the hidden ones, from its law: equation (I5.11).

        The prior's ratio and the choices' cancel.
        """
        cdef Py_ssize_t n = self.graph.list_hidden(&self.listed[0])
        if n == 0:
            return -INFINITY
        if self.orders._draw(self.listed[draws.below(self.rng, n)]) != 0:
            return -INFINITY
        return 0.0

    # -- splits -------------------------------------------------------------------------------

    cdef double _split(self) except? 0.5:
        """A node into an edge, uniform among all: equation (I5.10)."""
        cdef Insertion at
        cdef double ratio, order, low, high
        if self.graph.n_edges == 0 or self.graph.n_hidden >= self.graph.max_units:
            return -INFINITY
        ratio = -self.graph.log_density()
        self.insertions._draw_edge(&at)
        ratio += self.insertions._log_room(&at)
        low, high = self.graph.order[at.child], self.graph.order[at.parent]
        order = low + draws.uniform(self.rng) * (high - low)
        if not low < order < high:
            return -INFINITY
        at.slot = self.graph.insert(order)
        self._christen(at.slot)
        self.insertions._insert(&at)
        return ratio + self.graph.log_density() - log(self.insertions._list_mergeable())

    cdef double _merge(self) except? 0.5:
        """A node out of an edge, uniform among those that a split may have made."""
        cdef Py_ssize_t n = self.insertions._list_mergeable()
        if n == 0:
            return -INFINITY
        return self._take_out(self.insertions.mergeable[draws.below(self.rng, n)], n)

    cdef double _take_out(self, Py_ssize_t slot, Py_ssize_t n_mergeable) except? 0.5:
        """The merge of this node, one of so many."""
        cdef Insertion at
        cdef double ratio = log(n_mergeable) - self.graph.log_density()
        at.slot = slot
        self.insertions._find_ends(&at)
        self.insertions._take_away(&at)
        return ratio + self.graph.log_density() - self.insertions._log_room(&at)
