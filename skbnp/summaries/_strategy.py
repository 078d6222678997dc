"""Greedy search for the partition of least posterior expected loss: where it starts and ends.

Its state and moves are in `_search`. All totals are those of `_losses`: the table of f and its
steps says which loss is meant.
"""

from collections import namedtuple

import numpy as np

from skbnp.summaries._draws import (
    merge_draws,
    merge_rows,
    number_blocks,
    number_draws,
    number_for_packing,
    pack,
    small_type,
    spread,
    thin,
)
from skbnp.summaries._losses import distances, rate_draws
from skbnp.summaries._search import UNBOUNDED, Search

N_REBUILDS = 10  # clusters destroyed and rebuilt at the end of each run
N_AGREE = 4  # runs that find as good a partition as the best end the search
AS_GOOD = 1e-4  # relative, of totals
ROUNDING = 1e-12  # of totals, relative to that of all rows in one cluster and each alone
MAX_ITEMS = 2**13  # searched in full; of more, a sample of rows
SAMPLE_SIZE = 2**12  # rows, or if that is more
ROWS_PER_BLOCK = 64  # times the mean number of blocks
FEW_MOVES = 1e-4  # passes over all items stop when no larger share of them moves
N_CANDIDATES = 4  # draws compared on all rows, after the search of a sample
MIN_DRAWS = 16  # used however small the bound on the work
MAX_CELLS = 2**25  # of the contingency tables, 12 bytes each
MAX_PACKED = 2**29  # bytes of the draws packed row by row
# Work for one row of one draw, in trial evaluations that take as long.
PACKING, COMPARING = 8, 3

Limits = namedtuple("Limits", "n_runs n_slots max_clusters")


def find_partition(draws, share, tables, n_runs, max_clusters, max_draws, max_work, generator):
    """The best partition found (n,), its total loss over the draws used, and what was done."""
    n = len(draws[0])
    budget = UNBOUNDED if max_work is None else int(min(max_work, UNBOUNDED))
    draws, share = thin(draws, share, max_draws)
    draws, share = thin(draws, share, max(MIN_DRAWS, budget // (2 * PACKING * n)))
    numbered = [number_for_packing(draw) for draw in draws]
    n_slots = _choose_slots([k for *_, k in numbered], n, max_clusters)
    limits = Limits(n_runs, n_slots, max_clusters)
    numbered, share = thin(numbered, share, _count_fitting(numbered, n_slots, n))

    rows = pack(numbered)
    item, first, weight = merge_rows(rows)
    if len(first) < n:
        rows = rows[first]
    work = PACKING * n * len(numbered)
    if len(first) <= MAX_ITEMS:
        canonical = np.ascontiguousarray(rows.T, dtype=np.intc)
        distinct, share = merge_draws(canonical, share)
        best, total, _, info = search_items(
            distinct, weight, share, tables, limits, budget - work, generator
        )
        info |= {"n_draws": len(numbered), "n_distinct": len(distinct), "n_sampled": len(first)}
    else:
        best, total, info = _search_many_items(
            rows, item, weight, numbered, share, tables, limits, budget - work, generator
        )
    info["work"] += work
    return best[item], total, {"n_items": len(first), **info}


def _choose_slots(n_blocks, n, max_clusters):
    """Slots of the tables, so that at least some 32 draws fit into them."""
    most = max(n_blocks)
    fit = max(1, MAX_CELLS // (min(len(n_blocks), 32) * most))
    return min(max_clusters or 2 * most, n, fit)


def _count_fitting(numbered, n_slots, n):
    """How many draws fit into the memory of the tables and of the packed rows."""
    most = max(k for *_, k in numbered)
    in_tables = MAX_CELLS // (n_slots * most)
    return max(1, min(in_tables, MAX_PACKED // (n * np.dtype(small_type(most)).itemsize)))


# -- All items --------------------------------------------------------------------------------


def search_items(draws, weight, share, tables, limits, max_work, generator, is_sample=False):
    """Search among the partitions of weighted items, given canonical draws (n_draws, n_items).

    Returns the best partition found, its total loss, that of each draw (inf if not rated), and
    what was done. That of a sample has no more clusters than there are slots.
    """
    n_draws, n_items = draws.shape
    n_blocks = draws.max(axis=1) + np.intc(1)

    allowed = np.flatnonzero(n_blocks <= (limits.max_clusters or n_items))
    rated = spread(allowed, max(1, max_work // (4 * n_items * n_draws)))
    chosen = np.zeros(n_draws, dtype=bool)
    chosen[rated] = True
    rating = rate_draws(draws, n_blocks, weight, share, tables[0], chosen)
    work = (len(rated) + 2) * n_draws * n_items
    rows = np.ascontiguousarray(draws.T, dtype=small_type(n_blocks.max()))
    search = Search(
        rows, n_blocks, weight, share, tables, limits.n_slots, max_work - work, generator
    )
    ranked = _best_finite(rating, n_draws)
    starts = [a for a in ranked if n_blocks[a] <= limits.n_slots]
    most = limits.n_slots if is_sample else limits.max_clusters or n_items
    best, best_total = _best_trivial(draws, n_blocks, weight, share, tables[0], most)
    if len(ranked) and rating[ranked[0]] <= best_total:
        best, best_total = draws[ranked[0]], rating[ranked[0]]

    rounding = ROUNDING * max(1.0, tables[0][weight.sum()])
    n_done = n_agree = 0
    while n_done < limits.n_runs and n_agree < N_AGREE and search.work < search.max_work:
        if n_done % 2 and starts:
            search.start_from(draws[starts[n_done // 2 % len(starts)]])
        else:
            search.start_from(np.full(n_items, -1, dtype=np.intc))
        little = AS_GOOD * abs(best_total) + rounding
        finished = search.allocate() and search.sweeten()
        # Another run has rebuilt the clusters of a partition as good as this one.
        if finished and (n_done == 0 or abs(search.total() - best_total) > little):
            finished = _rebuild(search, generator)
        if search.is_complete():
            total = search.total()
            if total < best_total - little:
                n_agree = 0
            n_agree += total <= best_total + little
            if total < best_total:
                best, best_total = search.partition(), total
        if not finished:
            break
        n_done += 1
    return (
        best,
        best_total,
        rating,
        {
            "n_runs": n_done,
            "n_rated": len(rated),
            "max_clusters": limits.n_slots,
            "work": work + search.work,
            "truncated": (n_done < limits.n_runs and n_agree < N_AGREE)
            or len(rated) < len(allowed),
        },
    )


def _best_trivial(draws, n_blocks, weight, share, f, max_clusters):
    """One cluster or, where so many are allowed, single items: the better one, and its total.

    Single items are beyond the slots of a search, and one cluster beyond one that has little work.
    """
    n_draws, n_items = draws.shape
    trivial = [np.zeros(n_items, dtype=np.intc)]
    if max_clusters >= n_items:
        trivial.append(np.arange(n_items, dtype=np.intc))
    # Rated as if they were draws of no weight.
    n_blocks = np.append(n_blocks, [t[-1] + 1 for t in trivial]).astype(np.intc)
    share = np.append(share, np.zeros(len(trivial)))
    chosen = np.arange(len(share)) >= n_draws
    totals = rate_draws(np.vstack([draws, trivial]), n_blocks, weight, share, f, chosen)[n_draws:]
    best = int(np.argmin(totals))
    return trivial[best], totals[best]


def _one_cluster(search):
    """What there is where every draw has too many clusters."""
    search.start_from(np.zeros(search.n_items, dtype=np.intc))
    return search.partition(), search.total()


def _rebuild(search, generator):
    """Rebuild some clusters, and sweeten again if that was a gain; False if the work ran out."""
    improved = False
    for k in generator.permutation(search.n_slots)[:N_REBUILDS]:
        improved |= search.rebuild(k)
    return search.sweeten() if improved else search.work < search.max_work


# -- A sample of many items -------------------------------------------------------------------


def _search_many_items(rows, item, weight, numbered, share, tables, limits, max_work, generator):
    """Search a sample, let all other items follow one by one, then sweeten them all.

    Once more from the best draw: a sample misses clusters of few rows. Half of the work is for
    the sample, a quarter suffices for each item to follow.
    """
    n_items = len(rows)
    mean_blocks = int(np.mean([k for *_, k in numbered]))
    pass_of_one_draw = n_items * (mean_blocks + 1)
    kept, share = thin(
        np.arange(len(numbered)), share, max(MIN_DRAWS, max_work // (4 * pass_of_one_draw))
    )
    if len(kept) < len(numbered):
        rows, numbered = np.ascontiguousarray(rows[:, kept]), [numbered[m] for m in kept]
    n_blocks = np.array([k for *_, k in numbered], dtype=np.intc)
    draws = [draw for draw, *_ in numbered]

    size = min(len(item), max(SAMPLE_SIZE, ROWS_PER_BLOCK * mean_blocks))
    label, rating, info = _search_sample(
        rows, item, size, share, tables, limits, max_work // 2, generator
    )
    rating[n_blocks > (limits.max_clusters or n_items)] = np.inf
    comparing = COMPARING * len(item) * len(draws)
    ranked = _best_finite(rating, max(1, min(N_CANDIDATES, max_work // (16 * comparing))))
    totals = [distances(*number_blocks(draws[a]), draws, tables[0]) @ share for a in ranked]
    work = info["work"] + comparing * len(ranked)

    search = Search(
        rows, n_blocks, weight, share, tables, limits.n_slots, max_work - work, generator
    )
    starts = [label]
    if len(ranked):
        a = ranked[np.argmin(totals)]
        best, best_total = rows[:, a].astype(np.intc), min(totals)
        if n_blocks[a] <= limits.n_slots:
            starts.append(best)
    else:
        best, best_total = _one_cluster(search)
    finished = True
    for start in starts:
        finished = finished and search.work < search.max_work
        if finished:
            search.start_from(start)
            finished = search.allocate() and search.sweeten(FEW_MOVES * n_items)
            if search.is_complete() and search.total() < best_total:
                best, best_total = search.partition(), search.total()
    return (
        best,
        best_total,
        {
            **info,
            "n_draws": len(draws),
            "n_distinct": len(draws),
            "n_rated": len(ranked),
            "work": work + search.work,
            "truncated": info["truncated"] or not finished,
        },
    )


def _search_sample(rows, item, size, share, tables, limits, max_work, generator):
    """Search a sample of rows: labels of the items with -1 for those not in it, and the rating."""
    some, counts = np.unique(
        item[generator.choice(len(item), size, replace=False)], return_counts=True
    )
    draws, _ = number_draws(list(rows[some].T))
    best, _, rating, info = search_items(
        draws, counts.astype(np.intc), share, tables, limits, max_work, generator, is_sample=True
    )
    label = np.full(len(rows), -1, dtype=np.intc)
    label[some] = number_blocks(best)[0]
    return label, rating, {**info, "n_sampled": len(some)}


def _best_finite(rating, limit):
    """The draws of least finite rating, best first."""
    ranked = np.argsort(rating, kind="stable")
    return ranked[np.isfinite(rating[ranked])][:limit]
