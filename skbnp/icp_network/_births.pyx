"""Births and deaths of hidden nodes, and nodes put into edges: the moves that change their number.

Each birth is proposed with all that belongs to the node; its children change their biases and
precisions so that their means and variances stay, and its activations are drawn towards what the
children leave unexplained (equations (I5.3) to (I5.10)). Deaths are the exact inverses.
"""

from libc.math cimport INFINITY, log, sqrt
from libc.string cimport memcpy

import numpy as np

from skbnp.icp_network._edges cimport Edges
from skbnp.icp_network._graph cimport (
    NO_DESCENT, NO_JACOBIAN, PRINTED_RATIO, WRONG_GAP, WRONG_UP,
)
from skbnp.likelihoods.nonlinear_gaussian._grid cimport (
    draw_on_grid, squashed_moments, weigh_on_grid,
)
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws

cdef double LOG_2_PI = 1.8378770664093454836
# Precisions below this are neither left nor entered by these moves.
cdef double LEAST_PRECISION = 1e-12


cdef class Births(Edges):
    """A birth or death with m children and p parents: O(K + N (m p + CELLS)) per attempt."""

    def __init__(self, visible, prior, state, bit_generator, labels, int fault):
        self.kin = self.elder = np.zeros(0, dtype=np.intp)
        self.kin_weight = self.bias_with = self.bias_without = np.zeros(0)
        self.precision_with = self.precision_without = np.zeros(0)
        self.linear, self.mean, self.newborn = (np.zeros(max(1, len(visible))) for _ in range(3))
        super().__init__(visible, prior, state, bit_generator, labels, fault)

    def _grow_nodes(self, old, room):
        for name in ("kin", "elder"):
            setattr(self, name, np.zeros(room, dtype=np.intp))
        for name in ("kin_weight", "bias_with", "bias_without", "precision_with",
                     "precision_without"):
            setattr(self, name, np.zeros(room))
        Edges._grow_nodes(self, old, room)

    # -- births and deaths --------------------------------------------------------------------

    cdef int _birth_or_death(self, int kind) except -1 nogil:
        """One attempt, either with probability 1/2."""
        if draws.uniform(self._rng) < 0.5:
            return self._birth(kind)
        return self._death(kind)

    cdef int _birth(self, int kind) except -1 nogil:
        """A new hidden node; the ratio's parts are the graph's, the choice's and the rows'."""
        cdef double order, ratio = -self._log_graph()
        cdef Py_ssize_t i, slot
        self.n_births_tried += 1
        if self.n_hidden >= self.max_hidden:
            self.n_guard_rejections += 1
            return 0
        self._reserve_nodes(1)
        self.n_elders = 0
        if kind == SINGLETON or kind == INTERVAL:
            ratio += self._choose_child(kind, &order)
        else:
            order = draws.uniform(self._rng)
            ratio += self._choose_children(order)
        if ratio == -INFINITY:
            return 0
        if kind == WHOLE:
            ratio += self._choose_parents(order, True)
        slot = self._insert(order)
        for i in range(self.n_kin):
            self._link(self.kin[i], slot)
            self.kin_weight[i] = self._draw_weight_from(slot)
        for i in range(self.n_elders):
            self._link(slot, self.elder[i])
            self.weight[slot, self.elder[i]] = self._draw_weight_from(self.elder[i])
        self.bias[slot] = draws.normal(self._rng) / sqrt(self.bias_precision)
        self.precision[slot] = draws.draw_gamma(
            self._rng, self.noise_law[0], self.noise_law[1]
        )
        self._fill_mean(slot)
        if self._match_moments(slot, True):
            ratio += self._log_graph() + self._log_reverse(kind, slot)
            ratio += self._log_kin(slot, True)
            if log(draws.uniform(self._rng)) < ratio:
                self._welcome(slot)
                self.n_births += 1
                return 0
        self._forget(slot)
        return 0

    cdef double _draw_weight_from(self, Py_ssize_t parent) noexcept nogil:
        """A weight out of a node from its prior."""
        return draws.normal(self._rng) / sqrt(self._weight_precision_from(parent))

    cdef void _welcome(self, Py_ssize_t slot) noexcept nogil:
        """Write down what a newborn changes."""
        cdef Py_ssize_t i, child
        for i in range(self.n_kin):
            child = self.kin[i]
            self.weight[child, slot] = self.kin_weight[i]
            self.bias[child] = self.bias_with[i]
            self.precision[child] = self.precision_with[i]
        memcpy(&self.pre[slot, 0], &self.newborn[0], self.n_samples * sizeof(double))
        self._squash(slot)

    cdef void _forget(self, Py_ssize_t slot) noexcept nogil:
        """Take a node and its weights away."""
        cdef Py_ssize_t i, other
        for i in range(self.n_nodes):
            other = self.ascending[i]
            self.weight[slot, other] = self.weight[other, slot] = 0.0
        self._remove(slot)

    cdef int _death(self, int kind) except -1 nogil:
        """The inverse of a birth: minus the log ratio of the birth that would undo it."""
        cdef Py_ssize_t i, slot, child = 0, n_eligible
        cdef double ratio, order
        self.n_deaths_tried += 1
        if kind == SINGLETON or kind == INTERVAL:
            child = self.ascending[draws.below(self._rng, self.n_nodes)]
        n_eligible = self._list_eligible(kind, child)
        if n_eligible == 0:
            return 0
        slot = self.visit[draws.below(self._rng, n_eligible)]
        ratio = self._log_graph() + self._log_death_choice(kind, slot, n_eligible)
        self._list_kin(slot)
        self._fill_mean(slot)
        if not self._match_moments(slot, False):
            return 0
        ratio += self._log_kin(slot, False)
        order = self.order[slot]
        self._dying = True
        self._remove(slot)
        ratio += self._log_choice(kind, order) - self._log_graph()
        self._dying = False
        if log(draws.uniform(self._rng)) < -ratio:
            for i in range(self.n_kin):
                child = self.kin[i]
                self.weight[child, slot] = 0.0
                self.bias[child] = self.bias_without[i]
                self.precision[child] = self.precision_without[i]
            for i in range(self.n_elders):
                self.weight[slot, self.elder[i]] = 0.0
            self.n_deaths += 1
            return 0
        # The slot that has become free last is the one that is taken.
        slot = self._insert(order)
        for i in range(self.n_kin):
            self._link(self.kin[i], slot)
        for i in range(self.n_elders):
            self._link(slot, self.elder[i])
        return 0

    cdef void _list_kin(self, Py_ssize_t slot) noexcept nogil:
        """Fill ``kin`` and ``elder`` with a node's children and parents, in ascending order."""
        cdef Py_ssize_t i, other
        self.n_kin = self.n_elders = 0
        for i in range(self.n_nodes):
            other = self.ascending[i]
            if self.edge[other, slot]:
                self.kin[self.n_kin] = other
                self.kin_weight[self.n_kin] = self.weight[other, slot]
                self.n_kin += 1
            if self.edge[slot, other]:
                self.elder[self.n_elders] = other
                self.n_elders += 1

    # -- how births are chosen, and which deaths undo them ------------------------------------

    cdef double _choose_child(self, int kind, double* order) noexcept nogil:
        """A singleton's child and order; -log of their density, -inf where there is no room."""
        cdef Py_ssize_t first, n_above
        cdef Py_ssize_t child = self.ascending[draws.below(self._rng, self.n_nodes)]
        cdef double low = self.order[child], high = 1.0
        self.kin[0], self.n_kin = child, 1
        if kind == INTERVAL:
            first = self._count_up_to(low)
            n_above = self.n_nodes - first
            first += draws.below(self._rng, n_above + 1)
            low = self.order[self.ascending[first - 1]]
            high = 1.0 if first == self.n_nodes else self.order[self.ascending[first]]
        if high <= low:
            return -INFINITY
        order[0] = low + draws.uniform(self._rng) * (high - low)
        if not low < order[0] < high:
            return -INFINITY
        return self._log_choice(kind, order[0])

    cdef Py_ssize_t _count_up_to(self, double order) noexcept nogil:
        """Number of nodes of this order or a lower one."""
        cdef Py_ssize_t n = 0
        while n < self.n_nodes and self.order[self.ascending[n]] <= order:
            n += 1
        return n

    cdef double _log_choice(self, int kind, double order) noexcept nogil:
        """-log density of having chosen ``kin``, ``elder`` and the order, without the node."""
        cdef Py_ssize_t n, n_above
        cdef double low = self.order[self.kin[0]], gap
        if kind == ORPHAN:
            return -self._log_children(self.n_kin, self._count_below(order))
        if kind == WHOLE:
            return (
                self._choose_parents(order, False)
                - self._log_children(self.n_kin, self._count_below(order))
            )
        if kind == SINGLETON:
            return log(self.n_nodes * (1.0 - low))
        n_above = self.n_nodes - self._count_up_to(low)
        n = self._count_below(order)
        gap = 1.0 if n == self.n_nodes else self.order[self.ascending[n]]
        gap -= self.order[self.ascending[n - 1]]
        if self.fault == WRONG_GAP and self._dying:
            gap = (1.0 if n == self.n_nodes else self.order[self.ascending[n]]) - order
        return log(self.n_nodes * (n_above + 1.0 + (self.fault == WRONG_UP)) * gap)

    cdef double _log_children(self, Py_ssize_t m, Py_ssize_t n) noexcept nogil:
        """log B(m, alpha + n - m) / sum_{r < n} 1 / (alpha + r): one set of m of n children."""
        return self.log_count[m] + self.log_rest[n - m] - self.log_rest[n] - log(self.psi[n])

    cdef double _choose_children(self, double order) noexcept nogil:
        """Children of a node of this order by the process' law; -log of their probability.

        Their number m of n has the probability C(n, m) B(m, alpha + n - m) / psi(n), and all sets
        of m are alike; -inf if there is nothing below.
        """
        cdef Py_ssize_t i, j, m = 1, n = self._count_below(order)
        cdef double alpha = self.concentration, share, left
        if n == 0:
            return -INFINITY
        left = draws.uniform(self._rng) * self.psi[n]
        share = n / (alpha + n - 1.0)
        while m < n and left >= share:
            left -= share
            share *= (n - m) * <double> m / ((m + 1.0) * (alpha + n - m - 1.0))
            m += 1
        for i in range(n):
            self.visit[i] = self.ascending[i]
        for i in range(m):
            j = i + draws.below(self._rng, n - i)
            self.kin[i], self.visit[j] = self.visit[j], self.visit[i]
        self.n_kin = m
        return -self._log_children(m, n)

    cdef double _choose_parents(self, double order, bint draw) noexcept nogil:
        """Parents by equation 13 for a node that is about to be; -log of their probability.

        Without ``draw`` they are ``elder``, in ascending order.
        """
        cdef Py_ssize_t i, k, n = 0, below = 0, start = self._count_below(order)
        cdef double taken, p, total = 0.0
        cdef bint joins
        for i in range(start, self.n_nodes):
            k = self.ascending[i]
            if i == start or self.order[k] > self.order[self.ascending[i - 1]]:
                below = i
            taken = self.n_children[k]
            if not self.is_hidden(k):
                taken += self.popularity
                p = taken / (self.concentration + self.popularity + below)
            else:
                p = taken / (self.concentration + below)
            if draw:
                joins = draws.uniform(self._rng) < p
            else:
                joins = n < self.n_elders and self.elder[n] == k
            if joins:
                self.elder[n] = k
                n += 1
            total -= log(p if joins else 1.0 - p)
        if draw:
            self.n_elders = n
        return total

    cdef bint _is_eligible(self, int kind, Py_ssize_t slot) noexcept nogil:
        """Whether a birth of this kind may have made the node."""
        cdef Py_ssize_t i, other
        if not self.is_hidden(slot):
            return False
        if kind == ORPHAN:
            return self.n_parents[slot] == 0
        if kind == WHOLE:
            for i in range(self.n_nodes - 1, -1, -1):
                other = self.ascending[i]
                if other == slot:
                    return True
                if self.edge[slot, other] and self.is_hidden(other):
                    if self.n_children[other] == 1:
                        return False
            return True
        return self.n_parents[slot] == 0 and self.n_children[slot] == 1

    cdef Py_ssize_t _list_eligible(self, int kind, Py_ssize_t child) noexcept nogil:
        """Fill ``visit`` with the nodes that a death may choose, for singletons of one child."""
        cdef Py_ssize_t i, slot, n = 0
        cdef bint of_child = kind == SINGLETON or kind == INTERVAL
        for i in range(self.n_nodes):
            slot = self.ascending[i]
            if (not of_child or self.edge[child, slot]) and self._is_eligible(kind, slot):
                self.visit[n] = slot
                n += 1
        return n

    cdef double _log_death_choice(
        self, int kind, Py_ssize_t slot, Py_ssize_t n_eligible
    ) noexcept nogil:
        """Log probability that a death chooses the node, in the state with it."""
        if kind == ORPHAN or kind == WHOLE:
            return -log(n_eligible)
        if self.fault == PRINTED_RATIO:
            return -log(n_eligible)
        return -log(n_eligible * <double> self.n_nodes)

    cdef double _log_reverse(self, int kind, Py_ssize_t slot) noexcept nogil:
        """The same for a newborn."""
        return self._log_death_choice(kind, slot, self._list_eligible(kind, self.kin[0]))

    # -- parameters and rows ------------------------------------------------------------------

    cdef void _fill_mean(self, Py_ssize_t slot) noexcept nogil:
        """Means of a node's activations given its parents'."""
        cdef Py_ssize_t i
        for i in range(self.n_samples):
            self.mean[i] = self.bias[slot]
        for i in range(self.n_elders):
            linalg.axpy(
                self.n_samples, self.weight[slot, self.elder[i]], &self.post[self.elder[i], 0],
                &self.mean[0],
            )

    cdef bint _match_moments(self, Py_ssize_t slot, bint birth) noexcept nogil:
        """Biases and precisions of ``kin`` with the node and without it; whether there are any.

        1 / rho' = 1 / rho - w^2 v and b' = b - w mu with the mean mu and variance v of what the
        node gives, over all rows alike; where the precision is given the means alone stay.
        """
        cdef double mean, variance = 0.0, mu, v, w
        cdef Py_ssize_t i, child
        mean = self.bias[slot]
        if self.n_elders > 0 and self.n_samples > 0:
            mean = 0.0
            for i in range(self.n_samples):
                mean += self.mean[i] / self.n_samples
            for i in range(self.n_samples):
                variance += (self.mean[i] - mean) * (self.mean[i] - mean) / self.n_samples
        squashed_moments(mean, sqrt(variance + 1.0 / self.precision[slot]), &mu, &v)
        for i in range(self.n_kin):
            child, w = self.kin[i], self.kin_weight[i]
            self.bias_with[i] = self.bias_without[i] = self.bias[child]
            self.precision_with[i] = self.precision_without[i] = self.precision[child]
            if birth:
                self.bias_with[i] -= w * mu
            else:
                self.bias_without[i] += w * mu
            if not self.has_free_precision(child):
                continue
            variance = 1.0 / self.precision[child]
            if birth:
                if not variance > w * w * v:
                    return False
                self.precision_with[i] = 1.0 / (variance - w * w * v)
            else:
                self.precision_without[i] = 1.0 / (variance + w * w * v)
            if not self.precision_without[i] > LEAST_PRECISION:
                return False
        return self.precision[slot] > LEAST_PRECISION

    cdef double _log_kin(self, Py_ssize_t slot, bint draw) noexcept nogil:
        """Rows' and parameters' part of a birth's log ratio; draws the activations, or weighs them.

        Before a birth the node's weights are 0.
        """
        cdef Py_ssize_t i, j, child
        cdef double total = 0.0, quadratic = 0.0, w, rho, shift, spread, squares, before
        cdef double* r
        for i in range(self.n_samples):
            self.linear[i] = 0.0
        for j in range(self.n_kin):
            child, w, rho = self.kin[j], self.kin_weight[j], self.precision_with[j]
            shift = self.bias_without[j] - self.bias_with[j]
            r = &self.residual[child, 0]
            self._fill_residual(child, r)
            squares = before = 0.0
            if not draw:
                linalg.axpy(self.n_samples, w, &self.post[slot, 0], r)
            for i in range(self.n_samples):
                # r is what is left without the node, with the bias that it brings.
                if draw:
                    r[i] += shift
                squares += r[i] * r[i]
                before += (r[i] - shift) * (r[i] - shift)
                self.linear[i] += rho * w * r[i]
            quadratic += rho * w * w
            total += 0.5 * (self.precision_without[j] * before - rho * squares)
            total -= 0.5 * self.bias_precision * (
                self.bias_with[j] * self.bias_with[j]
                - self.bias_without[j] * self.bias_without[j]
            )
            if self.has_free_precision(child):
                total += 0.5 * self.n_samples * log(rho / self.precision_without[j])
                total += self._log_precision(rho) - self._log_precision(self.precision_without[j])
                if self.fault != NO_JACOBIAN:
                    total += 2.0 * log(rho / self.precision_without[j])
        spread = 1.0 / sqrt(self.precision[slot])
        for i in range(self.n_samples):
            if draw:
                total += draw_on_grid(
                    self._rng, self.mean[i], spread, self.linear[i], quadratic, &self.newborn[i]
                )
            else:
                total += weigh_on_grid(
                    self.pre[slot, i], self.mean[i], spread, self.linear[i], quadratic
                )
        return total + self._fault_of_descent(slot)

    cdef double _fault_of_descent(self, Py_ssize_t slot) noexcept nogil:
        """Takes away that nodes above have one more below them: a wrong formula for tests."""
        cdef Py_ssize_t i, other
        cdef double total = 0.0
        if self.fault != NO_DESCENT:
            return 0.0
        self._count_all_below()
        for i in range(self.n_nodes):
            other = self.ascending[i]
            if self.order[other] > self.order[slot] and not self.edge[slot, other]:
                total += self._log_node(other, self.n_below[other] - 1)
                total -= self._log_node(other, self.n_below[other])
        return total

    # -- nodes put into edges -----------------------------------------------------------------

    cdef int _split_or_merge(self) except -1 nogil:
        """One attempt to make p -> i into p -> h -> i, or the inverse."""
        if draws.uniform(self._rng) < 0.5:
            return self._split()
        return self._merge()

    cdef int _split(self) except -1 nogil:
        cdef Py_ssize_t slot, parent = -1, child = -1, i, n
        cdef double ratio = -self._log_graph(), old, order
        self.n_splits_tried += 1
        if self.n_edges == 0:
            return 0
        if self.n_hidden >= self.max_hidden:
            self.n_guard_rejections += 1
            return 0
        self._reserve_nodes(1)
        n = draws.below(self._rng, self.n_edges)
        for i in range(self.n_nodes):
            child = self.ascending[i]
            if n < self.n_parents[child]:
                break
            n -= self.n_parents[child]
        for i in range(self.n_nodes):
            parent = self.ascending[i]
            if self.edge[child, parent]:
                if n == 0:
                    break
                n -= 1
        ratio += log(self.n_edges * (self.order[parent] - self.order[child]))
        order = self.order[child] + draws.uniform(self._rng) * (
            self.order[parent] - self.order[child]
        )
        if not self.order[child] < order < self.order[parent]:
            return 0
        slot = self._insert(order)
        self.bias[slot] = draws.normal(self._rng) / sqrt(self.bias_precision)
        self.precision[slot] = draws.draw_gamma(self._rng, self.noise_law[0], self.noise_law[1])
        self.weight[slot, parent] = self._draw_weight_from(parent)
        self.kin_weight[0] = self._draw_weight_from(slot)
        old = self.weight[child, parent]
        ratio += self._log_insertion(slot, parent, child, &old, True)
        self._unlink(child, parent)
        self._link(slot, parent)
        self._link(child, slot)
        ratio += self._log_graph() - log(self._list_mergeable())
        if self.precision[slot] > LEAST_PRECISION and log(draws.uniform(self._rng)) < ratio:
            self.weight[child, parent] = 0.0
            self.weight[child, slot] = self.kin_weight[0]
            memcpy(&self.pre[slot, 0], &self.newborn[0], self.n_samples * sizeof(double))
            self._squash(slot)
            self.n_splits += 1
            return 0
        self.weight[slot, parent] = 0.0
        self._remove(slot)
        self._link(child, parent)
        return 0

    cdef int _merge(self) except -1 nogil:
        cdef Py_ssize_t slot, parent = 0, child = 0, n = self._list_mergeable()
        cdef double ratio, old = 0.0, order
        self.n_merges_tried += 1
        if n == 0:
            return 0
        slot = self.visit[draws.below(self._rng, n)]
        if not self.precision[slot] > LEAST_PRECISION:
            return 0
        self._is_mergeable(slot, &parent, &child)
        self.kin_weight[0] = self.weight[child, slot]
        ratio = self._log_graph() - log(n)
        ratio += self._log_insertion(slot, parent, child, &old, False)
        order = self.order[slot]
        self._remove(slot)
        self._link(child, parent)
        ratio += log(self.n_edges * (self.order[parent] - self.order[child])) - self._log_graph()
        if log(draws.uniform(self._rng)) < -ratio:
            self.weight[child, slot] = self.weight[slot, parent] = 0.0
            self.weight[child, parent] = old
            self.n_merges += 1
            return 0
        self._unlink(child, parent)
        slot = self._insert(order)
        self._link(child, slot)
        self._link(slot, parent)
        return 0

    cdef Py_ssize_t _list_mergeable(self) noexcept nogil:
        """Fill ``visit`` with the nodes that a split may have made; their number."""
        cdef Py_ssize_t i, n = 0, parent = 0, child = 0
        for i in range(self.n_nodes):
            if self._is_mergeable(self.ascending[i], &parent, &child):
                self.visit[n] = self.ascending[i]
                n += 1
        return n

    cdef bint _is_mergeable(
        self, Py_ssize_t slot, Py_ssize_t* parent, Py_ssize_t* child
    ) noexcept nogil:
        """Whether a hidden node has one parent and one child that are not joined themselves."""
        cdef Py_ssize_t i, other
        if not self.is_hidden(slot):
            return False
        if self.n_parents[slot] != 1 or self.n_children[slot] != 1:
            return False
        for i in range(self.n_nodes):
            other = self.ascending[i]
            if self.edge[slot, other]:
                parent[0] = other
            if self.edge[other, slot]:
                child[0] = other
        return not self.edge[child[0], parent[0]]

    cdef double _log_insertion(
        self, Py_ssize_t slot, Py_ssize_t parent, Py_ssize_t child, double* weight, bint split
    ) noexcept nogil:
        """Rows' part of a split's log ratio; the graph is the one before the move.

        The old weight is judged by, or drawn from, its normal law given all else.
        """
        cdef Py_ssize_t i
        cdef double total = 0.0, rho = self.precision[child], w = self.kin_weight[0]
        cdef double spread = 1.0 / sqrt(self.precision[slot]), precision, mean, rest
        cdef double prior = self._weight_precision_from(parent)
        cdef const double* u = &self.post[parent, 0]
        cdef double* r = &self.residual[child, 0]
        self._fill_residual(child, r)
        if split:
            linalg.axpy(self.n_samples, weight[0], u, r)
        else:
            linalg.axpy(self.n_samples, w, &self.post[slot, 0], r)
        precision = prior + rho * linalg.dot(self.n_samples, u, u)
        mean = rho * linalg.dot(self.n_samples, u, r) / precision
        if not split:
            weight[0] = mean + draws.normal(self._rng) / sqrt(precision)
        total += 0.5 * log(precision / prior)
        total -= 0.5 * precision * (weight[0] - mean) * (weight[0] - mean)
        total += 0.5 * prior * weight[0] * weight[0]
        for i in range(self.n_samples):
            rest = r[i] - weight[0] * u[i]
            total += 0.5 * rho * (rest * rest - r[i] * r[i])
            mean = self.bias[slot] + self.weight[slot, parent] * u[i]
            if split:
                total += draw_on_grid(
                    self._rng, mean, spread, rho * w * r[i], rho * w * w, &self.newborn[i]
                )
            else:
                total += weigh_on_grid(
                    self.pre[slot, i], mean, spread, rho * w * r[i], rho * w * w
                )
        return total
