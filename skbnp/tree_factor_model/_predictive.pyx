"""What one draw of the tree factor model says of rows: densities, missing entries, scores.

Given a draw a row is a mixture over branches b with weights w_b, the nested Chinese restaurant's
predictive, of N(m_b, Omega_b), Omega_b = D_b' diag(1 / psi_b) D_b + (kappa_b Lambda)^-1, or of t
laws with Omega_b as their scale matrix. Weights are those of the present branches, renormalised:
what a new branch would take is left out, unless ``_new_branches`` has put some in.
"""

from libc.math cimport fmax, isinf

from skbnp.numerics cimport linalg
from skbnp.numerics._moments cimport merge_part
from skbnp.numerics.squares cimport add_column_squares
from skbnp.numerics.vector_math cimport log1p_all
from skbnp.tree_factor_model._rows cimport CHUNK, MOST_DENSE_FEATURES, Law, Rows, log_norm

import numpy as np
from scipy.linalg import cho_factor, cho_solve

# Numbers that a draw keeps at most for rows of which nothing is missing, and rows that axes are
# kept for: with more of either, the work that is saved is no longer most of all.
cdef enum:
    FEW_ROWS = 8
    MOST_KEPT = 50_000
    WIDTH = 8       # whitened coordinates that are squared while they are in the cache

# Branches with less than this share of a row add nothing to its moments that a double could hold,
# not to the variance of a far row either, for which branches that lie far apart count.
cdef double NEGLIGIBLE = 1e-60


def branch_paths(draw):
    """Nodes on the path of each branch, shape (n_branches, depth)."""
    depth = draw["score_precision"].shape[1]
    path = np.empty((len(draw["leaf_node"]), depth), dtype=np.intp)
    node = draw["leaf_node"]
    for level in range(depth - 1, -1, -1):
        path[:, level] = node
        node = draw["parent"][node]
    return path


def log_branch_weights(draw, count=None):
    """log w_b: the predictive product of N_c / (N_parent + alpha) down the path, renormalised.

    ``count`` are the rows of the branches, those of the draw unless given; -inf where there are
    none. A draw with new branches knows its weights.
    """
    if "log_weight" in draw:
        return draw["log_weight"]
    alpha, count = draw["concentration"], draw["leaf_count"] if count is None else count
    path, depth = branch_paths(draw), draw["score_precision"].shape[1]
    node_count = np.zeros(len(draw["parent"]))
    for level in range(depth):
        np.add.at(node_count, path[:, level], count)
    along = np.column_stack([np.full(len(count), count.sum()), node_count[path], count])
    log_weight = np.where(count > 0, 0.0, -np.inf)
    for level in np.flatnonzero(alpha):
        share = along[:, level + 1] / (along[:, level] + alpha[level])
        log_weight += np.log(share, where=share > 0, out=np.full(len(count), -np.inf))
    return log_weight - np.logaddexp.reduce(log_weight)


def noise_precisions(draw):
    """kappa_b Lambda of every branch, shape (n_branches, n_features)."""
    return draw["noise_scale"][:, np.newaxis] * draw["noise_precision"]


def branch_covariances(draw):
    """Omega_b of every branch, shape (n_branches, n_features, n_features)."""
    D, psi = draw["loadings"][branch_paths(draw)], draw["score_precision"]
    covariance = np.einsum("blp,bl,blq->bpq", D, 1 / psi, D, optimize=True)
    noise = 1 / noise_precisions(draw)
    diagonal = np.arange(D.shape[2])
    covariance[:, diagonal, diagonal] += noise
    return covariance


cdef class Draw:
    """A draw as the loops below want it: what predictions need of it, worked out once."""

    cdef:
        readonly Py_ssize_t n_branches, n_nodes, n_features, depth
        readonly object arrays                  # the draw itself
        readonly object log_weight              # (n_branches,) of the branches
        const double[:, ::1] loading, mean, psi
        const double[:, ::1] noise              # kappa Lambda
        const double[::1] tail_df
        Py_ssize_t[:, ::1] path
        object kept_covariance                  # (n_branches, n_features, n_features), if kept
        # Laws of complete rows, if kept: W of Omega^-1 = W'W, upper triangular, where levels are so
        # many that it is the smaller; else as `Law` has them.
        bint has_whole, is_dense, is_degenerate
        double[:, :, ::1] whitening             # (n_branches, n_features, n_features)
        double[:, ::1] whitened_mean            # (n_branches, n_features) W m
        double[:, :, ::1] axes                  # (n_branches, n_features, depth)
        double[:, ::1] root                     # (n_branches, n_features)
        double[::1] log_norm                    # (n_branches,)

    def __init__(self, draw):
        self.arrays = draw
        self.log_weight = log_branch_weights(draw)
        self.loading = np.ascontiguousarray(draw["loadings"])
        self.mean = np.ascontiguousarray(draw["leaf_mean"])
        self.psi = np.ascontiguousarray(draw["score_precision"])
        self.noise = noise_precisions(draw)
        self.tail_df = np.ascontiguousarray(draw["tail_df"])
        self.path = branch_paths(draw)
        self.n_branches, self.depth = draw["score_precision"].shape
        self.n_nodes, self.n_features = draw["loadings"].shape
        self.kept_covariance = None
        self.has_whole = self.is_degenerate = False
        self.is_dense = self.n_features <= 2 * self.depth

    def covariances(self, Rows rows):
        """Omega of all branches if rows have fewer entries than there are levels, else nothing."""
        few = np.any(np.asarray(rows.n_observed) < self.depth)
        if not few or self.n_features > MOST_DENSE_FEATURES:
            return np.zeros((0, 0, 0))
        if self.kept_covariance is not None:
            return self.kept_covariance
        covariance = branch_covariances(self.arrays)
        if covariance.size <= MOST_KEPT:
            self.kept_covariance = covariance
        return covariance

    cdef bint keeps_whole(self, Rows rows) except -1:
        """Whether these rows are complete, and the laws of such rows are kept."""
        cdef bint complete = rows.n_patterns == 1 and rows.n_observed[0] == rows.n_features
        cdef Py_ssize_t width = self.n_features if self.is_dense else self.depth
        if not complete or self.depth == 0 or self.is_degenerate:
            return False
        if not self.is_dense and rows.n_samples > FEW_ROWS:
            return False
        if not self.has_whole and self.n_branches * self.n_features * width <= MOST_KEPT:
            self._keep_whole(rows)
        return self.has_whole

    def _keep_whole(self, Rows rows):
        cdef Law law = Law(rows, self.depth)
        cdef Py_ssize_t b, n_features = self.n_features
        cdef double[:, :, ::1] factor
        axes = np.empty((self.n_branches, n_features, self.depth))
        root, norm = np.empty((self.n_branches, n_features)), np.empty(self.n_branches)
        for b in range(self.n_branches):
            self.prepare_scores(law, b, 0, self.depth + 1)
            axes[b] = np.reshape(law.axes[:n_features * self.depth], (n_features, self.depth))
            root[b], norm[b] = law.root, law.log_norm
        if self.is_dense:
            # By the matrix that axes subtract, so that no more digits are lost than they lose.
            factor = np.eye(n_features) - axes @ axes.transpose(0, 2, 1)
            for b in range(self.n_branches):
                if linalg.cholesky(&factor[b, 0, 0], n_features) != 0:
                    self.is_degenerate = True
                    return
            whitening = np.triu(factor) * root[:, np.newaxis]
            shift = np.einsum("bjp,bp->bj", whitening, self.mean)
        # Not anew under the hands of a thread that found them.
        if not self.has_whole:
            self.root, self.log_norm = root, norm
            if self.is_dense:
                self.whitening, self.whitened_mean = whitening, shift
            else:
                self.axes = axes
            self.has_whole = True

    cdef void whole_densities(self, Rows rows, double* scratch, double[:, ::1] out) noexcept nogil:
        """Log densities of complete rows by the laws that are kept: (T3.4) or (T3.5).

        ``scratch`` has room for ``whole_size`` numbers.
        """
        cdef Py_ssize_t b, start = 0, n, i
        while start < rows.n_samples:
            n = min(<Py_ssize_t> CHUNK, rows.n_samples - start)
            for b in range(self.n_branches):
                if self.is_dense:
                    self._dense_squares(rows, b, start, n, scratch + CHUNK, scratch)
                else:
                    self._axes_squares(rows, b, start, n, scratch + CHUNK, scratch)
                self._turn_to_densities(b, n, scratch)
                for i in range(n):
                    out[start + i, b] = scratch[i]
            start += n

    cdef Py_ssize_t whole_size(self) noexcept nogil:
        return CHUNK * (1 + WIDTH) + self.n_features + self.depth

    cdef void _dense_squares(
        self, Rows rows, Py_ssize_t b, Py_ssize_t start, Py_ssize_t n, double* z, double* square
    ) noexcept nogil:
        """|W (y_i - m)|^2, some coordinates of all rows at a time."""
        cdef Py_ssize_t j = 0, h, i, n_features = self.n_features
        for i in range(n):
            square[i] = 0.0
        while j < n_features:
            h = min(<Py_ssize_t> WIDTH, n_features - j)
            linalg.gemm_strided(
                False, False, h, n, n_features - j, 1.0, &self.whitening[b, j, j], n_features,
                &rows.column[j, start], rows.n_samples, 0.0, z, n,
            )
            add_column_squares(n, h, z, n, &self.whitened_mean[b, j], square)
            j += h

    cdef void _axes_squares(
        self, Rows rows, Py_ssize_t b, Py_ssize_t start, Py_ssize_t n, double* e, double* square
    ) noexcept nogil:
        cdef Py_ssize_t i, j, n_features = self.n_features, depth = self.depth
        cdef double* omega = e + n_features
        for i in range(n):
            for j in range(n_features):
                e[j] = (rows.X[start + i, j] - self.mean[b, j]) * self.root[b, j]
            linalg.gemm(False, False, 1, depth, n_features, 1.0, e, &self.axes[b, 0, 0], 0.0, omega)
            square[i] = fmax(linalg.dot(n_features, e, e) - linalg.dot(depth, omega, omega), 0.0)

    cdef void _turn_to_densities(self, Py_ssize_t b, Py_ssize_t n, double* square) noexcept nogil:
        cdef Py_ssize_t i
        cdef double df = self.tail_df[b], factor = -0.5
        if not isinf(df):
            factor = -0.5 * (df + self.n_features)
            for i in range(n):
                square[i] /= df
            log1p_all(n, square)
        for i in range(n):
            square[i] = self.log_norm[b] + factor * square[i]

    cdef int prepare(
        self, Law law, Py_ssize_t b, Py_ssize_t g, Py_ssize_t n_rows,
        const double[:, :, ::1] covariance,
    ) except -1 nogil:
        """Set up a law for densities and moments, by whichever matrix is smaller."""
        if (
            covariance.shape[0] > 0 and law.rows.n_observed[g] < self.depth
            and law.prepare_dense(
                g, &covariance[b, 0, 0], &self.mean[b, 0], self.tail_df[b]
            ) == 0
        ):
            return 0
        return self.prepare_scores(law, b, g, n_rows)

    cdef int prepare_scores(
        self, Law law, Py_ssize_t b, Py_ssize_t g, Py_ssize_t n_rows
    ) except -1 nogil:
        if law.prepare(
            g, n_rows, self.depth, &self.loading[0, 0], &self.path[b, 0], &self.mean[b, 0],
            &self.psi[b, 0], 1.0, &self.noise[b, 0], self.tail_df[b],
        ) != 0:
            with gil:
                raise ArithmeticError(f"the covariance of branch {b} is not positive definite")
        return 0


def prepared(draw):
    """The draw, or what is prepared of it, as what is prepared of it.

    All functions of a draw below take either.
    """
    return draw if isinstance(draw, Draw) else Draw(draw)


def log_densities(Rows rows, draw):
    """log p(y_i | b) over the observed entries, shape (n_rows, n_branches).

    0 for a row without any. O(N B L P), and for every pattern with n observed entries
    O(B L^2 (n + L)), or O(B n^3) where n < L. What a draw keeps spares complete rows that, all of
    them or a few, and up to three quarters of the rest.
    """
    cdef Draw d = prepared(draw)
    cdef double[:, ::1] out = np.empty((rows.n_samples, d.n_branches))
    cdef Law law
    cdef Py_ssize_t b, g, t, n, k
    cdef const double[:, :, ::1] covariance
    cdef double[::1] scratch
    if d.keeps_whole(rows):
        scratch = np.empty(d.whole_size())
        if d.is_dense:
            rows.need_columns()
        with nogil:
            d.whole_densities(rows, &scratch[0], out)
        return np.asarray(out)
    law, covariance = Law(rows, d.depth), d.covariances(rows)
    with nogil:
        for b in range(d.n_branches):
            for g in range(rows.n_patterns):
                t = rows.pattern_start[g]
                d.prepare(law, b, g, rows.pattern_start[g + 1] - t, covariance)
                while t < rows.pattern_start[g + 1]:
                    n = min(<Py_ssize_t> CHUNK, rows.pattern_start[g + 1] - t)
                    for k in range(n):
                        law.chosen[k] = rows.by_pattern[t + k]
                    law.whiten(n)
                    for k in range(n):
                        out[law.chosen[k], b] = law.log_density(law.square[k])
                    t += n
    return np.asarray(out)


def conditional_moments(Rows rows, draw):
    """Mean and variance of the missing entries given the observed ones, (n_rows, n_features) each.

    Under branch b E[y_mis] = m_mis + D_mis' x with x = G^-1 kappa D Lambda (y_obs - m), and the
    variance is D_mis' G^-1 D_mis + 1 / (kappa lambda); under a t law it is
    (df + q) / (df + P_obs - 2) times that, or infinite. Entries that are observed stand at 0.
    """
    cdef Draw d = prepared(draw)
    cdef double[:, ::1] weight = branch_probabilities(rows, d)
    cdef double[:, ::1] first = np.zeros((rows.n_samples, rows.n_features))
    cdef double[:, ::1] square = np.zeros((rows.n_samples, rows.n_features))
    cdef double[::1] total = np.zeros(rows.n_samples)
    cdef Law law = Law(rows, d.depth)
    cdef const double[:, :, ::1] covariance = d.covariances(rows)
    cdef Py_ssize_t depth = d.depth, n_features = rows.n_features
    cdef double[::1] column = np.empty(n_features * depth)
    cdef double[::1] variance = np.empty(n_features)
    cdef Py_ssize_t b, g, t, n, k, p, h, i, n_missing
    cdef bint is_set_up
    cdef Py_ssize_t width
    cdef double w, wider, mean
    with nogil:
        for b in range(d.n_branches):
            for g in range(rows.n_patterns):
                n_missing = n_features - rows.n_observed[g]
                is_set_up = False
                n = 0
                for t in range(rows.pattern_start[g], rows.pattern_start[g + 1]):
                    i = rows.by_pattern[t]
                    if n_missing > 0 and weight[i, b] > NEGLIGIBLE:
                        law.chosen[n] = i
                        n += 1
                    if n == 0 or (n < CHUNK and t + 1 < rows.pattern_start[g + 1]):
                        continue
                    if not is_set_up:
                        d.prepare(law, b, g, n, covariance)
                        width = rows.n_observed[g] if law.dense else depth
                        for k in range(n_missing):
                            p = rows.observed[g, rows.n_observed[g] + k]
                            for h in range(width):
                                if law.dense:
                                    column[k * width + h] = covariance[
                                        b, p, rows.observed[g, h]
                                    ]
                                else:
                                    column[k * width + h] = d.loading[d.path[b, h], p]
                        if width > 0:
                            linalg.solve_rows(&law.factor[0], width, &column[0], n_missing)
                        for k in range(n_missing):
                            p = rows.observed[g, rows.n_observed[g] + k]
                            variance[k] = linalg.dot(
                                width, &column[k * width], &column[k * width]
                            )
                            if law.dense:
                                # No less than the noise, whatever the difference rounds to.
                                variance[k] = fmax(
                                    covariance[b, p, p] - variance[k], 1.0 / d.noise[b, p]
                                )
                            else:
                                variance[k] += 1.0 / d.noise[b, p]
                        is_set_up = True
                    law.whiten(n)
                    while n > 0:
                        n -= 1
                        i = law.chosen[n]
                        w = weight[i, b]
                        wider = law.spread(law.square[n])
                        for k in range(n_missing):
                            p = rows.observed[g, rows.n_observed[g] + k]
                            # D_mis' G^-1 (..) = (U^-T D_mis)' omega, or with Omega alike
                            mean = d.mean[b, p] + linalg.dot(
                                width, &column[k * width], &law.omega[n * width]
                            )
                            merge_part(
                                total[i], w, mean, wider * variance[k], &first[i, p],
                                &square[i, p],
                            )
                        total[i] += w
    # Branches without a share were left out, and a row of which nothing is missing adds nothing.
    norm = np.where(np.asarray(total) > 0.0, total, 1.0)
    return np.asarray(first), np.asarray(square) / norm[:, np.newaxis]


def expected_scores(Rows rows, draw, const double[:, ::1] weight):
    """E[x_n 1(n on the row's path) | y_obs] for every node n, shape (n_rows, n_nodes).

    ``weight`` holds the probabilities of the branches, (n_rows, n_branches).
    """
    cdef Draw d = prepared(draw)
    cdef Law law = Law(rows, d.depth)
    cdef double[:, ::1] out = np.zeros((rows.n_samples, d.n_nodes))
    cdef Py_ssize_t b, g, t, n, k, h, i, depth = d.depth
    with nogil:
        for b in range(d.n_branches):
            for g in range(rows.n_patterns):
                t = rows.pattern_start[g]
                d.prepare_scores(law, b, g, rows.pattern_start[g + 1] - t)
                while t < rows.pattern_start[g + 1]:
                    n = min(<Py_ssize_t> CHUNK, rows.pattern_start[g + 1] - t)
                    for k in range(n):
                        law.chosen[k] = rows.by_pattern[t + k]
                    law.whiten(n)
                    law.solve(n)
                    for k in range(n):
                        i = law.chosen[k]
                        for h in range(depth):
                            out[i, d.path[b, h]] += weight[i, b] * law.omega[k * depth + h]
                    t += n
    return np.asarray(out)


def log_leave_one_out(rows, draw):
    """log p(y_i | all other rows' branches, parameters) of the training rows, shape (n_rows,).

    Branch weights count all other rows; a branch that would be empty without the row is left out,
    as new branches are everywhere in prediction.
    """
    log_density, own = log_densities(rows, draw), draw["branch"]
    out = np.empty(rows.n_samples)
    for b in range(len(draw["leaf_count"])):
        others = draw["leaf_count"] - (np.arange(len(draw["leaf_count"])) == b)
        mine = own == b
        log_weight = log_branch_weights(draw, others)
        out[mine] = np.logaddexp.reduce(log_density[mine] + log_weight, axis=1)
    return np.where(rows.n_entries > 0, out, 0.0)


def branch_probabilities(rows, draw):
    """P(b | y_obs) under one draw, shape (n_rows, n_branches)."""
    d = prepared(draw)
    log_density = log_densities(rows, d) + d.log_weight
    return np.exp(log_density - np.logaddexp.reduce(log_density, axis=1, keepdims=True))


def inverted(Phi, v, double noise_var, draw):
    """Mean of y given v = Phi y + e, e ~ N(0, noise_var), row by row, under one draw.

    The mixture over branches with weights proportional to w_b p(v | b), normal or t around
    Phi m_b with the scale matrix C_b = Phi Omega_b Phi' + noise_var I, of
    m_b + Omega_b Phi' C_b^-1 (v - Phi m_b).

    Phi is (n_measurements, n_features), v (n_rows, n_measurements); returns (n_rows, n_features).
    """
    draw = draw.arrays if isinstance(draw, Draw) else draw
    n_measurements, n_rows = Phi.shape[0], len(v)
    total, mean = np.full(n_rows, -np.inf), np.zeros((n_rows, Phi.shape[1]))
    log_weights, paths = log_branch_weights(draw), branch_paths(draw)
    noise = noise_precisions(draw)
    for b in range(len(paths)):
        # Omega Phi' without the P x P matrix.
        D = draw["loadings"][paths[b]]
        crossed = (D.T / draw["score_precision"][b]) @ (D @ Phi.T)
        crossed += Phi.T / noise[b][:, np.newaxis]
        C = Phi @ crossed
        C[np.arange(n_measurements), np.arange(n_measurements)] += noise_var
        factor = cho_factor(C, lower=True)
        off = v - Phi @ draw["leaf_mean"][b]
        solved = cho_solve(factor, off.T).T
        log_det = 2 * np.sum(np.log(np.diag(factor[0])))
        df, square = draw["tail_df"][b], np.sum(off * solved, axis=1)
        log_weight = log_weights[b] + log_norm(n_measurements, log_det, df)
        if np.isinf(df):
            log_weight = log_weight - 0.5 * square
        else:
            log_weight = log_weight - 0.5 * (df + n_measurements) * np.log1p(square / df)
        before, total = total, np.logaddexp(total, log_weight)
        mean *= np.exp(before - total)[:, np.newaxis]
        mean += np.exp(log_weight - total)[:, np.newaxis] * (
            draw["leaf_mean"][b] + solved @ crossed.T
        )
    return mean


def sample_rows(draw, n_rows, rng):
    """Rows from the predictive distribution of one draw, (n_rows, n_features).

    rng is a numpy.random.Generator.
    """
    weight = np.exp(log_branch_weights(draw))
    branch = rng.choice(len(weight), size=n_rows, p=weight / weight.sum())
    psi, df = draw["score_precision"][branch], draw["tail_df"][branch]
    u = np.ones(n_rows)
    heavy = np.isfinite(df)
    u[heavy] = np.maximum(rng.gamma(df[heavy] / 2, 2 / df[heavy]), 1e-300)
    psi = u[:, np.newaxis] * psi
    x = rng.standard_normal(psi.shape) / np.sqrt(psi)
    D = draw["loadings"][branch_paths(draw)[branch]]
    w = u[:, np.newaxis] * noise_precisions(draw)[branch]
    noise = rng.standard_normal(w.shape) / np.sqrt(w)
    return draw["leaf_mean"][branch] + np.einsum("il,ilp->ip", x, D) + noise
