"""How each model is sampled: the values that the parameter ``sampler`` of its estimator takes."""

from skbnp.cibp_belief_net._sampler_settings import BeliefNetSampler
from skbnp.dirichlet_process_mixture._sampler_settings import MixtureSampler
from skbnp.icp_network._sampler_settings import ICPSampler
from skbnp.tree_factor_model._sampler_settings import TreeSampler

__all__ = ["BeliefNetSampler", "ICPSampler", "MixtureSampler", "TreeSampler"]
