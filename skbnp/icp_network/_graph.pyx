"""Nodes with orders and edges from higher to lower ones: the Indian chefs process of one chain.

The law of graph and orders is equation (I2.3) (Dallaire et al., equation 9, corrected): hidden
nodes are a set. Whatever changes the graph looks at ``_log_graph`` before and after.
"""

from libc.math cimport INFINITY, exp, expm1, isnan, log, log1p

import numpy as np

from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log_gamma_density

ROLES = ("gaussian", "input", "latent")

cdef enum:
    MOST_STEPS = 50     # of the slices' stepping out, to each side
    MOST_SHRINKS = 200


cdef double log_expm1(double x) noexcept nogil:
    """log(e^x - 1) for x > 0, also where e^x is beyond floats."""
    return log(expm1(x)) if x < 30.0 else x + log1p(-exp(-x))


cdef double draw_exponent(double u, double x) noexcept nogil:
    """log(1 + u (e^x - 1)): of the density e^t on (0, x), what a uniform u gives."""
    return log1p(u * expm1(x)) if x < 30.0 else x + log(u + (1.0 - u) * exp(-x))


cdef class Graph:
    """Graph and orders.

    Invariant between moves: ``ascending[:n_nodes]`` are the slots in use by ascending order;
    ``n_children`` and ``n_parents`` count ``edge``, which is 0 for free slots; every hidden node
    has a child; the tables are those of the hyperparameters.
    """

    def __init__(self, prior, state, bit_generator, int fault):
        """``state`` has been checked."""
        self._bit_generator = bit_generator
        self._rng = draws.borrow(bit_generator)
        self.prior, self.fault = prior, fault
        self.n_observed, self.max_hidden = prior.n_observed, prior.max_hidden
        self.role = np.array([ROLES.index(role) for role in prior.roles], dtype=np.uint8)
        self.is_fixed = np.array([order is not None for order in prior.orders], dtype=np.uint8)
        for i, value in enumerate(prior.given):
            self.given[i] = np.nan if value is None else value
        for i in range(2):
            self.mass_law[i] = prior.mass_prior[i]
            self.inverse_law[i] = prior.inverse_concentration_prior[i]
            self.popularity_law[i] = prior.popularity_prior[i]

    def _put_graph(self, state):
        """Take orders, edges and hyperparameters of a checked state over."""
        order = state["order"]
        n_hidden = len(order) - self.n_observed
        self.n_hidden = self.n_edges = self.n_free = 0
        self.n_nodes = self.n_observed
        self.order = order[:self.n_observed].copy()
        self.edge = np.zeros((self.n_observed, self.n_observed), dtype=np.uint8)
        for name in ("n_children", "n_parents", "visit", "n_below", "free_slot"):
            setattr(self, name, np.zeros(self.n_observed, dtype=np.intp))
        self.ascending = np.argsort(order[:self.n_observed], kind="stable").astype(np.intp)
        self.log_segment = np.zeros(self.n_observed + 1)
        for name in ("log_count", "log_rest", "psi", "log_taken", "log_both"):
            setattr(self, name, np.zeros(self.n_observed + 2))
        self.mass, self.concentration, self.popularity = state["hyper"]
        self._reserve_nodes(n_hidden + 1)
        self._fill_tables()
        slots = np.arange(len(order))
        for node in range(self.n_observed, len(order)):
            slots[node] = self._insert(order[node])
        for parent, child in state["edges"]:
            self._link(slots[child], slots[parent])
        return slots

    def _slots(self):
        """Slots of the nodes in the order of the state's numbers."""
        ascending = np.asarray(self.ascending)[:self.n_nodes]
        return np.concatenate(
            [np.arange(self.n_observed), ascending[ascending >= self.n_observed]]
        )

    # -- room ---------------------------------------------------------------------------------

    cdef int _reserve_nodes(self, Py_ssize_t n_new) except -1 nogil:
        """Room for so many hidden nodes more."""
        if self.n_free >= n_new:
            return 0
        with gil:
            old = self.order.shape[0]
            room = max(old + 8, 2 * old - self.n_observed, old + n_new)
            self._grow_nodes(old, room)
            for slot in range(room - 1, old - 1, -1):
                self.free_slot[self.n_free] = slot
                self.n_free += 1
        return 0

    def _grow_nodes(self, old, room):
        """Make all arrays as long as ``room`` slots take; subclasses add theirs."""
        for name in ("order", "n_children", "n_parents", "ascending", "free_slot", "visit",
                     "n_below"):
            self._grow(name, (room,))
        self._grow("log_segment", (room + 1,))
        self._grow("edge", (room, room))
        for name in ("log_count", "log_rest", "psi", "log_taken", "log_both"):
            self._grow(name, (room + 2,))
        self._fill_tables()

    def _grow(self, str name, shape):
        """Replace an array by a larger one that begins with it."""
        old = np.asarray(getattr(self, name))
        new = np.zeros(shape, dtype=old.dtype)
        new[tuple(slice(n) for n in old.shape)] = old
        setattr(self, name, new)

    cdef void _fill_tables(self) noexcept nogil:
        """What the density needs for whole numbers, anew for the hyperparameters."""
        cdef Py_ssize_t n
        cdef double alpha = self.concentration, phi = self.popularity
        self.log_count[0] = INFINITY
        self.psi[0] = 0.0
        for n in range(self.psi.shape[0]):
            if n > 0:
                self.log_count[n] = lgamma(n)
                self.psi[n] = self.psi[n - 1] + 1.0 / (alpha + (n - 1))
            self.log_rest[n] = lgamma(alpha + n)
            self.log_taken[n] = lgamma(phi + n)
            self.log_both[n] = lgamma(alpha + phi + n)
        self.log_observed = self.log_both[0] - self.log_taken[0] - self.log_rest[0]

    # -- bookkeeping --------------------------------------------------------------------------

    cdef bint is_hidden(self, Py_ssize_t slot) noexcept nogil:
        return slot >= self.n_observed

    cdef bint has_law(self, Py_ssize_t slot) noexcept nogil:
        """Whether a node has a bias and may have parents: all but inputs."""
        return slot >= self.n_observed or self.role[slot] != INPUT_NODE

    cdef bint is_free_order(self, Py_ssize_t slot) noexcept nogil:
        return slot >= self.n_observed or not self.is_fixed[slot]

    cdef Py_ssize_t _insert(self, double order) noexcept nogil:
        """A new hidden node without edges; its slot. Room is there."""
        cdef Py_ssize_t slot
        self.n_free -= 1
        slot = self.free_slot[self.n_free]
        self.order[slot] = order
        self._place(slot, self.n_nodes)
        self.n_nodes += 1
        self.n_hidden += 1
        return slot

    cdef void _remove(self, Py_ssize_t slot) noexcept nogil:
        """Take a hidden node away with all its edges."""
        cdef Py_ssize_t i, other, at = self._rank(slot)
        for i in range(self.n_nodes):
            other = self.ascending[i]
            self._unlink(other, slot)
            self._unlink(slot, other)
        for i in range(at, self.n_nodes - 1):
            self.ascending[i] = self.ascending[i + 1]
        self.n_nodes -= 1
        self.n_hidden -= 1
        self.free_slot[self.n_free] = slot
        self.n_free += 1

    cdef void _place(self, Py_ssize_t slot, Py_ssize_t n) noexcept nogil:
        """Sort a slot in among the first n that are in ascending order."""
        cdef Py_ssize_t at = n
        while at > 0 and self.order[self.ascending[at - 1]] > self.order[slot]:
            self.ascending[at] = self.ascending[at - 1]
            at -= 1
        self.ascending[at] = slot

    cdef Py_ssize_t _rank(self, Py_ssize_t slot) noexcept nogil:
        """Where a slot stands in ``ascending``."""
        cdef Py_ssize_t at = 0
        while self.ascending[at] != slot:
            at += 1
        return at

    cdef Py_ssize_t _count_below(self, double order) noexcept nogil:
        """Number of nodes of strictly lower order: the first so many of ``ascending``."""
        cdef Py_ssize_t n = 0
        while n < self.n_nodes and self.order[self.ascending[n]] < order:
            n += 1
        return n

    cdef void _count_all_below(self) noexcept nogil:
        """Fill ``n_below``."""
        cdef Py_ssize_t i, slot, n = 0
        for i in range(self.n_nodes):
            slot = self.ascending[i]
            if i == 0 or self.order[slot] > self.order[self.ascending[i - 1]]:
                n = i
            self.n_below[slot] = n

    cdef void _link(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil:
        """An edge, if there is none."""
        if not self.edge[child, parent]:
            self.edge[child, parent] = 1
            self.n_children[parent] += 1
            self.n_parents[child] += 1
            self.n_edges += 1

    cdef void _unlink(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil:
        """Take an edge away, if there is one."""
        if self.edge[child, parent]:
            self.edge[child, parent] = 0
            self.n_children[parent] -= 1
            self.n_parents[child] -= 1
            self.n_edges -= 1

    cdef void _list_hidden(self) noexcept nogil:
        """Fill ``visit`` with the hidden nodes."""
        cdef Py_ssize_t i, n = 0
        for i in range(self.n_nodes):
            if self.is_hidden(self.ascending[i]):
                self.visit[n] = self.ascending[i]
                n += 1

    cdef void _shuffle_visits(self, Py_ssize_t n) noexcept nogil:
        """Put the first n of ``visit`` into a random order.

        Never by slot: slots carry the age of a node, which the graph depends on
        (doc/mathematics/icp_network, section 4).
        """
        draws.shuffle(self._rng, &self.visit[0], n)

    # -- the density --------------------------------------------------------------------------

    cdef double _log_node(self, Py_ssize_t slot, Py_ssize_t n_below) noexcept nogil:
        """Log factor of a node's children, m of the n_below that they might be."""
        cdef Py_ssize_t m = self.n_children[slot]
        if self.is_hidden(slot):
            return self.log_count[m] + self.log_rest[n_below - m] - self.log_rest[n_below]
        return self.log_taken[m] + self.log_rest[n_below - m] - self.log_both[n_below]

    cdef double _exposure(self, double alpha) noexcept nogil:
        """T of equation (I2.4), sum of gaps times digamma(alpha + j) - digamma(alpha): O(K)."""
        cdef Py_ssize_t i
        cdef double total = 0.0, psi = 0.0, upper
        for i in range(self.n_nodes):
            psi += 1.0 / (alpha + i)
            upper = 1.0 if i + 1 == self.n_nodes else self.order[self.ascending[i + 1]]
            total += (upper - self.order[self.ascending[i]]) * psi
        return total

    cdef double _log_graph(self) noexcept nogil:
        """Log density of edges and orders, hidden nodes as a set: O(K)."""
        cdef Py_ssize_t i, slot, n = 0
        cdef double total = 0.0, exposure = 0.0, order, upper, before = -1.0
        order = self.order[self.ascending[0]]
        for i in range(self.n_nodes):
            slot = self.ascending[i]
            upper = 1.0 if i + 1 == self.n_nodes else self.order[self.ascending[i + 1]]
            if order > before:
                n = i
            exposure += (upper - order) * self.psi[i + 1]
            total += self._log_node(slot, n)
            before, order = order, upper
        if self.fault == PRINTED_CONSTANT:
            for i in range(self.n_hidden):
                total -= log(i + 1.0)
        return (
            total + self.n_hidden * log(self.concentration * self.mass)
            + self.n_observed * self.log_observed - self.concentration * self.mass * exposure
        )

    cdef double _log_taken_odds(self, Py_ssize_t parent, Py_ssize_t n_others) noexcept nogil:
        """Log prior odds of one more child besides n_others; -inf if the node needs them.

        Equation 13; ``n_below`` is up to date.
        """
        cdef double taken = n_others, alpha = self.concentration
        if self.is_hidden(parent):
            if n_others == 0:
                return -INFINITY
        else:
            taken += self.popularity
        return log(taken / (alpha + self.n_below[parent] - 1.0 - n_others))

    # -- orders -------------------------------------------------------------------------------

    cdef double _lowest_order(self, Py_ssize_t slot) noexcept nogil:
        """The highest child's order, 0 without any."""
        cdef Py_ssize_t i = self._rank(slot)
        while i > 0:
            i -= 1
            if self.edge[self.ascending[i], slot]:
                return self.order[self.ascending[i]]
        return 0.0

    cdef double _highest_order(self, Py_ssize_t slot) noexcept nogil:
        """The lowest parent's order, 1 without any."""
        cdef Py_ssize_t i
        for i in range(self._rank(slot) + 1, self.n_nodes):
            if self.edge[slot, self.ascending[i]]:
                return self.order[self.ascending[i]]
        return 1.0

    cdef int _draw_order(self, Py_ssize_t slot) noexcept nogil:
        """Order of a free node given all else, exactly: O(K), equation (I5.11).

        Non-zero, and the order stays, if no stretch of it has a finite probability.

        Between two neighbouring orders, r nodes below, log p has the slope alpha gamma /
        (alpha + r); passing node j raises the number below this node by one and lowers that
        below j by one.
        """
        cdef double low = self._lowest_order(slot), high = self._highest_order(slot)
        cdef double slope, level = 0.0, left, right, length
        cdef double rate = self.concentration * self.mass
        cdef Py_ssize_t i, first, n, n_segments = 0, other, chosen, below
        # Take the node out; put it back where it is drawn.
        for i in range(self._rank(slot), self.n_nodes - 1):
            self.ascending[i] = self.ascending[i + 1]
        n = self.n_nodes - 1
        first = 0
        while first < n and self.order[self.ascending[first]] <= low:
            first += 1
        # A childless node may lie below others at 0; there is nothing lower than they are.
        left = low
        i = first
        while True:
            right = high
            if i < n and self.order[self.ascending[i]] < high:
                right = self.order[self.ascending[i]]
            slope = rate / (self.concentration + i)
            length = right - left
            self.log_segment[n_segments] = -INFINITY
            if length > 0.0:
                self.log_segment[n_segments] = level + log_expm1(slope * length) - log(slope)
            n_segments += 1
            if right >= high:
                break
            # Pass the node at ``right``: it had this one and i others, some tied with it, below.
            other = self.ascending[i]
            below = i
            while below > 0 and self.order[self.ascending[below - 1]] >= right:
                below -= 1
            level += slope * length
            level += self._log_node(other, below) - self._log_node(other, below + 1)
            level += self._log_node(slot, i + 1) - self._log_node(slot, i)
            left = right
            i += 1
        if draws.categorical_from_logs(
            self._rng, &self.log_segment[0], n_segments, &chosen
        ) != 0:
            self._place(slot, n)
            return 1
        i = first + chosen
        left = low if chosen == 0 else self.order[self.ascending[i - 1]]
        right = high if chosen == n_segments - 1 else self.order[self.ascending[i]]
        slope = rate / (self.concentration + i)
        length = draw_exponent(draws.uniform(self._rng), slope * (right - left)) / slope
        # Rounding may reach the ends, which belong to others.
        if left < left + length < right:
            self.order[slot] = left + length
        self._place(slot, n)
        return 0

    cdef void _propose_order(self, Py_ssize_t slot) noexcept nogil:
        """The paper's move: uniform between the highest child and the lowest parent."""
        cdef double low = self._lowest_order(slot), high = self._highest_order(slot)
        cdef double old = self.order[slot], before = self._log_graph()
        cdef Py_ssize_t i
        self.n_orders_tried += 1
        for i in range(self._rank(slot), self.n_nodes - 1):
            self.ascending[i] = self.ascending[i + 1]
        self.order[slot] = low + draws.uniform(self._rng) * (high - low)
        self._place(slot, self.n_nodes - 1)
        if log(draws.uniform(self._rng)) < self._log_graph() - before:
            self.n_orders += 1
            return
        for i in range(self._rank(slot), self.n_nodes - 1):
            self.ascending[i] = self.ascending[i + 1]
        self.order[slot] = old
        self._place(slot, self.n_nodes - 1)

    cdef int _update_orders(self, bint exact) except -1 nogil:
        """The orders of all nodes that are free, one after the other at random.

        Non-zero if one of them could not be drawn.
        """
        cdef Py_ssize_t i, n
        self._list_hidden()
        n = self.n_hidden
        for i in range(self.n_observed):
            if not self.is_fixed[i]:
                self.visit[n] = i
                n += 1
        self._shuffle_visits(n)
        for i in range(n):
            if exact:
                if self._draw_order(self.visit[i]) != 0:
                    return 1
            else:
                self._propose_order(self.visit[i])
        return 0

    # -- hyperparameters ----------------------------------------------------------------------

    cdef int _update_hyper(self) except -1 nogil:
        """The mass exactly, the others by slices of their logarithms: equation (I5.12)."""
        cdef double exposure
        if isnan(self.given[0]):
            exposure = self._exposure(self.concentration)
            if self.fault != PLAIN_MASS:
                exposure *= self.concentration
            self.mass = draws.draw_gamma(
                self._rng, self.mass_law[0] + self.n_hidden, self.mass_law[1] + exposure
            )
        self._count_all_below()
        if isnan(self.given[1]):
            self.concentration = exp(self._slice(log(self.concentration), True))
        if isnan(self.given[2]):
            self.popularity = exp(self._slice(log(self.popularity), False))
        self._fill_tables()
        return 0

    cdef double _log_concentration(self, double log_alpha) noexcept nogil:
        """Log density of log alpha given all else, up to a constant: O(K)."""
        cdef double alpha = exp(log_alpha), phi = self.popularity, total
        cdef Py_ssize_t i, slot, m, n
        total = self.n_hidden * log_alpha - alpha * self.mass * self._exposure(alpha)
        for i in range(self.n_nodes):
            slot = self.ascending[i]
            m, n = self.n_children[slot], self.n_below[slot]
            if self.is_hidden(slot):
                total += lgamma(alpha + n - m) - lgamma(alpha + n)
            else:
                total += lgamma(alpha + n - m) - lgamma(alpha)
                total += lgamma(alpha + phi) - lgamma(alpha + phi + n)
        # 1 / alpha is gamma; d(1 / alpha) = -(1 / alpha) d log alpha.
        total += log_gamma_density(1.0 / alpha, self.inverse_law[0], self.inverse_law[1])
        return total - log_alpha

    cdef double _log_popularity(self, double log_phi) noexcept nogil:
        """The same for log phi."""
        cdef double alpha = self.concentration, phi = exp(log_phi), total = log_phi
        cdef Py_ssize_t slot
        for slot in range(self.n_observed):
            total += lgamma(phi + self.n_children[slot]) - lgamma(phi)
            total += lgamma(alpha + phi) - lgamma(alpha + phi + self.n_below[slot])
        return total + log_gamma_density(phi, self.popularity_law[0], self.popularity_law[1])

    cdef double _log_scale(self, double x, bint of_concentration) noexcept nogil:
        # Beyond this nothing is left of a double's precision.
        if not -200.0 < x < 200.0:
            return -INFINITY
        return self._log_concentration(x) if of_concentration else self._log_popularity(x)

    cdef double _slice(self, double x, bint of_concentration) noexcept nogil:
        """One univariate slice step by stepping out and shrinkage (Neal 2003)."""
        cdef double level = self._log_scale(x, of_concentration) + log(draws.uniform(self._rng))
        cdef double low = x - draws.uniform(self._rng), high = low + 1.0, proposal
        cdef Py_ssize_t _
        # Both tails fall exponentially: the bounds on the steps are never met.
        for _ in range(MOST_STEPS):
            if self._log_scale(low, of_concentration) < level:
                break
            low -= 1.0
        for _ in range(MOST_STEPS):
            if self._log_scale(high, of_concentration) < level:
                break
            high += 1.0
        for _ in range(MOST_SHRINKS):
            proposal = low + (high - low) * draws.uniform(self._rng)
            if self._log_scale(proposal, of_concentration) >= level:
                return proposal
            if proposal < x:
                low = proposal
            else:
                high = proposal
        return x
