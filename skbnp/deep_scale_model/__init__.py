"""Factors that make columns loud and quiet, layer upon layer: the package of `DeepScaleModel`."""

from skbnp.deep_scale_model._estimator import DeepScaleModel

__all__ = ["DeepScaleModel"]
