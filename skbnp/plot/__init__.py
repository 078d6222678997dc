"""Display classes for fitted estimators, and their style; matplotlib is imported on use."""

from skbnp.plot._style import Look, class_look, frame_image, save_figure, style
from skbnp.plot.architecture import ArchitectureDisplay
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
    "ArchitectureDisplay",
    "ClusterCountDisplay",
    "ClusterDisplay",
    "ClusterProfileDisplay",
    "CoclusteringDisplay",
    "CompletionDisplay",
    "FeatureDisplay",
    "Look",
    "MergeTreeDisplay",
    "NetworkDisplay",
    "TraceDisplay",
    "TreeDisplay",
    "class_look",
    "frame_image",
    "save_figure",
    "style",
]
