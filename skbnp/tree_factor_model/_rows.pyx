"""Rows of data under the law of one branch, scores integrated out.

y_i ~ N(m, Omega) over the observed entries, Omega = D' diag(1 / psi) D + (kappa Lambda)^-1.
"""

from libc.math cimport log, sqrt

import numpy as np

from skbnp.numerics cimport linalg


cdef class Rows:
    """Rows of a table and scratch to work on them.

    Rows with the same observed entries share a pattern, and all that depends on branch and
    pattern alone is done once for them, in ``prepare``: with G = D Lambda D' over the observed
    entries, the factor of U'U = diag(psi) + kappa G. O(L^2 (P + L)). A row then costs O(L (P + L)).
    """

    def __init__(self, X, Py_ssize_t max_depth):
        """X is (n_samples, n_features), NaN where missing."""
        missing = np.isnan(X)
        self.n_samples, self.n_features = X.shape
        self.X = np.ascontiguousarray(np.where(missing, 0.0, X))
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        which = which.ravel().astype(np.intp)
        self.n_patterns = len(patterns)
        self.pattern = which
        self.by_pattern = np.argsort(which, kind="stable")
        self.pattern_start = np.append(0, np.cumsum(np.bincount(which))).astype(np.intp)
        patterns = np.vstack([patterns, np.zeros((1, self.n_features), dtype=bool)])
        self.observed = np.argsort(patterns, axis=1, kind="stable")
        self.n_observed = np.sum(~patterns, axis=1)
        self.is_observed = np.ascontiguousarray(~patterns).view(np.uint8)
        self.n_seen = np.sum(~missing, axis=0)
        self.root = np.empty(self.n_features)
        self.scaled = np.empty(max_depth * self.n_features)
        self.factor = np.empty(max_depth * max_depth)
        self.residual = np.empty(CHUNK * self.n_features)
        self.omega = np.empty(CHUNK * max_depth)
        self.square = np.empty(CHUNK)
        self.chosen = np.empty(CHUNK, dtype=np.intp)

    @property
    def n_entries(self):
        """Number of observed entries of each row, shape (n_samples,)."""
        return np.asarray(self.n_observed)[np.asarray(self.pattern)]

    cdef int prepare(
        self, Py_ssize_t g, Py_ssize_t depth, const double* loading, const Py_ssize_t* path,
        const double* mean, const double* psi, double kappa, const double* noise,
    ) noexcept nogil:
        """Set the branch and the pattern up. Non-zero: Omega is not positive definite.

        ``loading`` is (n_nodes, n_features), ``path`` the branch's depth nodes.
        log |Omega| = log |U'U| - sum log psi - sum log (kappa lambda) over the observed entries.
        """
        cdef Py_ssize_t n = self.n_observed[g], j, h
        cdef const Py_ssize_t* observed = &self.observed[g, 0]
        cdef const double* axis
        cdef double log_scales = 0.0
        self.depth = depth
        self.mean = mean
        for j in range(n):
            self.root[j] = sqrt(kappa * noise[observed[j]])
            log_scales += 2.0 * log(self.root[j])
        for h in range(depth):
            axis = &loading[path[h] * self.n_features]
            for j in range(n):
                self.scaled[h * n + j] = axis[observed[j]] * self.root[j]
            log_scales += log(psi[h])
        self.log_det = -log_scales
        if depth == 0:
            return 0
        linalg.gemm(False, True, depth, depth, n, 1.0, &self.scaled[0], &self.scaled[0], 0.0,
                    &self.factor[0])
        for h in range(depth):
            self.factor[h * depth + h] += psi[h]
        if linalg.cholesky(&self.factor[0], depth) != 0:
            return 1
        self.log_det += linalg.log_det(&self.factor[0], depth)
        return 0

    cdef void whiten(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil:
        """omega_i = U^-T kappa D Lambda (y_i - m) and the squared distance, for n chosen rows."""
        cdef Py_ssize_t n_seen = self.n_observed[g], depth = self.depth, t, j
        cdef const Py_ssize_t* observed = &self.observed[g, 0]
        cdef const double* y
        cdef double* e
        for t in range(n):
            e = &self.residual[t * n_seen]
            y = &self.X[self.chosen[t], 0]
            for j in range(n_seen):
                e[j] = (y[observed[j]] - self.mean[observed[j]]) * self.root[j]
        if depth > 0:
            linalg.gemm(False, True, n, depth, n_seen, 1.0, &self.residual[0], &self.scaled[0],
                        0.0, &self.omega[0])
            linalg.solve_rows(&self.factor[0], depth, &self.omega[0], n)
        for t in range(n):
            e = &self.residual[t * n_seen]
            self.square[t] = linalg.dot(n_seen, e, e) - linalg.dot(
                depth, &self.omega[t * depth], &self.omega[t * depth]
            )

    cdef double log_density(self, Py_ssize_t g, double square) noexcept nogil:
        """log N(y; m, Omega) of a row at this squared distance."""
        # log 2 pi
        return -0.5 * (self.n_observed[g] * 1.8378770664093453 + self.log_det + square)
