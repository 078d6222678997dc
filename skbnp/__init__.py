"""Bayesian nonparametrics as scikit-learn estimators."""

from importlib import import_module
from typing import TYPE_CHECKING

from skbnp._version import __version__

if TYPE_CHECKING:
    from skbnp.cibp_belief_net import CIBPBeliefNet
    from skbnp.deep_scale_model import DeepScaleModel
    from skbnp.dirichlet_process_mixture import DirichletProcessMixture
    from skbnp.icp_network import ICPNetwork, ICPNetworkClassifier, ICPNetworkRegressor
    from skbnp.icp_network.convolution import ICPConvClassifier
    from skbnp.imputer import BNPImputer
    from skbnp.infinite_factor_clusterer import InfiniteFactorClusterer
    from skbnp.tree_factor_model import TreeFactorModel

__all__ = [
    "BNPImputer",
    "CIBPBeliefNet",
    "DeepScaleModel",
    "DirichletProcessMixture",
    "ICPConvClassifier",
    "ICPNetwork",
    "ICPNetworkClassifier",
    "ICPNetworkRegressor",
    "InfiniteFactorClusterer",
    "TreeFactorModel",
    "__version__",
]

# Imported when they are asked for, so that `skbnp --help` does not wait for all of them.
_FOLDERS = {
    "BNPImputer": "imputer",
    "CIBPBeliefNet": "cibp_belief_net",
    "DeepScaleModel": "deep_scale_model",
    "DirichletProcessMixture": "dirichlet_process_mixture",
    "ICPConvClassifier": "icp_network.convolution",
    "ICPNetwork": "icp_network",
    "ICPNetworkClassifier": "icp_network",
    "ICPNetworkRegressor": "icp_network",
    "InfiniteFactorClusterer": "infinite_factor_clusterer",
    "TreeFactorModel": "tree_factor_model",
}


def __getattr__(name):
    if name in _FOLDERS:
        found = getattr(import_module(f"skbnp.{_FOLDERS[name]}"), name)
        globals()[name] = found
        return found
    if not name.startswith("_"):
        try:
            return import_module(f"skbnp.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"skbnp.{name}":
                raise
    raise AttributeError(f"module 'skbnp' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
