"""What a network whose columns are leaves says of rows: by fantasies, or by points around modes.

A hidden unit has a_k = b_k + sum_j w_jk u_j + s_k e_k, e_k ~ N(0, 1), u_k = tanh(a_k / 2), over
its parents j among the hidden units. Given u the columns are independent and normal, x_d ~ N(b_d +
W_d'u, 1 / nu_d). Where the law of the top units is a mixture, b and s are those of a component c.

Fantasies cost little, but few are near a row where columns are many or follow their parents
closely. There the noises e are sampled around modes of their law given the row,
    -log p(e | row, c) = |e|^2 / 2 + |r(e)|^2 / 2 + constant,
r the standardised residuals of the observed columns. Its Gauss-Newton Hessian I + J'J, J = dr/de,
differs from I by no more dimensions than there are columns: all solutions are of LANES equations.
"""

from libc.math cimport INFINITY, exp, fabs, log, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset
from numpy.random cimport bitgen_t

from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.likelihoods.nonlinear_gaussian._exponential cimport quick_squash
from skbnp.likelihoods.nonlinear_gaussian._fantasies cimport (
    Fantasies, weighted_moments, weights_from_logs,
)
from skbnp.likelihoods.nonlinear_gaussian._proposals cimport (
    DEFENSIVE, ENOUGH, LOOSE, NEXT_TO, NOISIER,
)
from skbnp.numerics cimport linalg, rng as random, special
from skbnp.numerics.rng cimport RowStream
from skbnp.numerics.rows cimport row_key
from skbnp.numerics.special cimport LOG_2_PI

import numpy as np

cdef enum:
    LANES = 8           # columns, those that are not there or not observed being 0
    SQUARE = 64         # LANES^2
    STARTS = 2          # of the search for modes, from each half of the fantasies
    MOST_MODES = 4
    MOST_TERMS = 9      # of the proposals' density: two for each mode, and the prior
    N_STEPS = 15        # of a search, at most

# Columns up to which rows are compared with fantasies, and the effective number of a half of these
# below which points do it.
FEW_FEATURES = LANES
cdef double FEWEST = 5.0
# Noises of starts that a network keeps, at most.
cdef Py_ssize_t MOST_KEPT = 50_000


cdef struct Mode:
    Py_ssize_t component
    double evidence, log_share
    double[2] half_log_det      # of I + J'J / NOISIER^2
    double[2][SQUARE] factor    # of NOISIER^2 I + J J'
    double* center              # (n_hidden,)
    double* jacobian            # (n_hidden, LANES)


cdef class LeafNetwork:
    """A network, made ready for any rows; nothing of it changes, so several threads may ask it.

    Parameters
    ----------
    edges : array of shape (n_edges, 2)
        [parent, child]; nodes are columns first, then hidden units.
    weights : array of shape (n_edges,)
    biases, precision : array of shape (n_nodes,)
    hidden : array of shape (n_hidden,)
        The hidden units, parents before children.
    mean : array of shape (n_columns, n_fantasies)
        Means of the columns in each fantasy.
    noise : array of shape (n_hidden, n_fantasies)
        e of the units ``hidden`` in each.
    components : tuple, default=None
        Log weights (C,), means and precisions (C, K) of the last K nodes, which have no parents.
    component : array of shape (n_fantasies,), default=None
        That of each fantasy.
    """

    cdef:
        readonly Py_ssize_t n_columns, n_hidden
        Fantasies one, other                # two halves of the fantasies
        double[:, ::1] weight               # (n_hidden, LANES), into columns
        double[::1] column_bias, column_precision   # (LANES,)
        double[:, ::1] bias, spread         # (n_components, n_hidden)
        double[::1] log_weight, passed      # (n_components,), and their sums so far
        Py_ssize_t[::1] parent_start, parent    # of hidden units among themselves
        double[::1] link
        float[:, :, ::1] start              # (2, n_starts, n_hidden), noises of the first of a half
        Py_ssize_t[:, ::1] start_component  # (2, n_starts)

    def __init__(self, edges, weights, biases, precision, hidden, mean, noise, components=None,
                 component=None):
        edges, hidden = np.asarray(edges, dtype=np.intp).reshape(-1, 2), np.asarray(hidden)
        self.n_columns, self.n_hidden = D, H = len(mean), len(hidden)
        half = (mean.shape[1] + 1) // 2
        self.one = Fantasies(mean[:, :half], precision[:D])
        self.other = Fantasies(mean[:, half:], precision[:D])

        place = np.full(D + H, -1)
        place[hidden] = np.arange(H)
        into_columns = edges[:, 1] < D
        weight = np.zeros((H, LANES))
        parents, children = edges[into_columns].T
        weight[place[parents], children] = weights[into_columns]
        self.weight = weight
        lanes = np.zeros((2, LANES))
        lanes[:, :D] = biases[:D], precision[:D]
        self.column_bias, self.column_precision = lanes.copy()

        parents, children = place[edges[~into_columns]].T
        order = np.argsort(children, kind="stable")
        self.parent_start = np.searchsorted(children[order], np.arange(H + 1)).astype(np.intp)
        self.parent = np.ascontiguousarray(parents[order])
        self.link = np.ascontiguousarray(weights[~into_columns][order])

        log_weight = np.zeros(1) if components is None else components[0]
        C = len(log_weight)
        bias, spread = np.tile(biases[hidden], (C, 1)), np.tile(precision[hidden] ** -0.5, (C, 1))
        if components is not None:
            top = place[len(place) - components[1].shape[1]:]
            bias[:, top], spread[:, top] = components[1], components[2] ** -0.5
        self.bias, self.spread = bias, spread
        share = np.exp(log_weight - np.max(log_weight))
        self.passed = np.cumsum(share / share.sum())
        self.log_weight = np.log(share / share.sum())

        component = np.zeros(mean.shape[1], dtype=np.intp) if component is None else component
        n_starts = max(1, min(mean.shape[1] - half, MOST_KEPT // (2 * max(1, H))))
        halves = [slice(first, first + n_starts) for first in (0, half)]
        self.start = np.array([noise[:, some].T for some in halves], dtype=np.float32, order="C")
        self.start_component = np.stack([component[some] for some in halves]).astype(np.intp)

    def log_densities(self, A, seed, t, n_points):
        """Of the observed entries of each row the log density, and how many samples it rests on.

        Each half of the fantasies is judged by the other: those that are kept by themselves would
        be the ones that happen to be high. exp of the log density is unbiased.

        Parameters
        ----------
        A : array of shape (n_rows, n_columns)
            NaN where an entry is missing.
        seed, t : int
            Random numbers of points depend on seed, t and the row's values alone.
        n_points : int
            Of each row that has few fantasies.

        Returns
        -------
        log_density, n_effective : ndarray of shape (n_rows,)
        """
        return self._answers(A, seed, t, n_points, False)[:2]

    def moments(self, A, seed, t, n_points):
        """Mean and variance (n_rows, n_columns) of missing entries, 0 of observed ones."""
        return self._answers(A, seed, t, n_points, True)[2:]

    def _answers(self, A, seed, t, n_points, bint cells):
        cdef const double[:, ::1] x = np.ascontiguousarray(A, dtype=np.float64)
        cdef Py_ssize_t n_rows = x.shape[0], D = self.n_columns if cells else 0, i
        # Log density, effective number of samples, and mean and variance of each column.
        answers = np.empty((n_rows, 2 + 2 * D))
        cdef double[:, ::1] out = answers
        cdef Points points = Points(self, seed, t, n_points, D)
        with nogil:
            for i in range(n_rows):
                points.answer(&x[i, 0], &out[i, 0])
        return answers[:, 0], answers[:, 1], answers[:, 2:2 + D], answers[:, 2 + D:]


cdef struct Answer:
    double log_density, n_effective
    double[LANES] mean, variance    # of columns that are asked for; 0 where they are observed


cdef class Points:
    """What a network says of one row after the other. Not for several threads at once.

    Parameters
    ----------
    net : LeafNetwork
    seed, t : int
    n_points : int
        Of the importance sampling of a row's noises.
    n_asked : int
        The number of columns if moments of missing entries are asked for, else 0.
    """

    cdef:
        LeafNetwork net
        uint64_t seed, t
        Py_ssize_t n_points, n_asked, n_modes
        Mode[MOST_MODES] mode
        double[LANES] x, root       # the row's entries and 1 / sd of the columns, 0 if missing
        double[LANES] fitted        # means of the columns
        double[LANES] residual
        double[::1] scratch
        double* noise               # (n_hidden,) each
        double* step
        double* u
        double* slope
        double* gradient            # (n_hidden, LANES) dr/du
        double* score               # (n_points,)
        double* means               # (n_columns, n_points)
        double* points              # (n_hidden, n_points)
        double* half                # (2, n_fantasies of a half), their weights
        Py_ssize_t* component       # (n_points,)
        double constant

    def __cinit__(self, LeafNetwork net, uint64_t seed, uint64_t t, Py_ssize_t n_points,
                  Py_ssize_t n_asked):
        cdef Py_ssize_t H = net.n_hidden, m
        self.net, self.seed, self.t = net, seed, t
        self.n_points, self.n_asked = n_points, n_asked
        self.scratch = np.empty(
            (4 + LANES + MOST_MODES * (1 + LANES)) * H + (2 + net.n_columns + H) * n_points
            + 2 * net.one.mean.shape[1]
        )
        self.noise = &self.scratch[0]
        self.step = self.noise + H
        self.u = self.step + H
        self.slope = self.u + H
        self.gradient = self.slope + H
        self.score = self.gradient + LANES * H
        self.means = self.score + n_points
        self.points = self.means + net.n_columns * n_points
        for m in range(MOST_MODES):
            self.mode[m].center = self.points + H * n_points + m * (1 + LANES) * H
            self.mode[m].jacobian = self.mode[m].center + H
        self.half = self.points + H * n_points + MOST_MODES * (1 + LANES) * H
        self.component = <Py_ssize_t*> (self.half + 2 * net.one.mean.shape[1])

    cdef void answer(self, const double* x, double* out) noexcept nogil:
        """Log density, effective number of samples, mean and variance of what is asked for.

        The mean over both halves of the fantasies; over points in place of a half of which the
        other says that fantasies are few.
        """
        cdef Py_ssize_t n = self.net.one.mean.shape[1]
        cdef Answer one, other, better
        cdef bint few, others_few
        self._weigh(self.net.one, x, self.half, &one)
        self._weigh(self.net.other, x, self.half + n, &other)
        few, others_few = one.n_effective < FEWEST, other.n_effective < FEWEST
        if few or others_few:
            self._sample(x, &better)
        _join(self.n_asked, &better if others_few else &one, &better if few else &other, out)
        if few and others_few:
            out[1] = better.n_effective

    cdef void _weigh(
        self, Fantasies half, const double* x, double* weight, Answer* answer
    ) noexcept nogil:
        """What a half of the fantasies says of a row, and the weights of these."""
        _clear(answer)
        answer.log_density = half.weigh(x, weight, &answer.n_effective)
        if self.n_asked > 0:
            half.average(x, weight, answer.mean, answer.variance)

    cdef void _sample(self, const double* x, Answer* answer) noexcept nogil:
        """What points around modes say of the row whose fantasies have been weighed."""
        cdef RowStream stream
        _clear(answer)
        random.start_row_stream(&stream, self.seed, self.t, row_key(x, self.net.n_columns))
        self.expand(x)
        answer.log_density = self.estimate(&stream.rng, &answer.n_effective)
        if self.n_asked > 0:
            self.average(x, answer.mean, answer.variance)

    # -- modes

    cdef void expand(self, const double* x) noexcept nogil:
        """Modes of a row, sought from the fantasies that are next to it.

        The weights of fantasies from which it seeks are lost.
        """
        cdef Py_ssize_t h, d, f, k, best, n = self.net.start.shape[1], _
        cdef double* weight
        cdef double highest
        self.constant = 0.0
        for d in range(LANES):
            self.x[d], self.root[d] = 0.0, 0.0
            if d < self.net.n_columns and x[d] == x[d]:
                self.x[d], self.root[d] = x[d], sqrt(self.net.column_precision[d])
                self.constant += 0.5 * (log(self.net.column_precision[d]) - LOG_2_PI)
        self.n_modes = 0
        for h in range(2):
            weight = self.half + h * self.net.one.mean.shape[1]
            for _ in range(STARTS):
                best, highest = 0, weight[0]
                for f in range(1, n):
                    if weight[f] > highest:
                        best, highest = f, weight[f]
                weight[best] = -1.0
                for k in range(self.net.n_hidden):
                    self.mode[self.n_modes].center[k] = self.net.start[h, best, k]
                self.mode[self.n_modes].component = self.net.start_component[h, best]
                self.n_modes += self._is_found(&self.mode[self.n_modes])
        self._share()

    cdef double _energy(self, Py_ssize_t c, const double* noise) noexcept nogil:
        """-log p(e | row, c) up to a constant; sets u, slopes, fitted means and residuals."""
        cdef Py_ssize_t k, e, d
        cdef double a, squares = 0.0
        memcpy(self.fitted, &self.net.column_bias[0], LANES * sizeof(double))
        for k in range(self.net.n_hidden):
            squares += noise[k] * noise[k]
            a = self.net.bias[c, k] + self.net.spread[c, k] * noise[k]
            for e in range(self.net.parent_start[k], self.net.parent_start[k + 1]):
                a += self.net.link[e] * self.u[self.net.parent[e]]
            self.u[k] = a = quick_squash(a)
            self.slope[k] = 0.5 * (1.0 - a * a)
            for d in range(LANES):
                self.fitted[d] += a * self.net.weight[k, d]
        for d in range(LANES):
            self.residual[d] = self.root[d] * (self.fitted[d] - self.x[d])
            squares += self.residual[d] * self.residual[d]
        return 0.5 * squares

    cdef void _differentiate(self, Mode* mode, double* gram) noexcept nogil:
        """J where the energy was last taken, and J J' (LANES, LANES)."""
        cdef Py_ssize_t k, e, d, i
        cdef double x
        cdef double* row
        cdef double* above
        memset(gram, 0, SQUARE * sizeof(double))
        for k in range(self.net.n_hidden):
            for d in range(LANES):
                self.gradient[k * LANES + d] = self.root[d] * self.net.weight[k, d]
        for k in range(self.net.n_hidden - 1, -1, -1):
            row = self.gradient + k * LANES
            for d in range(LANES):
                row[d] *= self.slope[k]
            for e in range(self.net.parent_start[k], self.net.parent_start[k + 1]):
                above = self.gradient + self.net.parent[e] * LANES
                for d in range(LANES):
                    above[d] += self.net.link[e] * row[d]
            above = mode.jacobian + k * LANES
            for d in range(LANES):
                above[d] = self.net.spread[mode.component, k] * row[d]
            for i in range(self.net.n_columns):
                x = above[i]
                for d in range(LANES):
                    gram[i * LANES + d] += x * above[d]

    cdef bint _is_found(self, Mode* mode) noexcept nogil:
        """Descend from its center by damped steps of Gauss and Newton; whether it is a new mode."""
        cdef Py_ssize_t k, H = self.net.n_hidden, D = self.net.n_columns, _
        cdef double[SQUARE] gram
        cdef double damping = 0.1, value, new = INFINITY, gain
        value = self._energy(mode.component, mode.center)
        for _ in range(N_STEPS):
            self._differentiate(mode, gram)
            for k in range(H):
                self.step[k] = mode.center[k] + _dot(
                    mode.jacobian + k * LANES, self.residual
                )
            new = INFINITY
            while damping < 1e8:
                # ((1 + damping) I + J'J)^-1 of the gradient
                memcpy(self.noise, self.step, H * sizeof(double))
                if _factorise(D, gram, 1.0 + damping, mode.factor[0]) != 0:
                    return False
                _take_explained(H, D, mode.factor[0], mode.jacobian, self.noise)
                for k in range(H):
                    self.noise[k] = mode.center[k] - self.noise[k] / (1.0 + damping)
                new = self._energy(mode.component, self.noise)
                if new < value:
                    break
                damping *= 5.0
            if not new < value:
                break
            memcpy(mode.center, self.noise, H * sizeof(double))
            damping *= 0.2
            gain, value = value - new, new
            if gain < ENOUGH or self._is_known(mode):
                break
        if not value < INFINITY or self._is_known(mode):
            return False
        self._energy(mode.component, mode.center)
        self._differentiate(mode, gram)
        for k in range(2):
            if _factorise(D, gram, NOISIER[k] * NOISIER[k], mode.factor[k]) != 0:
                return False
            mode.half_log_det[k] = (
                0.5 * linalg.log_det(mode.factor[k], D) - D * log(NOISIER[k])
            )
        mode.evidence = self.net.log_weight[mode.component] - value - mode.half_log_det[0]
        return True

    cdef bint _is_known(self, const Mode* mode) noexcept nogil:
        """Whether another mode is next to this one, in units of the noises' own spread."""
        cdef Py_ssize_t m, k
        cdef double apart
        for m in range(self.n_modes):
            if self.mode[m].component != mode.component:
                continue
            apart = 0.0
            for k in range(self.net.n_hidden):
                apart = max(apart, fabs(self.mode[m].center[k] - mode.center[k]))
            if apart < NEXT_TO:
                return True
        return False

    cdef void _share(self) noexcept nogil:
        """Shares of the modes by Laplace's evidences."""
        cdef Py_ssize_t m
        cdef double[MOST_MODES] evidence
        cdef double total
        if self.n_modes == 0:
            return
        for m in range(self.n_modes):
            evidence[m] = self.mode[m].evidence
        total = special.log_sum_exp(evidence, self.n_modes)
        for m in range(self.n_modes):
            self.mode[m].log_share = log(1.0 - DEFENSIVE) + evidence[m] - total

    # -- points

    cdef double estimate(self, bitgen_t* rng, double* n_effective) noexcept nogil:
        """log of an unbiased estimate of the row's density; keeps points and their weights."""
        cdef Py_ssize_t j, k, c, n = self.n_points
        cdef double shift = random.uniform(rng)
        for j in range(n):
            c = self.component[j] = self._draw(rng, (j + shift) / n)
            self.score[j] = self.net.log_weight[c] - self._log_proposal(c)
            for k in range(self.net.n_hidden):
                self.points[k * n + j] = self.noise[k]
        self._take_energies()
        return self.constant + weights_from_logs(n, self.score, n_effective)

    cdef void _take_energies(self) noexcept nogil:
        """Take the energies of all points from their scores, unit by unit; sets their means.

        ``_energy`` for many points at once, whose noises become u.
        """
        cdef Py_ssize_t j, k, e, d, n = self.n_points
        cdef double w, x
        cdef double* row
        cdef const double* above
        for d in range(self.net.n_columns):
            for j in range(n):
                self.means[d * n + j] = self.net.column_bias[d]
        for k in range(self.net.n_hidden):
            row = self.points + k * n
            for j in range(n):
                self.score[j] -= 0.5 * row[j] * row[j]
                row[j] *= self.net.spread[self.component[j], k]
                row[j] += self.net.bias[self.component[j], k]
            for e in range(self.net.parent_start[k], self.net.parent_start[k + 1]):
                add(n, self.net.link[e], self.points + self.net.parent[e] * n, row)
            squash_all(n, row, row)
            for d in range(self.net.n_columns):
                if self.net.weight[k, d] != 0.0:
                    add(n, self.net.weight[k, d], row, self.means + d * n)
        for d in range(self.net.n_columns):
            above, x, w = self.means + d * n, self.x[d], self.root[d]
            for j in range(n):
                self.score[j] -= 0.5 * (w * (above[j] - x)) * (w * (above[j] - x))
        for j in range(n):
            if not self.score[j] > -INFINITY:
                self.score[j] = -INFINITY

    cdef void average(self, const double* x, double* mean, double* variance) noexcept nogil:
        """Mean and variance of the missing entries over the points of the last estimate."""
        cdef Py_ssize_t d, n = self.n_points
        for d in range(self.net.n_columns):
            if x[d] != x[d]:
                weighted_moments(n, self.score, self.means + d * n, &mean[d], &variance[d])
                variance[d] += 1.0 / self.net.column_precision[d]

    cdef Py_ssize_t _draw(self, bitgen_t* rng, double place) noexcept nogil:
        """A point of the proposal at which so much of the shares is passed; its component."""
        cdef Py_ssize_t k, m = 0, c = 0, h, H = self.net.n_hidden
        cdef double share = 0.0
        cdef double[LANES] more
        for k in range(H):
            self.noise[k] = random.normal(rng)
        while m < self.n_modes:
            share = exp(self.mode[m].log_share)
            if place < share:
                break
            place -= share
            m += 1
        if m == self.n_modes:
            place /= DEFENSIVE if m > 0 else 1.0
            while c < self.net.passed.shape[0] - 1 and place >= self.net.passed[c]:
                c += 1
            return c
        h = place < LOOSE * share
        for k in range(LANES):
            more[k] = random.normal(rng) / NOISIER[h]
        for k in range(H):
            self.noise[k] += _dot(self.mode[m].jacobian + k * LANES, more)
        _take_explained(
            H, self.net.n_columns, self.mode[m].factor[h], self.mode[m].jacobian, self.noise
        )
        for k in range(H):
            self.noise[k] += self.mode[m].center[k]
        return self.mode[m].component

    cdef double _log_proposal(self, Py_ssize_t c) noexcept nogil:
        """log density of (c, e) that points are drawn from, times (2 pi)^(n_hidden / 2)."""
        cdef Py_ssize_t k, d, m, h, n_terms = 1, H = self.net.n_hidden
        cdef double off, squares = 0.0, explained
        cdef double[LANES] along
        cdef double[MOST_TERMS] term
        cdef const double* row
        for k in range(H):
            squares += self.noise[k] * self.noise[k]
        term[0] = self.net.log_weight[c] - 0.5 * squares
        term[0] += log(DEFENSIVE) if self.n_modes > 0 else 0.0
        for m in range(self.n_modes):
            if self.mode[m].component != c:
                continue
            squares, explained = 0.0, 0.0
            memset(along, 0, LANES * sizeof(double))
            for k in range(H):
                off = self.noise[k] - self.mode[m].center[k]
                squares += off * off
                row = self.mode[m].jacobian + k * LANES
                for d in range(LANES):
                    along[d] += off * row[d]
            for d in range(LANES):
                explained += along[d] * along[d]
            for h in range(2):
                term[n_terms] = self.mode[m].log_share + log(LOOSE if h == 1 else 1.0 - LOOSE)
                term[n_terms] += self.mode[m].half_log_det[h]
                term[n_terms] -= 0.5 * (squares + explained / (NOISIER[h] * NOISIER[h]))
                n_terms += 1
        return special.log_sum_exp(term, n_terms)


cdef void _clear(Answer* answer) noexcept nogil:
    memset(answer, 0, sizeof(Answer))
    answer.n_effective = 1.0


cdef void _join(
    Py_ssize_t n_asked, const Answer* one, const Answer* other, double* out
) noexcept nogil:
    """The mean of two estimates, each with the samples of its own."""
    cdef double high = max(one.log_density, other.log_density), p = 0.5, q = 0.5, off
    cdef Py_ssize_t d
    if high > -INFINITY:
        p, q = exp(one.log_density - high), exp(other.log_density - high)
    out[0] = high + log(0.5 * (p + q)) if high > -INFINITY else high
    out[1] = one.n_effective + other.n_effective
    p, q = p / (p + q), q / (p + q)
    for d in range(n_asked):
        off = one.mean[d] - other.mean[d]
        out[2 + d] = p * one.mean[d] + q * other.mean[d]
        out[2 + n_asked + d] = p * one.variance[d] + q * other.variance[d] + p * q * off * off


cdef inline void add(Py_ssize_t n, double w, const double* x, double* out) noexcept nogil:
    """out += w x"""
    cdef Py_ssize_t j
    for j in range(n):
        out[j] += w * x[j]


cdef inline double _dot(const double* x, const double* y) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t d
    for d in range(LANES):
        total += x[d] * y[d]
    return total


cdef int _factorise(
    Py_ssize_t n, const double* gram, double more, double* factor
) noexcept nogil:
    """The factor (n, n) of more I + J J'; non-zero if that fails."""
    cdef Py_ssize_t d
    for d in range(n):
        memcpy(factor + d * n, gram + d * LANES, n * sizeof(double))
        factor[d * n + d] += more
    return linalg.cholesky(factor, n)


cdef void _take_explained(
    Py_ssize_t n_hidden, Py_ssize_t n, const double* factor, const double* jacobian, double* v
) noexcept nogil:
    """v - J'(x I + J J')^-1 J v, which is (I + J'J / x)^-1 v, from the factor of x I + J J'."""
    cdef double[LANES] along
    cdef Py_ssize_t k, d
    memset(along, 0, LANES * sizeof(double))
    for k in range(n_hidden):
        for d in range(LANES):
            along[d] += v[k] * jacobian[k * LANES + d]
    linalg.solve_transposed(factor, n, along)
    linalg.solve(factor, n, along)
    for k in range(n_hidden):
        v[k] -= _dot(jacobian + k * LANES, along)
