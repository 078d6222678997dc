"""Draws of partitions for the tests of their summaries."""

import numpy as np


def noisy_draws(seed, n_draws=40, n=120, n_clusters=4, noise=0.3):
    """Draws around one partition, the noise differing by row."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_clusters, size=n)
    moved = rng.random((n_draws, n)) < noise * rng.random(n)
    return np.where(moved, rng.integers(n_clusters + 2, size=(n_draws, n)), truth)
