"""What one draw of a network says of its targets given its inputs, worked out once for any rows.

Targets have no children: they are outputs, or the columns of a network in which all have the same
order. So nothing above a target is known but the inputs, and fantasies of the hidden nodes have
equal weights: each starts from the same noises for all rows. What inputs add to a node's mean is
the same in all fantasies of a row.
"""

from libc.math cimport isnan, log

from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.likelihoods.nonlinear_gaussian._exponential cimport quick_exp  # no-cython-lint
from skbnp.numerics cimport special
from skbnp.numerics.special cimport LOG_2_PI

import numpy as np


cdef extern from *:
    """
    /* Largest error of the normal distribution function 7.5e-8, and never 0 where it is needed:
       Abramowitz and Stegun (1964), 26.2.17. The ratio of density and distribution function,
       and the latter. The density lacks 1 / sqrt(2 pi), which is the same for all classes. */
    static inline double skbnp_normal_ratio(double x, double* cdf) {
        const double z = x < 0.0 ? -x : x;
        const double t = 1.0 / (1.0 + 0.2316419 * z);
        const double density = skbnp_quick_exp(-0.5 * x * x);
        double tail = 1.330274429;
        tail = tail * t - 1.821255978;
        tail = tail * t + 1.781477937;
        tail = tail * t - 0.356563782;
        tail = tail * t + 0.319381530;
        tail = 0.3989422804014327 * density * (tail * t);
        *cdf = x < 0.0 ? tail : 1.0 - tail;
        return density / *cdf;
    }

    enum {SKBNP_GRID = 9};
    static const double SKBNP_GRID_STEP = 1.25;

    static SKBNP_CLONES void skbnp_largest(
        Py_ssize_t n_classes, Py_ssize_t n, const double* mean, double* highest, double* work,
        double* out
    ) {
        double* below = work;
        double* total = below + n;
        double* ratio = total + n;
        double* part = ratio + n_classes * n;
        Py_ssize_t i, j;
        int h;
        for (i = 0; i < n; i++) highest[i] = mean[i], total[i] = 0.0;
        for (j = 0; j < n_classes; j++)
            for (i = 0; i < n; i++) {
                highest[i] = mean[j * n + i] > highest[i] ? mean[j * n + i] : highest[i];
                part[j * n + i] = 0.0;
            }
        /* Each fantasy has the grid shifted by its share. */
        for (i = 0; i < n; i++)
            highest[i] += SKBNP_GRID_STEP * ((i + 0.5) / n - 0.5 - SKBNP_GRID / 2);
        for (h = 0; h < SKBNP_GRID; h++) {
            for (i = 0; i < n; i++) below[i] = 1.0;
            for (j = 0; j < n_classes; j++)
                for (i = 0; i < n; i++) {
                    double cdf;
                    ratio[j * n + i] = skbnp_normal_ratio(highest[i] - mean[j * n + i], &cdf);
                    below[i] *= cdf;
                }
            for (j = 0; j < n_classes; j++)
                for (i = 0; i < n; i++) {
                    const double x = below[i] * ratio[j * n + i];
                    part[j * n + i] += x;
                    total[i] += x;
                }
            for (i = 0; i < n; i++) highest[i] += SKBNP_GRID_STEP;
        }
        for (j = 0; j < n_classes; j++) {
            out[j] = 0.0;
            for (i = 0; i < n; i++) out[j] += part[j * n + i] / total[i] / n;
        }
    }

    static SKBNP_CLONES double skbnp_above_zero(Py_ssize_t n, const double* mean) {
        double sum = 0.0;
        Py_ssize_t i;
        for (i = 0; i < n; i++) {
            double cdf;
            skbnp_normal_ratio(mean[i], &cdf);
            sum += cdf / n;
        }
        return sum;
    }
    """
    # Mean over n fantasies of P(latent c is the largest), latents having the means (n_classes, n)
    # and variance 1: by the trapezoid rule over the largest, whose error the shifts average out.
    void largest "skbnp_largest"(
        Py_ssize_t n_classes, Py_ssize_t n, const double* mean, double* highest, double* work,
        double* out,
    ) noexcept nogil
    # Mean over fantasies of P(a latent is above 0).
    double above_zero "skbnp_above_zero"(Py_ssize_t n, const double* mean) noexcept nogil


cdef class Outputs:
    """One network and its fantasies; nothing changes after the start, threads may share it.

    Nodes stand at positions, hidden ones with parents before children, then the targets.
    """

    cdef:
        readonly Py_ssize_t n_fantasies, n_outputs
        Py_ssize_t _n_hidden
        bint _of_classes
        # Edges by child, from other nodes and from inputs: the parents are positions and columns.
        const Py_ssize_t[::1] _start, _parent, _input_start, _input
        const double[::1] _weight, _input_weight
        const Py_ssize_t[::1] _target           # columns of the targets
        const double[::1] _bias, _variance      # by position
        const double[:, ::1] _noise             # (n_hidden, n_fantasies), times the spread

    def __init__(self, draw, prior, noise):
        """``noise`` (n_nodes, n_fantasies) are standard normals of the draw's nodes."""
        n_nodes, n_fantasies = noise.shape
        law = prior.has_law(n_nodes)
        outputs = np.flatnonzero(law[:prior.n_observed])
        order = np.argsort(-draw["order"], kind="stable")
        hidden = order[order >= prior.n_observed]
        nodes = np.concatenate([hidden, outputs])
        position = np.full(n_nodes, -1, dtype=np.intp)
        position[nodes] = np.arange(len(nodes))
        parents, children = np.asarray(draw["edges"], dtype=np.intp).reshape(-1, 2).T
        by_child = np.argsort(position[children], kind="stable")
        is_input = ~law[parents[by_child]]
        among, into = by_child[~is_input], by_child[is_input]
        places = np.arange(len(nodes) + 1)
        self._start = np.searchsorted(position[children[among]], places)
        self._parent, self._weight = position[parents[among]], draw["weights"][among]
        self._input_start = np.searchsorted(position[children[into]], places)
        self._input, self._input_weight = parents[into], draw["weights"][into]
        self._bias, self._variance = draw["biases"][nodes], 1.0 / draw["unit_precision"][nodes]
        spread = np.sqrt(self._variance)[:len(hidden), np.newaxis]
        self._noise = np.ascontiguousarray(noise[hidden] * spread)
        self.n_fantasies, self.n_outputs, self._target = n_fantasies, len(outputs), outputs
        self._n_hidden, self._of_classes = len(hidden), "latent" in prior.roles

    def moments(self, A_):
        """Mean and variance of each target given the inputs in A, (n_rows, n_outputs) each.

        With latents as targets: probabilities of the classes, (n_rows, n_classes), and zeros.
        """
        cdef const double[:, ::1] A = np.ascontiguousarray(A_, dtype=np.float64)
        cdef Py_ssize_t n_out = max(2, self.n_outputs) if self._of_classes else self.n_outputs
        cdef double[:, ::1] mean = np.zeros((A.shape[0], n_out))
        cdef double[:, ::1] variance = np.zeros((A.shape[0], n_out))
        cdef double[:, ::1] u = np.empty((self._n_hidden + self.n_outputs, self.n_fantasies))
        cdef double[::1] work = np.empty((3 + 2 * n_out) * self.n_fantasies)
        cdef Py_ssize_t i, n = self.n_fantasies
        cdef const double* target = &u[self._n_hidden, 0]
        with nogil:
            for i in range(A.shape[0]):
                self._follow(&A[i, 0], u)
                if not self._of_classes:
                    self._spread_of(target, &mean[i, 0], &variance[i, 0])
                elif self.n_outputs == 1:
                    mean[i, 1] = above_zero(n, target)
                    mean[i, 0] = 1.0 - mean[i, 1]
                else:
                    largest(n_out, n, target, &work[0], &work[n], &mean[i, 0])
        return np.asarray(mean), np.asarray(variance)

    def log_densities(self, A_, labels_=None, bint smoothed=False):
        """log p(known targets of each row, or its label | inputs), (n_rows,); targets are in A.

        A target that is NaN is not known; a row without any has log density 0. ``smoothed`` adds
        to the noise of each target that of a kernel density of its means over the fantasies, by
        Silverman's rule: of a few fantasies and little noise, the mean of their densities is tens
        of nats too low where none of them happens to be near.
        """
        if self._of_classes:
            probability, _ = self.moments(A_)
            return np.log(probability[np.arange(len(labels_)), labels_])
        cdef const double[:, ::1] A = np.ascontiguousarray(A_, dtype=np.float64)
        cdef double[:, ::1] u = np.empty((self._n_hidden + self.n_outputs, self.n_fantasies))
        cdef double[::1] score = np.empty(self.n_fantasies), out = np.zeros(A.shape[0])
        cdef Py_ssize_t i, d = self.n_outputs
        cdef bint is_moved = self._input.shape[0] > 0
        # Of the variance of the means, the square of the kernel's width.
        cdef double share = 0.0
        if smoothed:
            share = (4.0 / ((d + 2.0) * self.n_fantasies)) ** (2.0 / (d + 4.0))
        with nogil:
            for i in range(A.shape[0]):
                if i == 0 or is_moved:
                    self._follow(&A[i, 0], u)
                out[i] = self._score(&A[i, 0], &u[self._n_hidden, 0], share, &score[0])
        return np.asarray(out)

    cdef double _score(
        self, const double* row, const double* target, double share, double* score
    ) noexcept nogil:
        """log mean over fantasies of the density of the known targets of a row."""
        cdef Py_ssize_t i, j, n = self.n_fantasies
        cdef double constant = 0.0, variance, half, off
        cdef bint is_empty = True
        for i in range(n):
            score[i] = 0.0
        for j in range(self.n_outputs):
            off = row[self._target[j]]
            if isnan(off):
                continue
            is_empty = False
            variance = self._variance[self._n_hidden + j]
            if share > 0.0:
                variance += share * _variance_of(n, target + j * n)
            half = 0.5 / variance
            constant -= 0.5 * (LOG_2_PI + log(variance))
            for i in range(n):
                score[i] -= half * (off - target[j * n + i]) * (off - target[j * n + i])
        if is_empty:
            return 0.0
        return constant + special.log_sum_exp(score, n) - log(<double> n)

    cdef void _follow(self, const double* row, double[:, ::1] u) noexcept nogil:
        """u of the hidden nodes and the means of the targets, in every fantasy."""
        cdef Py_ssize_t p, e, i, n = self.n_fantasies
        cdef double base, w
        cdef double* out
        cdef const double* parent
        for p in range(u.shape[0]):
            out, base = &u[p, 0], self._bias[p]
            for e in range(self._input_start[p], self._input_start[p + 1]):
                base += self._input_weight[e] * row[self._input[e]]
            for i in range(n):
                out[i] = base
            if p < self._n_hidden:
                for i in range(n):
                    out[i] += self._noise[p, i]
            for e in range(self._start[p], self._start[p + 1]):
                w, parent = self._weight[e], &u[self._parent[e], 0]
                for i in range(n):
                    out[i] += w * parent[i]
            if p < self._n_hidden:
                squash_all(n, out, out)

    cdef void _spread_of(
        self, const double* target, double* mean, double* variance
    ) noexcept nogil:
        """Mean of the targets, their own noise and the spread of their means."""
        cdef Py_ssize_t j, n = self.n_fantasies
        for j in range(self.n_outputs):
            mean[j] = _mean_of(n, target + j * n)
            variance[j] = self._variance[self._n_hidden + j] + _variance_of(n, target + j * n)


cdef double _mean_of(Py_ssize_t n, const double* x) noexcept nogil:
    cdef Py_ssize_t i
    cdef double total = 0.0
    for i in range(n):
        total += x[i]
    return total / n


cdef double _variance_of(Py_ssize_t n, const double* x) noexcept nogil:
    cdef Py_ssize_t i
    cdef double mean = _mean_of(n, x), total = 0.0
    for i in range(n):
        total += (x[i] - mean) * (x[i] - mean)
    return total / n
