"""Rows of data under the law of one branch, scores integrated out.

y_i ~ N(m, Omega / u_i) over the observed entries, Omega = D' diag(1 / psi) D + (kappa Lambda)^-1,
with u_i = 1, or u_i ~ Gamma(df / 2, df / 2) integrated out as well: a multivariate t law.
"""

from libc.math cimport INFINITY, isinf, log, log1p, sqrt

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics.special cimport LOG_2_PI, lgamma
from skbnp.numerics.squares cimport add_squares, scaled_residuals

# Of the variance of an entry, the least that entries before it may leave unexplained in Omega.
cdef double LEAST_SHARE = 1e-6


cdef class Rows:
    """A table whose rows are sorted by their pattern, which of their entries are observed.

    All that depends on branch and pattern alone is done once for the rows that share them.
    """

    def __init__(self, X):
        """X is (n_samples, n_features), NaN where missing; used as it is where it has no NaN."""
        missing = np.isnan(X)
        self.n_samples, self.n_features = X.shape
        self.n_seen = np.sum(~missing, axis=0)
        if missing.any():
            X = np.where(missing, 0.0, X)
            patterns, which = np.unique(missing, axis=0, return_inverse=True)
            which = which.ravel().astype(np.intp)
        else:
            patterns, which = missing[:1], np.zeros(len(X), dtype=np.intp)
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        self.n_patterns = len(patterns)
        self.pattern = which
        self.by_pattern = np.argsort(which, kind="stable")
        self.pattern_start = np.append(0, np.cumsum(np.bincount(which))).astype(np.intp)
        patterns = np.vstack([patterns, np.zeros((1, self.n_features), dtype=bool)])
        self.observed = np.argsort(patterns, axis=1, kind="stable")
        self.n_observed = np.sum(~patterns, axis=1)
        self.is_observed = np.ascontiguousarray(~patterns).view(np.uint8)
        self.column = np.zeros((0, 0))

    cdef int need_columns(self) except -1:
        """Have the table column by column as well."""
        if self.column.shape[0] == 0:
            self.column = np.ascontiguousarray(np.asarray(self.X).T)
        return 0

    @property
    def n_entries(self):
        """Number of observed entries of each row, shape (n_samples,)."""
        return np.asarray(self.n_observed)[np.asarray(self.pattern)]


cdef class Law:
    """The law of rows with one pattern in one branch, and scratch to apply it; for one thread.

    ``prepare`` sets it up: with G = D Lambda D' over the observed entries, the factor of
    U'U = diag(psi) + kappa G. O(L^2 (P + L)). A row then costs O(L (P + L)), and where they are
    many the triangular solves are products with U^-1 instead, which BLAS does several times faster.
    """

    def __init__(self, Rows rows, Py_ssize_t max_depth):
        self.rows = rows
        self.root = np.empty(rows.n_features)
        self.scaled = np.empty(max_depth * rows.n_features)
        self.axes = np.empty(max_depth * rows.n_features)
        self.factor, self.inverse = np.empty(max_depth * max_depth), np.empty(max_depth * max_depth)
        self.residual = np.empty(CHUNK * rows.n_features)
        self.omega = np.empty(CHUNK * (max_depth + 1))
        self.other = np.empty(CHUNK * (max_depth + 1))
        self.square = np.empty(CHUNK)
        self.chosen = np.empty(CHUNK, dtype=np.intp)

    cdef int prepare(
        self, Py_ssize_t g, Py_ssize_t n_rows, Py_ssize_t depth, const double* loading,
        const Py_ssize_t* path, const double* mean, const double* psi, double kappa,
        const double* noise, double df,
    ) noexcept nogil:
        """Set branch and pattern up for so many rows. Non-zero: Omega is not positive definite.

        ``loading`` is (n_nodes, n_features), ``path`` the branch's depth nodes.
        log |Omega| = log |U'U| - sum log psi - sum log (kappa lambda) over the observed entries.
        """
        cdef Py_ssize_t n = self.rows.n_observed[g], j, h
        cdef const Py_ssize_t* observed = &self.rows.observed[g, 0]
        cdef const double* axis
        cdef double log_scales = 0.0
        self.pattern, self.n_seen, self.depth = g, n, depth
        self.mean, self.df = mean, df
        self.dense = False
        self.for_many = depth > 0 and n_rows > depth
        for j in range(n):
            self.root[j] = sqrt(kappa * noise[observed[j]])
            log_scales += 2.0 * log(self.root[j])
        for h in range(depth):
            axis = &loading[path[h] * self.rows.n_features]
            for j in range(n):
                self.scaled[h * n + j] = axis[observed[j]] * self.root[j]
            log_scales += log(psi[h])
        self.log_det = -log_scales
        if depth > 0:
            linalg.gemm(False, True, depth, depth, n, 1.0, &self.scaled[0], &self.scaled[0], 0.0,
                        &self.factor[0])
            for h in range(depth):
                self.factor[h * depth + h] += psi[h]
            if linalg.cholesky(&self.factor[0], depth) != 0:
                return 1
            self.log_det += linalg.log_det(&self.factor[0], depth)
        self.log_norm = log_norm(n, self.log_det, df)
        if self.for_many:
            self._invert()
        return 0

    cdef int prepare_dense(
        self, Py_ssize_t g, const double* omega, const double* mean, double df
    ) noexcept nogil:
        """The same from the matrix Omega of all features, for densities and moments alone.

        U'U is Omega of the n observed entries, and ``whiten`` gives U^-T (y_i - m). O(n^3) instead
        of O(L^2 (n + L)); there must not be more of them than levels. Non-zero: beside large
        loadings Omega has lost digits of the noise, and ``prepare`` is to be taken.
        """
        cdef Py_ssize_t n = self.rows.n_observed[g], n_features = self.rows.n_features, j, k
        cdef double unexplained
        cdef const Py_ssize_t* observed = &self.rows.observed[g, 0]
        self.pattern, self.n_seen = g, n
        self.mean, self.df = mean, df
        self.dense, self.for_many = True, False
        self.log_det = 0.0
        for j in range(n):
            for k in range(j, n):
                self.factor[j * n + k] = omega[observed[j] * n_features + observed[k]]
        if n > 0:
            if linalg.cholesky(&self.factor[0], n) != 0:
                return 1
            for j in range(n):
                unexplained = self.factor[j * (n + 1)] ** 2
                if unexplained < LEAST_SHARE * omega[observed[j] * (n_features + 1)]:
                    return 1
            self.log_det = linalg.log_det(&self.factor[0], n)
        self.log_norm = log_norm(n, self.log_det, df)
        return 0

    cdef void _invert(self) noexcept nogil:
        """U^-1, and the whitened loadings scaled' U^-1."""
        cdef Py_ssize_t depth = self.depth, h
        for h in range(depth * depth):
            self.inverse[h] = 0.0
        for h in range(depth):
            self.inverse[h * depth + h] = 1.0
        # Row h of the identity becomes U^-T e_h, row h of U^-1.
        linalg.solve_rows(&self.factor[0], depth, &self.inverse[0], depth)
        linalg.gemm(True, False, self.n_seen, depth, depth, 1.0, &self.scaled[0], &self.inverse[0],
                    0.0, &self.axes[0])

    cdef void whiten(self, Py_ssize_t n) noexcept nogil:
        """omega_i = U^-T kappa D Lambda (y_i - m) and the squared distance, for n chosen rows."""
        cdef Py_ssize_t n_seen = self.n_seen, depth = self.depth, t, j
        cdef const Py_ssize_t* observed = &self.rows.observed[self.pattern, 0]
        cdef const double* y
        cdef const double* mean = self.mean
        cdef const double* root = &self.root[0]
        cdef double* e
        cdef bint complete = n_seen == self.rows.n_features
        if self.dense:
            self._whiten_dense(n)
            return
        if complete:
            scaled_residuals(n, n_seen, &self.rows.X[0, 0], &self.chosen[0], mean, root,
                             &self.residual[0], &self.square[0])
        else:
            for t in range(n):
                e = &self.residual[t * n_seen]
                y = &self.rows.X[self.chosen[t], 0]
                for j in range(n_seen):
                    e[j] = (y[observed[j]] - mean[observed[j]]) * root[j]
                self.square[t] = 0.0
            add_squares(n, n_seen, 1.0, &self.residual[0], &self.square[0])
        if self.for_many:
            linalg.gemm(False, False, n, depth, n_seen, 1.0, &self.residual[0], &self.axes[0],
                        0.0, &self.omega[0])
        elif depth > 0:
            linalg.gemm(False, True, n, depth, n_seen, 1.0, &self.residual[0], &self.scaled[0],
                        0.0, &self.omega[0])
            linalg.solve_rows(&self.factor[0], depth, &self.omega[0], n)
        add_squares(n, depth, -1.0, &self.omega[0], &self.square[0])
        for t in range(n):
            if self.square[t] < 0.0:  # a rounded difference
                self.square[t] = 0.0

    cdef void _whiten_dense(self, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t n_seen = self.n_seen, t, j
        cdef const Py_ssize_t* observed = &self.rows.observed[self.pattern, 0]
        for t in range(n):
            for j in range(n_seen):
                self.omega[t * n_seen + j] = (
                    self.rows.X[self.chosen[t], observed[j]] - self.mean[observed[j]]
                )
        if n_seen > 0:
            linalg.solve_rows(&self.factor[0], n_seen, &self.omega[0], n)
        for t in range(n):
            self.square[t] = linalg.dot(
                n_seen, &self.omega[t * n_seen], &self.omega[t * n_seen]
            )

    cdef void add_residuals(
        self, Py_ssize_t n, const double* mean, const double* row_precision, double* total
    ) noexcept nogil:
        """total_p += sum u_i (y_ip - m_p - x_i'd_p)^2 over the observed entries of n chosen rows.

        Their scores are in ``omega``, the loadings of all features in ``scaled``.
        """
        cdef Py_ssize_t n_features = self.rows.n_features, t, p, g
        cdef const double* y
        cdef double* e
        cdef double u
        for t in range(n):
            e = &self.residual[t * n_features]
            y = &self.rows.X[self.chosen[t], 0]
            for p in range(n_features):
                e[p] = y[p] - mean[p]
        linalg.gemm(False, False, n, n_features, self.depth, -1.0, &self.omega[0],
                    &self.scaled[0], 1.0, &self.residual[0])
        for t in range(n):
            e = &self.residual[t * n_features]
            g = self.rows.pattern[self.chosen[t]]
            if self.rows.n_observed[g] < n_features:
                for p in range(n_features):
                    e[p] *= self.rows.is_observed[g, p]
            u = row_precision[self.chosen[t]]
            for p in range(n_features):
                total[p] += u * e[p] * e[p]

    cdef void solve(self, Py_ssize_t n) noexcept nogil:
        """Replace the n rows of omega by U^-1 omega: expected scores, or scores with noise."""
        cdef Py_ssize_t depth = self.depth
        if self.for_many:
            linalg.gemm(False, True, n, depth, depth, 1.0, &self.omega[0], &self.inverse[0],
                        0.0, &self.other[0])
            self.omega, self.other = self.other, self.omega
        elif depth > 0:
            linalg.solve_rows_back(&self.factor[0], depth, &self.omega[0], n)

    cdef double log_density(self, double square) noexcept nogil:
        """Log density of a row at this squared distance."""
        if isinf(self.df):
            return self.log_norm - 0.5 * square
        return self.log_norm - 0.5 * (self.df + self.n_seen) * log1p(square / self.df)

    cdef double spread(self, double square) noexcept nogil:
        """Variances of what is missing, at this squared distance, over those of a normal law."""
        if isinf(self.df):
            return 1.0
        if self.df + self.n_seen <= 2.0:
            return INFINITY
        return (self.df + square) / (self.df + self.n_seen - 2.0)


cdef double log_norm(Py_ssize_t n, double log_det, double df) noexcept nogil:
    """Log density, at its centre, of a normal law of n dimensions, or of a t law."""
    if isinf(df):
        return -0.5 * (n * LOG_2_PI + log_det)
    return (
        lgamma(0.5 * (df + n)) - lgamma(0.5 * df)
        - 0.5 * (n * (log(df) + 1.1447298858494002) + log_det)  # log pi
    )
