"""A transformer that fills holes, around any estimator that can."""

from skbnp.imputer._default import default_model
from skbnp.imputer._estimator import BNPImputer

__all__ = ["BNPImputer", "default_model"]
