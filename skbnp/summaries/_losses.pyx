"""Losses between partitions, from contingency tables.

Both losses have one form. With f(x) = x log x (variation of information) or x(x-1)/2 (Binder),
r_k the blocks of a partition, c those of draw m and n_mkc = |r_k n c|,

    total(r) = sum_k f(|r_k|) + mean_m [ sum_c f(n_mc) - 2 sum_{k,c} f(n_mkc) ]

is N times the expected variation of information in nats, or the expected number of discordant
pairs. So nothing here but the table of f knows which loss is meant.
"""

import numpy as np

from skbnp.summaries._draws import number_blocks

CACHED_CELLS = 2**15  # a contingency table of that many fits into the cache


def loss_table(loss, n):
    """f(x) and its steps f(x+1) - f(x), for x = 0..2n+1 (the steps without cancellation).

    Twice n: the search also looks an item up on top of its own cluster, and drops the value.
    """
    x = np.arange(2 * n + 2, dtype=np.float64)
    if loss == "vi":
        step = np.log1p(x)
        step[1:] += x[1:] * np.log1p(1.0 / x[1:])
        return x * np.log(np.maximum(x, 1.0)), step
    if loss == "binder":
        return 0.5 * x * (x - 1.0), x
    raise ValueError(f"loss must be 'vi' or 'binder', got {loss!r}")


def scale(total, loss, n):
    """The loss in its own units; rounding may leave a total just below zero."""
    return np.maximum(total, 0.0) / (n if loss == "vi" else 1)


def distances(partition, n_blocks, draws, f):
    """Total loss of a canonical partition against each draw, (n_draws,).

    One draw at a time is numbered, so that nothing of the size of all draws is copied.
    """
    order, start = sort_by_block(partition, n_blocks)
    out = np.empty(len(draws))
    for m, draw in enumerate(draws):
        other, n_others = number_blocks(draw)
        out[m] = _distance(partition, order, start, other, n_others, f)
    return out


def rate_draws(
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
        int[::1] count = np.zeros(2 * np.max(n_blocks), dtype=np.intc)
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
                    &draws[m, 0], n_blocks[m], &weight[0], &f[0], &count[0],
                )
                rating[a] += share[m] * distance
                if is_chosen[m]:
                    rating[m] += share[a] * distance
    return np.asarray(rating)


def sort_by_block(const int[::1] label, Py_ssize_t n_blocks):
    """Items block by block, increasing: block k is order[start[k]..start[k+1]-1]."""
    cdef int[::1] order = np.empty(label.shape[0], dtype=np.intc)
    cdef int[::1] start = np.empty(n_blocks + 1, dtype=np.intc)
    with nogil:
        _sort_by_block(&label[0], label.shape[0], n_blocks, &start[0], &order[0])
    return np.asarray(order), np.asarray(start)


cdef void _sort_by_block(
    const int* label, Py_ssize_t n_items, Py_ssize_t n_blocks, int* start, int* order
) noexcept nogil:
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


def _distance(
    const int[::1] partition, const int[::1] order, const int[::1] start,
    const int[::1] other, Py_ssize_t n_others, const double[::1] f,
):
    """Total loss between two canonical partitions, the first also sorted."""
    cdef:
        Py_ssize_t n = partition.shape[0], n_blocks = start.shape[0] - 1, i, k
        bint few = n_blocks * n_others <= min(<Py_ssize_t> CACHED_CELLS, n)
        int[::1] count = np.zeros(n_blocks * n_others if few else 2 * n_others, dtype=np.intc)
        int[::1] size = np.zeros(n_others, dtype=np.intc)
        int[::1] weight = np.ones(1 if few else n, dtype=np.intc)
        double distance = 0.0
    with nogil:
        for k in range(n_blocks):
            distance += f[start[k + 1] - start[k]]
        for i in range(n):
            size[other[i]] += 1
        for k in range(n_others):
            distance += f[size[k]]
        if few:
            distance -= 2.0 * _overlap_of_few(
                &partition[0], n_blocks, &other[0], n_others, n, &f[0], &count[0]
            )
        else:
            distance -= 2.0 * _overlap(
                &start[0], &order[0], n_blocks, &other[0], n_others, &weight[0], &f[0], &count[0]
            )
    return distance


cdef double _overlap(
    const int* start, const int* order, Py_ssize_t n_blocks,   # one partition, sorted
    const int* label, Py_ssize_t n_others,                     # the other
    const int* weight, const double* f,
    int* count,                                                # (2 n_others,), zero, and left so
) noexcept nogil:
    """sum_{k,c} f(n_kc), one row of the table at a time: O(n_items), however many blocks."""
    cdef double total = 0.0
    cdef Py_ssize_t k, c, t, first, stop
    for k in range(n_blocks):
        first, stop = start[k], start[k + 1]
        # Neighbours mostly are of one block of the other: each waits for its own count alone.
        for t in range(first, stop - 1, 2):
            count[2 * label[order[t]]] += weight[order[t]]
            count[2 * label[order[t + 1]] + 1] += weight[order[t + 1]]
        if (stop - first) % 2:
            count[2 * label[order[stop - 1]]] += weight[order[stop - 1]]
        if stop - first < n_others:
            for t in range(first, stop):
                c = 2 * label[order[t]]
                total += f[count[c] + count[c + 1]]
                count[c] = count[c + 1] = 0
        else:
            for c in range(0, 2 * n_others, 2):
                total += f[count[c] + count[c + 1]]
                count[c] = count[c + 1] = 0
    return total


cdef double _overlap_of_few(
    const int* label, Py_ssize_t n_blocks, const int* other, Py_ssize_t n_others, Py_ssize_t n,
    const double* f,
    int* count,                                                # (n_blocks n_others,), zero
) noexcept nogil:
    """sum_{k,c} f(n_kc) from the whole table: in the order of the rows, so faster."""
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        count[label[i] * n_others + other[i]] += 1
    for i in range(n_blocks * n_others):
        total += f[count[i]]
    return total
