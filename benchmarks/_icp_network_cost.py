"""What the moves of ICPNetwork cost.

Without rows the chain samples its prior, and its time goes into the structure. A move is the update
of a node as a child (of all edges to it), that of an order, or a structural proposal: a birth, a
death, a split, a merge or a swap. Noises and trajectories, which are moves of activations and
weights, are left out. The floor, by turns in the same run, is what the update of a child cannot do
without: for each of the nodes that may be above it, half of all, a uniform number and the logarithm
of an odds; in vectors of NumPy.

Sweeps with rows are the default ones but for births, which would change the number of nodes, in a
network planted at random. Times are processor times of
the compiled sampler with one BLAS thread, the shortest of several.
"""

import numpy as np
from _report import cpu_seconds, growth_row, shortest

from skbnp.icp_network._model import Prior, activations_from
from skbnp.icp_network._sampler import Sampler

N_SETTLE, N_TIMED = 3, 5  # sweeps
FLOOR = "uniform numbers and logarithms"
N_PROPOSALS = 10 + 1 + 3  # births and deaths, splits and merges, swaps
PARTS = ("noises", "trajectories", "edges", "activations", "births")
STRUCTURE = ("edges", "births", "splits", "swaps", "orders", "hyper")


def cost(data, quick):
    """Tables of what moves and sweeps cost; data are not needed."""
    return {
        "cost: a million moves without rows, about 20 nodes": million(quick),
        "cost: parts of a sweep without rows": kinds(quick),
        "cost: a sweep (elsewhere N = 500, 10 hidden nodes, 5 columns)": growth(quick),
    }


def chain(n_columns, n_hidden, n_rows, share=0.3, seed=0, **options):
    """A sampler in a network planted at random, on rows drawn from it.

    Its hyperparameters are fixed: about 9 hidden nodes are expected over 10 columns.
    """
    prior = Prior(
        roles=("gaussian",) * n_columns,
        orders=(0.0,) * n_columns,
        mass=3.0,
        concentration=1.0,
        observed_popularity=1.0,
    )
    rng = np.random.default_rng(seed)
    order = np.concatenate([np.zeros(n_columns), np.sort(rng.random(n_hidden))])
    edge = (order > order[:, np.newaxis]) & (rng.random((len(order), len(order))) < share)
    edge[rng.integers(n_columns, size=n_hidden), np.arange(n_columns, len(order))] = True
    children, parents = np.nonzero(edge)
    state = {
        "order": order,
        "edges": np.column_stack([parents, children]).astype(np.int32),
        "weights": rng.normal(size=len(parents)),
        "biases": 0.3 * rng.normal(size=len(order)),
        "unit_precision": np.full(len(order), 10.0),
        "hyper": np.array([3.0, 1.0, 1.0]),
    }
    a = activations_from(state, prior, rng.normal(size=(n_rows, len(order))))
    state["visible"], state["pre_activations"] = np.split(a, [n_columns], axis=1)
    return Sampler(state["visible"], prior, state, np.random.PCG64(seed), **options)


# -- without rows


def million(quick):
    """Structural moves in blocks of sweeps, each beside the floor of as many moves."""
    sampler, rows = chain(10, 10, 0, n_noise_slices=0, n_hmc=0), []
    times, floors, sizes = [], [], []
    rng = np.random.default_rng(0)
    n_sweeps = 500 if quick else 2000
    graph = sampler.state.graph
    for _ in range(20):
        n_moves, time = cpu_seconds(structural_sweeps, sampler, n_sweeps)
        n_pairs = n_moves * graph.n_nodes // 2
        times.append(1e6 * time / n_moves)
        floors.append(1e6 * cpu_seconds(odds, rng, n_pairs)[1] / n_moves)
        sizes.append(graph.n_nodes)
    rows.append(
        {
            "nodes, mean": float(np.mean(sizes)),
            "a million moves, s": float(np.median(times)),
            f"floor ({FLOOR}), s": float(np.median(floors)),
            "moves / floor": float(np.median(np.divide(times, floors))),
        }
    )
    return rows


def structural_sweeps(sampler, n_sweeps):
    """Their number of moves."""
    graph, n_moves = sampler.state.graph, 0
    for _ in range(n_sweeps):
        sampler.sweep()
        # As a child every node, orders of the hidden ones, proposals; the hyperparameters once.
        n_moves += graph.n_nodes + graph.n_hidden + N_PROPOSALS + 1
    return n_moves


def odds(rng, n):
    """Logarithms of so many odds, in pieces that stay in the cache."""
    for start in range(0, n, 4096):
        u = rng.random(min(4096, n - start))
        np.log(u)


def kinds(quick):
    """Time of each part of such a sweep."""
    sampler = chain(10, 10, 0)
    for _ in range(N_SETTLE):
        sampler.sweep()
    rows = []
    for move in STRUCTURE:
        time = shortest(repeat, sampler, move, 200 if quick else 2000, repeats=N_TIMED)
        rows.append({"part of a sweep": move, "us": 1e6 * time / (200 if quick else 2000)})
    return rows


def repeat(sampler, move, n):
    """One move, n times."""
    for _ in range(n):
        sampler.sweep_only(move)


# -- with rows


def growth(quick):
    """Time of a sweep and of its parts in each size alone, and the slopes of their logarithms."""
    grid = {
        "N": [250, 500, 1000, 2000] if quick else [500, 1000, 2000, 4000, 8000],
        "hidden nodes": [5, 10, 20] if quick else [5, 10, 20, 40],
        "columns": [2, 5, 10] if quick else [2, 5, 10, 20, 40],
    }
    rows = []
    for size, values in grid.items():
        times = {move: [] for move in ("sweep", *PARTS)}
        for value in values:
            sizes = {"N": 500, "hidden nodes": 10, "columns": 5} | {size: value}
            sampler = chain(sizes["columns"], sizes["hidden nodes"], sizes["N"], n_settle=10**6)
            for _ in range(N_SETTLE):
                sampler.sweep()
            times["sweep"].append(shortest(sampler.sweep, repeats=N_TIMED))
            sampler.state.n_settle = 0  # births, alone, are timed too
            for move in PARTS:
                times[move].append(shortest(sampler.sweep_only, move, repeats=N_TIMED))
        for move, found in times.items():
            rows.append({"size": size} | growth_row(values, found, "ms", 1e3, of=move))
    return rows
