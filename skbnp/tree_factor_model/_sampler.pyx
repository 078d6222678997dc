"""One chain of the tree factor model: paths, leaf means, scores, loadings, precisions.

b_i ~ nested CRP; y_i | b_i, x_i ~ N(m_b + sum_l x_il d_{b_l}, (u_i kappa_b Lambda)^-1), x_il ~
N(0, 1 / (psi_{b_i l} u_i)); loadings shrink down the tree by a multiplicative gamma process.
u_i = 1, or Gamma(df_b / 2, df_b / 2) for heavy tails. Missing entries are integrated out.
"""

from libc.math cimport NAN, fmax, isfinite, log, log1p, sqrt
from libc.string cimport memcpy

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport log_gamma_density
from skbnp.processes cimport multiplicative_gamma as shrinkage
from skbnp.processes cimport ncrp
from skbnp.tree_factor_model._paths cimport (
    CHILDREN_SHAPE, DENSITIES, DISTANCES, FEATURES, FILLS_IN, FLAT_SCORES, LEAF_MEANS, LOADINGS,
    MEAN_GIVEN_SCORES, MEANS, NO_MOVE, OFFERS, PRODUCTS, REGULAR, ROW_PRECISIONS, SCORES,
    SCORES_OF, SQUARES, TAIL_LIKELIHOODS, TAILS, UNWEIGHTED_ROWS, Paths, Scratch,
)
from skbnp.tree_factor_model._rows cimport CHUNK, Law, log_norm
from skbnp.tree_factor_model._system cimport System

from skbnp.numerics.states import checked_count, put_bit_generator
from skbnp.tree_factor_model._model import checked_state


cdef enum:
    ADAPT_EVERY = 10        # warm-up sweeps between changes of the depth

# An axis whose signal-to-noise is below this share of what noise alone gives is pruned.
cdef double PRUNE_TOLERANCE = 0.1

# Moves, in the order of a sweep; NO_MOVE while all is well.
MOVES = ("", "paths", "tails", "leaf_means", "scores", "loadings", "precisions", "concentration")

# Named wrong formulas, for the tests alone: each must make a test fail.
FAULTS = {
    "none": 0,
    "children_only": 1,             # the multipliers' rule as the paper prints it
    "descendants_only": 2,          # the subtree without its root
    "children_shape": 3,            # the right rate, but the shape of the children
    "no_determinant": 4,            # path densities without |R|
    "keeps_own_count": 5,           # collapsed paths that count the row itself
    "no_new_paths": 6,              # slice paths over occupied leaves only
    "flat_scores": 7,               # scores with independent noise
    "unweighted_rows": 8,           # loadings without the branches' noise scales
    "mean_given_scores": 9,         # leaf means with the noise of y given x, but x integrated
    "fills_in": 10,                 # loadings without the Schur complements
    "blind_birth": 11,              # new loadings that do not look at the row they are born for
    "short_tail": 12,               # u_i as if no entry of its row were observed
}


cdef class Sampler(Paths):
    """One chain; ``sweep`` is its transition.

    Rows with the same observed entries share a pattern, and all that depends on leaf and pattern
    alone is done once for them.

    Rows, leaves and features that do not depend on each other are worked on item by item. Items
    depend on the state alone, write to places of their own that are added in order, and draw
    random numbers by row, leaf or feature, so that a chain is the same to the last bit however
    ``for_rows`` distributes them over threads.

    Cost of a sweep for N complete rows, P features, B leaves, K nodes, depth L: O(N B L P) for the
    paths, O(N L (P + L)) for scores, products and residuals, O(P K L^2) for the loadings; but for
    O(N B P) all that grows with N is BLAS 3. A pattern of its own with n entries costs a row
    O(B L^2 (n + L)), or O(B n^3 + L^2 (n + L)) where n < L.
    """

    cdef:
        bint _adapt_depth
        bint _has_products                      # of these scores, in piece_gram and piece_side
        double _log_jacobian
        # Sums over the rows of a piece, then of a leaf or node.
        double[::1] square                      # (n_samples,) distance in the row's own leaf
        double[::1] piece_total                 # (n_pieces,)
        double[:, ::1] piece_tail               # (n_pieces, n_df)
        double[:, ::1] piece_gram               # (n_pieces, (max_depth + 1)^2)
        double[:, ::1] piece_side               # (n_pieces, (max_depth + 1) n_features)
        double[:, ::1] piece_square             # (n_pieces, n_features)
        double[:, ::1] tail_norm                # (n_df, n_features + 1) of the t law's density
        double[:, ::1] node_gram, node_side     # (n_node_slots, max_depth), (.., n_features)
        double[:, ::1] leaf_gram, leaf_side     # (n_leaf_slots, max_depth + 1), (.., n_features)
        double[:, ::1] rss                      # (n_leaf_slots, n_features)
        double[::1] weighted_square, node_scratch

    def __cinit__(self, *args, **kwargs):
        self.piece_gram = self.piece_side = self.piece_square = np.zeros((0, 0))
        self.node_gram = self.node_side = self.leaf_gram = self.leaf_side = np.zeros((0, 0))
        self.rss = self.piece_tail = np.zeros((0, 0))
        self.piece_total = self.weighted_square = self.node_scratch = np.zeros(0)

    def __init__(
        self, X, prior, state, bit_generator, *, path_update="slice", birth="integrated",
        adapt_depth=True, for_rows=None, double log_jacobian=0.0, int fault=0,
    ):
        """A chain on X (n_samples, n_features) in the units of ``prior``, a ``_model.Prior``.

        It starts from ``state``, a dict as ``_model`` describes it. ``log_jacobian`` is added to
        the log joint. ``for_rows(function, n_items, size)`` calls ``function(start, stop)`` for
        every so many items, by threads if it likes; default: one after the other.
        """
        self._adapt_depth = adapt_depth
        self._log_jacobian = log_jacobian
        super().__init__(X, prior, state, bit_generator, path_update, birth, for_rows, fault)
        self.square = np.empty(self.n_samples)
        n_entries = range(self.n_features + 1)
        self.tail_norm = np.array(
            [[log_norm(n, 0.0, df) for n in n_entries] for df in np.asarray(self.df_grid)]
        )

    def _need_sums(self):
        """Room for the sums over pieces, nodes and leaves, once the paths are drawn."""
        width, p = self.max_depth + 1, self.n_features
        if self.piece_gram.shape[0] < self.n_pieces:
            n = 2 * self.n_pieces
            self.piece_gram, self.piece_side = np.empty((n, width**2)), np.empty((n, width * p))
            self.piece_square, self.piece_total = np.empty((n, p)), np.empty(n)
            self.piece_tail = np.empty((n, self.df_grid.shape[0]))
        if self.node_gram.shape[0] < self.n_nodes:
            n = 2 * self.n_nodes
            self.node_gram, self.node_side = np.empty((n, self.max_depth)), np.empty((n, p))
            self.weighted_square, self.node_scratch = np.empty(n), np.empty(3 * n)
        if self.leaf_gram.shape[0] < self.n_leaves:
            n = 2 * self.n_leaves
            self.leaf_gram, self.leaf_side = np.empty((n, width)), np.empty((n, p))
            self.rss = np.empty((n, p))

    # -- the sampler contract -----------------------------------------------------------------

    def sweep(self):
        """One transition: paths, tails and leaf means without scores, then all that sees scores.

        The first integrate the scores out, so that nothing may come between them and the fresh
        scores.
        """
        with self._bit_generator.lock:
            self._update_paths()
            self._update_tails()
            self._update_leaf_means()
            self._update_scores()
            self._update_loadings()
            self._update_precisions()
            self._update_concentration()

    def sweep_only(self, str move):
        """One move alone, for the tests: a name of ``MOVES``.

        "paths", "tails" and "leaf_means" bring fresh scores along, "paths" tails as well.
        """
        with self._bit_generator.lock:
            if move == "paths":
                self._update_paths()
                self._update_tails()
                self._update_scores()
            elif move == "tails":
                self._update_tails()
                self._update_scores()
            elif move == "leaf_means":
                self._update_leaf_means()
                self._update_scores()
            elif move == "scores":
                self._update_scores()
            elif move == "loadings":
                self._update_loadings()
            elif move == "precisions":
                self._update_precisions()
            elif move == "concentration":
                self._update_concentration()
            else:
                raise ValueError(f"move must be one of {MOVES[1:]}, got {move!r}")

    def adapt(self, step):
        """After a warm-up sweep: let the depth below the last branching level follow the data.

        A last level that no branch needs goes; when all levels are needed one is added, from the
        prior. Branches keep a common depth: one that could be cut alone would never grow back
        when it is born again, and the chain would forget its own law.
        """
        if not self._adapt_depth or (step + 1) % ADAPT_EVERY or self._broken != NO_MOVE:
            return
        with self._bit_generator.lock:
            lowest = max(1, max(self.branch_level, default=-1) + 1)
            n_cut = 0
            while self.depth > lowest and self._last_level_is_idle():
                self._cut_last_level()
                n_cut += 1
            if n_cut == 0 and lowest <= self.depth < self.max_depth:
                self._add_level()

    def log_joint(self, scores="integrated"):
        """log p(X, state), scores "integrated" out or an "explicit" part of the state.

        In the units that the Jacobian gives; NaN after a move has failed.
        """
        if self._broken != NO_MOVE:
            return NAN
        with self._bit_generator.lock:
            total = self._log_prior() + self._log_jacobian
            if scores == "integrated":
                return total + self._log_data()
            return total + self._log_data_given_scores()

    @property
    def broken_move(self):
        """Name of the move that first had no finite result, "" if none."""
        return MOVES[self._broken]

    def scalars(self):
        """Quantities traced beside the log joint."""
        noise = np.asarray(self.noise)
        return {
            "n_branches": float(self.n_leaves),
            "n_nodes": float(self.n_nodes),
            "depth": float(self.depth),
            "largest_branch": float(max(self.leaf_count[b] for b in range(self.n_leaves))),
            "log_noise_precision": float(np.mean(np.log(noise))),
            "log_mean_precision": float(np.mean(np.log(self.xi))),
            **({"largest_tail_df": float(max(self.tail_df[b] for b in range(self.n_leaves)))}
               if self._has_tail else {}),
            **{
                f"concentration{k}": self.alpha[self.branch_level[k]]
                for k in range(self.branch_level.shape[0])
            },
        }

    def draw(self):
        """Snapshot for prediction: the tree, its parameters and the leaf of each row."""
        state = self._state()
        for name in ("local_precision", "scores", "row_precision", "noise_rate"):
            del state[name]
        state["leaf_count"] = np.bincount(state["branch"])
        state["branch"] = state["branch"].astype(
            np.uint8 if self.n_leaves <= 256 else np.uint16 if self.n_leaves <= 65536 else np.int32
        )
        return state

    def get_state(self):
        """Everything that the next sweep depends on, bit for bit, as plain data."""
        return {
            **self._state(),
            "n_moved": self._n_moved,
            "n_proposed": self._n_proposed,
            "bit_generator": self._bit_generator.state,
        }

    def set_state(self, state):
        """Restore what ``get_state`` returned.

        Raises ValueError, and leaves the chain as it was, for a state that does not fit.
        """
        moved, proposed = checked_count(state, "n_moved"), checked_count(state, "n_proposed")
        checked = checked_state(state, self.prior, self.n_samples)
        put_bit_generator(self._bit_generator, state)
        self._put(checked)
        self._has_products = False
        self._n_moved, self._n_proposed = moved, proposed
        self._broken = NO_MOVE

    def acceptance(self):
        """Move name -> (accepted, proposed) so far: rows whose leaf changed, rows drawn."""
        return {"paths": (self._n_moved, self._n_proposed)}

    def simulate_data(self):
        """Draw the observed entries anew given the state, scores included (Geweke 2004)."""
        state = self._state()
        branch, paths = state["branch"], np.asarray(self.node_path)[state["leaf_node"]]
        x, d = state["scores"], state["loadings"][paths[branch][:, :state["scores"].shape[1]]]
        mean = state["leaf_mean"][branch] + np.einsum("il,ilp->ip", x, d)
        weight = state["noise_scale"][branch] * state["row_precision"]
        sd = 1 / np.sqrt(weight[:, np.newaxis] * np.asarray(self.noise))
        with self._bit_generator.lock:
            eps = np.array(
                [draws.normal(self._rng) for _ in range(self.n_samples * self.n_features)]
            )
        seen = np.asarray(self.rows.is_observed)[np.asarray(self.rows.pattern)]
        self._has_products = False
        self.rows.X = np.where(seen, mean + sd * eps.reshape(mean.shape), 0.0)

    def data(self):
        """The data with NaN where missing, a copy."""
        seen = np.asarray(self.rows.is_observed)[np.asarray(self.rows.pattern)]
        return np.where(seen, self.rows.X, np.nan)

    # -- work in items ------------------------------------------------------------------------

    cdef int _work_on_item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        if self._work <= OFFERS:
            return Paths._work_on_item(self, scratch, k)
        if self._work == DISTANCES:
            self._measure(scratch.law, k)
        elif self._work == TAIL_LIKELIHOODS:
            self._sum_tail_likelihoods(k)
        elif self._work == ROW_PRECISIONS:
            self._draw_row_precisions(k)
        elif self._work == MEANS:
            self._draw_leaf_mean(scratch.law, k)
        elif self._work == SCORES_OF:
            self._draw_scores(scratch.law, k)
        elif self._work == PRODUCTS:
            self._sum_products(scratch.law, k)
        elif self._work == FEATURES:
            self._draw_feature(scratch.law, scratch.system, k)
        elif self._work == SQUARES:
            self._sum_squares(scratch.law, k)
        else:
            self._sum_densities(scratch.law, k)
        return 0

    cdef Py_ssize_t _whiten_run(
        self, Law law, Py_ssize_t r, Py_ssize_t t, bint for_scores
    ) noexcept nogil:
        """Whiten the rows of piece r from ``order[t]`` on that share its pattern, in their leaf.

        Returns how many they are, -1 where their law is degenerate.
        """
        cdef Py_ssize_t n = 0, i = self.order[t], stop = self.piece_start[r + 1]
        cdef Py_ssize_t g = self.rows.pattern[i], n_rows
        if t == self.piece_start[r] or law.pattern != g:
            n_rows = min(stop - t, self.rows.pattern_start[g + 1] - self.rows.pattern_start[g])
            if (self._prepare(law, self.piece_leaf[r], g, n_rows) if for_scores
                    else self._prepare_density(law, self.piece_leaf[r], g, n_rows)) != 0:
                return -1
        while n < CHUNK and t + n < stop and self.rows.pattern[self.order[t + n]] == g:
            law.chosen[n] = self.order[t + n]
            n += 1
        law.whiten(n)
        return n

    # -- densities ----------------------------------------------------------------------------

    cdef double _log_data(self) except? -1.0:
        """sum_i log p(y_i | b_i) over the observed entries, scores integrated; NaN if it fails."""
        self._need_sums()
        self._compute_covariances()
        self._run(DENSITIES, self.n_pieces)
        return np.sum(np.asarray(self.piece_total)[:self.n_pieces])

    cdef int _sum_densities(self, Law law, Py_ssize_t r) noexcept nogil:
        cdef Py_ssize_t t = self.piece_start[r], n, k
        cdef double total = 0.0
        while t < self.piece_start[r + 1]:
            n = self._whiten_run(law, r, t, False)
            if n < 0:
                total = NAN
                break
            for k in range(n):
                total += self._log_density_of(law, law.square[k])
            t += n
        self.piece_total[r] = total
        return 0

    # -- tails and whole scales, scores integrated ---------------------------------------------

    cdef int _update_tails(self) except -1:
        """df_b with scores and u integrated, u given it, then kappa_b of whole covariances.

        Distances q_i depend on neither; q / kappa does not on kappa: equations (T6.1) to (T6.3).
        """
        if not self._has_tail and not self._whole:
            return 0
        self._need_sums()
        self._compute_covariances()
        self._run(DISTANCES, self.n_pieces)
        if self._has_tail:
            self._run(TAIL_LIKELIHOODS, self.n_pieces)
            self._draw_tails()
            self._key = draws.bits(self._rng)
            self._run(ROW_PRECISIONS, self.n_pieces)
        if self._whole:
            self._draw_whole_scales()
        return 0

    cdef int _measure(self, Law law, Py_ssize_t r) noexcept nogil:
        """Squared distance of each row of a piece in its leaf."""
        cdef Py_ssize_t t = self.piece_start[r], n, k
        while t < self.piece_start[r + 1]:
            n = self._whiten_run(law, r, t, False)
            if n < 0:
                return self._break(TAILS)
            for k in range(n):
                self.square[law.chosen[k]] = law.square[k]
            t += n
        return 0

    cdef void _sum_tail_likelihoods(self, Py_ssize_t r) noexcept nogil:
        """Log density of the rows of a piece under each number of degrees of freedom.

        Their covariances, the same under all, are left out.
        """
        cdef Py_ssize_t t, k, i, n
        cdef double df
        for k in range(self.df_grid.shape[0]):
            df = self.df_grid[k]
            self.piece_tail[r, k] = 0.0
            for t in range(self.piece_start[r], self.piece_start[r + 1]):
                i = self.order[t]
                n = self.rows.n_observed[self.rows.pattern[i]]
                self.piece_tail[r, k] += self.tail_norm[k, n] - 0.5 * (df + n) * log1p(
                    self.square[i] / df
                )

    cdef void _draw_tails(self) noexcept nogil:
        """df of each leaf, or of all, from its grid."""
        cdef Py_ssize_t k, b, first = 0, last, n_df = self.df_grid.shape[0]
        while first < self.n_pieces:
            last = first + 1
            while last < self.n_pieces and (
                self._one_tail or self.piece_leaf[last] == self.piece_leaf[first]
            ):
                for k in range(n_df):
                    self.piece_tail[first, k] += self.piece_tail[last, k]
                last += 1
            for k in range(n_df):
                self.piece_tail[first, k] += self.df_log_mass[k]
            if draws.categorical_from_logs(self._rng, &self.piece_tail[first, 0], n_df, &k) != 0:
                self._break(TAILS)
                return
            if self._one_tail:
                for b in range(self.n_leaves):
                    self.tail_df[b] = self.df_grid[k]
            else:
                self.tail_df[self.piece_leaf[first]] = self.df_grid[k]
            first = last

    cdef void _draw_row_precisions(self, Py_ssize_t r) noexcept nogil:
        cdef draws.RowStream stream
        cdef Py_ssize_t t, i
        for t in range(self.piece_start[r], self.piece_start[r + 1]):
            i = self.order[t]
            draws.start_row_stream(&stream, self._key, 0, i)
            self.row_precision[i] = self._row_precision_given(
                &stream.rng, self.piece_leaf[r], i, self.square[i]
            )

    cdef void _draw_whole_scales(self) noexcept nogil:
        cdef Py_ssize_t b, t, i, h, n_entries
        cdef double total
        for b in range(self.n_leaves):
            total = 0.0
            n_entries = 0
            for t in range(self.leaf_start[b], self.leaf_start[b + 1]):
                i = self.order[t]
                total += self.row_precision[i] * self.square[i]
                n_entries += self.rows.n_observed[self.rows.pattern[i]]
            self.kappa[b] = draws.draw_gamma(
                self._rng, self._scale_shape + 0.5 * n_entries,
                self._scale_shape + 0.5 * total / self.kappa[b],
            )
            for h in range(self.depth):
                self.psi[b, h] = self.kappa[b]

    # -- leaf means, scores integrated ---------------------------------------------------------

    cdef int _update_leaf_means(self) except -1:
        """m_b given its rows, their scores integrated out: equation (T7.1).

        Leaves with incomplete rows wait for the draw together with the loadings; which leaves
        those are does not change here.
        """
        self._key = draws.bits(self._rng)
        self._run(MEANS, self.n_leaves)
        return 0

    cdef int _draw_leaf_mean(self, Law law, Py_ssize_t b) noexcept nogil:
        """N(Q^-1 Gamma sum u y, Q^-1), Q = diag(xi) + W Gamma, W = sum u, Gamma = Omega^-1.

        Gamma = kappa Lambda - SS'. Perturb the right-hand side by a draw of variance Q, then solve
        by Woodbury on diag(xi + W kappa lambda): O(P L^2).
        """
        cdef Py_ssize_t n_features = self.n_features, depth = self.depth, p, h, t, i
        cdef double total = 0.0, weight = 0.0, eps
        cdef double* s = &law.axes[0]           # (P, L)
        cdef double* v = &law.residual[0]       # (P,)
        cdef double* inverse = v + n_features   # (P,)
        cdef double* by_level = &law.other[0]   # (L,)
        cdef draws.RowStream stream
        i = self.order[self.leaf_start[b + 1] - 1]
        if self.rows.n_observed[self.rows.pattern[i]] < n_features:
            return 0
        if self._prepare(law, b, self.rows.n_patterns, depth + 1) != 0:
            return self._break(LEAF_MEANS)
        draws.start_row_stream(&stream, self._key, 0, b)
        # v = sum u y + sqrt(W) z, z ~ N(0, Omega)
        for t in range(self.leaf_start[b], self.leaf_start[b + 1]):
            weight += self.row_precision[self.order[t]]
        for p in range(n_features):
            v[p] = sqrt(weight) * draws.normal(&stream.rng) / law.root[p]
        for t in range(self.leaf_start[b], self.leaf_start[b + 1]):
            i = self.order[t]
            linalg.axpy(n_features, self.row_precision[i], &self.rows.X[i, 0], v)
        for h in range(depth):
            eps = sqrt(weight / self.psi[b, h]) * draws.normal(&stream.rng)
            linalg.axpy(n_features, eps, &self.loading[self.node_path[self.leaf_node[b], h], 0], v)
        for p in range(n_features):
            for h in range(depth):
                s[p * depth + h] *= law.root[p]
        # v <- Gamma v + sqrt(xi) eps
        linalg.gemm(False, False, 1, depth, n_features, 1.0, v, s, 0.0, by_level)
        for p in range(n_features):
            v[p] *= law.root[p] * law.root[p]
            if self._fault != MEAN_GIVEN_SCORES:
                v[p] -= linalg.dot(depth, &s[p * depth], by_level)
            v[p] += sqrt(self.xi[p]) * draws.normal(&stream.rng)
        # v <- Q^-1 v, with S' A^-1/2 in ``scaled``
        for p in range(n_features):
            inverse[p] = 1.0 / (self.xi[p] + weight * law.root[p] * law.root[p])
            v[p] *= inverse[p]
            for h in range(depth):
                law.scaled[h * n_features + p] = s[p * depth + h] * sqrt(inverse[p])
        linalg.gemm(False, True, depth, depth, n_features, -1.0, &law.scaled[0],
                    &law.scaled[0], 0.0, &law.factor[0])
        for h in range(depth):
            law.factor[h * depth + h] += 1.0 / weight
        if linalg.cholesky(&law.factor[0], depth) != 0:
            return self._break(LEAF_MEANS)
        linalg.gemm(False, False, 1, depth, n_features, 1.0, v, s, 0.0, by_level)
        linalg.solve_rows(&law.factor[0], depth, by_level, 1)
        linalg.solve_rows_back(&law.factor[0], depth, by_level, 1)
        for p in range(n_features):
            v[p] += inverse[p] * linalg.dot(depth, &s[p * depth], by_level)
            total += v[p]
        if not isfinite(total):
            return self._break(LEAF_MEANS)
        for p in range(n_features):
            self.leaf_mean[b, p] = v[p]
        return 0

    # -- scores -------------------------------------------------------------------------------

    cdef int _update_scores(self) except -1:
        """x_i = U^-1 (omega_i + eps / sqrt(u_i)): p(x_i | b_i, u_i, y_i), equation (T8.1).

        The products that the loadings want are made on the way, while the rows are at hand.
        """
        self._need_sums()
        self._key = draws.bits(self._rng)
        self._run(SCORES_OF, self.n_pieces)
        self._has_products = True
        return 0

    cdef int _draw_scores(self, Law law, Py_ssize_t r) noexcept nogil:
        cdef Py_ssize_t t = self.piece_start[r], n, k, h, i, depth = self.depth
        cdef double sd
        cdef double* row
        cdef draws.RowStream stream
        self._clear_products(r)
        while t < self.piece_start[r + 1]:
            n = self._whiten_run(law, r, t, True)
            if n < 0:
                return self._break(SCORES)
            if self._fault == FLAT_SCORES:
                law.solve(n)
            for k in range(n):
                i = law.chosen[k]
                draws.start_row_stream(&stream, self._key, 0, i)
                sd = 1.0 / sqrt(self.row_precision[i])
                row = &law.omega[k * depth]
                for h in range(depth):
                    row[h] += sd * draws.normal(&stream.rng)
            if self._fault != FLAT_SCORES:
                law.solve(n)
            for k in range(n):
                memcpy(&self.score[law.chosen[k], 0], &law.omega[k * depth], depth * sizeof(double))
            self._add_chunk(law, r, n)
            t += n
        return 0

    # -- loadings and leaf means --------------------------------------------------------------

    cdef int _update_loadings(self) except -1:
        """psi given the scores, then (D_.p, M_.p) jointly, feature by feature: ``_system``."""
        self._need_sums()
        if not self._has_products:
            self._run(PRODUCTS, self.n_pieces)
        self._has_products = False
        with nogil:
            self._add_products()
            self._update_score_precisions()
        self._key = draws.bits(self._rng)
        self._run(FEATURES, self.n_features)
        return 0

    cdef void _sum_products(self, Law law, Py_ssize_t r) noexcept nogil:
        """sum u z z' and sum u z y' over the rows of a piece, z = (x, 1)."""
        cdef Py_ssize_t t = self.piece_start[r], n, k
        self._clear_products(r)
        while t < self.piece_start[r + 1]:
            n = min(<Py_ssize_t> CHUNK, self.piece_start[r + 1] - t)
            for k in range(n):
                law.chosen[k] = self.order[t + k]
            self._add_chunk(law, r, n)
            t += n

    cdef void _clear_products(self, Py_ssize_t r) noexcept nogil:
        cdef Py_ssize_t h, width = self.depth + 1
        for h in range(width * width):
            self.piece_gram[r, h] = 0.0
        for h in range(width * self.n_features):
            self.piece_side[r, h] = 0.0

    cdef void _add_chunk(self, Law law, Py_ssize_t r, Py_ssize_t n) noexcept nogil:
        """Add the products of n chosen rows."""
        cdef Py_ssize_t k, i, width = self.depth + 1, n_features = self.n_features
        cdef double* weighted
        for k in range(n):
            i = law.chosen[k]
            self._copy_row(i, &law.omega[k * width], &law.other[k * width])
            memcpy(&law.residual[k * n_features], &self.rows.X[i, 0], n_features * sizeof(double))
        weighted = &law.other[0] if self._has_tail else &law.omega[0]
        linalg.gemm(True, False, width, width, n, 1.0, weighted, &law.omega[0], 1.0,
                    &self.piece_gram[r, 0])
        linalg.gemm(True, False, width, n_features, n, 1.0, weighted, &law.residual[0], 1.0,
                    &self.piece_side[r, 0])

    cdef void _copy_row(self, Py_ssize_t i, double* row, double* weighted) noexcept nogil:
        """z_i = (x_i, 1), and u_i z_i where u_i is not 1."""
        cdef Py_ssize_t h
        cdef double u = self.row_precision[i]
        memcpy(row, &self.score[i, 0], self.depth * sizeof(double))
        row[self.depth] = 1.0
        if self._has_tail:
            for h in range(self.depth + 1):
                weighted[h] = u * row[h]

    cdef void _add_products(self) noexcept nogil:
        """Z'WZ and Z'W y of all rows, from the products of the pieces."""
        cdef Py_ssize_t r, b, h, depth = self.depth, n_features = self.n_features
        cdef double w
        cdef const double* side
        self.node_side[:self.n_nodes] = 0.0
        self.leaf_side[:self.n_leaves] = 0.0
        self._clear_grams(&self.node_gram[0, 0], &self.leaf_gram[0, 0])
        for r in range(self.n_pieces):
            b = self.piece_leaf[r]
            w = self._leaf_weight(b)
            side = &self.piece_side[r, 0]
            for h in range(depth):
                linalg.axpy(n_features, w, side + h * n_features,
                            &self.node_side[self.node_path[self.leaf_node[b], h], 0])
            linalg.axpy(n_features, w, side + depth * n_features, &self.leaf_side[b, 0])
            self._add_gram(b, &self.piece_gram[r, 0], &self.node_gram[0, 0],
                           &self.leaf_gram[0, 0])

    cdef double _leaf_weight(self, Py_ssize_t b) noexcept nogil:
        return 1.0 if self._fault == UNWEIGHTED_ROWS else self.kappa[b]

    cdef void _clear_grams(self, double* node_gram, double* leaf_gram) noexcept nogil:
        cdef Py_ssize_t n
        for n in range(self.n_nodes * self.max_depth):
            node_gram[n] = 0.0
        for n in range(self.n_leaves * (self.max_depth + 1)):
            leaf_gram[n] = 0.0

    cdef void _add_gram(
        self, Py_ssize_t b, const double* gram, double* node_gram, double* leaf_gram
    ) noexcept nogil:
        """Add kappa_b sum u z z' of rows of leaf b where the tree holds it.

        Row n of ``node_gram`` has the products with the nodes of n's path, row b of ``leaf_gram``
        the sums over the leaf of its path's scores and, last, of the weights.
        """
        cdef Py_ssize_t h, k, depth = self.depth, width = self.max_depth
        cdef double w = self._leaf_weight(b)
        cdef double* row
        for h in range(depth):
            row = &node_gram[self.node_path[self.leaf_node[b], h] * width]
            for k in range(h + 1):
                row[k] += w * gram[h * (depth + 1) + k]
        row = &leaf_gram[b * (width + 1)]
        for k in range(depth + 1):
            row[k] += w * gram[depth * (depth + 1) + k]

    cdef void _update_score_precisions(self) noexcept nogil:
        """psi_bl ~ Gamma(a + N_b / 2, a + sum u x_il^2 / 2)."""
        cdef Py_ssize_t b, h, k, r = 0, last, width = self.depth + 1
        cdef double total
        if not self._has_score_precision:
            return
        for b in range(self.n_leaves):
            last = r
            while last < self.n_pieces and self.piece_leaf[last] == b:
                last += 1
            for h in range(self.depth):
                total = 0.0
                for k in range(r, last):
                    total += self.piece_gram[k, h * width + h]
                self.psi[b, h] = draws.draw_gamma(
                    self._rng, self._score_shape + 0.5 * self.leaf_count[b],
                    self._score_shape + 0.5 * total,
                )
            r = last

    cdef int _draw_feature(self, Law law, System system, Py_ssize_t p) except -1 nogil:
        """Loadings and leaf means of one feature."""
        cdef draws.RowStream stream
        self._begin_feature(law, system, p)
        if system.eliminate(self._fault == FILLS_IN) != 0:
            return self._break(LOADINGS)
        draws.start_row_stream(&stream, self._key, 0, p)
        system.substitute(p, &stream.rng)
        return 0

    cdef int _begin_feature(self, Law law, System system, Py_ssize_t p) except -1 nogil:
        if self.rows.n_seen[p] == self.n_samples:
            return system.begin(p, &self.node_gram[0, 0], &self.leaf_gram[0, 0],
                                self.node_side, self.leaf_side)
        system.reserve()
        self._sum_grams_of(law, system, p)
        return system.begin(p, &system.node_gram[0, 0], &system.leaf_gram[0, 0],
                            self.node_side, self.leaf_side)

    cdef void _sum_grams_of(self, Law law, System system, Py_ssize_t p) noexcept nogil:
        """Z'WZ over the rows in which feature p is observed: O(N_p L^2)."""
        cdef Py_ssize_t b, t, i, h, n, width = self.depth + 1
        self._clear_grams(&system.node_gram[0, 0], &system.leaf_gram[0, 0])
        for b in range(self.n_leaves):
            for h in range(width * width):
                system.gram[h] = 0.0
            n = 0
            for t in range(self.leaf_start[b], self.leaf_start[b + 1]):
                i = self.order[t]
                if self.rows.is_observed[self.rows.pattern[i], p]:
                    self._copy_row(i, &law.omega[n * width], &law.other[n * width])
                    n += 1
                if n == CHUNK or (n > 0 and t + 1 == self.leaf_start[b + 1]):
                    linalg.gemm(True, False, width, width, n, 1.0,
                                &law.other[0] if self._has_tail else &law.omega[0],
                                &law.omega[0], 1.0, &system.gram[0])
                    n = 0
            self._add_gram(b, &system.gram[0], &system.node_gram[0, 0], &system.leaf_gram[0, 0])

    # -- precisions ---------------------------------------------------------------------------

    cdef int _update_precisions(self) except -1:
        """kappa, lambda and its rate, xi, phi, zeta given all else: (T10.1) to (T10.5)."""
        self._need_sums()
        self._run(SQUARES, self.n_pieces)
        with nogil:
            self._add_squares()
            if self._has_noise_scale and not self._whole:
                self._update_noise_scales()
            self._update_noise()
            self._update_mean_precisions()
            self._update_shrinkage()
        return 0

    cdef void _sum_squares(self, Law law, Py_ssize_t r) noexcept nogil:
        """sum u_i (y_ip - m_bp - x_i'd_p)^2 over the observed entries of a piece."""
        cdef Py_ssize_t t, n, k, h, p, i, g, b = self.piece_leaf[r]
        cdef Py_ssize_t depth = self.depth, n_features = self.n_features
        cdef double u
        cdef double* e
        cdef const double* y
        cdef const double* mean = &self.leaf_mean[b, 0]
        cdef double* total = &self.piece_square[r, 0]
        for p in range(n_features):
            total[p] = 0.0
        for h in range(depth):
            for p in range(n_features):
                law.scaled[h * n_features + p] = self.loading[
                    self.node_path[self.leaf_node[b], h], p
                ]
        t = self.piece_start[r]
        while t < self.piece_start[r + 1]:
            n = min(<Py_ssize_t> CHUNK, self.piece_start[r + 1] - t)
            for k in range(n):
                i = self.order[t + k]
                memcpy(&law.omega[k * depth], &self.score[i, 0], depth * sizeof(double))
                e = &law.residual[k * n_features]
                y = &self.rows.X[i, 0]
                for p in range(n_features):
                    e[p] = y[p] - mean[p]
            linalg.gemm(False, False, n, n_features, depth, -1.0, &law.omega[0],
                        &law.scaled[0], 1.0, &law.residual[0])
            for k in range(n):
                i = self.order[t + k]
                g = self.rows.pattern[i]
                e = &law.residual[k * n_features]
                if self.rows.n_observed[g] < n_features:
                    for p in range(n_features):
                        e[p] *= self.rows.is_observed[g, p]
                u = self.row_precision[i]
                for p in range(n_features):
                    total[p] += u * e[p] * e[p]
            t += n

    cdef void _add_squares(self) noexcept nogil:
        """rss_bp, the squares of the pieces by leaf."""
        cdef Py_ssize_t r
        self.rss[:self.n_leaves] = 0.0
        for r in range(self.n_pieces):
            linalg.axpy(self.n_features, 1.0, &self.piece_square[r, 0],
                        &self.rss[self.piece_leaf[r], 0])

    cdef void _update_noise_scales(self) noexcept nogil:
        """kappa_b ~ Gamma(a + n_entries / 2, a + sum_p lambda_p rss_bp / 2)."""
        cdef Py_ssize_t b, t, n_entries
        for b in range(self.n_leaves):
            n_entries = 0
            for t in range(self.leaf_start[b], self.leaf_start[b + 1]):
                n_entries += self.rows.n_observed[self.rows.pattern[self.order[t]]]
            self.kappa[b] = draws.draw_gamma(
                self._rng, self._scale_shape + 0.5 * n_entries, self._scale_shape
                + 0.5 * linalg.dot(self.n_features, &self.noise[0], &self.rss[b, 0]),
            )

    cdef void _update_mean_precisions(self) noexcept nogil:
        """xi_p ~ Gamma(g0 + B / 2, h0 + sum_b m_bp^2 / 2)."""
        cdef Py_ssize_t b, p
        cdef double total
        for p in range(self.n_features):
            total = 0.0
            for b in range(self.n_leaves):
                total += self.leaf_mean[b, p] * self.leaf_mean[b, p]
            self.xi[p] = draws.draw_gamma(
                self._rng, self._mean_shape + 0.5 * self.n_leaves, self._mean_rate + 0.5 * total
            )

    cdef void _update_shrinkage(self) noexcept nogil:
        """phi and zeta of all nodes: processes.multiplicative_gamma."""
        cdef Py_ssize_t n, p
        cdef double total
        for n in range(self.n_nodes):
            shrinkage.draw_local(self._rng, self.n_features, &self.loading[n, 0], self._tau(n),
                                 self._df, &self.local[n, 0])
            total = 0.0
            for p in range(self.n_features):
                total += self.local[n, p] * self.loading[n, p] * self.loading[n, p]
            self.weighted_square[n] = total
        shrinkage.draw_multipliers(
            self._rng, self.n_nodes, &self.parent[0], &self.weighted_square[0], self.n_features,
            self._root_shape, self._shape, &self.multiplier[0], &self.log_tau[0],
            &self.node_scratch[0], self._fault if self._fault <= CHILDREN_SHAPE else 0,
        )

    cdef void _update_noise(self) noexcept nogil:
        """lambda_p ~ Gamma(a0 + N_p / 2, b0 + sum_b kappa_b rss_bp / 2), or one for all."""
        cdef Py_ssize_t b, p
        cdef double total, shape = self._noise_shape, rate = self.noise_rate, sum_noise = 0.0
        for p in range(self.n_features):
            total = 0.0
            for b in range(self.n_leaves):
                total += self.kappa[b] * self.rss[b, p]
            shape += 0.5 * self.rows.n_seen[p]
            rate += 0.5 * total
            if not self._isotropic:
                self.noise[p] = draws.draw_gamma(self._rng, shape, rate)
                sum_noise += self.noise[p]
                shape, rate = self._noise_shape, self.noise_rate
        if self._isotropic:
            self.noise[0] = draws.draw_gamma(self._rng, shape, rate)
            sum_noise = self.noise[0]
            for p in range(1, self.n_features):
                self.noise[p] = self.noise[0]
        if self._sample_noise_rate:
            self.noise_rate = draws.draw_gamma(
                self._rng, self._noise_rate_shape
                + self._noise_shape * (1 if self._isotropic else self.n_features),
                self._noise_rate_rate + sum_noise,
            )

    # -- concentrations -----------------------------------------------------------------------

    cdef void _update_concentration(self) noexcept nogil:
        """alpha of each branching level given the tree: processes.ncrp."""
        cdef Py_ssize_t k, h, n, n_above
        if not self._sample_concentration:
            return
        for k in range(self.branch_level.shape[0]):
            h = self.branch_level[k]
            n_above = 0
            for n in range(-1, self.n_nodes):
                if (0 if n < 0 else self.level[n]) == h:
                    self.auxiliary[n + 1] = n_above
                    self.new_node[n_above] = self.n_samples if n < 0 else self.node_count[n]
                    self.n_children[n_above] = 0
                    n_above += 1
            if h < self.depth:
                for n in range(self.n_nodes):
                    if self.level[n] == h + 1:
                        self.n_children[self.auxiliary[self.parent[n] + 1]] += 1
            else:
                for n in range(self.n_leaves):
                    self.n_children[self.auxiliary[self.leaf_node[n] + 1]] += 1
            self.alpha[h] = ncrp.draw_concentration(
                self._rng, self.alpha[h], &self.new_node[0], &self.n_children[0], n_above,
                self._concentration_shape, self.concentration_rate[k],
                ncrp.NO_NESTED_FAULT,
            )

    # -- depth --------------------------------------------------------------------------------

    cdef bint _last_level_is_idle(self) noexcept nogil:
        """Whether in no branch the last axis stands out of the noise: equation (T12.1)."""
        cdef Py_ssize_t b, last = self.depth - 1
        cdef double pivot
        for b in range(self.n_leaves):
            if self._prepare(self._law, b, self.rows.n_patterns, 1) != 0:
                return False
            pivot = self._law.factor[last * self.depth + last]
            if pivot * pivot / self.psi[b, last] - 1.0 > PRUNE_TOLERANCE * fmax(
                1.0, self.n_features / <double> self.leaf_count[b]
            ):
                return False
        return True

    cdef int _cut_last_level(self) except -1 nogil:
        cdef Py_ssize_t b
        for b in range(self.n_leaves):
            self.leaf_node[b] = self.parent[self.leaf_node[b]]
        self.depth -= 1
        return self._compress()

    cdef int _add_level(self) except -1 nogil:
        """One more axis for every branch, with loadings and scores from the prior."""
        cdef Py_ssize_t b, i, node
        for b in range(self.n_leaves):
            node = self._new_node(self.leaf_node[b])
            self._draw_node(node)
            self.leaf_node[b] = node
            self.psi[b, self.depth] = self._prior_score_precision(b)
        for i in range(self.n_samples):
            self.score[i, self.depth] = draws.normal(self._rng) / sqrt(
                self.psi[self.branch[i], self.depth] * self.row_precision[i]
            )
        self.depth += 1
        return self._compress()

    cdef double _log_data_given_scores(self) except? -1.0:
        """sum_i log p(u_i) + log p(x_i | b_i, u_i) + log p(y_i | b_i, u_i, x_i), observed y."""
        cdef double total = 0.0, half_log_2pi = 0.9189385332046727, u
        cdef Py_ssize_t i, b, p, h
        self._need_sums()
        self._run(SQUARES, self.n_pieces)
        self._add_squares()
        for i in range(self.n_samples):
            b, u = self.branch[i], self.row_precision[i]
            if self._has_tail:
                total += log_gamma_density(u, 0.5 * self.tail_df[b], 0.5 * self.tail_df[b])
            for h in range(self.depth):
                total += (0.5 * log(self.psi[b, h] * u) - half_log_2pi
                          - 0.5 * self.psi[b, h] * u * self.score[i, h] * self.score[i, h])
            for p in range(self.n_features):
                if self.rows.is_observed[self.rows.pattern[i], p]:
                    total += 0.5 * log(u * self.kappa[b] * self.noise[p]) - half_log_2pi
        for b in range(self.n_leaves):
            for p in range(self.n_features):
                total -= 0.5 * self.kappa[b] * self.noise[p] * self.rss[b, p]
        return total

    # -- for the tests ------------------------------------------------------------------------

    def _densities(self, Py_ssize_t b):
        """Log density of every row in leaf b, shape (n_samples,)."""
        self._need_columns()
        self.owner[b] = REGULAR
        if self._fill_column(b) != 0:
            raise ArithmeticError(f"the covariance of leaf {b} is not positive definite")
        return np.array(self.log_density[b])

    def _eliminated(self, Py_ssize_t p):
        """The system of feature p and its factor: node rows, leaf rows, before and after."""
        cdef Scratch scratch = Scratch(self)
        self._need_sums()
        self._run(PRODUCTS, self.n_pieces)
        self._add_products()
        self._begin_feature(scratch.law, scratch.system, p)
        before = scratch.system.rows()
        if scratch.system.eliminate(False) != 0:
            raise ArithmeticError(f"the system of feature {p} is not positive definite")
        return before, scratch.system.rows()
