"""Importance sampling of a row's hidden noises from Gaussians around the modes of their law."""

from libc.math cimport INFINITY, exp, fabs, log
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset
from numpy.random cimport bitgen_t

from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.likelihoods.nonlinear_gaussian._feedforward cimport (
    BLOCK, HIDDEN, INPUT, OBSERVED, Feedforward,
)
from skbnp.likelihoods.nonlinear_gaussian._mixing cimport mix_row, weigh
from skbnp.likelihoods.nonlinear_gaussian._particles cimport Particles
from skbnp.likelihoods.nonlinear_gaussian._proposals cimport (
    DEFENSIVE, ENOUGH, LOOSE, NEXT_TO, NOISIER,
)
from skbnp.numerics cimport linalg, rng as random, special
from skbnp.numerics.rng cimport RowStream

import numpy as np

# Fantasies that the search begins from, at most.
N_STARTING = BLOCK

cdef enum:
    MOST_STARTS = 4     # of the search for modes
    WIDTHS = 2          # of the proposals around each
    N_STEPS = 40        # of each, at most


cdef class Modes:
    """Modes of a row's law of the noises e of its sampled nodes, and Gaussians around them.

    -log p(e | row) = |e|^2 / 2 + |r(e)|^2 / 2 up to a constant, r the standardised residuals of
    the known entries that have sampled parents; Gauss-Newton's Hessian is I + J'J, J = dr/de.
    """

    cdef:
        Particles particles
        Feedforward net
        Py_ssize_t n_noises, n_residuals, n_modes, n_proposals
        const double* row               # (D,) whose modes they are
        Py_ssize_t[::1] index           # (n_nodes,) of a sampled node's noise, or a residual; -1
        Py_ssize_t[::1] node            # (n_noises,) of the draw, whose noises they are
        double[::1] given, u, slope     # (n_nodes,)
        double[:, ::1] down             # (n_noises, n_noises) da/de of sampled nodes
        double[:, ::1] jacobian         # (n_residuals, n_noises)
        double[::1] residual, gradient, step, trial
        double[:, ::1] hessian          # (n_noises, n_noises)
        double[:, ::1] mode             # (MOST_STARTS, n_noises)
        double[:, :, ::1] factor        # (WIDTHS MOST_STARTS, n_noises, n_noises)
        double[::1] log_det, log_share  # of proposals
        double[::1] evidence            # (MOST_STARTS,)
        double[:, ::1] point, apart, scaled     # (BLOCK, n_noises)
        double[:, ::1] log_density      # (BLOCK, n_proposals) of points, by proposal

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
        self.node = np.asarray(particles.above_nodes)[kind == HIDDEN]
        self.given, self.u, self.slope = np.zeros((3, max(1, net.n_nodes)))
        self.down, self.hessian = np.zeros((2, H, H))
        self.jacobian, self.residual = np.zeros((R, H)), np.zeros(R)
        self.gradient, self.step, self.trial = np.zeros((3, H))
        self.mode, self.factor = np.zeros((MOST_STARTS, H)), np.zeros((WIDTHS * MOST_STARTS, H, H))
        self.log_det, self.evidence = np.zeros(WIDTHS * MOST_STARTS), np.zeros(MOST_STARTS)
        self.log_share = np.zeros(WIDTHS * MOST_STARTS + 1)
        self.point, self.apart, self.scaled = np.zeros((3, BLOCK, H))
        self.log_density = np.zeros((BLOCK, WIDTHS * MOST_STARTS + 1))

    cdef void load(self, const double* row) noexcept nogil:
        """The modes to come are those of this row (D,)."""
        cdef Py_ssize_t p, e, k
        cdef double total
        self.row, self.n_modes = row, 0
        self.particles.know_all(row, 1)
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
                    linalg.axpy(H, weight * self.slope[k], &self.down[self.index[k], 0], row)
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

    cdef int _factor(self, double damping, double noisier, double* out) noexcept nogil:
        """The factor of (1 + damping) I + J'J / noisier^2; non-zero if that fails."""
        cdef Py_ssize_t i, H = self.n_noises
        for i in range(H * H):
            out[i] = (&self.hessian[0, 0])[i] / (noisier * noisier)
        for i in range(H):
            out[i * H + i] += 1.0 + damping
        return linalg.cholesky(out, H)

    cdef bint find(self, const double* start) noexcept nogil:
        """Descend from a start by damped steps of Gauss and Newton; whether a mode is added."""
        cdef Py_ssize_t i, k, m = self.n_modes, H = self.n_noises, _
        cdef double* e = &self.mode[m, 0]
        cdef double* factor = &self.factor[WIDTHS * m, 0, 0]
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
                if self._factor(damping, 1.0, factor) != 0:
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
        if not value < INFINITY or self._is_known(e):
            return False
        for k in range(WIDTHS):
            factor = &self.factor[WIDTHS * m + k, 0, 0]
            if self._factor(0.0, NOISIER[k], factor) != 0:
                return False
            for i in range(1, H):
                memset(factor + i * H, 0, i * sizeof(double))
            self.log_det[WIDTHS * m + k] = linalg.log_det(factor, H)
        self.evidence[m] = -value - 0.5 * self.log_det[WIDTHS * m]
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
        """Shares of the proposals by Laplace's evidences of their modes; the prior's comes last."""
        cdef Py_ssize_t m, k
        cdef double total, share
        self.n_proposals = WIDTHS * self.n_modes + 1
        self.log_share[self.n_proposals - 1] = 0.0
        if self.n_modes > 0:
            total = special.log_sum_exp(&self.evidence[0], self.n_modes)
            for m in range(self.n_modes):
                for k in range(WIDTHS):
                    share = (1.0 - DEFENSIVE) * (LOOSE if k else 1.0 - LOOSE)
                    self.log_share[WIDTHS * m + k] = log(share) + self.evidence[m] - total
            self.log_share[self.n_proposals - 1] = log(DEFENSIVE)

    cdef void draw(self, bitgen_t* rng, Py_ssize_t n, double place, double width) noexcept nogil:
        """``n`` points, from ``place`` in the sum of the shares on, ``width`` apart."""
        cdef Py_ssize_t i, j, first = 0, last, k = 0, H = self.n_noises
        cdef double* point = &self.point[0, 0]
        for i in range(n * H):
            point[i] = random.normal(rng)
        while k < self.n_proposals - 1 and first < n:
            last = first
            while last < n and place + last * width < exp(self.log_share[k]):
                last += 1
            linalg.solve_rows_back(&self.factor[k, 0, 0], H, point + first * H, last - first)
            for i in range(first, last):
                for j in range(H):
                    point[i * H + j] += self.mode[k // WIDTHS, j]
            place -= exp(self.log_share[k])
            first, k = last, k + 1

    cdef void judge(self, Py_ssize_t n, double* out) noexcept nogil:
        """log of the joint density of a point and the row, over that which the point is drawn from.

        Of the first ``n`` points, which the particles become.
        """
        cdef Py_ssize_t i, j
        self.particles.know_all(self.row, n)
        for j in range(self.n_noises):
            for i in range(n):
                self.particles.a[self.node[j], i] = self.point[i, j]
        self.net.forward(n, self.particles.above_a, self.particles.above_u)
        self.particles.measure()
        self._take_proposals(n, out)
        for i in range(n):
            out[i] += self.particles.log_likelihood[i]

    cdef void _take_proposals(self, Py_ssize_t n, double* out) noexcept nogil:
        """log of the prior of the points over the density that they are drawn from."""
        cdef Py_ssize_t i, j, k, H = self.n_noises, last = self.n_proposals - 1
        cdef double prior
        for k in range(last):
            for i in range(n):
                for j in range(H):
                    self.apart[i, j] = self.point[i, j] - self.mode[k // WIDTHS, j]
            # In the units of the proposal's spread: rows x to U x.
            linalg.gemm(False, True, n, H, H, 1.0, &self.apart[0, 0], &self.factor[k, 0, 0], 0.0,
                        &self.scaled[0, 0])
            for i in range(n):
                self.log_density[i, k] = self.log_share[k] + 0.5 * (
                    self.log_det[k] - linalg.dot(H, &self.scaled[i, 0], &self.scaled[i, 0])
                )
        for i in range(n):
            prior = -0.5 * linalg.dot(H, &self.point[i, 0], &self.point[i, 0])
            self.log_density[i, last] = self.log_share[last] + prior
            out[i] = prior - special.log_sum_exp(&self.log_density[i, 0], last + 1)

    cdef void look_around(self, const double[:, ::1] noise, double[::1] start) noexcept nogil:
        """Modes from 0 and from the best of BLOCK fantasies of ``noise`` (K, n_fantasies)."""
        cdef Py_ssize_t i, s, best, n = min(<Py_ssize_t> BLOCK, noise.shape[1]), _
        for i in range(self.n_noises):
            start[i] = 0.0
        self.find(&start[0])
        self.particles.know_all(self.row, n)
        self.particles.follow(noise, 0)
        self.particles.measure()
        for _ in range(MOST_STARTS - 1):
            best = 0
            for s in range(n):
                if self.particles.log_likelihood[s] > self.particles.log_likelihood[best]:
                    best = s
            self.particles.log_likelihood[best] = -INFINITY
            for i in range(self.n_noises):
                start[i] = noise[self.node[i], best]
            self.find(&start[0])

    cdef void look_from(self, const double* a, double[::1] start) noexcept nogil:
        """The mode from where the nodes have pre-activations ``a`` (K,)."""
        cdef Py_ssize_t p, e, i = 0
        cdef double mean
        for p in range(self.net.n_nodes):
            if self.net.kind[p] != HIDDEN:
                continue
            mean = self.given[p]
            for e in range(self.net.parent_start[p], self.net.parent_start[p + 1]):
                if self.net.kind[self.net.parent[e]] == HIDDEN:
                    mean += self.net.weight[e] * self.u[self.net.parent[e]]
            start[i] = (a[self.node[i]] - mean) / self.net.spread[p]
            squash_all(1, &a[self.node[i]], &self.u[p])
            i += 1
        self.find(&start[0])


def around_modes(Particles particles, A_, key_, noise_, seed, t, n_importance, wanted_, int mode,
                 near=None):
    """log of an unbiased estimate of each row's density, mean and variance, by importance sampling.

    Points come from Gaussians around the modes that are found from 0 and from the best of the
    first BLOCK fantasies, whose noises are ``noise_`` (K, n_fantasies), or next to ``near``
    (n_rows, K), pre-activations of all nodes; and from the prior, in shares. O(H^3) per step of the
    search, O(H^2) per point.
    """
    cdef Py_ssize_t S = n_importance, n_rows = len(A_), n_out = len(wanted_)
    cdef Py_ssize_t i, s, n, first
    cdef uint64_t seed_ = seed, t_ = t
    cdef const double[:, ::1] A = A_, noise = (
        noise_ if near is None else np.ascontiguousarray(near)
    )
    cdef const uint64_t[::1] key = key_
    cdef const Py_ssize_t[::1] wanted = wanted_
    cdef double[:, ::1] one = np.zeros((S, max(1, n_out))), two = np.zeros((S, max(1, n_out)))
    cdef double[:, ::1] mean = np.zeros((n_rows, max(1, n_out)))
    cdef double[:, ::1] variance = np.zeros((n_rows, max(1, n_out)))
    cdef double[::1] evidence = np.empty(n_rows), n_effective = np.ones(n_rows)
    cdef double[::1] score = np.empty(S)
    cdef Modes modes = Modes(particles)
    cdef bint around = near is None
    cdef double[::1] start = np.empty(modes.n_noises)
    cdef double shift
    cdef RowStream stream
    with nogil:
        for i in range(n_rows):
            random.start_row_stream(&stream, seed_, t_, key[i])
            for s in range(BLOCK):
                particles.rng[s] = &stream.rng
            modes.load(&A[i, 0])
            if around:
                modes.look_around(noise, start)
            else:
                modes.look_from(&noise[i, 0], start)
            modes.share()

            shift, first = random.uniform(&stream.rng), 0
            while first < S:
                n = min(<Py_ssize_t> BLOCK, S - first)
                modes.draw(&stream.rng, n, (first + shift) / S, 1.0 / S)
                modes.judge(n, &score[first])
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
