"""A Gaussian network with a fixed graph: samples, likelihoods and slices over its noises.

Nodes stand at positions 0..n_nodes-1, parents before children. A node that is no input has
a = bias + sum_k w_k u_k + spread e, e ~ N(0, 1), over its parents, and u = tanh(a / 2). Of HIDDEN
nodes e is unknown; a and u of OBSERVED ones and u of INPUT ones are given. Values of a node are
contiguous, one for each of up to BLOCK rows, and rows are independent.
"""

from libc.math cimport cos, log, sin
from libc.string cimport memset
from numpy.random cimport bitgen_t

from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.numerics cimport rng as random
from skbnp.numerics.special cimport LOG_2_PI, PI

import numpy as np

cdef enum:
    MOST_SHRINKS = 200  # a bracket of doubles is a point long before


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
            constant = -0.5 * LOG_2_PI - log(self.spread[p])
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
        cdef Brackets rows
        cdef Py_ssize_t _
        rows.n, rows.temperature = n_rows, temperature
        self._read_noises(n_rows, a, u)
        self._misfit(n_rows, rows.misfit)
        self._open_brackets(&rows, rng)
        for _ in range(MOST_SHRINKS):
            self._propose(&rows)
            self._misfit(rows.n, rows.misfit)
            self._take_or_shrink(&rows, rng, a, u)
            if rows.n == 0:
                return

    cdef void _read_noises(self, Py_ssize_t n, double** a, double** u) noexcept nogil:
        """Noises and u of what moves; a less ``given`` of OBSERVED positions."""
        cdef Py_ssize_t p, e, i, k
        cdef double x
        cdef double* noise
        cdef double* given
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

    cdef void _open_brackets(self, Brackets* rows, bitgen_t** rng) noexcept nogil:
        """A direction for every row, its level below the misfit that there is, and an angle."""
        cdef Py_ssize_t i, p
        for i in range(rows.n):
            rows.row[i] = i
            for p in range(self.n_nodes):
                if self.kind[p] == HIDDEN:
                    self.direction[p * BLOCK + i] = random.normal(rng[i])
            # An exponential draw above the misfit; a uniform of 0 must not let a NaN through.
            rows.level[i] = (
                rows.temperature * rows.misfit[i] - log(1.0 - random.uniform(rng[i]))
            )
            rows.high[i] = 2.0 * PI * random.uniform(rng[i])
            rows.angle[i], rows.low[i] = rows.high[i], rows.high[i] - 2.0 * PI

    cdef void _propose(self, Brackets* rows) noexcept nogil:
        """a and u of HIDDEN positions at the present angles."""
        cdef double[BLOCK] along
        cdef double[BLOCK] across
        cdef Py_ssize_t p, e, i, k, n = rows.n
        cdef double spread
        cdef double* noise
        cdef double* direction
        cdef double* given
        cdef double* out
        for i in range(n):
            along[i], across[i] = cos(rows.angle[i]), sin(rows.angle[i])
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

    cdef void _take_or_shrink(
        self, Brackets* rows, bitgen_t** rng, double** a, double** u
    ) noexcept nogil:
        """Take the proposals that are likely enough; shrink the brackets of the other rows."""
        cdef Py_ssize_t i, p, n_left = 0
        for i in range(rows.n):
            if rows.temperature * rows.misfit[i] <= rows.level[i]:
                for p in range(self.n_nodes):
                    if self.kind[p] == HIDDEN:
                        a[p][rows.row[i]] = self.a[p * BLOCK + i]
                        u[p][rows.row[i]] = self.u[p * BLOCK + i]
                continue
            if rows.angle[i] < 0.0:
                rows.low[i] = rows.angle[i]
            else:
                rows.high[i] = rows.angle[i]
            rows.angle[n_left] = rows.low[i] + (
                rows.high[i] - rows.low[i]
            ) * random.uniform(rng[rows.row[i]])
            if n_left < i:
                self._move_row(rows, i, n_left)
            n_left += 1
        rows.n = n_left

    cdef void _move_row(self, Brackets* rows, Py_ssize_t i, Py_ssize_t to) noexcept nogil:
        """Let a row whose bracket is open stand at an earlier place."""
        cdef Py_ssize_t p
        rows.level[to], rows.low[to], rows.high[to] = rows.level[i], rows.low[i], rows.high[i]
        rows.row[to] = rows.row[i]
        for p in range(self.n_nodes):
            if self.kind[p] == INPUT:
                continue
            self.noise[p * BLOCK + to] = self.noise[p * BLOCK + i]
            if self.kind[p] == HIDDEN:
                self.direction[p * BLOCK + to] = self.direction[p * BLOCK + i]
                self.given[p * BLOCK + to] = self.given[p * BLOCK + i]

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


cdef inline void add(Py_ssize_t n, double w, const double* x, double* out) noexcept nogil:
    """out += w x; blocks are short, and BLAS is not worth its call."""
    cdef Py_ssize_t i
    for i in range(n):
        out[i] += w * x[i]
