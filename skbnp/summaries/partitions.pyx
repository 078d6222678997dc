"""Point estimates and tables from posterior draws of a partition.

Both losses have one form. With f(x) = x log x (variation of information) or x(x-1)/2 (Binder),
r_k the blocks of a partition, c those of draw m and n_mkc = |r_k n c|,

    total(r) = sum_k f(|r_k|) + mean_m [ sum_c f(n_mc) - 2 sum_{k,c} f(n_mkc) ]

is N times the expected variation of information in nats, or the expected number of discordant
pairs. So nothing below but the table of f knows which loss is meant.
"""

import numbers

import numpy as np

from libc.math cimport INFINITY
from numpy.random cimport bitgen_t

from skbnp.numerics.rng cimport borrow, shuffle

N_REBUILDS = 10  # clusters destroyed and rebuilt at the end of each run
MAX_COCLUSTERING_ROWS = 20_000  # 3.2 GB of float64
MAX_CELLS = 2**25  # of the contingency tables, 12 bytes each
UNBOUNDED = 2**62


# -- Losses -----------------------------------------------------------------------------------


def expected_loss(partition, labels, loss="vi", *, weights=None):
    """Posterior expected loss of a partition.

    Parameters
    ----------
    partition : array-like of int of shape (n,)
        The partition to judge; the names of its labels do not matter.
    labels : array-like of int of shape (n_draws, n)
        Posterior draws of the partition, one per row, each with any labels.
    loss : {"vi", "binder"}, default="vi"
        "vi": variation of information in nats, between 0 and log n. "binder": the number of
        discordant pairs, that is pairs together in one partition and apart in the other.
    weights : array-like of float of shape (n_draws,), default=None
        Weights of the draws, proportional to their probabilities; None means equal weights.

    Returns
    -------
    float
        The mean loss over the draws.

    Notes
    -----
    Exact, from contingency tables: O(n n_draws) time, no n x n matrix.

    References
    ----------
    .. [1] Wade & Ghahramani (2018), "Bayesian cluster analysis: point estimation and credible
       balls", Bayesian Analysis 13, 559-626.
    """
    draws = _check_labels(labels)
    n_draws, n = draws.shape
    share = _check_weights(weights, n_draws)
    f = _loss_table(loss, n)[0]
    partition = np.asarray(partition)
    if partition.shape != (n,):
        raise ValueError(
            f"partition must have one label per column of labels, shape ({n},), "
            f"got shape {partition.shape}"
        )
    both, n_blocks = _canonical_draws(np.vstack([partition[None, :], draws]))
    ones = np.ones(n, dtype=np.intc)
    everyone = np.zeros(n_draws + 1, dtype=bool)
    everyone[0] = True
    share = np.concatenate([[0.0], share])
    return _scale(_rate_draws(both, n_blocks, ones, share, f, everyone)[0], loss, n)


def _loss_table(loss, n):
    """f(x) and its steps f(x+1) - f(x), for x = 0..2n+1 (the steps without cancellation).

    Twice n: ``_evaluate`` also looks an item up on top of its own cluster, and drops the value.
    """
    x = np.arange(2 * n + 2, dtype=np.float64)
    if loss == "vi":
        step = np.log1p(x)
        step[1:] += x[1:] * np.log1p(1.0 / x[1:])
        return x * np.log(np.maximum(x, 1.0)), step
    if loss == "binder":
        return 0.5 * x * (x - 1.0), x
    raise ValueError(f"loss must be 'vi' or 'binder', got {loss!r}")


def _scale(total, loss, n):
    """The loss in its own units; rounding may leave a total just below zero."""
    return max(float(total), 0.0) / (n if loss == "vi" else 1)


def _rate_draws(
    const int[:, ::1] draws,        # (n_draws, n_items), each row canonical
    const int[::1] n_blocks,        # (n_draws,)
    const int[::1] weight,          # (n_items,)
    const double[::1] share,        # (n_draws,), sums to one
    const double[::1] f,
    chosen,                         # (n_draws,) bool: the draws to rate
):
    """Expected total loss of each chosen draw against all draws; inf for the others.

    The loss is symmetric, so that a pair of chosen draws is compared once.
    """
    cdef:
        Py_ssize_t n_draws = draws.shape[0], n_items = draws.shape[1], a, m, c, i
        const unsigned char[::1] is_chosen = np.asarray(chosen).astype(np.uint8)
        double[::1] rating = np.where(chosen, 0.0, np.inf)
        double[::1] entropy = np.zeros(n_draws)   # sum_c f(n_mc)
        int[::1] size = np.zeros(np.max(n_blocks) + 1, dtype=np.intc)
        int[::1] start = np.zeros(np.max(n_blocks) + 2, dtype=np.intc)
        int[::1] order = np.empty(n_items, dtype=np.intc)
        double distance
    for m in range(n_draws):
        for i in range(n_items):
            size[draws[m, i]] += weight[i]
        for c in range(n_blocks[m]):
            entropy[m] += f[size[c]]
            size[c] = 0
    for a in range(n_draws):
        if not is_chosen[a]:
            continue
        with nogil:
            _sort_by_block(&draws[a, 0], n_items, n_blocks[a], &start[0], &order[0])
            for m in range(n_draws):
                if m == a or (m < a and is_chosen[m]):
                    continue
                distance = entropy[a] + entropy[m] - 2.0 * _overlap(
                    &start[0], &order[0], n_blocks[a],
                    &draws[m, 0], n_blocks[m], &weight[0], &f[0], &size[0],
                )
                rating[a] += share[m] * distance
                if is_chosen[m]:
                    rating[m] += share[a] * distance
    return np.asarray(rating)


cdef void _sort_by_block(
    const int* label, Py_ssize_t n_items, Py_ssize_t n_blocks, int* start, int* order
) noexcept nogil:
    """Items block by block: block k is order[start[k]..start[k+1]-1]."""
    cdef Py_ssize_t i, k
    for k in range(n_blocks + 1):
        start[k] = 0
    for i in range(n_items):
        start[label[i] + 1] += 1
    for k in range(n_blocks):
        start[k + 1] += start[k]
    for i in range(n_items):
        order[start[label[i]]] = <int> i
        start[label[i]] += 1
    for k in range(n_blocks, 0, -1):
        start[k] = start[k - 1]
    start[0] = 0


cdef double _overlap(
    const int* start, const int* order, Py_ssize_t n_blocks,   # one partition, sorted
    const int* label, Py_ssize_t n_others,                     # the other
    const int* weight, const double* f,
    int* count,                                                # scratch, zero before and after
) noexcept nogil:
    """sum_{k,c} f(n_kc), one row of the table at a time: O(n_items), however many blocks."""
    cdef double total = 0.0
    cdef Py_ssize_t k, c, t
    for k in range(n_blocks):
        for t in range(start[k], start[k + 1]):
            count[label[order[t]]] += weight[order[t]]
        if start[k + 1] - start[k] < n_others:
            for t in range(start[k], start[k + 1]):
                c = label[order[t]]
                total += f[count[c]]
                count[c] = 0
        else:
            for c in range(n_others):
                total += f[count[c]]
                count[c] = 0
    return total


# -- Search -----------------------------------------------------------------------------------


def consensus_partition(
    labels,
    loss="vi",
    *,
    n_runs=16,
    max_clusters=None,
    max_draws=300,
    max_work=None,
    weights=None,
    random_state=None,
):
    """Partition of least posterior expected loss, by greedy search.

    Parameters
    ----------
    labels : array-like of int of shape (n_draws, n)
        Posterior draws of the partition, one per row, each with any labels.
    loss : {"vi", "binder"}, default="vi"
        As in :func:`expected_loss`.
    n_runs : int, default=16
        Number of searches; the best result is kept. More runs find better optima.
    max_clusters : int, default=None
        Largest number of clusters of the result; None stands for twice the largest number
        among the draws. Binder loss may want more: it likes many small clusters.
    max_draws : int, default=300
        At most that many evenly spaced draws are used; None means all. Fewer are used where
        the contingency tables would not fit into 400 MB, that is with very many clusters.
    max_work : int, default=None
        Bound on the work, counted in trial evaluations of one item in one cluster against one
        draw (about 1e9 per second); None is unbounded. A search that reaches it returns the
        best partition so far. At least one draw is always rated, whatever the bound.
    weights : array-like of float of shape (n_draws,), default=None
        Weights of the draws, proportional to their probabilities; None means equal weights.
    random_state : int, Generator, RandomState or None, default=None
        An int makes the result reproducible.

    Returns
    -------
    partition : ndarray of int of shape (n,)
        Labels 0, 1, ... by decreasing cluster size, ties by first row.
    expected : float
        Its expected loss over the draws used. Never above that of any draw rated.
    info : dict
        ``n_runs`` completed, ``n_draws`` used, ``n_distinct`` partitions among them, ``n_items``
        after merging, ``n_rated`` draws compared as candidates, ``max_clusters``, ``work``,
        and whether the search was ``truncated`` by `max_work`.

    Notes
    -----
    In the manner of SALSO [1]_. A run starts from sequential allocation in random order or,
    every second run, from one of the draws of least expected loss [2]_. It then passes over the
    items in random order, each moving to its best cluster, until nothing changes; last, some
    clusters are destroyed and their items allocated anew.

    Rows with the same label in every draw used become one weighted item. For both losses
    some optimum keeps such rows together in practice, but this is a heuristic. A pass costs
    O(n_items n_clusters n_draws), rating all draws O(n_items n_draws^2).

    References
    ----------
    .. [1] Dahl, Johnson & Müller (2022), "Search algorithms and loss functions for Bayesian
       clustering", Journal of Computational and Graphical Statistics 31, 1189-1201.
    .. [2] Wade & Ghahramani (2018), "Bayesian cluster analysis: point estimation and credible
       balls", Bayesian Analysis 13, 559-626.
    """
    draws = _check_labels(labels)
    share = _check_weights(weights, len(draws))
    _check_count("n_runs", n_runs)
    _check_count("max_clusters", max_clusters, optional=True)
    _check_count("max_draws", max_draws, optional=True)
    if max_work is not None and not max_work >= 0:
        raise ValueError(f"max_work must be >= 0, got {max_work!r}")
    n = draws.shape[1]
    tables = _loss_table(loss, n)
    generator = _make_generator(random_state)

    draws, share = _thin(draws, share, max_draws)
    draws, n_blocks = _canonical_draws(draws)
    n_slots = _choose_slots(n_blocks, n, max_clusters)
    draws, share = _thin(draws, share, max(1, MAX_CELLS // (n_slots * int(n_blocks.max()))))
    n_used = len(draws)
    draws, share = _merge_draws(draws, share)
    item, draws, weight = _merge_items(draws)
    best, total, info = _search_items(
        draws, weight, share, tables, n_runs, n_slots, max_clusters, max_work, generator
    )
    info = {"n_draws": n_used, "n_distinct": draws.shape[0], "n_items": draws.shape[1], **info}
    return relabel_by_size(best[item]), _scale(total, loss, n), info


def _search_items(
    draws, weight, share, tables, n_runs, n_slots, max_clusters, max_work, generator
):
    """The best partition of weighted items found, its total loss, and what was done."""
    n_distinct, n_items = draws.shape
    n_blocks = draws.max(axis=1) + np.intc(1)
    budget = UNBOUNDED if max_work is None else int(min(max_work, UNBOUNDED))
    f, step = tables

    allowed = np.flatnonzero(n_blocks <= (max_clusters or n_items))
    rated = _spread(allowed, max(1, budget // (4 * n_items * n_distinct)))
    chosen = np.zeros(n_distinct, dtype=bool)
    chosen[rated] = True
    rating = _rate_draws(draws, n_blocks, weight, share, f, chosen)
    work = len(rated) * n_distinct * n_items
    search = _Search(draws, n_blocks, weight, share, f, step, n_slots, budget - work, generator)

    ranked = [a for a in np.argsort(rating, kind="stable") if chosen[a]]
    starts = [a for a in ranked if n_blocks[a] <= n_slots]
    if ranked:
        best, best_total = draws[ranked[0]], rating[ranked[0]]
    else:  # every draw has more than max_clusters blocks
        best = np.zeros(n_items, dtype=np.intc)
        search.start_from(best)
        best_total = search.total()

    n_done = 0
    while n_done < n_runs and search.work < search.max_work:
        if n_done % 2 and starts:
            search.start_from(draws[starts[n_done // 2 % len(starts)]])
        elif not search.allocate():
            break
        finished = _improve(search, generator)
        if search.total() < best_total:
            best, best_total = search.partition(), search.total()
        if not finished:
            break
        n_done += 1
    return best, best_total, {
        "n_runs": n_done,
        "n_rated": len(rated),
        "max_clusters": n_slots,
        "work": work + search.work,
        "truncated": n_done < n_runs or len(rated) < len(allowed),
    }


def _improve(search, generator):
    """Sweeten, rebuild some clusters, sweeten again; False if the work ran out."""
    if not search.sweeten():
        return False
    improved = False
    for k in generator.permutation(search.n_slots)[:N_REBUILDS]:
        improved |= search.rebuild(k)
    return search.sweeten() if improved else search.work < search.max_work


cdef class _Search:
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
        int[:, ::1] _row                  # (n_items, n_draws), block of item i in draw m
        int[::1] _first_row               # (n_draws + 1,), rows of draw m start here
        int[::1] _row_size                # (n_rows,), weight of the block
        double[::1] _row_share            # (n_rows,), share of the row's draw
        const double[::1] _share          # (n_draws,), sums to one
        const int[::1] _weight            # (n_items,)
        const double[::1] _f, _step       # f(x), f(x + 1) - f(x)
        int[:, ::1] _count                # (n_rows, max_slots)
        double[:, ::1] _gain              # (n_rows, max_slots)
        int[::1] _size                    # (max_slots,)
        int[::1] _label                   # (n_items,), -1 while taken out
        double[::1] _cost                 # scratch, (max_slots + 1,): added loss per candidate
        Py_ssize_t[::1] _order, _member   # scratch, (n_items,)

    def __cinit__(
        self, draws, n_blocks, weight, share, f, step, max_slots, max_work, generator
    ):
        self._bit_generator = generator.bit_generator
        self._rng = borrow(self._bit_generator)
        self.n_draws, self.n_items = draws.shape
        self.max_slots, self.max_work = max_slots, max_work
        first_row = np.concatenate([[0], np.cumsum(n_blocks)]).astype(np.intc)
        self._row = np.ascontiguousarray((draws + first_row[:-1, None]).T)
        self._first_row = first_row
        self._row_size = _weigh_rows(self._row, weight, first_row[self.n_draws])
        self._row_share = np.repeat(share, n_blocks)
        self._share, self._weight, self._f, self._step = share, weight, f, step
        self._tolerance = 1e-12 * max(1.0, f[weight.sum()])
        self._count = np.zeros((len(self._row_size), max_slots), dtype=np.intc)
        self._gain = np.zeros((len(self._row_size), max_slots))
        self._size = np.zeros(max_slots, dtype=np.intc)
        self._label = np.full(self.n_items, -1, dtype=np.intc)
        self._cost = np.empty(max_slots + 1)
        self._order = np.arange(self.n_items)
        self._member = np.empty(self.n_items, dtype=np.intp)

    def partition(self):
        """Slot of each item, shape (n_items,)."""
        return np.array(self._label)

    def total(self):
        """Total loss of the partition, from the tables, so free of accumulated rounding."""
        cdef double total = 0.0, size_part = 0.0, distance
        cdef Py_ssize_t k, m, r
        for k in range(self.n_slots):
            size_part += self._f[self._size[k]]
        for m in range(self.n_draws):
            distance = size_part
            for r in range(self._first_row[m], self._first_row[m + 1]):
                distance += self._f[self._row_size[r]]
                for k in range(self.n_slots):
                    distance -= 2.0 * self._f[self._count[r, k]]
            total += self._share[m] * distance
        return total

    def start_from(self, const int[::1] label):
        """Take over a partition with labels below max_slots."""
        cdef Py_ssize_t i
        self._clear()
        for i in range(self.n_items):
            self._put(i, label[i])

    def allocate(self):
        """Allocate the items one by one, in random order; False if the work ran out."""
        cdef bint done
        self._clear()
        with self._bit_generator.lock, nogil:
            done = self._allocate_all()
        return bool(done)

    def sweeten(self):
        """Move items to their best clusters until a pass moves none; False if the work ran out."""
        cdef Py_ssize_t n_moved = 1
        while n_moved > 0:
            with self._bit_generator.lock, nogil:
                n_moved = self._sweeten_all()
        return n_moved == 0

    def rebuild(self, Py_ssize_t destroyed):
        """Destroy a cluster and allocate its items anew; undone, and False, if that is no gain."""
        cdef bint improved
        with self._bit_generator.lock, nogil:
            improved = self._rebuild(destroyed)
        return bool(improved)

    # -- moves

    cdef bint _allocate_all(self) noexcept nogil:
        cdef Py_ssize_t t, i
        shuffle(self._rng, &self._order[0], self.n_items)
        for t in range(self.n_items):
            if self.work >= self.max_work:
                return False
            i = self._order[t]
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
        cdef Py_ssize_t i, k, t, n = 0
        cdef double change = 0.0
        for i in range(self.n_items):
            if self._label[i] == destroyed:
                self._member[n] = i
                n += 1
        shuffle(self._rng, &self._member[0], n)
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

    cdef Py_ssize_t _choose(self, Py_ssize_t i) noexcept nogil:
        """The slot where item i, taken out, adds the least loss."""
        cdef Py_ssize_t k, best = 0
        cdef Py_ssize_t n = self._evaluate(i)
        for k in range(1, n):
            if self._cost[k] < self._cost[best]:
                best = k
        return best

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
            Py_ssize_t n = self.n_slots, stride = self.max_slots, m, k
            int w = self._weight[i]
            const int* row = &self._row[i, 0]
            const int* count
            const double* gain
            const double* f = &self._f[0]
            double* cost = &self._cost[0]
            double share
        for k in range(n):
            cost[k] = 0.0
        if w == 1:
            for m in range(self.n_draws):
                gain = &self._gain[0, 0] + row[m] * stride
                for k in range(n):
                    cost[k] += gain[k]
        else:
            for m in range(self.n_draws):
                count = &self._count[0, 0] + row[m] * stride
                share = self._row_share[row[m]]
                for k in range(n):
                    cost[k] += share * (f[count[k] + w] - f[count[k]])
        for k in range(n):
            cost[k] = f[self._size[k] + w] - f[self._size[k]] - 2.0 * cost[k]
        if n < stride:
            cost[n] = -f[w]
            n += 1
        self.work += n * self.n_draws
        return n

    cdef double _cost_of_staying(self, Py_ssize_t i) noexcept nogil:
        """The loss that item i adds where it is."""
        cdef Py_ssize_t m, k = self._label[i], row
        cdef int w = self._weight[i]
        cdef double shared = 0.0
        for m in range(self.n_draws):
            row = self._row[i, m]
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
        self._size[k] += w
        for m in range(self.n_draws):
            row = self._row[i, m]
            self._count[row, k] += w
            self._gain[row, k] = self._row_share[row] * self._step[self._count[row, k]]

    cdef void _clear(self):
        self.n_slots = 0
        self._size[:] = 0
        self._count[:] = 0
        self._gain[:] = 0.0  # f(1) - f(0) = 0 for both losses
        self._label[:] = -1


def _weigh_rows(const int[:, ::1] row, const int[::1] weight, Py_ssize_t n_rows):
    """Total weight of the items in each block of each draw."""
    cdef int[::1] size = np.zeros(n_rows, dtype=np.intc)
    cdef Py_ssize_t i, m
    for i in range(row.shape[0]):
        for m in range(row.shape[1]):
            size[row[i, m]] += weight[i]
    return size


# -- Tables -----------------------------------------------------------------------------------


def relabel_by_size(partition):
    """Number the clusters of a partition by decreasing size, ties by first row.

    Parameters
    ----------
    partition : array-like of int of shape (n,)
        Labels of any values.

    Returns
    -------
    ndarray of int of shape (n,)
        The same partition with labels 0, 1, ...
    """
    _, first, label, size = np.unique(
        partition, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.lexsort((first, -size))] = np.arange(len(first))
    return rank[label]


def coclustering(labels, rows=None, *, weights=None):
    """Posterior probability that two rows share a cluster.

    Parameters
    ----------
    labels : array-like of int of shape (n_draws, n)
        Posterior draws of the partition, one per row, each with any labels.
    rows : array-like of int of shape (n_rows,), default=None
        The rows wanted; None means all.
    weights : array-like of float of shape (n_draws,), default=None
        Weights of the draws, proportional to their probabilities; None means equal weights.

    Returns
    -------
    ndarray of shape (n_rows, n_rows)
        Symmetric, with ones on the diagonal.

    Raises
    ------
    ValueError
        If more than 20,000 rows are wanted.

    Notes
    -----
    Time in proportion to the pairs that are together, summed over the draws, so at most
    O(n_rows^2 n_draws); 8 n_rows^2 bytes.
    """
    draws = _check_labels(labels)
    share = _check_weights(weights, len(draws))
    if rows is not None:
        draws = _check_labels(draws[:, np.asarray(rows)])
    if draws.shape[1] > MAX_COCLUSTERING_ROWS:
        raise ValueError(
            f"coclustering is a matrix of rows x rows and stops at {MAX_COCLUSTERING_ROWS} rows, "
            f"got {draws.shape[1]}: choose some with rows="
        )
    together = np.eye(draws.shape[1])
    _count_together(*_canonical_draws(draws), share, together)
    return together


def _count_together(
    const int[:, ::1] draws, const int[::1] n_blocks, const double[::1] share,
    double[:, ::1] together,
):
    """Add the share of the draws in which i and j are together, for i != j."""
    cdef Py_ssize_t i, j, m, t, n = draws.shape[1]
    cdef int[:, ::1] start = np.zeros((len(draws), np.max(n_blocks) + 1), dtype=np.intc)
    cdef int[:, ::1] order = np.empty(np.shape(draws), dtype=np.intc)
    with nogil:
        for m in range(draws.shape[0]):
            _sort_by_block(&draws[m, 0], n, n_blocks[m], &start[m, 0], &order[m, 0])
        for i in range(n):
            for m in range(draws.shape[0]):
                t = start[m, draws[m, i]]
                while order[m, t] < i:  # members are in increasing order
                    together[i, order[m, t]] += share[m]
                    t += 1
        for i in range(n):
            for j in range(i):
                together[j, i] = together[i, j]


def companion_table(labels_draw, n_blocks, reference, n_reference):
    """How the blocks of a draw spread over the clusters of a reference partition.

    Parameters
    ----------
    labels_draw : array-like of int of shape (n,)
        Blocks 0..n_blocks-1 of one draw.
    n_blocks : int
        Number of blocks of the draw.
    reference : array-like of int of shape (n,)
        Clusters 0..n_reference-1 of the reference partition.
    n_reference : int
        Number of clusters of the reference partition.

    Returns
    -------
    ndarray of shape (n_blocks, n_reference)
        Entry (c, k) is the fraction of block c that lies in cluster k: the probability that a
        uniformly drawn member of c bears label k. Rows sum to one; that of an empty block is
        zero. O(n) time.
    """
    cell = np.asarray(labels_draw, dtype=np.intp) * n_reference + np.asarray(reference)
    table = np.bincount(cell, minlength=n_blocks * n_reference)
    table = table.reshape(n_blocks, n_reference).astype(np.float64)
    return table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)


# -- Draws made ready for the search ----------------------------------------------------------


def _canonical_draws(labels):
    """Blocks of each draw numbered by first row; and their number per draw."""
    n_draws, n = labels.shape
    draws = np.empty((n_draws, n), dtype=np.intc)
    n_blocks = np.empty(n_draws, dtype=np.intc)
    for m, row in enumerate(labels):
        low, high = int(row.min()), int(row.max())
        if high - low > 4 * n + 64:  # too wide for a table
            low, row = 0, np.unique(row, return_inverse=True)[1]
        n_blocks[m] = _number_by_first_row(np.subtract(row, low).astype(np.intc), draws[m])
    return draws, n_blocks


def _number_by_first_row(const int[::1] value, int[::1] out):
    cdef int[::1] number = np.full(np.max(value) + 1, -1, dtype=np.intc)
    cdef Py_ssize_t i
    cdef int n_blocks = 0
    for i in range(value.shape[0]):
        if number[value[i]] < 0:
            number[value[i]] = n_blocks
            n_blocks += 1
        out[i] = number[value[i]]
    return n_blocks


def _merge_draws(draws, share):
    """One weighted draw for each distinct partition."""
    index = {}
    of_draw = np.array([index.setdefault(draw.tobytes(), len(index)) for draw in draws])
    first = np.unique(of_draw, return_index=True)[1]
    return np.ascontiguousarray(draws[first]), np.bincount(of_draw, share)


def _merge_items(draws):
    """One weighted item for all rows that no draw separates.

    Returns the item of each row (n,), the draws (n_draws, n_items) and the weights (n_items,).
    Items are numbered by first row.
    """
    n = draws.shape[1]
    item = np.zeros(n, dtype=np.intc)
    n_items = 1
    for draw in draws:
        if n_items == n:
            break
        cells = np.full(n_items * (int(draw.max()) + 1), -1, dtype=np.intc)
        n_items = _refine(item, draw, int(draw.max()) + 1, cells)
    first = np.unique(item, return_index=True)[1]
    return item, np.ascontiguousarray(draws[:, first]), np.bincount(item).astype(np.intc)


def _refine(int[::1] item, const int[::1] label, Py_ssize_t n_blocks, int[::1] cells):
    """Split the items by one more draw, numbered by first row; returns their number."""
    cdef Py_ssize_t i, cell
    cdef int n_items = 0
    with nogil:
        for i in range(item.shape[0]):
            cell = item[i] * n_blocks + label[i]
            if cells[cell] < 0:
                cells[cell] = n_items
                n_items += 1
            item[i] = cells[cell]
    return n_items


def _thin(draws, share, limit):
    """At most so many evenly spaced draws; draws without weight are dropped first."""
    kept = _spread(np.flatnonzero(share > 0.0), len(draws) if limit is None else limit)
    if len(kept) == len(draws):
        return draws, share
    return draws[kept], share[kept] / share[kept].sum()


def _spread(index, limit):
    """At most so many evenly spaced entries of an index."""
    if len(index) <= limit:
        return index
    return index[np.linspace(0, len(index) - 1, limit).round().astype(np.intp)]


def _choose_slots(n_blocks, n, max_clusters):
    """Slots of the tables, so that at least some 32 draws fit into them."""
    most = int(n_blocks.max())
    fit = max(1, MAX_CELLS // (min(len(n_blocks), 32) * most))
    return min(max_clusters or 2 * most, n, fit)


# -- Arguments --------------------------------------------------------------------------------


def _check_labels(labels):
    labels = np.asarray(labels)
    if labels.ndim != 2 or 0 in labels.shape:
        raise ValueError(f"labels must have shape (n_draws, n), n >= 1, got {labels.shape}")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers, got dtype {labels.dtype}")
    return labels


def _check_weights(weights, n_draws):
    """Shares of the draws, summing to one."""
    if weights is None:
        return np.full(n_draws, 1.0 / n_draws)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_draws,):
        raise ValueError(f"weights must have shape ({n_draws},), got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise ValueError("weights must be finite and >= 0, with a positive sum")
    return weights / weights.sum()


def _check_count(name, value, optional=False):
    if optional and value is None:
        return
    if not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")


def _make_generator(random_state):
    """A NumPy Generator, from what scikit-learn or NumPy call a random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)
