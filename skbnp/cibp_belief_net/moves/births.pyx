"""Births and deaths of units that have one child."""

from libc.math cimport log
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.cibp_belief_net._laws cimport CONCENTRATION, MASS
from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.cibp_belief_net._proposals cimport BirthProposal, DeathProposal
from skbnp.cibp_belief_net.moves.counts cimport BIRTHS, DEATHS, Counts
from skbnp.mcmc.chain cimport BROKEN, DONE
from skbnp.numerics cimport rng as draws


cdef Py_ssize_t admit_to(LayerRegression layer, BirthProposal birth) except -1 nogil:
    """Make a birth a part of the network and a candidate in the layer; the newborn's slot."""
    cdef Py_ssize_t i, slot = birth.admit()
    for i in range(birth.n_units if layer.net.laws.skips else 1):
        layer.add(birth.slot[i])
    return slot


cdef void carry_out_in(LayerRegression layer, DeathProposal death) noexcept nogil:
    """Let units die, as candidates of the layer too."""
    cdef Py_ssize_t v
    for v in range(death.n_units):
        layer.drop(death.slot[v])
    death.carry_out()


cdef class Births:
    """A unit's parent that has no other child is born or dies, weights integrated out: (B5.7).

    A birth is drawn from the prior, with all that comes with it. Cost: O(N s) for s parents, and
    O(N (p + K)) for one that is accepted in a layer of K units with p candidates.
    """

    def __init__(self):
        self.singleton = np.zeros(0, dtype=np.intp)

    cdef int run(
        self, LayerRegression layer, BirthProposal birth, DeathProposal death, bitgen_t* rng,
        Py_ssize_t c, Counts* counts,
    ) except -1 nogil:
        """One try for the c-th unit of the layer, whose regression was started."""
        death.reserve()
        if draws.uniform(rng) < 0.5:
            return self._try_birth(layer, birth, death, rng, c, counts)
        return self._try_death(layer, death, rng, c, counts)

    cdef int _try_birth(
        self, LayerRegression layer, BirthProposal birth, DeathProposal death, bitgen_t* rng,
        Py_ssize_t c, Counts* counts,
    ) except -1 nogil:
        cdef Py_ssize_t unit = layer.net.unit(layer.index, c), n_singletons
        cdef double log_ratio
        counts.proposed[BIRTHS] += 1
        if birth.draw(rng, layer.index + 1) != 0:
            return DONE
        n_singletons = 1 + death.list_singletons(unit, layer.index + 1, NULL)
        log_ratio = self._log_rate(layer, n_singletons) + layer.gain_of_new(c, &birth.post[0, 0])
        if layer.net.laws.skips:
            log_ratio += birth.log_skip_ratio()
        if not log(draws.uniform(rng)) < log_ratio:
            birth.withdraw()
            return DONE
        counts.accepted[BIRTHS] += 1
        layer.net.link(unit, admit_to(layer, birth))
        return BROKEN if layer.start(c) != 0 else DONE

    cdef int _try_death(
        self, LayerRegression layer, DeathProposal death, bitgen_t* rng,
        Py_ssize_t c, Counts* counts,
    ) except -1 nogil:
        cdef Py_ssize_t unit = layer.net.unit(layer.index, c), slot, n
        cdef double log_ratio
        counts.proposed[DEATHS] += 1
        if self.singleton.shape[0] < layer.net.n_slots():
            with gil:
                self.singleton = np.zeros(layer.net.n_slots(), dtype=np.intp)
        n = death.list_singletons(unit, layer.index + 1, &self.singleton[0])
        if n == 0:
            return DONE
        slot = self.singleton[draws.below(rng, n)]
        death.find(slot)
        log_ratio = -self._log_rate(layer, n) - layer.row.gain(layer.place[slot])
        if layer.net.laws.skips:
            log_ratio += death.log_skip_ratio()
        if not log(draws.uniform(rng)) < log_ratio:
            return DONE
        counts.accepted[DEATHS] += 1
        if layer.row.flip(layer.place[slot]) != 0:
            return BROKEN
        carry_out_in(layer, death)
        return DONE

    cdef double _log_rate(self, LayerRegression layer, double n_singletons) noexcept nogil:
        """Log of a birth's acceptance ratio without the likelihood.

        Equation (B5.7): that of Adams et al. (4.4) with its rate upright and its count not
        squared. ``n_singletons`` counts those of the child with the newborn.
        """
        cdef double beta = layer.net.hyper[CONCENTRATION, layer.index]
        cdef double rate = log(layer.net.hyper[MASS, layer.index] * beta)
        rate -= log(beta + layer.net.width(layer.index) - 1.0)
        return rate - log(n_singletons)
