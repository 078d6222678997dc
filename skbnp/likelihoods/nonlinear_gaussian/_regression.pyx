"""One unit of a network regressed on its candidate parents, bias and weights integrated out.

a ~ N(Phi_S w, 1 / nu) with w_j ~ N(mean_j, 1 / precision_j); S are the active candidates, column 0
of Phi is the bias. The data enter through Phi'Phi, Phi'a and a'a alone.
"""

from libc.math cimport NAN, fmax, log

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI

cdef enum:
    BLOCK = 32          # candidates that are swept at once


cdef class RowRegression:
    """Posterior of one unit's bias and weights for a set S of parents that changes one by one.

    The matrix M = [[P, h], [h', 0]], P = nu Phi'Phi + diag(precision), h = precision mean +
    nu Phi'a, is held swept on S: there it shows -Sigma, outside S the Schur complements, in its
    last column the posterior means on S and the projected h_j outside, in its corner
    -h_S' Sigma h_S. So the gain of any parent is O(1) and a change of S O(size^2) by one symmetric
    rank-one update (BLAS 2); a row starts by sweeping blocks of its parents (BLAS 3).
    """

    def __cinit__(self, *args, **kwargs):
        self.active = np.zeros(0, dtype=np.uint8)

    def __init__(self, Py_ssize_t size=8):
        self.size = 0
        self.reserve(size)

    cdef int reserve(self, Py_ssize_t size) except -1:
        """Room for so many candidates, the bias included."""
        if self.active.shape[0] >= size:
            return 0
        cdef Py_ssize_t room = 2 * size
        self.active = np.zeros(room, dtype=np.uint8)
        self.prior_mean, self.prior_precision = np.zeros(room), np.ones(room)
        self.side, self.normals, self.column = np.zeros(room), np.zeros(room), np.zeros(room + 1)
        self.swept, self.factor = np.zeros((room + 1) * (room + 1)), np.zeros(room * room)
        self.block = np.zeros(BLOCK * (room + 1 + 2 * BLOCK))
        self.chosen = np.zeros(room, dtype=np.intp)
        return 0

    cdef int start(
        self, Py_ssize_t size, const double* gram, Py_ssize_t gram_stride, Py_ssize_t n_rows,
        double square, double noise_precision,
    ) noexcept nogil:
        """Begin with the data of a row; ``active``, the prior and ``side`` have been filled in.

        Cost O(|S| size^2). Non-zero: the matrix is not positive definite.
        """
        cdef Py_ssize_t i, j, n = size + 1
        cdef double* row = &self.swept[0]
        self.size, self.gram, self.gram_stride = size, gram, gram_stride
        self.n_rows, self.square, self.noise_precision = n_rows, square, noise_precision
        for i in range(size):
            for j in range(i, size):
                row[j] = noise_precision * gram[i * gram_stride + j]
            row[i] += self.prior_precision[i]
            row[size] = (
                self.prior_precision[i] * self.prior_mean[i] + noise_precision * self.side[i]
            )
            row += n
        row[size] = 0.0
        i = 0
        for j in range(size):
            if self.active[j]:
                self.chosen[i] = j
                i += 1
            if i == BLOCK or (j == size - 1 and i > 0):
                if self._sweep_block(i) != 0:
                    return 1
                i = 0
        return 0

    cdef double gain(self, Py_ssize_t j) noexcept nogil:
        """log evidence with candidate j less that without, the others as they are: O(1)."""
        cdef Py_ssize_t n = self.size + 1
        cdef double pivot = self.swept[j * n + j], h = self.swept[j * n + self.size]
        cdef double rho = self.prior_precision[j], mean = self.prior_mean[j]
        if self.active[j]:
            return 0.5 * (log(-rho * pivot) - h * h / pivot - rho * mean * mean)
        return 0.5 * (log(rho / pivot) + h * h / pivot - rho * mean * mean)

    cdef double gain_of_new(
        self, const double* products, double own, double side, double mean, double precision
    ) noexcept nogil:
        """The same for a parent u that is no candidate: O(|S|^2).

        ``products`` are Phi_j'u of all candidates, ``own`` is u'u and ``side`` u'a.
        """
        cdef Py_ssize_t i, j, n = self.size + 1
        cdef double nu = self.noise_precision, of_i
        cdef double pivot = precision + nu * own, h = precision * mean + nu * side
        cdef const double* row = &self.swept[0]
        for i in range(self.size):
            if self.active[i]:
                of_i = row[i] * products[i]
                for j in range(i + 1, self.size):
                    if self.active[j]:
                        of_i += 2.0 * row[j] * products[j]
                pivot += nu * nu * of_i * products[i]
                h -= nu * products[i] * row[self.size]
            row += n
        return 0.5 * (log(precision / pivot) + h * h / pivot - precision * mean * mean)

    cdef int flip(self, Py_ssize_t j) noexcept nogil:
        """Put candidate j into S or take it out; non-zero if the pivot has lost its digits."""
        if self._sweep(j, self.active[j]) != 0:
            return 1
        self.active[j] = 1 - self.active[j]
        return 0

    cdef int _sweep(self, Py_ssize_t k, bint back) noexcept nogil:
        """The sweep operator on k, or its inverse: the two differ by a sign on row k."""
        cdef Py_ssize_t j, n = self.size + 1
        cdef double* column = &self.column[0]
        cdef double* matrix = &self.swept[0]
        cdef double pivot = matrix[k * n + k], scale
        if not (pivot < 0.0 if back else pivot > 0.0):
            return 1
        for j in range(k):
            column[j] = matrix[j * n + k]
        for j in range(k, n):
            column[j] = matrix[k * n + j]
        column[k] = 0.0
        linalg.symmetric_rank_one(n, -1.0 / pivot, column, matrix)
        scale = -1.0 / pivot if back else 1.0 / pivot
        for j in range(k):
            matrix[j * n + k] = scale * column[j]
        for j in range(k + 1, n):
            matrix[k * n + j] = scale * column[j]
        matrix[k * n + k] = -1.0 / pivot
        return 0

    cdef int _sweep_block(self, Py_ssize_t m) noexcept nogil:
        """The sweep operator on the first m of ``chosen`` at once (BLAS 3)."""
        cdef Py_ssize_t a, b, i, j, n = self.size + 1
        cdef double* matrix = &self.swept[0]
        cdef double* rows = &self.block[0]          # (m, n) of the matrix, 0 at each other
        cdef double* own = &self.block[m * n]       # (m, m), factored
        cdef double* inverse = own + m * m
        for a in range(m):
            i = self.chosen[a]
            for j in range(i):
                rows[a * n + j] = matrix[j * n + i]
            for j in range(i, n):
                rows[a * n + j] = matrix[i * n + j]
        for a in range(m):
            for b in range(m):
                own[a * m + b] = rows[a * n + self.chosen[b]]
                rows[a * n + self.chosen[b]] = 0.0
                inverse[a * m + b] = a == b
        if linalg.cholesky(own, m) != 0:
            return 1
        linalg.solve_columns(own, m, rows, n, False)
        linalg.add_gram(m, n, -1.0, rows, matrix)
        linalg.solve_columns(own, m, rows, n, True)
        linalg.solve_columns(own, m, inverse, m, False)
        linalg.solve_columns(own, m, inverse, m, True)
        for a in range(m):
            i = self.chosen[a]
            for j in range(i):
                matrix[j * n + i] = rows[a * n + j]
            for j in range(i, n):
                matrix[i * n + j] = rows[a * n + j]
        for a in range(m):
            for b in range(a, m):
                matrix[self.chosen[a] * n + self.chosen[b]] = -inverse[a * m + b]
        return 0

    cdef double log_evidence(self) noexcept nogil:
        """log p(a | S): O(size + |S|^3), for tests and summaries; moves need gains alone."""
        cdef Py_ssize_t i, n_chosen = self._factor_precision()
        cdef double total, rho, mean
        if n_chosen < 0:
            return NAN
        total = 0.5 * self.n_rows * (log(self.noise_precision) - LOG_2_PI)
        total -= 0.5 * linalg.log_det(&self.factor[0], n_chosen)
        total -= 0.5 * self.noise_precision * self.square
        total -= 0.5 * self.swept[self.size * (self.size + 2)]
        for i in range(self.size):
            if self.active[i]:
                rho, mean = self.prior_precision[i], self.prior_mean[i]
                total += 0.5 * (log(rho) - rho * mean * mean)
        return total

    cdef Py_ssize_t _factor_precision(self) noexcept nogil:
        """Factor P_SS, listing S in ``chosen``; its size, -1 if it is not positive definite."""
        cdef Py_ssize_t i, a, b, m = 0
        cdef double* out = &self.factor[0]
        for i in range(self.size):
            if self.active[i]:
                self.chosen[m] = i
                m += 1
        for a in range(m):
            i = self.chosen[a]
            for b in range(a, m):
                out[a * m + b] = (
                    self.noise_precision * self.gram[i * self.gram_stride + self.chosen[b]]
                )
            out[a * m + a] += self.prior_precision[i]
        return m if linalg.cholesky(out, m) == 0 else -1

    cdef int draw(self, bitgen_t* rng, double* weight) noexcept nogil:
        """Draw bias and weights from N(mean, P_SS^-1) into weight (size,), 0 outside S."""
        cdef Py_ssize_t i, a, m = self._factor_precision(), n = self.size + 1
        if m < 0:
            return 1
        for a in range(m):
            self.normals[a] = draws.normal(rng)
        linalg.solve(&self.factor[0], m, &self.normals[0])
        for i in range(self.size):
            weight[i] = 0.0
        for a in range(m):
            i = self.chosen[a]
            weight[i] = self.swept[i * n + self.size] + self.normals[a]
        return 0

    cdef double squared_residual(self, const double* weight) noexcept nogil:
        """|a - Phi w|^2 for weights that are 0 outside S."""
        cdef Py_ssize_t i, j
        cdef double total = self.square, of_i
        for i in range(self.size):
            if not self.active[i]:
                continue
            of_i = 0.5 * self.gram[i * self.gram_stride + i] * weight[i] - self.side[i]
            for j in range(i + 1, self.size):
                if self.active[j]:
                    of_i += self.gram[i * self.gram_stride + j] * weight[j]
            total += 2.0 * weight[i] * of_i
        return fmax(total, 0.0)
