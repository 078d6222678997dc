"""Deep sparse belief networks of unbounded width and depth."""

from skbnp.cibp_belief_net._estimator import CIBPBeliefNet

__all__ = ["CIBPBeliefNet"]
