"""Wrong formulas of the deep scale model, each a small method of the shipped kernels overridden."""

from libc.math cimport log

from skbnp.likelihoods.sparse_loadings.moves.births cimport Births
from skbnp.likelihoods.sparse_loadings.moves.finite_columns cimport FiniteColumns
from skbnp.likelihoods.sparse_loadings.moves.links cimport Links
from skbnp.likelihoods.sparse_loadings.moves.scales cimport Scales
from skbnp.likelihoods.sparse_loadings.moves.scores cimport Scores
from skbnp.likelihoods.sparse_loadings.moves.splits cimport Splits
from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer
from skbnp.likelihoods.sparse_loadings.score_grid cimport ScoreGrid


cdef class OwnLink(Links):
    """Odds that count the link itself."""

    cdef double n_others(self, double others, bint was_on) noexcept nogil:
        return others + was_on


cdef class BlindScores(ScoreGrid):
    """Proposed scores without their density."""

    cdef double log_proposal(self, double z, double density) noexcept nogil:
        return 0.0


cdef class NoCount(Births):
    """Births that do not count a row's own factors."""

    cdef double log_count(self, Py_ssize_t n_singletons) noexcept nogil:
        return 0.0


cdef class NoPairs(Splits):
    """Splits and merges that do not count what they choose from."""

    cdef double log_choices(self, Py_ssize_t n_pairs, Py_ssize_t n_splittable) noexcept nogil:
        return 0.0


cdef class NoJacobian(Scales):
    """Scales as if loadings and scores were of one number."""

    cdef double log_jacobian(self, double n_links, double g) noexcept nogil:
        return 0.0


cdef class PrintedPosition(FiniteColumns):
    """Where an empty column comes and goes as printed: mathematics, section 13.5."""

    cdef double log_place(self, Py_ssize_t n_columns, Py_ssize_t n_empty) noexcept nogil:
        cdef Py_ssize_t n_active = n_columns - n_empty
        return log(n_columns / ((n_columns + 1.0) * max(n_active, 1)))


cdef class SameRate(FiniteColumns):
    """mass / K of the other columns as it was: mathematics, section 13.5."""

    cdef double log_others(self, double before, double after, Py_ssize_t n_empty) noexcept nogil:
        return 0.0


cdef class Repeated(FiniteColumns):
    """As many attempts as there are columns: mathematics, section 13.6."""

    cdef Py_ssize_t how_often(self) noexcept nogil:
        return self.layer.n_factors * self.layer.n_below


cdef class StaleRows(ScaleLayer):
    """Links of a new row as if it were not counted."""

    cdef double n_customers(self) noexcept nogil:
        return max(self.n_below, 1)


cdef class OnePass(Scores):
    """Scores that do not look at the layer above: mathematics, section 13.7."""

    cdef double prior_variance(self, Py_ssize_t k, Py_ssize_t t) noexcept nogil:
        return 1.0
