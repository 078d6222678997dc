"""Convolutional networks of unknown architecture under the Indian chefs process."""

from skbnp.icp_network.convolution._estimator import ICPConvClassifier
from skbnp.icp_network.convolution._sampler_settings import ICPConvSampler

__all__ = ["ICPConvClassifier", "ICPConvSampler"]
