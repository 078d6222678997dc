"""Display classes for fitted estimators; matplotlib is imported on use."""

from skbnp.plot.cluster_count import ClusterCountDisplay
from skbnp.plot.cluster_profile import ClusterProfileDisplay
from skbnp.plot.clusters import ClusterDisplay
from skbnp.plot.coclustering import CoclusteringDisplay
from skbnp.plot.completion import CompletionDisplay
from skbnp.plot.features import FeatureDisplay
from skbnp.plot.merge_tree import MergeTreeDisplay
from skbnp.plot.network import NetworkDisplay
from skbnp.plot.trace import TraceDisplay
from skbnp.plot.tree import TreeDisplay

__all__ = [
    "ClusterCountDisplay",
    "ClusterDisplay",
    "ClusterProfileDisplay",
    "CoclusteringDisplay",
    "CompletionDisplay",
    "FeatureDisplay",
    "MergeTreeDisplay",
    "NetworkDisplay",
    "TraceDisplay",
    "TreeDisplay",
]
