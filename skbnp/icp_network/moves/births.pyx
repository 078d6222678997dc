"""Births and deaths of hidden nodes: mathematics/icp_network, section 5.2."""

from libc.math cimport INFINITY, log
from libc.string cimport memcpy

import numpy as np

from skbnp.icp_network._network cimport Network
from skbnp.icp_network.moves._proposal cimport INTERVAL, ORPHAN, SINGLETON, WHOLE, Proposal
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport rng as draws

from skbnp.icp_network.moves._choice import Choice
from skbnp.icp_network.moves._newborn import Newborn
from skbnp.mcmc.fields import Field


cdef class Births(Move):
    """A hidden node comes, or goes; a death is the exact inverse of a birth of its kind.

    The log ratio of equation (I5.3) is the graph's, the choice's (`Choice`), and that of rows and
    parameters (`Newborn`). O(K + N (m p + CELLS)) per attempt for m children and p parents.
    """

    NAME = "births"
    COUNTS = ("births", "deaths")
    FIELDS = (Field("n_guard_rejections", int, at_least=0),)
    CHOICE = Choice
    NEWBORN = Newborn

    def __init__(self, Network net, Py_ssize_t n_attempts, bint paper, bit_generator):
        """``paper``: singletons alone, in a random interval."""
        super().__init__(bit_generator)
        self.net, self.graph = net, net.graph
        self.choice, self.newborn = self.CHOICE(net.graph), self.NEWBORN(net)
        self.n_attempts, self._paper = n_attempts, paper
        self.slots = np.zeros((2, 0), dtype=np.intp)

    cdef int _reserve(self) except -1 nogil:
        """Room for one node more, and for its proposal."""
        self.net.reserve(1)
        self.choice.reserve()
        if self.slots.shape[1] < self.graph.n_slots:
            with gil:
                self.slots = np.zeros((2, self.graph.n_slots), dtype=np.intp)
                self.values = np.zeros((5, self.graph.n_slots))
        return 0

    cdef void _point(self, Proposal* p, int kind) noexcept nogil:
        """An empty proposal in the room that there is."""
        p.kind, p.n_children, p.n_parents = kind, 0, 0
        p.child, p.parent = &self.slots[0, 0], &self.slots[1, 0]
        p.weight = &self.values[0, 0]
        p.bias_without, p.bias_with = &self.values[1, 0], &self.values[2, 0]
        p.precision_without, p.precision_with = &self.values[3, 0], &self.values[4, 0]

    cpdef int run(self) except -1:
        """``n_attempts``, unless the chain still settles; half of them births."""
        cdef Py_ssize_t _
        cdef int kind
        if self.net.n_settle > 0:
            return DONE
        with nogil:
            for _ in range(self.n_attempts):
                kind = self._draw_kind()
                if draws.uniform(self.rng) < 0.5:
                    self._birth(kind)
                else:
                    self._death(kind)
        return DONE

    cdef int _draw_kind(self) noexcept nogil:
        """Half of any orphans, a quarter each of the others."""
        cdef double u
        if self._paper:
            return INTERVAL
        u = draws.uniform(self.rng)
        return ORPHAN if u < 0.5 else SINGLETON if u < 0.75 else WHOLE

    cdef int _birth(self, int kind) except -1 nogil:
        cdef Proposal p
        cdef Py_ssize_t slot
        cdef double ratio
        self.proposed[0] += 1
        if self.graph.n_hidden >= self.graph.max_units:
            self.n_guard_rejections += 1
            return 0
        self._reserve()
        self._point(&p, kind)
        ratio = -self.graph.log_density()
        ratio += self.choice.draw(&p, self.rng)
        if ratio == -INFINITY:
            return 0
        slot = self._attach(&p)
        self._draw_parameters(&p, slot)
        if self.newborn.match_moments(&p, slot, True):
            ratio += self.graph.log_density() + self.choice.log_death(
                &p, self.choice.count_eligible(kind, p.child[0])
            )
            ratio += self.newborn.draw(&p, slot, self.rng)
            if log(draws.uniform(self.rng)) < ratio:
                self._settle_birth(&p, slot)
                self.accepted[0] += 1
                return 0
        self.net.forget(slot)
        return 0

    cdef int _death(self, int kind) except -1 nogil:
        """Minus the log ratio of the birth that would undo it."""
        cdef Proposal p
        cdef Py_ssize_t slot, n_eligible
        cdef double ratio
        self.proposed[1] += 1
        self._reserve()
        slot = self.choice.choose_death(kind, &n_eligible, self.rng)
        if slot < 0:
            return 0
        self._point(&p, kind)
        self._read(&p, slot)
        ratio = self.graph.log_density() + self.choice.log_death(&p, n_eligible)
        if not self.newborn.match_moments(&p, slot, False):
            return 0
        ratio += self.newborn.weigh(&p, slot)
        self.graph.remove(slot)
        ratio += self._log_return(&p) - self.graph.log_density()
        if log(draws.uniform(self.rng)) < -ratio:
            self._settle_death(&p, slot)
            self.accepted[1] += 1
        else:
            self._attach(&p)
        return 0

    cdef double _log_return(self, Proposal* p) noexcept nogil:
        """-log density of choosing the node again that has been taken away."""
        return self.choice.log_density(p)

    cdef Py_ssize_t _attach(self, Proposal* p) noexcept nogil:
        """The node with its edges; its slot is the one that became free last."""
        cdef Py_ssize_t i, slot = self.graph.insert(p.order)
        for i in range(p.n_children):
            self.graph.link(p.child[i], slot)
        for i in range(p.n_parents):
            self.graph.link(slot, p.parent[i])
        return slot

    cdef void _draw_parameters(self, Proposal* p, Py_ssize_t slot) noexcept nogil:
        """Weights, bias and precision of a node to come from their priors.

        The weights to its children wait in ``p``.
        """
        cdef Py_ssize_t i
        for i in range(p.n_children):
            p.weight[i] = self.net.draw_weight_from(slot, self.rng)
        for i in range(p.n_parents):
            self.net.weight[slot, p.parent[i]] = self.net.draw_weight_from(p.parent[i], self.rng)
        self.net.bias[slot] = self.net.draw_bias(self.rng)
        self.net.precision[slot] = self.net.draw_precision(self.rng)

    cdef void _read(self, Proposal* p, Py_ssize_t slot) noexcept nogil:
        """The proposal whose acceptance would have made a node that there is."""
        cdef Py_ssize_t i, other
        p.order = self.graph.order[slot]
        for i in range(self.graph.n_nodes):
            other = self.graph.ascending[i]
            if self.graph.edge[other, slot]:
                p.child[p.n_children] = other
                p.weight[p.n_children] = self.net.weight[other, slot]
                p.n_children += 1
            if self.graph.edge[slot, other]:
                p.parent[p.n_parents] = other
                p.n_parents += 1

    cdef void _settle_birth(self, Proposal* p, Py_ssize_t slot) noexcept nogil:
        """What an accepted birth changes beside the graph."""
        cdef Py_ssize_t i, child
        for i in range(p.n_children):
            child = p.child[i]
            self.net.weight[child, slot] = p.weight[i]
            self.net.bias[child] = p.bias_with[i]
            self.net.precision[child] = p.precision_with[i]
        memcpy(
            &self.net.pre[slot, 0], &self.newborn.drawn[0], self.net.n_samples * sizeof(double)
        )
        self.net.squash(slot)

    cdef void _settle_death(self, Proposal* p, Py_ssize_t slot) noexcept nogil:
        """What an accepted death changes beside the graph."""
        cdef Py_ssize_t i, child
        for i in range(p.n_children):
            child = p.child[i]
            self.net.weight[child, slot] = 0.0
            self.net.bias[child] = p.bias_without[i]
            self.net.precision[child] = p.precision_without[i]
        for i in range(p.n_parents):
            self.net.weight[slot, p.parent[i]] = 0.0
