"""Hidden nodes put into edges, and taken out of them: mathematics/icp_network, section 5.3."""

from libc.math cimport log, sqrt
from libc.string cimport memcpy

import numpy as np

from skbnp.icp_network._network cimport Network
from skbnp.likelihoods.nonlinear_gaussian._grid cimport draw_on_grid, weigh_on_grid
from skbnp.likelihoods.nonlinear_gaussian._matching cimport LEAST_PRECISION
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws

from skbnp.mcmc.fields import Field


cdef class Splits(Move):
    """One attempt to make p -> i into p -> h -> i, or the inverse: equation (I5.10).

    O(K^2 + N (p + CELLS)). They are accepted rarely, so there is one in a sweep.
    """

    NAME = "splits"
    COUNTS = ("splits", "merges")
    FIELDS = (Field("n_guard_rejections", int, at_least=0),)

    def __init__(self, Network net, bit_generator):
        super().__init__(bit_generator)
        self.net, self.graph = net, net.graph
        self.mergeable = np.zeros(0, dtype=np.intp)
        self.residual, self.drawn = np.zeros((2, net.stride))

    cdef int _reserve(self) except -1 nogil:
        self.net.reserve(1)
        if self.mergeable.shape[0] < self.graph.n_slots:
            with gil:
                self.mergeable = np.zeros(self.graph.n_slots, dtype=np.intp)
        return 0

    cpdef int run(self) except -1:
        """Either with probability 1/2, unless the chain still settles."""
        if self.net.n_settle > 0:
            return DONE
        with nogil:
            self._reserve()
            if draws.uniform(self.rng) < 0.5:
                self._split()
            else:
                self._merge()
        return DONE

    cdef int _split(self) except -1 nogil:
        cdef Insertion at
        cdef double ratio, order, low, high
        self.proposed[0] += 1
        if self.graph.n_edges == 0:
            return 0
        if self.graph.n_hidden >= self.graph.max_units:
            self.n_guard_rejections += 1
            return 0
        ratio = -self.graph.log_density()
        self._draw_edge(&at)
        ratio += self._log_room(&at)
        low, high = self.graph.order[at.child], self.graph.order[at.parent]
        order = low + draws.uniform(self.rng) * (high - low)
        if not low < order < high:
            return 0
        at.slot = self.graph.insert(order)
        self.net.bias[at.slot] = self.net.draw_bias(self.rng)
        self.net.precision[at.slot] = self.net.draw_precision(self.rng)
        self.net.weight[at.slot, at.parent] = self.net.draw_weight_from(at.parent, self.rng)
        at.weight = self.net.draw_weight_from(at.slot, self.rng)
        at.direct = self.net.weight[at.child, at.parent]
        ratio += self._log_split(&at)
        self._insert(&at)
        ratio += self.graph.log_density() - log(self._list_mergeable())
        if self.net.precision[at.slot] > LEAST_PRECISION and log(draws.uniform(self.rng)) < ratio:
            self.net.weight[at.child, at.parent] = 0.0
            self.net.weight[at.child, at.slot] = at.weight
            memcpy(
                &self.net.pre[at.slot, 0], &self.drawn[0], self.net.n_samples * sizeof(double)
            )
            self.net.squash(at.slot)
            self.accepted[0] += 1
            return 0
        self.net.weight[at.slot, at.parent] = 0.0
        self._take_away(&at)
        return 0

    cdef int _merge(self) except -1 nogil:
        cdef Insertion at
        cdef double ratio, order
        cdef Py_ssize_t n = self._list_mergeable()
        self.proposed[1] += 1
        if n == 0:
            return 0
        at.slot = self.mergeable[draws.below(self.rng, n)]
        if not self.net.precision[at.slot] > LEAST_PRECISION:
            return 0
        self._find_ends(&at)
        at.weight = self.net.weight[at.child, at.slot]
        ratio = self.graph.log_density() - log(n)
        ratio += self._log_merge(&at)
        order = self.graph.order[at.slot]
        self._take_away(&at)
        ratio += self._log_room(&at) - self.graph.log_density()
        if log(draws.uniform(self.rng)) < -ratio:
            self.net.weight[at.child, at.slot] = self.net.weight[at.slot, at.parent] = 0.0
            self.net.weight[at.child, at.parent] = at.direct
            self.accepted[1] += 1
            return 0
        at.slot = self.graph.insert(order)
        self._insert(&at)
        return 0

    # -- the graph ----------------------------------------------------------------------------

    cdef void _draw_edge(self, Insertion* at) noexcept nogil:
        """A parent and a child, uniform among the edges."""
        cdef Py_ssize_t i, n = draws.below(self.rng, self.graph.n_edges)
        at.parent = at.child = -1
        for i in range(self.graph.n_nodes):
            at.child = self.graph.ascending[i]
            if n < self.graph.n_parents[at.child]:
                break
            n -= self.graph.n_parents[at.child]
        for i in range(self.graph.n_nodes):
            at.parent = self.graph.ascending[i]
            if self.graph.edge[at.child, at.parent]:
                if n == 0:
                    break
                n -= 1

    cdef double _log_room(self, const Insertion* at) noexcept nogil:
        """-log density of a split's edge and order."""
        return log(
            self.graph.n_edges * (self.graph.order[at.parent] - self.graph.order[at.child])
        )

    cdef void _insert(self, const Insertion* at) noexcept nogil:
        """Let the node, which has no edges yet, take the place of the edge."""
        self.graph.unlink(at.child, at.parent)
        self.graph.link(at.slot, at.parent)
        self.graph.link(at.child, at.slot)

    cdef void _take_away(self, const Insertion* at) noexcept nogil:
        """The edge again instead of the node."""
        self.graph.remove(at.slot)
        self.graph.link(at.child, at.parent)

    cdef Py_ssize_t _list_mergeable(self) noexcept nogil:
        """Fill ``mergeable`` with the nodes that a split may have made; their number."""
        cdef Insertion at
        cdef Py_ssize_t i, n = 0
        for i in range(self.graph.n_nodes):
            at.slot = self.graph.ascending[i]
            if self._find_ends(&at):
                self.mergeable[n] = at.slot
                n += 1
        return n

    cdef bint _find_ends(self, Insertion* at) noexcept nogil:
        """Whether a hidden node has one parent and one child that are not joined themselves."""
        cdef Py_ssize_t i, other
        if not self.graph.is_hidden(at.slot):
            return False
        if self.graph.n_parents[at.slot] != 1 or self.graph.n_children[at.slot] != 1:
            return False
        for i in range(self.graph.n_nodes):
            other = self.graph.ascending[i]
            if self.graph.edge[at.slot, other]:
                at.parent = other
            if self.graph.edge[other, at.slot]:
                at.child = other
        return not self.graph.edge[at.child, at.parent]

    # -- the rows, with the graph as it is before the move ------------------------------------

    cdef double _log_split(self, Insertion* at) noexcept nogil:
        """Rows' part of a split's log ratio; draws the node's activations."""
        cdef Py_ssize_t i
        cdef double rho = self.net.precision[at.child], w = at.weight, precision, mean, total
        cdef double spread = 1.0 / sqrt(self.net.precision[at.slot])
        cdef const double* u = &self.net.post[at.parent, 0]
        self.net.fill_residual(at.child, &self.residual[0])
        linalg.axpy(self.net.n_samples, at.direct, u, &self.residual[0])
        self._regress_direct(at, &mean, &precision)
        total = self._log_direct(at, mean, precision)
        for i in range(self.net.n_samples):
            mean = self.net.bias[at.slot] + self.net.weight[at.slot, at.parent] * u[i]
            total += draw_on_grid(
                self.rng, mean, spread, rho * w * self.residual[i], rho * w * w, &self.drawn[i]
            )
        return total

    cdef double _log_merge(self, Insertion* at) noexcept nogil:
        """The same of the split that would make the node; draws the weight of the edge."""
        cdef Py_ssize_t i
        cdef double rho = self.net.precision[at.child], w = at.weight, precision, mean, total
        cdef double spread = 1.0 / sqrt(self.net.precision[at.slot])
        cdef const double* u = &self.net.post[at.parent, 0]
        self.net.fill_residual(at.child, &self.residual[0])
        linalg.axpy(self.net.n_samples, w, &self.net.post[at.slot, 0], &self.residual[0])
        self._regress_direct(at, &mean, &precision)
        at.direct = mean + draws.normal(self.rng) / sqrt(precision)
        total = self._log_direct(at, mean, precision)
        for i in range(self.net.n_samples):
            mean = self.net.bias[at.slot] + self.net.weight[at.slot, at.parent] * u[i]
            total += weigh_on_grid(
                self.net.pre[at.slot, i], mean, spread, rho * w * self.residual[i], rho * w * w
            )
        return total

    cdef void _regress_direct(
        self, const Insertion* at, double* mean, double* precision
    ) noexcept nogil:
        """The normal law of the edge's weight given all else."""
        cdef double rho = self.net.precision[at.child]
        cdef const double* u = &self.net.post[at.parent, 0]
        precision[0] = self.net.weight_precision_from(at.parent) + rho * linalg.dot(
            self.net.n_samples, u, u
        )
        mean[0] = rho * linalg.dot(self.net.n_samples, u, &self.residual[0]) / precision[0]

    cdef double _log_direct(
        self, const Insertion* at, double mean, double precision
    ) noexcept nogil:
        """log of q(w) / N(w; 0, v) over the likelihood that the edge adds to the child's."""
        cdef Py_ssize_t i
        cdef double rho = self.net.precision[at.child], w = at.direct, rest, total
        cdef double prior = self.net.weight_precision_from(at.parent)
        cdef const double* u = &self.net.post[at.parent, 0]
        total = 0.5 * log(precision / prior)
        total -= 0.5 * precision * (w - mean) * (w - mean)
        total += 0.5 * prior * w * w
        for i in range(self.net.n_samples):
            rest = self.residual[i] - w * u[i]
            total += 0.5 * rho * (rest * rest - self.residual[i] * self.residual[i])
        return total
