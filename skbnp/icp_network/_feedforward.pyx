"""A Gaussian network with a fixed graph: samples, likelihoods and slices over its noises.

Nodes stand at positions 0..n_nodes-1, parents before children. A node that is no input has
a = bias + sum_k w_k u_k + spread e, e ~ N(0, 1), over its parents, and u = tanh(a / 2). Of HIDDEN
nodes e is unknown; a and u of OBSERVED ones and u of INPUT ones are given. Values of a node are
contiguous, one for each of up to BLOCK rows, and rows are independent.
"""

from libc.math cimport cos, log, sin
from libc.stdint cimport uint64_t
from libc.string cimport memset
from numpy.random cimport bitgen_t

from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.numerics cimport rng as random
from skbnp.numerics.rng cimport RowStream

import numpy as np

cdef enum:
    MOST_SHRINKS = 200  # a bracket of doubles is a point long before

cdef double TWO_PI = 6.283185307179586


cdef class Feedforward:
    """Arrays may be longer than ``n_nodes`` and their edges; whoever reserves fills them in.

    Not for several threads at once.
    """

    def __init__(
        self, kind=(), parent_start=(0,), parent=(), weight=(), bias=(), spread=()
    ):
        n_nodes, n_edges = len(kind), len(parent)
        self._grow(max(1, n_nodes), max(1, n_edges))
        self.n_nodes = n_nodes
        np.asarray(self.kind)[:n_nodes] = kind
        np.asarray(self.parent_start)[:n_nodes + 1] = parent_start
        np.asarray(self.parent)[:n_edges] = parent
        np.asarray(self.weight)[:n_edges] = weight
        np.asarray(self.bias)[:n_nodes] = bias
        np.asarray(self.spread)[:n_nodes] = spread

    cdef int reserve(self, Py_ssize_t n_nodes, Py_ssize_t n_edges) except -1 nogil:
        """Make room; what was filled in is lost where that takes new arrays."""
        if n_nodes > self.kind.shape[0] or n_edges > self.parent.shape[0]:
            with gil:
                self._grow(
                    max(n_nodes, 2 * self.kind.shape[0]), max(n_edges, 2 * self.parent.shape[0])
                )
        return 0

    cdef int _grow(self, Py_ssize_t n_nodes, Py_ssize_t n_edges) except -1:
        self.kind = np.zeros(n_nodes, dtype=np.uint8)
        self.parent_start = np.zeros(n_nodes + 1, dtype=np.intp)
        self.parent = np.zeros(n_edges, dtype=np.intp)
        self.weight, self.bias = np.zeros(n_edges), np.zeros(n_nodes)
        self.spread = np.ones(n_nodes)
        self.scratch = np.empty(5 * n_nodes * BLOCK)
        self.noise = &self.scratch[0]
        self.direction = self.noise + n_nodes * BLOCK
        self.given = self.direction + n_nodes * BLOCK
        self.a = self.given + n_nodes * BLOCK
        self.u = self.a + n_nodes * BLOCK
        return 0

    # -- given the noises ---------------------------------------------------------------------

    cdef void forward(self, Py_ssize_t n_rows, double** a, double** u) noexcept nogil:
        """Replace noises e in a[p] of HIDDEN positions by pre-activations; sets their u."""
        cdef Py_ssize_t p, i
        cdef double* mean = self.given
        for p in range(self.n_nodes):
            if self.kind[p] != HIDDEN:
                continue
            self._means(p, n_rows, u, mean)
            for i in range(n_rows):
                a[p][i] = mean[i] + self.spread[p] * a[p][i]
            squash_all(n_rows, a[p], u[p])

    cdef void log_likelihood(
        self, Py_ssize_t n_rows, double** a, double** u, double* out
    ) noexcept nogil:
        """sum over OBSERVED positions of log N(a; mean, spread^2), of each row."""
        cdef Py_ssize_t p, i
        cdef double* mean = self.given
        cdef double constant, half
        memset(out, 0, n_rows * sizeof(double))
        for p in range(self.n_nodes):
            if self.kind[p] != OBSERVED:
                continue
            self._means(p, n_rows, u, mean)
            constant = -0.5 * log(TWO_PI) - log(self.spread[p])
            half = 0.5 / (self.spread[p] * self.spread[p])
            for i in range(n_rows):
                out[i] += constant - half * (a[p][i] - mean[i]) * (a[p][i] - mean[i])

    cdef void _means(
        self, Py_ssize_t p, Py_ssize_t n_rows, double** u, double* out
    ) noexcept nogil:
        cdef Py_ssize_t e, i
        for i in range(n_rows):
            out[i] = self.bias[p]
        for e in range(self.parent_start[p], self.parent_start[p + 1]):
            add(n_rows, self.weight[e], u[self.parent[e]], out)

    # -- a slice over the noises --------------------------------------------------------------

    cdef void slice_noises(
        self, bitgen_t** rng, Py_ssize_t n_rows, double** a, double** u, double temperature
    ) noexcept nogil:
        """One elliptical slice of all hidden noises of each row (Murray, Adams & MacKay 2010).

        Descendants follow their ancestors. The likelihood of a row is ``temperature`` times the
        sum over OBSERVED positions of -(a - mean)^2 / (2 spread^2); a and u of HIDDEN positions
        are updated in place. Rows have random numbers of their own, ``rng`` (n_rows,). Only rows
        whose bracket still shrinks are computed again.
        """
        cdef double level[BLOCK]
        cdef double angle[BLOCK]
        cdef double low[BLOCK]
        cdef double high[BLOCK]
        cdef double misfit[BLOCK]
        cdef double along[BLOCK]
        cdef double across[BLOCK]
        cdef Py_ssize_t row[BLOCK]
        cdef Py_ssize_t p, e, i, k, _, n = n_rows, kept
        cdef double spread, x
        cdef double* noise
        cdef double* direction
        cdef double* given
        cdef double* out
        for p in range(self.n_nodes):
            if self.kind[p] == INPUT:
                continue
            noise, given = self.noise + p * BLOCK, self.given + p * BLOCK
            for i in range(n):
                given[i] = self.bias[p]
            for e in range(self.parent_start[p], self.parent_start[p + 1]):
                k = self.parent[e]
                if self.kind[k] != HIDDEN:
                    add(n, self.weight[e], u[k], given)
            for i in range(n):
                noise[i] = a[p][i] - given[i]
            if self.kind[p] == OBSERVED:
                continue
            for e in range(self.parent_start[p], self.parent_start[p + 1]):
                k = self.parent[e]
                if self.kind[k] == HIDDEN:
                    add(n, -self.weight[e], u[k], noise)
            x = 1.0 / self.spread[p]
            for i in range(n):
                noise[i] *= x
                self.u[p * BLOCK + i] = u[p][i]
        self._misfit(n, misfit)
        for i in range(n):
            row[i] = i
            for p in range(self.n_nodes):
                if self.kind[p] == HIDDEN:
                    self.direction[p * BLOCK + i] = random.normal(rng[i])
            # An exponential draw above the misfit; a uniform of 0 must not let a NaN through.
            level[i] = temperature * misfit[i] - log(1.0 - random.uniform(rng[i]))
            high[i] = TWO_PI * random.uniform(rng[i])
            angle[i], low[i] = high[i], high[i] - TWO_PI

        for _ in range(MOST_SHRINKS):
            for i in range(n):
                along[i], across[i] = cos(angle[i]), sin(angle[i])
            for p in range(self.n_nodes):
                if self.kind[p] != HIDDEN:
                    continue
                noise, direction = self.noise + p * BLOCK, self.direction + p * BLOCK
                given, out = self.given + p * BLOCK, self.a + p * BLOCK
                spread = self.spread[p]
                for i in range(n):
                    out[i] = given[i] + spread * (along[i] * noise[i] + across[i] * direction[i])
                for e in range(self.parent_start[p], self.parent_start[p + 1]):
                    k = self.parent[e]
                    if self.kind[k] == HIDDEN:
                        add(n, self.weight[e], self.u + k * BLOCK, out)
                squash_all(n, out, self.u + p * BLOCK)
            self._misfit(n, misfit)

            kept = 0
            for i in range(n):
                if temperature * misfit[i] <= level[i]:
                    for p in range(self.n_nodes):
                        if self.kind[p] == HIDDEN:
                            a[p][row[i]] = self.a[p * BLOCK + i]
                            u[p][row[i]] = self.u[p * BLOCK + i]
                    continue
                if angle[i] < 0.0:
                    low[i] = angle[i]
                else:
                    high[i] = angle[i]
                angle[kept] = low[i] + (high[i] - low[i]) * random.uniform(rng[row[i]])
                if kept < i:
                    level[kept], low[kept], high[kept] = level[i], low[i], high[i]
                    row[kept] = row[i]
                    for p in range(self.n_nodes):
                        if self.kind[p] == INPUT:
                            continue
                        self.noise[p * BLOCK + kept] = self.noise[p * BLOCK + i]
                        if self.kind[p] == HIDDEN:
                            self.direction[p * BLOCK + kept] = self.direction[p * BLOCK + i]
                            self.given[p * BLOCK + kept] = self.given[p * BLOCK + i]
                kept += 1
            n = kept
            if n == 0:
                return

    cdef bint _has_hidden_parent(self, Py_ssize_t p) noexcept nogil:
        cdef Py_ssize_t e
        for e in range(self.parent_start[p], self.parent_start[p + 1]):
            if self.kind[self.parent[e]] == HIDDEN:
                return True
        return False

    cdef void _misfit(self, Py_ssize_t n_rows, double* out) noexcept nogil:
        """sum over OBSERVED positions of (a - mean)^2 / (2 spread^2), of the proposal's u.

        Positions without hidden parents add the same to every proposal, and are left out.
        """
        cdef double rest[BLOCK]
        cdef Py_ssize_t p, e, i, k
        cdef double half
        memset(out, 0, n_rows * sizeof(double))
        for p in range(self.n_nodes):
            if self.kind[p] != OBSERVED or not self._has_hidden_parent(p):
                continue
            half = 0.5 / (self.spread[p] * self.spread[p])
            for i in range(n_rows):
                rest[i] = self.noise[p * BLOCK + i]
            for e in range(self.parent_start[p], self.parent_start[p + 1]):
                k = self.parent[e]
                if self.kind[k] == HIDDEN:
                    add(n_rows, -self.weight[e], self.u + k * BLOCK, rest)
            for i in range(n_rows):
                out[i] += half * rest[i] * rest[i]

    # -- Python faces -------------------------------------------------------------------------

    def sliced(self, uint64_t seed, a, u, double temperature=1.0, Py_ssize_t n_steps=1):
        """Values (n_nodes, n_rows) of a and u after so many slices; row i has stream i."""
        cdef double[:, ::1] a_new = np.array(a, dtype=np.float64, order="C")
        cdef double[:, ::1] u_new = np.array(u, dtype=np.float64, order="C")
        cdef Py_ssize_t first, n, i, p, _, n_rows = a_new.shape[1]
        cdef RowStream stream[BLOCK]
        cdef bitgen_t* rng[BLOCK]
        cdef Py_ssize_t[:, ::1] at = np.empty((2, max(1, self.n_nodes)), dtype=np.intp)
        cdef double** at_a = <double**> &at[0, 0]
        cdef double** at_u = <double**> &at[1, 0]
        for first in range(0, n_rows, BLOCK):
            n = min(<Py_ssize_t> BLOCK, n_rows - first)
            for i in range(n):
                random.start_row_stream(&stream[i], seed, 0, first + i)
                rng[i] = &stream[i].rng
            for p in range(self.n_nodes):
                at_a[p], at_u[p] = &a_new[p, first], &u_new[p, first]
            for _ in range(n_steps):
                self.slice_noises(rng, n, at_a, at_u, temperature)
        return np.asarray(a_new), np.asarray(u_new)


cdef inline void add(Py_ssize_t n, double w, const double* x, double* out) noexcept nogil:
    """out += w x; blocks are short, and BLAS is not worth its call."""
    cdef Py_ssize_t i
    for i in range(n):
        out[i] += w * x[i]
