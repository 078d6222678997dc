"""One hidden layer expanded around the modes of each row: Laplace and importance sampling.

doc/mathematics/cibp_belief_net, section 7.
"""

from libc.math cimport INFINITY, exp, fabs, log, log1p, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

from skbnp.cibp_belief_net._draw_network cimport DrawNetwork, Moments
from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.numerics cimport linalg, rng as random, special
from skbnp.numerics.rng cimport RowStream

import numpy as np

from skbnp.numerics.rows import patterns, row_keys

cdef enum:
    BLOCK = 128             # draws of the prior among which modes are sought
    MOST_COMPONENTS = 15    # that a row is expanded around
    MOST_STARTS = 3         # of the search for modes beside them
    MOST_MODES = MOST_COMPONENTS + MOST_STARTS
    FEW_COMPONENTS = 3      # of a quick look
    N_NEWTON = 12

cdef double NEGLIGIBLE = 1e-6       # share of a row below which a component is left out
# Nats behind the best, at their means, beyond which components are not expanded, and the tolerance
# of their modes. Both together move filled pixels by a third of their Monte Carlo error, which is
# .03 of their standard deviations; of densities they change what is proposed, no expectation.
cdef double FAR_BEHIND = 15.0, NEAR_A_MODE = 1e-2

# Of importance sampling: points of a row; width of the proposals around modes in that of a normal
# law there, share of a mode's that are as wide as its prior, share of the prior among all. Beside
# other choices in benchmarks/_cibp_belief_net_importance.py, on tables that no other benchmark
# reports.
N_IMPORTANCE = 150
PROPOSALS = (1.15, 0.25, 0.2)


cdef class Expansion:
    """Laplace's approximation of one hidden layer under each component of its law.

    f_c(a) = -1/2 sum_k nu_ck (a_k - m_ck)^2 + T'u - 1/2 u'S u, with the Gauss-Newton
    H = diag(nu_c) + J S J, J = diag((1 - u^2) / 2).
    """

    cdef:
        DrawNetwork net
        Py_ssize_t width
        double[::1] u, slope, field, step, factor       # (width,) and (width^2,)
        double[:, ::1] mode                             # (MOST_MODES, width)
        double[:, ::1] mode_factor                      # (MOST_MODES, width^2)
        Py_ssize_t[::1] kept                            # (MOST_MODES,) component of each mode
        double[::1] log_evidence, log_share             # (MOST_MODES,) and one more of the prior
        double[::1] mode_log_det, term                  # the same
        double[:, ::1] from_prior                          # (BLOCK, width)
        Py_ssize_t[::1] prior_component                      # (BLOCK,) its component
        double[::1] score, passed                       # (BLOCK,), (n_components,)
        Py_ssize_t n_modes
        double log_det
        double widened, loose, defensive
        Py_ssize_t most_components                      # that are kept
        double tolerance                                # of a mode
        double far_behind                               # nats, of components that are not kept
        double log_left_out         # log of (evidence of all components / of those that are kept)

    def __init__(self, DrawNetwork net, proposals=PROPOSALS, bint quick=False,
                 double tolerance=1e-7, double far_behind=INFINITY):
        K = net.width[0]
        self.most_components = FEW_COMPONENTS if quick else MOST_COMPONENTS
        self.tolerance = 1e-3 if quick else tolerance
        self.far_behind = far_behind
        self.widened, self.loose, self.defensive = proposals
        self.net, self.width = net, K
        self.u, self.slope, self.field, self.step = (np.empty(K) for _ in range(4))
        self.factor = np.empty(K * K)
        self.mode, self.mode_factor = np.empty((MOST_MODES, K)), np.empty((MOST_MODES, K * K))
        self.kept = np.empty(MOST_MODES, dtype=np.intp)
        self.log_evidence, self.mode_log_det, self.log_share, self.term = (
            np.empty(MOST_MODES + 1) for _ in range(4)
        )
        self.from_prior, self.prior_component = np.empty((BLOCK, K)), np.empty(BLOCK, dtype=np.intp)
        self.score = np.empty(BLOCK)
        weight = np.exp(np.asarray(net.log_weight) - np.max(net.log_weight))
        self.passed = np.cumsum(weight) / weight.sum()

    cdef double _value(
        self, Py_ssize_t c, const double* a, const double* T, const double* S
    ) noexcept nogil:
        """f_c(a); sets u, slope = J and field = T - S u."""
        cdef Py_ssize_t k, h, K = self.width
        cdef double total = 0.0, off
        squash_all(K, a, &self.u[0])
        for k in range(K):
            self.field[k] = T[k]
        for h in range(K):
            for k in range(K):
                self.field[k] -= self.u[h] * S[h * K + k]
        for k in range(K):
            off = a[k] - self.net.mean[c, k]
            total += self.u[k] * (T[k] + self.field[k])
            total -= self.net.top_precision[c, k] * off * off
            self.slope[k] = 0.5 * (1.0 - self.u[k] * self.u[k])
        return 0.5 * total

    cdef int _factor(self, Py_ssize_t c, const double* S) noexcept nogil:
        """Factor H at the slopes of the last _value; non-zero if that fails."""
        cdef Py_ssize_t k, h, K = self.width
        cdef double* row = &self.factor[0]
        for h in range(K):
            for k in range(h, K):
                row[k] = self.slope[h] * self.slope[k] * S[h * K + k]
            row[h] += self.net.top_precision[c, h]
            row += K
        if linalg.cholesky(&self.factor[0], K) != 0:
            return 1
        self.log_det = linalg.log_det(&self.factor[0], K)
        return 0

    cdef int _screen(
        self, const double* T, const double* S, double* score
    ) noexcept nogil:
        """Keep the components of the highest evidence to second order at their means."""
        cdef Py_ssize_t c, k, i, C = self.net.n_components, K = self.width
        cdef double value, total = -INFINITY
        self.log_left_out = 0.0
        self.n_modes = min(C, self.most_components)
        if C <= self.most_components:
            for c in range(C):
                self.kept[c] = c
            return 0
        self.n_modes = 0
        for c in range(C):
            value = self._value(c, &self.net.mean[c, 0], T, S)
            for k in range(K):
                self.step[k] = self.slope[k] * self.field[k]
            if self._factor(c, S) != 0:
                return 1
            value += 0.5 * linalg.solve_transposed(&self.factor[0], K, &self.step[0])
            value += self.net.log_weight[c] + self.net.half_log_det[c] - 0.5 * self.log_det
            total = max(total, value) + log1p(exp(-fabs(total - value)))
            # Into the sorted list of those kept so far.
            if self.n_modes < self.most_components:
                i = self.n_modes
                self.n_modes += 1
            elif value > score[self.most_components - 1]:
                i = self.most_components - 1
            else:
                continue
            while i > 0 and score[i - 1] < value:
                score[i] = score[i - 1]
                self.kept[i] = self.kept[i - 1]
                i -= 1
            score[i] = value
            self.kept[i] = c
        while score[self.n_modes - 1] < score[0] - self.far_behind:
            self.n_modes -= 1
        self.log_left_out = total - special.log_sum_exp(score, self.n_modes)
        return 0

    cdef int _find_mode(self, Py_ssize_t i, const double* T, const double* S) noexcept nogil:
        """Newton's steps of mode i from where it stands; sets its factor and log evidence."""
        cdef Py_ssize_t c = self.kept[i], k, r, K = self.width
        cdef double change, largest
        cdef double* a = &self.mode[i, 0]
        for r in range(N_NEWTON):
            self._value(c, a, T, S)
            if self._factor(c, S) != 0:
                return 1
            for k in range(K):
                self.step[k] = self.slope[k] * self.field[k] - (
                    self.net.top_precision[c, k] * (a[k] - self.net.mean[c, k])
                )
            linalg.solve_transposed(&self.factor[0], K, &self.step[0])
            linalg.solve(&self.factor[0], K, &self.step[0])
            largest = 0.0
            for k in range(K):
                change = min(max(self.step[k], -1.5), 1.5)
                largest = max(largest, fabs(change))
                a[k] += change if r < N_NEWTON // 2 else 0.7 * change
            if largest < self.tolerance:
                break
        self.log_evidence[i] = self.net.log_weight[c] + self.net.half_log_det[c]
        self.log_evidence[i] += self._value(c, a, T, S)
        if self._factor(c, S) != 0:
            return 1
        self.log_evidence[i] -= 0.5 * self.log_det
        self.mode_log_det[i] = self.log_det
        memcpy(&self.mode_factor[i, 0], &self.factor[0], K * K * sizeof(double))
        return 0

    cdef int expand(self, const double* T, const double* S) noexcept nogil:
        """Modes and log evidences of the kept components of a row; non-zero on failure."""
        cdef double[MOST_COMPONENTS] score
        cdef Py_ssize_t i
        if self._screen(T, S, score) != 0:
            return 1
        for i in range(self.n_modes):
            memcpy(&self.mode[i, 0], &self.net.mean[self.kept[i], 0], self.width * sizeof(double))
            if self._find_mode(i, T, S) != 0:
                return 1
        return 0

    cdef void draw(self, bitgen_t* rng, Py_ssize_t i, double widened, double* a) noexcept nogil:
        """a ~ N(mode_i, widened^2 H^-1)"""
        cdef Py_ssize_t k, K = self.width
        for k in range(K):
            a[k] = random.normal(rng)
        linalg.solve(&self.mode_factor[i, 0], K, a)
        for k in range(K):
            a[k] = self.mode[i, k] + widened * a[k]

    # -- importance sampling

    cdef Py_ssize_t _draw_prior(self, bitgen_t* rng, double place, double* a) noexcept nogil:
        """a from the prior of the component, returned, at which so much of the weight is passed."""
        cdef Py_ssize_t c = 0, k
        while c < self.net.n_components - 1 and place >= self.passed[c]:
            c += 1
        for k in range(self.width):
            a[k] = self.net.mean[c, k] + random.normal(rng) / sqrt(self.net.top_precision[c, k])
        return c

    cdef int search(self, bitgen_t* rng, const double* T, const double* S) noexcept nogil:
        """Further modes, from the best of BLOCK draws of the prior: units saturate either way."""
        cdef Py_ssize_t s, i, k, best, K = self.width, _
        cdef double apart, nearest
        for s in range(BLOCK):
            self.prior_component[s] = self._draw_prior(
                rng, (s + 0.5) / BLOCK, &self.from_prior[s, 0]
            )
            self._value(self.prior_component[s], &self.from_prior[s, 0], T, S)
            self.score[s] = 0.0
            for k in range(K):
                self.score[s] += 0.5 * self.u[k] * (T[k] + self.field[k])
        for _ in range(MOST_STARTS):
            best = 0
            for s in range(1, BLOCK):
                if self.score[s] > self.score[best]:
                    best = s
            self.score[best] = -INFINITY
            self.kept[self.n_modes] = self.prior_component[best]
            memcpy(&self.mode[self.n_modes, 0], &self.from_prior[best, 0], K * sizeof(double))
            if self._find_mode(self.n_modes, T, S) != 0:
                return 1
            nearest = INFINITY
            for i in range(self.n_modes):
                if self.kept[i] != self.kept[self.n_modes]:
                    continue
                apart = 0.0
                for k in range(K):
                    apart = max(apart, fabs(self.mode[i, k] - self.mode[self.n_modes, k]))
                nearest = min(nearest, apart)
            self.n_modes += nearest > 0.05
        return 0

    cdef double _log_weight(
        self, Py_ssize_t c, const double* a, const double* T, const double* S
    ) noexcept nogil:
        """log of the joint density of (c, a) and the row over that of the proposals."""
        cdef Py_ssize_t i, h, k, K = self.width
        cdef double joint, prior = 0.0, squares, loose, x
        cdef const double* row
        joint = self._value(c, a, T, S) + self.net.log_weight[c] + self.net.half_log_det[c]
        for k in range(K):
            x = a[k] - self.net.mean[c, k]
            prior -= 0.5 * self.net.top_precision[c, k] * x * x
        for i in range(self.n_modes):
            self.term[i] = -INFINITY
            if self.kept[i] != c:
                continue
            squares, loose, row = 0.0, 0.0, &self.mode_factor[i, 0]
            for h in range(K):
                x = a[h] - self.mode[i, h]
                loose += self.net.top_precision[c, h] * x * x
                x = 0.0
                for k in range(h, K):
                    x += row[k] * (a[k] - self.mode[i, k])
                squares += x * x
                row += K
            squares = (
                0.5 * self.mode_log_det[i] - K * log(self.widened) - 0.5 * squares / self.widened**2
            )
            loose = self.net.half_log_det[c] - 0.5 * loose
            x = max(squares, loose)
            self.term[i] = self.log_share[i] + x + log(
                (1.0 - self.loose) * exp(squares - x) + self.loose * exp(loose - x)
            )
        self.term[self.n_modes] = (
            log(self.defensive) + self.net.log_weight[c] + self.net.half_log_det[c] + prior
        )
        return joint - special.log_sum_exp(&self.term[0], self.n_modes + 1)

    cdef double estimate(
        self, bitgen_t* rng, const double* T, const double* S, Py_ssize_t n, double* n_effective
    ) noexcept nogil:
        """log of an unbiased estimate of the row's evidence, from n points, and how many count.

        A mixture proposes them: Gaussians around the modes by their evidences, some as wide as
        the prior, since the density of a unit that saturates falls no faster on that side; and,
        so that no weight is large where all these are too narrow, the prior with its components.
        """
        cdef Py_ssize_t j, i, c, k
        cdef double total, place, shift, value, highest = -INFINITY, sum_ = 0.0, squares = 0.0
        total = special.log_sum_exp(&self.log_evidence[0], self.n_modes)
        for i in range(self.n_modes):
            self.log_share[i] = log(1.0 - self.defensive) + self.log_evidence[i] - total
        shift = random.uniform(rng)
        for j in range(n):
            place, i = (j + shift) / n, 0
            while i < self.n_modes and place >= exp(self.log_share[i]):
                place -= exp(self.log_share[i])
                i += 1
            if i < self.n_modes:
                c = self.kept[i]
                if place < (1.0 - self.loose) * exp(self.log_share[i]):
                    self.draw(rng, i, self.widened, &self.step[0])
                else:
                    for k in range(self.width):
                        self.step[k] = self.mode[i, k]
                        self.step[k] += random.normal(rng) / sqrt(self.net.top_precision[c, k])
            else:
                c = self._draw_prior(rng, place / self.defensive, &self.step[0])
            value = self._log_weight(c, &self.step[0], T, S)
            if value > highest:
                sum_ = sum_ * exp(highest - value) + 1.0
                squares = squares * exp(2.0 * (highest - value)) + 1.0
                highest = value
            else:
                sum_ += exp(value - highest)
                squares += exp(2.0 * (value - highest))
        n_effective[0] = sum_ * sum_ / squares if squares > 0.0 else 0.0
        return highest + log(sum_ / n)


def _not_definite(row):
    return ArithmeticError(f"the expansion around a mode of row {row} is not definite")


def expanded_moments(DrawNetwork net, A, Moments moments, seed, t, n_samples):
    """Over draws around the modes mean and variance of the missing entries or, without
    ``moments``, the mean of u.

    O(C K^3) per row to screen C > 15 components, and O(15 K^3) per Newton step.
    """
    cdef Expansion expansion = Expansion(
        net, tolerance=NEAR_A_MODE, far_behind=FAR_BEHIND
    )
    cdef Py_ssize_t n = n_samples, i, g, k, at, _
    cdef bint entries = moments is not None
    cdef uint64_t seed_ = seed, t_ = t
    cdef const uint64_t[::1] key = row_keys(A)
    cdef double[::1] total = np.zeros(len(A))
    cdef double[:, ::1] one = np.zeros(A.shape if entries else (len(A), net.n_hidden))
    cdef double[:, ::1] two = np.zeros(A.shape if entries else (0, 0))
    cdef const double[:, ::1] T, S
    cdef const Py_ssize_t[::1] rows, missing
    cdef RowStream stream
    cdef double share, evidence
    cdef int failed = 0
    for group in patterns(A):
        rows, missing = group, np.flatnonzero(np.isnan(A[group[0]]))
        if entries and len(missing) == 0:
            continue
        T, S = net.likelihood(A[group])
        with nogil:
            for g in range(rows.shape[0]):
                at = rows[g]
                random.start_row_stream(&stream, seed_, t_, key[at])
                failed = expansion.expand(&T[g, 0], &S[0, 0])
                if failed != 0:
                    break
                evidence = special.log_sum_exp(&expansion.log_evidence[0], expansion.n_modes)
                for i in range(expansion.n_modes):
                    share = exp(expansion.log_evidence[i] - evidence)
                    if share < NEGLIGIBLE:
                        continue
                    for _ in range(n):
                        expansion.draw(&stream.rng, i, 1.0, &expansion.step[0])
                        squash_all(net.n_hidden, &expansion.step[0], &expansion.u[0])
                        if entries:
                            moments.add(total[at], share / n, &expansion.u[0], missing,
                                        &one[at, 0], &two[at, 0])
                            total[at] += share / n
                        else:
                            for k in range(net.n_hidden):
                                one[at, k] += share / n * expansion.u[k]
        if failed != 0:
            raise _not_definite(at)
    if entries:
        # Components of a negligible share were left out.
        norm = np.where(np.asarray(total) > 0.0, total, 1.0)
        two = np.asarray(two) / norm[:, np.newaxis]
    return np.asarray(one), np.asarray(two)


def importance(DrawNetwork net, A, seed, t, n_importance, proposals):
    """Relative to u = 0, log of unbiased estimates of each row's density; one hidden layer.

    From two halves of the points, (n_rows, 2), and how many points count in each.
    """
    # Whatever is proposed, the estimate is unbiased: modes need not be exact.
    cdef Expansion expansion = Expansion(
        net, proposals, tolerance=NEAR_A_MODE, far_behind=FAR_BEHIND
    )
    cdef Py_ssize_t n = max(1, n_importance // 2), g, half
    cdef uint64_t seed_ = seed, t_ = t
    cdef const uint64_t[::1] key = row_keys(A)
    # Without entries there is nothing to estimate, and every point counts.
    cdef double[:, ::1] evidence = np.zeros((len(A), 2))
    cdef double[:, ::1] n_effective = np.full((len(A), 2), float(n))
    cdef const double[:, ::1] T, S
    cdef const Py_ssize_t[::1] rows
    cdef RowStream stream
    cdef int failed = 0
    for group in patterns(A):
        if np.isnan(A[group[0]]).all():
            continue
        rows = group
        T, S = net.likelihood(A[group])
        with nogil:
            for g in range(rows.shape[0]):
                random.start_row_stream(&stream, seed_, t_, key[rows[g]])
                failed = expansion.expand(&T[g, 0], &S[0, 0])
                if failed == 0:
                    failed = expansion.search(&stream.rng, &T[g, 0], &S[0, 0])
                if failed != 0:
                    break
                for half in range(2):
                    evidence[rows[g], half] = expansion.estimate(
                        &stream.rng, &T[g, 0], &S[0, 0], n, &n_effective[rows[g], half]
                    )
        if failed != 0:
            raise _not_definite(rows[g])
    return np.asarray(evidence), np.asarray(n_effective)


def laplace(DrawNetwork net, A):
    """Laplace's approximation of each row's log density relative to u = 0; one hidden layer.

    Around one mode of each of the three components that explain the row best; what others add is
    taken to second order at their means.
    """
    cdef Expansion expansion = Expansion(net, PROPOSALS, True)
    cdef double[::1] evidence = np.zeros(len(A))
    cdef const double[:, ::1] T, S
    cdef const Py_ssize_t[::1] rows
    cdef Py_ssize_t g
    cdef int failed = 0
    for group in patterns(A):
        if np.isnan(A[group[0]]).all():
            continue
        rows = group
        T, S = net.likelihood(A[group])
        with nogil:
            for g in range(rows.shape[0]):
                failed = expansion.expand(&T[g, 0], &S[0, 0])
                if failed != 0:
                    break
                evidence[rows[g]] = expansion.log_left_out + special.log_sum_exp(
                    &expansion.log_evidence[0], expansion.n_modes
                )
        if failed != 0:
            raise _not_definite(rows[g])
    return np.asarray(evidence)


def component_shares(DrawNetwork flat, A):
    """log q(c | row) from Laplace's evidences, mixed with a tenth of the components' weights."""
    cdef Expansion expansion = Expansion(flat)
    cdef double[:, ::1] out = np.full((len(A), flat.n_components), -np.inf)
    cdef const double[:, ::1] T, S
    cdef const Py_ssize_t[::1] rows
    cdef Py_ssize_t g, i
    cdef int failed = 0
    for group in patterns(A):
        rows = group
        T, S = flat.likelihood(A[group])
        with nogil:
            for g in range(rows.shape[0]):
                failed = expansion.expand(&T[g, 0], &S[0, 0])
                if failed != 0:
                    break
                for i in range(expansion.n_modes):
                    out[rows[g], expansion.kept[i]] = expansion.log_evidence[i]
        if failed != 0:
            raise _not_definite(rows[g])
    evidence = np.asarray(out)
    evidence = evidence - np.logaddexp.reduce(evidence, axis=1, keepdims=True)
    return np.logaddexp(np.log(0.9) + evidence, np.log(0.1) + np.asarray(flat.log_weight))
