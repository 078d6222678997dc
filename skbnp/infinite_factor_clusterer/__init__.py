"""Clustering by infinitely many sparse factors: the package of `InfiniteFactorClusterer`."""

from skbnp.infinite_factor_clusterer._estimator import InfiniteFactorClusterer
from skbnp.infinite_factor_clusterer._sampler_settings import FactorClustererSampler

__all__ = ["FactorClustererSampler", "InfiniteFactorClusterer"]
