"""Display classes for fitted estimators; matplotlib is imported on use."""

from skbnp.plot.clusters import ClusterDisplay
from skbnp.plot.trace import TraceDisplay

__all__ = ["ClusterDisplay", "TraceDisplay"]
