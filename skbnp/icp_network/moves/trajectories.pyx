"""Hamiltonian Monte Carlo on all noises of hidden nodes and all parameters, the graph fixed.

Variables are the standardised noises e of hidden nodes, a = mean + e / sqrt(rho), the weights,
biases and r = log rho: a node's activations, and those of its descendants, follow its parameters
(equations (I6.1) and (I6.2); Neal 2011).

Weights and the latents that are drawn around them hold each other back, so that latents are
integrated out here and drawn anew where a trajectory ends (van Dyk & Park 2008). A row's lead, what
the latent of its own class exceeds its mean by, stays as a variable: given it, those of the others
are independent (equation (I7.1)). One latent alone is above 0 with probability Phi(its mean).
"""

from libc.math cimport exp, log, sqrt
from libc.string cimport memcpy, memset
from scipy.special.cython_special cimport log_ndtr

import numpy as np

from skbnp.icp_network._network cimport Network
from skbnp.icp_network.moves.latents cimport Latents
from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.likelihoods.nonlinear_gaussian._feedforward cimport HIDDEN, INPUT, OBSERVED, Feedforward
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI

from skbnp.mcmc.fields import Field

cdef double TARGET_ACCEPTANCE = 0.7
# Inertia of weights where there are labels, over that where there are numbers, which say more.
cdef double LABEL = 0.1


cdef class Trajectories(Move):
    """Trajectories of all rows together: O(N E + N K) per step.

    Positions p, and edges, are those of ``forward``.
    """

    NAME = "trajectories"
    COUNTS = ("trajectories",)
    FIELDS = (Field("length", above=0.0, below=1e3),)

    def __init__(
        self, Network net, Latents latents, Py_ssize_t n_attempts, Py_ssize_t n_leapfrog,
        double length, bit_generator,
    ):
        """``latents`` is None where there are none; ``length`` of the first steps."""
        super().__init__(bit_generator)
        self.net, self.graph, self.latents = net, net.graph, latents
        self.n_attempts, self.n_leapfrog, self.length = n_attempts, n_leapfrog, length
        self.forward = Feedforward()
        self.position = np.zeros(net.n_latents, dtype=np.intp)
        self.pre, self.value = np.zeros((0, 0)), np.zeros(0)
        self.lead, self.lead_impulse, self.lead_slope = np.zeros((3, net.stride))

    cdef int _reserve(self) except -1 nogil:
        cdef Py_ssize_t room = self.graph.n_slots
        self.n_values = self.graph.n_edges + 2 * self.graph.n_nodes
        if self.pre.shape[0] < room:
            with gil:
                self.pre, self.post, self.noise, self.impulse, self.slope = np.zeros(
                    (5, room, self.net.stride)
                )
                self.is_latent, self.has_log = np.zeros((2, room), dtype=np.uint8)
        if self.value.shape[0] < self.n_values:
            with gil:
                self.value, self.momentum, self.gradient, self.inertia, self.stiffness = np.zeros(
                    (5, 2 * self.n_values)
                )
        return 0

    def adapt_length(self, double rate):
        """Move log length by rate times (acceptance since the last call less its target)."""
        if self._n_adapting > 0:
            self.length *= exp(
                rate * (self._total_acceptance / self._n_adapting - TARGET_ACCEPTANCE)
            )
            self.length = min(max(self.length, 1e-5), 1.0)
        self._total_acceptance, self._n_adapting = 0.0, 0

    cpdef int run(self) except -1:
        cdef Py_ssize_t _
        with nogil:
            self._reserve()
            for _ in range(self.n_attempts):
                self.net.write_into(self.forward)
                self._attempt()
        return DONE

    cdef void _attempt(self) noexcept nogil:
        """One trajectory, and its Metropolis step."""
        cdef Py_ssize_t i
        cdef double length, change, acceptance = 0.0
        self._start()
        length = self.length * (0.7 + 0.6 * draws.uniform(self.rng))
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
        self.proposed[0] += 1
        if draws.uniform(self.rng) < acceptance:
            self.accepted[0] += 1
            self._take()

    # -- the start ----------------------------------------------------------------------------

    cdef void _start(self) noexcept nogil:
        """Where the chain is, as values and noises, and momenta anew."""
        cdef Py_ssize_t p, i
        self._read_values()
        for p in range(self.graph.n_nodes):
            self._read_node(p)
        if self.net.n_latents > 1:
            self.latents.measure()
            for i in range(self.net.n_samples):
                self.lead[i] = self.latents.residual[self.net.label[i], i]
                self.lead_impulse[i] = draws.normal(self.rng)
        self._draw_momenta()

    cdef void _read_values(self) noexcept nogil:
        """Weights, biases and log precisions, and their inertia."""
        cdef Py_ssize_t p, i, slot, e = self.graph.n_edges, k = self.graph.n_nodes
        cdef double many = max(1.0, self.net.n_samples * (LABEL if self.net.n_latents else 1.0))
        for i in range(e):
            self.value[i], self.inertia[i] = self.forward.weight[i], many
            self.stiffness[i] = self.net.weight_precision_from(
                self._slot_at(self.forward.parent[i])
            )
        for p in range(k):
            slot = self._slot_at(p)
            self.value[e + p], self.inertia[e + p] = self.net.bias[slot], many
            self.value[e + k + p] = log(self.net.precision[slot])
            self.inertia[e + k + p] = 1.0

    cdef void _read_node(self, Py_ssize_t p) noexcept nogil:
        """Activations; of a hidden node its noises too, and their momenta anew."""
        cdef Py_ssize_t i, slot = self._slot_at(p), n = self.net.n_samples
        cdef double root
        self.has_log[p] = self.net.has_free_precision(slot)
        self.is_latent[p] = 0 <= slot - self.net.first_latent < self.net.n_latents
        if self.is_latent[p]:
            self.position[slot - self.net.first_latent] = p
        memcpy(&self.pre[p, 0], &self.net.pre[slot, 0], n * sizeof(double))
        memcpy(&self.post[p, 0], &self.net.post[slot, 0], n * sizeof(double))
        if self.forward.kind[p] != HIDDEN:
            return
        self.net.fill_residual(slot, &self.noise[p, 0])
        root = sqrt(self.net.precision[slot])
        for i in range(n):
            self.noise[p, i] *= root
            self.impulse[p, i] = draws.normal(self.rng)

    cdef void _draw_momenta(self) noexcept nogil:
        """Of the parameters; what does not move has none."""
        cdef Py_ssize_t i, p, e = self.graph.n_edges, k = self.graph.n_nodes
        for i in range(self.n_values):
            self.momentum[i] = sqrt(self.inertia[i]) * draws.normal(self.rng)
        for p in range(k):
            if self.forward.kind[p] == INPUT:
                self.momentum[e + p] = 0.0
            if not self.has_log[p]:
                self.momentum[e + k + p] = 0.0

    # -- the log density ----------------------------------------------------------------------

    cdef double _follow_means(self) noexcept nogil:
        """Activations from the noises; the log density of all variables.

        ``slope`` of observed nodes becomes what they exceed their means by.
        """
        cdef Py_ssize_t p, i, e = self.graph.n_edges, k = self.graph.n_nodes
        cdef double total = 0.0, r, b, w
        for p in range(k):
            if self.forward.kind[p] == INPUT:
                continue
            total += self._follow_node(p)
            b, r = self.value[e + p], self.value[e + k + p]
            total -= 0.5 * self.net.bias_precision * b * b
            if self.has_log[p]:
                total += self.net.log_of_log_precision(r)
        for i in range(e):
            w = self.value[i]
            total -= 0.5 * self.stiffness[i] * w * w
        if self.net.n_latents:
            total += self._judge_labels()
        return total

    cdef double _follow_node(self, Py_ssize_t p) noexcept nogil:
        """Activations of a hidden node, residuals or means of others; their log density."""
        cdef Py_ssize_t i, n = self.net.n_samples
        cdef double b = self.value[self.graph.n_edges + p], spread
        cdef double r = self.value[self.graph.n_edges + self.graph.n_nodes + p]
        cdef double* a = &self.slope[p, 0]
        if self.is_latent[p]:
            for i in range(n):
                a[i] = b
            self._add_parents(p, 1.0, a)
            return 0.0
        if self.forward.kind[p] == OBSERVED:
            for i in range(n):
                a[i] = self.pre[p, i] - b
            self._add_parents(p, -1.0, a)
            return 0.5 * (n * r - exp(r) * linalg.dot(n, a, a))
        a, spread = &self.pre[p, 0], exp(-0.5 * r)
        for i in range(n):
            a[i] = b + spread * self.noise[p, i]
        self._add_parents(p, 1.0, a)
        squash_all(n, a, &self.post[p, 0])
        return -0.5 * linalg.dot(n, &self.noise[p, 0], &self.noise[p, 0])

    cdef void _add_parents(self, Py_ssize_t p, double sign, double* out) noexcept nogil:
        """Add or take away what a node gets from its parents."""
        cdef Py_ssize_t j
        for j in range(self.forward.parent_start[p], self.forward.parent_start[p + 1]):
            linalg.axpy(
                self.net.n_samples, sign * self.value[j], &self.post[self.forward.parent[j], 0],
                out,
            )

    cdef double _judge_labels(self) noexcept nogil:
        """Log density of leads and labels; turns ``slope`` of latents from means to gradients."""
        cdef Py_ssize_t i
        cdef double total = 0.0
        for i in range(self.net.n_samples):
            if self.net.n_latents == 1:
                total += self._judge_single(i)
            else:
                self._judge_lead(i, &total)
        return total

    cdef double _judge_single(self, Py_ssize_t i) noexcept nogil:
        """Of a row with one latent."""
        cdef double side = 1.0 if self.net.label[i] == 1 else -1.0
        cdef double* slope = self._slope_of_latent(0, i)
        cdef double x = log_ndtr(side * slope[0])
        slope[0] = side * slope_of_log_ndtr(side * slope[0], x)
        return x

    cdef void _judge_lead(self, Py_ssize_t i, double* total) noexcept nogil:
        """Of a row with a latent for each class, added to ``total``."""
        cdef Py_ssize_t c, label = self.net.label[i]
        cdef double top = self._slope_of_latent(label, i)[0] + self.lead[i], x
        cdef double* slope
        total[0] -= 0.5 * self.lead[i] * self.lead[i]
        self.lead_slope[i] = 0.0
        for c in range(self.net.n_latents):
            if c != label:
                slope = self._slope_of_latent(c, i)
                x = log_ndtr(top - slope[0])
                total[0] += x
                slope[0] = -slope_of_log_ndtr(top - slope[0], x)
                self.lead_slope[i] -= slope[0]
        self._slope_of_latent(label, i)[0] = self.lead_slope[i]

    cdef double* _slope_of_latent(self, Py_ssize_t c, Py_ssize_t i) noexcept nogil:
        return &self.slope[self.position[c], i]

    # -- its gradient -------------------------------------------------------------------------

    cdef void _differentiate(self) noexcept nogil:
        """Gradients of the log density, children before parents: equation (I6.2)."""
        cdef Py_ssize_t p, e = self.graph.n_edges, k = self.graph.n_nodes
        for p in range(k):
            if self.forward.kind[p] == HIDDEN:
                memset(&self.slope[p, 0], 0, self.net.n_samples * sizeof(double))
        for p in range(k - 1, -1, -1):
            self.gradient[e + p] = self.gradient[e + k + p] = 0.0
            if self.forward.kind[p] != INPUT:
                self._differentiate_node(p)

    cdef void _differentiate_node(self, Py_ssize_t p) noexcept nogil:
        """By a node's bias, log precision and weights; what its parents' slopes get from it."""
        cdef Py_ssize_t i, j, at, n = self.net.n_samples
        cdef Py_ssize_t e = self.graph.n_edges, k = self.graph.n_nodes
        cdef double r = self.value[e + k + p], total = self._scale_slope(p)
        cdef double* slope = &self.slope[p, 0]
        if self.has_log[p]:
            self.gradient[e + k + p] = total + self.net.slope_of_log_precision(r)
        total = 0.0
        for i in range(n):
            total += slope[i]
        self.gradient[e + p] = total - self.net.bias_precision * self.value[e + p]
        for j in range(self.forward.parent_start[p], self.forward.parent_start[p + 1]):
            at = self.forward.parent[j]
            self.gradient[j] = (
                linalg.dot(n, slope, &self.post[at, 0]) - self.stiffness[j] * self.value[j]
            )
            if self.forward.kind[at] == HIDDEN:
                linalg.axpy(n, self.value[j], slope, &self.slope[at, 0])

    cdef double _scale_slope(self, Py_ssize_t p) noexcept nogil:
        """Turn ``slope`` into the gradient by the mean; the rows' part of that by log rho."""
        cdef Py_ssize_t i, n = self.net.n_samples
        cdef double r = self.value[self.graph.n_edges + self.graph.n_nodes + p], total
        cdef double* slope = &self.slope[p, 0]
        if self.forward.kind[p] == HIDDEN:
            for i in range(n):
                slope[i] *= 0.5 * (1.0 - self.post[p, i] * self.post[p, i])
            return -0.5 * exp(-0.5 * r) * linalg.dot(n, slope, &self.noise[p, 0])
        if self.is_latent[p]:
            return 0.0
        total = linalg.dot(n, slope, slope)
        for i in range(n):
            slope[i] *= exp(r)
        return 0.5 * (n - exp(r) * total)

    # -- the way ------------------------------------------------------------------------------

    cdef void _kick(self, double length) noexcept nogil:
        """Momenta by the gradient."""
        cdef Py_ssize_t p, i, n = self.net.n_samples
        cdef double spread
        for i in range(self.n_values):
            self.momentum[i] += length * self.gradient[i]
        for p in range(self.graph.n_nodes):
            if self.forward.kind[p] == HIDDEN:
                spread = exp(-0.5 * self.value[self.graph.n_edges + self.graph.n_nodes + p])
                for i in range(n):
                    self.impulse[p, i] += length * (spread * self.slope[p, i] - self.noise[p, i])
        if self.net.n_latents > 1:
            for i in range(n):
                self.lead_impulse[i] += length * (self.lead_slope[i] - self.lead[i])

    cdef void _drift(self, double length) noexcept nogil:
        """Values by the momenta."""
        cdef Py_ssize_t p, i, n = self.net.n_samples
        for i in range(self.n_values):
            self.value[i] += length * self.momentum[i] / self.inertia[i]
        for p in range(self.graph.n_nodes):
            if self.forward.kind[p] == HIDDEN:
                linalg.axpy(n, length, &self.impulse[p, 0], &self.noise[p, 0])
        if self.net.n_latents > 1:
            linalg.axpy(n, length, &self.lead_impulse[0], &self.lead[0])

    cdef double _kinetic(self) noexcept nogil:
        """Energy of the momenta."""
        cdef Py_ssize_t p, i, n = self.net.n_samples
        cdef double total = 0.0
        for i in range(self.n_values):
            total += self.momentum[i] * self.momentum[i] / self.inertia[i]
        for p in range(self.graph.n_nodes):
            if self.forward.kind[p] == HIDDEN:
                total += linalg.dot(n, &self.impulse[p, 0], &self.impulse[p, 0])
        if self.net.n_latents > 1:
            total += linalg.dot(n, &self.lead_impulse[0], &self.lead_impulse[0])
        return 0.5 * total

    # -- the end ------------------------------------------------------------------------------

    cdef void _take(self) noexcept nogil:
        """Write the end of an accepted trajectory down."""
        cdef Py_ssize_t p, j, slot, n = self.net.n_samples
        cdef Py_ssize_t e = self.graph.n_edges, k = self.graph.n_nodes
        for p in range(k):
            slot = self._slot_at(p)
            for j in range(self.forward.parent_start[p], self.forward.parent_start[p + 1]):
                self.net.weight[slot, self._slot_at(self.forward.parent[j])] = self.value[j]
            if self.net.has_law(slot):
                self.net.bias[slot] = self.value[e + p]
            if self.net.has_free_precision(slot):
                self.net.precision[slot] = exp(self.value[e + k + p])
            if self.forward.kind[p] == HIDDEN:
                memcpy(&self.net.pre[slot, 0], &self.pre[p, 0], n * sizeof(double))
                memcpy(&self.net.post[slot, 0], &self.post[p, 0], n * sizeof(double))
        if self.net.n_latents:
            self._take_latents()

    cdef void _take_latents(self) noexcept nogil:
        """Latents by the leads and, of the other classes, anew."""
        cdef Py_ssize_t i
        self.latents.measure()
        for i in range(self.net.n_samples):
            if self.net.n_latents > 1:
                self.latents.set_lead(i, self.lead[i])
            self.latents.draw_others(i)
        self.latents.squash()

    # -- nodes by position --------------------------------------------------------------------

    cdef Py_ssize_t _slot_at(self, Py_ssize_t p) noexcept nogil:
        return self.graph.ascending[self.graph.n_nodes - 1 - p]


cdef inline double slope_of_log_ndtr(double x, double log_cdf) noexcept nogil:
    """Derivative of log Phi, the inverse Mills ratio, where it is ``log_cdf``."""
    return exp(-0.5 * x * x - 0.5 * LOG_2_PI - log_cdf)
