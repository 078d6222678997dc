"""How each model is sampled: the values that the parameter ``sampler`` of its estimator takes."""

from skbnp.cibp_belief_net._sampler_settings import BeliefNetSampler
from skbnp.deep_scale_model._sampler_settings import DeepScaleSampler
from skbnp.dirichlet_process_mixture._sampler_settings import MixtureSampler
from skbnp.icp_network._sampler_settings import ICPSampler
from skbnp.icp_network.convolution._sampler_settings import ICPConvSampler
from skbnp.infinite_factor_clusterer._sampler_settings import FactorClustererSampler
from skbnp.tree_factor_model._sampler_settings import TreeSampler

__all__ = [
    "BeliefNetSampler",
    "DeepScaleSampler",
    "FactorClustererSampler",
    "ICPConvSampler",
    "ICPSampler",
    "MixtureSampler",
    "TreeSampler",
]
