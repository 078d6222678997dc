"""Inner chains of prediction: Gibbs over the hidden layers of rows, the network given."""

from libc.math cimport sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from skbnp.cibp_belief_net._draw_network cimport DrawNetwork, Moments
from skbnp.likelihoods.nonlinear_gaussian._activations cimport Activations, squash_all
from skbnp.numerics cimport linalg, rng as random
from skbnp.numerics.rng cimport RowStream

import numpy as np

from skbnp.numerics.rows import patterns, row_keys

cdef enum:
    BLOCK = 128             # particles of a chain at a time
    NARROW = 8              # layers below this width have no Hamiltonian steps
    MOST_STARTS = 2000      # training rows that a row's chain may start from

cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15   # 2^64 over the golden ratio, between keys


cdef class InnerChain:
    """Gibbs over the layers of up to BLOCK rows with the same missing entries, network given.

    Arrays of a layer are contiguous (n, width), those of all layers follow one another.
    """

    cdef:
        DrawNetwork net
        Activations wide, narrow        # updates of layers, by their width
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

    def __init__(self, DrawNetwork net, bint annealing=False):
        self.net = net
        # Annealing crosses between modes by itself: of wide layers it leaves the slices out, which
        # take three quarters of the time.
        self.wide = Activations("hmc", 1) if annealing else Activations()
        self.narrow = Activations("slice", 1) if annealing else self.wide
        self.wide.reserve(net.widest)
        self.narrow.reserve(net.widest)
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

        These are resampled by ``log_weight`` (n_rows, n_stored), the log likelihood of a row under
        each.
        """
        cdef Py_ssize_t i, layer, k, chosen, n_stored = stored.shape[0], width
        for i in range(self.n):
            memcpy(scratch, &log_weight[(first + i) // n_copies, 0], n_stored * sizeof(double))
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
            self._update(layer, nu, stride)
            self._squash(layer)
        return 0

    cdef void _update(self, Py_ssize_t layer, const double* nu, Py_ssize_t stride) noexcept nogil:
        """The activations of a layer given its mean, precision, linear and quadratic terms."""
        cdef Py_ssize_t width = self.net.width[layer]
        cdef double* a = &self.a[self.net.offset[layer] * BLOCK]
        if width < NARROW:
            self.narrow.update_rows(
                self.stream, self.n, width, a, &self.mean[0], nu, stride, &self.linear[0],
                &self.quadratic[0],
            )
        else:
            self.wide.update_rows(
                self.stream, self.n, width, a, &self.mean[0], nu, stride, &self.linear[0],
                &self.quadratic[0],
            )

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


def sampled(
    DrawNetwork net, A, stored, Moments moments, Py_ssize_t layer, seed, t, n_burn_in, n_kept
):
    """Over the kept passes of an inner chain mean and variance of missing entries, or mean of u.

    One chain per row from a training row, resampled by the likelihood of what is observed; four
    where the top layer is a mixture, since a chain seldom leaves its cluster. O(n_hidden^2) per row
    and pass, and O(edges into missing entries) per kept one.
    """
    cdef Py_ssize_t n_copies = 4 if net.n_components > 0 else 1
    cdef Py_ssize_t burn_in = n_burn_in, kept = max(1, n_kept // n_copies), i, done, first, n, k
    cdef Py_ssize_t step
    cdef Py_ssize_t n_particles, at, begin, end
    cdef uint64_t seed_ = seed, t_ = t
    cdef const uint64_t[::1] key = row_keys(A)
    cdef bint entries = layer == 0
    cdef double weight = 1.0 / (kept * n_copies)
    cdef double[::1] total = np.zeros(len(A))
    cdef const double* u
    cdef double[:, ::1] one = np.zeros(A.shape if entries else (len(A), net.width[layer - 1]))
    cdef double[:, ::1] two = np.zeros(A.shape if entries else (0, 0))
    step = (len(stored) + MOST_STARTS - 1) // MOST_STARTS
    stored = np.ascontiguousarray(stored[::step])
    cdef const double[:, ::1] stored_a = stored
    cdef const double[:, ::1] T, log_weight
    cdef const Py_ssize_t[::1] rows, missing
    cdef double[::1] scratch = np.empty(len(stored))
    cdef InnerChain chain = InnerChain(net)
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
        fit = T_group @ stored_u.T - 0.5 * np.sum(stored_u @ S * stored_u, axis=1)
        log_weight = np.ascontiguousarray(fit)
        chain.set_pattern(S)
        with nogil:
            n_particles, first = rows.shape[0] * n_copies, 0
            while first < n_particles:
                n = min(<Py_ssize_t> BLOCK, n_particles - first)
                chain.load(T, first, n, n_copies, rows, key, seed_, t_)
                failed = chain.start_at_rows(stored_a, log_weight, first, n_copies, &scratch[0])
                for done in range(burn_in + kept):
                    failed = failed or chain.sweep(1.0)
                    if failed:
                        break
                    if done < burn_in:
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


def annealed(DrawNetwork net, A, log_share, seed, t, n_temperatures, n_particles):
    """log of an unbiased estimate of each row's density relative to u = 0 (Neal 2001), and the
    inverse of how many of its particles count, (n_rows,) both.

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
    cdef InnerChain chain = InnerChain(net, annealing=True)
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
    total = np.logaddexp.reduce(np.asarray(out), axis=1)
    squares = np.logaddexp.reduce(2.0 * np.asarray(out), axis=1)
    return total - np.log(n_particles), np.exp(squares - 2.0 * total)


def _lost(row):
    return ArithmeticError(f"row {row}: no component of the top layer has a finite probability")
