"""What a hidden node is to the rows: its children's parameters with it and without, and its rows.

Children keep their means and variances (equation (I5.7)); activations are drawn towards what the
children leave unexplained (equations (I5.8) and (I5.9)).
"""

from libc.math cimport log, sqrt
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.icp_network._network cimport Network
from skbnp.icp_network.moves._proposal cimport Proposal
from skbnp.likelihoods.nonlinear_gaussian._grid cimport (
    draw_on_grid, squashed_moments, weigh_on_grid,
)
from skbnp.likelihoods.nonlinear_gaussian._matching cimport (
    LEAST_PRECISION, compare_rows, match_precision,
)
from skbnp.numerics cimport linalg


cdef class Newborn:
    """The parameters' and rows' part of births and deaths: O(N (m p + CELLS))."""

    def __init__(self, Network net):
        self.net, self.graph = net, net.graph
        self.mean, self.linear, self.drawn, self.residual = np.zeros((4, net.stride))

    # -- the children's parameters ------------------------------------------------------------

    cdef bint match_moments(self, Proposal* p, Py_ssize_t slot, bint birth) noexcept nogil:
        """Fill in the children's parameters with the node and without; whether there are any.

        With the mean mu and variance v of what the node gives, over all rows alike.
        """
        cdef double mean, variance, mu, v, w
        cdef Py_ssize_t i, child
        self._fill_mean(p, slot)
        mean = self._average_mean(p, slot, &variance)
        squashed_moments(mean, sqrt(variance + 1.0 / self.net.precision[slot]), &mu, &v)
        for i in range(p.n_children):
            child, w = p.child[i], p.weight[i]
            p.bias_with[i] = p.bias_without[i] = self.net.bias[child]
            p.precision_with[i] = p.precision_without[i] = self.net.precision[child]
            if birth:
                p.bias_with[i] -= w * mu
            else:
                p.bias_without[i] += w * mu
            if self.net.has_free_precision(child) and not match_precision(
                birth, w * w * v, &p.precision_without[i], &p.precision_with[i]
            ):
                return False
        return self.net.precision[slot] > LEAST_PRECISION

    cdef double _average_mean(self, Proposal* p, Py_ssize_t slot, double* variance) noexcept nogil:
        """Mean and variance over the rows of the node's means."""
        cdef Py_ssize_t i, n = self.net.n_samples
        cdef double mean = 0.0
        variance[0] = 0.0
        if p.n_parents == 0 or n == 0:
            return self.net.bias[slot]
        for i in range(n):
            mean += self.mean[i] / n
        for i in range(n):
            variance[0] += (self.mean[i] - mean) * (self.mean[i] - mean) / n
        return mean

    cdef void _fill_mean(self, Proposal* p, Py_ssize_t slot) noexcept nogil:
        """Means of the node's activations given its parents'."""
        cdef Py_ssize_t i
        for i in range(self.net.n_samples):
            self.mean[i] = self.net.bias[slot]
        for i in range(p.n_parents):
            linalg.axpy(
                self.net.n_samples, self.net.weight[slot, p.parent[i]],
                &self.net.post[p.parent[i], 0], &self.mean[0],
            )

    # -- the rows -----------------------------------------------------------------------------

    cdef double draw(self, Proposal* p, Py_ssize_t slot, bitgen_t* rng) noexcept nogil:
        """Draw the node's activations; log J of equation (I5.9). Its weights are still 0."""
        cdef Py_ssize_t i
        cdef double quadratic, spread = 1.0 / sqrt(self.net.precision[slot])
        cdef double total = self._compare_children(p, slot, False, &quadratic)
        for i in range(self.net.n_samples):
            total += draw_on_grid(
                rng, self.mean[i], spread, self.linear[i], quadratic, &self.drawn[i]
            )
        return total

    cdef double weigh(self, Proposal* p, Py_ssize_t slot) noexcept nogil:
        """log J of the birth that would make the node as it is."""
        cdef Py_ssize_t i
        cdef double quadratic, spread = 1.0 / sqrt(self.net.precision[slot])
        cdef double total = self._compare_children(p, slot, True, &quadratic)
        for i in range(self.net.n_samples):
            total += weigh_on_grid(
                self.net.pre[slot, i], self.mean[i], spread, self.linear[i], quadratic
            )
        return total

    cdef double _compare_children(
        self, Proposal* p, Py_ssize_t slot, bint with_node, double* quadratic
    ) noexcept nogil:
        """The sum over children of equation (I5.9); T and S of equation (I5.8).

        ``with_node``: biases and residuals of the children are those with the node.
        """
        cdef Py_ssize_t i, j, child, n = self.net.n_samples
        cdef double total = 0.0, w, rho, shift
        cdef double* r = &self.residual[0]
        quadratic[0] = 0.0
        for i in range(n):
            self.linear[i] = 0.0
        for j in range(p.n_children):
            child, w, rho = p.child[j], p.weight[j], p.precision_with[j]
            shift = p.bias_without[j] - p.bias_with[j]
            self.net.fill_residual(child, r)
            # r becomes what is left without the node, with the bias that it brings.
            if with_node:
                linalg.axpy(n, w, &self.net.post[slot, 0], r)
            else:
                for i in range(n):
                    r[i] += shift
            quadratic[0] += rho * w * w
            total += compare_rows(n, r, shift, w, p.precision_without[j], rho, &self.linear[0])
            total = total + self._log_prior_ratio(p, j)
        return total

    cdef double _log_prior_ratio(self, Proposal* p, Py_ssize_t j) noexcept nogil:
        """Of a child's bias and precision with the node over those without; the rows' constants."""
        cdef double with_it = p.precision_with[j], without = p.precision_without[j], total
        total = -0.5 * self.net.bias_precision * (
            p.bias_with[j] * p.bias_with[j] - p.bias_without[j] * p.bias_without[j]
        )
        if self.net.has_free_precision(p.child[j]):
            total += 0.5 * self.net.n_samples * log(with_it / without)
            total += self.net.log_precision(with_it) - self.net.log_precision(without)
            total += self._log_jacobian(with_it, without)
        return total

    cdef double _log_jacobian(self, double with_it, double without) noexcept nogil:
        """Of a child's bias and precision: equation (I5.7)."""
        return 2.0 * log(with_it / without)
