"""The state of a search for the partition of least posterior expected loss, and its moves.

All totals are those of `_losses`: the table of f and its steps says which loss is meant.
"""

import numpy as np

from libc.math cimport INFINITY
from numpy.random cimport bitgen_t

from skbnp.numerics.rng cimport borrow, shuffle

UNBOUNDED = 2**62  # as ``max_work``

cdef enum:
    TOGETHER = 4            # slots whose gains are summed at once


cdef class Search:
    """A partition of weighted items and its contingency tables with all draws.

    Rows of the tables are the blocks of all draws, one draw after the other; columns are the
    slots of the clusters, contiguous, so that the loop over candidate clusters vectorises.
    Invariant between moves: count[r, k] is the weight of the items of cluster k in block r,
    gain[r, k] = row_share[r] (f(count + 1) - f(count)), size[k] the weight of cluster k,
    label[i] its slot, and slots from n_slots on are empty. Slots below may be empty too.
    """

    cdef:
        object _bit_generator             # owner of *_rng, must outlive it
        bitgen_t* _rng
        readonly Py_ssize_t n_items, n_draws, n_slots, max_slots
        readonly long long work, max_work   # trial evaluations: done, and when to stop
        double _tolerance                 # an improvement must exceed rounding
        const unsigned char[:, ::1] _packed   # (n_items, n_draws width), blocks of the items
        int _width                        # bytes of a block: 1, 2 or 4
        int[::1] _row                     # (n_draws,), rows of the loaded item
        Py_ssize_t _loaded                # the item whose rows these are
        int[::1] _first_row               # (n_draws + 1,), rows of draw m start here
        int[::1] _row_size                # (n_rows,), weight of the block
        double[::1] _row_share            # (n_rows,), share of the row's draw
        const double[::1] _share          # (n_draws,), sums to one
        const int[::1] _weight            # (n_items,)
        const double[::1] _f, _step       # f(x), f(x + 1) - f(x)
        int[:, ::1] _count                # (n_rows, max_slots or somewhat more)
        double[:, ::1] _gain              # as _count
        int[::1] _size                    # (max_slots,)
        int[::1] _label                   # (n_items,), -1 while taken out
        double[::1] _cost                 # scratch, one for each slot: added loss per candidate
        Py_ssize_t[::1] _order, _member   # scratch, (n_items,)

    def __cinit__(
        self, rows, n_blocks, weight, share, tables, max_slots, max_work, generator
    ):
        self._bit_generator = generator.bit_generator
        self._rng = borrow(self._bit_generator)
        self.n_items, self.n_draws = rows.shape
        self.max_slots, self.max_work = max_slots, max_work
        self._width = rows.itemsize
        self._packed = rows.view(np.uint8).reshape(self.n_items, -1)
        self._row = np.empty(self.n_draws, dtype=np.intc)
        self._loaded = -1
        self._first_row = np.concatenate([[0], np.cumsum(n_blocks)]).astype(np.intc)
        self._row_share = np.repeat(share, n_blocks)
        self._share, self._weight = share, weight
        self._f, self._step = tables
        self._tolerance = 1e-12 * max(1.0, tables[0][np.sum(weight)])
        self._row_size = self._weigh_rows()
        n_columns = -(-max_slots // TOGETHER) * TOGETHER
        self._count = np.zeros((len(self._row_size), n_columns), dtype=np.intc)
        self._gain = np.zeros((len(self._row_size), n_columns))
        self._size = np.zeros(max_slots, dtype=np.intc)
        self._label = np.full(self.n_items, -1, dtype=np.intc)
        self._cost = np.empty(n_columns + 1)
        self._order = np.arange(self.n_items)
        self._member = np.empty(self.n_items, dtype=np.intp)

    def partition(self):
        """Slot of each item, shape (n_items,)."""
        return np.array(self._label)

    def total(self):
        """Total loss of the partition, from the tables, so free of accumulated rounding."""
        cdef const double[::1] losses = self.losses()
        cdef double total = 0.0
        cdef Py_ssize_t m
        for m in range(self.n_draws):
            total += self._share[m] * losses[m]
        return total

    def losses(self):
        """Total loss of the partition against each draw, (n_draws,)."""
        cdef double[::1] out = np.empty(self.n_draws)
        cdef double size_part = 0.0, distance
        cdef Py_ssize_t k, m, r
        for k in range(self.n_slots):
            size_part += self._f[self._size[k]]
        for m in range(self.n_draws):
            distance = size_part
            for r in range(self._first_row[m], self._first_row[m + 1]):
                distance += self._f[self._row_size[r]]
                for k in range(self.n_slots):
                    distance -= 2.0 * self._f[self._count[r, k]]
            out[m] = distance
        return np.asarray(out)

    def is_complete(self):
        """Whether every item is in a cluster."""
        return np.min(self._label) >= 0

    def start_from(self, const int[::1] label):
        """Take over a partition with labels below max_slots; -1 leaves an item to `allocate`."""
        cdef Py_ssize_t i, m, k, r
        self.n_slots = 0
        self._size[:] = 0
        self._count[:] = 0
        with nogil:
            for i in range(self.n_items):
                k = self._label[i] = label[i]
                if k < 0:
                    continue
                self.n_slots = max(self.n_slots, k + 1)
                self._size[k] += self._weight[i]
                self._load(i)
                for m in range(self.n_draws):
                    self._count[self._row[m], k] += self._weight[i]
            for r in range(self._row_share.shape[0]):
                for k in range(self.max_slots):
                    self._gain[r, k] = self._row_share[r] * self._step[self._count[r, k]]
        self.work += self.n_items * self.n_draws

    def allocate(self):
        """Allocate the items left, one by one in random order; False if the work ran out."""
        cdef bint done
        with self._bit_generator.lock, nogil:
            done = self._allocate_all()
        return bool(done)

    def sweeten(self, double few=0.0):
        """Move items to their best clusters, pass by pass, until a pass moves only a few.

        False if the work ran out.
        """
        cdef Py_ssize_t n_moved = self.n_items + 1
        while n_moved > few:
            with self._bit_generator.lock, nogil:
                n_moved = self._sweeten_all()
        return n_moved >= 0

    def rebuild(self, Py_ssize_t destroyed):
        """Destroy a cluster and allocate its items anew; undone, and False, if that is no gain."""
        cdef bint improved
        with self._bit_generator.lock, nogil:
            improved = self._rebuild(destroyed)
        return bool(improved)

    def without(self, Py_ssize_t gone):
        """What dissolving a cluster would do: its items, the others they join, change of losses.

        The items join, one after the other, the cluster that adds least to the total loss. Shapes
        (n_members,), (n_members,) and (n_draws,); the partition is as before. All clusters must
        have items.
        """
        cdef Py_ssize_t n, t, i, k, n_slots = self.n_slots
        change = np.zeros(self.n_draws)
        cdef double[::1] changes = change
        with self._bit_generator.lock, nogil:
            n = self._gather(gone)
            for t in range(n):
                i = self._member[t]
                self._add_losses(changes, i, gone, -1)
                self._take(i)
            for t in range(n):
                i = self._member[t]
                k = self._choose_other(i, gone, n_slots)
                self._put(i, k)
                self._add_losses(changes, i, k, 1)
        members = np.array(self._member[:n])
        joined = np.asarray(self._label)[members]
        self._reunite(n)
        return members, joined, change

    def dissolve(self, Py_ssize_t gone, const Py_ssize_t[::1] members, const int[::1] joined):
        """Move a cluster's items to others, as `without` says; the last takes its number."""
        cdef Py_ssize_t t, last = self.n_slots - 1, n
        with self._bit_generator.lock, nogil:
            for t in range(members.shape[0]):
                self._take(members[t])
                self._put(members[t], joined[t])
            if gone != last:
                n = self._gather(last)
                for t in range(n):
                    self._take(self._member[t])
                    self._put(self._member[t], gone)

    def support_of(self, Py_ssize_t k, double least_jaccard):
        """Share of the draws that have a block at least so much like cluster k."""
        cdef Py_ssize_t m, r, both, n_alike = 0
        for m in range(self.n_draws):
            for r in range(self._first_row[m], self._first_row[m + 1]):
                both = self._count[r, k]
                if both >= least_jaccard * (self._row_size[r] + self._size[k] - both):
                    n_alike += 1
                    break
        return <double> n_alike / self.n_draws

    # -- moves

    cdef bint _allocate_all(self) noexcept nogil:
        cdef Py_ssize_t t, i
        shuffle(self._rng, &self._order[0], self.n_items)
        for t in range(self.n_items):
            if self.work >= self.max_work:
                return False
            i = self._order[t]
            if self._label[i] < 0:
                self._put(i, self._choose(i))
        return True

    cdef Py_ssize_t _sweeten_all(self) noexcept nogil:
        """One pass; returns the number of items moved, -1 if the work ran out."""
        cdef Py_ssize_t t, n_moved = 0
        shuffle(self._rng, &self._order[0], self.n_items)
        for t in range(self.n_items):
            if self.work >= self.max_work:
                return -1
            n_moved += self._sweeten_item(self._order[t])
        return n_moved

    cdef bint _rebuild(self, Py_ssize_t destroyed) noexcept nogil:
        cdef Py_ssize_t k, t, n = self._gather(destroyed)
        cdef double change = 0.0
        for t in range(n):
            change -= self._take(self._member[t])
        for t in range(n):
            if self.work >= self.max_work:
                change = INFINITY
                break
            k = self._choose(self._member[t])
            change += self._cost[k]
            self._put(self._member[t], k)
        if change < -self._tolerance:
            return True
        self._reunite(n)
        return False

    cdef Py_ssize_t _gather(self, Py_ssize_t k) noexcept nogil:
        """Write the items of a cluster to _member in random order; returns how many."""
        cdef Py_ssize_t i, n = 0
        for i in range(self.n_items):
            if self._label[i] == k:
                self._member[n] = i
                n += 1
        shuffle(self._rng, &self._member[0], n)
        return n

    cdef Py_ssize_t _choose(self, Py_ssize_t i) noexcept nogil:
        """The slot where item i, taken out, adds the least loss."""
        cdef Py_ssize_t k, best = 0
        cdef Py_ssize_t n = self._evaluate(i)
        for k in range(1, n):
            if self._cost[k] < self._cost[best]:
                best = k
        return best

    cdef Py_ssize_t _choose_other(
        self, Py_ssize_t i, Py_ssize_t gone, Py_ssize_t n
    ) noexcept nogil:
        """The best of the first n slots for item i, taken out, but not the one that is gone."""
        cdef Py_ssize_t k, best = 0 if gone else 1
        self._evaluate(i)
        for k in range(best + 1, n):
            if k != gone and self._cost[k] < self._cost[best]:
                best = k
        return best

    cdef void _add_losses(
        self, double[::1] losses, Py_ssize_t i, Py_ssize_t k, int sign
    ) noexcept nogil:
        """Add to the loss against each draw what item i adds in its cluster k, times the sign."""
        cdef Py_ssize_t m, row
        cdef int w = self._weight[i]
        cdef double of_size = self._f[self._size[k]] - self._f[self._size[k] - w]
        self._load(i)
        for m in range(self.n_draws):
            row = self._row[m]
            losses[m] += sign * (
                of_size - 2.0 * (self._f[self._count[row, k]] - self._f[self._count[row, k] - w])
            )

    cdef int _sweeten_item(self, Py_ssize_t i) noexcept nogil:
        """Move item i if some other cluster, or a new one, is better; 1 if it moved."""
        cdef Py_ssize_t k, best = self._label[i]
        cdef Py_ssize_t n = self._evaluate(i)
        cdef double lowest = self._cost_of_staying(i) - self._tolerance
        for k in range(n):
            if self._cost[k] < lowest and k != self._label[i]:
                lowest = self._cost[k]
                best = k
        if best == self._label[i]:
            return 0
        self._take(i)
        self._put(i, best)
        return 1

    cdef Py_ssize_t _evaluate(self, Py_ssize_t i) noexcept nogil:
        """Fill _cost: the loss that putting item i into each slot adds. Returns their number.

        An empty slot means a cluster of its own. Costs count item i as taken out, except that
        of its present slot, which is meaningless.
        """
        cdef:
            Py_ssize_t n = self.n_slots, stride = self._count.shape[1], m, k
            int w = self._weight[i]
            const int* row = &self._row[0]
            const int* count
            const double* f = &self._f[0]
            double* cost = &self._cost[0]
            double share
        self._load(i)
        if w == 1:
            for k in range((n + TOGETHER - 1) // TOGETHER):
                self._sum_gains(k * TOGETHER)
        else:
            for k in range(n):
                cost[k] = 0.0
            for m in range(self.n_draws):
                count = &self._count[0, 0] + row[m] * stride
                share = self._row_share[row[m]]
                for k in range(n):
                    cost[k] += share * (f[count[k] + w] - f[count[k]])
        for k in range(n):
            cost[k] = f[self._size[k] + w] - f[self._size[k]] - 2.0 * cost[k]
        if n < self.max_slots:
            cost[n] = -f[w]
            n += 1
        self.work += n * self.n_draws
        return n

    cdef void _sum_gains(self, Py_ssize_t k) noexcept nogil:
        """_cost of four slots from k on: the gains of the loaded item, summed over draws.

        The sums stay in registers, all draws long.
        """
        cdef:
            const double* gain = &self._gain[0, k]
            Py_ssize_t stride = self._gain.shape[1], m
            double first = 0.0, second = 0.0, third = 0.0, fourth = 0.0
            const double* of_row
        for m in range(self.n_draws):
            of_row = gain + self._row[m] * stride
            first += of_row[0]
            second += of_row[1]
            third += of_row[2]
            fourth += of_row[3]
        self._cost[k] = first
        self._cost[k + 1] = second
        self._cost[k + 2] = third
        self._cost[k + 3] = fourth

    cdef double _cost_of_staying(self, Py_ssize_t i) noexcept nogil:
        """The loss that item i adds where it is."""
        cdef Py_ssize_t m, k = self._label[i], row
        cdef int w = self._weight[i]
        cdef double shared = 0.0
        self._load(i)
        if w == 1:
            for m in range(self.n_draws):
                row = self._row[m]
                shared += self._row_share[row] * self._step[self._count[row, k] - 1]
            return self._step[self._size[k] - 1] - 2.0 * shared
        for m in range(self.n_draws):
            row = self._row[m]
            shared += self._row_share[row] * (
                self._f[self._count[row, k]] - self._f[self._count[row, k] - w]
            )
        return self._f[self._size[k]] - self._f[self._size[k] - w] - 2.0 * shared

    cdef void _reunite(self, Py_ssize_t n) noexcept nogil:
        """Put the first n of _member, wherever they are, back into one cluster of their own."""
        cdef Py_ssize_t t, k = 0
        for t in range(n):
            if self._label[self._member[t]] >= 0:
                self._take(self._member[t])
        while self._size[k] > 0:
            k += 1
        for t in range(n):
            self._put(self._member[t], k)

    # -- bookkeeping

    cdef void _put(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        self._label[i] = <int> k
        self.n_slots = max(self.n_slots, k + 1)
        self._shift(i, k, self._weight[i])

    cdef double _take(self, Py_ssize_t i) noexcept nogil:
        """Take item i out; returns the loss it added."""
        cdef double cost = self._cost_of_staying(i)
        self._shift(i, self._label[i], -self._weight[i])
        self._label[i] = -1
        while self.n_slots > 0 and self._size[self.n_slots - 1] == 0:
            self.n_slots -= 1
        return cost

    cdef void _shift(self, Py_ssize_t i, Py_ssize_t k, int w) noexcept nogil:
        cdef Py_ssize_t m, row
        self._load(i)
        self._size[k] += w
        for m in range(self.n_draws):
            row = self._row[m]
            self._count[row, k] += w
            self._gain[row, k] = self._row_share[row] * self._step[self._count[row, k]]

    cdef void _load(self, Py_ssize_t i) noexcept nogil:
        """Fill _row with the rows of item i in the tables."""
        cdef:
            const unsigned char* one
            const unsigned short* two
            const int* four
            Py_ssize_t m
        if i == self._loaded:
            return
        self._loaded = i
        if self._width == 1:
            one = &self._packed[i, 0]
            for m in range(self.n_draws):
                self._row[m] = self._first_row[m] + one[m]
        elif self._width == 2:
            two = <const unsigned short*> &self._packed[i, 0]
            for m in range(self.n_draws):
                self._row[m] = self._first_row[m] + two[m]
        else:
            four = <const int*> &self._packed[i, 0]
            for m in range(self.n_draws):
                self._row[m] = self._first_row[m] + four[m]

    cdef object _weigh_rows(self):
        """Weight of the items in each block of each draw, (n_rows,)."""
        cdef int[::1] size = np.zeros(self._row_share.shape[0], dtype=np.intc)
        cdef Py_ssize_t i, m
        for i in range(self.n_items):
            self._load(i)
            for m in range(self.n_draws):
                size[self._row[m]] += self._weight[i]
        return np.asarray(size)
