"""Moves that change edges, units and weights: those of one layer's units as children.

With the activations given, the units of a layer are linear regressions on their parents, whose
bias and weights are integrated out while edges change: doc/mathematics/cibp_belief_net, section 5.
"""

from libc.math cimport exp, log, sqrt, tanh
from libc.string cimport memcpy

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport log1p_exp
from skbnp.processes.cibp cimport log_dish

from skbnp.cibp_belief_net._network cimport (
    BIAS_MEAN, BIAS_PRECISION, BROKEN_ROWS, CONCENTRATION, INVERTED_RATE, MASS, NO_PIVOT, NO_URN,
    NOISE_RATE, OWN_COUNT, PRINTED_RATIO, SQUARED_COUNT, WEIGHT_MEAN, WEIGHT_PRECISION,
    log_normal,
)

# Weight of a pivot's residual in the activations of a unit born for several children (B5.9).
cdef double DIRECTED = 2.0


cdef class Rows(Families):
    """Adds the moves of ``layer``: toggles, births and deaths, weights and precisions.

    Cost of a layer of K children with p candidate parents, s of them a child's own: N p (p + K)
    in two products (BLAS 3), O(K s p^2) in rank-one updates (BLAS 2), O(s^3) for each draw; a
    birth O(N s), one that is accepted O(N (p + K)).
    """

    def __init__(
        self, visible, prior, state, bit_generator, bint prior_births=True,
        bint block_births=True, double birth_rate=0.25, double block_rate=0.1,
        double swap_rate=0.5, int fault=0,
    ):
        self.row = RowRegression()
        self.place = self.singleton = np.zeros(0, dtype=np.intp)
        for name in ("candidate", "order", "child_order"):
            setattr(self, name, np.zeros(0, dtype=np.intp))
        for name in ("response_square", "product", "new_side", "gain", "drawn"):
            setattr(self, name, np.zeros(0))
        self.chosen = np.zeros(0, dtype=np.uint8)
        super().__init__(visible, prior, state, bit_generator)
        self._prior_births, self._block_births = prior_births, block_births
        self._birth_rate, self._block_rate = birth_rate, block_rate
        self._swap_rate = swap_rate
        self.fault = fault
        self.regressor, self.gram = np.zeros((0, self.stride)), np.zeros((0, 0))
        self.response, self.side = np.zeros((0, self.stride)), np.zeros((0, 0))
        self.residual = np.zeros(self.stride)

    def _put(self, state):
        self.n_candidates = 0           # slots of the state before mean nothing now
        Families._put(self, state)

    def _grown(self):
        Families._grown(self)
        self.place = np.full(self.pre.shape[0], -1, dtype=np.intp)
        for at in range(self.n_candidates):
            if self.candidate[at] >= 0:
                self.place[self.candidate[at]] = at
        self.singleton = np.zeros(self.pre.shape[0], dtype=np.intp)

    # -- one layer ----------------------------------------------------------------------------

    cdef int _update_layer(self, Py_ssize_t layer) except -1 nogil:
        """All moves of the edges into one layer.

        It changes units of higher layers only, so that which rows there are to visit, and how
        many, does not depend on what it does.
        """
        cdef Py_ssize_t c, n = self.width(layer)
        self._gather_layer(layer)
        if self._block_births and layer < self.deepest and (
            draws.uniform(self._rng) < self._block_rate
        ):
            self._block_move()
        for c in range(n):
            self.child_order[c] = c
        draws.shuffle(self._rng, &self.child_order[0], n)
        for c in range(n):
            if self._start_row(self.child_order[c]) != 0:
                self._broken = self._broken or BROKEN_ROWS
                return 0
            self._toggle(self.child_order[c])
            if draws.uniform(self._rng) < self._swap_rate:
                self._swap(self.child_order[c])
            if self._prior_births and layer < self.deepest and (
                draws.uniform(self._rng) < self._birth_rate
            ):
                self._birth_or_death(self.child_order[c])
            self._draw_row(self.child_order[c])
        return 0

    cdef int _gather_layer(self, Py_ssize_t layer) except -1 nogil:
        """Lay out candidates and children of a layer and compute their products."""
        cdef Py_ssize_t pos, c, i, slot, n = self.width(layer), begin, end
        self.layer = layer
        for pos in range(self.place.shape[0]):
            self.place[pos] = -1
        begin = self.layer_start[min(layer + 1, self.n_layers)]
        end = self.n_hidden if self.skips else self.layer_start[min(layer + 2, self.n_layers)]
        self._need_candidates(1 + end - begin)
        self._need_children(n)
        self.candidate[0], self.n_candidates = -1, 1
        for i in range(self.n_samples):
            self.regressor[0, i] = 1.0
        for pos in range(begin, end):
            slot = self.member[pos]
            self.candidate[self.n_candidates], self.place[slot] = slot, self.n_candidates
            memcpy(
                &self.regressor[self.n_candidates, 0], &self.post[slot, 0],
                self.stride * sizeof(double),
            )
            self.n_candidates += 1
        if layer > 0:
            for c in range(n):
                slot = self.member[self.layer_start[layer] + c]
                memcpy(
                    &self.response[c, 0], &self.pre[slot, 0], self.stride * sizeof(double)
                )
        for c in range(n):
            self.response_square[c] = linalg.dot(
                self.n_samples, self._response(c), self._response(c)
            )
        # The columns of stride are zeros, so that they may be summed over.
        linalg.gram(
            self.n_candidates, self.stride, &self.regressor[0, 0], &self.gram[0, 0],
            self.gram.shape[1],
        )
        linalg.gemm_strided(
            False, True, n, self.n_candidates, self.n_samples, 1.0, self._response(0),
            self.stride, &self.regressor[0, 0], self.stride, 0.0, &self.side[0, 0],
            self.side.shape[1],
        )
        return 0

    cdef const double* _response(self, Py_ssize_t c) noexcept nogil:
        """Pre-activations of the layer's c-th unit; all of a layer lie one after another."""
        return &self.visible[c, 0] if self.layer == 0 else &self.response[c, 0]

    cdef int _need_candidates(self, Py_ssize_t n) except -1 nogil:
        cdef Py_ssize_t room
        if self.gram.shape[0] >= n:
            return 0
        with gil:
            room = n + n // 2 + 8
            self.row.reserve(room)
            self._grow_in("candidate", (room,))
            self._grow_in("regressor", (room, self.stride))
            self._grow_in("gram", (room, room))
            self._grow_in("side", (self.side.shape[0], room))
            for name in ("product", "drawn", "order"):
                self._grow_in(name, (room,))
        return 0

    cdef int _need_children(self, Py_ssize_t n) except -1 nogil:
        if self.side.shape[0] >= n and self.side.shape[1] >= self.gram.shape[1] and (
            self.layer == 0 or self.response.shape[0] >= n
        ):
            return 0
        with gil:
            self._grow_in("side", (max(n, self.side.shape[0]), self.gram.shape[1]))
            if self.layer > 0:
                self._grow_in("response", (n, self.stride))
            for name in ("response_square", "new_side", "gain", "child_order", "chosen"):
                self._grow_in(name, (self.side.shape[0],))
        return 0

    def _grow_in(self, str name, shape):
        """Make an array at least as large, keeping what it begins with."""
        old = getattr(self, name).shape
        self._grow(name, tuple(max(pair) for pair in zip(old, shape, strict=True)))

    cdef int _add_candidate(self, Py_ssize_t slot) except -1 nogil:
        """Offer a newborn to all rows of the layer that are still to be visited."""
        cdef Py_ssize_t at = self.n_candidates, j, n = self.width(self.layer)
        cdef double* u
        self._need_candidates(at + 1)
        self.candidate[at], self.place[slot] = slot, at
        self.n_candidates += 1
        memcpy(&self.regressor[at, 0], &self.post[slot, 0], self.stride * sizeof(double))
        u = &self.regressor[at, 0]
        linalg.gemv(
            False, at + 1, self.stride, 1.0, &self.regressor[0, 0], u, 0.0, &self.product[0]
        )
        for j in range(at + 1):
            self.gram[j, at] = self.product[j]
        linalg.gemv(False, n, self.stride, 1.0, self._response(0), u, 0.0, &self.new_side[0])
        for j in range(n):
            self.side[j, at] = self.new_side[j]
        return 0

    # -- one row ------------------------------------------------------------------------------

    cdef int _start_row(self, Py_ssize_t c) noexcept nogil:
        """Set the regression of the layer's c-th unit up, with the parents that it has."""
        cdef Py_ssize_t j, m = self.layer, unit = self.unit(m, c)
        self.row.active[0] = 1
        self.row.prior_mean[0] = self.hyper[BIAS_MEAN, m]
        self.row.prior_precision[0] = self.hyper[BIAS_PRECISION, m]
        self.row.side[0] = self.side[c, 0]
        for j in range(1, self.n_candidates):
            self.row.active[j] = self.candidate[j] >= 0 and self.edge[unit, self.candidate[j]]
            self.row.prior_mean[j] = self.hyper[WEIGHT_MEAN, m]
            self.row.prior_precision[j] = self.hyper[WEIGHT_PRECISION, m]
            self.row.side[j] = self.side[c, j]
        return self.row.start(
            self.n_candidates, &self.gram[0, 0], self.gram.shape[1], self.n_samples,
            self.response_square[c], self.precision[unit],
        )

    cdef void _toggle(self, Py_ssize_t c) noexcept nogil:
        """Each edge into a unit from its conditional, weights integrated out: equation (B5.5).

        An edge without which its parent would have no child left in the layer below is for
        births and deaths.
        """
        cdef Py_ssize_t j, t, slot, unit = self.unit(self.layer, c)
        cdef double log_odds
        cdef int on, want
        for j in range(1, self.n_candidates):
            self.order[j] = j
        if self.n_candidates > 2:
            draws.shuffle(self._rng, &self.order[1], self.n_candidates - 1)
        for t in range(1, self.n_candidates):
            j = self.order[t]
            slot = self.candidate[j]
            if not self._is_free(unit, j):
                continue
            on = self.edge[unit, slot]
            log_odds = self.row.gain(j) + self._log_urn(unit, j)
            want = draws.uniform(self._rng) < 1.0 / (1.0 + exp(-log_odds))
            self.n_toggled += 1
            if want == on:
                continue
            self.n_flipped += 1
            if self.row.flip(j) != 0:
                self._broken = self._broken or BROKEN_ROWS
                return
            if want:
                self._link(unit, slot)
            else:
                self._unlink(unit, slot)

    cdef bint _is_free(self, Py_ssize_t unit, Py_ssize_t j) noexcept nogil:
        """Whether the edge from candidate j may be there or not, its own state aside."""
        cdef Py_ssize_t slot = self.candidate[j], others
        if slot < 0:
            return False
        others = self.n_near[slot]
        if self.slot_layer[slot] == self.layer + 1:
            others -= self.edge[unit, slot]
        return others > 0

    cdef double _log_urn(self, Py_ssize_t unit, Py_ssize_t j) noexcept nogil:
        """Prior log odds of the edge from candidate j to a unit."""
        cdef Py_ssize_t slot = self.candidate[j], level = self.slot_layer[slot]
        cdef double others = self.n_children[slot]
        if self.fault != OWN_COUNT:
            others -= self.edge[unit, slot]
        return log(others) - log(
            self.offered(level - 1) - 1.0 + self.hyper[CONCENTRATION, level - 1] - others
        )

    cdef void _swap(self, Py_ssize_t c) noexcept nogil:
        """Trade a parent of the unit for another, both at random: for parents that are alike.

        Which edges are free does not depend on their own state, so the proposal is symmetric.
        """
        cdef Py_ssize_t j, unit = self.unit(self.layer, c), n_on = 0, n_off = 0, old, new
        cdef double log_ratio
        for j in range(1, self.n_candidates):
            if self._is_free(unit, j):
                if self.row.active[j]:
                    self.order[n_on] = j
                    n_on += 1
                else:
                    n_off += 1
                    self.order[self.n_candidates - n_off] = j
        if n_on == 0 or n_off == 0:
            return
        old = self.order[draws.below(self._rng, n_on)]
        new = self.order[self.n_candidates - 1 - draws.below(self._rng, n_off)]
        log_ratio = -self.row.gain(old)
        if self.fault != NO_URN:
            log_ratio += self._log_urn(unit, new) - self._log_urn(unit, old)
        self.n_swaps_tried += 1
        if self.row.flip(old) != 0:
            self._broken = self._broken or BROKEN_ROWS
            return
        log_ratio += self.row.gain(new)
        if log(draws.uniform(self._rng)) < log_ratio:
            self.n_swaps += 1
            self._unlink(unit, self.candidate[old])
            self._link(unit, self.candidate[new])
            old = new
        if self.row.flip(old) != 0:
            self._broken = self._broken or BROKEN_ROWS

    cdef void _draw_row(self, Py_ssize_t c) noexcept nogil:
        """Bias and weights from their joint conditional, then the precision given them."""
        cdef Py_ssize_t j, m = self.layer, unit = self.unit(m, c)
        cdef double rate
        if self.row.draw(self._rng, &self.drawn[0]) != 0:
            self._broken = self._broken or BROKEN_ROWS
            return
        self.bias[unit] = self.drawn[0]
        for j in range(1, self.n_candidates):
            if self.candidate[j] >= 0:
                self.weight[unit, self.candidate[j]] = self.drawn[j]
        rate = self.hyper[NOISE_RATE, m] + 0.5 * self.row.squared_residual(&self.drawn[0])
        self.precision[unit] = draws.truncated_gamma(
            self._rng, self.noise_law[0] + 0.5 * self.n_samples, rate, self.highest_precision
        )

    # -- births and deaths for one child ------------------------------------------------------

    cdef int _birth_or_death(self, Py_ssize_t c) except -1 nogil:
        """One try for the layer's c-th unit; its weights are integrated out."""
        if draws.uniform(self._rng) < 0.5:
            return self._birth(c)
        return self._death(c)

    cdef double _log_rate(self, double n_singletons) noexcept nogil:
        """Log of a birth's acceptance ratio without the likelihood.

        Equation (B5.7): that of Adams et al. (4.4) with its rate upright and its count not
        squared. ``n_singletons`` counts those of the child with the newborn.
        """
        cdef double beta = self.hyper[CONCENTRATION, self.layer]
        cdef double rate = log(self.hyper[MASS, self.layer] * beta)
        rate -= log(beta + self.width(self.layer) - 1.0)
        if self.fault == INVERTED_RATE:
            return -rate - log(n_singletons)
        if self.fault == SQUARED_COUNT:
            return rate - 2.0 * log(n_singletons)
        if self.fault == PRINTED_RATIO:
            return -rate - 2.0 * log(n_singletons)
        return rate - log(n_singletons)

    cdef int _birth(self, Py_ssize_t c) except -1 nogil:
        """A parent for this unit alone, from the prior with all that comes with it (B5.8)."""
        cdef Py_ssize_t j, m = self.layer, unit = self.unit(m, c), n_singletons
        cdef double log_ratio
        cdef const double* u
        self.n_births_tried += 1
        if self._draw_family(m + 1) != 0:
            return 0
        n_singletons = 1 + self._count_singletons(unit, m + 1, NULL)
        u = &self.born_post[0, 0]
        for j in range(self.n_candidates):
            if self.row.active[j]:
                self.product[j] = linalg.dot(self.n_samples, &self.regressor[j, 0], u)
        log_ratio = self._log_rate(n_singletons) + self.row.gain_of_new(
            &self.product[0], linalg.dot(self.n_samples, u, u),
            linalg.dot(self.n_samples, u, self._response(c)), self.hyper[WEIGHT_MEAN, m],
            self.hyper[WEIGHT_PRECISION, m],
        )
        if self.skips:
            log_ratio += self._log_skip_change()
        if not log(draws.uniform(self._rng)) < log_ratio:
            self._forget_changes()
            return 0
        self.n_births += 1
        self._link(unit, self._welcome())
        if self._start_row(c) != 0:
            self._broken = self._broken or BROKEN_ROWS
        return 0

    cdef int _welcome(self) except -1 nogil:
        """Admit the family and offer it to the rows of this layer; the newborn's slot."""
        cdef Py_ssize_t i, slot = self._admit_family()
        for i in range(self.n_born if self.skips else 1):
            self._add_candidate(self.born_slot[i])
        return slot

    cdef int _death(self, Py_ssize_t c) except -1 nogil:
        """One of the parents that have this child alone, with all that dies with it."""
        cdef Py_ssize_t unit = self.unit(self.layer, c), slot, n
        cdef double log_ratio
        self.n_deaths_tried += 1
        n = self._count_singletons(unit, self.layer + 1, &self.singleton[0])
        if n == 0:
            return 0
        slot = self.singleton[draws.below(self._rng, n)]
        self._find_victims(slot)
        log_ratio = -self._log_rate(n) - self.row.gain(self.place[slot])
        if self.skips:
            self.n_born = 0
            self._mark_victims()
            log_ratio += self._log_skip_change()
            self._forget_changes()
        if not log(draws.uniform(self._rng)) < log_ratio:
            return 0
        self.n_deaths += 1
        if self.row.flip(self.place[slot]) != 0:
            self._broken = self._broken or BROKEN_ROWS
        self._bury()
        return 0

    cdef void _bury(self) noexcept nogil:
        """Let the victims die; their places among the candidates stay, empty."""
        cdef Py_ssize_t v, at
        for v in range(self.n_victims):
            at = self.place[self.victim[v]]
            if at >= 0:
                self.candidate[at] = -1
                self.place[self.victim[v]] = -1
        self._remove_victims()

    # -- births and deaths for several children at once ---------------------------------------

    cdef int _block_move(self) except -1 nogil:
        """One try; the rows of the layer have no weights until they are drawn anew (B5.11)."""
        cdef Py_ssize_t c, n = self.width(self.layer)
        self.n_blocks_tried += 1
        for c in range(n):
            self.child_order[c] = c
        # A fresh order each time: that of storage carries the units' ages.
        draws.shuffle(self._rng, &self.child_order[0], n)
        if draws.uniform(self._rng) < 0.5:
            return self._block_birth()
        return self._block_death()

    cdef int _block_birth(self) except -1 nogil:
        """A unit whose activations follow the residual of one child, offered to all of them."""
        cdef Py_ssize_t c, j, slot, n = self.width(self.layer), m = self.layer, n_chosen = 0
        cdef Py_ssize_t pivot = draws.below(self._rng, n)
        cdef double log_ratio, own, beta = self.hyper[CONCENTRATION, m]
        cdef double* u
        if self._draw_family(m + 1) != 0:
            return 0
        if self._start_row(pivot) != 0:
            self._broken = BROKEN_ROWS
            return 0
        self._direct(pivot)
        log_ratio = self._draw_directed(1.0 if draws.uniform(self._rng) < 0.5 else -1.0)
        u = &self.born_post[0, 0]
        for j in range(self.n_samples):
            u[j] = tanh(0.5 * self.born_pre[0, j])
        own = linalg.dot(self.n_samples, u, u)
        linalg.gemv(
            False, self.n_candidates, self.stride, 1.0, &self.regressor[0, 0], u, 0.0,
            &self.product[0],
        )
        linalg.gemv(False, n, self.stride, 1.0, self._response(0), u, 0.0, &self.new_side[0])
        for c in range(n):
            if self._start_row(c) != 0:
                self._broken = BROKEN_ROWS
                return 0
            self.gain[c] = self.row.gain_of_new(
                &self.product[0], own, self.new_side[c], self.hyper[WEIGHT_MEAN, m],
                self.hyper[WEIGHT_PRECISION, m],
            )
        log_ratio -= self._log_choice(pivot, True)
        for c in range(n):
            if self.chosen[c]:
                n_chosen += 1
                log_ratio += self.gain[c]
        log_ratio += log(self.hyper[MASS, m] * beta) + log_dish(n_chosen, n, beta)
        log_ratio += self._log_pivot(n_chosen) - log(self.width(m + 1) + 1.0)
        if self.skips:
            self.born_takers[0] = n_chosen
            log_ratio += self._log_skip_change()
        if not log(draws.uniform(self._rng)) < log_ratio:
            self._forget_changes()
            return 0
        self.n_blocks += 1
        slot = self._welcome()
        for c in range(n):
            if self.chosen[c]:
                self._link(self.unit(m, c), slot)
        return 0

    cdef int _block_death(self) except -1 nogil:
        """The reverse: a unit of the layer above, whatever its children."""
        cdef Py_ssize_t c, at, slot, n = self.width(self.layer), m = self.layer, n_chosen = 0
        cdef Py_ssize_t n_above = self.width(m + 1), pivot = -1, nth
        cdef double log_ratio, sign, beta = self.hyper[CONCENTRATION, m]
        if n_above == 0:
            return 0
        slot = self.member[self.layer_start[m + 1] + draws.below(self._rng, n_above)]
        if not self._find_victims(slot):
            return 0
        at = self.place[slot]
        for c in range(n):
            self.chosen[c] = self.edge[self.unit(m, c), slot]
            n_chosen += self.chosen[c]
        nth = draws.below(self._rng, n_chosen)
        sign = 1.0 if draws.uniform(self._rng) < 0.5 else -1.0
        for c in range(n):
            if self._start_row(c) != 0 or (self.chosen[c] and self.row.flip(at) != 0):
                self._broken = BROKEN_ROWS
                return 0
            self.gain[c] = self.row.gain(at)
            if self.chosen[c]:
                if nth == 0:
                    pivot = c
                    self._direct(c)
                nth -= 1
        log_ratio = self._log_directed(&self.pre[slot, 0], sign, slot)
        log_ratio -= self._log_choice(pivot, False)
        for c in range(n):
            if self.chosen[c]:
                log_ratio += self.gain[c]
        log_ratio += log(self.hyper[MASS, m] * beta) + log_dish(n_chosen, n, beta)
        log_ratio += self._log_pivot(n_chosen) - log(<double> n_above)
        log_ratio = -log_ratio
        if self.skips:
            self.n_born = 0
            self._mark_victims()
            log_ratio += self._log_skip_change()
            self._forget_changes()
        if log(draws.uniform(self._rng)) < log_ratio:
            self.n_blocks += 1
            self._bury()
        return 0

    cdef double _log_pivot(self, Py_ssize_t n_chosen) noexcept nogil:
        """Log ratio of the chances of a pivot: one of the unit's children, or of all."""
        if self.fault == NO_PIVOT:
            return 0.0
        return log(<double> self.width(self.layer)) - log(<double> n_chosen)

    cdef void _direct(self, Py_ssize_t pivot) noexcept nogil:
        """Put the pivot's standardised residual, at its posterior mean weights, into residual."""
        cdef Py_ssize_t j, i, n = self.row.size + 1
        cdef double size
        cdef double* e = &self.residual[0]
        memcpy(e, self._response(pivot), self.stride * sizeof(double))
        for j in range(self.n_candidates):
            if self.row.active[j]:
                linalg.axpy(
                    self.n_samples, -self.row.swept[j * n + self.row.size],
                    &self.regressor[j, 0], e,
                )
        size = sqrt(linalg.dot(self.n_samples, e, e) / max(1, self.n_samples))
        for i in range(self.n_samples):
            e[i] = e[i] / size if size > 0.0 else 0.0

    cdef double _draw_directed(self, double sign) noexcept nogil:
        """Draw the newborn's activations near the residual; log prior over proposal density."""
        cdef Py_ssize_t i
        cdef double nu = self.born_precision[0], mean, total = 0.0, a
        cdef bint by_cluster = self.follows_clusters(self.layer + 1)
        for i in range(self.n_samples):
            if by_cluster:
                nu = self.born_cluster_precision[0, self.label[i]]
            mean = (nu * self.born_mean[i] + DIRECTED * sign * self.residual[i]) / (nu + DIRECTED)
            a = mean + draws.normal(self._rng) / sqrt(nu + DIRECTED)
            self.born_pre[0, i] = a
            total += log_normal(a, self.born_mean[i], nu) - log_normal(a, mean, nu + DIRECTED)
        return total

    cdef double _log_directed(
        self, const double* a, double sign, Py_ssize_t slot
    ) noexcept nogil:
        """The same for the activations that a unit has."""
        cdef Py_ssize_t i, unit = self.n_visible + slot
        cdef double nu = self.precision[unit], mean, total = 0.0
        cdef bint by_cluster = self.follows_clusters(self.layer + 1)
        cdef double* prior_mean = &self.born_mean[0]
        for i in range(self.n_samples):
            prior_mean[i] = self.bias[unit]
        if not by_cluster:
            self._add_inputs(unit, prior_mean)
        for i in range(self.n_samples):
            if by_cluster:
                nu = self.cluster_precision[slot, self.label[i]]
                prior_mean[i] = self.cluster_mean[slot, self.label[i]]
            mean = (nu * prior_mean[i] + DIRECTED * sign * self.residual[i]) / (nu + DIRECTED)
            total += log_normal(a[i], prior_mean[i], nu) - log_normal(a[i], mean, nu + DIRECTED)
        return total

    cdef double _log_choice(self, Py_ssize_t pivot, bint draw) noexcept nogil:
        """Log probability of the children in ``chosen``, drawn first if asked.

        The pivot surely; the others one after another by the urn's odds times their gains.
        """
        cdef Py_ssize_t t, c
        cdef double takers = 1.0, seen = 1.0, log_odds, total = 0.0
        cdef double beta = self.hyper[CONCENTRATION, self.layer]
        if draw:
            self.chosen[pivot] = 1
        for t in range(self.width(self.layer)):
            c = self.child_order[t]
            if c == pivot:
                continue
            log_odds = log(takers) - log(seen - takers + beta) + self.gain[c]
            if draw:
                self.chosen[c] = draws.uniform(self._rng) < 1.0 / (1.0 + exp(-log_odds))
            if self.chosen[c]:
                total -= log1p_exp(-log_odds)
                takers += 1.0
            else:
                total -= log1p_exp(log_odds)
            seen += 1.0
        return total
