"""Births and deaths of units that have several children: doc/mathematics/cibp_belief_net, 5.5."""

from libc.math cimport exp, log, sqrt, tanh
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.cibp_belief_net._laws cimport CONCENTRATION, MASS, log_normal
from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.cibp_belief_net._proposals cimport BirthProposal, DeathProposal
from skbnp.cibp_belief_net._state cimport Network
from skbnp.cibp_belief_net.moves.births cimport admit_to, carry_out_in
from skbnp.cibp_belief_net.moves.counts cimport BLOCKS, Counts
from skbnp.mcmc.chain cimport BROKEN, DONE
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport log1p_exp
from skbnp.processes.ibp cimport log_dish

# Pull of a pivot's residual on the activations of a unit born for several children, least and most:
# a strong one finds what is unexplained, a weak one costs little where there are many rows (B5.9).
cdef double[2] PULL = [0.02, 2.0]


cdef class Blocks:
    """A unit above the layer is born or dies with all its edges: equation (B5.11).

    Its activations follow the residual of one child, the pivot, and it is offered to all of them.
    The rows of the layer have no weights until they are drawn anew. Cost: O(N K p) for K units
    with p candidates.
    """

    def __init__(self, Network net):
        self.order, self.taken = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.uint8)
        self.gain = np.zeros(0)
        self.residual, self.mean = (np.zeros(net.stride) for _ in range(2))

    cdef int run(
        self, LayerRegression layer, BirthProposal birth, DeathProposal death, bitgen_t* rng,
        Counts* counts,
    ) except -1 nogil:
        """One try in the layer that was gathered."""
        cdef Py_ssize_t c, n = layer.net.width(layer.index)
        cdef Block block
        counts.proposed[BLOCKS] += 1
        self._need_children(n)
        death.reserve()
        for c in range(n):
            self.order[c] = c
        # A fresh order each time: that of storage carries the units' ages.
        draws.shuffle(rng, &self.order[0], n)
        block.pull = exp(log(PULL[0]) + draws.uniform(rng) * log(PULL[1] / PULL[0]))
        block.sign = 1.0 if draws.uniform(rng) < 0.5 else -1.0
        if draws.uniform(rng) < 0.5:
            return self._try_birth(layer, birth, rng, &block, counts)
        return self._try_death(layer, death, rng, &block, counts)

    cdef int _try_birth(
        self, LayerRegression layer, BirthProposal birth, bitgen_t* rng, Block* block,
        Counts* counts,
    ) except -1 nogil:
        cdef Py_ssize_t c, j, slot, m = layer.index, n = layer.net.width(m)
        cdef double log_ratio, log_directed, log_choice
        block.pivot, block.n_takers = draws.below(rng, n), 0
        if birth.draw(rng, m + 1) != 0:
            return DONE
        if layer.start(block.pivot) != 0:
            birth.withdraw()
            return BROKEN
        layer.put_residual(block.pivot, &self.residual[0])
        log_directed = self._draw_directed(layer, birth, rng, block)
        for j in range(layer.net.n_samples):
            birth.post[0, j] = tanh(0.5 * birth.pre[0, j])
        if layer.gains_of_new(&birth.post[0, 0], &self.gain[0]) != 0:
            birth.withdraw()
            return BROKEN
        log_choice = self._log_choice(layer, rng, block.pivot)
        for c in range(n):
            block.n_takers += self.taken[c]
        log_ratio = self._log_ratio(
            layer, block, log_directed, log_choice, layer.net.width(m + 1) + 1.0
        )
        if layer.net.laws.skips:
            birth.n_takers[0] = block.n_takers
            log_ratio += birth.log_skip_ratio()
        if not log(draws.uniform(rng)) < log_ratio:
            birth.withdraw()
            return DONE
        counts.accepted[BLOCKS] += 1
        slot = admit_to(layer, birth)
        for c in range(n):
            if self.taken[c]:
                layer.net.link(layer.net.unit(m, c), slot)
        return DONE

    cdef int _try_death(
        self, LayerRegression layer, DeathProposal death, bitgen_t* rng, Block* block,
        Counts* counts,
    ) except -1 nogil:
        """The reverse: a unit of the layer above, whatever its children."""
        cdef Py_ssize_t c, slot, nth, m = layer.index, n = layer.net.width(m)
        cdef Py_ssize_t n_above = layer.net.width(m + 1)
        cdef double log_ratio, log_directed, log_choice
        if n_above == 0:
            return DONE
        slot = layer.net.slot(m + 1, draws.below(rng, n_above))
        if not death.find(slot):
            return DONE
        block.pivot, block.n_takers = -1, 0
        for c in range(n):
            self.taken[c] = layer.net.edge[layer.net.unit(m, c), slot]
            block.n_takers += self.taken[c]
        nth = draws.below(rng, block.n_takers)
        if self._take_out(layer, block, slot, nth) != 0:
            return BROKEN
        log_directed = self._log_directed(layer, slot, block)
        log_choice = self._log_choice(layer, NULL, block.pivot)
        log_ratio = -self._log_ratio(layer, block, log_directed, log_choice, n_above)
        if layer.net.laws.skips:
            log_ratio += death.log_skip_ratio()
        if log(draws.uniform(rng)) < log_ratio:
            counts.accepted[BLOCKS] += 1
            carry_out_in(layer, death)
        return DONE

    cdef int _take_out(
        self, LayerRegression layer, Block* block, Py_ssize_t slot, Py_ssize_t nth
    ) noexcept nogil:
        """Gains of a unit that there is, in each row without it; its nth child is the pivot."""
        cdef Py_ssize_t c, at = layer.place[slot]
        for c in range(layer.net.width(layer.index)):
            if layer.start(c) != 0 or (self.taken[c] and layer.row.flip(at) != 0):
                return 1
            self.gain[c] = layer.row.gain(at)
            if self.taken[c]:
                if nth == 0:
                    block.pivot = c
                    layer.put_residual(c, &self.residual[0])
                nth -= 1
        return 0

    cdef double _log_ratio(
        self, LayerRegression layer, const Block* block, double log_directed, double log_choice,
        double n_above,
    ) noexcept nogil:
        """Log acceptance ratio of the birth, after which the layer above has ``n_above`` units."""
        cdef Py_ssize_t c, m = layer.index, n = layer.net.width(m)
        cdef double beta = layer.net.hyper[CONCENTRATION, m], log_ratio = log_directed - log_choice
        for c in range(n):
            if self.taken[c]:
                log_ratio += self.gain[c]
        log_ratio += log(layer.net.hyper[MASS, m] * beta) + log_dish(block.n_takers, n, beta)
        log_ratio += self._log_pivot(layer, block.n_takers) - log(n_above)
        return log_ratio

    cdef double _log_pivot(self, LayerRegression layer, Py_ssize_t n_takers) noexcept nogil:
        """Log ratio of the chances of a pivot: one of the unit's children, or of all."""
        return log(<double> layer.net.width(layer.index)) - log(
            <double> n_takers
        )

    cdef double _draw_directed(
        self, LayerRegression layer, BirthProposal birth, bitgen_t* rng, const Block* block
    ) noexcept nogil:
        """Draw the newborn's activations near the residual (B5.9).

        Returns the log of the prior's density over the proposal's.
        """
        cdef Py_ssize_t i
        cdef double nu = birth.precision[0], pull = block.pull, mean, total = 0.0, a
        cdef bint by_cluster = layer.net.follows_clusters(layer.index + 1)
        for i in range(layer.net.n_samples):
            if by_cluster:
                nu = birth.cluster_precision[0, layer.net.label[i]]
            mean = (nu * birth.mean[i] + pull * block.sign * self.residual[i]) / (nu + pull)
            a = mean + draws.normal(rng) / sqrt(nu + pull)
            birth.pre[0, i] = a
            total += log_normal(a, birth.mean[i], nu) - log_normal(a, mean, nu + pull)
        return total

    cdef double _log_directed(
        self, LayerRegression layer, Py_ssize_t slot, const Block* block
    ) noexcept nogil:
        """The same for the activations that a unit has."""
        cdef Py_ssize_t i, unit = layer.net.n_visible + slot
        cdef double nu = layer.net.precision[unit], pull = block.pull, mean, total = 0.0
        cdef bint by_cluster = layer.net.follows_clusters(layer.index + 1)
        cdef const double* a = &layer.net.pre[slot, 0]
        cdef double* prior_mean = &self.mean[0]
        for i in range(layer.net.n_samples):
            prior_mean[i] = layer.net.bias[unit]
        if not by_cluster:
            layer.net.add_inputs(unit, prior_mean)
        for i in range(layer.net.n_samples):
            if by_cluster:
                nu = layer.net.cluster_precision[slot, layer.net.label[i]]
                prior_mean[i] = layer.net.cluster_mean[slot, layer.net.label[i]]
            mean = (nu * prior_mean[i] + pull * block.sign * self.residual[i]) / (nu + pull)
            total += log_normal(a[i], prior_mean[i], nu) - log_normal(a[i], mean, nu + pull)
        return total

    cdef double _log_choice(
        self, LayerRegression layer, bitgen_t* rng, Py_ssize_t pivot
    ) noexcept nogil:
        """Log probability of the children in ``taken``, drawn first unless rng is NULL: (B5.10).

        The pivot surely; the others one after another by the urn's odds times their gains.
        """
        cdef Py_ssize_t t, c
        cdef double takers = 1.0, seen = 1.0, log_odds, total = 0.0
        cdef double beta = layer.net.hyper[CONCENTRATION, layer.index]
        if rng != NULL:
            self.taken[pivot] = 1
        for t in range(layer.net.width(layer.index)):
            c = self.order[t]
            if c == pivot:
                continue
            log_odds = log(takers) - log(seen - takers + beta) + self.gain[c]
            if rng != NULL:
                self.taken[c] = draws.uniform(rng) < 1.0 / (1.0 + exp(-log_odds))
            if self.taken[c]:
                total -= log1p_exp(-log_odds)
                takers += 1.0
            else:
                total -= log1p_exp(log_odds)
            seen += 1.0
        return total

    cdef int _need_children(self, Py_ssize_t n) except -1 nogil:
        if self.order.shape[0] < n:
            with gil:
                self.order, self.taken = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.uint8)
                self.gain = np.zeros(n)
        return 0
