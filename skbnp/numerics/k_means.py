"""Clusters that chains start from."""

from functools import cache

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from skbnp.numerics.quiet import ignoring


@cache
def _openmp():
    """The OpenMP libraries of the process, looked up once: that takes milliseconds."""
    return ThreadpoolController().select(user_api="openmp")


def k_means(X, n_clusters, rng):
    """Labels 0, 1, ... of the rows; equal rows give fewer clusters than asked for.

    The same seed gives the same labels, for which threads may not add up centres in any order.
    """
    kmeans = KMeans(min(n_clusters, len(X)), n_init=1, random_state=int(rng.integers(2**31)))
    with ignoring(ConvergenceWarning), _openmp().limit(limits=1):
        label = kmeans.fit_predict(X)
    return np.unique(label, return_inverse=True)[1].astype(np.intp)
