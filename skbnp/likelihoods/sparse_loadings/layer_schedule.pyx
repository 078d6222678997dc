"""The transition of a layer and of those above it: which moves, in which order."""

from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport LayerMove
from skbnp.likelihoods.sparse_loadings.scale_layer cimport SINGLETON, ScaleLayer

from skbnp.likelihoods.sparse_loadings.moves.births import Births
from skbnp.likelihoods.sparse_loadings.moves.finite_columns import FiniteColumns
from skbnp.likelihoods.sparse_loadings.moves.layer_move import COUNTS
from skbnp.likelihoods.sparse_loadings.moves.links import Links
from skbnp.likelihoods.sparse_loadings.moves.scales import Scales
from skbnp.likelihoods.sparse_loadings.moves.scores import Scores
from skbnp.likelihoods.sparse_loadings.moves.splits import Splits
from skbnp.likelihoods.sparse_loadings.score_grid import ScoreGrid

# Kinds of moves, in their order.
PARTS = ("links", "births", "split_merges", "scores", "scales")


cdef class LayerSchedule:
    """The moves of a layer, and the schedule of the next one.

    Cost of ``update`` for N rows, K factors, T samples, L links and m rows of a split:
    O(T (25 N K + (n_births N + 3 n_split_merge m) n_nodes + L + 6 N)), and the same above.
    """

    # What a schedule is made of.
    MOVES = {
        "links": Links, "births": Births, "finite": FiniteColumns, "splits": Splits,
        "scores": Scores, "scales": Scales, "grid": ScoreGrid,
    }

    def __init__(self, ScaleLayer layer, *, n_births=2, n_split_merge=10, n_nodes=61):
        """``n_births`` are attempts for each row, ``n_split_merge`` for each update."""
        self.layer = layer
        grid = self.MOVES["grid"](layer, n_nodes)
        self.links = self.MOVES["links"](layer)
        if layer.birth_move == SINGLETON:
            self.births = self.MOVES["births"](layer, grid, n_births)
            self.splits = self.MOVES["splits"](layer, grid, n_split_merge)
        else:
            # Columns of finite laws have no splits.
            self.births = self.MOVES["finite"](layer, n_births)
            self.splits = LayerMove(layer)
        self.scores = self.MOVES["scores"](layer)
        self.scales = self.MOVES["scales"](layer)
        if layer.above is not None:
            self.above = type(self)(
                layer.above, n_births=n_births, n_split_merge=n_split_merge, n_nodes=n_nodes
            )
        self.count_in(*np.zeros((2, len(COUNTS)), dtype=np.intp))

    def count_in(self, accepted, proposed):
        """Where to count, arrays of ``COUNTS``, of all layers together."""
        for move in (self.links, self.births, self.splits, self.scores, self.scales):
            move.count_in(accepted, proposed)
        if self.above is not None:
            self.above.count_in(accepted, proposed)

    cdef int update(self, bitgen_t* rng) except -1 nogil:
        """One transition of this layer and those above, up and down, given what is below."""
        if self.layer.n_below == 0:
            return 0
        self.layer.refresh()
        self.own_moves(rng)
        if self.layer.is_live:
            self.above.update(rng)
            if self.layer.above.n_factors > 0:
                self.scores.run(rng)
        self.layer.refresh()
        return 0

    cdef int update_layer(self, bitgen_t* rng, Py_ssize_t number) except -1 nogil:
        """``update`` of the layer so many above this one."""
        if number > 0:
            return self.above.update_layer(rng, number - 1)
        return self.update(rng)

    cdef int update_part(self, bitgen_t* rng, int part) except -1 nogil:
        """One kind of move, a place in ``PARTS``, in this layer and those above."""
        if self.layer.n_below == 0:
            return 0
        if part == 0:
            self.links.run(rng)
        elif part == 1:
            self.births.run(rng)
        elif part == 2:
            self.splits.run(rng)
        elif part == 3:
            self.scores.run(rng)
        elif part == 4:
            self.scales.run(rng)
        return self.above.update_part(rng, part) if self.layer.is_live else 0

    cdef int own_moves(self, bitgen_t* rng) except -1 nogil:
        """The moves of this layer alone."""
        self.links.run(rng)
        self.births.run(rng)
        self.splits.run(rng)
        self.scores.run(rng)
        self.scales.run(rng)
        return 0
