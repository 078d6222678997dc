"""Gaussian networks of unknown structure under the Indian chefs process."""

from skbnp.icp_network._classifier_estimator import ICPNetworkClassifier
from skbnp.icp_network._estimator import ICPNetwork
from skbnp.icp_network._sampler_settings import ICPSampler
from skbnp.icp_network._supervised_estimator import ICPNetworkRegressor

__all__ = ["ICPNetwork", "ICPNetworkClassifier", "ICPNetworkRegressor", "ICPSampler"]
