"""Bayesian nonparametrics as scikit-learn estimators."""

from skbnp._version import __version__
from skbnp.dirichlet_process_mixture import DirichletProcessMixture

__all__ = ["DirichletProcessMixture", "__version__"]
