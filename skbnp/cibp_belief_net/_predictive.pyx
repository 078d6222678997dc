"""What one draw of the belief network says of rows: samples, densities, missing entries, means.

Rows stand as pre-activations A_0 (n_rows, n_features) with NaN where an entry is missing;
"sigmoid" visible units report expectations of s(a) = tanh(a / 2), "gaussian" ones of a. Given the
hidden activations u the observed entries of a row have the log density
    const + T'u - 1/2 u'S u,   S = W diag(nu) W',   T = W diag(nu) (a - b),
over the observed visible units alone, W (n_hidden, n_features); rows with the same missing
entries share S.

With row clusters the law of the top layer is a mixture, here ``components``: log weights (C,),
means and precisions (C, K). Nothing of a draw is changed, and a row's random numbers depend on
seed, t and the row's own values alone: the functions may be called from several threads on any
blocks, and a row's answer is the same in any company, up to the rounding of matrix products.
"""

from libc.math cimport INFINITY, exp, fabs, log, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

from skbnp.likelihoods.nonlinear_gaussian._activations cimport Activations, squash_all
from skbnp.numerics cimport linalg, rng as random, special
from skbnp.numerics._moments cimport merge_part
from skbnp.numerics.rng cimport RowStream

import numpy as np

from skbnp.numerics.rows import patterns, row_keys

cdef enum:
    BLOCK = 128             # rows, or particles, of a chain at a time
    MOST_COMPONENTS = 15    # that a row is expanded around
    MOST_STARTS = 6         # of the search for modes beside them
    MOST_MODES = MOST_COMPONENTS + MOST_STARTS
    N_NEWTON = 12
    N_NODES = 15            # of Gauss-Hermite quadrature over a unit's own noise

cdef double NEGLIGIBLE = 1e-6       # share of a row below which a component is left out
cdef uint64_t NO_ROW = 0                    # the stream of what all rows of a draw share
cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15   # 2^64 over the golden ratio, between keys

# Of importance sampling: points of a row; width of the proposals around modes in that of a normal
# law there, share of a mode's that are as wide as its prior, share of the prior among all. Beside
# other choices in benchmarks/_belief_importance.py, on tables that no other benchmark reports.
N_IMPORTANCE = 500
PROPOSALS = (1.15, 0.25, 0.2)


# -- laws of the top layer --------------------------------------------------------------------


def has_row_clusters(draw):
    """Whether the top layer of this draw is a mixture over rows."""
    return (
        "cluster_mean" in draw and len(draw["widths"]) > 1
        and draw["cluster_mean"].shape[1] == draw["widths"][len(draw["widths"]) - 1]
    )


def cluster_components(draw, double row_concentration, double kappa, double shape,
                       uint64_t seed, uint64_t t=0):
    """The row clusters and one fresh one drawn from its prior: log weights, means, precisions.

    Weights are those of the Chinese restaurant's next row, the fresh cluster's m and nu are
    drawn from nu_k ~ Gamma(shape, s_k), m_k ~ N(0, kappa nu_k). Shapes (C + 1,), (C + 1, K) twice.
    """
    cdef RowStream stream
    cdef Py_ssize_t k
    rate = draw["cluster_rate"]
    mean, precision = np.empty(len(rate)), np.empty(len(rate))
    random.start_row_stream(&stream, seed, t, NO_ROW)
    for k in range(len(rate)):
        precision[k] = random.draw_gamma(&stream.rng, shape, rate[k])
        mean[k] = random.normal(&stream.rng) / sqrt(kappa * precision[k])
    weight = np.append(draw["cluster_count"], row_concentration)
    return (
        np.log(weight / weight.sum()),
        np.vstack([draw["cluster_mean"], mean]),
        np.vstack([draw["cluster_precision"], precision]),
    )


def row_components(draw, double radius=0.3):
    """The training rows' own activations in place of the top layer's law; one hidden layer only.

    One component per stored row, of precision 1 / (radius^2 var_k). Not the model's posterior.
    """
    if len(draw["widths"]) > 2:
        raise ValueError(
            f"the prior of rows needs at most one hidden layer, got {len(draw['widths']) - 1}"
        )
    mean = np.ascontiguousarray(draw["activations"])
    # A unit that stands still has no spread to take a share of; its own noise has.
    own = 1.0 / draw["unit_precision"][draw["widths"][0]:]
    variance = np.maximum(mean.var(axis=0), 1e-6 * own)
    return (
        np.full(len(mean), -np.log(len(mean))), mean,
        np.tile(1.0 / (radius**2 * variance), (len(mean), 1)),
    )


# -- a network as dense blocks ----------------------------------------------------------------


cdef class Network:
    """A draw as the loops below want it. Hidden units are 0..n_hidden-1, layers 0..n_layers-1."""

    cdef:
        readonly Py_ssize_t n_features, n_hidden, n_layers, widest, n_components
        readonly object weights             # (n_hidden, n_features), into visible units
        readonly object bias, precision     # of the visible units
        Py_ssize_t[::1] offset, width       # (n_layers + 1,), (n_layers,)
        double[::1] hidden_bias, hidden_precision
        # Edges into visible units by child, for sums over few of them.
        Py_ssize_t[::1] child_start, parent
        double[::1] weight
        # W (width[p], width[c]) of parent layer p and child layer c; -1 where there are no edges.
        double[::1] between
        Py_ssize_t[:, ::1] block
        double[::1] quadratic               # S of each layer over its hidden children
        Py_ssize_t[::1] quadratic_start
        double[::1] log_weight              # of the top layer's components, if any
        double[:, ::1] mean, top_precision
        double[::1] half_log_det

    def __init__(self, draw, components=None):
        widths = np.asarray(draw["widths"], dtype=np.intp)
        cdef Py_ssize_t D = widths[0], M = len(widths) - 1, p, c
        edges = np.asarray(draw["edges"], dtype=np.intp).reshape(-1, 2)
        weights = np.ascontiguousarray(draw["weights"], dtype=np.float64)
        self.n_features, self.n_layers, self.n_hidden = D, M, widths[1:].sum()
        self.width = widths[1:].copy()
        offset = np.concatenate([[0], np.cumsum(widths[1:])]).astype(np.intp)
        self.offset = offset
        self.widest = max(1, widths[1:].max(initial=1))
        bias, nu = (
            np.array(draw[name], dtype=np.float64) for name in ("biases", "unit_precision")
        )
        self.bias, self.precision = bias[:D], nu[:D]
        self.hidden_bias, self.hidden_precision = bias[D:], nu[D:]

        full = np.zeros((self.n_hidden, D + self.n_hidden))
        full[edges[:, 0] - D, edges[:, 1]] = weights
        self.weights = np.ascontiguousarray(full[:, :D])
        n_visible = np.searchsorted(edges[:, 1], D)
        self.child_start = np.searchsorted(edges[:, 1], np.arange(D + 1)).astype(np.intp)
        self.parent = np.ascontiguousarray(edges[:n_visible, 0] - D)
        self.weight = weights[:n_visible].copy()

        block, pieces, at = -np.ones((M, M), dtype=np.intp), [np.zeros(0)], 0
        squares, start = [np.zeros(0)], np.zeros(M + 1, dtype=np.intp)
        for p in range(M):
            rows = full[offset[p]:offset[p + 1]]
            for c in range(p):
                piece = rows[:, D + offset[c]:D + offset[c + 1]]
                if piece.any():
                    block[p, c] = at
                    pieces.append(piece.ravel())
                    at += piece.size
            rows = rows[:, D:]
            squares.append(((rows * nu[D:]) @ rows.T).ravel())
            start[p + 1] = start[p] + rows.shape[0] ** 2
        self.block, self.between = block, np.concatenate(pieces)
        self.quadratic, self.quadratic_start = np.concatenate(squares), start

        if components is None and has_row_clusters(draw):
            raise ValueError("a draw with row clusters needs components")
        if components is not None and M > 0:
            log_weight, mean, precision = components
            self.n_components = len(log_weight)
            self.log_weight = np.array(log_weight, dtype=np.float64)
            self.mean = np.array(mean, dtype=np.float64, order="C")
            self.top_precision = np.array(precision, dtype=np.float64, order="C")
            self.half_log_det = 0.5 * np.log(precision).sum(axis=1)

    def likelihood(self, A):
        """T (n_rows, n_hidden) and S (n_hidden, n_hidden) of rows with the same entries."""
        observed = ~np.isnan(A[0])
        W = self.weights[:, observed]
        scaled = W * self.precision[observed]
        if np.isinf(A).any():
            raise ValueError("A must be finite or NaN")
        T = (A[:, observed] - self.bias[observed]) @ scaled.T
        return np.ascontiguousarray(T), np.ascontiguousarray(scaled @ W.T)

    def log_density_without_units(self, A):
        """sum over the observed entries of log N(a; b, nu), all hidden u = 0, shape (n_rows,)."""
        terms = 0.5 * np.log(self.precision / (2 * np.pi))
        return np.nansum(terms - 0.5 * self.precision * (A - self.bias) ** 2, axis=1)


# -- sampling the hidden units ----------------------------------------------------------------


cdef class Chain:
    """Gibbs over the layers of up to BLOCK rows with the same missing entries, network given.

    Arrays of a layer are contiguous (n, width), those of all layers follow one another.
    """

    cdef:
        Network net
        Activations activations
        Py_ssize_t n
        double[::1] a, u, T             # (n_hidden * BLOCK,), layer by layer
        double[:, ::1] S                # (n_hidden, n_hidden), of the visible children
        double[::1] cross               # the blocks of S
        Py_ssize_t[:, ::1] cross_block
        double[::1] mean, linear, rest  # (BLOCK * widest,)
        double[::1] quadratic           # (widest^2,)
        double[::1] precision           # (BLOCK * width of the top layer,)
        double[::1] log_weight          # (n_components,)
        Py_ssize_t[::1] label           # (BLOCK,) component of each particle
        bint fixed                      # whether labels stay what they are
        Py_ssize_t lost                 # the particle of the last failure
        double[::1] log_likelihood      # (BLOCK,)
        double[::1] row                 # (n_hidden,)
        RowStream stream[BLOCK]

    def __init__(self, Network net, str method="auto", Py_ssize_t n_passes=2):
        self.net = net
        self.activations = Activations(method, n_passes)
        self.activations.reserve(net.widest)
        size = max(1, net.n_hidden * BLOCK)
        self.a, self.u, self.T = np.empty(size), np.empty(size), np.empty(size)
        size = BLOCK * net.widest
        self.mean, self.linear, self.rest = np.empty(size), np.empty(size), np.empty(size)
        self.precision = np.empty(size)
        self.quadratic = np.empty(net.widest**2)
        self.log_weight = np.empty(max(1, net.n_components))
        self.log_likelihood = np.empty(BLOCK)
        self.label = np.zeros(BLOCK, dtype=np.intp)
        self.row = np.empty(max(1, net.n_hidden))

    def set_pattern(self, S):
        """The quadratic form of the observed visible units, by pairs of layers."""
        offset, M = np.asarray(self.net.offset), self.net.n_layers
        block, pieces, at = np.full((M, M), -1, dtype=np.intp), [np.zeros(0)], 0
        for p in range(M):
            for q in range(M):
                piece = S[offset[p]:offset[p + 1], offset[q]:offset[q + 1]]
                if piece.any():
                    block[p, q] = at
                    pieces.append(piece.ravel())
                    at += piece.size
        self.cross, self.cross_block = np.concatenate(pieces), block

    cdef void load(
        self, const double[:, ::1] T, Py_ssize_t first, Py_ssize_t n, Py_ssize_t n_copies,
        const Py_ssize_t[::1] rows, const uint64_t[::1] key, uint64_t seed, uint64_t t,
    ) noexcept nogil:
        """Take up n particles from particle ``first`` on; row i has particles i * n_copies + .."""
        cdef Py_ssize_t i, layer, k, particle
        self.n = n
        for i in range(n):
            particle = first + i
            for layer in range(self.net.n_layers):
                for k in range(self.net.width[layer]):
                    self.T[self.net.offset[layer] * BLOCK + i * self.net.width[layer] + k] = T[
                        particle // n_copies, self.net.offset[layer] + k
                    ]
            random.start_row_stream(
                &self.stream[i], seed, t,
                key[rows[particle // n_copies]] + GOLDEN * <uint64_t> (particle % n_copies),
            )

    cdef int start_at_rows(
        self, const double[:, ::1] stored, const double[:, ::1] log_weight, Py_ssize_t first,
        Py_ssize_t n_copies, double* scratch,
    ) noexcept nogil:
        """Each particle at the activations of a stored training row; non-zero on failure.

        With ``log_weight`` (n_rows, n_stored), the log likelihood of a row under each, the stored
        rows are resampled by it; without, any of them is as likely.
        """
        cdef Py_ssize_t i, layer, k, chosen, n_stored = stored.shape[0], width
        for i in range(self.n):
            if log_weight is None:
                chosen = random.below(&self.stream[i].rng, n_stored)
            else:
                memcpy(scratch, &log_weight[(first + i) // n_copies, 0],
                       n_stored * sizeof(double))
                if random.categorical_from_logs(
                    &self.stream[i].rng, scratch, n_stored, &chosen
                ) != 0:
                    self.lost = i
                    return 1
            for layer in range(self.net.n_layers):
                width = self.net.width[layer]
                for k in range(width):
                    self.a[self.net.offset[layer] * BLOCK + i * width + k] = stored[
                        chosen, self.net.offset[layer] + k
                    ]
        for layer in range(self.net.n_layers):
            self._squash(layer)
        return 0

    cdef int start_at_prior(
        self, const double[:, ::1] log_share, Py_ssize_t first, Py_ssize_t n_copies
    ) noexcept nogil:
        """Each particle at a draw of the network's own, from the top layer down.

        Labels are drawn from the rows' ``log_share`` (n_rows, n_components). Non-zero on failure.
        """
        cdef Py_ssize_t i, k, layer, width, top = self.net.n_layers - 1
        cdef double nu
        for layer in range(top, -1, -1):
            width = self.net.width[layer]
            if layer == top and self.net.n_components > 0:
                for i in range(self.n):
                    memcpy(&self.log_weight[0], &log_share[(first + i) // n_copies, 0],
                           self.net.n_components * sizeof(double))
                    if self._draw_label(i) != 0:
                        return 1
            else:
                self._mean(layer, -1, &self.mean[0])
            for i in range(self.n):
                for k in range(width):
                    nu = self.net.hidden_precision[self.net.offset[layer] + k]
                    if layer == top and self.net.n_components > 0:
                        nu = self.precision[i * width + k]
                    self.a[self.net.offset[layer] * BLOCK + i * width + k] = (
                        self.mean[i * width + k] + random.normal(&self.stream[i].rng) / sqrt(nu)
                    )
            self._squash(layer)
        return 0

    cdef int sweep(self, double heat) noexcept nogil:
        """Every layer given the others, under the likelihood to the power of heat.

        Labels of the top layer's components are drawn just before it, unless they are fixed.
        Non-zero if no component has a finite density at some particle.
        """
        cdef Py_ssize_t layer, i, width, size, p, c, k, start
        cdef Py_ssize_t top = self.net.n_layers - 1, stride
        cdef const double* nu
        cdef double* linear = &self.linear[0]
        for layer in range(top + 1):
            width = self.net.width[layer]
            size = self.n * width
            start = self.net.offset[layer] * BLOCK
            for i in range(size):
                linear[i] = heat * self.T[start + i]
            for p in range(top + 1):
                if p != layer and self.cross_block[p, layer] >= 0:
                    linalg.gemm(
                        False, False, self.n, width, self.net.width[p], -heat,
                        &self.u[self.net.offset[p] * BLOCK],
                        &self.cross[self.cross_block[p, layer]], 1.0, linear,
                    )
            for i in range(width * width):
                self.quadratic[i] = self.net.quadratic[self.net.quadratic_start[layer] + i]
                if self.cross_block[layer, layer] >= 0:
                    self.quadratic[i] += heat * self.cross[self.cross_block[layer, layer] + i]
            for c in range(layer):
                if self.net.block[layer, c] < 0:
                    continue
                self._mean(c, layer, &self.rest[0])
                for i in range(self.n):
                    for k in range(self.net.width[c]):
                        p = i * self.net.width[c] + k
                        self.rest[p] = self.net.hidden_precision[self.net.offset[c] + k] * (
                            self.a[self.net.offset[c] * BLOCK + p] - self.rest[p]
                        )
                linalg.gemm(
                    False, True, self.n, width, self.net.width[c], 1.0, &self.rest[0],
                    &self.net.between[self.net.block[layer, c]], 1.0, linear,
                )
            if layer == top and self.net.n_components > 0:
                if self.fixed:
                    for i in range(self.n):
                        self._set_label(i, self.label[i])
                elif self._draw_labels() != 0:
                    return 1
                nu, stride = &self.precision[0], width
            else:
                self._mean(layer, -1, &self.mean[0])
                nu, stride = &self.net.hidden_precision[self.net.offset[layer]], 0
            self.activations.update_rows(
                self.stream, self.n, width, &self.a[start], &self.mean[0], nu, stride, linear,
                &self.quadratic[0],
            )
            self._squash(layer)
        return 0

    cdef void measure(self) noexcept nogil:
        """log_likelihood[i] = T'u - 1/2 u'S u of each particle."""
        cdef Py_ssize_t layer, p, i, k, width, start
        for i in range(self.n):
            self.log_likelihood[i] = 0.0
        for layer in range(self.net.n_layers):
            if self.cross_block[layer, layer] < 0:
                continue
            width = self.net.width[layer]
            start = self.net.offset[layer] * BLOCK
            memcpy(&self.linear[0], &self.T[start], self.n * width * sizeof(double))
            for p in range(self.net.n_layers):
                if self.cross_block[p, layer] >= 0:
                    linalg.gemm(
                        False, False, self.n, width, self.net.width[p], -0.5,
                        &self.u[self.net.offset[p] * BLOCK],
                        &self.cross[self.cross_block[p, layer]], 1.0, &self.linear[0],
                    )
            for i in range(self.n):
                for k in range(width):
                    self.log_likelihood[i] += (
                        self.u[start + i * width + k] * self.linear[i * width + k]
                    )

    cdef const double* activations_of(self, Py_ssize_t i) noexcept nogil:
        """u of all hidden units of particle i, (n_hidden,)."""
        cdef Py_ssize_t layer, width
        for layer in range(self.net.n_layers):
            width = self.net.width[layer]
            memcpy(&self.row[self.net.offset[layer]],
                   &self.u[self.net.offset[layer] * BLOCK + i * width], width * sizeof(double))
        return &self.row[0]

    cdef void _squash(self, Py_ssize_t layer) noexcept nogil:
        cdef Py_ssize_t start = self.net.offset[layer] * BLOCK
        squash_all(self.n * self.net.width[layer], &self.a[start], &self.u[start])

    cdef void _mean(self, Py_ssize_t layer, Py_ssize_t without, double* out) noexcept nogil:
        """b + sum of the parent layers' U W of layer layer, leaving one parent layer out."""
        cdef Py_ssize_t i, p, width = self.net.width[layer]
        for i in range(self.n):
            memcpy(out + i * width, &self.net.hidden_bias[self.net.offset[layer]],
                   width * sizeof(double))
        for p in range(layer + 1, self.net.n_layers):
            if p != without and self.net.block[p, layer] >= 0:
                linalg.gemm(
                    False, False, self.n, width, self.net.width[p], 1.0,
                    &self.u[self.net.offset[p] * BLOCK],
                    &self.net.between[self.net.block[p, layer]], 1.0, out,
                )

    cdef int _draw_labels(self) noexcept nogil:
        """The component of each particle given its top activations; sets its mean, precision."""
        cdef Py_ssize_t i, k, c, top = self.net.n_layers - 1, width = self.net.width[top]
        cdef const double* a = &self.a[self.net.offset[top] * BLOCK]
        cdef double total
        for i in range(self.n):
            for c in range(self.net.n_components):
                total = 0.0
                for k in range(width):
                    total += self.net.top_precision[c, k] * (
                        (a[k] - self.net.mean[c, k]) * (a[k] - self.net.mean[c, k])
                    )
                self.log_weight[c] = (
                    self.net.log_weight[c] + self.net.half_log_det[c] - 0.5 * total
                )
            if self._draw_label(i) != 0:
                return 1
            a += width
        return 0

    cdef inline int _draw_label(self, Py_ssize_t i) noexcept nogil:
        """The component of particle i from ``log_weight``, which is spent; non-zero on failure."""
        cdef Py_ssize_t c
        if random.categorical_from_logs(
            &self.stream[i].rng, &self.log_weight[0], self.net.n_components, &c
        ) != 0:
            self.lost = i
            return 1
        self._set_label(i, c)
        return 0

    cdef void _set_label(self, Py_ssize_t i, Py_ssize_t c) noexcept nogil:
        cdef Py_ssize_t width = self.net.width[self.net.n_layers - 1]
        self.label[i] = c
        memcpy(&self.mean[i * width], &self.net.mean[c, 0], width * sizeof(double))
        memcpy(&self.precision[i * width], &self.net.top_precision[c, 0], width * sizeof(double))


cdef class Moments:
    """Mean and variance of g(a) over a visible unit's own noise, g = s or the identity."""

    cdef:
        Network net
        bint sigmoid
        double[::1] node, share, bias, precision

    def __init__(self, Network net, visible):
        if visible not in ("gaussian", "sigmoid"):
            raise ValueError(f"visible must be 'gaussian' or 'sigmoid', got {visible!r}")
        self.net, self.sigmoid = net, visible == "sigmoid"
        node, share = np.polynomial.hermite_e.hermegauss(N_NODES)
        self.node, self.share = node, share / share.sum()
        self.bias, self.precision = net.bias, net.precision

    cdef void add(
        self, double before, double weight, const double* u, const Py_ssize_t[::1] missing,
        double* first, double* square,
    ) noexcept nogil:
        """Let u (n_hidden,) join those of weight ``before``, at the missing units of a row."""
        cdef Py_ssize_t i, d, e
        cdef int h
        cdef double y, spread, mean, variance
        cdef double[N_NODES] a
        for i in range(missing.shape[0]):
            d = missing[i]
            y = self.bias[d]
            for e in range(self.net.child_start[d], self.net.child_start[d + 1]):
                y += self.net.weight[e] * u[self.net.parent[e]]
            if not self.sigmoid:
                mean, variance = y, 1.0 / self.precision[d]
            else:
                spread = 1.0 / sqrt(self.precision[d])
                for h in range(N_NODES):
                    a[h] = y + spread * self.node[h]
                squash_all(N_NODES, a, a)
                mean, variance = 0.0, 0.0
                for h in range(N_NODES):
                    mean += self.share[h] * a[h]
                for h in range(N_NODES):
                    variance += self.share[h] * (a[h] - mean) * (a[h] - mean)
            merge_part(before, weight, mean, variance, &first[d], &square[d])


def _sampled(Network net, A, stored, Moments moments, Py_ssize_t layer, seed, t, n_burn_in, n_kept):
    """Over the kept passes of an inner chain mean and variance of missing entries, or mean of u.

    One chain per row from a random training row; where the top layer is a mixture, four from
    training rows resampled by their likelihood, since a chain seldom leaves its cluster.
    O(n_hidden^2) per row and pass, and O(edges into missing entries) per kept one.
    """
    cdef Py_ssize_t n_copies = 4 if net.n_components > 0 else 1
    cdef Py_ssize_t burn_in = n_burn_in, kept = max(1, n_kept // n_copies), i, step, first, n, k
    cdef Py_ssize_t n_particles, at, begin, end
    cdef uint64_t seed_ = seed, t_ = t
    cdef const uint64_t[::1] key = row_keys(A)
    cdef bint entries = layer == 0
    cdef double weight = 1.0 / (kept * n_copies)
    cdef double[::1] total = np.zeros(len(A))
    cdef const double* u
    cdef double[:, ::1] one = np.zeros(A.shape if entries else (len(A), net.width[layer - 1]))
    cdef double[:, ::1] two = np.zeros(A.shape if entries else (0, 0))
    cdef const double[:, ::1] stored_a = np.ascontiguousarray(stored)
    cdef const double[:, ::1] T, log_weight = None
    cdef const Py_ssize_t[::1] rows, missing
    cdef double[::1] scratch = np.empty(max(1, len(stored)))
    cdef Chain chain = Chain(net)
    cdef int failed = 0
    stored_u = np.tanh(0.5 * np.asarray(stored))
    begin, end = net.offset[max(layer - 1, 0)], net.offset[layer]
    for group in patterns(A):
        lacking = np.flatnonzero(np.isnan(A[group[0]]))
        if entries and len(lacking) == 0:
            continue
        rows, missing = group, lacking
        T_group, S = net.likelihood(A[group])
        T = T_group
        if n_copies > 1:
            fit = T_group @ stored_u.T - 0.5 * np.sum(stored_u @ S * stored_u, axis=1)
            log_weight = np.ascontiguousarray(fit)
        chain.set_pattern(S)
        with nogil:
            n_particles, first = rows.shape[0] * n_copies, 0
            while first < n_particles:
                n = min(<Py_ssize_t> BLOCK, n_particles - first)
                chain.load(T, first, n, n_copies, rows, key, seed_, t_)
                failed = chain.start_at_rows(stored_a, log_weight, first, n_copies, &scratch[0])
                for step in range(burn_in + kept):
                    failed = failed or chain.sweep(1.0)
                    if failed:
                        break
                    if step < burn_in:
                        continue
                    for i in range(n):
                        u = chain.activations_of(i)
                        at = rows[(first + i) // n_copies]
                        if entries:
                            moments.add(
                                total[at], weight, u, missing, &one[at, 0], &two[at, 0]
                            )
                            total[at] += weight
                        else:
                            for k in range(begin, end):
                                one[at, k - begin] += weight * u[k]
                if failed:
                    break
                first += n
        if failed:
            raise _lost(rows[(first + chain.lost) // n_copies])
    return np.asarray(one), np.asarray(two)


def _annealed(Network net, A, log_share, seed, t, n_temperatures, n_particles):
    """log of an unbiased estimate of each row's density relative to u = 0 (Neal 2001).

    From the network's prior through powers (k / n_temperatures)^3 of the likelihood, which the
    first steps raise gently. Where the top layer is a mixture each particle keeps a component
    drawn from the row's ``log_share`` (n_rows, n_components), and weighs what the component
    does over its share. O(n_temperatures n_particles n_hidden^2) per row.
    """
    cdef Py_ssize_t n_copies = n_particles, steps = n_temperatures, i, k, c, first, n
    cdef uint64_t seed_ = seed, t_ = t
    cdef const uint64_t[::1] key = row_keys(A)
    cdef double heat, before
    cdef const double[:, ::1] T, share = None
    cdef const Py_ssize_t[::1] rows
    cdef double[:, ::1] out = np.zeros((len(A), n_particles))
    cdef Chain chain = Chain(net)
    cdef int failed = 0
    chain.fixed = True
    for group in patterns(A):
        rows = group
        T_group, S = net.likelihood(A[group])
        T = T_group
        chain.set_pattern(S)
        if log_share is not None:
            share = np.ascontiguousarray(log_share[group])
        with nogil:
            first = 0
            while first < rows.shape[0] * n_copies:
                n = min(<Py_ssize_t> BLOCK, rows.shape[0] * n_copies - first)
                chain.load(T, first, n, n_copies, rows, key, seed_, t_)
                failed = chain.start_at_prior(share, first, n_copies)
                if failed:
                    break
                if net.n_components > 0:
                    for i in range(n):
                        k, c = (first + i) // n_copies, chain.label[i]
                        out[rows[k], (first + i) % n_copies] = net.log_weight[c] - share[k, c]
                before = 0.0
                for k in range(1, steps + 1):
                    heat = (<double> k / steps) ** 3
                    chain.measure()
                    for i in range(n):
                        out[rows[(first + i) // n_copies], (first + i) % n_copies] += (
                            (heat - before) * chain.log_likelihood[i]
                        )
                    if k < steps:
                        # Labels are fixed here, and nothing else of a sweep can fail.
                        failed = chain.sweep(heat)
                        if failed:
                            break
                    before = heat
                if failed:
                    break
                first += n
        if failed:
            raise _lost(rows[(first + chain.lost) // n_copies])
    return np.logaddexp.reduce(np.asarray(out), axis=1) - np.log(n_particles)


def _lost(row):
    return ArithmeticError(f"row {row}: no component of the top layer has a finite probability")


# -- expanding around modes -------------------------------------------------------------------


cdef class Expansion:
    """Laplace's approximation of one hidden layer under each component of its law.

    f_c(a) = -1/2 sum_k nu_ck (a_k - m_ck)^2 + T'u - 1/2 u'S u, with the Gauss-Newton
    H = diag(nu_c) + J S J, J = diag((1 - u^2) / 2).
    """

    cdef:
        Network net
        Py_ssize_t width
        double[::1] u, slope, field, step, factor       # (width,) and (width^2,)
        double[:, ::1] mode                             # (MOST_MODES, width)
        double[:, ::1] mode_factor                      # (MOST_MODES, width^2)
        Py_ssize_t[::1] kept                            # (MOST_MODES,) component of each mode
        double[::1] log_evidence, log_share             # (MOST_MODES,) and one more of the prior
        double[::1] mode_log_det, term                  # the same
        double[:, ::1] fantasy                          # (BLOCK, width)
        Py_ssize_t[::1] fantasy_of                      # (BLOCK,) its component
        double[::1] score, passed                       # (BLOCK,), (n_components,)
        Py_ssize_t n_modes
        double log_det
        double widened, loose, defensive

    def __init__(self, Network net, proposals=PROPOSALS):
        K = net.width[0]
        self.widened, self.loose, self.defensive = proposals
        self.net, self.width = net, K
        self.u, self.slope, self.field, self.step = (np.empty(K) for _ in range(4))
        self.factor = np.empty(K * K)
        self.mode, self.mode_factor = np.empty((MOST_MODES, K)), np.empty((MOST_MODES, K * K))
        self.kept = np.empty(MOST_MODES, dtype=np.intp)
        self.log_evidence, self.mode_log_det, self.log_share, self.term = (
            np.empty(MOST_MODES + 1) for _ in range(4)
        )
        self.fantasy, self.fantasy_of = np.empty((BLOCK, K)), np.empty(BLOCK, dtype=np.intp)
        self.score = np.empty(BLOCK)
        weight = np.exp(np.asarray(net.log_weight) - np.max(net.log_weight))
        self.passed = np.cumsum(weight) / weight.sum()

    cdef double _value(
        self, Py_ssize_t c, const double* a, const double* T, const double* S
    ) noexcept nogil:
        """f_c(a); sets u, slope = J and field = T - S u."""
        cdef Py_ssize_t k, h, K = self.width
        cdef double total = 0.0, off
        squash_all(K, a, &self.u[0])
        for k in range(K):
            self.field[k] = T[k]
        for h in range(K):
            for k in range(K):
                self.field[k] -= self.u[h] * S[h * K + k]
        for k in range(K):
            off = a[k] - self.net.mean[c, k]
            total += self.u[k] * (T[k] + self.field[k])
            total -= self.net.top_precision[c, k] * off * off
            self.slope[k] = 0.5 * (1.0 - self.u[k] * self.u[k])
        return 0.5 * total

    cdef int _factor(self, Py_ssize_t c, const double* S) noexcept nogil:
        """Factor H at the slopes of the last _value; non-zero if that fails."""
        cdef Py_ssize_t k, h, K = self.width
        cdef double* row = &self.factor[0]
        for h in range(K):
            for k in range(h, K):
                row[k] = self.slope[h] * self.slope[k] * S[h * K + k]
            row[h] += self.net.top_precision[c, h]
            row += K
        if linalg.cholesky(&self.factor[0], K) != 0:
            return 1
        self.log_det = linalg.log_det(&self.factor[0], K)
        return 0

    cdef int _screen(
        self, const double* T, const double* S, double* score
    ) noexcept nogil:
        """Keep the components of the highest evidence to second order at their means."""
        cdef Py_ssize_t c, k, i, C = self.net.n_components, K = self.width
        cdef double value
        self.n_modes = min(C, <Py_ssize_t> MOST_COMPONENTS)
        if C <= MOST_COMPONENTS:
            for c in range(C):
                self.kept[c] = c
            return 0
        self.n_modes = 0
        for c in range(C):
            value = self._value(c, &self.net.mean[c, 0], T, S)
            for k in range(K):
                self.step[k] = self.slope[k] * self.field[k]
            if self._factor(c, S) != 0:
                return 1
            value += 0.5 * linalg.solve_transposed(&self.factor[0], K, &self.step[0])
            value += self.net.log_weight[c] + self.net.half_log_det[c] - 0.5 * self.log_det
            # Into the sorted list of those kept so far.
            if self.n_modes < MOST_COMPONENTS:
                i = self.n_modes
                self.n_modes += 1
            elif value > score[MOST_COMPONENTS - 1]:
                i = MOST_COMPONENTS - 1
            else:
                continue
            while i > 0 and score[i - 1] < value:
                score[i] = score[i - 1]
                self.kept[i] = self.kept[i - 1]
                i -= 1
            score[i] = value
            self.kept[i] = c
        return 0

    cdef int _find_mode(self, Py_ssize_t i, const double* T, const double* S) noexcept nogil:
        """Newton's steps of mode i from where it stands; sets its factor and log evidence."""
        cdef Py_ssize_t c = self.kept[i], k, r, K = self.width
        cdef double change, largest
        cdef double* a = &self.mode[i, 0]
        for r in range(N_NEWTON):
            self._value(c, a, T, S)
            if self._factor(c, S) != 0:
                return 1
            for k in range(K):
                self.step[k] = self.slope[k] * self.field[k] - (
                    self.net.top_precision[c, k] * (a[k] - self.net.mean[c, k])
                )
            linalg.solve_transposed(&self.factor[0], K, &self.step[0])
            linalg.solve(&self.factor[0], K, &self.step[0])
            largest = 0.0
            for k in range(K):
                change = min(max(self.step[k], -1.5), 1.5)
                largest = max(largest, fabs(change))
                a[k] += change if r < N_NEWTON // 2 else 0.7 * change
            if largest < 1e-7:
                break
        self.log_evidence[i] = self.net.log_weight[c] + self.net.half_log_det[c]
        self.log_evidence[i] += self._value(c, a, T, S)
        if self._factor(c, S) != 0:
            return 1
        self.log_evidence[i] -= 0.5 * self.log_det
        self.mode_log_det[i] = self.log_det
        memcpy(&self.mode_factor[i, 0], &self.factor[0], K * K * sizeof(double))
        return 0

    cdef int expand(self, const double* T, const double* S) noexcept nogil:
        """Modes and log evidences of the kept components of a row; non-zero on failure."""
        cdef double[MOST_COMPONENTS] score
        cdef Py_ssize_t i
        if self._screen(T, S, score) != 0:
            return 1
        for i in range(self.n_modes):
            memcpy(&self.mode[i, 0], &self.net.mean[self.kept[i], 0], self.width * sizeof(double))
            if self._find_mode(i, T, S) != 0:
                return 1
        return 0

    cdef void draw(self, bitgen_t* rng, Py_ssize_t i, double widened, double* a) noexcept nogil:
        """a ~ N(mode_i, widened^2 H^-1)"""
        cdef Py_ssize_t k, K = self.width
        for k in range(K):
            a[k] = random.normal(rng)
        linalg.solve(&self.mode_factor[i, 0], K, a)
        for k in range(K):
            a[k] = self.mode[i, k] + widened * a[k]

    # -- importance sampling

    cdef Py_ssize_t _dream(self, bitgen_t* rng, double place, double* a) noexcept nogil:
        """a from the prior of the component, returned, at which so much of the weight is passed."""
        cdef Py_ssize_t c = 0, k
        while c < self.net.n_components - 1 and place >= self.passed[c]:
            c += 1
        for k in range(self.width):
            a[k] = self.net.mean[c, k] + random.normal(rng) / sqrt(self.net.top_precision[c, k])
        return c

    cdef int search(self, bitgen_t* rng, const double* T, const double* S) noexcept nogil:
        """Further modes, from the best of BLOCK draws of the prior: units saturate either way."""
        cdef Py_ssize_t s, i, k, best, K = self.width, _
        cdef double apart, nearest
        for s in range(BLOCK):
            self.fantasy_of[s] = self._dream(rng, (s + 0.5) / BLOCK, &self.fantasy[s, 0])
            self._value(self.fantasy_of[s], &self.fantasy[s, 0], T, S)
            self.score[s] = 0.0
            for k in range(K):
                self.score[s] += 0.5 * self.u[k] * (T[k] + self.field[k])
        for _ in range(MOST_STARTS):
            best = 0
            for s in range(1, BLOCK):
                if self.score[s] > self.score[best]:
                    best = s
            self.score[best] = -INFINITY
            self.kept[self.n_modes] = self.fantasy_of[best]
            memcpy(&self.mode[self.n_modes, 0], &self.fantasy[best, 0], K * sizeof(double))
            if self._find_mode(self.n_modes, T, S) != 0:
                return 1
            nearest = INFINITY
            for i in range(self.n_modes):
                if self.kept[i] != self.kept[self.n_modes]:
                    continue
                apart = 0.0
                for k in range(K):
                    apart = max(apart, fabs(self.mode[i, k] - self.mode[self.n_modes, k]))
                nearest = min(nearest, apart)
            self.n_modes += nearest > 0.05
        return 0

    cdef double _log_weight(
        self, Py_ssize_t c, const double* a, const double* T, const double* S
    ) noexcept nogil:
        """log of the joint density of (c, a) and the row over that of the proposals."""
        cdef Py_ssize_t i, h, k, K = self.width
        cdef double joint, prior = 0.0, squares, loose, x
        cdef const double* row
        joint = self._value(c, a, T, S) + self.net.log_weight[c] + self.net.half_log_det[c]
        for k in range(K):
            x = a[k] - self.net.mean[c, k]
            prior -= 0.5 * self.net.top_precision[c, k] * x * x
        for i in range(self.n_modes):
            self.term[i] = -INFINITY
            if self.kept[i] != c:
                continue
            squares, loose, row = 0.0, 0.0, &self.mode_factor[i, 0]
            for h in range(K):
                x = a[h] - self.mode[i, h]
                loose += self.net.top_precision[c, h] * x * x
                x = 0.0
                for k in range(h, K):
                    x += row[k] * (a[k] - self.mode[i, k])
                squares += x * x
                row += K
            squares = (
                0.5 * self.mode_log_det[i] - K * log(self.widened) - 0.5 * squares / self.widened**2
            )
            loose = self.net.half_log_det[c] - 0.5 * loose
            x = max(squares, loose)
            self.term[i] = self.log_share[i] + x + log(
                (1.0 - self.loose) * exp(squares - x) + self.loose * exp(loose - x)
            )
        self.term[self.n_modes] = (
            log(self.defensive) + self.net.log_weight[c] + self.net.half_log_det[c] + prior
        )
        return joint - special.log_sum_exp(&self.term[0], self.n_modes + 1)

    cdef double estimate(
        self, bitgen_t* rng, const double* T, const double* S, Py_ssize_t n
    ) noexcept nogil:
        """log of an unbiased estimate of the row's evidence, from n points.

        A mixture proposes them: Gaussians around the modes by their evidences, some as wide as
        the prior, since the density of a unit that saturates falls no faster on that side; and,
        so that no weight is large where all these are too narrow, the prior with its components.
        """
        cdef Py_ssize_t j, i, c, k
        cdef double total, place, shift, value, highest = -INFINITY, sum_ = 0.0
        total = special.log_sum_exp(&self.log_evidence[0], self.n_modes)
        for i in range(self.n_modes):
            self.log_share[i] = log(1.0 - self.defensive) + self.log_evidence[i] - total
        shift = random.uniform(rng)
        for j in range(n):
            place, i = (j + shift) / n, 0
            while i < self.n_modes and place >= exp(self.log_share[i]):
                place -= exp(self.log_share[i])
                i += 1
            if i < self.n_modes:
                c = self.kept[i]
                if place < (1.0 - self.loose) * exp(self.log_share[i]):
                    self.draw(rng, i, self.widened, &self.step[0])
                else:
                    for k in range(self.width):
                        self.step[k] = self.mode[i, k]
                        self.step[k] += random.normal(rng) / sqrt(self.net.top_precision[c, k])
            else:
                c = self._dream(rng, place / self.defensive, &self.step[0])
            value = self._log_weight(c, &self.step[0], T, S)
            if value > highest:
                sum_ = sum_ * exp(highest - value) + 1.0
                highest = value
            else:
                sum_ += exp(value - highest)
        return highest + log(sum_ / n)


def _not_definite(row):
    return ArithmeticError(f"the expansion around a mode of row {row} is not definite")


def _expanded_moments(Network net, A, Moments moments, seed, t, n_samples):
    """Over draws around the modes mean and variance of the missing entries or, without
    ``moments``, the mean of u.

    O(C K^3) per row to screen C > 15 components, and O(15 K^3) per Newton step.
    """
    cdef Expansion expansion = Expansion(net)
    cdef Py_ssize_t n = n_samples, i, g, k, at, _
    cdef bint entries = moments is not None
    cdef uint64_t seed_ = seed, t_ = t
    cdef const uint64_t[::1] key = row_keys(A)
    cdef double[::1] total = np.zeros(len(A))
    cdef double[:, ::1] one = np.zeros(A.shape if entries else (len(A), net.n_hidden))
    cdef double[:, ::1] two = np.zeros(A.shape if entries else (0, 0))
    cdef const double[:, ::1] T, S
    cdef const Py_ssize_t[::1] rows, missing
    cdef RowStream stream
    cdef double share, evidence
    cdef int failed = 0
    for group in patterns(A):
        rows, missing = group, np.flatnonzero(np.isnan(A[group[0]]))
        if entries and len(missing) == 0:
            continue
        T, S = net.likelihood(A[group])
        with nogil:
            for g in range(rows.shape[0]):
                at = rows[g]
                random.start_row_stream(&stream, seed_, t_, key[at])
                failed = expansion.expand(&T[g, 0], &S[0, 0])
                if failed != 0:
                    break
                evidence = special.log_sum_exp(&expansion.log_evidence[0], expansion.n_modes)
                for i in range(expansion.n_modes):
                    share = exp(expansion.log_evidence[i] - evidence)
                    if share < NEGLIGIBLE:
                        continue
                    for _ in range(n):
                        expansion.draw(&stream.rng, i, 1.0, &expansion.step[0])
                        squash_all(net.n_hidden, &expansion.step[0], &expansion.u[0])
                        if entries:
                            moments.add(total[at], share / n, &expansion.u[0], missing,
                                        &one[at, 0], &two[at, 0])
                            total[at] += share / n
                        else:
                            for k in range(net.n_hidden):
                                one[at, k] += share / n * expansion.u[k]
        if failed != 0:
            raise _not_definite(at)
    if entries:
        # Components of a negligible share were left out.
        norm = np.where(np.asarray(total) > 0.0, total, 1.0)
        two = np.asarray(two) / norm[:, np.newaxis]
    return np.asarray(one), np.asarray(two)


def _importance(Network net, A, seed, t, n_importance, proposals):
    """log of an unbiased estimate of each row's density relative to u = 0; one hidden layer."""
    cdef Expansion expansion = Expansion(net, proposals)
    cdef Py_ssize_t n = n_importance, g
    cdef uint64_t seed_ = seed, t_ = t
    cdef const uint64_t[::1] key = row_keys(A)
    cdef double[::1] evidence = np.zeros(len(A))
    cdef const double[:, ::1] T, S
    cdef const Py_ssize_t[::1] rows
    cdef RowStream stream
    cdef int failed = 0
    for group in patterns(A):
        if np.isnan(A[group[0]]).all():
            continue
        rows = group
        T, S = net.likelihood(A[group])
        with nogil:
            for g in range(rows.shape[0]):
                random.start_row_stream(&stream, seed_, t_, key[rows[g]])
                failed = expansion.expand(&T[g, 0], &S[0, 0])
                if failed == 0:
                    failed = expansion.search(&stream.rng, &T[g, 0], &S[0, 0])
                if failed != 0:
                    break
                evidence[rows[g]] = expansion.estimate(&stream.rng, &T[g, 0], &S[0, 0], n)
        if failed != 0:
            raise _not_definite(rows[g])
    return np.asarray(evidence)


def _flattened(draw, components, seed, t, n_samples=200):
    """All hidden layers as one: a Network whose components have the moments of each component's
    own samples from the top layer down.
    """
    log_weight, mean, precision = components
    widths, n_components = draw["widths"], len(log_weight)
    visible = draw["edges"][:, 1] < widths[0]
    flat = {
        "widths": np.array([widths[0], widths[1:].sum()]), "edges": draw["edges"][visible],
        "weights": draw["weights"][visible], "biases": draw["biases"],
        "unit_precision": draw["unit_precision"],
    }
    if len(widths) > 2:
        generator = np.random.default_rng([seed, t])
        label = np.repeat(np.arange(n_components), n_samples)
        a = _from_the_top(draw, len(label), generator, components, label)[:, widths[0]:]
        a = a.reshape(n_components, n_samples, -1)
        mean, precision = a.mean(axis=1), 1.0 / a.var(axis=1)
    return Network(flat, (log_weight, mean, precision))


def _component_shares(Network flat, A):
    """log q(c | row) from Laplace's evidences, mixed with a tenth of the components' weights."""
    cdef Expansion expansion = Expansion(flat)
    cdef double[:, ::1] out = np.full((len(A), flat.n_components), -np.inf)
    cdef const double[:, ::1] T, S
    cdef const Py_ssize_t[::1] rows
    cdef Py_ssize_t g, i
    cdef int failed = 0
    for group in patterns(A):
        rows = group
        T, S = flat.likelihood(A[group])
        with nogil:
            for g in range(rows.shape[0]):
                failed = expansion.expand(&T[g, 0], &S[0, 0])
                if failed != 0:
                    break
                for i in range(expansion.n_modes):
                    out[rows[g], expansion.kept[i]] = expansion.log_evidence[i]
        if failed != 0:
            raise _not_definite(rows[g])
    evidence = np.asarray(out)
    evidence = evidence - np.logaddexp.reduce(evidence, axis=1, keepdims=True)
    return np.logaddexp(np.log(0.9) + evidence, np.log(0.1) + np.asarray(flat.log_weight))


# -- what the estimator asks ------------------------------------------------------------------


def _own_component(draw):
    """The law of a single hidden layer without row clusters, as a mixture of one component."""
    D = draw["widths"][0]
    return (
        np.zeros(1), np.array(draw["biases"][np.newaxis, D:]),
        np.array(draw["unit_precision"][np.newaxis, D:]),
    )


def imputed_moments(draw, A, visible, seed, t=0, components=None, n_burn_in=50,
                    n_kept=80, n_samples=8):
    """Posterior mean and variance of missing entries under one draw.

    By an inner chain of ``n_burn_in`` + ``n_kept`` passes; with ``components`` and one hidden
    layer by Laplace's approximation of each component, ``n_samples`` draws around its mode.
    About 0.7 ms per row by expansions (64 features, 20 units, 42 clusters), 1.5 ms by a chain.

    Parameters
    ----------
    draw : dict
        A network; nothing of it is changed.
    A : array of shape (n_rows, n_features)
        Visible pre-activations, NaN where missing.
    visible : {"gaussian", "sigmoid"}
        Whether they are those of a or of s(a), over the unit's own noise as well.
    seed, t : int
        Random numbers of a row depend on seed, t and the row's values alone.
    components : tuple, default=None
        ``cluster_components`` where the draw has row clusters, or ``row_components``.

    Returns
    -------
    mean, variance : array of shape (n_rows, n_features)
        0 where an entry is observed.
    """
    A = np.ascontiguousarray(A, dtype=np.float64)
    net = Network(draw, components)
    moments = Moments(net, visible)
    if net.n_layers == 1 and net.n_components > 0:
        return _expanded_moments(net, A, moments, seed, t, n_samples)
    if net.n_layers > 0:
        return _sampled(
            net, A, draw["activations"], moments, 0, seed, t, n_burn_in, n_kept
        )
    return _independent_moments(net, moments, A)


def _independent_moments(Network net, Moments moments, A):
    """Moments where there are no hidden units."""
    cdef double[:, ::1] both = np.zeros((2, net.n_features))
    cdef const Py_ssize_t[::1] every = np.arange(net.n_features)
    moments.add(0.0, 1.0, NULL, every, &both[0, 0], &both[1, 0])
    missing = np.isnan(A)
    return tuple(np.where(missing, one, 0.0) for one in np.asarray(both))


def log_densities(draw, A, seed, t=0, components=None, method="auto",
                  n_temperatures=100, n_particles=8, n_importance=N_IMPORTANCE,
                  proposals=PROPOSALS):
    """log p(observed entries of each row | draw) in the space of pre-activations, (n_rows,).

    exp of either method is unbiased, so each is low on average and integrates to one.
    "importance", for one hidden layer, samples (component, a) around the modes that are found
    from the components' means and from the best of 128 draws of the prior, and from the prior,
    ``n_importance`` points in all, as ``proposals`` says. "ais" is annealed importance sampling
    from the network's prior; any depth. With row clusters each particle stays in a component, drawn
    from Laplace's shares.
    "auto" is the first for one hidden layer, else the second. Without hidden units both are exact;
    a row without entries has log density 0.

    The other parameters are those of ``imputed_moments``.
    """
    if method not in ("auto", "importance", "ais"):
        raise ValueError(f"method must be 'auto', 'importance' or 'ais', got {method!r}")
    n_layers = len(draw["widths"]) - 1
    if method == "importance" and n_layers > 1:
        raise ValueError(f"method 'importance' needs at most one hidden layer, got {n_layers}")
    A = np.ascontiguousarray(A, dtype=np.float64)
    sampling = method != "ais" and n_layers == 1
    if sampling and components is None and not has_row_clusters(draw):
        components = _own_component(draw)
    net = Network(draw, components)
    base = net.log_density_without_units(A)
    if n_layers == 0:
        return base
    if sampling:
        return base + _importance(net, A, seed, t, n_importance, proposals)
    log_share = None
    if net.n_components > 0:
        log_share = _component_shares(_flattened(draw, components, seed, t), A)
    return base + _annealed(net, A, log_share, seed, t, n_temperatures, n_particles)


def expected_activations(draw, A, layer, seed, t=0, components=None, n_burn_in=50,
                         n_kept=80, n_samples=8):
    """Posterior mean of u of hidden layer ``layer`` = 1.. given each row, (n_rows, K_layer).

    Parameters are those of ``imputed_moments``, and so is the way it is done.
    """
    n_layers = len(draw["widths"]) - 1
    if not 1 <= layer <= n_layers:
        raise ValueError(f"layer must be in 1..{n_layers}, the draw's hidden layers, got {layer}")
    A = np.ascontiguousarray(A, dtype=np.float64)
    net = Network(draw, components)
    if n_layers == 1 and net.n_components > 0:
        return _expanded_moments(net, A, None, seed, t, n_samples)[0]
    return _sampled(net, A, draw["activations"], None, layer, seed, t, n_burn_in, n_kept)[0]


def sample_rows(draw, n_rows, generator, components=None):
    """Rows of the network's own from the top layer down: visible pre-activations, (n_rows, D).

    With row clusters give fresh ``components`` or all new rows share one new cluster. ``generator``
    is a numpy.random.Generator. "sigmoid" units are s of what is returned.
    """
    label = None
    if components is not None and len(draw["widths"]) > 1:
        weight = np.exp(components[0])
        label = generator.choice(len(weight), size=n_rows, p=weight / weight.sum())
    a = _from_the_top(draw, n_rows, generator, components, label)
    return np.ascontiguousarray(a[:, :draw["widths"][0]])


def _from_the_top(draw, n_rows, generator, components, label):
    """Pre-activations of all units; those of the top layer from the components of the rows."""
    widths = np.asarray(draw["widths"])
    offset, n_units = np.concatenate([[0], np.cumsum(widths)]), widths.sum()
    edges, weights = np.asarray(draw["edges"]).reshape(-1, 2), draw["weights"]
    a = np.empty((n_rows, n_units))
    u = np.empty_like(a)
    start = np.searchsorted(edges[:, 1], np.arange(n_units + 1))
    for layer in range(len(widths) - 1, -1, -1):
        units = slice(offset[layer], offset[layer + 1])
        z = generator.standard_normal((n_rows, widths[layer]))
        if label is not None and layer == len(widths) - 1:
            _, mean, precision = components
            a[:, units] = mean[label] + z / np.sqrt(precision[label])
        else:
            for j in range(units.start, units.stop):
                into = slice(start[j], start[j + 1])
                a[:, j] = draw["biases"][j] + u[:, edges[into, 0]] @ weights[into]
            a[:, units] += z / np.sqrt(draw["unit_precision"][units])
        u[:, units] = np.tanh(0.5 * a[:, units])
    return a
