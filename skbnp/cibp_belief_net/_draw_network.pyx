"""A draw of the belief network as loops over rows want it, and moments of its visible units."""

from libc.math cimport sqrt

from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.numerics._moments cimport merge_part

import numpy as np

from skbnp.cibp_belief_net._predictive_laws import has_row_clusters

cdef enum:
    N_NODES = 15            # of Gauss-Hermite quadrature over a unit's own noise


cdef class DrawNetwork:
    """A draw as the loops below want it. Hidden units are 0..n_hidden-1, layers 0..n_layers-1."""

    def __init__(self, draw, components=None):
        widths = np.asarray(draw["widths"], dtype=np.intp)
        cdef Py_ssize_t D = widths[0], M = len(widths) - 1, p, c
        edges = np.asarray(draw["edges"], dtype=np.intp).reshape(-1, 2)
        weights = np.ascontiguousarray(draw["weights"], dtype=np.float64)
        self.n_features, self.n_layers, self.n_hidden = D, M, widths[1:].sum()
        self.width = widths[1:].copy()
        offset = np.concatenate([[0], np.cumsum(widths[1:])]).astype(np.intp)
        self.offset = offset
        self.widest = max(1, widths[1:].max(initial=1))
        bias, nu = (
            np.array(draw[name], dtype=np.float64) for name in ("biases", "unit_precision")
        )
        self.bias, self.precision = bias[:D], nu[:D]
        self.hidden_bias, self.hidden_precision = bias[D:], nu[D:]

        full = np.zeros((self.n_hidden, D + self.n_hidden))
        full[edges[:, 0] - D, edges[:, 1]] = weights
        self.weights = np.ascontiguousarray(full[:, :D])
        n_visible = np.searchsorted(edges[:, 1], D)
        self.child_start = np.searchsorted(edges[:, 1], np.arange(D + 1)).astype(np.intp)
        self.parent = np.ascontiguousarray(edges[:n_visible, 0] - D)
        self.weight = weights[:n_visible].copy()

        block, pieces, at = -np.ones((M, M), dtype=np.intp), [np.zeros(0)], 0
        squares, start = [np.zeros(0)], np.zeros(M + 1, dtype=np.intp)
        for p in range(M):
            rows = full[offset[p]:offset[p + 1]]
            for c in range(p):
                piece = rows[:, D + offset[c]:D + offset[c + 1]]
                if piece.any():
                    block[p, c] = at
                    pieces.append(piece.ravel())
                    at += piece.size
            rows = rows[:, D:]
            squares.append(((rows * nu[D:]) @ rows.T).ravel())
            start[p + 1] = start[p] + rows.shape[0] ** 2
        self.block, self.between = block, np.concatenate(pieces)
        self.quadratic, self.quadratic_start = np.concatenate(squares), start

        if components is None and has_row_clusters(draw):
            raise ValueError("a draw with row clusters needs components")
        if components is not None and M > 0:
            log_weight, mean, precision = components
            self.n_components = len(log_weight)
            self.log_weight = np.array(log_weight, dtype=np.float64)
            self.mean = np.array(mean, dtype=np.float64, order="C")
            self.top_precision = np.array(precision, dtype=np.float64, order="C")
            self.half_log_det = 0.5 * np.log(precision).sum(axis=1)

    def likelihood(self, A):
        """T (n_rows, n_hidden) and S (n_hidden, n_hidden) of rows with the same entries."""
        observed = ~np.isnan(A[0])
        W = self.weights[:, observed]
        scaled = W * self.precision[observed]
        if np.isinf(A).any():
            raise ValueError("A must be finite or NaN")
        T = (A[:, observed] - self.bias[observed]) @ scaled.T
        return np.ascontiguousarray(T), np.ascontiguousarray(scaled @ W.T)

    def log_density_without_units(self, A):
        """sum over the observed entries of log N(a; b, nu), all hidden u = 0, shape (n_rows,)."""
        terms = 0.5 * np.log(self.precision / (2 * np.pi))
        return np.nansum(terms - 0.5 * self.precision * (A - self.bias) ** 2, axis=1)


cdef class Moments:
    """Mean and variance of g(a) over a visible unit's own noise, g = s or the identity."""

    def __init__(self, DrawNetwork net, visible):
        if visible not in ("gaussian", "sigmoid"):
            raise ValueError(f"visible must be 'gaussian' or 'sigmoid', got {visible!r}")
        self.net, self.sigmoid = net, visible == "sigmoid"
        node, share = np.polynomial.hermite_e.hermegauss(N_NODES)
        self.node, self.share = node, share / share.sum()
        self.bias, self.precision = net.bias, net.precision

    cdef void add(
        self, double before, double weight, const double* u, const Py_ssize_t[::1] missing,
        double* first, double* square,
    ) noexcept nogil:
        """Let u (n_hidden,) join those of weight ``before``, at the missing units of a row."""
        cdef Py_ssize_t i, d, e
        cdef int h
        cdef double y, spread, mean, variance
        cdef double[N_NODES] a
        for i in range(missing.shape[0]):
            d = missing[i]
            y = self.bias[d]
            for e in range(self.net.child_start[d], self.net.child_start[d + 1]):
                y += self.net.weight[e] * u[self.net.parent[e]]
            if not self.sigmoid:
                mean, variance = y, 1.0 / self.precision[d]
            else:
                spread = 1.0 / sqrt(self.precision[d])
                for h in range(N_NODES):
                    a[h] = y + spread * self.node[h]
                squash_all(N_NODES, a, a)
                mean, variance = 0.0, 0.0
                for h in range(N_NODES):
                    mean += self.share[h] * a[h]
                for h in range(N_NODES):
                    variance += self.share[h] * (a[h] - mean) * (a[h] - mean)
            merge_part(before, weight, mean, variance, &first[d], &square[d])
