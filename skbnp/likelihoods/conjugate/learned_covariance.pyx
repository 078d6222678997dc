"""Covariances of Gaussian blocks around a common one that is learned.

    Lam ~ Wishart(a, R / a),  delta and kappa0 uniform on grids
    Sigma_c | Lam, delta ~ IW(delta + d + 1, delta Lam),  so that E[Sigma_c] = Lam
    mu_c | Sigma_c ~ N(m0, Sigma_c / kappa0)

a = d + 2 and R a guess at Lam, which is kept above 2^-24 R (an event that the Wishart law misses
with a probability of about 1e-10: its density is not divided by it). delta large: all blocks have
about the same covariance; delta = 1: each has its own. In diagonal blocks every variance is such a
matrix of one row, with its own Lam, in spherical blocks the one variance is. A conjugate form of
the infinite Gaussian mixture of Rasmussen (2000), whose base measure is sampled too.

Lam is ``base``, delta ``scale`` of the family of blocks, which holds them and their counts, means
and scatters; what is here are the updates. Each leaves p(Lam, delta, kappa0 | partition, X) as it
is. They look at numbers, means and scatters of rows alone, and at factors that they have worked out
for one another; all other statistics of the slots are brought up to date once, by ``settle``.
"""

from libc.math cimport exp, log
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

import numpy as np
from scipy.special import multigammaln

from skbnp.likelihoods.conjugate.normal_inverse_gamma cimport NormalInverseGamma
from skbnp.likelihoods.conjugate.normal_inverse_wishart cimport NormalInverseWishart
from skbnp.numerics cimport linalg, rng as draws
from skbnp.numerics.special cimport log_multigamma


cdef enum:
    STEPS = 3           # Metropolis steps of delta in a round
    FARTHEST = 4        # places on its grid that a step goes at most
    STACK = 256         # rows of factors whose products are summed at once

# Lam - FLOOR R is positive definite: columns that repeat one another, or of few values, would draw
# Lam to a singular matrix, at which the posterior has no bound. 2.4e-4 standard deviations.
cdef double FLOOR = 2.0 ** -24
cdef double SIZE_STEP = 0.1     # standard deviation of the change of log |Lam| / d


def rounds_in_a_sweep(n_samples, n_features, width):
    """How many times the five updates are made, for matrices of ``width`` rows.

    Few where those are wide: a round must cost less than a pass over the labels, which are slower
    to mix there. By the table alone: a number that looked at the state would bias the chain.
    """
    return max(1, min(4, n_samples // (2 * n_features * (2 * width - 1))))


cdef class LearnedCovariance:
    """Base of the two: what is the same for one matrix a block and for several of one row.

    ``prior`` has ``degrees_grid``, ``mean_precision_grid`` and R, its ``covariance``.
    """

    def __init__(self, family, prior):
        self.n_rounds = rounds_in_a_sweep(family.n_samples, family.n_features, self.width)
        self.n_accepted = 0
        self.prior_degrees = self.width + 2.0
        self.degrees_grid = np.array(prior.degrees_grid, dtype=np.float64)
        self.precision_grid = np.array(prior.mean_precision_grid, dtype=np.float64)
        self.log_weight = np.zeros(self.precision_grid.shape[0])
        self.diagonal = np.zeros((0, self.width))
        self.coupling = np.zeros((0, self.width))
        self.n_cells = np.zeros(0)

    def _count_constants(self, log_det_of_guesses):
        """log p(Lam, delta, kappa0) without what Lam has a part in."""
        a, p = self.prior_degrees, self.width
        self.log_constant = (
            -self.n_units * (a * p / 2 * np.log(2) + multigammaln(a / 2, p) - a * p / 2 * np.log(a))
            - a / 2 * log_det_of_guesses
            - np.log(len(self.degrees_grid)) - np.log(len(self.precision_grid))
        )

    cdef int sweep(self, Py_ssize_t n_blocks, bitgen_t* rng) except -1 nogil:
        """Rounds of the five updates; ``settle`` comes next. 1: a matrix was not definite."""
        cdef Py_ssize_t _
        self.n_accepted = 0
        for _ in range(self.n_rounds):
            if self.draw_covariance(n_blocks, rng) != 0 or self.look(n_blocks) != 0:
                return 1
            self.draw_degrees(n_blocks, rng)
            if self.draw_degrees_and_size(n_blocks, rng) != 0:
                return 1
            if self.draw_size(n_blocks, rng) != 0:
                return 1
            if self.draw_mean_precision(n_blocks, rng) != 0:
                return 1
        return 0

    cdef int draw_covariance(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil:
        """Lam | the precisions of all blocks, drawn from theirs and forgotten: equation (M5.1)."""
        return 0

    cdef int look(self, Py_ssize_t n_blocks) except -1 nogil:
        """Work out what the updates of delta and of the size of Lam read of the blocks.

        Of each matrix its number of cells and Lam^-1/2 T Lam^-1/2 with T = Psi_n - Psi0, in a
        basis where it is tridiagonal: so |s Lam + T| costs O(width) for any s.
        """
        if self.n_cells.shape[0] < n_blocks * self.n_units:
            with gil:
                self.n_cells = np.zeros(2 * n_blocks * self.n_units)
                self.diagonal = np.zeros((2 * n_blocks * self.n_units, self.width))
                self.coupling = np.zeros((2 * n_blocks * self.n_units, self.width))
        return self._look(n_blocks)

    cdef int _look(self, Py_ssize_t n_blocks) noexcept nogil:
        return 0

    cdef void draw_degrees(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil:
        """delta | Lam, kappa0, covariances of blocks integrated out: Metropolis on its grid.

        Equation (M5.2).
        """
        cdef Py_ssize_t here = self._place_of_degrees(), there, _
        cdef double now = self._log_of_degrees(n_blocks, self.degrees()), then
        for _ in range(STEPS):
            there = self._propose_place(here, rng)
            if there < 0:
                continue
            then = self._log_of_degrees(n_blocks, self.degrees_grid[there])
            if log(draws.uniform(rng)) < then - now:
                here = there
                now = then
        self._set_degrees(self.degrees_grid[here])

    cdef Py_ssize_t _place_of_degrees(self) noexcept nogil:
        """The place of delta on its grid."""
        cdef Py_ssize_t here = 0
        # A start gives nu0, from which delta comes back but for rounding.
        while (
            here < self.degrees_grid.shape[0] - 1
            and self.degrees_grid[here] < (1.0 - 1e-9) * self.degrees()
        ):
            here += 1
        return here

    cdef Py_ssize_t _propose_place(self, Py_ssize_t here, bitgen_t* rng) noexcept nogil:
        """A place one to ``FARTHEST`` away, either way alike; -1 is none of the grid."""
        cdef Py_ssize_t there = draws.below(rng, 2 * FARTHEST) - FARTHEST
        there = here + there + (there >= 0)
        return there if there < self.degrees_grid.shape[0] else -1

    cdef double _log_of_degrees(self, Py_ssize_t n_blocks, double degrees) noexcept nogil:
        """log p(X | partition, Lam, delta, kappa0) up to what does not depend on delta."""
        return self._log_of_base(n_blocks, degrees, 0.0)

    cdef double _log_of_base(
        self, Py_ssize_t n_blocks, double degrees, double log_c
    ) noexcept nogil:
        """log p(X | partition, c Lam, delta, kappa0) up to what depends on neither delta nor c."""
        cdef double nu = degrees + self.width + 1.0, shift = exp(log_c) * degrees, total, n
        cdef Py_ssize_t u, n_matrices = n_blocks * self.n_units
        total = n_matrices * (
            0.5 * nu * self.width * (log(degrees) + log_c) - log_multigamma(0.5 * nu, self.width)
        )
        for u in range(n_matrices):
            n = self.n_cells[u]
            total += (log_multigamma(0.5 * (nu + n), self.width)
                      - 0.5 * (nu + n) * self._log_det_shifted(u, shift))
        return total

    cdef double _log_of_size(self, double log_c) noexcept nogil:
        """log p(c Lam) / p(Lam), and the Jacobian of Lam -> c Lam."""
        cdef double width = <double> self.width
        return (
            self.n_units * 0.5 * (self.prior_degrees - width - 1.0) * width * log_c
            - 0.5 * (exp(log_c) - 1.0) * self._trace() + self.log_jacobian(log_c)
        )

    cdef inline double _log_det_shifted(self, Py_ssize_t u, double shift) noexcept nogil:
        """log |shift Lam + T| - log |Lam| of matrix u."""
        return linalg.log_det_shifted(
            self.width, shift, &self.diagonal[u, 0], &self.coupling[u, 0]
        )

    cdef int draw_degrees_and_size(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil:
        """delta -> delta' and Lam -> c Lam at once: Metropolis by equation (M5.4).

        Large blocks hold their precisions, whose mean is nu0 / delta times the inverse of Lam: c
        leaves that as it is. Each of the two alone has little room beside the other.
        """
        cdef Py_ssize_t here = self._place_of_degrees(), there, _
        cdef double width = <double> self.width, degrees, then, log_c, log_ratio
        for _ in range(STEPS):
            there = self._propose_place(here, rng)
            if there < 0:
                continue
            degrees, then = self.degrees(), self.degrees_grid[there]
            log_c = log((then + width + 1.0) / then) - log((degrees + width + 1.0) / degrees)
            log_ratio = (
                self._log_of_size(log_c) + self._log_of_base(n_blocks, then, log_c)
                - self._log_of_base(n_blocks, degrees, 0.0)
            )
            if log(draws.uniform(rng)) < log_ratio and self._is_allowed(exp(log_c)):
                here = there
                self._set_degrees(then)
                if self._stretch(exp(log_c)) != 0:
                    return 1
                self._look_through(n_blocks, exp(log_c))
        return 0

    cdef void _look_through(self, Py_ssize_t n_blocks, double factor) noexcept nogil:
        """What ``look`` has worked out, of that many times Lam."""
        cdef Py_ssize_t u, a
        for u in range(n_blocks * self.n_units):
            for a in range(self.width):
                self.diagonal[u, a] /= factor
                self.coupling[u, a] /= factor * factor

    cdef int draw_size(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil:
        """Lam -> c Lam with log c normal: Metropolis by equation (M5.3)."""
        cdef double log_c = SIZE_STEP * draws.normal(rng), log_ratio
        log_ratio = (
            self._log_of_size(log_c) + self._log_of_base(n_blocks, self.degrees(), log_c)
            - self._log_of_base(n_blocks, self.degrees(), 0.0)
        )
        if log(draws.uniform(rng)) < log_ratio and self._is_allowed(exp(log_c)):
            self.n_accepted += 1
            return self._stretch(exp(log_c))
        return 0

    cdef double log_jacobian(self, double log_c) noexcept nogil:
        """Of Lam -> c Lam on symmetric matrices: c^(p (p + 1) / 2) each."""
        return self.n_units * 0.5 * self.width * (self.width + 1.0) * log_c

    cdef double weight_of_precisions(self) noexcept nogil:
        """delta, by which the blocks' precisions are added up in the conditional of Lam."""
        return self.degrees()

    cdef double power_of_mean(self) noexcept nogil:
        """Power of kappa0 / (kappa0 + n) in the marginal of one matrix: half its width."""
        return 0.5 * self.width

    cdef int draw_mean_precision(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil:
        """kappa0 | Lam, delta, parameters of blocks integrated out: a Gibbs step over its grid.

        Equation (M5.5).
        """
        cdef Py_ssize_t g, n_grid = self.precision_grid.shape[0]
        if n_grid == 1:
            return 0
        for g in range(n_grid):
            self.log_weight[g] = 0.0
        if self._weigh_precisions(n_blocks) != 0:
            return 1
        if draws.categorical_from_logs(rng, &self.log_weight[0], n_grid, &g) != 0:
            return 1
        self._set_mean_precision(n_blocks, self.precision_grid[g])
        return 0

    cdef int _weigh_precisions(self, Py_ssize_t n_blocks) noexcept nogil:
        """Add log p(X | partition, Lam, delta, kappa0) up to a constant to ``log_weight``."""
        return 0

    cdef int settle(self, Py_ssize_t n_blocks) noexcept nogil:
        """Bring the slots of the family up to date; 1: they must be built anew from their rows."""
        return 0

    cdef double log_prior(self) noexcept nogil:
        """log p(Lam, delta, kappa0)"""
        return (self.log_constant - 0.5 * self._trace()
                + 0.5 * (self.prior_degrees - self.width - 1.0) * self.log_det())

    cdef double degrees(self) noexcept nogil:
        """delta"""
        return 0.0

    cdef void _set_degrees(self, double degrees) noexcept nogil:
        """Give the family another delta."""

    cdef void _set_mean_precision(self, Py_ssize_t n_blocks, double mean_precision) noexcept nogil:
        """Give the family another kappa0; ``_weigh_precisions`` was called before."""

    cdef double _mean_precision(self) noexcept nogil:
        """kappa0"""
        return 0.0

    cdef bint _is_allowed(self, double factor) noexcept nogil:
        """Whether that many times Lam is above the floor."""
        return False

    cdef int _stretch(self, double factor) noexcept nogil:
        """Multiply Lam by a factor."""
        return 0

    cdef double _trace(self) noexcept nogil:
        """Sum over the matrices of tr(a R^-1 Lam)."""
        return 0.0

    cdef double log_det(self) noexcept nogil:
        """Sum over the matrices of log |Lam|."""
        return 0.0

    @property
    def mean_precision(self):
        """kappa0"""
        return self._mean_precision()

    @property
    def degrees_of_freedom(self):
        """nu0 = delta + width + 1"""
        return self.degrees() + self.width + 1.0

    def only(self, str move, Py_ssize_t n_blocks, bit_generator):
        """One update alone, for the tests; the caller holds the lock of the generator."""
        cdef bitgen_t* rng = draws.borrow(bit_generator)
        cdef int failed = 0
        if move == "covariance":
            failed = self.draw_covariance(n_blocks, rng)
        elif move == "degrees_of_freedom":
            failed = self.look(n_blocks)
            self.draw_degrees(n_blocks, rng)
        elif move == "degrees_and_size":
            failed = self.look(n_blocks) or self.draw_degrees_and_size(n_blocks, rng)
        elif move == "covariance_size":
            failed = self.look(n_blocks) or self.draw_size(n_blocks, rng)
        else:
            failed = self.draw_mean_precision(n_blocks, rng)
        if failed != 0 or self.settle(n_blocks) != 0:
            raise ArithmeticError(f"{move}: a matrix was not positive definite")


cdef class WishartCovariance(LearnedCovariance):
    """Of blocks with full covariance: one matrix a block."""

    def __init__(self, NormalInverseWishart family, prior):
        self.family = family
        d = family.n_features
        self.n_units, self.width = 1, d
        super().__init__(family, prior)
        guess = np.array(prior.covariance, dtype=np.float64, order="C")
        self.guess = guess
        self.prior_rate = self.prior_degrees * np.linalg.inv(guess)
        self._count_constants(np.linalg.slogdet(guess)[1])
        self.total = np.zeros((d, d))
        self.square = np.zeros((d, d))
        self.stack = np.zeros((max(1, STACK // d) * d, d))
        self.vector = np.zeros(d)
        self.is_derived = True

    @property
    def covariance(self):
        """Lam, a copy, shape (n_features, n_features)."""
        return np.array(self.family.base)

    @property
    def log_det_covariance(self):
        """log |Lam|"""
        return self.family.base_log_det

    cdef int draw_covariance(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil:
        """W_c ~ Wishart(nu_c, Psi_c^-1); Lam ~ Wishart(a + K nu0, (a R^-1 + delta sum W_c)^-1)."""
        cdef Py_ssize_t d = self.width, k, rows = 0
        cdef double weight = self.weight_of_precisions()
        cdef double* total = &self.total[0, 0]
        cdef double* stack = &self.stack[0, 0]
        if not self.is_derived and self.family.derive(n_blocks) != 0:
            return 1
        memcpy(total, &self.prior_rate[0, 0], d * d * sizeof(double))
        for k in range(n_blocks):
            _wishart_root(
                rng, self.family.df + self.family.n_members[k], d, &self.family.factor[k, 0, 0],
                stack + rows * d,
            )
            rows += d
            if rows == self.stack.shape[0] or k == n_blocks - 1:
                linalg.add_gram(rows, d, weight, stack, total)
                rows = 0
        if linalg.cholesky(total, d) != 0:
            return 1
        _wishart_root(rng, self.prior_degrees + n_blocks * self.family.df, d, total, stack)
        linalg.gemm(True, False, d, d, d, 1.0, stack, stack, 0.0, total)
        if not self._is_above_floor(total, 1.0):
            return 0
        memcpy(&self.family.base[0, 0], total, d * d * sizeof(double))
        self.is_derived = False
        return self.family.factor_base()

    cdef bint _is_above_floor(self, const double* covariance, double factor) noexcept nogil:
        """Whether that many times a matrix less the floor is positive definite."""
        cdef Py_ssize_t d = self.width, a
        cdef double* rest = &self.square[0, 0]
        for a in range(d * d):
            rest[a] = factor * covariance[a] - FLOOR * (&self.guess[0, 0])[a]
        return linalg.cholesky(rest, d) == 0

    cdef int _look(self, Py_ssize_t n_blocks) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(n_blocks):
            self.n_cells[k] = <double> self.family.n_members[k]
            if self.family.tridiagonal(k, &self.diagonal[k, 0], &self.coupling[k, 0]) != 0:
                return 1
        return 0

    cdef int _weigh_precisions(self, Py_ssize_t n_blocks) noexcept nogil:
        """q = (xbar - m0)^T (delta Lam + S)^-1 (xbar - m0) serves all values.

        The factor of delta Lam + S is left in the slot, for ``_set_mean_precision`` to go on from.
        """
        cdef Py_ssize_t d = self.width, k, a, g
        cdef double n, q, kappa, power = self.power_of_mean()
        self.is_derived = False
        for k in range(n_blocks):
            n = <double> self.family.n_members[k]
            if self.family.factor_within(k, &self.family.factor[k, 0, 0]) != 0:
                return 1
            for a in range(d):
                self.vector[a] = self.family.row_mean[k, a] - self.family.prior_mean[a]
            q = linalg.solve_transposed(&self.family.factor[k, 0, 0], d, &self.vector[0])
            for g in range(self.precision_grid.shape[0]):
                kappa = self.precision_grid[g]
                self.log_weight[g] += (
                    power * log(kappa / (kappa + n))
                    - 0.5 * (self.family.df + n) * log(1.0 + kappa * n / (kappa + n) * q)
                )
        return 0

    cdef void _set_mean_precision(self, Py_ssize_t n_blocks, double mean_precision) noexcept nogil:
        cdef Py_ssize_t k
        self.family.mean_precision = mean_precision
        for k in range(n_blocks):
            self.family.finish(k)
        self.is_derived = True

    cdef int settle(self, Py_ssize_t n_blocks) noexcept nogil:
        self.family.factor_base()
        if not self.is_derived:
            self.is_derived = True
            return self.family.derive(n_blocks)
        self.family.clear_from(n_blocks)
        return 0

    cdef double degrees(self) noexcept nogil:
        return self.family.scale

    cdef void _set_degrees(self, double degrees) noexcept nogil:
        self.is_derived = self.is_derived and degrees == self.family.scale
        self.family.scale = degrees
        self.family.df = degrees + self.width + 1.0

    cdef double _mean_precision(self) noexcept nogil:
        return self.family.mean_precision

    cdef bint _is_allowed(self, double factor) noexcept nogil:
        return self._is_above_floor(&self.family.base[0, 0], factor)

    cdef int _stretch(self, double factor) noexcept nogil:
        cdef Py_ssize_t a
        self.is_derived = False
        for a in range(self.width * self.width):
            (&self.family.base[0, 0])[a] *= factor
        return self.family.factor_base()

    cdef double _trace(self) noexcept nogil:
        return linalg.dot(
            self.width * self.width, &self.prior_rate[0, 0], &self.family.base[0, 0]
        )

    cdef double log_det(self) noexcept nogil:
        return self.family.base_log_det


cdef class GammaCovariance(LearnedCovariance):
    """Of diagonal and spherical blocks: Wishart laws of one row, which are gamma laws."""

    def __init__(self, NormalInverseGamma family, prior):
        self.family = family
        self.n_units, self.width = family.n_rates, 1
        super().__init__(family, prior)
        guess = np.array(prior.covariance, dtype=np.float64).reshape(self.n_units)
        self.guess = guess
        self.prior_rate = self.prior_degrees / guess
        self._count_constants(np.log(guess).sum())
        self.total = np.zeros(self.n_units)

    @property
    def covariance(self):
        """Lam, a copy, shape (n_rates,)."""
        return 2.0 * np.asarray(self.family.base)

    @property
    def log_det_covariance(self):
        """Sum over the features of the log of Lam."""
        return self.log_det() * (self.family.n_features / self.n_units)

    cdef int draw_covariance(self, Py_ssize_t n_blocks, bitgen_t* rng) noexcept nogil:
        """1 / sigma2_cj ~ Gamma(a_cj, b_cj); lam_j from a gamma law of their sum."""
        cdef Py_ssize_t k, j
        cdef double shape, rate, drawn, weight = self.weight_of_precisions()
        for j in range(self.n_units):
            self.total[j] = 0.0
        for k in range(n_blocks):
            for j in range(self.n_units):
                shape = self.family.shape + 0.5 * self.family.cells(k, j)
                rate = self.family.scale * self.family.base[j] + 0.5 * self.family.total_gain(
                    k, j, self.family.mean_precision
                )
                self.total[j] += draws.draw_gamma(rng, shape, rate)
        shape = 0.5 * self.prior_degrees + n_blocks * self.family.shape
        for j in range(self.n_units):
            rate = 0.5 * (self.prior_rate[j] + weight * self.total[j])
            drawn = 0.5 * draws.draw_gamma(rng, shape, rate)
            if drawn != drawn:
                return 1
            if drawn > 0.5 * FLOOR * self.guess[j]:
                self.family.base[j] = drawn
        return 0

    cdef int _look(self, Py_ssize_t n_blocks) noexcept nogil:
        cdef Py_ssize_t k, j, u
        for k in range(n_blocks):
            for j in range(self.n_units):
                u = k * self.n_units + j
                self.n_cells[u] = self.family.cells(k, j)
                self.diagonal[u, 0] = self.family.total_gain(
                    k, j, self.family.mean_precision
                ) / (2.0 * self.family.base[j])
        return 0

    cdef int _weigh_precisions(self, Py_ssize_t n_blocks) noexcept nogil:
        cdef Py_ssize_t k, j, g
        cdef double kappa, n, power = self.power_of_mean()
        for g in range(self.precision_grid.shape[0]):
            kappa = self.precision_grid[g]
            for k in range(n_blocks):
                for j in range(self.family.n_features):
                    n = self.family.count[k, j]
                    self.log_weight[g] += power * log(kappa / (kappa + n))
                for j in range(self.n_units):
                    self.log_weight[g] -= (
                        self.family.shape + 0.5 * self.family.cells(k, j)
                    ) * log(
                        self.family.scale * self.family.base[j]
                        + 0.5 * self.family.total_gain(k, j, kappa)
                    )
        return 0

    cdef int settle(self, Py_ssize_t n_blocks) noexcept nogil:
        self.family.forget_constants()
        self.family.derive(n_blocks)
        return 0

    cdef double degrees(self) noexcept nogil:
        return self.family.scale

    cdef void _set_degrees(self, double degrees) noexcept nogil:
        self.family.scale = degrees
        self.family.shape = 0.5 * (degrees + 2.0)

    cdef void _set_mean_precision(self, Py_ssize_t n_blocks, double mean_precision) noexcept nogil:
        self.family.mean_precision = mean_precision

    cdef double _mean_precision(self) noexcept nogil:
        return self.family.mean_precision

    cdef bint _is_allowed(self, double factor) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.n_units):
            if not factor * self.family.base[j] > 0.5 * FLOOR * self.guess[j]:
                return False
        return True

    cdef int _stretch(self, double factor) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.n_units):
            self.family.base[j] *= factor
        return 0

    cdef double _trace(self) noexcept nogil:
        return 2.0 * linalg.dot(self.n_units, &self.prior_rate[0], &self.family.base[0])

    cdef double log_det(self) noexcept nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0
        for j in range(self.n_units):
            total += log(2.0 * self.family.base[j])
        return total


cdef void _wishart_root(
    bitgen_t* rng, double df, Py_ssize_t d, const double* factor, double* out
) noexcept nogil:
    """out^T out ~ Wishart(df, (U^T U)^-1) with U the factor: out = A^T U^-T with Bartlett's A."""
    cdef Py_ssize_t a, b
    cdef double kept
    draws.wishart_factor(rng, df, d, out)
    for a in range(d):
        for b in range(a):
            kept = out[a * d + b]
            out[a * d + b] = out[b * d + a]
            out[b * d + a] = kept
    linalg.solve_rows_back(factor, d, out, d)
