"""Bayesian nonparametrics as scikit-learn estimators."""

from skbnp._version import __version__
from skbnp.cibp_belief_net import CIBPBeliefNet
from skbnp.dirichlet_process_mixture import DirichletProcessMixture
from skbnp.tree_factor_model import TreeFactorModel

__all__ = ["CIBPBeliefNet", "DirichletProcessMixture", "TreeFactorModel", "__version__"]
