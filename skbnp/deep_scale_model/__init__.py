"""Factors that make columns loud and quiet, layer upon layer: the package of `DeepScaleModel`."""

from skbnp.deep_scale_model._estimator import DeepScaleModel
from skbnp.deep_scale_model._sampler_settings import DeepScaleSampler

__all__ = ["DeepScaleModel", "DeepScaleSampler"]
