"""How each model is sampled: the values that the parameter ``sampler`` of its estimator takes."""

from skbnp.icp_network._sampler_settings import ICPSampler

__all__ = ["ICPSampler"]
