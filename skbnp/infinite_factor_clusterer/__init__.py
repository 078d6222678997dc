"""Clustering by infinitely many sparse factors: the package of `InfiniteFactorClusterer`."""

from skbnp.infinite_factor_clusterer._estimator import InfiniteFactorClusterer

__all__ = ["InfiniteFactorClusterer"]
