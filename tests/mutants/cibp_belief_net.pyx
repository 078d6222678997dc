"""Wrong formulas of the belief network, each a small method of the kernels overridden."""

from libc.math cimport log

from skbnp.cibp_belief_net._laws cimport CONCENTRATION, MASS, log_normal
from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.cibp_belief_net._proposals cimport DeathProposal
from skbnp.cibp_belief_net.moves.births cimport Births
from skbnp.cibp_belief_net.moves.blocks cimport Blocks
from skbnp.cibp_belief_net.moves.hyperparameters cimport Hyperparameters
from skbnp.cibp_belief_net.moves.matched_births cimport Match, MatchedBirths
from skbnp.cibp_belief_net.moves.noncentred cimport PRECISION, Line, NonCentred
from skbnp.cibp_belief_net.moves.row_clusters cimport RowClusters
from skbnp.cibp_belief_net.moves.rows cimport Rows
from skbnp.cibp_belief_net.moves.swaps cimport Swaps


cdef double log_poisson_mean(LayerRegression layer) noexcept nogil:
    """Of the number of a unit's parents that have no other child."""
    cdef double beta = layer.net.hyper[CONCENTRATION, layer.index]
    cdef double rate = log(layer.net.hyper[MASS, layer.index] * beta)
    return rate - log(beta + layer.net.width(layer.index) - 1.0)


cdef class PrintedRatio(Births):
    """Births as published: (B5.7) with the rate inverted and the count squared."""

    cdef double _log_rate(self, LayerRegression layer, double n_singletons) noexcept nogil:
        return -log_poisson_mean(layer) - 2.0 * log(n_singletons)


cdef class InvertedRate(Births):
    cdef double _log_rate(self, LayerRegression layer, double n_singletons) noexcept nogil:
        return -log_poisson_mean(layer) - log(n_singletons)


cdef class SquaredCount(Births):
    cdef double _log_rate(self, LayerRegression layer, double n_singletons) noexcept nogil:
        return log_poisson_mean(layer) - 2.0 * log(n_singletons)


cdef class NoSurvivorRule(DeathProposal):
    """Deaths that leave a unit without a child below it."""

    cdef bint _may_die(self, Py_ssize_t slot) noexcept nogil:
        return True


cdef class OwnCount(LayerRegression):
    """Toggles that count the edge itself."""

    cdef double n_others(self, Py_ssize_t unit, Py_ssize_t slot) noexcept nogil:
        return self.net.n_children[slot]


cdef class NoUrn(Swaps):
    """Swaps that do not look at how popular the parents are."""

    cdef double _log_urn_ratio(
        self, LayerRegression layer, Py_ssize_t unit, Py_ssize_t old, Py_ssize_t new
    ) noexcept nogil:
        return 0.0


cdef class NoPivot(Blocks):
    """Blocks as if the pivot were always the same child."""

    cdef double _log_pivot(self, LayerRegression layer, Py_ssize_t n_takers) noexcept nogil:
        return 0.0


cdef class RowsOfPrintedRatio(Rows):
    BIRTHS = PrintedRatio


cdef class RowsOfInvertedRate(Rows):
    BIRTHS = InvertedRate


cdef class RowsOfSquaredCount(Rows):
    BIRTHS = SquaredCount


cdef class RowsWithoutSurvivorRule(Rows):
    DEATH = NoSurvivorRule


cdef class RowsOfOwnCount(Rows):
    LAYER = OwnCount


cdef class RowsWithoutUrn(Rows):
    SWAPS = NoUrn


cdef class RowsWithoutPivot(Rows):
    BLOCKS = NoPivot


cdef class AloneForFree(MatchedBirths):
    """Matched births as if every newborn would have no parents."""

    cdef double _log_alone(self, Py_ssize_t layer, double n_others) noexcept nogil:
        return 0.0


cdef class NoJacobian(MatchedBirths):
    """Matched births as if the child's bias and precision kept their volume."""

    cdef double _log_jacobian(self, const Match* at) noexcept nogil:
        return 0.0


cdef class NoLogarithm(NonCentred):
    """Steps of a log precision by the density of the precision."""

    cdef double _gain(self, const Line* line, double step) noexcept nogil:
        return NonCentred._gain(self, line, step) - (step if line.kind == PRECISION else 0.0)


cdef class SamePlace(NonCentred):
    """Newton's law of the way back as if it were that of the way there."""

    cdef double _log_way_back(self, const Line* line, double step) noexcept nogil:
        cdef double center, precision
        self.post[:] = self.net.post[line.slot]
        self._measure(line, 0.0, &center, &precision)
        self._follow(line, step)
        return log_normal(step, center, precision)


cdef class NoTruncation(Hyperparameters):
    """The precisions' rate as if they had no bound."""

    cdef double _log_bound(self, double old, double new) noexcept nogil:
        return 0.0


cdef class StaleLaws(RowClusters):
    """Row clusters' laws kept after their labels have changed."""

    cdef void _draw_laws(self) noexcept nogil:
        pass
