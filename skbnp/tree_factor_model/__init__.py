"""Trees of sparse factors: a mixture of low-rank Gaussians whose covariances share terms."""

from skbnp.tree_factor_model._estimator import TreeFactorModel

__all__ = ["TreeFactorModel"]
