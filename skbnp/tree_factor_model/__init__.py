"""Trees of sparse factors: a mixture of low-rank Gaussians whose covariances share terms."""

from skbnp.tree_factor_model._estimator import TreeFactorModel
from skbnp.tree_factor_model._sampler_settings import TreeSampler

__all__ = ["TreeFactorModel", "TreeSampler"]
