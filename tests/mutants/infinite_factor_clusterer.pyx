"""Wrong formulas of the clusterer, each a small method of the shipped kernels overridden."""

from libc.math cimport log

from skbnp.infinite_factor_clusterer._row_law cimport RowLaw
from skbnp.infinite_factor_clusterer.moves._launch cimport Launch
from skbnp.infinite_factor_clusterer.moves.births cimport Births
from skbnp.infinite_factor_clusterer.moves.labels cimport Labels
from skbnp.infinite_factor_clusterer.moves.loadings cimport Loadings
from skbnp.infinite_factor_clusterer.moves.means cimport Means
from skbnp.infinite_factor_clusterer.moves.rescales cimport Rescales
from skbnp.infinite_factor_clusterer.moves.scores cimport Scores
from skbnp.infinite_factor_clusterer.moves.splits cimport Splits


cdef class NoDeterminant(RowLaw):
    """Densities of rows without |P| and |D|."""

    cdef int factorise(self, Py_ssize_t g, Py_ssize_t row) noexcept nogil:
        cdef int failed = RowLaw.factorise(self, g, row)
        self.log_norm = self.log_noise
        return failed


cdef class NoSlice(Labels):
    """Labels that never open a cluster."""

    cdef bint opens(self, double rest, double lowest) noexcept nogil:
        return False


cdef class BlindMeans(Means):
    """Means that do not look at their rows."""

    cdef void draw_cluster(self, Py_ssize_t g) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.state.n_factors):
            self.side[k] = 0.0
        Means.draw_cluster(self, g)


cdef class PriorScores(Scores):
    """Scores that do not look at their row."""

    cdef void draw_rows(self, Py_ssize_t g, Py_ssize_t n) noexcept nogil:
        self.row_law.loading[:, :] = 0.0
        Scores.draw_rows(self, g, n)


cdef class Unweighted(Loadings):
    """Loadings as if all clusters had the same noise."""

    cdef double weight_of(self, Py_ssize_t g, Py_ssize_t j) noexcept nogil:
        return 1.0


cdef class OwnLink(Loadings):
    """Links that count themselves."""

    cdef Py_ssize_t other_links(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil:
        return self.state.n_links[k]


cdef class BirthCount(Births):
    """Births and deaths that count a feature's own factors one too high."""

    cdef double log_count(self, Py_ssize_t n) noexcept nogil:
        return log(n + 1.0)


cdef class StaleNoise(Births):
    """Births without the Jacobian of the shares."""

    cdef double log_jacobian(self, double w, double whole) noexcept nogil:
        return 0.0


cdef class FlatUpper(Births):
    """Births that do not look at the layer above."""

    cdef int draw_upper_row(self) except -1 nogil:
        cdef Py_ssize_t t
        Births.draw_upper_row(self)
        for t in range(self.state.n_samples):
            self.state.U[t, self.state.n_factors] = 1.0
        return 0


cdef class NoStretch(Rescales):
    """Rescaled factors without the energies' part of the ratio."""

    cdef double log_energies(self, double step) noexcept nogil:
        return 0.0


cdef class NoPartition(Splits):
    """Splits without the Chinese restaurant's factor."""

    cdef double log_partition(self) noexcept nogil:
        return 0.0


cdef class FreeDivision(Splits):
    """Splits without the probability of the division."""

    cdef double scan(self, Py_ssize_t n, bint forced, Py_ssize_t first) noexcept nogil:
        Splits.scan(self, n, forced, first)
        return 0.0


cdef class FreeScores(Launch):
    """Divisions without the density of the scores that they propose."""

    cdef double score(self, Py_ssize_t n, bint divided, int which) noexcept nogil:
        Launch.score(self, n, divided, which)
        return 0.0
