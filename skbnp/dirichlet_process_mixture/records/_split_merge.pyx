"""Splits and merges of blocks most of whose rows are elsewhere.

No row can be visited after another: equation (M4.9). Two kinds of proposal take the place of
sequential allocation, each with probability a half; S are the rows of the blocks of rows i and j
but for these two.

pilot: the rows of S that are at hand are divided anew, by sequential allocation and restricted
Gibbs scans that never look at the present division; then every row of S goes to a side by the
predictive densities of the two sides, independently. The pilot has the same law for a split and
for the merge that undoes it and cancels (Jain & Neal 2004).

coin: every row of S goes to the second side with one unknown probability, which is integrated out.
It merges duplicates of one component, whose present division looks like coin flips.
"""

from libc.math cimport exp, isfinite, log

import numpy as np

from skbnp.dirichlet_process_mixture.moves.split_merge cimport SplitMerge
from skbnp.dirichlet_process_mixture.records._at_hand cimport Outside, RowsAtHand
from skbnp.dirichlet_process_mixture.records._slice cimport side_of
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log1p_exp

from skbnp.dirichlet_process_mixture.records._blocks import about_rows, rows_of_blocks, take_blocks
from skbnp.dirichlet_process_mixture.records._whole import LOST_DIGITS
from skbnp.mcmc.fields import Field


cdef enum:
    SPLITS
    MERGES
    LEAST = 4               # proposals a sweep when "auto" follows few blocks
    N_SCANS = 5             # restricted Gibbs scans of a pilot
    EVERY = 4               # sweeps from one round of proposals to the next, after the warm-up


cdef double MARGIN = 50.0        # nats that the weight of a new block may change by in a round


cdef class RecordSplitMerge(Move):
    """Proposals on disjoint blocks, all in one round over the rows.

    Pair (i_p, j_p) makes a proposal where the blocks of i_p and j_p hold no row of an earlier
    pair. A proposal changes neither that nor the rows of the blocks together, so that making one
    or none by this rule leaves the posterior invariant, one after the other or all at once.
    """

    NAME, COUNTS = SplitMerge.NAME, SplitMerge.COUNTS
    FIELDS = (*SplitMerge.FIELDS, Field("n_runs", int, at_least=0))
    STEPS = ("proposals",)

    def __init__(self, whole, n_proposals, division, bit_generator):
        super().__init__(bit_generator)
        self.whole, self._division = whole, division
        self._follows = n_proposals == "auto"
        self.n_proposals = LEAST if self._follows else n_proposals

    def adapt(self):
        """As many proposals as in memory, and a round in every sweep of the warm-up."""
        if self._follows:
            self.n_proposals = max(LEAST, (self.whole.at_hand.n_clusters + 1) // 2)
        self.n_runs = 0

    cpdef int run(self) except -1:
        if self.n_runs % EVERY == 0:
            self.propose()
        self.n_runs += 1
        return DONE

    def step(self, name):
        """A round of proposals, whatever the sweep."""
        self.propose()

    def propose(self):
        """A round of proposals."""
        self.at_hand = self.whole.at_hand
        cdef Py_ssize_t n = self.at_hand.n_samples
        if n < 2:
            return
        self.ratio = SplitMerge(self.at_hand, 0, self._division, self._bit_generator)
        self.ratio.division.discount = self.at_hand.law.discount
        self.second, self.member = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.intp)
        pairs = [self._pair(n) for _ in range(EVERY * self.n_proposals)]
        proposals = [
            self._prepare(i, j, is_pilot, log_u)
            for i, j, is_pilot, log_u in self._disjoint(pairs)
            if not self._is_hopeless(i, j, log_u)
        ]
        if proposals:
            found = self._divided([request for request, _ in proposals])
            for (request, of_driver), divided in zip(proposals, found, strict=True):
                self._settle(request, divided, **of_driver)

    def _divided(self, requests):
        """What all rows that are not at hand say to these requests."""
        return self.whole.run("divide", {
            "record": self.whole.record, "next_key": self.whole.next_key,
            "next_subset": self.whole.next_subset, "proposals": requests,
        })

    def _pair(self, Py_ssize_t n):
        """An ordered pair of rows at hand, which kind of proposal they make, and log u."""
        cdef Py_ssize_t i = draws.below(self.rng, n), j = draws.below(self.rng, n - 1)
        is_pilot = draws.uniform(self.rng) < 0.5
        return i, j + (j >= i), is_pilot, log(draws.uniform(self.rng))

    def _disjoint(self, pairs):
        """The pairs whose blocks hold no row of an earlier pair."""
        label, seen = self.at_hand.label, set()
        for i, j, is_pilot, log_u in pairs:
            blocks = {label[i], label[j]}
            if not blocks & seen:
                yield i, j, is_pilot, log_u
            seen |= blocks

    def _is_hopeless(self, Py_ssize_t i, Py_ssize_t j, double log_u):
        """Whether a merge will be refused whatever q is: most are, of blocks far apart.

        log r = log_ratio - log q is at least log_ratio, which proposals before this one change by
        no more than what a few blocks more or less weigh.
        """
        cdef RowsAtHand state = self.at_hand
        cdef Py_ssize_t k = state.label[i], gone = state.label[j], both = state.n_clusters + 3
        cdef double log_ratio
        if k == gone:
            return False
        state.reserve()
        if state.family.merge(k, gone, both) != 0:
            return False
        log_ratio = self._log_ratio_of_merge(k, gone, both)
        state.family.clear(both)
        if log_u < -log_ratio + MARGIN:
            return False
        self.proposed[MERGES] += 1
        return True

    cdef double _log_ratio_of_merge(
        self, Py_ssize_t k, Py_ssize_t gone, Py_ssize_t both
    ) noexcept nogil:
        """log of p(split) / p(merged) for blocks k and gone, which slot both has together."""
        return (
            self.ratio.log_new_block(self.at_hand.n_clusters - 1)
            + self.ratio.log_gain(k, gone, both)
        )

    # -- before the round -----------------------------------------------------------------------

    def _prepare(self, Py_ssize_t i, Py_ssize_t j, bint is_pilot, double log_u):
        """What is asked of all slices, and what the driver keeps of a proposal."""
        cdef RowsAtHand state = self.at_hand
        cdef Py_ssize_t k = state.label[i], k_too = state.label[j], n, t, row, a, b
        cdef Outside first = state.outside[k], other = state.outside[k_too]
        cdef bint forced = k != k_too
        cdef double log_odds, odds, log_q = 0.0
        key = draws.bits(self.rng)
        state.reserve()
        a, b = state.n_clusters + 1, state.n_clusters + 2
        n = self._list_members(i, j)
        if is_pilot:
            self._launch(i, j, n, a, b)
            log_odds = log(<double> state.family.n_members[b]) - log(
                <double> state.family.n_members[a]
            )
        else:
            log_odds = draws.uniform(self.rng)
            log_odds = log(log_odds) - log(1.0 - log_odds)
            state.family.copy(k, a)
            state.family.copy(k_too, b)
        for t in range(n):
            row = self.member[t]
            odds = log_odds
            if is_pilot:
                odds += (
                    state.family.log_predictive(b, row) - state.family.log_predictive(a, row)
                )
            self.second[t] = (
                state.label[row] == k_too if forced
                else side_of(key, state.number[row]) * (1.0 + exp(-odds)) < 1.0
            )
            log_q -= log1p_exp(-odds if self.second[t] else odds)
        sides = rows_of_blocks(take_blocks(state.family, b + 1), slice(a, b + 1))
        state.family.clear(a)
        state.family.clear(b)
        member, second = np.asarray(self.member)[:n].copy(), np.asarray(self.second)[:n] != 0
        return {
            "blocks": (first.origin, other.origin), "forced": forced, "key": key,
            "log_odds": log_odds, "sides": sides, "looks": is_pilot,
        }, {
            "pair": (i, j), "rows": (member[~second], member[second]), "log_q": log_q,
            "log_u": log_u,
        }

    def _list_members(self, Py_ssize_t i, Py_ssize_t j):
        """List the other rows at hand of the blocks of rows i and j; returns how many."""
        cdef Py_ssize_t n = 0, t, k
        for t in range(self.at_hand.n_samples):
            k = self.at_hand.label[t]
            if (k == self.at_hand.label[i] or k == self.at_hand.label[j]) and t != i and t != j:
                self.ratio.division.member[n] = t
                self.member[n] = t
                n += 1
        return n

    def _launch(self, Py_ssize_t i, Py_ssize_t j, Py_ssize_t n, Py_ssize_t a, Py_ssize_t b):
        """Divide the rows at hand among slots a and b."""
        cdef Py_ssize_t _
        with nogil:
            self.ratio.division.draw(self.rng, i, j, n, a, b, False, 0.0)
            for _ in range(N_SCANS):
                self.ratio.division._scan(self.rng, False, 0.0)

    # -- after the round ------------------------------------------------------------------------

    def _settle(self, request, divided, pair, rows, double log_q, double log_u):
        """Accept or refuse a proposal, given what the rows elsewhere say."""
        i, j = pair
        if request["looks"]:
            log_q += divided["log_q"]
        else:
            n = [len(rows[t]) + int(divided["n"][t]) for t in range(2)]
            log_q = lgamma(n[0] + 1.0) + lgamma(n[1] + 1.0) - lgamma(sum(n) + 2.0)
        if request["forced"]:
            self._merge(i, j, log_q, log_u)
        else:
            self._split(i, j, rows, request, divided, log_q, log_u)

    def _split(
        self, Py_ssize_t i, Py_ssize_t j, rows, request, divided, double log_q, double log_u
    ):
        cdef RowsAtHand state = self.at_hand
        cdef Py_ssize_t k = state.label[i], new = state.n_clusters
        cdef double log_ratio = self.ratio.log_new_block(new)
        self.proposed[SPLITS] += 1
        if not isfinite(log_ratio):
            return  # all components are in use: no split
        state.reserve()
        own = (i, *rows[0]), (j, *rows[1])
        made = self._build_sides(own, request["sides"], divided)
        if made is None:
            # Rows elsewhere are far from those at hand: squares about where they are.
            center = rows_of_blocks(
                about_rows(take_blocks(state.family, new + 3)), slice(new + 1, new + 3)
            )
            divided, = self._divided([request | {"center": center}])
            made = self._build_sides(own, center, divided)
        if made is None:
            raise ArithmeticError(LOST_DIGITS)
        log_ratio += self.ratio.log_gain(new + 1, new + 2, k) - log_q
        if log_u < log_ratio:
            self.accepted[SPLITS] += 1
            state.family.copy(new + 1, k)
            state.family.copy(new + 2, new)
            for row in (j, *rows[1]):
                state.label[row] = new
            state.outside[k] = made[0]
            state.outside.append(made[1])
            state.weigh(k)
            state.weigh(new)
            state.n_clusters += 1
        state.family.clear(new + 2)
        state.family.clear(new + 1)
        state.reserve()

    def _build_sides(self, own, center, divided):
        """Let the two slots behind the blocks be the sides of a split; None if digits were lost.

        ``own`` are the rows at hand of each, ``center`` the blocks about whose means sums are.
        Returns what is known of the rows elsewhere of each.
        """
        cdef RowsAtHand state = self.at_hand
        cdef Py_ssize_t slot, t, new = state.n_clusters
        cdef bint had_failed = state.failed, failed
        made = []
        state.failed = False
        for t, rows in enumerate(own):
            slot = new + 1 + t
            parts = []
            if divided["n"][t] > 0:
                about = rows_of_blocks(center, slice(t, t + 1))
                parts = [(about, int(divided["n"][t]), divided["sums"][t])]
            state.build(slot, parts, new + 3)
            for row in rows:
                state.family.add(slot, row)
            made.append(Outside(-1, parts, divided["place"][t], divided["row"][t]))
        failed, state.failed = state.failed, had_failed
        return None if failed else made

    def _merge(self, Py_ssize_t i, Py_ssize_t j, double log_q, double log_u):
        cdef RowsAtHand state = self.at_hand
        cdef Py_ssize_t k = state.label[i], gone = state.label[j], both, t
        cdef double log_ratio
        self.proposed[MERGES] += 1
        state.reserve()
        both = state.n_clusters + 3
        united = (<Outside> state.outside[k]).united(state.outside[gone])
        if state.family.merge(k, gone, both) != 0:
            state.build(both, united.parts, state.n_clusters + 1)
            for t in range(state.n_samples):
                if state.label[t] == k or state.label[t] == gone:
                    state.family.add(both, t)
        log_ratio = self._log_ratio_of_merge(k, gone, both) - log_q
        state.family.clear(both)
        if log_u < -log_ratio:
            self.accepted[MERGES] += 1
            for t in range(state.n_samples):
                if state.label[t] == gone:
                    state.label[t] = k
            state.outside[k] = united
            state.rebuild_block(k)
            state.weigh(k)
            state.drop_block(gone, -1)
