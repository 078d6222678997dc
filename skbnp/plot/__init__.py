"""Display classes for fitted estimators; matplotlib is imported on use."""

from skbnp.plot.cluster_count import ClusterCountDisplay
from skbnp.plot.clusters import ClusterDisplay
from skbnp.plot.coclustering import CoclusteringDisplay
from skbnp.plot.trace import TraceDisplay

__all__ = ["ClusterCountDisplay", "ClusterDisplay", "CoclusteringDisplay", "TraceDisplay"]
