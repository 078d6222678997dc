"""Where a chain over many rows starts: a search, and the record of a pass that has not been."""

import numpy as np

from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.dirichlet_process_mixture.records._blocks import empty_blocks, take_blocks
from skbnp.dirichlet_process_mixture.records._kernels import Kernels
from skbnp.dirichlet_process_mixture.records._start_search import StartSearch

# Rows on which a chain finds its start, and sweeps over these.
START_ROWS, START_SWEEPS, UNITE_EVERY = 20_000, 60, 15


def given_start(prior, label, start, key, rows):
    """Given labels of all rows, as a pass would have made them."""
    n_blocks = int(label.max()) + 1
    family = Kernels(prior, start).family(np.full((1, rows.n_features), np.nan))
    blocks = empty_blocks(family, n_blocks)
    return {"label": label, **start, **_without_anchors(key, blocks)}


def search_blocks(sampler):
    """Sweeps of a ``Sampler`` between which blocks are divided and united."""
    for t in range(START_SWEEPS):
        sampler.sweep()
        sampler.adapt(t)
        divide_and_unite(sampler, t)


def divide_and_unite(sampler, sweep):
    """What a search does after each of its sweeps.

    In the first half blocks are divided in every second sweep; all the way some are united now and
    then, and at the end, for as long as that raises the log joint.
    """
    divides = sweep < START_SWEEPS // 2 and sweep % 2
    unites = sweep < START_SWEEPS and (sweep + 1) % UNITE_EVERY == 0
    if divides or unites:
        search = StartSearch(sampler.state, sampler.bit_generator)
        if divides:
            search.split_blocks()
        if unites:
            search.unite_blocks()


def found_start(prior, label, start, key, rows, bit_generator):
    """The blocks that a search has found in some of the rows."""
    n = len(label)
    chosen = np.sort(np.random.Generator(bit_generator).permutation(n)[:START_ROWS])
    sampler = Sampler(
        rows.observed(chosen),
        prior,
        label[chosen],
        bit_generator,
        algorithm="parallel",
        start=start,
    )
    search_blocks(sampler)
    state = sampler.state
    found = {"concentration": state.concentration, "discount": state.discount, **state.base()}
    names = ("concentration", "discount", *prior.start())
    blocks = take_blocks(state.family, state.n_clusters)
    return {**{name: found[name] for name in names}, **_without_anchors(key, blocks)}


def _without_anchors(key, blocks):
    """What is said of blocks that all rows may join."""
    n_blocks = len(blocks["n_members"])
    return {
        "key": key,
        "blocks": blocks,
        "rest": 0.0,
        "anchor_place": np.full(n_blocks, -1.0),
        "anchor_row": np.full(n_blocks, -1, dtype=np.intp),
        "subset": np.zeros(0, dtype=np.intp),
    }
