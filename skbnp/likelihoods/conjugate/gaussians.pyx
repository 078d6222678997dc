"""Gaussian blocks with parameters drawn, and rows of them some of whose cells are missing."""

from libc.math cimport NAN, exp, log, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.numerics cimport linalg, rng as draws
from skbnp.numerics.special cimport LOG_2_PI


cdef enum:
    # Rows, and whitened features of all blocks, of one matrix product: it stays in the L2 cache.
    CHUNK = 128
    COLUMNS = 256
    SIDE_BY_SIDE = 256  # rows, so that the loops over them run in vectors

cdef double NEXT_TO_NOTHING = 1e-150    # its square is still a number


# -- some features given others ---------------------------------------------------------------


cdef int permuted_factor(
    const double* factor, Py_ssize_t d, const Py_ssize_t* feature, Py_ssize_t n, double* out
) noexcept nogil:
    """Factor (n, n) of these n features of U^T U, in this order: O(d n^2). Non-zero: failed."""
    cdef Py_ssize_t a, b, t, ja, jb
    cdef double total
    for a in range(n):
        ja = feature[a]
        for b in range(a, n):
            jb = feature[b]
            total = 0.0
            for t in range(min(ja, jb) + 1):
                total += factor[t * d + ja] * factor[t * d + jb]
            out[a * n + b] = total
    if n == 0 or linalg.cholesky(out, n) == 0:
        return 0
    return _rotate(factor, d, feature, n, out)


cdef int _rotate(
    const double* factor, Py_ssize_t d, const Py_ssize_t* feature, Py_ssize_t n, double* out
) noexcept nogil:
    """The same by rotations, which square no number: where the features are nearly dependent."""
    cdef double* row = <double*> malloc(n * sizeof(double))
    cdef Py_ssize_t a, t
    if row == NULL:
        return 1
    memset(out, 0, n * n * sizeof(double))
    for a in range(n):
        out[a * n + a] = NEXT_TO_NOTHING
    for t in range(d):
        for a in range(n):
            row[a] = factor[t * d + feature[a]] if t <= feature[a] else 0.0
        linalg.rank_one_update(out, n, row)
    free(row)
    return 0


cdef double solve_leading(
    const double* factor, Py_ssize_t d, Py_ssize_t n, double* x
) noexcept nogil:
    """x <- U_oo^-T x, U_oo the leading n x n block of a d x d factor; returns the new x . x."""
    cdef Py_ssize_t a, b
    cdef double squares = 0.0
    for b in range(n):
        x[b] /= factor[b * d + b]
        squares += x[b] * x[b]
        for a in range(b + 1, n):
            x[a] -= factor[b * d + a] * x[b]
    return squares


cdef void draw_conditional(
    ConjugateFamily family, Py_ssize_t i, const Py_ssize_t* order, Py_ssize_t n_observed,
    const double* factor, double* vector, const double* mean, double spread, double variance,
    bitgen_t* rng,
) noexcept nogil:
    """x_m = mean_m + U_om^T y + spread U_mm^T z: features last in ``order`` given the first.

    U is the factor of the matrix in this order, y the whitened observed features with which
    ``vector`` begins; the covariance is ``variance`` times U_mm^T U_mm.
    """
    cdef Py_ssize_t d = family.n_features, t = family.missing_start[i], a, b, j
    cdef double* z = vector + n_observed
    cdef double step, u, squares
    for a in range(d - n_observed):
        z[a] = draws.normal(rng)
    for a in range(d - n_observed):
        j = order[n_observed + a]
        family.missing_mean[t + a] = mean[j]
        for b in range(n_observed):
            family.missing_mean[t + a] += factor[b * d + n_observed + a] * vector[b]
        step = squares = 0.0
        for b in range(a + 1):
            u = factor[(n_observed + b) * d + n_observed + a]
            step += u * z[b]
            squares += u * u
        family.missing_variance[t + a] = variance * squares
        family.X[i, j] = family.missing_mean[t + a] + spread * step


# -- parameters drawn -------------------------------------------------------------------------


cdef inline double _squares(const double* y, Py_ssize_t n) noexcept nogil:
    """y . y, in two sums that need not wait for one another."""
    cdef Py_ssize_t a
    cdef double even = 0.0, odd = 0.0
    for a in range(0, n - 1, 2):
        even += y[a] * y[a]
        odd += y[a + 1] * y[a + 1]
    if n % 2 == 1:
        even += y[n - 1] * y[n - 1]
    return even + odd


cdef class FullGaussians:
    """Means and covariances of slots, and the densities of rows given them."""

    def __init__(self, prior_mean):
        self.prior_mean = prior_mean
        self.n_features = d = self.prior_mean.shape[0]
        self.square = np.zeros((d, d))
        self.square_too = np.zeros((d, d))
        self.vector = np.zeros(d)
        self._reserve(0)

    cdef int reserve(self, Py_ssize_t n_blocks) except -1 nogil:
        """Make room for slots 0..n_blocks-1."""
        if n_blocks > self.location.shape[0]:
            with gil:
                self._reserve(2 * n_blocks)
        return 0

    def _reserve(self, n_blocks):
        d = self.n_features
        self.whitening = np.zeros((n_blocks, d + 1, d))
        self.location = np.zeros((n_blocks, d))
        self.covariance = np.zeros((n_blocks, d, d))
        self.log_peak = np.zeros(n_blocks)

    cdef void draw(
        self, Py_ssize_t k, double kappa, double df, double log_det, const double* mean,
        const double* factor, bitgen_t* rng,
    ) noexcept nogil:
        """Those of slot k: Sigma^-1 ~ Wishart(df, (U^T U)^-1), mu | Sigma ~ N(m, Sigma / kappa).

        Sigma^-1 = W W^T, W = U^-1 A with Bartlett's A, and mu = m + Sigma^1/2 z / sqrt(kappa).
        Whitened, mu - m is z / sqrt(kappa): so x - mu is whitened without the digits that a mean
        far out in a tight block would cost. O(d^3).
        """
        cdef Py_ssize_t d = self.n_features, a, b, c
        cdef double left
        cdef double* bartlett = &self.square[0, 0]
        cdef double* half = &self.square_too[0, 0]
        cdef double* z = &self.vector[0]
        cdef double* whitening = &self.whitening[k, 0, 0]
        draws.wishart_factor(rng, df, d, bartlett)
        self.log_peak[k] = -0.5 * d * LOG_2_PI - 0.5 * log_det
        for b in range(d):
            self.log_peak[k] += log(bartlett[b * d + b])
            z[b] = draws.normal(rng) / sqrt(kappa)
        memcpy(whitening, bartlett, d * d * sizeof(double))
        for b in range(d - 1, -1, -1):  # W = U^-1 A, row by row from below
            for a in range(b + 1, d):
                left = factor[b * d + a]
                for c in range(d):
                    whitening[b * d + c] -= left * whitening[a * d + c]
            for c in range(d):
                whitening[b * d + c] /= factor[b * d + b]
        for b in range(d):              # A^-1 U, of which Sigma is the square
            for c in range(d):
                half[b * d + c] = factor[b * d + c] if c >= b else 0.0
            for a in range(b):
                left = bartlett[b * d + a]
                for c in range(d):
                    half[b * d + c] -= left * half[a * d + c]
            for c in range(d):
                half[b * d + c] /= bartlett[b * d + b]
        linalg.gemm(True, False, d, d, d, 1.0, half, half, 0.0, &self.covariance[k, 0, 0])
        for c in range(d):
            self.location[k, c] = mean[c]
            whitening[d * d + c] = -z[c]
        for b in range(d):
            left = mean[b] - self.prior_mean[b]
            for c in range(d):
                self.location[k, c] += half[b * d + c] * z[b]
                whitening[d * d + c] -= left * whitening[b * d + c]

    cdef Py_ssize_t _columns(self, Py_ssize_t n_blocks) noexcept nogil:
        """Columns of the widest matrix product for so many blocks."""
        return max(self.n_features, min(<Py_ssize_t> COLUMNS, n_blocks * self.n_features))

    cdef Py_ssize_t work_size(self, Py_ssize_t n_blocks) noexcept nogil:
        """Doubles of scratch that the methods below need for so many blocks."""
        cdef Py_ssize_t d = self.n_features, columns = self._columns(n_blocks)
        return CHUNK * (d + 1 + columns) + columns * (d + 2) + d * (d + 2)

    cdef void log_likelihoods(
        self, ConjugateFamily family, bint whole, const Py_ssize_t* row, Py_ssize_t n_rows,
        Py_ssize_t n_blocks, double* out, double* work,
    ) noexcept nogil:
        """Add log f(observed cells of row[t] | parameters of slot k) to out[t * n_blocks + k].

        Rows that lack the same cells go together: O(d^3) for each such run and block. ``whole``:
        imputed cells count as observed.
        """
        cdef Py_ssize_t n
        while n_rows > 0:
            n = n_rows if whole else family.alike(row, n_rows)
            self._log_likelihoods_alike(family, whole, row, n, n_blocks, out, work)
            row += n
            out += n * n_blocks
            n_rows -= n

    cdef void _log_likelihoods_alike(
        self, ConjugateFamily family, bint whole, const Py_ssize_t* row, Py_ssize_t n_rows,
        Py_ssize_t n_blocks, double* out, double* work,
    ) noexcept nogil:
        """Whiten the observed features of rows for all blocks by one product; sum the squares."""
        cdef Py_ssize_t d = self.n_features, n = d, columns = self._columns(n_blocks), a, j, k, t
        cdef Py_ssize_t first = 0, chunk, start, n_now, n_together
        cdef Py_ssize_t* feature = <Py_ssize_t*> work
        cdef double* scratch = work + d
        cdef double* log_peak = scratch + d * (d + 1)
        cdef double* whitening = log_peak + columns
        cdef double* rows = whitening + columns * (d + 1)
        cdef double* white = rows + CHUNK * (d + 1)
        if whole:
            for a in range(d):
                feature[a] = a
        else:
            n = family.observed_first(row[0], feature)
            if n == 0:
                return
        while first < n_blocks:
            n_now = min(n_blocks - first, max(<Py_ssize_t> 1, COLUMNS // n))
            for k in range(n_now):
                log_peak[k] = self._whiten(
                    first + k, feature, n, whitening + k * n, n_now * n, scratch
                )
            for chunk in range((n_rows + CHUNK - 1) // CHUNK):
                start = chunk * CHUNK
                n_together = min(<Py_ssize_t> CHUNK, n_rows - start)
                for t in range(n_together):
                    for a in range(n):
                        j = feature[a]
                        rows[t * (n + 1) + a] = family.X[row[start + t], j] - self.prior_mean[j]
                    rows[t * (n + 1) + n] = 1.0
                linalg.gemm(
                    False, False, n_together, n_now * n, n + 1, 1.0, rows, whitening, 0.0, white
                )
                for t in range(n_together):
                    for k in range(n_now):
                        out[(start + t) * n_blocks + first + k] += (
                            log_peak[k] - 0.5 * _squares(white + (t * n_now + k) * n, n)
                        )
            first += n_now

    cdef double _whiten(
        self, Py_ssize_t k, const Py_ssize_t* feature, Py_ssize_t n, double* out,
        Py_ssize_t stride, double* work,
    ) noexcept nogil:
        """The (n + 1) x n matrix that whitens (x_o - m0_o, 1) of n features; returns log_peak.

        For some of the features V^-1 with Sigma_oo = V^T V, which takes O(n^3). NaN if Sigma_oo
        is not positive definite.
        """
        cdef Py_ssize_t d = self.n_features, a, b
        cdef double* factor = work
        cdef double* line = work + n * n
        cdef double left
        if n == d:
            for a in range(d + 1):
                memcpy(out + a * stride, &self.whitening[k, a, 0], d * sizeof(double))
            return self.log_peak[k]
        for a in range(n):
            for b in range(a, n):
                factor[a * n + b] = self.covariance[k, feature[a], feature[b]]
        if linalg.cholesky(factor, n) != 0:
            return NAN
        memset(out + n * stride, 0, n * sizeof(double))
        for a in range(n):  # row a of V^-1 is V^-T e_a
            memset(line, 0, n * sizeof(double))
            line[a] = 1.0
            linalg.solve_transposed(factor, n, line)
            memcpy(out + a * stride, line, n * sizeof(double))
            left = self.location[k, feature[a]] - self.prior_mean[feature[a]]
            for b in range(a, n):
                out[n * stride + b] -= left * line[b]
        return -0.5 * n * LOG_2_PI - 0.5 * linalg.log_det(factor, n)

    cdef void draw_missing(
        self, ConjugateFamily family, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng, double* work
    ) noexcept nogil:
        """N(mu_m + Sigma_mo Sigma_oo^-1 (x_o - mu_o), Schur complement): O(d^3)."""
        cdef Py_ssize_t d = self.n_features, a, b
        cdef Py_ssize_t* order = <Py_ssize_t*> work
        cdef double* vector = work + d
        cdef double* factor = vector + d
        cdef Py_ssize_t n_observed = family.observed_first(i, order)
        for a in range(d):
            for b in range(a, d):
                factor[a * d + b] = self.covariance[k, order[a], order[b]]
        if linalg.cholesky(factor, d) != 0:
            factor[d * d - 1] = NAN  # the log joint will tell
        for a in range(n_observed):
            vector[a] = family.X[i, order[a]] - self.location[k, order[a]]
        solve_leading(factor, d, n_observed, vector)
        draw_conditional(
            family, i, order, n_observed, factor, vector, &self.location[k, 0], 1.0, 1.0, rng
        )


cdef class DiagonalGaussians:
    """Means and variances of slots, and the densities of rows given them.

    In logs and with mu - m in units of sigma, so that under heavy tails, where sigma leaves the
    range of floats, a density is still 0 and not NaN.
    """

    def __init__(self, Py_ssize_t n_features):
        self.n_features = n_features
        self._reserve(0)

    cdef int reserve(self, Py_ssize_t n_blocks) except -1 nogil:
        """Make room for slots 0..n_blocks-1."""
        if n_blocks > self.center.shape[0]:
            with gil:
                self._reserve(2 * n_blocks)
        return 0

    def _reserve(self, n_blocks):
        shape = (n_blocks, self.n_features)
        self.center, self.precision_root = np.zeros(shape), np.zeros(shape)
        self.shift, self.log_peak = np.zeros(shape), np.zeros(shape)

    cdef void put(
        self, Py_ssize_t k, Py_ssize_t j, double center, double log_variance, double shift
    ) noexcept nogil:
        """mu = center + sigma shift for feature j of slot k."""
        self.center[k, j] = center
        self.precision_root[k, j] = exp(-0.5 * log_variance)
        self.shift[k, j] = shift
        self.log_peak[k, j] = -0.5 * (LOG_2_PI + log_variance)

    cdef Py_ssize_t work_size(self) noexcept nogil:
        """Doubles of scratch that ``log_likelihoods`` needs."""
        return (self.n_features + 1) * SIDE_BY_SIDE

    cdef void log_likelihoods(
        self, ConjugateFamily family, const Py_ssize_t* row, Py_ssize_t n_rows,
        Py_ssize_t n_blocks, double* out, double* work,
    ) noexcept nogil:
        """Add log f(observed cells of row[t] | parameters of slot k) to out[t * n_blocks + k].

        Rows that lack the same cells go together: O(d) for each row and block.
        """
        cdef Py_ssize_t n
        while n_rows > 0:
            n = family.alike(row, min(n_rows, <Py_ssize_t> SIDE_BY_SIDE))
            self._log_likelihoods_alike(family, row, n, n_blocks, out, work)
            row += n
            out += n * n_blocks
            n_rows -= n

    cdef void _log_likelihoods_alike(
        self, ConjugateFamily family, const Py_ssize_t* row, Py_ssize_t n_rows,
        Py_ssize_t n_blocks, double* out, double* work,
    ) noexcept nogil:
        """Rows side by side, feature by feature; a feature missing in the first is in all."""
        cdef Py_ssize_t j, k, t
        cdef double m, root, shift, y, log_peak
        cdef double* squares = work + self.n_features * SIDE_BY_SIDE
        cdef double* x
        for t in range(n_rows):
            for j in range(self.n_features):
                work[j * SIDE_BY_SIDE + t] = family.X[row[t], j]
        for k in range(n_blocks):
            memset(squares, 0, n_rows * sizeof(double))
            log_peak = 0.0
            for j in range(self.n_features):
                x = work + j * SIDE_BY_SIDE
                if x[0] != x[0]:
                    continue
                m = self.center[k, j]
                root = self.precision_root[k, j]
                shift = self.shift[k, j]
                log_peak += self.log_peak[k, j]
                for t in range(n_rows):
                    y = (x[t] - m) * root - shift
                    squares[t] += y * y
            for t in range(n_rows):
                out[t * n_blocks + k] += log_peak - 0.5 * squares[t]

    cdef void see_missing(self, ConjugateFamily family, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """Missing cells of row i have mean mu and variance sigma2."""
        cdef Py_ssize_t t, j
        cdef double root
        for t in range(family.missing_start[i], family.missing_start[i + 1]):
            j = family.missing_feature[t]
            root = self.precision_root[k, j]
            family.missing_mean[t] = self.center[k, j] + self.shift[k, j] / root
            family.missing_variance[t] = 1.0 / (root * root)
