"""Clustering by infinitely many sparse factors: the package of `InfiniteFactorClusterer`."""
