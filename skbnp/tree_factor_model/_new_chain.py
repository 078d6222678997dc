"""A new chain: its first state, and what it does before its paths may change."""

from dataclasses import replace

import numpy as np

from skbnp.tree_factor_model._predictive import conditional_moments
from skbnp.tree_factor_model._rows import Rows
from skbnp.tree_factor_model._sampler import Sampler
from skbnp.tree_factor_model._start import MOST_START_ROWS, start_state

# Sweeps that a chain started from labels makes before its paths may change.
_SWEEPS_BEFORE_PATHS = 10
# Sweeps of the one branch that fills rows with holes before they are told apart.
_SWEEPS_TO_FILL = 20


def make_sampler(bit_generator, chain, *, X, prior, start, n_children, **options):
    """The sampler of one chain on standardised X; runs where the chain runs."""
    rng = np.random.Generator(bit_generator)
    rows = filled_rows(X, prior, bit_generator) if max(n_children, default=1) > 1 else X
    sampler = Sampler(
        X, prior, start_state(rows, prior, rng, n_children, start), bit_generator, **options
    )
    if start in ("em", "kmeans"):
        # The labels are better than the first loadings: these adapt to those first.
        for _ in range(_SWEEPS_BEFORE_PATHS):
            for move in ("leaf_means", "loadings", "precisions"):
                sampler.sweep_only(move)
    return sampler


def filled_rows(X, prior, bit_generator):
    """X with holes filled by what one branch expects there, for the start alone.

    With column means in their holes rows of which little is observed would look all alike.
    """
    holes = np.isnan(X)
    if not holes.any():
        return X
    rng = np.random.Generator(bit_generator)
    some = X if len(X) <= MOST_START_ROWS else rng.choice(X, MOST_START_ROWS, replace=False)
    one = replace(prior, branch_levels=(), concentration=())
    sampler = Sampler(some, one, start_state(some, one, rng, ()), bit_generator)
    for _ in range(_SWEEPS_TO_FILL):
        sampler.sweep()
    mean, _ = conditional_moments(Rows(X), sampler.draw())
    return np.where(holes, mean, X)
