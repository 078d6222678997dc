"""Wrong formulas of the mixture, each a small method of the shipped kernels overridden."""

from libc.math cimport log

from skbnp.dirichlet_process_mixture.moves._division cimport Division
from skbnp.dirichlet_process_mixture.moves.all_rows cimport AllRows
from skbnp.dirichlet_process_mixture.moves.gibbs cimport Gibbs
from skbnp.dirichlet_process_mixture.moves.hyperparameters cimport Concentration, PriorScale
from skbnp.dirichlet_process_mixture.moves.split_merge cimport SplitMerge
from skbnp.likelihoods.conjugate.learned_covariance cimport GammaCovariance, WishartCovariance
from skbnp.likelihoods.conjugate.normal_inverse_wishart cimport NormalInverseWishart
from skbnp.numerics cimport rng as draws
from skbnp.processes cimport crp_law
from skbnp.processes.mfm cimport FiniteMixtures
from numpy.random cimport bitgen_t


cdef class MissingNormaliser(Gibbs):
    """m(X_c u x) in place of m(X_c u x) / m(X_c), as the notes print it."""

    cdef bint score_member(self, Py_ssize_t i) except -1 nogil:
        cdef Py_ssize_t own = self.state.label[i], k
        if not self.scores.of_member(i):
            return False
        for k in range(self.state.n_clusters):
            if k != own:
                self.scores.value[k] += self.state.family.log_marginal(k)
            elif self.state.family.n_members[k] > 1:
                self.scores.value[k] += (
                    self.state.family.log_marginal(k) - self.state.family.log_predictive_own(k, i)
                )
        return True


cdef class SwappedBeta(Concentration):
    """The two shapes of the Dirichlet process' Beta variable."""

    cdef double redrawn(self) noexcept nogil:
        cdef double log_x = draws.log_beta(
            self.rng, self.state.n_samples - 1, self.state.law.concentration + 1.0
        )
        return draws.draw_gamma(
            self.rng, self.state.concentration_shape + self.state.n_clusters - 1,
            self.state.concentration_rate - log_x,
        )


cdef class DirichletProcessForFinite(Concentration):
    """The Dirichlet process' update for the finite mixture."""

    cdef double redrawn(self) noexcept nogil:
        return crp_law.draw_concentration(
            self.rng, self.state.law.concentration, &self.state.family.n_members[0],
            self.state.n_clusters, 0.0, 0, self.state.concentration_shape,
            self.state.concentration_rate,
        )


cdef class AdaptiveSplitMerge(SplitMerge):
    """As many proposals as the present number of blocks asks."""

    cdef Py_ssize_t how_often(self) noexcept nogil:
        return self.state.n_clusters


cdef class SplitStateCount(SplitMerge):
    """The number of blocks of the split state in the acceptance."""

    cdef double log_new_block(self, Py_ssize_t n_merged) noexcept nogil:
        return self.state.law.log_new_weight(n_merged + 1)


cdef class UncountedDivision(Division):
    """The probability of the last scan left out."""

    cdef double _scan(self, bitgen_t* rng, bint forced, double enough) noexcept nogil:
        Division._scan(self, rng, forced, -1e300)
        return 0.0


cdef class UncountedScan(SplitMerge):
    """Restricted Gibbs without the probability of its last scan."""

    DIVISION = UncountedDivision


cdef class UnscaledPrior(PriorScale):
    """Prior scale weights without the prior's own power."""

    cdef int weigh(self) noexcept nogil:
        cdef Py_ssize_t g
        cdef int failed = PriorScale.weigh(self)
        for g in range(self.log_weight.shape[0]):
            self.log_weight[g] -= self.state.n_clusters * log(self.state.scale_grid[g])
        return failed


cdef class NoAnchors(AllRows):
    """Labels over the occupied blocks, which may run empty."""

    cdef bint anchored(self) noexcept nogil:
        return False


cdef class UndividedWeights(AllRows):
    """Plain Gibbs with weights Dirichlet(concentration + n_k)."""

    cdef double discount(self) noexcept nogil:
        return self.state.law.discount * self.state.law.n_components


cdef class NarrowImputation(NormalInverseWishart):
    """Imputation without the (df + q) of the conditional t."""

    cdef double spread_given_observed(self, double kappa, double squares) noexcept nogil:
        return (kappa + 1.0) / kappa


cdef class OneMoreBlock(FiniteMixtures):
    """V_n(t + 1) where V_n(t) belongs."""

    cdef double log_coefficient(self, Py_ssize_t n_blocks) noexcept nogil:
        return self._log_coefficient[n_blocks + 1]

    cdef int reserve(self, Py_ssize_t n_blocks) except -1 nogil:
        cdef Py_ssize_t least = min(n_blocks + 1, self._n_items) + 1
        if least >= self._log_coefficient.shape[0]:
            with gil:
                most = max(least, min(2 * least, self._n_items))
                self._log_coefficient = self._coefficients.up_to(most)
        return 0


# -- covariances that clusters share ----------------------------------------------------------


cdef class FullWithoutDegrees(WishartCovariance):
    """Lam from the sum of precisions without delta."""

    cdef double weight_of_precisions(self) noexcept nogil:
        return 1.0


cdef class RatesWithoutDegrees(GammaCovariance):
    """The same, not full."""

    cdef double weight_of_precisions(self) noexcept nogil:
        return 1.0


cdef class FullWithoutDeterminant(WishartCovariance):
    """delta without |Lam|."""

    cdef double _log_of_degrees(self, Py_ssize_t n_blocks, double degrees) noexcept nogil:
        cdef double nu = degrees + self.width + 1.0
        return (
            WishartCovariance._log_of_degrees(self, n_blocks, degrees)
            - 0.5 * nu * n_blocks * self.log_det()
        )


cdef class RatesWithoutDeterminant(GammaCovariance):
    """The same, not full."""

    cdef double _log_of_degrees(self, Py_ssize_t n_blocks, double degrees) noexcept nogil:
        cdef double nu = degrees + self.width + 1.0
        return (
            GammaCovariance._log_of_degrees(self, n_blocks, degrees)
            - 0.5 * nu * n_blocks * self.log_det()
        )


cdef class FullWithoutJacobian(WishartCovariance):
    """A change of size without its Jacobian."""

    cdef double log_jacobian(self, double log_c) noexcept nogil:
        return 0.0


cdef class RatesWithoutJacobian(GammaCovariance):
    """The same, not full."""

    cdef double log_jacobian(self, double log_c) noexcept nogil:
        return 0.0


cdef class FullWithoutPower(WishartCovariance):
    """kappa0 without the power of kappa0 / (kappa0 + n)."""

    cdef double power_of_mean(self) noexcept nogil:
        return 0.0


cdef class RatesWithoutPower(GammaCovariance):
    """The same, not full."""

    cdef double power_of_mean(self) noexcept nogil:
        return 0.0
