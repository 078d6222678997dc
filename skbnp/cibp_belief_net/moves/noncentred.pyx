"""A unit's parameters together with its activations, its noise held: (B5.20) and (B5.21)."""

from libc.math cimport exp, log, sqrt
from libc.string cimport memcpy

import numpy as np

from skbnp.cibp_belief_net._laws cimport (
    BIAS_MEAN, BIAS_PRECISION, NOISE_RATE, WEIGHT_MEAN, WEIGHT_PRECISION, log_normal,
)
from skbnp.cibp_belief_net._state cimport Network
from skbnp.cibp_belief_net.moves.activations cimport LayerActivations
from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws


cdef class NonCentred(Move):
    """Precision, bias and weights of each hidden unit, one after the other, by Newton's steps.

    A parameter given its unit's activations hardly moves where there are many rows. Here the noise
    z = (a - mean) sqrt(nu) is held and the activations go along, so that only the prior of the
    parameter and what the unit's children say are in the way (Papaspiliopoulos, Roberts & Sköld
    2007). Not for units that follow row clusters. Cost: two passes over the rows for each
    parameter, and the products of ``LayerActivations`` for each layer.
    """

    NAME = "noncentred"
    COUNTS = ("precisions", "biases", "weights")

    def __init__(self, Network net, LayerActivations activations, bit_generator):
        """``activations`` lends its room and its products."""
        super().__init__(bit_generator)
        self.net, self.gathered = net, activations
        self.linear, self.residual, self.slope, self.pre, self.post = np.zeros((5, net.stride))

    cpdef int run(self) except -1:
        cdef Py_ssize_t layer = 1
        with nogil:
            while layer < self.net.n_layers:
                if not self.net.follows_clusters(layer):
                    self._update_layer(layer)
                layer += 1
        return DONE

    cdef int _update_layer(self, Py_ssize_t layer) except -1 nogil:
        """A layer's units; what children say of their activations does not change meanwhile."""
        cdef Py_ssize_t k, pos
        cdef Line line
        self.gathered.gather(layer)
        for k in range(self.net.width(layer)):
            self._load(layer, k, &line)
            self._try_precision(layer, &line)
            self._try_bias(layer, &line)
            for pos in range(self.net.first_above(layer), self.net.end_above(layer)):
                if self.net.edge[line.unit, self.net.member[pos]]:
                    self._try_weight(layer, self.net.member[pos], &line)
        return 0

    cdef void _load(self, Py_ssize_t layer, Py_ssize_t k, Line* line) noexcept nogil:
        """The k-th unit of a layer: its residual, and T and S of its children."""
        cdef Py_ssize_t i, j, n = self.net.n_samples, width = self.net.width(layer)
        cdef double bias
        line.slot, line.unit = self.net.slot(layer, k), self.net.unit(layer, k)
        line.quadratic = self.gathered.quadratic[k * width + k]
        for i in range(n):
            self.linear[i] = self.gathered.linear[i * width + k]
        for j in range(width):
            linalg.axpy(
                n, -self.gathered.quadratic[k * width + j],
                &self.net.post[self.net.slot(layer, j), 0], &self.linear[0],
            )
        bias = self.net.bias[line.unit]
        for i in range(n):
            self.slope[i] = bias
        self.net.add_inputs(line.unit, &self.slope[0])
        for i in range(n):
            self.residual[i] = self.net.pre[line.slot, i] - self.slope[i]

    # -- one parameter ------------------------------------------------------------------------

    cdef void _try_precision(self, Py_ssize_t layer, Line* line) noexcept nogil:
        """log nu: a = mean + z exp(-log nu / 2)."""
        cdef Py_ssize_t i
        cdef double step, new
        line.kind, line.value = PRECISION, log(self.net.precision[line.unit])
        line.shape, line.rate = self.net.laws.noise_shape, self.net.hyper[NOISE_RATE, layer]
        for i in range(self.net.n_samples):
            self.slope[i] = -0.5 * self.residual[i]
        self.proposed[0] += 1
        if not self._is_accepted(line, &step):
            return
        new = exp(line.value + step)
        if 0.0 < new <= self.net.laws.highest_precision:
            self.accepted[0] += 1
            self.net.precision[line.unit] = new
            for i in range(self.net.n_samples):
                self.residual[i] *= exp(-0.5 * step)
            self._take(line)

    cdef void _try_bias(self, Py_ssize_t layer, Line* line) noexcept nogil:
        cdef Py_ssize_t i
        cdef double step
        line.kind, line.value = BIAS, self.net.bias[line.unit]
        line.prior_mean = self.net.hyper[BIAS_MEAN, layer]
        line.prior_precision = self.net.hyper[BIAS_PRECISION, layer]
        for i in range(self.net.n_samples):
            self.slope[i] = 1.0
        self.proposed[1] += 1
        if self._is_accepted(line, &step):
            self.accepted[1] += 1
            self.net.bias[line.unit] += step
            self._take(line)

    cdef void _try_weight(self, Py_ssize_t layer, Py_ssize_t parent, Line* line) noexcept nogil:
        cdef double step
        line.kind, line.value = WEIGHT, self.net.weight[line.unit, parent]
        line.prior_mean = self.net.hyper[WEIGHT_MEAN, layer]
        line.prior_precision = self.net.hyper[WEIGHT_PRECISION, layer]
        memcpy(
            &self.slope[0], &self.net.post[parent, 0], self.net.n_samples * sizeof(double)
        )
        self.proposed[2] += 1
        if self._is_accepted(line, &step):
            self.accepted[2] += 1
            self.net.weight[line.unit, parent] += step
            self._take(line)

    # -- a step -------------------------------------------------------------------------------

    cdef bint _is_accepted(self, const Line* line, double* step) noexcept nogil:
        """A step from Newton's normal law, taken or not; ``pre`` and ``post`` are where it ends."""
        cdef double center, precision, log_ratio
        memcpy(
            &self.post[0], &self.net.post[line.slot, 0], self.net.n_samples * sizeof(double)
        )
        self._measure(line, 0.0, &center, &precision)
        step[0] = center + draws.normal(self.rng) / sqrt(precision)
        self._follow(line, step[0])
        log_ratio = self._gain(line, step[0]) + self._log_way_back(line, step[0])
        log_ratio -= log_normal(step[0], center, precision)
        # False for what is not a number.
        return log(draws.uniform(self.rng)) < log_ratio

    cdef double _log_way_back(self, const Line* line, double step) noexcept nogil:
        """Log density of the step from the proposal to where the unit is."""
        cdef double center, precision
        self._measure(line, step, &center, &precision)
        return log_normal(-step, center, precision)

    cdef void _follow(self, const Line* line, double step) noexcept nogil:
        """Activations after a step, the noise held."""
        cdef Py_ssize_t i
        cdef double grown = step
        if line.kind == PRECISION:
            # (exp(-step / 2) - 1) of the residual, as a multiple of the slope -residual / 2.
            grown = 2.0 * (1.0 - exp(-0.5 * step))
        for i in range(self.net.n_samples):
            self.pre[i] = self.net.pre[line.slot, i] + grown * self.slope[i]
        squash_all(self.net.n_samples, &self.pre[0], &self.post[0])

    cdef double _gain(self, const Line* line, double step) noexcept nogil:
        """Log density after a step over that before, without the noise: (B5.21)."""
        cdef Py_ssize_t i
        cdef double total, up, before = line.value, after = line.value + step
        if line.kind == PRECISION:
            total = line.shape * step - line.rate * (exp(after) - exp(before))
        else:
            total = log_normal(after, line.prior_mean, line.prior_precision)
            total -= log_normal(before, line.prior_mean, line.prior_precision)
        for i in range(self.net.n_samples):
            up = self.post[i] - self.net.post[line.slot, i]
            total += up * (self.linear[i] - 0.5 * line.quadratic * up)
        return total

    cdef void _measure(
        self, const Line* line, double step, double* center, double* precision
    ) noexcept nogil:
        """Newton's step from where ``step`` has led, and its precision, of Gauss and Newton.

        ``post`` is u there.
        """
        cdef Py_ssize_t i
        cdef double gradient, size = 1.0, u, bend, pull
        if line.kind == PRECISION:
            size = exp(-0.5 * step)
            pull = line.rate * exp(line.value + step)
            gradient, precision[0] = line.shape - pull, pull
        else:
            gradient = line.prior_precision * (line.prior_mean - line.value - step)
            precision[0] = line.prior_precision
        for i in range(self.net.n_samples):
            u = self.post[i]
            bend = 0.5 * (1.0 - u * u) * size * self.slope[i]
            pull = self.linear[i] - line.quadratic * (u - self.net.post[line.slot, i])
            gradient += bend * pull
            precision[0] += line.quadratic * bend * bend
        center[0] = gradient / precision[0]

    cdef void _take(self, const Line* line) noexcept nogil:
        """The unit's activations as proposed, and what its children say of them from there."""
        cdef Py_ssize_t i, n = self.net.n_samples
        for i in range(n):
            self.linear[i] += line.quadratic * self.net.post[line.slot, i]
        memcpy(&self.net.pre[line.slot, 0], &self.pre[0], n * sizeof(double))
        self.net.squash(line.slot)
        linalg.axpy(n, -line.quadratic, &self.net.post[line.slot, 0], &self.linear[0])
