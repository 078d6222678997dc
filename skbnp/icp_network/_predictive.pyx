"""What one draw of the network says of rows: densities, missing entries, activations, outputs.

Rows stand as the values A (n_rows, D) of the observed nodes, NaN where one is not known:
pre-activations, or what it says to its children of an input. All else of a row is integrated out
by samples: nodes that the known entries descend from, weighed by the likelihood of the entries,
and nodes that they do not, whose law that leaves alone.

Samples are fantasies from the network's prior, the same noises for all rows; or they are annealed
from there to each row. Nothing of a draw is changed, and a row's random numbers depend on seed, t
and the row's own values alone: the functions may be called from several threads on any blocks, and
a row's answer is the same in any company, up to the rounding of matrix products.
"""

from libc.math cimport INFINITY, erfc, exp, log, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

from skbnp.icp_network._feedforward cimport BLOCK, HIDDEN, INPUT, OBSERVED, Feedforward
from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.numerics cimport rng as random, special
from skbnp.numerics.rng cimport RowStream

import numpy as np

from skbnp.icp_network._model import activations_from
from skbnp.numerics.rows import patterns, row_keys

cdef enum:
    NODES = 21      # of Gauss-Hermite quadrature over a unit's own noise
    GRID = 9        # of the trapezoid rule over the largest latent
    LEFT_OUT = 255  # a kind that Feedforward does not know

cdef enum:
    VALUES, SQUASHED, CLASSES

cdef uint64_t NO_ROW = 0                    # the stream of what all rows of a draw share
cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15   # 2^64 over the golden ratio, between copies of a row
cdef double GRID_STEP = 1.25
# Effective number of fantasies below which "auto" anneals a row.
cdef double FEWEST = 5.0
cdef double POWER = 4.0                     # of the annealing's schedule


# -- a network given what is known ------------------------------------------------------------


def _part(draw, kind):
    """The nodes that are not left out as a Feedforward, and which they are."""
    order = np.argsort(-draw["order"], kind="stable")
    nodes = order[kind[order] != LEFT_OUT]
    position = np.full(len(order), -1)
    position[nodes] = np.arange(len(nodes))
    parents, children = np.asarray(draw["edges"]).reshape(-1, 2).T
    kept = np.flatnonzero((kind[children] == HIDDEN) | (kind[children] == OBSERVED))
    kept = kept[np.argsort(position[children[kept]], kind="stable")]
    start = np.searchsorted(position[children[kept]], np.arange(len(nodes) + 1))
    net = Feedforward(
        kind[nodes], start, position[parents[kept]], draw["weights"][kept], draw["biases"][nodes],
        1.0 / np.sqrt(draw["unit_precision"][nodes]),
    )
    return net, nodes


cdef class Particles:
    """Values of all nodes for up to BLOCK rows, or copies of them, which know the same entries.

    ``above`` has what is known and what that descends from; ``rest`` the others, with the
    nodes of ``above`` as inputs, and those of them without children, whose means alone matter,
    as observed.
    """

    cdef:
        readonly Feedforward above, rest
        readonly Py_ssize_t n_nodes
        readonly bint shared                # whether no sampled node is a child of a known one
        readonly bint random                # whether there is a node to sample for the density
        readonly object known               # (D,) which entries are
        readonly object is_rest             # (K,) the nodes outside `above`
        Py_ssize_t n
        unsigned char[::1] input, later, leaf   # (K,)
        Py_ssize_t[::1] known_nodes, above_nodes, rest_nodes, rest_position
        double[:, ::1] a, u, mean           # (K, BLOCK)
        Py_ssize_t[:, ::1] pointer          # (4, K)
        double** above_a
        double** above_u
        double** rest_a
        double** rest_u
        RowStream stream[BLOCK]
        bitgen_t* rng[BLOCK]
        double log_likelihood[BLOCK]
        double[::1] node, share, cdf

    def __init__(self, draw, prior, known):
        cdef Py_ssize_t k, K = len(draw["order"]), D = prior.n_observed
        edges = np.asarray(draw["edges"], dtype=np.intp).reshape(-1, 2)
        law = prior.has_law(K)
        given = np.zeros(K, dtype=bool)
        given[:D] = known
        if not given[~law].all():
            raise ValueError("A must have all inputs")
        # Children are done before their parents: who has a descendant among the known?
        matters, parent_of = given & law, np.zeros(K, dtype=bool)
        start = np.searchsorted(edges[:, 1], np.arange(K + 1))
        for k in np.argsort(draw["order"], kind="stable"):
            if matters[k]:
                parents = edges[start[k]:start[k + 1], 0]
                matters[parents] |= ~given[parents]
        rest = ~given & ~matters
        parent_of[edges[:, 0]] = True
        kind = np.full(K, HIDDEN, dtype=np.uint8)
        kind[given], kind[~law], kind[rest] = OBSERVED, INPUT, LEFT_OUT
        self.above, above_nodes = _part(draw, kind)
        self.random = (kind == HIDDEN).any()
        kind = np.full(K, INPUT, dtype=np.uint8)
        kind[rest] = np.where(parent_of[rest], HIDDEN, OBSERVED)
        self.rest, rest_nodes = _part(draw, kind)
        self.shared = not given[edges[~given[edges[:, 1]], 0]].any()
        self.known, self.is_rest, self.n_nodes = np.asarray(known), rest, K
        self.input, self.later = (~law).astype(np.uint8), rest.astype(np.uint8)
        self.leaf = (rest & ~parent_of).astype(np.uint8)
        self.known_nodes, self.above_nodes = np.flatnonzero(known), above_nodes
        self.rest_nodes = rest_nodes
        rest_position = np.empty(K, dtype=np.intp)
        rest_position[rest_nodes] = np.arange(K)
        self.rest_position = rest_position
        self.a, self.u, self.mean = np.zeros((3, K, BLOCK))
        self.pointer = np.zeros((4, K), dtype=np.intp)
        self.above_a, self.above_u, self.rest_a, self.rest_u = (
            <double**> &self.pointer[0, 0], <double**> &self.pointer[1, 0],
            <double**> &self.pointer[2, 0], <double**> &self.pointer[3, 0],
        )
        for k in range(self.above_nodes.shape[0]):
            self.above_a[k] = &self.a[self.above_nodes[k], 0]
            self.above_u[k] = &self.u[self.above_nodes[k], 0]
        for k in range(K):
            self.rest_a[k] = &self.a[self.rest_nodes[k], 0]
            self.rest_u[k] = &self.u[self.rest_nodes[k], 0]
        node, share = np.polynomial.hermite_e.hermegauss(NODES)
        self.node, self.share, self.cdf = node, share / share.sum(), np.empty(max(1, D))

    cdef void know(self, Py_ssize_t i, const double* row) noexcept nogil:
        """Particle i is of this row (D,)."""
        cdef Py_ssize_t j, k
        for j in range(self.known_nodes.shape[0]):
            k = self.known_nodes[j]
            self.a[k, i] = row[k]
            if self.input[k]:
                self.u[k, i] = row[k]
            else:
                squash_all(1, &self.a[k, i], &self.u[k, i])

    cdef void know_all(self, const double* row, Py_ssize_t n) noexcept nogil:
        """All of n particles are of this row."""
        cdef Py_ssize_t i, j, k
        self.n = n
        self.know(0, row)
        for j in range(self.known_nodes.shape[0]):
            k = self.known_nodes[j]
            for i in range(1, n):
                self.a[k, i], self.u[k, i] = self.a[k, 0], self.u[k, 0]

    cdef void dream(self, const double[:, ::1] noise, Py_ssize_t first) noexcept nogil:
        """All nodes that are not known from the columns of ``noise`` (K, n_fantasies)."""
        cdef Py_ssize_t k
        for k in range(self.n_nodes):
            if self.later[k] and not self.leaf[k]:
                memcpy(&self.a[k, 0], &noise[k, first], self.n * sizeof(double))
        for k in range(self.above.n_nodes):
            if self.above.kind[k] == HIDDEN:
                memcpy(self.above_a[k], &noise[self.above_nodes[k], first],
                       self.n * sizeof(double))
        self.above.forward(self.n, self.above_a, self.above_u)
        self.rest.forward(self.n, self.rest_a, self.rest_u)

    cdef void start(self) noexcept nogil:
        """What the known entries descend from, from the network's prior."""
        cdef Py_ssize_t i, k
        for k in range(self.above.n_nodes):
            if self.above.kind[k] == HIDDEN:
                for i in range(self.n):
                    self.above_a[k][i] = random.normal(self.rng[i])
        self.above.forward(self.n, self.above_a, self.above_u)

    cdef void finish(self) noexcept nogil:
        """What they do not descend from, given the others."""
        cdef Py_ssize_t i, k
        for k in range(self.rest.n_nodes):
            if self.rest.kind[k] == HIDDEN:
                for i in range(self.n):
                    self.rest_a[k][i] = random.normal(self.rng[i])
        self.rest.forward(self.n, self.rest_a, self.rest_u)

    cdef void measure(self) noexcept nogil:
        self.above.log_likelihood(self.n, self.above_a, self.above_u, self.log_likelihood)

    cdef void sweep(self, double heat) noexcept nogil:
        self.above.slice_noises(self.rng, self.n, self.above_a, self.above_u, heat)

    # -- what is asked of the particles

    cdef void moments(
        self, const Py_ssize_t[::1] wanted, int mode, double* first, double* second
    ) noexcept nogil:
        """Both moments (n, n_wanted) of nodes that are not known, over the own noise of those
        outside ``above``; "CLASSES": probabilities of the classes, and no second.
        """
        cdef Py_ssize_t i, j, k, h, n_wanted = wanted.shape[0], p
        cdef double one, two, spread
        cdef double[NODES] x
        for j in range(n_wanted):
            k = wanted[j]
            if self.later[k]:
                self.rest._means(
                    self.rest_position[k], self.n, self.rest_u, &self.mean[k, 0]
                )
        if mode == CLASSES:
            self._classes(wanted, first)
            return
        for j in range(n_wanted):
            k = wanted[j]
            p = self.rest_position[k]
            spread = self.rest.spread[p]
            for i in range(self.n):
                if not self.later[k]:
                    one = self.a[k, i] if mode == VALUES else self.u[k, i]
                    two = one * one
                elif mode == VALUES:
                    one = self.mean[k, i]
                    two = one * one + spread * spread
                else:
                    for h in range(NODES):
                        x[h] = self.mean[k, i] + spread * self.node[h]
                    squash_all(NODES, x, x)
                    one, two = 0.0, 0.0
                    for h in range(NODES):
                        one += self.share[h] * x[h]
                        two += self.share[h] * x[h] * x[h]
                first[i * n_wanted + j] = one
                second[i * n_wanted + j] = two

    cdef void _classes(self, const Py_ssize_t[::1] wanted, double* out) noexcept nogil:
        """P(latent c is the largest), or of one latent, that it is above 0: a is N(mean, 1).

        By the trapezoid rule over the largest, each fantasy with the grid shifted by its share,
        which averages the rule's error out.
        """
        cdef Py_ssize_t i, j, h, C = wanted.shape[0]
        cdef double highest, at, below, total, x
        cdef double* cdf = &self.cdf[0]
        cdef double* row
        for i in range(self.n):
            if C == 1:
                out[2 * i + 1] = normal_cdf(self.mean[wanted[0], i])
                out[2 * i] = normal_cdf(-self.mean[wanted[0], i])
                continue
            row = out + i * C
            highest = -INFINITY
            for j in range(C):
                highest = max(highest, self.mean[wanted[j], i])
                row[j] = 0.0
            total = 0.0
            for h in range(GRID):
                at = highest + GRID_STEP * (h - GRID // 2 + ((i + 0.5) / self.n - 0.5))
                below = 1.0
                for j in range(C):
                    cdf[j] = normal_cdf(at - self.mean[wanted[j], i])   # 1e-9 or more
                    below *= cdf[j]
                for j in range(C):
                    x = at - self.mean[wanted[j], i]
                    x = below * exp(-0.5 * x * x) / cdf[j]
                    row[j] += x
                    total += x
            for j in range(C):
                row[j] /= total


cdef inline double normal_cdf(double x) noexcept nogil:
    return 0.5 * erfc(-0.7071067811865476 * x)


# -- fantasies --------------------------------------------------------------------------------


def _noise(draw, seed, t, n_fantasies):
    """Standard normals (K, n_fantasies) that all rows share."""
    cdef RowStream stream
    cdef Py_ssize_t k, s
    cdef double[:, ::1] out = np.empty((len(draw["order"]), n_fantasies))
    random.start_row_stream(&stream, seed, t, NO_ROW)
    for s in range(out.shape[1]):
        for k in range(out.shape[0]):
            out[k, s] = random.normal(&stream.rng)
    return np.asarray(out)


def _n_out(wanted, int mode):
    return max(2, len(wanted)) if mode == CLASSES else len(wanted)


def _fantasies_of_all(draw, Particles particles, A, noise_, wanted_, int mode):
    """Where no sampled node is a child of a known one, so that rows share their fantasies.

    Squares are expanded: one product of matrices for the densities, O(n_rows n_fantasies D).
    """
    cdef Py_ssize_t first, n, n_fantasies = noise_.shape[1]
    cdef const double[:, ::1] noise = noise_
    cdef const Py_ssize_t[::1] wanted = wanted_
    cdef double[:, ::1] one = np.zeros((n_fantasies, max(1, _n_out(wanted_, mode))))
    cdef double[:, ::1] two = np.zeros_like(one)
    u = np.empty((n_fantasies, particles.n_nodes))
    for first in range(0, n_fantasies, BLOCK):
        n = particles.n = min(<Py_ssize_t> BLOCK, n_fantasies - first)
        with nogil:
            particles.dream(noise, first)
            particles.moments(wanted, mode, &one[first, 0], &two[first, 0])
        u[first:first + n] = np.asarray(particles.u)[:, :n].T
    known = np.flatnonzero(particles.known)
    weight = np.zeros((particles.n_nodes, len(known)))
    place = np.full(particles.n_nodes, -1)
    place[known] = np.arange(len(known))
    parents, children = np.asarray(draw["edges"], dtype=np.intp).reshape(-1, 2).T
    into = place[children] >= 0
    weight[parents[into], place[children[into]]] = draw["weights"][into]
    hidden = np.setdiff1d(np.arange(particles.n_nodes), known)
    mean = u[:, hidden] @ weight[hidden]
    # Known parents move what is left to explain, not the fantasies.
    rest = A[:, known] - draw["biases"][known] - np.tanh(0.5 * A[:, known]) @ weight[known]
    precision = draw["unit_precision"][known]
    constant = 0.5 * np.sum(np.log(precision / (2 * np.pi)))
    with np.errstate(over="ignore", invalid="ignore"):
        score = (rest * precision) @ mean.T
        score -= 0.5 * (rest**2 @ precision)[:, np.newaxis]
        score += constant - 0.5 * (mean**2 @ precision)
        # Far out the squares cancel or leave the range of floats; few rows are.
        far = (np.abs(rest) * np.sqrt(precision)).max(axis=1, initial=0.0) > 1e4
        for i in np.flatnonzero(far):
            score[i] = constant - 0.5 * ((rest[i] - mean) ** 2 @ precision)
    evidence, n_effective, share = _weighed(score)
    return evidence, n_effective, share @ np.asarray(one), share @ np.asarray(two)


def _weighed(score):
    """log mean exp of scores (n_rows, n_samples), effective number of samples and their shares."""
    highest = score.max(axis=1, keepdims=True)
    # No sample is anywhere near: the density is 0 to floats, and all are as good.
    nowhere = ~np.isfinite(highest[:, 0])
    share = np.exp(score - np.where(nowhere[:, np.newaxis], 0.0, highest))
    share[nowhere] = 1.0
    total = share.sum(axis=1, keepdims=True)
    evidence = (highest + np.log(total / score.shape[1]))[:, 0]
    share /= total
    n_effective = np.where(nowhere, 1.0, 1.0 / np.sum(share**2, axis=1))
    return evidence, n_effective, share


def _fantasies_by_row(Particles particles, A_, noise_, wanted_, int mode):
    """Where sampled nodes are children of known ones, inputs among them: each row has its own."""
    cdef Py_ssize_t first, n, i, s, j, S = noise_.shape[1], n_rows = len(A_)
    cdef Py_ssize_t n_out = _n_out(wanted_, mode)
    cdef const double[:, ::1] A = A_, noise = noise_
    cdef const Py_ssize_t[::1] wanted = wanted_
    cdef double[:, ::1] one = np.zeros((S, max(1, n_out))), two = np.zeros((S, max(1, n_out)))
    cdef double[:, ::1] first_moment = np.zeros((n_rows, n_out))
    cdef double[:, ::1] second_moment = np.zeros((n_rows, n_out))
    cdef double[::1] evidence = np.empty(n_rows), n_effective = np.ones(n_rows)
    cdef double[::1] score = np.empty(S)
    cdef double weight, squares
    with nogil:
        for i in range(n_rows):
            first = 0
            while first < S:
                n = min(<Py_ssize_t> BLOCK, S - first)
                particles.know_all(&A[i, 0], n)
                particles.dream(noise, first)
                particles.measure()
                memcpy(&score[first], particles.log_likelihood, n * sizeof(double))
                if wanted.shape[0] > 0:
                    particles.moments(wanted, mode, &one[first, 0], &two[first, 0])
                first += n
            evidence[i] = special.log_sum_exp(&score[0], S)
            squares = 0.0
            for s in range(S):
                weight = exp(score[s] - evidence[i]) if evidence[i] > -INFINITY else 1.0 / S
                squares += weight * weight
                for j in range(n_out):
                    first_moment[i, j] += weight * one[s, j]
                    second_moment[i, j] += weight * two[s, j]
            if evidence[i] > -INFINITY:
                n_effective[i] = 1.0 / squares
            evidence[i] -= log(<double> S)
    return (
        np.asarray(evidence), np.asarray(n_effective), np.asarray(first_moment),
        np.asarray(second_moment),
    )


# -- annealing --------------------------------------------------------------------------------


def _annealed(Particles particles, A_, key_, seed, t, n_temperatures, n_particles, n_after,
              wanted_, int mode):
    """log of an unbiased estimate of each row's density (Neal 2001), and moments of ``wanted``.

    Particles go from the network's prior through powers (k / n_temperatures)^4 of the
    likelihood, which the first steps raise gently, by slices over their noises; moments are means
    over ``n_after`` more, weighed as the particles are.
    """
    cdef Py_ssize_t copies = n_particles, steps = n_temperatures, after = n_after
    cdef Py_ssize_t n_rows = len(A_), n_out = _n_out(wanted_, mode), i, j, k, n, first
    cdef uint64_t seed_ = seed, t_ = t
    cdef const double[:, ::1] A = A_
    cdef const uint64_t[::1] key = key_
    cdef const Py_ssize_t[::1] wanted = wanted_
    cdef double[:, ::1] one = np.zeros((BLOCK, max(1, n_out)))
    cdef double[:, ::1] two = np.zeros((BLOCK, max(1, n_out)))
    cdef double[:, ::1] weight = np.zeros((n_rows, copies))
    cdef double[:, ::1] first_moment = np.zeros((n_rows * copies, n_out))
    cdef double[:, ::1] second_moment = np.zeros((n_rows * copies, n_out))
    cdef double heat, before
    with nogil:
        first = 0
        while first < n_rows * copies:
            n = min(<Py_ssize_t> BLOCK, n_rows * copies - first)
            particles.n = n
            for i in range(n):
                k = (first + i) // copies
                particles.know(i, &A[k, 0])
                random.start_row_stream(
                    &particles.stream[i], seed_, t_,
                    key[k] + GOLDEN * <uint64_t> (1 + (first + i) % copies),
                )
                particles.rng[i] = &particles.stream[i].rng
            particles.start()
            before = 0.0
            for k in range(1, steps + 1):
                heat = (<double> k / steps) ** POWER
                particles.measure()
                for i in range(n):
                    weight[(first + i) // copies, (first + i) % copies] += (
                        (heat - before) * particles.log_likelihood[i]
                    )
                if k < steps:
                    particles.sweep(heat)
                before = heat
            for k in range(after):
                particles.sweep(1.0)
                particles.finish()
                particles.moments(wanted, mode, &one[0, 0], &two[0, 0])
                for i in range(n):
                    for j in range(n_out):
                        first_moment[first + i, j] += one[i, j] / after
                        second_moment[first + i, j] += two[i, j] / after
            first += n
    weight_ = np.asarray(weight)
    evidence, n_effective, share = _weighed(np.asarray(weight))
    shape = (n_rows, copies, n_out)
    return (
        evidence, n_effective,
        np.einsum("nc,ncj->nj", share, np.asarray(first_moment).reshape(shape)),
        np.einsum("nc,ncj->nj", share, np.asarray(second_moment).reshape(shape)),
    )


# -- what the estimators ask ------------------------------------------------------------------


def _given(draw, prior, A, seed, t, wanted_of, int mode, n_out, in_place, method="auto",
           n_fantasies=200, n_temperatures=60, n_particles=8, n_after=0):
    """log density, effective number of samples, and moments of ``wanted_of(known)`` by row.

    Moments are (n_rows, n_out), with those of node k in column k if ``in_place``.
    """
    if method not in ("auto", "fantasies", "ais"):
        raise ValueError(f"method must be 'auto', 'fantasies' or 'ais', got {method!r}")
    A = np.ascontiguousarray(A, dtype=np.float64)
    if np.isinf(A).any():
        raise ValueError("A must be finite or NaN")
    key, noise = row_keys(A), _noise(draw, seed, t, n_fantasies)
    evidence, n_effective = np.zeros(len(A)), np.zeros(len(A))
    one, two = np.zeros((2, len(A), n_out))
    for rows in patterns(A):
        particles = Particles(draw, prior, ~np.isnan(A[rows[0]]))
        wanted = np.asarray(wanted_of(particles.known), dtype=np.intp)
        columns = wanted if in_place else np.arange(n_out)
        # Nothing random, nothing asked: one fantasy says it all.
        enough = noise if particles.random or len(wanted) else noise[:, :1].copy()
        todo = rows
        if method != "ais" or not particles.random:
            if particles.shared:
                results = _fantasies_of_all(draw, particles, A[rows], enough, wanted, mode)
            else:
                results = _fantasies_by_row(particles, A[rows], enough, wanted, mode)
            _put(rows, columns, results, evidence, n_effective, one, two)
            few = n_effective[rows] < FEWEST
            todo = rows[few & particles.random & (method == "auto")]
        if len(todo):
            results = _annealed(
                particles, A[todo], key[todo], seed, t, n_temperatures, n_particles,
                n_after if len(wanted) else 0, wanted, mode,
            )
            _put(todo, columns, results, evidence, n_effective, one, two)
    return evidence, n_effective, one, two


def _put(rows, columns, results, evidence, n_effective, one, two):
    evidence[rows], n_effective[rows] = results[0], results[1]
    one[np.ix_(rows, columns)] = results[2][:, :len(columns)]
    two[np.ix_(rows, columns)] = results[3][:, :len(columns)]


def log_densities(draw, prior, A, seed, t=0, method="auto", n_fantasies=200, n_temperatures=60,
                  n_particles=8):
    """log p(known entries of each row | draw, inputs), and effective numbers of samples.

    By "fantasies", weighed samples of the prior that need to be many times e^(information of the
    row), or "ais", annealed particles; exp of either is unbiased, so it is low on average. "auto"
    looks at the fantasies of a row and anneals it where fewer than 5 have the weight. Exact where
    known entries descend from known ones alone; a row without entries has log density 0.

    Parameters
    ----------
    draw : dict
        A network; nothing of it is changed.
    prior : Prior
    A : array of shape (n_rows, n_observed)
        Pre-activations of the observed nodes, values of inputs; NaN where not known.
    seed, t : int
        Random numbers depend on seed, t and, of annealed particles, the row's values alone.

    Returns
    -------
    log_density, n_effective : array of shape (n_rows,)
    """
    return _given(
        draw, prior, A, seed, t, _nothing, VALUES, 0, False, method, n_fantasies,
        n_temperatures, n_particles,
    )[:2]


def _nothing(known):
    return []


def imputed_moments(draw, prior, A, visible, seed, t=0, method="auto", n_fantasies=200,
                    n_temperatures=60, n_particles=8, n_after=40):
    """Posterior mean and second moment of missing entries under one draw, 0 of others.

    "gaussian" ``visible`` means of a, "sigmoid" of s(a). Other parameters are those of
    ``log_densities``; annealed particles make ``n_after`` more steps, over which they are averaged.
    """
    mode = SQUASHED if visible == "sigmoid" else VALUES
    return _given(
        draw, prior, A, seed, t, lambda known: np.flatnonzero(~known), mode, prior.n_observed, True,
        method, n_fantasies, n_temperatures, n_particles, n_after,
    )[2:]


def expected_activations(draw, prior, A, seed, t=0, method="auto", n_fantasies=200,
                         n_temperatures=60, n_particles=8, n_after=40):
    """Posterior mean of u of the hidden nodes given each row, (n_rows, H)."""
    hidden = np.arange(prior.n_observed, len(draw["order"]))
    return _given(
        draw, prior, A, seed, t, lambda known: hidden, SQUASHED, len(hidden), False,
        method, n_fantasies, n_temperatures, n_particles, n_after,
    )[2]


def predicted(draw, prior, A, seed, t=0, n_fantasies=200):
    """Mean and second moment of each output given the inputs in A, (n_rows, n_outputs) each.

    With latents as outputs: probabilities of the classes, (n_rows, n_classes), and zeros.
    """
    outputs = np.flatnonzero(prior.has_law(prior.n_observed))
    mode = CLASSES if "latent" in prior.roles else VALUES
    A = np.array(A, dtype=np.float64)
    A[:, outputs] = np.nan
    return _given(
        draw, prior, A, seed, t, lambda known: outputs, mode, _n_out(outputs, mode), False,
        "fantasies", n_fantasies,
    )[2:]


def sample_rows(draw, prior, n_rows, generator, inputs=None):
    """Rows of the network's own (n_rows, n_observed), given the values of its inputs if any.

    ``generator`` is a numpy.random.Generator. "sigmoid" columns are s of what is returned.
    """
    noise = generator.standard_normal((n_rows, len(draw["order"])))
    if inputs is not None:
        noise[:, np.flatnonzero(~prior.has_law(prior.n_observed))] = inputs
    return np.ascontiguousarray(activations_from(draw, prior, noise)[:, :prior.n_observed])
