"""Values of all nodes of a draw for some rows, and what is not known of them drawn."""

from libc.string cimport memcpy

from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.likelihoods.nonlinear_gaussian._feedforward cimport (
    BLOCK, HIDDEN, INPUT, OBSERVED, Feedforward,
)
from skbnp.numerics cimport rng as random

import numpy as np

cdef enum:
    NODES = 21      # of Gauss-Hermite quadrature over a unit's own noise
    LEFT_OUT = 255  # a kind that Feedforward does not know

# Nodes and shares of the quadrature.
_nodes, _shares = np.polynomial.hermite_e.hermegauss(NODES)
RULE = _nodes, _shares / _shares.sum()


def part_of(draw, kind):
    """The nodes that are not left out as a Feedforward, and which they are."""
    order = np.argsort(-draw["order"], kind="stable")
    nodes = order[kind[order] != LEFT_OUT]
    position = np.full(len(order), -1)
    position[nodes] = np.arange(len(nodes))
    parents, children = np.asarray(draw["edges"]).reshape(-1, 2).T
    kept = np.flatnonzero((kind[children] == HIDDEN) | (kind[children] == OBSERVED))
    kept = kept[np.argsort(position[children[kept]], kind="stable")]
    start = np.searchsorted(position[children[kept]], np.arange(len(nodes) + 1))
    net = Feedforward(
        kind[nodes], start, position[parents[kept]], draw["weights"][kept], draw["biases"][nodes],
        1.0 / np.sqrt(draw["unit_precision"][nodes]),
    )
    return net, nodes


cdef class Particles:
    """Values of all nodes for up to BLOCK rows, or copies of them, which know the same entries.

    ``above`` has what is known and what that descends from; ``rest`` the others, with the
    nodes of ``above`` as inputs, and those of them without children, whose means alone matter,
    as observed.

    Parameters
    ----------
    draw : dict
        "edges" (n_edges, 2), [parent, child], sorted by child, and their "weights"; "biases" and
        "unit_precision" of all K nodes, the observed ones first; "order" (K,), that of a parent
        above its children's.
    known : array of shape (n_observed,)
        Which entries of the rows are.
    law : array of shape (K,), default=None
        Which nodes have one, and are no inputs; None is all of them.
    """

    def __init__(self, draw, known, law=None):
        cdef Py_ssize_t k, K = len(draw["order"]), D = len(known)
        edges = np.asarray(draw["edges"], dtype=np.intp).reshape(-1, 2)
        law = np.ones(K, dtype=bool) if law is None else law
        given = np.zeros(K, dtype=bool)
        given[:D] = known
        if not given[~law].all():
            raise ValueError("A must have all inputs")
        # Children are done before their parents: who has a descendant among the known?
        matters, parent_of = given & law, np.zeros(K, dtype=bool)
        start = np.searchsorted(edges[:, 1], np.arange(K + 1))
        for k in np.argsort(draw["order"], kind="stable"):
            if matters[k]:
                parents = edges[start[k]:start[k + 1], 0]
                matters[parents] |= ~given[parents]
        rest = ~given & ~matters
        parent_of[edges[:, 0]] = True
        kind = np.full(K, HIDDEN, dtype=np.uint8)
        kind[given], kind[~law], kind[rest] = OBSERVED, INPUT, LEFT_OUT
        self.above, above_nodes = part_of(draw, kind)
        self.random = (kind == HIDDEN).any()
        kind = np.full(K, INPUT, dtype=np.uint8)
        kind[rest] = np.where(parent_of[rest], HIDDEN, OBSERVED)
        self.rest, rest_nodes = part_of(draw, kind)
        self.shared = not given[edges[~given[edges[:, 1]], 0]].any()
        self.known, self.n_nodes = np.asarray(known), K
        self.input, self.later = (~law).astype(np.uint8), rest.astype(np.uint8)
        self.leaf = (rest & ~parent_of).astype(np.uint8)
        self.known_nodes, self.above_nodes = np.flatnonzero(known), above_nodes
        self.rest_nodes = rest_nodes
        rest_position = np.empty(K, dtype=np.intp)
        rest_position[rest_nodes] = np.arange(K)
        self.rest_position = rest_position
        self.a, self.u, self.mean = np.zeros((3, K, BLOCK))
        self.pointer = np.zeros((4, K), dtype=np.intp)
        self.above_a, self.above_u, self.rest_a, self.rest_u = (
            <double**> &self.pointer[0, 0], <double**> &self.pointer[1, 0],
            <double**> &self.pointer[2, 0], <double**> &self.pointer[3, 0],
        )
        for k in range(self.above_nodes.shape[0]):
            self.above_a[k] = &self.a[self.above_nodes[k], 0]
            self.above_u[k] = &self.u[self.above_nodes[k], 0]
        for k in range(K):
            self.rest_a[k] = &self.a[self.rest_nodes[k], 0]
            self.rest_u[k] = &self.u[self.rest_nodes[k], 0]
        self.node, self.share = RULE

    cdef void know(self, Py_ssize_t i, const double* row) noexcept nogil:
        """Particle i is of this row (D,)."""
        cdef Py_ssize_t j, k
        for j in range(self.known_nodes.shape[0]):
            k = self.known_nodes[j]
            self.a[k, i] = row[k]
            if self.input[k]:
                self.u[k, i] = row[k]
            else:
                squash_all(1, &self.a[k, i], &self.u[k, i])

    cdef void know_all(self, const double* row, Py_ssize_t n) noexcept nogil:
        """All of n particles are of this row."""
        cdef Py_ssize_t i, j, k
        self.n = n
        self.know(0, row)
        for j in range(self.known_nodes.shape[0]):
            k = self.known_nodes[j]
            for i in range(1, n):
                self.a[k, i], self.u[k, i] = self.a[k, 0], self.u[k, 0]

    cdef void follow(self, const double[:, ::1] noise, Py_ssize_t first) noexcept nogil:
        """All nodes that are not known from the columns of ``noise`` (K, n_fantasies)."""
        cdef Py_ssize_t k
        for k in range(self.n_nodes):
            if self.later[k] and not self.leaf[k]:
                memcpy(&self.a[k, 0], &noise[k, first], self.n * sizeof(double))
        for k in range(self.above.n_nodes):
            if self.above.kind[k] == HIDDEN:
                memcpy(self.above_a[k], &noise[self.above_nodes[k], first],
                       self.n * sizeof(double))
        self.above.forward(self.n, self.above_a, self.above_u)
        self.rest.forward(self.n, self.rest_a, self.rest_u)

    cdef void start(self) noexcept nogil:
        """What the known entries descend from, from the network's prior."""
        cdef Py_ssize_t i, k
        for k in range(self.above.n_nodes):
            if self.above.kind[k] == HIDDEN:
                for i in range(self.n):
                    self.above_a[k][i] = random.normal(self.rng[i])
        self.above.forward(self.n, self.above_a, self.above_u)

    cdef void finish(self) noexcept nogil:
        """What they do not descend from, given the others."""
        cdef Py_ssize_t i, k
        for k in range(self.rest.n_nodes):
            if self.rest.kind[k] == HIDDEN:
                for i in range(self.n):
                    self.rest_a[k][i] = random.normal(self.rng[i])
        self.rest.forward(self.n, self.rest_a, self.rest_u)

    cdef void measure(self) noexcept nogil:
        self.above.log_likelihood(self.n, self.above_a, self.above_u, self.log_likelihood)

    cdef void sweep(self, double heat) noexcept nogil:
        self.above.slice_noises(self.rng, self.n, self.above_a, self.above_u, heat)

    # -- what is asked of the particles

    cdef void moments(
        self, const Py_ssize_t[::1] wanted, int mode, double* mean, double* variance
    ) noexcept nogil:
        """Mean and variance (n, n_wanted) of nodes that are not known, over the own noise of those
        outside ``above``.
        """
        cdef Py_ssize_t i, j, k, h, n_wanted = wanted.shape[0], p
        cdef double one, two, spread
        cdef double[NODES] x
        for j in range(n_wanted):
            k = wanted[j]
            if self.later[k]:
                self.rest._means(
                    self.rest_position[k], self.n, self.rest_u, &self.mean[k, 0]
                )
        for j in range(n_wanted):
            k = wanted[j]
            p = self.rest_position[k]
            spread = self.rest.spread[p]
            for i in range(self.n):
                if not self.later[k]:
                    one = self.a[k, i] if mode == VALUES else self.u[k, i]
                    two = 0.0
                elif mode == VALUES:
                    one, two = self.mean[k, i], spread * spread
                else:
                    for h in range(NODES):
                        x[h] = self.mean[k, i] + spread * self.node[h]
                    squash_all(NODES, x, x)
                    one, two = 0.0, 0.0
                    for h in range(NODES):
                        one += self.share[h] * x[h]
                    for h in range(NODES):
                        two += self.share[h] * (x[h] - one) * (x[h] - one)
                mean[i * n_wanted + j] = one
                variance[i * n_wanted + j] = two
