"""Bayesian nonparametrics as scikit-learn estimators."""

from skbnp._version import __version__

__all__ = ["__version__"]
