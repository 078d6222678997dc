"""Births and deaths of parents of one child that keep the child's mean and variance."""

from libc.math cimport log, log1p, sqrt, tanh

import numpy as np

from skbnp.cibp_belief_net._laws cimport (
    BIAS_MEAN, BIAS_PRECISION, CONCENTRATION, MASS, NOISE_RATE, WEIGHT_MEAN, WEIGHT_PRECISION,
    log_normal,
)
from skbnp.cibp_belief_net._state cimport Network
from skbnp.cibp_belief_net.moves.rows cimport Rows
from skbnp.likelihoods.nonlinear_gaussian._grid cimport (
    draw_on_grid, squashed_moments, weigh_on_grid,
)
from skbnp.likelihoods.nonlinear_gaussian._matching cimport (
    LEAST_PRECISION, compare_rows, match_precision,
)
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.processes.ibp cimport log_dish

# Standard deviation of narrow weights, as a share of that of the prior.
cdef double NARROW = 0.3


cdef class MatchedBirths(Move):
    """A unit's parent without other children and without parents comes or goes: (B5.19).

    Unlike those of ``births``, it comes with its weight, and its activations are drawn given what
    it is to explain: the state has all weights. Layer by layer, each layer's tries change units
    of the layer above alone. Cost of a try: O(N CELLS) and the parents of one unit.
    """

    NAME = "matched_births"
    COUNTS = ("matched_births", "matched_deaths")

    def __init__(self, Network net, Rows rows, bit_generator, double rate=0.25):
        """``rows`` lends its proposals, which count what ``max_units`` refuses."""
        super().__init__(bit_generator)
        self.net, self.birth, self.death, self._rate = net, rows.birth, rows.death, rate
        self.orphan = np.zeros(0, dtype=np.intp)
        self.mean, self.spread, self.linear, self.residual = np.zeros((4, net.stride))

    cpdef int run(self) except -1:
        cdef Py_ssize_t layer = 0
        with nogil:
            while layer < min(self.net.n_layers, self.net.laws.deepest):
                self._run_layer(layer)
                layer += 1
        return DONE

    cdef int _run_layer(self, Py_ssize_t layer) except -1 nogil:
        """As many tries as there are children, each with the rate, each for a random child."""
        cdef Py_ssize_t _, n = self.net.width(layer)
        cdef Match at
        at.layer = layer
        for _ in range(n):
            if not draws.uniform(self.rng) < self._rate:
                continue
            at.child = self.net.unit(layer, draws.below(self.rng, n))
            at.is_narrow = draws.uniform(self.rng) < 0.5
            if draws.uniform(self.rng) < 0.5:
                self._try_birth(&at)
            else:
                self._try_death(&at)
        return DONE

    cdef int _try_birth(self, Match* at) except -1 nogil:
        cdef Py_ssize_t i, slot, layer = at.layer + 1
        cdef double log_ratio, rho = self.net.hyper[WEIGHT_PRECISION, at.layer], quadratic
        self.proposed[0] += 1
        if self.birth.draw_alone(self.rng, layer) != 0:
            return 0
        at.weight = draws.normal(self.rng) / sqrt(rho)
        if at.is_narrow:
            at.weight *= NARROW
        else:
            at.weight += self.net.hyper[WEIGHT_MEAN, at.layer]
        if not self._lay_out(
            at, self.birth.bias[0], self.birth.precision[0], &self.birth.cluster_mean[0, 0],
            &self.birth.cluster_precision[0, 0],
        ) or not self._match(at, True):
            self.birth.withdraw()
            return 0
        log_ratio = self._log_structure(at, self.net.width(layer), 1 + self._list_orphans(at))
        log_ratio += self._log_parameters(at) + self._compare_rows(at, NULL)
        quadratic = at.precision_with * at.weight * at.weight
        for i in range(self.net.n_samples):
            log_ratio += draw_on_grid(
                self.rng, self.mean[i], self.spread[i], self.linear[i], quadratic,
                &self.birth.pre[0, i],
            )
        if self.net.laws.skips:
            log_ratio += self.birth.log_skip_ratio()
        if not log(draws.uniform(self.rng)) < log_ratio:
            self.birth.withdraw()
            return 0
        for i in range(self.net.n_samples):
            self.birth.post[0, i] = tanh(0.5 * self.birth.pre[0, i])
        slot = self.birth.admit()
        self.net.link(at.child, slot)
        self.net.weight[at.child, slot] = at.weight
        self.net.bias[at.child] = at.bias_with
        self.net.precision[at.child] = at.precision_with
        self.accepted[0] += 1
        return 0

    cdef int _try_death(self, Match* at) except -1 nogil:
        """The inverse of the birth that would make the parent as it is."""
        cdef Py_ssize_t i, slot, unit, n, layer = at.layer + 1
        cdef double log_ratio, quadratic
        self.proposed[1] += 1
        self.death.reserve()
        if self.orphan.shape[0] < self.net.n_slots():
            with gil:
                self.orphan = np.zeros(self.net.n_slots(), dtype=np.intp)
        n = self._list_orphans(at)
        if n == 0:
            return 0
        slot = self.orphan[draws.below(self.rng, n)]
        unit = self.net.n_visible + slot
        at.weight = self.net.weight[at.child, slot]
        if not self._lay_out(
            at, self.net.bias[unit], self.net.precision[unit], &self.net.cluster_mean[slot, 0],
            &self.net.cluster_precision[slot, 0],
        ) or not self._match(at, False):
            return 0
        log_ratio = self._log_structure(at, self.net.width(layer) - 1, n)
        log_ratio += self._log_parameters(at) + self._compare_rows(at, &self.net.post[slot, 0])
        quadratic = at.precision_with * at.weight * at.weight
        for i in range(self.net.n_samples):
            log_ratio += weigh_on_grid(
                self.net.pre[slot, i], self.mean[i], self.spread[i], self.linear[i], quadratic
            )
        self.death.find(slot)
        if self.net.laws.skips:
            log_ratio -= self.death.log_skip_ratio()
        if log(draws.uniform(self.rng)) < -log_ratio:
            self.death.carry_out()
            self.net.bias[at.child] = at.bias_without
            self.net.precision[at.child] = at.precision_without
            self.accepted[1] += 1
        return 0

    # -- structure ----------------------------------------------------------------------------

    cdef Py_ssize_t _list_orphans(self, const Match* at) noexcept nogil:
        """Number of parents of the child that a birth may have made; listed where there is room."""
        cdef Py_ssize_t k, slot, n = 0
        for k in range(self.net.width(at.layer + 1)):
            slot = self.net.slot(at.layer + 1, k)
            if not self.net.edge[at.child, slot] or self.net.n_children[slot] > 1:
                continue
            if self._has_parents(slot):
                continue
            if n < self.orphan.shape[0]:
                self.orphan[n] = slot
            n += 1
        return n

    cdef bint _has_parents(self, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t pos
        for pos in range(self.net.first_above(self.net.slot_layer[slot]), self.net.n_hidden):
            if self.net.edge[self.net.n_visible + slot, self.net.member[pos]]:
                return True
        return False

    cdef double _log_structure(
        self, const Match* at, double n_others, double n_orphans
    ) noexcept nogil:
        """Of the edges with the parent over those without, and of choosing it to die.

        ``n_others``: units of its layer beside it; ``n_orphans``: with it.
        """
        cdef double beta = self.net.hyper[CONCENTRATION, at.layer]
        cdef double total = log(self.net.hyper[MASS, at.layer] * beta)
        total += log_dish(1, self.net.width(at.layer), beta) - log(n_orphans)
        return total + self._log_alone(at.layer + 1, n_others)

    cdef double _log_alone(self, Py_ssize_t layer, double n_others) noexcept nogil:
        """Log probability that one more unit of a layer has no parents: equation (B5.18)."""
        cdef Py_ssize_t k
        cdef double beta, seats, total
        if layer >= self.net.laws.deepest:
            return 0.0
        beta = self.net.hyper[CONCENTRATION, layer]
        seats = n_others + beta
        total = -self.net.hyper[MASS, layer] * beta / seats
        for k in range(self.net.width(layer + 1)):
            total += log1p(-self.net.n_near[self.net.slot(layer + 1, k)] / seats)
        return total

    # -- parameters ---------------------------------------------------------------------------

    cdef bint _lay_out(
        self, Match* at, double bias, double precision, const double* cluster_mean,
        const double* cluster_precision,
    ) noexcept nogil:
        """Lay out the parent's law in each row, and its moments; whether there is such a birth."""
        cdef Py_ssize_t i, c
        cdef double share, mean, variance, square = 0.0
        if not self.net.follows_clusters(at.layer + 1):
            squashed_moments(bias, 1.0 / sqrt(precision), &at.mean, &at.variance)
            for i in range(self.net.n_samples):
                self.mean[i], self.spread[i] = bias, 1.0 / sqrt(precision)
            return precision > LEAST_PRECISION
        at.mean = 0.0
        for c in range(self.net.n_clusters):
            if not cluster_precision[c] > LEAST_PRECISION:
                return False
            squashed_moments(cluster_mean[c], 1.0 / sqrt(cluster_precision[c]), &mean, &variance)
            share = <double> self.net.cluster_count[c] / self.net.n_samples
            at.mean += share * mean
            square += share * (variance + mean * mean)
        at.variance = max(square - at.mean * at.mean, 0.0)
        for i in range(self.net.n_samples):
            c = self.net.label[i]
            self.mean[i], self.spread[i] = cluster_mean[c], 1.0 / sqrt(cluster_precision[c])
        return True

    cdef bint _match(self, Match* at, bint birth) noexcept nogil:
        """Fill in the child's parameters with the parent and without: (B5.16); if there are any."""
        cdef double shift = at.weight * at.mean, bias = self.net.bias[at.child]
        at.bias_without = bias if birth else bias + shift
        at.bias_with = bias - shift if birth else bias
        at.precision_without = at.precision_with = self.net.precision[at.child]
        if not match_precision(
            birth, at.weight * at.weight * at.variance, &at.precision_without, &at.precision_with
        ):
            return False
        return at.precision_with <= self.net.laws.highest_precision

    cdef double _log_parameters(self, const Match* at) noexcept nogil:
        """Of weight, bias and precision with the parent over those without and their proposal."""
        cdef double w = at.weight, rho = self.net.hyper[WEIGHT_PRECISION, at.layer]
        cdef double mu = self.net.hyper[BIAS_MEAN, at.layer]
        cdef double tau = self.net.hyper[BIAS_PRECISION, at.layer]
        cdef double rate = self.net.hyper[NOISE_RATE, at.layer], total = self._log_jacobian(at)
        if at.is_narrow:
            total += log_normal(w, self.net.hyper[WEIGHT_MEAN, at.layer], rho)
            total -= log_normal(w, 0.0, rho / (NARROW * NARROW))
        total += log_normal(at.bias_with, mu, tau) - log_normal(at.bias_without, mu, tau)
        total += self.net.laws.log_precision(at.precision_with, rate)
        return total - self.net.laws.log_precision(at.precision_without, rate)

    cdef double _log_jacobian(self, const Match* at) noexcept nogil:
        """Of the child's bias and precision: equation (B5.16)."""
        return 2.0 * log(at.precision_with / at.precision_without)

    # -- rows ---------------------------------------------------------------------------------

    cdef double _compare_rows(self, const Match* at, const double* u) noexcept nogil:
        """Log density of the child's rows with a parent of activation 0 over that without it.

        u are the activations of the parent, NULL if it is not there yet. Fills ``linear`` in.
        """
        cdef Py_ssize_t i, n = self.net.n_samples
        cdef double* r = &self.residual[0]
        cdef const double* a = self.net.activity(at.child)
        for i in range(n):
            r[i] = self.linear[i] = 0.0
        self.net.add_inputs(at.child, r)
        for i in range(n):
            r[i] = a[i] - at.bias_with - r[i]
        if u != NULL:
            linalg.axpy(n, at.weight, u, r)
        return 0.5 * n * log(at.precision_with / at.precision_without) + compare_rows(
            n, r, at.bias_without - at.bias_with, at.weight, at.precision_without,
            at.precision_with, &self.linear[0],
        )
