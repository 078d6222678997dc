"""All that changes with the edges into a layer: units above, edges, weights and precisions."""

import numpy as np

from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.cibp_belief_net._proposals cimport BirthProposal, DeathProposal, StructureChange
from skbnp.cibp_belief_net._state cimport Network
from skbnp.cibp_belief_net.moves.births cimport Births
from skbnp.cibp_belief_net.moves.blocks cimport Blocks
from skbnp.cibp_belief_net.moves.counts cimport Counts
from skbnp.cibp_belief_net.moves.swaps cimport Swaps
from skbnp.cibp_belief_net.moves.toggles cimport Toggles
from skbnp.cibp_belief_net.moves.weights cimport Weights
from skbnp.mcmc.chain cimport BROKEN, DONE, Move
from skbnp.numerics cimport rng as draws

from skbnp.mcmc.fields import Field


cdef class Rows(Move):
    """Layer by layer: a block birth or death; then unit by unit edges, births, weights.

    Between the first change of a unit's edges and its ``weights`` the unit has none, so the steps
    of a unit stay together. A layer's steps change units of higher layers only: which units there
    are to visit, and how many, does not depend on what they do.
    """

    NAME = "rows"
    COUNTS = ("edges", "swaps", "births", "deaths", "blocks")
    FIELDS = (Field("n_guard_rejections", int, at_least=0),)
    # What it is made of.
    LAYER = LayerRegression
    DEATH = DeathProposal
    BLOCKS = Blocks
    SWAPS = Swaps
    BIRTHS = Births

    def __init__(
        self, Network net, bit_generator, *, bint prior_births=True, bint block_births=True,
        double birth_rate=0.25, double block_rate=0.1, double swap_rate=0.5,
    ):
        super().__init__(bit_generator)
        change = StructureChange(net)
        self.net, self.layer = net, self.LAYER(net)
        self.birth, self.death = BirthProposal(net, change), self.DEATH(net, change)
        self.blocks, self.toggles, self.swaps = self.BLOCKS(net), Toggles(), self.SWAPS()
        self.births, self.weights = self.BIRTHS(), Weights()
        self._has_blocks, self._has_births = block_births, prior_births
        self._block_rate, self._birth_rate = block_rate, birth_rate
        self._swap_rate = swap_rate
        self.order = np.zeros(net.n_visible, dtype=np.intp)

    @property
    def n_guard_rejections(self):
        """Births that were refused because of ``max_units``."""
        return self.birth.n_beyond

    @n_guard_rejections.setter
    def n_guard_rejections(self, value):
        self.birth.n_beyond = value

    cpdef int run(self) except -1:
        """The edges into layer 0, 1, ..."""
        cdef LayerRegression layer = self.layer
        cdef BirthProposal birth = self.birth
        cdef DeathProposal death = self.death
        cdef Py_ssize_t m = 0
        cdef int status = DONE
        with nogil:
            while m < self.net.n_layers and status == DONE:
                if not self.net.follows_clusters(m):
                    layer.gather(m)
                    status = self._run_layer(layer, birth, death)
                m += 1
        return status

    cdef int _run_layer(
        self, LayerRegression layer, BirthProposal birth, DeathProposal death
    ) except -1 nogil:
        cdef Py_ssize_t c, n = self.net.width(layer.index)
        cdef Counts counts
        counts.accepted, counts.proposed = &self.accepted[0], &self.proposed[0]
        if self._has_blocks and layer.index < self.net.laws.deepest and (
            draws.uniform(self.rng) < self._block_rate
        ):
            if self.blocks.run(layer, birth, death, self.rng, &counts) != DONE:
                return BROKEN
        if self.order.shape[0] < n:
            with gil:
                self.order = np.zeros(n, dtype=np.intp)
        for c in range(n):
            self.order[c] = c
        draws.shuffle(self.rng, &self.order[0], n)
        for c in range(n):
            if self._run_row(layer, birth, death, self.order[c], &counts) != DONE:
                return BROKEN
        return DONE

    cdef int _run_row(
        self, LayerRegression layer, BirthProposal birth, DeathProposal death, Py_ssize_t c,
        Counts* counts,
    ) except -1 nogil:
        """Parents, weights, bias and precision of the layer's c-th unit."""
        cdef int status
        if layer.start(c) != 0:
            return BROKEN
        status = self.toggles.run(layer, self.rng, c, counts)
        if status == DONE and draws.uniform(self.rng) < self._swap_rate:
            status = self.swaps.run(layer, self.rng, c, counts)
        if status == DONE and self._has_births and (
            layer.index < self.net.laws.deepest and draws.uniform(self.rng) < self._birth_rate
        ):
            status = self.births.run(layer, birth, death, self.rng, c, counts)
        return status if status != DONE else self.weights.run(layer, self.rng, c)
