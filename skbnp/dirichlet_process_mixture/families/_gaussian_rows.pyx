"""Rows of real cells under the blocks of one draw: densities, moments and draws of missing cells.

Everything runs without the GIL, so row blocks may run in threads.
"""

from libc.math cimport INFINITY, NAN, log, log1p, sqrt
from libc.string cimport memcpy

import numpy as np

from skbnp.likelihoods.conjugate.gaussians cimport permuted_factor, solve_leading
from skbnp.numerics cimport linalg
from skbnp.numerics._moments cimport merge_part
from skbnp.numerics.special cimport LOG_PI, lgamma
from skbnp.numerics.vector_math cimport TILE, log1p_all, squared_distances


cdef double LARGE = 1e150       # beyond it a product would overflow


cdef class PatternRows:
    """Real cells of rows sorted by their pattern of missing cells."""

    cdef:
        double[:, ::1] x                    # (n_rows, n_features), NaN where missing
        double[:, ::1] by_column            # (n_features, n_rows), the same
        Py_ssize_t[::1] start               # (n_patterns + 1,) first row of each pattern
        Py_ssize_t[:, ::1] feature          # (n_patterns, n_features) observed ones first
        Py_ssize_t[::1] n_observed          # (n_patterns,)

    def __init__(self, x, patterns, inverse):
        self.x = x
        self.by_column = np.ascontiguousarray(x.T)
        self.start = np.concatenate([[0], np.cumsum(np.bincount(inverse))]).astype(np.intp)
        self.feature = np.argsort(patterns, axis=1, kind="stable").astype(np.intp)
        self.n_observed = np.sum(~patterns, axis=1).astype(np.intp)


# -- densities --------------------------------------------------------------------------------


def add_full_log_densities(
    PatternRows rows, const Py_ssize_t[::1] n_members, const double[:, ::1] mean,
    const double[:, :, ::1] factor, double mean_precision, double prior_df, double[:, ::1] out,
):
    """t_df(m, Psi (kappa + 1) / (kappa df)) of the observed features, df = nu - d + 1."""
    cdef Py_ssize_t d = rows.x.shape[1], n_blocks = n_members.shape[0], p, k, i, n, o, first
    cdef Py_ssize_t tile
    cdef double kappa, f, df, constant
    cdef double[::1] work = np.empty(max(d, 1) * TILE)
    cdef double[::1] value = np.empty(TILE)
    cdef double[:, ::1] square = np.empty((d, d))
    with nogil:
        for p in range(rows.start.shape[0] - 1):
            o = rows.n_observed[p]
            for k in range(n_blocks):
                kappa = mean_precision + n_members[k]
                f = kappa / (kappa + 1.0)
                df = prior_df + n_members[k] - d + 1.0
                _factor_of(&factor[k, 0, 0], d, &rows.feature[p, 0], o, o, &square[0, 0])
                constant = (lgamma(0.5 * (df + o)) - lgamma(0.5 * df)
                            + 0.5 * o * (log(f) - LOG_PI) - 0.5 * linalg.log_det(&square[0, 0], o))
                for tile in range((rows.start[p + 1] - rows.start[p] + TILE - 1) // TILE):
                    first = rows.start[p] + tile * TILE
                    n = min(<Py_ssize_t> TILE, rows.start[p + 1] - first)
                    squared_distances(
                        n, o, &rows.by_column[0, first], rows.x.shape[0], &rows.feature[p, 0],
                        &mean[k, 0], &square[0, 0], &work[0], &value[0],
                    )
                    for i in range(n):
                        value[i] *= f
                    log1p_all(n, &value[0])
                    for i in range(n):
                        out[first + i, k] += constant - 0.5 * (df + o) * value[i]


cdef void _factor_of(
    const double* factor, Py_ssize_t d, const Py_ssize_t* feature, Py_ssize_t o, Py_ssize_t n,
    double* out,
) noexcept nogil:
    """Factor of the first n permuted features of U^T U, n x n, zeros below; NaN if it failed."""
    cdef Py_ssize_t a, b
    if n == d and o == d:
        memcpy(out, factor, d * d * sizeof(double))  # complete rows: features are in order
    elif permuted_factor(factor, d, feature, n, out) != 0:
        out[0] = NAN
    for a in range(1, n):
        for b in range(a):
            out[a * n + b] = 0.0


cdef void _solve_observed(
    PatternRows rows, Py_ssize_t p, const double* mean, Py_ssize_t o, const double* factor,
    Py_ssize_t stride, double* out,
) noexcept nogil:
    """out (n, o) = U_oo^-T (x_o - m_o) for the rows of pattern p."""
    cdef Py_ssize_t first = rows.start[p], n = rows.start[p + 1] - first, i, a
    for i in range(n):
        for a in range(o):
            out[i * o + a] = rows.x[first + i, rows.feature[p, a]] - mean[rows.feature[p, a]]
    if stride == o:
        if o > 0:
            linalg.solve_rows(factor, o, out, n)
        return
    for i in range(n):
        solve_leading(factor, stride, o, out + i * o)


def add_diagonal_log_densities(
    const double[:, ::1] x, const double[:, ::1] count, const double[:, ::1] mean,
    const double[:, ::1] rate, double mean_precision, double shape, bint shared,
    double[:, ::1] out,
):
    """Products of t densities with 2 a degrees of freedom; one joint t when rates are shared."""
    cdef Py_ssize_t d = x.shape[1], k, i, j, cells
    cdef double kappa, f, r, z, a, squares, product, total
    cdef bint even
    cdef double[::1] constant = np.empty(d)
    cdef double[::1] factor = np.empty(d)       # of squared residuals
    cdef double[::1] power = np.empty(d)        # a + 1 / 2
    cdef double[::1] joint = np.empty(d + 1)    # by the number of observed cells
    with nogil:
        for k in range(count.shape[0]):
            a = shape
            even = True
            for j in range(d):
                kappa = mean_precision + count[k, j]
                f = 0.5 * kappa / (kappa + 1.0)
                constant[j] = 0.5 * (log(f) - LOG_PI)
                factor[j] = f / rate[k, 0 if shared else j]
                if shared:
                    a += 0.5 * count[k, j]
                else:
                    even = even and count[k, j] == count[k, 0]
                    a = shape + 0.5 * count[k, j]
                    power[j] = a + 0.5
                    constant[j] += lgamma(a + 0.5) - lgamma(a) - 0.5 * log(rate[k, j])
            if shared:
                for cells in range(d + 1):
                    joint[cells] = (lgamma(a + 0.5 * cells) - lgamma(a)
                                    - 0.5 * cells * log(rate[k, 0]))
            for i in range(x.shape[0]):
                total = squares = 0.0
                product = 1.0
                cells = 0
                for j in range(d):
                    r = x[i, j] - mean[k, j]
                    if r != r:
                        continue
                    total += constant[j]
                    z = factor[j] * r * r
                    if shared:
                        squares += z
                        cells += 1
                    elif even and z < LARGE:
                        # All features have one power: one logarithm of a product.
                        product *= 1.0 + z
                        if product > LARGE:
                            total -= power[0] * log(product)
                            product = 1.0
                    else:
                        total -= power[j] * log1p(z)
                if shared:
                    total += joint[cells] - (a + 0.5 * cells) * log1p(squares)
                elif product != 1.0:
                    total -= power[0] * log(product)
                out[i, k] += total


# -- missing cells ----------------------------------------------------------------------------


def full_moments(
    PatternRows rows, const Py_ssize_t[::1] n_members, const double[:, ::1] mean,
    const double[:, :, ::1] factor, double mean_precision, double prior_df,
    const double[:, ::1] w, const Py_ssize_t[::1] column, double[:, ::1] first,
    double[:, ::1] square,
):
    """Mean m_m + U_om^T y, variance ((kappa + 1) / kappa + y.y) / (df + |o| - 2) Schur."""
    cdef Py_ssize_t d = rows.x.shape[1], n_blocks = n_members.shape[0]
    cdef Py_ssize_t p, k, i, a, b, j, n, o, start
    cdef double kappa, df, q, location, spread, schur
    cdef double[::1] total = np.zeros(w.shape[0])   # weight of the blocks so far
    cdef double[:, ::1] work = np.empty((max(rows.x.shape[0], 1), max(d, 1)))
    cdef double[:, ::1] factor_of_k = np.empty((d, d))
    cdef double* y
    cdef double* u = &factor_of_k[0, 0]
    with nogil:
        for p in range(rows.start.shape[0] - 1):
            start = rows.start[p]
            n = rows.start[p + 1] - start
            o = rows.n_observed[p]
            if o == d:
                continue
            for k in range(n_blocks):
                kappa = mean_precision + n_members[k]
                df = prior_df + n_members[k] - d + 1.0
                _factor_of(&factor[k, 0, 0], d, &rows.feature[p, 0], o, d, u)
                _solve_observed(rows, p, &mean[k, 0], o, u, d, &work[0, 0])
                for i in range(n):
                    if w[start + i, k] == 0.0:
                        continue
                    y = &work[0, 0] + i * o
                    q = linalg.dot(o, y, y)
                    spread = ((kappa + 1.0) / kappa + q) / (df + o - 2.0)
                    if df + o <= 2.0:
                        spread = INFINITY
                    for a in range(o, d):
                        j = rows.feature[p, a]
                        location = mean[k, j]
                        for b in range(o):
                            location += u[b * d + a] * y[b]
                        schur = 0.0
                        for b in range(o, a + 1):
                            schur += u[b * d + a] * u[b * d + a]
                        j = column[j]
                        merge_part(total[start + i], w[start + i, k], location, spread * schur,
                                   &first[start + i, j], &square[start + i, j])
                    total[start + i] += w[start + i, k]


def diagonal_moments(
    const double[:, ::1] x, const double[:, ::1] count, const double[:, ::1] mean,
    const double[:, ::1] rate, double mean_precision, double shape, bint shared,
    const double[:, ::1] w, const Py_ssize_t[::1] column, double[:, ::1] first,
    double[:, ::1] square,
):
    """Features are independent given the block; a shared variance learns from observed cells."""
    cdef Py_ssize_t d = x.shape[1], n_blocks = count.shape[0], k, i, j, c
    cdef double r, kappa, a, b, variance, total
    with nogil:
        for i in range(x.shape[0]):
            total = 0.0
            for k in range(n_blocks):
                if w[i, k] == 0.0:
                    continue
                a = shape
                b = rate[k, 0]
                if shared:
                    for j in range(d):
                        a += 0.5 * count[k, j]
                        r = x[i, j] - mean[k, j]
                        if r == r:
                            kappa = mean_precision + count[k, j]
                            a += 0.5
                            b += 0.5 * kappa / (kappa + 1.0) * r * r
                for j in range(d):
                    if x[i, j] == x[i, j]:
                        continue
                    if not shared:
                        a = shape + 0.5 * count[k, j]
                        b = rate[k, j]
                    kappa = mean_precision + count[k, j]
                    variance = b / (a - 1.0) * ((kappa + 1.0) / kappa) if a > 1.0 else INFINITY
                    c = column[j]
                    merge_part(total, w[i, k], mean[k, j], variance, &first[i, c], &square[i, c])
                total += w[i, k]


def draw_full_cells(
    PatternRows rows, const Py_ssize_t[::1] n_members, const double[:, ::1] mean,
    const double[:, :, ::1] factor, double mean_precision, const Py_ssize_t[::1] block,
    const double[:, ::1] normal, const double[::1] gamma, double[:, ::1] out,
):
    """Put x_m = m_m + U_om^T y + root U_mm^T z into ``out``, each row given its block.

    A normal z is divided by the root of a gamma draw of shape (df + |o|) / 2: the conditional t
    law, where the number of its degrees of freedom cancels.
    """
    cdef Py_ssize_t d = rows.x.shape[1], p, k, i, a, b, n, o, first
    cdef double kappa, root, value
    cdef bint any_row
    cdef double[:, ::1] work = np.empty((max(rows.x.shape[0], 1), max(d, 1)))
    cdef double[:, ::1] factor_of_k = np.empty((d, d))
    cdef double* y
    cdef double* u = &factor_of_k[0, 0]
    with nogil:
        for p in range(rows.start.shape[0] - 1):
            first = rows.start[p]
            n = rows.start[p + 1] - first
            o = rows.n_observed[p]
            if o == d:
                continue
            for k in range(n_members.shape[0]):
                any_row = False
                for i in range(first, first + n):
                    any_row = any_row or block[i] == k
                if not any_row:
                    continue
                kappa = mean_precision + n_members[k]
                _factor_of(&factor[k, 0, 0], d, &rows.feature[p, 0], o, d, u)
                _solve_observed(rows, p, &mean[k, 0], o, u, d, &work[0, 0])
                for i in range(n):
                    if block[first + i] != k:
                        continue
                    y = &work[0, 0] + i * o
                    root = sqrt(0.5 * ((kappa + 1.0) / kappa + linalg.dot(o, y, y))
                                / gamma[first + i])
                    for a in range(o, d):
                        value = mean[k, rows.feature[p, a]]
                        for b in range(o):
                            value += u[b * d + a] * y[b]
                        for b in range(o, a + 1):
                            value += root * u[b * d + a] * normal[first + i, b]
                        out[first + i, rows.feature[p, a]] = value
