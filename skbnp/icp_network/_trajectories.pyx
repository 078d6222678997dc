"""Hamiltonian Monte Carlo on all noises of hidden nodes and all parameters, the graph fixed.

Variables are the standardised noises e of hidden nodes, a = mean + e / sqrt(rho), the weights,
biases and r = log rho: a node's activations, and those of its descendants, follow its parameters
(equations (I6.1) and (I6.2); Neal 2011).

Weights and the latents that are drawn around them hold each other back, so that latents are
integrated out here and drawn anew where a trajectory ends (van Dyk & Park 2008). A row's lead, what
the latent of its own class exceeds its mean by, stays as a variable: given it, those of the others
are independent, each below with probability Phi(own mean + lead - its mean). One latent alone is
above 0 with probability Phi(its mean).
"""

from libc.math cimport exp, log, sqrt
from libc.string cimport memcpy, memset
from scipy.special.cython_special cimport log_ndtr

import numpy as np

from skbnp.icp_network._feedforward cimport HIDDEN, INPUT, OBSERVED
from skbnp.icp_network._graph cimport KEPT_RIVALS, NO_LOG_SCALE
from skbnp.icp_network._rows cimport Rows
from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws

cdef double TARGET_ACCEPTANCE = 0.7
# Inertia of weights where there are labels, over that where there are numbers, which say more.
cdef double LABEL = 0.1
cdef double HALF_LOG_2_PI = 0.91893853320467274178


cdef class Trajectories(Rows):
    """One trajectory takes O(N E + N K) per step."""

    def __init__(
        self, visible, prior, state, bit_generator, labels, activation_update,
        Py_ssize_t n_leapfrog, int fault,
    ):
        self.n_leapfrog, self.step = n_leapfrog, 0.01
        for name in ("path_pre", "path_post", "noise", "impulse", "slope"):
            setattr(self, name, np.zeros((0, 0)))
        for name in ("value", "momentum", "gradient", "inertia"):
            setattr(self, name, np.zeros(0))
        for name in ("lead", "lead_impulse", "lead_slope"):
            setattr(self, name, np.zeros(max(1, len(visible))))
        super().__init__(
            visible, prior, state, bit_generator, labels, activation_update, fault
        )

    def _grow_nodes(self, old, room):
        for name in ("path_pre", "path_post", "noise", "impulse", "slope"):
            setattr(self, name, np.zeros((room, self.stride)))
        Rows._grow_nodes(self, old, room)

    cdef void _adapt_step(self, double rate) noexcept nogil:
        """Move log step by rate times (acceptance since the last call less its target)."""
        if self._n_adapting > 0:
            self.step *= exp(
                rate * (self._total_acceptance / self._n_adapting - TARGET_ACCEPTANCE)
            )
            self.step = min(max(self.step, 1e-5), 1.0)
        self._total_acceptance, self._n_adapting = 0.0, 0

    cdef int _move_along(self) except -1 nogil:
        """One trajectory of all rows together."""
        cdef Py_ssize_t i
        cdef double length, change, acceptance = 0.0
        self._compile()
        self._need_values()
        self._start_path()
        length = self.step * (0.7 + 0.6 * draws.uniform(self._rng))
        change = -self._follow_means() + self._kinetic()
        self._differentiate()
        self._kick(0.5 * length)
        for i in range(self.n_leapfrog):
            self._drift(length)
            acceptance = self._follow_means()
            self._differentiate()
            self._kick(0.5 * length if i + 1 == self.n_leapfrog else length)
        change += acceptance - self._kinetic()
        # The comparison is false for what overflowed into NaN.
        acceptance = 0.0
        if change == change:
            acceptance = 1.0 if change >= 0.0 else exp(change)
        self._total_acceptance += acceptance
        self._n_adapting += 1
        self.n_trajectories_tried += 1
        if draws.uniform(self._rng) < acceptance:
            self.n_trajectories += 1
            self._take_path()
        return 0

    cdef int _need_values(self) except -1 nogil:
        cdef Py_ssize_t size = self.n_edges + 2 * self.n_nodes
        if self.value.shape[0] >= size:
            return 0
        with gil:
            for name in ("value", "momentum", "gradient", "inertia"):
                setattr(self, name, np.zeros(2 * size))
        return 0

    cdef void _start_path(self) noexcept nogil:
        """Where the chain is, as values and noises, and momenta anew."""
        cdef Py_ssize_t p, i, slot, n = self.n_samples, e = self.n_edges, k = self.n_nodes
        cdef double many = max(1.0, n * (LABEL if self.n_latents else 1.0)), root
        for i in range(e):
            self.value[i], self.inertia[i] = self.forward.weight[i], many
        for p in range(k):
            slot = self.ascending[k - 1 - p]
            self.value[e + p], self.inertia[e + p] = self.bias[slot], many
            self.value[e + k + p], self.inertia[e + k + p] = log(self.precision[slot]), 1.0
            memcpy(&self.path_pre[p, 0], &self.pre[slot, 0], n * sizeof(double))
            memcpy(&self.path_post[p, 0], &self.post[slot, 0], n * sizeof(double))
            if self.forward.kind[p] == HIDDEN:
                self._fill_residual(slot, &self.noise[p, 0])
                root = sqrt(self.precision[slot])
                for i in range(n):
                    self.noise[p, i] *= root
                    self.impulse[p, i] = draws.normal(self._rng)
        if self.n_latents > 1:
            self._fill_latent_residuals()
            for i in range(n):
                self.lead[i] = self.residual[self.first_latent + self.label[i], i]
                self.lead_impulse[i] = draws.normal(self._rng)
        for i in range(e + 2 * k):
            self.momentum[i] = sqrt(self.inertia[i]) * draws.normal(self._rng)
        for p in range(k):
            slot = self.ascending[k - 1 - p]
            # What does not move has no momentum.
            if not self.has_law(slot):
                self.momentum[e + p] = 0.0
            if not self.has_free_precision(slot):
                self.momentum[e + k + p] = 0.0

    cdef double _follow_means(self) noexcept nogil:
        """Activations from the noises; the log density of all variables.

        ``slope`` of observed nodes becomes what they exceed their means by.
        """
        cdef Py_ssize_t p, i, j, n = self.n_samples, e = self.n_edges, k = self.n_nodes
        cdef double total = 0.0, spread, r, b, w
        cdef double* a
        for p in range(k):
            if self.forward.kind[p] == INPUT:
                continue
            b, r = self.value[e + p], self.value[e + k + p]
            a = &self.path_pre[p, 0]
            if self._is_latent(p):
                a = &self.slope[p, 0]
                for i in range(n):
                    a[i] = b
                for j in range(self.forward.parent_start[p], self.forward.parent_start[p + 1]):
                    linalg.axpy(n, self.value[j], &self.path_post[self.forward.parent[j], 0], a)
            elif self.forward.kind[p] == OBSERVED:
                a = &self.slope[p, 0]
                for i in range(n):
                    a[i] = self.path_pre[p, i] - b
                for j in range(self.forward.parent_start[p], self.forward.parent_start[p + 1]):
                    linalg.axpy(
                        n, -self.value[j], &self.path_post[self.forward.parent[j], 0], a
                    )
                total += 0.5 * (n * r - exp(r) * linalg.dot(n, a, a))
            else:
                spread = exp(-0.5 * r)
                for i in range(n):
                    a[i] = b + spread * self.noise[p, i]
                for j in range(self.forward.parent_start[p], self.forward.parent_start[p + 1]):
                    linalg.axpy(n, self.value[j], &self.path_post[self.forward.parent[j], 0], a)
                squash_all(n, a, &self.path_post[p, 0])
                total -= 0.5 * linalg.dot(n, &self.noise[p, 0], &self.noise[p, 0])
            total -= 0.5 * self.bias_precision * b * b
            if self._has_free_log(p):
                total += self._shape() * r - self.noise_law[1] * exp(r)
        for i in range(e):
            w = self.value[i]
            total -= 0.5 * self._precision_along(i) * w * w
        if self.n_latents:
            total += self._judge()
        return total

    cdef double _judge(self) noexcept nogil:
        """Log density of leads and labels; turns ``slope`` of latents from means to gradients."""
        cdef Py_ssize_t i, c, label
        cdef double total = 0.0, side, top, x
        cdef double* slope
        for i in range(self.n_samples):
            label = self.label[i]
            if self.n_latents == 1:
                slope = &self.slope[self.position[self.first_latent], i]
                side = 1.0 if label == 1 else -1.0
                x = log_ndtr(side * slope[0])
                total += x
                slope[0] = side * slope_of_log_ndtr(side * slope[0], x)
                continue
            top = self.slope[self.position[self.first_latent + label], i] + self.lead[i]
            total -= 0.5 * self.lead[i] * self.lead[i]
            self.lead_slope[i] = 0.0
            for c in range(self.n_latents):
                if c != label:
                    slope = &self.slope[self.position[self.first_latent + c], i]
                    x = log_ndtr(top - slope[0])
                    total += x
                    slope[0] = -slope_of_log_ndtr(top - slope[0], x)
                    self.lead_slope[i] -= slope[0]
            self.slope[self.position[self.first_latent + label], i] = self.lead_slope[i]
        return total

    cdef bint _is_latent(self, Py_ssize_t p) noexcept nogil:
        cdef Py_ssize_t slot = self.ascending[self.n_nodes - 1 - p]
        return self.first_latent <= slot < self.first_latent + self.n_latents

    cdef double _precision_along(self, Py_ssize_t edge) noexcept nogil:
        """Prior precision of the weight of an edge."""
        return self._weight_precision_from(
            self.ascending[self.n_nodes - 1 - self.forward.parent[edge]]
        )

    cdef bint _has_free_log(self, Py_ssize_t p) noexcept nogil:
        return self.has_free_precision(self.ascending[self.n_nodes - 1 - p])

    cdef double _shape(self) noexcept nogil:
        """Power of rho in the density of log rho."""
        return self.noise_law[0] - (1.0 if self.fault == NO_LOG_SCALE else 0.0)

    cdef void _differentiate(self) noexcept nogil:
        """Gradients of the log density, children before parents."""
        cdef Py_ssize_t p, i, j, at, n = self.n_samples, e = self.n_edges, k = self.n_nodes
        cdef double r, total, spread
        cdef double* slope
        for p in range(k):
            if self.forward.kind[p] == HIDDEN:
                memset(&self.slope[p, 0], 0, n * sizeof(double))
        for p in range(k - 1, -1, -1):
            self.gradient[e + p] = self.gradient[e + k + p] = 0.0
            if self.forward.kind[p] == INPUT:
                continue
            r = self.value[e + k + p]
            slope = &self.slope[p, 0]
            if self.forward.kind[p] == OBSERVED and not self._is_latent(p):
                total = linalg.dot(n, slope, slope)
                self.gradient[e + k + p] = 0.5 * (n - exp(r) * total)
                for i in range(n):
                    slope[i] *= exp(r)
            elif self.forward.kind[p] == HIDDEN:
                for i in range(n):
                    slope[i] *= 0.5 * (1.0 - self.path_post[p, i] * self.path_post[p, i])
                spread = exp(-0.5 * r)
                self.gradient[e + k + p] = -0.5 * spread * linalg.dot(n, slope, &self.noise[p, 0])
            if self._has_free_log(p):
                self.gradient[e + k + p] += self._shape() - self.noise_law[1] * exp(r)
            else:
                self.gradient[e + k + p] = 0.0
            total = 0.0
            for i in range(n):
                total += slope[i]
            self.gradient[e + p] = total - self.bias_precision * self.value[e + p]
            for j in range(self.forward.parent_start[p], self.forward.parent_start[p + 1]):
                at = self.forward.parent[j]
                self.gradient[j] = (
                    linalg.dot(n, slope, &self.path_post[at, 0])
                    - self._precision_along(j) * self.value[j]
                )
                if self.forward.kind[at] == HIDDEN:
                    linalg.axpy(n, self.value[j], slope, &self.slope[at, 0])

    cdef void _kick(self, double length) noexcept nogil:
        cdef Py_ssize_t p, i, n = self.n_samples
        cdef double spread
        for i in range(self.n_edges + 2 * self.n_nodes):
            self.momentum[i] += length * self.gradient[i]
        for p in range(self.n_nodes):
            if self.forward.kind[p] == HIDDEN:
                spread = exp(-0.5 * self.value[self.n_edges + self.n_nodes + p])
                for i in range(n):
                    self.impulse[p, i] += length * (spread * self.slope[p, i] - self.noise[p, i])
        if self.n_latents > 1:
            for i in range(n):
                self.lead_impulse[i] += length * (self.lead_slope[i] - self.lead[i])

    cdef void _drift(self, double length) noexcept nogil:
        cdef Py_ssize_t p, i, n = self.n_samples
        for i in range(self.n_edges + 2 * self.n_nodes):
            self.value[i] += length * self.momentum[i] / self.inertia[i]
        for p in range(self.n_nodes):
            if self.forward.kind[p] == HIDDEN:
                linalg.axpy(n, length, &self.impulse[p, 0], &self.noise[p, 0])
        if self.n_latents > 1:
            linalg.axpy(n, length, &self.lead_impulse[0], &self.lead[0])

    cdef double _kinetic(self) noexcept nogil:
        cdef Py_ssize_t p, i
        cdef double total = 0.0
        for i in range(self.n_edges + 2 * self.n_nodes):
            total += self.momentum[i] * self.momentum[i] / self.inertia[i]
        for p in range(self.n_nodes):
            if self.forward.kind[p] == HIDDEN:
                total += linalg.dot(self.n_samples, &self.impulse[p, 0], &self.impulse[p, 0])
        if self.n_latents > 1:
            total += linalg.dot(self.n_samples, &self.lead_impulse[0], &self.lead_impulse[0])
        return 0.5 * total

    cdef void _take_path(self) noexcept nogil:
        """Write the end of an accepted trajectory down."""
        cdef Py_ssize_t i, p, j, slot, n = self.n_samples, e = self.n_edges, k = self.n_nodes
        for p in range(k):
            slot = self.ascending[k - 1 - p]
            for j in range(self.forward.parent_start[p], self.forward.parent_start[p + 1]):
                self.weight[slot, self.ascending[k - 1 - self.forward.parent[j]]] = self.value[j]
            if self.has_law(slot):
                self.bias[slot] = self.value[e + p]
            if self.has_free_precision(slot):
                self.precision[slot] = exp(self.value[e + k + p])
            if self.forward.kind[p] == HIDDEN:
                memcpy(&self.pre[slot, 0], &self.path_pre[p, 0], n * sizeof(double))
                memcpy(&self.post[slot, 0], &self.path_post[p, 0], n * sizeof(double))
        if self.n_latents:
            self._fill_latent_residuals()
            for i in range(n):
                if self.n_latents > 1:
                    slot = self.first_latent + self.label[i]
                    self.pre[slot, i] += self.lead[i] - self.residual[slot, i]
                    self.residual[slot, i] = self.lead[i]
                if self.fault != KEPT_RIVALS:
                    self._draw_rivals(i)
            self._squash_latents()


cdef inline double slope_of_log_ndtr(double x, double log_cdf) noexcept nogil:
    """Derivative of log Phi, the inverse Mills ratio, where it is ``log_cdf``."""
    return exp(-0.5 * x * x - HALF_LOG_2_PI - log_cdf)
