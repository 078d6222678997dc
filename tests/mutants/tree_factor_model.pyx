"""Wrong formulas of the tree factor model, each a small method of the kernels overridden."""

from libc.math cimport exp, log, log1p
from numpy.random cimport bitgen_t

from skbnp.mcmc.chain cimport DONE
from skbnp.numerics cimport rng as draws
from skbnp.tree_factor_model._leaf_laws cimport LeafLaws
from skbnp.tree_factor_model._rows cimport Law
from skbnp.tree_factor_model._system cimport System
from skbnp.tree_factor_model.moves.collapsed_paths cimport Birth, CollapsedPaths
from skbnp.tree_factor_model.moves.leaf_means cimport LeafMean, LeafMeans
from skbnp.tree_factor_model.moves.loadings cimport Features, Loadings
from skbnp.tree_factor_model.moves.precisions cimport Precisions
from skbnp.tree_factor_model.moves.scores cimport PieceScores, Scores
from skbnp.tree_factor_model.moves.slice_paths cimport SlicePaths


cdef class NoDeterminant(LeafLaws):
    """Path densities without |Omega|."""

    cdef double log_density(self, Law law, double square) noexcept nogil:
        return LeafLaws.log_density(self, law, square) + 0.5 * law.log_det


cdef class ShortTail(LeafLaws):
    """u_i as if no entry of its row were observed."""

    cdef double draw_row_precision(
        self, bitgen_t* rng, Py_ssize_t b, Py_ssize_t i, double square
    ) noexcept nogil:
        cdef double df = self.state.tail_df[b]
        return max(draws.draw_gamma(rng, 0.5 * df, 0.5 * (df + square)), 1e-300)


cdef class NoNewPaths(SlicePaths):
    """Slices over occupied leaves only."""

    cdef int grow_fresh_paths(self, double least) except -1 nogil:
        return DONE


cdef class KeepsOwnCount(CollapsedPaths):
    """A row that counts itself."""

    cdef double log_weight_in_use(self, Py_ssize_t b, Py_ssize_t own) noexcept nogil:
        cdef double log_weight = CollapsedPaths.log_weight_in_use(self, b, own)
        if b == own:
            log_weight += log1p(1.0 / self.state.leaf_count[b])
        return log_weight


cdef class BlindLoadings(Birth):
    """New loadings that do not look at the row they are born for."""

    cdef bint sees(self, Py_ssize_t g, Py_ssize_t p) noexcept nogil:
        return False


cdef class BlindBirth(CollapsedPaths):
    """With these."""

    BIRTH = BlindLoadings


cdef class MeanThroughNoise(LeafMean):
    """The noise of y given x, but x integrated."""

    cdef double through_scores(
        self, Py_ssize_t depth, const double* row, const double* by_level
    ) noexcept nogil:
        return 0.0


cdef class MeanGivenScores(LeafMeans):
    """With these."""

    DRAW = MeanThroughNoise


cdef class FlatPieceScores(PieceScores):
    """Noise behind the solve: independent."""

    cdef void draw(self, Law law, Py_ssize_t n) noexcept nogil:
        law.solve(n)
        self.add_noise(law, n)


cdef class FlatScores(Scores):
    """With these."""

    DRAW = FlatPieceScores


cdef class UnweightedFeatures(Features):
    """Without the branches' noise scales."""

    cdef double weight(self, Py_ssize_t b) noexcept nogil:
        return 1.0


cdef class UnweightedRows(Loadings):
    """With these."""

    FEATURES = UnweightedFeatures


cdef class FillingFeatures(Features):
    """Elimination without the Schur complements: of the right-hand sides alone."""

    cdef int eliminate(self, System system) noexcept nogil:
        cdef Py_ssize_t b, n, j
        for b in range(self.state.n_leaves):
            for j in range(self.state.depth):
                n = self.state.node_path[self.state.leaf_node[b], j]
                system.node_rhs[n] -= (
                    system.leaf_row[b, j] / system.leaf_row[b, self.state.depth]
                    * system.leaf_rhs[b]
                )
        for n in range(self.state.n_nodes - 1, -1, -1):
            for j in range(self.state.level[n] - 1):
                system.node_rhs[self.state.node_path[n, j]] -= (
                    system.node_row[n, j] / system.node_row[n, self.state.level[n] - 1]
                    * system.node_rhs[n]
                )
        return 0


cdef class FillsIn(Loadings):
    """With these."""

    FEATURES = FillingFeatures


# -- multipliers ------------------------------------------------------------------------------

cdef class UnboundedRate(Precisions):
    """The rate of the noise's law is drawn as if its law had no least value."""

    cdef void _draw_noise(self) noexcept nogil:
        cdef Py_ssize_t p
        cdef double total = 0.0
        Precisions._draw_noise(self)
        for p in range(self.state.n_features):
            total += self.state.noise_precision[p]
        self.state.noise_rate = draws.draw_gamma(
            self.rng,
            self.hyper.noise_rate_law[0] + self.hyper.noise_shape * self.state.n_features,
            self.hyper.noise_rate_law[1] + total,
        )


include "wrong_multipliers.pxi"


cdef class WrongMultipliers(Precisions):
    """Multipliers by a wrong rule."""

    cdef void update(self, Rule rule) noexcept nogil:
        draw_multipliers(
            self.rng, self.state.n_nodes, &self.state.parent[0], &self.weighted_square[0],
            self.state.n_features, self.hyper.root_shape, self.hyper.shape,
            &self.state.multiplier[0], &self.state.log_tau[0], &self.of_nodes[0], rule,
        )


cdef class ChildrenOnly(WrongMultipliers):
    """As Zhang et al. print it."""

    cdef void draw_multipliers(self) noexcept nogil:
        self.update(CHILDREN_ONLY)


cdef class DescendantsOnly(WrongMultipliers):
    """The subtree without its root."""

    cdef void draw_multipliers(self) noexcept nogil:
        self.update(DESCENDANTS_ONLY)


cdef class ChildrenShape(WrongMultipliers):
    """The right rate, but the shape of the children."""

    cdef void draw_multipliers(self) noexcept nogil:
        self.update(CHILDREN_SHAPE)
