"""Bayesian nonparametrics as scikit-learn estimators."""

from skbnp._version import __version__
from skbnp.cibp_belief_net import CIBPBeliefNet
from skbnp.deep_scale_model import DeepScaleModel
from skbnp.dirichlet_process_mixture import DirichletProcessMixture
from skbnp.icp_network import ICPNetwork, ICPNetworkClassifier, ICPNetworkRegressor
from skbnp.imputer import BNPImputer
from skbnp.infinite_factor_clusterer import InfiniteFactorClusterer
from skbnp.tree_factor_model import TreeFactorModel

__all__ = [
    "BNPImputer",
    "CIBPBeliefNet",
    "DeepScaleModel",
    "DirichletProcessMixture",
    "ICPNetwork",
    "ICPNetworkClassifier",
    "ICPNetworkRegressor",
    "InfiniteFactorClusterer",
    "TreeFactorModel",
    "__version__",
]
