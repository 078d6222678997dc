"""Importance sampling of a row's hidden noises from Gaussians around the modes of their law."""

from libc.math cimport INFINITY, exp, fabs, log
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

from skbnp.icp_network._feedforward cimport BLOCK, HIDDEN, INPUT, OBSERVED, Feedforward
from skbnp.icp_network._mixing cimport mix_row, weigh
from skbnp.icp_network._particles cimport Particles
from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.numerics cimport linalg, rng as random, special
from skbnp.numerics.rng cimport RowStream

import numpy as np


cdef enum:
    MOST_STARTS = 4     # of the search for modes
    N_STEPS = 40        # of each, at most

# Gain of a step of the search, in nats, that is the last; distance of modes that count as one.
cdef double ENOUGH = 0.02, NEXT_TO = 0.2
cdef double WIDENED = 1.15                  # of the proposals
cdef double DEFENSIVE = 0.1                 # share of the prior among them


cdef class Modes:
    """Modes of a row's law of the noises e of its sampled nodes, and Gaussians around them.

    -log p(e | row) = |e|^2 / 2 + |r(e)|^2 / 2 up to a constant, r the standardised residuals of
    the known entries that have sampled parents; Gauss-Newton's Hessian is I + J'J, J = dr/de.
    """

    cdef:
        Particles particles
        Feedforward net
        Py_ssize_t n_noises, n_residuals, n_modes
        Py_ssize_t[::1] index           # (n_nodes,) of a sampled node's noise, or a residual; -1
        double[::1] given, u, slope     # (n_nodes,)
        double[:, ::1] down             # (n_noises, n_noises) da/de of sampled nodes
        double[:, ::1] jacobian         # (n_residuals, n_noises)
        double[::1] residual, gradient, step, trial
        double[:, ::1] hessian          # (n_noises, n_noises)
        double[:, ::1] mode             # (MOST_STARTS, n_noises)
        double[:, :, ::1] factor        # (MOST_STARTS, n_noises, n_noises)
        double[::1] log_det, evidence, log_share, term

    def __init__(self, Particles particles):
        net = self.net = particles.above
        self.particles = particles
        kind, start = np.asarray(net.kind), np.asarray(net.parent_start)
        index, H, R = np.full(max(1, net.n_nodes), -1, dtype=np.intp), 0, 0
        for p in range(net.n_nodes):
            parents = np.asarray(net.parent)[start[p]:start[p + 1]]
            if kind[p] == HIDDEN:
                index[p], H = H, H + 1
            elif kind[p] == OBSERVED and (kind[parents] == HIDDEN).any():
                index[p], R = R, R + 1
        self.index, self.n_noises, self.n_residuals = index, H, R
        self.given, self.u, self.slope = np.zeros((3, max(1, net.n_nodes)))
        self.down, self.hessian = np.zeros((2, H, H))
        self.jacobian, self.residual = np.zeros((R, H)), np.zeros(R)
        self.gradient, self.step, self.trial = np.zeros((3, H))
        self.mode, self.factor = np.zeros((MOST_STARTS, H)), np.zeros((MOST_STARTS, H, H))
        self.log_det, self.evidence = np.zeros((2, MOST_STARTS))
        self.log_share, self.term = np.zeros((2, MOST_STARTS + 1))

    cdef void load(self) noexcept nogil:
        """The row that the particles are of."""
        cdef Py_ssize_t p, e, k
        cdef double total
        for p in range(self.net.n_nodes):
            if self.net.kind[p] == INPUT:
                continue
            total = self.net.bias[p]
            for e in range(self.net.parent_start[p], self.net.parent_start[p + 1]):
                k = self.net.parent[e]
                if self.net.kind[k] != HIDDEN:
                    total += self.net.weight[e] * self.particles.above_u[k][0]
            if self.net.kind[p] == OBSERVED:
                total = self.particles.above_a[p][0] - total
            self.given[p] = total

    cdef double energy(self, const double* noise, bint with_slopes) noexcept nogil:
        """-log p up to a constant; sets residuals, and with slopes their Jacobian."""
        cdef Py_ssize_t p, e, k, j, i, H = self.n_noises
        cdef double total, weight, squares = 0.0
        cdef double* row
        for p in range(self.net.n_nodes):
            j = self.index[p]
            if j < 0:
                continue
            if self.net.kind[p] == HIDDEN:
                total, row = self.given[p] + self.net.spread[p] * noise[j], &self.down[j, 0]
                squares += noise[j] * noise[j]
            else:
                total, row = -self.given[p], &self.jacobian[j, 0]
            if with_slopes:
                for i in range(H):
                    row[i] = 0.0
            for e in range(self.net.parent_start[p], self.net.parent_start[p + 1]):
                k = self.net.parent[e]
                if self.net.kind[k] != HIDDEN:
                    continue
                weight = self.net.weight[e]
                total += weight * self.u[k]
                if with_slopes:
                    weight *= self.slope[k]
                    for i in range(H):
                        row[i] += weight * self.down[self.index[k], i]
            if self.net.kind[p] == HIDDEN:
                squash_all(1, &total, &self.u[p])
                self.slope[p] = 0.5 * (1.0 - self.u[p] * self.u[p])
                if with_slopes:
                    row[j] += self.net.spread[p]
            else:
                weight = 1.0 / self.net.spread[p]
                self.residual[j] = weight * total
                squares += self.residual[j] * self.residual[j]
                if with_slopes:
                    for i in range(H):
                        row[i] *= weight
        return 0.5 * squares

    cdef void _square(self) noexcept nogil:
        """J'J"""
        cdef const double* J = &self.jacobian[0, 0]
        linalg.gemm(True, False, self.n_noises, self.n_noises, self.n_residuals, 1.0, J, J, 0.0,
                    &self.hessian[0, 0])

    cdef int _factor(self, double damping, double* out) noexcept nogil:
        """The factor of (1 + damping) I + J'J; non-zero if that fails."""
        cdef Py_ssize_t i, H = self.n_noises
        memcpy(out, &self.hessian[0, 0], H * H * sizeof(double))
        for i in range(H):
            out[i * H + i] += 1.0 + damping
        return linalg.cholesky(out, H)

    cdef bint find(self, const double* start) noexcept nogil:
        """Descend from a start by damped steps of Gauss and Newton; whether a mode is added."""
        cdef Py_ssize_t i, m = self.n_modes, H = self.n_noises, _
        cdef double* e = &self.mode[m, 0]
        cdef double* factor = &self.factor[m, 0, 0]
        cdef double value, new, damping = 0.1
        memcpy(e, start, H * sizeof(double))
        value = self.energy(e, True)
        for _ in range(N_STEPS):
            self._square()
            for i in range(H):
                self.gradient[i] = e[i]
            linalg.gemv(True, self.n_residuals, H, 1.0, &self.jacobian[0, 0], &self.residual[0],
                        1.0, &self.gradient[0])
            new = INFINITY
            while damping < 1e8:
                if self._factor(damping, factor) != 0:
                    return False
                memcpy(&self.step[0], &self.gradient[0], H * sizeof(double))
                linalg.solve_transposed(factor, H, &self.step[0])
                linalg.solve(factor, H, &self.step[0])
                for i in range(H):
                    self.trial[i] = e[i] - self.step[i]
                new = self.energy(&self.trial[0], False)
                if new < value:
                    break
                damping *= 5.0
            if not new < value:
                break
            memcpy(e, &self.trial[0], H * sizeof(double))
            damping *= 0.2
            new = value - new
            value = self.energy(e, True)
            if new < ENOUGH or self._is_known(e):
                break
        self._square()
        if not value < INFINITY or self._is_known(e) or self._factor(0.0, factor) != 0:
            return False
        self.log_det[m] = linalg.log_det(factor, H)
        self.evidence[m] = -value - 0.5 * self.log_det[m]
        self.n_modes += 1
        return True

    cdef bint _is_known(self, const double* noise) noexcept nogil:
        """Whether a mode is next to this place."""
        cdef Py_ssize_t m, i
        cdef double apart
        for m in range(self.n_modes):
            apart = 0.0
            for i in range(self.n_noises):
                apart = max(apart, fabs(self.mode[m, i] - noise[i]))
            if apart < NEXT_TO:
                return True
        return False

    cdef void share(self) noexcept nogil:
        """Shares of the modes, by Laplace's evidences, and of the prior, which comes last."""
        cdef Py_ssize_t m
        cdef double total
        self.log_share[self.n_modes] = 0.0
        if self.n_modes > 0:
            total = special.log_sum_exp(&self.evidence[0], self.n_modes)
            for m in range(self.n_modes):
                self.log_share[m] = log(1.0 - DEFENSIVE) + self.evidence[m] - total
            self.log_share[self.n_modes] = log(DEFENSIVE)

    cdef void draw(self, bitgen_t* rng, double place, double* out) noexcept nogil:
        """A point of the component at which so much of the shares is passed."""
        cdef Py_ssize_t i, m = 0, H = self.n_noises
        while m < self.n_modes and place >= exp(self.log_share[m]):
            place -= exp(self.log_share[m])
            m += 1
        for i in range(H):
            out[i] = random.normal(rng)
        if m < self.n_modes:
            linalg.solve(&self.factor[m, 0, 0], H, out)
            for i in range(H):
                out[i] = self.mode[m, i] + WIDENED * out[i]

    cdef double log_ratio(self, const double* noise) noexcept nogil:
        """log of the prior of the noises over the density that they are drawn from."""
        cdef Py_ssize_t i, k, m, H = self.n_noises
        cdef double squares, prior = 0.0, x
        cdef const double* row
        for i in range(H):
            prior -= 0.5 * noise[i] * noise[i]
        for m in range(self.n_modes):
            squares = 0.0
            for i in range(H):
                x, row = 0.0, &self.factor[m, i, 0]
                for k in range(i, H):
                    x += row[k] * (noise[k] - self.mode[m, k])
                squares += x * x
            self.term[m] = (
                self.log_share[m] + 0.5 * self.log_det[m] - H * log(WIDENED)
                - 0.5 * squares / (WIDENED * WIDENED)
            )
        self.term[self.n_modes] = self.log_share[self.n_modes] + prior
        return prior - special.log_sum_exp(&self.term[0], self.n_modes + 1)


def around_modes(Particles particles, A_, key_, noise_, seed, t, n_importance, wanted_, int mode):
    """log of an unbiased estimate of each row's density, mean and variance, by importance sampling.

    Points come from Gaussians around the modes that are found from 0 and from the best of BLOCK
    fantasies, and from the prior, in shares. O(H^3) per step of the search, O(H^2) per point.
    """
    cdef Py_ssize_t S = n_importance, n_rows = len(A_), n_out = len(wanted_)
    cdef Py_ssize_t i, j, p, s, n, first, best, _
    cdef uint64_t seed_ = seed, t_ = t
    cdef const double[:, ::1] A = A_, noise = noise_
    cdef const uint64_t[::1] key = key_
    cdef const Py_ssize_t[::1] wanted = wanted_
    cdef double[:, ::1] one = np.zeros((S, max(1, n_out))), two = np.zeros((S, max(1, n_out)))
    cdef double[:, ::1] mean = np.zeros((n_rows, max(1, n_out)))
    cdef double[:, ::1] variance = np.zeros((n_rows, max(1, n_out)))
    cdef double[::1] evidence = np.empty(n_rows), n_effective = np.ones(n_rows)
    cdef double[::1] score = np.empty(S)
    cdef Modes modes = Modes(particles)
    cdef Feedforward net = particles.above
    cdef double[::1] e = np.empty(modes.n_noises)
    cdef double shift
    cdef RowStream stream
    with nogil:
        for i in range(n_rows):
            random.start_row_stream(&stream, seed_, t_, key[i])
            for s in range(BLOCK):
                particles.rng[s] = &stream.rng
            n = min(<Py_ssize_t> BLOCK, noise.shape[1])
            particles.know_all(&A[i, 0], n)
            modes.load()
            modes.n_modes = 0
            for j in range(modes.n_noises):
                e[j] = 0.0
            modes.find(&e[0])
            particles.follow(noise, 0)
            particles.measure()
            for _ in range(MOST_STARTS - 1):
                best = 0
                for s in range(n):
                    if particles.log_likelihood[s] > particles.log_likelihood[best]:
                        best = s
                particles.log_likelihood[best] = -INFINITY
                for p in range(net.n_nodes):
                    if net.kind[p] == HIDDEN:
                        e[modes.index[p]] = noise[particles.above_nodes[p], best]
                modes.find(&e[0])
            modes.share()

            shift, first = random.uniform(&stream.rng), 0
            while first < S:
                n = min(<Py_ssize_t> BLOCK, S - first)
                particles.know_all(&A[i, 0], n)
                for s in range(n):
                    modes.draw(&stream.rng, (first + s + shift) / S, &e[0])
                    score[first + s] = modes.log_ratio(&e[0])
                    for p in range(net.n_nodes):
                        if net.kind[p] == HIDDEN:
                            particles.above_a[p][s] = e[modes.index[p]]
                net.forward(n, particles.above_a, particles.above_u)
                particles.measure()
                for s in range(n):
                    score[first + s] += particles.log_likelihood[s]
                if wanted.shape[0] > 0:
                    particles.finish()
                    particles.moments(wanted, mode, &one[first, 0], &two[first, 0])
                first += n
            evidence[i] = weigh(&score[0], S, &n_effective[i])
            mix_row(&score[0], S, &one[0, 0], &two[0, 0], n_out, &mean[i, 0], &variance[i, 0])
    return (
        np.asarray(evidence), np.asarray(n_effective), np.asarray(mean)[:, :n_out],
        np.asarray(variance)[:, :n_out],
    )
