"""Deep sparse belief networks of unbounded width and depth."""

from skbnp.cibp_belief_net._estimator import CIBPBeliefNet
from skbnp.cibp_belief_net._sampler_settings import BeliefNetSampler

__all__ = ["BeliefNetSampler", "CIBPBeliefNet"]
