"""Sums over the rows of a piece that the loadings want: products of scores, and with the data."""

from libc.string cimport memcpy

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.tree_factor_model._rows cimport CHUNK


cdef class Products(Work):
    """sum u z z' and sum u z y' over the rows of piece k, z = (x, 1).

    Who draws scores makes them on the way, while the rows are at hand; else ``need`` does.
    """

    def __init__(self, State state, Pool pool):
        self.state, self.pool = state, pool
        self.gram = self.side = np.zeros((0, 0))

    cdef int need(self) except -1:
        """Make them unless they are those of the state as it is."""
        if self._version != self.state.version:
            self.begin()
            self.pool.run(self, self.state.n_pieces)
            self.finish()
        return 0

    cdef int begin(self) except -1:
        """Room for all pieces."""
        if self.gram.shape[0] < self.state.n_pieces:
            n, width = 2 * self.state.n_pieces, self.state.max_depth + 1
            self.gram = np.empty((n, width**2))
            self.side = np.empty((n, width * self.state.n_features))
        return 0

    cdef void finish(self) noexcept nogil:
        """They are those of the state as it is."""
        self._version = self.state.version

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef Py_ssize_t t = self.state.piece_start[k], n, j
        self.clear(k)
        while t < self.state.piece_start[k + 1]:
            n = min(<Py_ssize_t> CHUNK, self.state.piece_start[k + 1] - t)
            for j in range(n):
                scratch.law.chosen[j] = self.state.order[t + j]
            self.add_chunk(scratch.law, k, n)
            t += n
        return 0

    cdef void clear(self, Py_ssize_t r) noexcept nogil:
        cdef Py_ssize_t h, width = self.state.depth + 1
        for h in range(width * width):
            self.gram[r, h] = 0.0
        for h in range(width * self.state.n_features):
            self.side[r, h] = 0.0

    cdef void add_chunk(self, Law law, Py_ssize_t r, Py_ssize_t n) noexcept nogil:
        """Add the products of n chosen rows."""
        cdef Py_ssize_t k, i, width = self.state.depth + 1, n_features = self.state.n_features
        cdef double* weighted
        for k in range(n):
            i = law.chosen[k]
            self.copy_row(i, &law.omega[k * width], &law.other[k * width])
            memcpy(&law.residual[k * n_features], &self.state.rows.X[i, 0],
                   n_features * sizeof(double))
        weighted = &law.other[0] if self.state.hyper.has_tail else &law.omega[0]
        linalg.gemm(True, False, width, width, n, 1.0, weighted, &law.omega[0], 1.0,
                    &self.gram[r, 0])
        linalg.gemm(True, False, width, n_features, n, 1.0, weighted, &law.residual[0], 1.0,
                    &self.side[r, 0])

    cdef void copy_row(self, Py_ssize_t i, double* row, double* weighted) noexcept nogil:
        """z_i = (x_i, 1), and u_i z_i where u_i is not 1."""
        cdef Py_ssize_t h, depth = self.state.depth
        cdef double u = self.state.row_precision[i]
        memcpy(row, &self.state.scores[i, 0], depth * sizeof(double))
        row[depth] = 1.0
        if self.state.hyper.has_tail:
            for h in range(depth + 1):
                weighted[h] = u * row[h]
