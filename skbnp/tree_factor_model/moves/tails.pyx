"""Tails and scales of whole covariances, scores integrated out.

mathematics/tree_factor_model, section 6.
"""

from libc.math cimport log1p
from libc.stdint cimport uint64_t

import numpy as np

from skbnp.mcmc.chain cimport BROKEN, DONE, Move
from skbnp.numerics cimport rng as draws
from skbnp.tree_factor_model._leaf_laws cimport LeafLaws
from skbnp.tree_factor_model._rows cimport log_norm
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._threads cimport Pool, Scratch, Work

cdef class Distances
cdef class TailLikelihoods
cdef class RowPrecisions


cdef class Tails(Move):
    """df_b with scores and u integrated, u given it, then kappa_b of whole covariances.

    Distances q_i depend on neither; q / kappa does not on kappa. Cost: a distance a row, and a
    logarithm for each row and number of degrees of freedom.
    """

    NAME = "tails"

    cdef:
        State state
        LeafLaws laws
        Pool pool
        Distances distances
        TailLikelihoods likelihoods
        RowPrecisions row_precisions

    def __init__(self, State state, LeafLaws laws, Pool pool, bit_generator):
        super().__init__(bit_generator)
        self.state, self.laws, self.pool = state, laws, pool
        self.distances = Distances(state, laws)
        self.likelihoods = TailLikelihoods(state, self.distances)
        self.row_precisions = RowPrecisions(state, laws, self.distances)

    cpdef int run(self) except -1:
        cdef int status = DONE
        if not self.state.hyper.has_tail and not self.state.hyper.whole:
            return DONE
        self.laws.compute_covariances()
        status |= self.pool.run(self.distances, self.state.n_pieces)
        if self.state.hyper.has_tail:
            self.likelihoods.reserve()
            self.pool.run(self.likelihoods, self.state.n_pieces)
            status |= self._draw_df(self.likelihoods.piece)
            self.row_precisions.key = draws.bits(self.rng)
            self.pool.run(self.row_precisions, self.state.n_pieces)
            self.state.version += 1
        if self.state.hyper.whole:
            self._draw_scales(self.distances.square)
        return status

    cdef int _draw_df(self, double[:, ::1] piece) noexcept nogil:
        """df of each leaf, or of all, from its grid: (T6.1)."""
        cdef Py_ssize_t k, b, first = 0, last, n_df = self.state.hyper.df_grid.shape[0]
        while first < self.state.n_pieces:
            last = first + 1
            b = self.state.piece_leaf[first]
            while last < self.state.n_pieces and (
                self.state.hyper.one_tail or self.state.piece_leaf[last] == b
            ):
                for k in range(n_df):
                    piece[first, k] += piece[last, k]
                last += 1
            for k in range(n_df):
                piece[first, k] += self.state.hyper.df_log_mass[k]
            if draws.categorical_from_logs(self.rng, &piece[first, 0], n_df, &k) != 0:
                return BROKEN
            if self.state.hyper.one_tail:
                for b in range(self.state.n_leaves):
                    self.state.tail_df[b] = self.state.hyper.df_grid[k]
            else:
                self.state.tail_df[b] = self.state.hyper.df_grid[k]
            first = last
        return DONE

    cdef void _draw_scales(self, const double[::1] square) noexcept nogil:
        """kappa of each leaf, and psi with it: (T6.3)."""
        cdef Py_ssize_t b, t, i, h, n_entries
        cdef double total
        for b in range(self.state.n_leaves):
            total = 0.0
            n_entries = 0
            for t in range(self.state.leaf_start[b], self.state.leaf_start[b + 1]):
                i = self.state.order[t]
                total += self.state.row_precision[i] * square[i]
                n_entries += self.state.rows.n_observed[self.state.rows.pattern[i]]
            self.state.noise_scale[b] = draws.draw_gamma(
                self.rng, self.state.hyper.scale_shape + 0.5 * n_entries,
                self.state.hyper.scale_shape + 0.5 * total / self.state.noise_scale[b],
            )
            for h in range(self.state.depth):
                self.state.score_precision[b, h] = self.state.noise_scale[b]


cdef class Distances(Work):
    """Squared distance of each row of piece k in its leaf."""

    cdef:
        State state
        LeafLaws laws
        double[::1] square                      # (n_samples,)

    def __init__(self, State state, LeafLaws laws):
        self.state, self.laws, self.square = state, laws, np.empty(state.n_samples)

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef Py_ssize_t t = self.state.piece_start[k], n, j
        while t < self.state.piece_start[k + 1]:
            n = self.laws.whiten_run(scratch.law, k, t, False)
            if n < 0:
                return self.fail()
            for j in range(n):
                self.square[scratch.law.chosen[j]] = scratch.law.square[j]
            t += n
        return 0


cdef class TailLikelihoods(Work):
    """Log density of the rows of piece k under each number of degrees of freedom.

    Their covariances, the same under all, are left out.
    """

    cdef:
        State state
        Distances distances
        double[:, ::1] norm                     # (n_df, n_features + 1) of n entries
        double[:, ::1] piece                    # (n_pieces, n_df)

    def __init__(self, State state, Distances distances):
        self.state, self.distances = state, distances
        self.norm = np.array([
            [log_norm(n, 0.0, df) for n in range(state.n_features + 1)]
            for df in np.asarray(state.hyper.df_grid)
        ])
        self.piece = np.zeros((0, 0))

    cdef int reserve(self) except -1:
        """Room for all pieces."""
        if self.piece.shape[0] < self.state.n_pieces:
            self.piece = np.empty((2 * self.state.n_pieces, self.norm.shape[0]))
        return 0

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef Py_ssize_t t, j, i, n
        cdef double df
        for j in range(self.norm.shape[0]):
            df = self.state.hyper.df_grid[j]
            self.piece[k, j] = 0.0
            for t in range(self.state.piece_start[k], self.state.piece_start[k + 1]):
                i = self.state.order[t]
                n = self.state.rows.n_observed[self.state.rows.pattern[i]]
                self.piece[k, j] += self.norm[j, n] - 0.5 * (df + n) * log1p(
                    self.distances.square[i] / df
                )
        return 0


cdef class RowPrecisions(Work):
    """u of the rows of piece k: (T6.2)."""

    cdef:
        State state
        LeafLaws laws
        Distances distances
        uint64_t key                            # of the random numbers

    def __init__(self, State state, LeafLaws laws, Distances distances):
        self.state, self.laws, self.distances = state, laws, distances

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef draws.RowStream stream
        cdef Py_ssize_t t, i
        for t in range(self.state.piece_start[k], self.state.piece_start[k + 1]):
            i = self.state.order[t]
            draws.start_row_stream(&stream, self.key, 0, i)
            self.state.row_precision[i] = self.laws.draw_row_precision(
                &stream.rng, self.state.piece_leaf[k], i, self.distances.square[i]
            )
        return 0
